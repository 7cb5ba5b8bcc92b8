/* test_bench_sweep.c - the bench of methods: hypervolume against a brute-force sum, problems whose draws have the truth
 * as their mean, the forest's weights, a table problem, and studies in virtual time. */
#include "tests/check.h"
#include "base/os/file.h"
#include "bench/sweep/forest.h"
#include "bench/sweep/play.h"

static void random_point(const struct problem *problem, struct rng *rng, double *ret_x)
{
    double u[SPACE_MAX_DIM];
    for (size_t i = 0; i < problem->space.dim; i++)
        u[i] = rng_f64(rng);
    space_from_unit(&problem->space, u, ret_x);
}

TEST(hypervolume)
{
    struct known known = {.ref_cost = 10.0, .ref_score = 0.0};
    struct outcome points[30];
    struct rng rng = rng_seed(1);
    for (size_t i = 0; i < 30; i++)
        points[i] = (struct outcome){.cost = exp(3.0 * rng_f64(&rng)), .score = 2.0 * rng_f64(&rng) - 0.5};
    double sum = 0.0, step = 1e-3; /* columns of ln cost, each as high as the best point left of it */
    for (double at = step / 2; at < log(10.0); at += step) {
        double best = 0.0;
        for (size_t i = 0; i < 30; i++)
            if (log(points[i].cost) <= at)
                best = fmax(best, points[i].score);
        sum += best * step;
    }
    assert_true(fabs(known_hypervolume(points, 30, &known) - sum) < 5e-3);
    assert_true(known_hypervolume(points, 0, &known) == 0.0);
    known.ref_cost = 0.5; /* every point is more expensive */
    assert_true(known_hypervolume(points, 30, &known) == 0.0);
}

/* Means over draws against the truth, at random points. */
static void check_truth(const struct problem *problem, double min_share_ok)
{
    enum { DRAWS = 4000 };
    struct rng rng = rng_seed(4);
    for (int p = 0; p < 5; p++) {
        double x[SPACE_MAX_DIM], sum = 0.0, sq = 0.0, log_cost = 0.0, n = 0.0;
        struct outcome truth, o;
        random_point(problem, &rng, x);
        problem->ops->truth(problem, 1, x, &truth);
        for (int i = 0; i < DRAWS; i++) {
            struct rng r = rng_split(rng, (uint64_t)i);
            problem->ops->draw(problem, x, &r, &o);
            assert_true(o.cost > 0.0);
            if (o.failed) {
                assert_true(isnan(o.score));
                continue;
            }
            sum += o.score;
            sq += o.score * o.score;
            log_cost += log(o.cost);
            n += 1.0;
        }
        if (n < min_share_ok * DRAWS)
            continue;
        double error = sqrt(fmax(sq / n - sum / n * (sum / n), 0.0) / n);
        assert_true(fabs(sum / n - truth.score) < 4.5 * error + 1e-6 * fabs(truth.score));
        assert_true(fabs(log_cost / n - log(truth.cost)) < 0.02);
    }
}

TEST(formulas)
{
    static const char *const names[] = {"branin-currin", "hartmann-steps", "rl-toy"};
    for (size_t i = 0; i < 3; i++) {
        struct problem problem;
        OK(problem_open(&problem, names[i], NULL, err));
        OK(space_check(&problem.space, err));
        check_truth(&problem, 0.05);
        problem_close(&problem);
    }
    struct problem problem;
    double best[2] = {(9.42478 + 5.0) / 15.0, 2.475 / 15.0}; /* Branin's minimum, 0.397887 */
    struct outcome o;
    OK(problem_open(&problem, "branin-currin", NULL, err));
    problem.ops->truth(&problem, 1, best, &o);
    assert_true(fabs(o.score + 0.397887) < 1e-4);
    problem_close(&problem);
    FAILS(problem_open(&problem, "branin-curri", NULL, err), ST_USAGE, "branin-currin");
}

