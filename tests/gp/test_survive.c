/* test_survive.c - histories that sweeps do meet and optimisers do not like, and what the model-based method learns
 * from stopped runs, repeats and other studies. */
#include <cblas.h>

#include "gp/model/observations_priv.h"
#include "tests/gp/gp_test.h"

#define N_MAX 5200

static struct gp_trial trials[N_MAX], others[N_MAX];
static double xs[N_MAX][SPACE_MAX_DIM], other_xs[N_MAX][SPACE_MAX_DIM];

static void put(size_t i, const double *x, size_t dim, enum gp_trial_state state, double score, double cost)
{
    memcpy(xs[i], x, dim * sizeof *x);
    trials[i] = (struct gp_trial){.x = xs[i], .state = state, .score = score, .cost = cost};
}

static enum status ask(const struct space *space, struct gp_history history, int64_t number, struct suggestion *ret,
                       struct error *err)
{
    struct suggester *s;
    struct suggest_settings settings = {.seed = 5};
    assert_int_equal(suggester_create(&s, space, &settings, err), ST_OK);
    enum status rc = suggester_next(s, &history, number, ret, err);
    suggester_destroy(s);
    if (rc == ST_OK) {
        double y[SPACE_MAX_DIM];
        memcpy(y, ret->x, sizeof y);
        space_snap(space, y);
        assert_memory_equal(ret->x, y, space->dim * sizeof *y);
    }
    return rc;
}

static struct suggestion must(const struct space *space, struct gp_history history, int64_t number)
{
    struct suggestion s;
    OK(ask(space, history, number, &s, err));
    return s;
}

TEST(scores_of_sixty_decades)
{
    struct space space = unit_space(4);
    struct rng r = rng_seed(1);
    for (size_t i = 0; i < 40; i++) {
        double x[4] = {rng_f64(&r), rng_f64(&r), rng_f64(&r), rng_f64(&r)};
        double size = pow(10.0, 60.0 * rng_f64(&r) - 30.0);
        put(i, x, 4, GP_TRIAL_DONE, i % 2 ? size : -size, 1.0 + x[1]);
    }
    assert_string_equal(must(&space, (struct gp_history){.n = 40, .trials = trials}, 41).origin, "ehvi");
}

TEST(five_thousand_of_which_four_coincide)
{
    struct space space = unit_space(5);
    struct rng r = rng_seed(2);
    for (size_t i = 0; i < 5000; i++) {
        double x[5] = {0.5, 0.5, 0.5, 0.5, 0.5};
        for (size_t k = 0; k < 5 && i % 5 == 0; k++)
            x[k] = rng_f64(&r);
        put(i, x, 5, GP_TRIAL_DONE, 1.0 - (x[0] - 0.7) * (x[0] - 0.7) + 0.1 * noise(&r), exp(x[1]));
    }
    struct suggestion s = must(&space, (struct gp_history){.n = 5000, .trials = trials}, 5000);
    assert_string_equal(s.origin, "ehvi");
    assert_true(isfinite(s.score_mean) && isfinite(s.log_cost_mean));
}

/* Thirty whole numbers of few values and hundreds of runs, many of them repeats: a matrix that is hardly definite. */
TEST(thirty_whole_parameters)
{
    struct space space = {.dim = 30};
    struct rng r = rng_seed(12);
    double x[30];
    for (size_t i = 0; i < 30; i++) {
        space.params[i] = param_of("", SPACE_LINEAR, true, 0, 1 + (double)(i % 3));
        snprintf(space.params[i].key, SPACE_KEY_MAX, "test.p%zu", i);
    }
    for (size_t k = 0; k < 480; k++) {
        for (size_t i = 0; i < 30; i++)
            x[i] = k % 4 == 3 ? xs[k / 2][i] : i < 4 ? (double)rng_below(&r, (uint32_t)(2 + i % 3)) : 1.0;
        put(k, x, 30, GP_TRIAL_DONE, x[0] + x[1] * x[2], 1.0 + x[3]);
    }
    struct suggestion s = must(&space, (struct gp_history){.n = 480, .trials = trials}, 480);
    assert_string_equal(s.origin, "ehvi");
    for (size_t k = 0; k < 480; k++)
        assert_true(memcmp(xs[k], s.x, sizeof x) != 0);
}

