/* test_study.c - a study in memory: its rows, costs and scores; the timeline, the command that continues it, the head
 * of an export. */

#include "base/text/json.h"
#include "study/view/export.h"
#include "study/findings/timeline.h"
#include "study/view/resume_command.h"
#include "study/view/study_view.h"
#include "tests/check.h"

static const char space_json[] =
    "{\"params\":[{\"key\":\"train.gamma\",\"scale\":\"linear\",\"int\":false,\"min\":0,\"max\":1},"
    "{\"key\":\"train.optimizer\",\"scale\":\"categorical\",\"int\":false,\"min\":0,\"max\":1,"
    "\"choices\":[\"adam\",\"muon\"]}],\"cost\":\"env_steps\"}";

static void begin(struct study_view *v)
{
    struct study study = {.name = mem_strdup("first"),
                          .space = mem_strdup(space_json),
                          .metric = mem_strdup("score"),
                          .method = mem_strdup("pareto"),
                          .program = mem_strdup("trawl"),
                          .maximize = false};

    OK(study_view_begin(&study, "/nowhere/a b.db", v, err));
}

static struct trial done(int64_t number, const char *params, double score, int64_t env_steps)
{
    return (struct trial){.number = number,
                          .state = TRIAL_DONE,
                          .params = mem_strdup(params),
                          .score = score,
                          .score_se = NAN,
                          .cost_s = 7,
                          .env_steps = env_steps};
}

/* A row that cannot be read is there, with what can be; the others stay as they are. */
TEST(rows_are_put)
{
    AT_END(study_view_free) struct study_view v = {0};
    struct trial trials[] = {done(0, "{\"train.gamma\":0.5,\"train.optimizer\":\"muon\"}", 3, 100),
                             done(1, "{\"train.gamma\":0.25}", 2, 200), done(2, "no object", 4, 300)};
    struct trial again = done(0, "{}", 1, 400);

    begin(&v);
    OK(study_view_put(&v, 0, &trials[0], err));
    assert_int_equal(study_view_put(&v, 1, &trials[1], NULL), ST_CORRUPT);
    assert_int_equal(study_view_put(&v, 2, &trials[2], NULL), ST_CORRUPT);
    study_view_refresh(&v);
    assert_int_equal(v.n, 3);
    assert_true(v.x[0][0] == 0.5 && v.x[0][1] == 1.0);
    assert_true(v.x[1][0] == 0.25 && isnan(v.x[1][1]) && isnan(v.x[2][0]));
    assert_true(v.on_front[0] && v.on_front[1] && !v.on_front[2]); /* 3 at 100 steps, 2 at 200; 4 at 300 is worse */
    assert_int_equal(study_view_best_run(&v), 1);
    OK(study_view_put(&v, 0, &again, err)); /* the same trial, read again: its point stays */
    study_view_refresh(&v);
    assert_true(v.n == 3 && v.x[0][0] == 0.5 && v.gp[0].score == -1.0);
    assert_int_equal(study_view_best_run(&v), 0);
    assert_string_equal(v.store_path, "/nowhere/a b.db");
}

TEST(scores_and_costs_have_one_direction)
{
    const struct study up = {.maximize = true}, down = {.maximize = false};
    struct trial t = {.state = TRIAL_RUNNING, .cost_s = 2, .device_s = 3};

    assert_true(study_better(&up, 2, 1) && !study_better(&up, 1, 2) && !study_better(&up, 1, 1));
    assert_true(study_better(&down, 1, 2) && !study_better(&down, 2, 1));
    assert_true(study_better(&down, 1, NAN) && !study_better(&down, NAN, 1) && !study_better(&up, NAN, NAN));
    assert_true(study_trial_cost(SEARCH_COST_WALL, &t) == 2 && study_trial_cost(SEARCH_COST_DEVICE, &t) == 3);
    assert_true(isnan(study_trial_cost(SEARCH_COST_STEPS, &t))); /* not known yet */
    t.state = TRIAL_FAILED;
    assert_true(study_trial_cost(SEARCH_COST_STEPS, &t) == 0);
    assert_string_equal(study_cost_unit(SEARCH_COST_STEPS), "steps");
    assert_string_equal(study_cost_unit(SEARCH_COST_DEVICE), "s");
}

