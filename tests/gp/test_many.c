/* test_many.c - proposals while many trials are under way: batches by one set of models, and what the trials that have
 * not ended yet have to say. */
#include "tests/gp/gp_test.h"

#include "gp/pareto_priv.h"

#define N_MAX 200
#define BATCH 40
#define STUDIES 10

static struct gp_trial trials[N_MAX];
static double xs[N_MAX][SPACE_MAX_DIM];

/* Three parameters, of which the last is the length of a run: its cost, over three powers of ten. */
static struct space steps_space(void)
{
    struct space space = unit_space(2);
    space.dim = 3;
    space.params[2] = param_of("train.steps", SPACE_LOG, false, 1e3, 1e6);
    return space;
}

static void ends(size_t i)
{
    const double *x = xs[i];
    double best = 1.0 - (x[0] - 0.3) * (x[0] - 0.3) - (x[1] - 0.6) * (x[1] - 0.6);
    trials[i].state = GP_TRIAL_DONE;
    trials[i].cost = 1e-3 * x[2];
    trials[i].score = best * (1.0 - exp(-x[2] / 1e5));
}

/* n trials of the design are under way. */
static struct gp_history start_design(struct suggester *s, size_t n)
{
    static struct suggestion made[SUGGEST_BATCH_MAX];
    size_t n_made;
    OK(suggester_batch(s, &(struct gp_history){0}, 0, n, made, &n_made, err));
    assert_int_equal(n_made, n);
    for (size_t i = 0; i < n; i++) {
        memcpy(xs[i], made[i].x, sizeof xs[i]);
        trials[i] = (struct gp_trial){.x = xs[i], .state = GP_TRIAL_PENDING};
    }
    return (struct gp_history){.n = n, .trials = trials};
}

static void ask(struct suggester *s, const struct gp_history *history, size_t n, struct suggestion *ret)
{
    size_t n_made;
    OK(suggester_batch(s, history, (int64_t)history->n, n, ret, &n_made, err));
    assert_int_equal(n_made, n);
}

/* Of 60 trials the cheapest 24 have ended, as they do first. What was longer than all of these is still searched: by
 * none of the proposals where the costs of the others do not count. */
TEST(expensive_points_are_sought_before_any_has_ended)
{
    struct space space = steps_space();
    size_t n_longer = 0;
    for (uint64_t seed = 1; seed <= STUDIES; seed++) {
        SUGGESTER *s = suggester_of(&space, (struct suggest_settings){.seed = seed});
        struct gp_history history = start_design(s, 60);
        static struct suggestion made[BATCH];
        double longest = 0.0;
        for (size_t k = 0; k < 24; k++) {
            size_t least = history.n;
            for (size_t i = 0; i < history.n; i++)
                if (trials[i].state == GP_TRIAL_PENDING && (least == history.n || xs[i][2] < xs[least][2]))
                    least = i;
            ends(least);
            longest = xs[least][2];
        }
        ask(s, &history, BATCH, made);
        for (size_t k = 0; k < BATCH; k++)
            n_longer += made[k].x[2] > 3.0 * longest;
    }
    print_message("# %zu of %d last three times as long as the longest that has ended\n", n_longer, STUDIES * BATCH);
    assert_true(n_longer >= STUDIES * BATCH / 20);
}

/* Points of one batch are new, apart, and those of a smaller batch; the same question gets the same bytes. */
TEST(a_batch_spreads_and_can_be_made_again)
{
    struct space space = steps_space();
    SUGGESTER *s = suggester_of(&space, (struct suggest_settings){.seed = 4});
    struct gp_history history = start_design(s, 40);
    static struct suggestion made[BATCH], fewer[BATCH], again[BATCH];
    for (size_t i = 0; i < 30; i++)
        ends(i);
    ask(s, &history, BATCH, made);
    ask(s, &history, 20, fewer); /* many, with the pending ones */
    ask(s, &history, BATCH, again);
    assert_memory_equal(made, again, sizeof made);
    assert_memory_equal(made, fewer, 20 * sizeof *made);
    for (size_t a = 0; a < BATCH; a++) {
        double ua[SPACE_MAX_DIM], ub[SPACE_MAX_DIM];
        assert_string_equal(made[a].origin, "ehvi");
        space_to_unit(&space, made[a].x, ua);
        for (size_t b = 0; b < a + history.n; b++) {
            double d = 0.0;
            space_to_unit(&space, b < a ? made[b].x : xs[b - a], ub);
            for (size_t i = 0; i < space.dim; i++)
                d = fmax(d, fabs(ua[i] - ub[i]));
            assert_true(d > 1e-3);
        }
    }
}

