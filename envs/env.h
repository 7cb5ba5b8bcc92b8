/* env.h - what a game is. (public: kernels/cuda includes it with the game headers; part of trawl_env.h)
 *
 * A game is one header, envs/games/NAME.h, in the subset of C and CUDA C++ that gcc and nvcc both accept: plain
 * structs, functions marked ENV_FN, no globals, no allocation, no libc but math.h, randomness only from the struct rng
 * that lies in its state. It declares
 *   struct NAME_settings   read-only options of the batch (doubles, int64_t, bool: filled from its option table)
 *   struct NAME_state      one instance, fixed size, plain bytes: copying it saves it; begins with nothing special
 *                          but a member `struct rng rng`
 *   NAME_shape(settings, ret_shape)                    sizes of its tensors, where they differ from env_shape_plain;
 *                                                      cannot fail within the options' ranges
 *   NAME_reset(settings, state)                        new episode; draws from state->rng; keeps state->rng
 *   NAME_step(settings, state, actions, step)          one agent decision for all its agents; actions that are numbers
 *                                                      lie in step->reals
 *   NAME_observe(settings, state, agent, obs)          obs (obs_size) env_obs: assigned from f32, never read
 *   NAME_mask(settings, state, agent, mask)            only if has_mask: (sum of head_sizes) u8, 1 = allowed
 *   NAME_track(state, agent)                           only if agents_end: the agent's struct env_track, in the state
 *   NAME_respawn(settings, state, agent)               only if agents_end: the agent's next episode
 * Macros below its header's guard say so to the loop: ENV_GAME_HAS_MASK, ENV_GAME_AGENTS_END, and ENV_GAME_BYTES of a
 * game whose observations are bytes (shape: u8): its NAME_observe is an ENV_FN that writes uint8_t, and f32 to
 * env_floats where the shape has n_floats.
 * and, below #ifndef __CUDACC__ (the program shows these, no kernel needs them),
 *   static const struct opt_def NAME_options[]         its options; their ranges keep every shape and counter in range
 *   static const struct env_about NAME_about           its summary, and what it sets in other sections
 *   NAME_draw(settings, state, picture)                its state as a picture
 * and ENV_GPU(NAME, ...): how a block of a GPU writes its observations. Its name stands in envs/meson.build and nowhere
 * else; docs/envs.md walks through a whole one. A game outside the program is the same header, built by `trawl env
 * build`. Actions outside their head's range must do no harm (they count as some legal one, and so does NaN). Before
 * NAME_step the loop clears ended, truncated, score and perf, and flags of agents; rewards it does not.
 *
 * The batch loop (env_loop.h), not the game, handles the ends of episodes: when a step sets ended (or truncated) it
 * keeps the last observation of truncated agents, adds the episode to the log, resets and observes the new episode.
 * Where agents end alone, it does that for each agent whose flag a step sets, with NAME_respawn instead of NAME_reset.
 *
 * Games use only IEEE operations that round the same everywhere (+ - * /, sqrt, env_math.h), and both sides are
 * compiled without contraction to fused multiply-add: a batch has the same bytes on host and device. */
#ifndef ENVS_ENV_H
#define ENVS_ENV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/rng.h"
#ifdef __CUDACC__
extern "C++" { /* also where a header of C is included as one */
#include <cuda_bf16.h>
}
#else
#include <math.h>

#include "envs/draw.h"
#include "envs/env_def.h"
#endif

/* ENV_UNROLL before a loop of a constant length over an array of the state: on the device the array, and the struct
 * around it, can then stay in registers. */
#ifdef __CUDA_ARCH__
#define ENV_UNROLL _Pragma("unroll")
#else
#define ENV_UNROLL
#endif

/* ENV_OBS_FN marks what writes observations, of type env_obs: f32 on the host, f32 or bf16 on the device. */
#ifdef __CUDACC__
#define ENV_FN __host__ __device__ static inline
#define ENV_OBS_FN template <typename env_obs> __host__ __device__ static inline
#else
#define ENV_FN static inline
#define ENV_OBS_FN static inline
typedef float env_obs;
#endif

/* ENV_GPU(game, how) declares `game_gpu`: how a block of a GPU writes observations (kernels/cuda/play), nothing on the
 * host.
 *   env_gpu_rows<N>   N values each, the same for all settings: collected in shared memory
 *   env_gpu_direct    each instance writes its own; fits every game
 *   env_gpu_bytes     the same for bytes
 * A game with a writer of its own declares game_gpu itself: breakout (packs) and squared (sparse). */
#ifdef __CUDACC__
extern "C++" {
template <int N> struct env_gpu_rows {
    enum { row_size = N, sparse = 0, packs = 0, bytes = 0 };
    struct rest {
    };
};
struct env_gpu_direct : env_gpu_rows<0> {
};
struct env_gpu_bytes : env_gpu_rows<0> {
    enum { bytes = 1 };
};
}
#define ENV_GPU(game, ...)                                                                                             \
    struct game##_gpu : __VA_ARGS__ {                                                                                  \
    };
#else
#define ENV_GPU(game, ...)
#endif

#define ENV_MAX_HEADS 64 /* action components of one agent */
#define ENV_MAX_NUMBERS 32 /* named numbers of a game of its own memory (env_def.h) */
#define ENV_MAX_AGENTS 65536 /* agents of one instance */
#define ENV_BYTE_SCALE                                                                                                 \
    255.0f /* what observations that are bytes are divided by, unless their game names another number */

