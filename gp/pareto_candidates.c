/* pareto_candidates.c - the point of the largest expected hypervolume improvement: candidates (Sobol, and steps from
 * front points; finite spaces whole), the best few of them uphill by gradient, snapped, then the other values of small
 * discrete parameters.
 * Invariants: (1) only snapped points are judged; (2) a point that was tried is never the result. */
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "gp/pareto_priv.h"

#define N_SOBOL 1536
#define N_LOCAL 512
#define N_CANDIDATES (N_SOBOL + N_LOCAL) /* finite spaces up to this are judged whole */
#define N_STARTS 8 /* candidates that are polished */
#define POLISH_FIRST 10 /* steps of every start */
#define N_FINALISTS 3 /* starts that go on */
#define POLISH_EVALS 30
#define BLOCK 128 /* candidates predicted at a time */
#define DISCRETE_MAX 16 /* values of a parameter that are all tried */

/* Work of one call. */
struct hunt {
    struct pareto_search *s;
    const struct seen *seen;
    double *cross, *unit; /* (BLOCK, ld), (BLOCK, dim) */
    double mean1[BLOCK], sd1[BLOCK], mean2[BLOCK], sd2[BLOCK];
    struct candidate *pool; /* (N_CANDIDATES) */
    size_t n_pool;
};

/* ---- judging ---- */

static double cap_log_probability(const struct hunt *h, double m1, double s1, double *gradient)
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

/* ln P(a run works), 0 while failures are too few to tell. */
static double ok_log_probability(const struct hunt *h, double m, double s, double *ret_slope_m, double *ret_slope_s)
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

/* Snaps and judges c[0 .. n), whose u are set. */
static void judge(struct hunt *h, struct candidate *c, size_t n)
{
    size_t dim = h->s->space->dim;
    for (size_t at = 0; at < n; at += BLOCK) {
        size_t m = n - at < BLOCK ? n - at : BLOCK;
        for (size_t p = 0; p < m; p++) {
            space_from_unit(h->s->space, c[at + p].u, c[at + p].x);
            space_to_unit(h->s->space, c[at + p].x, c[at + p].u);
            memcpy(h->unit + p * dim, c[at + p].u, dim * sizeof *h->unit);
        }
        model_predict(&h->s->cost, h->unit, m, h->cross, h->mean1, h->sd1);
        model_predict(&h->s->score, h->unit, m, h->cross, h->mean2, h->sd2);
        for (size_t p = 0; p < m; p++) {
            struct candidate *k = &c[at + p];
            k->f1_mean = h->mean1[p];
            k->f1_sd = h->sd1[p];
            k->f2_mean = h->mean2[p];
            k->f2_sd = h->sd2[p];
            k->value = k->f1_mean > h->s->cap
                           ? -INFINITY
                           : ehvi_log(&h->s->ehvi, k->f1_mean, k->f1_sd, -k->f2_mean, k->f2_sd, NULL) +
                                 cap_log_probability(h, k->f1_mean, k->f1_sd, NULL);
        }
        if (h->s->has_ok) {
            model_predict(&h->s->ok, h->unit, m, h->cross, h->mean1, h->sd1);
            for (size_t p = 0; p < m; p++)
                c[at + p].value += ok_log_probability(h, h->mean1[p], h->sd1[p], NULL, NULL);
        }
    }
}

/* Higher value first; among those too dear, the cheaper. */
static bool better(const struct candidate *a, const struct candidate *b)
{
    if (a->value != b->value)
        return a->value > b->value;
    return a->f1_mean < b->f1_mean;
}

