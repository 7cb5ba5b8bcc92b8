/* test_dialect.c - configs of PufferLib 3.0 and 4.0 train what they train there. What that is stands in the tables
 * below, written down by hand from what PufferLib's loader and trainer do with the files in puffer/: its default.ini
 * under the game's file, agents and minibatches as they are counted there, fractions cut, what no key says (rewards
 * clipped to 1, Muon, a linear encoder). */

#include "base/config/opt.h"
#include "gp/gp.h"
#include "study/dialect/dialect.h"
#include "study/setup/setup.h"
#include "tests/check.h"
#include "tests/study/setup_test.h"

struct value {
    const char *key, *value;
};

/* What both versions train with when no file says. */
static const struct value any_base[] = {
    {"policy.norm_obs", "false"},
    {"policy.value_bins", "0"},
    {"policy.value_net", "shared"},
    {"train.shuffle", "segments"},
    {"train.devices", "1"},
    {"train.scale_reward", "false"},
    {"train.vtrace", "true"},
    {"policy.encoder", "linear"},
    {"train.total_timesteps", "10000000"},
    {"train.horizon", "64"},
    {"train.minibatch_size", "8192"},
    {"train.replay_ratio", "1"},
    {"train.replay_rounding", "floor"},
    {"train.learning_rate", "0.015"},
    {"train.min_lr_ratio", "0"},
    {"train.anneal_lr", "true"},
    {"train.optimizer", "muon"},
    {"train.beta1", "0.95"},
    {"train.beta2", "0.999"},
    {"train.eps", "1e-12"},
    {"train.weight_decay", "0"},
    {"train.max_grad_norm", "1.5"},
    {"train.gamma", "0.995"},
    {"train.gae_lambda", "0.9"},
    {"train.rho_clip", "1"},
    {"train.c_clip", "1"},
    {"train.clip_coef", "0.2"},
    {"train.vf_coef", "2"},
    {"train.vf_clip_coef", "0.2"},
    {"train.ent_coef", "0.001"},
    {"train.target_kl", "0"},
    {"train.decay_share", "1"},
    {"train.decay_steps", "0"},
    {"train.e3b_coef", "0"},
    {"train.from_policy", ""},
    {"train.norm_adv", "true"},
    {"train.reward_clip", "1"},
    {"train.prio_alpha", "0.8"},
    {"train.prio_beta0", "0.2"},
    {"policy.hidden_size", "128"},
    {"train.max_seconds", "0"},
    {"train.device", "auto"},
};
static const struct value base3[] = {{"policy.encoder_activation", "relu"},
                                     {"train.seed", "42"},
                                     {"policy.core", "lstm"},
                                     {"policy.num_layers", "1"},
                                     {"train.precision", "f32"}};
static const struct value base4[] = {{"policy.encoder_activation", "none"},
                                     {"train.seed", "73"},
                                     {"policy.core", "mingru"},
                                     {"policy.num_layers", "4"},
                                     {"train.total_agents", "4096"}};

