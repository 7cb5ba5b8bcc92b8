/* insight.c - what a study has taught, read off the models of `pareto`: how much each parameter matters for score and
 * cost, and where the front leans on a bound of the search. What to believe of each tried point: beliefs.c.
 * Importance is the first-order effect V_i / V: the variance of f's mean over the other parameters as u_i moves, over
 * the variance of f, both under uniform u. Its uncertainty comes from draws of f from the posterior: a draw of the
 * prior by random features, corrected at the data (Matheron's rule). Invariants: (1) same inputs and seed, same bytes;
 * (2) too few or constant data are a reason, not an error. */
#include "gp/pareto_priv.h"

#include <cblas.h>

#define DONE_MIN 4 /* finished points below which there is no insight */
#define BASES 96 /* points that the other parameters are averaged over */
#define LEVELS 8 /* values of the parameter looked at */
#define DRAWS 16
#define FEATURES 256
#define EDGE_SHARE 0.5 /* of the front's points on a bound: it leans */
#define EDGE_MIN 2 /* points */
#define EDGE_UNIT 0.02 /* a continuous value so near a bound lies on it */
#define EDGE_WIDEN 0.5 /* the range to try is wider by so much of its length, on the parameter's own scale */

enum { STREAM_FEATURES = 1, STREAM_WEIGHTS, STREAM_BASES };

/* Functions drawn from one model's posterior; values are standardised. */
struct draws {
    struct model *model;
    double *omega; /* (FEATURES, dim) frequencies; of a categorical dimension, the seed of its choices' */
    double *phase; /* (FEATURES, 2) phase, and the width that the frequencies of one feature share */
    double *weight; /* (DRAWS + 1, FEATURES) of the features; the last is 0: the posterior mean */
    double *fix; /* (DRAWS + 1, ld) K^-1 (y - prior draw - noise) */
};

static double normal(struct rng *r)
{
    double u = 1.0 - rng_f64(r);
    return sqrt(-2.0 * log(u)) * cos(2.0 * M_PI * rng_f64(r));
}

/* A categorical dimension is a one-hot vector over sqrt2, so that two choices have distance 1; its frequencies are
 * drawn for each choice. */
static double choice_normal(double seed, double u)
{
    struct rng r = rng_split(rng_seed((uint64_t)(seed * 9007199254740992.0)), (uint64_t)rint(u * 4096.0));
    return normal(&r) * M_SQRT1_2;
}

static void features(const struct draws *d, const double *u, double *ret)
{
    const struct cov *cov = &d->model->cov;
    for (size_t f = 0; f < FEATURES; f++) {
        const double *omega = d->omega + f * cov->dim;
        double angle = d->phase[2 * f], width = d->phase[2 * f + 1];
        for (size_t i = 0; i < cov->dim; i++) {
            double w = cov->categorical[i] ? width * choice_normal(omega[i], u[i]) : omega[i] * u[i];
            angle += sqrt(cov->inv_sq[i]) * w;
        }
        ret[f] = sqrt(2.0 * cov->variance / FEATURES) * cos(angle);
    }
}

/* Matern-5/2 has the spectrum of a Student t of 5 degrees of freedom. */
static void draw_frequencies(struct draws *d, struct rng r)
{
    size_t dim = d->model->dim;
    for (size_t f = 0; f < FEATURES; f++) {
        double chi = 0.0;
        for (int k = 0; k < 5; k++) {
            double z = normal(&r);
            chi += z * z;
        }
        double width = sqrt(5.0 / chi);
        d->phase[2 * f] = 2.0 * M_PI * rng_f64(&r);
        d->phase[2 * f + 1] = width;
        for (size_t i = 0; i < dim; i++)
            d->omega[f * dim + i] = d->model->cov.categorical[i] ? rng_f64(&r) : width * normal(&r);
    }
}

static void draws_free(struct draws *d)
{
    mem_free(d->omega);
    mem_free(d->phase);
    mem_free(d->weight);
    mem_free(d->fix);
    memset(d, 0, sizeof *d);
}

static void draws_init(struct draws *d, struct model *m, struct rng rng)
{
    size_t n = m->n, ld = m->ld;
    double phi[FEATURES], u[SPACE_MAX_DIM];
    *d = (struct draws){.model = m};
    d->omega = mem_array2(FEATURES, m->dim, sizeof *d->omega);
    d->phase = mem_array2(FEATURES, 2, sizeof *d->phase);
    d->weight = mem_array2(DRAWS + 1, FEATURES, sizeof *d->weight);
    d->fix = mem_array2(DRAWS + 1, ld, sizeof *d->fix);
    draw_frequencies(d, rng_split(rng, STREAM_FEATURES));
    struct rng r = rng_split(rng, STREAM_WEIGHTS);
    for (size_t k = 0; k < DRAWS; k++)
        for (size_t f = 0; f < FEATURES; f++)
            d->weight[k * FEATURES + f] = normal(&r);
    for (size_t j = 0; j < n; j++) { /* fix holds the right sides first */
        for (size_t i = 0; i < m->dim; i++)
            u[i] = m->x[i * ld + j];
        features(d, u, phi);
        for (size_t k = 0; k <= DRAWS; k++) {
            double noise = k < DRAWS ? sqrt(m->noise * m->share[j]) * normal(&r) : 0.0;
            d->fix[k * ld + j] = m->y[j] - cblas_ddot(FEATURES, phi, 1, d->weight + k * FEATURES, 1) - noise;
        }
    }
    for (size_t k = 0; k <= DRAWS; k++)
        model_solve(m, d->fix + k * ld);
}

