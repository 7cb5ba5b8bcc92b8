/* model_predict.c - what a factored Gaussian process predicts: many points, or one with its slopes; and points that
 * join it at their expected outputs. Invariant: points that are believed move no mean. */
#include "gp/model/model_priv.h"

#include "gp/gp_priv.h"

#include <cblas.h>
#include <lapack.h>

/* More points than this join in blocks, by matrix products; a few as they always did, to the last bit. */
#define FEW_JOIN 16

/* The factor M = L^-1 of the first n rows grows by the rows n .. n + n_new - 1, whose outputs are those expected, so
 * that alpha is 0 there:
 *     (M, 0; -M' V M, M'),   V = K_new M^T,   M' the factor of K_new,new + noise - V V^T.
 * False: that is not positive definite, and M is as it was. */
static bool join_rows(struct model *m, size_t n, size_t n_new)
{
    double *v = m->k + n * m->ld, *corner = v + n, *to = m->inverse + n * m->ld, point[SPACE_MAX_DIM];
    lapack_int ld = (lapack_int)m->ld, old = (lapack_int)n, more = (lapack_int)n_new, info;
    for (size_t p = 0; p < n_new; p++) {
        for (size_t c = 0; c < m->dim; c++)
            point[c] = m->x[c * m->ld + n + p];
        cov_row(&m->cov, m->x, m->ld, n + p + 1, point, v + p * m->ld, NULL);
        corner[p * m->ld + p] += m->noise * m->share[n + p] + m->jitter;
    }
    cblas_dtrmm(CblasRowMajor, CblasRight, CblasLower, CblasTrans, CblasNonUnit, more, old, 1.0, m->inverse, ld, v, ld);
    cblas_dsyrk(CblasRowMajor, CblasLower, CblasNoTrans, more, old, -1.0, v, ld, 1.0, corner, ld);
    /* LAPACK's upper triangle by columns is this lower one by rows. */
    LAPACK_dpotrf("U", &more, corner, &ld, &info);
    if (info == 0)
        LAPACK_dtrtri("U", "N", &more, corner, &ld, &info);
    if (info != 0)
        return false;
    cblas_dtrmm(CblasRowMajor, CblasLeft, CblasLower, CblasNoTrans, CblasNonUnit, more, old, -1.0, corner, ld, v, ld);
    cblas_dtrmm(CblasRowMajor, CblasRight, CblasLower, CblasNoTrans, CblasNonUnit, more, old, 1.0, m->inverse, ld, v,
                ld);
    for (size_t i = 0; n + i < m->ld; i++)
        memset(to + i * m->ld, 0, m->ld * sizeof *to);
    for (size_t p = 0; p < n_new; p++) {
        memcpy(to + p * m->ld, v + p * m->ld, (n + p + 1) * sizeof *to);
        m->alpha[n + p] = 0.0;
    }
    return true;
}

enum status model_believe(struct model *m, const double *u, size_t n_new, struct error *err)
{
    size_t n = m->n;
    for (size_t p = 0; p < n_new; p++) {
        cov_row(&m->cov, m->x, m->ld, n, u + p * m->dim, m->row_k, NULL);
        m->y[n + p] = cblas_ddot((int)n, m->row_k, 1, m->alpha, 1);
        m->share[n + p] = 1.0;
    }
    for (size_t p = 0; p < n_new; p++)
        for (size_t c = 0; c < m->dim; c++)
            m->x[c * m->ld + n + p] = u[p * m->dim + c];
    m->n += n_new;
    return n_new > FEW_JOIN && join_rows(m, n, n_new) ? ST_OK : model_factor(m, err);
}

/* triangle.c's loops run over whole vectors. */
static void clear_tail(const struct model *m, double *k)
{
    for (size_t j = m->n; j % 8 != 0; j++)
        k[j] = 0.0;
}

