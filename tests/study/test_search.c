/* test_search.c - search spaces out of configs, their JSON, the foreign dialect. */

#include "base/rng.h"
#include "base/config/opt.h"
#include "study/view/study_insight.h"
#include "study/space/search_widen.h"
#include "study/setup/setup.h"
#include "study/view/study_view.h"
#include "study/space/trial_check.h"
#include "tests/check.h"
#include "tests/study/load_search.h"

TEST(spaces_are_read)
{
    SETUP *setup;
    SEARCH s;

    OK(load("[env]\nname = breakout\n[train]\nlearning_rate = 0.02\n"
            "[sweep.train.learning_rate]\n"
            "[sweep.train.total_timesteps]\ndistribution = log_normal\nmin = 1M\nmax = 3e8\nmean = 2e7\n"
            "[sweep.env.frameskip]\ndistribution = int_uniform\nmin = 1\nmax = 8\n"
            "[sweep.policy.hidden_size]\ndistribution = uniform_pow2\nmin = 32\nmax = 1024\nscale = auto\n"
            "[sweep.train.gamma]\ndistribution = logit_normal\nmin = 0.8\nmax = 0.9999\nmean = 0.99\n"
            "[sweep.train.optimizer]\n"
            "[sweep.policy.core]\nvalues = mlp, mingru\n",
            &setup, &s, err));
    assert_int_equal(s.space.dim, 7);
    const struct space_param *p = &s.space.params[0];
    assert_string_equal(p->key, "train.learning_rate");
    assert_int_equal(p->scale, SPACE_LOG);
    assert_true(p->min < p->max && p->has_init && p->init == 0.02); /* the config's own value is the first trial's */
    p = &s.space.params[1];
    assert_int_equal(p->scale, SPACE_LOG);
    assert_true(p->is_int && p->min == 1e6 && p->max == 3e8 && p->has_init && p->init == 2e7);
    p = &s.space.params[2];
    assert_int_equal(p->scale, SPACE_LINEAR);
    assert_true(p->is_int && p->has_init && p->init == 4); /* breakout's default */
    p = &s.space.params[3];
    assert_int_equal(p->scale, SPACE_POW2);
    p = &s.space.params[4];
    assert_int_equal(p->scale, SPACE_LOGIT);
    assert_true(!p->is_int && p->init == 0.99);
    p = &s.space.params[5];
    assert_int_equal(p->scale, SPACE_CATEGORICAL);
    assert_int_equal(p->n_choices, 2);
    p = &s.space.params[6];
    assert_int_equal(p->n_choices, 2);
    assert_string_equal(s.choices[6][1], "mingru");
}

#define GAME "[env]\nname = squared\n"

TEST(wrong_spaces_name_the_line)
{
#define IS_TEXT "train.from_policy is a text, which cannot be searched; drop the section"
    static const struct {
        const char *text, *says;
    } bad[] = {
        {"[sweep.train.learning_rate]\ndistribution = log\nmin = 0\nmax = 1\n", "t.ini:"},
        {"[sweep.train.learning_rate]\nmin = 0.1\nmax = 0.01\n", "t.ini:"},
        {"[sweep.train.gamma]\ndistribution = logit\nmin = 0.5\nmax = 1\n", "t.ini:"},
        {"[sweep.train.gamma]\nmin = 0.8\nmean = 0.1\n", "t.ini:"},
        {"[sweep.train.gamma]\ndistribution = categorical\n", "values"},
        {"[sweep.train.optimizer]\nvalues = adam\n", "t.ini:3: every parameter has a single value"},
        {"[sweep.train.beta2]\n[sweep.policy.conv_channels]\n",
         "nothing is left to search, as these have no effect here: train.beta2 (needs train.optimizer = adam, which is "
         "muon), "
         "policy.conv_channels (needs policy.encoder = conv, which is linear)"},
        {"[sweep.train.minibatch_size]\nmin = 8192\nmax = 65536\n", "no trial of this space was found that can be run"},
        {"[sweep.train.optimizer]\nmin = 0\nmax = 1\n", "t.ini:"},
        {"[sweep.train.seed]\n", "train.seed"},
        {"[sweep.sweep.n_init]\ndistribution = int\nmin = 1\nmax = 9\n", "sweep.n_init cannot be searched"},
        {"[sweep.track.flush_s]\ndistribution = linear\nmin = 1\nmax = 30\n", "track.flush_s cannot be searched"},
        {"[sweep.env.name]\n", "env.name"},
        {"[sweep.train.from_policy]\nvalues = a, b\n", "t.ini:3: " IS_TEXT},
        {"[sweep.train.from_policy]\nmin = 1\nmax = 2\n", "t.ini:3: " IS_TEXT},
        {"", "[sweep.train.learning_rate]"},
    };
    char text[512];

    for (size_t i = 0; i < COUNT(bad); i++) {
        struct setup *setup;
        struct search s;
        snprintf(text, sizeof text, GAME "%s", bad[i].text);
        FAILS(load(text, &setup, &s, err), ST_CONFIG, bad[i].says);
    }
}

