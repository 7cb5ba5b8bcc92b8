/* search.c - the space that a config asks to search: [sweep.SECTION.KEY] sections checked against their options.
 * Invariant: every message names the section's file and line, what was found and what would do. */
#include "sweep/control.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/num.h"
#include "base/words.h"

static const struct {
    const char *name;
    enum space_scale scale;
    bool is_int;
} distributions[] = {
    {"uniform", SPACE_LINEAR, false},
    {"int_uniform", SPACE_LINEAR, true},
    {"uniform_pow2", SPACE_POW2, true},
    {"log_normal", SPACE_LOG, false},
    {"logit_normal", SPACE_LOGIT, false},
    {"linear", SPACE_LINEAR, false},
    {"log", SPACE_LOG, false},
    {"logit", SPACE_LOGIT, false},
    {"pow2", SPACE_POW2, true},
    {"int", SPACE_LINEAR, true},
    {"categorical", SPACE_CATEGORICAL, false},
};
#define N_DISTRIBUTIONS (sizeof distributions / sizeof distributions[0])

void search_free(struct search *search)
{
    for (size_t i = 0; i < SPACE_MAX_DIM; i++)
        for (size_t k = 0; k < SEARCH_MAX_CHOICES; k++)
            mem_free(search->choices[i][k]);
    memset(search, 0, sizeof *search);
}

/* Splits "a|b|c", "a, b" or "a b" into the choices of parameter i. */
static enum status split_choices(struct search *s, size_t i, const char *text, const char *origin, struct error *err)
{
    struct space_param *p = &s->space.params[i];

    p->n_choices = 0;
    while (*text != '\0') {
        size_t n = strcspn(text, "|, ");
        if (n > 0) {
            char word[OPT_STR_MAX];
            if (p->n_choices == SEARCH_MAX_CHOICES)
                return FAIL(err, ST_CONFIG, "%s: %s has more than %d values", origin, p->key, SEARCH_MAX_CHOICES);
            snprintf(word, sizeof word, "%.*s", (int)(n < sizeof word ? n : sizeof word - 1), text);
            s->choices[i][p->n_choices] = mem_strdup(word);
            if (s->choices[i][p->n_choices] == NULL)
                return FAIL(err, ST_NOMEM, "out of memory for the search space");
            p->n_choices++;
        }
        text += n + (text[n] != '\0');
    }
    p->min = 0;
    p->max = p->n_choices > 0 ? (double)(p->n_choices - 1) : 0;
    return ST_OK;
}

static size_t find_choice(const struct search *s, size_t i, const char *text)
{
    size_t n = s->space.params[i].n_choices, k = 0;

    while (k < n && strcmp(s->choices[i][k], text) != 0)
        k++;
    return k;
}

static enum status add_categorical(struct search *s, size_t i, const struct config_sweep_param *c, const char *start,
                                   struct error *err)
{
    const struct opt_def *o = c->opt;
    struct space_param *p = &s->space.params[i];
    const char *all = o->type == OPT_BOOL ? "false|true" : o->type == OPT_ENUM ? o->choices : NULL;
    const char *text = c->values != NULL ? c->values : all;
    size_t k;

    p->scale = SPACE_CATEGORICAL;
    if (text == NULL)
        return FAIL(err, ST_CONFIG, "%s: %s is categorical and needs 'values = a, b, c'", c->origin, c->key);
    if (c->min != NULL || c->max != NULL)
        return FAIL(err, ST_CONFIG, "%s: %s is categorical; give 'values', not min and max", c->origin, c->key);
    TRY(split_choices(s, i, text, c->origin, err));
    if (p->n_choices < 2)
        return FAIL(err, ST_CONFIG, "%s: %s has %zu value(s) to choose from, at least 2 are needed", c->origin, c->key,
                    p->n_choices);
    for (k = 0; k < p->n_choices; k++)
        TRY(config_check_value(o, c->key, s->choices[i][k], c->origin, err));
    k = find_choice(s, i, c->mean != NULL ? c->mean : start != NULL ? start : "");
    if (k == p->n_choices && c->mean != NULL)
        return FAIL(err, ST_CONFIG, "%s: %s starts at '%s', which is none of its values (%s)", c->origin, c->key,
                    c->mean, text);
    p->has_init = k < p->n_choices;
    p->init = p->has_init ? (double)k : 0;
    return ST_OK;
}

