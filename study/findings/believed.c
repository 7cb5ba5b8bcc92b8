/* believed.c - the beliefs about each config as rows, and their hypervolume at a time.
 * Invariant: at every time the beliefs are those of now; the past is seen with what was learned since. */
#include "study/findings/believed.h"

#include "study/view/study_view.h"

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
    MEM_LOCAL struct gp_trial *rows = mem_array(v->n, sizeof *rows);
    struct gp_history history = v->history;

    believed_rows(v, until_ms, rows);
    history.trials = rows;
    double volume = pareto_hypervolume(&history, ref);
    return volume;
}

size_t believed_best(const struct study_view *v, int64_t until_ms)
{
    MEM_LOCAL struct gp_trial *rows = mem_array(v->n, sizeof *rows);
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
    return i < history.n ? i : v->n;
}
