/* test_design.c - scrambled Sobol and random points, and the two methods that are nothing else. */
#include "tests/gp/gp_test.h"

TEST(points_lie_in_the_cube_and_follow_the_seed)
{
    for (size_t dim = 1; dim <= SPACE_MAX_DIM; dim += 13) {
        struct design a, b, c;
        design_init(&a, dim, rng_seed(1));
        design_init(&b, dim, rng_seed(1));
        design_init(&c, dim, rng_seed(2));
        int differ = 0;
        for (uint64_t k = 0; k < 200; k++) {
            double u[SPACE_MAX_DIM], v[SPACE_MAX_DIM], w[SPACE_MAX_DIM];
            design_sobol(&a, k, u);
            design_sobol(&b, 199 - k, v); /* the other way round */
            design_sobol(&c, k, w);
            differ += u[0] != w[0];
            for (size_t i = 0; i < dim; i++)
                assert_true(u[i] >= 0.0 && u[i] < 1.0);
            design_sobol(&b, k, v);
            assert_memory_equal(u, v, dim * sizeof *u);
            design_random(&a, k, 0, u);
            design_random(&b, k, 0, v);
            assert_memory_equal(u, v, dim * sizeof *u);
        }
        assert_true(differ > 190);
        design_free(&a);
        design_free(&b);
        design_free(&c);
    }
}

/* Every block of 2^k points puts one point into each of 2^k equal bins of every axis; the scramble must keep that. */
TEST(blocks_stay_balanced)
{
    AT_END(design_free) struct design d = {0};
    design_init(&d, 40, rng_seed(7));
    bool hit[40][64] = {{false}};
    for (uint64_t k = 0; k < 64; k++) {
        double u[SPACE_MAX_DIM];
        design_sobol(&d, k, u);
        for (size_t i = 0; i < 40; i++) {
            size_t bin = (size_t)(u[i] * 64.0);
            assert_false(hit[i][bin]);
            hit[i][bin] = true;
        }
    }
}

/* Centred L2 discrepancy (Hickernell), squared. */
static double discrepancy(const double *u, size_t n, size_t dim)
{
    double total = pow(13.0 / 12.0, (double)dim);
    for (size_t i = 0; i < n; i++) {
        double p = 1.0;
        for (size_t k = 0; k < dim; k++) {
            double z = fabs(u[i * dim + k] - 0.5);
            p *= 1.0 + 0.5 * z - 0.5 * z * z;
        }
        total -= 2.0 * p / (double)n;
        for (size_t j = 0; j < n; j++) {
            double q = 1.0;
            for (size_t k = 0; k < dim; k++) {
                double a = u[i * dim + k], b = u[j * dim + k];
                q *= 1.0 + 0.5 * fabs(a - 0.5) + 0.5 * fabs(b - 0.5) - 0.5 * fabs(a - b);
            }
            total += q / ((double)n * (double)n);
        }
    }
    return total;
}

TEST(discrepancy_beats_random)
{
    double sobol = 0.0, random = 0.0;
    enum { N = 64, DIM = 6 };
    for (uint64_t seed = 0; seed < 10; seed++) {
        struct design d;
        double a[N * DIM], b[N * DIM];
        design_init(&d, DIM, rng_seed(seed));
        for (uint64_t k = 0; k < N; k++) {
            design_sobol(&d, k, a + k * DIM);
            design_random(&d, k, 0, b + k * DIM);
        }
        sobol += discrepancy(a, N, DIM);
        random += discrepancy(b, N, DIM);
        design_free(&d);
    }
    if (!(sobol < 0.6 * random))
        fail_msg("squared discrepancy: sobol %g, random %g", sobol, random);
}

static void check_point(const struct space *space, const double *x)
{
    double y[SPACE_MAX_DIM];
    memcpy(y, x, space->dim * sizeof *x);
    space_snap(space, y);
    assert_memory_equal(x, y, space->dim * sizeof *x);
}

TEST(methods)
{
    struct space space = mixed_space();
    enum { N = 100 };
    static double xs[N][SPACE_MAX_DIM];
    for (int method = SUGGEST_RANDOM; method <= SUGGEST_SOBOL; method++) {
        struct suggest_settings settings = {.method = (enum suggest_method)method, .seed = 5};
        SUGGESTER *s = suggester_of(&space, settings);
        struct gp_trial trials[N];
        for (size_t i = 0; i < N; i++) {
            SUGGESTER *fresh = suggester_of(&space, settings);
            struct suggestion a = suggester_ask(s, trials, i, i), b = suggester_ask(fresh, trials, i, i);
            assert_memory_equal(&a, &b, sizeof a);
            assert_string_equal(a.origin, method == SUGGEST_RANDOM ? "random" : "sobol");
            check_point(&space, a.x);
            for (size_t j = 0; j < i; j++)
                assert_true(memcmp(xs[j], a.x, space.dim * sizeof *a.x) != 0);
            memcpy(xs[i], a.x, sizeof a.x);
            trials[i] = (struct gp_trial){.x = xs[i], .state = GP_TRIAL_PENDING};
        }
    }
}

