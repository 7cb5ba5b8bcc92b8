/* front.c - the Pareto front of (cost, score), its hypervolume, reference and knee.
 * Cost lower and score higher is better; only finished (DONE) trials count. Areas are in (ln cost, score).
 * Everything is one sort by (cost, -score, number) and one walk: O(n log n). */
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "gp/gp_priv.h"

#define REF_MARGIN 0.1 /* of their range, added on the bad side */

struct front_point {
    double cost, score;
    size_t index;
};

static int compare_points(const void *va, const void *vb)
{
    const struct front_point *a = va, *b = vb;
    if (a->cost != b->cost)
        return a->cost < b->cost ? -1 : 1;
    if (a->score != b->score)
        return a->score > b->score ? -1 : 1;
    return a->index < b->index ? -1 : a->index > b->index;
}

/* The front by rising cost (and rising score) at the head of an owned array; NULL: out of memory. */
static struct front_point *front_points(const struct gp_history *history, size_t *ret_n)
{
    struct front_point *points = mem_array(history->n, sizeof *points);
    size_t n = 0, n_front = 0;
    if (!points)
        return NULL;
    for (size_t i = 0; i < history->n; i++) {
        const struct gp_trial *t = &history->trials[i];
        if (t->state == GP_TRIAL_DONE && isfinite(t->score) && isfinite(t->cost))
            points[n++] = (struct front_point){t->cost, t->score, i};
    }
    qsort(points, n, sizeof *points, compare_points);
    for (size_t i = 0; i < n; i++)
        if (n_front == 0 || points[i].score > points[n_front - 1].score)
            points[n_front++] = points[i];
    *ret_n = n_front;
    return points;
}

enum status pareto_front(const struct gp_history *history, bool *ret_on_front, struct error *err)
{
    size_t n;
    struct front_point *points = front_points(history, &n);
    if (!points)
        return FAIL(err, ST_NOMEM, "no memory for the front of %zu trials", history->n);
    for (size_t i = 0; i < history->n; i++)
        ret_on_front[i] = false;
    for (size_t i = 0; i < n; i++)
        ret_on_front[points[i].index] = true;
    mem_free(points);
    return ST_OK;
}

void pareto_reference(const struct gp_history *history, struct pareto_ref *ret_ref)
{
    double cost_lo = INFINITY, cost_hi = -INFINITY, score_lo = INFINITY, score_hi = -INFINITY;
    size_t n = 0;
    for (size_t i = 0; i < history->n && n < PARETO_REF_TRIALS; i++) {
        const struct gp_trial *t = &history->trials[i];
        if (t->state != GP_TRIAL_DONE || !isfinite(t->score) || !(t->cost > 0.0) || !isfinite(t->cost))
            continue;
        cost_lo = fmin(cost_lo, log(t->cost));
        cost_hi = fmax(cost_hi, log(t->cost));
        score_lo = fmin(score_lo, t->score);
        score_hi = fmax(score_hi, t->score);
        n++;
    }
    if (n == 0) {
        *ret_ref = (struct pareto_ref){1.0, 0.0};
        return;
    }
    double cost_margin = REF_MARGIN * (cost_hi - cost_lo), score_margin = REF_MARGIN * (score_hi - score_lo);
    if (!(cost_margin > 0.0))
        cost_margin = REF_MARGIN;
    if (!(score_margin > 0.0))
        score_margin = score_lo != 0.0 ? REF_MARGIN * fabs(score_lo) : REF_MARGIN;
    *ret_ref = (struct pareto_ref){exp(cost_hi + cost_margin), score_lo - score_margin};
}

double pareto_hypervolume(const struct gp_history *history, const struct pareto_ref *ref)
{
    size_t n;
    struct front_point *points = front_points(history, &n);
    if (!points)
        return NAN;
    double area = 0.0, floor_score = ref->score, ref_cost = log(ref->cost);
    for (size_t i = 0; i < n; i++) { /* strips of rising score, each as wide as its point is cheap */
        if (!(points[i].cost < ref->cost) || !(points[i].score > floor_score))
            continue;
        area += (ref_cost - log(points[i].cost)) * (points[i].score - floor_score);
        floor_score = points[i].score;
    }
    mem_free(points);
    return area;
}

/* A dominated trial never matters again, so that only the front so far is looked at beside what is new. */
enum status pareto_hypervolume_curve(const struct gp_history *history, const struct pareto_ref *ref,
                                     const size_t *counts, size_t n_counts, double *ret_volumes, struct error *err)
{
    struct gp_trial *kept = mem_array(history->n, sizeof *kept); /* (n) the front so far, then what is new */
    bool *on_front = mem_array(history->n, sizeof *on_front);
    struct gp_history small = {.trials = kept};
    size_t at = 0;
    enum status rc = ST_OK;

    if (!kept || !on_front)
        rc = FAIL(err, ST_NOMEM, "no memory for the hypervolume of %zu trials", history->n);
    for (size_t k = 0; rc == ST_OK && k < n_counts; k++) {
        for (; at < counts[k] && at < history->n; at++)
            kept[small.n++] = history->trials[at];
        rc = pareto_front(&small, on_front, err);
        if (rc != ST_OK)
            break;
        size_t n = 0;
        bool has_volume = isfinite(ref->cost) && isfinite(ref->score); /* then NaN can only mean that memory ran out */
        for (size_t i = 0; i < small.n; i++)
            if (on_front[i]) {
                kept[n++] = kept[i];
                has_volume = has_volume && kept[i].cost > 0.0;
            }
        small.n = n;
        ret_volumes[k] = pareto_hypervolume(&small, ref);
        if (isnan(ret_volumes[k]) && has_volume)
            rc = FAIL(err, ST_NOMEM, "no memory for the hypervolume of %zu trials", history->n);
    }
    mem_free(kept);
    mem_free(on_front);
    return rc;
}

size_t pareto_knee(const struct gp_history *history)
{
    size_t n, knee = history->n;
    struct front_point *points = front_points(history, &n);
    if (!points || n == 0)
        goto done;
    knee = points[n - 1].index; /* one or two points: the best score */
    double c0 = log(points[0].cost), c1 = log(points[n - 1].cost), s0 = points[0].score, s1 = points[n - 1].score;
    double best = 0.0;
    for (size_t i = 1; i + 1 < n; i++) {
        /* ends are (0, 0) and (1, 1): distance above the diagonal, up to a factor */
        double above = (points[i].score - s0) / (s1 - s0) - (log(points[i].cost) - c0) / (c1 - c0);
        if (above > best) {
            best = above;
            knee = points[i].index;
        }
    }
done:
    mem_free(points);
    return knee;
}
