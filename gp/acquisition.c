/* acquisition.c - exact expected improvement of the hypervolume of two minimised objectives, in logarithms.
 * For a front a_1 < ... < a_n, b_1 > ... > b_n inside the reference (R1, R2), a_0 = -inf, a_{n+1} = R1, b_0 = R2, and
 * psi_k(t) = s_k h((t - m_k) / s_k), h(z) = phi(z) + z Phi(z) = E max(0, z - Z):
 *     EHVI = sum_{i=0..n} [psi_1(a_{i+1}) - psi_1(a_i)] psi_2(b_i).
 * Every term is kept as a logarithm, so a point that is hopeless by hundreds of standard deviations still has a finite
 * value and a slope. O(front) a point. */
#include "base/mem.h"
#include "gp/model/model_priv.h"

#include <math.h>
#include <stdlib.h>

#define LN_SQRT_2PI 0.91893853320467274178
#define TAIL -25.0 /* below it the asymptotic series are more exact than the differences */

double normal_log_pdf(double z)
{
    return -0.5 * z * z - LN_SQRT_2PI;
}

double normal_log_cdf(double z)
{
    if (z > TAIL)
        return log(0.5 * erfc(-z * M_SQRT1_2));
    double w = 1.0 / (z * z);
    return normal_log_pdf(z) - log(-z) + log1p(-w * (1.0 - w * (3.0 - w * 15.0)));
}

double normal_log_h(double z)
{
    if (z > TAIL)
        return log(exp(normal_log_pdf(z)) + z * 0.5 * erfc(-z * M_SQRT1_2));
    double w = 1.0 / (z * z);
    return normal_log_pdf(z) + log(w) + log1p(-w * (3.0 - w * (15.0 - w * 105.0)));
}

/* ln(exp(hi) - exp(lo)); -inf when they do not differ. */
static double log_diff(double hi, double lo)
{
    double d = lo - hi;
    if (!(d < 0.0))
        return -INFINITY;
    return hi + (d > -M_LN2 ? log(-expm1(d)) : log1p(-exp(d)));
}

struct pair {
    double a, b;
};

static int compare_pairs(const void *vp, const void *vq)
{
    const struct pair *p = vp, *q = vq;
    if (p->a != q->a)
        return p->a < q->a ? -1 : 1;
    return p->b < q->b ? -1 : p->b > q->b;
}

void ehvi_init(struct ehvi *e, const double *f1, const double *f2, size_t n, double ref1, double ref2)
{
    struct pair *pairs = mem_array(n, sizeof *pairs);
    *e = (struct ehvi){.a = mem_array(n + 2, sizeof *e->a), .b = mem_array(n + 1, sizeof *e->b)};
    size_t n_inside = 0;
    for (size_t i = 0; i < n; i++)
        if (f1[i] < ref1 && f2[i] < ref2)
            pairs[n_inside++] = (struct pair){f1[i], f2[i]};
    qsort(pairs, n_inside, sizeof *pairs, compare_pairs);
    e->a[0] = -INFINITY;
    e->b[0] = ref2;
    for (size_t i = 0; i < n_inside; i++)
        if (pairs[i].b < e->b[e->n]) {
            e->n++;
            e->a[e->n] = pairs[i].a;
            e->b[e->n] = pairs[i].b;
        }
    e->a[e->n + 1] = ref1;
    mem_free(pairs);
}

void ehvi_free(struct ehvi *e)
{
    mem_free(e->a);
    mem_free(e->b);
    *e = (struct ehvi){0};
}

/* Of one objective at threshold t: ln psi, ln Phi and ln phi of z. */
struct edge {
    double psi, cdf, pdf;
};

static struct edge edge_at(double t, double m, double s, double log_s, bool slopes)
{
    double z = (t - m) / s;
    struct edge edge = {.psi = log_s + normal_log_h(z)};
    if (slopes) {
        edge.cdf = normal_log_cdf(z);
        edge.pdf = normal_log_pdf(z);
    }
    return edge;
}

double ehvi_log(const struct ehvi *e, double m1, double s1, double m2, double s2, double *ret_gradient)
{
    const double none = -INFINITY;
    double log_s1 = log(s1), log_s2 = log(s2), top = none, sum = 0.0, g[4] = {0};
    struct edge left = {none, none, none};
    for (size_t i = 0; i <= e->n; i++) {
        struct edge right = edge_at(e->a[i + 1], m1, s1, log_s1, ret_gradient != NULL);
        struct edge level = edge_at(e->b[i], m2, s2, log_s2, ret_gradient != NULL);
        double width = log_diff(right.psi, left.psi), term = width + level.psi;
        if (term > none) {
            double weight = exp(term - fmax(term, top)); /* sum and g are relative to exp(top) */
            if (term > top) {
                double shrink = exp(top - term);
                sum *= shrink;
                for (int k = 0; k < 4; k++)
                    g[k] *= shrink;
                top = term;
            }
            sum += weight;
            if (ret_gradient) { /* d ln(width), d ln(level) by mean and sd; dpsi/dm = -Phi, dpsi/ds = phi */
                g[0] -= weight * exp(log_diff(right.cdf, left.cdf) - width);
                g[1] += weight * (exp(right.pdf - width) - exp(left.pdf - width));
                g[2] -= weight * exp(level.cdf - level.psi);
                g[3] += weight * exp(level.pdf - level.psi);
            }
        }
        left = right;
    }
    if (ret_gradient)
        for (int k = 0; k < 4; k++)
            ret_gradient[k] = sum > 0.0 ? g[k] / sum : 0.0;
    return top + log(sum);
}