/* Ranges that nobody gave: around the config's sizes, as far as the trainer takes them with the rest of the config. */
TEST(usual_ranges_can_be_trained)
{
    static const struct {
        const char *text;
        double min, max;
    } cases[] = {
        {"[sweep.train.minibatch_size]\n", 128, 4096}, /* 128 agents x horizon 32 */
        {"[train]\ntotal_agents = 64\n[sweep.train.minibatch_size]\n", 128, 2048},
        {"[train]\nminibatch_size = 64\n[sweep.train.minibatch_size]\n", 32, 512}, /* a segment is 32 */
        {"[sweep.train.total_timesteps]\n", 125000, 8e6},
        {"[train]\ntotal_timesteps = 10k\n[sweep.train.total_timesteps]\n", 5000, 80000}, /* a rollout is 4096 */
        {"[sweep.train.horizon]\n", 8, 256},
        {"[train]\ntotal_timesteps = 10k\n[sweep.train.horizon]\n", 8, 64},
    };
    struct setup *setup;
    struct search s;
    double x[1];

    for (size_t i = 0; i < COUNT(cases); i++) {
        char text[512];
        snprintf(text, sizeof text, GAME "%s", cases[i].text);
        OK(load(text, &setup, &s, err));
        if (s.space.params[0].min != cases[i].min || s.space.params[0].max != cases[i].max)
            fail_msg("%s gives %g to %g", cases[i].text, s.space.params[0].min, s.space.params[0].max);
        assert_true(search_config_point(&s, setup, x) && x[0] == s.space.params[0].init);
        search_free(&s);
        setup_destroy(setup);
    }
}

/* The first trial is the config and not what a scale makes of it; where it is out of the space, or another start is
 * asked for, none is. */
TEST(the_config_is_a_point_or_is_not)
{
    static const struct {
        const char *text;
        bool is;
        double x;
    } cases[] = {
        {"[policy]\nhidden_size = 48\n[sweep.policy.hidden_size]\n", true, 48}, /* no power of two */
        {"[train]\nlearning_rate = 0.5\n[sweep.train.learning_rate]\n", true, 0.5},
        {"[train]\nlearning_rate = 0.5\n[sweep.train.learning_rate]\nmin = 0.001\nmax = 0.1\n", false, 0},
        {"[sweep.train.gamma]\nmean = 0.9\n", false, 0},
        {"[sweep.train.gamma]\nmean = 0.99\n", true, 0.99},
        {"[train]\noptimizer = Adam\n[sweep.train.optimizer]\n", true, 0},
        {"[sweep.train.horizon]\ndistribution = categorical\nvalues = 16, 3.2e1\n", true, 1},
        {"[sweep.train.horizon]\ndistribution = categorical\nvalues = 8, 16\n", false, 0},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        char text[512];
        SETUP *setup;
        SEARCH s;
        double x[1] = {-1};
        snprintf(text, sizeof text, GAME "%s", cases[i].text);
        OK(load(text, &setup, &s, err));
        if (search_config_point(&s, setup, x) != cases[i].is || (cases[i].is && x[0] != cases[i].x))
            fail_msg("%s: %g", cases[i].text, x[0]);
    }
}

static size_t param_at(const struct search *s, const char *key)
{
    size_t i = 0;

    while (i < s->space.dim && strcmp(s->space.params[i].key, key) != 0)
        i++;
    return i;
}

