/* test_conditional.c - parameters that have an effect only while another has certain values, and proposals that a
 * caller refuses. */
#include "tests/gp/gp_test.h"

#define N_MAX 256

static struct gp_trial trials[N_MAX];
static double xs[N_MAX][SPACE_MAX_DIM];

/* vtrace, rho_clip (while vtrace), deep_clip (while rho_clip >= 2), momentum (while optimizer is 0 or 2), optimizer. */
static struct space nested_space(void)
{
    struct space space = {.dim = 5};
    space.params[0] = param_of("train.vtrace", SPACE_CATEGORICAL, false, 0, 1);
    space.params[1] = param_of("train.rho_clip", SPACE_LINEAR, true, 1, 4);
    space.params[1].is_conditional = true;
    space.params[1].parent = 0;
    space.params[1].parent_choices = 1u << 1;
    space.params[1].has_init = true;
    space.params[1].init = 3;
    space.params[2] = param_of("train.deep", SPACE_LINEAR, true, 1, 3);
    space.params[2].is_conditional = true;
    space.params[2].parent = 1;
    space.params[2].parent_min = 2.0;
    space.params[2].parent_max = INFINITY;
    space.params[3] = param_of("train.momentum", SPACE_POW2, true, 1, 4);
    space.params[3].is_conditional = true;
    space.params[3].parent = 4;
    space.params[3].parent_choices = 1u << 0 | 1u << 2;
    space.params[4] = param_of("train.optimizer", SPACE_CATEGORICAL, false, 0, 2);
    return space;
}

TEST(one_value_where_there_is_no_effect)
{
    struct space space = nested_space();
    struct rng r = rng_seed(1);
    OK(space_check(&space, err));
    for (int round = 0; round < 2000; round++) {
        double u[5], x[5], back[5], v[5];
        for (int i = 0; i < 5; i++)
            u[i] = rng_f64(&r);
        space_from_unit(&space, u, x);
        assert_true(x[0] == 1.0 || x[1] == 3.0); /* its start value */
        assert_true((x[0] == 1.0 && x[1] >= 2.0) || x[2] == 2.0); /* its middle; also where its parent is idle */
        assert_true(x[4] != 1.0 || x[3] == 2.0);
        assert_int_equal(space_is_active(&space, 2, x), x[0] == 1.0 && x[1] >= 2.0);
        memcpy(back, x, sizeof x);
        space_snap(&space, back);
        assert_memory_equal(back, x, sizeof x);
        space_to_unit(&space, x, v);
        space_from_unit(&space, v, back);
        assert_memory_equal(back, x, sizeof x);
        back[1] = x[0] == 1.0 ? x[1] : 4.0; /* another value where it has no effect: the same point to the models */
        space_to_unit(&space, back, u);
        assert_memory_equal(u, v, sizeof u);
        space_idle_unit(&space, v);
        assert_memory_equal(u, v, sizeof u);
    }
    /* vtrace off: 1; on: rho_clip 1, and 3 others with 3 each -> 11; momentum 3 + 1 + 3 */
    assert_true(space_size(&space) == 11.0 * 7.0);
    space.params[0].is_conditional = true; /* in a circle */
    space.params[0].parent = 2;
    assert_int_equal(space_check(&space, NULL), ST_INTERNAL);
}

static size_t run_out(enum suggest_method method, bool (*allowed)(void *, const double *), size_t *ret_refused)
{
    struct space space = nested_space();
    struct suggest_settings settings = {.method = method, .seed = 5, .allowed = allowed, .allowed_ctx = ret_refused};
    struct suggester *s;
    struct error why = {0};
    struct rng r = rng_seed(2);
    size_t n = 0;
    OK(suggester_create(&s, &space, &settings, err));
    for (; n < N_MAX; n++) {
        struct suggestion p;
        struct gp_history history = {.n = n, .trials = trials};
        enum status rc = suggester_next(s, &history, (int64_t)n, &p, &why);
        if (rc != ST_OK) {
            assert_int_equal(rc, ST_LIMIT);
            break;
        }
        for (size_t i = 0; i < n; i++)
            assert_true(memcmp(xs[i], p.x, 5 * sizeof(double)) != 0);
        memcpy(xs[n], p.x, sizeof xs[n]);
        trials[n] = (struct gp_trial){.x = xs[n],
                                      .state = GP_TRIAL_DONE,
                                      .score = p.x[0] + 0.1 * p.x[1] + 0.1 * rng_f64(&r),
                                      .cost = 1.0 + p.x[4] + p.x[2]};
    }
    suggester_destroy(s);
    return n;
}

