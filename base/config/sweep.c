/* sweep.c - [sweep.SECTION.KEY]: each section is the search range of one parameter.
 * Resolving goes over the entries once and lists the parameters; then each field of each parameter is taken from its
 * winning entry and checked against the parameter's option. */
#include "base/config/config_priv.h"

#define FIELDS "type, distribution, min, max, step, mean, scale, values, ordered, freeze, when"

static const char *const field_names[] = {"type",  "distribution", "min",     "max",    "step", "mean",
                                          "scale", "values",       "ordered", "freeze", "when"};

/* A mean may lie outside the range by this share of it: PufferLib's files hold 0.5999999999999999 with min 0.6. */
#define MEAN_SLACK 1e-9

/* The texts of a section's fields, or their origins; NULL where a field is not set. (The texts of mean and values are
 * the parameter's own.) */
struct sweep_fields {
    const char *type, *distribution, *min, *max, *step, *mean, *scale, *values, *ordered, *freeze;
};

static const struct {
    const char *name;
    enum opt_scale scale;
    bool is_int;
} distributions[] = {
    {"uniform", OPT_LINEAR, false},          {"linear", OPT_LINEAR, false},
    {"int_uniform", OPT_LINEAR, true},       {"int", OPT_LINEAR, true},
    {"uniform_pow2", OPT_POW2, false},       {"pow2", OPT_POW2, false},
    {"log_normal", OPT_LOG, false},          {"log", OPT_LOG, false},
    {"logit_normal", OPT_LOGIT, false},      {"logit", OPT_LOGIT, false},
    {"categorical", OPT_CATEGORICAL, false},
};

size_t config_n_sweep_params(const struct config *config)
{
    return config->n_params;
}

const struct config_sweep_param *config_sweep_param(const struct config *config, size_t i)
{
    return &config->params[i];
}

enum status config_add_param(struct config *config, const char *key, const struct config_entry *entry,
                             struct error *err)
{
    const struct opt_def *opt = config_find_opt(config, key);

    for (size_t i = 0; i < config->n_params; i++)
        if (strcmp(config->params[i].key, key) == 0)
            return ST_OK;
    if (opt == NULL)
        return FAIL(err, ST_INTERNAL, "%s: %s sweeps an unknown key", entry->origin, entry->key);
    MEM_ROOM(config->params, config->n_params, config->cap_params);
    struct config_sweep_param *param = &config->params[config->n_params++];
    *param = (struct config_sweep_param){.opt = opt, .origin = entry->origin};
    snprintf(param->key, sizeof param->key, "%s", key);
    return ST_OK;
}

bool config_unknown_sweep_field(const char *field, char *buf, size_t size)
{
    const char *near = word_nearest(field, field_names, COUNT(field_names));

    if (near != NULL && strcmp(near, field) == 0)
        return false;
    if (near != NULL)
        snprintf(buf, size, "; did you mean %s?", near);
    else
        snprintf(buf, size, "; a sweep section knows " FIELDS);
    return true;
}

static const char *take_field(const struct config *config, const char *param_key, const char *field,
                              const char **ret_origin)
{
    char key[2 * CONFIG_KEY_MAX];

    snprintf(key, sizeof key, "sweep.%s.%s", param_key, field);
    const struct config_entry *entry = config_winner(config, key);
    *ret_origin = entry != NULL ? entry->origin : NULL;
    return entry != NULL ? entry->value : NULL;
}

static bool is_distribution(const char *word)
{
    for (size_t i = 0; i < COUNT(distributions); i++)
        if (strcmp(word, distributions[i].name) == 0)
            return true;
    return false;
}

/* The scale of the search: the section's own, else the option's. */
static enum status find_scale(struct config_sweep_param *p, const char *word, const char *origin, struct error *err)
{
    const char *names[COUNT(distributions)], *near;
    bool has_words = p->opt->type == OPT_BOOL || p->opt->type == OPT_ENUM;

    p->scale = p->values != NULL || has_words ? OPT_CATEGORICAL : p->opt->scale;
    p->is_int = p->opt->type == OPT_INT;
    if (word == NULL)
        return ST_OK;
    for (size_t i = 0; i < COUNT(distributions); i++) {
        names[i] = distributions[i].name;
        if (strcmp(word, names[i]) == 0) {
            p->scale = distributions[i].scale;
            p->is_int = p->is_int || distributions[i].is_int;
            return ST_OK;
        }
    }
    near = word_nearest(word, names, COUNT(distributions));
    if (near != NULL)
        return FAIL(err, ST_CONFIG, "%s: unknown distribution \"%.40s\" of %s; did you mean %s?", origin, word, p->key,
                    near);
    return FAIL(err, ST_CONFIG,
                "%s: unknown distribution \"%.40s\" of %s; known are uniform, int_uniform, uniform_pow2, log_normal, "
                "logit_normal, linear, int, pow2, log, logit, categorical",
                origin, word, p->key);
}

