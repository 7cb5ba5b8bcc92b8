/* suggest.c - the suggester: checks what it is given, deals with the user's start values and exhausted spaces, and
 * hands the rest to one method. random and sobol live here, pareto in suggest_pareto.c. Invariants: (1) a suggestion is
 * a function of (space, settings, history, number); (2) it is a point that a trial can have, that is allowed, and that
 * no trial of the history has. */
#include "gp/gp_priv.h"

#include <cblas.h>

/* Design points unless they are set: with fewer than DESIGN_EXTRA beyond its dimensions a small space was judged by an
 * edge of it, and all proposals stayed there (bench/notes/controller.md). */
#define DESIGN_EXTRA 5
#define DESIGN_MOST 10
#define DESIGN_TRIES 64 /* points of the sequence to try before walking to a free one */
#define ALLOWED_TRIES 2048 /* points to ask about, and as many near those of trials */
#define RARE_TRIES 131072 /* points to ask about before it is given up: one in ten thousand may be allowed */

bool suggest_is_allowed(const struct suggester *s, const double *x)
{
    return s->settings.allowed == NULL || s->settings.allowed(s->settings.allowed_ctx, x);
}

const char *suggest_method_names(void)
{
    return "pareto|random|sobol"; /* the order of enum suggest_method */
}

/* Parameters by falling depth below their parents: children come first. */
static void order_by_depth(const struct space *space, size_t *ret_order)
{
    size_t n = 0;
    for (size_t depth = space->dim; depth-- > 0;)
        for (size_t i = 0; i < space->dim; i++) {
            size_t d = 0;
            for (size_t at = i; space->params[at].is_conditional; at = space->params[at].parent)
                d++;
            if (d == depth)
                ret_order[n++] = i;
        }
}

/* A free and allowed point near x: walks the values of the finite parameters like an odometer from x on, children
 * before their parents and inactive ones left out, so that it passes every point once. False: none within the limit of
 * steps. */
static bool walk_to_free(const struct suggester *s, const struct seen *seen, size_t n_steps, double *ret_x)
{
    const struct space *space = &s->space;
    size_t order[SPACE_MAX_DIM];
    double x[SPACE_MAX_DIM]; /* inactive ones wait at their first value */
    memcpy(x, ret_x, space->dim * sizeof *x);
    order_by_depth(space, order);
    for (size_t step = 0; step <= n_steps; step++) {
        memcpy(ret_x, x, space->dim * sizeof *x);
        space_snap(space, ret_x);
        if (!seen_has(seen, ret_x) && suggest_is_allowed(s, ret_x))
            return true;
        for (size_t k = 0; k < space->dim; k++) {
            size_t i = order[k];
            const struct space_param *p = &space->params[i];
            double size = space_param_size(p);
            if (!isfinite(size))
                continue;
            double last = space_param_value(p, size - 1.0);
            if (space_is_active(space, i, x) && x[i] < last) {
                x[i] = p->scale == SPACE_POW2 ? 2.0 * x[i] : x[i] + 1.0;
                break;
            }
            x[i] = space_param_value(p, 0.0); /* carry into the next parameter */
        }
    }
    return false;
}

static bool is_open(const struct suggester *s, const struct seen *seen, const double *x)
{
    return !seen_has(seen, x) && suggest_is_allowed(s, x);
}

/* The attempts from `first` to before `end` of this number's stream. x: the first point to ask about, and the one
 * found. */
static bool draw_free(const struct suggester *s, const struct seen *seen, int64_t number, uint64_t first, uint64_t end,
                      double *x)
{
    double u[SPACE_MAX_DIM];
    for (uint64_t attempt = first; attempt < end; attempt++) {
        if (is_open(s, seen, x))
            return true;
        design_random(&s->design, (uint64_t)number, attempt, u);
        space_from_unit(&s->space, u, x);
    }
    return is_open(s, seen, x);
}

/* Where few points are allowed, most are near those that trials have: these with one or two parameters drawn again. */
static bool draw_near(const struct suggester *s, const struct seen *seen, int64_t number, double *ret_x)
{
    struct rng rng = rng_split(rng_split(s->root, (uint64_t)number), SUGGEST_STREAM_NEAR);
    size_t dim = s->space.dim;
    double u[SPACE_MAX_DIM];
    for (size_t t = 0; t < ALLOWED_TRIES && seen->n > 0; t++) {
        const double *row = seen->x + rng_below(&rng, (uint32_t)seen->n) * dim;
        if (!suggest_is_allowed(s, row))
            continue;
        space_to_unit(&s->space, row, u);
        for (size_t k = 0; k < 1 + t % 2; k++)
            u[rng_below(&rng, (uint32_t)dim)] = rng_f64(&rng);
        space_from_unit(&s->space, u, ret_x);
        if (is_open(s, seen, ret_x))
            return true;
    }
    return false;
}