static enum status read_bound(const struct config_sweep_param *c, const char *what, const char *text, double otherwise,
                              double *ret_value, struct error *err)
{
    *ret_value = otherwise;
    if (text != NULL && !num_parse_f64(text, ret_value))
        return FAIL(err, ST_CONFIG, "%s: %s %s is '%s', a number is needed", c->origin, c->key, what, text);
    if (*ret_value < c->opt->min || *ret_value > c->opt->max)
        return FAIL(err, ST_CONFIG, "%s: %s %s is %g, outside its allowed range %g to %g", c->origin, c->key, what,
                    *ret_value, c->opt->min, c->opt->max);
    return ST_OK;
}

static enum status check_range(const struct config_sweep_param *c, const struct space_param *p, struct error *err)
{
    if (p->min > p->max)
        return FAIL(err, ST_CONFIG, "%s: %s min is %g and max is %g; swap them", c->origin, c->key, p->min, p->max);
    if (p->min == p->max)
        return FAIL(err, ST_CONFIG, "%s: %s min and max are both %g; set the option itself and drop this section",
                    c->origin, c->key, p->min);
    if (p->scale == SPACE_LOG && !(p->min > 0))
        return FAIL(err, ST_CONFIG, "%s: %s min is %g, a log range needs > 0; try %g", c->origin, c->key, p->min,
                    p->is_int ? 1.0 : p->max * 1e-4);
    if (p->scale == SPACE_LOGIT && !(p->min > 0 && p->max < 1))
        return FAIL(err, ST_CONFIG, "%s: %s goes from %g to %g, a logit range lies inside 0 and 1", c->origin, c->key,
                    p->min, p->max);
    if (p->scale == SPACE_POW2 && !(p->min >= 1))
        return FAIL(err, ST_CONFIG, "%s: %s min is %g, a pow2 range starts at 1 or above", c->origin, c->key, p->min);
    return ST_OK;
}

static enum status add_numeric(struct search *s, size_t i, const struct config_sweep_param *c, enum space_scale scale,
                               bool is_int, const char *start, struct error *err)
{
    const struct opt_def *o = c->opt;
    struct space_param *p = &s->space.params[i];
    bool has_range = o->sweep_min < o->sweep_max;
    double init;

    if ((c->min == NULL || c->max == NULL) && !has_range)
        return FAIL(err, ST_CONFIG, "%s: %s has no range of its own to search; give min and max", c->origin, c->key);
    p->scale = scale;
    p->is_int = is_int || o->type == OPT_INT;
    TRY(read_bound(c, "min", c->min, o->sweep_min, &p->min, err));
    TRY(read_bound(c, "max", c->max, o->sweep_max, &p->max, err));
    TRY(check_range(c, p, err));
    if (c->mean != NULL) {
        TRY(read_bound(c, "mean", c->mean, 0, &p->init, err));
        if (p->init < p->min || p->init > p->max)
            return FAIL(err, ST_CONFIG, "%s: %s mean is %g, outside its min %g and max %g", c->origin, c->key, p->init,
                        p->min, p->max);
        p->has_init = true;
    } else if (start != NULL && num_parse_f64(start, &init) && init >= p->min && init <= p->max) {
        p->init = init; /* the config's own value is the first trial's */
        p->has_init = true;
    }
    return ST_OK;
}

static enum status add_param(struct search *s, const struct setup *setup, const struct config_sweep_param *c,
                             struct error *err)
{
    static const char *const scale_names[] = {
        [OPT_FIXED] = "",      [OPT_LINEAR] = "linear", [OPT_LOG] = "log",
        [OPT_LOGIT] = "logit", [OPT_POW2] = "pow2",     [OPT_CATEGORICAL] = "categorical"};
    const char *name = c->distribution != NULL ? c->distribution : scale_names[c->opt->scale];
    const char *start = config_peek(setup->config, c->key), *names[N_DISTRIBUTIONS], *near;
    bool words = c->opt->type == OPT_BOOL || c->opt->type == OPT_ENUM;
    size_t i = s->space.dim, d = 0;

