/* test_advice.c - beliefs about points with several runs, picks by rule, which config gets another seed, and which
 * advice is confirmed next. */
#include "tests/gp/gp_test.h"

#define N_MAX 128

static struct gp_trial trials[N_MAX];
static double xs[N_MAX][SPACE_MAX_DIM];
static struct gp_history history;

/* x0: how far a run gets, cost rises with it. Runs scatter by 0.2 in the middle, by 0.002 at either end. */
static double truth(double x)
{
    return 1.0 / (1.0 + exp(-12.0 * (x - 0.5)));
}

static double scatter(double x)
{
    double p = truth(x);
    return 0.002 + 0.8 * p * (1.0 - p);
}

static void add(double x, double score)
{
    size_t i = history.n++;
    xs[i][0] = x;
    trials[i] = (struct gp_trial){.x = xs[i], .state = GP_TRIAL_DONE, .score = score, .cost = exp(3.0 * x)};
}

static struct space begin(size_t n, uint64_t seed)
{
    struct rng r = rng_seed(seed);
    history = (struct gp_history){.trials = trials, .has_score_bounds = true, .score_min = 0.0, .score_max = 1.0};
    for (size_t i = 0; i < n; i++) {
        double x = ((double)i + 0.5) / (double)n;
        add(x, fmin(fmax(truth(x) + scatter(x) * noise(&r), 0.0), 1.0));
    }
    return unit_space(1);
}

static struct gp_insight look(const struct space *space)
{
    struct gp_insight in;
    gp_beliefs_init(&in, space, &history);
    return in;
}

static struct gp_picked pick(const struct gp_insight *in, enum gp_rule rule, double value)
{
    return gp_pick(in, &history, rule, value);
}

static size_t confirm(const struct gp_insight *in)
{
    return gp_confirm_next(in, &history, GP_CONFIRM_DOUBTFUL);
}

TEST(noise_depends_on_the_score)
{
    for (uint64_t seed = 1; seed <= 5; seed++) {
        struct space space = begin(60, seed);
        INSIGHT in = look(&space);
        double steep = in.beliefs[30].noise_sd, low = in.beliefs[3].noise_sd, high = in.beliefs[57].noise_sd;
        print_message("# noise %.3f at the knee, %.4f and %.4f at the ends\n", steep, low, high);
        assert_true(steep > 0.08 && steep < 0.35); /* 0.2 */
        assert_true(low < steep / 3.0 && high < steep / 3.0);
        assert_true(in.beliefs[57].hi - in.beliefs[57].lo < 0.3 * (in.beliefs[30].hi - in.beliefs[30].lo));
    }
}

TEST(runs_of_one_point_make_one_belief)
{
    struct space space = begin(40, 3);
    size_t at = 20;
    struct gp_insight once = look(&space);
    struct gp_belief before = once.beliefs[at];
    assert_int_equal(before.n_seeds, 1);
    assert_true(before.mean == trials[at].score);
    gp_insight_free(&once);
    double sum = trials[at].score;
    for (int k = 0; k < 6; k++) {
        double score = 0.56 + 0.02 * (k % 3);
        sum += score;
        add(xs[at][0], score);
    }
    add(xs[at][0], 0.0);
    trials[history.n - 1].state = GP_TRIAL_FAILED; /* no seed of it */
    INSIGHT in = look(&space);
    const struct gp_belief *b = &in.beliefs[at];
    assert_int_equal(b->n_seeds, 7);
    assert_near(b->mean, sum / 7.0, 1e-12);
    assert_true(b->hi - b->lo < before.hi - before.lo);
    assert_true(b->score_sd < before.score_sd);
    size_t members = 0;
    for (size_t i = 40; i < history.n; i++) {
        assert_int_equal(in.point[i], at);
        assert_true(in.beliefs[i].lo == b->lo && in.beliefs[i].hi == b->hi && in.beliefs[i].score == b->score);
        members += in.beliefs[i].on_front;
    }
    assert_int_equal(members, 0); /* the first run stands for the point */
}

TEST(intervals_keep_to_what_a_score_can_be)
{
    struct space space = begin(30, 4);
    INSIGHT in = look(&space);
    bool clipped = false, wider = false;
    for (size_t i = 0; i < history.n; i++) {
        const struct gp_belief *b = &in.beliefs[i];
        assert_true(b->lo >= 0.0 && b->hi <= 1.0 && b->score >= 0.0 && b->score <= 1.0 && b->lo <= b->score &&
                    b->score <= b->hi);
        clipped = clipped || b->hi == 1.0;
    }
    gp_insight_free(&in);
    history.has_score_bounds = false;
    in = look(&space);
    for (size_t i = 0; i < history.n; i++)
        wider = wider || in.beliefs[i].hi > 1.0;
    assert_true(clipped && wider);
}

