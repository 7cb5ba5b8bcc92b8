/* pareto_candidates.c - the point of the largest expected hypervolume improvement: candidates (Sobol, and steps from
 * front points; finite spaces whole), the best few of them uphill by gradient, snapped, then the other values of small
 * discrete parameters.
 * Invariants: (1) only snapped points are judged; (2) a point that was tried or is not allowed is never the result. */
#include "base/base.h"
#include "gp/pareto_pool.h"

#define N_ASKED 256 /* of them, the best, are asked about until N_STARTS are open */
#define N_STARTS 4 /* candidates that are polished */
#define POLISH_FIRST 10 /* steps of every start */
#define CLIMB_POINTS 0.75 /* for each parameter: slopes of fewer points are noise, and lead to corners */
#define N_FINALISTS 2 /* starts that are polished */
#define POLISH_EVALS 20
#define DISCRETE_MAX 16 /* values of a parameter that are all tried */

/* ---- judging ---- */

/* Acquisition of n <= BLOCK snapped points (n, dim) into value, and what is expected of them into mean1 .. sd2. */
static void rate(struct search_state *h, const double *u, size_t n)
{
    struct pareto_search *s = h->s;
    model_predict(&s->cost, u, n, h->cross, h->mean1, h->sd1);
    model_predict(&s->score, u, n, h->cross, h->mean2, h->sd2);
    double mean[BLOCK], sd[BLOCK];
    if (s->has_third)
        model_predict(&s->third, u, n, h->cross, mean, sd);
    pareto_log_feasible(s, u, n, h->cross, h->log_feasible);
    for (size_t p = 0; p < n; p++) {
        const double m[EHVI_MAX] = {h->mean1[p], -h->mean2[p], s->has_third ? mean[p] : 0.0};
        const double spread[EHVI_MAX] = {h->sd1[p], h->sd2[p], s->has_third ? sd[p] : 0.0};
        h->value[p] = h->mean1[p] > s->cap ? -INFINITY
                                           : (pareto_gains_count(s) ? ehvi_log(&s->ehvi, m, spread, NULL) : 0.0) +
                                                 h->log_feasible[p] + pool_cap_log(h, h->mean1[p], h->sd1[p], NULL);
    }
    if (s->has_ok) {
        model_predict(&s->ok, u, n, h->cross, mean, sd);
        for (size_t p = 0; p < n; p++)
            h->value[p] += pool_ok_log(h, mean[p], sd[p], NULL, NULL);
    }
}

/* Snaps and judges c[0 .. n), whose u are set; n <= BLOCK. */
static void judge(struct search_state *h, struct candidate *c, size_t n)
{
    size_t dim = h->s->space->dim;
    for (size_t p = 0; p < n; p++) {
        space_from_unit(h->s->space, c[p].u, c[p].x);
        space_to_unit(h->s->space, c[p].x, c[p].u);
        memcpy(h->unit + p * dim, c[p].u, dim * sizeof *h->unit);
    }
    rate(h, h->unit, n);
    for (size_t p = 0; p < n; p++) {
        c[p].value = h->value[p];
        c[p].log_feasible = h->log_feasible[p];
        c[p].f1_mean = h->mean1[p];
        c[p].f1_sd = h->sd1[p];
        c[p].f2_mean = h->mean2[p];
        c[p].f2_sd = h->sd2[p];
    }
}

/* Higher value first; among those too expensive, the cheaper. */
static bool better(const struct candidate *a, const struct candidate *b)
{
    if (a->value != b->value)
        return a->value > b->value;
    return a->f1_mean < b->f1_mean;
}

/* Minus the acquisition and its gradient at a point that need not be snapped. */
static double polish_objective(void *ctx, const double *u, double *ret_gradient)
{
    struct search_state *h = ctx;
    struct pareto_search *s = h->s;
    double m[EHVI_MAX], sd[EHVI_MAX], g[2 * EHVI_MAX] = {0}, value = 0.0;
    double dm[EHVI_MAX][SPACE_MAX_DIM], ds[EHVI_MAX][SPACE_MAX_DIM];
    struct model *models[EHVI_MAX] = {&s->cost, &s->score, &s->third};
    size_t dim = s->space->dim, n_objectives = s->has_third ? 3 : 2;
    for (size_t k = 0; k < n_objectives; k++)
        model_predict_gradient(models[k], u, &m[k], &sd[k], dm[k], ds[k]);
    m[1] = -m[1];
    if (pareto_gains_count(s))
        value = ehvi_log(&s->ehvi, m, sd, g);
    value += pool_cap_log(h, m[0], sd[0], g);
    for (size_t i = 0; i < dim; i++) {
        ret_gradient[i] = g[0] * dm[0][i] + g[1] * ds[0][i] - g[2] * dm[1][i] + g[3] * ds[1][i];
        if (s->has_third)
            ret_gradient[i] += g[4] * dm[2][i] + g[5] * ds[2][i];
    }
    value += pareto_feasible_gradient(s, u, ret_gradient);
    for (size_t i = 0; i < dim; i++)
        ret_gradient[i] = -ret_gradient[i];
    if (s->has_ok) {
        model_predict_gradient(&s->ok, u, &m[0], &sd[0], dm[0], ds[0]);
        value += pool_ok_log(h, m[0], sd[0], &g[0], &g[1]);
        for (size_t i = 0; i < dim; i++)
            ret_gradient[i] -= g[0] * dm[0][i] + g[1] * ds[0][i];
    }
    return -value;
}

