/* setup.h - the resolved config of a run. A setup owns its config and settings (setup_destroy); it is made by one
 * thread and read by any once it is finished. A wrong value is ST_CONFIG with file and line. */
#pragma once

#include "base/config/opt.h"
#include "base/text/json.h"
#include "study/dialect/dialect.h"
#include "study/setup/outcomes.h"
#include "study/program/program_settings.h"
#include "study/games/sweep_envs.h"
#include "study/setup/sweep_settings.h"
#include "study/setup/track_settings.h"
#include "trainer/trainer.h"

struct config;
struct env_def;
struct trial;

struct setup {
    struct config *config;
    const struct env_def *env; /* of a program: program_env */
    void *env_settings; /* env->options.settings_size bytes */
    struct policy_settings policy;
    struct train_settings train;
    struct sweep_settings sweep;
    struct track_settings track;
    struct program_settings program; /* command "": Trawl trains, and what follows is empty */
    struct program_params params;
    struct outcomes outcomes; /* limits and third objective of a sweep */
    struct sweep_envs envs;
    struct setup *
        games[SWEEP_ENVS_MAX]; /* one trial on each of envs, owned; NULL: this setup is of that game, or of a program */
    struct dialect dialect; /* how the config of another program was read */
    bool has_sweep; /* the sweep's own options are among the tables: false for one trial */
    bool searches; /* set before setup_finish: parameters of a single value are taken into the config */
};

/* Does another program train? */
bool setup_is_program(const struct setup *setup);
/* The tables of what one trial is made of: ret_tables has SETUP_TRIAL_TABLES places; returns their number. */
#define SETUP_TRIAL_TABLES 4
size_t setup_trial_tables(const struct setup *setup, const struct opt_table **ret_tables);

enum status setup_create(struct setup **ret_setup, struct error *err) MUST_USE; /* adds the tables, loads nothing */
void setup_destroy(struct setup *setup);
static inline void setup_destroy_at(struct setup **setup) /* for AT_END */
{
    setup_destroy(*setup);
}
/* word: a game's name or a config file. Of several the later ones win, key by key. */
enum status setup_load(struct setup *setup, const char *word, struct error *err) MUST_USE;
enum status setup_load_all(struct setup *setup, const char *const *words, int n, struct error *err) MUST_USE;
/* A finished setup of an ini text alone, which messages call origin; NULL on failure. */
enum status setup_from_text(struct setup **ret_setup, const char *origin, const char *text, struct error *err) MUST_USE;
/* Prints the config as it is resolved, with its search ranges, as an ini file that loads again. */
enum status setup_print(const struct setup *setup, struct error *err) MUST_USE;
/* Called after every source was loaded: adds the game's table and defaults, resolves, fills; logs warnings. */
enum status setup_finish(struct setup *setup, struct error *err) MUST_USE;

struct setup_override {
    const char *key;
    char value[OPT_STR_MAX];
};
/* A finished setup of the same run with other values and without the sweep's own sections: one trial. */
enum status setup_derive(const struct setup *base, const struct setup_override *overrides, size_t n, const char *origin,
                         struct setup **ret_setup, struct error *err) MUST_USE;
/* The setup of the study's trials on game `env` of its envs: base itself, or one of base->games. */
const struct setup *setup_of_env(const struct setup *base, size_t env);
/* A trial's stored config as a finished setup. */
enum status trial_setup(const struct trial *trial, struct setup **ret_setup, struct error *err) MUST_USE;
/* Every value as ini text; caller: mem_free. */
enum status setup_to_ini(const struct setup *setup, char **ret_text, struct error *err) MUST_USE;
/* The same as JSON; a program's parameters have no types here, so numbers and bools go by their text. The
 * caller deletes it. */
cJSON *setup_to_json(const struct setup *setup);
