/* search.c - the space that a config asks to search: its [sweep.SECTION.KEY] sections, which base/config has checked
 * against their options, as what gp/ searches. */
#include "study/space/search.h"

#include "base/config/opt.h"
#include "base/rng.h"
#include "study/program/program_command.h"
#include "study/space/search_depends.h"
#include "study/setup/setup.h"
#include "study/space/trial_check.h"
#include "study/version.h"

#define LEGAL_TRIES 20000 /* at a microsecond each */
#define NAMES_MAX_BYTES 2000 /* of a message */

void search_free(struct search *search)
{
    if (search == NULL)
        return;
    for (size_t i = 0; i < SPACE_MAX_DIM; i++)
        for (size_t k = 0; k < SEARCH_MAX_CHOICES; k++)
            mem_free(search->choices[i][k]);
    sweep_envs_free(&search->envs);
    memset(search, 0, sizeof *search);
}

struct search *search_create(void)
{
    return mem_alloc(sizeof(struct search));
}

void search_destroy(struct search *search)
{
    search_free(search);
    mem_free(search);
}

const char *search_param_name(const char *key)
{
    static const char own[] = PROGRAM_SECTION ".";

    return strncmp(key, own, sizeof own - 1) == 0 ? key + sizeof own - 1 : key;
}

size_t search_find(const struct search *search, const char *name)
{
    size_t i = 0, n = strlen(name);

    while (i < search->space.dim && !words_same_name(search->space.params[i].key, name, n) &&
           !words_same_name(search_param_name(search->space.params[i].key), name, n))
        i++;
    return i;
}

enum status search_find_given(const struct search *search, const char *where, const char *name, size_t *ret_i,
                              struct error *err)
{
    *ret_i = search_find(search, name);
    if (*ret_i < search->space.dim)
        return ST_OK;
    STRBUF(list, NAMES_MAX_BYTES);
    for (size_t k = 0; k < search->space.dim; k++)
        strbuf_addf(&list, "%s%s", k > 0 ? ", " : "", search_param_name(search->space.params[k].key));
    return FAIL(err, ST_USAGE, "%s: the study searches no '%.60s'; it searches %s", where, name, list.text);
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
            s->choices[i][p->n_choices++] = mem_strdup(word);
        }
        text += n + (text[n] != '\0');
    }
    p->min = 0;
    p->max = p->n_choices > 0 ? (double)(p->n_choices - 1) : 0;
    return ST_OK;
}

/* "64" is found as "6.4e1" too. The parameters of a stored study's program are texts. */
static size_t find_choice(const struct search *s, size_t i, const char *text)
{
    size_t n = s->space.params[i].n_choices, k = 0;
    double want, value;

    if (s->opts[i]->type == OPT_STR) {
        while (k < n && strcmp(s->choices[i][k], text) != 0)
            k++;
        return k;
    }

    if (config_parse_value(s->opts[i], text, &want, NULL) != ST_OK)
        return n;
    while (k < n && (config_parse_value(s->opts[i], s->choices[i][k], &value, NULL) != ST_OK || value != want))
        k++;
    return k;
}

/* "64" and "6.4e1" are one value: listed twice, trials would repeat and be counted as two points. */
static enum status check_no_repeat(const struct search *s, size_t i, size_t k, const struct config_sweep_param *c,
                                   struct error *err)
{
    double value, other;

    TRY(config_parse_value(c->opt, s->choices[i][k], &value, err));
    for (size_t j = 0; j < k; j++) {
        TRY(config_parse_value(c->opt, s->choices[i][j], &other, err));
        if (value == other)
            return FAIL(err, ST_CONFIG, "%s: %s lists %s twice (as '%s'); drop one", c->origin, c->key,
                        s->choices[i][k], s->choices[i][j]);
    }
    return ST_OK;
}

