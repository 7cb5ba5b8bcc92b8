/* believed.c - rows of what is believed of each config, their hypervolume at a time, and how it will grow.
 * Invariant: at every time the beliefs are those of now; the past is seen with what was learned since. */
#include "study/findings/believed.h"

#include "base/mem.h"
#include "store/store.h"
#include "study/findings/gain.h"
#include "study/study_view.h"

#include <math.h>

#define HOUR_S 3600
#define LASTING 0.5 /* of what a doubling of the work added, the next adds: measured, bench/notes/pages.md */
#define MIN_DONE 10 /* finished trials that the first half must have */

static bool has_result(const struct study_view *v, size_t i, int64_t until_ms)
{
    return v->gp[i].state == GP_TRIAL_DONE && !study_view_breaks_limit(v, i) && v->trials[i].finished_ms <= until_ms;
}

/* Does trial i stand for its config? */
static bool stands(const struct study_view *v, size_t i)
{
    return v->advice.beliefs == NULL || i >= v->advice.n || v->advice.point[i] == i;
}

void believed_rows(const struct study_view *v, int64_t until_ms, struct gp_trial *ret)
{
    for (size_t i = 0; i < v->n; i++) {
        const struct gp_belief *b = study_view_belief(v, i);
        ret[i] = v->gp[i];
        if (!has_result(v, i, until_ms) || !stands(v, i))
            ret[i].state = GP_TRIAL_PENDING;
        else if (b != NULL) {
            ret[i].score = b->score;
            ret[i].cost = exp(b->log_cost);
            ret[i].third = b->third;
        }
    }
}

double believed_volume(const struct study_view *v, const struct pareto_ref *ref, int64_t until_ms)
{
    struct gp_trial *rows = mem_array(v->n, sizeof *rows);
    struct gp_history history = v->history;

    believed_rows(v, until_ms, rows);
    history.trials = rows;
    double volume = pareto_hypervolume(&history, ref);
    mem_free(rows);
    return volume;
}

size_t believed_best(const struct study_view *v, int64_t until_ms)
{
    struct gp_trial *rows = mem_array(v->n, sizeof *rows);
    struct gp_history history = v->history;
    struct gp_insight none = {.n = v->n, .recommended = v->n, .note = "no advice yet"};

    for (size_t i = 0; i < v->n; i++) {
        rows[i] = v->gp[i];
        if (!has_result(v, i, until_ms))
            rows[i].state = GP_TRIAL_PENDING;
    }
    history.trials = rows;
    history.n = v->advice.n > 0 ? v->advice.n : v->n;
    size_t i = gp_pick(v->advice.n > 0 ? &v->advice : &none, &history, GP_BEST, 0).i;
    mem_free(rows);
    return i < history.n ? i : v->n;
}

/* Hypervolume of what had a result when the work was part of the way; *ret_n: finished trials. */
static double volume_at(const struct study_view *v, const struct gain_watch *w, double at_s, struct gp_trial *rows,
                        size_t *ret_n)
{
    struct gp_history history = v->history;

    *ret_n = 0;
    believed_rows(v, BELIEVED_NOW, rows);
    for (size_t i = 0; i < v->n; i++) {
        bool ended = i < w->n && w->ended_s[i] <= at_s && v->gp[i].state == GP_TRIAL_DONE;
        *ret_n += ended;
        if (!ended)
            rows[i].state = GP_TRIAL_PENDING;
    }
    history.trials = rows;
    return pareto_hypervolume(&history, &v->ref);
}

void believed_growth(const struct study_view *v, struct believed_growth *ret)
{
    struct gain_watch w = {0};
    struct gp_trial *rows = mem_array(v->n, sizeof *rows);
    size_t n, n_half;

    gain_watch_begin(&w, v, 0); /* work lies before 0 */
    *ret = (struct believed_growth){.work_s = -w.begun_s, .share = NAN};
    ret->ahead_s = fmin(HOUR_S, ret->work_s);
    double whole = volume_at(v, &w, INFINITY, rows, &n), half = volume_at(v, &w, w.begun_s / 2, rows, &n_half);
    if (n_half >= MIN_DONE && n >= n_half + MIN_DONE && half > 0 && whole > 0) {
        double doublings = log2((ret->work_s + ret->ahead_s) / ret->work_s);
        ret->share = LASTING * fmax(whole - half, 0) * doublings / whole;
    }
    gain_watch_free(&w);
    mem_free(rows);
}