static const struct value breakout3[] = {
    {"env.frameskip", "4"},
    {"train.total_agents", "8192"}, /* 8 x 1024 */
    {"train.total_timesteps", "90000000"},
    {"train.minibatch_size", "32768"},
    {"train.learning_rate", "0.044482546441415506"},
    {"train.beta1", "0.8946507418260217"},
    {"train.beta2", "0.9"},
    {"train.eps", "0.0001"},
    {"train.max_grad_norm", "2.2356112188495723"},
    {"train.gamma", "0.9997053654668936"},
    {"train.gae_lambda", "0.747650023961198"},
    {"train.rho_clip", "0.7876748061547312"},
    {"train.c_clip", "2.878171091654008"},
    {"train.clip_coef", "0.19696765958267629"},
    {"train.vf_coef", "1.6832989594296321"},
    {"train.vf_clip_coef", "2.178492167689251"},
    {"train.ent_coef", "0.0005690816545012474"},
    {"train.prio_alpha", "0.98967001208896"},
    {"train.prio_beta0", "0.09999999999999998"},
};
static const struct value squared3[] = {
    {"env.n", "5"}, /* 11 cells a side where no file says */
    {"train.total_agents", "8192"}, /* 2 processes where no file says, x 4096 */
    {"train.total_timesteps", "20000000"},
    {"train.minibatch_size", "32768"},
    {"train.learning_rate", "0.05"},
    {"train.gamma", "0.95"},
};
static const struct value memory3[] = {
    {"env.length", "4"},
    {"train.total_agents", "8192"},
    {"train.total_timesteps", "50000000"},
    {"train.minibatch_size", "32768"},
};
static const struct value cartpole3[] = {
    {"env.max_steps", "200"}, /* of its cartpole */
    {"train.total_agents", "8192"},    {"train.total_timesteps", "20000000"},
    {"train.minibatch_size", "32768"}, {"train.learning_rate", "0.05"},
    {"train.gamma", "0.95"},
};
static const struct value breakout4[] = {
    {"env.frameskip", "4"},
    {"policy.hidden_size", "64"},
    {"policy.num_layers", "2"},
    {"train.total_timesteps", "94000000"},
    {"train.minibatch_size", "65536"},
    {"train.replay_ratio", "1.4242098997083206"},
    {"train.learning_rate", "0.1"},
    {"train.beta1", "0.7279714073125252"},
    {"train.beta2", "0.9986265112492152"},
    {"train.eps", "0.00008339460257113628"},
    {"train.max_grad_norm", "1.8109182724544075"},
    {"train.gamma", "0.9721246598992744"},
    {"train.gae_lambda", "0.948721675814334"},
    {"train.rho_clip", "2.1017317041552603"},
    {"train.c_clip", "1.0830442742115065"},
    {"train.clip_coef", "0.6746497927896418"},
    {"train.vf_coef", "1.2195502588297364"},
    {"train.vf_clip_coef", "1.2291681640124468"},
    {"train.ent_coef", "0.0033240721522812535"},
    {"train.prio_alpha", "0.1"},
    {"train.prio_beta0", "0.8247156461060179"},
};
static const struct value squared4[] = {
    {"env.n", "5"},
    {"policy.num_layers", "1"},
    {"train.total_timesteps", "100000000"},
    {"train.minibatch_size", "32768"},
    {"train.learning_rate", "0.005"},
    {"train.gamma", "0.99"},
    {"train.ent_coef", "0.01"},
};
static const struct value memory4[] = {
    {"env.length", "4"},
    {"train.total_timesteps", "50000000"},
    {"train.minibatch_size", "32768"},
};
static const struct value cartpole4[] = {
    {"env.max_steps", "200"},
    {"policy.hidden_size", "32"},
    {"policy.num_layers", "2"}, /* 2.11327, cut */
    {"train.horizon", "32"},
    {"train.total_timesteps", "5642560"},
    {"train.minibatch_size", "16384"},
    {"train.replay_ratio", "0.381289"},
    {"train.learning_rate", "0.1"},
    {"train.beta1", "0.942691"},
    {"train.beta2", "0.907572"},
    {"train.eps", "4.6046e-09"},
    {"train.max_grad_norm", "0.329667"},
    {"train.gamma", "0.8"},
    {"train.gae_lambda", "0.922151"},
    {"train.rho_clip", "2.91145"},
    {"train.c_clip", "1.66148"},
    {"train.clip_coef", "0.143548"},
    {"train.vf_coef", "1.77975"},
    {"train.vf_clip_coef", "3.90833"},
    {"train.ent_coef", "0.0367726"},
    {"train.prio_alpha", "0.786776"},
    {"train.prio_beta0", "0.348617"},
};

struct list {
    const struct value *values;
    size_t n;
};
#define LIST(array)                                                                                                    \
    {                                                                                                                  \
        (array), sizeof(array) / sizeof(array)[0]                                                                      \
    }
#define CASE(game, version)                                                                                            \
    {                                                                                                                  \
#game, version, LIST(game##version)                                                                            \
    }

static const struct {
    const char *game;
    int version;
    struct list own;
} cases[] = {CASE(breakout, 3), CASE(squared, 3), CASE(memory, 3), CASE(cartpole, 3),
             CASE(breakout, 4), CASE(squared, 4), CASE(memory, 4), CASE(cartpole, 4)};

/* What a machine decides, and what the network of these configs does not have. */
static const char *const not_of_a_run[] = {"train.threads",
                                           "train.precision",
                                           "train.graphs",
                                           "train.device_timeout_s",
                                           "train.population",
                                           "train.rank_timeout_s",
                                           "train.log_interval_s",
                                           "train.checkpoint_interval_s",
                                           "policy.conv_layers",
                                           "policy.conv_channels",
                                           "policy.conv_stride",
                                           "policy.value_max",
                                           "train.e3b_scale",
                                           "policy.action_std",
                                           "policy.action_std_init",
                                           "policy.action_bounds",
                                           "policy.activation",
                                           "train.vector_units",
                                           "train.eval_episodes",
                                           "train.eval_max_steps",
                                           "env.name"};

static const char *expected(const char *key, size_t c)
{
    const struct list lists[] = {
        cases[c].own, cases[c].version == 3 ? (struct list)LIST(base3) : (struct list)LIST(base4), LIST(any_base)};

    for (size_t k = 0; k < 3; k++)
        for (size_t i = 0; i < lists[k].n; i++)
            if (strcmp(lists[k].values[i].key, key) == 0)
                return lists[k].values[i].value;
    return NULL;
}

static bool same(const char *a, const char *b)
{
    double x, y;

    return strcmp(a, b) == 0 || (num_parse_f64(a, &x) && num_parse_f64(b, &y) && !(x < y) && !(x > y));
}

/* Files of puffer/, later ones win, then more text ("t.ini") and arguments "key=value". */
static enum status load(const char *const *files, const char *text, const char *const *args, struct setup **ret_setup,
                        struct error *err)
{
    char path[512];