/* Ends on a free and allowed point: random draws of this number's stream, then the walk. */
static enum status make_free(struct suggester *s, const struct seen *seen, int64_t number, double *x, struct error *err)
{
    bool asks = s->settings.allowed != NULL;
    uint64_t tries = asks ? ALLOWED_TRIES : DESIGN_TRIES, last = asks ? RARE_TRIES : 0;
    size_t n_steps = seen->n + last;
    if (draw_free(s, seen, number, 1, tries + 1, x) || (asks && draw_near(s, seen, number, x)) ||
        draw_free(s, seen, number, tries + 1, last + 1, x) || walk_to_free(s, seen, n_steps, x))
        return ST_OK;
    return FAIL(err, ST_LIMIT,
                "no new point of the search space is one that a trial can have, after %llu tries; narrow the ranges to "
                "values that go together, or drop one that cannot be met",
                (unsigned long long)(tries + last + n_steps));
}

static enum status design_random_point(struct suggester *s, const struct seen *seen, int64_t number, double *ret_x,
                                       struct error *err)
{
    double u[SPACE_MAX_DIM];
    design_random(&s->design, (uint64_t)number, 0, u);
    space_from_unit(&s->space, u, ret_x);
    return make_free(s, seen, number, ret_x, err);
}

/* The design that models begin with has mostly short runs, half of them in the lowest quarter of the lengths'
 * logarithm: they teach as much for a fraction of the cost (bench/notes/controller.md). */
enum status suggest_design_sobol(struct suggester *s, const struct seen *seen, int64_t number, double *ret_x,
                                 struct error *err)
{
    double u[SPACE_MAX_DIM];
    bool shortens = s->settings.method == SUGGEST_PARETO && number < (int64_t)s->settings.n_init;
    size_t steps = space_steps_param(&s->space);
    design_sobol(&s->design, (uint64_t)number, u);
    if (shortens && steps < s->space.dim)
        u[steps] *= u[steps];
    space_from_unit(shortens ? &s->model_space : &s->space, u, ret_x);
    return make_free(s, seen, number, ret_x, err);
}

/* The user's own start: init where given, the middle of the range elsewhere. False when no parameter has one. */
static bool default_point(const struct space *space, double *ret_x)
{
    bool any = false;
    for (size_t i = 0; i < space->dim; i++) {
        const struct space_param *p = &space->params[i];
        ret_x[i] = p->has_init ? p->init : space_param_from_unit(p, 0.5);
        any = any || p->has_init;
    }
    space_snap(space, ret_x);
    return any;
}

static enum status check_history(const struct suggester *s, const struct gp_history *history, int64_t number,
                                 struct error *err)
{
    if (number < 0)
        return FAIL(err, ST_INTERNAL, "trial number %lld is negative", (long long)number);
    for (size_t i = 0; i < history->n; i++) {
        const struct gp_trial *t = &history->trials[i];
        for (size_t j = 0; j < s->space.dim; j++)
            if (!isfinite(t->x[j]))
                return FAIL(err, ST_NUMERIC, "trial %zu: %s is %g; the stored parameters are damaged", i,
                            s->space.params[j].key, t->x[j]);
        bool ended = t->state == GP_TRIAL_DONE || t->state == GP_TRIAL_INFEASIBLE;
        if (!ended && t->state != GP_TRIAL_STOPPED)
            continue;
        if (ended && history->has_third && !isfinite(t->third))
            return FAIL(err, ST_NUMERIC, "trial %zu: its third objective is %g; such a trial counts as failed", i,
                        t->third);
        if (!isfinite(t->score))
            return FAIL(err, ST_NUMERIC, "trial %zu: score is %g; such a trial counts as failed", i, t->score);
        if (!isfinite(t->cost) || !(t->cost > 0.0))
            return FAIL(err, ST_NUMERIC, "trial %zu: cost is %g, a finished trial needs a cost above 0", i, t->cost);
    }
    return ST_OK;
}

/* ln cost is nearly a line in the logarithm of a run's length, and most is learned early. */
static void see_length_by_logarithm(struct space *space)
{
    size_t steps = space_steps_param(space);
    if (steps < space->dim && space->params[steps].scale == SPACE_LINEAR && space->params[steps].min > 0.0)
        space->params[steps].scale = SPACE_LOG;
}

size_t suggester_n_init(size_t dim, size_t n_init)
{
    return n_init > 0 ? n_init : dim < DESIGN_MOST - DESIGN_EXTRA ? dim + DESIGN_EXTRA : DESIGN_MOST;
}