/* The acquisition at the first choice of a batch for trial `number`. */
static double first_value(struct suggester *s, const struct gp_history *history, int64_t number, size_t n)
{
    static struct pareto_search search;
    static struct candidate made[BATCH];
    struct seen seen;
    memset(&search, 0, sizeof search);
    seen_create(&seen, &s->space, history);
    OK(pareto_search_init(&search, s, history, number, true, err));
    assert_int_equal(pareto_many(&search, s, &seen, rng_split(s->root, (uint64_t)number), n, made), n);
    pareto_search_free(&search);
    seen_free(&seen);
    return made[0].value;
}

/* A large batch has more candidates: those of a small one and others, of which some are better. */
TEST(a_large_batch_chooses_from_more)
{
    struct space space = steps_space();
    SUGGESTER *s = suggester_of(&space, (struct suggest_settings){.seed = 7});
    struct gp_history history = start_design(s, 60);
    size_t n_better = 0;
    for (size_t i = 0; i < 50; i++)
        ends(i);
    for (int64_t number = 60; number < 70; number++) {
        double few = first_value(s, &history, number, SUGGEST_FEW);
        double many = first_value(s, &history, number, SUGGEST_FEW + 1);
        assert_true(many >= few);
        assert_true(first_value(s, &history, number, BATCH) == many);
        n_better += many > few;
    }
    assert_true(n_better >= 2);
}

/* 64 of 70 points: those that are left are given, and no more. */
TEST(a_finite_space_is_used_up)
{
    struct space space = {.dim = 2};
    space.params[0] = param_of("a", SPACE_LINEAR, true, 0, 6);
    space.params[1] = param_of("b", SPACE_LINEAR, true, 1, 10);
    SUGGESTER *s = suggester_of(&space, (struct suggest_settings){.seed = 5});
    struct gp_history history = start_design(s, 40);
    static struct suggestion made[SUGGEST_BATCH_MAX];
    struct error why = {0};
    size_t n_made;
    for (size_t i = 0; i < 40; i++) {
        trials[i].state = GP_TRIAL_DONE;
        trials[i].cost = xs[i][1];
        trials[i].score = xs[i][0] * xs[i][1];
    }
    OK(suggester_batch(s, &history, 40, SUGGEST_BATCH_MAX, made, &n_made, err));
    assert_int_equal(n_made, 30);
    for (size_t k = 0; k < n_made; k++) {
        memcpy(xs[40 + k], made[k].x, sizeof xs[0]);
        trials[40 + k] = (struct gp_trial){.x = xs[40 + k], .state = GP_TRIAL_PENDING};
        for (size_t i = 0; i < 40 + k; i++)
            assert_true(memcmp(xs[i], xs[40 + k], 2 * sizeof **xs) != 0);
    }
    history.n = 70;
    assert_int_equal(suggester_batch(s, &history, 70, 8, made, &n_made, &why), ST_LIMIT);
}

/* Each of a few is asked about alone: a batch is what one question after another gives. */
TEST(a_few_are_as_they_would_be_alone)
{
    struct space space = steps_space();
    SUGGESTER *s = suggester_of(&space, (struct suggest_settings){.seed = 6});
    struct gp_history history = start_design(s, 20);
    struct suggestion made[3];
    for (size_t i = 0; i < 20; i++)
        ends(i);
    ask(s, &history, 3, made);
    for (size_t k = 0; k < 3; k++) {
        struct suggestion one = suggester_ask(s, trials, history.n, history.n);
        assert_memory_equal(&made[k], &one, sizeof one);
        memcpy(xs[history.n], one.x, sizeof one.x);
        trials[history.n] = (struct gp_trial){.x = xs[history.n], .state = GP_TRIAL_PENDING};
        history.n++;
    }
}

/* Who waits is not kept waiting by the size of a batch; up to 16 at a time each proposal knows all before it. */
TEST(a_batch_is_as_large_as_what_waits)
{
    static const struct {
        size_t n_parallel, n_wanted, n;
    } cases[] = {{0, 0, 1},  {1, 1, 1},  {16, 16, 1},  {17, 0, 2},    {64, 0, 4},
                 {64, 3, 4}, {64, 9, 9}, {64, 64, 64}, {500, 20, 32}, {500, 400, SUGGEST_BATCH_MAX}};
    for (size_t i = 0; i < COUNT(cases); i++)
        assert_int_equal(suggester_batch_size(cases[i].n_parallel, cases[i].n_wanted), cases[i].n);
}

TEST_PROGRAM("many")