/* An option whose effect hangs on another one is conditional, out, or as any other. */
TEST(dependent_parameters_are_conditional)
{
    static const char text[] =
        GAME "[policy]\ncore = none\n[sweep.train.beta2]\n[sweep.train.gamma]\n[sweep.train.optimizer]\n"
             "[sweep.train.prio_beta0]\n[sweep.train.prio_alpha]\n[sweep.train.rho_clip]\n[sweep.policy.num_layers]\n";
    SETUP *setup;
    struct search s, back;
    double x[SPACE_MAX_DIM] = {0};
    size_t beta2, optimizer, beta0, alpha, rho;

    OK(load(text, &setup, &s, err));
    beta2 = param_at(&s, "train.beta2"), optimizer = param_at(&s, "train.optimizer");
    beta0 = param_at(&s, "train.prio_beta0"), alpha = param_at(&s, "train.prio_alpha"),
    rho = param_at(&s, "train.rho_clip");
    assert_int_equal(s.space.dim, 6); /* no core, no layers */
    assert_int_equal(param_at(&s, "policy.num_layers"), 6);
    MEM_LOCAL char *json = search_to_json(&s);
    OK(search_from_json(json, &back, err));
    MEM_LOCAL char *json_back = search_to_json(&back);
    assert_string_equal(json, json_back);
    for (int stored = 0; stored < 2; stored++) {
        const struct search *at = stored ? &back : &s;
        for (int adam = 0; adam < 2; adam++) {
            x[optimizer] = adam ? 0 : 1;
            assert_true(space_is_active(&at->space, beta2, x) == adam);
            x[alpha] = adam ? 1e-9 : 0;
            assert_true(space_is_active(&at->space, beta0, x) == adam);
            assert_true(space_is_active(&at->space, rho, x)); /* vtrace is on */
        }
    }
    search_free(&s);
    search_free(&back);
    setup_destroy(setup);
    /* one of two conditions is enough: of the core, or of the encoder */
    OK(load(GAME "[policy]\ncore = lstm\n[sweep.policy.activation]\n[sweep.policy.encoder]\n", &setup, &s, err));
    assert_true(s.space.params[0].is_conditional && s.space.params[0].parent == 1);
    assert_true(space_is_active(&s.space, 0, (const double[]){0, 1}));
    assert_false(space_is_active(&s.space, 0, (const double[]){0, 0}));
    search_free(&s);
    setup_destroy(setup);
    OK(load(GAME "[policy]\ncore = mlp\n[sweep.policy.activation]\n[sweep.policy.encoder]\n", &setup, &s, err));
    assert_false(s.space.params[0].is_conditional);
    search_free(&s);
    setup_destroy(setup);
    FAILS(load(GAME "[policy]\ncore = lstm\n[sweep.policy.activation]\n", &setup, &s, err), ST_CONFIG,
          "policy.activation (needs policy.core = none|mlp or policy.encoder = conv)");
    /* no core has no layers and no layers no core */
    OK(load(GAME "[sweep.policy.core]\n[sweep.policy.num_layers]\nmin = 0\nmax = 3\n", &setup, &s, err));
    assert_true(s.space.params[0].is_conditional && !s.space.params[1].is_conditional);
    search_free(&s);
    setup_destroy(setup);
    OK(load(GAME "[sweep.train.optimizer]\nvalues = "
                 "adam\n[sweep.train.beta2]\n[sweep.train.prio_beta0]\n[sweep.train.prio_alpha]\n"
                 "min = 0.1\nmax = 0.9\n[sweep.train.gamma]\n",
            &setup, &s, err));
    assert_true(!s.space.params[param_at(&s, "train.beta2")].is_conditional); /* by a fixed parent */
    assert_true(!s.space.params[param_at(&s, "train.prio_beta0")].is_conditional); /* never 0 */
    assert_string_equal(config_peek(setup->config, "train.optimizer"), "adam");
    assert_int_equal(s.space.dim, 4);
    search_free(&s);
}

