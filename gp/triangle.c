/* triangle.c - the inverse factor M = L^-1 of a covariance K = L L^T, a row at a time, and what is read off it:
 *     v = M k        |v|^2 is what the rows explain of a point with covariances k
 *     w = M^T v      K^-1 k
 * A new row needs just these of its covariances: M_i = (-w, 1) / sqrt(K_ii - |v|^2). So one pass over the rows, four at a
 * time and each read from memory once, is the inner loop of fits, of pending points and of predictions. Up to a few
 * hundred rows it is quicker than LAPACK's blocks with their copies.
 * Invariants: (1) M is row-major, its rows ld apart, a multiple of 8, and 0 above the diagonal, so that loops run over whole
 * vectors; (2) a row depends on the rows above it alone; (3) sizes of arrays do not change the arithmetic. */
#include <math.h>

#include "gp/model_priv.h"

#define PIVOT_MIN 1e-13 /* of K_ii: below it the row says nothing that rounding has left */

static size_t whole(size_t n)
{
    return (n + 7) / 8 * 8;
}

double triangle_pass(const double *m, size_t ld, size_t n, const double *k, double *ret_w)
{
    double known = 0.0;
    size_t i = 0;
    for (size_t j = 0; j < whole(n); j++)
        ret_w[j] = 0.0;
    for (; i + 4 <= n; i += 4) {
        const double *a = m + i * ld, *b = a + ld, *c = b + ld, *d = c + ld;
        double va = 0.0, vb = 0.0, vc = 0.0, vd = 0.0;
        size_t length = whole(i + 4);
#pragma omp simd reduction(+ : va, vb, vc, vd)
        for (size_t j = 0; j < length; j++) {
            va += a[j] * k[j];
            vb += b[j] * k[j];
            vc += c[j] * k[j];
            vd += d[j] * k[j];
        }
        known += va * va + vb * vb + vc * vc + vd * vd;
#pragma omp simd
        for (size_t j = 0; j < length; j++)
            ret_w[j] += va * a[j] + vb * b[j] + vc * c[j] + vd * d[j];
    }
    for (; i < n; i++) {
        const double *a = m + i * ld;
        double va = 0.0;
        size_t length = whole(i + 1);
#pragma omp simd reduction(+ : va)
        for (size_t j = 0; j < length; j++)
            va += a[j] * k[j];
        known += va * va;
#pragma omp simd
        for (size_t j = 0; j < length; j++)
            ret_w[j] += va * a[j];
    }
    return known;
}

bool triangle_grow(double *m, size_t ld, size_t n, size_t n_new, const double *k, double jitter)
{
    for (size_t i = n; i < n + n_new; i++) {
        double *row = m + i * ld, pivot = k[i * ld + i] + jitter;
        double left = pivot - triangle_pass(m, ld, i, k + i * ld, row);
        if (!(left > PIVOT_MIN * pivot))
            return false;
        double scale = 1.0 / sqrt(left);
        for (size_t j = 0; j < i; j++)
            row[j] *= -scale;
        row[i] = scale;
    }
    return true;
}

void triangle_solve(const double *m, size_t ld, size_t n, double *x, double *work)
{
    for (size_t j = 0; j < whole(n); j++)
        work[j] = j < n ? x[j] : 0.0;
    triangle_pass(m, ld, n, work, x);
}

/* Sum of squares of M k, two rows by four points at a time. */
static void known_of_four(const double *m, size_t ld, size_t n, const double *k, size_t ld_k, double *ret)
{
    const double *p = k, *q = p + ld_k, *r = q + ld_k, *s = r + ld_k;
    size_t i = 0;
    double known[4] = {0};
    for (; i < n; i += 2) {
        /* a last row without a partner is its own, and counts once */
        const double *a = m + i * ld, *b = i + 1 < n ? a + ld : a;
        double ap = 0.0, aq = 0.0, ar = 0.0, as = 0.0, bp = 0.0, bq = 0.0, br = 0.0, bs = 0.0;
        double second = i + 1 < n ? 1.0 : 0.0;
        size_t length = whole(i + 1 < n ? i + 2 : i + 1);
#pragma omp simd reduction(+ : ap, aq, ar, as, bp, bq, br, bs)
        for (size_t j = 0; j < length; j++) {
            ap += a[j] * p[j];
            aq += a[j] * q[j];
            ar += a[j] * r[j];
            as += a[j] * s[j];
            bp += b[j] * p[j];
            bq += b[j] * q[j];
            br += b[j] * r[j];
            bs += b[j] * s[j];
        }
        known[0] += ap * ap + second * bp * bp;
        known[1] += aq * aq + second * bq * bq;
        known[2] += ar * ar + second * br * br;
        known[3] += as * as + second * bs * bs;
    }
    for (size_t z = 0; z < 4; z++)
        ret[z] = known[z];
}

void triangle_known(const double *m, size_t ld, size_t n, size_t n_points, const double *k, size_t ld_k,
                    double *ret_known)
{
    size_t p = 0;
    for (; p + 4 <= n_points; p += 4)
        known_of_four(m, ld, n, k + p * ld_k, ld_k, ret_known + p);
    for (; p < n_points; p++) {
        double four[4];
        known_of_four(m, ld, n, k + p * ld_k, 0, four); /* the same point four times: the same arithmetic */
        ret_known[p] = four[0];
    }
}

void triangle_gram(const double *m, size_t ld, size_t n, double *ret)
{
    for (size_t r = 0; r < n; r += 8)
        for (size_t c = 0; c <= r; c += 8) { /* a square of 8 by 8 */
            double sum[8][8] = {{0.0}};
            for (size_t i = r; i < n; i++) {
                const double *a = m + i * ld + r, *b = m + i * ld + c;
                for (size_t q = 0; q < 8; q++)
#pragma omp simd
                    for (size_t z = 0; z < 8; z++)
                        sum[q][z] += a[q] * b[z];
            }
            for (size_t q = 0; q < 8 && r + q < n; q++)
                for (size_t z = 0; z < 8 && c + z <= r + q; z++)
                    ret[(r + q) * ld + c + z] = sum[q][z];
        }
}
