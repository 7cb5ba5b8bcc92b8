/* env_game.cuh - one game on the device: its type, its kernels and their launches (private to kernels/cuda; part of
 * what `trawl env build` compiles for a GPU, so it includes nothing of the backend's).
 * A game is a type `cuda_game_NAME` with the functions of its headers, so that a kernel is a template over the game and
 * the observation's type. Whatever includes this is compiled with -fmad=false: then host and device give the same bytes
 * (fmaf() written out, and tensor cores, are not touched by that flag).
 *
 * A block plays a few instances in a row. Their states pass through shared memory, so that global memory sees whole
 * lines in both directions, and so do the observations of a game with short rows. Large instances are played where they
 * lie.
 * Invariants: (1) states and logs lie in device memory as on the host (envs/batch.c): arrays of instances and of logs;
 * (2) an instance is a function of (settings, rng_split(root, i), its actions) alone, as on the host, byte for byte. */
#ifndef KERNELS_CUDA_ENV_GAME_CUH
#define KERNELS_CUDA_ENV_GAME_CUH

#include <cuda_bf16.h>
#include <cuda_runtime.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif
#include "kernels/kernels.h"
#ifdef __cplusplus
}
#endif

/* ---- what a game shows of its device code: a row of a table, or what a library's trawl_env_device() gives ---- */

/* Changes with the meaning of what is below or of struct rollout_args; a layout that changed shows in
 * ENV_DEVICE_LAYOUT. */
#define ENV_DEVICE_VERSION 2

struct env_device_call {
    const void *settings; /* host */
    void *states; /* (n_envs) instances, device */
    struct env_log *logs; /* (n_envs) device */
    struct rng root;
    size_t n_envs;
    int n_agents /* of an instance */, n_sm;
    bool bf16; /* type of observations that are not bytes */
    cudaStream_t stream;
};

struct rollout_args;

/* Launches enqueue and return what cudaGetLastError gives. */
struct env_device {
    uint32_t version, layout;
    const char *name;
    size_t settings_size, state_size;
    int row_size; /* of ENV_GPU's env_gpu_rows; 0: each instance writes its own */
    cudaError_t (*reset)(const struct env_device_call *call, const struct kern_env_io *io);
    cudaError_t (*step)(const struct env_device_call *call, const struct kern_env_io *io);
    cudaError_t (*observe)(const struct env_device_call *call, const struct kern_env_io *io);
    /* A rollout in one launch (rollout.cu) by kernels of the library's own; NULL: of a built-in game, or it fits no
     * tile. cudaErrorNotSupported: nothing was launched, for the code was made for another card. */
    cudaError_t (*rollout)(const struct rollout_args *args, size_t width, int n_blocks, unsigned n_ctas,
                           size_t shared_max, size_t shared, cudaStream_t stream);
};

/* ---- a game as a type ---- */

#ifndef CUDA_GAME_GPU
#define CUDA_GAME_GPU(game) game##_gpu
#endif