/* The unit of the score is no matter. */
TEST(scale_of_scores_changes_nothing)
{
    struct space space = unit_space(3);
    struct rng r = rng_seed(13);
    struct suggestion s[2];
    for (int k = 0; k < 2; k++) {
        for (size_t i = 0; i < 30; i++) {
            double x[3] = {rng_f64(&r), rng_f64(&r), rng_f64(&r)};
            if (k == 0)
                put(i, x, 3, GP_TRIAL_DONE, x[0] - x[1] + 0.1 * noise(&r), exp(x[2]));
            else
                trials[i].score *= 0x1p-40;
        }
        s[k] = must(&space, (struct gp_history){.n = 30, .trials = trials}, 30);
    }
    assert_memory_equal(s[0].x, s[1].x, sizeof s[0].x);
    assert_near(s[1].score_mean * 0x1p40, s[0].score_mean, 1e-9);
}

TEST(finite_space_runs_out)
{
    struct space space = {.dim = 3};
    struct suggestion s;
    struct error why = {0};
    for (size_t i = 0; i < 3; i++) { /* integer ranges of two values */
        space.params[i] = param_of("", SPACE_LINEAR, true, 3, 4);
        snprintf(space.params[i].key, SPACE_KEY_MAX, "test.p%zu", i);
    }
    for (size_t i = 0; i < 8; i++) {
        OK(ask(&space, (struct gp_history){.n = i, .trials = trials}, (int64_t)i, &s, err));
        put(i, s.x, 3, GP_TRIAL_DONE, s.x[0] + s.x[1], s.x[2]);
    }
    assert_int_equal(ask(&space, (struct gp_history){.n = 8, .trials = trials}, 8, &s, &why), ST_LIMIT);
}

TEST(space_that_shrank)
{
    struct space space = unit_space(2);
    struct rng r = rng_seed(3);
    space.params[0].max = 0.5; /* the data were taken on [0, 1], and are best where the space no longer is */
    for (size_t i = 0; i < 40; i++) {
        double x[2] = {rng_f64(&r), rng_f64(&r)};
        put(i, x, 2, GP_TRIAL_DONE, x[0] > 0.5 ? 100.0 : -(x[0] - 0.2) * (x[0] - 0.2), 1.0 + x[1]);
    }
    struct suggestion s = must(&space, (struct gp_history){.n = 40, .trials = trials}, 40);
    assert_true(s.x[0] <= 0.5 && s.score_mean < 10.0); /* nothing of the 100 was moved onto the new bound */
    for (size_t i = 0; i < 40; i++) { /* none of them lies inside any more */
        xs[i][0] = 0.6 + 0.4 * rng_f64(&r);
        trials[i].score = 1.0;
    }
    s = must(&space, (struct gp_history){.n = 40, .trials = trials}, 40);
    assert_true(s.x[0] <= 0.5);
}

TEST(numbers_that_are_none)
{
    struct space space = unit_space(2);
    struct rng r = rng_seed(4);
    struct suggestion s;
    struct error err = {0};
    for (size_t i = 0; i < 30;
         i++) { /* the caller turns them into failures: whatever stands in such a row is not read */
        double x[2] = {rng_f64(&r), rng_f64(&r)};
        put(i, x, 2, i % 3 ? GP_TRIAL_DONE : GP_TRIAL_FAILED,
            i % 3   ? x[0]
            : i % 2 ? (double)NAN
                    : (double)INFINITY,
            i % 3 ? 1.0 : 0.0);
    }
    struct gp_history history = {.n = 30, .trials = trials};
    must(&space, history, 30);
    trials[1].score = NAN;
    assert_int_equal(ask(&space, history, 30, &s, &err), ST_NUMERIC);
    err = (struct error){0};
    trials[1].score = 1.0;
    trials[1].cost = 0.0;
    assert_int_equal(ask(&space, history, 30, &s, &err), ST_NUMERIC);
}