    *ret_setup = NULL;
    TRY(setup_create(ret_setup, err));
    enum status rc = ST_OK;
    for (size_t i = 0; rc == ST_OK && files != NULL && files[i] != NULL; i++) {
        snprintf(path, sizeof path, TEST_DATA "%s.ini", files[i]);
        rc = setup_load(*ret_setup, path, err);
    }
    if (rc == ST_OK && text != NULL)
        rc = config_load_text((*ret_setup)->config, "t.ini", text, err);
    for (size_t i = 0; rc == ST_OK && args != NULL && args[i] != NULL; i++) {
        char key[CONFIG_KEY_MAX];
        snprintf(key, sizeof key, "%.*s", (int)strcspn(args[i], "="), args[i]);
        rc = config_set((*ret_setup)->config, CONFIG_COMMAND, key, strchr(args[i], '=') + 1, "command line", err);
    }
    if (rc == ST_OK)
        rc = setup_finish(*ret_setup, err);
    if (rc == ST_OK)
        return ST_OK;
    setup_destroy(*ret_setup);
    *ret_setup = NULL;
    return rc;
}

static void check_option(const struct setup *setup, const struct opt_table *table, const struct opt_def *opt, size_t c,
                         const char *what)
{
    char key[CONFIG_KEY_MAX];
    double x = 0, y = 1;

    snprintf(key, sizeof key, "%s.%s", table->section, opt->key);
    const char *want = expected(key, c);
    const char *got = config_peek(setup->config, key);
    for (size_t i = 0; want == NULL && i < COUNT(not_of_a_run); i++)
        if (strcmp(not_of_a_run[i], key) == 0)
            return;
    if (want == NULL)
        fail_msg("%s%d: nothing is written down for %s, which is %s", cases[c].game, cases[c].version, key, got);
    else if (!same(want, got) &&
             !((opt->type == OPT_BOOL || opt->type == OPT_ENUM) && config_parse_value(opt, want, &x, NULL) == ST_OK &&
               config_parse_value(opt, got, &y, NULL) == ST_OK && x >= y && x <= y))
        fail_msg("%s%d %s: %s is %s, PufferLib trains with %s", cases[c].game, cases[c].version, what, key, got, want);
}

/* Every option of a run, of each game and version: default.ini under the game's file, and the game's file alone. */
TEST(each_game_trains_what_it_trains_there)
{
    for (size_t c = 0; c < COUNT(cases); c++) {
        char game[32], base[32];
        snprintf(game, sizeof game, "%s%d", cases[c].game, cases[c].version);
        snprintf(base, sizeof base, "default%d", cases[c].version);
        for (int alone = 0; alone < 2; alone++) {
            const char *const files[] = {alone ? game : base, alone ? NULL : game, NULL};
            SETUP *setup;
            const struct opt_table *tables[3];
            OK(load(files, NULL, NULL, &setup, err));
            assert_string_equal(setup->env->name, cases[c].game);
            tables[0] = &policy_opt_table;
            tables[1] = &train_opt_table;
            tables[2] = &setup->env->options;
            for (size_t t = 0; t < 3; t++)
                for (size_t i = 0; i < tables[t]->n_defs; i++)
                    check_option(setup, tables[t], &tables[t]->defs[i], c, alone ? "alone" : "over default.ini");
        }
    }
}

/* Minibatches a rollout: int(replay_ratio x agents x horizon / minibatch_size). */
TEST(rollouts_train_as_many_minibatches_as_there)
{
    static const struct {
        const char *file;
        double want;
    } rollouts[] = {{"breakout3", 16},
                    {"squared3", 16},
                    {"breakout4", 5}, /* of 5.697 */
                    {"memory4", 8},
                    {"cartpole4", 3}};

    for (size_t i = 0; i < COUNT(rollouts); i++) {
        SETUP *setup;
        OK(load((const char *const[]){rollouts[i].file, NULL}, NULL, NULL, &setup, err));
        struct train_settings *t = &setup->train;
        double many = t->replay_ratio * (double)t->total_agents * (double)t->horizon / (double)t->minibatch_size;
        assert_int_equal(t->replay_rounding, TRAIN_ROUNDING_FLOOR);
        assert_true(many >= rollouts[i].want && many < rollouts[i].want + 1);
    }
}

/* ---- sweeps ---- */

struct range {
    const char *key;
    enum opt_scale scale;
    double min, max;
};

static void check_ranges(const struct setup *setup, const struct range *want, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        bool found = false;
        for (size_t k = 0; k < config_n_sweep_params(setup->config); k++) {
            const struct config_sweep_param *p = config_sweep_param(setup->config, k);
            if (strcmp(p->key, want[i].key) != 0)
                continue;
            found = true;
            if (p->scale != want[i].scale || p->min < want[i].min || p->min > want[i].min || p->max < want[i].max ||
                p->max > want[i].max)
                fail_msg("%s is swept from %g to %g, scale %d", p->key, p->min, p->max, (int)p->scale);
        }
        if (!found)
            fail_msg("%s is not swept", want[i].key);
    }
    assert_int_equal(config_n_sweep_params(setup->config), n);
}

