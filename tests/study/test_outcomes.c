/* test_outcomes.c - limits of outcomes and the third objective: read from a config, kept in the store's space, judged
 * of trials, moved by a resumed study. */

#include "study/space/search_widen.h"
#include "study/view/study_view.h"
#include "tests/check.h"
#include "tests/study/load_search.h"

#define PROGRAM "[sweep]\ncommand = ./x {argv}\n"
#define RANGE "[sweep.lr]\ntype = float\nmin = 0\nmax = 1\n"
#define TRAINER "[env]\nname = cartpole\n[sweep.train.gamma]\n"

static void check_outcomes(const struct outcomes *o)
{
    const char *needed[OUTCOMES_MAX];

    assert_int_equal(o->n_limits, 3);
    assert_string_equal(o->names[0], "mem");
    assert_string_equal(o->metrics[0], "memory");
    assert_true(isinf(o->bounds[0].min) && o->bounds[0].max == 4e9);
    assert_string_equal(o->metrics[1], "loss"); /* its own name */
    assert_true(o->bounds[1].min == 0.1 && isinf(o->bounds[1].max));
    assert_string_equal(o->metrics[2], "Drift/Mean");
    assert_true(o->bounds[2].min == -1 && o->bounds[2].max == 1);
    assert_string_equal(o->third, "memory");
    assert_true(o->third_max && o->third_log);
    assert_int_equal(outcomes_needed(o, needed), 3); /* memory once */
}

TEST(limits_are_read_and_kept)
{
    SETUP *setup, *again = NULL;
    SEARCH s, stored;
    char text[300];
    MEM_LOCAL char *ini = NULL;

    OK(load(PROGRAM "objective = memory\nobjective_goal = maximize\nobjective_scale = log\n" RANGE
                    "[sweep.limit.mem]\nmetric = memory\nmax = 4G\n[sweep.limit.loss]\nmin = 0.1\n"
                    "[sweep.limit.drift]\nmetric = Drift/Mean\nmin = -1\nmax = 1\n"
                    "[sweep.limit]\ntype = float\nmin = 1\nmax = 2\n", /* a parameter of the program */
            &setup, &s, err));
    assert_int_equal(s.space.dim, 2);
    assert_true(search_find(&s, "param.limit") < 2);
    check_outcomes(&s.outcomes);
    MEM_LOCAL char *json = search_to_json(&s);
    OK(search_from_json(json, &stored, err));
    check_outcomes(&stored.outcomes);
    OK(setup_to_ini(setup, &ini, err));
    OK(setup_from_text(&again, "stored", ini, err));
    check_outcomes(&again->outcomes);
    outcomes_text(&s.outcomes, text, sizeof text);
    assert_string_equal(text, "maximize memory; memory <= 4G, loss >= 0.1, Drift/Mean >= -1, Drift/Mean <= 1");
}

TEST(later_sources_win)
{
    SETUP *setup = NULL;

    OK(setup_create(&setup, err));
    OK(config_load_text(setup->config, "a.ini", PROGRAM "[sweep.limit.loss]\nmin = 1\nmax = 2\n", err));
    OK(config_set(setup->config, CONFIG_COMMAND, "sweep.limit.loss.max", "3", "command line", err));
    OK(config_set(setup->config, CONFIG_COMMAND, "sweep.limit.time.max", "9", "command line", err));
    OK(setup_finish(setup, err));
    assert_int_equal(setup->outcomes.n_limits, 2);
    assert_true(setup->outcomes.bounds[0].min == 1 && setup->outcomes.bounds[0].max == 3);
    assert_true(setup->outcomes.bounds[1].max == 9);
}

static void fails_with(const char *text, const char *says)
{
    struct setup *setup;
    struct search s;
    struct error err = {0};

    if (load(text, &setup, &s, &err) == ST_OK)
        fail_msg("accepted: %s", text);
    if (strstr(err.text, says) == NULL)
        fail_msg("\"%s\" is not in: %s", says, err.text);
}

