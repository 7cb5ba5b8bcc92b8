/* pareto_candidates.c - the point of the largest expected hypervolume improvement: candidates (Sobol, and steps from
 * front points; finite spaces whole), the best few of them uphill by gradient, snapped, then the other values of small
 * discrete parameters.
 * Invariants: (1) only snapped points are judged; (2) a point that was tried or is not allowed is never the result. */
#include "gp/pareto_priv.h"

#include "base/mem.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define N_SOBOL 384 /* candidates spread over the whole space */
#define N_LOCAL 384 /* and near the front */
#define N_FINITE 2048 /* finite spaces up to this are judged whole; else N_SOBOL + N_LOCAL */
#define N_ASKED 256 /* of them, the best, are asked about until N_STARTS are open */
#define N_STARTS 4 /* candidates that are polished */
#define POLISH_FIRST 10 /* steps of every start */
#define N_FINALISTS 2 /* starts that are polished */
#define POLISH_EVALS 20
#define BLOCK BELIEFS_BATCH /* candidates predicted at a time */
#define DISCRETE_MAX 16 /* values of a parameter that are all tried */

/* Work of one call. */
struct search_state {
    struct pareto_search *s;
    const struct suggester *suggester; /* for suggest_is_allowed */
    const struct seen *seen;
    double *cross; /* (BLOCK, ld) */
    double unit[BLOCK * SPACE_MAX_DIM];
    double mean1[BLOCK], sd1[BLOCK], mean2[BLOCK], sd2[BLOCK], value[BLOCK], log_feasible[BLOCK];
    double *pool_u; /* (n_pool, dim) snapped */
    struct rated *pool; /* (n_pool) best first, once rated */
    size_t n_pool;
};

/* A candidate's place in the pool's order. */
struct rated {
    double value, f1_mean;
    size_t at; /* row of pool_u */
};

/* ---- judging ---- */

static double cap_log_probability(const struct search_state *h, double m1, double s1, double *gradient)
{
    if (!isfinite(h->s->cap))
        return 0.0;
    double z = (h->s->cap - m1) / s1, log_cdf = normal_log_cdf(z);
    if (gradient) {
        double ratio = exp(normal_log_pdf(z) - log_cdf) / s1;
        gradient[0] -= ratio;
        gradient[1] -= z * ratio;
    }
    return log_cdf;
}

/* ln P(a run works), 0 while failures are too few to model. */
static double ok_log_probability(const struct search_state *h, double m, double s, double *ret_slope_m,
                                 double *ret_slope_s)
{
    const struct model *ok = &h->s->ok;
    double spread = sqrt(s * s + ok->noise), z = (m + ok->y_mean / ok->y_sd) / spread, log_cdf = normal_log_cdf(z);
    double ratio = exp(normal_log_pdf(z) - log_cdf) / spread;
    if (ret_slope_m) {
        *ret_slope_m = ratio;
        *ret_slope_s = -z * ratio * s / spread;
    }
    return log_cdf;
}

/* Before the first point that keeps all limits such a point alone is sought. */
static bool gains_count(const struct pareto_search *s)
{
    return s->n_limits == 0 || s->has_feasible;
}

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
        h->value[p] = h->mean1[p] > s->cap
                          ? -INFINITY
                          : (gains_count(s) ? ehvi_log(&s->ehvi, m, spread, NULL) : 0.0) + h->log_feasible[p] +
                                cap_log_probability(h, h->mean1[p], h->sd1[p], NULL);
    }
    if (s->has_ok) {
        model_predict(&s->ok, u, n, h->cross, mean, sd);
        for (size_t p = 0; p < n; p++)
            h->value[p] += ok_log_probability(h, mean[p], sd[p], NULL, NULL);
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
    if (gains_count(s))
        value = ehvi_log(&s->ehvi, m, sd, g);
    value += cap_log_probability(h, m[0], sd[0], g);
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
        value += ok_log_probability(h, m[0], sd[0], &g[0], &g[1]);
        for (size_t i = 0; i < dim; i++)
            ret_gradient[i] -= g[0] * dm[0][i] + g[1] * ds[0][i];
    }
    return -value;
}