static enum status check_values(struct config_sweep_param *p, const char *origin, struct error *err)
{
    bool is_first = true;

    char key[CONFIG_KEY_MAX + 16], one[OPT_STR_MAX];
    const char *at = p->values;

    snprintf(key, sizeof key, "sweep.%s.values", p->key);
    for (;;) {
        size_t n, raw;
        at += strspn(at, " \t");
        raw = n = strcspn(at, ",");
        while (n > 0 && (at[n - 1] == ' ' || at[n - 1] == '\t'))
            n--;
        if (n == 0 || n >= sizeof one)
            return FAIL(err, ST_CONFIG, "%s: %s has an empty or too long item; write values = a, b, c", origin, key);
        snprintf(one, sizeof one, "%.*s", (int)n, at);
        TRY(config_check_value(p->opt, key, one, origin, err));
        if (at[raw] == '\0') {
            p->fixed = is_first ? p->values : NULL;
            return ST_OK;
        }
        is_first = false;
        at += raw + 1;
    }
}

static enum status check_choices(struct config_sweep_param *p, const struct sweep_fields *from, struct error *err)
{
    if (from->min != NULL || from->max != NULL)
        return FAIL(err, ST_CONFIG, "%s: %s is categorical and has no min and max; write values = a, b, c",
                    from->min != NULL ? from->min : from->max, p->key);
    if (p->values != NULL)
        return check_values(p, from->values, err);
    if (p->opt->type != OPT_BOOL && p->opt->type != OPT_ENUM)
        return FAIL(err, ST_CONFIG, "%s: %s is categorical; write values = a, b, c", p->origin, p->key);
    return ST_OK;
}

/* One bound: the section's text, checked as a value of the option; without a text nothing. */
static enum status take_bound(const struct config_sweep_param *p, const char *field, const char *text,
                              const char *origin, double *ret_bound, struct error *err)
{
    char key[CONFIG_KEY_MAX + 16];

    if (text == NULL)
        return ST_OK;
    snprintf(key, sizeof key, "sweep.%s.%s", p->key, field);
    TRY(config_check_value(p->opt, key, text, origin, err));
    return config_parse_value(p->opt, text, ret_bound, err);
}

static enum status no_range(const struct config_sweep_param *p, struct error *err)
{
    return FAIL(err, ST_CONFIG, "%s: %s has no usual range to sweep; write distribution, min and max", p->origin,
                p->key);
}

/* The start value of the section, else the option's value in this config; inside the bounds of the section. */
static double centre_of(const struct config *config, const struct config_sweep_param *p)
{
    const struct config_entry *entry = config_winner(config, p->key);
    double x = 0.0;

    if ((p->mean == NULL || !num_parse_f64(p->mean, &x)) &&
        config_parse_value(p->opt, entry != NULL ? entry->value : config_default(p->opt), &x, NULL) != ST_OK)
        return 0.0;
    if (!p->usual_min && x < p->min)
        x = p->min;
    return !p->usual_max && x > p->max ? p->max : x;
}

/* Bounds that the section leaves out. Sizes are searched around the config's own value, other options over their usual
 * range, which is widened where the config's value lies outside. */
static void take_usual(const struct config *config, struct config_sweep_param *p)
{
    const struct opt_def *opt = p->opt;
    double x = centre_of(config, p), lo = opt->sweep_min, hi = opt->sweep_max;

    if (opt->sweep_factor > 1.0 && x > 0.0) {
        lo = x / opt->sweep_factor;
        hi = x * opt->sweep_factor;
        if (p->is_int) {
            lo = ceil(lo);
            hi = floor(hi);
        }
    } else if (x < lo && !(x <= 0.0 && (p->scale == OPT_LOG || p->scale == OPT_POW2 || p->scale == OPT_LOGIT))) {
        lo = p->scale == OPT_LINEAR ? x : x / 2.0;
    } else if (x > hi && !(x >= 1.0 && p->scale == OPT_LOGIT)) {
        hi = p->scale == OPT_LOGIT ? (1.0 + x) / 2.0 : p->scale == OPT_LINEAR ? x : 2.0 * x;
    }
    if (p->usual_min)
        p->min = fmax(lo, opt->min);
    if (p->usual_max)
        p->max = fmin(hi, opt->max);
}

