/* trust.c - does another study's evidence hold here? Its runs alone are learned, and what they let expect at the points of
 * this study's own runs is compared with what those gave, by rank: units and offsets do not matter. Invariant: a function
 * of space and history alone, so that trust comes back when later runs agree. */
#include "gp/pareto_priv.h"

#include "base/mem.h"

#include <math.h>
#include <string.h>

#define OTHER_MAX 96 /* runs of the other study that are learned, spread evenly: those that a fit looks at */
#define RANK_MIN 0.3 /* below this rank correlation the other study teaches nothing */

/* Middle ranks of equals. */
static void ranks(const double *values, size_t n, double *ret)
{
    for (size_t i = 0; i < n; i++) {
        ret[i] = 0.0;
        for (size_t j = 0; j < n; j++)
            ret[i] += values[j] < values[i] ? 1.0 : values[j] == values[i] ? 0.5 : 0.0;
    }
}

/* Spearman's, 0 where all values of a side are equal. */
static double rank_correlation(const double *a, const double *b, size_t n)
{
    double *rank = mem_array2(n, 2, sizeof *rank), *rank_b = rank + n, mid = 0.5 * (double)n, ab = 0, aa = 0, bb = 0;
    ranks(a, n, rank);
    ranks(b, n, rank_b);
    for (size_t i = 0; i < n; i++) {
        ab += (rank[i] - mid) * (rank_b[i] - mid);
        aa += (rank[i] - mid) * (rank[i] - mid);
        bb += (rank_b[i] - mid) * (rank_b[i] - mid);
    }
    mem_free(rank);
    return aa > 0.0 && bb > 0.0 ? ab / sqrt(aa * bb) : 0.0;
}

/* What the other study's runs let expect at the points of own runs, ret (n); false: they have no model. */
static bool expected(const struct space *space, const struct gp_history *history, const struct gp_trial *const *own,
                     size_t n, double *ret)
{
    size_t n_rows = history->n_other < OTHER_MAX ? history->n_other : OTHER_MAX;
    struct gp_trial *rows = mem_array(n_rows, sizeof *rows);
    struct pareto_search *s = mem_alloc(sizeof *s);
    double u[SPACE_MAX_DIM];
    for (size_t i = 0; i < n_rows; i++)
        rows[i] = history->other[i * history->n_other / n_rows];
    const struct gp_history theirs = {.n = n_rows,
                                      .trials = rows,
                                      .has_score_bounds = history->has_score_bounds,
                                      .score_min = history->score_min,
                                      .score_max = history->score_max};
    bool ok = pareto_models_init(s, space, &theirs, 0, false, NULL, NULL) == ST_OK;
    double *cross = ok ? mem_array(s->score.ld, sizeof *cross) : NULL;
    for (size_t i = 0; ok && i < n; i++) {
        space_to_unit(space, own[i]->x, u);
        model_predict_mean(&s->score, u, 1, cross, &ret[i]);
    }
    mem_free(cross);
    pareto_search_free(s);
    mem_free(s);
    mem_free(rows);
    return ok;
}

struct gp_history trust_history(const struct space *space, const struct gp_history *history)
{
    struct gp_history ret = *history;
    size_t n = 0;
    if (history->n_other == 0)
        return ret;
    const struct gp_trial **own = mem_array(history->n + 1, sizeof *own);
    double *values = mem_array2(history->n + 1, 2, sizeof *values), *there = values + history->n + 1;
    for (size_t i = 0; i < history->n; i++) {
        const struct gp_trial *t = &history->trials[i];
        if ((t->state == GP_TRIAL_DONE || t->state == GP_TRIAL_INFEASIBLE) && !t->is_branch) {
            values[n] = t->score;
            own[n++] = t;
        }
    }
    if (n >= TRUST_RUNS && expected(space, history, own, n, there) && rank_correlation(values, there, n) < RANK_MIN)
        ret.n_other = 0;
    mem_free(own);
    mem_free(values);
    return ret;
}
