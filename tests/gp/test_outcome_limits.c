/* test_outcome_limits.c - a third objective and limits of outcomes: front, hypervolume, beliefs, picks and proposals.
 * Slow definitions and Monte Carlo are the oracles. */
#include "tests/gp/gp_test.h"

#define N_MAX 40

static bool dominates(const struct gp_trial *a, const struct gp_trial *b)
{
    bool no_worse = a->cost <= b->cost && a->score >= b->score && a->third <= b->third;
    return no_worse && (a->cost < b->cost || a->score > b->score || a->third < b->third);
}

static bool equal(const struct gp_trial *a, const struct gp_trial *b)
{
    return a->cost == b->cost && a->score == b->score && a->third == b->third;
}

static size_t draw_trials(struct rng *r, struct gp_trial *ret)
{
    size_t n = rng_below(r, N_MAX + 1);
    for (size_t i = 0; i < n; i++) {
        bool coarse = rng_below(r, 2) == 0; /* equal coordinates come up */
        ret[i] = (struct gp_trial){.state = rng_below(r, 6) == 0 ? GP_TRIAL_INFEASIBLE : GP_TRIAL_DONE,
                                   .score = coarse ? (double)rng_below(r, 4) : 4.0 * rng_f64(r),
                                   .cost = exp(coarse ? (double)rng_below(r, 4) : 4.0 * rng_f64(r)),
                                   .third = coarse ? (double)rng_below(r, 4) : 4.0 * rng_f64(r)};
    }
    return n;
}

TEST(front_of_three)
{
    struct rng r = rng_seed(11);
    for (int round = 0; round < 300; round++) {
        struct gp_trial trials[N_MAX];
        bool front[N_MAX], noisy[N_MAX];
        size_t n = draw_trials(&r, trials);
        struct gp_history h = {.n = n, .trials = trials, .has_third = true};
        pareto_front(&h, NULL, front);
        pareto_front(&h, &(struct pareto_noise){0}, noisy);
        for (size_t i = 0; i < n; i++) {
            bool expected = trials[i].state == GP_TRIAL_DONE;
            for (size_t j = 0; j < n; j++)
                if (trials[j].state == GP_TRIAL_DONE &&
                    (dominates(&trials[j], &trials[i]) || (j < i && equal(&trials[j], &trials[i]))))
                    expected = false;
            assert_int_equal(front[i], expected);
            assert_int_equal(noisy[i], expected);
        }
    }
}

/* Share of a box of uniform points that a trial dominates. */
TEST(volume_by_monte_carlo)
{
    struct rng r = rng_seed(12);
    const int draws = 40000;
    const struct pareto_ref ref = {.cost = exp(3.5), .score = 0.5, .third = 3.2};
    for (int round = 0; round < 20; round++) {
        struct gp_trial trials[N_MAX];
        size_t n = draw_trials(&r, trials);
        struct gp_history h = {.n = n, .trials = trials, .has_third = true};
        int hits = 0;
        for (int k = 0; k < draws; k++) {
            double cost = 3.5 * rng_f64(&r), score = 0.5 + 3.5 * rng_f64(&r), third = 3.2 * rng_f64(&r);
            bool hit = false;
            for (size_t i = 0; i < n && !hit; i++)
                hit = trials[i].state == GP_TRIAL_DONE && log(trials[i].cost) <= cost && trials[i].score >= score &&
                      trials[i].third <= third;
            hits += hit;
        }
        double share = (double)hits / draws, box = 3.5 * 3.5 * 3.2;
        assert_near(pareto_hypervolume(&h, &ref), box * share, box * (5.0 * sqrt(share * (1 - share) / draws) + 1e-9));
    }
}

