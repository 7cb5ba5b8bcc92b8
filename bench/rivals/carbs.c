/* carbs.c - the method `carbs`: "Cost Aware Pareto Region Bayesian Search" (Fetterman et al. 2023) as publicly
 * described, written from that, to be measured against. A local search: candidates are Gaussian steps from the Pareto
 * front, judged by expected improvement over the front at their own cost, times the density of such a step, times the
 * probability of not failing.
 * Where the description leaves room:
 * - centre and scale are the user's there; here the centre is the parameters' start values or the middle, and the scale
 *   makes each range [-1, 1], bounded; the radius is 0.3;
 * - 1000 Adam steps of 1e-4 are 25 of 4e-3: the same travel, at a fortieth of the time;
 * - quantiles to normals: knots at equal shares, linear between them, the outer ones at shares 1/2n and 1 - 1/2n;
 * - the front's curve is a Gaussian process with a squared exponential of fixed length 0.3, noise 0.01, round the mean
 *   of the front's scores;
 * - the lowest bucket's front member is its group of the highest mean;
 * - P(ok) = Phi(-m / v) with the variance v, as there (a standard deviation was meant, it is said);
 * - a repeat is due when a fifth of the successes exceeds the repeats made or under way.
 * Categories are walked like whole numbers. Invariant: nothing is kept between calls. */
#include "bench/rivals/rivals.h"

#include "base/mem.h"
#include "base/text/num.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define N_START 4 /* successes before there are models */
#define RADIUS 0.3
#define RESAMPLE_EVERY 5
#define ADAM_STEPS 25
#define ADAM_SIZE 4e-3
#define PER_DIM 100
#define MAX_TRIES 64 /* draws for one candidate inside the bounds, per candidate */
#define BLOCK 64
#define CURVE_LENGTH 0.3
#define CURVE_NOISE 0.01
#define MARGIN 1.0 /* added to the value to beat */

struct group { /* equal inputs */
    double v[SPACE_MAX_DIM];
    const double *x;
    double score, cost, max_score; /* means of raw score and of ln cost; the best single score */
    size_t n;
    double z, c; /* score by quantiles, ln cost in [-1, 1] */
};

struct carbs {
    const struct space *space;
    struct group *groups; /* by rising cost */
    size_t n;
    size_t *front, n_front; /* indices of groups, by rising cost */
    double *failed, *pending; /* (n_failed, dim), (n_pending, dim) in the box */
    size_t n_failed, n_pending, n_success, n_repeats;
    double log_cost_min, log_cost_span;
    double curve_mean, *curve_alpha; /* (n_front) */
    struct rng rng;
};

static int by_cost(const void *a, const void *b)
{
    const struct group *x = a, *y = b;
    if (x->cost != y->cost)
        return x->cost < y->cost ? -1 : 1;
    return (x->score < y->score) - (x->score > y->score);
}

/* ---- what is known ---- */

static size_t find_group(const struct carbs *c, const double *v)
{
    size_t at = 0;
    while (at < c->n && memcmp(c->groups[at].v, v, c->space->dim * sizeof *v) != 0)
        at++;
    return at;
}

static void collect(struct carbs *c, const struct gp_history *history)
{
    size_t dim = c->space->dim;
    c->groups = mem_array(history->n + 1, sizeof *c->groups);
    c->front = mem_array(history->n + 1, sizeof *c->front);
    c->failed = mem_array2(history->n + 1, dim, sizeof *c->failed);
    c->pending = mem_array2(history->n + 1, dim, sizeof *c->pending);
    c->curve_alpha = mem_array(history->n + 1, sizeof *c->curve_alpha);
    for (size_t i = 0; i < history->n; i++) {
        const struct gp_trial *t = &history->trials[i];
        double v[SPACE_MAX_DIM];
        rival_to_box(c->space, t->x, v);
        if (t->state == GP_TRIAL_PENDING) {
            memcpy(c->pending + c->n_pending++ * dim, v, dim * sizeof *v);
            continue;
        }
        if (t->state == GP_TRIAL_FAILED) {
            memcpy(c->failed + c->n_failed++ * dim, v, dim * sizeof *v);
            continue;
        }
        struct group *g = &c->groups[find_group(c, v)];
        if (g->n == 0) {
            c->n++;
            memcpy(g->v, v, dim * sizeof *v);
            g->x = t->x;
            g->max_score = -INFINITY;
        }
        g->n++;
        g->score += (t->score - g->score) / (double)g->n;
        g->cost += (log(t->cost) - g->cost) / (double)g->n;
        g->max_score = fmax(g->max_score, t->score);
        c->n_success++;
    }
    for (size_t i = 0; i < c->n_pending; i++)
        c->n_repeats += find_group(c, c->pending + i * dim) < c->n;
    c->n_repeats += c->n_success - c->n;
    qsort(c->groups, c->n, sizeof *c->groups, by_cost);
}