TEST(forest)
{
    enum { N = 50 };
    float u[N * 2], y[N];
    double w[N];
    struct rng rng = rng_seed(5);
    for (size_t i = 0; i < N; i++) {
        u[2 * i] = rng_f32(&rng);
        u[2 * i + 1] = rng_f32(&rng);
        y[i] = u[2 * i] > 0.5f ? 1.0f : 0.0f;
    }
    struct forest *forest = forest_create(N, 2, u, 1, y, 40, 1);
    for (size_t i = 0; i < N; i++) { /* leaves of one row: at a row, that row alone */
        double at[2] = {(double)u[2 * i], (double)u[2 * i + 1]};
        forest_weights(forest, at, w);
        assert_true(fabs(w[i] - 1.0) < 1e-9);
    }
    forest_destroy(forest);
    forest = forest_create(N, 2, u, 1, y, 40, 5);
    for (int k = 0; k < 20; k++) {
        double at[2] = {rng_f64(&rng), rng_f64(&rng)}, sum = 0.0, value = 0.0;
        forest_weights(forest, at, w);
        for (size_t i = 0; i < N; i++) {
            sum += w[i];
            value += w[i] * (double)y[i];
            assert_true(w[i] <= 0.2 + 1e-9); /* leaves of five rows or more */
        }
        assert_true(fabs(sum - 1.0) < 1e-9);
        if (fabs(at[0] - 0.5) > 0.3)
            assert_true(fabs(value - (at[0] > 0.5)) < 0.35);
    }
    forest_destroy(forest);
}

/* A table of 40 rows, two seeds, two checkpoints; a parameter that counts only where a switch is on; some failures. */
static void write_tables(const char *folder)
{
    char path[128];
    static const char header[] =
        "{\"params\": [{\"key\": \"a.switch\", \"scale\": \"categorical\", \"int\": false, \"min\": 0, \"max\": 1, "
        "\"choices\": 2}, {\"key\": \"a.x\", \"scale\": \"linear\", \"int\": false, \"min\": 0, \"max\": 2, "
        "\"parent\": 0, \"parent_value\": 1, \"fill\": 1}, {\"key\": \"a.steps\", \"scale\": \"log\", \"int\": false, "
        "\"min\": 10, \"max\": 1000}], \"rows\": 40, \"seeds\": 2, \"checkpoints\": [10, 1000], \"budget\": 2, "
        "\"trees\": 30, \"min_leaf\": 2, \"cost\": {\"start\": 0.5, \"const\": 1, \"linear\": [0, 0, 2], "
        "\"quadratic\": [0, 0, 0, 0, 0, 0, 0, 0, 0], \"sd\": 0.01}}";
    float body[40 * 3 + 40 * 4];
    uint32_t n = (uint32_t)strlen(header);
    struct rng rng = rng_seed(6);
    for (size_t i = 0; i < 40; i++) {
        float x = 2.0f * rng_f32(&rng);
        body[3 * i] = (float)(i % 2);
        body[3 * i + 1] = x;
        body[3 * i + 2] = 1000.0f;
        for (size_t k = 0; k < 4; k++)
            body[120 + 4 * i + k] = (i % 2 ? x : 0.3f) * (k % 2 ? 2.0f : 1.0f) + 0.1f * rng_f32(&rng);
        if (i % 5 == 0)
            body[120 + 4 * i + 1] = NAN; /* seed 0 fails late */
    }
    size_t size = 8 + sizeof n + n + sizeof body;
    MEM_LOCAL char *bytes = mem_alloc(size);
    assert_non_null(bytes);
    memcpy(bytes, "TRAWLTB1", 8);
    memcpy(bytes + 8, &n, sizeof n);
    memcpy(bytes + 8 + sizeof n, header, n);
    memcpy(bytes + 8 + sizeof n + n, body, sizeof body);
    snprintf(path, sizeof path, "%s/arl-cc-cartpole-ppo.tbl", folder);
    OK(file_write_all(path, bytes, size, err));
    snprintf(path, sizeof path, "%s/arl-cc-cartpole-dqn.tbl", folder);
    OK(file_write_all(path, bytes, size - 4, err)); /* cut */
}

