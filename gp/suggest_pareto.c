/* suggest_pareto.c - the model-based method: a design, then the point of the largest expected hypervolume improvement
 * under independent Gaussian processes, one for each objective, times the chance to keep all limits under one for each
 * limit. docs/pareto.md has the formulas.
 * Invariant: nothing is kept between calls. */
#include "gp/pareto_priv.h"

/* Distinct points, but for branches, among the trials that are done, or among all that have not failed, up to
 * `enough`. */
static size_t count_points(const struct gp_history *history, size_t dim, bool done, size_t enough)
{
    MEM_LOCAL const double **points = mem_array(enough, sizeof *points);
    size_t n = 0;
    for (size_t i = 0; i < history->n && n < enough; i++) {
        const struct gp_trial *t = &history->trials[i];
        size_t k = 0;
        bool ended = t->state == GP_TRIAL_DONE || t->state == GP_TRIAL_INFEASIBLE;
        if (t->is_branch)
            continue;
        if (done ? !ended : t->state == GP_TRIAL_FAILED || t->state == GP_TRIAL_DROPPED)
            continue;
        while (k < n && memcmp(points[k], t->x, dim * sizeof *t->x) != 0)
            k++;
        if (k == n)
            points[n++] = t->x;
    }
    return n;
}

#define LEARNED 0.02 /* of a score's range above its floor */
#define DESIGNS 3 /* times the length of the design, where nothing learns */

/* Does every finished run lie at the floor of a score that has one? Models would tell no more than which runs are
 * cheap. */
static bool nothing_learns(const struct gp_history *history)
{
    double floor = history->score_min + LEARNED * (history->score_max - history->score_min);
    for (size_t i = 0; i < history->n; i++)
        if (history->trials[i].state == GP_TRIAL_DONE && history->trials[i].score > floor)
            return false;
    return history->has_score_bounds;
}

static bool in_design_phase(const struct suggester *s, const struct gp_history *history)
{
    size_t n_other = 0, n_init = s->settings.n_init, need = n_init / 2 < 2 ? 2 : n_init / 2, dim = s->space.dim;
    for (size_t i = 0; i < history->n_other; i++) /* another study's finished runs spare the design */
        n_other += history->other[i].state == GP_TRIAL_DONE;
    if (n_other >= n_init)
        return false;
    if (nothing_learns(history) && s->settings.max_cost == 0.0) /* a design keeps no cap */
        n_init *= DESIGNS;
    return count_points(history, dim, false, n_init) < n_init || count_points(history, dim, true, need) < need;
}

#define EXPLAINED 0.2 /* of the scores, by a model that is worth following at every turn */

/* Does the model know next to nothing of scores? Then what it promises is noise, and the largest gains seem to lie in
 * corners and where runs are cheapest, for as long as nothing is found there (bench/notes/controller.md). Only the model
 * without a line is asked: a line that is fitted to all rows seems to explain each. A spread point keeps no cap. */
static bool is_blind(const struct suggester *suggester, const struct pareto_search *s)
{
    return s->smooth && s->explained < EXPLAINED && pareto_gains_count(s) && suggester->settings.max_cost == 0.0;
}

#define STARTS                                                                                                         \
    3 /* five of ten taught no more, and cost more where the other game misleads (bench/notes/controller.md) */

/* A point of another game's front that is to be tried: its highest score, one in the middle, its lowest cost. */
static bool take_start(const struct suggester *s, const struct gp_history *history, const struct seen *seen,
                       double *ret_x)
{
    bool found = false;
    if (!history->other_game || !trust_ranks(&s->model_space, history))
        return false;
    MEM_LOCAL size_t *order = mem_array(history->n_other, sizeof *order);
    size_t n = pareto_front_order(&(struct gp_history){.n = history->n_other, .trials = history->other}, order);
    size_t most = s->settings.n_init / 2 < STARTS ? s->settings.n_init / 2 : STARTS, n_starts = n < most ? n : most;
    for (size_t k = 0; k < n_starts && !found; k++) {
        size_t at = n_starts > 1 ? k * (n - 1) / (n_starts - 1) : 0;
        memcpy(ret_x, history->other[order[at]].x, s->space.dim * sizeof *ret_x);
        space_snap(&s->space, ret_x);
        found = !seen_has(seen, ret_x) && suggest_is_allowed(s, ret_x);
    }
    return found;
}