/* The conservative front: one bucket below the 20 % quantile of all costs, then each group that beats the last member,
 * a single run its best, a repeated group its mean. */
static void find_front(struct carbs *c)
{
    size_t n_floor = 0, best = 0, seen = 0;
    while (n_floor < c->n && (double)seen < 0.2 * (double)c->n_success)
        seen += c->groups[n_floor++].n;
    for (size_t i = 1; i < n_floor; i++)
        if (c->groups[i].score > c->groups[best].score)
            best = i;
    c->front[c->n_front++] = best;
    for (size_t i = n_floor; i < c->n; i++) {
        const struct group *g = &c->groups[i], *last = &c->groups[c->front[c->n_front - 1]];
        if (g->score > (g->n > 1 ? last->score : last->max_score))
            c->front[c->n_front++] = i;
    }
}

static double normal_quantile(double p) /* bisection of the distribution function: few calls, no table */
{
    double lo = -9.0, hi = 9.0;
    for (int i = 0; i < 60; i++) {
        double mid = 0.5 * (lo + hi);
        if (0.5 * erfc(-mid / sqrt(2.0)) < p)
            lo = mid;
        else
            hi = mid;
    }
    return 0.5 * (lo + hi);
}

/* Scores by their quantiles, ln costs to [-1, 1]. */
static void scale(struct carbs *c)
{
    size_t n = c->n, knots = (size_t)sqrt((double)n);
    double *sorted = mem_array(n, sizeof *sorted);
    if (knots < 2)
        knots = 2;
    for (size_t i = 0; i < n; i++)
        sorted[i] = c->groups[i].score;
    num_sort(sorted, n);
    double *knot = mem_array(knots, sizeof *knot), *z = mem_array(knots, sizeof *z);
    for (size_t k = 0; k < knots; k++) {
        double share = (double)k / (double)(knots - 1), at = share * (double)(n - 1), low = floor(at);
        size_t i = (size_t)low, j = i + 1 < n ? i + 1 : i;
        knot[k] = sorted[i] + (at - low) * (sorted[j] - sorted[i]);
        z[k] = normal_quantile(fmin(fmax(share, 0.5 / (double)n), 1.0 - 0.5 / (double)n));
    }
    for (size_t i = 0; i < n; i++) {
        size_t k = 0;
        while (k + 2 < knots && c->groups[i].score > knot[k + 1])
            k++;
        double span = knot[k + 1] - knot[k];
        c->groups[i].z = span > 0.0 ? z[k] + (z[k + 1] - z[k]) * ((c->groups[i].score - knot[k]) / span) : 0.0;
    }
    mem_free(knot);
    mem_free(z);
    mem_free(sorted);
    c->log_cost_min = c->groups[0].cost;
    c->log_cost_span = fmax(c->groups[n - 1].cost - c->groups[0].cost, 1e-9);
    for (size_t i = 0; i < n; i++)
        c->groups[i].c = 2.0 * (c->groups[i].cost - c->log_cost_min) / c->log_cost_span - 1.0;
}

/* ---- the front's curve: score by ln cost ---- */

static double curve_kernel(double a, double b)
{
    double d = (a - b) / CURVE_LENGTH;
    return exp(-0.5 * d * d);
}

static double curve(const struct carbs *c, double cost)
{
    double sum = c->curve_mean;
    for (size_t i = 0; i < c->n_front; i++)
        sum += c->curve_alpha[i] * curve_kernel(cost, c->groups[c->front[i]].c);
    return sum;
}

/* (K + noise) alpha = z - mean, by Cholesky; a front has few points. */
static void fit_curve(struct carbs *c)
{
    size_t n = c->n_front;
    double *l = mem_array2(n, n, sizeof *l), *a = c->curve_alpha;
    c->curve_mean = 0.0;
    for (size_t i = 0; i < n; i++)
        c->curve_mean += c->groups[c->front[i]].z / (double)n;
    for (size_t i = 0; i < n; i++) {
        a[i] = c->groups[c->front[i]].z - c->curve_mean;
        for (size_t j = 0; j <= i; j++) {
            double sum = curve_kernel(c->groups[c->front[i]].c, c->groups[c->front[j]].c) + (i == j) * CURVE_NOISE;
            for (size_t k = 0; k < j; k++)
                sum -= l[i * n + k] * l[j * n + k];
            l[i * n + j] = i == j ? sqrt(sum) : sum / l[j * n + j];
        }
    }
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < i; k++)
            a[i] -= l[i * n + k] * a[k];
        a[i] /= l[i * n + i];
    }
    for (size_t i = n; i-- > 0;) {
        for (size_t k = i + 1; k < n; k++)
            a[i] -= l[k * n + i] * a[k];
        a[i] /= l[i * n + i];
    }
    mem_free(l);
}

