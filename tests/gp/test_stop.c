/* test_stop.c - early stopping on made-up learning curves: who is stopped, who is not, and that scale and shift do not
 * matter. */
#include "tests/gp/gp_test.h"

#define RUNS 24
#define POINTS 20

static struct gp_curve_point points[RUNS][POINTS];
static struct gp_curve curves[RUNS];

/* Run j of `n` rises to (j + 1) / n, at a pace of its own when late > 0; costs are 10 each. */
static void make(size_t n, double late, double a, double b)
{
    struct rng r = rng_seed(5);
    for (size_t j = 0; j < n; j++) {
        double top = (double)(j + 1) / (double)n, start = late * rng_f64(&r);
        for (size_t k = 0; k < POINTS; k++) {
            double t = (double)(k + 1) / POINTS,
                   rise = t <= start ? 0.0 : 1.0 - exp(-6.0 * (t - start) / (1.0 - start));
            points[j][k] = (struct gp_curve_point){t, a + b * (top * rise + 0.01 * (rng_f64(&r) - 0.5))};
        }
        curves[j] = (struct gp_curve){POINTS, points[j], a + b * top, 10.0};
    }
}

static struct gp_verdict judge(size_t n, double progress, double score, double cost)
{
    struct gp_verdict v;
    gp_stop_judge(curves, n, &(struct gp_stop_now){progress, score, cost}, &v);
    return v;
}

static void test_hopeless_stops_and_promising_goes_on(void **state)
{
    (void)state;
    make(RUNS, 0.0, 0.0, 1.0);
    struct gp_verdict bad = judge(RUNS, 0.5, 0.2, 5.0), good = judge(RUNS, 0.5, 0.96, 5.0);
    assert_true(bad.stop && bad.chance < 0.02);
    assert_near(bad.level, 1.0, 1e-12);
    assert_near(bad.final_cost, 10.0, 1e-12);
    assert_near(bad.final_mean, 0.21, 0.03);
    assert_false(good.stop);
    assert_true(good.chance > bad.chance);
}

static void test_free_of_scale_and_shift(void **state)
{
    (void)state;
    static const double map[][2] = {{0.0, 1.0}, {-1e6, 1.0}, {5.0, 1e-9}, {-3.0, 1e12}, {0.0, 1e-30}};
    for (double s = 0.05; s < 1.0; s += 0.1) {
        make(RUNS, 0.3, 0.0, 1.0);
        struct gp_verdict plain = judge(RUNS, 0.4, s, 4.0);
        for (size_t k = 1; k < sizeof map / sizeof *map; k++) {
            make(RUNS, 0.3, map[k][0], map[k][1]);
            struct gp_verdict v = judge(RUNS, 0.4, map[k][0] + map[k][1] * s, 4.0);
            assert_int_equal(v.stop, plain.stop);
            assert_near(v.chance, plain.chance, 1e-3);
        }
    }
}

static void test_late_starters_protect_a_flat_run(void **state)
{
    (void)state;
    make(RUNS, 0.7, 0.0, 1.0); /* good runs too are flat for long */
    assert_false(judge(RUNS, 0.3, 0.0, 3.0).stop);
}

static void test_cheap_run_goes_on(void **state)
{
    (void)state;
    make(RUNS, 0.0, 0.0, 1.0);
    struct gp_verdict v = judge(RUNS, 0.5, 0.05, 1.0); /* ends at cost 2, where nothing has finished */
    assert_false(v.stop);
    assert_true(v.level == -INFINITY);
}

static void test_too_little_known(void **state)
{
    (void)state;
    make(STOP_CURVES_MIN - 1, 0.0, 0.0, 1.0);
    assert_false(judge(STOP_CURVES_MIN - 1, 0.5, 0.0, 5.0).stop);
    make(RUNS, 0.0, 0.0, 1.0);
    assert_false(judge(RUNS, 0.1, 0.0, 1.0).stop); /* every run may take its first steps */
    assert_false(judge(RUNS, 1.0, 0.0, 10.0).stop); /* at its end there is nothing to save */
    assert_false(judge(RUNS, 0.5, NAN, 5.0).stop);
    assert_false(judge(RUNS, 0.5, -INFINITY, 5.0).stop);
    assert_false(judge(RUNS, 0.5, 0.0, 0.0).stop);
    assert_false(judge(0, 0.5, 0.0, 5.0).stop);
    for (size_t j = 0; j < RUNS; j++) /* no curve is there, only finals */
        curves[j].n = 0;
    assert_false(judge(RUNS, 0.5, 0.0, 5.0).stop);
}

static void test_constant_and_broken_curves(void **state)
{
    (void)state;
    make(RUNS, 0.0, 3.0, 0.0);
    assert_false(judge(RUNS, 0.5, 3.0, 5.0).stop);
    make(RUNS, 0.0, 0.0, 1.0);
    for (size_t j = 0; j < 6; j++) /* a NaN in a curve costs that curve, not the rest */
        for (size_t k = 0; k < POINTS; k++)
            points[j][k].score = NAN;
    struct gp_verdict v = judge(RUNS, 0.5, 0.2, 5.0);
    assert_int_equal(v.n_known, RUNS - 6);
    assert_true(v.stop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hopeless_stops_and_promising_goes_on),
        cmocka_unit_test(test_free_of_scale_and_shift),
        cmocka_unit_test(test_late_starters_protect_a_flat_run),
        cmocka_unit_test(test_cheap_run_goes_on),
        cmocka_unit_test(test_too_little_known),
        cmocka_unit_test(test_constant_and_broken_curves),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
