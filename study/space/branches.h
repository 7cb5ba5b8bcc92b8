/* branches.h - shorter runs that a long one holds (sweep.branches): where they end, and whether a study can have them.
 * A branch is a trial of its own: its config differs from its run's in train.total_timesteps alone, and training by it
 * gives the same bytes. */
#pragma once

#include "base/base.h"
#include "base/text/json.h"

struct search;
struct setup;
struct train_settings;

#define BRANCHES_STEPS_KEY "train.total_timesteps"

/* ST_CONFIG: the study's runs hold no shorter ones, or their length is not searched. */
enum status branches_check(const struct setup *setup, const struct search *search, struct error *err) MUST_USE;
/* Env steps, ascending, at which a run is evaluated: whole rollouts, evenly spread by ratio from the shortest run of
 * the space (least) to this one's length, which is not among them. Returns their number: n and SWEEP_BRANCHES_MAX at
 * most. */
size_t branches_of_run(const struct train_settings *train, double least, size_t n, int64_t *ret_steps);
/* The same for a program whose run has `length` steps. */
size_t branches_of_program(double length, double least, size_t n, int64_t *ret_steps);
/* The parameter that is the length of a run; dim: it is not searched. */
size_t branches_length(const struct setup *setup, const struct search *search);
/* The config (text; caller: mem_free) with another length of its run, whose option is key; source: what sets it, for
 * messages. */
enum status branches_config(const struct setup *setup, const char *key, int64_t env_steps, const char *source,
                            char **ret_text, struct error *err) MUST_USE;
/* The params (JSON object, text) of a trial with another length of its run; caller: mem_free. */
enum status branches_params(const char *params, const char *key, int64_t env_steps, char **ret_params,
                            struct error *err) MUST_USE;
