/* test_config.c - what loads: the ini dialect, layers, several files, sweep sections, and writing what loads again. */
#include <wordexp.h>

#include "config_test.h"
#include "base/text/json.h"

/* As users of the family have it. */
static const char family_ini[] = "\xef\xbb\xbf; Breakout\r\n"
                                 "[env]\r\n"
                                 "name = \"breakout\"\r\n"
                                 "\r\n"
                                 "  frameskip = 3\n"
                                 "[policy]\n"
                                 "note = 'semi; hash # and ''quote'''   ; a comment\n"
                                 "hidden_size=64\n"
                                 "[train]\n"
                                 "total-agents = 8192 # played side by side\n"
                                 "Total_Timesteps = 90_000_000\n"
                                 "horizon: 3.2e1\n"
                                 "learning_rate = 0.0445;no comment without a blank would be a number\n"
                                 "anneal_lr = False\n"
                                 "optimizer = ADAM\n"
                                 "\n"
                                 "[sweep]\n"
                                 "trials = 24\n"
                                 "[sweep.train.learning_rate]\n"
                                 "distribution = log_normal\n"
                                 "min = 0.00001\n"
                                 "max = 0.1\n"
                                 "mean = 0.01\n"
                                 "scale = auto\n"
                                 "[sweep.train.total_agents]\n"
                                 "distribution = uniform_pow2\n"
                                 "[sweep.train.optimizer]\n"
                                 "values = adam, muon\n"
                                 "[sweep.train.gamma]\n";

/* The text above without the line that is wrong on purpose. */
static struct config *family_config(void)
{
    char text[sizeof family_ini];

    memcpy(text, family_ini, sizeof text);
    char *wrong = strstr(text, ";no comment");
    memset(wrong, ' ', strcspn(wrong, "\n"));
    return good_config(text, NULL);
}

TEST(what_users_write_loads)
{
    CONFIG *config = family_config();
    struct train train;
    struct policy policy;
    struct env_common env;
    struct env_game game;
    struct sweep sweep;

    assert_int_equal(config_fill(config, &train_table, &train, NULL), ST_OK);
    assert_int_equal(config_fill(config, &policy_table, &policy, NULL), ST_OK);
    assert_int_equal(config_fill(config, &env_table, &env, NULL), ST_OK);
    assert_int_equal(config_fill(config, &game_table, &game, NULL), ST_OK);
    assert_int_equal(config_fill(config, &sweep_table, &sweep, NULL), ST_OK);
    assert_string_equal(env.name, "breakout");
    assert_string_equal(policy.note, "semi; hash # and 'quote'");
    assert_int_equal(policy.hidden_size, 64);
    assert_int_equal(game.frameskip, 3);
    assert_int_equal(train.total_agents, 8192);
    assert_int_equal(train.total_timesteps, 90000000);
    assert_int_equal(train.horizon, 32);
    assert_true(train.learning_rate == 0.0445);
    assert_false(train.anneal_lr);
    assert_int_equal(train.optimizer, 0);
    assert_true(train.gamma == 0.99); /* nobody's: the default */
    assert_int_equal(train.seed, 1);
    assert_int_equal(sweep.trials, 24);
}

TEST(a_semicolon_without_a_blank_is_no_comment)
{
    CONFIG *config = NULL;

    FAILS(try_config(&config, family_ini, NULL, err), ST_CONFIG,
          "x.ini:13: train.learning_rate is \"0.0445;no comment");
}

TEST(items_are_read_changed_and_removed)
{
    CONFIG *config = NULL;
    char what[200];

    assert_int_equal(new_config(&config, NULL), ST_OK);
    assert_int_equal(config_load_text(config, "x.ini", "[old]\nsize = 7\nnoise = 1\n", NULL), ST_OK);
    assert_int_equal(config_set(config, CONFIG_COMMAND, "train.gamma", "0.5", "command line", NULL), ST_OK);
    assert_int_equal(config_n_items(config), 4);
    struct config_item item = config_item(config, 1);
    assert_string_equal(item.key, "old.size");
    assert_string_equal(item.value, "7");
    assert_string_equal(item.origin, "x.ini:2");
    assert_true(item.layer == CONFIG_FILE && item.text == 1);
    assert_null(config_item(config, 0).value);
    assert_true(config_unknown(config, 0, what, sizeof what) && config_unknown(config, 1, what, sizeof what));
    assert_false(config_unknown(config, 3, what, sizeof what));
    assert_int_equal(config_edit(config, 1, "train.horizon", "8", NULL), ST_OK);
    config_remove(config, 2);
    config_remove(config, 0);
    assert_int_equal(config_resolve(config, NULL), ST_OK);
    assert_string_equal(config_peek(config, "train.horizon"), "8");
    assert_string_equal(config_origin(config, "train.horizon"), "x.ini:2");
    assert_string_equal(config_peek(config, "train.gamma"), "0.5");
}

