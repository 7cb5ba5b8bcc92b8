/* pareto_pool.c - the candidates of a proposal: Sobol points shifted at random, and steps from front points; finite
 * spaces whole. Invariant: every candidate lies where a trial can have its finite parameters. */
#include "gp/pareto_pool.h"

#define N_SOBOL 384 /* candidates spread over the whole space */
#define N_LOCAL 384 /* and near the front */
#define N_LOCAL_MANY 768 /* of a batch of more than SUGGEST_FEW, which takes middling ones too where they are few */
#define N_FINITE 2048 /* finite spaces up to this are judged whole */

double pool_cap_log(const struct search_state *h, double m1, double s1, double *gradient)
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

double pool_ok_log(const struct search_state *h, double m, double s, double *ret_slope_m, double *ret_slope_s)
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

void pool_fill(struct search_state *h, struct rng rng)
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
    for (size_t k = 0; N_SOBOL + k < h->n_pool; k++)
        step_from(h, h->s->front[k % h->s->n_front], (int)(k / h->s->n_front), &local, h->pool_u + (N_SOBOL + k) * dim);
    snap_pool(h);
}

bool pool_is_open(const struct search_state *h, const double *x)
{
    return !seen_has(h->seen, x) && suggest_is_allowed(h->suggester, x);
}

bool pool_take(const struct search_state *h, size_t at, struct candidate *ret)
{
    memcpy(ret->u, h->pool_u + at * h->s->space->dim, h->s->space->dim * sizeof *ret->u);
    space_from_unit(h->s->space, ret->u, ret->x);
    return pool_is_open(h, ret->x);
}

void search_state_free(struct search_state *h)
{
    mem_free(h->cross);
    mem_free(h->pool_u);
    mem_free(h->pool);
    mem_free(h);
}

struct search_state *search_state_create(struct pareto_search *s, const struct suggester *suggester,
                                         const struct seen *seen, size_t n)
{
    struct search_state *h = mem_alloc(sizeof *h);
    h->s = s;
    h->suggester = suggester;
    h->seen = seen;
    double size = n_values(s->space);
    h->n_pool = size <= N_FINITE ? (size_t)size : N_SOBOL + (n > SUGGEST_FEW ? N_LOCAL_MANY : N_LOCAL);
    h->cross = mem_array2(BLOCK, pareto_search_ld(s), sizeof *h->cross);
    h->pool_u = mem_array2(h->n_pool, s->space->dim, sizeof *h->pool_u);
    h->pool = mem_array(h->n_pool, sizeof *h->pool);
    return h;
}
