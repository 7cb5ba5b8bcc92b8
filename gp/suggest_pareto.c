/* suggest_pareto.c - the model-based method: a design, then the point of the largest expected hypervolume improvement
 * under two independent Gaussian processes, one for the score and one for ln cost. docs/controller.md has the formulas.
 *
 * The way of one proposal: group the history; fit and factor both models; add pending points at what the models expect
 * there; front and reference; candidates (Sobol, and steps from front points); polish the best few by gradient; snap,
 * try the other values of small discrete parameters; take the best that was not tried.
 * Invariants: (1) only snapped points are judged; (2) nothing is kept between calls; (3) f1 = ln cost and f2 = -score
 * in the models' standardised units, both minimised. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "gp/gp_priv.h"
#include "gp/model_priv.h"
#include "gp/observations_priv.h"

#define ROWS_MAX 1000 /* distinct points per model; the front and the newest are kept */
#define PENDING_MAX 64 /* pending points that are conditioned on, the newest */
#define FIT_EVALS 24 /* likelihood evaluations per model when it is small ... */
#define FIT_SMALL 96
#define FIT_EVALS_MORE 8 /* ... and these on top, on up to FIT_ROWS rows, when it is not */
#define FIT_ROWS 256
#define N_SOBOL 768
#define N_LOCAL 256
#define N_STARTS 4 /* candidates that are polished */
#define POLISH_EVALS 20
#define BLOCK 128 /* candidates predicted at a time */
#define ENUMERATE_MAX (N_SOBOL + N_LOCAL) /* finite spaces up to this are judged whole */
#define DISCRETE_MAX 16 /* values of a parameter that are all tried */
#define REF_MARGIN 0.1 /* of the range of costs seen, beyond the dearest */
#define FOCUS_EVERY 2 /* every so many trial numbers, only scores above the mean are worth something */

struct candidate {
    double value; /* ln EHVI + ln P(cost <= cap); -INFINITY: predicted too dear */
    double f1_mean, f1_sd; /* of ln cost, standardised */
    double f2_mean, f2_sd; /* of the score, standardised, higher is better */
    double u[SPACE_MAX_DIM]; /* snapped */
    double x[SPACE_MAX_DIM];
};

struct search {
    const struct space *space;
    const struct seen *seen;
    struct observations obs;
    struct model score, cost;
    struct ehvi ehvi;
    double cap; /* ln max_cost in the cost model's units; INFINITY: none */
    size_t n_front;
    size_t *front; /* groups on the front */
    double *cross, *unit; /* (BLOCK, ld), (BLOCK, dim) */
    double mean1[BLOCK], sd1[BLOCK], mean2[BLOCK], sd2[BLOCK];
    struct candidate *pool; /* (N_SOBOL + N_LOCAL) */
    size_t n_pool;
};

/* ---- what is known ---- */

/* Groups on the front of finished runs' means, by rising cost, into s->front. */
static void find_front(struct search *s)
{
    const struct observations *o = &s->obs;
    for (;;) { /* next: the cheapest that scores above the last one; O(n front) on at most a few thousand groups */
        size_t best = o->n;
        double floor_score = s->n_front ? o->done_score[s->front[s->n_front - 1]].mean : -INFINITY;
        for (size_t g = 0; g < o->n; g++) {
            if (o->done_score[g].n == 0.0 || !(o->done_score[g].mean > floor_score))
                continue;
            if (best == o->n || o->cost[g].mean < o->cost[best].mean ||
                (o->cost[g].mean == o->cost[best].mean && o->done_score[g].mean > o->done_score[best].mean))
                best = g;
        }
        if (best == o->n)
            return;
        s->front[s->n_front++] = best;
    }
}