/* ---- candidates ---- */

/* A normal number of two uniform ones. */
static double normal(double a, double b)
{
    return sqrt(-2.0 * log(1.0 - a)) * cos(2.0 * M_PI * b);
}

static double reflect(double u)
{
    u = fabs(u);
    u = fmod(u, 2.0);
    return u > 1.0 ? 2.0 - u : u;
}

/* A step from a front point in a few coordinates: wide and narrow ones take turns. */
static void step_from(const struct search_state *h, size_t group, int turn, struct rng *r, double *ret_u)
{
    size_t dim = h->s->space->dim;
    static const double widths[] = {0.2, 0.05, 0.1};
    double width = widths[turn % 3], share = fmin(1.0, 3.0 / (double)dim);
    size_t always = rng_below(r, (uint32_t)dim);
    memcpy(ret_u, h->s->obs.u + group * dim, dim * sizeof *ret_u);
    for (size_t i = 0; i < dim; i++) {
        double chance = rng_f64(r);
        struct rng own = *r;
        r->counter += 3; /* a coordinate's draws, whether it needs them or not */
        if (i != always && chance >= share)
            continue;
        double a = rng_f64(&own), b = rng_f64(&own), fresh = rng_f64(&own);
        ret_u[i] = space_param_is_unordered(&h->s->space->params[i]) ? fresh : reflect(ret_u[i] + width * normal(a, b));
    }
}

/* Sets of values, those of inactive parameters counted. */
static double n_values(const struct space *space)
{
    double size = 1.0;
    for (size_t i = 0; i < space->dim; i++)
        size *= space_param_size(&space->params[i]);
    return size;
}

/* Conditional parameters: points come several times, as many as there are sets of values. */
static void enumerate(struct search_state *h, size_t size)
{
    size_t dim = h->s->space->dim;
    for (size_t k = 0; k < size; k++) {
        size_t rest = k;
        for (size_t i = 0; i < dim; i++) {
            const struct space_param *p = &h->s->space->params[i];
            size_t n = (size_t)space_param_size(p);
            h->pool_u[k * dim + i] = space_param_to_unit(p, space_param_value(p, (double)(rest % n)));
            rest /= n;
        }
        space_idle_unit(h->s->space, h->pool_u + k * dim);
    }
}

/* Values of finite parameters move to the middle of their bins; what rounding does to the others is left for later. */
static void snap_pool(struct search_state *h)
{
    size_t dim = h->s->space->dim;
    for (size_t i = 0; i < dim; i++) {
        const struct space_param *p = &h->s->space->params[i];
        for (size_t k = 0; isfinite(space_param_size(p)) && k < h->n_pool; k++)
            h->pool_u[k * dim + i] = space_param_to_unit(p, space_param_from_unit(p, h->pool_u[k * dim + i]));
    }
    if (space_is_conditional(h->s->space))
        for (size_t k = 0; k < h->n_pool; k++)
            space_idle_unit(h->s->space, h->pool_u + k * dim);
}

