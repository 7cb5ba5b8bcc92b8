/* covariance.c - the covariance between one point and many rows, of either of two kinds; r^2 = sum_i distance_i^2 /
 * length_i^2.
 * Matern-5/2:     k = variance (1 + sqrt5 r + 5/3 r^2) exp(-sqrt5 r)
 * smooth:         k = variance (exp(-r^2 / 2) + SLOPE sum_i (u_i - 1/2) (u'_i - 1/2)), the sum over numbers, not
 *                 choices
 */
#include "gp/model/exp.h"
#include "gp/model/model_priv.h"

#define SLOPE 0.5 /* variance of a slope, of that of the function */

double cov_slope(const struct cov *cov, size_t i)
{
    return cov->smooth && !cov->categorical[i] ? SLOPE * cov->variance : 0.0;
}

double cov_variance(const struct cov *cov, const double *u, size_t stride)
{
    double sum = cov->variance;
    for (size_t i = 0; i < cov->dim; i++)
        sum += cov_slope(cov, i) * (u[i * stride] - 0.5) * (u[i * stride] - 0.5);
    return sum;
}

/* k: from r^2 to the smooth covariance. */
static void smooth_row(const struct cov *cov, const double *x, size_t ld, size_t n, const double *point, double *k,
                       double *ret_h)
{
    const double variance = cov->variance;
    for (size_t j = 0; j < n; j++)
        k[j] = variance * exp_of_negative(-0.5 * k[j]);
    if (ret_h)
        for (size_t j = 0; j < n; j++)
            ret_h[j] = k[j];
    for (size_t i = 0; i < cov->dim; i++) {
        double w = cov_slope(cov, i) * (point[i] - 0.5);
        if (w != 0.0)
            for (size_t j = 0; j < n; j++)
                k[j] += w * (x[i * ld + j] - 0.5);
    }
}

void cov_row(const struct cov *cov, const double *x, size_t ld, size_t n, const double *point, double *ret_k,
             double *ret_h)
{
    for (size_t j = 0; j < n; j++)
        ret_k[j] = 0.0; /* r^2 for now */
    for (size_t i = 0; i < cov->dim; i++) {
        const double *xi = x + i * ld;
        double w = cov->inv_sq[i], p = point[i];
        if (cov->categorical[i])
            for (size_t j = 0; j < n; j++)
                ret_k[j] += xi[j] == p ? 0.0 : w;
        else
            for (size_t j = 0; j < n; j++)
                ret_k[j] += w * (p - xi[j]) * (p - xi[j]);
    }
    if (cov->smooth) {
        smooth_row(cov, x, ld, n, point, ret_k, ret_h);
        return;
    }
    const double variance = cov->variance;
    if (!ret_h) {
        for (size_t j = 0; j < n; j++) {
            double s = sqrt(5.0 * ret_k[j]);
            ret_k[j] = variance * (1.0 + s + s * s / 3.0) * exp_of_negative(-s);
        }
        return;
    }
    for (size_t j = 0; j < n; j++) {
        double s = sqrt(5.0 * ret_k[j]), e = variance * exp_of_negative(-s);
        ret_k[j] = (1.0 + s + s * s / 3.0) * e;
        ret_h[j] = 5.0 / 3.0 * (1.0 + s) * e;
    }
}

double cov_weighted_sq(const struct cov *cov, size_t i, const double *xi, size_t n, double value, const double *weight)
{
    double sum = 0.0;
    if (cov->categorical[i]) {
#pragma omp simd reduction(+ : sum)
        for (size_t j = 0; j < n; j++)
            sum += xi[j] == value ? 0.0 : weight[j];
    } else {
#pragma omp simd reduction(+ : sum)
        for (size_t j = 0; j < n; j++)
            sum += weight[j] * (value - xi[j]) * (value - xi[j]);
    }
    return sum;
}