TEST(sweep_sections_become_parameters)
{
    CONFIG *config = family_config();

    assert_int_equal(config_n_sweep_params(config), 4);
    const struct config_sweep_param *p = config_sweep_param(config, 0);
    assert_string_equal(p->key, "train.learning_rate");
    assert_ptr_equal(p->opt, config_find_opt(config, "train.learning_rate"));
    assert_int_equal(p->scale, OPT_LOG);
    assert_true(!p->is_int && p->min == 0.00001 && p->max == 0.1);
    assert_string_equal(p->mean, "0.01");
    assert_null(p->values);
    assert_string_equal(p->origin, "x.ini:19");
    p = config_sweep_param(config, 1);
    assert_string_equal(p->key, "train.total_agents");
    assert_int_equal(p->scale, OPT_POW2);
    assert_true(p->is_int && p->min == p->opt->sweep_min && p->max == p->opt->sweep_max);
    p = config_sweep_param(config, 2);
    assert_string_equal(p->key, "train.optimizer");
    assert_int_equal(p->scale, OPT_CATEGORICAL);
    assert_string_equal(p->values, "adam, muon");
    p = config_sweep_param(config, 3);
    assert_string_equal(p->key, "train.gamma"); /* an empty section sweeps the option's own range */
    assert_int_equal(p->scale, p->opt->scale);
    assert_true(p->min == p->opt->sweep_min && p->max == p->opt->sweep_max);
}

TEST(the_command_line_changes_a_sweep_section)
{
    const char *const args[] = {"--sweep.train.gamma.min", "0.9", "--sweep.train.horizon.max=128", "--train.gamma=0.5",
                                NULL};
    CONFIG *config = good_config("[sweep.train.gamma]\nmin = 0.8\nmax = 0.95\n", args);

    assert_int_equal(config_n_sweep_params(config), 2);
    const struct config_sweep_param *p = config_sweep_param(config, 0);
    assert_true(p->min == 0.9 && p->max == 0.95);
    p = config_sweep_param(config, 1);
    assert_string_equal(p->key, "train.horizon");
    assert_string_equal(p->origin, "command line");
    assert_string_equal(config_peek(config, "train.gamma"), "0.5"); /* fixes the base value */
}

/* default < env < file < command line, in whatever order they are given. */
TEST(layers_override_and_keep_their_origin)
{
    static const struct {
        enum config_layer layer;
        const char *value, *origin;
    } sets[] = {{CONFIG_FILE, "0.3", "x.ini:1"}, {CONFIG_COMMAND, "0.4", "command line"}, {CONFIG_ENV, "0.2", "env"}};
    static const char *const want[] = {"0.4", "0.3", "0.2", "0.015"};
    static const char *const origins[] = {"command line", "x.ini:1", "env", "default"};

    for (enum config_layer top = CONFIG_COMMAND;; top--) {
        struct config *config = NULL;
        struct train train;
        double value;
        assert_int_equal(new_config(&config, NULL), ST_OK);
        for (size_t i = 0; i < 3; i++)
            if (sets[i].layer <= top)
                assert_int_equal(
                    config_set(config, sets[i].layer, "train.learning-rate", sets[i].value, sets[i].origin, NULL),
                    ST_OK);
        assert_string_equal(config_peek(config, "train.learning_rate"), want[CONFIG_COMMAND - top]);
        assert_string_equal(config_origin(config, "train.learning_rate"), origins[CONFIG_COMMAND - top]);
        assert_int_equal(config_fill(config, &train_table, &train, NULL), ST_INTERNAL); /* not resolved yet */
        assert_int_equal(config_resolve(config, NULL), ST_OK);
        assert_int_equal(config_fill(config, &train_table, &train, NULL), ST_OK);
        value = strtod(want[CONFIG_COMMAND - top], NULL);
        assert_true(train.learning_rate == value);
        config_destroy(config);
        if (top == CONFIG_DEFAULT)
            break;
    }
}

