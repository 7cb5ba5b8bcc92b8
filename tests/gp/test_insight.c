/* test_insight.c - beliefs, recommendation, importance and leaning bounds on histories of which the truth is known. */
#include "tests/gp/gp_test.h"

#define N_MAX 128

static struct gp_trial trials[N_MAX];
static double xs[N_MAX][SPACE_MAX_DIM];

typedef void truth(const double *x, struct rng *r, double *ret_score, double *ret_cost);

static struct gp_history sample(const struct space *space, size_t n, truth *fn)
{
    struct design design;
    struct rng r = rng_seed(3);
    design_init(&design, space->dim, rng_seed(1));
    for (size_t k = 0; k < n; k++) {
        double u[SPACE_MAX_DIM], score, cost;
        design_sobol(&design, k, u);
        space_from_unit(space, u, xs[k]);
        fn(xs[k], &r, &score, &cost);
        trials[k] = (struct gp_trial){.x = xs[k], .state = GP_TRIAL_DONE, .score = score, .cost = cost};
    }
    design_free(&design);
    return (struct gp_history){.n = n, .trials = trials};
}

static struct gp_insight look(const struct space *space, struct gp_history history)
{
    struct gp_insight in;
    gp_insight_init(&in, space, &history, 7);
    return in;
}

/* Var(3 u0) : Var(u1) = 9 : 1; ln cost is u2 and the third choice. */
static void additive(const double *x, struct rng *r, double *ret_score, double *ret_cost)
{
    *ret_score = 3.0 * x[0] + x[1] + 0.02 * noise(r);
    *ret_cost = exp(2.0 * x[2] + (x[4] == 2.0 ? 1.0 : 0.0));
}

TEST(first_order_effects)
{
    struct space space = unit_space(5);
    space.params[4] = param_of("test.kind", SPACE_CATEGORICAL, false, 0, 2);
    INSIGHT in = look(&space, sample(&space, 64, additive));
    /* shares of the variance: score 0.9 and 0.1; ln cost 4/12 : 2/9 = 0.6 and 0.4 */
    assert_near(in.score[0].effect, 0.9, 0.06);
    assert_near(in.score[1].effect, 0.1, 0.05);
    for (size_t i = 2; i < 5; i++)
        assert_near(in.score[i].effect, 0.0, 0.02);
    assert_near(in.cost[2].effect, 0.6, 0.08);
    assert_near(in.cost[4].effect, 0.4, 0.08);
    assert_near(in.cost[0].effect, 0.0, 0.02);
    assert_true(in.score[0].sensitivity > in.score[3].sensitivity);
    for (size_t i = 0; i < 5; i++)
        assert_true(in.score[i].effect_sd >= 0.0 && in.score[i].effect_sd < 0.1);
}

/* Little is known from eight points of a noisy function: the effects' spread says so. */
static void vague(const double *x, struct rng *r, double *ret_score, double *ret_cost)
{
    *ret_score = x[0] + 1.0 * noise(r);
    *ret_cost = exp(x[1]);
}

static void clear(const double *x, struct rng *r, double *ret_score, double *ret_cost)
{
    *ret_score = x[0] + 0.01 * noise(r);
    *ret_cost = exp(x[1]);
}

TEST(uncertainty_shrinks_with_data)
{
    struct space space = unit_space(3);
    struct gp_insight few = look(&space, sample(&space, 8, vague));
    double sd = few.score[0].effect_sd;
    gp_insight_free(&few);
    INSIGHT many = look(&space, sample(&space, 96, clear));
    assert_true(many.score[0].effect_sd < sd);
}

/* One lucky run at a bad point, many honest ones near the optimum: the lucky run is not recommended. */
static void lucky(const double *x, struct rng *r, double *ret_score, double *ret_cost)
{
    *ret_score = 1.0 - 4.0 * (x[0] - 0.6) * (x[0] - 0.6) + 0.25 * noise(r);
    *ret_cost = 1.0 + x[1];
}

TEST(lucky_run_is_not_recommended)
{
    struct space space = unit_space(2);
    struct gp_history history = sample(&space, 60, lucky);
    size_t bad = 0;
    for (size_t k = 0; k < 60; k++)
        if (fabs(xs[k][0] - 0.2) < fabs(xs[bad][0] - 0.2))
            bad = k;
    trials[bad].score = 1.2; /* truth there: 0.36 */
    INSIGHT in = look(&space, history);
    assert_true(in.recommended < 60 && in.recommended != bad);
    assert_near(xs[in.recommended][0], 0.6, 0.2);
    const struct gp_belief *b = &in.beliefs[in.recommended];
    assert_near(b->score, 1.0, 0.25);
    assert_true(b->score_sd > 0.0 && b->score_sd < 0.25);
    assert_true(in.score_noise_sd > 0.12 && in.score_noise_sd < 0.5);
}