TEST(a_dropped_trial_teaches_nothing)
{
    struct space space = begin(30, 1);
    INSIGHT without = look(&space);
    add(0.45, 1.0); /* far too good for its cost */
    INSIGHT fooled = look(&space);
    assert_true(fabs(fooled.beliefs[13].score - without.beliefs[13].score) > 1e-3);
    trials[30].state = GP_TRIAL_DROPPED;
    INSIGHT with = look(&space);
    assert_false(gp_is_shown_on_front(&with, 30));
    assert_int_equal(with.recommended, without.recommended);
    for (size_t i = 0; i < 30; i++) {
        assert_near(with.beliefs[i].score, without.beliefs[i].score, 1e-9);
        assert_near(with.beliefs[i].log_cost, without.beliefs[i].log_cost, 1e-9);
        assert_int_equal(gp_is_shown_on_front(&with, i), gp_is_shown_on_front(&without, i));
    }
}

/* Eight configs of noise alone; the third is run again and comes out at the bottom, the sixth near the top. */
static struct space begin_noise(uint64_t seed)
{
    struct rng r = rng_seed(seed);
    history = (struct gp_history){.trials = trials};
    for (size_t i = 0; i < 8; i++) {
        add(rng_f64(&r), 0.0);
        xs[i][1] = rng_f64(&r);
        xs[i][2] = rng_f64(&r);
        trials[i].score = -3.0 + 3.0 * noise(&r);
    }
    trials[2].score = -2.6;
    trials[5].score = 0.67;
    add(xs[2][0], -8.0);
    memcpy(xs[8], xs[2], sizeof xs[8]);
    add(xs[5][0], -0.43);
    memcpy(xs[9], xs[5], sizeof xs[9]);
    for (size_t i = 0; i < history.n; i++)
        trials[i].cost = 1.0;
    return unit_space(3);
}

TEST(own_runs_decide_where_the_models_explain_nothing)
{
    static const uint64_t seeds[] = {1361, 1446}; /* histories of which the models' line rises towards the third */
    for (size_t k = 0; k < COUNT(seeds); k++) {
        struct space space = begin_noise(seeds[k]);
        INSIGHT in = look(&space);
        const struct gp_belief *low = &in.beliefs[2], *high = &in.beliefs[5];
        assert_true(low->score - low->score_sd > high->score - high->score_sd);
        assert_int_equal(in.recommended, 5);
        assert_int_equal(pick(&in, GP_COST_MAX, 2.0).i, 5);
    }
}

TEST(picks)
{
    struct space space = begin(60, 5);
    add(0.31, 0.97); /* a lucky run where 0.1 is true */
    INSIGHT in = look(&space);
    struct gp_picked p = pick(&in, GP_BEST, 0.0);
    assert_true(p.i == in.recommended && p.supported && xs[p.i][0] > 0.7);
    p = pick(&in, GP_COST_MAX, exp(3.0 * 0.6));
    assert_true(p.supported && xs[p.i][0] <= 0.6 && xs[p.i][0] > 0.45);
    p = pick(&in, GP_SCORE_MIN, 0.9); /* the cheapest that is sure of it, not the lucky one */
    assert_true(p.supported && in.beliefs[p.i].lo >= 0.9 && truth(xs[p.i][0]) > 0.88);
    for (size_t i = 0; i < history.n; i++)
        assert_true(!(in.beliefs[i].lo >= 0.9) || trials[i].cost >= trials[p.i].cost * 0.95);
    p = pick(&in, GP_SCORE_MIN, 2.0);
    assert_true(p.i == history.n && !p.supported && p.note != NULL);
    p = pick(&in, GP_COST_MAX, 0.5);
    assert_true(p.i == history.n && !p.supported && p.note != NULL);
    gp_insight_free(&in);
    history.n = 3; /* no model: single runs, and it is said */
    in = look(&space);
    assert_true(in.beliefs == NULL && in.note != NULL);
    p = pick(&in, GP_BEST, 0.0);
    assert_true(!p.supported && p.note != NULL && p.i < 3);
    for (size_t i = 0; i < 3; i++)
        assert_true(trials[i].score <= trials[p.i].score);
}

/* Score and ln cost on one line: a front without a knee. With a bend it has one, at the bend. */
TEST(knee_needs_a_bend)
{
    for (int bent = 0; bent < 2; bent++) {
        struct space space = begin(0, 1);
        struct rng r = rng_seed(8);
        history.has_score_bounds = false;
        for (int i = 0; i < 24; i++) {
            double x = (i + 0.5) / 24.0;
            add(x, (bent ? fmin(3.0 * x, 0.9 + 0.1 * x) : x) + 0.003 * noise(&r));
        }
        INSIGHT in = look(&space);
        struct gp_picked p = pick(&in, GP_KNEE, 0.0);
        if (bent)
            assert_near(xs[p.i][0], 0.31, 0.06);
        else
            assert_true(p.i == history.n && p.note != NULL);
    }
}

