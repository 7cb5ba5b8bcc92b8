/* test_pareto.c - the model-based method as a sweep uses it: whole studies on made-up problems, and hard histories. */
#include <cblas.h>

#include "tests/gp/gp_test.h"

#define N_MAX 160

struct study {
    struct space space;
    struct suggest_settings settings;
    struct suggester *suggester;
    struct gp_trial trials[N_MAX];
    double xs[N_MAX][SPACE_MAX_DIM];
    size_t n;
};

static struct study study; /* too large for the stack of some systems; each test begins afresh */

static void begin(const struct space *space, struct suggest_settings settings)
{
    memset(&study, 0, sizeof study);
    study.space = *space;
    study.settings = settings;
    study.suggester = suggester_of(space, settings);
}

static void end(void)
{
    suggester_destroy(study.suggester);
}

static struct suggestion ask(int64_t number)
{
    struct suggestion s = suggester_ask(study.suggester, study.trials, study.n, (size_t)number);
    double y[SPACE_MAX_DIM];
    memcpy(y, s.x, sizeof y);
    space_snap(&study.space, y);
    assert_memory_equal(s.x, y, study.space.dim * sizeof *y); /* in bounds, whole, powers of two */
    for (size_t i = 0; i < study.n; i++)
        assert_true(memcmp(study.xs[i], s.x, study.space.dim * sizeof *y) != 0);
    if (s.has_prediction)
        assert_true(isfinite(s.score_mean) && s.score_sd >= 0.0 && isfinite(s.log_cost_mean) && s.log_cost_sd >= 0.0);
    return s;
}

static void add(const double *x, enum gp_trial_state state, double score, double cost)
{
    memcpy(study.xs[study.n], x, study.space.dim * sizeof *x);
    study.trials[study.n] = (struct gp_trial){.x = study.xs[study.n], .state = state, .score = score, .cost = cost};
    study.n++;
}

/* ---- problems ---- */

static struct space training_space(void)
{
    struct space space = {.dim = 6};
    space.params[0] = param_of("train.learning_rate", SPACE_LOG, false, 1e-5, 1e-1);
    space.params[1] = param_of("train.gamma", SPACE_LOGIT, false, 0.8, 0.9999);
    space.params[2] = param_of("train.entropy", SPACE_LOG, false, 1e-5, 1e-1);
    space.params[3] = param_of("train.batch", SPACE_POW2, true, 256, 16384);
    space.params[4] = param_of("train.steps", SPACE_LOG, true, 10000, 10000000);
    space.params[5] = param_of("policy.width", SPACE_POW2, true, 16, 512);
    return space;
}

static double bump(double x, double best, double width)
{
    double d = log(x / best) / width;
    return exp(-0.5 * d * d);
}

/* Saturating learning curve whose speed depends on the parameters; cost grows with steps and width. */
static void training(const double *x, double *ret_score, double *ret_cost)
{
    double eff = bump(x[0], 3e-3, 1.5) * bump(1.0 - x[1], 0.02, 1.2) * bump(x[2], 3e-3, 3.0) * bump(x[3], 2048, 1.5);
    double best = 1.0 - 0.4 * exp(-x[5] / 64.0);
    *ret_score = best * (1.0 - exp(-pow(x[4] / 4e5 * eff, 0.7)));
    *ret_cost = 1e-4 * x[4] * pow(x[5], 0.7) / pow(x[3], 0.3);
}

/* ZDT1 with its first objective as ln cost. */
static void zdt(const double *x, double *ret_score, double *ret_cost)
{
    double g = 1.0 + 9.0 * (x[1] + x[2] + x[3] + x[4]) / 4.0;
    *ret_score = -g * (1.0 - sqrt(x[0] / g));
    *ret_cost = exp(2.0 * x[0]);
}

typedef void problem(const double *x, double *ret_score, double *ret_cost);

static double play(const struct space *space, problem *fn, enum suggest_method method, uint64_t seed,
                   const struct pareto_ref *ref)
{
    begin(space, (struct suggest_settings){.method = method, .seed = seed});
    for (int k = 0; k < 40; k++) {
        struct suggestion s = ask(k);
        double score, cost;
        fn(s.x, &score, &cost);
        add(s.x, GP_TRIAL_DONE, score, cost);
    }
    struct gp_history history = {.n = study.n, .trials = study.trials};
    double volume = pareto_hypervolume(&history, ref);
    end();
    return volume;
}

