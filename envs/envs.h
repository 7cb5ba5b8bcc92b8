/* envs.h - registry of games and host-side stepping of a batch (public face of envs/).
 * Stepping splits instances over a pool without allocation and without locks; results do not depend on the number
 * of threads, because every instance owns its random stream and its log. */
#ifndef ENVS_ENVS_H
#define ENVS_ENVS_H

#include <stddef.h>

#include "base/config/opt.h"
#include "base/pool.h"
#include "base/status.h"
#include "envs/env.h"

/* A default that the env sets in another section: {"train.reward_clip", "1"}. */
struct env_default {
    const char *key, *value;
};

struct env_def {
    uint32_t api_version; /* ENV_API_VERSION; a mismatch is refused by env_batch_create */
    const char *name;
    const char *summary; /* one line for `trawl envs` */
    struct opt_table options; /* section "env"; settings_size is the settings struct's */
    const struct env_default *defaults;
    size_t n_defaults;
    size_t state_size;
    size_t track_at; /* where the struct env_track lies in a state; 0: it has none */
    /* Checks settings beyond their ranges and gives the shape. */
    enum status (*shape)(const void *settings, struct env_shape *ret_shape, struct error *err);
    /* Batch loops over instances [from, to): the game's code inlined. states: (n_envs, state_size). */
    void (*reset_range)(const void *settings, void *states, struct rng root, size_t from, size_t to);
    void (*observe_range)(const void *settings, const void *states, float *obs, uint8_t *mask, size_t from, size_t to);
    void (*step_range)(const void *settings, void *states, struct env_log *logs, const struct env_io *io, size_t from,
                       size_t to);
};

size_t env_count(void);
const struct env_def *env_at(size_t i); /* i < env_count() */
const struct env_def *env_find(const char *name); /* NULL if unknown */
const char *env_nearest(const char *name); /* for messages */

/* Is the game of this interface version, and are its settings and the number of instances possible? Gives its shape. */
enum status env_def_check(const struct env_def *def, const void *settings, size_t n_envs, struct env_shape *ret_shape,
                          struct error *err) MUST_USE;

struct env_batch;

/* settings is copied. Instance i draws from rng_split(root, i). */
enum status env_batch_create(struct env_batch **ret_batch, const struct env_def *def, const void *settings,
                             size_t n_envs, struct rng root, struct error *err) MUST_USE;
void env_batch_destroy(struct env_batch *batch);
void env_batch_set_root(struct env_batch *batch, struct rng root); /* for the next reset */

/* First episodes. obs, mask as in env_io. */
void env_batch_reset(struct env_batch *batch, struct pool *pool, float *obs, uint8_t *mask);
void env_batch_step(struct env_batch *batch, struct pool *pool, const struct env_io *io);
/* Only instances [from, to); io is still the whole batch's. */
void env_batch_step_part(struct env_batch *batch, struct pool *pool, const struct env_io *io, size_t from, size_t to);

/* Sum over instances in index order, then cleared. */
void env_batch_take_log(struct env_batch *batch, struct env_log *ret_log);
/* That of each instance (n_envs), then cleared. */
void env_batch_take_logs(struct env_batch *batch, struct env_log *ret_logs);

/* Whole state as bytes (states, then logs, each in the order of the instances), for bit-exact resume; observe again
 * after a load. */
size_t env_batch_state_bytes(const struct env_batch *batch);
void env_batch_save(const struct env_batch *batch, void *bytes);
void env_batch_load(struct env_batch *batch, const void *bytes);
void env_batch_observe(const struct env_batch *batch, struct pool *pool, float *obs, uint8_t *mask);

#endif
