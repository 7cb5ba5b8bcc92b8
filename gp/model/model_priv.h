/* model_priv.h - the numbers under `pareto`: covariance, Gaussian process, bounded minimiser, expected hypervolume
 * improvement. Private to gp/. Points are unit coordinates; data are kept dimension-major, x[i * ld + j] being
 * coordinate i of row j, so that every inner loop runs over rows. */
#pragma once

#include "gp/gp.h"

/* ---- covariance.c: with a length per dimension; a categorical dimension has distance 0 or 1 ---- */

struct cov {
    size_t dim;
    bool categorical[SPACE_MAX_DIM];
    double inv_sq[SPACE_MAX_DIM]; /* 1 / length^2 */
    double variance; /* k(x, x) without slopes */
    bool smooth; /* squared exponential and slopes instead of Matern-5/2 */
};

/* k[j] = k(point, row j) and, unless h is NULL, h[j] for j < n, with which
 * dk/dx_i = -h (x_i - row_i) / length_i^2 [+ cov_slope row_i] and dk/dln length_i = h (x_i - row_i)^2 / length_i^2. */
void cov_row(const struct cov *cov, const double *x, size_t ld, size_t n, const double *point, double *ret_k,
             double *ret_h);
/* k(u, u); coordinates are stride apart. */
double cov_variance(const struct cov *cov, const double *u, size_t stride);
/* d2k / dx_i drow_i of the slopes: 0 where there are none. */
double cov_slope(const struct cov *cov, size_t i);
/* Sum over j < n of weight[j] * distance_i(value, row j)^2, for one dimension i. */
double cov_weighted_sq(const struct cov *cov, size_t i, const double *xi, size_t n, double value, const double *weight);

/* ---- optimise.c: L-BFGS inside a box ---- */

#define OPTIMISE_MAX_DIM (SPACE_MAX_DIM + 2)

/* Value and gradient at x; INFINITY or NaN: not allowed there, step back. */
typedef double optimise_fn(void *ctx, const double *x, double *ret_gradient);
/* x: start in, best point out (never worse than the start). Returns the value there. */
double optimise_box(optimise_fn *fn, void *ctx, size_t dim, const double *lo, const double *hi, int max_evals,
                    double *x);

/* ---- triangle.c: M = L^-1 of a covariance K = L L^T, row-major; ld is a multiple of 8, and M is 0 above the diagonal
 * and in the rows up to the next multiple of 8 ---- */

/* w = M^T (M k) and |M k|^2. k and w have finite numbers up to the next multiple of 8 after n. */
double triangle_pass(const double *m, size_t ld, size_t n, const double *k, double *ret_w);
/* M of K (lower triangle, jitter on its diagonal). False: K is not positive definite. */
bool triangle_factor(double *m, size_t ld, size_t n, const double *k, double jitter, double *work /* (ld) */) MUST_USE;
/* x becomes K^-1 x; both arrays are as long as k above. */
void triangle_solve(const double *m, size_t ld, size_t n, double *x, double *work);
#define TRIANGLE_LANES 16
/* |M k|^2 of points whose k are ld apart, as long as k above. */
void triangle_known(const double *m, size_t ld, size_t n, size_t n_points, const double *k,
                    double *lanes /* (ld, TRIANGLE_LANES) */, double *ret_known);
/* The lower triangle of K^-1 = M^T M. */
void triangle_gram(const double *m, size_t ld, size_t n, double *ret);

/* ---- model.c: Gaussian process ---- */

#define MODEL_SD_MIN 1e-9 /* of the function, standardised */
#define MODEL_NOISE_FLOOR 1e-6 /* of the standardised outputs' variance */

struct model {
    size_t dim, n, n_max, ld; /* ld >= n_max: rows of the square arrays and of x */
    struct cov cov;
    double *x; /* (dim, ld) */
    double *y; /* (ld) standardised, without the trend */
    double *share; /* (ld) noise variance of row j is noise * share[j]: 1 / number of repeats */
    double *k; /* (n_max, ld) covariance, lower triangle; work */
    double *h; /* (n_max, ld) its derivative factor; work of fitting */
    double *inverse; /* (ld, ld) L^-1, see triangle.c */
    double *alpha; /* (ld) K^-1 y */
    double *row_k, *row_h, *row_v; /* (ld) work of one point */
    double *lanes; /* (ld, TRIANGLE_LANES) work */
    double theta[OPTIMISE_MAX_DIM]; /* ln length of each dimension, ln variance, ln (noise - floor) */
    double noise, jitter;
    double y_mean, y_sd; /* natural = y_mean + y_sd * standardised */
    double trend[SPACE_MAX_DIM + 1]; /* of the standardised mean: slopes by (u - 1/2), and its value there */
    bool constant; /* all outputs equal: nothing to fit */
    double repeat_df, repeat_ss; /* repeats merged into rows: lost degrees of freedom, their squares (standardised) */
    double *runs; /* (ld) number of repeats of row j */
    double *runs_ss; /* (ld) their squared deviations, standardised */
    double *noise_min; /* (ld) known variance of one run at least, standardised */
    /* Noise by the expected output, see model_noise.c; n_noise 0: not learned, the same everywhere. */
    size_t n_noise;
    double *noise_at, *noise_ss,
        *noise_n; /* (ld) expected output; sum of squares that noise is expected to have; runs */
};

/* Rows to learn from: distinct points (n, dim) row-major, mean output, number of repeats, sum of squared deviations. */
struct model_data {
    size_t n;
    const double *u, *mean, *ss;
    const double *repeats;
    const double *noise_min; /* (n) variance that one run is known to have at least; NULL: 0 */
    bool smooth; /* see struct cov; no line is taken out then, it is in the covariance */
};