static void check_wins(const struct space *space, problem *fn, const struct pareto_ref *ref, double margin)
{
    double sum[3] = {0};
    for (uint64_t seed = 1; seed <= 3; seed++)
        for (int method = SUGGEST_PARETO; method <= SUGGEST_SOBOL; method++)
            sum[method] += play(space, fn, (enum suggest_method)method, seed, ref) / 3.0;
    print_message("# hypervolume at 40: pareto %.4f, random %.4f, sobol %.4f\n", sum[0], sum[1], sum[2]);
    assert_true(sum[SUGGEST_PARETO] > margin * sum[SUGGEST_RANDOM]);
    assert_true(sum[SUGGEST_PARETO] > margin * sum[SUGGEST_SOBOL]);
}

TEST(beats_random_and_sobol)
{
    struct space space = training_space();
    check_wins(&space, training, &(struct pareto_ref){.cost = 2000.0}, 1.05);
    space = unit_space(5);
    check_wins(&space, zdt, &(struct pareto_ref){.cost = exp(2.2), .score = -11.0}, 1.1);
}

/* ---- as asked ---- */

TEST(hundred_distinct_points_in_a_mixed_space)
{
    struct space space = mixed_space();
    begin(&space, (struct suggest_settings){.seed = 2});
    for (int k = 0; k < 100; k++) { /* ask checks bounds and repeats; trial 3 fails, so the design has 11 */
        struct suggestion s = ask(k);
        assert_string_equal(s.origin, k < 11 ? "sobol" : "ehvi");
        double score = -fabs(log(s.x[0] / 1e-3)) - (s.x[5] == 1.0 ? 0.0 : 1.0) - s.x[6] * s.x[6];
        add(s.x,
            k % 17 == 3   ? GP_TRIAL_FAILED
            : k % 13 == 5 ? GP_TRIAL_STOPPED
                          : GP_TRIAL_DONE,
            score, s.x[3] * s.x[4]);
    }
    /* it has found the good choice and the good learning rate */
    size_t good = 0;
    for (size_t k = 60; k < 100; k++)
        good += study.xs[k][5] == 1.0 && study.xs[k][0] > 1e-4 && study.xs[k][0] < 1e-2;
    if (good <= 16)
        fail_msg("%zu of 40 late trials are good", good);
    end();
}

static void run_design(size_t n, problem *fn)
{
    for (size_t k = 0; k < n; k++) {
        struct suggestion s = ask((int64_t)k);
        double score, cost;
        fn(s.x, &score, &cost);
        add(s.x, GP_TRIAL_DONE, score, cost);
    }
}

TEST(same_bytes_whatever_was_asked_before)
{
    struct space space = training_space();
    begin(&space, (struct suggest_settings){.seed = 3});
    run_design(16, training);
    struct suggestion first = ask(16), other = ask(17), again, fresh;
    assert_true(memcmp(first.x, other.x, sizeof first.x) != 0); /* the number names another stream */
    study.n = 12;
    ask(900);
    study.n = 16;
    again = ask(16);
    assert_memory_equal(&first, &again, sizeof first);
    struct suggester *s = suggester_of(&space, study.settings);
    fresh = suggester_ask(s, study.trials, study.n, 16);
    assert_memory_equal(&first, &fresh, sizeof first);
    suggester_destroy(s);
    study.settings.seed = 4;
    size_t n_other = 0; /* both may climb to one and the same best point, but not always */
    s = suggester_of(&space, study.settings);
    for (int64_t number = 16; number < 24; number++) {
        other = ask(number);
        fresh = suggester_ask(s, study.trials, study.n, (size_t)number);
        n_other += memcmp(other.x, fresh.x, sizeof other.x) != 0;
    }
    print_message("# %zu of 8 differ\n", n_other);
    assert_true(n_other > 0);
    suggester_destroy(s);
    end();
}

TEST(pending_points_spread_the_workers)
{
    struct space space = training_space();
    begin(&space, (struct suggest_settings){.seed = 5});
    run_design(20, training);
    for (int k = 0; k < 8; k++) { /* eight workers ask before any answers */
        struct suggestion s = ask(20 + k);
        assert_string_equal(s.origin, "ehvi");
        add(s.x, GP_TRIAL_PENDING, NAN, NAN);
    }
    double closest = INFINITY;
    for (size_t a = 20; a < 28; a++)
        for (size_t b = 20; b < a; b++) {
            double ua[SPACE_MAX_DIM], ub[SPACE_MAX_DIM], d = 0.0;
            space_to_unit(&space, study.xs[a], ua);
            space_to_unit(&space, study.xs[b], ub);
            for (size_t i = 0; i < space.dim; i++)
                d = fmax(d, fabs(ua[i] - ub[i]));
            closest = fmin(closest, d);
        }
    assert_true(closest > 0.01);
    end();
}