enum status suggester_create(struct suggester **ret_suggester, const struct space *space,
                             const struct suggest_settings *settings, struct error *err)
{
    openblas_set_num_threads(
        1); /* the models must not take the cores that trials train on, nor depend on their number */
    *ret_suggester = NULL;
    TRY(space_check(space, err));
    if (settings->method > SUGGEST_SOBOL)
        return FAIL(err, ST_CONFIG, "unknown method %d; one of %s", (int)settings->method, suggest_method_names());
    if (!(settings->max_cost >= 0.0))
        return FAIL(err, ST_CONFIG, "max_cost is %g; give a cost above 0, or 0 for no cap", settings->max_cost);
    struct suggester *s = mem_alloc(sizeof *s);
    s->space = s->model_space = *space;
    see_length_by_logarithm(&s->model_space);
    s->settings = *settings;
    s->settings.n_init = suggester_n_init(space->dim, settings->n_init);
    s->root = rng_seed(settings->seed);
    design_init(&s->design, space->dim, rng_split(s->root, UINT64_MAX));
    *ret_suggester = s;
    return ST_OK;
}

void suggester_destroy(struct suggester *s)
{
    if (!s)
        return;
    design_free(&s->design);
    mem_free(s);
}

static enum status suggest_one(struct suggester *s, const struct gp_history *history, const struct seen *seen,
                               int64_t number, struct suggestion *ret, struct error *err)
{
    *ret = (struct suggestion){0};
    if ((double)seen->n >= space_size(&s->space))
        return FAIL(err, ST_LIMIT, "all %zu points of the search space have been tried; widen a range to continue",
                    seen->n);
    if (number == 0 && default_point(&s->space, ret->x) && !seen_has(seen, ret->x) && suggest_is_allowed(s, ret->x)) {
        strcpy(ret->origin, "default");
        return ST_OK;
    }
    if (s->settings.method == SUGGEST_PARETO)
        return suggest_pareto(s, history, seen, number, ret, err);
    bool random = s->settings.method == SUGGEST_RANDOM;
    strcpy(ret->origin, random ? "random" : "sobol");
    return random ? design_random_point(s, seen, number, ret->x, err)
                  : suggest_design_sobol(s, seen, number, ret->x, err);
}

size_t suggester_batch_size(size_t n_parallel, size_t n_wanted)
{
    size_t n = (n_parallel + SUGGEST_FEW - 1) / SUGGEST_FEW;
    if (n <= 1)
        return 1;
    n = n > n_wanted ? n : n_wanted;
    return n < SUGGEST_BATCH_MAX ? n : SUGGEST_BATCH_MAX;
}

/* The rest of a batch at once, where it and the pending trials are many; ret_n 0: they are few, or it is not the
 * models' turn. */
static enum status suggest_rest(struct suggester *s, const struct gp_history *history, const struct seen *seen,
                                int64_t number, size_t n, struct suggestion *ret, size_t *ret_n, struct error *err)
{
    size_t n_pending = 0;
    *ret_n = 0;
    for (size_t i = 0; i < history->n; i++)
        n_pending += history->trials[i].state == GP_TRIAL_PENDING;
    if (s->settings.method != SUGGEST_PARETO || n_pending + n <= SUGGEST_FEW)
        return ST_OK;
    return suggest_pareto_many(s, history, seen, number, n, ret, ret_n, err);
}

enum status suggester_batch(struct suggester *s, const struct gp_history *history, int64_t number, size_t n,
                            struct suggestion *ret, size_t *ret_n, struct error *err)
{
    struct gp_history all = *history; /* with those that were made, as pending trials */
    MEM_LOCAL struct gp_trial *trials = mem_array(history->n + n, sizeof *trials);
    struct error why = {0};
    enum status rc = check_history(s, history, number, err);
    if (history->n > 0)
        memcpy(trials, history->trials, history->n * sizeof *trials);
    all.trials = trials;
    *ret_n = 0;
    while (rc == ST_OK && *ret_n < n) {
        size_t made = 0;
        struct seen seen;
        seen_create(&seen, &s->space, &all);
        rc = suggest_rest(s, &all, &seen, number + (int64_t)*ret_n, n - *ret_n, ret + *ret_n, &made, &why);
        if (rc == ST_OK && made == 0) {
            rc = suggest_one(s, &all, &seen, number + (int64_t)*ret_n, ret + *ret_n, &why);
            made = rc == ST_OK;
        }
        seen_free(&seen);
        for (size_t k = 0; k < made; k++, ++*ret_n)
            trials[all.n++] = (struct gp_trial){.x = ret[*ret_n].x, .state = GP_TRIAL_PENDING};
    }
    if (why.status == ST_OK || (rc == ST_LIMIT && *ret_n > 0))
        return why.status == ST_OK ? rc : ST_OK;
    return FAIL(err, rc, "%s", why.text);
}

enum status suggester_next(struct suggester *s, const struct gp_history *history, int64_t number,
                           struct suggestion *ret, struct error *err)
{
    size_t n;
    return suggester_batch(s, history, number, 1, ret, &n, err);
}
