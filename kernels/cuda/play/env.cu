/* env.cu - batches of games on the device: create, reset, step, observe, logs, save and load.
 * A block plays a few instances in a row. Their states pass through shared memory, so that global memory sees whole
 * lines in both directions, and so do the observations of a game with short rows. Large instances are played where they lie.
 * Invariants: (1) an instance is a function of (settings, rng_split(root, i), its actions) alone, as on the host, byte
 * for byte (this file is compiled with -fmad=false); (2) logs are summed in a fixed order. */
#include "kernels/cuda/play/env.cuh"

#include <string.h>

#define ENV_BLOCK 64 /* threads */
/* Games of a multiprocessor from which a block has 16 of them, 32, 64; fewer: 8. The table after "What was tried with
 * breakout" in bench/notes/cuda.md; what lies between its columns was chosen. */
#define BLOCKS_OF_16_FROM 80
#define BLOCKS_OF_32_FROM 160
#define BLOCKS_OF_64_FROM 400
#define LOG_BLOCK 256
#define LOG_FIELDS (sizeof(struct env_log) / sizeof(double))

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
static void large_launch(struct kern *k, const env_args<G> *args, const struct cuda_env *env,
                         const struct kern_env_io *io)
{
    cudaStream_t stream = cuda_of(k)->stream;
    size_t rows = env->n_agents;

    if constexpr (MODE != ENV_OBSERVE) {
        large_play_k<G, T, MODE>
            <<<(unsigned)((args->n + ENV_BLOCK - 1) / ENV_BLOCK), ENV_BLOCK, 0, stream>>>(*args, *io);
        cuda_launched(k, "a game's kernel");
    }
    large_look_k<G, T><<<(unsigned)((rows + ENV_BLOCK - 1) / ENV_BLOCK), ENV_BLOCK, 0, stream>>>(
        *args, (T *)io->obs, io->mask, (size_t)env->shape.n_agents);
    cuda_launched(k, "a game's kernel");
}

template <class G, typename Act, int GAMES, enum env_mode MODE>
static void env_launch(struct kern *k, const struct cuda_env *env, const struct kern_env_io *io)
{
    typedef typename cuda_env_number<G, Act>::type T;
    env_args<G> args;

    memcpy(&args.settings, env->settings, sizeof args.settings);
    args.states = (typename G::instance *)env->states;
    args.logs = env->logs;
    args.root = env->root;
    args.n = env->n_envs;
    if constexpr (cuda_env_is_large<G>::yes) {
        large_launch<G, T, MODE>(k, &args, env, io);
    } else {
        env_k<G, T, GAMES, MODE>
            <<<(unsigned)((env->n_envs + GAMES - 1) / GAMES), ENV_BLOCK, 0, cuda_of(k)->stream>>>(args, *io);
        cuda_launched(k, "a game's kernel");
    }
}

/* Few games: few in each block, so that every multiprocessor has some and the threads of a warp, of which only some play
 * then, diverge less. Many: all threads play. */
template <class G, typename T>
static void env_launch_step(struct kern *k, const struct cuda_env *env, const struct kern_env_io *io)
{
    size_t per_sm = env->n_envs / (size_t)cuda_of(k)->n_sm;

    if (per_sm < BLOCKS_OF_16_FROM)
        env_launch<G, T, 8, ENV_STEP>(k, env, io);
    else if (per_sm < BLOCKS_OF_32_FROM)
        env_launch<G, T, 16, ENV_STEP>(k, env, io);
    else if (per_sm < BLOCKS_OF_64_FROM)
        env_launch<G, T, 32, ENV_STEP>(k, env, io);
    else
        env_launch<G, T, 64, ENV_STEP>(k, env, io);
}

/* ---- the table of games ---- */

typedef void env_launch_fn(struct kern *k, const struct cuda_env *env, const struct kern_env_io *io);

struct cuda_env_game {
    const char *name;
    size_t settings_size, state_size;
    env_launch_fn *reset[2], *step[2], *observe[2]; /* f32, bf16 */
};