static const struct range ranges4[] = {
    {"train.total_timesteps", OPT_LOG, 3e7, 1e11}, {"policy.hidden_size", OPT_POW2, 32, 1024},
    {"policy.num_layers", OPT_LINEAR, 1, 8},       {"train.total_agents", OPT_POW2, 256, 16384},
    {"train.horizon", OPT_POW2, 8, 1024},          {"train.minibatch_size", OPT_POW2, 4096, 65536},
    {"train.learning_rate", OPT_LOG, 1e-5, 0.1},   {"train.ent_coef", OPT_LOG, 1e-5, 0.2},
    {"train.gamma", OPT_LOGIT, 0.8, 0.9999},       {"train.gae_lambda", OPT_LOGIT, 0.2, 0.995},
    {"train.rho_clip", OPT_LINEAR, 0.1, 5},        {"train.c_clip", OPT_LINEAR, 0.1, 5},
    {"train.replay_ratio", OPT_LINEAR, 0.25, 4},   {"train.clip_coef", OPT_LINEAR, 0.01, 1},
    {"train.vf_clip_coef", OPT_LINEAR, 0.01, 5},   {"train.vf_coef", OPT_LINEAR, 0.1, 5},
    {"train.max_grad_norm", OPT_LINEAR, 0.1, 5},   {"train.beta1", OPT_LOGIT, 0.5, 0.999},
    {"train.beta2", OPT_LOGIT, 0.9, 0.99999},      {"train.eps", OPT_LOG, 1e-14, 1e-4},
    {"train.prio_alpha", OPT_LINEAR, 0, 1},        {"train.prio_beta0", OPT_LINEAR, 0, 1},
};
static const struct range ranges3[] = {
    {"train.total_timesteps", OPT_LOG, 1e6, 1e7}, /* cartpole's own */
    {"train.horizon", OPT_POW2, 16, 64},          {"train.minibatch_size", OPT_POW2, 8192, 65536},
    {"train.learning_rate", OPT_LOG, 1e-5, 0.1},  {"train.min_lr_ratio", OPT_LINEAR, 0, 0.5},
    {"train.ent_coef", OPT_LOG, 1e-5, 0.2},       {"train.gamma", OPT_LOGIT, 0.8, 0.9999},
    {"train.gae_lambda", OPT_LOGIT, 0.6, 0.995},  {"train.rho_clip", OPT_LINEAR, 0.1, 5},
    {"train.c_clip", OPT_LINEAR, 0.1, 5},         {"train.clip_coef", OPT_LINEAR, 0.01, 1},
    {"train.vf_clip_coef", OPT_LINEAR, 0.1, 5},   {"train.vf_coef", OPT_LINEAR, 0.1, 5},
    {"train.max_grad_norm", OPT_LINEAR, 0.1, 5},  {"train.beta1", OPT_LOGIT, 0.5, 0.999},
    {"train.beta2", OPT_LOGIT, 0.9, 0.99999},     {"train.eps", OPT_LOG, 1e-14, 1e-4},
    {"train.prio_alpha", OPT_LOGIT, 0.1, 0.99},   {"train.prio_beta0", OPT_LOGIT, 0.1, 0.99},
};

TEST(each_sweep_searches_what_it_searches_there)
{
    static const char *const files[][3] = {
        {"default4", "memory4"}, {"memory4"}, {"default3", "cartpole3"}, {"cartpole3"}};

    for (size_t i = 0; i < COUNT(files); i++) {
        bool is_3 = i >= 2;
        SETUP *setup;
        OK(load(files[i], NULL, NULL, &setup, err));
        if (is_3)
            check_ranges(setup, ranges3, COUNT(ranges3));
        else
            check_ranges(setup, ranges4, COUNT(ranges4));
        assert_int_equal(setup->sweep.method, SUGGEST_PARETO);
        assert_int_equal(setup->sweep.goal, 0);
        assert_string_equal(setup->sweep.metric, is_3 ? "ep_length" : "score");
        assert_int_equal(setup->sweep.trials, is_3 ? 200 : 1200); /* 3.0: of its command line */
        assert_true(setup->sweep.max_cost == 3600);
    }
}

/* PufferLib's dump of a run's config: all keys of default.ini and of the game's file in one file, each once.
 * mem_free. */
static char *merged(const char *const *files)
{
    struct config *config = config_create();
    struct strbuf text;
    char path[512];

    for (size_t i = 0; files[i] != NULL; i++) {
        snprintf(path, sizeof path, TEST_DATA "%s.ini", files[i]);
        OK(config_load_file(config, path, err));
    }
    strbuf_init(&text, 1 << 20);
    for (size_t i = 0; i < config_n_items(config); i++) /* a section where its first key is, with all of its keys */
        for (size_t k = 0; k < config_n_items(config); k++) {
            struct config_item first = config_item(config, i), item = config_item(config, k);
            int n = (int)(strrchr(first.key, '.') - first.key);
            if (first.value == NULL || item.value == NULL || strrchr(item.key, '.') - item.key != n ||
                strncmp(item.key, first.key, (size_t)n) != 0)
                continue;
            if (k < i)
                break; /* it was written there */
            if (k == i)
                strbuf_addf(&text, "[%.*s]\n", n, item.key);
            if (dialect_find(config, item.key) == k)
                strbuf_addf(&text, "%s = %s\n", item.key + n + 1, item.value);
        }
    config_destroy(config);
    return strbuf_take(&text);
}