    if (i == SPACE_MAX_DIM)
        return FAIL(err, ST_CONFIG, "%s: more than %d parameters to search; drop some", c->origin, SPACE_MAX_DIM);
    if (c->opt->type == OPT_STR || (c->opt->scale == OPT_FIXED && c->distribution == NULL))
        return FAIL(err, ST_CONFIG, "%s: %s does not make sense to search%s", c->origin, c->key,
                    c->opt->type == OPT_STR ? "" : "; if you mean it, give distribution, min and max");
    for (d = 0; d < N_DISTRIBUTIONS; d++)
        names[d] = distributions[d].name;
    for (d = 0; d < N_DISTRIBUTIONS && strcmp(name, distributions[d].name) != 0; d++)
        ;
    if (d == N_DISTRIBUTIONS) {
        near = word_nearest(name, names, N_DISTRIBUTIONS);
        return FAIL(
            err, ST_CONFIG,
            "%s: %s has distribution '%s'; did you mean '%s'? linear, log, logit, pow2, int and categorical are known",
            c->origin, c->key, name, near != NULL ? near : "log");
    }
    if (words && distributions[d].scale != SPACE_CATEGORICAL)
        return FAIL(err, ST_CONFIG, "%s: %s is a choice; its distribution is categorical, not %s", c->origin, c->key,
                    name);
    s->space.dim++;
    snprintf(s->space.params[i].key, sizeof s->space.params[i].key, "%s", c->key);
    s->opts[i] = c->opt;
    if (distributions[d].scale == SPACE_CATEGORICAL || c->values != NULL)
        return add_categorical(s, i, c, start, err);
    return add_numeric(s, i, c, distributions[d].scale, distributions[d].is_int, start, err);
}

static enum status teach(const struct setup *setup, struct error *err)
{
    const struct opt_table *tables[] = {&setup->env->options, &policy_opt_table, &train_opt_table};
    char keys[800];
    size_t n = 0;

    keys[0] = '\0';
    for (size_t t = 0; t < sizeof tables / sizeof tables[0]; t++)
        for (size_t i = 0; i < tables[t]->n_defs && n + CONFIG_KEY_MAX < sizeof keys; i++)
            if (tables[t]->defs[i].scale != OPT_FIXED)
                n += (size_t)snprintf(keys + n, sizeof keys - n, "%s%s.%s", n > 0 ? " " : "", tables[t]->section,
                                      tables[t]->defs[i].key);
    return FAIL(
        err, ST_CONFIG,
        "the config has no parameter to search; add a section '[sweep.train.learning_rate]' (empty: its usual range; "
        "or with distribution, min, max, mean) for one or more of: %s",
        keys);
}

enum status search_from_setup(const struct setup *setup, struct search *ret_search, struct error *err)
{
    struct error at = {0};
    enum status rc = ST_OK;

    memset(ret_search, 0, sizeof *ret_search);
    for (size_t i = 0; rc == ST_OK && i < config_n_sweep_params(setup->config); i++)
        rc = add_param(ret_search, setup, config_sweep_param(setup->config, i), err);
    if (rc == ST_OK && ret_search->space.dim == 0)
        rc = teach(setup, err);
    if (rc == ST_OK && space_check(&ret_search->space, &at) != ST_OK)
        rc = FAIL(err, ST_CONFIG, "search space: %s", at.text);
    if (rc != ST_OK)
        search_free(ret_search);
    return rc;
}

enum status search_bind(struct search *search, const struct setup *setup, struct error *err)
{
    for (size_t i = 0; i < search->space.dim; i++) {
        search->opts[i] = config_find_opt(setup->config, search->space.params[i].key);
        if (search->opts[i] == NULL)
            return FAIL(err, ST_VERSION,
                        "this program has no option %s, which the study searches; use the version that began it",
                        search->space.params[i].key);
    }
    return ST_OK;
}

void search_value_text(const struct search *search, size_t i, double value, char *buf, size_t size)
{
    if (search->space.params[i].scale == SPACE_CATEGORICAL)
        snprintf(buf, size, "%s", search->choices[i][(size_t)value]);
    else
        config_format_value(search->opts[i], value, buf, size);
}

void search_show(const struct search *search, size_t i, double value, char *buf, size_t size)
{
    const struct space_param *p = &search->space.params[i];
    char number[NUM_TEXT_MAX];

    if (p->scale == SPACE_CATEGORICAL)
        snprintf(buf, size, "%s", value >= 0 && value < (double)p->n_choices ? search->choices[i][(size_t)value] : "?");
    else if (p->is_int || p->scale == SPACE_POW2)
        snprintf(buf, size, "%s", fabs(value) < 1e5 ? num_format_f64(value, number) : num_format_short(value, number));
    else if (fabs(value) >= 1e5)
        snprintf(buf, size, "%s", num_format_short(value, number));
    else
        snprintf(buf, size, "%.4g", value);
}
