/* envs.h - list of games and host-side stepping of a batch (public face of envs/).
 * Stepping splits instances over a pool without allocation and without locks; results do not depend on the number
 * of threads, because every instance owns its random stream and its log. */
#pragma once

#include <stddef.h>

#include "base/config/opt.h"
#include "base/os/pool.h"
#include "base/status.h"
#include "envs/draw.h"
#include "envs/env.h"
#include "envs/env_def.h"

/* Built-in games. */
size_t env_count(void);
const struct env_def *env_at(size_t i); /* i < env_count() */
const struct env_def *env_find(const char *name); /* NULL if unknown */
#define ENV_HINT_MAX 128
/* What a message about an unknown name ends with: "; did you mean 'pong'? `trawl envs` lists all". buf:
 * (ENV_HINT_MAX) */
const char *env_hint(const char *name, char *buf);

/* Is the game of this interface version, and are its settings and the number of instances possible? Gives its shape. */
enum status env_def_check(const struct env_def *def, const void *settings, size_t n_envs, struct env_shape *ret_shape,
                          struct error *err) MUST_USE;

struct env_batch;

/* settings is copied. Instance i draws from rng_split(root, i). */
enum status env_batch_create(struct env_batch **ret_batch, const struct env_def *def, const void *settings,
                             size_t n_envs, struct rng root, struct error *err) MUST_USE;
void env_batch_destroy(struct env_batch *batch);
/* After creation, of a game whose observations are bytes: the batch gives f32 all the same, (A, obs_size), bytes
 * divided by byte_scale. */
enum status env_batch_widen(struct env_batch *batch, struct error *err) MUST_USE;
void env_batch_set_root(struct env_batch *batch, struct rng root); /* for the next reset */
size_t env_batch_agents(const struct env_batch *batch); /* of all instances */
/* What went wrong in a step since creation, ST_OK: nothing. */
enum status env_batch_failed(const struct env_batch *batch, struct error *err) MUST_USE;

/* Seconds in which processes of the game's own have stepped it since the last reset; 0 for games that have none. */
double env_batch_outside_s(const struct env_batch *batch);

/* First episodes. obs, mask as in env_io. */
void env_batch_reset(struct env_batch *batch, struct pool *pool, float *obs, uint8_t *mask);
void env_batch_step(struct env_batch *batch, struct pool *pool, const struct env_io *io);
/* Only instances [from, to), in two calls; io is still the whole batch's, the same in both. Between them a game with
 * processes of its own steps, and, unless it is undivided, further parts may be begun, which then end in the same
 * order. */
bool env_batch_overlaps(const struct env_batch *batch); /* Is it such a game, and not undivided? */
void env_batch_begin_part(struct env_batch *batch, const struct env_io *io, size_t from, size_t to);
void env_batch_end_part(struct env_batch *batch, struct pool *pool, const struct env_io *io, size_t from, size_t to);

/* Sum over instances in index order, then cleared. */
void env_batch_take_log(struct env_batch *batch, struct env_log *ret_log);
/* That of each instance (n_envs), then cleared. */
void env_batch_take_logs(struct env_batch *batch, struct env_log *ret_logs);

/* Sums of the game's named numbers (def->n_numbers) over the episodes since the last call; returns how many those
 * were. */
double env_batch_take_numbers(struct env_batch *batch, double *ret_sums);

/* Whole state as bytes (states, then logs, each in the order of the instances), for bit-exact resume; observe again
 * after a load. A game whose memory cannot be saved has only logs there: it continues as it is after a load. */
size_t env_batch_state_bytes(const struct env_batch *batch);
void env_batch_save(const struct env_batch *batch, void *bytes);
void env_batch_load(struct env_batch *batch, const void *bytes);
void env_batch_observe(const struct env_batch *batch, struct pool *pool, float *obs, uint8_t *mask);

/* An observation as a game gives it, as numbers (obs_size): bytes times scale, f32 as they are. */
void env_numbers(const struct env_shape *shape, const void *row, float scale, float *ret_numbers);

/* The picture of one instance, by what env_batch_save has first: its state_size bytes, or what the game's save
 * wrote. */
void env_draw(const struct env_def *def, const void *settings, const void *state, struct env_picture *ret_picture);