TEST(wrong_limits_are_refused)
{
    char many[2000] = PROGRAM RANGE;

    fails_with(PROGRAM RANGE "[sweep.limit.a]\nmaxx = 3\n",
               "t.ini:8: [sweep.limit.a] has metric, min and max, and no maxx");
    fails_with(PROGRAM RANGE "[sweep.limit.a]\nmax = much\n", "t.ini:8: [sweep.limit.a] has max = much; a number");
    fails_with(PROGRAM RANGE "[sweep.limit.a]\nmax = nan\n", "a number is needed");
    fails_with(PROGRAM RANGE "[sweep.limit.a]\nmetric = b\n", "t.ini:7: [sweep.limit.a] bounds nothing; write max");
    fails_with(PROGRAM RANGE "[sweep.limit.a]\nmin = 2\nmax = 1\n", "min 2 above max 1, which no trial can keep");
    fails_with(PROGRAM RANGE "[sweep.limit.a.b]\nmax = 1\n", "'a.b' is not a name of a limit");
    fails_with(PROGRAM RANGE "[sweep.limit.a]\nmetric = \nmax = 1\n", "needs metric = NAME");
    for (int i = 0; i <= GP_MAX_LIMITS; i++)
        snprintf(many + strlen(many), sizeof many - strlen(many), "[sweep.limit.m%d]\nmax = 1\n", i);
    fails_with(many, "a study has up to 8 limits");
    fails_with(TRAINER "[sweep.limit.memry]\nmax = 1\n", "t.ini:4: the metric of [sweep.limit.memry] is 'memry', which "
                                                         "no run logs; did you mean 'memory'?");
    fails_with(TRAINER "[sweep]\nobjective = env_stepz\n", "sweep.objective is 'env_stepz', which no run logs");
    fails_with(TRAINER "[sweep]\nobjective = perf\n", "which is the score already");
    fails_with(PROGRAM "objective = score\n" RANGE, "which is the score already");
    fails_with(TRAINER "[sweep]\nobjective = memory\nobjective_goal = less\n", "minimize");
}

/* What a row of the models says of a finished trial with these outcomes. */
static struct gp_trial judge(const struct search *s, const char *outcomes)
{
    struct study study = {.maximize = true};
    struct trial t = {.state = TRIAL_DONE, .score = 1, .cost_s = 2, .outcomes = (char *)outcomes};
    struct gp_trial row = {0};

    study_judge(&study, s, &t, &row);
    return row;
}

TEST(trials_are_judged)
{
    SETUP *setup;
    SEARCH s;
    char text[300];

    OK(load(PROGRAM "objective = memory\nobjective_scale = log\n" RANGE "[sweep.limit.loss]\nmin = 0.1\nmax = 0.5\n",
            &setup, &s, err));
    struct gp_trial row = judge(&s, "{\"loss\":0.5,\"memory\":100}");
    assert_int_equal(row.state, GP_TRIAL_DONE);
    assert_true(fabs(row.third - log(100)) < 1e-12 && fabs(outcomes_third(&s.outcomes, row.third) - 100) < 1e-9);
    row = judge(&s, "{\"loss\":0.51,\"memory\":100}");
    assert_int_equal(row.state, GP_TRIAL_INFEASIBLE);
    outcomes_explain(&s.outcomes, &row, text, sizeof text);
    assert_string_equal(text, "loss is 0.51, above the 0.5 of [sweep.limit.loss]");
    row = judge(&s, "{\"loss\":0,\"memory\":100}");
    outcomes_explain(&s.outcomes, &row, text, sizeof text);
    assert_string_equal(text, "loss is 0, below the 0.1 of [sweep.limit.loss]");
    assert_int_equal(judge(&s, "{\"memory\":100}").state, GP_TRIAL_INFEASIBLE); /* unknown is not kept */
    assert_int_equal(judge(&s, "{\"loss\":0.3}").state, GP_TRIAL_FAILED);
    assert_int_equal(judge(&s, "{\"loss\":0.3,\"memory\":0}").state, GP_TRIAL_FAILED); /* no logarithm */
    assert_int_equal(judge(&s, NULL).state, GP_TRIAL_FAILED);
    s.outcomes.third_log = false;
    s.outcomes.third_max = true;
    row = judge(&s, "{\"loss\":0.3,\"memory\":7}");
    assert_true(row.third == -7 && outcomes_third(&s.outcomes, row.third) == 7);
}