/* ---- models ---- */

struct models {
    struct rival_gp score, cost, fail;
    double *work; /* (BLOCK, most rows) */
};

static enum status fit(struct carbs *c, struct models *m, struct error *err)
{
    size_t dim = c->space->dim, n = c->n + c->n_pending, n_fail = c->n + c->n_failed;
    m->work = mem_array2(BLOCK, n > n_fail ? n : n_fail, sizeof *m->work);
    rival_gp_init(&m->score, dim, n, RADIUS);
    rival_gp_init(&m->cost, dim, c->n, RADIUS);
    for (size_t i = 0; i < c->n; i++) {
        rival_gp_add(&m->score, c->groups[i].v, c->groups[i].z);
        rival_gp_add(&m->cost, c->groups[i].v, c->groups[i].c);
    }
    rival_gp_fit(&m->score, ADAM_STEPS, ADAM_SIZE);
    rival_gp_fit(&m->cost, ADAM_STEPS, ADAM_SIZE);
    TRY(rival_gp_factor(&m->score, err));
    TRY(rival_gp_factor(&m->cost, err));
    for (size_t i = 0; i < c->n_pending; i++) { /* a draw of the score at each trial under way, as if it were data */
        double mean, sd;
        rival_gp_predict(&m->score, c->pending + i * dim, 1, m->work, &mean, &sd);
        rival_gp_add(&m->score, c->pending + i * dim, mean + sd * rival_normal(&c->rng));
        TRY(rival_gp_factor(&m->score, err));
    }
    if (c->n_failed == 0)
        return ST_OK;
    rival_gp_init(&m->fail, dim, n_fail, RADIUS);
    for (size_t i = 0; i < c->n; i++)
        rival_gp_add(&m->fail, c->groups[i].v, -1.0);
    for (size_t i = 0; i < c->n_failed; i++)
        rival_gp_add(&m->fail, c->failed + i * dim, 1.0);
    rival_gp_fit(&m->fail, ADAM_STEPS, ADAM_SIZE);
    return rival_gp_factor(&m->fail, err);
}

static void models_free(struct models *m)
{
    rival_gp_free(&m->score);
    rival_gp_free(&m->cost);
    rival_gp_free(&m->fail);
    mem_free(m->work);
}

/* ---- candidates ---- */

/* A Gaussian step from v, snapped; false when no draw fell inside the bounds. */
static bool step_from(struct carbs *c, const double *v, double *ret_v, double *ret_x)
{
    size_t dim = c->space->dim;
    for (int tries = 0; tries < MAX_TRIES; tries++) {
        bool inside = true;
        for (size_t i = 0; i < dim && inside; i++) {
            ret_v[i] = v[i] + RADIUS * rival_normal(&c->rng);
            inside = fabs(ret_v[i]) <= 1.0;
        }
        if (!inside)
            continue;
        rival_from_box(c->space, ret_v, ret_x);
        rival_to_box(c->space, ret_x, ret_v);
        return true;
    }
    return false;
}

static double improvement(double mean, double best, double sd)
{
    double z = (mean - best - MARGIN) / sd;
    return sd * (exp(-0.5 * z * z) / sqrt(2.0 * 3.14159265358979324) + z * 0.5 * erfc(-z / sqrt(2.0)));
}

static double density(const struct carbs *c, const double *v)
{
    double nearest = INFINITY;
    for (size_t f = 0; f < c->n_front; f++) {
        const double *at = c->groups[c->front[f]].v;
        double sq = 0.0;
        for (size_t i = 0; i < c->space->dim; i++)
            sq += (v[i] - at[i]) * (v[i] - at[i]);
        nearest = fmin(nearest, sq);
    }
    return exp(-0.5 * nearest / (RADIUS * RADIUS));
}

struct block {
    double v[BLOCK * SPACE_MAX_DIM], x[BLOCK * SPACE_MAX_DIM];
    double score[BLOCK], score_sd[BLOCK], cost[BLOCK], fail[BLOCK], fail_sd[BLOCK];
};

/* ln of what is maximised: the product underflows where the improvement is far away. */
static double judge(const struct carbs *c, const struct block *b, size_t i, double aim)
{
    double best = fmax(curve(c, b->cost[i]), aim), p_ok = 1.0;
    double ei = improvement(b->score[i], best, b->score_sd[i]);
    if (c->n_failed > 0)
        p_ok = 0.5 * erfc(b->fail[i] / (b->fail_sd[i] * b->fail_sd[i]) / sqrt(2.0));
    return log(fmax(ei, DBL_MIN)) + log(fmax(density(c, b->v + i * c->space->dim), DBL_MIN)) + log(fmax(p_ok, DBL_MIN));
}

