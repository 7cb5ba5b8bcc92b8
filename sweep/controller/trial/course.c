/* course.c - see course.h. The shorter runs that a study wants are those that branches.c names; a run stands for one at
 * its first report there or later, with the steps of that report as its length. */
#include "sweep/controller/trial/course.h"

#include "study/space/branches.h"
#include "study/setup/setup.h"
#include "sweep/controller/trial/reports.h"
#include "sweep/controller/trial/run_message.h"
#include "sweep/controller/sched_study.h"

static double score_of(const struct study_view *v, const struct metric_report *report)
{
    for (size_t p = 0; p < report->n; p++)
        if (strcmp(report->points[p].name, v->study.metric) == 0)
            return report->points[p].value;
    return NAN;
}

/* Has the run of trial i, which is not a branch, a branch of this many steps or more? */
static bool has_branch(const struct study_view *v, size_t i, size_t k, double steps)
{
    int64_t of;

    for (size_t b = i + 1; b < v->n; b++)
        if (v->gp[b].is_branch && v->x[b][k] >= steps && trial_is_branch(&v->trials[b], &of) &&
            of == v->trials[i].number)
            return true;
    return false;
}

enum status course_take(struct sched_study *ss, size_t i, const struct metric_report *report, double cost_s,
                        struct reports *waiting, struct error *err)
{
    const struct study_view *v = &ss->view;
    const struct search *search = &v->search;
    size_t k, n;
    int64_t steps[SWEEP_BRANCHES_MAX];

    if (ss->setup->sweep.branches == 0 || !setup_is_program(ss->setup) || report->n == 0)
        return ST_OK;
    const int64_t now = report->points[0].env_steps;
    const double score = score_of(v, report);
    k = branches_length(ss->setup, search);
    if (k == search->space.dim || !isfinite(score) || fabs(score) > STUDY_SCORE_MAX || !(cost_s > 0))
        return ST_OK;
    n = branches_of_program(v->x[i][k], search->space.params[k].min, (size_t)ss->setup->sweep.branches, steps);
    while (n > 0 && steps[n - 1] > now)
        n--;
    if (n == 0 || (double)now >= v->x[i][k] || has_branch(v, i, k, (double)steps[n - 1]))
        return ST_OK;
    if (waiting != NULL)
        TRY(reports_flush(waiting, err));
    struct trial_result result = {.state = TRIAL_DONE,
                                  .score = score,
                                  .perf = NAN,
                                  .cost_s = cost_s,
                                  .device_s = search->cost == SEARCH_COST_DEVICE ? cost_s : NAN,
                                  .env_steps = now,
                                  .score_se = NAN,
                                  .eval_s = NAN,
                                  .cost_method = "report",
                                  .device = v->trials[i].device};
    return sched_study_add_branch(ss, i, &result, err);
}

enum status course_take_branch(struct sched_study *ss, size_t i, const cJSON *message, double cost_factor,
                               struct error *err)
{
    MEM_LOCAL struct run_result *run = mem_alloc(sizeof *run);

    run_result_read(run, message, ss->view.study.metric, cost_factor);
    enum status rc = run_result_settle(run, &ss->view, ss->store, ss->view.trials[i].id, message, err);
    if (rc == ST_OK && run->result.state == TRIAL_DONE)
        rc = sched_study_add_branch(ss, i, run_result_texts(run), err);
    mem_free(run->outcomes);
    return rc;
}