/* Asked without a config for each point, the trainer says what it says to a trial that has one. */
TEST(impossible_points_are_known)
{
    static const char text[] =
        GAME "[train]\ntotal_timesteps = 50k\n[sweep.train.total_agents]\nmin = 16\nmax = 4096\n[sweep.train.horizon]\n"
             "min = 4\nmax = 512\n[sweep.train.minibatch_size]\nmin = 64\nmax = 65536\n"
             "[sweep.policy.encoder]\n[sweep.policy.conv_channels]\nvalues = 12, 16\n";
    struct setup *setup, *trial;
    SEARCH s;
    struct rng rng = rng_seed(3);
    size_t n_legal = 0, n = 400;

    OK(load(text, &setup, &s, err));
    struct trial_check *check = trial_check_create(setup, &s);
    for (size_t t = 0; t < n; t++) {
        struct setup_override overrides[SPACE_MAX_DIM];
        double u[SPACE_MAX_DIM], x[SPACE_MAX_DIM];
        struct error why = {0}, because = {0};
        for (size_t i = 0; i < s.space.dim; i++)
            u[i] = rng_f64(&rng);
        space_from_unit(&s.space, u, x);
        for (size_t i = 0; i < s.space.dim; i++) {
            overrides[i].key = s.space.params[i].key;
            search_value_text(&s, i, x[i], overrides[i].value, sizeof overrides[i].value);
        }
        OK(setup_derive(setup, overrides, s.space.dim, "proposal", &trial, err));
        enum status want = trainer_check(trial->env, trial->env_settings, &trial->policy, &trial->train, &why);
        assert_int_equal(trial_check_point(check, x, &because), want);
        assert_string_equal(because.text, why.text);
        assert_true(trial_check_allows(check, x) == (want == ST_OK));
        n_legal += want == ST_OK;
        setup_destroy(trial);
    }
    assert_true(n_legal > 10 && n_legal < n - 10);
    trial_check_destroy(check);
    setup_destroy(setup);
}

/* A stored space takes wider ranges and new choices; points keep their numbers, and a condition knows the new
 * choice. */
TEST(a_stored_space_becomes_wider)
{
    static const char lr[] = "[sweep.train.learning_rate]\nmin = 0.01\nmax = 0.1\n",
                      layers[] = "[sweep.policy.num_layers]\n";
    struct setup *setup, *wide_setup;
    struct search s, want;
    char text[1024];
    bool wider;

    snprintf(text, sizeof text, GAME "%s[sweep.policy.core]\nvalues = none, mlp\n%s", lr, layers);
    OK(load(text, &setup, &s, err));
    snprintf(text, sizeof text,
             GAME
             "%s[sweep.policy.core]\nvalues = lstm, none, mlp\n[sweep.train.learning_rate]\nmin = 0.001\nmax = 0.1\n",
             layers);
    OK(load(text, &wide_setup, &want, err)); /* in another order */
    OK(search_widen(&s, &want, &wider, err));
    assert_true(wider);
    assert_string_equal(s.space.params[0].key, "train.learning_rate");
    assert_true(s.space.params[0].min == 0.001 && s.space.params[0].max == 0.1);
    assert_int_equal(s.space.params[1].n_choices, 3);
    assert_true(s.space.params[1].max == 2);
    assert_string_equal(s.choices[1][0], "none");
    assert_string_equal(s.choices[1][1], "mlp");
    assert_string_equal(s.choices[1][2], "lstm");
    for (size_t k = 0; k < 3; k++)
        assert_true(space_is_active(&s.space, 2, (const double[]){0.01, (double)k, 1}) == (k > 0));
    OK(search_widen(&s, &want, &wider, err)); /* as wide already */
    assert_false(wider);
    search_free(&want);
    setup_destroy(wide_setup);
    static const struct {
        const char *text, *says;
    } bad[] = {
        {"[sweep.policy.core]\n[sweep.policy.num_layers]\n",
         "the study searches train.learning_rate, the config does not"},
        {"[sweep.train.learning_rate]\nmin = 0.001\nmax = 0.1\n[sweep.policy.core]\nvalues = mlp, "
         "lstm\n[sweep.policy.num_layers]\n",
         "policy.core: the study also has none"},
        {"[sweep.train.learning_rate]\nmin = 0.01\nmax = 1\n[sweep.policy.core]\n[sweep.policy.num_layers]\n",
         "0.001 to 0.1, the config only 0.01 to 1"},
        {"[sweep.train.learning_rate]\nmin = 0.001\nmax = "
         "1\n[sweep.policy.core]\n[sweep.policy.num_layers]\n[sweep.train.gamma]\n",
         "the config searches train.gamma, the study does not"},
        {"[sweep.train.learning_rate]\nmin = 0.001\nmax = "
         "1\n[sweep.policy.core]\n[sweep.policy.num_layers]\n[sweep]\ncost = device\n",
         "sweep.cost"},
    };
    for (size_t i = 0; i < COUNT(bad); i++) {
        snprintf(text, sizeof text, GAME "%s", bad[i].text);
        OK(load(text, &wide_setup, &want, err));
        FAILS(search_widen(&s, &want, &wider, err), ST_CONFIG, bad[i].says);
        search_free(&want);
        setup_destroy(wide_setup);
    }
    search_free(&s);
    setup_destroy(setup);
}