TEST(peek_knows_tables_and_nothing_else)
{
    CONFIG *config = good_config(NULL, NULL);

    assert_string_equal(config_peek(config, "env.name"), "cartpole");
    assert_null(config_peek(config, "env.nme"));
    assert_string_equal(config_origin(config, "env.nme"), "");
    assert_null(config_find_opt(config, "env"));
}

TEST(arguments_are_taken_out_in_order)
{
    char *argv[] = {"train",
                    "breakout",
                    "--json",
                    "--train.learning-rate",
                    "0.5",
                    "-o",
                    "a.b",
                    "--train.gamma=0.25",
                    "--budget=2.5h",
                    "--policy.note",
                    "a=b --c",
                    "--train.seed",
                    "-0",
                    "--",
                    "--train.seed",
                    "7",
                    NULL};
    char *want[] = {"train", "breakout", "--json", "-o", "a.b", "--budget=2.5h", "--", "--train.seed", "7"};
    int argc = COUNT(argv) - 1;
    CONFIG *config = NULL;

    assert_int_equal(new_config(&config, NULL), ST_OK);
    assert_int_equal(config_take_args(config, &argc, argv, NULL), ST_OK);
    assert_int_equal(argc, COUNT(want));
    for (int i = 0; i < argc; i++)
        assert_string_equal(argv[i], want[i]);
    assert_null(argv[argc]);
    assert_string_equal(config_peek(config, "train.learning_rate"), "0.5");
    assert_string_equal(config_peek(config, "train.gamma"), "0.25");
    assert_string_equal(config_peek(config, "policy.note"), "a=b --c");
    assert_string_equal(config_peek(config, "train.seed"), "-0");
    assert_int_equal(config_resolve(config, NULL), ST_OK);
}

/* As `default.ini env.ini`: key by key, also within a sweep's section. */
TEST(the_later_file_wins_key_by_key)
{
    CONFIG *config = NULL;

    assert_int_equal(new_config(&config, NULL), ST_OK);
    assert_int_equal(config_load_text(config, "a.ini",
                                      "[train]\ngamma = 0.1\ntotal_agents = 8\n"
                                      "[sweep.train.gamma]\nmin = 0.2\nmax = 0.3\n",
                                      NULL),
                     ST_OK);
    assert_int_equal(config_load_text(config, "b.ini",
                                      "[train]\nhorizon = 2\ntotal_agents = 16\n"
                                      "[sweep.train.gamma]\nmax = 0.4\n",
                                      NULL),
                     ST_OK);
    assert_int_equal(config_resolve(config, NULL), ST_OK);
    assert_string_equal(config_peek(config, "train.total_agents"), "16");
    assert_string_equal(config_origin(config, "train.total_agents"), "b.ini:3");
    assert_string_equal(config_peek(config, "train.gamma"), "0.1");
    assert_string_equal(config_peek(config, "train.horizon"), "2");
    const struct config_sweep_param *p = config_sweep_param(config, 0);
    assert_int_equal(config_n_sweep_params(config), 1);
    assert_true(p->min == 0.2 && p->max == 0.4);
}

/* Lists of devices and tags, and whatever else an option takes: what is written is read back. */
TEST(a_text_of_any_length_comes_back)
{
    static const size_t lengths[] = {195, 197, 198, 200, 255, 256, OPT_STR_MAX - 1};

    for (size_t i = 0; i < COUNT(lengths); i++) {
        char arg[OPT_STR_MAX + 32] = "--policy.note=", *note = arg + strlen(arg);
        struct strbuf out;
        for (size_t k = 0; k < lengths[i]; k++)
            note[k] = "cuda:12,"[k % 8];
        note[lengths[i] / 2] = '"'; /* doubled where it is written */
        note[lengths[i]] = '\0';
        CONFIG *config = good_config(NULL, (const char *const[]){arg, NULL});
        strbuf_init(&out, 1 << 20);
        assert_int_equal(config_write_section(config, "policy", &out, NULL), ST_OK);
        CONFIG *again = good_config(out.text, NULL);
        assert_string_equal(config_peek(again, "policy.note"), note);
        strbuf_free(&out);
    }
}

TEST(the_last_of_equal_arguments_wins)
{
    const char *const args[] = {"--train.gamma=0.1", "--train.gamma", "0.2", NULL};
    CONFIG *config = good_config(NULL, args);

    assert_string_equal(config_peek(config, "train.gamma"), "0.2");
}

/* Bounds that a section leaves out: the usual ones, widened to hold the config's own value; of a size around that
 * value. */