TEST(table)
{
    struct problem problem;
    struct error why = {0};
    struct outcome a, b;
    TEMP_FOLDER(folder);
    write_tables(folder);
    assert_int_equal(problem_open(&problem, "arl-cc-cartpole-dqn", folder, &why), ST_CORRUPT);
    problem_close(&problem);
    why = (struct error){0};
    OK(problem_open(&problem, "arl-cc-cartpole-ppo", folder, err));
    assert_int_equal(problem.space.dim, 3);
    check_truth(&problem, 0.05);
    double off_1[3] = {0, 0.1, 1000}, off_2[3] = {0, 1.9, 1000}, low[3] = {1, 0.1, 10}, high[3] = {1, 1.9, 10};
    problem.ops->truth(&problem, 1, off_1, &a);
    problem.ops->truth(&problem, 1, off_2, &b);
    assert_true(a.score == b.score); /* the switch is off: the parameter does not count */
    problem.ops->truth(&problem, 1, low, &a);
    problem.ops->truth(&problem, 1, high, &b);
    assert_true(b.score > a.score + 0.8);
    assert_true(fabs(a.cost - (0.5 + exp(1.0))) < 1e-6); /* steps at their least: u = 0 */
    problem_close(&problem);
    assert_int_equal(problem_open(&problem, "arl-cc-pendulum-sac", folder, &why), ST_NOTFOUND);
    problem_close(&problem);
}

static void play(struct play *p, const struct problem *problem, enum suggest_method method, size_t parallel)
{
    play_init(p, problem, "x", 3, 24, parallel);
    OK(play_run(p, (struct play_method){.own = method}, err));
    assert_int_equal(p->n_done, 24);
}

static double number_of(const cJSON *json, const char *key)
{
    return cJSON_GetNumberValue(json_get(json, key));
}

TEST(studies)
{
    AT_END(problem_close) struct problem problem = {0};
    struct play a, b;
    struct known known = {.ref_cost = 200.0, .ref_score = 0.0, .best_score = 100.0, .hypervolume = 300.0};
    OK(problem_open(&problem, "rl-toy", NULL, err));
    play(&a, &problem, SUGGEST_SOBOL, 1);
    play(&b, &problem, SUGGEST_SOBOL, 4);
    assert_memory_equal(a.x, b.x, 24 * problem.space.dim * sizeof(double)); /* Sobol does not look at results */
    for (size_t i = 0; i < 24; i++) {
        assert_int_equal(a.order[i], i);
        assert_true(a.trials[i].seen.cost == b.trials[i].seen.cost); /* the same draws */
        if (i > 0)
            assert_true(b.trials[b.order[i]].end >= b.trials[b.order[i - 1]].end);
    }
    assert_true(b.trials[b.order[23]].end < 0.9 * a.trials[23].end); /* four at a time are done sooner */
    /* As if two had been predicted: one right, one at a corner off by 6 deviations. */
    for (size_t i = 0; i < problem.space.dim; i++) {
        b.trials[7].x[i] = problem.space.params[i].min;
        b.trials[8].x[i] = 0.5 * (problem.space.params[i].min + problem.space.params[i].max);
    }
    b.trials[7].is_predicted = b.trials[8].is_predicted = true;
    b.trials[7].score_z = -6.0;
    b.trials[7].cost_z = 1.0;
    JSON_LOCAL cJSON *json = play_measure(&b, &known);
    assert_non_null(json);
    assert_float_equal(number_of(json, "predicted"), 2.0, 0.0);
    assert_float_equal(number_of(json, "score_z"), -3.0, 1e-9);
    assert_float_equal(number_of(json, "scores_inside"), 0.5, 1e-9);
    assert_float_equal(number_of(json, "cost_z"), 0.5, 1e-9);
    assert_float_equal(number_of(json, "costs_inside"), 1.0, 1e-9);
    assert_float_equal(number_of(json, "on_bounds"), 0.5, 1e-9);
    const cJSON *regret = json_get(json, "regret");
    assert_int_equal(cJSON_GetArraySize(regret), 24);
    for (int i = 1; i < 24; i++)
        assert_true(cJSON_GetNumberValue(cJSON_GetArrayItem(regret, i)) <=
                    cJSON_GetNumberValue(cJSON_GetArrayItem(regret, i - 1)));
    play_free(&a);
    play_free(&b);
    play(&a, &problem, SUGGEST_PARETO, 2);
    play(&b, &problem, SUGGEST_PARETO, 2);
    assert_memory_equal(a.x, b.x, 24 * problem.space.dim * sizeof(double));
    play_free(&a);
    play_free(&b);
}

TEST_PROGRAM("sweep.bench")