static void report(const struct pareto_search *s, const struct candidate *c, const char *origin, struct suggestion *ret)
{
    double mean = s->score.y_mean + s->score.y_sd * c->f2_mean;
    double sd = s->score.y_sd * sqrt(c->f2_sd * c->f2_sd + s->score.noise);
    memcpy(ret->x, c->x, s->space->dim * sizeof *ret->x);
    strcpy(ret->origin, origin);
    ret->has_prediction = true;
    ret->score_mean = warp_from(&s->obs.warp, mean);
    ret->score_sd = warp_sd_from(&s->obs.warp, mean, sd);
    ret->log_cost_mean = s->cost.y_mean + s->cost.y_sd * c->f1_mean;
    ret->log_cost_sd = s->cost.y_sd * sqrt(c->f1_sd * c->f1_sd + s->cost.noise);
    ret->feasible = exp(c->log_feasible);
}

enum status suggest_pareto(struct suggester *suggester, const struct gp_history *all, const struct seen *seen,
                           int64_t number, struct suggestion *ret, struct error *err)
{
    const struct gp_history trusted = trust_history(&suggester->model_space, all), *history = &trusted;
    bool found = false, designs = in_design_phase(suggester, history);
    enum status rc = ST_OK;
    if (designs && take_start(suggester, all, seen, ret->x)) {
        strcpy(ret->origin, SUGGEST_START_ORIGIN);
        return ST_OK;
    }
    if (!designs) {
        struct pareto_search *s = mem_alloc(sizeof *s);
        struct candidate c;
        rc = pareto_search_init(s, suggester, history, number, false, err);
        found = rc == ST_OK && !is_blind(suggester, s) &&
                pareto_best(s, suggester, seen, rng_split(suggester->root, (uint64_t)number), &c);
        if (found)
            report(s, &c, "ehvi", ret);
        pareto_search_free(s);
        mem_free(s);
    }
    if (rc == ST_NUMERIC) { /* no model of these data: continue with the design */
        error_clear(err);
        rc = ST_OK;
    }
    if (rc == ST_OK && !found) { /* also when every candidate was tried before, or the model is blind */
        strcpy(ret->origin, "sobol");
        rc = suggest_design_sobol(suggester, seen, number, ret->x, err);
    }
    return rc;
}

enum status suggest_pareto_many(struct suggester *suggester, const struct gp_history *all, const struct seen *seen,
                                int64_t number, size_t n, struct suggestion *ret, size_t *ret_n, struct error *err)
{
    const struct gp_history trusted = trust_history(&suggester->model_space, all), *history = &trusted;
    *ret_n = 0;
    if (in_design_phase(suggester, history))
        return ST_OK;
    MEM_LOCAL struct pareto_search *s = mem_alloc(sizeof *s);
    MEM_LOCAL struct candidate *c = mem_array(n, sizeof *c);
    enum status rc = pareto_search_init(s, suggester, history, number, true, err);
    if (rc == ST_OK)
        *ret_n = pareto_many(s, suggester, seen, rng_split(suggester->root, (uint64_t)number), n, c);
    for (size_t k = 0; k < *ret_n; k++) {
        ret[k] = (struct suggestion){0};
        report(s, &c[k], "ehvi", &ret[k]);
    }
    pareto_search_free(s);
    if (rc != ST_NUMERIC)
        return rc;
    error_clear(err); /* no model of these data: the design continues */
    return ST_OK;
}
