/* observations.c - a history as the models see it: one group per distinct point, repeats averaged.
 * Scores: DONE runs as they are, outliers on the bad side clipped, and a long tail compressed (warp.c) unless scores
 * have bounds. STOPPED runs are kept apart, since theirs are only lower bounds. FAILED points count as a middling score,
 * below any front, and as failures in `ok`, which has a model of its own when they are not few. Costs: ln of DONE runs
 * only, since failed and stopped ones end early. INFEASIBLE runs teach as DONE ones do. Invariant: groups come in the
 * order of their first trial. */
#include "gp/model/observations_priv.h"

#include "base/text/num.h"

#define CLIP_SPREADS 5.0
#define WARP_SCORES 10

struct entry {
    const double *x;
    size_t trial, dim;
};

static int compare_entries(const void *va, const void *vb)
{
    const struct entry *a = va, *b = vb;
    for (size_t i = 0; i < a->dim; i++)
        if (a->x[i] != b->x[i])
            return a->x[i] < b->x[i] ? -1 : 1;
    return a->trial < b->trial ? -1 : a->trial > b->trial;
}

static bool has_ended(const struct gp_trial *t)
{
    return t->state == GP_TRIAL_DONE || t->state == GP_TRIAL_INFEASIBLE;
}

/* Own trials first, then those of other studies. */
static const struct gp_trial *trial_at(const struct gp_history *history, size_t i)
{
    return i < history->n ? &history->trials[i] : &history->other[i - history->n];
}

/* Scores below this count as this; -INFINITY when there are too few to tell, or when none can be far off. Those of
 * other studies count for the spread: that of own trials, which were chosen to be good, is too small. */
static double clip_limit(const struct gp_history *history, double *work)
{
    size_t n = 0;
    if (history->has_score_bounds)
        return -INFINITY;
    for (size_t i = 0; i < history->n + history->n_other; i++) {
        const struct gp_trial *t = trial_at(history, i);
        if (has_ended(t) || t->state == GP_TRIAL_STOPPED)
            work[n++] = t->score;
    }
    if (n < 5)
        return -INFINITY;
    num_sort(work, n);
    double q10 = work[n / 10], q50 = work[n / 2], q90 = work[n - 1 - n / 10];
    double limit = q50 - CLIP_SPREADS * fmax(q90 - q50, q50 - q10);
    return limit < q50 ? limit : -INFINITY;
}

/* By the first scores, another study's before own ones: later points were chosen to be good, and lie so close together
 * that all others would be a tail. None where scores have bounds. */
static struct warp choose_warp(const struct gp_history *history, double limit)
{
    double scores[WARP_SCORES];
    size_t n = 0, all = history->n + history->n_other;
    for (size_t i = 0; i < all && n < WARP_SCORES && !history->has_score_bounds; i++) {
        const struct gp_trial *t = trial_at(history, (i + history->n) % all);
        if (has_ended(t))
            scores[n++] = fmax(t->score, limit);
    }
    struct warp ret = warp_of(scores, n);
    for (size_t i = 0; i < all; i++)
        if (has_ended(trial_at(history, i)))
            warp_reaches(&ret, fmax(trial_at(history, i)->score, limit));
    return ret;
}

bool observations_inside(const struct space *space, const double *x)
{
    for (size_t i = 0; i < space->dim; i++) {
        const struct space_param *p = &space->params[i];
        double margin = 1e-9 * (p->max - p->min);
        if (!(x[i] >= p->min - margin && x[i] <= p->max + margin))
            return false;
    }
    return true;
}

/* group[i]: trial i's group, by order of first appearance; x_snapped (n, dim). */
static void make_groups(struct observations *obs, const struct space *space, const struct gp_history *history)
{
    size_t n = history->n + history->n_other, dim = space->dim;
    MEM_LOCAL double *x = mem_array2(n, dim, sizeof *x);
    MEM_LOCAL struct entry *entries = mem_array(n, sizeof *entries);
    MEM_LOCAL size_t *leader = mem_array(n, sizeof *leader);
    for (size_t i = 0; i < n; i++) {
        memcpy(x + i * dim, trial_at(history, i)->x, dim * sizeof *x);
        space_snap(space, x + i * dim);
        entries[i] = (struct entry){x + i * dim, i, dim};
    }
    qsort(entries, n, sizeof *entries, compare_entries);
    for (size_t i = 0; i < n; i++) {
        bool same = i > 0 && memcmp(entries[i].x, entries[i - 1].x, dim * sizeof *x) == 0;
        leader[entries[i].trial] = same ? leader[entries[i - 1].trial] : entries[i].trial;
    }
    for (size_t i = 0; i < n; i++) {
        if (leader[i] == i) {
            obs->group[i] = obs->n++;
            space_to_unit(space, x + i * dim, obs->u + obs->group[i] * dim);
            memcpy(obs->x + obs->group[i] * dim, x + i * dim, dim * sizeof *x);
        } else {
            obs->group[i] = obs->group[leader[i]];
        }
    }
}

static void add_value(struct mean_ss *m, double weight, double value)
{
    double delta = value - m->mean;
    m->n += weight;
    m->mean += weight / m->n * delta;
    m->ss += weight * delta * (value - m->mean);
}

