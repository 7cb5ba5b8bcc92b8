/* advice.c - which trial to take by a rule, and which config to run next under a fresh seed: of those that are to have
 * several seeds, and of the advice that is to be confirmed.
 * Invariants: (1) functions of insight and history alone; (2) a trial that is named has finished, and is its point's
 * first that has. */
#include "base/base.h"
#include "gp/gp.h"

#define LEAST_WIDTH 1e-9 /* of the scores' range: what has never varied is still worth its seeds */
#define MODEL_RUNS 5.0 /* to rank a config, the models' expectation counts as this many runs */

/* ---- picking ---- */

static bool stands(const struct gp_insight *in, const struct gp_history *history, size_t i)
{
    return history->trials[i].state == GP_TRIAL_DONE && (!in->point || in->point[i] == i) &&
           !(in->beliefs && in->beliefs[i].breaks_limit);
}

static double cautious(const struct gp_belief *b)
{
    return b->score - b->score_sd;
}

/* The best config has the highest. Models that explain little of the scores take the differences between configs for
 * noise and expect the same of all; then their own runs tell them apart (measured: bench/notes/controller.md). */
static double merit(const struct gp_belief *b)
{
    double n = (double)b->n_seeds;
    return n > 0.0 ? cautious(b) + n / (n + MODEL_RUNS) * (b->mean - b->score) : cautious(b);
}

