/* search_expr.c - expressions over the options of a config and the parameters of a space.
 * Invariant: a bound expression has a value for each of its names at every point. */
#include "study/space/search_expr.h"

#include "base/config/expr.h"
#include "study/space/search.h"
#include "study/setup/setup.h"

#define NO_PARAM SIZE_MAX

struct search_expr {
    struct expr *expr;
    size_t param[EXPR_MAX_NAMES]; /* which parameter of the space; NO_PARAM: the value is fixed */
    char *text[EXPR_MAX_NAMES]; /* of fixed values and words, owned; NULL: a number */
    double number[EXPR_MAX_NAMES];
};

void search_expr_free(struct search_expr *e)
{
    if (e == NULL)
        return;
    for (size_t i = 0; i < EXPR_MAX_NAMES; i++)
        mem_free(e->text[i]);
    expr_free(e->expr);
    mem_free(e);
}

/* The option that a name means: "train.gamma", or of a program "lr" for "param.lr"; NULL: none. */
static const struct opt_def *find_option(const struct setup *setup, const char *name, char *ret_key)
{
    snprintf(ret_key, CONFIG_KEY_MAX, "%s", name);
    const struct opt_def *opt = config_find_opt(setup->config, ret_key);
    if (opt != NULL || !setup_is_program(setup))
        return opt;
    snprintf(ret_key, CONFIG_KEY_MAX, PROGRAM_SECTION ".%.80s", name);
    for (char *at = ret_key; *at != '\0'; at++)
        if (*at >= 'A' && *at <= 'Z')
            *at = (char)(*at - 'A' + 'a');
    return config_find_opt(setup->config, ret_key);
}

static double number_of(const char *text)
{
    double number;

    return num_parse_f64(text, &number) ? number : NAN;
}

static void bind_fixed(struct search_expr *e, size_t i, const struct opt_def *opt, const char *value)
{
    char text[OPT_STR_MAX];
    double number;

    if (opt->type != OPT_STR && config_parse_value(opt, value, &number, NULL) == ST_OK) {
        e->number[i] = number;
        if (opt->type == OPT_INT || opt->type == OPT_FLOAT)
            return;
        config_format_value(opt, number, text, sizeof text);
        value = text;
    }
    e->text[i] = mem_strdup(value);
    e->number[i] = number_of(value);
}

/* "policy.core == lstmm" can never hold: most likely a word is misspelt. */
static enum status check_words(const struct search_expr *e, const enum expr_kind *kinds, const struct setup *setup,
                               const char *origin, struct error *err)
{
    size_t variable, word;

    for (size_t k = 0; expr_word(e->expr, kinds, k, &variable, &word); k++) {
        char key[CONFIG_KEY_MAX];
        const struct opt_def *opt = find_option(setup, expr_name(e->expr, variable), key);
        if (opt->type != OPT_STR)
            TRY(config_check_value(opt, key, expr_name(e->expr, word), origin, err));
    }
    return ST_OK;
}

enum status search_expr_bind(struct search_expr **ret_expr, const char *text, const char *origin,
                             const struct search *search, const struct setup *setup, struct error *err)
{
    struct search_expr *e = mem_alloc(sizeof *e);
    enum expr_kind kinds[EXPR_MAX_NAMES] = {EXPR_WORD};
    enum status rc = expr_parse(&e->expr, text, origin, err);

    for (size_t i = 0; rc == ST_OK && i < expr_n_names(e->expr); i++) {
        char key[CONFIG_KEY_MAX];
        const char *name = expr_name(e->expr, i);
        const struct opt_def *opt = find_option(setup, name, key);
        if (opt != NULL) /* a stored study has a program's parameters as texts */
            kinds[i] = opt->type == OPT_BOOL || opt->type == OPT_STR ? EXPR_TRUTH : EXPR_VARIABLE;
        e->param[i] = opt != NULL ? search_find(search, key) : search->space.dim;
        if (e->param[i] < search->space.dim)
            continue;
        e->param[i] = NO_PARAM;
        if (opt != NULL) {
            bind_fixed(e, i, opt, config_peek(setup->config, key));
        } else {
            e->text[i] = mem_strdup(name);
            e->number[i] = NAN;
        }
    }
    THEN(rc, expr_check(e->expr, kinds, err));
    THEN(rc, check_words(e, kinds, setup, origin, err));
    if (rc != ST_OK) {
        search_expr_free(e);
        return rc;
    }
    *ret_expr = e;
    return ST_OK;
}

