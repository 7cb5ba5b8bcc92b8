/* gain.c - how fast the hypervolume of a study grows over the time with a controller at work. Trials of earlier
 * controllers are placed before this one's by the times in the store: a short gap between two of them counts as work, a
 * long one as a pause. So neither a restart nor a pause makes a study look as if it had stopped gaining, and the window
 * does not start again. From then on the monotonic clock counts. */
#include "study/findings/gain.h"

#include "base/mem.h"
#include "gp/gp.h"
#include "store/store.h"
#include "study/study_view.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define RECENT_S 5
#define PAUSE_S 60 /* between two trials; in a longer gap no controller was at work */
#define WINDOW_MIN_S 300
#define MIN_TRIALS 10 /* that must have ended within the window */

void gain_watch_free(struct gain_watch *w)
{
    mem_free(w->ended_s);
    *w = (struct gain_watch){0};
}

struct span { /* of a trial that has ended, by the wall clock */
    double begin_s, end_s;
    size_t i;
};

static int by_begin(const void *a, const void *b)
{
    const struct span *x = a, *y = b;

    return (x->begin_s > y->begin_s) - (x->begin_s < y->begin_s);
}

/* A clock that was set meanwhile makes no trial longer than what it cost. */
static size_t collect_spans(const struct study_view *v, struct span *spans)
{
    size_t n = 0;

    for (size_t i = 0; i < v->n; i++) {
        const struct trial *t = &v->trials[i];
        double end_s = (double)t->finished_ms / 1e3, begin_s = (double)t->started_ms / 1e3;
        if (t->started_ms == 0 || t->finished_ms < t->started_ms)
            continue;
        if (isfinite(t->cost_s))
            begin_s = fmax(begin_s, end_s - 2 * t->cost_s - PAUSE_S);
        spans[n++] = (struct span){begin_s, end_s, i};
    }
    qsort(spans, n, sizeof *spans, by_begin);
    return n;
}

void gain_watch_begin(struct gain_watch *w, const struct study_view *v, double now_s)
{
    struct span *spans = mem_array(v->n + 1, sizeof *spans);
    double before_s = 0, begin_s = 0, end_s = 0; /* work before this stretch of work; the stretch */
    size_t n = collect_spans(v, spans);

    for (size_t k = 0; k < n; k++) {
        if (k == 0 || spans[k].begin_s > end_s + PAUSE_S) {
            before_s += end_s - begin_s;
            begin_s = end_s = spans[k].begin_s;
        }
        end_s = fmax(end_s, spans[k].end_s);
        gain_watch_note(w, spans[k].i, before_s + spans[k].end_s - begin_s);
    }
    mem_free(spans);
    double work_s = before_s + end_s - begin_s;
    for (size_t i = 0; i < w->n; i++)
        w->ended_s[i] += now_s - work_s; /* as if all this work had ended now */
    w->begun_s = now_s - work_s;
}

void gain_watch_note(struct gain_watch *w, size_t i, double now_s)
{
    for (; w->n <= i; w->n++) {
        MEM_ROOM(w->ended_s, w->n, w->cap);
        w->ended_s[w->n] = -INFINITY;
    }
    w->ended_s[i] = now_s;
}

static double ended_at(const struct gain_watch *w, size_t i)
{
    return i < w->n ? w->ended_s[i] : -INFINITY;
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
