/* sweep.h - what the files of sweep/ share: command line, resolved setup of a run, search space, terminal. */
#ifndef SWEEP_SWEEP_H
#define SWEEP_SWEEP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/config.h"
#include "base/json.h"
#include "base/status.h"
#include "base/strbuf.h"
#include "envs/envs.h"
#include "gp/gp.h"
#include "store/store.h"
#include "sweep/dialect.h"
#include "trainer/trainer.h"
#include "web/track.h"

/* version.c: "0.1.0", "abc1234", "trawl 0.1.0 (abc1234)" */
extern const char program_version[], program_commit[], program_text[];

#define OUTPUT_MAX_BYTES (256u << 20) /* of any text we build: reports, listings */

/* ---- commands: parse argv (argv[0] is the command's name), print data to stdout, progress to stderr ---- */

typedef enum status command_fn(int argc, char **argv, struct error *err);
command_fn cmd_train, cmd_eval, cmd_sweep, cmd_ls, cmd_show, cmd_report, cmd_export, cmd_envs, cmd_bench, cmd_doctor,
    cmd_rerun, cmd_serve;
command_fn cmd_stop, cmd_pause, cmd_continue, cmd_add, cmd_priority, cmd_retry, cmd_sync;
command_fn cmd_daemon, cmd_check, cmd_backup;
command_fn cmd_worker; /* hidden: the process that trains for a controller */
command_fn cmd_reference; /* hidden: docs/options.md */

/* ---- cli.c: options of one command ---- */

enum cli_kind { CLI_FLAG, CLI_TEXT, CLI_INT, CLI_SECONDS };

struct cli_opt {
    const char *name; /* "store": --store */
    char letter; /* 'o': also -o; 0: none */
    enum cli_kind kind;
    void *ret; /* bool *, const char **, int64_t *, double * (seconds) */
    const char *arg; /* "FILE"; NULL for a flag */
    const char *help;
};

#define CLI_MAX_WORDS 16

struct cli {
    const char *name; /* "train" */
    const char *synopsis; /* "trawl train ENV|CONFIG [--section.key value ...]" */
    const char *about; /* what it does, a few lines */
    const char *examples; /* lines, indented by two */
    const struct cli_opt *opts;
    size_t n_opts;
    int min_words, max_words;
    const char *words_text; /* what the words are, for messages: "a game or a config file" */
};

struct cli_words {
    const char *v[CLI_MAX_WORDS];
    int n;
    bool help; /* --help was given and printed: return ST_OK at once */
};

/* Words and options after argv[0]; options of the config ("--train.seed 3") must have been taken out before. */
enum status cli_parse(const struct cli *cli, int argc, char **argv, struct cli_words *ret_words,
                      struct error *err) MUST_USE;
/* Prints a JSON value (taken, NULL: out of memory) to stdout, as one line. */
enum status cli_print_json(cJSON *json, struct error *err) MUST_USE;
/* Prints the help of the options of a section (NULL: of all), behind a command's own help. */
enum status cli_print_options(const struct config *config, const char *section, struct error *err) MUST_USE;
/* "90", "90s", "30m", "2h", "1.5d" -> seconds > 0. */
bool parse_seconds(const char *text, double *ret_s);
/* "35 ms", "4.2 s", "3m 05s", "1h 02m", "2d 03h". */
const char *format_seconds(double s, char buf[32]);
/* Is PATH's directory there and writable? Before hours of work, not after. */
enum status check_writable(const char *path, struct error *err) MUST_USE;
/* Besides: is there no store that would be written over? */
enum status check_output(const char *path, struct error *err) MUST_USE;

/* ---- signals.c ---- */

/* SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2 ask to stop; another two seconds later or more ends the program at once. */
void signals_catch(void);
bool signals_stop(void); /* has one come? */

/* ---- setup.c: the resolved config of a run ---- */

#define SWEEP_TRIALS_MAX 1000000

/* Checkpoints of finished trials. */
enum sweep_keep { SWEEP_KEEP_NONE, SWEEP_KEEP_FRONT, SWEEP_KEEP_ALL };

struct sweep_settings {
    int method; /* enum suggest_method */
    char metric[OPT_STR_MAX];
    int goal; /* 0: maximize, 1: minimize */
    int64_t trials;
    char budget[OPT_STR_MAX], wall_time[OPT_STR_MAX], device_time[OPT_STR_MAX]; /* times, "0": no limit */
    char target[OPT_STR_MAX]; /* a score; "": none */
    double min_gain; /* share of the hypervolume an hour; 0: off */
    char gain_window[OPT_STR_MAX];
    int64_t priority;
    int64_t seed, n_init;
    double max_cost;
    int cost; /* 0: wall, 1: device, 2: env_steps */
    bool early_stop;
    double confirm; /* share of the budget for runs of advice under fresh seeds; 0: none */
    int64_t max_failures;
    int keep; /* enum sweep_keep */
    double checkpoint_interval_s; /* 0: only when a trial is stopped */
    char devices[OPT_STR_MAX]; /* auto|cpu|cuda:0,cuda:1|cuda:all */
    int64_t runs_per_device;
    double hang_timeout_s; /* 0: never */
    char worker_memory[OPT_STR_MAX]; /* auto, 0 or bytes */
};
extern const struct opt_table sweep_opt_table;

