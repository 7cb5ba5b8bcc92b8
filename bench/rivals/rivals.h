/* rivals.h - the method `protein`, to measure `pareto` against (bench/sweep/README.md): a small Gaussian process of the
 * kind that it describes, and the box [-1, 1]^dim that it searches. */
#pragma once

#include "gp/gp_priv.h"

/* The method's point for trial `number`, as suggester_next gives one. suggester: of the space, seed and settings; its
 * own method is not asked. Pure: (suggester's settings, history, number) decide. */
enum status protein_next(struct suggester *suggester, const struct gp_history *history, int64_t number,
                         struct suggestion *ret_suggestion, struct error *err) MUST_USE;

/* ---- rival_gp.c ---- */

#define RIVAL_MAX_THETA (SPACE_MAX_DIM + 3)

/* k(a, b) = variance (1 + sqrt3 r) exp(-sqrt3 r) + linear a.b, r^2 = sum ((a_i - b_i) / length_i)^2; plus noise. */
struct rival_gp {
    size_t dim, n, n_max;
    double *x; /* (n_max, dim) in the box */
    double *y; /* (n_max) scaled by the caller; the mean is 0 */
    double *k, *chol; /* (n_max, n_max) lower triangles */
    double *decay; /* (n_max, n_max) variance exp(-sqrt3 r), work of the gradient */
    double *alpha; /* (n_max) K^-1 y */
    double theta[RIVAL_MAX_THETA]; /* ln length of each dimension, ln variance, ln linear, ln noise */
};

void rival_gp_init(struct rival_gp *gp, size_t dim, size_t n_max, double length);
void rival_gp_free(struct rival_gp *gp); /* a zeroed one is fine */
/* Appends a row; n < n_max. */
void rival_gp_add(struct rival_gp *gp, const double *x, double y);
/* Minus log likelihood, less the prior of the noise, LogNormal(ln 0.01, 0.5); INFINITY when K does not factor. */
double rival_gp_objective(struct rival_gp *gp, double *ret_gradient);
/* Adam in theta, `steps` steps of this size. */
void rival_gp_fit(struct rival_gp *gp, int steps, double size);
enum status rival_gp_factor(struct rival_gp *gp, struct error *err) MUST_USE; /* before predicting */
void rival_gp_predict(const struct rival_gp *gp, const double *x, size_t m, double *ret_mean); /* m points (m, dim) */

double rival_normal(struct rng *rng);
void rival_to_box(const struct space *space, const double *x, double *ret_v); /* natural values to [-1, 1] */
void rival_from_box(const struct space *space, const double *v, double *ret_x); /* snapped natural values */
