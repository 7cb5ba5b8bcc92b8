/* advice.c - which trial to take by a rule, and which advice to confirm next by a run under a fresh seed.
 * Invariants: (1) functions of insight and history alone; (2) a trial that is named has finished, and is its point's first
 * that has. */
#include "base/mem.h"
#include "gp/gp.h"

#include <math.h>
#include <string.h>

#define LEAST_WIDTH 1e-9 /* of the scores' range: what has never varied is still worth its seeds */

/* ---- picking ---- */

static bool stands(const struct gp_insight *in, const struct gp_history *history, size_t i)
{
    return history->trials[i].state == GP_TRIAL_DONE && (!in->point || in->point[i] == i);
}

static double cautious(const struct gp_belief *b)
{
    return b->score - b->score_sd;
}

/* Highest cautious score, of equals the cheaper, among those that cost no more. */
static size_t best_within(const struct gp_insight *in, const struct gp_history *history, double cost_max)
{
    size_t best = history->n;
    for (size_t i = 0; i < history->n; i++) {
        const struct gp_belief *b = &in->beliefs[i], *so_far = best < history->n ? &in->beliefs[best] : NULL;
        if (!stands(in, history, i) || exp(b->log_cost) > cost_max || history->trials[i].cost > cost_max)
            continue;
        if (!so_far || cautious(b) > cautious(so_far) ||
            (cautious(b) == cautious(so_far) && b->log_cost < so_far->log_cost))
            best = i;
    }
    return best;
}

/* The cheapest whose interval lies at or above the score; if none does, the highest interval. */
static void cheapest_above(const struct gp_insight *in, const struct gp_history *history, double score,
                           struct gp_picked *ret)
{
    size_t nearest = history->n;
    for (size_t i = 0; i < history->n; i++) {
        const struct gp_belief *b = &in->beliefs[i];
        if (!stands(in, history, i))
            continue;
        if (nearest == history->n || b->lo > in->beliefs[nearest].lo)
            nearest = i;
        if (b->lo >= score && (ret->i == history->n || b->log_cost < in->beliefs[ret->i].log_cost))
            ret->i = i;
    }
    if (ret->i < history->n || nearest == history->n || in->beliefs[nearest].score < score)
        return;
    *ret =
        (struct gp_picked){.i = nearest, .note = "no trial's interval lies above that score; this one's comes nearest"};
}

/* The knee of the front of beliefs; noise must not have made the bend. */
static enum status knee(const struct gp_insight *in, const struct gp_history *history, struct gp_picked *ret,
                        struct error *err)
{
    size_t n = 0, low = history->n, top = history->n, at;
    struct gp_trial *front = mem_array(history->n, sizeof *front);
    size_t *index = mem_array(history->n, sizeof *index);
    enum status rc = front && index ? ST_OK : FAIL(err, ST_NOMEM, "no memory for the knee of %zu trials", history->n);
    for (size_t i = 0; rc == ST_OK && i < history->n; i++) {
        const struct gp_belief *b = &in->beliefs[i];
        if (!b->on_front)
            continue;
        if (low == history->n || b->log_cost < in->beliefs[low].log_cost)
            low = i;
        if (top == history->n || b->score > in->beliefs[top].score)
            top = i;
        index[n] = i;
        front[n++] = (struct gp_trial){.state = GP_TRIAL_DONE, .score = b->score, .cost = exp(b->log_cost)};
    }
    if (rc == ST_OK)
        rc = pareto_knee(&(struct gp_history){.n = n, .trials = front}, &at, err);
    if (rc == ST_OK && at < n) {
        const struct gp_belief *b = &in->beliefs[index[at]], *a = &in->beliefs[low], *z = &in->beliefs[top];
        double line = a->score + (z->score - a->score) * (b->log_cost - a->log_cost) / (z->log_cost - a->log_cost);
        if (cautious(b) > line)
            ret->i = index[at];
    }
    if (rc == ST_OK && ret->i == history->n)
        ret->note = "the front has no clear knee";
    mem_free(front);
    mem_free(index);
    return rc;
}

