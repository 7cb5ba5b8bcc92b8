/* test_front.c - front, hypervolume, reference and knee against slow definitions. */
#include "tests/gp/gp_test.h"

#define N_MAX 40

struct data {
    struct gp_trial trials[N_MAX];
    struct gp_history history;
};

static void make_data(struct data *d, struct rng *r, size_t n, double shift, double sign)
{
    d->history = (struct gp_history){.n = n, .trials = d->trials};
    for (size_t i = 0; i < n; i++) {
        struct gp_trial *t = &d->trials[i];
        uint32_t kind = rng_below(r, 10);
        t->x = NULL;
        t->state = kind == 0   ? GP_TRIAL_FAILED
                   : kind == 1 ? GP_TRIAL_PENDING
                   : kind == 2 ? GP_TRIAL_STOPPED
                               : GP_TRIAL_DONE;
        t->cost = exp2((double)rng_below(r, 9) - 4.0); /* few values: many ties */
        t->score = shift + sign * 0.5 * (double)rng_below(r, 8);
        if (t->state == GP_TRIAL_FAILED || t->state == GP_TRIAL_PENDING)
            t->score = t->cost = NAN;
    }
}

static bool dominates(const struct gp_trial *a, size_t ia, const struct gp_trial *b, size_t ib)
{
    if (a->cost > b->cost || a->score < b->score)
        return false;
    return a->cost < b->cost || a->score > b->score || ia < ib;
}

TEST(front_is_the_undominated_set)
{
    struct rng r = rng_seed(2);
    for (int round = 0; round < 600; round++) {
        struct data d;
        bool on_front[N_MAX + 1], added[N_MAX + 1] = {false};
        make_data(&d, &r, rng_below(&r, N_MAX + 1),
                  round % 3 == 0   ? -100.0
                  : round % 3 == 1 ? 0.0
                                   : 1e6,
                  round % 2 ? 1.0 : -1.0);
        pareto_front(&d.history, NULL, on_front);
        for (size_t i = 0; i < d.history.n; i++) {
            bool want = d.trials[i].state == GP_TRIAL_DONE;
            for (size_t j = 0; j < d.history.n && want; j++)
                want = d.trials[j].state != GP_TRIAL_DONE || j == i || !dominates(&d.trials[j], j, &d.trials[i], i);
            assert_int_equal(on_front[i], want);
        }
        for (size_t left = d.history.n, i = d.history.n / 2; left-- > 0; i = (i + 1) % d.history.n) /* in any order */
            if (d.trials[i].state == GP_TRIAL_DONE)
                pareto_front_add(&d.history, i, added);
        for (size_t i = 0; i < d.history.n; i++)
            assert_int_equal(added[i], on_front[i]);
    }
}

/* Area by cells: the grid of all coordinates, each cell counted when some trial covers it. */
static double slow_hypervolume(const struct data *d, const struct pareto_ref *ref)
{
    double cs[N_MAX + 1], ss[N_MAX + 1], area = 0.0;
    size_t n = 0;
    for (size_t i = 0; i < d->history.n; i++)
        if (d->trials[i].state == GP_TRIAL_DONE && d->trials[i].cost < ref->cost && d->trials[i].score > ref->score) {
            cs[n] = log(d->trials[i].cost);
            ss[n++] = d->trials[i].score;
        }
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++) {
            double c_hi = log(ref->cost), s_lo = ref->score; /* cell: [cs[i], next cost] x [next score below, ss[j]] */
            bool first = true, covered = false;
            for (size_t k = 0; k < n; k++) {
                if (cs[k] > cs[i])
                    c_hi = fmin(c_hi, cs[k]);
                if (ss[k] < ss[j])
                    s_lo = fmax(s_lo, ss[k]);
                if ((k < i && cs[k] == cs[i]) || (k < j && ss[k] == ss[j]))
                    first = false; /* this row or column was counted */
                covered = covered || (cs[k] <= cs[i] && ss[k] >= ss[j]);
            }
            if (first && covered)
                area += (c_hi - cs[i]) * (ss[j] - s_lo);
        }
    return area;
}

TEST(hypervolume)
{
    struct rng r = rng_seed(3);
    for (int round = 0; round < 600; round++) {
        struct data d;
        double shift = round % 3 == 0 ? -100.0 : round % 3 == 1 ? 0.0 : 1e3;
        make_data(&d, &r, rng_below(&r, N_MAX + 1), shift, round % 2 ? 1.0 : -1.0);
        struct pareto_ref ref = {.cost = exp2((double)rng_below(&r, 9) - 3.0),
                                 .score = shift + 4.0 * rng_f64(&r) - (round % 2 ? 0.5 : 4.0)};
        assert_near(pareto_hypervolume(&d.history, &ref), slow_hypervolume(&d, &ref), 1e-9);
    }
    struct gp_trial one = {.state = GP_TRIAL_DONE, .cost = 1.0, .score = -3.0};
    struct gp_history history = {.n = 1, .trials = &one};
    struct pareto_ref ref = {.cost = exp(2.0), .score = -4.0};
    assert_near(pareto_hypervolume(&history, &ref), 2.0, 1e-12);
    history.n = 0;
    assert_true(pareto_hypervolume(&history, &ref) == 0.0);
}