/* Higher value first; among those too expensive, the cheaper; of equals the first. */
static int compare_rated(const void *va, const void *vb)
{
    const struct rated *a = va, *b = vb;
    if (a->value != b->value)
        return a->value > b->value ? -1 : 1;
    if (a->f1_mean != b->f1_mean)
        return a->f1_mean < b->f1_mean ? -1 : 1;
    return a->at < b->at ? -1 : a->at > b->at;
}

/* Rates all of the pool; the best come first. */
static void rate_pool(struct search_state *h)
{
    size_t dim = h->s->space->dim;
    for (size_t at = 0; at < h->n_pool; at += BLOCK) {
        size_t n = h->n_pool - at < BLOCK ? h->n_pool - at : BLOCK;
        rate(h, h->pool_u + at * dim, n);
        for (size_t p = 0; p < n; p++)
            h->pool[at + p] = (struct rated){h->value[p], h->mean1[p], at + p};
    }
    qsort(h->pool, h->n_pool, sizeof *h->pool, compare_rated);
}

static bool near(const struct space *space, const double *a, const double *b)
{
    for (size_t i = 0; i < space->dim; i++)
        if (fabs(a[i] - b[i]) > 0.1)
            return false;
    return true;
}

/* The best few of the pool that are new and not close to one another, judged. Returns how many. */
static size_t choose_starts(struct search_state *h, struct candidate *ret_starts)
{
    size_t n_starts = 0;
    for (size_t k = 0; k < h->n_pool && k < N_ASKED && n_starts < N_STARTS && isfinite(h->pool[k].value); k++) {
        bool ok = pool_take(h, h->pool[k].at, &ret_starts[n_starts]);
        for (size_t i = 0; i < n_starts && ok; i++)
            ok = !near(h->s->space, ret_starts[n_starts].u, ret_starts[i].u);
        n_starts += ok;
    }
    judge(h, ret_starts, n_starts);
    return n_starts;
}

/* The best of the pool that is new, however expensive. */
static bool take_any(struct search_state *h, struct candidate *ret_best)
{
    bool found = false;
    for (size_t k = 0; k < h->n_pool && !found; k++)
        found = pool_take(h, h->pool[k].at, ret_best);
    if (found)
        judge(h, ret_best, 1);
    return found;
}

static void keep_best(const struct search_state *h, const struct candidate *c, size_t n, struct candidate *best,
                      bool *found)
{
    for (size_t k = 0; k < n; k++)
        if ((!*found || better(&c[k], best)) && pool_is_open(h, c[k].x)) {
            *best = c[k];
            *found = true;
        }
}

/* Uphill by gradient and snapped again; never worse than it was. */
static void climb(struct search_state *h, struct candidate *c, int max_evals)
{
    double lo[SPACE_MAX_DIM], hi[SPACE_MAX_DIM];
    struct candidate up = *c;
    if ((double)h->s->score.n < CLIMB_POINTS * (double)h->s->space->dim)
        return;
    for (size_t i = 0; i < h->s->space->dim; i++) {
        bool fixed = space_param_is_unordered(&h->s->space->params[i]);
        lo[i] = fixed ? up.u[i] : 0.0;
        hi[i] = fixed ? up.u[i] : 1.0;
    }
    optimise_box(polish_objective, h, h->s->space->dim, lo, hi, max_evals, up.u);
    judge(h, &up, 1);
    if (better(&up, c) && pool_is_open(h, up.x))
        *c = up;
}

/* One pass over the small discrete parameters, every value of each. */
static void try_values(struct search_state *h, struct candidate *c)
{
    struct candidate others[DISCRETE_MAX];
    for (size_t i = 0; i < h->s->space->dim; i++) {
        const struct space_param *p = &h->s->space->params[i];
        double size = space_param_size(p);
        size_t n = 0;
        if (!(size <= DISCRETE_MAX))
            continue;
        for (size_t k = 0; k < (size_t)size; k++) {
            double u = space_param_to_unit(p, space_param_value(p, (double)k));
            if (u == c->u[i])
                continue;
            others[n] = *c;
            others[n++].u[i] = u;
        }
        judge(h, others, n);
        bool have = true;
        keep_best(h, others, n, c, &have);
    }
}

/* A few steps from every start, then the best of them to the end. */
static void polish(struct search_state *h, struct candidate *now, size_t n, struct candidate *best, bool *found)
{
    for (size_t k = 0; k < n; k++)
        climb(h, &now[k], POLISH_FIRST);
    for (size_t k = 0; k < n && k < N_FINALISTS; k++) { /* selection sort, as far as it is needed */
        size_t top = k;
        for (size_t i = k + 1; i < n; i++)
            top = better(&now[i], &now[top]) ? i : top;
        struct candidate swap = now[k];
        now[k] = now[top];
        now[top] = swap;
        climb(h, &now[k], POLISH_EVALS);
        try_values(h, &now[k]);
    }
    keep_best(h, now, n, best, found);
}

bool pareto_best(struct pareto_search *s, const struct suggester *suggester, const struct seen *seen, struct rng rng,
                 struct candidate *ret_best)
{
    struct candidate starts[N_STARTS];
    struct search_state *h = search_state_create(s, suggester, seen, 1);
    bool found = false;
    pool_fill(h, rng);
    rate_pool(h);
    size_t n_starts = choose_starts(h, starts);
    polish(h, starts, n_starts, ret_best, &found);
    if (!found) /* all too expensive: the cheapest new one */
        found = take_any(h, ret_best);
    search_state_free(h);
    return found;
}
