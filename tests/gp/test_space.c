/* test_space.c - the search space: maps, snapping, size, and the messages for bad ones. */
#include "gp/gp_priv.h"
#include "tests/gp/gp_test.h"

TEST(round_trip)
{
    struct space space = mixed_space();
    struct rng r = rng_seed(1);
    OK(space_check(&space, err));
    for (int trial = 0; trial < 2000; trial++) {
        double u[SPACE_MAX_DIM], x[SPACE_MAX_DIM], u2[SPACE_MAX_DIM], x2[SPACE_MAX_DIM];
        for (size_t i = 0; i < space.dim; i++)
            u[i] = trial == 0 ? 0.0 : trial == 1 ? 1.0 : rng_f64(&r);
        space_from_unit(&space, u, x);
        space_to_unit(&space, x, u2);
        space_from_unit(&space, u2, x2);
        for (size_t i = 0; i < space.dim; i++) {
            const struct space_param *p = &space.params[i];
            assert_true(u2[i] >= 0.0 && u2[i] <= 1.0);
            if (p->scale != SPACE_CATEGORICAL)
                assert_true(x[i] >= p->min && x[i] <= p->max);
            if (isfinite(space_param_size(p))) {
                assert_true(x2[i] == x[i]); /* exactly */
            } else {
                assert_near(u2[i], u[i], 1e-9);
                assert_near(x2[i], x[i], 1e-9 * fabs(p->max));
            }
        }
        assert_true(x[3] == rint(x[3]) && x[4] == rint(x[4]) && x[5] == rint(x[5]));
        assert_true(exp2(rint(log2(x[2]))) == x[2] && exp2(rint(log2(x[7]))) == x[7]);
        memcpy(x2, x, sizeof x);
        space_snap(&space, x2);
        assert_memory_equal(x2, x, space.dim * sizeof *x); /* nothing to snap */
    }
}

TEST(known_values)
{
    struct space_param lr = param_of("lr", SPACE_LOG, false, 1e-4, 1e-2);
    assert_near(space_param_from_unit(&lr, 0.5), 1e-3, 1e-15);
    assert_near(space_param_to_unit(&lr, 1e-3), 0.5, 1e-12);
    struct space_param gamma = param_of("gamma", SPACE_LOGIT, false, 0.1, 0.9);
    assert_near(space_param_from_unit(&gamma, 0.5), 0.5, 1e-15);
    struct space_param batch = param_of("batch", SPACE_POW2, true, 100, 5000); /* 128 .. 4096 */
    assert_true(space_param_size(&batch) == 6.0);
    assert_true(space_param_from_unit(&batch, 0.0) == 128.0 && space_param_from_unit(&batch, 1.0) == 4096.0);
    assert_true(space_param_value(&batch, 2.0) == 512.0);
    struct space_param small = param_of("small", SPACE_POW2, false, 0.1, 2.0); /* 0.125 .. 2 */
    assert_true(space_param_size(&small) == 5.0 && space_param_from_unit(&small, 0.0) == 0.125);
    struct space_param n = param_of("n", SPACE_LINEAR, true, 0.5, 3.5); /* 1, 2, 3 */
    assert_true(space_param_size(&n) == 3.0 && space_param_from_unit(&n, 0.34) == 2.0);
}

TEST(steps)
{
    struct space_param p = param_of("momentum", SPACE_LINEAR, false, 0.1, 0.95);
    p.step = 0.1; /* 0.1, 0.2 ... 0.9: the last step does not fit */
    assert_true(space_param_size(&p) == 9.0);
    const double decimals[] = {0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9};
    for (int k = 0; k < 9; k++) {
        double x = space_param_value(&p, k);
        assert_true(x == decimals[k]); /* exactly as a person writes it, which 0.1 + 2 * 0.1 is not */
        assert_true(space_param_from_unit(&p, space_param_to_unit(&p, x)) == x);
        assert_true(fabs(space_param_to_unit(&p, x) - (k + 0.5) / 9) < 1e-12);
    }
    assert_true(space_param_from_unit(&p, 0.0) == 0.1 && space_param_from_unit(&p, 1.0) == 0.9);
    assert_true(space_param_from_unit(&p, space_param_to_unit(&p, 0.44)) == 0.4); /* the nearest */
    struct space_param n = param_of("n", SPACE_LINEAR, true, -5, 100);
    n.step = 25;
    assert_true(space_param_size(&n) == 5.0 && space_param_value(&n, 1) == 20 && space_param_value(&n, 9) == 95);
    struct space_param odd = param_of("odd", SPACE_LINEAR, false, 1.0 / 3, 2); /* no decimals: as it comes */
    odd.step = 1.0 / 7;
    assert_near(space_param_value(&odd, 3), 1.0 / 3 + 3.0 / 7, 1e-15);
}

TEST(ordered_choices_are_numbers_to_the_model)
{
    struct space_param p = {.scale = SPACE_CATEGORICAL, .n_choices = 3};
    assert_true(space_param_is_unordered(&p));
    p.is_ordered = true;
    assert_false(space_param_is_unordered(&p));
    struct space_param range = param_of("r", SPACE_LINEAR, false, 0, 1);
    assert_false(space_param_is_unordered(&range));
}