TEST(design_phase)
{
    struct space space = training_space();
    begin(&space, (struct suggest_settings){.seed = 6, .n_init = 4});
    for (int k = 0; k < 30; k++) { /* all fail: the design continues */
        struct suggestion s = ask(k);
        assert_string_equal(s.origin, "sobol");
        add(s.x, GP_TRIAL_FAILED, NAN, NAN);
    }
    for (int k = 0; k < 4; k++) {
        struct suggestion s = ask(30 + k);
        assert_string_equal(s.origin, "sobol");
        double score, cost;
        training(s.x, &score, &cost);
        add(s.x, GP_TRIAL_DONE, score, cost);
    }
    assert_string_equal(ask(35).origin, "ehvi"); /* an odd number: also where scores are not explained yet */
    end();
}

/* Two parameters, and a ridge along one edge on which proposals stayed when four points were the whole design: the best
 * scores lie in the far corner, the cheapest points with good ones along another edge. */
TEST(small_space_is_seen_whole)
{
    struct space space = unit_space(2);
    for (uint64_t seed = 0; seed < 4; seed++) {
        size_t n_far = 0;
        begin(&space, (struct suggest_settings){.seed = seed});
        for (int k = 0; k < 30; k++) {
            struct suggestion s = ask(k);
            double a = s.x[0], b = s.x[1];
            double far = exp(-20.0 * (a * a + (b - 1.0) * (b - 1.0))),
                   ridge = 0.7 * a * exp(-8.0 * (b - 0.2) * (b - 0.2));
            assert_int_equal(strcmp(s.origin, "sobol") == 0, k < 7);
            n_far += a < 0.25 && b > 0.75;
            add(s.x, GP_TRIAL_DONE, far + ridge, exp(1.0 + 2.0 * a - b));
        }
        assert_true(n_far >= 3);
        end();
    }
}

TEST(flat_and_wild_outputs)
{
    static const double scores[] = {0.0, 0.1, -1e-300, 1e300, -1e300, 5.0};
    static const double costs[] = {1.0, 1e-300, 1e300, 0.1, 3.0, 60.0};
    struct space space = unit_space(3);
    for (int kind = 0; kind < 8; kind++) {
        begin(&space, (struct suggest_settings){.seed = 7});
        for (int k = 0; k < 14; k++) {
            struct suggestion s = ask(k);
            double score = kind < 6 ? scores[kind] : scores[k % 6], cost = kind < 6    ? costs[kind]
                                                                           : kind == 6 ? 1.0
                                                                                       : costs[k % 6];
            add(s.x, GP_TRIAL_DONE, score, cost);
        }
        end();
    }
}

TEST(failures_are_avoided)
{
    struct space space = unit_space(3);
    begin(&space, (struct suggest_settings){.seed = 8});
    size_t failed_late = 0;
    for (int k = 0; k < 40; k++) { /* score rises towards the edge of a region that fails */
        struct suggestion s = ask(k);
        bool fails = s.x[0] > 0.6;
        failed_late += k >= 20 && fails;
        add(s.x, fails ? GP_TRIAL_FAILED : GP_TRIAL_DONE, s.x[0] - (s.x[1] - 0.5) * (s.x[1] - 0.5), 1.0 + s.x[2]);
    }
    if (failed_late > 8) /* 40 per cent of the space fails, the best lies beside it */
        fail_msg("%zu of 20 late trials fail", failed_late);
    end();
}

TEST(cost_cap)
{
    struct space space = training_space();
    begin(&space, (struct suggest_settings){.seed = 9, .max_cost = 20.0});
    size_t over = 0;
    for (int k = 0; k < 40; k++) {
        struct suggestion s = ask(k);
        double score, cost;
        training(s.x, &score, &cost);
        if (s.has_prediction)
            assert_true(s.log_cost_mean <= log(20.0) + 1e-9);
        over += k >= 20 && cost > 20.0;
        add(s.x, GP_TRIAL_DONE, score, cost);
    }
    assert_true(over <= 2);
    end();
    begin(&space,
          (struct suggest_settings){.seed = 9, .max_cost = 1e-9}); /* impossible: the cheapest it can think of */
    run_design(14, training);
    assert_true(ask(14).x[4] < 1e5);
    end();
}