/* cross (n_points, ld): covariances; ret_mean. */
static void predict_means(const struct model *m, const double *u, size_t n_points, double *cross, double *ret_mean)
{
    for (size_t p = 0; p < n_points; p++) {
        cov_row(&m->cov, m->x, m->ld, m->n, u + p * m->dim, cross + p * m->ld, NULL);
        clear_tail(m, cross + p * m->ld);
        ret_mean[p] = model_trend(m, u + p * m->dim, 1) + cblas_ddot((int)m->n, cross + p * m->ld, 1, m->alpha, 1);
    }
}

void model_predict_mean(const struct model *m, const double *u, size_t n_points, double *cross, double *ret_mean)
{
    for (size_t p = 0; p < n_points; p++)
        predict_means(m, u + p * m->dim, 1, cross, ret_mean + p);
}

/* Standard deviations from what was explained of the variance, in place. */
static void left_over(const struct model *m, const double *u, size_t n_points, double *known)
{
    for (size_t p = 0; p < n_points; p++)
        known[p] = sqrt(fmax(cov_variance(&m->cov, u + p * m->dim, 1) - known[p], MODEL_SD_MIN * MODEL_SD_MIN));
}

void model_predict(const struct model *m, const double *u, size_t n_points, double *cross, double *ret_mean,
                   double *ret_sd)
{
    predict_means(m, u, n_points, cross, ret_mean);
    triangle_known(m->inverse, m->ld, m->n, n_points, cross, m->lanes, ret_sd);
    left_over(m, u, n_points, ret_sd);
}

/* What the slopes add to the gradients of the mean and of half the variance; v = K^-1 k. */
static void add_slopes(const struct model *m, const double *u, const double *v, double *dmean, double *dvar)
{
    for (size_t c = 0; c < m->dim; c++) {
        const double *xc = m->x + c * m->ld;
        double slope = cov_slope(&m->cov, c), dm = 0.0, dv = 0.0;
#pragma omp simd reduction(+ : dm, dv)
        for (size_t j = 0; j < m->n; j++) {
            dm += (xc[j] - 0.5) * m->alpha[j];
            dv += (xc[j] - 0.5) * v[j];
        }
        dmean[c] += slope * dm;
        dvar[c] += slope * (u[c] - 0.5 - dv);
    }
}

void model_predict_gradient(struct model *m, const double *u, double *ret_mean, double *ret_sd, double *ret_dmean,
                            double *ret_dsd)
{
    size_t n = m->n, ld = m->ld;
    double *k = m->row_k, *h = m->row_h, *v = m->row_v;
    cov_row(&m->cov, m->x, ld, n, u, k, h);
    clear_tail(m, k);
    double var = cov_variance(&m->cov, u, 1) - triangle_pass(m->inverse, ld, n, k, v); /* v: K^-1 k */
    bool floored = !(var > MODEL_SD_MIN * MODEL_SD_MIN);
    *ret_mean = model_trend(m, u, 1) + cblas_ddot((int)n, k, 1, m->alpha, 1);
    *ret_sd = floored ? MODEL_SD_MIN : sqrt(var);
    for (size_t c = 0; c < m->dim; c++) {
        ret_dmean[c] = m->trend[c];
        ret_dsd[c] = 0.0;
    }
    if (m->cov.smooth)
        add_slopes(m, u, v, ret_dmean, ret_dsd);
    for (size_t j = 0; j < n; j++) {
        v[j] *= h[j];
        h[j] *= m->alpha[j];
    }
    clear_tail(m, v);
    clear_tail(m, h);
    for (size_t c = 0; c < m->dim; c++) {
        const double *xc = m->x + c * ld;
        double dm = 0.0, dv = 0.0, w = m->cov.inv_sq[c], p = u[c];
        if (!m->cov.categorical[c]) {
#pragma omp simd reduction(+ : dm, dv)
            for (size_t j = 0; j < (n + 7) / 8 * 8; j++) { /* whole vectors, like triangle.c */
                double step = p - xc[j];
                dm -= step * h[j];
                dv += step * v[j];
            }
        }
        ret_dmean[c] += w * dm;
        ret_dsd[c] = floored ? 0.0 : (ret_dsd[c] + w * dv) / *ret_sd; /* half of the variance's, over sd */
    }
}