#define GAMES_ROW(game)                                                                                                \
    {                                                                                                                  \
        #game,                                                                                                         \
        sizeof(struct game##_settings),                                                                                \
        sizeof(struct game##_instance),                                                                                \
        {env_launch<cuda_game_##game, float, 64, ENV_RESET>,                                                           \
         env_launch<cuda_game_##game, __nv_bfloat16, 64, ENV_RESET>},                                                  \
        {env_launch_step<cuda_game_##game, float>, env_launch_step<cuda_game_##game, __nv_bfloat16>},                  \
        {env_launch<cuda_game_##game, float, 64, ENV_OBSERVE>,                                                         \
         env_launch<cuda_game_##game, __nv_bfloat16, 64, ENV_OBSERVE>},                                                \
    },
static const struct cuda_env_game games[] = {ENV_GAMES(GAMES_ROW)};

/* A definition that only shares its name with one of ours is another game. */
static const struct cuda_env_game *game_of(const struct env_def *def)
{
    for (size_t i = 0; i < sizeof games / sizeof games[0]; i++)
        if (strcmp(games[i].name, def->name) == 0)
            return env_find(def->name) == def && games[i].state_size == def->state_size ? &games[i] : NULL;
    return NULL;
}

/* ---- operations ---- */

static void env_reset(struct kern *k, struct kern_env *base, void *obs, uint8_t *mask, bool bf16)
{
    struct cuda_env *env = cuda_env_of(base);
    struct kern_env_io io = {};

    io.obs = obs;
    io.mask = mask;
    if (env->game != NULL)
        env->game->reset[bf16](k, env, &io);
    else
        cuda_env_host_reset(k, env, obs, mask, bf16);
}

static void env_observe(struct kern *k, struct kern_env *base, void *obs, uint8_t *mask, bool bf16)
{
    struct cuda_env *env = cuda_env_of(base);
    struct kern_env_io io = {};

    io.obs = obs;
    io.mask = mask;
    if (env->game != NULL)
        env->game->observe[bf16](k, env, &io);
    else
        cuda_env_host_observe(k, env, obs, mask, bf16);
}

static void env_begin(struct kern *k, struct kern_env *base, const struct kern_env_io *io, size_t part, bool bf16)
{
    struct cuda_env *env = cuda_env_of(base);

    if (env->game != NULL)
        env->game->step[bf16](k, env, io);
    else
        cuda_env_host_begin(k, env, io, part, bf16);
}

extern "C" void cuda_env_wait(struct kern *k, struct kern_env *base, size_t part)
{
    struct cuda_env *env = cuda_env_of(base);

    if (env->game == NULL)
        cuda_env_host_wait(k, env, part);
}

#define ENV_OPS(T, BF16)                                                                                               \
    extern "C" void cuda_env_reset_##T(struct kern *k, struct kern_env *env, void *obs, uint8_t *mask)                 \
    {                                                                                                                  \
        env_reset(k, env, obs, mask, BF16);                                                                            \
    }                                                                                                                  \
    extern "C" void cuda_env_begin_##T(struct kern *k, struct kern_env *env, const struct kern_env_io *io,             \
                                       size_t part)                                                                    \
    {                                                                                                                  \
        env_begin(k, env, io, part, BF16);                                                                             \
    }                                                                                                                  \
    extern "C" void cuda_env_observe_##T(struct kern *k, struct kern_env *env, void *obs, uint8_t *mask)               \
    {                                                                                                                  \
        env_observe(k, env, obs, mask, BF16);                                                                          \
    }
ENV_OPS(f32, false)
ENV_OPS(bf16, true)

/* ---- logs ---- */

/* parts (gridDim.x) = sums of logs (n), each block of a range of them, which it clears. */
__global__ void __launch_bounds__(LOG_BLOCK)
    log_parts_k(struct env_log *parts /* (gridDim.x) */, struct env_log *logs /* (n) */, size_t n)
{
    __shared__ struct env_log sums[LOG_BLOCK];
    const size_t part = (n + gridDim.x - 1) / gridDim.x, from = blockIdx.x * part;
    const size_t to = from + part < n ? from + part : n;
    struct env_log sum = {};

    for (size_t i = from + threadIdx.x; i < to; i += LOG_BLOCK)
        if (logs[i].episodes > 0.0) {
            env_log_sum(&sum, &logs[i]);
            logs[i] = {};
        }
    sums[threadIdx.x] = sum;
    for (unsigned half = LOG_BLOCK / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half)
            env_log_sum(&sums[threadIdx.x], &sums[threadIdx.x + half]);
    }
    if (threadIdx.x == 0)
        parts[blockIdx.x] = sums[0];
}

/* log = sum of parts (n), a field for each thread. */
__global__ void log_total_k(struct env_log *log, const struct env_log *parts /* (n) */, int n)
{
    const double *fields = (const double *)parts;
    double sum = 0.0;

    for (int i = 0; i < n; i++)
        sum += fields[(size_t)i * LOG_FIELDS + threadIdx.x];
    ((double *)log)[threadIdx.x] = sum;
}

extern "C" void cuda_env_log_take(struct kern *k, struct kern_env *base, struct env_log *log)
{
    struct cuda_env *env = cuda_env_of(base);
    cudaStream_t stream = cuda_of(k)->stream;

    if (env->game == NULL)
        cuda_env_host_logs(k, env);
    log_parts_k<<<CUDA_ENV_LOG_PARTS, LOG_BLOCK, 0, stream>>>(env->log_parts, env->logs, env->n_envs);
    log_total_k<<<1, LOG_FIELDS, 0, stream>>>(log, env->log_parts, CUDA_ENV_LOG_PARTS);
    cuda_launched(k, "the sum of the games' logs");
}

extern "C" enum status cuda_env_take_log(struct kern *kern, struct kern_env *base, struct env_log *ret_log,
                                         struct error *err)
{
    struct env_log *sum = cuda_env_of(base)->log_parts + CUDA_ENV_LOG_PARTS;

    cuda_env_log_take(kern, base, sum);
    TRY(kern_download(kern, ret_log, sum, sizeof *ret_log, err));
    return cuda_env_of(base)->game == NULL ? env_batch_failed(cuda_env_host_batch(cuda_env_of(base)), err) : ST_OK;
}

extern "C" double cuda_env_outside_s(const struct kern_env *base)
{
    struct cuda_env *env = (struct cuda_env *)base;

    return env->game == NULL ? env_batch_outside_s(cuda_env_host_batch(env)) : 0.0;
}

/* ---- life ---- */

extern "C" void cuda_env_destroy(struct kern *kern, struct kern_env *base)
{
    struct cuda_env *env = cuda_env_of(base);

    cuda_env_host_destroy(kern, env);
    kern_free(kern, env->log_parts);
    kern_free(kern, env->logs);
    kern_free(kern, env->states);
    mem_free(env->settings);
    mem_free(env);
}

static enum status env_create_device(struct kern *kern, struct cuda_env *env, const void *settings, struct error *err)
{
    const struct env_def *def = env->def;

    env->settings = mem_alloc(def->options.settings_size);
    memcpy(env->settings, settings, def->options.settings_size);
    return kern_alloc(kern, &env->states, env->n_envs * def->state_size, "states of the games", err);
}

extern "C" enum status cuda_env_create(struct kern *kern, struct kern_env **ret_env, const struct env_def *def,
                                       const void *settings, size_t n_envs, struct rng root, struct error *err)
{
    struct env_shape shape;
    struct cuda_env *env;
    enum status rc;

    TRY(env_def_check(def, settings, n_envs, &shape, err));
    env = (struct cuda_env *)mem_alloc(sizeof *env);
    env->base.device = kern->device;
    env->game = game_of(def);
    env->def = def;
    env->shape = shape;
    env->n_envs = n_envs;
    env->n_agents = n_envs * (size_t)shape.n_agents;
    env->root = root;
    env->base.n_parts = 1;
    env->base.part_from[1] = env->n_agents;
    rc = kern_alloc(kern, (void **)&env->log_parts, (CUDA_ENV_LOG_PARTS + 1) * sizeof *env->log_parts,
                    "sums of the games' logs", err);
    if (rc == ST_OK)
        rc = kern_alloc(kern, (void **)&env->logs, n_envs * sizeof *env->logs, "logs of the games", err);
    if (rc == ST_OK)
        rc = env->game != NULL ? env_create_device(kern, env, settings, err)
                               : cuda_env_host_create(kern, env, settings, err);
    if (rc != ST_OK) {
        cuda_env_destroy(kern, &env->base);
        return rc;
    }
    *ret_env = &env->base;
    return ST_OK;
}

extern "C" enum status cuda_env_restart(struct kern *kern, struct kern_env *base, struct rng root, struct error *err)
{
    struct cuda_env *env = cuda_env_of(base);

    env->root = root;
    if (env->game != NULL)
        return ST_OK;
    TRY(kern_sync(kern, err));
    env_batch_set_root(cuda_env_host_batch(env), root);
    return ST_OK;
}

/* ---- whole state, the same bytes as env_batch_save's ---- */

extern "C" size_t cuda_env_state_bytes(const struct kern_env *base)
{
    struct cuda_env *env = cuda_env_of(base);

    return env->game != NULL ? env->n_envs * (env->def->state_size + sizeof *env->logs)
                             : env_batch_state_bytes(cuda_env_host_batch(env));
}

extern "C" enum status cuda_env_save(struct kern *kern, struct kern_env *base, void *bytes, struct error *err)
{
    struct cuda_env *env = cuda_env_of(base);
    size_t n = env->n_envs * env->def->state_size;

    if (env->game == NULL) {
        TRY(kern_sync(kern, err));
        env_batch_save(cuda_env_host_batch(env), bytes);
        return env_batch_failed(cuda_env_host_batch(env), err);
    }
    TRY(kern_download(kern, bytes, env->states, n, err));
    return kern_download(kern, (char *)bytes + n, env->logs, env->n_envs * sizeof *env->logs, err);
}

extern "C" enum status cuda_env_load(struct kern *kern, struct kern_env *base, const void *bytes, struct error *err)
{
    struct cuda_env *env = cuda_env_of(base);
    size_t n = env->n_envs * env->def->state_size;

    if (env->game == NULL) {
        TRY(kern_sync(kern, err));
        env_batch_load(cuda_env_host_batch(env), bytes);
        return ST_OK;
    }
    TRY(kern_upload(kern, env->states, bytes, n, err));
    TRY(kern_upload(kern, env->logs, (const char *)bytes + n, env->n_envs * sizeof *env->logs, err));
    return kern_sync(kern, err); /* bytes are the caller's again */
}