/* A stored space as sections of a config is that space again. */
TEST(a_space_survives_ini)
{
    SETUP *setup, *again;
    SEARCH s, back;

    OK(load(GAME "[sweep.train.learning_rate]\n[sweep.train.gamma]\nmean = "
                 "0.9\n[sweep.policy.hidden_size]\n[sweep.train.beta2]\n"
                 "[sweep.train.optimizer]\n[sweep.train.horizon]\ndistribution = categorical\nvalues = 8, 16\n"
                 "[sweep.train.replay_ratio]\n[sweep.train.total_timesteps]\n[sweep.policy.num_layers]\n",
            &setup, &s, err));
    STRBUF(ini, 1 << 16);
    strbuf_add(&ini, GAME);
    search_to_ini(&s, &ini);
    OK(load(ini.text, &again, &back, err));
    MEM_LOCAL char *json = search_to_json(&s), *json_back = search_to_json(&back);
    assert_string_equal(json, json_back);
}

/* Whatever option a space takes, a trial takes too; the rest is refused before a study is stored. */
TEST(what_is_searched_a_trial_takes)
{
    const struct opt_table *tables[] = {&env_find("squared")->options,
                                        &frames_opt_table,
                                        &policy_opt_table,
                                        &train_opt_table,
                                        &sweep_opt_table,
                                        &track_opt_table};
    size_t n_taken = 0, n_refused = 0;

    for (size_t t = 0; t < COUNT(tables); t++)
        for (size_t i = 0; i < tables[t]->n_defs; i++) {
            const struct opt_def *opt = &tables[t]->defs[i];
            bool words = opt->type == OPT_BOOL || opt->type == OPT_ENUM;
            struct setup *setup, *trial;
            struct setup_override override;
            struct search s;
            struct error at = {0};
            char text[512];
            if (opt->type == OPT_STR)
                continue;
            snprintf(text, sizeof text,
                     GAME "[policy]\nencoder = conv\nvalue_bins = %d\n[train]\noptimizer = adam\nprio_alpha = 0.5\n"
                          "e3b_coef = 0.1\ndevices = %d\n[sweep.%s.%s]\n%s",
                     strcmp(opt->key, "value_max") == 0 ? 51 : 0, strcmp(opt->key, "rank_timeout_s") == 0 ? 2 : 1,
                     tables[t]->section, opt->key, words ? "" : "distribution = linear\n");
            if (!words)
                snprintf(text + strlen(text), sizeof text - strlen(text), "min = %.17g\nmax = %.17g\n", opt->min,
                         fmin(opt->max, 1e15));
            if (load(text, &setup, &s, &at) != ST_OK) {
                if (strstr(at.text, "cannot be searched") == NULL)
                    fail_msg("%s", at.text);
                assert_true(t >= 4 || strcmp(opt->key, "seed") == 0);
                n_refused++;
                continue;
            }
            override.key = s.space.params[0].key;
            snprintf(override.value, sizeof override.value, "%s", config_peek(setup->config, override.key));
            OK(setup_derive(setup, &override, 1, "proposal", &trial, err));
            n_taken++;
            setup_destroy(trial);
            search_free(&s);
            setup_destroy(setup);
        }
    assert_true(n_taken > 20 && n_refused > 20);
}

