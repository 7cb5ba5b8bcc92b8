/* pareto_limits.c - the chance that a point keeps the limits of its outcomes: a Gaussian process for what each limit
 * bounds, the processes taken as independent, so that the chances multiply. What is bounded is learned on its logarithm
 * where all of it, and its bounds, are above 0: memory and time differ by factors.
 * The chance is that of what is expected at the point, and not of a run with its noise: else points just past a limit
 * are tried until one is lucky.
 * The acquisition is EHVI over the feasible front times that chance: Abdolshah, Shilton, Rana, Gupta, Venkatesh,
 * "Expected hypervolume improvement with constraints", ICPR 2018; for one objective Gardner et al., "Bayesian
 * optimization with inequality constraints", ICML 2014. Until a point keeps all limits it is the chance alone: Gelbart,
 * Snoek, Adams, "Bayesian optimization with unknown constraints", UAI 2014. */
#include "gp/pareto_priv.h"

#define KNOWN_MIN 2 /* points of which an outcome is known, from which on its limit is modelled */
#define SHORT 0.25 /* lengths of the second start of a fit */
#define SHORT_EVALS 40
#define SHORT_ROWS 192

static bool is_by_log(const struct mean_ss *values, size_t n, const struct gp_limit *limit)
{
    if ((isfinite(limit->min) && !(limit->min > 0.0)) || (isfinite(limit->max) && !(limit->max > 0.0)))
        return false;
    for (size_t g = 0; g < n; g++)
        if (values[g].n > 0.0 && !(values[g].mean > 0.0))
            return false;
    return true;
}

static double scaled(const struct pareto_search *s, size_t k, double bound)
{
    const struct model *m = &s->limit[k];
    return isinf(bound) ? bound : ((s->by_log[k] ? log(bound) : bound) - m->y_mean) / m->y_sd;
}

/* From short lengths too: what wavers over the space is else taken for noise. */
static enum status fit_short(struct model *m, struct error *err)
{
    double first[OPTIMISE_MAX_DIM], gradient[OPTIMISE_MAX_DIM], best = model_objective(m, m->theta, gradient);
    memcpy(first, m->theta, sizeof first);
    for (size_t i = 0; i < m->dim; i++)
        m->theta[i] = log(SHORT);
    m->theta[m->dim] = 0.0;
    m->theta[m->dim + 1] = log(0.01);
    model_fit(m, SHORT_EVALS, SHORT_ROWS);
    if (!(model_objective(m, m->theta, gradient) < best))
        memcpy(m->theta, first, sizeof first);
    return model_factor(m, err);
}

static enum status load_limit(struct pareto_search *s, const struct gp_history *history, size_t k,
                              const struct pareto_search *like, struct error *err)
{
    size_t n = s->obs.n, n_known = 0;
    const struct gp_limit *limit = &history->limits[k];
    MEM_LOCAL struct mean_ss *values = mem_array(n, sizeof *values);
    s->by_log[k] = is_by_log(s->obs.outcome[k], n, limit);
    for (size_t g = 0; g < n; g++) {
        values[g] = s->obs.outcome[k][g];
        n_known += values[g].n > 0.0;
        if (values[g].n > 0.0 && s->by_log[k]) { /* the spread of runs as a share of their mean */
            values[g].ss /= values[g].mean * values[g].mean;
            values[g].mean = log(values[g].mean);
        }
    }
    enum status rc = ST_OK;
    s->knows[k] = n_known >= KNOWN_MIN;
    bool same = like && like->knows[k] && like->by_log[k] == s->by_log[k];
    if (s->knows[k])
        rc = pareto_load_model(s, &s->limit[k], values, 0, same ? &like->limit[k] : NULL, err);
    if (s->knows[k] && rc == ST_OK && !same && !s->limit[k].constant)
        rc = fit_short(&s->limit[k], err);
    if (rc != ST_OK || !s->knows[k])
        return rc;
    s->limit_min[k] = scaled(s, k, limit->min);
    s->limit_max[k] = scaled(s, k, limit->max);
    return ST_OK;
}

enum status pareto_load_limits(struct pareto_search *s, const struct gp_history *history,
                               const struct pareto_search *like, struct error *err)
{
    s->n_limits = history->n_limits;
    for (size_t k = 0; k < s->n_limits; k++)
        TRY(load_limit(s, history, k, like, err));
    return ST_OK;
}

bool pareto_gains_count(const struct pareto_search *s)
{
    return s->n_limits == 0 || s->has_feasible;
}

void pareto_log_feasible(const struct pareto_search *s, const double *u, size_t m, double *cross, double *ret)
{
    double mean[BELIEFS_BATCH], sd[BELIEFS_BATCH];
    for (size_t p = 0; p < m; p++)
        ret[p] = 0.0;
    for (size_t k = 0; k < s->n_limits; k++) {
        if (!s->knows[k])
            continue;
        model_predict(&s->limit[k], u, m, cross, mean, sd);
        for (size_t p = 0; p < m; p++)
            ret[p] += normal_log_between(s->limit_min[k], s->limit_max[k], mean[p], sd[p], NULL);
    }
}

double pareto_feasible_gradient(struct pareto_search *s, const double *u, double *gradient)
{
    double value = 0.0, mean, sd, slope[2], dmean[SPACE_MAX_DIM], dsd[SPACE_MAX_DIM];
    for (size_t k = 0; k < s->n_limits; k++) {
        if (!s->knows[k])
            continue;
        model_predict_gradient(&s->limit[k], u, &mean, &sd, dmean, dsd);
        value += normal_log_between(s->limit_min[k], s->limit_max[k], mean, sd, slope);
        for (size_t i = 0; i < s->space->dim; i++)
            gradient[i] += slope[0] * dmean[i] + slope[1] * dsd[i];
    }
    return value;
}

/* How far the outcomes of a group lie outside their limits, in standard deviations of all groups' outcomes. */
double pareto_violation(const struct pareto_search *s, const struct gp_history *history, size_t g)
{
    double sum = 0.0;
    for (size_t k = 0; k < history->n_limits; k++) {
        const struct mean_ss *all = s->obs.outcome[k];
        double n = 0.0, mean = 0.0, ss = 0.0;
        for (size_t j = 0; j < s->obs.n; j++)
            if (all[j].n > 0.0) {
                double delta = all[j].mean - mean;
                mean += delta / ++n;
                ss += delta * (all[j].mean - mean);
            }
        double sd = n > 1.0 && ss > 0.0 ? sqrt(ss / (n - 1.0)) : 1.0, v = all[g].mean;
        if (all[g].n > 0.0)
            sum += fmax(0.0, fmax(history->limits[k].min - v, v - history->limits[k].max)) / sd;
        else
            sum += 1.0;
    }
    return sum;
}
