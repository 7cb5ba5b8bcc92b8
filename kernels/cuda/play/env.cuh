/* env.cuh - the games on the device: what a kernel needs to play instances itself (private to kernels/cuda).
 * A game is a type `cuda_game_NAME` with the functions of its headers, so that a kernel is a template over the game and
 * the observation's type. Whatever includes this is compiled with -fmad=false: then host and device give the same bytes
 * (fmaf() written out, and tensor cores, are not touched by that flag).
 * Invariant: states and logs lie in device memory as on the host (envs/batch.c): arrays of instances and of logs. */
#ifndef KERNELS_CUDA_ENV_CUH
#define KERNELS_CUDA_ENV_CUH

#include "kernels/cuda/common.h"

#include "envs/games/breakout.h"
#define ENV_GAME breakout
#include "envs/env_loop.h"
#include "envs/games/cartpole.h"
#define ENV_GAME cartpole
#include "envs/env_loop.h"
#include "envs/games/memory.h"
#define ENV_GAME memory
#include "envs/env_loop.h"
#include "envs/games/pong.h"
#define ENV_GAME pong
#include "envs/env_loop.h"
#include "envs/games/squared.h"
#define ENV_GAME squared
#include "envs/env_loop.h"

/* The games that live on the device, a line each; others are stepped on the host. How a block writes its observations:
 *   rows > 0   this many values each, the same for all settings: collected in shared memory
 *   CUDA_ENV_DIRECT   each instance writes its own; fits every game
 *   CUDA_ENV_SPARSE   cleared together, then squared's two cells */
#define CUDA_ENV_DIRECT 0
#define CUDA_ENV_SPARSE -1
#define CUDA_ENV_GAMES(X)                                                                                              \
    X(breakout, BREAKOUT_OBS) X(cartpole, CARTPOLE_OBS) X(memory, 1) X(pong, PONG_OBS) X(squared, CUDA_ENV_SPARSE)

#define CUDA_ENV_GAME(game, row_size_)                                                                                 \
    struct cuda_game_##game {                                                                                          \
        typedef struct game##_settings settings;                                                                       \
        typedef struct game##_instance instance;                                                                       \
        enum { row_size = row_size_ };                                                                                 \
        ENV_FN void shape(const settings *s, struct env_shape *ret_shape)                                              \
        {                                                                                                              \
            game##_shape(s, ret_shape);                                                                                \
        }                                                                                                              \
        ENV_FN void reset(const settings *s, instance *it, struct rng root, uint64_t i)                                \
        {                                                                                                              \
            game##_instance_reset(s, it, root, i);                                                                     \
        }                                                                                                              \
        ENV_FN void play(const settings *s, instance *it, const int32_t *actions, float *rewards, uint8_t *terms,      \
                         uint8_t *truncs, struct env_step *ret_step)                                                   \
        {                                                                                                              \
            game##_instance_play(s, it, actions, rewards, terms, truncs, ret_step);                                    \
        }                                                                                                              \
        ENV_FN void end(const settings *s, instance *it, struct env_log *log, const struct env_step *step)             \
        {                                                                                                              \
            game##_instance_end(s, it, log, step);                                                                     \
        }                                                                                                              \
        ENV_OBS_FN void observe(const settings *s, const instance *it, int agent, env_obs *obs)                        \
        {                                                                                                              \
            game##_observe(s, &it->state, agent, obs);                                                                 \
        }                                                                                                              \
        ENV_OBS_FN void observe_all(const settings *s, const instance *it, env_obs *obs, uint8_t *mask, uint64_t i)    \
        {                                                                                                              \
            game##_instance_observe(s, it, obs, mask, i);                                                              \
        }                                                                                                              \
    };
CUDA_ENV_GAMES(CUDA_ENV_GAME)
#undef CUDA_ENV_GAME