/* A run stopped at 0.5 where its neighbours end at 0.9 is not evidence of 0.5. */
TEST(stopped_run_is_a_lower_bound)
{
    struct space space = unit_space(1);
    INSIGHT in;
    for (size_t i = 0; i < 21; i++) {
        double x = (double)i / 20.0;
        bool stopped = i == 9 || i == 10 || i == 11;
        put(i, &x, 1, stopped ? GP_TRIAL_STOPPED : GP_TRIAL_DONE, stopped ? 0.5 : 0.9 - 0.1 * x, 1.0 + x);
    }
    gp_insight_init(&in, &space, &(struct gp_history){.n = 21, .trials = trials}, 1);
    assert_near(in.beliefs[10].score, 0.85, 0.03);
    assert_false(in.beliefs[10].on_front); /* and it is not a result either */
}

/* A run that was stopped because it cost ten times what was expected is as expensive at least, and so is what lies
 * near; one that was stopped before that says nothing of costs. */
TEST(stopped_run_has_cost_at_least_that)
{
    struct space space = unit_space(1);
    struct gp_insight in;
    double cost[2];
    for (int early = 0; early < 2; early++) {
        for (size_t i = 0; i < 21; i++) {
            double x = (double)i / 20.0;
            bool stopped = i >= 18;
            put(i, &x, 1, stopped ? GP_TRIAL_STOPPED : GP_TRIAL_DONE, 0.9 - 0.1 * x,
                stopped ? (early ? 0.1 : 10.0) : 1.0 + 0.1 * x);
        }
        gp_insight_init(&in, &space, &(struct gp_history){.n = 21, .trials = trials}, 1);
        cost[early] = in.beliefs[19].log_cost;
        assert_false(in.beliefs[19].on_front);
        gp_insight_free(&in);
    }
    assert_true(cost[0] > log(4.0));
    assert_near(cost[1], log(1.1), 0.1);
}

TEST(other_study_is_a_warm_start)
{
    struct space space = unit_space(3);
    struct rng r = rng_seed(8);
    for (size_t i = 0; i < 60; i++) {
        for (size_t k = 0; k < 3; k++)
            other_xs[i][k] = rng_f64(&r) * (k == 2 ? 2.0 : 1.0); /* of a wider space */
        double *x = other_xs[i];
        others[i] = (struct gp_trial){.x = x,
                                      .state = GP_TRIAL_DONE,
                                      .score = -(x[0] - 0.8) * (x[0] - 0.8) + 0.1 * x[1] + (x[2] > 1.0 ? 1e6 : 0.0),
                                      .cost = exp(x[1])};
    }
    struct gp_history history = {.trials = trials, .n_other = 60, .other = others};
    for (size_t i = 0; i < 6; i++) { /* confirmed by the first point of the design, it knows where to look */
        history.n = i;
        struct suggestion s = must(&space, history, (int64_t)i);
        assert_string_equal(s.origin, i == 0 ? "sobol" : "ehvi");
        assert_true(i == 0 || (fabs(s.x[0] - 0.8) < 0.35 && s.score_mean < 10.0));
        put(i, s.x, 3, GP_TRIAL_DONE, -(s.x[0] - 0.8) * (s.x[0] - 0.8) + 0.1 * s.x[1], exp(s.x[1]));
    }
    bool front[6];
    history.n = 6;
    pareto_front(&history, NULL, front); /* theirs are not on our front */
    history.n_other = 2; /* too few to spare the design */
    assert_string_equal(must(&space, history, 6).origin, "sobol");
}

/* Another game whose runs rank points as own ones do, in other units: from the fourth own run on three points of its
 * front stand in the design, its highest score first, or one when that fails. All else is as without it, and all is
 * where it ranks points the other way round, or no run has told two scores apart. */