TEST(the_cases_in_the_field)
{
    static const struct range pendulum[] = {{"train.total_timesteps", OPT_LOG, 8e4, 3e5},
                                            {"train.learning_rate", OPT_LOG, 0.0005, 0.002},
                                            {"train.ent_coef", OPT_LOG, 1e-5, 0.2}}; /* default.ini has the last */
    SETUP *setup;

    MEM_LOCAL char *text = merged((const char *const[]){"default4", "breakout4", NULL});
    OK(load(NULL, text, NULL, &setup, err));
    for (size_t i = 0; i < COUNT(breakout4); i++)
        if (!same(config_peek(setup->config, breakout4[i].key), breakout4[i].value))
            fail_msg("%s is %s", breakout4[i].key, config_peek(setup->config, breakout4[i].key));
    assert_int_equal(setup->policy.core, POLICY_CORE_MINGRU);
    assert_int_equal(setup->train.seed, 73); /* base.seed; train.seed is read by nobody there */
    assert_int_equal(config_n_sweep_params(setup->config), 23); /* with the game's frameskip */
    setup_destroy(setup);

    OK(load((const char *const[]){"raw_pl4_squared", NULL}, NULL, NULL, &setup, err));
    for (size_t i = 0; i < COUNT(squared4); i++)
        assert_true(same(config_peek(setup->config, squared4[i].key), squared4[i].value));
    assert_int_equal(setup->train.horizon, 64);
    assert_true(setup->train.gae_lambda == 0.90 && setup->train.vf_clip_coef == 0.2);
    setup_destroy(setup);

    OK(load((const char *const[]){"pendulum_like", NULL}, NULL, NULL, &setup, err));
    check_ranges(setup, pendulum, 3);
    assert_int_equal(setup->sweep.trials, 16);
    assert_string_equal(setup->sweep.metric, "score");
    assert_int_equal(setup->train.total_agents, 128); /* its game is named in [env]: a config of ours */
    setup_destroy(setup);
    OK(load((const char *const[]){"pendulum_like", NULL}, NULL, (const char *const[]){"base.defaults=4.0", NULL},
            &setup, err));
    check_ranges(setup, pendulum, 3);
    assert_int_equal(setup->train.total_agents, 4096);
}

/* ---- names, values, errors ---- */

static void loads_as(const char *text, const char *const *args, const char *key, const char *want)
{
    SETUP *setup;

    OK(load(NULL, text, args, &setup, err));
    if (!same(config_peek(setup->config, key), want))
        fail_msg("%s is %s, not %s, with:\n%s", key, config_peek(setup->config, key), want, text);
}

#define PUFFER4 "[base]\nenv_name = squared\ncudagraphs = 10\n"
#define PUFFER3 "[base]\npackage = ocean\nenv_name = puffer_squared\n"