/* Minus the acquisition and its gradient at a point that need not be snapped. */
static double polish_objective(void *ctx, const double *u, double *ret_gradient)
{
    struct hunt *h = ctx;
    double m1, s1, m2, s2, g[4];
    double dm1[SPACE_MAX_DIM], ds1[SPACE_MAX_DIM], dm2[SPACE_MAX_DIM], ds2[SPACE_MAX_DIM];
    model_predict_gradient(&h->s->cost, u, &m1, &s1, dm1, ds1);
    model_predict_gradient(&h->s->score, u, &m2, &s2, dm2, ds2);
    double value = ehvi_log(&h->s->ehvi, m1, s1, -m2, s2, g);
    value += cap_log_probability(h, m1, s1, g);
    for (size_t i = 0; i < h->s->space->dim; i++)
        ret_gradient[i] = -(g[0] * dm1[i] + g[1] * ds1[i] - g[2] * dm2[i] + g[3] * ds2[i]);
    if (h->s->has_ok) {
        model_predict_gradient(&h->s->ok, u, &m1, &s1, dm1, ds1);
        value += ok_log_probability(h, m1, s1, &g[0], &g[1]);
        for (size_t i = 0; i < h->s->space->dim; i++)
            ret_gradient[i] -= g[0] * dm1[i] + g[1] * ds1[i];
    }
    return -value;
}

/* ---- candidates ---- */

static double normal(struct rng *r)
{
    double u = 1.0 - rng_f64(r);
    return sqrt(-2.0 * log(u)) * cos(2.0 * M_PI * rng_f64(r));
}

static double reflect(double u)
{
    u = fabs(u);
    u = fmod(u, 2.0);
    return u > 1.0 ? 2.0 - u : u;
}

/* A step from a front point in a few coordinates: wide and narrow ones take turns. */
static void step_from(const struct hunt *h, size_t group, int turn, struct rng *r, double *ret_u)
{
    size_t dim = h->s->space->dim;
    static const double widths[] = {0.2, 0.05, 0.1};
    double width = widths[turn % 3], share = fmin(1.0, 3.0 / (double)dim);
    size_t always = rng_below(r, (uint32_t)dim);
    memcpy(ret_u, h->s->obs.u + group * dim, dim * sizeof *ret_u);
    for (size_t i = 0; i < dim; i++) {
        double chance = rng_f64(r), move = normal(r), fresh = rng_f64(r);
        if (i != always && chance >= share)
            continue;
        ret_u[i] = h->s->space->params[i].scale == SPACE_CATEGORICAL ? fresh : reflect(ret_u[i] + width * move);
    }
}

static void enumerate(struct hunt *h, size_t size)
{
    for (size_t k = 0; k < size; k++) {
        size_t rest = k;
        for (size_t i = 0; i < h->s->space->dim; i++) {
            const struct space_param *p = &h->s->space->params[i];
            size_t n = (size_t)space_param_size(p);
            h->pool[k].u[i] = space_param_to_unit(p, space_param_value(p, (double)(rest % n)));
            rest /= n;
        }
    }
    h->n_pool = size;
}

static enum status fill_pool(struct hunt *h, struct rng rng, struct error *err)
{
    double size = space_size(h->s->space);
    if (size <= N_CANDIDATES) {
        enumerate(h, (size_t)size);
        return ST_OK;
    }
    struct design design;
    TRY(design_init(&design, h->s->space->dim, rng_split(rng, SUGGEST_STREAM_CANDIDATES), err));
    for (size_t k = 0; k < N_SOBOL; k++)
        design_sobol(&design, k, h->pool[k].u);
    design_free(&design);
    h->n_pool = N_SOBOL;
    struct rng local = rng_split(rng, SUGGEST_STREAM_LOCAL);
    for (size_t k = 0; k < N_LOCAL; k++)
        step_from(h, h->s->front[k % h->s->n_front], (int)(k / h->s->n_front), &local, h->pool[h->n_pool++].u);
    return ST_OK;
}

static bool near(const struct space *space, const double *a, const double *b)
{
    for (size_t i = 0; i < space->dim; i++)
        if (fabs(a[i] - b[i]) > 0.1)
            return false;
    return true;
}

/* The best few of the pool that are not close to one another. Returns how many. */
static size_t choose_starts(const struct hunt *h, const struct candidate **ret_starts)
{
    size_t n = 0;
    while (n < N_STARTS) {
        const struct candidate *best = NULL;
        for (size_t k = 0; k < h->n_pool; k++) {
            const struct candidate *c = &h->pool[k];
            bool taken = !isfinite(c->value) || seen_has(h->seen, c->x) || (best && !better(c, best));
            for (size_t i = 0; i < n && !taken; i++)
                taken = near(h->s->space, c->u, ret_starts[i]->u);
            if (!taken)
                best = c;
        }
        if (!best)
            break;
        ret_starts[n++] = best;
    }
    return n;
}

