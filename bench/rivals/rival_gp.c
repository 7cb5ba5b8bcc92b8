/* rival_gp.c - the Gaussian process that Protein describes: linear plus Matern-3/2 kernel with a length in
 * each dimension, hyper-parameters by a few steps of Adam on the likelihood. Invariant: nothing random; predictions
 * need rival_gp_factor after the last change of rows or theta. */
#include "bench/rivals/rivals.h"

#include "base/mem.h"

#include <cblas.h>
#include <lapacke.h>
#include <math.h>
#include <string.h>

#define NOISE_MEAN -4.605170185988091 /* ln 0.01 */
#define NOISE_SD 0.5
#define JITTER_FIRST 1e-8
#define JITTER_LAST 1e-2
#define TAU 6.283185307179586

double rival_normal(struct rng *rng)
{
    double a = 1.0 - rng_f64(rng), b = rng_f64(rng);
    return sqrt(-2.0 * log(a)) * cos(TAU * b);
}

void rival_to_box(const struct space *space, const double *x, double *ret_v)
{
    space_to_unit(space, x, ret_v);
    for (size_t i = 0; i < space->dim; i++)
        ret_v[i] = 2.0 * ret_v[i] - 1.0;
}

void rival_from_box(const struct space *space, const double *v, double *ret_x)
{
    double u[SPACE_MAX_DIM];
    for (size_t i = 0; i < space->dim; i++)
        u[i] = 0.5 * (v[i] + 1.0);
    space_from_unit(space, u, ret_x);
}

void rival_gp_init(struct rival_gp *gp, size_t dim, size_t n_max, double length)
{
    memset(gp, 0, sizeof *gp);
    gp->dim = dim;
    gp->n_max = n_max;
    gp->x = mem_array2(n_max, dim, sizeof *gp->x);
    gp->y = mem_array(n_max, sizeof *gp->y);
    gp->alpha = mem_array(n_max, sizeof *gp->alpha);
    gp->k = mem_array2(n_max, n_max, sizeof *gp->k);
    gp->chol = mem_array2(n_max, n_max, sizeof *gp->chol);
    gp->decay = mem_array2(n_max, n_max, sizeof *gp->decay);
    for (size_t i = 0; i < dim; i++)
        gp->theta[i] = log(length);
    gp->theta[dim] = 0.0;
    gp->theta[dim + 1] = log(0.1);
    gp->theta[dim + 2] = NOISE_MEAN;
}

void rival_gp_free(struct rival_gp *gp)
{
    double *const blocks[] = {gp->x, gp->y, gp->alpha, gp->k, gp->chol, gp->decay};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++)
        mem_free(blocks[i]);
    memset(gp, 0, sizeof *gp);
}

void rival_gp_add(struct rival_gp *gp, const double *x, double y)
{
    memcpy(gp->x + gp->n * gp->dim, x, gp->dim * sizeof *x);
    gp->y[gp->n++] = y;
}

static double covariance(const struct rival_gp *gp, const double *inv_sq, const double *a, const double *b,
                         double *ret_decay)
{
    double sq = 0.0, product = 0.0, variance = exp(gp->theta[gp->dim]);
    for (size_t i = 0; i < gp->dim; i++) {
        sq += (a[i] - b[i]) * (a[i] - b[i]) * inv_sq[i];
        product += a[i] * b[i];
    }
    double r = sqrt(3.0 * sq), decay = variance * exp(-r);
    if (ret_decay)
        *ret_decay = decay;
    return (1.0 + r) * decay + exp(gp->theta[gp->dim + 1]) * product;
}

static void inverse_squares(const struct rival_gp *gp, double *ret)
{
    for (size_t i = 0; i < gp->dim; i++)
        ret[i] = exp(-2.0 * gp->theta[i]);
}