TEST(names_and_words_are_read)
{
    loads_as("[base]\nenv_name = squared_continuous puffer_pong squared\n", NULL, "env.name", "pong");
    loads_as(PUFFER4, (const char *const[]){"env.name=memory", NULL}, "env.name", "memory");
    loads_as(PUFFER4 "[train]\nhorizon = 32\n", (const char *const[]){"train.horizon=16", NULL}, "train.horizon", "16");
    loads_as("[env]\nname = squared\n", (const char *const[]){"vec.total_agents=512", NULL}, "train.total_agents",
             "512");
    loads_as("[env]\nname = squared\n", (const char *const[]){"vec.total_agents=512", NULL}, "train.gamma", "0.99");
    loads_as(PUFFER4, (const char *const[]){"base.defaults=none", NULL}, "train.gamma", "0.99");
    loads_as(PUFFER4, (const char *const[]){"base.defaults=3.0", NULL}, "train.seed", "42");
    loads_as("[base]\nenv_name = squared\n[vec]\ntotal_agents = 64\n[sweep]\nmax_runs = 6\n" /* 2 words against 1 */
             "[sweep.train.update_epochs]\ndistribution = int_uniform\nmin = 1\nmax = 4\nscale = auto\n",
             NULL, "policy.core", "mingru");
    loads_as(PUFFER4 "seed = 5\n[train]\nseed = 6\n", NULL, "train.seed", "5");
    loads_as(PUFFER4 "[train]\nseed = 6\n", NULL, "train.seed", "73");
    loads_as(PUFFER4 "[train]\nseed = 6\n", (const char *const[]){"train.seed=7", NULL}, "train.seed", "7");
    loads_as(PUFFER3 "[train]\nseed = 6\n", NULL, "train.seed", "6");
    loads_as(PUFFER3 "[vec]\nnum_envs = 3\n[env]\nnum_envs = 100\n", NULL, "train.total_agents", "300");
    loads_as(PUFFER3 "[vec]\ntotal_agents = 64\nnum_envs = 3\n", NULL, "train.total_agents", "64");
    loads_as(PUFFER4 "[vec]\nnum_envs = 3\n[env]\nnum_envs = 100\n", NULL, "train.total_agents", "4096");
    loads_as(PUFFER3, NULL, "policy.core", "none");
    loads_as(PUFFER3 "rnn_name = None\n", NULL, "policy.core", "none");
    loads_as(PUFFER3 "rnn_name = Recurrent\n[train]\nuse_rnn = True\n", NULL, "policy.core", "lstm");
    loads_as(PUFFER4 "[torch]\nnetwork = LSTM\n[train]\nuse_rnn = 1\n", NULL, "policy.core", "lstm");
    loads_as(PUFFER4 "[torch]\nnetwork = MLP\n", NULL, "policy.core", "mlp");
    loads_as(PUFFER4 "[train]\nuse_rnn = 0\n", NULL, "policy.core", "mingru"); /* 4.0 does not read it */
    loads_as(PUFFER4 "[train]\nuse_rnn = 0\n", (const char *const[]){"policy.core=mlp", NULL}, "policy.core", "mlp");
    loads_as("[env]\nname = memory\n[train]\nuse_rnn = True\n", NULL, "policy.core", "mingru");
    loads_as(PUFFER3 "[rnn]\nhidden_size = 64\ninput_size = 64\n", NULL, "policy.hidden_size", "64");
    loads_as(PUFFER4 "[policy]\nnum_layers = 3.99\n", NULL, "policy.num_layers", "3");
    loads_as(PUFFER4 "policy_name = MinGRU\n", NULL, "policy.core", "mingru");
    /* a name of 3.0's beside the one that 4.0 reads */
    loads_as(PUFFER4 "[train]\nadam_beta1 = 0.8\nbeta1 = 0.7\n", NULL, "train.beta1", "0.7");
    loads_as(PUFFER4 "[vec]\ntotal_agents = 64\nnum_buffers = 2\n[policy]\nhidden_size = 512\n[rnn]\ninput_size = "
                     "256\nhidden_size = 256\n",
             NULL, "policy.hidden_size", "512");
    loads_as(PUFFER4 "[sweep.train.beta1]\nmax = 0.9\n[sweep.train.adam_beta1]\nmin = 0.2\nmax = 0.8\n", NULL,
             "sweep.train.beta1.max", "0.9");
    loads_as(PUFFER4 "[train]\nadam_beta1 = 0.8\n", NULL, "train.beta1", "0.8");
    loads_as(PUFFER4 "[sweep.parameters.train.parameters.gamma]\nmin = 0.8\nmax = 0.9\n", NULL, "train.gamma", "0.995");
    loads_as(PUFFER4 "[env]\nsize = 21\n", NULL, "env.n", "10");
    loads_as(PUFFER3 "[vec]\nnum_envs = 2\n[env]\nnum_envs = 64\n[train]\nbatch_size = 2048\nbptt_horizon = auto\n"
                     "minibatch_size = 512\n",
             NULL, "train.horizon", "16");
    loads_as(PUFFER3 "[train]\nprecision = bfloat16\n", NULL, "train.precision", "bfloat16");
    loads_as(PUFFER3 "[sweep]\nmetric = environment/episode_length\n", NULL, "sweep.metric", "ep_length");
    loads_as(PUFFER4 "[sweep]\nmetric = episode_return\n", NULL, "sweep.metric", "ep_return");
    loads_as(PUFFER4 "[sweep]\nmax_runs = 7\nmax_suggestion_cost = 90\n", NULL, "sweep.trials", "7");
    loads_as("[base]\nenv_name = puffer_pong\n", NULL, "env.frameskip", "1"); /* 3.0's pong, unless a file says */
    loads_as("[base]\nenv_name = pong\n", NULL, "env.frameskip", "8");
}

static void refused(const char *text, const char *says)
{
    struct setup *setup = NULL;

    FAILS(load(NULL, text, NULL, &setup, err), ST_CONFIG, says);
}

/* A pool of older policies is left out with a warning: what is trained is the same game, played by one policy. */
TEST(self_play_is_trained_without_its_pool)
{
    struct setup *setup = NULL;
    char text[1024];

    for (int on = 0; on < 2; on++) {
        snprintf(text, sizeof text,
                 PUFFER4 "[selfplay]\nenabled = %d\nmax_size = 500\na_name_of_tomorrow = 3\n[vec]\ntotal_agents = 64\n"
                         "num_frozen_banks = 1\nfrozen_bank_pct = 0.1\n[sweep]\nmatch_num_games = 4\n"
                         "match_max_ticks = 9\n[sweep.selfplay.swap_winrate]\ndistribution = uniform\nmin = 0.5\n"
                         "max = 0.9\n[sweep.vec.frozen_bank_pct]\nmin = 0.1\nmax = 0.5\n",
                 on);
        OK(load(NULL, text, NULL, &setup, err));
        assert_int_equal(setup->train.total_agents, 64);
        assert_int_equal(setup->dialect.differs.len > 0, on);
        if (on)
            assert_non_null(strstr(setup->dialect.differs.text,
                                   "t.ini:5: selfplay.enabled = 1: no agent is played by an older policy"));
        for (size_t i = 0; i < config_n_sweep_params(setup->config); i++)
            assert_null(strstr(config_sweep_param(setup->config, i)->key, "bank"));
        setup_destroy(setup);
    }
    refused(PUFFER4 "[vec]\nfrozen_bankpct = 1\n", "t.ini:5: unknown key vec.frozen_bankpct");
}