static void fill_values(const struct search_expr *e, const struct search *s, const double *x,
                        struct expr_value *ret_values)
{
    for (size_t i = 0; i < expr_n_names(e->expr); i++) {
        size_t p = e->param[i];
        if (p == NO_PARAM) {
            ret_values[i] = (struct expr_value){e->text[i], e->number[i]};
        } else if (s->space.params[p].scale == SPACE_CATEGORICAL) {
            const char *text = s->choices[p][(size_t)x[p]];
            ret_values[i] = (struct expr_value){text, number_of(text)};
        } else {
            ret_values[i] = (struct expr_value){NULL, x[p]};
        }
    }
}

bool search_expr_holds(const struct search_expr *e, const struct search *search, const double *x)
{
    struct expr_value values[EXPR_MAX_NAMES];

    fill_values(e, search, x, values);
    return expr_holds(e->expr, values);
}

/* The one parameter of the space that it depends on; NO_PARAM: none. */
static enum status find_parent(const struct search_expr *e, const struct search *s, const char *origin,
                               size_t *ret_parent, struct error *err)
{
    *ret_parent = NO_PARAM;
    for (size_t i = 0; i < expr_n_names(e->expr); i++) {
        size_t p = e->param[i];
        if (p == NO_PARAM || p == *ret_parent)
            continue;
        if (*ret_parent != NO_PARAM)
            return FAIL(err, ST_CONFIG,
                        "%s: when depends on two parameters that are searched, %s and %s; one is possible: give one of "
                        "these a when of its own, or write the rest into sweep.require",
                        origin, s->space.params[*ret_parent].key, s->space.params[p].key);
        *ret_parent = p;
    }
    return ST_OK;
}

/* For which of the parent's values it holds. */
static enum status by_parent(const struct search_expr *e, const struct search *s, size_t parent, const char *origin,
                             struct space_param *p, enum search_effect *ret_effect, struct error *err)
{
    const struct space_param *of = &s->space.params[parent];
    struct expr_value values[EXPR_MAX_NAMES];
    double x[SPACE_MAX_DIM] = {0};
    size_t n = 0, name = 0;

    p->parent = parent;
    if (of->scale == SPACE_CATEGORICAL) {
        p->parent_choices = 0;
        for (size_t k = 0; k < of->n_choices; k++) {
            x[parent] = (double)k;
            if (!search_expr_holds(e, s, x))
                continue;
            p->parent_choices |= UINT64_C(1) << k;
            n++;
        }
        *ret_effect = n == of->n_choices ? EFFECT_ALWAYS : n == 0 ? EFFECT_NEVER : EFFECT_SOMETIMES;
        return ST_OK;
    }
    while (e->param[name] != parent)
        name++;
    fill_values(e, s, x, values);
    if (!expr_interval(e->expr, values, name, &p->parent_min, &p->parent_max))
        return FAIL(err, ST_CONFIG,
                    "%s: when compares %s in a way that is not a range of it; write %s > 1, or two of these with and",
                    origin, of->key, of->key);
    *ret_effect = p->parent_min <= of->min && p->parent_max >= of->max ? EFFECT_ALWAYS
                  : p->parent_min > of->max || p->parent_max < of->min || p->parent_min > p->parent_max
                      ? EFFECT_NEVER
                      : EFFECT_SOMETIMES;
    return ST_OK;
}

enum status search_expr_when(const struct search *search, const struct setup *setup, size_t i, const char *when,
                             const char *origin, struct space_param *p, enum search_effect *ret_effect,
                             struct error *err)
{
    struct search_expr *e = NULL;
    double x[SPACE_MAX_DIM] = {0};
    size_t parent = NO_PARAM;
    enum status rc = search_expr_bind(&e, when, origin, search, setup, err);

    THEN(rc, find_parent(e, search, origin, &parent, err));
    if (rc == ST_OK && parent == i)
        rc = FAIL(err, ST_CONFIG, "%s: when of %s depends on %s itself", origin, p->key, p->key);
    if (rc == ST_OK && parent == NO_PARAM)
        *ret_effect = search_expr_holds(e, search, x) ? EFFECT_ALWAYS : EFFECT_NEVER;
    else if (rc == ST_OK)
        rc = by_parent(e, search, parent, origin, p, ret_effect, err);
    search_expr_free(e);
    return rc;
}
