/* config_test.h - a small set of option tables for the tests of config. */
#pragma once

#include "tests/check.h"
#include "base/config/config.h"

/* One that is destroyed at the end of the block that declares it. */
#define CONFIG __attribute__((cleanup(config_drop))) struct config

static inline void config_drop(struct config **config)
{
    config_destroy(*config);
}

struct train {
    int64_t total_timesteps, total_agents, horizon, seed;
    double learning_rate, gamma;
    bool anneal_lr;
    int optimizer;
};

struct policy {
    int64_t hidden_size;
    char note[OPT_STR_MAX];
};

struct env_common {
    char name[OPT_STR_MAX];
};

struct env_game {
    int64_t frameskip;
};

struct sweep {
    int64_t trials;
};

static const struct opt_def train_defs[] = {
    OPT_ROW_INT(struct train, total_timesteps, "10M", 1, 1e15, OPT_LOG, 1e5, 1e9, "steps", "Env steps to train for."),
    OPT_ROW_INT(struct train, total_agents, "1024", 1, 1e6, OPT_POW2, 256, 16384, "agents", "Agents stepped together."),
    OPT_ROW_INT(struct train, horizon, "64", 1, 1e5, OPT_POW2, 8, 1024, "steps", "Steps of each rollout."),
    OPT_ROW_INT(struct train, seed, "1", 0, 0x1p62, OPT_FIXED, 0, 0, "", "Seed of all random streams."),
    OPT_ROW_FLOAT(struct train, learning_rate, "0.015", 0, 1, OPT_LOG, 1e-5, 0.1, "1/update", "Step size."),
    OPT_ROW_FLOAT(struct train, gamma, "0.99", 0, 1, OPT_LOGIT, 0.8, 0.9999, "", "Discount of future reward."),
    OPT_ROW_BOOL(struct train, anneal_lr, "true", "Whether the step size falls by a cosine."),
    OPT_ROW_ENUM(struct train, optimizer, "muon", "adam|muon", OPT_CATEGORICAL, "Update rule."),
};

static const struct opt_def policy_defs[] = {
    OPT_ROW_INT(struct policy, hidden_size, "128", 1, 4096, OPT_POW2, 32, 1024, "", "Width of the network."),
    OPT_ROW_STR(struct policy, note, "", "Free text."),
};

static const struct opt_def env_defs[] = {
    OPT_ROW_STR(struct env_common, name, "cartpole", "Which game."),
};

static const struct opt_def game_defs[] = {
    OPT_ROW_INT(struct env_game, frameskip, "4", 1, 64, OPT_LINEAR, 1, 8, "frames", "Frames of one action."),
};

static const struct opt_def sweep_defs[] = {
    OPT_ROW_INT(struct sweep, trials, "100", 1, 1e6, OPT_FIXED, 0, 0, "", "Trials to run."),
};

#define TABLE(name_, section_, title_, defs_, settings_)                                                               \
    static const struct opt_table name_ = {section_, title_, defs_, COUNT(defs_), sizeof(settings_)}

/* The two env tables are apart on purpose: they share one section. */
TABLE(env_table, "env", "Environment", env_defs, struct env_common);
TABLE(train_table, "train", "Training", train_defs, struct train);
TABLE(policy_table, "policy", "Policy", policy_defs, struct policy);
TABLE(game_table, "env", "Breakout", game_defs, struct env_game);
TABLE(sweep_table, "sweep", "Sweep", sweep_defs, struct sweep);

static inline enum status new_config(struct config **ret_config, struct error *err)
{
    static const struct opt_table *const tables[] = {&env_table, &train_table, &policy_table, &game_table,
                                                     &sweep_table};

    *ret_config = config_create();
    for (size_t i = 0; i < COUNT(tables); i++)
        TRY(config_add_table(*ret_config, tables[i], err));
    return ST_OK;
}

/* Text and arguments into a resolved config. The caller destroys it in any case. */
static inline enum status try_config(struct config **ret_config, const char *text, const char *const *args,
                                     struct error *err)
{
    char *argv[32];
    int argc = 0;

    TRY(new_config(ret_config, err));
    if (text != NULL)
        TRY(config_load_text(*ret_config, "x.ini", text, err));
    while (args != NULL && args[argc] != NULL && argc < 31) {
        argv[argc] = (char *)(uintptr_t)args[argc];
        argc++;
    }
    argv[argc] = NULL;
    TRY(config_take_args(*ret_config, &argc, argv, err));
    return config_resolve(*ret_config, err);
}

static inline struct config *good_config(const char *text, const char *const *args)
{
    struct config *config = NULL;
    struct error err = {0};

    if (try_config(&config, text, args, &err) != ST_OK)
        fail_msg("%s", err.text);
    return config;
}
