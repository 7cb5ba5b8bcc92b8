/* env.cu - batches of games on the device: create, reset, step, observe, logs, save and load. The kernels of a game are
 * in env_game.cuh. Invariant: logs are summed in a fixed order. */
#include "kernels/cuda/play/env.cuh"

extern "C" {
#include "envs/plugin/library.h"
}
#include "generated/games.h"

#include "kernels/cuda/play/rollout_net.cuh"

#define LOG_BLOCK 256
#define LOG_FIELDS (sizeof(struct env_log) / sizeof(double))

/* ---- the table of games ---- */

#define GAMES_ROW(game) ENV_DEVICE_OF(game, ENV_DEVICE_LAYOUT, NULL),
static const struct env_device games[] = {ENV_GAMES(GAMES_ROW)};

static enum status check_device(const struct env_device *game, const struct env_def *def, const struct env_shape *shape,
                                struct error *err)
{
    if (game->version != ENV_DEVICE_VERSION || game->layout != ENV_DEVICE_LAYOUT)
        return FAIL(
            err, ST_VERSION,
            "env %s: its GPU code is built for version %u.%u of the interface, this program has %u.%u; build it "
            "again with this program: trawl env build",
            def->name, (unsigned)game->version, (unsigned)game->layout, (unsigned)ENV_DEVICE_VERSION,
            (unsigned)ENV_DEVICE_LAYOUT);
    if (game->settings_size != def->options.settings_size || game->state_size != def->state_size)
        return FAIL(err, ST_CONFIG,
                    "env %s: its GPU code has settings of %zu bytes and instances of %zu, its host code %zu and %zu; "
                    "build both of one header: trawl env build",
                    def->name, game->settings_size, game->state_size, def->options.settings_size, def->state_size);
    if (game->row_size > 0 && (game->row_size != shape->obs_size || shape->n_agents != 1 || shape->has_mask))
        return FAIL(
            err, ST_CONFIG,
            "env %s: ENV_GPU has rows of %d numbers, its shape %d numbers of %d agents%s; env_gpu_rows is for one "
            "agent without a mask and the same for all settings, env_gpu_direct for all else",
            def->name, game->row_size, shape->obs_size, shape->n_agents, shape->has_mask ? " with a mask" : "");
    return ST_OK;
}

/* A game of a library has device code of its own where nvcc has built it (library_device.cuh). A definition that only
 * shares its name with one of ours is another game. NULL: the host has it. */
static enum status game_of(const struct env_def *def, const struct env_shape *shape, const struct env_device **ret_game,
                           struct error *err)
{
    const struct env_device *game = (const struct env_device *)env_library_device(def);

    for (size_t i = 0; game == NULL && env_find(def->name) == def && i < sizeof games / sizeof games[0]; i++)
        if (strcmp(games[i].name, def->name) == 0)
            game = &games[i];
    if (shape->n_floats > 0) /* observations of bytes and f32 are widened where the host steps the game */
        game = NULL;
    *ret_game = game;
    return game == NULL ? ST_OK : check_device(game, def, shape, err);
}

static void play(struct kern *k, const struct cuda_env *env, bool bf16, const struct kern_env_io *io,
                 cudaError_t (*launch)(const struct env_device_call *call, const struct kern_env_io *io))
{
    struct env_device_call call = {};

    call.settings = env->settings;
    call.states = env->states;
    call.logs = env->logs;
    call.root = env->root;
    call.n_envs = env->n_envs;
    call.n_agents = env->shape.n_agents;
    call.n_sm = cuda_of(k)->n_sm;
    call.bf16 = bf16;
    call.stream = cuda_of(k)->stream;
    cuda_check(k, launch(&call, io), "a game's kernel");
}

/* ---- operations ---- */

static void env_reset(struct kern *k, struct kern_env *base, void *obs, uint8_t *mask, bool bf16)
{
    struct cuda_env *env = cuda_env_of(base);
    struct kern_env_io io = {};

    io.obs = obs;
    io.mask = mask;
    if (env->game != NULL)
        play(k, env, bf16, &io, env->game->reset);
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
        play(k, env, bf16, &io, env->game->observe);
    else
        cuda_env_host_observe(k, env, obs, mask, bf16);
}

static void env_begin(struct kern *k, struct kern_env *base, const struct kern_env_io *io, size_t part, bool bf16)
{
    struct cuda_env *env = cuda_env_of(base);

    if (env->game != NULL)
        play(k, env, bf16, io, env->game->step);
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

extern "C" enum status cuda_env_take_numbers(struct kern *kern, struct kern_env *base, double *ret_sums,
                                             double *ret_episodes, struct error *err)
{
    struct cuda_env *env = cuda_env_of(base);

    *ret_episodes = 0.0;
    TRY(kern_sync(kern, err)); /* the host may be stepping it */
    if (env->game == NULL)
        *ret_episodes = env_batch_take_numbers(cuda_env_host_batch(env), ret_sums);
    return ST_OK;
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
    const struct env_device *game;
    struct env_shape shape;
    struct cuda_env *env;
    enum status rc;

    TRY(env_def_check(def, settings, n_envs, &shape, err));
    TRY(game_of(def, &shape, &game, err));
    env = (struct cuda_env *)mem_alloc(sizeof *env);
    env->game = game;
    env->base.device = kern->device;
    env->def = def;
    env->shape = shape;
    env->shape.u8 = shape.u8 && shape.n_floats == 0;
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