/* A batch of games of the CUDA backend: base.device is cuda_device. */
struct cuda_env {
    struct kern_env base; /* first: see kern_priv.h */
    const struct cuda_env_game *game; /* kernels of a game on the device; NULL: host has it */
    const struct env_def *def; /* borrowed */
    struct env_shape shape;
    size_t n_envs, n_agents; /* n_agents of all instances */
    struct rng root;
    void *settings; /* (def->options.settings_size) host memory, owned */
    void *states; /* (n_envs) instances, device, owned; in stream order */
    struct env_log *logs; /* (n_envs) device, owned */
    struct env_log
        *log_parts; /* (CUDA_ENV_LOG_PARTS + 1) device, owned: partial sums, and the sum for kern_env_take_log */
    struct cuda_env_host *host; /* a game stepped on the host, owned; see env_host.cu */
};

#define CUDA_ENV_LOG_PARTS 64

static inline struct cuda_env *cuda_env_of(const struct kern_env *env)
{
    return (struct cuda_env *)env;
}

/* Is it a game G on the device? A kernel for G may then take env->settings, states and logs. */
#define cuda_env_is(env, game_) ((env)->game != NULL && strcmp((env)->def->name, #game_) == 0)

/* ---- games stepped on the host: env_host.cu ---- */
enum status cuda_env_host_create(struct kern *kern, struct cuda_env *env, const void *settings, struct error *err);
void cuda_env_host_destroy(struct kern *kern, struct cuda_env *env); /* one that was never made is fine */
void cuda_env_host_reset(struct kern *k, struct cuda_env *env, void *obs, uint8_t *mask, bool bf16);
void cuda_env_host_step(struct kern *k, struct cuda_env *env, const struct kern_env_io *io, bool bf16);
void cuda_env_host_observe(struct kern *k, struct cuda_env *env, void *obs, uint8_t *mask, bool bf16);
void cuda_env_host_logs(struct kern *k, struct cuda_env *env); /* moves them into env->logs */
struct env_batch *cuda_env_host_batch(struct cuda_env *env); /* after kern_sync */

/* ---- rows of observations ---- */

/* Row of a dense game into memory that is its own, aligned to 4 bytes when row_size is even. */
template <class G, typename T>
__device__ static inline void cuda_env_row(const typename G::settings *settings, const typename G::instance *it, T *row)
{
    G::observe(settings, it, 0, row);
}

/* Breakout in bf16: everything two at a time. */
#define CUDA_BREAKOUT_HEAD_PAIRS (BREAKOUT_HEAD / 2)
#define CUDA_BREAKOUT_FLAG_PAIRS (BREAKOUT_ROWS * BREAKOUT_COLS / 2)

__device__ static inline void cuda_breakout_head(const breakout_state *state, uint32_t *pairs)
{
    float head[BREAKOUT_HEAD];

    breakout_observe_head(state, head);
#pragma unroll
    for (int i = 0; i < CUDA_BREAKOUT_HEAD_PAIRS; i++) {
        __nv_bfloat162 pair = __floats2bfloat162_rn(head[2 * i], head[2 * i + 1]);
        pairs[i] = *(uint32_t *)&pair;
    }
}

/* The flags of the lowest two bits; 0x3f80 is 1.0. */
__device__ static inline uint32_t cuda_breakout_flags(uint32_t two)
{
    return ((two & 1u) ? 0x3f80u : 0u) | ((two & 2u) ? 0x3f800000u : 0u);
}

template <>
__device__ inline void cuda_env_row<cuda_game_breakout, __nv_bfloat16>(const breakout_settings *settings,
                                                                       const breakout_instance *it, __nv_bfloat16 *row)
{
    (void)settings;
    uint32_t *pairs = (uint32_t *)row, words[4];

    cuda_breakout_head(&it->state, pairs);
    breakout_flag_words(&it->state, words);
#pragma unroll
    for (int i = 0; i < CUDA_BREAKOUT_FLAG_PAIRS; i++)
        pairs[CUDA_BREAKOUT_HEAD_PAIRS + i] = cuda_breakout_flags(words[i / 16] >> (i % 16 * 2));
}

#endif