TEST(linear_integers_are_equally_likely)
{
    struct space_param n = param_of("n", SPACE_LINEAR, true, -2, 2);
    int count[5] = {0};
    for (int i = 0; i < 5000; i++)
        count[(int)space_param_from_unit(&n, (i + 0.5) / 5000.0) + 2]++;
    for (int k = 0; k < 5; k++)
        assert_int_equal(count[k], 1000);
}

TEST(snap_brings_strangers_in)
{
    struct space space = mixed_space();
    double x[SPACE_MAX_DIM] = {1.0, 0.0, 3000.0, 2.4, 1e9, -3.0, 99.0, -1.0};
    space_snap(&space, x);
    assert_true(x[0] == 1e-1 && x[1] == 0.8 && x[2] == 4096.0 && x[3] == 2.0 && x[4] == 512.0 && x[5] == 0.0);
    assert_true(x[6] == 3.0 && x[7] == 0.125);
}

TEST(size)
{
    struct space space = mixed_space();
    assert_true(isinf(space_size(&space)));
    struct space finite = {.dim = 3};
    finite.params[0] = space.params[2]; /* 6 */
    finite.params[1] = space.params[3]; /* 4 */
    finite.params[2] = space.params[5]; /* 3 */
    assert_true(space_size(&finite) == 72.0);
}

static void expect_refusal(struct space_param p, enum status status, const char *word)
{
    struct space space = {.dim = 2};
    struct error err = {0};
    space.params[0] = param_of("fine", SPACE_LINEAR, false, 0, 1);
    space.params[1] = p;
    assert_int_equal(space_check(&space, &err), status);
    if (!strstr(err.text, word) || !strstr(err.text, p.key))
        fail_msg("\"%s\" lacks \"%s\" or \"%s\"", err.text, p.key, word);
}

TEST(bad_spaces)
{
    expect_refusal(param_of("train.lr", SPACE_LOG, false, 0.0, 1.0), ST_CONFIG, "log range needs min > 0");
    expect_refusal(param_of("train.lr", SPACE_LOG, false, -1.0, 1.0), ST_CONFIG, "min is -1");
    expect_refusal(param_of("policy.n", SPACE_LOG, true, 0.0, 64.0), ST_CONFIG, "log range needs min > 0");
    expect_refusal(param_of("train.x", SPACE_LINEAR, false, 2.0, 1.0), ST_CONFIG, "min 2 is above max 1");
    expect_refusal(param_of("train.x", SPACE_LINEAR, false, 2.0, 2.0), ST_CONFIG, "nothing to search");
    expect_refusal(param_of("train.x", SPACE_LINEAR, false, 0.0, INFINITY), ST_CONFIG, "finite");
    expect_refusal(param_of("train.x", SPACE_LINEAR, false, NAN, 1.0), ST_CONFIG, "finite");
    expect_refusal(param_of("train.n", SPACE_LINEAR, true, 1.2, 1.8), ST_CONFIG, "no whole number");
    expect_refusal(param_of("train.n", SPACE_LINEAR, true, 0.7, 1.8), ST_CONFIG, "only 1 lies");
    expect_refusal(param_of("train.mb", SPACE_POW2, true, 5.0, 7.0), ST_CONFIG, "no power of two");
    expect_refusal(param_of("train.mb", SPACE_POW2, true, 5.0, 9.0), ST_CONFIG, "only 8 lies");
    expect_refusal(param_of("train.mb", SPACE_POW2, true, 0.0, 8.0), ST_CONFIG, "min > 0");
    expect_refusal(param_of("train.gamma", SPACE_LOGIT, false, 0.0, 0.9), ST_CONFIG, "0 < min");
    expect_refusal(param_of("train.gamma", SPACE_LOGIT, false, 0.5, 1.0), ST_CONFIG, "max < 1");
    expect_refusal(param_of("train.gamma", SPACE_LOGIT, true, 0.5, 0.9), ST_CONFIG, "whole");
    expect_refusal(param_of("train.opt", SPACE_CATEGORICAL, false, 0, 0), ST_CONFIG, "found 1");
    expect_refusal(param_of("fine", SPACE_LINEAR, false, 0, 1), ST_CONFIG, "twice");
    struct space_param p = param_of("train.x", SPACE_LINEAR, false, 0.0, 1.0);
    p.has_init = true;
    p.init = NAN;
    expect_refusal(p, ST_CONFIG, "start value");

    struct space space = {0};
    struct error err = {0};
    assert_int_equal(space_check(&space, &err), ST_CONFIG);
    space.dim = SPACE_MAX_DIM + 1;
    assert_int_equal(space_check(&space, NULL), ST_LIMIT);
}

TEST(which_parameter_is_the_length)
{
    static const char *const lengths[] = {"train.total_timesteps", "train.total_steps", "train.steps", "epoch"};
    struct space space = unit_space(2);
    space.params[0] = param_of("env.max_steps", SPACE_LINEAR, true, 10, 100);
    space.params[1] = param_of("train.lr", SPACE_LOG, false, 1e-4, 1e-1);
    assert_int_equal(space_steps_param(&space), 2);
    for (size_t i = 0; i < COUNT(lengths); i++) {
        space.params[1] = param_of(lengths[i], SPACE_LINEAR, true, 10, 100);
        assert_int_equal(space_steps_param(&space), 1);
    }
}

TEST_PROGRAM("gp.space")
