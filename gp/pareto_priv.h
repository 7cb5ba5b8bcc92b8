/* pareto_priv.h - one proposal of the model-based method, in two steps: what is known (pareto_search.c,
 * pareto_limits.c), and the best point by it (pareto_candidates.c). Private to gp/. f1 = ln cost, f2 = -score and f3 =
 * the third objective in the models' standardised units, all minimised. */
#pragma once

#include "gp/gp_priv.h"
#include "gp/model/model_priv.h"
#include "gp/model/observations_priv.h"

#define BELIEFS_BATCH 128 /* points predicted at a time */

struct candidate {
    double value; /* ln EHVI + ln P(cost <= cap) + ln P(works, keeps all limits); -INFINITY: predicted too expensive */
    double log_feasible; /* ln P(keeps all limits) */
    double f1_mean, f1_sd; /* of ln cost, standardised */
    double f2_mean, f2_sd; /* of the score, standardised, higher is better */
    double u[SPACE_MAX_DIM]; /* snapped */
    double x[SPACE_MAX_DIM];
};

/* Levels of the noise between runs that beliefs are averaged over, see beliefs.c. */
#define BELIEFS_LEVELS 6

struct pareto_search {
    const struct space *space;
    bool smooth; /* the kind of its models */
    struct observations obs;
    size_t n_front;
    size_t *front; /* groups on the front, owned */
    size_t *score_row; /* (groups) row of the score model; SIZE_MAX: none; owned */
    size_t n_pending; /* pending groups that are believed */
    bool many; /* see pareto_search_init */
    struct model score, cost; /* factored, with the pending points */
    double explained; /* see model_explained; of the score, without the pending points */
    struct model level[BELIEFS_LEVELS]; /* of the score, at several levels of noise: beliefs_learn */
    double weight[BELIEFS_LEVELS]; /* of each level; 1 in all */
    struct model ok; /* of 1 (worked) and -1 (failed), when has_ok */
    bool has_ok;
    struct model third; /* when has_third */
    bool has_third;
    /* Of what limit k bounds, when knows[k]; on the logarithm when by_log[k]. Bounds in the model's units. */
    struct model limit[GP_MAX_LIMITS];
    size_t n_limits;
    bool knows[GP_MAX_LIMITS], by_log[GP_MAX_LIMITS];
    double limit_min[GP_MAX_LIMITS], limit_max[GP_MAX_LIMITS];
    bool has_feasible; /* a finished point keeps all limits; else nothing but the chance to keep them is sought */
    struct ehvi ehvi;
    double cap; /* ln max_cost in the cost model's units; INFINITY: none */
};

/* Observations, front and both models, without the pending points (there is space for max_pending). like: the search
 * whose hyper-parameters to take; NULL: they are fitted. search is zeroed; pareto_search_free is due also after a
 * failure. ST_NUMERIC: these data have no model. */
enum status pareto_models_init(struct pareto_search *search, const struct space *space,
                               const struct gp_history *history, size_t max_pending, bool smooth,
                               const struct pareto_search *like, struct error *err) MUST_USE;
/* The same with pending points, the model of failures, and the acquisition. many: more than SUGGEST_FEW trials are
 * pending or asked for at once, so that those which have ended are mostly cheap ones (pareto_many.c). */
enum status pareto_search_init(struct pareto_search *search, const struct suggester *suggester,
                               const struct gp_history *history, int64_t number, bool many, struct error *err) MUST_USE;
/* One more model of the score's rows, with the hyper-parameters of search->score; not yet factored. */
void pareto_load_score(struct pareto_search *search, struct model *model);
void pareto_search_free(struct pareto_search *search);
size_t pareto_search_ld(const struct pareto_search *search); /* the largest ld of its models */
/* One model of these values (groups), factored. like: the model whose hyper-parameters to take; NULL: they are
 * fitted. */
enum status pareto_load_model(struct pareto_search *search, struct model *model, const struct mean_ss *values,
                              size_t n_pending, const struct model *like, struct error *err) MUST_USE;

/* ---- trust.c ---- */

/* The history, without the other study's runs unless own runs confirm them; those of another game are left out. Borrows
 * all of it. */
struct gp_history trust_history(const struct space *space, const struct gp_history *history);
/* Do own runs rank their points as the other study's model does, beyond chance? */
bool trust_ranks(const struct space *space, const struct gp_history *history);

/* ---- pareto_limits.c ---- */

enum status pareto_load_limits(struct pareto_search *search, const struct gp_history *history,
                               const struct pareto_search *like, struct error *err) MUST_USE;
/* ln P(the expected outcomes keep all limits) at m <= BELIEFS_BATCH points u (m, dim); cross: work of (m,
 * pareto_search_ld). */
void pareto_log_feasible(const struct pareto_search *search, const double *u, size_t m, double *cross, double *ret);
/* False before a point keeps all limits: such a point alone is sought then. */
bool pareto_gains_count(const struct pareto_search *search);
double pareto_feasible_gradient(struct pareto_search *search, const double *u, double *gradient); /* of one; is added */
/* How far group g is from keeping all limits; 0: it keeps them. */
double pareto_violation(const struct pareto_search *search, const struct gp_history *history, size_t g);

/* ---- beliefs.c ---- */

/* Learns the score at every level of noise; after pareto_models_init. ST_NUMERIC: these data have no model. */
enum status beliefs_learn(struct pareto_search *search, const struct gp_history *history, struct error *err) MUST_USE;
/* What to believe of m <= BELIEFS_BATCH points u (m, dim), of which the search has the groups with their own runs
 * (NULL: none has been run). Of the history the bounds alone count. on_front is left. cross is work of (m, larger ld of
 * both models). */
void beliefs_predict(const struct pareto_search *search, const struct gp_history *history, const double *u,
                     const size_t *groups, size_t m, double *cross, struct gp_belief *ret);

/* beliefs, point, recommended and score_noise_sd of a zeroed insight; n is set. */
void beliefs_init(struct gp_insight *insight, const struct pareto_search *search, const struct gp_history *history);

/* The best point that was not tried and is allowed, judged snapped. False: there is none. */
bool pareto_best(struct pareto_search *search, const struct suggester *suggester, const struct seen *seen,
                 struct rng rng, struct candidate *ret_best) MUST_USE;
/* The n best one after the other, each as if those before it had ended as expected; the search's front is used up.
 * Returns how many there are. */
size_t pareto_many(struct pareto_search *search, const struct suggester *suggester, const struct seen *seen,
                   struct rng rng, size_t n, struct candidate *ret) MUST_USE;
