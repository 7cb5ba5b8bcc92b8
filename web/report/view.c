/* view.c - what the report shows, computed once: counts, front by cost, ranges, hypervolume curve. */
#include "web/report/report_priv.h"

#include "base/mem.h"
#include "study/promise.h"
#include "web/report/report.h"

#include <math.h>
#include <stdlib.h>

#define HV_POINTS_MAX 240 /* the curve is sampled beyond: each point costs a front of the trials so far */

double report_trial_cost(const struct report *report, size_t i)
{
    const struct trial *trial = &report->trials[i];

    if (report->cost == SEARCH_COST_STEPS)
        return trial->env_steps > 0 ? (double)trial->env_steps : NAN;
    return report->cost == SEARCH_COST_DEVICE ? trial->device_s : trial->cost_s;
}

static bool is_plotted(const struct report *report, size_t i)
{
    double cost = report_trial_cost(report, i);

    return report->trials[i].state == TRIAL_DONE && isfinite(report->trials[i].score) && isfinite(cost) && cost > 0.0;
}

/* Are all numbers such that a volume of NaN can only mean that memory ran out? */
static bool has_volume(const struct report *report)
{
    if (!isfinite(report->ref.cost) || !isfinite(report->ref.score))
        return false;
    for (size_t i = 0; i < report->n_trials; i++)
        if (report->history->trials[i].state == GP_TRIAL_DONE && !(report->history->trials[i].cost > 0.0))
            return false;
    return true;
}

enum status report_hypervolume(const struct report *report, size_t n, double *ret_volume, struct error *err)
{
    struct gp_history so_far = {.n = n, .trials = report->history->trials};

    *ret_volume = pareto_hypervolume(&so_far, &report->ref);
    if (isnan(*ret_volume) && has_volume(report))
        return FAIL(err, ST_NOMEM, "no memory for the hypervolume of %zu trials", n);
    return ST_OK;
}

bool report_has_beliefs(const struct report *report)
{
    return report->insight != NULL && report->insight->beliefs != NULL;
}

enum status report_pick(const struct report *report, enum gp_rule rule, size_t *ret_i, struct error *err)
{
    const struct gp_insight none = {.n = report->n_trials, .recommended = report->n_trials, .note = "no models"};
    struct gp_picked picked;
    bool has_front = false;

    *ret_i = report->n_trials;
    for (size_t i = 0; i < report->n_trials; i++)
        has_front = has_front || report->on_front[i];
    if (!has_front)
        return ST_OK;
    TRY(gp_pick(report->insight != NULL ? report->insight : &none, report->history, rule, 0, &picked, err));
    *ret_i = picked.i;
    return ST_OK;
}

void report_promise(const struct report *report, size_t i, struct promise *ret)
{
    promise_make(report_has_beliefs(report) ? &report->insight->beliefs[i] : NULL, &report->history->trials[i],
                 &report->trials[i], report->study->maximize, ret);
}

static int compare_f64(const void *va, const void *vb)
{
    double a = *(const double *)va, b = *(const double *)vb;
    return (a > b) - (a < b);
}

/* One hopeless score must not flatten all others: the range's bad end is at most three times as far from the best as
 * nine of ten trials are. */
static enum status score_range(struct report_view *view, struct error *err)
{
    const struct report *report = view->report;
    double *scores = mem_array(view->n_plotted, sizeof *scores);
    size_t n = 0;

    if (scores == NULL)
        return FAIL(err, ST_NOMEM, "no memory for a report of %zu trials", report->n_trials);
    for (size_t i = 0; i < report->n_trials; i++)
        if (view->plotted[i])
            scores[n++] = report->trials[i].score;
    qsort(scores, n, sizeof *scores, compare_f64);
    view->score_lo = n > 0 ? scores[0] : 0.0;
    view->score_hi = n > 0 ? scores[n - 1] : 1.0;
    if (n >= 10) {
        double lo = scores[n / 10], hi = scores[n - 1 - n / 10];
        if (report->study->maximize && view->score_hi > lo)
            view->score_lo = fmax(view->score_lo, view->score_hi - 3.0 * (view->score_hi - lo));
        else if (!report->study->maximize && hi > view->score_lo)
            view->score_hi = fmin(view->score_hi, view->score_lo + 3.0 * (hi - view->score_lo));
    }
    for (size_t i = 0; i < n; i++)
        view->n_beyond += scores[i] < view->score_lo || scores[i] > view->score_hi;
    mem_free(scores);
    return ST_OK;
}

static enum status propose_times(struct report_view *view, struct error *err)
{
    const struct report *report = view->report;
    double *times = mem_array(report->n_trials, sizeof *times);
    size_t n = 0;

    view->propose_median_s = view->propose_max_s = NAN;
    if (times == NULL)
        return FAIL(err, ST_NOMEM, "no memory for a report of %zu trials", report->n_trials);
    for (size_t i = 0; i < report->n_trials; i++)
        if (isfinite(report->trials[i].propose_s))
            times[n++] = report->trials[i].propose_s;
    qsort(times, n, sizeof *times, compare_f64);
    if (n > 0) {
        view->propose_median_s = times[n / 2];
        view->propose_max_s = times[n - 1];
    }
    mem_free(times);
    return ST_OK;
}

