/* limits.h - when a study ends, and its share of the devices: struct limits (store/store.h) from a config, in a
 * request, and changed for a study that exists. One thread. */
#pragma once

#include "base/base.h"
#include "base/text/json.h"

struct limits;
struct store;
struct study;
struct sweep_settings;

/* The limits of a config. */
void limits_from_settings(const struct sweep_settings *settings, struct limits *ret_limits);
void limits_default(struct limits *limits); /* without any limit: 100 trials */
void limits_add_json(cJSON *object, const struct limits *limits);
/* Takes the limits that a request gives; an absent one stays as it is. ST_USAGE: out of range, or not a number. */
enum status limits_take_json(const cJSON *json, struct limits *limits, struct error *err) MUST_USE;
bool limits_target_is_met(const struct study *study, double score); /* it has a target, and score is as good */
/* Counts the study's trials in the store, in any state; sweep.trials does not count branches. */
enum status limits_count_trials(struct store *store, const struct study *study, bool branches_too, int64_t *ret_n,
                                struct error *err) MUST_USE;
/* Could the study have these limits, each a total? ST_USAGE: it has more trials already than a new limit allows. */
enum status limits_check(struct store *store, const struct study *study, const struct limits *want,
                         struct error *err) MUST_USE;
/* Checks the new limits, stores them and sets study->limits: the one way to change the limits of a study that exists. A
 * study that has ended stays ended; the caller may change that. */
enum status limits_change(struct store *store, struct study *study, const struct limits *want,
                          struct error *err) MUST_USE;
