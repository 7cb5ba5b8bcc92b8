/* stop_rules.c - when a study has had enough: its budgets and stop rules, in one place.
 *
 *   trials       this many trials in all, but for branches (sweep.branches); running ones may end
 *   budget       seconds of training over all trials, with what was lost with a worker or controller
 *   wall_time    time with a controller at work
 *   device_time  seconds of devices over all trials
 *   target       the best config is expected to score this or better
 *   min_gain     the hypervolume grows by less than this share of itself in an hour
 *   space        every point of a finite space has been tried (scheduler.c)
 *   user         `trawl stop`
 *   failures     too many failed trials in a row (sched_study.c)
 *
 * Invariants: (1) budgets are totals of the study, counted from the store: a resumed study continues to count where it
 * was; (2) the first rule of this order that holds is the one that is reported. */
#include "sweep/controller/stop_rules.h"

#include "base/text/duration.h"
#include "study/setup/limits.h"
#include "study/view/promise.h"
#include "study/setup/setup.h"
#include "study/findings/gain.h"
#include "sweep/controller/sched_study.h"

#define WALL_SAVE_S 2 /* at most this much of the time spent is lost with a crash */

static double device_seconds(const struct study_view *v)
{
    double sum = 0;

    for (size_t i = 0; i < v->n; i++)
        if (isfinite(v->trials[i].device_s) && !v->gp[i].is_branch)
            sum += v->trials[i].device_s;
    return sum;
}

double stop_rules_wall_s(const struct sched_study *ss, double now_s)
{
    return ss->view.study.wall_used_s + (ss->wall_from_s > 0 ? now_s - ss->wall_from_s : 0);
}

/* The seconds since the last call go to the store now and then, or at once. */
enum status stop_rules_tick(struct sched_study *ss, double at_risk_s, double now_s, bool at_once, struct error *err)
{
    bool counts = ss->state == SCHED_STUDY_ACTIVE || ss->n_flights > 0;
    double passed_s = ss->wall_from_s > 0 ? now_s - ss->wall_from_s : 0;

    if (!counts || at_once || ss->risk_moved || passed_s >= WALL_SAVE_S) {
        if (passed_s > 0 || ss->risk_moved) {
            const struct study *study = &ss->view.study;
            enum status rc;
            STORE_INSIST(rc, ss->store, err,
                         store_study_add_wall(ss->store, study->id, passed_s, study->lost_s + at_risk_s, err));
            TRY(rc);
            ss->view.study.wall_used_s += passed_s;
            ss->at_risk_s = at_risk_s;
        }
        ss->risk_moved = false;
        ss->wall_from_s = 0;
    }
    if (counts && ss->wall_from_s == 0)
        ss->wall_from_s = now_s;
    return ST_OK;
}

static bool over(double spent, double max, const char *what, const char *rule, struct study_end *ret_end)
{
    char a[32], b[32];

    if (max <= 0 || spent < max)
        return false;
    ret_end->rule = rule;
    snprintf(ret_end->text, sizeof ret_end->text, "the study's %s is spent, %s of %s", what, format_seconds(spent, a),
             format_seconds(max, b));
    return true;
}

/* By what fresh runs of the best config are expected to give: one lucky run is not an end. Where the study confirms, that
 * config has been run again (confirm.c). */
static bool target_reached(const struct sched_study *ss, struct study_end *ret_end)
{
    const struct study_view *v = &ss->view;
    size_t run = study_view_best_run(v), best;
    struct promise promise;

    if (run == v->n || !limits_target_is_met(&v->study, study_view_run_score(v, run)))
        return false;
    best = study_view_pick(v, GP_BEST);
    if (best == v->n)
        return false;
    study_view_promise(v, best, &promise);
    if (!promise.is_known || !limits_target_is_met(&v->study, promise.score) ||
        promise.n_seeds < (ss->setup->sweep.confirm > 0 ? 2 : 1) ||
        study_view_runs(v, best) < (size_t)ss->setup->sweep.seeds)
        return false;
    ret_end->rule = "target";
    snprintf(ret_end->text, sizeof ret_end->text,
             "the config of trial %lld has reached the target: %s %.6g is expected, from %zu run%s (target %.6g)",
             (long long)v->trials[best].number, v->study.metric, promise.score, promise.n_seeds,
             promise.n_seeds == 1 ? "" : "s", v->study.limits.target_score);
    return true;
}

static bool gains_little(const struct sched_study *ss, double now_s, struct study_end *ret_end)
{
    double window_s = 3600, rate;
    char span[32];

    if (ss->view.study.limits.gain_min <= 0)
        return false;
    (void)parse_seconds(ss->setup->sweep.gain_window, &window_s);
    rate = gain_watch_rate(&ss->gain, &ss->view, window_s, now_s);
    if (!(rate < ss->view.study.limits.gain_min)) /* NaN: too early */
        return false;
    ret_end->rule = "min_gain";
    snprintf(ret_end->text, sizeof ret_end->text,
             "the front has come to rest: over the last %s the hypervolume grew by %.3g %% an hour (sweep.min_gain is "
             "%.3g %%)",
             format_seconds(window_s, span), 100 * rate, 100 * ss->view.study.limits.gain_min);
    return true;
}

void stop_rules_check(const struct sched_study *ss, double running_s, double now_s, struct study_end *ret_end)
{
    const struct study_view *v = &ss->view;
    const struct study *study = &v->study;

    *ret_end = (struct study_end){0};
    if (over(study->limits.budget_s > 0 ? study_view_cost(v) + study->lost_s + running_s : 0, study->limits.budget_s,
             "budget", "budget", ret_end) ||
        over(stop_rules_wall_s(ss, now_s), study->limits.wall_max_s, "time (sweep.wall_time)", "wall_time", ret_end) ||
        over(study->limits.device_max_s > 0 ? device_seconds(v) + study->lost_s + running_s : 0,
             study->limits.device_max_s, "device time (sweep.device_time)", "device_time", ret_end) ||
        target_reached(ss, ret_end) || gains_little(ss, now_s, ret_end))
        return;
}

int64_t stop_rules_trials_left(const struct study_view *view)
{
    int64_t max = view->study.limits.trials_max, n = (int64_t)(view->n - view->n_branches);
    int64_t left = max > n ? max - n : 0;

    if (max == 0)
        return INT64_MAX;
    /* No configuration is begun that could not be trained on every game. */
    return view->missing.of == view->n && left < (int64_t)view->search.envs.n ? 0 : left;
}

double stop_rules_fraction(const struct sched_study *ss, double running_s, double now_s)
{
    const struct study_view *v = &ss->view;
    const struct study *s = &v->study;
    int64_t open = study_view_count(v, TRIAL_QUEUED) + study_view_count(v, TRIAL_RUNNING);
    double f = 0;

    if (s->limits.trials_max > 0)
        f = (double)((int64_t)(v->n - v->n_branches) - open) / (double)s->limits.trials_max;
    if (s->limits.budget_s > 0)
        f = fmax(f, (study_view_cost(v) + s->lost_s + running_s) / s->limits.budget_s);
    if (s->limits.wall_max_s > 0)
        f = fmax(f, stop_rules_wall_s(ss, now_s) / s->limits.wall_max_s);
    if (s->limits.device_max_s > 0)
        f = fmax(f, (device_seconds(v) + s->lost_s + running_s) / s->limits.device_max_s);
    return fmin(f, 1);
}