static void fill_pool(struct search_state *h, struct rng rng)
{
    size_t dim = h->s->space->dim;
    struct design design;
    if (n_values(h->s->space) <= N_FINITE) {
        enumerate(h, h->n_pool);
        return;
    }
    struct rng shift = rng_split(rng, SUGGEST_STREAM_CANDIDATES), local = rng_split(rng, SUGGEST_STREAM_LOCAL);
    double step[SPACE_MAX_DIM]; /* the study's spread points, moved round by a random step in each coordinate */
    design_init(&design, dim, rng_split(h->suggester->root, UINT64_MAX - 1));
    for (size_t i = 0; i < dim; i++)
        step[i] = rng_f64(&shift);
    for (size_t k = 0; k < N_SOBOL; k++) {
        double *u = h->pool_u + k * dim;
        design_sobol(&design, k, u);
        for (size_t i = 0; i < dim; i++)
            u[i] = u[i] + step[i] < 1.0 ? u[i] + step[i] : u[i] + step[i] - 1.0;
    }
    design_free(&design);
    for (size_t k = 0; k < N_LOCAL; k++)
        step_from(h, h->s->front[k % h->s->n_front], (int)(k / h->s->n_front), &local, h->pool_u + (N_SOBOL + k) * dim);
    snap_pool(h);
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

/* Not tried before, and allowed. */
static bool is_open(const struct search_state *h, const double *x)
{
    return !seen_has(h->seen, x) && suggest_is_allowed(h->suggester, x);
}

/* Sets u and x; false: not open. */
static bool take(const struct search_state *h, size_t at, struct candidate *ret)
{
    memcpy(ret->u, h->pool_u + at * h->s->space->dim, h->s->space->dim * sizeof *ret->u);
    space_from_unit(h->s->space, ret->u, ret->x);
    return is_open(h, ret->x);
}

/* The best few of the pool that are new and not close to one another, judged. Returns how many. */
static size_t choose_starts(struct search_state *h, struct candidate *ret_starts)
{
    size_t n_starts = 0;
    for (size_t k = 0; k < h->n_pool && k < N_ASKED && n_starts < N_STARTS && isfinite(h->pool[k].value); k++) {
        bool ok = take(h, h->pool[k].at, &ret_starts[n_starts]);
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
        found = take(h, h->pool[k].at, ret_best);
    if (found)
        judge(h, ret_best, 1);
    return found;
}

static void keep_best(const struct search_state *h, const struct candidate *c, size_t n, struct candidate *best,
                      bool *found)
{
    for (size_t k = 0; k < n; k++)
        if ((!*found || better(&c[k], best)) && is_open(h, c[k].x)) {
            *best = c[k];
            *found = true;
        }
}

/* Uphill by gradient and snapped again; never worse than it was. */
static void climb(struct search_state *h, struct candidate *c, int max_evals)
{
    double lo[SPACE_MAX_DIM], hi[SPACE_MAX_DIM];
    struct candidate up = *c;
    for (size_t i = 0; i < h->s->space->dim; i++) {
        bool fixed = space_param_is_unordered(&h->s->space->params[i]);
        lo[i] = fixed ? up.u[i] : 0.0;
        hi[i] = fixed ? up.u[i] : 1.0;
    }
    optimise_box(polish_objective, h, h->s->space->dim, lo, hi, max_evals, up.u);
    judge(h, &up, 1);
    if (better(&up, c) && is_open(h, up.x))
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

static void search_state_free(struct search_state *h)
{
    mem_free(h->cross);
    mem_free(h->pool_u);
    mem_free(h->pool);
    mem_free(h);
}

static struct search_state *search_state_create(struct pareto_search *s, const struct suggester *suggester,
                                                const struct seen *seen)
{
    struct search_state *h = mem_alloc(sizeof *h);
    h->s = s;
    h->suggester = suggester;
    h->seen = seen;
    double size = n_values(s->space);
    h->n_pool = size <= N_FINITE ? (size_t)size : N_SOBOL + N_LOCAL;
    h->cross = mem_array2(BLOCK, pareto_search_ld(s), sizeof *h->cross);
    h->pool_u = mem_array2(h->n_pool, s->space->dim, sizeof *h->pool_u);
    h->pool = mem_array(h->n_pool, sizeof *h->pool);
    return h;
}

bool pareto_best(struct pareto_search *s, const struct suggester *suggester, const struct seen *seen, struct rng rng,
                 struct candidate *ret_best)
{
    struct candidate starts[N_STARTS];
    struct search_state *h = search_state_create(s, suggester, seen);
    bool found = false;
    fill_pool(h, rng);
    rate_pool(h);
    size_t n_starts = choose_starts(h, starts);
    polish(h, starts, n_starts, ret_best, &found);
    if (!found) /* all too expensive: the cheapest new one */
        found = take_any(h, ret_best);
    search_state_free(h);
    return found;
}