/* The rows of one model out of all groups that have values; the front's and then the newest when there are too many. */
static enum status load_model(struct search *s, struct model *model, const struct mean_ss *values, size_t n_pending,
                              struct error *err)
{
    const struct observations *o = &s->obs;
    size_t dim = o->dim, n_known = 0, n = 0;
    for (size_t g = 0; g < o->n; g++)
        n_known += values[g].n > 0.0;
    bool *keep = mem_array(o->n, sizeof *keep);
    double *u = mem_array2(n_known, dim, sizeof *u), *rows = mem_array2(n_known, 3, sizeof *rows);
    enum status rc = ST_OK;
    if (!keep || !u || !rows) {
        rc = FAIL(err, ST_NOMEM, "no memory for %zu observations", n_known);
        goto done;
    }
    size_t room = ROWS_MAX;
    for (size_t i = 0; i < s->n_front && room > 0; i++)
        if (values[s->front[i]].n > 0.0) {
            keep[s->front[i]] = true;
            room--;
        }
    for (size_t g = o->n; g-- > 0 && room > 0;)
        if (values[g].n > 0.0 && !keep[g]) {
            keep[g] = true;
            room--;
        }
    double *mean = rows, *ss = rows + n_known, *repeats = rows + 2 * n_known;
    for (size_t g = 0; g < o->n; g++)
        if (keep[g]) {
            memcpy(u + n * dim, o->u + g * dim, dim * sizeof *u);
            mean[n] = values[g].mean;
            ss[n] = values[g].ss;
            repeats[n++] = values[g].n;
        }
    rc = model_init(model, s->space, n + n_pending, err);
    if (rc != ST_OK)
        goto done;
    model_set_data(model, &(struct model_data){.n = n, .u = u, .mean = mean, .ss = ss, .repeats = repeats});
    /* L-BFGS does its long way on part of the rows, a fraction of the cube of the cost, and the end on (nearly) all */
    model_fit(model, FIT_EVALS, FIT_SMALL);
    if (n > FIT_SMALL)
        model_fit(model, FIT_EVALS_MORE, FIT_ROWS);
    rc = model_factor(model, err);
done:
    mem_free(keep);
    mem_free(u);
    mem_free(rows);
    return rc;
}

/* Pending points enter both models at their expected outputs, as the models' last rows. */
static enum status believe_pending(struct search *s, size_t n_pending, struct error *err)
{
    const struct observations *o = &s->obs;
    size_t dim = o->dim, n = 0;
    if (n_pending == 0)
        return ST_OK;
    double *u = mem_array2(n_pending, dim, sizeof *u);
    if (!u)
        return FAIL(err, ST_NOMEM, "no memory for %zu pending trials", n_pending);
    for (size_t g = o->n; g-- > 0 && n < n_pending;)
        if (o->pending[g])
            memcpy(u + n++ * dim, o->u + g * dim, dim * sizeof *u);
    enum status rc = model_believe(&s->score, u, n, err);
    if (rc == ST_OK)
        rc = model_believe(&s->cost, u, n, err);
    mem_free(u);
    return rc;
}

/* Front (with the believed points) and reference in standardised units. The reference is the dearest cost seen and a
 * margin, or the cap when there is one, and the worst score seen; when focused, the mean score, so that not every call
 * goes to the cheap end where hardly anything is learnt. */
static enum status load_front(struct search *s, size_t n_pending, double max_cost, bool focused, struct error *err)
{
    const struct observations *o = &s->obs;
    double lo1 = INFINITY, hi1 = -INFINITY, hi2 = -INFINITY, sum2 = 0.0;
    size_t n = 0;
    double *f = mem_array2(o->n + n_pending, 2, sizeof *f);
    if (!f)
        return FAIL(err, ST_NOMEM, "no memory for a front of %zu points", o->n);
    double *f1 = f, *f2 = f + o->n + n_pending;
    for (size_t g = 0; g < o->n; g++) {
        if (o->done_score[g].n == 0.0)
            continue;
        f1[n] = (o->cost[g].mean - s->cost.y_mean) / s->cost.y_sd;
        f2[n] = -(o->score[g].mean - s->score.y_mean) / s->score.y_sd;
        lo1 = fmin(lo1, f1[n]);
        hi1 = fmax(hi1, f1[n]);
        hi2 = fmax(hi2, f2[n]);
        sum2 += f2[n];
        n++;
    }
    double ref2 = focused ? sum2 / (double)n : hi2;
    for (size_t p = 0; p < n_pending; p++) {
        f1[n] = s->cost.y[s->cost.n - n_pending + p];
        f2[n++] = -s->score.y[s->score.n - n_pending + p];
    }
    double ref1 = hi1 + REF_MARGIN * fmax(hi1 - lo1, 1.0);
    s->cap = max_cost > 0.0 ? (log(max_cost) - s->cost.y_mean) / s->cost.y_sd : INFINITY;
    if (isfinite(s->cap))
        ref1 = s->cap;
    enum status rc = ehvi_init(&s->ehvi, f1, f2, n, ref1, ref2, err);
    mem_free(f);
    return rc;
}

