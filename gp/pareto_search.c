/* pareto_search.c - what a proposal of the model-based method knows: the history grouped, its front, a Gaussian process
 * for the score and one for ln cost, pending points at what the models expect there, and the improvement over front and
 * reference. */
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "gp/pareto_priv.h"

#define ROWS_MAX 1000 /* distinct points per model; the front and the newest are kept */
#define PENDING_MAX 64 /* pending points that are conditioned on, the newest */
#define FIT_EVALS 24 /* likelihood evaluations per model when it is small ... */
#define FIT_SMALL 96
#define FIT_EVALS_MORE 5 /* ... and these on top, on up to FIT_ROWS rows, when it is not */
#define FIT_ROWS 256
#define REF_MARGIN 0.1 /* of the range of costs seen, beyond the dearest */
#define FOCUS_EVERY 2 /* every so many trial numbers, only scores above the mean are worth something */

/* Groups on the front of finished runs' means, by rising cost, into s->front. */
static void find_front(struct pareto_search *s)
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
static enum status load_model(struct pareto_search *s, struct model *model, const struct mean_ss *values,
                              size_t n_pending, struct error *err)
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
static enum status believe_pending(struct pareto_search *s, size_t n_pending, struct error *err)
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
static enum status load_front(struct pareto_search *s, size_t n_pending, double max_cost, bool focused,
                              struct error *err)
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

enum status pareto_search_init(struct pareto_search *s, const struct suggester *suggester,
                               const struct gp_history *history, int64_t number, struct error *err)
{
    size_t n_pending = 0;

    s->space = &suggester->space;
    TRY(observations_init(&s->obs, s->space, history, err));
    s->front = mem_array(s->obs.n, sizeof *s->front);
    if (!s->front)
        return FAIL(err, ST_NOMEM, "no memory for a front of %zu points", s->obs.n);
    find_front(s);
    for (size_t g = 0; g < s->obs.n; g++)
        n_pending += s->obs.pending[g];
    n_pending = n_pending < PENDING_MAX ? n_pending : PENDING_MAX;
    TRY(load_model(s, &s->score, s->obs.score, n_pending, err));
    TRY(load_model(s, &s->cost, s->obs.cost, n_pending, err));
    TRY(believe_pending(s, n_pending, err));
    return load_front(s, n_pending, suggester->settings.max_cost, number % FOCUS_EVERY == 1, err);
}

void pareto_search_free(struct pareto_search *s)
{
    observations_free(&s->obs);
    model_free(&s->score);
    model_free(&s->cost);
    ehvi_free(&s->ehvi);
    mem_free(s->front);
}
