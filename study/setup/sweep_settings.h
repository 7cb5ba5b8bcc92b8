/* sweep_settings.h - the [sweep] options: how a study searches, where its trials run, when it ends. Plain values. */
#pragma once

#include "base/base.h"
#include "base/config/opt.h"

#define SWEEP_TRIALS_MAX 1000000
#define SWEEP_BRANCHES_MAX 16
#define SWEEP_SEEDS_MAX 100
#define SWEEP_LANES_MAX 128 /* trials at a time on a device: as many kernels as a GPU runs at a time */

/* Checkpoints of finished trials. */
enum sweep_keep { SWEEP_KEEP_NONE, SWEEP_KEEP_FRONT, SWEEP_KEEP_ALL };

struct sweep_settings {
    int method; /* enum suggest_method */
    char metric[OPT_STR_MAX];
    char objective[OPT_STR_MAX]; /* a metric; "": none */
    int objective_goal; /* 0: minimize, 1: maximize */
    int objective_scale; /* 0: linear, 1: log */
    char require[OPT_STR_MAX]; /* an expression that each trial fulfils; "": none */
    int goal; /* 0: maximize, 1: minimize */
    int64_t trials;
    char budget[OPT_STR_MAX], wall_time[OPT_STR_MAX], device_time[OPT_STR_MAX]; /* times, "0": no limit */
    char target[OPT_STR_MAX]; /* a score; "": none */
    double min_gain; /* share of the hypervolume an hour; 0: off */
    char gain_window[OPT_STR_MAX];
    int64_t priority;
    int64_t seed, n_init;
    int64_t seeds; /* runs of each config */
    int64_t branches; /* shorter runs that each run gives; 0: none */
    /* a program's parameter that is the length of a run; "": its runs hold no shorter ones */
    char branches_length[OPT_STR_MAX];
    char envs[OPT_STR_MAX]; /* games of each config; "": env.name alone */
    double max_cost;
    bool stop_overruns;
    int cost; /* 0: wall, 1: device, 2: env_steps */
    double confirm; /* share of the budget for runs of advice under fresh seeds; 0: none */
    int64_t max_failures;
    int keep; /* enum sweep_keep */
    double checkpoint_interval_s; /* 0: only when a trial is stopped */
    char devices[OPT_STR_MAX]; /* auto|cpu|cuda:0,cuda:1|cuda:all|ssh:...|slurm:...|cmd:... */
    char device_costs[OPT_STR_MAX]; /* alike|any|NAME=FACTOR,... */
    char ssh[OPT_STR_MAX], remote_program[OPT_STR_MAX];
    int64_t runs_per_device;
    double hang_timeout_s; /* 0: never */
    char launcher[OPT_STR_MAX]; /* "none", or how nodes are started: "slurm:gpu=1*16" */
    double lease_s; /* how long a client outside may be silent */
    char worker_memory[OPT_STR_MAX]; /* auto, 0 or bytes */
    bool is_program; /* another program trains; no option of its own */
};
extern const struct opt_table sweep_opt_table;
/* Does the option (its whole key) belong to the machine, or to when a study ends, and not to its search or its trials?
 * It may change when the study continues, and differ between studies of one search. */
bool sweep_option_is_apart(const char *key);
