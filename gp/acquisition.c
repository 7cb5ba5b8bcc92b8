/* acquisition.c - exact expected improvement of the hypervolume of two or three minimised objectives, in logarithms.
 * What the front leaves undominated inside the reference is cut into boxes (l, u], l = -inf where nothing bounds them;
 * a point y gains prod_i max(0, u_i - max(l_i, y_i)) in each. With psi_i(t) = s_i h((t - m_i) / s_i), h(z) = phi(z) + z
 * Phi(z) = E max(0, z - Z), and independent objectives
 *     EHVI = sum over boxes of prod_i [psi_i(u_i) - psi_i(l_i)]
 * (Yang, Emmerich, Deutz, Baeck, "Efficient computation of expected hypervolume improvement using box decomposition
 * algorithms", J. Global Optimization 75, 2019): n + 1 boxes for two objectives and at most 2 n + 1 for three.
 * Every term is kept as a logarithm, so a point that is hopeless by hundreds of standard deviations still has a finite
 * value and a slope. O(front) a point. */
#include "base/base.h"
#include "gp/model/model_priv.h"

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

double normal_log_between(double lo, double hi, double m, double spread, double ret_slope[2])
{
    double zl = (lo - m) / spread, zh = (hi - m) / spread, value;
    if (zl > 0.0) /* the differences are exact in the lower tail */
        value = log_diff(normal_log_cdf(-zl), isinf(zh) ? -INFINITY : normal_log_cdf(-zh));
    else
        value = log_diff(isinf(zh) ? 0.0 : normal_log_cdf(zh), isinf(zl) ? -INFINITY : normal_log_cdf(zl));
    if (ret_slope) {
        double at_lo = isinf(zl) ? 0.0 : exp(normal_log_pdf(zl) - value) / spread;
        double at_hi = isinf(zh) ? 0.0 : exp(normal_log_pdf(zh) - value) / spread;
        ret_slope[0] = at_lo - at_hi;
        ret_slope[1] = (isinf(zl) ? 0.0 : zl * at_lo) - (isinf(zh) ? 0.0 : zh * at_hi);
    }
    return value;
}

/* ---- boxes ---- */

/* Bounds of each objective by their place in ehvi.at. */
struct ehvi_box {
    size_t lo[EHVI_MAX], hi[EHVI_MAX];
};

/* Of one objective at a threshold: ln psi, ln Phi and ln phi of z. */
struct ehvi_edge {
    double psi, cdf, pdf;
};

struct point {
    double f[EHVI_MAX];
};

/* A strip of the staircase of what was seen so far, from one first objective to the next, below `top` of the second,
 * and of the third from `since` on. Places in ehvi.at. */
struct strip {
    size_t lo, hi, top, since;
};

/* By the last objective, and those before it. */
static int compare_points(const void *vp, const void *vq)
{
    const struct point *p = vp, *q = vq;
    for (size_t k = 0; k < EHVI_MAX; k++) {
        size_t i = (k + EHVI_MAX - 1) % EHVI_MAX;
        if (p->f[i] != q->f[i])
            return p->f[i] < q->f[i] ? -1 : 1;
    }
    return 0;
}

/* The strip from third objective `since` up to `until` is a box of its own, unless it has no depth. */
static void close_strip(struct ehvi *e, const struct strip *s, size_t until)
{
    if (e->n_objectives == 3 && !(e->at[2][s->since] < e->at[2][until]))
        return;
    e->boxes[e->n_boxes++] = (struct ehvi_box){{s->lo, 0, s->since}, {s->hi, s->top, until}};
}

/* Point k (its place in at), which no point before it dominates and whose third objective is not below theirs, enters
 * the staircase strips (n). */
static void enter_point(struct ehvi *e, struct strip *strips, size_t *n, size_t k)
{
    const double *a = e->at[0], *b = e->at[1];
    size_t first = 0, last;

    while (!(a[strips[first].hi] > a[k]))
        first++;
    for (last = first; last + 1 < *n && b[strips[last + 1].top] > b[k];)
        last++;
    struct strip own = {k, strips[last].hi, k, e->n_objectives == 3 ? k : 0}, left = strips[first];
    bool keeps_left = a[left.lo] < a[k];
    strips[first].lo = k;
    for (size_t i = first; i <= last && e->n_objectives == 3; i++)
        close_strip(e, &strips[i], k);
    size_t at = first + keeps_left; /* where its own strip goes; those after `last` follow */
    memmove(strips + at + 1, strips + last + 1, (*n - last - 1) * sizeof *strips);
    *n = at + 1 + (*n - last - 1);
    if (keeps_left) {
        left.hi = k;
        strips[first] = left;
    }
    strips[at] = own;
}

/* Leaves the points (n, sorted) that no other dominates, of equals one. */
static size_t drop_dominated(struct point *points, size_t n)
{
    size_t kept = 0;
    for (size_t k = 0; k < n; k++) {
        bool stays = true;
        for (size_t j = 0; j < kept && stays; j++)
            stays = points[j].f[0] > points[k].f[0] || points[j].f[1] > points[k].f[1];
        if (stays)
            points[kept++] = points[k];
    }
    return kept;
}