TEST(spaces_and_points_survive_json)
{
    const char *text = GAME
        "[sweep.train.learning_rate]\n[sweep.train.optimizer]\n[sweep.train.norm_adv]\n[sweep.policy.hidden_size]\n"
        "[sweep.train.total_timesteps]\nmin = 1M\nmax = 3e7\n";
    SETUP *setup;
    SEARCH s, back;
    char value[64];
    double x[5] = {0.1 / 3, 1, 0, 64, 12345678}, y[5];

    OK(load(text, &setup, &s, err));
    MEM_LOCAL char *json = search_to_json(&s);
    OK(search_from_json(json, &back, err));
    MEM_LOCAL char *json_back = search_to_json(&back);
    assert_string_equal(json, json_back);
    MEM_LOCAL char *params = search_params_json(&s, x);
    assert_non_null(strstr(params, "\"muon\""));
    OK(search_point(&back, params, y, err));
    assert_memory_equal(x, y, sizeof x); /* to the last bit */
    OK(search_bind(&back, setup, err));
    search_value_text(&back, 0, x[0], value, sizeof value);
    OK(config_parse_value(back.opts[0], value, &y[0], err));
    assert_true(y[0] == x[0]);
    search_value_text(&back, 2, x[2], value, sizeof value);
    assert_string_equal(value, "false");
    search_value_text(&back, 4, x[4], value, sizeof value);
    assert_string_equal(value, "12345678");
    FAILS(search_point(&back, "{}", y, err), ST_CORRUPT, "train.learning_rate");
    FAILS(search_point(&back, "{\"train.learning_rate\": \"nan\"}", y, err), ST_CORRUPT, "train.learning_rate");
}

TEST(damaged_spaces_are_refused)
{
    static const char *const bad[] = {
        "",
        "[]",
        "{\"params\": []}",
        "{\"params\": [{}]}",
        "{\"params\": [{\"key\": \"a.b\", \"scale\": \"linear\", \"int\": false, \"min\": 1, \"max\": 0}]}",
        "{\"params\": [{\"key\": \"a.b\", \"scale\": \"linear\", \"int\": false, \"min\": 0, \"max\": 1, \"when\": "
        "{\"key\": \"a.c\", \"min\": 0.5}}, {\"key\": \"a.c\", \"scale\": \"linear\", \"int\": false, \"min\": 0, "
        "\"max\": 1, \"when\": {\"key\": \"a.b\", \"min\": 0.5}}]}", /* on each other: active would never be known */
        "{\"params\": [{\"key\": \"a.b\", \"scale\": \"cubic\", \"int\": false, \"min\": 0, \"max\": 1}]}",
        "{\"params\": [{\"key\": \"a.b\", \"scale\": \"categorical\", \"int\": false, \"min\": 0, \"max\": 1}]}",
        "{\"params\": [{\"key\": \"a.b\", \"scale\": \"linear\", \"int\": 1, \"min\": \"x\", \"max\": 1}]}",
    };
    struct search s;

    for (size_t i = 0; i < COUNT(bad); i++) {
        struct error err = {0};
        if (search_from_json(bad[i], &s, &err) == ST_OK)
            fail_msg("accepted: %s", bad[i]);
        assert_true(strlen(err.text) > 10);
    }
}

TEST(methods_match_gp)
{
    assert_string_equal(sweep_opt_table.defs[0].key, "method");
    assert_string_equal(sweep_opt_table.defs[0].choices, suggest_method_names());
}

/* Our methods are themselves; PufferLib's, in any case, are read as `pareto`. */
TEST(methods_of_others_are_read_as_pareto)
{
    static const char *const words[][2] = {{"pareto", "pareto"},  {"random", "random"},  {"sobol", "sobol"},
                                           {"protein", "pareto"}, {"carbs", "pareto"},   {"Protein", "pareto"},
                                           {"CARBS", "pareto"},   {"PROTEIN", "pareto"}, {"ParetoGenetic", "pareto"}};
    char text[128];

    for (size_t i = 0; i < COUNT(words); i++) {
        SETUP *setup;
        SEARCH s;
        snprintf(text, sizeof text, GAME "[sweep]\nmethod = %s\n[sweep.train.gamma]\n", words[i][0]);
        OK(load(text, &setup, &s, err));
        assert_string_equal(config_peek(setup->config, "sweep.method"), words[i][1]);
        assert_int_equal(setup->sweep.method, i < 3 ? i : 0); /* the settings say the same */
    }
}