/* A trial counts 50 s of training over two attempts; the second, which is shown, took 10 s. */
TEST(no_slot_trains_longer_than_it_is_busy)
{
    struct trial trials[] = {
        {.slot = (char *)"cpu/0", .started_ms = 100000, .finished_ms = 110000, .cost_s = 50, .attempt = 2},
        {.slot = (char *)"cpu/0", .started_ms = 112000, .finished_ms = 120000, .cost_s = 6, .attempt = 1}};
    struct study_view v = {.trials = trials, .n = 2};
    cJSON *json = timeline_to_json(&v), *slot = cJSON_GetArrayItem(json_get(json, "slots"), 0);
    double busy = 0, training = 0, idle = 0;

    assert_true(json_get_f64(slot, "busy_s", &busy) && json_get_f64(slot, "training_s", &training) &&
                json_get_f64(slot, "idle_s", &idle));
    assert_true(busy == 18 && training == 16 && idle == 2);
    cJSON_Delete(json);
}

TEST(the_limit_that_ended_it_is_raised)
{
    static const struct {
        enum study_state state;
        const char *rule, *want;
    } cases[] = {{STUDY_RUNNING, NULL, ""}, /* 3 of 4 trials: it continues as it is */
                 {STUDY_ENDED, "trials", " --trials 8"},
                 {STUDY_ENDED, "budget", " --budget 1h"},
                 {STUDY_ENDED, "wall_time", " --wall-time 3m"},
                 {STUDY_ENDED, "device_time", " CONFIG --sweep.device_time 45s"},
                 {STUDY_ENDED, "min_gain", " CONFIG --sweep.min_gain 0.01"},
                 {STUDY_ENDED, "target", " --target SCORE"},
                 {STUDY_ENDED, "stopped", ""}};
    struct trial trials[4] = {{.cost_s = 600}, {.cost_s = 600}, {.cost_s = 600}, {.cost_s = 5400}};
    struct gp_trial gp[4] = {{0}};
    struct study_view v = {.study = {.name = (char *)"first"}, .n = 3, .trials = trials, .gp = gp};
    char want[160];

    v.study.limits.trials_max = 4;
    v.study.limits.budget_s = 1800;
    v.study.limits.wall_max_s = 90;
    v.study.limits.device_max_s = 22.5;
    v.study.limits.gain_min = 0.02;
    for (size_t i = 0; i <= COUNT(cases); i++) {
        struct strbuf out;
        strbuf_init(&out, 1000);
        if (i == COUNT(cases)) { /* every trial was run, and nobody has said that it ended */
            v = (struct study_view){.study = {.name = (char *)"first", .limits.trials_max = 4}, .n = 4};
            snprintf(want, sizeof want, "trawl sweep --resume first --trials 8");
            study_resume_command(&v, NULL, &out);
        } else {
            v.study.state = cases[i].state;
            v.study.end_rule = (char *)cases[i].rule;
            snprintf(want, sizeof want, "trawl sweep --resume first --store '/a b/x.db'%s", cases[i].want);
            study_resume_command(&v, "/a b/x.db", &out);
        }
        assert_string_equal(out.text, want);
        strbuf_free(&out);
    }
    /* 2 hours are spent, and the budget was lowered to 30 minutes: an hour would end it at once */
    struct strbuf out;
    v = (struct study_view){
        .study = {.name = (char *)"first", .state = STUDY_ENDED, .end_rule = (char *)"budget", .limits.budget_s = 1800},
        .n = 4,
        .trials = trials,
        .gp = gp};
    strbuf_init(&out, 1000);
    study_resume_command(&v, NULL, &out);
    assert_string_equal(out.text, "trawl sweep --resume first --budget 4h");
    strbuf_free(&out);
}

TEST(the_head_of_an_export_names_the_store)
{
    const struct study study = {.name = (char *)"first", .metric = (char *)"score", .program = (char *)"trawl"};
    const struct trial trial = {.number = 4,
                                .config = (char *)"[env]\nname = squared\n",
                                .score = 1,
                                .score_se = NAN,
                                .cost_s = 2,
                                .start_s = NAN,
                                .eval_s = NAN};
    const struct export_reason why = {"best", NULL, "/a b/x.db", {.n_seeds = 1}};
    STRBUF(out, 1 << 20);

    OK(export_build(&study, &trial, &why, EXPORT_INI, &out, err));
    assert_non_null(strstr(out.text, "`trawl rerun first --store '/a b/x.db' --trial 4 --seeds 5`"));
}

TEST_PROGRAM("study")