/* ret (DRAWS + 1): the drawn functions and the mean at u; k (ld) is work. */
static void draws_at(const struct draws *d, const double *u, double *k, double *ret)
{
    double phi[FEATURES];
    features(d, u, phi);
    cov_row(&d->model->cov, d->model->x, d->model->ld, d->model->n, u, k, NULL);
    cblas_dgemv(CblasRowMajor, CblasNoTrans, DRAWS + 1, FEATURES, 1.0, d->weight, FEATURES, phi, 1, 0.0, ret, 1);
    cblas_dgemv(CblasRowMajor, CblasNoTrans, DRAWS + 1, (int)d->model->n, 1.0, d->fix, (int)d->model->ld, k, 1, 1.0,
                ret, 1);
    for (size_t z = 0; z <= DRAWS; z++)
        ret[z] += model_trend(d->model, u, 1);
}

struct moments {
    double n, mean, ss;
};

static void moments_add(struct moments *m, double value)
{
    double delta = value - m->mean;
    m->n += 1.0;
    m->mean += delta / m->n;
    m->ss += delta * (value - m->mean);
}

static size_t n_levels(const struct space_param *p)
{
    double size = space_param_size(p);
    return size < LEVELS ? (size_t)size : LEVELS;
}

static double level(const struct space_param *p, size_t k, size_t n)
{
    double size = space_param_size(p);
    if (size <= (double)n)
        return space_param_to_unit(p, space_param_value(p, (double)k));
    double u = ((double)k + 0.5) / (double)n;
    return p->scale == SPACE_CATEGORICAL ? space_param_to_unit(p, space_param_from_unit(p, u)) : u;
}

/* First-order effects of one model: mean over the draws and their spread, for every parameter. */
static void effects(const struct space *space, struct model *m, struct rng rng, double *ret_mean, double *ret_sd)
{
    struct design design = {0};
    struct draws d;
    struct moments share[SPACE_MAX_DIM] = {0}, total[DRAWS + 1] = {0};
    double first[SPACE_MAX_DIM][DRAWS + 1] = {0}, sum[DRAWS + 1], value[DRAWS + 1];
    bool conditional = space_is_conditional(space);
    draws_init(&d, m, rng);
    MEM_LOCAL double *k = mem_array(m->ld, sizeof *k), *base = mem_array2(BASES, space->dim, sizeof *base);
    design_init(&design, space->dim, rng_split(rng, STREAM_BASES));
    for (size_t b = 0; b < BASES; b++) { /* each coordinate snapped; which are active is seen when one has moved */
        double *u = base + b * space->dim;
        design_sobol(&design, b, u);
        for (size_t i = 0; i < space->dim; i++)
            u[i] = space_param_to_unit(&space->params[i], space_param_from_unit(&space->params[i], u[i]));
    }
    for (size_t i = 0; i < space->dim; i++) {
        size_t n = n_levels(&space->params[i]);
        struct moments means[DRAWS + 1] = {0};
        for (size_t l = 0; l < n; l++) {
            memset(sum, 0, sizeof sum);
            for (size_t b = 0; b < BASES; b++) {
                double u[SPACE_MAX_DIM];
                memcpy(u, base + b * space->dim, space->dim * sizeof *u);
                u[i] = level(&space->params[i], l, n);
                if (conditional)
                    space_idle_unit(space, u);
                draws_at(&d, u, k, value);
                for (size_t z = 0; z <= DRAWS; z++) {
                    sum[z] += value[z] / BASES;
                    moments_add(&total[z], value[z]);
                }
            }
            for (size_t z = 0; z <= DRAWS; z++)
                moments_add(&means[z], sum[z]);
        }
        for (size_t z = 0; z <= DRAWS; z++)
            first[i][z] = means[z].ss / means[z].n;
    }
    for (size_t i = 0; i < space->dim; i++) {
        for (size_t z = 0; z < DRAWS; z++) {
            double all = total[z].ss / total[z].n;
            moments_add(&share[i], all > 0.0 ? fmin(first[i][z] / all, 1.0) : 0.0);
        }
        ret_mean[i] = share[i].mean;
        ret_sd[i] = sqrt(share[i].ss / (share[i].n - 1.0));
    }
    design_free(&design);
    draws_free(&d);
}

/* Share of each parameter in the distances that the model sees: 1 / length^2, made to sum to 1. */
static void sensitivity(const struct model *m, double *ret)
{
    double sum = 0.0;
    for (size_t i = 0; i < m->dim; i++)
        sum += m->cov.inv_sq[i];
    for (size_t i = 0; i < m->dim; i++)
        ret[i] = m->constant || !(sum > 0.0) ? 0.0 : m->cov.inv_sq[i] / sum;
}