static bool best_candidate(struct carbs *c, struct models *m, double cap, const struct seen *seen, struct block *b,
                           double *ret_x)
{
    size_t dim = c->space->dim, total = PER_DIM * dim;
    double lo = c->groups[c->front[0]].c, hi = c->groups[c->front[c->n_front - 1]].c, best = -INFINITY;
    double aim = curve(c, lo + rng_f64(&c->rng) * (hi - lo));
    bool found = false;
    for (size_t done = 0; done < total; done += BLOCK) {
        size_t n = 0;
        for (size_t i = 0; i < BLOCK; i++) {
            size_t f = rng_below(&c->rng, (uint32_t)c->n_front);
            if (step_from(c, c->groups[c->front[f]].v, b->v + n * dim, b->x + n * dim) &&
                !seen_has(seen, b->x + n * dim))
                n++;
        }
        if (n == 0)
            continue;
        rival_gp_predict(&m->score, b->v, n, m->work, b->score, b->score_sd);
        rival_gp_predict(&m->cost, b->v, n, m->work, b->cost, NULL);
        if (c->n_failed > 0)
            rival_gp_predict(&m->fail, b->v, n, m->work, b->fail, b->fail_sd);
        for (size_t i = 0; i < n; i++) {
            double value = b->cost[i] < cap ? judge(c, b, i, aim) : -INFINITY;
            if (!(value > best))
                continue;
            best = value;
            found = true;
            memcpy(ret_x, b->x + i * dim, dim * sizeof *ret_x);
        }
    }
    return found;
}

/* ---- the method ---- */

static bool start_point(struct carbs *c, const struct seen *seen, double *ret_x)
{
    double centre[SPACE_MAX_DIM], v[SPACE_MAX_DIM];
    for (size_t i = 0; i < c->space->dim; i++) {
        const struct space_param *p = &c->space->params[i];
        centre[i] = p->has_init ? 2.0 * space_param_to_unit(p, p->init) - 1.0 : 0.0;
    }
    for (int tries = 0; tries < MAX_TRIES; tries++)
        if (step_from(c, centre, v, ret_x) && !seen_has(seen, ret_x))
            return true;
    return false;
}

/* The front member of the fewest runs, the cheapest of equals. */
static const struct group *to_repeat(const struct carbs *c)
{
    const struct group *least = &c->groups[c->front[0]];
    for (size_t i = 1; i < c->n_front; i++)
        if (c->groups[c->front[i]].n < least->n)
            least = &c->groups[c->front[i]];
    return least;
}

static enum status search(struct suggester *s, struct carbs *c, const struct seen *seen, bool *found,
                          struct suggestion *ret, struct error *err)
{
    struct models m = {0};
    double cap = INFINITY;
    find_front(c);
    if (c->n_repeats < c->n_success / RESAMPLE_EVERY) {
        memcpy(ret->x, to_repeat(c)->x, s->space.dim * sizeof *ret->x);
        space_snap(&s->space, ret->x);
        strcpy(ret->origin, "repeat");
        *found = true;
        return ST_OK;
    }
    struct block *block = mem_alloc(sizeof *block);
    scale(c);
    fit_curve(c);
    if (s->settings.max_cost > 0.0)
        cap = 2.0 * (log(s->settings.max_cost) - c->log_cost_min) / c->log_cost_span - 1.0;
    enum status rc = fit(c, &m, err);
    if (rc == ST_OK)
        *found = best_candidate(c, &m, cap, seen, block, ret->x);
    models_free(&m);
    mem_free(block);
    return rc;
}

enum status carbs_next(struct suggester *s, const struct gp_history *history, const struct seen *seen, int64_t number,
                       struct suggestion *ret, struct error *err)
{
    struct carbs c = {.space = &s->space,
                      .rng = rng_split(rng_split(s->root, (uint64_t)number), SUGGEST_STREAM_CANDIDATES)};
    bool found = false;
    enum status rc = ST_OK;
    collect(&c, history);
    strcpy(ret->origin, "carbs");
    if (c.n_success >= N_START) {
        rc = search(s, &c, seen, &found, ret, err);
        if (rc == ST_NUMERIC) {
            error_clear(err);
            rc = ST_OK;
        }
    } else {
        found = start_point(&c, seen, ret->x);
    }
    if (rc == ST_OK && !found) { /* no model, or every candidate was tried */
        strcpy(ret->origin, "sobol");
        rc = suggest_design_sobol(s, seen, number, ret->x, err);
    }
    mem_free(c.groups);
    mem_free(c.front);
    mem_free(c.failed);
    mem_free(c.pending);
    mem_free(c.curve_alpha);
    return rc;
}
