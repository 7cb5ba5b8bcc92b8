/* report_data.c - what the report shows, computed once: counts, front by cost, ranges, hypervolume curve. */
#include "web/report/report_priv.h"

#include "study/findings/believed.h"
#include "study/view/study_view.h"

#define HV_POINTS_MAX 240 /* the curve is sampled beyond: each point costs a front of the trials so far */

static bool is_plotted(const struct study_view *v, size_t i)
{
    double cost = study_view_trial_cost(v, &v->trials[i]);

    return v->trials[i].state == TRIAL_DONE && isfinite(v->trials[i].score) && isfinite(cost) && cost > 0.0;
}

/* Advice on the first trials alone, as a running sweep has it, is left out: a report has a belief for every trial. */
static bool has_advice(const struct study_view *v)
{
    return v->n > 0 && v->advice.n == v->n;
}

bool report_has_beliefs(const struct study_view *v)
{
    return has_advice(v) && v->advice.beliefs != NULL;
}

bool report_has_insight(const struct study_view *v)
{
    return has_advice(v) && v->has_insight && v->advice.note == NULL;
}

size_t report_pick(const struct study_view *v, enum gp_rule rule)
{
    const struct gp_insight none = {.n = v->n, .recommended = v->n, .note = "no models"};

    if (study_view_front_size(v) == 0)
        return v->n;
    return gp_pick(has_advice(v) ? &v->advice : &none, &v->history, rule, 0).i;
}

void report_promise(const struct study_view *v, size_t i, struct promise *ret)
{
    if (report_has_beliefs(v))
        study_view_promise(v, i, ret);
    else
        study_view_promise_of_runs(v, i, ret);
}

/* One hopeless score must not flatten all others: the range's bad end is at most three times as far from the best as
 * nine of ten trials are. */
static void score_range(struct report *report)
{
    const struct study_view *v = report->view;
    MEM_LOCAL double *scores = mem_array(report->n_plotted, sizeof *scores);
    size_t n = 0;

    for (size_t i = 0; i < v->n; i++)
        if (report->plotted[i])
            scores[n++] = v->trials[i].score;
    num_sort(scores, n);
    report->score_lo = n > 0 ? scores[0] : 0.0;
    report->score_hi = n > 0 ? scores[n - 1] : 1.0;
    if (n >= 10) {
        double lo = scores[n / 10], hi = scores[n - 1 - n / 10];
        if (v->study.maximize && report->score_hi > lo)
            report->score_lo = fmax(report->score_lo, report->score_hi - 3.0 * (report->score_hi - lo));
        else if (!v->study.maximize && hi > report->score_lo)
            report->score_hi = fmin(report->score_hi, report->score_lo + 3.0 * (hi - report->score_lo));
    }
    for (size_t i = 0; i < n; i++)
        report->n_beyond += scores[i] < report->score_lo || scores[i] > report->score_hi;
}

static void propose_times(struct report *report)
{
    const struct study_view *v = report->view;
    MEM_LOCAL double *times = mem_array(v->n, sizeof *times);
    size_t n = 0;

    report->propose_median_s = report->propose_max_s = NAN;
    for (size_t i = 0; i < v->n; i++)
        if (isfinite(v->trials[i].propose_s))
            times[n++] = v->trials[i].propose_s;
    num_sort(times, n);
    if (n > 0) {
        report->propose_median_s = times[n / 2];
        report->propose_max_s = times[n - 1];
    }
}

