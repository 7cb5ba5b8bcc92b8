/* trial_program.h - a trial as the run of a program: its folder, its config file, its environment, then program_run.h.
 * Plain functions; the run that is started belongs to the caller. */
#pragma once

#include "base/base.h"

struct program_job;
struct program_run;
struct setup;

struct trial_program {
    const struct setup *setup; /* of the trial, a program's */
    const char *config; /* its text, for the file config.ini; borrowed, like all texts */
    const char *metric; /* whose last value is the score */
    const char *study; /* NULL: none */
    int64_t number, attempt; /* attempt: from 1 */
    const char *dir; /* the trial's own folder, made when missing: config.ini, output.log, metrics.jsonl, and what the
                      * program puts there */
    int gpu; /* its ordinal among those that we see; -1: the program sees what we see */
    int n_gpus; /* from it on; 0: one */
    bool echo; /* pass its output on to our stderr */
    bool needs_step, own_cost; /* as in a program_job */
};

/* The same in two steps, for a command whose words are known: the folder with its files, then the start. */
struct trial_folder { /* borrowed for trial_place_make alone */
    const char *dir, *config, *study, *env; /* env NULL or "": none */
    int64_t number, attempt, seed;
    int gpu, n_gpus;
};
struct trial_place; /* trial_place_free; NULL is fine there */
enum status trial_place_make(struct trial_place **ret_place, const struct trial_folder *folder,
                             struct error *err) MUST_USE;
void trial_place_free(struct trial_place *place);
const char *trial_place_dir(const struct trial_place *place); /* absolute */
const char *trial_place_config(const struct trial_place *place); /* its file */
/* Of job, env, log_path and metrics_path are the place's: whatever the caller has there is not used. */
enum status trial_place_start(const struct trial_place *place, const struct program_job *job,
                              struct program_run **ret_run, struct error *err) MUST_USE;

enum status trial_program_start(const struct trial_program *trial, struct program_run **ret_run,
                                struct error *err) MUST_USE;