/* To the bit, for pages and reports show both. */
TEST(hypervolume_curve_is_that_of_each_beginning)
{
    struct rng r = rng_seed(5);
    for (int round = 0; round < 300; round++) {
        struct data d;
        size_t n = 1 + rng_below(&r, N_MAX), counts[N_MAX + 1], n_counts = 0;
        double volumes[N_MAX + 1];
        make_data(&d, &r, n, round % 2 ? -100.0 : 0.0, round % 3 ? 1.0 : -1.0);
        struct pareto_ref ref = {.cost = exp2((double)rng_below(&r, 9) - 3.0),
                                 .score = (round % 2 ? -100.0 : 0.0) - 1.0};
        for (size_t i = 0; i <= n; i += 1 + rng_below(&r, 4))
            counts[n_counts++] = i;
        pareto_hypervolume_curve(&d.history, &ref, counts, n_counts, volumes);
        for (size_t k = 0; k < n_counts; k++) {
            struct gp_history so_far = {.n = counts[k], .trials = d.history.trials};
            assert_true(volumes[k] == pareto_hypervolume(&so_far, &ref));
        }
    }
}

TEST(hypervolume_ignores_a_shift)
{
    struct rng r = rng_seed(4);
    struct data d;
    make_data(&d, &r, N_MAX, 0.0, 1.0);
    struct pareto_ref ref;
    pareto_reference(&d.history, &ref);
    double before = pareto_hypervolume(&d.history, &ref);
    assert_true(before > 0.0);
    for (size_t i = 0; i < N_MAX; i++) {
        d.trials[i].score -= 1000.0;
        d.trials[i].cost *= 60.0;
    }
    pareto_reference(&d.history, &ref);
    assert_near(pareto_hypervolume(&d.history, &ref), before, 1e-9);
    bool front[N_MAX], shifted[N_MAX];
    pareto_front(&d.history, NULL, front);
    for (int signs = 0; signs < 4; signs++) { /* score and ln cost above and below 0 */
        struct data moved = d;
        moved.history.trials = moved.trials;
        for (size_t i = 0; i < N_MAX; i++) {
            moved.trials[i].score += signs & 1 ? 3000.0 : -3000.0;
            moved.trials[i].cost *= signs & 2 ? 1e6 : 1e-6;
        }
        pareto_reference(&moved.history, &ref);
        assert_near(pareto_hypervolume(&moved.history, &ref), before, 1e-8);
        pareto_front(&moved.history, NULL, shifted);
        assert_memory_equal(front, shifted, sizeof front);
    }
}

TEST(reference)
{
    struct gp_trial trials[14];
    struct gp_history history = {.n = 14, .trials = trials};
    for (int i = 0; i < 14; i++)
        trials[i] = (struct gp_trial){.state = GP_TRIAL_DONE, .cost = exp(i), .score = -i};
    trials[0] = (struct gp_trial){.state = GP_TRIAL_FAILED, .cost = NAN, .score = NAN};
    struct pareto_ref ref;
    pareto_reference(&history, &ref); /* trials 1 .. 10: ln cost and -score 1 .. 10 */
    assert_near(log(ref.cost), 10.9, 1e-9);
    assert_near(ref.score, -10.9, 1e-9);
    trials[13].score = -1e9; /* later trials change nothing */
    struct pareto_ref again;
    pareto_reference(&history, &again);
    assert_true(again.cost == ref.cost && again.score == ref.score);
    history.n = 2; /* one finished trial still has room round it */
    pareto_reference(&history, &ref);
    assert_true(ref.cost > trials[1].cost && ref.score < trials[1].score);
    history.n = 0;
    pareto_reference(&history, &ref);
    assert_true(isfinite(ref.cost) && ref.cost > 0.0 && isfinite(ref.score));
}

/* Costs of a plateau differ by less than they are known to: one member, the highest score, and of equal scores the best
 * supported. */
