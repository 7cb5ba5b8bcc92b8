/* rival_priv.h - what the methods `protein` and `carbs` share: a small Gaussian process of the kind both describe, and
 * the box [-1, 1]^dim that both search. They are here to be measured against; see bench/sweep/README.md. Private to
 * gp/. */
#ifndef GP_RIVAL_PRIV_H
#define GP_RIVAL_PRIV_H

#include "gp/gp_priv.h"

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

enum status rival_gp_init(struct rival_gp *gp, size_t dim, size_t n_max, double length, struct error *err) MUST_USE;
void rival_gp_free(struct rival_gp *gp); /* a zeroed one is fine */
/* Appends a row; n < n_max. */
void rival_gp_add(struct rival_gp *gp, const double *x, double y);
/* Minus log likelihood, less the prior of the noise, LogNormal(ln 0.01, 0.5); INFINITY when K does not factor. */
double rival_gp_objective(struct rival_gp *gp, double *ret_gradient);
/* Adam in theta, so many steps of this size. */
void rival_gp_fit(struct rival_gp *gp, int steps, double size);
enum status rival_gp_factor(struct rival_gp *gp, struct error *err) MUST_USE; /* before predicting */
/* m points (m, dim); work (m, n_max); ret_sd may be NULL. Of the function, without noise. */
void rival_gp_predict(const struct rival_gp *gp, const double *x, size_t m, double *work, double *ret_mean,
                      double *ret_sd);

double rival_normal(struct rng *rng);
void rival_to_box(const struct space *space, const double *x, double *ret_v); /* natural values to [-1, 1] */
void rival_from_box(const struct space *space, const double *v, double *ret_x); /* snapped natural values */

#endif