/* Exact by inclusion and exclusion of the boxes of up to 6 trials; and the curve is that of each beginning. */
TEST(volume_is_exact)
{
    struct rng r = rng_seed(13);
    const struct pareto_ref ref = {.cost = exp(3.5), .score = 0.5, .third = 3.2};
    for (int round = 0; round < 200; round++) {
        struct gp_trial trials[N_MAX];
        size_t n = draw_trials(&r, trials);
        n = n < 6 ? n : 6;
        struct gp_history h = {.n = n, .trials = trials, .has_third = true};
        double sum = 0.0, curve[7];
        size_t counts[7];
        for (unsigned set = 1; set < 1u << n; set++) {
            double c = -INFINITY, s = INFINITY, t = -INFINITY, sign = -1.0;
            for (size_t i = 0; i < n; i++)
                if (set >> i & 1) {
                    bool counts_in = trials[i].state == GP_TRIAL_DONE;
                    c = fmax(c, counts_in ? log(trials[i].cost) : INFINITY);
                    s = fmin(s, trials[i].score);
                    t = fmax(t, trials[i].third);
                    sign = -sign;
                }
            sum += sign * fmax(0.0, 3.5 - c) * fmax(0.0, s - 0.5) * fmax(0.0, 3.2 - t);
        }
        assert_near(pareto_hypervolume(&h, &ref), sum, 1e-9);
        for (size_t k = 0; k <= n; k++)
            counts[k] = k;
        pareto_hypervolume_curve(&h, &ref, counts, n + 1, curve);
        for (size_t k = 0; k <= n; k++) {
            struct gp_history beginning = {.n = k, .trials = trials, .has_third = true};
            assert_near(curve[k], pareto_hypervolume(&beginning, &ref), 1e-12);
        }
    }
}

TEST(reference_of_three)
{
    const struct gp_trial trials[] = {{.state = GP_TRIAL_DONE, .score = 1, .cost = 1, .third = 2},
                                      {.state = GP_TRIAL_INFEASIBLE, .score = 2, .cost = exp(10), .third = 12},
                                      {.state = GP_TRIAL_FAILED, .score = NAN, .cost = NAN, .third = 99}};
    struct pareto_ref ref;
    pareto_reference(&(struct gp_history){.n = 3, .trials = trials, .has_third = true}, &ref);
    assert_near(log(ref.cost), 11.0, 1e-9); /* what breaks a limit says how bad things can be, too */
    assert_near(ref.score, 0.9, 1e-9);
    assert_near(ref.third, 13.0, 1e-9);
    pareto_reference(&(struct gp_history){.n = 3, .trials = trials}, &ref);
    assert_near(ref.third, 0.0, 0.0);
}

TEST(feasible)
{
    const struct gp_limit limits[] = {{-INFINITY, 5.0}, {1.0, 2.0}};
    const struct gp_history h = {.n_limits = 2, .limits = limits};
    assert_true(gp_is_feasible(&h, (double[]){5.0, 1.0}));
    assert_true(gp_is_feasible(&h, (double[]){-1e9, 2.0}));
    assert_false(gp_is_feasible(&h, (double[]){5.1, 1.5}));
    assert_false(gp_is_feasible(&h, (double[]){0.0, 0.9}));
    assert_false(gp_is_feasible(&h, (double[]){NAN, 1.5})); /* unknown is not kept */
    assert_true(gp_is_feasible(&(struct gp_history){0}, NULL));
}

/* ---- a study: score x + y, cost exp(3 x), memory 100 (1 + 3 y); the best scores need the most memory ---- */

#define STUDY 24
struct study {
    struct space space;
    double x[STUDY + 8][2];
    struct gp_trial trials[STUDY + 8];
    struct gp_limit limit;
    struct gp_history history;
};

static double memory_at(const double *x)
{
    return 100.0 * (1.0 + 3.0 * x[1]);
}

static void put(struct study *s, size_t i, const double *x)
{
    memcpy(s->x[i], x, sizeof s->x[i]);
    s->trials[i] = (struct gp_trial){.x = s->x[i],
                                     .state = GP_TRIAL_DONE,
                                     .score = x[0] + x[1],
                                     .cost = exp(3.0 * x[0]),
                                     .outcomes = {memory_at(x)},
                                     .third = memory_at(x)};
    if (!gp_is_feasible(&s->history, s->trials[i].outcomes))
        s->trials[i].state = GP_TRIAL_INFEASIBLE;
}

