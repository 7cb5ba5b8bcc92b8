/* pareto_pool.h - the candidates of a proposal, or of a batch of them, and what each is rated by besides the objectives.
 * Private to gp/: pareto_candidates.c looks for the best one, pareto_many.c for many. */
#pragma once

#include "gp/pareto_priv.h"

#define BLOCK BELIEFS_BATCH /* candidates predicted at a time */

/* Work of one call. s, suggester and seen are borrowed. */
struct search_state {
    struct pareto_search *s;
    const struct suggester *suggester; /* for suggest_is_allowed */
    const struct seen *seen;
    double *cross; /* (BLOCK, ld) */
    double unit[BLOCK * SPACE_MAX_DIM];
    double mean1[BLOCK], sd1[BLOCK], mean2[BLOCK], sd2[BLOCK], value[BLOCK], log_feasible[BLOCK];
    double *pool_u; /* (n_pool, dim) snapped */
    struct rated *pool; /* (n_pool) best first, once rated */
    size_t n_pool;
};

/* A candidate's place in the pool's order. */
struct rated {
    double value, f1_mean;
    size_t at; /* row of pool_u */
};

/* For n choices: more than SUGGEST_FEW have more candidates near the front. */
struct search_state *search_state_create(struct pareto_search *search, const struct suggester *suggester,
                                         const struct seen *seen, size_t n);
void search_state_free(struct search_state *h);
/* Candidates: Sobol, and steps from front points; finite spaces whole. */
void pool_fill(struct search_state *h, struct rng rng);
/* Sets u and x of candidate `at`; false: it was tried, or is not allowed. */
bool pool_take(const struct search_state *h, size_t at, struct candidate *ret);
bool pool_is_open(const struct search_state *h, const double *x); /* not tried before, and allowed */
/* ln P(cost <= cap); to gradient (NULL: not wanted) its slopes by mean and sd are added. */
double pool_cap_log(const struct search_state *h, double mean, double sd, double *gradient);
/* ln P(a run works) by what the model of that says; slopes by its mean and sd (NULL: not wanted). */
double pool_ok_log(const struct search_state *h, double mean, double sd, double *ret_slope_m, double *ret_slope_s);
