/* confirm.c - when a study runs a config again under a fresh seed, and how much of its budget that may take
 * (sweep.confirm).
 *
 * With sweep.seeds every config that may be worth it gets that many runs, whatever that takes: these are not part of the
 * share. Half of the share is used on the way, evenly, so that the advice of a sweep that is interrupted has mostly
 * been confirmed; the rest is kept for the end, where new points give way to it. The share is that of the limit which
 * is nearest: trials, seconds of training or of devices, or time.
 * Invariants: (1) runs under way count as made, by what a finished run of the same point cost; (2) training that was
 * lost with a worker or controller counts as spent, as it does for the limit (stop_rules.c). */
#include "sweep/proposals/confirm.h"

#include "study/setup/limits.h"
#include "study/setup/setup.h"
#include "study/view/study_view.h"

#define END_ROUNDS 4
#define LAST_RUNS 2 /* of a study: what they find new could not be confirmed */
#define ON_THE_WAY 0.5 /* of the share */
#define SLACK 1e-9 /* of rounding: 0.2 of 5 trials is one */

enum amount { AMOUNT_TRIALS, AMOUNT_COST, AMOUNT_DEVICE };

/* Cost of trial i, past or expected; NaN: unknown. */
static double amount_of(const struct study_view *v, size_t i, enum amount what)
{
    const struct trial *t = &v->trials[i];
    double value = what == AMOUNT_DEVICE ? t->device_s : t->cost_s;

    if (what == AMOUNT_TRIALS)
        return 1;
    if (isfinite(value) || t->state >= TRIAL_DONE || !trial_is_confirming(t))
        return value;
    for (size_t k = 0; k < i; k++)
        if (v->gp[k].state == GP_TRIAL_DONE && study_view_same_point(v, k, i))
            return amount_of(v, k, what);
    return NAN;
}

struct spending {
    double all, confirming; /* so far */
    double pending; /* of what confirms now and has not ended */
    double one; /* of a run, on average */
};

static struct spending sum_up(const struct study_view *v, enum amount what)
{
    struct spending s = {0};
    double n = 0;

    for (size_t i = 0; i < v->n; i++) {
        double value = amount_of(v, i, what);
        if (!isfinite(value) || v->gp[i].is_branch)
            continue;
        s.confirming += trial_is_confirming(&v->trials[i]) ? value : 0;
        if (v->trials[i].state < TRIAL_DONE && what != AMOUNT_TRIALS) {
            s.pending += value;
            continue;
        }
        s.all += value;
        n++;
    }
    s.one = n > 0 ? s.all / n : 0;
    return s;
}

/* Of a limit, as shares of it. */
struct stand {
    double spent, used, one;
    double cost_left; /* as in the plan */
};

static void nearer(struct stand *stand, double spent, struct spending s, double max, double share, bool is_cost)
{
    if (isfinite(stand->spent) && spent <= stand->spent)
        return;
    /* A run that the limit would cut short confirms nothing. */
    double left = fmin(share * max - s.confirming, (1 - spent) * max);
    *stand = (struct stand){spent, s.confirming / max, s.one / max, is_cost ? left : INFINITY};
}

bool confirm_plan_spread(struct confirm_plan *plan, size_t n, size_t n_since, size_t n_busy)
{
    if (plan->turn == CONFIRM_FIRST && n > 1 && n_since < n_busy)
        plan->turn = CONFIRM_IF_STUCK;
    return plan->turn >= CONFIRM_FIRST;
}

/* How many runs fit into an amount; 1 at least. */
static size_t n_runs(double amount, double one)
{
    return (size_t)fmax(fmin((amount + SLACK) / one, SUGGEST_BATCH_MAX), 1);
}

void confirm_plan_make(const struct study_view *v, const struct sweep_settings *settings, double running_s,
                       double wall_s, struct confirm_plan *ret)
{
    const struct study *study = &v->study;
    struct spending trials = sum_up(v, AMOUNT_TRIALS), cost = sum_up(v, AMOUNT_COST), device = sum_up(v, AMOUNT_DEVICE);
    struct stand at = {NAN, 0, 0, INFINITY};
    double share = settings->confirm;

    size_t best = study_view_best_run(v);
    bool near = best < v->n && limits_target_is_met(study, study_view_run_score(v, best));
    *ret = (struct confirm_plan){.target = !near       ? TARGET_FAR
                                           : share > 0 ? TARGET_CONFIRM
                                                       : TARGET_ADVISE,
                                 .seeds = (size_t)settings->seeds,
                                 .cost_left = INFINITY,
                                 .at_once = SUGGEST_BATCH_MAX};
    if (!(share > 0) || v->n == 0)
        return;
    if (study->limits.trials_max > 0)
        nearer(&at, (double)study_view_n_runs(v) / (double)study->limits.trials_max, trials,
               (double)study->limits.trials_max, share, false);
    if (study->limits.budget_s > 0)
        nearer(&at, (cost.all + study->lost_s + fmax(running_s, cost.pending)) / study->limits.budget_s, cost,
               study->limits.budget_s, share, v->search.cost == SEARCH_COST_WALL);
    if (study->limits.device_max_s > 0)
        nearer(&at, (device.all + study->lost_s + fmax(running_s, device.pending)) / study->limits.device_max_s, device,
               study->limits.device_max_s, share, v->search.cost == SEARCH_COST_DEVICE);
    if (study->limits.wall_max_s > 0 && cost.all > 0) /* as if all of the time were training */
        nearer(&at, wall_s / study->limits.wall_max_s, cost, cost.all * study->limits.wall_max_s / fmax(wall_s, 1e-3),
               share, false);
    if (!isfinite(at.spent)) /* no end in sight: the share of what there is */
        at = (struct stand){1 / ON_THE_WAY, trials.confirming / (double)v->n, 1 / (double)v->n, INFINITY};
    ret->cost_left = at.cost_left;
    ret->at_once = n_runs(1 - (share - at.used) - at.spent, at.one); /* until the end's share begins, */
    if (at.used + at.one > share + SLACK)
        return;
    if (at.spent <= 1 && at.spent + SLACK >= 1 - (share - at.used))
        ret->turn = at.spent + LAST_RUNS * at.one + SLACK >= 1 ? CONFIRM_LAST : CONFIRM_END;
    else
        ret->turn = at.used + at.one <= ON_THE_WAY * share * at.spent + SLACK ? CONFIRM_FIRST : CONFIRM_IF_STUCK;
    if (ret->turn == CONFIRM_END) /* or a part of what is left then: the next ones confirm what these find */
        ret->at_once = n_runs((1 - at.spent) / END_ROUNDS, at.one);
    ret->again = ret->turn == CONFIRM_FIRST ? n_runs(ON_THE_WAY * share * at.spent - at.used, at.one) : 0;
}