TEST(another_game_is_a_start)
{
    enum { AGREES, FAILS, OPPOSITE, EQUAL, N_KINDS };
    const double slope[N_KINDS] = {1.0, 1.0, -1.0, 0.0};
    const size_t n_starts[N_KINDS] = {3, 1, 0, 0};
    struct space space = unit_space(3);
    struct rng r = rng_seed(20);
    struct gp_history with = {.trials = trials, .n_other = 60, .other = others, .other_game = true},
                      without = {.trials = trials};
    double top = 0.0;
    for (size_t i = 0; i < 60; i++) {
        double *x = other_xs[i];
        for (size_t k = 0; k < 3; k++)
            x[k] = rng_f64(&r);
        top = fmax(top, x[0]);
        others[i] = (struct gp_trial){
            .x = x, .state = GP_TRIAL_DONE, .score = 1e3 * x[0] - 7e3, .cost = exp(20.0 + 3.0 * x[1])};
    }
    for (size_t kind = 0; kind < N_KINDS; kind++) {
        size_t n_from = 0;
        for (size_t i = 0; i < 12; i++) {
            with.n = without.n = i;
            struct suggestion s = must(&space, with, (int64_t)i), alone = must(&space, without, (int64_t)i);
            bool is_start = i >= 4 && n_from < n_starts[kind];
            if (is_start)
                assert_string_equal(s.origin, "from");
            else
                assert_memory_equal(&s, &alone, sizeof alone);
            assert_true(!is_start || n_from > 0 || s.x[0] == top);
            put(i, s.x, 3, is_start && kind == FAILS ? GP_TRIAL_FAILED : GP_TRIAL_DONE, slope[kind] * s.x[0],
                exp(s.x[1]));
            n_from += is_start;
        }
    }
}

/* A study teaches when it predicts own runs better than they predict one another. With one that says the opposite, or
 * the same in another unit, all is as without it; and also before a run has ended. */
TEST(who_says_the_opposite_does_not_teach)
{
    struct space space = unit_space(2);
    struct rng r = rng_seed(19);
    struct gp_history with = {.trials = trials, .n_other = 60, .other = others}, without = {.trials = trials};
    for (size_t i = 0; i < 60; i++) {
        double *x = other_xs[i];
        x[0] = rng_f64(&r);
        x[1] = rng_f64(&r);
        others[i] = (struct gp_trial){.x = x, .state = GP_TRIAL_DONE, .score = 5.0 * x[0], .cost = exp(x[1])};
    }
    const double slopes[] = {5.0, -5.0, 5000.0};
    for (size_t kind = 0; kind < 4; kind++)
        for (size_t i = 0; i < 12; i++) {
            with.n = without.n = i;
            struct suggestion taught = must(&space, with, (int64_t)i), alone = must(&space, without, (int64_t)i);
            if (kind > 0 || i == 0)
                assert_memory_equal(&taught, &alone, sizeof alone);
            else if (i > 3)
                assert_true(strcmp(taught.origin, "ehvi") == 0 && memcmp(&taught, &alone, sizeof alone) != 0);
            if (kind == 3) /* none ends */
                put(i, taught.x, 2, GP_TRIAL_PENDING, NAN, NAN);
            else
                put(i, taught.x, 2, GP_TRIAL_DONE, (kind == 1 ? 5.0 : 0.0) + slopes[kind] * taught.x[0],
                    exp(taught.x[1]));
        }
}

/* Own trials, chosen by what another study taught, are all good and expensive: that makes the cheap end of the front no
 * less wanted, and the other's bad points no better. */
TEST(own_good_trials_leave_the_cheap_end)
{
    struct space space = unit_space(2);
    struct rng r = rng_seed(18);
    struct gp_history history = {.trials = trials, .n = 12, .n_other = 60, .other = others};
    size_t n_cheap = 0;
    for (size_t i = 0; i < 60; i++) {
        double *x = other_xs[i];
        x[0] = rng_f64(&r);
        x[1] = rng_f64(&r);
        others[i] = (struct gp_trial){
            .x = x, .state = GP_TRIAL_DONE, .score = -4.0 * pow(x[0] - 0.8, 2.0) + 0.3 * x[1], .cost = exp(3.0 * x[1])};
    }
    for (size_t i = 0; i < 12; i++) {
        double x[2] = {0.78 + 0.04 * rng_f64(&r), 0.9 + 0.1 * rng_f64(&r)};
        put(i, x, 2, GP_TRIAL_DONE, -4.0 * pow(x[0] - 0.8, 2.0) + 0.3 * x[1], exp(3.0 * x[1]));
    }
    for (; history.n < 20; history.n++) {
        struct suggestion s = must(&space, history, (int64_t)history.n);
        double score = -4.0 * pow(s.x[0] - 0.8, 2.0) + 0.3 * s.x[1];
        n_cheap += s.x[1] < 0.5;
        put(history.n, s.x, 2, GP_TRIAL_DONE, score, exp(3.0 * s.x[1]));
    }
    print_message("# %zu of 8 are cheap\n", n_cheap);
    assert_in_range(n_cheap, 4, 8);
}