/* chol and alpha; false when no jitter helps. */
static bool factor(struct rival_gp *gp)
{
    size_t n = gp->n, ld = gp->n_max;
    double inv_sq[SPACE_MAX_DIM], noise = exp(gp->theta[gp->dim + 2]);
    inverse_squares(gp, inv_sq);
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j <= i; j++)
            gp->k[i * ld + j] =
                covariance(gp, inv_sq, gp->x + i * gp->dim, gp->x + j * gp->dim, gp->decay + i * ld + j);
    for (double jitter = JITTER_FIRST; jitter < 2.0 * JITTER_LAST; jitter *= 10.0) {
        for (size_t i = 0; i < n; i++) {
            memcpy(gp->chol + i * ld, gp->k + i * ld, (i + 1) * sizeof *gp->chol);
            gp->chol[i * ld + i] += noise + jitter;
        }
        if (LAPACKE_dpotrf_work(LAPACK_COL_MAJOR, 'U', (lapack_int)n, gp->chol, (lapack_int)ld) != 0)
            continue;
        memcpy(gp->alpha, gp->y, n * sizeof *gp->alpha);
        cblas_dtrsv(CblasRowMajor, CblasLower, CblasNoTrans, CblasNonUnit, (int)n, gp->chol, (int)ld, gp->alpha, 1);
        cblas_dtrsv(CblasRowMajor, CblasLower, CblasTrans, CblasNonUnit, (int)n, gp->chol, (int)ld, gp->alpha, 1);
        return true;
    }
    return false;
}

double rival_gp_objective(struct rival_gp *gp, double *g)
{
    size_t n = gp->n, ld = gp->n_max, dim = gp->dim;
    double inv_sq[SPACE_MAX_DIM], noise = exp(gp->theta[dim + 2]), linear = exp(gp->theta[dim + 1]);
    memset(g, 0, (dim + 3) * sizeof *g);
    if (!factor(gp))
        return INFINITY;
    inverse_squares(gp, inv_sq);
    double value = 0.5 * cblas_ddot((int)n, gp->y, 1, gp->alpha, 1);
    for (size_t i = 0; i < n; i++)
        value += log(gp->chol[i * ld + i]);
    if (LAPACKE_dpotri_work(LAPACK_COL_MAJOR, 'U', (lapack_int)n, gp->chol, (lapack_int)ld) != 0)
        return INFINITY;
    /* with G = K^-1 - alpha alpha^T: dvalue/dp = 1/2 sum_ij G_ij dK_ij/dp, pairs below the diagonal twice */
    for (size_t i = 0; i < n; i++) {
        const double *a = gp->x + i * dim;
        for (size_t j = 0; j <= i; j++) {
            const double *b = gp->x + j * dim;
            double weight = (i == j ? 0.5 : 1.0) * (gp->chol[i * ld + j] - gp->alpha[i] * gp->alpha[j]);
            double pull = 3.0 * weight * gp->decay[i * ld + j], product = 0.0;
            for (size_t c = 0; c < dim; c++) {
                g[c] += pull * (a[c] - b[c]) * (a[c] - b[c]) * inv_sq[c];
                product += a[c] * b[c];
            }
            g[dim] += weight * (gp->k[i * ld + j] - linear * product);
            g[dim + 1] += weight * linear * product;
            if (i == j)
                g[dim + 2] += weight * noise;
        }
    }
    double z = (gp->theta[dim + 2] - NOISE_MEAN) / NOISE_SD;
    g[dim + 2] += 1.0 + z / NOISE_SD;
    return value + gp->theta[dim + 2] + 0.5 * z * z;
}

void rival_gp_fit(struct rival_gp *gp, int steps, double size)
{
    double g[RIVAL_MAX_THETA], first[RIVAL_MAX_THETA] = {0}, second[RIVAL_MAX_THETA] = {0};
    for (int k = 1; k <= steps; k++) {
        if (!isfinite(rival_gp_objective(gp, g)))
            return;
        for (size_t i = 0; i < gp->dim + 3; i++) {
            first[i] = 0.9 * first[i] + 0.1 * g[i];
            second[i] = 0.999 * second[i] + 0.001 * g[i] * g[i];
            gp->theta[i] -= size * (first[i] / (1.0 - pow(0.9, k))) / (sqrt(second[i] / (1.0 - pow(0.999, k))) + 1e-8);
        }
    }
}

enum status rival_gp_factor(struct rival_gp *gp, struct error *err)
{
    if (!factor(gp))
        return FAIL(err, ST_NUMERIC, "the covariance of %zu points does not factor", gp->n);
    return ST_OK;
}

void rival_gp_predict(const struct rival_gp *gp, const double *x, size_t m, double *ret_mean)
{
    double inv_sq[SPACE_MAX_DIM];
    inverse_squares(gp, inv_sq);
    for (size_t p = 0; p < m; p++) {
        ret_mean[p] = 0.0;
        for (size_t j = 0; j < gp->n; j++)
            ret_mean[p] += covariance(gp, inv_sq, x + p * gp->dim, gp->x + j * gp->dim, NULL) * gp->alpha[j];
    }
}
