/* gain.c - how fast the hypervolume of a study grows over the time with a controller at work. Trials of earlier
 * controllers are placed before this one's by the times in the store: a short gap between two of them counts as work, a
 * long one as a pause. So neither a restart nor a pause makes a study look as if it had stopped gaining, and the window
 * does not start again. From then on the monotonic clock counts. */
#include "study/findings/gain.h"

#include "study/findings/believed.h"
#include "study/view/study_view.h"

#define RECENT_S 5
#define PAUSE_S 60 /* between two trials; in a longer gap no controller was at work */
#define WINDOW_MIN_S 300
#define HOUR_S 3600
#define LASTING 0.5 /* of what a doubling of the work added, the next adds: measured, bench/notes/pages.md */
#define MIN_DONE 10 /* finished trials that the first half must have */
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
    MEM_LOCAL struct span *spans = mem_array(v->n + 1, sizeof *spans);
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

/* Hypervolume of what had a result when the work was part of the way; *ret_n: finished trials. */
static double volume_at(const struct study_view *v, const struct gain_watch *w, double at_s, struct gp_trial *rows,
                        size_t *ret_n)
{
    struct gp_history history = v->history;

    *ret_n = 0;
    believed_rows(v, BELIEVED_NOW, rows);
    for (size_t i = 0; i < v->n; i++) {
        bool ended = ended_at(w, i) <= at_s && v->gp[i].state == GP_TRIAL_DONE;
        *ret_n += ended;
        if (!ended)
            rows[i].state = GP_TRIAL_PENDING;
    }
    history.trials = rows;
    return pareto_hypervolume(&history, &v->ref);
}

double gain_watch_rate(const struct gain_watch *w, const struct study_view *v, double window_s, double now_s)
{
    double from_s = now_s - window_s, now_hv, before_hv;
    size_t n_done, n_before;

    if (from_s < w->begun_s)
        return NAN;
    MEM_LOCAL struct gp_trial *rows = mem_array(v->n, sizeof *rows);
    now_hv = volume_at(v, w, INFINITY, rows, &n_done);
    before_hv = volume_at(v, w, from_s, rows, &n_before);
    if (n_done - n_before < MIN_TRIALS || n_before < PARETO_REF_TRIALS || !(before_hv > 0) || !isfinite(now_hv))
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

struct spent { /* by a trial that has ended */
    double ended_s, cost_s;
};

static int by_end(const void *a, const void *b)
{
    const struct spent *x = a, *y = b;

    return (x->ended_s > y->ended_s) - (x->ended_s < y->ended_s);
}

/* When half of what the trials cost had been spent. A wait for a full disk, say, is time, and nothing is spent in it. */
static double half_spent_at(const struct study_view *v, const struct gain_watch *w)
{
    MEM_LOCAL struct spent *spent = mem_array(v->n + 1, sizeof *spent);
    double whole = 0, sum = 0;
    size_t n = 0, k = 0;

    for (size_t i = 0; i < v->n; i++) {
        const struct trial *t = &v->trials[i];
        double cost_s = isfinite(t->cost_s) ? t->cost_s : (double)(t->finished_ms - t->started_ms) / 1e3;
        double ended_s = ended_at(w, i);
        if (!isfinite(ended_s))
            continue;
        spent[n++] = (struct spent){ended_s, cost_s};
        whole += cost_s;
    }
    qsort(spent, n, sizeof *spent, by_end);
    while (k < n && sum + spent[k].cost_s <= whole / 2)
        sum += spent[k++].cost_s;
    return k > 0 ? spent[k - 1].ended_s : -INFINITY;
}

void gain_expected(const struct study_view *v, struct gain_expected *ret)
{
    AT_END(gain_watch_free) struct gain_watch w = {0};
    MEM_LOCAL struct gp_trial *rows = mem_array(v->n, sizeof *rows);
    size_t n, n_half;

    gain_watch_begin(&w, v, 0); /* work lies before 0 */
    *ret = (struct gain_expected){.work_s = -w.begun_s, .share = NAN};
    ret->ahead_s = fmin(HOUR_S, ret->work_s);
    double whole = volume_at(v, &w, INFINITY, rows, &n), half = volume_at(v, &w, half_spent_at(v, &w), rows, &n_half);
    if (n_half >= MIN_DONE && n >= n_half + MIN_DONE && half > 0 && whole > 0) {
        double doublings = log2((ret->work_s + ret->ahead_s) / ret->work_s);
        ret->share = LASTING * fmax(whole - half, 0) * doublings / whole;
    }
}
