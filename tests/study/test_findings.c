/* test_findings.c - what is found in a study: statistics of seeds, what is believed and what more work would bring,
 * rules of failures, calibration, several studies side by side. */

#include "base/text/json.h"
#include "base/rng.h"
#include "study/findings/believed.h"
#include "study/findings/gain.h"
#include "study/findings/briefing.h"
#include "study/findings/calibration.h"
#include "study/findings/comparison.h"
#include "study/findings/failures.h"
#include "study/findings/seed_stats.h"
#include "study/view/study_view.h"
#include "tests/check.h"

#define NEAR(a, b) assert_true(fabs((a) - (b)) < 1e-9)

static const char space_json[] =
    "{\"params\":[{\"key\":\"train.gamma\",\"scale\":\"linear\",\"int\":false,\"min\":0,\"max\":1},"
    "{\"key\":\"train.minibatch_size\",\"scale\":\"pow2\",\"int\":true,\"min\":256,\"max\":8192},"
    "{\"key\":\"train.optimizer\",\"scale\":\"categorical\",\"int\":false,\"min\":0,\"max\":2,"
    "\"choices\":[\"adam\",\"muon\",\"sgd\"]}]}";

static void begin(struct study_view *v, const char *name, const char *config)
{
    struct study study = {.name = mem_strdup(name),
                          .space = mem_strdup(space_json),
                          .metric = mem_strdup("perf"),
                          .method = mem_strdup("pareto"),
                          .config = mem_strdup(config),
                          .program = mem_strdup("trawl"),
                          .maximize = true,
                          .seed = 1};

    OK(study_view_begin(&study, "/nowhere/a.db", v, err));
}

/* A trial of a second's work after the one before. reason NULL: done. */
static void put(struct study_view *v, double gamma, int minibatch, const char *optimizer, double score, double cost_s,
                const char *reason)
{
    int64_t begin_ms = 1000000 + 1000 * (int64_t)v->n;
    char params[160];

    snprintf(params, sizeof params, "{\"train.gamma\":%.17g,\"train.minibatch_size\":%d,\"train.optimizer\":\"%s\"}",
             gamma, minibatch, optimizer);
    struct trial t = {.number = (int64_t)v->n,
                      .state = reason != NULL ? TRIAL_FAILED : TRIAL_DONE,
                      .params = mem_strdup(params),
                      .reason = reason != NULL ? mem_strdup(reason) : NULL,
                      .score = reason != NULL ? (double)NAN : score,
                      .score_se = NAN,
                      .cost_s = cost_s,
                      .created_ms = begin_ms,
                      .started_ms = begin_ms,
                      .finished_ms = begin_ms + 999};
    OK(study_view_put(v, v->n, &t, err));
}

/* ---- seeds ---- */

TEST(interquartile_means_leave_out_the_ends)
{
    const double five[] = {100, 1, 2, 3, 4}, four[] = {4, 1, 3, 2}, same[] = {2, 2, 2};
    struct seed_stats s;

    seed_stats(five, 5, &s);
    NEAR(s.iqm, 3); /* 0.75 of 2, all of 3, 0.75 of 4 */
    NEAR(s.mean, 22);
    NEAR(s.middle, 3);
    assert_true(s.low == 2 && s.high == 4 && s.min == 1 && s.max == 100);
    assert_true(s.iqm_lo >= 1 && s.iqm_lo < 3 && s.iqm_hi > 3 && s.iqm_hi <= 100);
    seed_stats(four, 4, &s);
    NEAR(s.iqm, 2.5);
    NEAR(s.low, 1.75);
    seed_stats(same, 3, &s);
    assert_true(s.iqm == 2 && s.iqm_lo == 2 && s.iqm_hi == 2 && s.sd == 0);
    seed_stats(four, 1, &s);
    assert_true(s.mean == 4 && s.iqm == 4 && isnan(s.sd) && isnan(s.iqm_lo) && isnan(s.mean_hi));
    seed_stats(four, 0, &s);
    assert_true(s.n == 0 && isnan(s.mean) && isnan(s.iqm));
}

/* ---- failures ---- */