/* A best in the middle is not sought on the bounds: of what the models propose little lies there. */
TEST(bounds_draw_no_crowd)
{
    struct space space = unit_space(5);
    struct rng r = rng_seed(14);
    size_t on_bounds = 0;
    for (size_t i = 0; i < 50; i++) {
        struct suggestion s = must(&space, (struct gp_history){.n = i, .trials = trials}, (int64_t)i);
        double score = 0.05 * noise(&r);
        for (size_t k = 0; k < 4; k++) {
            score -= (s.x[k] - 0.4) * (s.x[k] - 0.4);
            on_bounds += i >= 10 && (s.x[k] <= 0.0 || s.x[k] >= 1.0);
        }
        put(i, s.x, 5, GP_TRIAL_DONE, score, exp(s.x[4]));
    }
    print_message("# %zu of 160 coordinates on a bound\n", on_bounds);
    assert_in_range(on_bounds, 0, 40);
}

/* Eight workers over whole numbers: eight points, as they are after rounding. */
TEST(a_batch_of_whole_numbers)
{
    struct space space = {.dim = 2};
    struct rng r = rng_seed(15);
    for (size_t i = 0; i < 2; i++) {
        space.params[i] = param_of("", SPACE_LINEAR, true, 1, 8);
        snprintf(space.params[i].key, SPACE_KEY_MAX, "test.p%zu", i);
    }
    for (size_t i = 0; i < 20; i++) {
        double x[2] = {(double)(1 + i % 8), (double)(1 + i / 4)};
        put(i, x, 2, GP_TRIAL_DONE, -fabs(x[0] - 5.0) + 0.1 * noise(&r), x[1]);
    }
    for (size_t i = 20; i < 28; i++) {
        struct suggestion s =
            must(&space, (struct gp_history){.n = i, .trials = trials}, 40); /* not a repeat's number */
        for (size_t j = 0; j < i; j++)
            assert_true(memcmp(xs[j], s.x, 2 * sizeof *s.x) != 0);
        put(i, s.x, 2, GP_TRIAL_PENDING, NAN, NAN);
    }
}

/* What a running trial was expected to give goes with it. */
TEST(a_lost_run_leaves_nothing)
{
    struct space space = unit_space(3);
    SUGGESTER *lived = suggester_of(&space, (struct suggest_settings){.seed = 5});
    struct rng r = rng_seed(16);
    for (size_t i = 0; i < 30; i++) {
        double x[3] = {rng_f64(&r), rng_f64(&r), rng_f64(&r)};
        put(i, x, 3, GP_TRIAL_DONE, x[0] - x[1] + 0.05 * noise(&r), exp(x[2]));
    }
    struct suggestion before = suggester_ask(lived, trials, 30, 30);
    put(30, before.x, 3, GP_TRIAL_PENDING, NAN, NAN);
    struct suggestion beside = suggester_ask(lived, trials, 31, 30);
    assert_true(memcmp(before.x, beside.x, sizeof before.x) != 0);
    struct suggestion after = suggester_ask(lived, trials, 30, 30); /* lost: it is queued again or gone */
    assert_memory_equal(&before, &after, sizeof before);
}

/* Losses that diverge over six decades (turned round, as the caller does it), and returns that grow by as much: the tail
 * is most of the spread, and still the good half is distinguished, with intervals of its own size. */