/* Every bound that is advised is one that the program takes, for each option, scale and side; none beyond the limit. */
TEST(advised_bounds_are_allowed)
{
    static const struct opt_def layers = {.key = "layers", .type = OPT_INT, .min = 0, .max = 16};
    static const struct opt_def width = {.key = "width", .type = OPT_INT, .min = 1, .max = 1000};
    static const struct opt_def beta = {.key = "beta", .type = OPT_FLOAT, .min = 0, .max = 0.99999};
    static const struct opt_def rate = {.key = "rate", .type = OPT_FLOAT, .min = 0, .max = 10};
    static const struct {
        const struct opt_def *opt;
        enum space_scale scale;
        double min, max;
        int side;
        double x, want; /* NAN: no advice */
    } cases[] = {
        {&layers, SPACE_LINEAR, 1, 8, -1, -3, 0},
        {&layers, SPACE_LINEAR, 0, 8, -1, -4, NAN},
        {&layers, SPACE_LINEAR, 1, 12, 1, 18, 16},
        {&layers, SPACE_LINEAR, 1, 16, 1, 24, NAN},
        {&layers, SPACE_LOG, 2, 8, -1, 0, 1},
        {&layers, SPACE_LOG, 1, 8, -1, 0, NAN},
        {&width, SPACE_POW2, 32, 256, 1, 1024, 512},
        {&width, SPACE_POW2, 32, 512, 1, 2048, NAN},
        {&width, SPACE_POW2, 2, 64, -1, 0.25, 1},
        {&width, SPACE_POW2, 1, 64, -1, 0.125, NAN},
        {&beta, SPACE_LOGIT, 0.9, 0.99999, 1, 0.9999999, NAN},
        {&beta, SPACE_LOGIT, 0.9, 0.9999, 1, 0.9999684, 0.99997},
        {&beta, SPACE_LOGIT, 0.9, 0.9999, 1, 0.999999, 0.99999},
        {&rate, SPACE_LINEAR, 0.25, 4, -1, -1.625, 0},
        {&rate, SPACE_LINEAR, 0, 4, -1, -2, NAN},
        {&rate, SPACE_LOG, 1e-3, 0.1, 1, 0.31622776601683794, 0.3162},
        {&rate, SPACE_LOG, 1e-3, 0.1, -1, 3.1622776601683795e-4, 3.162e-4},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct space_param p = {.key = "train.x", .scale = cases[i].scale, .min = cases[i].min, .max = cases[i].max};
        struct space space = {.dim = 1};
        double x = cases[i].x;
        char text[64];
        p.is_int = cases[i].opt->type == OPT_INT;
        bool any = insight_bound(&p, cases[i].opt, cases[i].side, &x);
        if (any != !isnan(cases[i].want) || (any && x != cases[i].want))
            fail_msg("case %zu: %s %.17g, not %.17g", i, any ? "advises" : "refuses", x, cases[i].want);
        if (!any)
            continue;
        config_format_value(cases[i].opt, x, text, sizeof text);
        OK(config_check_value(cases[i].opt, "train.x", text, "here", err));
        *(cases[i].side < 0 ? &p.min : &p.max) = x;
        space.params[0] = p;
        OK(space_check(&space, err));
    }
}

/* What the models may see of a trial: finite, cheap runs at a cost above 0, scores turned round. */
TEST(costs_and_scores_are_judged)
{
    struct study study = {.maximize = false};
    const double odd[] = {NAN, INFINITY, -INFINITY};
    struct trial t = {.state = TRIAL_DONE, .score = 2.0, .cost_s = 0.0, .device_s = 3.0, .env_steps = 0};
    struct search *search = search_create();
    struct gp_trial row;

    for (enum search_cost cost = SEARCH_COST_WALL; cost <= SEARCH_COST_STEPS; cost++) {
        search->cost = cost;
        study_judge(&study, search, &t, &row);
        assert_int_equal(row.state, GP_TRIAL_DONE);
        assert_true(row.score == -2.0 && row.cost > 0.0 && isfinite(row.cost));
    }
    search->cost = SEARCH_COST_WALL;
    for (int i = 0; i < 3; i++) {
        t.score = odd[i];
        t.cost_s = 1.0;
        study_judge(&study, search, &t, &row);
        assert_int_equal(row.state, GP_TRIAL_FAILED);
        t.score = 2.0;
        t.cost_s = odd[i];
        study_judge(&study, search, &t, &row);
        assert_int_equal(row.state, GP_TRIAL_FAILED);
    }
    search_destroy(search);
}

TEST_PROGRAM("search")