static void keep_best(const struct hunt *h, const struct candidate *c, size_t n, struct candidate *best, bool *found)
{
    for (size_t k = 0; k < n; k++)
        if (!seen_has(h->seen, c[k].x) && (!*found || better(&c[k], best))) {
            *best = c[k];
            *found = true;
        }
}

/* Uphill by gradient and snapped again; never worse than it was. */
static void climb(struct hunt *h, struct candidate *c, int max_evals)
{
    double lo[SPACE_MAX_DIM], hi[SPACE_MAX_DIM];
    struct candidate up = *c;
    for (size_t i = 0; i < h->s->space->dim; i++) {
        bool fixed = h->s->space->params[i].scale == SPACE_CATEGORICAL;
        lo[i] = fixed ? up.u[i] : 0.0;
        hi[i] = fixed ? up.u[i] : 1.0;
    }
    optimise_box(polish_objective, h, h->s->space->dim, lo, hi, max_evals, up.u);
    judge(h, &up, 1);
    if (!seen_has(h->seen, up.x) && better(&up, c))
        *c = up;
}

/* One pass over the small discrete parameters, every value of each. */
static void try_values(struct hunt *h, struct candidate *c)
{
    struct candidate others[DISCRETE_MAX];
    for (size_t i = 0; i < h->s->space->dim; i++) {
        const struct space_param *p = &h->s->space->params[i];
        double size = space_param_size(p);
        if (!(size <= DISCRETE_MAX))
            continue;
        for (size_t k = 0; k < (size_t)size; k++) {
            others[k] = *c;
            others[k].u[i] = space_param_to_unit(p, space_param_value(p, (double)k));
        }
        judge(h, others, (size_t)size);
        bool have = true;
        keep_best(h, others, (size_t)size, c, &have);
    }
}

/* A few steps from every start, then the best of them to the end. */
static void polish(struct hunt *h, const struct candidate *const *starts, size_t n, struct candidate *best, bool *found)
{
    struct candidate now[N_STARTS];
    for (size_t k = 0; k < n; k++) {
        now[k] = *starts[k];
        climb(h, &now[k], POLISH_FIRST);
    }
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

static void hunt_free(struct hunt *h)
{
    mem_free(h->cross);
    mem_free(h->unit);
    mem_free(h->pool);
    mem_free(h);
}

static enum status hunt_create(struct hunt **ret_hunt, struct pareto_search *s, const struct seen *seen,
                               struct error *err)
{
    size_t ld = s->score.ld > s->cost.ld ? s->score.ld : s->cost.ld;
    ld = s->ok.ld > ld ? s->ok.ld : ld;
    struct hunt *h = mem_alloc(sizeof *h);
    if (!h)
        goto fail;
    h->s = s;
    h->seen = seen;
    h->cross = mem_array2(BLOCK, ld, sizeof *h->cross);
    h->unit = mem_array2(BLOCK, s->space->dim, sizeof *h->unit);
    h->pool = mem_array(N_CANDIDATES, sizeof *h->pool);
    if (!h->cross || !h->unit || !h->pool)
        goto fail;
    *ret_hunt = h;
    return ST_OK;
fail:
    if (h)
        hunt_free(h);
    return FAIL(err, ST_NOMEM, "no memory for %d candidates", N_CANDIDATES);
}

enum status pareto_best(struct pareto_search *s, const struct seen *seen, struct rng rng, struct candidate *ret_best,
                        bool *ret_found, struct error *err)
{
    const struct candidate *starts[N_STARTS];
    struct hunt *h = NULL;
    *ret_found = false;
    TRY(hunt_create(&h, s, seen, err));
    enum status rc = fill_pool(h, rng, err);
    if (rc != ST_OK)
        goto done;
    judge(h, h->pool, h->n_pool);
    size_t n_starts = choose_starts(h, starts);
    polish(h, starts, n_starts, ret_best, ret_found);
    if (!*ret_found) /* all too dear: the cheapest new one */
        keep_best(h, h->pool, h->n_pool, ret_best, ret_found);
done:
    hunt_free(h);
    return rc;
}
