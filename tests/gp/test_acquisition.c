/* test_acquisition.c - expected hypervolume improvement against Monte Carlo, quadrature-free tails and finite
 * differences. */
#include "tests/gp/gp_test.h"
#include "gp/model/model_priv.h"

#include <gsl/gsl_cdf.h>

#define POINTS_MAX 12

/* A front, and its reference, to be minimised. */
struct points {
    size_t n_objectives, n;
    double f[EHVI_MAX][POINTS_MAX], ref[EHVI_MAX];
};

static void init(struct ehvi *e, const struct points *p)
{
    ehvi_init(e, p->n_objectives, (const double *[]){p->f[0], p->f[1], p->f[2]}, p->n, p->ref);
}

static int rising(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* Volume that y dominates and no point does, by the cells between all coordinates. */
static double gain(const struct points *p, const double *y)
{
    double at[EHVI_MAX][POINTS_MAX + 2], sum = 0.0;
    size_t n = p->n + 2, d = p->n_objectives;
    for (size_t i = 0; i < d; i++) {
        for (size_t k = 0; k < p->n; k++)
            at[i][k] = fmin(p->f[i][k], p->ref[i]);
        at[i][p->n] = fmin(y[i], p->ref[i]);
        at[i][p->n + 1] = p->ref[i];
        qsort(at[i], n, sizeof **at, rising);
    }
    for (size_t cell = 0; cell < (d == 3 ? n * n * n : n * n); cell++) {
        const size_t c[EHVI_MAX] = {cell % n, cell / n % n, cell / n / n};
        double size = 1.0;
        bool ours = true, theirs = false;
        for (size_t i = 0; i < d; i++) {
            size *= c[i] + 1 < n ? at[i][c[i] + 1] - at[i][c[i]] : 0.0;
            ours = ours && y[i] <= at[i][c[i]];
        }
        for (size_t k = 0; k < p->n && !theirs && size > 0.0; k++) {
            theirs = true;
            for (size_t i = 0; i < d; i++)
                theirs = theirs && p->f[i][k] <= at[i][c[i]];
        }
        sum += ours && !theirs ? size : 0.0;
    }
    return sum;
}

static struct points draw_points(struct rng *r, size_t n_objectives, size_t n)
{
    struct points p = {.n_objectives = n_objectives, .n = n, .ref = {0.9, 0.8, 1.0}};
    for (size_t k = 0; k < n; k++)
        for (size_t i = 0; i < n_objectives; i++) /* some are equal in a coordinate */
            p.f[i][k] = rng_below(r, 3) == 0 ? 0.25 * (double)rng_below(r, 4) : 2.0 * rng_f64(r) - 1.0;
    return p;
}

TEST(against_monte_carlo)
{
    struct rng r = rng_seed(1);
    for (int trial = 0; trial < 16; trial++) {
        struct ehvi e;
        struct points p = draw_points(&r, 2 + (size_t)trial % 2, trial < 2 ? 0 : 1 + rng_below(&r, 6));
        double m[EHVI_MAX], s[EHVI_MAX], y[EHVI_MAX], sum = 0.0, sq = 0.0;
        const int draws = p.n_objectives == 2 ? 100000 : 40000;
        init(&e, &p);
        for (size_t i = 0; i < p.n_objectives; i++) {
            m[i] = 2.0 * rng_f64(&r) - 1.0;
            s[i] = 0.2 + rng_f64(&r);
        }
        for (int k = 0; k < draws; k++) {
            for (size_t i = 0; i < p.n_objectives; i++)
                y[i] = m[i] + s[i] * noise(&r);
            double v = gain(&p, y);
            sum += v;
            sq += v * v;
        }
        double mean = sum / draws, sd = sqrt((sq / draws - mean * mean) / draws);
        assert_near(exp(ehvi_log(&e, m, s, NULL)), mean, 5.0 * sd + 1e-9);
        ehvi_free(&e);
    }
}

/* A point known exactly: the improvement itself. */
TEST(certain_point)
{
    struct points p = {2, 5, {{0.5, 0.0, 0.2, 0.5, 2.0}, {0.1, 0.8, 0.4, 0.3, -1.0}}, {1.0, 1.0}};
    const double y[] = {0.1, 0.2}, sure[] = {1e-9, 1e-9, 1e-9}; /* one point is dominated, one outside */
    struct rng r = rng_seed(9);
    struct ehvi e;
    init(&e, &p);
    assert_int_equal(e.n, 3);
    assert_near(exp(ehvi_log(&e, y, sure, NULL)), 0.1 * 0.6 + 0.3 * 0.2, 1e-6);
    ehvi_free(&e);
    for (int trial = 0; trial < 300; trial++) {
        p = draw_points(&r, 2 + (size_t)trial % 2, rng_below(&r, POINTS_MAX + 1));
        double at[EHVI_MAX];
        for (int i = 0; i < EHVI_MAX; i++)
            at[i] = 2.0 * rng_f64(&r) - 1.2;
        init(&e, &p);
        assert_true(e.n_boxes <= 2 * e.n + 1);
        assert_near(exp(ehvi_log(&e, at, sure, NULL)), gain(&p, at), 1e-6);
        ehvi_free(&e);
    }
}

static void check_gradient(const struct ehvi *e, const double *m, const double *s)
{
    double g[2 * EHVI_MAX], value = ehvi_log(e, m, s, g);
    assert_true(isfinite(value));
    for (size_t i = 0; i < 2 * e->n_objectives; i++) {
        double value_at[2];
        double step = 1e-5 * (i % 2 ? s[i / 2] : 1.0) * fmin(1.0, s[i / 2]);
        for (int up = 0; up < 2; up++) {
            double q[2][EHVI_MAX] = {{m[0], m[1], m[2]}, {s[0], s[1], s[2]}};
            q[i % 2][i / 2] += up ? step : -step;
            value_at[up] = ehvi_log(e, q[0], q[1], NULL);
        }
        assert_near(g[i], (value_at[1] - value_at[0]) / (2.0 * step), 2e-4 * (1.0 + fabs(g[i])));
    }
}

TEST(gradient)
{
    struct rng r = rng_seed(2);
    for (int trial = 0; trial < 200; trial++) {
        struct ehvi e;
        struct points p = draw_points(&r, 2 + (size_t)trial % 2, (size_t)trial % 7);
        double m[EHVI_MAX], s[EHVI_MAX];
        for (int i = 0; i < EHVI_MAX; i++) {
            m[i] = 3.0 * rng_f64(&r) - 1.5;
            s[i] = 0.05 + rng_f64(&r);
        }
        init(&e, &p);
        check_gradient(&e, m, s);
        ehvi_free(&e);
    }
}

/* The chance to lie between two bounds, by the normal distribution of GSL and by differences. */
TEST(between)
{
    struct rng r = rng_seed(4);
    for (int trial = 0; trial < 300; trial++) {
        double lo = 4.0 * rng_f64(&r) - 2.0, hi = lo + 0.05 + 3.0 * rng_f64(&r), m = 6.0 * rng_f64(&r) - 3.0;
        double s = 0.1 + rng_f64(&r), slope[2], step = 1e-6;
        lo = trial % 3 == 1 ? -INFINITY : lo;
        hi = trial % 3 == 2 ? INFINITY : hi;
        double value = normal_log_between(lo, hi, m, s, slope);
        double below = isinf(lo) ? 0.0 : gsl_cdf_gaussian_P(lo - m, s),
               above = isinf(hi) ? 0.0 : gsl_cdf_gaussian_Q(hi - m, s);
        assert_near(exp(value), 1.0 - below - above, 1e-12);
        double dm = normal_log_between(lo, hi, m + step, s, NULL) - normal_log_between(lo, hi, m - step, s, NULL);
        double ds = normal_log_between(lo, hi, m, s + step, NULL) - normal_log_between(lo, hi, m, s - step, NULL);
        assert_near(slope[0], dm / (2.0 * step), 1e-3 * (1.0 + fabs(slope[0])));
        assert_near(slope[1], ds / (2.0 * step), 1e-3 * (1.0 + fabs(slope[1])));
    }
    double slope[2], far = normal_log_between(-INFINITY, 0.0, 80.0, 1.0, slope);
    assert_true(isfinite(far) && far < -3000.0 && slope[0] < 0.0); /* hopeless, and still a way home */
}

TEST(tails)
{
    assert_near(normal_log_h(0.0), log(0.3989422804014327), 1e-14);
    assert_near(normal_log_cdf(0.0), log(0.5), 1e-14);
    assert_near(normal_log_cdf(-10.0), -53.2312851505124, 1e-9); /* ln 7.61985e-24 */
    for (double z = -24.99; z > -25.02; z -= 0.02) { /* both branches round the switch */
        double w = 1.0 / (z * z),
               series = -0.5 * z * z - 0.91893853320467274 + log(w) + log1p(-w * (3 - w * (15 - w * (105 - w * 945))));
        assert_near(normal_log_h(z), series, 1e-8);
    }
    for (size_t d = 2; d <= 3; d++) {
        struct ehvi e;
        struct points p = {d, 1, {{0.0}, {0.0}, {0.0}}, {1.0, 1.0, 1.0}};
        const double far[] = {50.0, 50.0, 50.0}, farther[] = {60.0, 50.0, 50.0}, s[] = {0.1, 0.1, 0.1};
        const double lost[] = {1e6, 1e6, 1e6}, tiny[] = {1e-6, 1e-6, 1e-6}, near[] = {5.0, 5.0, 5.0};
        init(&e, &p);
        double g[2 * EHVI_MAX], far_value = ehvi_log(&e, far, s, g);
        assert_true(isfinite(far_value) && far_value < -1e4);
        assert_true(isfinite(g[0]) && g[0] < 0.0 && g[2] < 0.0); /* still a way home */
        assert_true(ehvi_log(&e, farther, s, NULL) < far_value);
        assert_true(isfinite(ehvi_log(&e, lost, tiny, g)));
        check_gradient(&e, near, s);
        ehvi_free(&e);
    }
}

TEST_PROGRAM("gp.acquisition")