TEST(default_point_comes_first)
{
    struct space space = mixed_space();
    space.params[0].has_init = true;
    space.params[0].init = 3e-4;
    space.params[2].has_init = true;
    space.params[2].init = 1e6; /* outside: moved to the bound */
    for (int method = SUGGEST_PARETO; method <= SUGGEST_SOBOL; method++) {
        SUGGESTER *s = suggester_of(&space, (struct suggest_settings){.method = (enum suggest_method)method});
        struct suggestion a = suggester_ask(s, NULL, 0, 0);
        assert_string_equal(a.origin, "default");
        assert_true(a.x[0] == 3e-4 && a.x[2] == 4096.0);
        check_point(&space, a.x);
        assert_string_not_equal(suggester_ask(s, NULL, 0, 1).origin, "default");
    }
}

TEST(finite_space_is_used_up_exactly)
{
    struct space space = {.dim = 3};
    space.params[0] = param_of("a", SPACE_LINEAR, true, -1, 2);
    space.params[1] = param_of("b", SPACE_POW2, true, 4, 16);
    space.params[2] = param_of("c", SPACE_CATEGORICAL, false, 0, 3);
    enum { SIZE = 48 };
    for (int method = SUGGEST_PARETO; method <= SUGGEST_SOBOL; method++) {
        SUGGESTER *s =
            suggester_of(&space, (struct suggest_settings){.method = (enum suggest_method)method, .seed = 9});
        struct gp_trial trials[SIZE];
        double xs[SIZE][SPACE_MAX_DIM];
        struct suggestion a;
        for (size_t i = 0; i < SIZE; i++) {
            a = suggester_ask(s, trials, i, i);
            check_point(&space, a.x);
            for (size_t j = 0; j < i; j++)
                assert_true(memcmp(xs[j], a.x, space.dim * sizeof *a.x) != 0);
            memcpy(xs[i], a.x, sizeof a.x);
            double score = -a.x[0] * a.x[0] + (a.x[2] == 2.0);
            trials[i] = (struct gp_trial){.x = xs[i], .state = GP_TRIAL_DONE, .score = score, .cost = a.x[1]};
        }
        struct gp_history history = {.n = SIZE, .trials = trials};
        FAILS(suggester_next(s, &history, SIZE, &a, err), ST_LIMIT, "48");
    }
}

TEST(bad_input)
{
    struct space space = unit_space(2);
    struct suggest_settings settings = {.method = SUGGEST_RANDOM};
    struct suggester *s;
    struct suggestion a;
    double x[2] = {0.5, NAN};
    struct gp_trial trial = {.x = x, .state = GP_TRIAL_DONE, .score = 1.0, .cost = 1.0};
    struct gp_history history = {.n = 1, .trials = &trial};
    OK(suggester_create(&s, &space, &settings, err));
    FAILS(suggester_next(s, &history, 1, &a, err), ST_NUMERIC, "test.p1");
    x[1] = 0.5;
    trial.score = NAN;
    assert_int_equal(suggester_next(s, &history, 1, &a, NULL), ST_NUMERIC);
    trial.score = 1.0;
    trial.cost = 0.0;
    assert_int_equal(suggester_next(s, &history, 1, &a, NULL), ST_NUMERIC);
    suggester_destroy(s);
    suggester_destroy(NULL);
    settings.max_cost = -1.0;
    assert_int_equal(suggester_create(&s, &space, &settings, NULL), ST_CONFIG);
    assert_null(s);
    settings = (struct suggest_settings){.method = (enum suggest_method)77};
    assert_int_equal(suggester_create(&s, &space, &settings, NULL), ST_CONFIG);
    space.params[0].max = -1.0;
    settings = (struct suggest_settings){.method = SUGGEST_SOBOL};
    assert_int_equal(suggester_create(&s, &space, &settings, NULL), ST_CONFIG);
    assert_string_equal(suggest_method_names(), "pareto|random|sobol");
}

TEST_PROGRAM("gp.design")