static void study_init(struct study *s, double memory_max)
{
    struct rng r = rng_seed(21);
    *s = (struct study){.space = unit_space(2), .limit = {-INFINITY, memory_max}};
    s->history = (struct gp_history){.n = STUDY, .trials = s->trials, .n_limits = 1, .limits = &s->limit};
    for (size_t i = 0; i < STUDY; i++)
        put(s, i, (double[]){rng_f64(&r), rng_f64(&r)});
}

TEST(advice_keeps_limits)
{
    struct study s;
    INSIGHT in;
    size_t n_front = 0;
    study_init(&s, 250.0);
    gp_insight_init(&in, &s.space, &s.history, 1);
    assert_non_null(in.beliefs);
    for (size_t i = 0; i < STUDY; i++) {
        bool kept = memory_at(s.x[i]) <= 250.0;
        assert_int_equal(in.beliefs[i].breaks_limit, !kept);
        assert_false(in.beliefs[i].on_front && !kept);
        assert_true(kept ? in.beliefs[i].feasible > 0.5 : in.beliefs[i].feasible < 0.5);
        n_front += in.beliefs[i].on_front;
    }
    assert_true(n_front > 0);
    for (int rule = GP_BEST; rule <= GP_SCORE_MIN; rule++) {
        size_t i = gp_pick(&in, &s.history, (enum gp_rule)rule, rule == GP_SCORE_MIN ? 0.8 : 5.0).i;
        assert_true(i == STUDY || memory_at(s.x[i]) <= 250.0);
    }
    assert_true(in.recommended < STUDY);
}

/* Two runs of one point on both sides of the limit: their mean decides. */
TEST(runs_of_a_point)
{
    for (int over = 0; over < 2; over++) {
        struct study s;
        INSIGHT in;
        const double best[] = {0.99, 0.5}; /* 250 */
        study_init(&s, 250.0);
        for (int run = 0; run < 2; run++) {
            put(&s, STUDY + (size_t)run, best);
            s.trials[STUDY + run].outcomes[0] = run == 0 ? 240.0 : over ? 270.0 : 255.0;
            s.trials[STUDY + run].state = run == 0 ? GP_TRIAL_DONE : GP_TRIAL_INFEASIBLE;
        }
        s.history.n = STUDY + 2;
        gp_beliefs_init(&in, &s.space, &s.history);
        assert_int_equal(in.beliefs[STUDY].breaks_limit, over); /* means 255 and 247.5 */
        assert_int_equal(in.beliefs[STUDY].on_front, !over);
    }
}

TEST(nothing_keeps_the_limit)
{
    struct study s;
    INSIGHT in;
    study_init(&s, 50.0);
    gp_insight_init(&in, &s.space, &s.history, 1);
    assert_non_null(in.beliefs);
    assert_int_equal(in.recommended, STUDY);
    for (int rule = GP_BEST; rule <= GP_SCORE_MIN; rule++)
        assert_int_equal(gp_pick(&in, &s.history, (enum gp_rule)rule, 1.0).i, STUDY);
    for (int turn = GP_CONFIRM_BEST; turn <= GP_CONFIRM_LAST; turn++)
        assert_int_equal(gp_confirm_next(&in, &s.history, (enum gp_confirm_turn)turn), STUDY);
}

static void next(struct suggester *g, const struct study *s, int64_t number, struct suggestion *ret)
{
    OK(suggester_next(g, &s->history, number, ret, err));
    assert_string_equal(ret->origin, "ehvi");
}