/* What cannot be trained here is an error; all of it at once, with the names that nobody knows. */
TEST(what_changes_the_training_is_refused)
{
    struct setup *setup = NULL;

    refused("[base]\nenv_name = breakout\n[env]\nwidth = 600\n", "t.ini:4: env.width = 600: only 576 is built here");
    refused("[base]\nenv_name = cartpole\n[env]\ncontinuous = 1\n", "env.continuous = 1: only 0|False");
    refused("[base]\nenv_name = breakout\n[sweep.env.width]\nmin = 1\nmax = 2\n",
            "t.ini:3: sweep.env.width: it cannot be swept, only 576");
    refused(PUFFER4 "[env]\nsize = 10\n", "an odd number from 3 is needed");
    refused(PUFFER4 "[policy]\nexpansion_factor = 2\n", "policy.expansion_factor = 2: only 1 is built here");
    refused(PUFFER4 "[torch]\nnetwork = GRU\n", "torch.network = GRU: there is no such network here");
    refused(PUFFER4 "[torch]\nencoder = NatureEncoder\n", "torch.encoder = NatureEncoder: only DefaultEncoder");
    refused(PUFFER3 "rnn_name = Recurrent\n[train]\nuse_rnn = 0\n",
            "train.use_rnn = 0: the network of this config has memory");
    refused(PUFFER3 "[train]\nuse_rnn = True\n", "train.use_rnn = True: the network of this config has no memory");
    refused(PUFFER3 "policy_name = Convolutional\n", "base.policy_name = Convolutional: only Policy|Default|None");
    refused(PUFFER4 "[train]\ngpus = 2\n", "train.gpus = 2: only 0|1 is built here: one device trains a run");
    refused(PUFFER3 "[train]\nbatch_size = 77\n", "train.batch_size = 77: a rollout is agents x horizon");
    refused(PUFFER3 "[train]\nbatch_size = many\n", "train.batch_size = many: a whole number is needed");
    refused(PUFFER3 "[vec]\nnum_envs = 1e10\n[env]\nnum_envs = 1e10\n",
            "vec.num_envs = 1e10: a whole number is needed, at most 2147483647");
    refused(PUFFER4 "[vec]\ntotal_agents = 8\n[train]\ntotal_agents = 16\n",
            "vec.total_agents sets what t.ini:7 has set; keep one");
    refused(PUFFER4 "[sweep.vec.total_agents]\n[sweep.train.total_agents]\n", "is the same parameter as");
    refused("[base]\nenv_name = ocean_of_nothing other\n", "no game 'ocean_of_nothing other'");
    refused("[base]\nenv_name = asteroids\n", "trawl env build ocean/GAME");
    refused("[base]\nenv_name = puffer_squared\n[env]\nname = pong\n",
            "t.ini:4: env.name is pong, but base.env_name at t.ini:2 is puffer_squared; leave one of the two");
    refused("[env]\nname = pong\n[base]\nenv_name = squared\n",
            "t.ini:4: base.env_name is squared, but env.name at t.ini:2 is pong; leave one of the two");
    refused("[base]\nenv_name = squared\ndefaults = 5\n", "base.defaults is 5, allowed is none, 3.0 or 4.0");
    refused("[base]\nenv_name = breakout\nworld_size = 4\n[env]\nheight = 5\nnonsense = 1\n[train]\nlearning_rat = 1\n",
            "4 line(s) of this config cannot be trained here as they are:\n"
            "  t.ini:3: base.world_size = 4: only 0|1 is built here: one device trains a run; remove the line to train "
            "with that\n"
            "  t.ini:5: env.height = 5: only 330 is built here; remove the line to train with that\n"
            "  t.ini:6: unknown key env.nonsense; --help lists the known keys\n"
            "  t.ini:8: unknown key train.learning_rat; did you mean train.learning_rate?");
    FAILS(load(NULL, PUFFER4 "[vec]\nbackand = 1\nzzz = 2\n", NULL, &setup, err), ST_CONFIG,
          "t.ini:6: unknown key vec.zzz");
}

/* An option of ours, of any game, is never taken for a name of theirs; every row leads to an option. */
TEST(the_rows_are_sound)
{
    assert_true(dialect_n_rows <= DIALECT_ROWS_MAX);
    for (size_t g = 0; g < env_count(); g++) {
        SETUP *setup;
        char text[128];
        snprintf(text, sizeof text, "[env]\nname = %s\n", env_at(g)->name);
        OK(load(NULL, text, NULL, &setup, err));
        for (size_t i = 0; i < dialect_n_rows; i++) {
            const struct dialect_row *r = &dialect_rows[i];
            if (config_find_opt(setup->config, r->key) != NULL)
                fail_msg("the option %s of %s is hidden by the dialect", r->key, env_at(g)->name);
            for (size_t k = 0; k < i; k++)
                if (dialect_row_has(&dialect_rows[k], r->key))
                    fail_msg("%s is hidden by %s", r->key, dialect_rows[k].key);
            if (r->how == DIALECT_AS && config_find_opt(setup->config, r->to) == NULL)
                fail_msg("%s leads to %s, which is not an option", r->key, r->to);
            if (r->how != DIALECT_AS && r->why == NULL)
                fail_msg("%s has no reason", r->key);
        }
        for (size_t i = 0; i < dialect_n_values; i++)
            OK(config_check_value(config_find_opt(setup->config, dialect_values[i].key), dialect_values[i].key,
                                  dialect_values[i].to, "here", err));
    }
}