TEST(usual_ranges_follow_the_config)
{
    struct sized {
        int64_t size;
        double rate, share, step;
    };
    static const struct opt_def defs[] = {
        OPT_ROW_INT(struct sized, size, "1000", 1, 20000, OPT_LOG, 0, 0, "", "A size.", .sweep_factor = 8),
        OPT_ROW_FLOAT(struct sized, rate, "0.01", 0, 100, OPT_LOG, 1e-5, 0.1, "", "A rate."),
        OPT_ROW_FLOAT(struct sized, share, "0.5", 0, 1, OPT_LOGIT, 0.2, 0.8, "", "A share."),
        OPT_ROW_FLOAT(struct sized, step, "1", 0, 10, OPT_LINEAR, 0.5, 2, "", "A step."),
    };
    static const struct {
        const char *text;
        double min, max;
    } cases[] = {
        {"[sweep.x.size]\n", 125, 8000},
        {"[x]\nsize = 4000\n[sweep.x.size]\n", 500, 20000}, /* what the option allows */
        {"[x]\nsize = 3\n[sweep.x.size]\n", 1, 24},
        {"[sweep.x.size]\nmin = 9000\n", 9000, 20000}, /* the start moves into what is given */
        {"[sweep.x.size]\nmax = 100\n", 13, 100},
        {"[sweep.x.size]\nmean = 100\n", 13, 800},
        {"[sweep.x.rate]\n", 1e-5, 0.1},
        {"[x]\nrate = 0.5\n[sweep.x.rate]\n", 1e-5, 1},
        {"[x]\nrate = 0\n[sweep.x.rate]\n", 1e-5, 0.1}, /* no value of a log range */
        {"[x]\nrate = 4e-6\n[sweep.x.rate]\n", 2e-6, 0.1},
        {"[x]\nshare = 0.9\n[sweep.x.share]\n", 0.2, 0.95},
        {"[x]\nshare = 1\n[sweep.x.share]\n", 0.2, 0.8},
        {"[x]\nstep = 0\n[sweep.x.step]\n", 0, 2},
        {"[x]\nstep = 7\n[sweep.x.step]\n", 0.5, 7},
        {"[x]\nstep = 7\n[sweep.x.step]\nmin = 1\nmax = 2\n", 1, 2},
    };
    TABLE(sized_table, "x", "Sized", defs, struct sized);

    for (size_t i = 0; i < COUNT(cases); i++) {
        CONFIG *config = NULL;
        assert_int_equal(new_config(&config, NULL), ST_OK);
        assert_int_equal(config_add_table(config, &sized_table, NULL), ST_OK);
        assert_int_equal(config_load_text(config, "x.ini", cases[i].text, NULL), ST_OK);
        assert_int_equal(config_resolve(config, NULL), ST_OK);
        const struct config_sweep_param *p = config_sweep_param(config, 0);
        if (fabs(p->min - cases[i].min) > 1e-12 || fabs(p->max - cases[i].max) > 1e-12)
            fail_msg("%s gives %g to %g", cases[i].text, p->min, p->max);
        assert_true(p->usual_min == (strstr(cases[i].text, "min =") == NULL));
        assert_true(p->usual_max == (strstr(cases[i].text, "max =") == NULL));
        assert_null(p->fixed);
    }
}

TEST(one_value_is_fixed)
{
    CONFIG *config = good_config("[sweep.train.gamma]\nmin = 0.9\nmax = 0.90\n[sweep.train.optimizer]\nvalues = adam\n"
                                 "[sweep.train.horizon]\nvalues = 8, 16\ndistribution = categorical\n"
                                 "[sweep.train.learning_rate]\ndistribution = log\nmin = 0\nmax = 0\n",
                                 NULL);

    assert_string_equal(config_sweep_param(config, 0)->fixed, "0.9");
    assert_string_equal(config_sweep_param(config, 1)->fixed, "adam");
    assert_null(config_sweep_param(config, 2)->fixed);
    assert_string_equal(config_sweep_param(config, 3)->fixed, "0");
}