TEST(a_long_tail_hides_nothing)
{
    struct space space = unit_space(3);
    for (int grows = 0; grows < 2; grows++) {
        struct rng r = rng_seed(21);
        double level[60];
        size_t wrong = 0, pairs = 0, members = 0;
        for (size_t i = 0; i < 60; i++) {
            double x[3] = {rng_f64(&r), rng_f64(&r), rng_f64(&r)};
            level[i] = -8.0 * (x[0] - 0.4) * (x[0] - 0.4) - 4.0 * (x[1] - 0.6) * (x[1] - 0.6) + 2.0 * x[2] -
                       (grows ? 0.0 : 40.0 * fmax(x[0] - 0.7, 0.0)) + (grows ? 3.0 * x[1] : 0.0);
            double size = exp((grows ? 2.0 : -1.0) * level[i] + 0.1 * noise(&r));
            put(i, x, 3, GP_TRIAL_DONE, grows ? size : -size, exp(3.0 * x[2]));
        }
        INSIGHT in;
        gp_beliefs_init(&in, &space, &(struct gp_history){.n = 60, .trials = trials});
        for (size_t i = 0; i < 60; i++) {
            const struct gp_belief *b = &in.beliefs[i];
            assert_true(isfinite(b->lo) && isfinite(b->hi) && b->lo <= b->score && b->score <= b->hi);
            members += b->on_front;
            for (size_t j = 0; j < 60; j++)
                if (level[i] > -1.0 && level[j] > -1.0 && level[i] > level[j] + 0.5) {
                    pairs++;
                    wrong += b->score <= in.beliefs[j].score;
                }
        }
        const struct gp_belief *best = &in.beliefs[in.recommended];
        print_message("# %zu of %zu pairs wrong, %zu members, best %g in %g to %g\n", wrong, pairs, members,
                      best->score, best->lo, best->hi);
        assert_true(20 * wrong < pairs && members >= 3);
        assert_true(best->hi - best->lo < 10.0 * fabs(best->score)); /* the losses reach to 1e5 */
    }
}

/* Until a run has left the floor of the score the design continues, three times as long at most. */
TEST(a_design_goes_on_where_nothing_learns)
{
    struct space space = unit_space(4); /* nine points */
    struct rng r = rng_seed(23);
    struct gp_history history = {.trials = trials, .has_score_bounds = true, .score_min = 0.0, .score_max = 1.0};
    for (history.n = 0; history.n < 30; history.n++) {
        double x[4] = {rng_f64(&r), rng_f64(&r), rng_f64(&r), rng_f64(&r)};
        bool designs = strcmp(must(&space, history, (int64_t)history.n).origin, "sobol") == 0;
        assert_true(designs == (history.n < 27) || history.n % 2 == 0); /* even numbers: noise is not followed */
        if (history.n >= 9 && history.n < 27 && history.n % 2 == 1) { /* a turn at which the models propose always */
            struct gp_history open = history;
            open.has_score_bounds = false; /* no floor is known */
            assert_string_equal(must(&space, open, (int64_t)history.n).origin, "ehvi");
            trials[history.n - 1].score = 0.03; /* one has learned something */
            assert_string_equal(must(&space, history, (int64_t)history.n).origin, "ehvi");
            trials[history.n - 1].score = 0.01;
        }
        put(history.n, x, 4, GP_TRIAL_DONE, 0.01 * (double)(history.n % 2), exp(x[0]));
    }
}

/* Where scores are noise every second proposal is a spread point, unless costs are capped; where they are not, none. */
TEST(noise_is_not_followed_at_every_turn)
{
    struct space space = unit_space(6);
    for (int learns = 0; learns < 2; learns++) {
        struct rng r = rng_seed(24);
        SUGGESTER *capped = suggester_of(&space, (struct suggest_settings){.seed = 5, .max_cost = 100.0});
        size_t spread = 0;
        for (size_t n = 0; n < 40; n++) {
            double x[6] = {rng_f64(&r), rng_f64(&r), rng_f64(&r), rng_f64(&r), rng_f64(&r), rng_f64(&r)};
            put(n, x, 6, GP_TRIAL_DONE, (learns ? 10.0 * x[1] - 5.0 * x[4] : 0.0) + noise(&r), exp(3.0 * x[0]));
            if (n < 19)
                continue;
            struct gp_history history = {.n = n + 1, .trials = trials};
            bool is_spread = strcmp(must(&space, history, (int64_t)n + 1).origin, "sobol") == 0;
            assert_true(!is_spread || (n + 1) % 2 == 0);
            spread += is_spread;
            assert_string_equal(suggester_ask(capped, trials, n + 1, n + 1).origin, "ehvi");
        }
        assert_true(learns ? spread == 0 : spread >= 8); /* of 11 even numbers */
    }
}