TEST(rules_name_where_trials_fail)
{
    static const int sizes[] = {256, 512, 1024, 2048, 4096};
    AT_END(study_view_free) struct study_view v = {0};
    AT_END(failures_free) struct failures f = {0};
    char reason[64];

    begin(&v, "first", "");
    for (int i = 0; i < 25; i++) { /* 2048 and more never run; sgd never does, once it fits */
        bool large = sizes[i % 5] >= 2048, sgd = i / 5 == 4;
        snprintf(reason, sizeof reason, large ? "needs %d.5 MB of %d" : "diverged", 10 * i, 8 + i);
        put(&v, 0.9, sizes[i % 5], sgd ? "sgd" : i % 2 ? "adam" : "muon", 0.5, 1, large || sgd ? reason : NULL);
    }
    study_view_refresh(&v);
    failures_find(&v, &f);
    assert_int_equal(f.n, 13);
    assert_int_equal(f.n_reasons, 2); /* numbers in a reason do not count */
    assert_int_equal(f.reasons[0].n, 10);
    assert_string_equal(f.reasons[0].text, "needs 30.5 MB of 11");
    assert_int_equal(f.reasons[0].first, 3);
    STRBUF(text, 4096);
    failures_ini(&v, &f, &text);
    assert_string_equal(text.text,
                        "# train.minibatch_size >= 2048 failed 10 of 10\n[sweep.train.minibatch_size]\nmax = 1024\n"
                        "# train.optimizer = sgd failed 3 of 3\n[sweep.train.optimizer]\nvalues = adam, muon\n");
}

TEST(chance_makes_no_rule)
{
    struct rng rng = rng_seed(4);
    size_t n_rules = 0;

    for (int study = 0; study < 40; study++) {
        struct study_view v;
        struct failures f;
        begin(&v, "first", "");
        for (int i = 0; i < 60; i++)
            put(&v, rng_f64(&rng), 256 << (int)(5 * rng_f64(&rng)), rng_f64(&rng) < 0.5 ? "adam" : "muon", 0.5, 1,
                rng_f64(&rng) < 0.2 ? "fell over" : NULL);
        study_view_refresh(&v);
        failures_find(&v, &f);
        n_rules += f.n_rules;
        failures_free(&f);
        study_view_free(&v);
    }
    assert_in_range(n_rules, 0, 4); /* 5 % of 40 at most, on average */
}

/* ---- what more work brings ---- */

/* Scores that rise for `rising` of n trials, then stay. */
static void grow(struct study_view *v, int n, int rising)
{
    begin(v, "first", "");
    for (int i = 0; i < n; i++)
        put(v, i / (double)n, 256, "adam", 0.1 + 0.8 * fmin(i, rising) / n, 1, NULL);
    study_view_refresh(v);
}

TEST(more_work_is_worth_what_the_last_was)
{
    struct study_view v;
    struct gain_expected g;
    struct briefing b;

    grow(&v, 12, 12);
    gain_expected(&v, &g);
    assert_true(isnan(g.share)); /* too early */
    briefing_make(&v, NULL, 0, &b);
    assert_int_equal(b.next, BRIEFING_EARLY);
    briefing_free(&b);
    study_view_free(&v);
    grow(&v, 80, 80);
    gain_expected(&v, &g);
    assert_true(g.work_s > 79 && g.work_s < 81 && g.ahead_s == g.work_s && g.share > 0.1);
    briefing_make(&v, NULL, v.trials[39].finished_ms, &b);
    assert_int_equal(b.next, BRIEFING_CONTINUE);
    assert_int_equal(b.n_done, 40);
    assert_int_equal(b.best, 79);
    assert_int_equal(b.best_before, 39);
    assert_true(b.volume > b.volume_before && b.volume_before > 0);
    briefing_free(&b);
    study_view_free(&v);
    grow(&v, 80, 20);
    gain_expected(&v, &g);
    assert_true(g.share < 1e-6);
    briefing_make(&v, NULL, 0, &b);
    assert_int_equal(b.next, BRIEFING_STOP);
    briefing_free(&b);
    study_view_free(&v);
}

/* The store could not be written for a minute, as where the disk was full, before most of the trials. */
TEST(a_wait_is_no_work)
{
    AT_END(study_view_free) struct study_view v = {0};
    struct gain_expected g;

    begin(&v, "first", "");
    for (int i = 0; i < 60; i++)
        put(&v, i / 60.0, 256, "adam", 0.1 + 0.8 * i / 60, 1, NULL);
    for (size_t i = 2; i < v.n; i++) {
        v.trials[i].started_ms += i > 2 ? 62000 : 0; /* trial 2 had ended, and could not be recorded */
        v.trials[i].finished_ms += 62000;
    }
    study_view_refresh(&v);
    gain_expected(&v, &g);
    assert_true(g.share > 0.1 && g.work_s > 100);
}

static void ask(const struct study_view *v, enum briefing_next want, const char *begins, bool has_command)
{
    AT_END(briefing_free) struct briefing b = {0};

    briefing_make(v, NULL, 0, &b);
    assert_int_equal(b.next, want);
    JSON_LOCAL cJSON *json = briefing_to_json(v, &b);
    const cJSON *next = json_get(json, "next");
    assert_true(strncmp(json_get_str(next, "text"), begins, strlen(begins)) == 0);
    assert_int_equal(json_get_str(next, "command") != NULL, has_command);
}