TEST(one_and_many_dimensions)
{
    static const size_t dims[] = {1, 40, 41, SPACE_MAX_DIM};
    for (int d = 0; d < 4; d++) {
        struct space space = unit_space(dims[d]);
        begin(&space, (struct suggest_settings){.seed = 10});
        for (int k = 0; k < 16; k++) {
            struct suggestion s = ask(k);
            add(s.x, GP_TRIAL_DONE, -(s.x[0] - 0.3) * (s.x[0] - 0.3), exp(s.x[dims[d] - 1]));
        }
        assert_string_equal(ask(17).origin, "ehvi"); /* an odd number: also where scores are not explained yet */
        end();
    }
}

TEST(repeated_points_are_averaged)
{
    struct space space = unit_space(2);
    begin(&space, (struct suggest_settings){.seed = 11});
    struct rng r = rng_seed(12);
    for (int k = 0; k < 40; k++) { /* ten points, four noisy runs each */
        double x[SPACE_MAX_DIM] = {(k % 10) / 10.0, (k * 7 % 10) / 10.0};
        add(x, GP_TRIAL_DONE, x[0] + rng_f64(&r) - 0.5, 1.0 + x[1]);
    }
    assert_string_equal(ask(40).origin, "ehvi");
    end();
}

/* The models and their design see the length of a run on its logarithm, whatever the user's scale. */
TEST(length_of_a_run_is_seen_by_its_logarithm)
{
    struct space spaces[3] = {training_space(), training_space(), training_space()};
    struct suggestion first[3], later[3];
    spaces[0].params[4].scale = SPACE_LINEAR;
    spaces[2].params[4].scale = SPACE_LINEAR;
    strcpy(spaces[2].params[4].key, "train.horizon"); /* no length of a run: nothing is known of it */
    for (size_t k = 0; k < 3; k++) {
        begin(&spaces[k], (struct suggest_settings){.seed = 3});
        first[k] = ask(0);
        struct rng r = rng_seed(8);
        for (int i = 0; i < 20; i++) {
            double u[SPACE_MAX_DIM], x[SPACE_MAX_DIM];
            for (size_t j = 0; j < spaces[1].dim; j++)
                u[j] = rng_f64(&r);
            space_from_unit(&spaces[1], u, x);
            add(x, GP_TRIAL_DONE, bump(x[0], 1e-3, 2.0) * log(x[4]), x[4] * x[5]);
        }
        later[k] = ask(20);
        end();
    }
    assert_memory_equal(first[0].x, first[1].x, spaces[1].dim * sizeof *first[0].x);
    assert_true(first[2].x[4] != first[1].x[4]);
    assert_string_equal(later[0].origin, "ehvi");
    assert_memory_equal(later[0].x, later[1].x, spaces[1].dim * sizeof *later[0].x);
    assert_true(memcmp(later[2].x, later[1].x, spaces[1].dim * sizeof *later[0].x) != 0);
}

/* Half of the design's lengths are in the lowest quarter of their logarithm, and its longest run is long; points of
 * `sobol`, and those that many workers ask for after the design, have the lengths of the user's range. */
TEST(design_has_mostly_short_runs)
{
    struct space space = training_space();
    const struct space_param *steps = &space.params[4];
    double quarter = steps->min * pow(steps->max / steps->min, 0.25), longest = 0.0;
    size_t n_short = 0, n_short_later = 0, n_init = suggester_n_init(space.dim, 0);
    for (uint64_t seed = 1; seed <= 20; seed++) {
        SUGGESTER *s = suggester_of(&space, (struct suggest_settings){.seed = seed});
        SUGGESTER *even = suggester_of(&space, (struct suggest_settings){.seed = seed, .method = SUGGEST_SOBOL});
        struct suggestion made[SUGGEST_BATCH_MAX], point;
        size_t n;
        OK(suggester_batch(s, &(struct gp_history){0}, 0, 2 * n_init, made, &n, err));
        for (size_t k = 0; k < n; k++) {
            if (k < n_init) {
                longest = fmax(longest, made[k].x[4]);
                n_short += made[k].x[4] <= quarter;
            } else {
                n_short_later += made[k].x[4] <= quarter;
            }
            OK(suggester_next(even, &(struct gp_history){0}, (int64_t)k, &point, err));
            assert_true((point.x[4] == made[k].x[4]) == (k >= n_init));
        }
    }
    assert_true(fabs((double)n_short / (20.0 * (double)n_init) - 0.5) < 0.1);
    assert_true(fabs((double)n_short_later / (20.0 * (double)n_init) - 0.25) < 0.1);
    assert_true(longest > 0.7 * steps->max);
}

int main(void)
{
    openblas_set_num_threads(1);
    return run_cases("gp.pareto", NULL, NULL);
}