static enum status add_categorical(struct search *s, size_t i, const struct config_sweep_param *c, const char *start,
                                   struct error *err)
{
    struct space_param *p = &s->space.params[i];
    const char *all = c->opt->type == OPT_BOOL ? "false|true" : c->opt->choices;
    const char *text = c->values != NULL ? c->values : all;
    size_t k;

    p->scale = SPACE_CATEGORICAL;
    p->is_ordered = c->ordered;
    TRY(split_choices(s, i, text, c->origin, err));
    if (p->n_choices < 2)
        return FAIL(err, ST_CONFIG, "%s: %s has %zu value(s) to choose from, at least 2 are needed", c->origin, c->key,
                    p->n_choices);
    for (k = 1; k < p->n_choices; k++)
        TRY(check_no_repeat(s, i, k, c, err));
    k = find_choice(s, i, c->mean != NULL ? c->mean : start);
    if (k == p->n_choices && c->mean != NULL)
        return FAIL(err, ST_CONFIG, "%s: %s starts at '%s', which is none of its values (%s)", c->origin, c->key,
                    c->mean, text);
    p->has_init = k < p->n_choices;
    p->init = p->has_init ? (double)k : 0;
    return ST_OK;
}

/* How far from the config's own value a bound that was not given may lie, so that the trainer takes both with the rest
 * of the config: half as far (as a factor) until it does. */
static double legal_bound(struct trial_check *check, const struct config_sweep_param *c, double own, double bound)
{
    trial_check_reset(check);
    if (c->opt->sweep_factor <= 1.0 || own <= 0.0 || bound <= 0.0 || trial_check_ask(check, NULL) != ST_OK)
        return bound;
    for (double factor = bound / own; factor < 0.99 || factor > 1.01; factor = factor > 1.0 ? factor / 2 : factor * 2) {
        double x = c->is_int ? rint(own * factor) : own * factor;
        trial_check_set(check, c->opt, x);
        if (trial_check_ask(check, NULL) == ST_OK)
            return x;
        if (factor > 0.5 && factor < 2.0)
            break;
    }
    return own;
}

static bool is_on_grid(const struct space_param *p, double x)
{
    double k = p->step > 0.0 ? (x - p->min) / p->step : 0.0;

    return fabs(k - rint(k)) < 1e-9;
}

/* Starts at the section's mean, else at the config's own value when it lies inside. */
static enum status add_range(struct search *s, struct trial_check *check, size_t i, const struct config_sweep_param *c,
                             const char *start, struct error *err)
{
    double own;
    static const enum space_scale scales[] = {
        [OPT_LINEAR] = SPACE_LINEAR, [OPT_LOG] = SPACE_LOG, [OPT_LOGIT] = SPACE_LOGIT, [OPT_POW2] = SPACE_POW2};
    struct space_param *p = &s->space.params[i];
    char lo[NUM_TEXT_MAX], hi[NUM_TEXT_MAX];

    p->scale = scales[c->scale];
    p->is_int = c->is_int;
    p->step = c->step;
    p->min = c->min;
    p->max = c->max;
    if (config_parse_value(c->opt, start, &own, NULL) == ST_OK) {
        p->min = c->usual_min ? legal_bound(check, c, own, c->min) : c->min;
        p->max = c->usual_max ? legal_bound(check, c, own, c->max) : c->max;
    }
    if (!(p->min < p->max))
        return FAIL(
            err, ST_CONFIG,
            "%s: no other %s than the config's own %s goes with the rest of the config; give the section min and "
            "max, or drop it",
            c->origin, c->key, start);
    p->has_init = num_parse_f64(c->mean != NULL ? c->mean : start, &p->init);
    if (c->mean != NULL) /* base lets its rounding pass */
        p->init = fmax(p->min, fmin(p->max, p->init));
    p->has_init = p->has_init && p->init >= p->min && p->init <= p->max && is_on_grid(p, p->init);
    if (!p->has_init) {
        search_show(s, i, p->min, lo, sizeof lo);
        search_show(s, i, p->max, hi, sizeof hi);
        bool inside = num_parse_f64(c->mean != NULL ? c->mean : start, &own) && own >= p->min && own <= p->max;
        log_warn("%s: the config's own %s = %s lies %s, %s to %s, so no trial starts from it; "
                 "mean gives another start, min and max another range",
                 c->origin, p->key, c->mean != NULL ? c->mean : start,
                 inside ? "between two steps of the range searched" : "outside the range searched", lo, hi);
        p->init = 0;
    }
    return ST_OK;
}

