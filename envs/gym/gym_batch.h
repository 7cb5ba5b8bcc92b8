/* gym_batch.h - the functions of struct env_def for environments of Gymnasium. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text/json.h"
#include "base/rng.h"
#include "base/status.h"

struct env_def;
struct env_io;
struct env_log;
struct env_shape;
struct gym_settings;

/* The next name of env.info as env/NAME, *list past it; false: there is none. */
#define GYM_NUMBER_MAX 64
bool gym_next_number(const char **list, char *name, size_t size);
size_t gym_number_at(const struct env_def *def, const char *name); /* its index among the table's numbers */

/* Do all instances of a process step by one call? */
bool gym_is_vector(const char *name, const struct gym_settings *settings);

/* How many processes step single instances. The program needs a core as well: with processes on all of them quick games
 * have half the rate. Slow ones need them all, so one is left free where each process then steps at most a quarter
 * more. */
size_t gym_spread(size_t cores, size_t n_envs);

/* How many step its instances. By default one for each core, see gym_spread; of a vector environment, whose threads are its
 * own, one, and two of one that shows images: the one's are copied while the other's threads play. */
size_t gym_processes(const char *name, const struct gym_settings *settings, const struct env_shape *shape);

/* The task of a helper that makes no instance, but describes one: n = 0. Caller deletes. */
cJSON *gym_task(const struct env_def *def, const struct gym_settings *settings, size_t n);

enum status gym_batch_open(const struct env_def *def, const void *settings, size_t n_envs, void **ret_states,
                           struct error *err) MUST_USE;
void gym_batch_close(const void *settings, void *states, size_t n_envs);
void gym_batch_reset(const void *settings, void *states, struct rng root, size_t from, size_t to);
void gym_batch_observe(const void *settings, const void *states, float *obs, uint8_t *mask, size_t from, size_t to);
void gym_batch_begin(const void *settings, void *states, const struct env_io *io, size_t from, size_t to);
void gym_batch_step(const void *settings, void *states, struct env_log *logs, const struct env_io *io, size_t from,
                    size_t to);
double gym_batch_take_numbers(void *states, size_t n_envs, double *ret_sums);
double gym_batch_outside_s(const void *states);
size_t gym_batch_film_bytes(const void *states, size_t n_envs);
void gym_batch_film_save(const void *states, size_t n_envs, void *bytes);
enum status gym_batch_failed(const void *states, struct error *err) MUST_USE;
