/* model_predict.c - what a factored Gaussian process says: predictions of many points, of one with its slopes, and rough
 * ones for sorting out candidates; and points that join it at their expected outputs.
 * Invariants: (1) a rough standard deviation is never smaller than the exact one (it knows fewer points); its mean is
 * exact; (2) points that are believed move no mean. */
#include <math.h>
#include <string.h>

#include <cblas.h>
#include <lapacke.h>

#include "gp/gp_priv.h"
#include "gp/model_priv.h"

#define SD_MIN 1e-9
#define SUB_WORTH (MODEL_SUB + MODEL_SUB / 4) /* rows up to which the exact prediction is as cheap */

/* The factors of the new rows under those that are there: L21 = K21 L11^-T, L22 of K22 - L21 L21^T, and the same of the
 * inverse. False when that does not factor. */
static bool extend(struct model *m, size_t n_new)
{
    size_t n = m->n, ld = m->ld;
    double *l21 = m->chol + n * ld, *l22 = l21 + n, *h21 = m->h + n * ld, *h22 = h21 + n;
    for (size_t p = 0; p < n_new; p++) {
        double point[SPACE_MAX_DIM];
        for (size_t c = 0; c < m->dim; c++)
            point[c] = m->x[c * ld + n + p];
        double *k = m->k + (n + p) * ld;
        cov_row(&m->cov, m->x, ld, n + p + 1, point, k, NULL);
        k[n + p] += m->noise * m->share[n + p];
        memcpy(l21 + p * ld, k, (n + p + 1) * sizeof *k);
        l22[p * ld + p] += m->jitter;
    }
    cblas_dtrsm(CblasRowMajor, CblasRight, CblasLower, CblasTrans, CblasNonUnit, (int)n_new, (int)n, 1.0, m->chol,
                (int)ld, l21, (int)ld);
    cblas_dsyrk(CblasRowMajor, CblasLower, CblasNoTrans, (int)n_new, (int)n, -1.0, l21, (int)ld, 1.0, l22, (int)ld);
    if (LAPACKE_dpotrf_work(LAPACK_COL_MAJOR, 'U', (lapack_int)n_new, l22, (lapack_int)ld) != 0)
        return false;
    for (size_t p = 0; p < n_new; p++) {
        memcpy(h21 + p * ld, l21 + p * ld, n * sizeof *h21);
        memcpy(h22 + p * ld, l22 + p * ld, (p + 1) * sizeof *h22);
    }
    cblas_dtrmm(CblasRowMajor, CblasRight, CblasLower, CblasNoTrans, CblasNonUnit, (int)n_new, (int)n, -1.0, m->h,
                (int)ld, h21, (int)ld);
    cblas_dtrsm(CblasRowMajor, CblasLeft, CblasLower, CblasNoTrans, CblasNonUnit, (int)n_new, (int)n, 1.0, l22, (int)ld,
                h21, (int)ld);
    return LAPACKE_dtrtri_work(LAPACK_COL_MAJOR, 'U', 'N', (lapack_int)n_new, h22, (lapack_int)ld) == 0;
}

enum status model_believe(struct model *m, const double *u, size_t n_new, struct error *err)
{
    for (size_t p = 0; p < n_new; p++) {
        cov_row(&m->cov, m->x, m->ld, m->n, u + p * m->dim, m->row_k, NULL);
        m->y[m->n + p] = cblas_ddot((int)m->n, m->row_k, 1, m->alpha, 1);
        m->share[m->n + p] = 1.0;
    }
    for (size_t p = 0; p < n_new; p++)
        for (size_t c = 0; c < m->dim; c++)
            m->x[c * m->ld + m->n + p] = u[p * m->dim + c];
    bool extended = extend(m, n_new);
    m->n += n_new;
    if (!extended)
        return model_factor(m, err); /* with more jitter */
    memcpy(m->alpha, m->y, m->n * sizeof *m->alpha);
    model_solve(m, m->alpha);
    return ST_OK;
}

/* cross (n_points, ld): covariances; ret_mean. */
static void predict_means(const struct model *m, const double *u, size_t n_points, double *cross, double *ret_mean)
{
    for (size_t p = 0; p < n_points; p++) {
        cov_row(&m->cov, m->x, m->ld, m->n, u + p * m->dim, cross + p * m->ld, NULL);
        ret_mean[p] = model_trend(m, u + p * m->dim, 1) + cblas_ddot((int)m->n, cross + p * m->ld, 1, m->alpha, 1);
    }
}

void model_predict_mean(const struct model *m, const double *u, size_t n_points, double *cross, double *ret_mean)
{
    for (size_t p = 0; p < n_points; p++)
        predict_means(m, u + p * m->dim, 1, cross, ret_mean + p);
}

