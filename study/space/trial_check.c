/* trial_check.c - can a trial have these values? Asks the trainer's own check, without making a config: values go
 * straight into copies of the settings, which costs about a microsecond.
 * Invariant: `now` differs from `base` only by what trial_check_set has put there since the last reset. */
#include "study/space/trial_check.h"

#include "base/config/opt.h"
#include "base/rng.h"
#include "study/space/search.h"
#include "study/space/search_expr.h"
#include "study/setup/setup.h"

#define SECTIONS SETUP_TRIAL_TABLES
#define UNUSED_TRIES 4000 /* points with a value, at a microsecond each */

struct trial_check {
    struct trial_check *next; /* of another game of the study, owned; NULL: none */
    const struct env_def *env;
    size_t n_tables; /* of a program 0: it has no check of its own */
    const struct opt_table *tables[SECTIONS]; /* of setup_trial_tables: env, policy, train, perhaps frames */
    void *base[SECTIONS], *now[SECTIONS]; /* settings of each table, owned */
    const struct search *search; /* borrowed; NULL: no points */
    struct search_expr *require; /* NULL: none */
    char why_require[400]; /* the reason why a point is not allowed by it */
};

static struct trial_check *create_one(const struct setup *setup, const struct search *search)
{
    struct trial_check *c = mem_alloc(sizeof *c);
    const struct frames_settings frames = {setup->policy.frame_stack};
    const void *settings[SECTIONS] = {setup->env_settings, &setup->policy, &setup->train, &frames};

    c->env = setup->env;
    c->search = search;
    c->n_tables = setup_is_program(setup) ? 0 : setup_trial_tables(setup, c->tables);
    for (size_t i = 0; i < c->n_tables; i++) {
        size_t size = c->tables[i]->settings_size;
        c->base[i] = mem_alloc(size);
        c->now[i] = mem_alloc(size);
        memcpy(c->base[i], settings[i], size);
    }
    trial_check_reset(c);
    return c;
}

struct trial_check *trial_check_create(const struct setup *setup, const struct search *search)
{
    struct trial_check *c = create_one(setup, search);

    for (size_t k = 0; k < setup->envs.n; k++)
        if (setup->games[k] != NULL) {
            struct trial_check *other = create_one(setup->games[k], search);
            other->next = c->next;
            c->next = other;
        }
    return c;
}

enum status trial_check_require(struct trial_check *c, const struct setup *setup, struct error *err)
{
    if (setup->sweep.require[0] == '\0')
        return ST_OK;
    snprintf(c->why_require, sizeof c->why_require, "%.150s: sweep.require does not hold: %.200s",
             config_origin(setup->config, "sweep.require"), setup->sweep.require);
    return search_expr_bind(&c->require, setup->sweep.require, config_origin(setup->config, "sweep.require"), c->search,
                            setup, err);
}

void trial_check_destroy(struct trial_check *c)
{
    if (c == NULL)
        return;
    for (size_t i = 0; i < c->n_tables; i++) {
        mem_free(c->base[i]);
        mem_free(c->now[i]);
    }
    search_expr_free(c->require);
    trial_check_destroy(c->next);
    mem_free(c);
}

void trial_check_reset(struct trial_check *c)
{
    for (size_t i = 0; i < c->n_tables; i++)
        memcpy(c->now[i], c->base[i], c->tables[i]->settings_size);
}

void trial_check_set(struct trial_check *c, const struct opt_def *opt, double value)
{
    for (size_t i = 0; i < c->n_tables; i++) {
        const struct opt_table *t = c->tables[i];
        unsigned char *field = (unsigned char *)c->now[i] + opt->offset;
        if (opt < t->defs || opt >= t->defs + t->n_defs)
            continue;
        if (opt->type == OPT_BOOL)
            *(bool *)field = value != 0.0;
        else if (opt->type == OPT_INT)
            *(int64_t *)field = (int64_t)value;
        else if (opt->type == OPT_FLOAT)
            *(double *)field = value;
        else if (opt->type == OPT_ENUM)
            *(int *)field = (int)value;
    }
}

