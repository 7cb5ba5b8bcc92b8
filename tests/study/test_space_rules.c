/* test_space_rules.c - when, require, step, ordered and freeze, for Trawl's own options and for those of a program:
 * what becomes of them in the space, that they survive the store, and that widening keeps to them. */

#include "base/rng.h"
#include "study/program/program_command.h"
#include "study/space/search.h"
#include "study/space/search_widen.h"
#include "study/setup/setup.h"
#include "study/space/trial_check.h"
#include "tests/check.h"
#include "tests/study/load_search.h"

#define TRAINER "[env]\nname = breakout\n[train]\ntotal_agents = 64\nhorizon = 32\n"
#define PROGRAM "[sweep]\ncommand = ./x {argv}\n"

static const struct space_param *param(const struct search *s, const char *key)
{
    size_t i = search_find(s, key);

    if (i == s->space.dim)
        fail_msg("%s is not searched", key);
    return &s->space.params[i];
}

TEST(options_depend_by_when)
{
    SETUP *setup;
    SEARCH s;

    OK(load(TRAINER "[sweep.policy.core]\nvalues = mlp, mingru, lstm\n"
                    "[sweep.train.horizon]\nmin = 8\nmax = 64\nwhen = policy.core == lstm or policy.core == mingru\n"
                    "[sweep.train.gamma]\nwhen = train.horizon > 16\n"
                    "[sweep.train.ent_coef]\nwhen = train.total_agents == 64\n" /* of the config: always */
                    "[sweep.train.clip_coef]\nwhen = train.total_agents > 64\n", /* never */
            &setup, &s, err));
    const struct space_param *p = param(&s, "train.horizon");
    assert_true(p->is_conditional && p->parent_choices == 6); /* the second and the third */
    assert_string_equal(s.space.params[p->parent].key, "policy.core");
    p = param(&s, "train.gamma");
    assert_true(p->is_conditional && p->parent_min > 16 && p->parent_min < 16.001 && isinf(p->parent_max));
    assert_false(param(&s, "train.ent_coef")->is_conditional);
    assert_int_equal(search_find(&s, "train.clip_coef"), s.space.dim);
}

TEST(circles_and_two_parents_are_refused)
{
    struct setup *setup;
    struct search s;

    FAILS(load(PROGRAM "[sweep.a]\ntype = bool\nwhen = b == true\n[sweep.b]\ntype = bool\nwhen = a\n", &setup, &s, err),
          ST_CONFIG, "depend on each other");
    FAILS(load(PROGRAM "[sweep.a]\ntype = bool\n[sweep.b]\ntype = bool\n"
                       "[sweep.c]\ntype = bool\nwhen = a and b\n",
               &setup, &s, err),
          ST_CONFIG, "t.ini:9: when depends on two parameters");
    FAILS(load(TRAINER "[sweep.policy.core]\n[sweep.train.gamma]\nwhen = policy.core == lstmm\n", &setup, &s, err),
          ST_CONFIG, "did you mean lstm?");
}

/* Of the proposals none is forbidden, and those beside the rule are found to be. */
TEST(proposals_keep_to_requirements)
{
    SETUP *setup;
    SEARCH s;
    struct rng rng = rng_seed(3);
    size_t n_allowed = 0;

    OK(load(TRAINER "[sweep]\nrequire = train.minibatch_size <= train.total_agents * train.horizon / 4\n"
                    "[sweep.train.minibatch_size]\nmin = 64\nmax = 2048\n[sweep.train.horizon]\nmin = 8\nmax = 64\n",
            &setup, &s, err));
    struct trial_check *check = trial_check_create(setup, &s);
    OK(trial_check_require(check, setup, err));
    for (int k = 0; k < 300; k++) {
        double u[2] = {rng_f64(&rng), rng_f64(&rng)}, x[SPACE_MAX_DIM];
        space_from_unit(&s.space, u, x);
        bool allowed = x[search_find(&s, "train.minibatch_size")] <= 64 * x[search_find(&s, "train.horizon")] / 4;
        assert_int_equal(trial_check_allows(check, x), allowed);
        n_allowed += allowed;
    }
    assert_true(n_allowed > 50 && n_allowed < 250);
    struct suggester *suggester = NULL;
    const struct suggest_settings settings = {
        .method = SUGGEST_SOBOL, .seed = 1, .allowed = trial_check_allows, .allowed_ctx = check};
    OK(suggester_create(&suggester, &s.space, &settings, err));
    for (int k = 0; k < 30; k++) {
        struct suggestion next;
        OK(suggester_next(suggester, &(struct gp_history){0}, k, &next, err));
        assert_true(trial_check_allows(check, next.x));
    }
    suggester_destroy(suggester);
    trial_check_destroy(check);
}