struct setup {
    struct config *config;
    const struct env_def *env;
    void *env_settings; /* env->options.settings_size bytes */
    struct policy_settings policy;
    struct train_settings train;
    struct sweep_settings sweep;
    struct track_settings track;
    struct dialect dialect; /* how the config of another program was read */
    bool has_sweep; /* the sweep's own options are among the tables: false for one trial */
    bool searches; /* set before setup_finish: parameters of a single value are taken into the config */
};

enum status setup_create(struct setup **ret_setup, struct error *err) MUST_USE; /* tables; nothing loaded */
void setup_destroy(struct setup *setup);
/* word: a game's name or a config file. Of several the later ones win, key by key. */
enum status setup_load(struct setup *setup, const char *word, struct error *err) MUST_USE;
enum status setup_load_all(struct setup *setup, const char *const *words, int n, struct error *err) MUST_USE;
/* Prints the config as it is resolved, with its search ranges, as an ini file that loads again. */
enum status setup_print(const struct setup *setup, struct error *err) MUST_USE;
/* After every source was loaded: the game's table and defaults, resolve, fill; logs warnings. */
enum status setup_finish(struct setup *setup, struct error *err) MUST_USE;

struct setup_override {
    const char *key;
    char value[OPT_STR_MAX];
};
/* A finished setup of the same run with other values and without the sweep's own sections: one trial. */
enum status setup_derive(const struct setup *base, const struct setup_override *overrides, size_t n, const char *origin,
                         struct setup **ret_setup, struct error *err) MUST_USE;
/* A trial's stored config as a finished setup. */
enum status trial_setup(const struct trial *trial, struct setup **ret_setup, struct error *err) MUST_USE;
/* Every value as ini text; caller: mem_free. */
enum status setup_to_ini(const struct setup *setup, char **ret_text, struct error *err) MUST_USE;

/* ---- run.c: a device and a trainer for a setup ---- */

struct run {
    struct kern *kern;
    int device; /* train.device and threads that kern was opened with */
    int64_t threads;
    int ordinal; /* which GPU; set before it is opened */
    struct trainer *trainer;
    struct trainer_cache *cache; /* on a GPU: what earlier trainers of this run leave to later ones */
};
/* run starts zeroed; an open device of the same kind is kept. */
enum status run_open_device(struct run *run, const struct setup *setup, struct error *err) MUST_USE;
enum status run_open(struct run *run, const struct setup *setup, struct error *err) MUST_USE;
/* On a GPU: loads what a run of this setup needs and leaves a trainer of its shape in the cache, so that no trial has that
 * in its cost. Failures are for the trial to meet. */
void run_warm_up(struct run *run, const struct setup *setup);
void run_close(struct run *run);
/* {"env": {"ms": 12.3, "percent": 4.5}, ...}; NULL: out of memory. */
cJSON *run_profile_json(const double phase_s[PHASE_COUNT]);

/* ---- checkpoint_label.c: whose a checkpoint is, and which build on which device made it ---- */

#define CHECKPOINT_LABEL_MAX 512
#define CHECKPOINT_THEN ", then by " /* between makers */
/* "trial 17 of the study first (study 3 of ..., config 1a2b3c4d)": no other trial of any store is called that. */
void checkpoint_owner(const struct study *study, const struct trial *trial, char *buf, size_t size);
/* "trawl 0.1.0 (abc1234) on DEVICE"; of a run that others have made so far (before): "BEFORE, then by ...". before: NULL or ""
 * for a new run. */
void checkpoint_maker(const char *device, const char *before, char *buf, size_t size);
/* The text for trainer_save; owner NULL: of a training alone. Caller: mem_free. */
enum status checkpoint_label(const char *owner, const char *maker, const char *config, char **ret_text,
                             struct error *err) MUST_USE;
/* Both are "" where the file does not say. */
enum status checkpoint_read_label(const char *path, char *ret_owner, char *ret_maker, size_t size,
                                  struct error *err) MUST_USE;

/* ---- evaluate.c: the evaluation that a run in this process ends with ---- */

/* trainer_eval with a line of progress on stderr every few seconds (not when quiet); a signal stops it. */
enum status evaluate(struct trainer *trainer, const struct eval_settings *settings, bool quiet,
                     struct eval_result *ret_result, struct error *err) MUST_USE;
/* "256 episodes", or how many of them ended within how many steps. */
const char *evaluate_text(const struct eval_result *result, char buf[160]);
/* score, score_se, ..., episodes, unfinished, max_steps, eval_s; false: out of memory. */
bool evaluate_add_json(cJSON *json, const struct eval_result *result);
void evaluate_print(const struct eval_result *result); /* a line to stdout */

/* ---- term.c: a block of lines redrawn in place on a terminal ---- */

int term_width(int fd); /* columns of the terminal that fd is; 80 when it does not say */
int term_height(int fd); /* lines; 24 when it does not say */
bool term_begin(void); /* false: stderr is no terminal that can; log lines then go out plainly */
void term_draw(const char *text); /* lines; cut to the terminal's width */
void term_print(const char *line); /* a line of another process, above the block if there is one */
void term_end(void); /* leaves the last block standing, shows the cursor */
void term_emergency(void); /* async-signal-safe: shows the cursor */
/* "[####------]" of width cells. */
const char *term_bar(double fraction, int width, char buf[80]);

/* dashboard.c: what `trawl train` shows */
struct dashboard {
    bool tty;
    const char *title;
    const char *device;
    int64_t total_steps;
    double max_seconds;
};
void dashboard_begin(struct dashboard *d, const char *title, const char *device, const struct train_settings *train);
void dashboard_report(struct dashboard *d, const struct train_metrics *m);
void dashboard_end(struct dashboard *d);

#endif