TEST(results_are_settled)
{
    SETUP *setup;
    SEARCH s;
    struct outcomes_settled got;
    struct trial_result r = {.state = TRIAL_DONE, .score = 0.5, .cost_s = 3, .env_steps = 70, .perf = NAN};
    JSON_LOCAL cJSON *given = cJSON_CreateObject();

    OK(load(PROGRAM "objective = env_steps\nmetric = acc\n" RANGE "[sweep.limit.memory]\nmax = 5\n"
                    "[sweep.limit.acc]\nmin = 0\n[sweep.limit.cost]\nmax = 9\n",
            &setup, &s, err));
    json_add_f64(given, "memory", 4);
    OK(outcomes_settle(&s.outcomes, NULL, "acc", 0, given, &r, &got, err));
    assert_string_equal(got.values, "{\"memory\":4,\"acc\":0.5,\"cost\":3,\"env_steps\":70}");
    assert_string_equal(got.lacks, "");
    mem_free(got.values);
    json_add_f64(given, "env_steps", 71); /* what is given goes first */
    OK(outcomes_settle(&s.outcomes, NULL, "acc", 0, given, &r, &got, err));
    assert_non_null(strstr(got.values, "\"env_steps\":71"));
    mem_free(got.values);
    cJSON_DeleteItemFromObject(given, "memory");
    OK(outcomes_settle(&s.outcomes, NULL, "acc", 0, given, &r, &got, err));
    assert_string_equal(got.lacks, "no memory: [sweep.limit.memory] needs it in metrics");
    mem_free(got.values);
    json_add_f64(given, "memory", (double)INFINITY);
    OK(outcomes_settle(&s.outcomes, NULL, "acc", 0, given, &r, &got, err));
    assert_non_null(strstr(got.lacks, "memory is inf at the end of the run, and [sweep.limit.memory] needs it"));
    assert_null(strstr(got.values, "memory"));
    mem_free(got.values);
    s.outcomes = (struct outcomes){0};
    OK(outcomes_settle(&s.outcomes, NULL, "acc", 0, given, &r, &got, err));
    assert_null(got.values);
}

TEST(bounds_move_and_metrics_stay)
{
    static const struct {
        const char *text, *says; /* NULL: the bound moves */
    } cases[] = {
        {PROGRAM RANGE "[sweep.limit.loss]\nmax = 2\n", NULL},
        {PROGRAM RANGE "[sweep.limit.loss]\nmetric = time\nmax = 2\n",
         "[sweep.limit.loss] bounds time, in the study loss"},
        {PROGRAM "objective = time\n" RANGE "[sweep.limit.loss]\nmax = 2\n", "another third objective"},
    };
    SETUP *setup;
    SEARCH s;
    bool changed;

    OK(load(PROGRAM RANGE "[sweep.limit.loss]\nmax = 1\n", &setup, &s, err));
    for (size_t i = 0; i < COUNT(cases); i++) {
        SETUP *other;
        SEARCH want;
        OK(load(cases[i].text, &other, &want, err));
        if (cases[i].says != NULL) {
            FAILS(search_widen(&s, &want, &changed, err), ST_CONFIG, cases[i].says);
            assert_true(s.outcomes.bounds[0].max == 2);
        } else {
            OK(search_widen(&s, &want, &changed, err));
            assert_true(changed && s.outcomes.bounds[0].max == 2);
            OK(search_widen(&s, &want, &changed, err));
            assert_false(changed);
        }
    }
}

TEST_PROGRAM("study.outcomes")
