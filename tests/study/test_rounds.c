/* test_rounds.c - lists of games, and what the runs of a configuration on several games come to. */

#include "study/view/study_view.h"
#include "study/games/sweep_envs.h"
#include "tests/check.h"

static const char space_json[] =
    "{\"params\":[{\"key\":\"train.gamma\",\"scale\":\"linear\",\"int\":false,\"min\":0,\"max\":1}],"
    "\"cost\":\"env_steps\",\"envs\":[\"pong\",\"breakout\",\"squared\"]}";

static void begin(struct study_view *v, bool maximize)
{
    struct study study = {.name = mem_strdup("first"),
                          .space = mem_strdup(space_json),
                          .metric = mem_strdup("perf"),
                          .method = mem_strdup("pareto"),
                          .program = mem_strdup("trawl"),
                          .maximize = maximize};

    OK(study_view_begin(&study, "/nowhere/b.db", v, err));
}

/* Adds the next trial. steps: what it cost. */
static void add(struct study_view *v, double gamma, const char *env, enum trial_state state, double score,
                int64_t steps)
{
    char params[96];

    snprintf(params, sizeof params, "{\"env\":\"%s\",\"train.gamma\":%g}", env, gamma);
    struct trial trial = {.number = (int64_t)v->n,
                          .state = state,
                          .params = mem_strdup(params),
                          .score = score,
                          .score_se = NAN,
                          .cost_s = 7,
                          .device_s = NAN,
                          .env_steps = steps};
    OK(study_view_put(v, v->n, &trial, err));
    study_view_refresh(v);
}

static void assert_missing(const struct study_view *v, size_t of, size_t env)
{
    assert_int_equal(v->missing.of, of);
    assert_int_equal(v->missing.env, env);
}

TEST(a_config_counts_when_it_was_trained_on_all)
{
    struct study_view v;

    for (int maximize = 0; maximize < 2; maximize++) {
        const double sign = maximize ? 1 : -1;
        begin(&v, maximize);
        add(&v, 0.5, "pong", TRIAL_DONE, 0.9, 100);
        assert_int_equal(v.gp[0].state, GP_TRIAL_PENDING);
        assert_int_equal(study_view_best_run(&v), v.n);
        assert_false(v.on_front[0]);
        add(&v, 0.5, "squared", TRIAL_RUNNING, NAN, 0);
        assert_missing(&v, 0, 1);
        add(&v, 0.5, "breakout", TRIAL_DONE, 0.1, 200);
        assert_int_equal(v.missing.of, v.n); /* what is missing is under way */
        assert_int_equal(v.gp[0].state, GP_TRIAL_PENDING);
        v.trials[1].state = TRIAL_DONE;
        v.trials[1].score = 0.2;
        v.trials[1].env_steps = 600;
        study_view_update(&v, 1);
        assert_int_equal(v.gp[0].state, GP_TRIAL_DONE);
        assert_float_equal(v.gp[0].score, sign * 0.4, 1e-12);
        assert_float_equal(v.gp[0].cost, 300, 1e-9);
        assert_float_equal(study_view_run_score(&v, 0), 0.4, 1e-12);
        assert_true(v.gp[1].state == GP_TRIAL_DROPPED && v.gp[2].state == GP_TRIAL_DROPPED);
        assert_true(v.on_front[0] && !v.on_front[1] && !v.on_front[2]);
        assert_int_equal(study_view_best_run(&v), 0);
        assert_string_equal(study_view_env(&v, 1), "squared");
        add(&v, 0.5, "pong", TRIAL_DONE, 0.6, 100); /* a second seed */
        assert_missing(&v, 3, 2);
        add(&v, 0.7, "pong", TRIAL_QUEUED, NAN, 0);
        assert_missing(&v, 3, 2); /* the older first */
        add(&v, 0.5, "squared", TRIAL_DONE, 0.3, 100);
        add(&v, 0.5, "breakout", TRIAL_DONE, 0.3, 100);
        assert_missing(&v, 4, 2);
        assert_int_equal(v.gp[3].state, GP_TRIAL_DONE);
        assert_float_equal(v.gp[3].score, sign * 0.4, 1e-12);
        assert_float_equal(v.gp[0].cost, 300, 1e-9);
        study_view_free(&v);
    }
}

/* A run that fails leaves its round without a result, until the same game is given again. */
TEST(a_failure_costs_its_round)
{
    AT_END(study_view_free) struct study_view v = {0};

    begin(&v, true);
    add(&v, 0.5, "pong", TRIAL_DONE, 0.9, 100);
    add(&v, 0.5, "breakout", TRIAL_FAILED, NAN, 10);
    assert_int_equal(v.missing.of, v.n); /* squared is not trained for nothing */
    assert_int_equal(v.gp[0].state, GP_TRIAL_DROPPED);
    assert_int_equal(v.gp[1].state, GP_TRIAL_FAILED);
    add(&v, 0.7, "breakout", TRIAL_FAILED, NAN, 10);
    assert_int_equal(v.missing.of, v.n);
    add(&v, 0.5, "breakout", TRIAL_DONE, 0.5, 100); /* `trawl retry` */
    assert_missing(&v, 0, 2);
    add(&v, 0.5, "squared", TRIAL_DONE, 0.1, 100);
    assert_int_equal(v.gp[0].state, GP_TRIAL_DONE);
    assert_float_equal(v.gp[0].score, 0.5, 1e-12);
    assert_int_equal(v.gp[1].state, GP_TRIAL_FAILED);
    add(&v, 0.9, "pong", TRIAL_DONE, 0.5, 100);
    add(&v, 0.9, "breakout", TRIAL_STOPPED, 0.5, 50);
    assert_true(v.gp[5].state == GP_TRIAL_DROPPED && v.gp[6].state == GP_TRIAL_DROPPED);
    v.trials[0].dropped = mem_strdup("by hand");
    study_view_update(&v, 0);
    assert_int_equal(v.gp[4].state, GP_TRIAL_DROPPED); /* with it its round */
    assert_int_equal(study_view_best_run(&v), v.n);
    assert_int_equal(v.missing.of, v.n);
}

TEST(lists_of_games)
{
    struct sweep_envs a, b;

    OK(sweep_envs_parse(" pong,breakout\t, gym:CartPole-v1", "x.ini:3", &a, err));
    assert_int_equal(a.n, 3);
    assert_string_equal(a.names[2], "gym:CartPole-v1");
    assert_int_equal(sweep_envs_find(&a, "breakout"), 1);
    assert_int_equal(sweep_envs_find(&a, "break"), 3);
    OK(sweep_envs_parse("gym:CartPole-v1 breakout pong", "x.ini:3", &b, err));
    assert_true(sweep_envs_equal(&a, &b));
    sweep_envs_free(&b);
    assert_false(sweep_envs_equal(&a, &b));
    OK(sweep_envs_parse(" , ", "x.ini:3", &b, err));
    assert_int_equal(b.n, 0);
    FAILS(sweep_envs_parse("pong", "x.ini:3", &b, err), ST_CONFIG, "x.ini:3: sweep.envs names one game, pong");
    FAILS(sweep_envs_parse("pong, squared, pong", "x.ini:3", &b, err), ST_CONFIG, "pong twice");
    FAILS(sweep_envs_parse("a b c d e f g h i j k l m n o p q", "x.ini:3", &b, err), ST_CONFIG, "more than 16 games");
    assert_int_equal(b.n, 0);
    sweep_envs_free(&a);
}

TEST_PROGRAM("study of several games")