/* Adds one trial to its group. known: all scores. */
static void add_trial(struct observations *obs, const struct gp_trial *t, size_t g, bool own, double limit,
                      struct mean_ss *known)
{
    bool worked = has_ended(t) || (own && t->state == GP_TRIAL_STOPPED);
    double weight = own ? 1.0 : OTHER_WEIGHT;
    if (worked || (own && t->state == GP_TRIAL_FAILED))
        add_value(&obs->ok[g], 1.0, worked ? 1.0 : -1.0);
    obs->n_failed += own && t->state == GP_TRIAL_FAILED;
    if (own && t->state == GP_TRIAL_STOPPED) {
        add_value(&obs->stopped[g], 1.0, warp_to(&obs->warp, fmax(t->score, limit)));
        add_value(&obs->stopped_cost[g], 1.0, log(t->cost));
    }
    if (has_ended(t)) {
        double score = warp_to(&obs->warp, fmax(t->score, limit));
        add_value(known, 1.0, score);
        add_value(&obs->score[g], weight, score);
        add_value(&obs->cost[g], weight, log(t->cost));
        if (t->score_se > 0.0 && isfinite(t->score_se)) {
            double se = warp_sd_to(&obs->warp, t->score, t->score_se);
            add_value(&obs->score_var[g], 1.0, se * se);
        }
        if (own)
            add_value(&obs->done_score[g], 1.0, t->score);
        obs->clipped[g] = obs->clipped[g] || (own && t->score < limit);
        if (own && obs->third && isfinite(t->third))
            add_value(&obs->third[g], 1.0, t->third);
        for (size_t k = 0; k < GP_MAX_LIMITS && own && obs->outcome[k]; k++)
            if (isfinite(t->outcomes[k]))
                add_value(&obs->outcome[k][g], 1.0, t->outcomes[k]);
    }
    obs->start[g] = obs->start[g] || t->is_start;
    if (own && t->state == GP_TRIAL_PENDING)
        obs->pending[g] = true;
}

static void judge_feasible(struct observations *obs, const struct gp_history *history)
{
    double mean[GP_MAX_LIMITS];
    for (size_t g = 0; g < obs->n; g++) {
        for (size_t k = 0; k < history->n_limits; k++)
            mean[k] = obs->outcome[k][g].n > 0.0 ? obs->outcome[k][g].mean : NAN;
        obs->feasible[g] = gp_is_feasible(history, mean);
    }
}

void observations_init(struct observations *obs, const struct space *space, const struct gp_history *history)
{
    size_t n = history->n + history->n_other;
    memset(obs, 0, sizeof *obs);
    obs->dim = space->dim;
    obs->u = mem_array2(n, space->dim, sizeof *obs->u);
    obs->x = mem_array2(n, space->dim, sizeof *obs->x);
    obs->score = mem_array(n, sizeof *obs->score);
    obs->stopped = mem_array(n, sizeof *obs->stopped);
    obs->stopped_cost = mem_array(n, sizeof *obs->stopped_cost);
    obs->ok = mem_array(n, sizeof *obs->ok);
    obs->cost = mem_array(n, sizeof *obs->cost);
    obs->done_score = mem_array(n, sizeof *obs->done_score);
    obs->score_var = mem_array(n, sizeof *obs->score_var);
    obs->third = history->has_third ? mem_array(n, sizeof *obs->third) : NULL;
    for (size_t k = 0; k < history->n_limits; k++)
        obs->outcome[k] = mem_array(n, sizeof *obs->outcome[k]);
    obs->feasible = mem_array(n, sizeof *obs->feasible);
    obs->clipped = mem_array(n, sizeof *obs->clipped);
    obs->pending = mem_array(n, sizeof *obs->pending);
    obs->start = mem_array(n, sizeof *obs->start);
    obs->group = mem_array(n, sizeof *obs->group);
    MEM_LOCAL double *work = mem_array(n, sizeof *work);
    make_groups(obs, space, history);
    double limit = clip_limit(history, work);
    obs->warp = choose_warp(history, limit);
    struct mean_ss known = {0}; /* all scores, by Welford: no sum can overflow */
    for (size_t i = 0; i < n; i++)
        if (observations_inside(space, trial_at(history, i)->x))
            add_trial(obs, trial_at(history, i), obs->group[i], i < history->n, limit, &known);
    for (size_t i = 0; i < history->n && known.n > 0.0; i++) /* a point that both failed and worked counts as working */
        if (history->trials[i].state == GP_TRIAL_FAILED && obs->score[obs->group[i]].n == 0.0)
            add_value(&obs->score[obs->group[i]], 1.0, known.mean);
    judge_feasible(obs, history);
}

void observations_free(struct observations *obs)
{
    for (size_t k = 0; k < GP_MAX_LIMITS; k++)
        mem_free(obs->outcome[k]);
    mem_free(obs->third);
    mem_free(obs->clipped);
    mem_free(obs->feasible);
    mem_free(obs->u);
    mem_free(obs->x);
    mem_free(obs->score);
    mem_free(obs->stopped);
    mem_free(obs->stopped_cost);
    mem_free(obs->ok);
    mem_free(obs->cost);
    mem_free(obs->done_score);
    mem_free(obs->score_var);
    mem_free(obs->pending);
    mem_free(obs->start);
    mem_free(obs->group);
    memset(obs, 0, sizeof *obs);
}
