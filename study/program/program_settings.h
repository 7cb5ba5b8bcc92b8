/* program_settings.h - a study whose trials are runs of another program: [sweep] command, and the program's own
 * parameters. These make an option table of their own, section [param]: a search range [sweep.NAME] with a type makes
 * a row, and so does a fixed value NAME = TEXT of [param]. A struct program_params owns its table
 * (program_params_free); nothing here keeps state. Wrong input is ST_CONFIG with file and line. */
#pragma once

#include "base/base.h"
#include "base/config/opt.h"

struct config;
struct env_def;

#define PROGRAM_SECTION "param"
#define PROGRAM_METRIC "score" /* sweep.metric, unless the config names another */

struct program_settings {
    char command[OPT_STR_MAX]; /* "": trials are trained by Trawl itself */
    char directory[OPT_STR_MAX]; /* absolute */
    char trial_time[OPT_STR_MAX]; /* a time; "0": no limit */
    double grace_s;
    int64_t trial_seed;
    char trial_env[OPT_STR_MAX];
};
extern const struct opt_table program_opt_table; /* section [sweep] */
/* Stands where a game would: setup->env of a program's setup. */
extern const struct env_def program_env;

struct program_params {
    struct opt_table table; /* its rows and their texts are owned */
    size_t cap;
};
/* Reads the names from what was loaded into config, and spells [sweep.NAME] as [sweep.param.NAME] there. The caller
 * adds the table. */
enum status program_params_make(struct program_params *ret_params, struct config *config, struct error *err) MUST_USE;
void program_params_free(struct program_params *params);

#define PROGRAM_NONE "none" /* the command of a study whose trials only clients outside train */
/* Is sweep.command set? Without it and without a game, sweep.devices = none means a program too: the clients'. */
bool program_is_named(const struct config *config);
bool program_is_outside(const struct config *config); /* no command of its own */
/* Refuses options of Trawl's own trainer, which have no effect on a program. */
enum status program_refuse_trainer(const struct config *config, struct error *err) MUST_USE;
