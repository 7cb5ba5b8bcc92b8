/* observations.c - a history as the models see it: one group per distinct point, repeats averaged.
 * Scores: DONE runs as they are, outliers on the bad side clipped. STOPPED runs are kept apart, since theirs are only
 * lower bounds. FAILED points count as a middling score,
 * below any front, and as failures in `ok`, which has a model of its own when they are not few.
 * Costs: ln of DONE runs only, since failed and stopped ones end early. Invariant: groups come in the order of their first trial. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "gp/observations_priv.h"

#define CLIP_SPREADS 5.0

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

static int compare_doubles(const void *va, const void *vb)
{
    const double *a = va, *b = vb;
    return *a < *b ? -1 : *a > *b;
}

/* Scores below this count as this; -INFINITY when there are too few to tell. */
static double clip_limit(const struct gp_history *history, double *work)
{
    size_t n = 0;
    for (size_t i = 0; i < history->n; i++)
        if (history->trials[i].state == GP_TRIAL_DONE || history->trials[i].state == GP_TRIAL_STOPPED)
            work[n++] = history->trials[i].score;
    if (n < 5)
        return -INFINITY;
    qsort(work, n, sizeof *work, compare_doubles);
    double q10 = work[n / 10], q50 = work[n / 2], q90 = work[n - 1 - n / 10];
    double limit = q50 - CLIP_SPREADS * fmax(q90 - q50, q50 - q10);
    return limit < q50 ? limit : -INFINITY;
}

/* group[i]: trial i's group, by order of first appearance; x_snapped (n, dim). False: out of memory. */
static bool make_groups(struct observations *obs, const struct space *space, const struct gp_history *history)
{
    size_t n = history->n, dim = space->dim;
    double *x = mem_array2(n, dim, sizeof *x);
    struct entry *entries = mem_array(n, sizeof *entries);
    size_t *leader = mem_array(n, sizeof *leader);
    bool ok = x && entries && leader;
    if (!ok)
        goto done;
    for (size_t i = 0; i < n; i++) {
        memcpy(x + i * dim, history->trials[i].x, dim * sizeof *x);
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
        } else {
            obs->group[i] = obs->group[leader[i]];
        }
    }
done:
    mem_free(x);
    mem_free(entries);
    mem_free(leader);
    return ok;
}

static void add_value(struct mean_ss *m, double value)
{
    double delta = value - m->mean;
    m->n += 1.0;
    m->mean += delta / m->n;
    m->ss += delta * (value - m->mean);
}

enum status observations_init(struct observations *obs, const struct space *space, const struct gp_history *history,
                              struct error *err)
{
    size_t n = history->n;
    memset(obs, 0, sizeof *obs);
    obs->dim = space->dim;
    obs->u = mem_array2(n, space->dim, sizeof *obs->u);
    obs->score = mem_array(n, sizeof *obs->score);
    obs->stopped = mem_array(n, sizeof *obs->stopped);
    obs->ok = mem_array(n, sizeof *obs->ok);
    obs->cost = mem_array(n, sizeof *obs->cost);
    obs->done_score = mem_array(n, sizeof *obs->done_score);
    obs->pending = mem_array(n, sizeof *obs->pending);
    obs->group = mem_array(n, sizeof *obs->group);
    double *work = mem_array(n, sizeof *work);
    if (!obs->u || !obs->score || !obs->stopped || !obs->ok || !obs->cost || !obs->done_score || !obs->pending ||
        !obs->group || !work || !make_groups(obs, space, history)) {
        mem_free(work);
        observations_free(obs);
        return FAIL(err, ST_NOMEM, "no memory for %zu trials", n);
    }
    double limit = clip_limit(history, work);
    struct mean_ss known = {0}; /* all scores, by Welford: no sum can overflow */
    for (size_t i = 0; i < n; i++) {
        const struct gp_trial *t = &history->trials[i];
        size_t g = obs->group[i];
        bool worked = t->state == GP_TRIAL_DONE || t->state == GP_TRIAL_STOPPED;
        if (worked || t->state == GP_TRIAL_FAILED)
            add_value(&obs->ok[g], worked ? 1.0 : -1.0);
        obs->n_failed += t->state == GP_TRIAL_FAILED;
        if (t->state == GP_TRIAL_STOPPED)
            add_value(&obs->stopped[g], fmax(t->score, limit));
        if (t->state == GP_TRIAL_DONE) {
            double score = fmax(t->score, limit);
            add_value(&known, score);
            add_value(&obs->score[g], score);
            add_value(&obs->cost[g], log(t->cost));
            add_value(&obs->done_score[g], t->score);
        }
        if (t->state == GP_TRIAL_PENDING)
            obs->pending[g] = true;
    }
    for (size_t i = 0; i < n && known.n > 0.0; i++) /* a point that both failed and worked counts as working */
        if (history->trials[i].state == GP_TRIAL_FAILED && obs->score[obs->group[i]].n == 0.0)
            add_value(&obs->score[obs->group[i]], known.mean);
    mem_free(work);
    return ST_OK;
}

void observations_free(struct observations *obs)
{
    mem_free(obs->u);
    mem_free(obs->score);
    mem_free(obs->stopped);
    mem_free(obs->ok);
    mem_free(obs->cost);
    mem_free(obs->done_score);
    mem_free(obs->pending);
    mem_free(obs->group);
    memset(obs, 0, sizeof *obs);
}
