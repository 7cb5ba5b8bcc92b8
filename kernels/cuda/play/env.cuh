/* env.cuh - the games on the device: what a kernel needs to play instances itself (private to kernels/cuda).
 * A game is a type `cuda_game_NAME` with the functions of its headers, so that a kernel is a template over the game and
 * the observation's type. Whatever includes this is compiled with -fmad=false: then host and device give the same bytes
 * (fmaf() written out, and tensor cores, are not touched by that flag).
 * Invariant: states and logs lie in device memory as on the host (envs/batch.c): arrays of instances and of logs. */
#ifndef KERNELS_CUDA_ENV_CUH
#define KERNELS_CUDA_ENV_CUH

#include "kernels/cuda/common.h"

#include "generated/games.h"

#define CUDA_ENV_GAME(game)                                                                                            \
    struct cuda_game_##game {                                                                                          \
        typedef struct game##_settings settings;                                                                       \
        typedef struct game##_instance instance;                                                                       \
        typedef game##_gpu gpu;                                                                                        \
        enum { row_size = gpu::row_size };                                                                             \
        ENV_FN void shape(const settings *s, struct env_shape *ret_shape)                                              \
        {                                                                                                              \
            game##_shape(s, ret_shape);                                                                                \
        }                                                                                                              \
        ENV_FN void reset(const settings *s, instance *it, struct rng root, uint64_t i)                                \
        {                                                                                                              \
            game##_instance_reset(s, it, root, i);                                                                     \
        }                                                                                                              \
        ENV_FN void play(const settings *s, instance *it, const int32_t *actions, const float *reals, float *rewards,  \
                         uint8_t *terms, uint8_t *truncs, struct env_step *ret_step)                                   \
        {                                                                                                              \
            game##_instance_play(s, it, actions, reals, rewards, terms, truncs, ret_step);                             \
        }                                                                                                              \
        ENV_FN void end(const settings *s, instance *it, struct env_log *log, const struct env_step *step)             \
        {                                                                                                              \
            game##_instance_end(s, it, log, step);                                                                     \
        }                                                                                                              \
        /* A whole decision of the instance but for what the next one sees. */                                         \
        template <typename T>                                                                                          \
        __device__ static inline void turn(const settings *s, instance *it, struct env_log *log,                       \
                                           const int32_t *actions, const float *reals, float *rewards, uint8_t *terms, \
                                           uint8_t *truncs, T *final_obs)                                              \
        {                                                                                                              \
            game##_instance_turn(s, it, log, actions, reals, rewards, terms, truncs, final_obs);                       \
        }                                                                                                              \
        ENV_OBS_FN void look(const settings *s, const instance *it, env_obs *obs, uint8_t *mask, uint64_t i,           \
                             int agent)                                                                                \
        {                                                                                                              \
            game##_instance_look(s, it, obs, mask, i, agent);                                                          \
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
ENV_GAMES(CUDA_ENV_GAME)
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
/* A part of a step; io as for the whole. What it gives may be looked at after the wait. */
void cuda_env_host_begin(struct kern *k, struct cuda_env *env, const struct kern_env_io *io, size_t part, bool bf16);
void cuda_env_host_wait(struct kern *k, struct cuda_env *env, size_t part);
void cuda_env_host_observe(struct kern *k, struct cuda_env *env, void *obs, uint8_t *mask, bool bf16);
void cuda_env_host_logs(struct kern *k, struct cuda_env *env); /* moves them into env->logs */
struct env_batch *cuda_env_host_batch(struct cuda_env *env); /* after kern_sync */

/* ---- rows of observations ---- */

template <class A, class B> struct same_type {
    enum { yes = 0 };
};
template <class A> struct same_type<A, A> {
    enum { yes = 1 };
};

/* What a number of a game's observations is where activations are T. */
template <class G, typename T, bool BYTES = G::gpu::bytes> struct cuda_env_number {
    typedef T type;
};
template <class G, typename T> struct cuda_env_number<G, T, true> {
    typedef uint8_t type;
};

/* An instance that is too large for a block's shared memory: it is played where it lies. */
template <class G> struct cuda_env_is_large {
    enum { yes = sizeof(typename G::instance) > 512 };
};

/* Can an agent of the game lie in a tile of rollout.cu: small, with short rows in bf16? */
template <class G> struct cuda_env_tiles {
    enum {
        yes = (G::row_size > 0 || G::gpu::sparse) && !cuda_env_is_large<G>::yes && sizeof(typename G::instance) % 8 == 0
    };
};

/* Does the game write its rows in T two values at a time, in a way of its own? */
template <class G, typename T> struct cuda_env_packs {
    enum { yes = G::gpu::packs && same_type<T, __nv_bfloat16>::yes };
};

/* Row of a game of rows into memory that is its own, aligned to 4 bytes when row_size is even. */
template <class G, typename T>
__device__ static inline void cuda_env_row(const typename G::settings *settings, const typename G::instance *it, T *row)
{
    if constexpr (cuda_env_packs<G, T>::yes)
        G::gpu::row(&it->state, (uint32_t *)row);
    else
        G::observe(settings, it, 0, row);
}

#endif