static void check_unused(const char *text, const char *want, int line)
{
    SETUP *setup;
    SEARCH s;
    STRBUF(unused, 4096);

    OK(load(text, &setup, &s, err));
    trial_check_unused(&s, setup, &unused);
    if ((want[0] == '\0') != (unused.len == 0) || strstr(unused.text, want) == NULL)
        fail_msg("line %d: unused is \"%s\"", line, unused.text);
}
#define UNUSED(text, want) check_unused(text, want, __LINE__)

/* A value of a list that nothing else of the space makes possible is named with its reason, the others are not. */
TEST(values_that_no_trial_has_are_named)
{
#define TRASH "[env]\nname = trash_pickup\n[train]\nhorizon = 16\nminibatch_size = 256\n"

    UNUSED(TRASH "total_agents = 256\n[sweep.env.agents]\nvalues = 3, 1\n",
           "env.agents = 3 (train.total_agents 256 is not a multiple of the 3 agents of one trash_pickup game");
    UNUSED(TRASH "total_agents = 256\n[sweep.env.agents]\nvalues = 2, 1\n", "");
    UNUSED(TRASH
           "total_agents = 256\n[sweep.env.agents]\nvalues = 3, 1\n[sweep.train.total_agents]\nvalues = 256, 384\n",
           "");
    UNUSED(TRASH "total_agents = 256\n[sweep]\nrequire = env.agents < 4\n[sweep.env.agents]\nvalues = 1, 2, 4\n",
           "env.agents = 4 (t.ini:");
    UNUSED(TRAINER "[sweep.policy.core]\nvalues = mlp, lstm\n[sweep.train.gamma]\n", "");
    UNUSED(PROGRAM "require = a != y\n[sweep.a]\ntype = categorical\nvalues = x, y\n",
           "param.a = y (t.ini:3: sweep.require does not hold: a != y)");
}

#define ALL_KINDS                                                                                                      \
    PROGRAM "[param]\nLr = 0.02\n"                                                                                     \
            "[sweep.Lr]\ntype = float\ndistribution = log\nmin = 0.001\nmax = 0.1\n"                                   \
            "[sweep.depth]\ntype = int\nmin = 1\nmax = 9\nstep = 2\n"                                                  \
            "[sweep.size]\ntype = categorical\nvalues = s, m, l\nordered = true\n"                                     \
            "[sweep.fast]\ntype = bool\nwhen = depth >= 3 and depth <= 7\n"                                            \
            "[sweep.slow]\ntype = float\nmin = 0\nmax = 1\nwhen = size != m\n"                                         \
            "[sweep.old]\ntype = float\nmin = 0\nmax = 1\nfreeze = 0.5\n"

static void same_space(const struct search *a, const struct search *b)
{
    assert_int_equal(a->space.dim, b->space.dim);
    for (size_t i = 0; i < a->space.dim; i++) {
        const struct space_param *p = &a->space.params[i], *q = &b->space.params[i];
        assert_string_equal(p->key, q->key);
        assert_true(p->scale == q->scale && p->is_int == q->is_int && p->min == q->min && p->max == q->max &&
                    p->step == q->step && p->is_ordered == q->is_ordered && p->is_conditional == q->is_conditional);
        if (!p->is_conditional)
            continue;
        assert_int_equal(p->parent, q->parent);
        if (a->space.params[p->parent].scale == SPACE_CATEGORICAL)
            assert_int_equal(p->parent_choices, q->parent_choices);
        else
            assert_true(p->parent_min == q->parent_min && p->parent_max == q->parent_max);
    }
}