enum status trial_check_ask(const struct trial_check *c, struct error *err)
{
    if (c->n_tables == 0)
        return ST_OK;
    struct policy_settings policy = *(const struct policy_settings *)c->now[1];
    if (c->n_tables > 3)
        policy.frame_stack = ((const struct frames_settings *)c->now[3])->frame_stack;
    return trainer_check(c->env, c->now[0], &policy, c->now[2], err);
}

enum status trial_check_point(struct trial_check *c, const double *x, struct error *err)
{
    const struct search *s = c->search;

    if (c->require != NULL && !search_expr_holds(c->require, s, x))
        return FAIL(err, ST_CONFIG, "%s", c->why_require);
    trial_check_reset(c);
    for (size_t i = 0; c->n_tables > 0 && i < s->space.dim; i++) {
        double value = x[i];
        if (s->space.params[i].scale == SPACE_CATEGORICAL)
            TRY(config_parse_value(s->opts[i], s->choices[i][(size_t)x[i]], &value, err));
        trial_check_set(c, s->opts[i], value);
    }
    TRY(trial_check_ask(c, err));
    return c->next != NULL ? trial_check_point(c->next, x, err) : ST_OK;
}

bool trial_check_allows(void *ctx, const double *x)
{
    return trial_check_point(ctx, x, NULL) == ST_OK;
}

/* Is there a point with choice k of parameter i that can be run, or none where the parameter has an effect? Otherwise
 * x is the last one tried. */
static bool is_used(struct trial_check *c, size_t i, size_t k, double *x)
{
    const struct space *space = &c->search->space;
    struct rng rng = rng_seed(1);
    double u[SPACE_MAX_DIM] = {0}, at[SPACE_MAX_DIM];
    bool active = false;

    for (int t = 0; t < UNUSED_TRIES; t++) {
        for (size_t d = 0; d < space->dim; d++)
            u[d] = rng_f64(&rng);
        u[i] = ((double)k + 0.5) / (double)space->params[i].n_choices;
        space_from_unit(space, u, at);
        if (!space_is_active(space, i, at))
            continue;
        if (trial_check_allows(c, at))
            return true;
        memcpy(x, at, sizeof at);
        active = true;
    }
    return !active;
}

/* Why choice k of parameter i is unused: what it breaks beside the config's own values, which break nothing by
 * themselves; else what the point x breaks. */
static void why_unused(struct trial_check *c, size_t i, size_t k, const double *x, struct error *ret_why)
{
    const struct search *s = c->search;
    double value;

    trial_check_reset(c);
    if (c->n_tables > 0 && trial_check_ask(c, NULL) == ST_OK &&
        config_parse_value(s->opts[i], s->choices[i][k], &value, NULL) == ST_OK) {
        trial_check_set(c, s->opts[i], value);
        if (trial_check_ask(c, ret_why) != ST_OK)
            return;
    }
    (void)!trial_check_point(c, x, ret_why); /* it was refused before */
}

void trial_check_unused(const struct search *s, const struct setup *setup, struct strbuf *out)
{
    struct trial_check *c = trial_check_create(setup, s);
    double x[SPACE_MAX_DIM] = {0};

    if (trial_check_require(c, setup, NULL) == ST_OK)
        for (size_t i = 0; i < s->space.dim; i++)
            for (size_t k = 0; s->space.params[i].scale == SPACE_CATEGORICAL && k < s->space.params[i].n_choices; k++) {
                struct error why = {0};
                if (is_used(c, i, k, x))
                    continue;
                why_unused(c, i, k, x, &why);
                strbuf_addf(out, "%s%s = %s (%s)", out->len > 0 ? "; " : "", s->space.params[i].key, s->choices[i][k],
                            why.text);
            }
    trial_check_destroy(c);
}
