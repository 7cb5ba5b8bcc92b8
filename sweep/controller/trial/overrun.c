/* overrun.c - see overrun.h. A run that turns out expensive may still be worth it: it is stopped only where its best
 * prospect is what another trial has reached for less. */
#include "sweep/controller/trial/overrun.h"

#include "study/view/study_view.h"

/* The finished trial of no higher cost with the highest score (by its belief, where there is one); view->n: none. A
 * branch of trial i is i itself, earlier on: that it is good is not a reason to stop. */
static size_t best_for(const struct study_view *v, size_t i, double cost, double *ret_score)
{
    size_t best = v->n;
    int64_t of;

    *ret_score = -INFINITY;
    for (size_t k = 0; k < v->n; k++) {
        const struct gp_belief *belief = study_view_belief(v, k);
        double score = belief != NULL ? fmin(belief->score, v->gp[k].score) : v->gp[k].score;
        if (v->gp[k].state != GP_TRIAL_DONE || v->gp[k].cost > cost || study_view_breaks_limit(v, k) ||
            !(score > *ret_score) || (trial_is_branch(&v->trials[k], &of) && of == v->trials[i].number))
            continue;
        *ret_score = score;
        best = k;
    }
    return best;
}

bool overrun_is_hopeless(const struct study_view *v, size_t i, double cost, double score, char *ret_why, size_t size)
{
    const struct prediction *p = &v->trials[i].predicted;
    double sign = v->study.maximize ? 1 : -1, reached;
    char a[32], b[32], c[32];

    if (!p->known || study_view_has_third(v) || v->search.envs.n > 0 || !isfinite(score) || !isfinite(cost))
        return false;
    double expected = exp(p->log_cost),
           limit = fmax(expected * exp(GP_SD_95 * p->log_cost_sd), OVERRUN_FACTOR * expected);
    if (!(cost > limit && cost > expected + OVERRUN_LEAST_S))
        return false;
    size_t best = best_for(v, i, cost, &reached);
    if (best == v->n || reached < sign * score || reached < sign * p->score + GP_SD_95 * p->score_sd)
        return false;
    snprintf(ret_why, size,
             "stopped early: it had cost %s where %s were expected and hardly more than %s, and what it could have "
             "reached, trial %lld has reached for less (sweep.stop_overruns)",
             study_view_cost_text(v, cost, a), study_view_cost_text(v, expected, b), study_view_cost_text(v, limit, c),
             (long long)v->trials[best].number);
    return true;
}