TEST(a_program_survives_the_store)
{
    SETUP *setup, *stored = NULL, *again;
    SEARCH s, loaded, resumed;
    char value[64];
    MEM_LOCAL char *space = NULL, *config = NULL;
    double x[SPACE_MAX_DIM], y[SPACE_MAX_DIM];

    OK(load(ALL_KINDS, &setup, &s, err));
    assert_int_equal(s.space.dim, 5); /* old is frozen */
    assert_string_equal(config_peek(setup->config, "param.old"), "0.5");
    assert_true(search_config_point(&s, setup, x));
    assert_true(x[0] == 0.02 && x[1] == 5 && x[2] == 0); /* [param], the middle of the steps, the first choice */
    OK(setup_to_ini(setup, &config, err));
    assert_non_null(strstr(config, "\nLr = 0.02\n"));
    space = search_to_json(&s);
    OK(setup_from_text(&stored, "stored", config, err));
    OK(search_from_json(space, &loaded, err));
    same_space(&s, &loaded);
    OK(search_bind(&loaded, stored, err));
    assert_true(search_config_point(&loaded, stored, y));
    assert_memory_equal(x, y, s.space.dim * sizeof *x);
    search_value_text(&loaded, 1, 7, value, sizeof value);
    assert_string_equal(value, "7");
    search_value_text(&loaded, 0, 0.003, value, sizeof value);
    assert_string_equal(value, "0.003");
    STRBUF(ini, 1 << 20);
    strbuf_add(&ini, config);
    search_to_ini(&loaded, &ini);
    OK(load(ini.text, &again, &resumed, err));
    same_space(&s, &resumed);
}

TEST(widening_keeps_the_rules)
{
    static const struct {
        const char *from, *to, *says; /* NULL: it becomes wider */
    } cases[] = {
        {"max = 9\nstep = 2", "max = 15\nstep = 2", NULL},
        {"min = 1\nmax = 9\nstep = 2", "min = -3\nmax = 9\nstep = 2", NULL},
        {"min = 1\nmax = 9\nstep = 2", "min = 0\nmax = 9\nstep = 2", "another scale"}, /* the grid would move */
        {"max = 9\nstep = 2", "max = 9\nstep = 1", "another scale"},
        {"ordered = true", "ordered = false", "another scale"},
        {"depth >= 3 and", "depth >= 5 and", "other values of param.depth"},
        {"when = size != m", "when = depth > 1", "another option"},
        {"values = s, m, l", "values = s, m, l, xl", NULL},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        SETUP *setup, *other;
        SEARCH s, want;
        struct error why = {0};
        const char *at = strstr(ALL_KINDS, cases[i].from);
        char text[2000];
        bool wider = false;
        assert_non_null(at);
        snprintf(text, sizeof text, "%.*s%s%s", (int)(at - ALL_KINDS), ALL_KINDS, cases[i].to,
                 at + strlen(cases[i].from));
        OK(load(ALL_KINDS, &setup, &s, err));
        OK(load(text, &other, &want, err));
        enum status rc = search_widen(&s, &want, &wider, &why);
        if (cases[i].says == NULL)
            assert_true(rc == ST_OK && wider);
        else if (rc != ST_CONFIG || strstr(why.text, cases[i].says) == NULL)
            fail_msg("%s: %s", cases[i].to, why.text);
    }
}

/* What the words of a command become. */
TEST(commands_are_filled_in)
{
    static const struct {
        const char *command, *words;
    } cases[] = {
        {"run {argv}", "run|--Big-Lr|0.5|--name|a b"},
        {"  run\t{Big-Lr} ", "run|0.5"},
        {"run x{big_lr}y 'a {name}' \"{trial}{seed}\"", "run|x0.5y|a a b|79"}, /* either spelling; one word stays one */
        {"run '' {empty}", "run||"},
        {"run {config} {dir} {study}", "run|/c|/d|s"},
        {"awk {print} {} {1} { } {{name}} {{", NULL}, /* print is not a parameter */
        {"awk '{ print }' {} {1} {{name}} {{ a}}", "awk|{ print }|{}|{1}|{name}|{{|a}}"},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        const struct program_place place = {.config = "/c", .dir = "/d", .study = "s", .trial = 7, .seed = 9};
        SETUP *setup = NULL;
        struct error why = {0};
        char text[500], all[500] = "", **argv = NULL;
        snprintf(text, sizeof text, "[sweep]\ncommand = run {argv}\n[param]\nBig-Lr = 0.5\nname = a b\nempty =\n");
        OK(setup_from_text(&setup, "t", text, err));
        OK(config_set(setup->config, CONFIG_COMMAND, "sweep.command", cases[i].command, "t", err));
        enum status rc = program_argv(setup->config, &setup->params, &place, &argv, &why);
        if (cases[i].words == NULL) {
            assert_int_equal(rc, ST_CONFIG);
        } else {
            assert_int_equal(rc, ST_OK);
            for (size_t k = 0; argv[k] != NULL; k++)
                snprintf(all + strlen(all), sizeof all - strlen(all), "%s%s", k > 0 ? "|" : "", argv[k]);
            assert_string_equal(all, cases[i].words);
            program_argv_free(argv);
        }
    }
}

TEST_PROGRAM("space_rules")