/* Why no trial can be given its own value of this option; NULL: it can. A trial takes the tables of env, policy and
 * train (setup_derive). */
static const char *why_not(const char *key)
{
    if (strncmp(key, "sweep.", 6) == 0)
        return "it steers the sweep itself";
    if (strcmp(key, "train.seed") == 0)
        return "each trial has a seed of its own";
    if (strncmp(key, "env.", 4) != 0 && strncmp(key, "policy.", 7) != 0 && strncmp(key, "train.", 6) != 0 &&
        search_param_name(key) == key)
        return "it belongs to no trial, as the options of [env], [policy] and [train] do";
    return NULL;
}

static enum status add_param(struct search *s, const struct setup *setup, struct trial_check *check,
                             const struct config_sweep_param *c, struct error *err)
{
    const char *start = config_peek(setup->config, c->key);
    size_t i = s->space.dim;
    struct error at = {0};

    const char *why = why_not(c->key);
    if (why != NULL)
        return FAIL(err, ST_CONFIG, "%s: %s cannot be searched: %s; drop the section", c->origin, c->key, why);
    if (i == SPACE_MAX_DIM)
        return FAIL(err, ST_CONFIG, "%s: more than %d parameters to search; drop some", c->origin, SPACE_MAX_DIM);
    s->space.dim++;
    snprintf(s->space.params[i].key, sizeof s->space.params[i].key, "%s", c->key);
    s->opts[i] = c->opt;
    if (c->scale == OPT_CATEGORICAL)
        return add_categorical(s, i, c, start, err);
    TRY(add_range(s, check, i, c, start, err));
    if (space_check(&s->space, &at) != ST_OK)
        return FAIL(err, ST_CONFIG, "%s: %s", c->origin, at.text);
    return ST_OK;
}

static enum status teach(const struct setup *setup, struct error *err)
{
    const struct opt_table *tables[SETUP_TRIAL_TABLES];
    size_t n_tables = setup_trial_tables(setup, tables), n = 0;
    char keys[800];

    if (setup_is_program(setup))
        return FAIL(err, ST_CONFIG,
                    "the config has no parameter to search; add a section for each one of the program: '[sweep.lr]' "
                    "with type = float, min = 0.001, max = 0.1 makes `--lr VALUE` of {argv} in sweep.command");
    keys[0] = '\0';
    for (size_t t = 0; t < n_tables; t++)
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

/* inert: what was taken out; NULL or empty: nothing was. */
static enum status fail_without_search(const struct setup *setup, const char *inert, struct error *err)
{
    const struct config_sweep_param *first =
        config_n_sweep_params(setup->config) > 0 ? config_sweep_param(setup->config, 0) : NULL;

    if (inert != NULL && inert[0] != '\0')
        return FAIL(err, ST_CONFIG, "nothing is left to search, as these have no effect here: %s", inert);
    if (first != NULL)
        return FAIL(err, ST_CONFIG,
                    "%s: every parameter has a single value, so there is nothing to search; give %s a range",
                    first->origin, first->key);
    return teach(setup, err);
}

/* Is there a point that can be trained? The start, or one of many at random. */
static enum status check_any_legal(const struct search *s, const struct setup *setup, struct error *err)
{
    struct rng rng = rng_seed(1);
    struct error why = {0};
    double u[SPACE_MAX_DIM] = {0}, x[SPACE_MAX_DIM];