/* Conditions of a row: all or any, of choices or of numbers above. */
TEST(rows_say_on_what_they_depend)
{
    static const struct {
        const char *depends, *text;
        bool has_effect;
    } cases[] = {
        {NULL, "", true},
        {"train.optimizer = adam", "", false},
        {"train.optimizer = adam", "[train]\noptimizer = Adam\n", true},
        {"train.optimizer = adam|muon", "", true},
        {"train.anneal_lr = true", "[train]\nanneal_lr = off\n", false},
        {"train.gamma > 0.5", "[train]\ngamma = 0.5\n", false},
        {"train.gamma > 0.5", "[train]\ngamma = 0.51\n", true},
        {"train.gamma > 0 and train.optimizer = adam", "", false},
        {"train.optimizer = adam and train.gamma > 0", "[train]\noptimizer = adam\n", true},
        {"train.optimizer = adam and train.gamma > 0", "[train]\noptimizer = adam\ngamma = 0\n", false},
        {"train.optimizer = adam or train.gamma > 0", "", true},
        {"train.gamma > 0 or train.optimizer = adam", "[train]\ngamma = 0\n", false},
        {"train.gamma > 0 or train.optimizer = muon", "[train]\ngamma = 0\n", true},
        {"train.horizon = 16|32", "", false},
        {"train.horizon = 16|32", "[train]\nhorizon = 32\n", true},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        CONFIG *config = good_config(cases[i].text, NULL);
        const struct opt_def opt = {.key = "x", .type = OPT_BOOL, .depends = cases[i].depends};
        if (config_has_effect(config, &opt) != cases[i].has_effect)
            fail_msg("%s with %s", cases[i].depends, cases[i].text);
    }
}

static void assert_same_settings(const struct config *a, const struct config *b)
{
    JSON_LOCAL cJSON *jb = config_to_json(b), *ja = config_to_json(a);

    assert_non_null(ja);
    assert_non_null(jb);
    cJSON_DeleteItemFromObject(ja, "sweep"); /* is not written on purpose */
    cJSON_DeleteItemFromObject(jb, "sweep");
    MEM_LOCAL char *ta = json_print(ja, false), *tb = json_print(jb, false);
    assert_string_equal(ta, tb);
}

static struct config *odd_config(void)
{
    const char *const args[] = {"--train.seed=4611686018427387903", "--train.learning_rate=0.1234567890123456789",
                                "--policy.note=it's \"odd\"; #1 ; x", NULL};
    return good_config("[train]\ngamma = 1\nhorizon = 64\n[env]\nframeskip = 4\n", args);
}

/* Both configs carry the same env default, as the one who loads a written file has it too. */
static void set_env_default(struct config *config)
{
    assert_int_equal(config_set(config, CONFIG_ENV, "train.horizon", "16", "breakout's default", NULL), ST_OK);
    assert_int_equal(config_resolve(config, NULL), ST_OK);
}

TEST(a_written_ini_loads_equal)
{
    for (int mode = 0; mode < 4; mode++) {
        CONFIG *config = odd_config(), *again = NULL;
        struct strbuf out, second;
        strbuf_init(&out, 1 << 20);
        strbuf_init(&second, 1 << 20);
        set_env_default(config);
        assert_int_equal(config_write_ini(config, mode & 1, mode & 2, &out, NULL), ST_OK);
        assert_int_equal(new_config(&again, NULL), ST_OK);
        assert_int_equal(config_load_text(again, "out.ini", out.text, NULL), ST_OK);
        set_env_default(again);
        assert_same_settings(config, again);
        assert_int_equal(config_write_ini(again, mode & 1, mode & 2, &second, NULL), ST_OK);
        assert_string_equal(out.text, second.text);
        assert_null(strstr(out.text, "[sweep"));
        assert_true((strstr(out.text, "hidden_size") == NULL) == (mode & 1)); /* has its default */
        assert_true((strstr(out.text, "; Step size. (1/update)") != NULL) == (mode & 2) / 2);
        strbuf_free(&out);
        strbuf_free(&second);
    }
}

TEST(written_arguments_load_equal)
{
    for (int changed = 0; changed < 2; changed++) {
        CONFIG *config = odd_config(), *again = NULL;
        struct strbuf out;
        wordexp_t words;
        char *argv[32];
        strbuf_init(&out, 1 << 20);
        set_env_default(config);
        assert_int_equal(config_write_args(config, changed, &out, NULL), ST_OK);
        assert_int_equal(wordexp(out.text, &words, WRDE_NOCMD), 0); /* as a shell splits it */
        assert_in_range(words.we_wordc, 1, 31);
        memcpy(argv, words.we_wordv, (words.we_wordc + 1) * sizeof argv[0]);
        int argc = (int)words.we_wordc;
        assert_int_equal(new_config(&again, NULL), ST_OK);
        assert_int_equal(config_take_args(again, &argc, argv, NULL), ST_OK);
        assert_int_equal(argc, 0);
        set_env_default(again);
        assert_same_settings(config, again);
        wordfree(&words);
        strbuf_free(&out);
    }
}