/* A space without another point, and trials that all fail, are not a reason to continue. */
TEST(what_cannot_continue_is_not_advised_to)
{
    struct study_view v;

    grow(&v, 80, 80);
    ask(&v, BRIEFING_CONTINUE, "Continue", true);
    v.study.state = STUDY_ENDED;
    v.study.end_rule = mem_strdup("space");
    ask(&v, BRIEFING_WIDEN, "Widen the space or stop: it has no new point that can be run.", false);
    study_view_free(&v);
    begin(&v, "first", "");
    study_view_refresh(&v);
    ask(&v, BRIEFING_EARLY, "Continue", true);
    for (int i = 0; i < 3; i++)
        put(&v, i / 4.0, 256, "adam", 0, 1, "boom");
    study_view_refresh(&v);
    ask(&v, BRIEFING_EARLY, "No trial has a result", true);
    put(&v, 1, 256, "adam", 0.5, 1, NULL);
    study_view_refresh(&v);
    ask(&v, BRIEFING_EARLY, "Continue", true);
    study_view_free(&v);
}

/* A config that was lucky once is on no front of what is believed, and adds little. */
TEST(luck_makes_no_hypervolume)
{
    AT_END(study_view_free) struct study_view v = {0};
    struct rng rng = rng_seed(9);

    begin(&v, "first", "");
    for (int i = 0; i < 40; i++) /* seeds scatter as widely as they can, configs do not matter */
        put(&v, (i / 4) / 10.0, 256, "adam", rng_f64(&rng) < 0.1 ? 1.0 : 0.3 + 0.02 * rng_f64(&rng),
            1 + 0.1 * rng_f64(&rng), NULL);
    study_view_refresh(&v);
    double raw = pareto_hypervolume(&v.history, &v.ref), believed;
    OK(study_view_advise(&v, err));
    believed = believed_volume(&v, &v.ref, BELIEVED_NOW);
    assert_true(believed > 0 && believed < 0.6 * raw);
    assert_true(believed_volume(&v, &v.ref, v.trials[0].finished_ms - 1) == 0);
}

/* ---- calibration ---- */

/* Three proposals of an expected score of 0.5 with an sd of 0.1, and of an expected cost of 10 with a factor of 1.1. */
TEST(proposals_are_held_against_their_predictions)
{
    static const double scores[] = {0.5, 1, 0.4, 0.9}, costs[] = {10, 10, 20, 10};
    AT_END(study_view_free) struct study_view v = {0};
    struct foresight f;
    char text[FORESIGHT_TEXT_MAX];

    begin(&v, "first", "");
    foresight_make(&v, &f);
    assert_int_equal(f.n, 0);
    assert_string_equal(foresight_text(&f, text), "");
    for (int i = 0; i < 4; i++) {
        put(&v, i / 4.0, 256, "adam", scores[i], costs[i], NULL);
        v.trials[i].predicted = (struct prediction){
            .known = i < 3, .score = 0.5, .score_sd = 0.1, .log_cost = log(10), .log_cost_sd = log(1.1)};
    }
    foresight_make(&v, &f);
    assert_int_equal(f.n, 3);
    assert_int_equal(f.n_score, 2);
    assert_int_equal(f.n_cost, 2);
    assert_true(fabs(f.score_z - 4 / 3.0) < 1e-9); /* 0, 5 and -1 */
    assert_true(fabs(f.cost_z - log(2) / log(1.1) / 3) < 1e-9);
    assert_non_null(strstr(foresight_text(&f, text), "of 3 proposals, the score of 2 and the cost of 2"));
    assert_non_null(strstr(text, "1.3 sd better"));
    assert_non_null(strstr(text, "2.4 sd higher"));
}

/* Forty proposals one after another, of which those from first_off on are off by 4 sd; how many scores are inside. */
static size_t inside_of_forty(int first_off)
{
    AT_END(study_view_free) struct study_view v = {0};
    struct foresight f;

    begin(&v, "first", "");
    for (int i = 0; i < 40; i++) {
        put(&v, i / 40.0, 256, "adam", i < first_off ? 0.5 : 0.9, 10, NULL);
        v.trials[i].created_ms = 1000 * i + 1;
        v.trials[i].finished_ms = 1000 * i + 1000;
        v.trials[i].predicted =
            (struct prediction){.known = true, .score = 0.5, .score_sd = 0.1, .log_cost = log(10), .log_cost_sd = 1};
    }
    foresight_make(&v, &f);
    return f.n_score;
}