static void importance(struct gp_insight *ret, struct pareto_search *s, uint64_t seed)
{
    double mean[SPACE_MAX_DIM] = {0}, sd[SPACE_MAX_DIM] = {0}, ard[SPACE_MAX_DIM];
    for (int k = 0; k < 2; k++) {
        struct model *m = k == 0 ? &s->score : &s->cost;
        memset(mean, 0, sizeof mean);
        memset(sd, 0, sizeof sd);
        if (!m->constant)
            effects(s->space, m, rng_split(rng_seed(seed), (uint64_t)k), mean, sd);
        sensitivity(m, ard);
        for (size_t i = 0; i < s->space->dim; i++)
            (k == 0 ? ret->score : ret->cost)[i] = (struct gp_importance){mean[i], sd[i], ard[i]};
    }
    if (s->score.constant)
        ret->score_note = "every score is the same";
    if (s->cost.constant)
        ret->cost_note = "every cost is the same";
}

/* ---- bounds ---- */

/* -1: at the lower bound, 1: at the upper, 0: between. */
static int edge_of(const struct space_param *p, double x)
{
    double size = space_param_size(p);
    if (isfinite(size))
        return x <= space_param_value(p, 0.0) ? -1 : x >= space_param_value(p, size - 1.0) ? 1 : 0;
    double u = space_param_to_unit(p, x);
    return u <= EDGE_UNIT ? -1 : u >= 1.0 - EDGE_UNIT ? 1 : 0;
}

static double beyond(const struct space_param *p, int side)
{
    double from = side < 0 ? p->min : p->max, to = side < 0 ? p->max : p->min, x = from;
    if (p->scale == SPACE_LOG || p->scale == SPACE_POW2)
        x = from * pow(from / to, EDGE_WIDEN);
    else if (p->scale == SPACE_LOGIT) {
        double a = log(from / (1.0 - from)), b = log(to / (1.0 - to));
        x = 1.0 / (1.0 + exp(-(a + EDGE_WIDEN * (a - b))));
    } else
        x = from + EDGE_WIDEN * (from - to);
    if (p->scale == SPACE_POW2)
        return exp2(side < 0 ? floor(log2(x)) : ceil(log2(x)));
    return p->is_int ? (side < 0 ? floor(x) : ceil(x)) : x;
}

static void edges(struct gp_insight *ret, const struct space *space, const struct gp_history *history)
{
    for (size_t i = 0; i < space->dim; i++) {
        const struct space_param *p = &space->params[i];
        size_t at[2] = {0}, n = 0;
        if (p->scale == SPACE_CATEGORICAL || space_param_size(p) <= 2.0)
            continue;
        for (size_t t = 0; t < history->n; t++)
            if (ret->beliefs[t].on_front && space_is_active(space, i, history->trials[t].x)) {
                int side = edge_of(p, history->trials[t].x[i]);
                n++;
                if (side != 0)
                    at[side > 0]++;
            }
        for (int side = 0; side < 2; side++)
            if (at[side] >= EDGE_MIN && (double)at[side] >= EDGE_SHARE * (double)n)
                ret->edges[i] = (struct gp_edge){side == 0 ? -1 : 1, at[side], n, beyond(p, side == 0 ? -1 : 1)};
    }
}

/* ---- public ---- */

/* whole: also edges and importance, which take most of the time. */
static void look(struct gp_insight *ret, const struct space *space, const struct gp_history *history, uint64_t seed,
                 bool whole)
{
    size_t n = history->n, n_done = 0;

    memset(ret, 0, sizeof *ret);
    ret->n = ret->recommended = n;
    for (size_t i = 0; i < n; i++)
        n_done += history->trials[i].state == GP_TRIAL_DONE || history->trials[i].state == GP_TRIAL_INFEASIBLE;
    if (n_done < DONE_MIN) {
        ret->note = "too few finished trials for an estimate";
        return;
    }
    openblas_set_num_threads(1);
    const struct gp_history trusted = trust_history(space, history);
    history = &trusted;
    MEM_LOCAL struct pareto_search *s = mem_alloc(sizeof *s);
    if (pareto_models_init(s, space, history, 0, false, NULL, NULL) == ST_OK &&
        beliefs_learn(s, history, NULL) == ST_OK) {
        beliefs_init(ret, s, history);
        if (whole) {
            edges(ret, space, history);
            importance(ret, s, seed);
        }
    } else {
        ret->note = "no model of these data";
    }
    pareto_search_free(s);
}

void gp_insight_init(struct gp_insight *ret, const struct space *space, const struct gp_history *history, uint64_t seed)
{
    look(ret, space, history, seed, true);
}

void gp_beliefs_init(struct gp_insight *ret, const struct space *space, const struct gp_history *history)
{
    look(ret, space, history, 0, false);
}

void gp_insight_free(struct gp_insight *insight)
{
    mem_free(insight->beliefs);
    mem_free(insight->point);
    memset(insight, 0, sizeof *insight);
}
