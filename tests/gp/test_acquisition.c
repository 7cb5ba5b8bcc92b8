/* test_acquisition.c - expected hypervolume improvement against Monte Carlo, quadrature-free tails and finite differences. */
#include "tests/gp/gp_test.h"
#include "gp/model/model_priv.h"

static double normal(struct rng *r)
{
    double u = 1.0 - rng_f64(r);
    return sqrt(-2.0 * log(u)) * cos(2.0 * M_PI * rng_f64(r));
}

/* Area that (y1, y2) adds to the staircase, minimising, by strips. */
static double gain(const struct ehvi *e, double y1, double y2)
{
    double sum = 0.0;
    for (size_t i = 0; i <= e->n; i++)
        sum += fmax(0.0, e->a[i + 1] - fmax(y1, e->a[i])) * fmax(0.0, e->b[i] - y2);
    return sum;
}

static void test_against_monte_carlo(void **state)
{
    (void)state;
    struct rng r = rng_seed(1);
    for (int trial = 0; trial < 8; trial++) {
        double f1[6], f2[6];
        struct ehvi e;
        size_t n = trial == 0 ? 0 : 1 + rng_below(&r, 6);
        for (size_t i = 0; i < n; i++) {
            f1[i] = 2.0 * rng_f64(&r) - 1.0;
            f2[i] = 2.0 * rng_f64(&r) - 1.0;
        }
        ehvi_init(&e, f1, f2, n, 0.9, 0.8);
        double m1 = 2.0 * rng_f64(&r) - 1.0, m2 = 2.0 * rng_f64(&r) - 1.0, s1 = 0.2 + rng_f64(&r),
               s2 = 0.2 + rng_f64(&r);
        double sum = 0.0, sq = 0.0;
        const int draws = 200000;
        for (int k = 0; k < draws; k++) {
            double v = gain(&e, m1 + s1 * normal(&r), m2 + s2 * normal(&r));
            sum += v;
            sq += v * v;
        }
        double mean = sum / draws, sd = sqrt((sq / draws - mean * mean) / draws);
        assert_near(exp(ehvi_log(&e, m1, s1, m2, s2, NULL)), mean, 5.0 * sd + 1e-9);
        ehvi_free(&e);
    }
}

/* A point known exactly: the improvement itself. */
static void test_certain_point(void **state)
{
    (void)state;
    double f1[] = {0.5, 0.0, 0.2, 0.5, 2.0}, f2[] = {0.1, 0.8, 0.4, 0.3, -1.0}; /* one dominated, one outside */
    struct ehvi e;
    ehvi_init(&e, f1, f2, 5, 1.0, 1.0);
    assert_int_equal(e.n, 3);
    assert_near(exp(ehvi_log(&e, 0.1, 1e-9, 0.2, 1e-9, NULL)), gain(&e, 0.1, 0.2), 1e-6);
    assert_near(gain(&e, 0.1, 0.2), 0.1 * 0.6 + 0.3 * 0.2, 1e-12);
    ehvi_free(&e);
}

static void check_gradient(const struct ehvi *e, const double *p)
{
    double g[4], q[4];
    double value = ehvi_log(e, p[0], p[1], p[2], p[3], g);
    assert_true(isfinite(value));
    for (int i = 0; i < 4; i++) {
        double step = 1e-5 * (i % 2 ? p[i] : 1.0) * fmin(1.0, p[i | 1]);
        memcpy(q, p, sizeof q);
        q[i] = p[i] + step;
        double up = ehvi_log(e, q[0], q[1], q[2], q[3], NULL);
        q[i] = p[i] - step;
        double down = ehvi_log(e, q[0], q[1], q[2], q[3], NULL);
        assert_near(g[i], (up - down) / (2.0 * step), 2e-4 * (1.0 + fabs(g[i])));
    }
}

static void test_gradient(void **state)
{
    (void)state;
    struct rng r = rng_seed(2);
    double f1[5], f2[5];
    for (int trial = 0; trial < 100; trial++) {
        struct ehvi e;
        for (int i = 0; i < 5; i++) {
            f1[i] = 2.0 * rng_f64(&r) - 1.0;
            f2[i] = 2.0 * rng_f64(&r) - 1.0;
        }
        ehvi_init(&e, f1, f2, trial % 6, 1.2, 1.1);
        double p[4] = {3.0 * rng_f64(&r) - 1.5, 0.05 + rng_f64(&r), 3.0 * rng_f64(&r) - 1.5, 0.05 + rng_f64(&r)};
        check_gradient(&e, p);
        ehvi_free(&e);
    }
}

static void test_tails(void **state)
{
    (void)state;
    assert_near(normal_log_h(0.0), log(0.3989422804014327), 1e-14);
    assert_near(normal_log_cdf(0.0), log(0.5), 1e-14);
    assert_near(normal_log_cdf(-10.0), -53.2312851505124, 1e-9); /* ln 7.61985e-24 */
    for (double z = -24.99; z > -25.02; z -= 0.02) { /* both branches round the switch */
        double w = 1.0 / (z * z),
               series = -0.5 * z * z - 0.91893853320467274 + log(w) + log1p(-w * (3 - w * (15 - w * (105 - w * 945))));
        assert_near(normal_log_h(z), series, 1e-8);
    }
    struct ehvi e;
    double f1[] = {0.0}, f2[] = {0.0};
    ehvi_init(&e, f1, f2, 1, 1.0, 1.0);
    double g[4], near_value = ehvi_log(&e, 50.0, 0.1, 50.0, 0.1, g);
    assert_true(isfinite(near_value) && near_value < -1e4);
    assert_true(isfinite(g[0]) && g[0] < 0.0 && g[2] < 0.0); /* still a way home */
    assert_true(ehvi_log(&e, 60.0, 0.1, 50.0, 0.1, NULL) < near_value);
    assert_true(isfinite(ehvi_log(&e, 1e6, 1e-6, 1e6, 1e-6, g)));
    double p[4] = {5.0, 0.1, 5.0, 0.1};
    check_gradient(&e, p);
    ehvi_free(&e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_against_monte_carlo),
        cmocka_unit_test(test_certain_point),
        cmocka_unit_test(test_gradient),
        cmocka_unit_test(test_tails),
    };
    return cmocka_run_group_tests_name("gp.acquisition", tests, NULL, NULL);
}