static enum status check_scale(const struct config_sweep_param *p, const char *min_at, const char *max_at,
                               struct error *err)
{
    char lo[NUM_TEXT_MAX], hi[NUM_TEXT_MAX];

    num_format_f64(p->min, lo);
    num_format_f64(p->max, hi);
    if (!(p->min < p->max))
        return FAIL(err, ST_CONFIG,
                    "%s: sweep.%s has min %s and max %s; min must be below max, or equal to keep it fixed", min_at,
                    p->key, lo, hi);
    if ((p->scale == OPT_LOG || p->scale == OPT_POW2) && !(p->min > 0.0))
        return FAIL(err, ST_CONFIG, "%s: sweep.%s.min is %s, a %s range needs > 0; try %s", min_at, p->key, lo,
                    config_scale_word(p->scale), p->opt->type == OPT_INT ? "1" : "1e-6");
    if (p->scale == OPT_LOGIT && !(p->min > 0.0))
        return FAIL(err, ST_CONFIG, "%s: sweep.%s.min is %s, a logit range needs > 0; try 0.01", min_at, p->key, lo);
    if (p->scale == OPT_LOGIT && !(p->max < 1.0))
        return FAIL(err, ST_CONFIG, "%s: sweep.%s.max is %s, a logit range needs < 1; try 0.9999", max_at, p->key, hi);
    return ST_OK;
}

/* Values are min, min + step, ... up to max. */
static enum status take_step(struct config_sweep_param *p, const char *text, const char *origin, struct error *err)
{
    char range[NUM_TEXT_MAX];

    if (text == NULL)
        return ST_OK;
    if (p->scale != OPT_LINEAR)
        return FAIL(err, ST_CONFIG, "%s: %s has a step, which belongs to a linear or int range; drop one of the two",
                    origin, p->key);
    if (!num_parse_f64(text, &p->step) || !(p->step > 0.0) || (p->is_int && p->step != rint(p->step)))
        return FAIL(err, ST_CONFIG, "%s: sweep.%s.step is %.40s, a %snumber above 0 is needed", origin, p->key, text,
                    p->is_int ? "whole " : "");
    if (p->step > p->max - p->min)
        return FAIL(err, ST_CONFIG, "%s: sweep.%s.step is %.40s, more than the whole range of %s; make it smaller",
                    origin, p->key, text, num_format_f64(p->max - p->min, range));
    return ST_OK;
}

static enum status take_ordered(struct config_sweep_param *p, const char *text, const char *origin, struct error *err)
{
    static const struct opt_def yes_or_no = {.key = "ordered", .type = OPT_BOOL};
    char key[CONFIG_KEY_MAX + 16];
    double number = 0.0;

    if (text == NULL)
        return ST_OK;
    snprintf(key, sizeof key, "sweep.%s.ordered", p->key);
    TRY(config_check_value(&yes_or_no, key, text, origin, err));
    TRY(config_parse_value(&yes_or_no, text, &number, err));
    p->ordered = number != 0.0;
    return ST_OK;
}

/* Takes the parameter out of the search for as long as the line stands; its range may stay in the section. */
static enum status check_frozen(struct config_sweep_param *p, const char *text, const char *origin, struct error *err)
{
    char key[CONFIG_KEY_MAX + 16];

    snprintf(key, sizeof key, "sweep.%s.freeze", p->key);
    TRY(config_check_value(p->opt, key, text, origin, err));
    p->fixed = text;
    return ST_OK;
}