void ehvi_init(struct ehvi *e, size_t n_objectives, const double *const *f, size_t n, const double *ref)
{
    MEM_LOCAL struct point *points = mem_array(n, sizeof *points);
    size_t n_strips = 1, m = 0;
    for (size_t k = 0; k < n; k++) {
        bool inside = true;
        for (size_t i = 0; i < n_objectives; i++) {
            points[m].f[i] = f[i][k];
            inside = inside && f[i][k] < ref[i];
        }
        m += inside;
    }
    qsort(points, m, sizeof *points, compare_points);
    m = drop_dominated(points, m);
    *e = (struct ehvi){.n_objectives = n_objectives, .boxes = mem_array(2 * m + 1, sizeof *e->boxes)};
    e->work = mem_array2(EHVI_MAX, m + 2, sizeof *e->work);
    MEM_LOCAL struct strip *strips = mem_array(m + 1, sizeof *strips);
    for (size_t i = 0; i < n_objectives; i++) {
        e->at[i] = mem_array(m + 2, sizeof *e->at[i]);
        e->at[i][0] = -INFINITY;
        e->at[i][m + 1] = ref[i];
        for (size_t k = 0; k < m; k++)
            e->at[i][k + 1] = points[k].f[i];
    }
    strips[0] = (struct strip){0, m + 1, m + 1, 0};
    e->n = m;
    for (size_t k = 1; k <= m; k++)
        enter_point(e, strips, &n_strips, k);
    for (size_t i = 0; i < n_strips; i++)
        close_strip(e, &strips[i], m + 1);
}

void ehvi_add(struct ehvi *e, const double *f)
{
    size_t n = e->n, k = e->n_objectives;
    double ref[EHVI_MAX];
    MEM_LOCAL double *points = mem_array2(n + 1, k, sizeof *points);
    const double *columns[EHVI_MAX];
    for (size_t i = 0; i < k; i++) {
        double *column = points + i * (n + 1);
        memcpy(column, e->at[i] + 1, n * sizeof *column);
        column[n] = f[i];
        columns[i] = column;
        ref[i] = e->at[i][n + 1];
    }
    ehvi_free(e);
    ehvi_init(e, k, columns, n + 1, ref);
}

void ehvi_free(struct ehvi *e)
{
    for (size_t i = 0; i < EHVI_MAX; i++)
        mem_free(e->at[i]);
    mem_free(e->boxes);
    mem_free(e->work);
    *e = (struct ehvi){0};
}

/* ---- the sum over boxes ---- */

static struct ehvi_edge edge_at(double t, double m, double s, double log_s, bool slopes)
{
    const double none = -INFINITY;
    if (isinf(t))
        return (struct ehvi_edge){none, none, none};
    double z = (t - m) / s;
    struct ehvi_edge edge = {.psi = log_s + normal_log_h(z)};
    if (slopes) {
        edge.cdf = normal_log_cdf(z);
        edge.pdf = normal_log_pdf(z);
    }
    return edge;
}

double ehvi_log(const struct ehvi *e, const double *mean, const double *sd, double *ret_gradient)
{
    size_t n_at = e->n + 2, n_slopes = 2 * e->n_objectives;
    double top = -INFINITY, sum = 0.0, g[2 * EHVI_MAX] = {0}, width[EHVI_MAX];
    for (size_t i = 0; i < e->n_objectives; i++) {
        double log_s = log(sd[i]);
        for (size_t k = 0; k < n_at; k++)
            e->work[i * n_at + k] = edge_at(e->at[i][k], mean[i], sd[i], log_s, ret_gradient != NULL);
    }
    for (size_t j = 0; j < e->n_boxes; j++) {
        const struct ehvi_box *box = &e->boxes[j];
        double term = 0.0;
        for (size_t i = 0; i < e->n_objectives; i++) {
            const struct ehvi_edge *edges = e->work + i * n_at;
            width[i] = log_diff(edges[box->hi[i]].psi, edges[box->lo[i]].psi);
            term += width[i];
        }
        if (!(term > -INFINITY))
            continue;
        double weight = exp(term - fmax(term, top)); /* sum and g are relative to exp(top) */
        if (term > top) {
            double shrink = exp(top - term);
            sum *= shrink;
            for (size_t k = 0; k < n_slopes; k++)
                g[k] *= shrink;
            top = term;
        }
        sum += weight;
        for (size_t i = 0; i < e->n_objectives && ret_gradient; i++) { /* dpsi/dm = -Phi, dpsi/ds = phi */
            const struct ehvi_edge *hi = &e->work[i * n_at + box->hi[i]], *lo = &e->work[i * n_at + box->lo[i]];
            g[2 * i] -= weight * exp(log_diff(hi->cdf, lo->cdf) - width[i]);
            g[2 * i + 1] += weight * (exp(hi->pdf - width[i]) - exp(lo->pdf - width[i]));
        }
    }
    for (size_t k = 0; k < n_slopes && ret_gradient; k++)
        ret_gradient[k] = sum > 0.0 ? g[k] / sum : 0.0;
    return top + log(sum);
}
