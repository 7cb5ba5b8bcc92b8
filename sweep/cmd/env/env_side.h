/* env_side.h - a batch of a game with all tensors of a step, for `trawl env check`: the rows lie between bytes that
 * nothing may write. Owned by env_side_close; one thread. */
#pragma once

#include "base/base.h"
#include "envs/envs.h"

struct env_side {
    struct env_batch *batch;
    struct env_shape shape;
    size_t n_agents, n_actions, mask_width;
    size_t obs_bytes;
    int32_t *actions; /* (n_agents, n_heads), like reals */
    float *reals;
    float *obs, *final_obs, *rewards;
    uint8_t *terms, *truncs, *mask;
    struct env_io io;
    char *block; /* of all tensors but the actions, with guards between */
    size_t block_bytes;
};

/* False after printing why not; env_side_close is fine then. */
bool env_side_open(struct env_side *s, const struct env_def *def, const void *settings, size_t n_envs, uint64_t seed,
                   uint8_t fill);
void env_side_close(struct env_side *s);
void env_side_reset(struct env_side *s, struct pool *pool);
/* Before a step: what the step then does not write is NaN, and no flag. */
void env_side_spoil(struct env_side *s);
void env_side_step(struct env_side *s, struct pool *pool);
/* Choices that the mask forbids become the next ones that it allows. */
void env_side_allow(struct env_side *s);
/* Choices that the mask allows, numbers of their range. */
void env_side_random(struct env_side *s, struct rng *rng);
struct env_largest { /* of all observations and rewards, by size */
    float value;
    size_t number; /* of an observation, from 0 */
    float reward;
};
/* Has a game of processes of its own failed by step t? True after printing the fault. */
bool env_side_failed(const struct env_side *s, int64_t t);
/* After step t: numbers where there should be, no row overrun. False after printing the fault. */
bool env_side_sane(const struct env_side *s, int64_t t, struct env_largest *largest);
/* Which rows of a differ from the same rows of b, which has as many instances or more; NULL: none. */
const char *env_side_differs(const struct env_side *a, const struct env_side *b);