static void cost_range(struct report_view *view)
{
    double lo = INFINITY, hi = 0.0;

    for (size_t i = 0; i < view->report->n_trials; i++) {
        const struct trial *trial = &view->report->trials[i];
        double cost = report_trial_cost(view->report, i);
        if (trial->state < TRIAL_DONE)
            continue;
        if (isfinite(trial->cost_s) && trial->cost_s > 0.0)
            view->total_cost_s += trial->cost_s;
        if (isfinite(cost) && cost > 0.0 && (view->plotted[i] || view->n_plotted == 0)) {
            lo = fmin(lo, cost);
            hi = fmax(hi, cost);
        }
    }
    view->cost_lo = hi > 0.0 ? lo : 1.0;
    view->cost_hi = hi > 0.0 ? hi : 10.0;
}

struct by_cost {
    double cost;
    size_t index;
};

static int compare_cost(const void *va, const void *vb)
{
    const struct by_cost *a = va, *b = vb;
    return a->cost != b->cost ? (a->cost > b->cost) - (a->cost < b->cost)
                              : (a->index > b->index) - (a->index < b->index);
}

static enum status sort_front(struct report_view *view, struct error *err)
{
    const struct report *report = view->report;
    size_t n = 0;
    struct by_cost *order = mem_array(report->n_trials, sizeof *order);

    view->front = mem_array(report->n_trials, sizeof *view->front);
    if (order == NULL || view->front == NULL) {
        mem_free(order);
        return FAIL(err, ST_NOMEM, "no memory for a report of %zu trials", report->n_trials);
    }
    for (size_t i = 0; i < report->n_trials; i++)
        if (report->on_front[i] && view->plotted[i])
            order[n++] = (struct by_cost){view->promises[i].cost, i};
    qsort(order, n, sizeof *order, compare_cost);
    for (size_t i = 0; i < n; i++)
        view->front[i] = order[i].index;
    view->n_front = n;
    mem_free(order);
    TRY(report_pick(report, GP_BEST, &view->best, err));
    return report_pick(report, GP_KNEE, &view->knee, err);
}

static enum status hypervolume_curve(struct report_view *view, struct error *err)
{
    size_t n_trials = view->report->n_trials;
    size_t n = n_trials < HV_POINTS_MAX ? n_trials : HV_POINTS_MAX;

    view->hv = mem_array(n, sizeof *view->hv);
    view->hv_trials = mem_array(n, sizeof *view->hv_trials);
    if (view->hv == NULL || view->hv_trials == NULL)
        return FAIL(err, ST_NOMEM, "no memory for a report of %zu trials", n_trials);
    for (size_t i = 0; i < n; i++)
        view->hv_trials[i] = (i + 1) * n_trials / n;
    TRY(pareto_hypervolume_curve(view->report->history, &view->report->ref, view->hv_trials, n, view->hv, err));
    for (size_t i = 0; i < n; i++)
        if (!isfinite(view->hv[i]))
            view->hv[i] = 0.0;
    view->n_hv = n;
    return ST_OK;
}

enum status report_view_create(struct report_view *ret_view, const struct report *report, struct error *err)
{
    struct report_view view = {.report = report};
    enum status rc = ST_OK;

    *ret_view = (struct report_view){0};
    view.plotted = mem_array(report->n_trials, sizeof *view.plotted);
    view.params = mem_array(report->n_trials, sizeof(cJSON *));
    view.promises = mem_array(report->n_trials, sizeof *view.promises);
    if (view.plotted == NULL || view.params == NULL || view.promises == NULL)
        rc = FAIL(err, ST_NOMEM, "no memory for a report of %zu trials", report->n_trials);
    for (size_t i = 0; i < report->n_trials && rc == ST_OK; i++)
        rc = report_params_parse(&report->trials[i], &view.params[i], err);
    if (rc != ST_OK) {
        report_view_free(&view);
        return rc;
    }
    for (size_t i = 0; i < report->n_trials; i++) {
        const struct trial *trial = &report->trials[i];
        view.n_state[trial->state]++;
        view.plotted[i] = is_plotted(report, i);
        report_promise(report, i, &view.promises[i]);
        view.n_plotted += view.plotted[i];
        if (trial->created_ms > 0 && (view.first_ms == 0 || trial->created_ms < view.first_ms))
            view.first_ms = trial->created_ms;
        if (trial->finished_ms > view.last_ms)
            view.last_ms = trial->finished_ms;
    }
    cost_range(&view);
    rc = score_range(&view, err);
    if (rc == ST_OK)
        rc = propose_times(&view, err);
    if (rc == ST_OK)
        rc = sort_front(&view, err);
    if (rc == ST_OK)
        rc = hypervolume_curve(&view, err);
    if (rc != ST_OK) {
        report_view_free(&view);
        return rc;
    }
    *ret_view = view;
    return ST_OK;
}

void report_view_free(struct report_view *view)
{
    for (size_t i = 0; view->params != NULL && i < view->report->n_trials; i++)
        cJSON_Delete(view->params[i]);
    mem_free(view->params);
    mem_free(view->plotted);
    mem_free(view->promises);
    mem_free(view->front);
    mem_free(view->hv);
    mem_free(view->hv_trials);
    *view = (struct report_view){0};
}