/* Sizes of one batch's tensors; may depend on the settings (squared: grid size). */
struct env_shape {
    int obs_size; /* numbers per agent */
    int n_agents; /* per instance, 1..ENV_MAX_AGENTS */
    int n_heads; /* components of an action, 1..ENV_MAX_HEADS */
    int head_sizes[ENV_MAX_HEADS]; /* choices of each, not all 1; 0: a number from low to high */
    bool has_mask; /* the game limits choices per step */
    /* Of a grid: obs begins with (height, width, channels), and numbers that follow are a plain list. 0: all of it
     * is. */
    int channels, height, width;
    bool may_truncate; /* some step may set truncated; false spares the values after truncations */
    bool agents_end; /* terms and truncs differ among the agents of an instance: one may end alone */
    bool u8; /* observations are bytes: io->obs and final_obs hold uint8_t, 0..255, which are stored and moved so */
    bool undivided; /* only all instances can be stepped at a time, in one call of the game */
    float byte_scale; /* of bytes: the network's first layer sees byte / byte_scale; 0: 255 */
    int n_floats; /* of bytes: the last n_floats numbers of an observation are f32 all the same (env_row_bytes) */
    /* Of heads whose size is 0: finite, low < high. Their actions are numbers of that range, in io->reals; such a game
     * has no mask. */
    float low[ENV_MAX_HEADS], high[ENV_MAX_HEADS];
};

/* What NAME_shape begins with, which sets what differs: one agent, one component of an action, a plain list of f32. */
ENV_FN void env_shape_plain(struct env_shape *ret_shape)
{
    ret_shape->n_agents = ret_shape->n_heads = 1;
    ret_shape->channels = ret_shape->height = ret_shape->width = ret_shape->n_floats = 0;
    ret_shape->has_mask = ret_shape->may_truncate = ret_shape->agents_end = ret_shape->u8 = ret_shape->undivided =
        false;
}

/* n_numbers numbers in memory, all of them bytes but for the last n_floats: bytes, then up to 3 unused ones, then
 * f32. */
ENV_FN size_t env_mixed_bytes(size_t n_numbers, size_t n_floats)
{
    size_t bytes = n_numbers - n_floats;
    return n_floats == 0 ? bytes : (bytes + 3) / 4 * 4 + n_floats * sizeof(float);
}

/* Bytes of an agent's observation, as the game writes it on the host. */
ENV_FN size_t env_row_bytes(const struct env_shape *shape)
{
    return shape->u8 ? env_mixed_bytes((size_t)shape->obs_size, (size_t)shape->n_floats)
                     : (size_t)shape->obs_size * sizeof(float);
}

/* Where the f32 of an observation begin that has n_bytes bytes before them. */
ENV_FN float *env_floats(uint8_t *obs, size_t n_bytes)
{
    return (float *)(void *)(obs + (n_bytes + 3) / 4 * 4);
}

/* What an instance did in its finished episodes since the log was last read; sums, so logs add up. For a multi-agent
 * game an "episode" is one agent's life. */
struct env_log {
    double episodes;
    double score; /* in the game's own unit */
    double perf; /* in [0, 1] */
    double ep_return; /* sum of (unclipped) rewards */
    double ep_length; /* agent decisions */
    double limit; /* the log takes this many episodes and no more, of agents that end alone as many of each; 0: all */
};

/* The episode that is running, as far as it has come; an instance ends with it (env_loop.h). */
struct env_track {
    double ep_return; /* sum of rewards, mean over agents */
    double ep_length; /* decisions so far */
    float score, perf; /* as the last step set them */
    double episodes; /* finished so far, of an agent that ends alone */
};

ENV_FN void env_log_sum(struct env_log *sum, const struct env_log *log) /* sum += log */
{
    sum->episodes += log->episodes;
    sum->score += log->score;
    sum->perf += log->perf;
    sum->ep_return += log->ep_return;
    sum->ep_length += log->ep_length;
}

/* An episode that has ended. */
ENV_FN void env_log_add(struct env_log *log, const struct env_track *track, float score, float perf)
{
    if (log->limit > 0.0 && log->episodes >= log->limit)
        return;
    log->episodes += 1.0;
    log->score += (double)score;
    log->perf += (double)perf;
    log->ep_return += track->ep_return;
    log->ep_length += track->ep_length;
}

/* Filled by NAME_step for each agent: arrays of n_agents. */
struct env_step {
    const float *reals; /* given: (n_agents, n_heads) numbers of the heads of size 0; NULL when there are none */
    float *rewards;
    /* Where agents end alone, 0 before the step: an agent's episode is ended by the rules, or cut; never both. Its
     * score and perf lie in its track then. */
    uint8_t *terms, *truncs;
    bool ended; /* the whole instance ended by the rules: term = 1 for every agent */
    bool truncated; /* cut by a time limit: trunc = 1 for every agent; never together with ended */
    /* For the log, when ended or truncated (mean over agents for multi-agent games). A game that knows them earlier
     * sets them at every step: an evaluation that ends by its step limit counts an unfinished episode with what it
     * had. */
    float score, perf;
};

/* One step's tensors, agent-major, owned by the caller. A = n_envs * n_agents. */
struct env_io {
    const int32_t *actions; /* (A, n_heads) choices */
    const float *reals; /* (A, n_heads) numbers of the heads of size 0; NULL when there are none */
    float *rewards; /* (A) unclipped */
    uint8_t *terms; /* (A) 0/1 */
    uint8_t *truncs; /* (A) 0/1, never 1 where terms is 1 */
    float
        *obs; /* (A, obs_size) after the step; of the new episode where one ended. Of bytes: rows of env_row_bytes, and
                 * below */
    float *final_obs; /* (A, obs_size) last observation of the old episode, only where truncs is 1; or NULL */
    uint8_t *mask; /* (A, sum of head_sizes) for the next decision, or NULL if !has_mask */
};

#endif