/* Twenty points cannot tell slopes of forty parameters apart: proposals stay off the corners to which these lead. */
TEST(few_points_of_many_parameters_lead_to_no_corner)
{
    struct space space = unit_space(40);
    struct rng r = rng_seed(26);
    size_t on_bound = 0, n = 0;
    for (; n < 20; n++) {
        double x[40];
        for (size_t i = 0; i < 40; i++)
            x[i] = rng_f64(&r);
        put(n, x, 40, GP_TRIAL_DONE, -(x[3] - 0.4) * (x[3] - 0.4) - (x[7] - 0.6) * (x[7] - 0.6), exp(3.0 * x[0]));
    }
    for (int64_t k = 0; k < 4; k++) {
        struct suggestion s = must(&space, (struct gp_history){.n = n, .trials = trials}, 21 + 2 * k);
        assert_string_equal(s.origin, "ehvi");
        for (size_t i = 0; i < 40; i++)
            on_bound += s.x[i] == 0.0 || s.x[i] == 1.0;
    }
    print_message("# %zu of 160 coordinates on a bound\n", on_bound);
    assert_true(on_bound < 16);
}

/* Ten scores with a long tail, whose other side is a thousandth of it, and runs far out since: what is expected and its
 * intervals stay within some times the range that was seen. */
TEST(intervals_of_a_long_tail_end_near_what_was_seen)
{
    struct space space = unit_space(3);
    for (int side = -1; side <= 1; side += 2) {
        struct rng r = rng_seed(25);
        for (size_t i = 0; i < 40; i++) {
            double x[3] = {rng_f64(&r), rng_f64(&r), rng_f64(&r)};
            bool far = i % 5 == 1 || (i > 10 && x[0] > 0.6);
            put(i, x, 3, GP_TRIAL_DONE, side * (far ? 90.0 * x[1] : 1e-4 * noise(&r)), exp(3.0 * x[2]));
        }
        INSIGHT in;
        gp_beliefs_init(&in, &space, &(struct gp_history){.n = 40, .trials = trials});
        for (size_t i = 0; i < 40; i++)
            assert_true(in.beliefs[i].hi - in.beliefs[i].lo < 20.0 * 90.0);
    }
}

TEST(a_tail_is_drawn_in_and_out_again)
{
    struct rng r = rng_seed(22);
    for (int round = 0; round < 200; round++) {
        double scores[40], sorted[40], unit = exp(20.0 * (rng_f64(&r) - 0.5)), last = -INFINITY;
        double side = round % 2 ? 1.0 : -1.0, heavy = round % 4 < 2 ? 4.0 : 0.0;
        for (size_t i = 0; i < 40; i++)
            scores[i] = unit * side * (heavy > 0.0 ? exp(heavy * noise(&r)) : noise(&r));
        memcpy(sorted, scores, sizeof sorted);
        struct warp w = warp_of(sorted, 40);
        assert_true(w.tail == (heavy > 0.0 ? side : 0.0));
        for (size_t i = 0; i < 40; i++) {
            double z = warp_to(&w, sorted[i]);
            assert_true(i == 0 || sorted[i] == sorted[i - 1] || z > last);
            assert_near(warp_from(&w, z), sorted[i], 1e-9 * (fabs(sorted[i]) + w.spread));
            assert_true(w.tail == 0.0 || fabs(z) < 40.0);
            last = z;
        }
    }
}

int main(void)
{
    openblas_set_num_threads(1);
    return run_cases("gp.survive", NULL, NULL);
}