/* A game of one's own may have an option of the name of one of theirs: it is that option, in a file, a sweep and on the
 * command line, though the game's table is added after the file was read. */
TEST(an_option_of_a_game_is_itself)
{
    struct wide {
        int64_t width, num_envs;
    };
    static const struct opt_def wide_defs[] = {
        OPT_ROW_INT(struct wide, width, "5", 2, 100, OPT_LINEAR, 3, 9, "cells", "Columns."),
        OPT_ROW_INT(struct wide, num_envs, "1", 1, 8, OPT_FIXED, 0, 0, "", "A word of its own."),
    };
    static const struct opt_table wide_table = {"env", "Wide", wide_defs, 2, sizeof(struct wide)};
    static const char text[] = "[base]\nenv_name = memory\n[env]\nwidth = 7\nnum_envs = 2\n[sweep.env.width]\nmin = 3\n"
                               "max = 9\n[vec]\ntotal_agents = 64\n";

    for (int bad = 0; bad < 2; bad++) {
        SETUP *setup;
        struct dialect dialect;
        struct wide wide;
        OK(setup_create(&setup, err));
        OK(config_load_text(setup->config, "t.ini", text, err));
        if (bad)
            OK(config_set(setup->config, CONFIG_COMMAND, "env.width", "-3", "command line", err));
        OK(dialect_begin(&dialect, setup->config, err));
        OK(config_add_table(setup->config, &wide_table, err));
        OK(config_set(setup->config, CONFIG_COMMAND, "base.defaults", "none", "command line", err));
        dialect.has_defaults = false;
        OK(dialect_translate(&dialect, setup->config, "wide", err));
        if (bad) {
            FAILS(config_resolve(setup->config, err), ST_CONFIG, "command line: env.width");
        } else {
            OK(config_resolve(setup->config, err));
            OK(config_fill(setup->config, &wide_table, &wide, err));
            assert_true(wide.width == 7 && wide.num_envs == 2);
            assert_string_equal(config_peek(setup->config, "train.total_agents"), "64");
            assert_int_equal(config_n_sweep_params(setup->config), 1);
            assert_string_equal(config_sweep_param(setup->config, 0)->key, "env.width");
        }
        dialect_end(&dialect);
    }
}

/* ---- the message ---- */

static char logged[16384];

static void keep_log(void *ctx, enum log_level level, const char *line)
{
    (void)ctx;
    (void)level;
    snprintf(logged + strlen(logged), sizeof logged - strlen(logged), "%s\n", line);
}

TEST(one_message_lists_it_all)
{
    static const char *const says[] = {
        "read as a config of PufferLib 4.0 (base.env_name at ",
        "what its files leave out, ",
        "base.env_name -> env.name = squared (the first of 'squared squared_continuous' that is a game here",
        "vec.total_agents -> train.total_agents",
        "env.size -> env.n = 5",
        "policy.num_layers = 1.5 is read as 1",
        "train.seed is left out (4.0 takes base.seed = 73)",
        "vec.num_buffers, vec.num_threads, vec.backend (games step on all cores",
        "base.cudagraphs (",
    };
    SETUP *setup;

    logged[0] = '\0';
    log_set_sink(keep_log, NULL);
    OK(load((const char *const[]){"default4", "raw_pl4_squared", NULL}, "[policy]\nnum_layers = 1.5\n", NULL, &setup,
            err));
    log_set_sink(NULL, NULL);
    for (size_t i = 0; i < COUNT(says); i++)
        if (strstr(logged, says[i]) == NULL)
            fail_msg("'%s' is missing in:\n%s", says[i], logged);
    setup_destroy(setup);
    logged[0] = '\0';
    log_set_sink(keep_log, NULL);
    OK(load(NULL, "[env]\nname = squared\n[train]\ngamma = 0.9\n", NULL, &setup, err));
    log_set_sink(NULL, NULL);
    assert_string_equal(logged, "");
}

/* What is printed in our words loads again as the same run and the same sweep. */
TEST(written_in_our_words_it_is_the_same)
{
    for (size_t c = 0; c < COUNT(cases); c++) {
        char game[32];
        SETUP *setup, *again;
        char *text, *second;
        snprintf(game, sizeof game, "%s%d", cases[c].game, cases[c].version);
        OK(load((const char *const[]){game, NULL}, NULL, NULL, &setup, err));
        OK(setup_to_ini(setup, &text, err));
        OK(load(NULL, text, NULL, &again, err));
        assert_int_equal(again->dialect.version, DIALECT_NONE);
        OK(setup_to_ini(again, &second, err));
        assert_string_equal(text, second);
        mem_free(text);
        mem_free(second);
    }
}

TEST_PROGRAM("dialect")
