/* covariance.c - the Matern-5/2 covariance between one point and many rows.
 * k(r) = variance (1 + sqrt5 r + 5/3 r^2) exp(-sqrt5 r), r^2 = sum_i distance_i^2 / length_i^2.
 * The loops are written to vectorise; exp is our own because the C library's does not. */
#include <math.h>
#include <string.h>

#include "gp/model_priv.h"

/* exp(x) for x <= 0 to about 2 ulp: x = k ln2 + r, |r| <= ln2 / 2, a Taylor polynomial in r, and 2^k by its bits. */
static inline double exp_nonpositive(double x)
{
    const double round_bits = 6755399441055744.0; /* 1.5 * 2^52: adding it rounds to a whole number in the low bits */
    x = x < -700.0 ? -700.0 : x;
    double shifted = x * 1.4426950408889634 + round_bits;
    double k = shifted - round_bits;
    double r = (x - k * 0x1.62e42fefa3800p-1) - k * 0x1.ef35793c76730p-45;
    double p = 1.0 / 6227020800.0;
    p = p * r + 1.0 / 479001600.0;
    p = p * r + 1.0 / 39916800.0;
    p = p * r + 1.0 / 3628800.0;
    p = p * r + 1.0 / 362880.0;
    p = p * r + 1.0 / 40320.0;
    p = p * r + 1.0 / 5040.0;
    p = p * r + 1.0 / 720.0;
    p = p * r + 1.0 / 120.0;
    p = p * r + 1.0 / 24.0;
    p = p * r + 1.0 / 6.0;
    p = p * r + 0.5;
    p = p * r + 1.0;
    p = p * r + 1.0;
    uint64_t bits;
    double power;
    memcpy(&bits, &shifted, sizeof bits);
    bits = (bits << 52) + ((uint64_t)1023 << 52);
    memcpy(&power, &bits, sizeof power);
    return p * power;
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
    const double variance = cov->variance;
    if (!ret_h) {
        for (size_t j = 0; j < n; j++) {
            double s = sqrt(5.0 * ret_k[j]);
            ret_k[j] = variance * (1.0 + s + s * s / 3.0) * exp_nonpositive(-s);
        }
        return;
    }
    for (size_t j = 0; j < n; j++) {
        double s = sqrt(5.0 * ret_k[j]), e = variance * exp_nonpositive(-s);
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