/* ---- judging ---- */

static double cap_log_probability(const struct search *s, double m1, double s1, double *gradient)
{
    if (!isfinite(s->cap))
        return 0.0;
    double z = (s->cap - m1) / s1, log_cdf = normal_log_cdf(z);
    if (gradient) {
        double ratio = exp(-0.5 * z * z - 0.91893853320467274178 - log_cdf) / s1;
        gradient[0] -= ratio;
        gradient[1] -= z * ratio;
    }
    return log_cdf;
}

/* Snaps and judges c[0 .. n), whose u are set. */
static void judge(struct search *s, struct candidate *c, size_t n)
{
    size_t dim = s->space->dim;
    for (size_t at = 0; at < n; at += BLOCK) {
        size_t m = n - at < BLOCK ? n - at : BLOCK;
        for (size_t p = 0; p < m; p++) {
            space_from_unit(s->space, c[at + p].u, c[at + p].x);
            space_to_unit(s->space, c[at + p].x, c[at + p].u);
            memcpy(s->unit + p * dim, c[at + p].u, dim * sizeof *s->unit);
        }
        model_predict(&s->cost, s->unit, m, s->cross, s->mean1, s->sd1);
        model_predict(&s->score, s->unit, m, s->cross, s->mean2, s->sd2);
        for (size_t p = 0; p < m; p++) {
            struct candidate *k = &c[at + p];
            k->f1_mean = s->mean1[p];
            k->f1_sd = s->sd1[p];
            k->f2_mean = s->mean2[p];
            k->f2_sd = s->sd2[p];
            k->value = k->f1_mean > s->cap ? -INFINITY
                                           : ehvi_log(&s->ehvi, k->f1_mean, k->f1_sd, -k->f2_mean, k->f2_sd, NULL) +
                                                 cap_log_probability(s, k->f1_mean, k->f1_sd, NULL);
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
    struct search *s = ctx;
    double m1, s1, m2, s2, g[4];
    double dm1[SPACE_MAX_DIM], ds1[SPACE_MAX_DIM], dm2[SPACE_MAX_DIM], ds2[SPACE_MAX_DIM];
    model_predict_gradient(&s->cost, u, &m1, &s1, dm1, ds1);
    model_predict_gradient(&s->score, u, &m2, &s2, dm2, ds2);
    double value = ehvi_log(&s->ehvi, m1, s1, -m2, s2, g);
    value += cap_log_probability(s, m1, s1, g);
    for (size_t i = 0; i < s->space->dim; i++)
        ret_gradient[i] = -(g[0] * dm1[i] + g[1] * ds1[i] - g[2] * dm2[i] + g[3] * ds2[i]);
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
static void step_from(const struct search *s, size_t group, int turn, struct rng *r, double *ret_u)
{
    size_t dim = s->space->dim;
    static const double widths[] = {0.2, 0.05, 0.1};
    double width = widths[turn % 3], share = fmin(1.0, 3.0 / (double)dim);
    size_t always = rng_below(r, (uint32_t)dim);
    memcpy(ret_u, s->obs.u + group * dim, dim * sizeof *ret_u);
    for (size_t i = 0; i < dim; i++) {
        double chance = rng_f64(r), move = normal(r), fresh = rng_f64(r);
        if (i != always && chance >= share)
            continue;
        ret_u[i] = s->space->params[i].scale == SPACE_CATEGORICAL ? fresh : reflect(ret_u[i] + width * move);
    }
}

static void enumerate(struct search *s, size_t size)
{
    for (size_t k = 0; k < size; k++) {
        size_t rest = k;
        for (size_t i = 0; i < s->space->dim; i++) {
            const struct space_param *p = &s->space->params[i];
            size_t n = (size_t)space_param_size(p);
            s->pool[k].u[i] = space_param_to_unit(p, space_param_value(p, (double)(rest % n)));
            rest /= n;
        }
    }
    s->n_pool = size;
}

static enum status fill_pool(struct search *s, struct rng rng, struct error *err)
{
    double size = space_size(s->space);
    if (size <= ENUMERATE_MAX) {
        enumerate(s, (size_t)size);
        return ST_OK;
    }
    struct design design;
    TRY(design_init(&design, s->space->dim, rng_split(rng, SUGGEST_STREAM_CANDIDATES), err));
    for (size_t k = 0; k < N_SOBOL; k++)
        design_sobol(&design, k, s->pool[k].u);
    design_free(&design);
    s->n_pool = N_SOBOL;
    struct rng local = rng_split(rng, SUGGEST_STREAM_LOCAL);
    for (size_t k = 0; k < N_LOCAL; k++)
        step_from(s, s->front[k % s->n_front], (int)(k / s->n_front), &local, s->pool[s->n_pool++].u);
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
static size_t choose_starts(const struct search *s, const struct candidate **ret_starts)
{
    size_t n = 0;
    while (n < N_STARTS) {
        const struct candidate *best = NULL;
        for (size_t k = 0; k < s->n_pool; k++) {
            const struct candidate *c = &s->pool[k];
            bool taken = !isfinite(c->value) || seen_has(s->seen, c->x) || (best && !better(c, best));
            for (size_t i = 0; i < n && !taken; i++)
                taken = near(s->space, c->u, ret_starts[i]->u);
            if (!taken)
                best = c;
        }
        if (!best)
            break;
        ret_starts[n++] = best;
    }
    return n;
}

static void keep_best(const struct search *s, const struct candidate *c, size_t n, struct candidate *best, bool *found)
{
    for (size_t k = 0; k < n; k++)
        if (!seen_has(s->seen, c[k].x) && (!*found || better(&c[k], best))) {
            *best = c[k];
            *found = true;
        }
}

/* From a start: uphill by gradient, snapped, then one pass over the small discrete parameters. */
static void polish(struct search *s, const struct candidate *start, struct candidate *best, bool *found)
{
    double lo[SPACE_MAX_DIM], hi[SPACE_MAX_DIM];
    struct candidate now = *start, others[DISCRETE_MAX];
    for (size_t i = 0; i < s->space->dim; i++) {
        bool fixed = s->space->params[i].scale == SPACE_CATEGORICAL;
        lo[i] = fixed ? now.u[i] : 0.0;
        hi[i] = fixed ? now.u[i] : 1.0;
    }
    optimise_box(polish_objective, s, s->space->dim, lo, hi, POLISH_EVALS, now.u);
    judge(s, &now, 1);
    if (seen_has(s->seen, now.x) || better(start, &now))
        now = *start;
    for (size_t i = 0; i < s->space->dim; i++) {
        const struct space_param *p = &s->space->params[i];
        double size = space_param_size(p);
        if (!(size <= DISCRETE_MAX))
            continue;
        for (size_t k = 0; k < (size_t)size; k++) {
            others[k] = now;
            others[k].u[i] = space_param_to_unit(p, space_param_value(p, (double)k));
        }
        judge(s, others, (size_t)size);
        bool have = true;
        keep_best(s, others, (size_t)size, &now, &have);
    }
    keep_best(s, &now, 1, best, found);
}

/* ---- the method ---- */

static bool in_design_phase(const struct suggester *s, const struct gp_history *history)
{
    size_t n_alive = 0, n_done = 0, need = s->settings.n_init / 2;
    for (size_t i = 0; i < history->n; i++) {
        n_alive += history->trials[i].state != GP_TRIAL_FAILED;
        n_done += history->trials[i].state == GP_TRIAL_DONE;
    }
    return n_alive < s->settings.n_init || n_done < (need < 2 ? 2 : need);
}

static enum status search_init(struct search *s, const struct suggester *suggester, const struct gp_history *history,
                               int64_t number, struct error *err)
{
    size_t n_pending = 0;
    TRY(observations_init(&s->obs, s->space, history, err));
    s->front = mem_array(s->obs.n, sizeof *s->front);
    s->pool = mem_array(N_SOBOL + N_LOCAL, sizeof *s->pool);
    s->unit = mem_array2(BLOCK, s->space->dim, sizeof *s->unit);
    if (!s->front || !s->pool || !s->unit)
        return FAIL(err, ST_NOMEM, "no memory for %d candidates", N_SOBOL + N_LOCAL);
    find_front(s);
    for (size_t g = 0; g < s->obs.n; g++)
        n_pending += s->obs.pending[g];
    n_pending = n_pending < PENDING_MAX ? n_pending : PENDING_MAX;
    TRY(load_model(s, &s->score, s->obs.score, n_pending, err));
    TRY(load_model(s, &s->cost, s->obs.cost, n_pending, err));
    TRY(believe_pending(s, n_pending, err));
    size_t ld = s->score.ld > s->cost.ld ? s->score.ld : s->cost.ld;
    s->cross = mem_array2(BLOCK, ld, sizeof *s->cross);
    if (!s->cross)
        return FAIL(err, ST_NOMEM, "no memory to predict at %d candidates", BLOCK);
    return load_front(s, n_pending, suggester->settings.max_cost, number % FOCUS_EVERY == 1, err);
}

static void search_free(struct search *s)
{
    if (!s)
        return;
    observations_free(&s->obs);
    model_free(&s->score);
    model_free(&s->cost);
    ehvi_free(&s->ehvi);
    mem_free(s->front);
    mem_free(s->pool);
    mem_free(s->unit);
    mem_free(s->cross);
    mem_free(s);
}

static void report(const struct search *s, const struct candidate *c, struct suggestion *ret)
{
    memcpy(ret->x, c->x, s->space->dim * sizeof *ret->x);
    strcpy(ret->origin, "ehvi");
    ret->has_prediction = true;
    ret->score_mean = s->score.y_mean + s->score.y_sd * c->f2_mean;
    ret->score_sd = s->score.y_sd * c->f2_sd;
    ret->log_cost_mean = s->cost.y_mean + s->cost.y_sd * c->f1_mean;
    ret->log_cost_sd = s->cost.y_sd * c->f1_sd;
}

static enum status pareto_next(struct suggester *suggester, const struct gp_history *history, const struct seen *seen,
                               int64_t number, struct suggestion *ret, struct error *err)
{
    if (in_design_phase(suggester, history)) {
        strcpy(ret->origin, "sobol");
        suggest_design_sobol(suggester, seen, number, ret->x);
        return ST_OK;
    }
    struct search *s = mem_alloc(sizeof *s);
    if (!s)
        return FAIL(err, ST_NOMEM, "no memory for a search over %zu parameters", suggester->space.dim);
    s->space = &suggester->space;
    s->seen = seen;
    const struct candidate *starts[N_STARTS];
    struct candidate best;
    bool found = false;
    enum status rc = search_init(s, suggester, history, number, err);
    if (rc == ST_OK)
        rc = fill_pool(s, rng_split(suggester->root, (uint64_t)number), err);
    if (rc == ST_NUMERIC) { /* no model of these data: go on with the design */
        error_clear(err);
        rc = ST_OK;
        goto design;
    }
    if (rc != ST_OK)
        goto done;
    judge(s, s->pool, s->n_pool);
    size_t n_starts = choose_starts(s, starts);
    for (size_t i = 0; i < n_starts; i++)
        polish(s, starts[i], &best, &found);
    if (!found) /* all too dear: the cheapest new one */
        keep_best(s, s->pool, s->n_pool, &best, &found);
    if (found) {
        report(s, &best, ret);
        goto done;
    }
design: /* also when every candidate was tried before */
    strcpy(ret->origin, "sobol");
    suggest_design_sobol(suggester, seen, number, ret->x);
done:
    search_free(s);
    return rc;
}

const struct suggest_method_ops suggest_pareto_ops = {"pareto", pareto_next};