static void cost_range(struct report *report)
{
    double lo = INFINITY, hi = 0.0;

    for (size_t i = 0; i < report->view->n; i++) {
        const struct trial *trial = &report->view->trials[i];
        double cost = study_view_trial_cost(report->view, trial);
        if (trial->state < TRIAL_DONE)
            continue;
        if (isfinite(trial->cost_s) && trial->cost_s > 0.0)
            report->total_cost_s += trial->cost_s;
        if (isfinite(cost) && cost > 0.0 && (report->plotted[i] || report->n_plotted == 0)) {
            lo = fmin(lo, cost);
            hi = fmax(hi, cost);
        }
    }
    report->cost_lo = hi > 0.0 ? lo : 1.0;
    report->cost_hi = hi > 0.0 ? hi : 10.0;
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

static void sort_front(struct report *report)
{
    const struct study_view *v = report->view;
    size_t n = 0;
    MEM_LOCAL struct by_cost *order = mem_array(v->n, sizeof *order);

    report->front = mem_array(v->n, sizeof *report->front);
    for (size_t i = 0; i < v->n; i++)
        if (v->on_front[i] && report->plotted[i])
            order[n++] = (struct by_cost){report->promises[i].cost, i};
    qsort(order, n, sizeof *order, compare_cost);
    for (size_t i = 0; i < n; i++)
        report->front[i] = order[i].index;
    report->n_front = n;
    report->best = report_pick(v, GP_BEST);
    report->knee = report_pick(v, GP_KNEE);
}

static void hypervolume_curve(struct report *report)
{
    struct gp_history history = report->view->history;
    size_t n_trials = report->view->n;
    size_t n = n_trials < HV_POINTS_MAX ? n_trials : HV_POINTS_MAX;
    MEM_LOCAL struct gp_trial *rows = mem_array(n_trials, sizeof *rows);

    report->hv = mem_array(n, sizeof *report->hv);
    report->hv_trials = mem_array(n, sizeof *report->hv_trials);
    for (size_t i = 0; i < n; i++)
        report->hv_trials[i] = (i + 1) * n_trials / n;
    if (report_has_beliefs(report->view))
        believed_rows(report->view, BELIEVED_NOW, rows);
    else
        memcpy(rows, report->view->gp, n_trials * sizeof *rows);
    history.trials = rows;
    pareto_hypervolume_curve(&history, &report->view->ref, report->hv_trials, n, report->hv);
    for (size_t i = 0; i < n; i++)
        if (!isfinite(report->hv[i]))
            report->hv[i] = 0.0;
    report->n_hv = n;
}

enum status report_init(struct report *ret_report, const struct study_view *v, const char *store_path,
                        struct error *err)
{
    struct report report = {.view = v, .store_path = store_path};
    enum status rc = ST_OK;

    report.plotted = mem_array(v->n, sizeof *report.plotted);
    report.params = mem_array(v->n, sizeof(cJSON *));
    report.promises = mem_array(v->n, sizeof *report.promises);
    for (size_t i = 0; i < v->n && rc == ST_OK; i++) {
        const struct trial *trial = &v->trials[i];
        rc = report_params_parse(trial, &report.params[i], err);
        report.n_state[trial->state]++;
        report.plotted[i] = is_plotted(v, i);
        report_promise(v, i, &report.promises[i]);
        report.n_plotted += report.plotted[i];
        if (trial->created_ms > 0 && (report.first_ms == 0 || trial->created_ms < report.first_ms))
            report.first_ms = trial->created_ms;
        if (trial->finished_ms > report.last_ms)
            report.last_ms = trial->finished_ms;
    }
    cost_range(&report);
    score_range(&report);
    propose_times(&report);
    sort_front(&report);
    hypervolume_curve(&report);
    briefing_make(v, report_has_insight(v) ? &v->advice : NULL, 0, &report.briefing);
    *ret_report = report;
    if (rc != ST_OK)
        report_free(ret_report);
    return rc;
}

void report_free(struct report *report)
{
    for (size_t i = 0; i < report->view->n; i++)
        cJSON_Delete(report->params[i]);
    mem_free(report->params);
    mem_free(report->plotted);
    mem_free(report->promises);
    mem_free(report->front);
    mem_free(report->hv);
    briefing_free(&report->briefing);
    mem_free(report->hv_trials);
    *report = (struct report){0};
}
