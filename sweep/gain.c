/* gain.c - how fast the hypervolume of a study grows, by the monotonic clock of this controller.
 * Trials of earlier controllers lie before the window, whose time begins anew with each of them: a restart never makes a
 * study look as if it had come to rest. */
#include "sweep/scheduler.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"

#define RECENT_S 5
#define WINDOW_MIN_S 300
#define MIN_TRIALS 10 /* that ended within the window: fewer say nothing */

void gain_watch_free(struct gain_watch *w)
{
    mem_free(w->ended_s);
    *w = (struct gain_watch){0};
}

void gain_watch_begin(struct gain_watch *w, double now_s)
{
    w->begun_s = now_s;
}

enum status gain_watch_note(struct gain_watch *w, size_t i, double now_s, struct error *err)
{
    if (i >= w->n) {
        size_t n = i < 32 ? 64 : 2 * (i + 1);
        double *grown = mem_grow(w->ended_s, w->n, n, sizeof *grown); /* new ones are 0: long ago */
        if (grown == NULL)
            return FAIL(err, ST_NOMEM, "out of memory for the times of %zu trials", n);
        w->ended_s = grown;
        w->n = n;
    }
    w->ended_s[i] = now_s;
    return ST_OK;
}

static double ended_at(const struct gain_watch *w, size_t i)
{
    return i < w->n ? w->ended_s[i] : 0;
}

double gain_watch_rate(const struct gain_watch *w, const struct study_view *v, double window_s, double now_s)
{
    struct gp_history before = v->history;
    struct gp_trial *trials;
    double from_s = now_s - window_s, now_hv, before_hv;
    size_t n_done = 0, n_within = 0;

    if (from_s < w->begun_s)
        return NAN;
    for (size_t i = 0; i < v->n; i++)
        if (v->gp[i].state == GP_TRIAL_DONE) {
            n_done++;
            n_within += ended_at(w, i) > from_s;
        }
    if (n_within < MIN_TRIALS || n_done - n_within < PARETO_REF_TRIALS)
        return NAN;
    trials = mem_array(v->n, sizeof *trials);
    if (trials == NULL)
        return NAN;
    memcpy(trials, v->gp, v->n * sizeof *trials);
    for (size_t i = 0; i < v->n; i++)
        if (ended_at(w, i) > from_s)
            trials[i].state = GP_TRIAL_FAILED; /* counts nothing */
    before.trials = trials;
    before.n = v->n;
    now_hv = pareto_hypervolume(&v->history, &v->ref);
    before_hv = pareto_hypervolume(&before, &v->ref);
    mem_free(trials);
    if (!(before_hv > 0) || !isfinite(now_hv))
        return NAN;
    return (now_hv / before_hv - 1) * 3600 / window_s;
}

double gain_watch_recent(struct gain_watch *w, const struct study_view *v, double now_s)
{
    if (w->recent_at_s == 0 || now_s - w->recent_at_s > RECENT_S) {
        double window_s = fmin(3600, (now_s - w->begun_s) / 2);
        w->recent =
            window_s >= WINDOW_MIN_S ? gain_watch_rate(w, v, window_s, now_s) : NAN; /* an hour's, not a guess */
        w->recent_at_s = now_s;
    }
    return w->recent;
}