/* Rows of cross become (L^-1 k)^T, and what they explain is taken from the variance. */
static void explain(const struct model *m, const double *chol, size_t n, size_t ld, size_t n_points, double *cross,
                    size_t ld_cross, double *ret_sd)
{
    cblas_dtrsm(CblasRowMajor, CblasRight, CblasLower, CblasTrans, CblasNonUnit, (int)n_points, (int)n, 1.0, chol,
                (int)ld, cross, (int)ld_cross);
    for (size_t p = 0; p < n_points; p++) {
        double known = cblas_ddot((int)n, cross + p * ld_cross, 1, cross + p * ld_cross, 1);
        ret_sd[p] = sqrt(fmax(m->cov.variance - known, SD_MIN * SD_MIN));
    }
}

void model_predict(const struct model *m, const double *u, size_t n_points, double *cross, double *ret_mean,
                   double *ret_sd)
{
    predict_means(m, u, n_points, cross, ret_mean);
    explain(m, m->chol, m->n, m->ld, n_points, cross, m->ld, ret_sd);
}

void model_rough_init(struct model *m, size_t n_first, size_t n_last)
{
    size_t n = 0, left = MODEL_SUB;
    m->n_sub = 0;
    if (m->n <= SUB_WORTH)
        return;
    n_last = n_last < left / 2 ? n_last : left / 2;
    n_first = n_first < left / 2 ? n_first : left / 2;
    left -= n_last + n_first;
    size_t between = m->n - n_last - n_first;
    for (size_t i = 0; i < n_first; i++)
        m->sub[n++] = i;
    for (size_t i = 0; i < left; i++)
        m->sub[n++] = n_first + i * between / left;
    for (size_t i = m->n - n_last; i < m->n; i++)
        m->sub[n++] = i;
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j <= i; j++) /* sub rises: this is the lower triangle */
            m->sub_chol[i * MODEL_SUB + j] = m->k[m->sub[i] * m->ld + m->sub[j]] + (i == j ? m->jitter : 0.0);
    if (LAPACKE_dpotrf_work(LAPACK_COL_MAJOR, 'U', (lapack_int)n, m->sub_chol, MODEL_SUB) == 0)
        m->n_sub = n;
}

void model_predict_rough(const struct model *m, const double *u, size_t n_points, double *cross, double *ret_mean,
                         double *ret_sd)
{
    if (m->n_sub == 0) {
        model_predict(m, u, n_points, cross, ret_mean, ret_sd);
        return;
    }
    predict_means(m, u, n_points, cross, ret_mean);
    for (size_t p = 0; p < n_points;
         p++) /* to the front of the row: sub rises, so nothing is overwritten before its time */
        for (size_t i = 0; i < m->n_sub; i++)
            cross[p * m->ld + i] = cross[p * m->ld + m->sub[i]];
    explain(m, m->sub_chol, m->n_sub, MODEL_SUB, n_points, cross, m->ld, ret_sd);
}

void model_predict_gradient(struct model *m, const double *u, double *ret_mean, double *ret_sd, double *ret_dmean,
                            double *ret_dsd)
{
    size_t n = m->n, ld = m->ld;
    double *k = m->row_k, *h = m->row_h, *v = m->row_v;
    cov_row(&m->cov, m->x, ld, n, u, k, h);
    memcpy(v, k, n * sizeof *v); /* v = L^-1 k, then L^-T of it: K^-1 k */
    cblas_dtrmv(CblasRowMajor, CblasLower, CblasNoTrans, CblasNonUnit, (int)n, m->h, (int)ld, v, 1);
    double var = m->cov.variance - cblas_ddot((int)n, v, 1, v, 1);
    cblas_dtrmv(CblasRowMajor, CblasLower, CblasTrans, CblasNonUnit, (int)n, m->h, (int)ld, v, 1);
    bool floored = !(var > SD_MIN * SD_MIN);
    *ret_mean = model_trend(m, u, 1) + cblas_ddot((int)n, k, 1, m->alpha, 1);
    *ret_sd = floored ? SD_MIN : sqrt(var);
    for (size_t c = 0; c < m->dim; c++) {
        const double *xc = m->x + c * ld;
        double dm = 0.0, dv = 0.0, w = m->cov.inv_sq[c], p = u[c];
        if (!m->cov.categorical[c]) {
#pragma omp simd reduction(+ : dm, dv)
            for (size_t j = 0; j < n; j++) {
                double slope = h[j] * (p - xc[j]);
                dm -= slope * m->alpha[j];
                dv += slope * v[j];
            }
        }
        ret_dmean[c] = m->trend[c] + w * dm;
        ret_dsd[c] = floored ? 0.0 : w * dv / *ret_sd; /* half of the variance's, over sd */
    }
}