/* By single runs, while there is no model. */
static enum status pick_raw(const struct gp_history *history, enum gp_rule rule, double value, struct gp_picked *ret,
                            struct error *err)
{
    if (rule == GP_KNEE)
        return pareto_knee(history, &ret->i, err);
    for (size_t i = 0; i < history->n; i++) {
        const struct gp_trial *t = &history->trials[i], *so_far = ret->i < history->n ? &history->trials[ret->i] : NULL;
        if (t->state != GP_TRIAL_DONE || (rule == GP_COST_MAX && t->cost > value) ||
            (rule == GP_SCORE_MIN && t->score < value))
            continue;
        bool cheaper = so_far && t->cost < so_far->cost;
        if (!so_far ||
            (rule == GP_SCORE_MIN ? cheaper : t->score > so_far->score || (t->score == so_far->score && cheaper)))
            ret->i = i;
    }
    return ST_OK;
}

enum status gp_pick(const struct gp_insight *in, const struct gp_history *history, enum gp_rule rule, double value,
                    struct gp_picked *ret, struct error *err)
{
    *ret = (struct gp_picked){.i = history->n};
    if (!in->beliefs) {
        ret->note = in->note;
        return pick_raw(history, rule, value, ret, err);
    }
    ret->supported = true;
    switch (rule) {
    case GP_BEST:
        ret->i = best_within(in, history, INFINITY);
        break;
    case GP_COST_MAX:
        ret->i = best_within(in, history, value);
        break;
    case GP_SCORE_MIN:
        cheapest_above(in, history, value, ret);
        break;
    case GP_KNEE:
        TRY(knee(in, history, ret, err));
        break;
    }
    if (ret->i == history->n) {
        ret->supported = false;
        ret->note = ret->note ? ret->note : "no finished trial fits";
    }
    return ST_OK;
}

/* ---- confirming ---- */

/* ret (n), zeroed: runs under way of the point that a trial stands for. */
static void count_pending(const struct gp_insight *in, const struct gp_history *history, size_t *ret)
{
    for (size_t i = 0; i < history->n; i++)
        if (history->trials[i].state == GP_TRIAL_PENDING)
            ret[in->point[i]]++;
}

static double score_range(const struct gp_history *history)
{
    double lo = INFINITY, hi = -INFINITY;
    for (size_t i = 0; i < history->n; i++)
        if (history->trials[i].state == GP_TRIAL_DONE) {
            lo = fmin(lo, history->trials[i].score);
            hi = fmax(hi, history->trials[i].score);
        }
    return hi > lo ? hi - lo : 1.0;
}

enum status gp_confirm_next(const struct gp_insight *in, const struct gp_history *history,
                            const struct gp_confirm_settings *settings, size_t *ret_i, struct error *err)
{
    size_t n_front = settings->n_front > 0 ? settings->n_front : GP_CONFIRM_FRONT;
    size_t n_pick = settings->n_pick > 0 ? settings->n_pick : GP_CONFIRM_PICK;
    double tight = settings->tight > 0.0 ? settings->tight : GP_CONFIRM_TIGHT, most = 0.0;
    struct gp_picked bend;
    *ret_i = history->n;
    if (!in->beliefs)
        return ST_OK;
    TRY(gp_pick(in, history, GP_KNEE, 0.0, &bend, err));
    size_t *pending = mem_array(history->n, sizeof *pending);
    if (!pending)
        return FAIL(err, ST_NOMEM, "no memory for %zu trials", history->n);
    count_pending(in, history, pending);
    double range = score_range(history);
    for (size_t i = 0; i < history->n; i++) {
        const struct gp_belief *b = &in->beliefs[i];
        bool pick = i == in->recommended || i == bend.i;
        if (!stands(in, history, i) || !(pick || b->on_front))
            continue;
        size_t n = b->n_seeds + pending[i];
        double width = fmax((b->hi - b->lo) / range, LEAST_WIDTH);
        bool confirmed = n >= (pick ? n_pick : n_front) || (n >= 2 && width <= tight);
        double worth = (pick ? 4.0 : 1.0) * width / (double)n; /* what is doubtful, and by how much a run lessens it */
        if (confirmed || !(worth > most))
            continue;
        most = worth;
        *ret_i = i;
    }
    mem_free(pending);
    return ST_OK;
}