#define CUDA_ENV_GAME(game)                                                                                            \
    struct cuda_game_##game {                                                                                          \
        typedef struct game##_settings settings;                                                                       \
        typedef struct game##_instance instance;                                                                       \
        typedef CUDA_GAME_GPU(game) gpu;                                                                               \
        enum { row_size = gpu::row_size };                                                                             \
        ENV_FN void shape(const settings *s, struct env_shape *ret_shape)                                              \
        {                                                                                                              \
            env_shape_plain(ret_shape);                                                                                \
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

/* ---- kernels ---- */

#define ENV_BLOCK 64 /* threads */
/* Games of a multiprocessor from which a block has 16 of them, 32, 64; fewer: 8. The table after "What was tried with
 * breakout" in bench/notes/cuda.md; what lies between its columns was chosen. */
#define BLOCKS_OF_16_FROM 80
#define BLOCKS_OF_32_FROM 160
#define BLOCKS_OF_64_FROM 400

enum env_mode { ENV_RESET, ENV_STEP, ENV_OBSERVE };

/* What a kernel needs to know of a batch. */
template <class G> struct env_args {
    typename G::settings settings;
    typename G::instance *states; /* (n) */
    struct env_log *logs; /* (n) */
    struct rng root;
    size_t n;
};

/* Shared memory of a block. */
template <class G, typename T, int GAMES> struct env_tile {
    alignas(16) typename G::instance states[GAMES];
    alignas(16) T rows[GAMES * (G::row_size > 0 ? (int)G::row_size : 1)];
};

/* ---- copies by a whole block ---- */

template <typename V> __device__ static inline void copy_as(void *dst, const void *src, size_t bytes)
{
    size_t n = bytes / sizeof(V);

    for (size_t i = threadIdx.x; i < n; i += blockDim.x)
        ((V *)dst)[i] = ((const V *)src)[i];
    for (size_t i = n * sizeof(V) / 2 + threadIdx.x; i < bytes / 2; i += blockDim.x) /* what is less than a V */
        ((uint16_t *)dst)[i] = ((const uint16_t *)src)[i];
}

/* `bytes` is even. */
__device__ static inline void copy_block(void *dst, const void *src, size_t bytes)
{
    uintptr_t both = (uintptr_t)dst | (uintptr_t)src;

    if (both % 16 == 0)
        copy_as<uint4>(dst, src, bytes);
    else if (both % 4 == 0)
        copy_as<uint32_t>(dst, src, bytes);
    else
        copy_as<uint16_t>(dst, src, bytes);
}

__device__ static inline void clear_block(void *dst, size_t bytes)
{
    size_t before = (16 - (uintptr_t)dst % 16) % 16, n;

    before = before < bytes ? before : bytes;
    n = (bytes - before) / 16;
    for (size_t i = threadIdx.x; i < before / 2; i += blockDim.x)
        ((uint16_t *)dst)[i] = 0;
    for (size_t i = threadIdx.x; i < n; i += blockDim.x)
        ((uint4 *)((char *)dst + before))[i] = make_uint4(0, 0, 0, 0);
    for (size_t i = (before + n * 16) / 2 + threadIdx.x; i < bytes / 2; i += blockDim.x)
        ((uint16_t *)dst)[i] = 0;
}

/* ---- one kernel for each game, type of observation and mode ---- */

/* obs of the block's instances first..first + count - 1; `it` is instance `game` of them when this thread has one.
 * Threads meet before they copy, so tile->states is complete then too. */
template <class G, typename T, int GAMES>
__device__ static inline void observe_block(const typename G::settings *settings, env_tile<G, T, GAMES> *tile,
                                            const typename G::instance *it, bool mine, int game, size_t first,
                                            int count, T *obs, uint8_t *mask)
{
    if constexpr (cuda_env_packs<G, T>::yes) {
        const int each = ENV_BLOCK / GAMES, one = (int)threadIdx.x / each;
        uint32_t *pairs = (uint32_t *)(tile->rows + one * G::row_size);
        if (mine)
            G::gpu::head(&it->state, pairs);
        __syncthreads();
        G::gpu::tail(&tile->states[one].state, pairs, (int)threadIdx.x % each, each);
        __syncthreads();
        copy_block(obs + first * G::row_size, tile->rows, (size_t)count * G::row_size * sizeof(T));
    } else if constexpr (G::row_size > 0) {
        if (mine)
            cuda_env_row<G, T>(settings, it, tile->rows + game * G::row_size);
        __syncthreads();
        copy_block(obs + first * G::row_size, tile->rows, (size_t)count * G::row_size * sizeof(T));
    } else if constexpr (G::gpu::sparse) {
        struct env_shape shape;
        G::shape(settings, &shape);
        T *rows = obs + first * (size_t)shape.obs_size;
        clear_block(rows, (size_t)count * (size_t)shape.obs_size * sizeof(T));
        __syncthreads();
        if (mine)
            G::gpu::cells(settings, &it->state, rows + (size_t)game * (size_t)shape.obs_size);
    } else {
        if (mine)
            G::observe_all(settings, it, obs, mask, first + (size_t)game);
        __syncthreads();
    }
}

/* A decision of instance i, and the last observation of an episode that was cut. */
template <class G, typename T>
__device__ static inline void play_one(const env_args<G> *a, typename G::instance *it, const struct kern_env_io *io,
                                       size_t i)
{
    struct env_shape shape;
    G::shape(&a->settings, &shape);
    const size_t at = i * (size_t)shape.n_agents, actions = at * (size_t)shape.n_heads;
    T *final_obs = (T *)io->final_obs;

    G::template turn<T>(&a->settings, it, &a->logs[i], io->actions + actions,
                        io->reals == NULL ? NULL : io->reals + actions, io->rewards + at, io->terms + at,
                        io->truncs + at, final_obs == NULL ? NULL : final_obs + at * (size_t)shape.obs_size);
}

/* GAMES instances for each block of ENV_BLOCK threads: every (ENV_BLOCK / GAMES)th thread plays one, all of them
 * copy. */
template <class G, typename T, int GAMES, enum env_mode MODE>
__global__ void __launch_bounds__(ENV_BLOCK, 8) env_k(const env_args<G> a, const struct kern_env_io io)
{
    __shared__ env_tile<G, T, GAMES> tile;
    const size_t first = (size_t)blockIdx.x * GAMES;
    const int count = a.n - first < GAMES ? (int)(a.n - first) : GAMES;
    const int each = ENV_BLOCK / GAMES, game = (int)threadIdx.x / each;
    const bool mine = (int)threadIdx.x % each == 0 && game < count;
    typename G::instance it = {};

    if constexpr (MODE != ENV_RESET) {
        copy_block(tile.states, a.states + first, (size_t)count * sizeof it);
        __syncthreads();
        if (mine)
            it = tile.states[game];
    }
    if (mine && MODE == ENV_RESET) {
        G::reset(&a.settings, &it, a.root, first + (size_t)game);
        a.logs[first + (size_t)game] = {};
    }
    if (mine && MODE == ENV_STEP)
        play_one<G, T>(&a, &it, &io, first + (size_t)game);
    if (mine)
        tile.states[game] = it;
    observe_block<G, T, GAMES>(&a.settings, &tile, &it, mine, game, first, count, (T *)io.obs, io.mask);
    if constexpr (MODE != ENV_OBSERVE)
        copy_block(a.states + first, tile.states, (size_t)count * sizeof it);
}

/* Large instances: a thread plays one where it lies, and a thread writes what an agent sees. */
template <class G, typename T, enum env_mode MODE>
__global__ void __launch_bounds__(ENV_BLOCK) large_play_k(const env_args<G> a, const struct kern_env_io io)
{
    const size_t i = (size_t)blockIdx.x * ENV_BLOCK + threadIdx.x;

    if (i >= a.n)
        return;
    if constexpr (MODE == ENV_RESET) {
        a.states[i] = {};
        G::reset(&a.settings, &a.states[i], a.root, i);
        a.logs[i] = {};
    } else {
        play_one<G, T>(&a, &a.states[i], &io, i);
    }
}

template <class G, typename T>
__global__ void __launch_bounds__(ENV_BLOCK) large_look_k(const env_args<G> a, T *obs, uint8_t *mask, size_t agents)
{
    const size_t row = (size_t)blockIdx.x * ENV_BLOCK + threadIdx.x, i = row / agents;

    if (i < a.n)
        G::look(&a.settings, &a.states[i], obs, mask, i, (int)(row % agents));
}

template <class G, typename T, enum env_mode MODE>
static void large_launch(const env_args<G> *args, const struct env_device_call *call, const struct kern_env_io *io)
{
    const size_t agents = (size_t)call->n_agents, rows = args->n * agents;

    if constexpr (MODE != ENV_OBSERVE) {
        large_play_k<G, T, MODE>
            <<<(unsigned)((args->n + ENV_BLOCK - 1) / ENV_BLOCK), ENV_BLOCK, 0, call->stream>>>(*args, *io);
    }
    large_look_k<G, T><<<(unsigned)((rows + ENV_BLOCK - 1) / ENV_BLOCK), ENV_BLOCK, 0, call->stream>>>(
        *args, (T *)io->obs, io->mask, agents);
}

template <class G, typename Act, int GAMES, enum env_mode MODE>
static void env_launch(const struct env_device_call *call, const struct kern_env_io *io)
{
    typedef typename cuda_env_number<G, Act>::type T;
    env_args<G> args;

    memcpy(&args.settings, call->settings, sizeof args.settings);
    args.states = (typename G::instance *)call->states;
    args.logs = call->logs;
    args.root = call->root;
    args.n = call->n_envs;
    if constexpr (cuda_env_is_large<G>::yes)
        large_launch<G, T, MODE>(&args, call, io);
    else
        env_k<G, T, GAMES, MODE>
            <<<(unsigned)((call->n_envs + GAMES - 1) / GAMES), ENV_BLOCK, 0, call->stream>>>(args, *io);
}

/* Few games: few in each block, so that every multiprocessor has some and the threads of a warp, of which only some
 * play then, diverge less. Many: all threads play. */
template <class G, typename T>
static void env_launch_step(const struct env_device_call *call, const struct kern_env_io *io)
{
    size_t per_sm = call->n_envs / (size_t)call->n_sm;

    if (per_sm < BLOCKS_OF_16_FROM)
        env_launch<G, T, 8, ENV_STEP>(call, io);
    else if (per_sm < BLOCKS_OF_32_FROM)
        env_launch<G, T, 16, ENV_STEP>(call, io);
    else if (per_sm < BLOCKS_OF_64_FROM)
        env_launch<G, T, 32, ENV_STEP>(call, io);
    else
        env_launch<G, T, 64, ENV_STEP>(call, io);
}

/* ---- a game's struct env_device ---- */

template <class G> static cudaError_t env_device_reset(const struct env_device_call *call, const struct kern_env_io *io)
{
    if (call->bf16)
        env_launch<G, __nv_bfloat16, 64, ENV_RESET>(call, io);
    else
        env_launch<G, float, 64, ENV_RESET>(call, io);
    return cudaGetLastError();
}

template <class G> static cudaError_t env_device_step(const struct env_device_call *call, const struct kern_env_io *io)
{
    if (call->bf16)
        env_launch_step<G, __nv_bfloat16>(call, io);
    else
        env_launch_step<G, float>(call, io);
    return cudaGetLastError();
}

template <class G>
static cudaError_t env_device_observe(const struct env_device_call *call, const struct kern_env_io *io)
{
    if (call->bf16)
        env_launch<G, __nv_bfloat16, 64, ENV_OBSERVE>(call, io);
    else
        env_launch<G, float, 64, ENV_OBSERVE>(call, io);
    return cudaGetLastError();
}

#define ENV_DEVICE_OF(game, layout_, rollout_)                                                                         \
    {                                                                                                                  \
        ENV_DEVICE_VERSION, layout_, #game, sizeof(struct game##_settings), sizeof(struct game##_instance),            \
            cuda_game_##game::row_size, env_device_reset<cuda_game_##game>, env_device_step<cuda_game_##game>,         \
            env_device_observe<cuda_game_##game>, rollout_                                                             \
    }

#endif