    struct trial_check *check = trial_check_create(setup, s);
    enum status rc = trial_check_require(check, setup, err);
    if (rc != ST_OK) {
        trial_check_destroy(check);
        return rc;
    }
    bool found = search_config_point(s, setup, x) && trial_check_point(check, x, &why) == ST_OK;
    for (size_t t = 0; !found && t < LEGAL_TRIES; t++) {
        for (size_t i = 0; i < s->space.dim; i++)
            u[i] = rng_f64(&rng);
        space_from_unit(&s->space, u, x);
        error_clear(&why);
        found = trial_check_point(check, x, &why) == ST_OK;
    }
    trial_check_destroy(check);
    if (found)
        return ST_OK;
    return FAIL(err, ST_CONFIG, "no trial of this space was found that can be run, of %d tried; the last one: %s",
                LEGAL_TRIES, why.text);
}

static enum status add_params(struct search *s, const struct setup *setup, struct error *err)
{
    struct trial_check *check = trial_check_create(setup, NULL);
    enum status rc = ST_OK;

    for (size_t i = 0; rc == ST_OK && i < config_n_sweep_params(setup->config); i++) {
        const struct config_sweep_param *c = config_sweep_param(setup->config, i);
        if (c->fixed == NULL)
            rc = add_param(s, setup, check, c, err);
    }
    trial_check_destroy(check);
    return rc;
}

enum status search_from_setup(const struct setup *setup, struct search *ret_search, struct error *err)
{
    struct error at = {0};

    memset(ret_search, 0, sizeof *ret_search);
    STRBUF(inert, OUTPUT_MAX_BYTES);
    STRBUF(unused, OUTPUT_MAX_BYTES);
    ret_search->cost = (enum search_cost)setup->sweep.cost;
    ret_search->outcomes = setup->outcomes;
    sweep_envs_copy(&ret_search->envs, &setup->envs);
    enum status rc = add_params(ret_search, setup, err);
    THEN(rc, search_find_dependent(ret_search, setup, &inert, err));
    if (rc == ST_OK && ret_search->space.dim == 0)
        rc = fail_without_search(setup, inert.text, err);
    else if (rc == ST_OK && inert.len > 0)
        log_warn("not searched, as they have no effect here: %s", inert.text);
    if (rc == ST_OK && space_check(&ret_search->space, &at) != ST_OK)
        rc = FAIL(err, ST_CONFIG, "search space: %s", at.text);
    THEN(rc, check_any_legal(ret_search, setup, err));
    if (rc == ST_OK)
        trial_check_unused(ret_search, setup, &unused);
    if (unused.len > 0)
        log_warn("no point that can be run was found with these values: %s", unused.text);
    if (rc == ST_OK && setup_is_program(setup))
        program_warn_unpassed(setup->config, &setup->params);
    if (rc != ST_OK)
        search_free(ret_search);
    return rc;
}

bool search_read_number(const struct opt_def *opt, const char *text, double *ret_x)
{
    return opt->type == OPT_STR ? num_parse_f64(text, ret_x) : config_parse_value(opt, text, ret_x, NULL) == ST_OK;
}

bool search_config_point(const struct search *search, const struct setup *setup, double *ret_x)
{
    for (size_t i = 0; i < search->space.dim; i++) {
        const struct space_param *p = &search->space.params[i];
        const char *own = config_peek(setup->config, p->key);
        size_t k = p->scale == SPACE_CATEGORICAL ? find_choice(search, i, own) : 0;
        ret_x[i] = (double)k;
        if (p->scale != SPACE_CATEGORICAL && !search_read_number(search->opts[i], own, &ret_x[i]))
            return false;
        if (!p->has_init || ret_x[i] != p->init)
            return false;
    }
    return true;
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
    else if (search->opts[i]->type == OPT_STR && value == rint(value) && fabs(value) < 0x1p63)
        snprintf(buf, size, "%.0f", value); /* 1000000 and not 1e+06 */
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