TEST(intervals_of_proposals_follow_how_earlier_ones_came_out)
{
    assert_int_equal(inside_of_forty(0), 40); /* off from the start: the intervals soon allow for it */
    assert_int_equal(inside_of_forty(39), 39); /* after many that were right, 4 sd is a miss */
}

TEST(fresh_seeds_meet_what_was_predicted_before_them)
{
    AT_END(study_view_free) struct study_view v = {0};
    struct calibration a, b;
    struct rng rng = rng_seed(3);

    begin(&v, "first", "");
    for (int i = 0; i < 48; i++) { /* every fourth is a fresh seed of the config two before */
        double gamma = (i % 4 == 3 ? i - 2 : i) / 48.0;
        put(&v, gamma, 256, "adam", 0.4 + 0.3 * gamma + 0.05 * (rng_f64(&rng) - 0.5), 1, NULL);
    }
    study_view_refresh(&v);
    calibration_make(&v, &a);
    assert_in_range(a.n, 10, 12); /* the first have no model before them */
    assert_true(a.n_inside >= a.n - 2);
    for (size_t i = 0; i < a.n; i++) {
        assert_int_equal(a.rows[i].trial % 4, 3);
        assert_int_equal(a.rows[i].n_seeds, 1);
        assert_true(a.rows[i].lo >= 0 && a.rows[i].hi <= 1 && a.rows[i].lo < a.rows[i].hi);
    }
    for (int i = 0; i < 12; i++) /* what comes later does not change what was predicted */
        put(&v, 0.5, 256, "muon", 0, 1, NULL);
    study_view_refresh(&v);
    calibration_make(&v, &b);
    for (size_t i = 0; i < a.n; i++)
        assert_true(a.rows[i].predicted == b.rows[i].predicted && a.rows[i].hi == b.rows[i].hi);
    calibration_free(&a);
    calibration_free(&b);
}

/* ---- several studies ---- */

TEST(studies_of_one_search_attain_together)
{
    struct study_view v[5];
    struct study_view *views[5];
    struct comparison c;
    struct error why = {ST_OK, ""};
    char config[120];

    for (int i = 0; i < 5; i++) { /* the last one has another game */
        snprintf(config, sizeof config,
                 "[env]\nname = %s\n[train]\ntotal_timesteps = 1000\n[sweep]\nseed = %d\nlauncher = %s\n",
                 i < 4 ? "squared" : "memory", i + 1, i % 2 == 0 ? "none" : "slurm");
        begin(&v[i], "s", config);
        v[i].study.seed = i + 1;
        put(&v[i], 0.1, 256, "adam", 0.1 * (i + 1), 1, NULL);
        put(&v[i], 0.2, 256, "adam", 0.2 * (i + 1), 8 + i, NULL);
        study_view_refresh(&v[i]);
        views[i] = &v[i];
    }
    OK(comparison_make(views, 5, &c, err));
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(c.studies[i].group, 0);
    assert_int_equal(c.studies[4].group, 4);
    assert_true(c.ref.cost > 12 && c.ref.score < 0.1); /* the worst of all */
    assert_int_equal(c.n_attained, 8); /* of the four, at each of their costs */
    NEAR(c.attained[0].best, 0.4); /* at a cost of 1: .1 .2 .3 .4 */
    NEAR(c.attained[0].middle, 0.3);
    NEAR(c.attained[0].worst, 0.2);
    NEAR(c.attained[7].best, 0.8); /* at a cost of 11: .2 .4 .6 .8 */
    NEAR(c.attained[7].middle, 0.6);
    NEAR(c.attained[7].worst, 0.4);
    for (size_t i = 0; i + 1 < 4; i++)
        assert_true(c.studies[i].volume < c.studies[i + 1].volume);
    bool game = false, seed = false;
    const cJSON *row;
    cJSON_ArrayForEach(row, c.differences)
    {
        game = game || strcmp(json_get_str(row, "key"), "env.name") == 0;
        seed = seed || strcmp(json_get_str(row, "key"), "sweep.seed") == 0;
        assert_string_not_equal(json_get_str(row, "key"), "train.total_timesteps");
    }
    assert_true(game && seed);
    comparison_free(&c);
    mem_free(v[1].study.metric);
    v[1].study.metric = mem_strdup("score");
    assert_int_equal(comparison_make(views, 5, &c, &why), ST_USAGE);
    assert_int_equal(comparison_make(views, 1, &c, NULL), ST_USAGE);
    for (int i = 0; i < 5; i++)
        study_view_free(&v[i]);
}

TEST_PROGRAM("findings")