TEST(json_has_values_of_their_types)
{
    CONFIG *config = odd_config();
    cJSON *json = config_to_json(config), *train = json_get(json, "train");
    double rate = 0.0;
    int64_t seed = 0;
    bool anneal = false;

    assert_true(json_get_f64(train, "learning_rate", &rate) && rate == 0.1234567890123456789);
    assert_true(json_get_i64(train, "seed", &seed) && seed == INT64_C(4611686018427387903));
    assert_true(json_get_bool(train, "anneal_lr", &anneal) && anneal);
    assert_string_equal(json_get_str(train, "optimizer"), "muon");
    assert_string_equal(json_get_str(json_get(json, "env"), "name"), "cartpole");
    assert_non_null(json_get(json_get(json, "env"), "frameskip"));
    cJSON_Delete(json);
}

TEST(values_turn_into_numbers_and_back)
{
    CONFIG *config = good_config(NULL, NULL);
    static const struct {
        const char *key, *text, *back;
        double number;
    } cases[] = {
        {"train.optimizer", "Muon", "muon", 1},
        {"train.anneal_lr", "yes", "true", 1},
        {"train.anneal_lr", "OFF", "false", 0},
        {"train.total_timesteps", "20M", "20000000", 2e7},
        {"train.learning_rate", "3.1e-3", "0.0031", 0.0031},
    };
    double number;

    for (size_t i = 0; i < COUNT(cases); i++) {
        const struct opt_def *opt = config_find_opt(config, cases[i].key);
        char text[64];
        assert_int_equal(config_parse_value(opt, cases[i].text, &number, NULL), ST_OK);
        assert_true(number == cases[i].number);
        config_format_value(opt, number, text, sizeof text);
        assert_string_equal(text, cases[i].back);
    }
    assert_int_equal(config_parse_value(config_find_opt(config, "env.name"), "1", &number, NULL), ST_CONFIG);
}

TEST(help_and_reference_name_every_option)
{
    CONFIG *config = good_config(NULL, NULL);
    STRBUF(out, 1 << 20);

    assert_int_equal(config_write_help(config, "train", &out, NULL), ST_OK);
    assert_non_null(strstr(out.text, "--train.learning-rate"));
    assert_non_null(strstr(out.text, "Step size."));
    assert_non_null(strstr(out.text, "0 to 1"));
    assert_null(strstr(out.text, "--policy"));
    strbuf_clear(&out);
    assert_int_equal(config_write_help(config, NULL, &out, NULL), ST_OK);
    assert_non_null(strstr(out.text, "--env.frameskip"));
    strbuf_clear(&out);
    assert_int_equal(config_write_reference(config, &out, NULL), ST_OK);
    for (size_t i = 0; i < train_table.n_defs; i++) {
        char key[CONFIG_KEY_MAX];
        snprintf(key, sizeof key, "| `train.%s` |", train_defs[i].key);
        assert_non_null(strstr(out.text, key));
    }
    assert_non_null(strstr(out.text, "log 1e-05 to 0.1"));
}

/* Numbers in any spelling that JSON has are numbers; what would change by being read as one stays a text. */
TEST(a_text_of_any_type_in_json)
{
    static const char *const pairs[][2] = {
        {"40", "40"},           {"-3", "-3"},           {"0", "0"},
        {"0.5", "0.5"},         {"1e-4", "0.0001"},     {"12345678901234567890", "\"12345678901234567890\""},
        {"-0.25", "-0.25"},     {"true", "true"},       {"false", "false"},
        {"True", "\"True\""},   {"007", "\"007\""},     {"1k", "\"1k\""},
        {"1_000", "\"1_000\""}, {"", "\"\""},           {"-", "\"-\""},
        {".5", "\".5\""},       {"1e999", "\"1e999\""}, {"nan", "\"nan\""},
        {"x1", "\"x1\""},       {"1-2", "\"1-2\""},     {"0x10", "\"0x10\""}};

    for (size_t i = 0; i < COUNT(pairs); i++) {
        cJSON *json = cJSON_CreateObject();
        config_add_json_text(json, "v", pairs[i][0]);
        char *text = json_print(json_get(json, "v"), false);
        assert_string_equal(text, pairs[i][1]);
        mem_free(text);
        cJSON_Delete(json);
    }
}

TEST_PROGRAM("config")
