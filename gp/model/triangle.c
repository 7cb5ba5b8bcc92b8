/* triangle.c - the inverse factor M = L^-1 of a covariance K = L L^T, a row at a time, and what is read off it:
 *     v = M k        |v|^2 is what the rows explain of a point with covariances k
 *     w = M^T v      K^-1 k
 * A new row needs just these of its covariances: M_i = (-w, 1) / sqrt(K_ii - |v|^2). So one pass over the rows, eight
 * at a time and each read from memory once, is the inner loop of fits and of climbs. Up to a few hundred rows
 * it is quicker than LAPACK's blocks with their copies, and a point's numbers do not depend on the points beside it.
 * Invariants: (1) M is row-major, its rows ld apart, a multiple of 8, and 0 above the diagonal and in rows n .. up to
 * the next multiple of 8, so that all loops run over whole squares of eight; (2) a row depends on the rows above it
 * alone; (3) sizes of arrays do not change the arithmetic. */
#include "gp/model/model_priv.h"

#define PIVOT_MIN 1e-13 /* of K_ii: below it the row says nothing that rounding has left */
#define FEW_POINTS 3 /* up to here each by itself is quicker than TRIANGLE_LANES side by side */

double triangle_pass(const double *m, size_t ld, size_t n, const double *k, double *ret_w)
{
    double known = 0.0;
    for (size_t i = 0; i < n; i += 8) {
        const double *a = m + i * ld, *b = a + ld, *c = b + ld, *d = c + ld, *e = d + ld, *f = e + ld, *g = f + ld,
                     *h = g + ld;
        double va = 0.0, vb = 0.0, vc = 0.0, vd = 0.0, ve = 0.0, vf = 0.0, vg = 0.0, vh = 0.0;
#pragma omp simd reduction(+ : va, vb, vc, vd, ve, vf, vg, vh)
        for (size_t j = 0; j < i + 8; j++) {
            va += a[j] * k[j];
            vb += b[j] * k[j];
            vc += c[j] * k[j];
            vd += d[j] * k[j];
            ve += e[j] * k[j];
            vf += f[j] * k[j];
            vg += g[j] * k[j];
            vh += h[j] * k[j];
        }
        known += va * va + vb * vb + vc * vc + vd * vd + ve * ve + vf * vf + vg * vg + vh * vh;
        for (size_t j = i; j < i + 8; j++)
            ret_w[j] = 0.0;
#pragma omp simd
        for (size_t j = 0; j < i + 8; j++)
            ret_w[j] +=
                (va * a[j] + vb * b[j] + vc * c[j] + vd * d[j]) + (ve * e[j] + vf * f[j] + vg * g[j] + vh * h[j]);
    }
    return known;
}

bool triangle_factor(double *m, size_t ld, size_t n, const double *k, double jitter, double *work)
{
    for (size_t i = 0; i < n; i++) {
        double *row = m + i * ld, pivot = k[i * ld + i] + jitter;
        for (size_t r = i; i % 8 == 0 && r < i + 8; r++)
            memset(m + r * ld, 0, (i + 8) * sizeof *m);
        double left = pivot - triangle_pass(m, ld, i, k + i * ld, work);
        if (!(left > PIVOT_MIN * pivot))
            return false;
        double scale = 1.0 / sqrt(left);
        for (size_t j = 0; j < i; j++)
            row[j] = -scale * work[j];
        row[i] = scale;
    }
    return true;
}

void triangle_solve(const double *m, size_t ld, size_t n, double *x, double *work)
{
    for (size_t j = 0; j < n || j % 8 != 0; j++)
        work[j] = j < n ? x[j] : 0.0;
    triangle_pass(m, ld, n, work, x);
}

/* |M k|^2 of TRIANGLE_LANES points, lanes (n, TRIANGLE_LANES). */
static void known_side_by_side(const double *m, size_t ld, size_t n, const double *lanes, double *ret_known)
{
    for (size_t z = 0; z < TRIANGLE_LANES; z++)
        ret_known[z] = 0.0;
    for (size_t i = 0; i < n; i += 8) {
        double v[8][TRIANGLE_LANES] = {{0.0}};
        const double *a = m + i * ld;
        size_t length = i + 8 < n ? i + 8 : n;
        for (size_t j = 0; j < length; j++)
            for (size_t q = 0; q < 8; q++)
#pragma omp simd
                for (size_t z = 0; z < TRIANGLE_LANES; z++)
                    v[q][z] += a[q * ld + j] * lanes[j * TRIANGLE_LANES + z];
        for (size_t q = 0; q < 8; q++)
#pragma omp simd
            for (size_t z = 0; z < TRIANGLE_LANES; z++)
                ret_known[z] += v[q][z] * v[q][z];
    }
}

void triangle_known(const double *m, size_t ld, size_t n, size_t n_points, const double *k, double *lanes,
                    double *ret_known)
{
    if (n_points <= FEW_POINTS) {
        for (size_t p = 0; p < n_points; p++)
            ret_known[p] = triangle_pass(m, ld, n, k + p * ld, lanes);
        return;
    }
    for (size_t at = 0; at < n_points; at += TRIANGLE_LANES) {
        double known[TRIANGLE_LANES];
        size_t here = n_points - at < TRIANGLE_LANES ? n_points - at : TRIANGLE_LANES;
        for (size_t j = 0; j < n; j++)
            for (size_t z = 0; z < TRIANGLE_LANES; z++)
                lanes[j * TRIANGLE_LANES + z] = z < here ? k[(at + z) * ld + j] : 0.0;
        known_side_by_side(m, ld, n, lanes, known);
        memcpy(ret_known + at, known, here * sizeof *known);
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