TEST(level_points_are_one_member)
{
    struct gp_trial trials[N_MAX];
    double cost_sd[N_MAX];
    size_t seeds[N_MAX];
    bool front[N_MAX];
    struct gp_history history = {.n = 38, .trials = trials};
    struct pareto_noise noise = {.log_cost_sd = cost_sd, .n_seeds = seeds};
    for (int i = 0; i < 38; i++) {
        trials[i] = (struct gp_trial){.state = GP_TRIAL_DONE, .cost = 0.3 + 0.0001 * i, .score = 0.99 + 0.0001 * i};
        cost_sd[i] = 0.02;
        seeds[i] = i == 20 ? 3 : 1;
    }
    trials[36] = (struct gp_trial){.state = GP_TRIAL_DONE, .cost = 0.1, .score = 0.5}; /* apart: cheaper by far */
    trials[37] = (struct gp_trial){.state = GP_TRIAL_DONE, .cost = 3.0, .score = 0.993}; /* costs more for less */
    pareto_front(&history, &noise, front);
    for (size_t i = 0; i < 38; i++)
        assert_int_equal(front[i], i == 35 || i == 36);
    trials[37].score = 0.994; /* now a little more */
    pareto_front(&history, &noise, front);
    assert_true(front[37]);
    for (int i = 0; i < 36; i++)
        trials[i].score = 0.99;
    pareto_front(&history, &noise, front);
    for (size_t i = 0; i < 38; i++)
        assert_int_equal(front[i], i == 20 || i >= 36);
    trials[20].state = GP_TRIAL_FAILED; /* of equal support: the cheapest stands for the plateau */
    pareto_front(&history, &noise, front);
    for (size_t i = 0; i < 38; i++)
        assert_int_equal(front[i], i == 0 || i >= 36);
}

/* Each a little more expensive and better than the one before it: what is covered covers no cheaper one. */
TEST(a_row_of_points_stays_a_front)
{
    struct gp_trial trials[9];
    double cost_sd[9];
    bool front[9];
    struct gp_history history = {.n = 9, .trials = trials};
    for (int i = 0; i < 9; i++) {
        trials[i] = (struct gp_trial){.state = GP_TRIAL_DONE, .cost = exp(0.05 * i), .score = 0.1 * i};
        cost_sd[i] = 0.04; /* .057 of a difference */
    }
    pareto_front(&history, &(struct pareto_noise){.log_cost_sd = cost_sd}, front);
    for (int i = 0; i < 9; i++)
        assert_int_equal(front[i], i % 2 == 0);
}

/* Whatever the noise: nobody on the front is covered by another one on it, somebody is on it, and everybody surely
 * better than all in one respect is. */
TEST(noisy_fronts_hold_together)
{
    struct rng r = rng_seed(12);
    for (int round = 0; round < 400; round++) {
        struct data d;
        double cost_sd[N_MAX + 1];
        bool front[N_MAX + 1], none[N_MAX + 1];
        make_data(&d, &r, rng_below(&r, N_MAX + 1), 0.0, 1.0);
        size_t n_front = 0, n_done = 0;
        for (size_t i = 0; i < d.history.n; i++) {
            cost_sd[i] = 0.5 * rng_f64(&r);
        }
        pareto_front(&d.history, &(struct pareto_noise){.log_cost_sd = cost_sd}, front);
        for (size_t i = 0; i < d.history.n; i++) {
            const struct gp_trial *a = &d.trials[i];
            n_front += front[i];
            n_done += a->state == GP_TRIAL_DONE;
            assert_true(!front[i] || a->state == GP_TRIAL_DONE);
            for (size_t j = 0; front[i] && j < d.history.n; j++) {
                const struct gp_trial *b = &d.trials[j];
                bool cheaper = log(b->cost) <= log(a->cost) + hypot(cost_sd[i], cost_sd[j]);
                if (j != i && front[j] && cheaper && b->score >= a->score)
                    fail_msg("round %d: %zu and %zu are both on the front", round, i, j);
            }
        }
        assert_int_equal(n_front > 0, n_done > 0);
        for (size_t i = 0; i < d.history.n; i++)
            cost_sd[i] = 0.0;
        pareto_front(&d.history, &(struct pareto_noise){.log_cost_sd = cost_sd}, front);
        pareto_front(&d.history, NULL, none);
        assert_memory_equal(front, none, d.history.n * sizeof *none); /* no noise is no noise */
    }
}

static size_t knee_of(const struct gp_history *history)
{
    return pareto_knee(history);
}

TEST(knee)
{
    double costs[] = {1.0, 2.0, 4.0, 8.0, 3.0}, scores[] = {0.0, 0.9, 0.95, 1.0, 0.2};
    struct gp_trial trials[5];
    struct gp_history history = {.n = 5, .trials = trials};
    for (int i = 0; i < 5; i++)
        trials[i] = (struct gp_trial){.state = GP_TRIAL_DONE, .cost = costs[i], .score = scores[i]};
    assert_int_equal(knee_of(&history), 1);
    scores[1] = 0.42; /* hardly above the line, on which 1/3 lies there */
    scores[2] = 0.7;
    for (int i = 0; i < 4; i++)
        trials[i].score = scores[i];
    assert_int_equal(knee_of(&history), 5);
    history.n = 2; /* no knee between two ends */
    assert_int_equal(knee_of(&history), 2);
    history.n = 0;
    assert_int_equal(knee_of(&history), 0);
}

TEST_PROGRAM("gp.front")