/* Highest merit, of equals the cheaper, among those that cost no more. */
static size_t best_within(const struct gp_insight *in, const struct gp_history *history, double cost_max)
{
    size_t best = history->n;
    for (size_t i = 0; i < history->n; i++) {
        const struct gp_belief *b = &in->beliefs[i], *so_far = best < history->n ? &in->beliefs[best] : NULL;
        if (!stands(in, history, i) || exp(b->log_cost) > cost_max || history->trials[i].cost > cost_max)
            continue;
        if (!so_far || merit(b) > merit(so_far) || (merit(b) == merit(so_far) && b->log_cost < so_far->log_cost))
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
static size_t knee(const struct gp_insight *in, const struct gp_history *history)
{
    size_t n = 0, low = history->n, top = history->n, ret = history->n;
    MEM_LOCAL struct gp_trial *front = mem_array(history->n, sizeof *front);
    MEM_LOCAL size_t *index = mem_array(history->n, sizeof *index);
    for (size_t i = 0; i < history->n; i++) {
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
    size_t at = pareto_knee(&(struct gp_history){.n = n, .trials = front});
    if (at < n) {
        const struct gp_belief *b = &in->beliefs[index[at]], *a = &in->beliefs[low], *z = &in->beliefs[top];
        double line = a->score + (z->score - a->score) * (b->log_cost - a->log_cost) / (z->log_cost - a->log_cost);
        if (cautious(b) > line)
            ret = index[at];
    }
    return ret;
}

/* By single runs, while there is no model. */
static size_t pick_raw(const struct gp_history *history, enum gp_rule rule, double value)
{
    size_t best = history->n;
    if (rule == GP_KNEE)
        return pareto_knee(history);
    for (size_t i = 0; i < history->n; i++) {
        const struct gp_trial *t = &history->trials[i], *so_far = best < history->n ? &history->trials[best] : NULL;
        if (t->state != GP_TRIAL_DONE || (rule == GP_COST_MAX && t->cost > value) ||
            (rule == GP_SCORE_MIN && t->score < value))
            continue;
        bool cheaper = so_far && t->cost < so_far->cost;
        if (!so_far ||
            (rule == GP_SCORE_MIN ? cheaper : t->score > so_far->score || (t->score == so_far->score && cheaper)))
            best = i;
    }
    return best;
}

struct gp_picked gp_pick(const struct gp_insight *in, const struct gp_history *history, enum gp_rule rule, double value)
{
    struct gp_picked ret = {.i = history->n, .supported = true};
    if (!in->beliefs)
        return (struct gp_picked){.i = pick_raw(history, rule, value), .note = in->note};
    switch (rule) {
    case GP_BEST:
        ret.i = best_within(in, history, INFINITY);
        break;
    case GP_COST_MAX:
        ret.i = best_within(in, history, value);
        break;
    case GP_SCORE_MIN:
        cheapest_above(in, history, value, &ret);
        break;
    case GP_KNEE:
        ret.i = knee(in, history);
        break;
    }
    if (ret.i == history->n) {
        ret.supported = false;
        ret.note = rule == GP_KNEE ? "the front has no clear knee" : "no finished trial fits";
    }
    return ret;
}

/* ---- further seeds ---- */

static bool same_point(const struct gp_insight *in, const struct gp_history *history, size_t dim, size_t a, size_t b)
{
    if (in->point)
        return in->point[a] == in->point[b];
    return memcmp(history->trials[a].x, history->trials[b].x, dim * sizeof *history->trials[a].x) == 0;
}

/* Runs of trial i's config that were made or are under way. One that failed is made: it might fail with every seed. */
static size_t n_runs(const struct gp_insight *in, const struct gp_history *history, size_t dim, size_t i)
{
    size_t n = 0;
    for (size_t k = 0; k < history->n; k++)
        n += history->trials[k].state != GP_TRIAL_DROPPED && same_point(in, history, dim, k, i);
    return n;
}

/* Is another config expected to score higher at no higher cost, as far as costs are known? Measured, a margin for doubt
 * wastes runs (bench/notes). */
static bool is_beaten(const struct gp_insight *in, const struct gp_history *history, size_t i)
{
    const struct gp_belief *a = &in->beliefs[i];
    for (size_t k = 0; k < history->n; k++) {
        const struct gp_belief *b = &in->beliefs[k];
        double cost_sd =
            hypot(a->log_cost_sd, b->log_cost_sd); /* equal costs differ a little where they are modelled */
        if (stands(in, history, k) && b->log_cost <= a->log_cost + cost_sd &&
            b->third <= a->third + hypot(a->third_sd, b->third_sd) && b->score > a->score)
            return true;
    }
    return false;
}

size_t gp_seed_next(const struct space *space, const struct gp_insight *in, const struct gp_history *history,
                    size_t seeds)
{
    for (size_t i = 0; i < history->n; i++)
        if (stands(in, history, i) && n_runs(in, history, space->dim, i) < seeds &&
            !(in->beliefs && is_beaten(in, history, i)))
            return i;
    return history->n;
}

/* ---- confirming ---- */

#define FRONT_SEEDS 3
#define PICK_SEEDS 5
#define LEAST_SEEDS 2 /* of what is not merely seen once */
#define TIGHT 0.02 /* an interval as narrow as this share of the scores' range needs LEAST_SEEDS only */

/* Runs of trial i's config, those under way included. */
static size_t n_seeds(const struct gp_insight *in, const struct gp_history *history, size_t i)
{
    size_t n = in->beliefs[i].n_seeds;
    for (size_t k = 0; k < history->n; k++)
        n += in->point[k] == in->point[i] && history->trials[k].state == GP_TRIAL_PENDING;
    return n;
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

static size_t most_doubtful(const struct gp_insight *in, const struct gp_history *history, size_t bend)
{
    double range = score_range(history), most = 0.0;
    size_t ret = history->n;
    for (size_t i = 0; i < history->n; i++) {
        const struct gp_belief *b = &in->beliefs[i];
        bool pick = i == in->recommended || i == bend;
        if (!stands(in, history, i) || !(pick || b->on_front))
            continue;
        size_t n = n_seeds(in, history, i);
        double width = fmax((b->hi - b->lo) / range, LEAST_WIDTH);
        bool confirmed = n >= (pick ? PICK_SEEDS : FRONT_SEEDS) || (n >= LEAST_SEEDS && width <= TIGHT);
        double worth = (pick ? 4.0 : 1.0) * width / (double)n; /* what is doubtful, and by how much a run lessens it */
        if (confirmed || !(worth > most))
            continue;
        most = worth;
        ret = i;
    }
    return ret;
}

/* The best of the configs seen once. */
static size_t runner_up(const struct gp_insight *in, const struct gp_history *history)
{
    size_t next = history->n;
    for (size_t i = 0; i < history->n; i++)
        if (stands(in, history, i) && n_seeds(in, history, i) < LEAST_SEEDS &&
            (next == history->n || merit(&in->beliefs[i]) > merit(&in->beliefs[next])))
            next = i;
    return next;
}

size_t gp_confirm_next(const struct gp_insight *in, const struct gp_history *history, enum gp_confirm_turn turn)
{
    size_t n = history->n, next = n;
    if (!in->beliefs)
        return n;
    const size_t picks[] = {in->recommended, knee(in, history)};
    size_t n_picks = turn == GP_CONFIRM_BEST ? 1 : turn == GP_CONFIRM_DOUBTFUL ? 0 : 2;
    for (size_t k = 0; k < n_picks && next == n; k++)
        if (picks[k] < n && n_seeds(in, history, picks[k]) < LEAST_SEEDS)
            next = picks[k];
    if (turn == GP_CONFIRM_BEST)
        return next;
    if (next == n && turn == GP_CONFIRM_LAST)
        next = runner_up(in, history);
    if (next == n)
        next = most_doubtful(in, history, picks[1]);
    return next == n && turn == GP_CONFIRM_LAST ? in->recommended : next;
}