static enum status take_range(const struct config *config, struct config_sweep_param *p,
                              const struct sweep_fields *text, const struct sweep_fields *from, struct error *err)
{
    const char *min_at = from->min != NULL ? from->min : p->origin, *max_at = from->max != NULL ? from->max : p->origin;
    char lo[NUM_TEXT_MAX], hi[NUM_TEXT_MAX];
    double mean, slack, step;

    if (p->values != NULL)
        return FAIL(err, ST_CONFIG, "%s: values of %s belong to distribution = categorical", from->values, p->key);
    p->usual_min = text->min == NULL;
    p->usual_max = text->max == NULL;
    if ((p->usual_min || p->usual_max) && !(p->opt->sweep_min < p->opt->sweep_max) && !(p->opt->sweep_factor > 1.0))
        return no_range(p, err);
    TRY(take_bound(p, "min", text->min, from->min, &p->min, err));
    TRY(take_bound(p, "max", text->max, from->max, &p->max, err));
    take_usual(config, p);
    if (p->min == p->max && !p->usual_min && !p->usual_max) {
        p->fixed = text->min;
        return ST_OK;
    }
    TRY(check_scale(p, min_at, max_at, err));
    TRY(take_step(p, text->step, from->step, err));
    slack = MEAN_SLACK * (p->max - p->min);
    if (p->mean != NULL && (!num_parse_f64(p->mean, &mean) || mean < p->min - slack || mean > p->max + slack))
        return FAIL(err, ST_CONFIG, "%s: sweep.%s.mean is %.40s, a number from %s to %s is needed", from->mean, p->key,
                    p->mean, num_format_f64(p->min, lo), num_format_f64(p->max, hi));
    if (text->scale != NULL && strcmp(text->scale, "auto") != 0 && strcmp(text->scale, "time") != 0 &&
        (!num_parse_f64(text->scale, &step) || !(step > 0.0)))
        return FAIL(err, ST_CONFIG, "%s: sweep.%s.scale is %.40s, auto, time or a number above 0 is needed",
                    from->scale, p->key, text->scale);
    return ST_OK;
}

/* The option has one type; a section may name it, and one of a program's own parameter must. */
static enum status check_type(const struct config_sweep_param *p, const char *origin, struct error *err)
{
    const char *own = p->opt->type == OPT_ENUM ? "categorical" : config_type_word(p->opt);

    if (p->type == NULL || strcmp(p->type, own) == 0 ||
        (strcmp(p->type, "categorical") == 0 && p->scale == OPT_CATEGORICAL))
        return ST_OK;
    return FAIL(err, ST_CONFIG, "%s: sweep.%s.type is \"%.40s\", but %s is of type %s; drop the line", origin, p->key,
                p->type, p->key, own);
}

static enum status fill_param(const struct config *config, struct config_sweep_param *p, struct error *err)
{
    struct sweep_fields text, from;

    p->type = text.type = take_field(config, p->key, "type", &from.type);
    text.distribution = take_field(config, p->key, "distribution", &from.distribution);
    text.min = take_field(config, p->key, "min", &from.min);
    text.max = take_field(config, p->key, "max", &from.max);
    text.step = take_field(config, p->key, "step", &from.step);
    text.scale = take_field(config, p->key, "scale", &from.scale);
    text.ordered = take_field(config, p->key, "ordered", &from.ordered);
    text.freeze = take_field(config, p->key, "freeze", &from.freeze);
    p->mean = take_field(config, p->key, "mean", &from.mean);
    p->values = take_field(config, p->key, "values", &from.values);
    p->when = take_field(config, p->key, "when", &p->when_origin);
    if (text.distribution == NULL && text.scale != NULL && is_distribution(text.scale)) {
        text.distribution = text.scale; /* another word for it; a number is of PufferLib's search alone */
        from.distribution = from.scale;
        text.scale = NULL;
    }
    TRY(find_scale(p, text.distribution, from.distribution, err));
    bool categorical = p->scale == OPT_CATEGORICAL;
    if (p->opt->type == OPT_STR)
        return FAIL(err, ST_CONFIG, "%s: %s is a text, which cannot be searched; drop the section", p->origin, p->key);
    if (!categorical && (p->opt->type == OPT_BOOL || p->opt->type == OPT_ENUM))
        return FAIL(err, ST_CONFIG, "%s: %s is not a number and cannot be swept as a range; write values = a, b, c",
                    from.distribution != NULL ? from.distribution : p->origin, p->key);
    TRY(check_type(p, from.type, err));
    if (categorical && text.step != NULL)
        return FAIL(err, ST_CONFIG, "%s: %s is categorical and has no step", from.step, p->key);
    if (!categorical && text.ordered != NULL)
        return FAIL(err, ST_CONFIG, "%s: %s is a range, which has an order; ordered belongs to values = a, b, c",
                    from.ordered, p->key);
    TRY(take_ordered(p, text.ordered, from.ordered, err));
    if (text.freeze != NULL) {
        TRY(check_frozen(p, text.freeze, from.freeze, err));
        return ST_OK;
    }
    if (p->scale == OPT_FIXED)
        return no_range(p, err);
    return categorical ? check_choices(p, &from, err) : take_range(config, p, &text, &from, err);
}

enum status config_fill_params(struct config *config, size_t *at, struct error *err)
{
    while (*at < config->n_params)
        TRY(fill_param(config, &config->params[(*at)++], err));
    return ST_OK;
}