TEST(every_point_once)
{
    assert_int_equal(run_out(SUGGEST_PARETO, NULL, NULL), 77);
    assert_int_equal(run_out(SUGGEST_RANDOM, NULL, NULL), 77);
}

/* Never the optimizer 1 with vtrace. */
static bool pairs(void *ctx, const double *x)
{
    bool ok = !(x[0] == 1.0 && x[4] == 1.0);
    *(size_t *)ctx += !ok;
    return ok;
}

static bool nothing(void *ctx, const double *x)
{
    (void)ctx, (void)x;
    return false;
}

TEST(what_is_not_allowed_is_not_proposed)
{
    static const enum suggest_method methods[] = {SUGGEST_PARETO, SUGGEST_SOBOL, SUGGEST_RANDOM};
    for (size_t m = 0; m < 3; m++) {
        size_t refused = 0;
        assert_int_equal(run_out(methods[m], pairs, &refused), 77 - 10);
        for (size_t i = 0; i < 77 - 10; i++)
            assert_true(pairs(&refused, xs[i]));
        assert_true(refused > 0);
    }
    assert_int_equal(run_out(SUGGEST_PARETO, nothing, NULL), 0);
}

/* A thin slice of a continuous space, which the search must still climb in. */
static bool slice(void *ctx, const double *x)
{
    (*(size_t *)ctx)++;
    return fabs(x[0] - x[1]) < 0.05;
}

TEST(a_thin_slice_is_searched)
{
    struct space space = unit_space(2);
    size_t asked = 0;
    SUGGESTER *s = suggester_of(&space, (struct suggest_settings){.seed = 3, .allowed = slice, .allowed_ctx = &asked});
    double best = 0.0;
    for (size_t n = 0; n < 40; n++) {
        struct suggestion p = suggester_ask(s, trials, n, n);
        assert_true(fabs(p.x[0] - p.x[1]) < 0.05);
        memcpy(xs[n], p.x, sizeof xs[n]);
        double score = 1.0 - fabs(p.x[0] - 0.7);
        trials[n] = (struct gp_trial){.x = xs[n], .state = GP_TRIAL_DONE, .score = score, .cost = 1.0 + p.x[1]};
        best = fmax(best, score);
    }
    assert_true(best > 0.98);
    assert_true(asked < 40 * 400); /* a caller's check takes its time */
}

/* No importance where there is no effect: vtrace is off in all trials that count, and rho_clip is of none. */
TEST(idle_parameters_have_no_importance)
{
    struct space space = unit_space(3);
    INSIGHT in;
    struct rng r = rng_seed(4);
    space.params[1] = param_of("test.switch", SPACE_CATEGORICAL, false, 0, 1);
    space.params[2].is_conditional = true;
    space.params[2].parent = 1;
    space.params[2].parent_choices = 1u << 1;
    for (size_t n = 0; n < 80; n++) {
        double u[3] = {rng_f64(&r), n % 2 ? 0.75 : 0.25, rng_f64(&r)};
        space_from_unit(&space, u, xs[n]);
        trials[n] = (struct gp_trial){.x = xs[n],
                                      .state = GP_TRIAL_DONE,
                                      .score = xs[n][0] + xs[n][1] * xs[n][2] + 0.01 * rng_f64(&r),
                                      .cost = 1.0 + xs[n][0]};
    }
    gp_insight_init(&in, &space, &(struct gp_history){.n = 80, .trials = trials}, 1);
    /* with u2 uniform and the switch even: Var(E[f | u2]) = Var(u2) / 4, and Var(u0) is Var(u2) */
    assert_near(in.score[2].effect / in.score[0].effect, 0.25, 0.1);
    gp_insight_free(&in);
    for (size_t n = 0; n < 80; n++) { /* the switch always off: its child says nothing, whatever stands there */
        xs[n][1] = 0.0;
        xs[n][2] = rng_f64(&r);
        trials[n].score = xs[n][0] + 0.01 * rng_f64(&r);
    }
    gp_insight_init(&in, &space, &(struct gp_history){.n = 80, .trials = trials}, 1);
    assert_true(in.score[2].effect < 0.02);
}

TEST_PROGRAM("gp.conditional")