TEST(proposals_keep_limits)
{
    struct suggest_settings settings = {.method = SUGGEST_PARETO, .seed = 3, .n_init = 10};
    for (int kind = 0; kind < 3;
         kind++) { /* 0: no limit, 1: one that some points keep, 2: one that none has kept yet */
        struct study s;
        struct suggester *g = NULL;
        size_t n_kept = 0, n = 8;
        double max = kind == 2 ? 103.0 : 250.0;
        study_init(&s, kind == 0 ? INFINITY : max);
        OK(suggester_create(&g, &s.space, &settings, err));
        for (size_t k = 0; k < n; k++) {
            struct suggestion p;
            next(g, &s, (int64_t)(STUDY + k), &p);
            assert_true(p.feasible >= 0.0 && p.feasible <= 1.0);
            n_kept += memory_at(p.x) <= max;
            put(&s, STUDY + k, p.x);
            s.history.n = STUDY + k + 1;
        }
        if (kind == 0)
            assert_true(n_kept <= n / 2); /* the limit is what holds them back: without it they go past it */
        else
            assert_true(n_kept >= n - 2);
        suggester_destroy(g);
    }
}

/* Memory as a third objective: proposals also go where it is low, which cost and score alone never ask for. */
TEST(proposals_of_three)
{
    struct suggest_settings settings = {.method = SUGGEST_PARETO, .seed = 5, .n_init = 10};
    double least[2];
    for (int has_third = 0; has_third < 2; has_third++) {
        struct study s;
        SUGGESTER *g = NULL;
        study_init(&s, INFINITY);
        s.history.n_limits = 0;
        s.history.has_third = has_third;
        least[has_third] = INFINITY;
        OK(suggester_create(&g, &s.space, &settings, err));
        for (size_t k = 0; k < 8; k++) {
            struct suggestion p;
            next(g, &s, (int64_t)(STUDY + k), &p);
            least[has_third] = fmin(least[has_third], memory_at(p.x));
            put(&s, STUDY + k, p.x);
            s.history.n = STUDY + k + 1;
        }
    }
    assert_true(least[0] > 350.0);
    assert_true(least[1] < 250.0);
}

static void put_hill(struct study *s, size_t i, const double *x)
{
    memcpy(s->x[i], x, sizeof s->x[i]);
    s->trials[i] = (struct gp_trial){.x = s->x[i],
                                     .state = GP_TRIAL_DONE,
                                     .score = -(x[0] - 0.3) * (x[0] - 0.3),
                                     .cost = exp(3.0 * x[1]),
                                     .third = log(0.01 + x[0])};
}

/* Three of the first ten lie at the best score already. Where the third objective is low, the score is below the middle
 * of the ten; that is sought too. */
TEST(third_is_worth_some_score)
{
    static const double first[10][2] = {{0.5, 0.5},  {0.13, 0.95}, {0.37, 0.2},  {0.77, 0.55}, {0.88, 0.05},
                                        {0.48, 0.6}, {0.02, 0.4},  {0.28, 0.01}, {0.29, 0.3},  {0.3, 0.02}};
    struct suggest_settings settings = {.method = SUGGEST_PARETO, .seed = 5, .n_init = 7};
    struct study s = {.space = unit_space(2)};
    SUGGESTER *g = NULL;
    double least = INFINITY;

    s.history = (struct gp_history){.trials = s.trials, .has_third = true};
    for (size_t i = 0; i < 10; i++)
        put_hill(&s, s.history.n++, first[i]);
    OK(suggester_create(&g, &s.space, &settings, err));
    for (size_t k = 0; k < 12; k++) {
        struct suggestion p;
        next(g, &s, (int64_t)s.history.n, &p);
        least = fmin(least, p.x[0]);
        put_hill(&s, s.history.n++, p.x);
    }
    assert_true(least < 0.1);
}

TEST(third_must_be_known)
{
    struct study s;
    SUGGESTER *g = NULL;
    struct suggestion p;
    study_init(&s, INFINITY);
    s.history.has_third = true;
    s.trials[3].third = NAN;
    OK(suggester_create(&g, &s.space, &(struct suggest_settings){.method = SUGGEST_PARETO}, err));
    FAILS(suggester_next(g, &s.history, STUDY, &p, err), ST_NUMERIC, "trial 3: its third objective is nan");
}

TEST_PROGRAM("gp.outcome_limits")