static void climbing(const double *x, struct rng *r, double *ret_score, double *ret_cost)
{
    (void)r;
    *ret_score = log(x[0] / 1e-4) + x[1];
    *ret_cost = exp(3.0 * x[1]);
}

TEST(front_on_a_bound)
{
    struct space space = unit_space(2);
    space.params[0] = param_of("train.learning_rate", SPACE_LOG, false, 1e-4, 1e-2);
    struct gp_history history = sample(&space, 30, climbing);
    for (size_t k = 20; k < 30; k++) { /* the front: at the upper bound, at rising cost */
        xs[k][0] = 1e-2;
        climbing(xs[k], NULL, &trials[k].score, &trials[k].cost);
    }
    INSIGHT in = look(&space, history);
    assert_int_equal(in.edges[0].side, 1);
    assert_true(in.edges[0].n_on >= 2 && 2 * in.edges[0].n_on >= in.edges[0].n_front);
    assert_near(in.edges[0].suggested, 0.1, 1e-9); /* half of two decades more */
    assert_int_equal(in.edges[1].side, 0);
}

TEST(nothing_to_say)
{
    struct space space = unit_space(2);
    INSIGHT in = look(&space, (struct gp_history){.n = 0, .trials = trials});
    assert_non_null(in.note);
    assert_true(in.recommended == 0 && in.beliefs == NULL);
    gp_insight_free(&in);
    struct gp_history history = sample(&space, 20, climbing);
    for (size_t k = 0; k < 20; k++)
        trials[k].score = 5.0;
    in = look(&space, history);
    assert_null(in.note);
    assert_non_null(in.score_note);
    assert_near(in.score[0].effect, 0.0, 0.0);
    assert_near(in.beliefs[in.recommended].score, 5.0, 1e-9);
    gp_insight_free(&in);
    for (size_t k = 0; k < 20; k++)
        trials[k].state = GP_TRIAL_FAILED;
    in = look(&space, history);
    assert_non_null(in.note);
}

/* Too little for shares of a variance: two runs, a parameter that never changed. A reason or 0, and no crash. */
TEST(little_to_learn_from)
{
    struct space space = unit_space(3);
    INSIGHT in = look(&space, sample(&space, 2, clear));
    assert_string_equal(in.note, "too few finished trials for an estimate");
    assert_null(in.beliefs);
    gp_insight_free(&in);
    struct gp_history history = sample(&space, 30, clear);
    for (size_t k = 0; k < 30; k++)
        xs[k][2] = 0.5;
    in = look(&space, history);
    assert_null(in.note);
    assert_near(in.score[2].effect, 0.0, 0.1); /* what it would do elsewhere is not known: little, and not sure */
    assert_near(in.cost[2].effect, 0.0, 0.1);
    assert_true(in.score[2].effect_sd > 0.0 && in.score[2].effect < in.score[0].effect);
    assert_int_equal(in.edges[2].side, 0);
}

TEST(same_bytes)
{
    struct space space = mixed_space();
    struct gp_history history = sample(&space, 40, vague);
    INSIGHT a = look(&space, history), b = look(&space, history);
    assert_memory_equal(a.score, b.score, sizeof a.score);
    assert_memory_equal(a.beliefs, b.beliefs, 40 * sizeof *a.beliefs);
}

/* Asked at a trial's point, the kept models say what an insight says of that trial; asked twice, the same. */
TEST(surrogate_agrees)
{
    struct space space = mixed_space();
    struct gp_history history = sample(&space, 40, vague);
    INSIGHT in = look(&space, history);
    struct gp_surrogate *s = NULL;
    struct gp_belief one, all[2];
    double x[2 * SPACE_MAX_DIM];

    assert_int_equal(gp_surrogate_create(&s, &space, &history, NULL), ST_OK);
    for (size_t i = 0; i < history.n; i++) {
        gp_surrogate_predict(s, history.trials[i].x, 1, &one);
        assert_true(fabs(one.score - in.beliefs[i].score) <= 1e-9 * (1.0 + fabs(one.score)));
        assert_true(fabs(one.log_cost - in.beliefs[i].log_cost) <= 1e-9 * (1.0 + fabs(one.log_cost)));
        assert_true(fabs(one.score_sd - in.beliefs[i].score_sd) <= 1e-6 * (1e-3 + one.score_sd));
    }
    for (size_t k = 0; k < 2 * space.dim; k++)
        x[k] = history.trials[k / space.dim].x[k % space.dim];
    gp_surrogate_predict(s, x, 2, all);
    assert_true(all[1].score == all[1].score &&
                fabs(all[1].score - in.beliefs[1].score) <= 1e-9 * (1.0 + fabs(all[1].score)));
    gp_surrogate_destroy(s);
    gp_surrogate_destroy(NULL);
}

TEST_PROGRAM("insight")