/* Confirming ends, asks for the doubtful first, and leaves nothing shown that was seen once. */
TEST(confirming)
{
    struct space space = begin(16, 6);
    struct rng r = rng_seed(9);
    size_t n_first = history.n, n = 0;
    for (; n < N_MAX - 40; n++) {
        struct gp_insight in = look(&space);
        size_t i = confirm(&in);
        if (i < history.n) {
            assert_true(trials[i].state == GP_TRIAL_DONE && in.point[i] == i);
            assert_true(in.beliefs[i].on_front || i == in.recommended || i == pick(&in, GP_KNEE, 0.0).i);
            double x = xs[i][0];
            gp_insight_free(&in);
            add(x, fmin(fmax(truth(x) + scatter(x) * noise(&r), 0.0), 1.0));
            continue;
        }
        for (size_t k = 0; k < history.n; k++)
            assert_true(!in.beliefs[k].on_front || in.beliefs[k].n_seeds >= 2);
        assert_true(in.beliefs[in.recommended].n_seeds >= 2);
        gp_insight_free(&in);
        break;
    }
    print_message("# confirmed by %zu runs\n", history.n - n_first);
    assert_in_range(n, 4, 60);
}

TEST(runs_under_way_are_not_asked_for_again)
{
    struct space space = begin(16, 6);
    size_t asked[N_MAX] = {0};
    for (int k = 0; k < 60; k++) {
        struct gp_insight in = look(&space);
        size_t i = confirm(&in);
        gp_insight_free(&in);
        if (i == history.n)
            break;
        asked[i]++;
        assert_true(asked[i] < 5); /* with the first run, five at most */
        add(xs[i][0], NAN);
        trials[history.n - 1].state = GP_TRIAL_PENDING;
    }
    INSIGHT in = look(&space);
    assert_int_equal(confirm(&in), history.n);
}

static size_t runs_at(double x)
{
    size_t n = 0;
    for (size_t k = 0; k < history.n; k++)
        n += xs[k][0] == x;
    return n;
}

/* Every config that may be on the front gets its seeds, and no more; those that a cheaper one beats get none. */
TEST(seeds_of_configs_with_hope)
{
    struct space space = begin(20, 8);
    struct rng r = rng_seed(10);
    add(0.99, 0.02); /* x = 0.975 costs less and scores 0.99 */
    add(0.985, 0.03);
    trials[history.n - 1].state = GP_TRIAL_FAILED; /* has no score to be the mean of */
    size_t n_first = history.n;
    for (;;) {
        struct gp_insight in = look(&space);
        size_t i = gp_seed_next(&space, &in, &history, 3);
        if (i < history.n)
            assert_true(trials[i].state == GP_TRIAL_DONE && in.point[i] == i && runs_at(xs[i][0]) < 3);
        bool is_last = i == history.n;
        for (size_t k = 0; is_last && k < history.n; k++)
            assert_true(!(in.beliefs[k].on_front || k == in.recommended) || runs_at(xs[k][0]) == 3);
        gp_insight_free(&in);
        if (is_last)
            break;
        assert_true(history.n < N_MAX);
        double x = xs[i][0];
        add(x, fmin(fmax(truth(x) + scatter(x) * noise(&r), 0.0), 1.0));
    }
    print_message("# %zu runs of %zu configs\n", history.n, n_first);
    assert_int_equal(runs_at(0.99), 1);
    assert_int_equal(runs_at(0.985), 1);
    assert_true(history.n > n_first + 10);
}

/* Before there is a model, every config has hope. Runs under way and runs that failed are made; dropped ones are
 * not. */
TEST(seeds_without_a_model)
{
    struct space space = begin(1, 1);
    static const enum gp_trial_state states[] = {GP_TRIAL_PENDING, GP_TRIAL_FAILED, GP_TRIAL_DONE, GP_TRIAL_STOPPED};
    for (size_t k = 0; k < COUNT(states); k++) {
        history.n = 1;
        add(xs[0][0], 0.1);
        trials[1].state = GP_TRIAL_DROPPED;
        INSIGHT in = look(&space);
        assert_true(in.beliefs == NULL && in.point == NULL);
        assert_int_equal(gp_seed_next(&space, &in, &history, 2), 0);
        assert_int_equal(gp_seed_next(&space, &in, &history, 1), history.n);
        add(xs[0][0], 0.3);
        trials[2].state = states[k];
        assert_int_equal(gp_seed_next(&space, &in, &history, 2), history.n);
        assert_int_equal(gp_seed_next(&space, &in, &history, 3), 0);
        add(0.7, 0.5);
        trials[3].state = GP_TRIAL_PENDING; /* its first run is under way: nothing is known of it */
        assert_int_equal(gp_seed_next(&space, &in, &history, 2), history.n);
        trials[3].state = GP_TRIAL_DONE;
        assert_int_equal(gp_seed_next(&space, &in, &history, 2), 3);
    }
}

TEST_PROGRAM("gp.advice")
