/* trust.c - does another study's evidence hold here? Of the same game, two predictions of each own run, in their order,
 * by one kernel: from the other study's runs and the own runs before it, and from the own runs before it alone. The sum
 * of the differences of their log densities, of which none counts for more than COUNT_MAX, is the log Bayes factor of
 * "the other study teaches". Above ENOUGH its runs count. Of another game, whose scores are in another unit, the rank
 * correlation of own scores with what its model expects there. Until then all is as without it, so that a study costs
 * nothing before runs agree with it. Invariant: a function of space and history alone, so that trust comes back when
 * later runs agree. */
#include "gp/pareto_priv.h"

#include <cblas.h>
#include <float.h>
#include <gsl/gsl_cdf.h>
#include <gsl/gsl_statistics_double.h>

#define OTHER_MAX 96 /* runs of the other study that are learned, spread evenly: those that a fit looks at */
#define OWN_MAX 96 /* the first own runs, which decide */
#define FIT_EVALS 40
#define COUNT_MAX 3.0 /* a run that failed to learn by bad luck is not proof */
#define ENOUGH 0.5 /* 1.65 times as likely */
#define RANKED_MIN 4 /* own runs whose ranks say something */
#define RANKED_CHANCE 0.05 /* of unrelated games to rank them as much alike */
#define NEAR_SD 0.2 /* of the scores' deviation: by so much studies that agree differ */

static bool has_ended(const struct gp_trial *t)
{
    return (t->state == GP_TRIAL_DONE || t->state == GP_TRIAL_INFEASIBLE) && !t->is_branch;
}

/* The other study's model, from its runs alone, with space for the own runs. False: they have none. */
static bool learn_other(const struct space *space, const struct gp_history *history, struct model *m)
{
    size_t n_all = 0, n = 0, dim = space->dim;
    MEM_LOCAL const struct gp_trial **all = mem_array(history->n_other, sizeof *all);
    for (size_t i = 0; i < history->n_other; i++)
        if (history->other[i].state == GP_TRIAL_DONE && observations_inside(space, history->other[i].x))
            all[n_all++] = &history->other[i];
    n = n_all < OTHER_MAX ? n_all : OTHER_MAX;
    MEM_LOCAL double *rows = mem_array2(n, 3, sizeof *rows), *u = mem_array2(n, dim, sizeof *u);
    double *mean = rows, *ss = rows + n, *repeats = rows + 2 * n;
    for (size_t i = 0; i < n; i++) {
        const struct gp_trial *t = all[i * n_all / n];
        space_to_unit(space, t->x, u + i * dim);
        mean[i] = t->score;
        ss[i] = 0.0;
        repeats[i] = 1.0;
    }
    model_init(m, space, n + OWN_MAX);
    model_set_data(m, &(struct model_data){.n = n, .u = u, .mean = mean, .ss = ss, .repeats = repeats, .smooth = true});
    model_fit(m, FIT_EVALS, OTHER_MAX);
    return n > 0 && !m->constant && model_factor(m, NULL) == ST_OK;
}

/* Puts own runs (n, in order) after the first n_before rows and factors. ret (n): the log density of each, given the
 * rows before it. */
static bool predict_own(const struct space *space, struct model *m, size_t n_before, const struct gp_trial *const *own,
                        size_t n, double *ret)
{
    double u[SPACE_MAX_DIM];
    m->n = n_before + n;
    for (size_t i = 0; i < n; i++) {
        space_to_unit(space, own[i]->x, u);
        for (size_t c = 0; c < m->dim; c++)
            m->x[c * m->ld + n_before + i] = u[c];
        m->y[n_before + i] = (own[i]->score - m->y_mean) / m->y_sd;
        m->share[n_before + i] = 1.0 + NEAR_SD * NEAR_SD / m->noise;
    }
    if (model_factor(m, NULL) != ST_OK)
        return false;
    for (size_t i = 0; i < n; i++) {
        const double *row = m->inverse + (n_before + i) * m->ld;
        double z = cblas_ddot((int)(n_before + i + 1), row, 1, m->y, 1);
        ret[i] = log(row[n_before + i]) - 0.5 * z * z;
    }
    return true;
}

/* The log Bayes factor; 0: nothing is known. */
static double evidence(const struct space *space, const struct gp_history *history)
{
    const struct gp_trial *own[OWN_MAX];
    double with[OWN_MAX], without[OWN_MAX], sum = 0.0;
    AT_END(model_free) struct model m = {0};
    size_t n = 0;
    for (size_t i = 0; i < history->n && n < OWN_MAX; i++)
        if (has_ended(&history->trials[i]))
            own[n++] = &history->trials[i];
    bool known = n > 0 && learn_other(space, history, &m);
    for (size_t j = 0; known && j < m.n; j++)
        m.share[j] = 1.0 / OTHER_WEIGHT;
    if (known && predict_own(space, &m, m.n, own, n, with) && predict_own(space, &m, 0, own, n, without))
        for (size_t i = 0; i < n; i++)
            sum += fmin(fmax(with[i] - without[i], -COUNT_MAX), COUNT_MAX);
    return sum;
}

struct gp_history trust_history(const struct space *space, const struct gp_history *history)
{
    struct gp_history ret = *history;
    if (history->n_other > 0 && (history->other_game || !(evidence(space, history) > ENOUGH)))
        ret.n_other = 0;
    return ret;
}

bool trust_ranks(const struct space *space, const struct gp_history *history)
{
    double expected[OWN_MAX], score[OWN_MAX], work[2 * OWN_MAX], u[SPACE_MAX_DIM], r = 0.0;
    const struct gp_trial *own[OWN_MAX];
    struct model m = {0};
    size_t n = 0;
    for (size_t i = 0; i < history->n && n < OWN_MAX; i++)
        if (has_ended(&history->trials[i]) || history->trials[i].state == GP_TRIAL_FAILED)
            own[n++] = &history->trials[i];
    if (n >= RANKED_MIN && learn_other(space, history, &m)) {
        double *cross = mem_array(m.ld, sizeof *cross);
        for (size_t i = 0; i < n; i++) {
            space_to_unit(space, own[i]->x, u);
            model_predict_mean(&m, u, 1, cross, &expected[i]);
            score[i] = own[i]->state == GP_TRIAL_FAILED ? -DBL_MAX : own[i]->score;
        }
        mem_free(cross);
        r = gsl_stats_spearman(expected, 1, score, 1, n, work);
    }
    model_free(&m);
    if (!(r > 0.0)) /* also when all scores are equal */
        return false;
    double freedom = (double)n - 2.0, t = r * sqrt(freedom / fmax(1.0 - r * r, DBL_EPSILON));
    return gsl_cdf_tdist_Q(t, freedom) < RANKED_CHANCE;
}
