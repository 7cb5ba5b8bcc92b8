/* early_stop.c - the curves of a study's finished trials, kept beside the view, and the judgement of the trial in
 * flight.
 * Invariant: only done trials teach; scores are higher-is-better as in the view's history. */
#include "sweep/controller/early_stop.h"

#include "base/mem.h"
#include "base/status.h"
#include "gp/gp.h"
#include "store/store.h"
#include "study/search.h"
#include "study/setup.h"
#include "study/study_view.h"

#include <stdio.h>
#include <string.h>

void early_stop_free(struct early_stop *es)
{
    for (size_t i = 0; i < es->n; i++)
        mem_free((void *)es->curves[i].points);
    mem_free(es->curves);
    memset(es, 0, sizeof *es);
}

enum status early_stop_learn(struct early_stop *es, struct store *store, const struct study_view *v, size_t i,
                             struct error *err)
{
    const struct trial *t = &v->trials[i];
    struct curve_point *stored = NULL;
    size_t n = 0;

    if (!es->on || v->gp[i].state != GP_TRIAL_DONE || t->env_steps <= 0)
        return ST_OK;
    TRY(store_curve(store, t->id, v->study.metric, &stored, &n, err));
    struct gp_curve_point *points = mem_array(n > 0 ? n : 1, sizeof *points);
    struct gp_curve *curves =
        es->n < es->cap ? es->curves : mem_grow(es->curves, es->n, es->cap > 0 ? 2 * es->cap : 64, sizeof *curves);
    if (curves != NULL && curves != es->curves) {
        es->curves = curves;
        es->cap = es->cap > 0 ? 2 * es->cap : 64;
    }
    if (points == NULL || curves == NULL) {
        mem_free(points);
        mem_free(stored);
        return FAIL(err, ST_NOMEM, "out of memory for a learning curve");
    }
    for (size_t k = 0; k < n; k++)
        points[k] = (struct gp_curve_point){(double)stored[k].env_steps / (double)t->env_steps,
                                            v->study.maximize ? stored[k].value : -stored[k].value};
    mem_free(stored);
    es->curves[es->n++] = (struct gp_curve){.n = n, .points = points, .score = v->gp[i].score, .cost = v->gp[i].cost};
    return ST_OK;
}

/* Env steps that trial i is to take. */
static double steps_of(const struct study_view *v, size_t i, const struct setup *setup)
{
    for (size_t k = 0; k < v->search.space.dim; k++)
        if (strcmp(v->search.space.params[k].key, "train.total_timesteps") == 0)
            return v->x[i][k];
    return (double)setup->train.total_timesteps;
}

bool early_stop_judge(const struct early_stop *es, const struct study_view *v, size_t i, const struct setup *setup,
                      int64_t env_steps, double score, double seconds, char *ret_reason, size_t size)
{
    double total = steps_of(v, i, setup), sign = v->study.maximize ? 1.0 : -1.0;
    double cost = v->search.cost == SEARCH_COST_STEPS ? (double)env_steps : seconds;
    struct gp_verdict verdict;

    if (!es->on || !(total > 0) || trial_is_confirming(&v->trials[i])) /* a run cut short confirms nothing */
        return false;
    gp_stop_judge(es->curves, es->n, &(struct gp_stop_now){(double)env_steps / total, sign * score, cost}, &verdict);
    if (verdict.stop)
        snprintf(ret_reason, size,
                 "stopped early at %.0f %% of its steps with %s %.4g: %zu finished curves lead to %.4g +- %.2g, and a "
                 "finished trial has %.4g for no more; chance to do better %.2g",
                 100.0 * (double)env_steps / total, v->study.metric, score, verdict.n_known, sign * verdict.final_mean,
                 verdict.final_sd, sign * verdict.level, verdict.chance);
    return verdict.stop;
}
