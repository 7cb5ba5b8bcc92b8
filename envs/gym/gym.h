/* gym.h - environments of Gymnasium as games, by the names gym:ID, gym:MODULE:ID and gym:MODULE:CLASS. (public)
 *
 * They are stepped by helper processes that run a Python of the user's (envs/gym/bridge.py): nothing of Python is in
 * this process, so any process may open one; `trawl serve` lets a child play them (env_plays_elsewhere). What it is (numbers of observations, choices) is asked of such a helper
 * too, once for each setting. Neither the build nor other games need Python. */
#pragma once

#include <stdbool.h>

#include "base/status.h"
#include "envs/gym/gym_settings.h"

struct env_def;

bool env_is_gym(const char *name);
/* Do all instances of it draw from one stream, so that another number of them plays other games? */
bool gym_shares_stream(const struct env_def *def, const void *settings);
/* The numbers that env.info names become metrics of the table, env/NAME; others that it has had before stay. Any
 * thread. */
void gym_name_numbers(const struct env_def *def, const void *settings);
/* For a film: the same environment, of one instance, whose saved bytes (player_state) are a struct gym_frame. Fails where
 * it gives no frames. */
enum status gym_film(const char *name, const void *settings, const struct env_def **ret_def,
                     struct error *err) MUST_USE;
/* Starts no process. The table stays until this process ends. Any thread. */
enum status gym_open(const char *name, const struct env_def **ret_def, struct error *err) MUST_USE;