void model_init(struct model *model, const struct space *space, size_t n_max);
void model_free(struct model *model); /* a zeroed one is fine */
/* Standardises and stores; data->n <= n_max. Hyper-parameters go to where their fit begins. */
void model_set_data(struct model *model, const struct model_data *data);
/* The standardised mean function at a point whose coordinates are stride apart. */
double model_trend(const struct model *model, const double *u, size_t stride);
/* Negative log posterior of theta (a constant left out) and its gradient, over all rows. */
double model_objective(void *model, const double *theta, double *ret_gradient);
/* Best theta in max_evals evaluations on at most max_rows rows. */
void model_fit(struct model *model, int max_evals, size_t max_rows);
/* Best lengths and variance for this variance of a run's noise (standardised), from where theta is. */
void model_fit_at_noise(struct model *model, double noise, int max_evals, size_t max_rows);
/* Log likelihood of all runs, repeats of a row included, and the penalties of lengths and variance; after model_factor
 * or model_learn_noise. A constant is left out. */
double model_evidence(const struct model *model);
/* Factors K for theta and the rows; needed before predicting. ST_NUMERIC when no jitter of the ladder helps. */
enum status model_factor(struct model *model, struct error *err) MUST_USE;
/* Learns how noise depends on the expected output, and factors again; after model_factor. theta stays. */
enum status model_learn_noise(struct model *model, struct error *err) MUST_USE;
#define MODEL_NOISE_RUNS                                                                                               \
    3.0 /* the noise that all other rows let expect of a point counts as this many runs of its own */
/* Variance of one run where this output (standardised) is expected. own: the point's row, or SIZE_MAX: what the row
 * says is taken for its own runs alone, so that few lucky ones do not count twice. ret_freedom (NULL: not wanted):
 * degrees of freedom. */
double model_noise(const struct model *model, double mean, size_t own, double *ret_freedom);
/* Share of the squared deviations from the mean that the model explains at rows that it does not know, each predicted
 * from the others (the trend is that of all); below 0: it predicts worse than the mean. After model_factor. */
double model_explained(const struct model *model);
/* x (ld, n of them used) becomes K^-1 x; after model_factor. */
void model_solve(struct model *model, double *x);
/* Adds points (m, dim) with the outputs that the model expects there (n + m <= n_max), and factors again; after
 * model_factor. */
enum status model_believe(struct model *model, const double *u, size_t m, struct error *err) MUST_USE;
/* Standardised mean and standard deviation (of the function, without noise) at m points (m, dim); cross is work of
 * (m, ld) and is overwritten. */
void model_predict(const struct model *model, const double *u, size_t m, double *cross, double *ret_mean,
                   double *ret_sd);
void model_predict_mean(const struct model *model, const double *u, size_t m, double *cross,
                        double *ret_mean); /* (ld) */
/* One point, with gradients (dim each); categorical dimensions have gradient 0. */
void model_predict_gradient(struct model *model, const double *u, double *ret_mean, double *ret_sd, double *ret_dmean,
                            double *ret_dsd);

/* ---- field.c: a model's predictions at many points, as some of them join it at their expected outputs ---- */

struct field {
    const struct model *model; /* factored, borrowed, and unchanged meanwhile; u too */
    const double *u; /* (n_points, dim) */
    size_t n_points, width, n_joined;
    double *row; /* (n_points, width) owned */
    double *mean, *var; /* (n_points) standardised; var: by the points that were joined when it was asked for; owned */
    size_t *caught_up; /* (n_points) how many of those that joined are in row and var; owned */
    size_t *joined; /* (max_joined) points, owned */
    double *spread; /* (max_joined) sd of a run at each when it joined, owned */
};

void field_init(struct field *field, const struct model *model, const double *u, size_t n_points, size_t max_joined);
void field_free(struct field *field); /* a zeroed one is fine */
double field_sd(struct field *field, size_t point); /* of the function, with all that joined so far */
void field_join(struct field *field, size_t point); /* joined at most once */

/* ---- acquisition.c: log expected hypervolume improvement, two or three objectives, all minimised ---- */

#define EHVI_MAX 3 /* objectives */
struct ehvi_box;
struct ehvi_edge;
struct ehvi {
    size_t n_objectives, n; /* n: points of the front inside the reference */
    double *at[EHVI_MAX]; /* (n + 2) -inf, the front's points, the reference; owned */
    struct ehvi_box *boxes; /* (n_boxes) that fill what the front does not dominate, owned */
    size_t n_boxes;
    struct ehvi_edge *work; /* (EHVI_MAX, n + 2) owned */
};

/* Points f[objective] (n) in any order and with dominated ones; the front by minimising all. One thread at a time. */
void ehvi_init(struct ehvi *ehvi, size_t n_objectives, const double *const *f, size_t n, const double *ref);
void ehvi_add(struct ehvi *ehvi, const double *f); /* one more point (n_objectives) */
void ehvi_free(struct ehvi *ehvi); /* a zeroed one is fine */
/* ln EHVI at independent normals N(mean[i], sd[i]^2); gradient (NULL: not wanted) by mean and sd of each in turn. */
double ehvi_log(const struct ehvi *ehvi, const double *mean, const double *sd, double *ret_gradient);
/* ln P(lo <= X <= hi) of X ~ N(m, spread^2), either bound may be infinite; ret_slope (NULL: not wanted): by m and
 * spread. */
double normal_log_between(double lo, double hi, double m, double spread, double ret_slope[2]);
double normal_log_pdf(double z);
double normal_log_cdf(double z);
double normal_log_h(double z); /* ln (phi(z) + z Phi(z)) */
