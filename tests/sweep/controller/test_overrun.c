/* test_overrun.c - which trials are stopped because they cost far more than was predicted: never one that may still
 * gain. */

#include "study/view/study_view.h"
#include "sweep/controller/trial/overrun.h"
#include "tests/check.h"

static const char space_json[] =
    "{\"params\":[{\"key\":\"train.gamma\",\"scale\":\"linear\",\"int\":false,\"min\":0,\"max\":1}]}";

static void put(struct study_view *v, enum trial_state state, double score, double cost_s)
{
    char params[64];

    snprintf(params, sizeof params, "{\"train.gamma\":%.17g}", (double)v->n / 8);
    struct trial t = {.number = (int64_t)v->n,
                      .state = state,
                      .params = mem_strdup(params),
                      .score = score,
                      .score_se = NAN,
                      .cost_s = cost_s,
                      .created_ms = 1,
                      .started_ms = 1,
                      .finished_ms = state == TRIAL_DONE ? 2 : 0};
    OK(study_view_put(v, v->n, &t, err));
}

/* Trials 0 and 1 have scored 0.6 for 10 s and 0.9 for 40 s; trial 2 runs, of which 0.5 and 5 s are expected. Turned
 * round where lower is better. */
static void begin(struct study_view *v, bool maximize)
{
    double sign = maximize ? 1 : -1;
    struct study study = {.name = mem_strdup("s"),
                          .space = mem_strdup(space_json),
                          .metric = mem_strdup("loss"),
                          .method = mem_strdup("pareto"),
                          .config = mem_strdup(""),
                          .program = mem_strdup("trawl"),
                          .maximize = maximize,
                          .seed = 1};

    OK(study_view_begin(&study, "/nowhere/a.db", v, err));
    put(v, TRIAL_DONE, sign * 0.6, 10);
    put(v, TRIAL_DONE, sign * 0.9, 40);
    put(v, TRIAL_RUNNING, NAN, NAN);
    v->trials[2].predicted = (struct prediction){
        .known = true, .score = sign * 0.5, .score_sd = 0.04, .log_cost = log(5), .log_cost_sd = 0.2};
}

TEST(only_what_cannot_gain_is_stopped)
{
    struct study_view v;
    char why[300];

    for (int maximize = 0; maximize < 2; maximize++) {
        double sign = maximize ? 1 : -1;
        begin(&v, maximize == 1);
        assert_false(overrun_is_hopeless(&v, 2, 9.9, sign * 0.1, why, sizeof why)); /* below twice what is expected */
        assert_true(overrun_is_hopeless(&v, 2, 10.1, sign * 0.1, why, sizeof why));
        assert_non_null(strstr(why, "trial 0"));
        assert_false(overrun_is_hopeless(&v, 2, 10.1, sign * 0.61, why, sizeof why)); /* better than that already */
        assert_false(
            overrun_is_hopeless(&v, 2, 10.1, NAN, why, sizeof why)); /* nothing reported: a result would be lost */
        v.trials[2].predicted.score_sd = 0.06; /* it may still score 0.61 */
        assert_false(overrun_is_hopeless(&v, 2, 10.1, sign * 0.1, why, sizeof why));
        assert_true(overrun_is_hopeless(&v, 2, 40.1, sign * 0.1, why, sizeof why)); /* which 40 s give anyway */
        assert_non_null(strstr(why, "trial 1"));
        v.trials[2].predicted.log_cost_sd = 1.2; /* 52 s were possible */
        assert_false(overrun_is_hopeless(&v, 2, 40.1, sign * 0.1, why, sizeof why));
        assert_true(overrun_is_hopeless(&v, 2, 53, sign * 0.1, why, sizeof why));
        v.trials[2].predicted.log_cost =
            log(0.5); /* a second more is not an overrun, two are; trial 3 costs little too */
        v.trials[2].predicted.log_cost_sd = 0.2;
        put(&v, TRIAL_DONE, sign * 0.7, 0.4);
        assert_false(overrun_is_hopeless(&v, 2, 2.4, sign * 0.1, why, sizeof why));
        assert_true(overrun_is_hopeless(&v, 2, 2.6, sign * 0.1, why, sizeof why));
        v.trials[3].origin = mem_strdup("branch 2"); /* it is trial 2 itself, as it was after 0.4 s */
        assert_false(overrun_is_hopeless(&v, 2, 2.6, sign * 0.1, why, sizeof why));
        mem_free(v.trials[3].origin);
        v.trials[3].origin = mem_strdup("branch 1");
        assert_true(overrun_is_hopeless(&v, 2, 2.6, sign * 0.1, why, sizeof why));
        v.trials[2].predicted.known = false; /* not proposed */
        assert_false(overrun_is_hopeless(&v, 2, 1e9, sign * 0.1, why, sizeof why));
        study_view_free(&v);
    }
}

TEST_PROGRAM("sweep.overrun")
