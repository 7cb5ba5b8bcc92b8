/* env_host.cu - games that have no device code (a C library of the user's), stepped on the host for the device.
 * A step is a piece of stream work like any other, so it can be recorded. It has two parts, one for each half of the
 * instances (of an undivided game one): their actions come down into pinned memory on the device's stream, the host
 * steps them on a stream of its own, and what they gave goes up on a third. Whoever begins both parts and waits for one
 * at a time has the device decide for one half while the host steps the other; rollout.c does.
 * Invariants: (1) the batch is touched by one host function at a time, in the order in which parts were begun, and by
 * others only after kern_sync; (2) a part is begun again only after it was waited for, so that its pinned memory is
 * written only after the copies of the step before. */
#include "kernels/cuda/play/env.cuh"

#include <string.h>

#define CAST_BLOCK 256

struct host_part {
    struct cuda_env_host *host;
    size_t from, to; /* instances */
    cudaEvent_t decided, stepped, up; /* on the device's stream, the host's, and that of copies */
};

struct cuda_env_host {
    struct env_batch *batch; /* owned, like all below */
    struct pool *pool;
    struct env_io io; /* pinned host memory; actions are written by the device's copies */
    int32_t *actions; /* the same memory as io.actions */
    float *reals; /* the same memory as io.reals */
    struct env_log *logs; /* (n_envs) pinned */
    float *obs, *final_obs; /* device, f32 on its way to bf16 */
    cudaStream_t steps, copies;
    size_t n_agents, obs_size, n_heads, mask_width;
    bool has_reals, u8;
    struct host_part parts[KERN_ENV_PARTS];
};

struct env_batch *cuda_env_host_batch(struct cuda_env *env)
{
    return env->host->batch;
}

/* ---- life ---- */

static enum status pinned(void **ret_mem, size_t bytes, const struct env_def *def, struct error *err)
{
    if (cudaMallocHost(ret_mem, bytes) == cudaSuccess)
        return ST_OK;
    cudaGetLastError();
    *ret_mem = NULL;
    return FAIL(err, ST_NOMEM, "env %s: %.1f MB of pinned memory do not fit; lower train.total_agents", def->name,
                (double)bytes / 1e6);
}

static enum status host_memory(struct kern *kern, struct cuda_env_host *host, const struct cuda_env *env,
                               struct error *err)
{
    const struct env_def *def = env->def;
    size_t A = host->n_agents, obs_bytes = A * env_row_bytes(&env->shape);
    bool casts = !env->shape.u8;
    bool cut = env->shape.may_truncate;

    TRY(pinned((void **)&host->actions, A * host->n_heads * sizeof *host->actions, def, err));
    host->io.actions = host->actions;
    if (host->has_reals)
        TRY(pinned((void **)&host->reals, A * host->n_heads * sizeof *host->reals, def, err));
    host->io.reals = host->reals;
    TRY(pinned((void **)&host->io.rewards, A * sizeof *host->io.rewards, def, err));
    TRY(pinned((void **)&host->io.terms, A, def, err));
    TRY(pinned((void **)&host->io.truncs, A, def, err));
    TRY(pinned((void **)&host->io.obs, obs_bytes, def, err));
    TRY(pinned((void **)&host->logs, env->n_envs * sizeof *host->logs, def, err));
    if (cut)
        TRY(pinned((void **)&host->io.final_obs, obs_bytes, def, err));
    if (host->mask_width > 0)
        TRY(pinned((void **)&host->io.mask, A * host->mask_width, def, err));
    if (casts)
        TRY(kern_alloc(kern, (void **)&host->obs, obs_bytes, "observations on their way", err));
    if (casts && cut)
        TRY(kern_alloc(kern, (void **)&host->final_obs, obs_bytes, "last observations on their way", err));
    return ST_OK;
}

static enum status host_streams(struct kern *kern, struct cuda_env_host *host, const struct cuda_env *env,
                                struct error *err)
{
    cuda_check(kern, cudaStreamCreateWithFlags(&host->steps, cudaStreamNonBlocking), "a stream for a game's steps");
    cuda_check(kern, cudaStreamCreateWithFlags(&host->copies, cudaStreamNonBlocking), "a stream for copies");
    for (size_t p = 0; p < env->base.n_parts; p++)
        for (cudaEvent_t *event : {&host->parts[p].decided, &host->parts[p].stepped, &host->parts[p].up})
            cuda_check(kern, cudaEventCreateWithFlags(event, cudaEventDisableTiming), "an event");
    return kern_sync(kern, err);
}

enum status cuda_env_host_create(struct kern *kern, struct cuda_env *env, const void *settings, struct error *err)
{
    struct cuda_env_host *host = (struct cuda_env_host *)mem_alloc(sizeof *host);

    env->host = host;
    host->n_agents = env->n_agents;
    host->obs_size = (size_t)env->shape.obs_size;
    host->u8 = env->shape.u8;
    host->n_heads = (size_t)env->shape.n_heads;
    for (int i = 0; i < env->shape.n_heads; i++)
        host->has_reals |= env->shape.head_sizes[i] == 0;
    for (int i = 0; env->shape.has_mask && i < env->shape.n_heads; i++)
        host->mask_width += (size_t)env->shape.head_sizes[i];
    env->base.n_parts = env->shape.undivided || env->n_envs < KERN_ENV_PARTS ? 1 : KERN_ENV_PARTS;
    for (size_t p = 0; p < env->base.n_parts; p++) {
        host->parts[p].host = host;
        host->parts[p].from = env->n_envs * p / env->base.n_parts;
        host->parts[p].to = env->n_envs * (p + 1) / env->base.n_parts;
        env->base.part_from[p + 1] = host->parts[p].to * (size_t)env->shape.n_agents;
    }
    TRY(env_batch_create(&host->batch, env->def, settings, env->n_envs, env->root, err));
    if (env->shape.n_floats > 0)
        TRY(env_batch_widen(host->batch, err));
    TRY(pool_create(&host->pool, cuda_of(kern)->n_threads, err));
    TRY(host_memory(kern, host, env, err));
    return host_streams(kern, host, env, err);
}

void cuda_env_host_destroy(struct kern *kern, struct cuda_env *env)
{
    struct cuda_env_host *host = env->host;

    if (host == NULL)
        return;
    if (cuda_of(kern)->failed[0] != '\0') /* a hung device would keep us here, and its host functions may still play */
        return;
    cuda_check(kern, cudaStreamSynchronize(cuda_of(kern)->stream), "waiting for the device");
    for (size_t p = 0; p < env->base.n_parts; p++)
        for (cudaEvent_t event : {host->parts[p].decided, host->parts[p].stepped, host->parts[p].up})
            if (event != NULL)
                cudaEventDestroy(event);
    for (cudaStream_t stream : {host->steps, host->copies})
        if (stream != NULL)
            cudaStreamDestroy(stream);
    kern_free(kern, host->final_obs);
    kern_free(kern, host->obs);
    cudaFreeHost(host->io.mask);
    cudaFreeHost(host->io.final_obs);
    cudaFreeHost(host->logs);
    cudaFreeHost(host->io.obs);
    cudaFreeHost(host->io.truncs);
    cudaFreeHost(host->io.terms);
    cudaFreeHost(host->io.rewards);
    cudaFreeHost(host->reals);
    cudaFreeHost(host->actions);
    pool_destroy(host->pool);
    env_batch_destroy(host->batch);
    mem_free(host);
    env->host = NULL;
}

/* ---- host functions: run by a thread of the driver's, in stream order ---- */

static void CUDART_CB reset_on_host(void *ctx)
{
    struct cuda_env_host *host = (struct cuda_env_host *)ctx;
    env_batch_reset(host->batch, host->pool, host->io.obs, host->io.mask);
}

static void CUDART_CB observe_on_host(void *ctx)
{
    struct cuda_env_host *host = (struct cuda_env_host *)ctx;
    env_batch_observe(host->batch, host->pool, host->io.obs, host->io.mask);
}

static void CUDART_CB step_on_host(void *ctx)
{
    struct host_part *part = (struct host_part *)ctx;
    env_batch_begin_part(part->host->batch, &part->host->io, part->from, part->to);
    env_batch_end_part(part->host->batch, part->host->pool, &part->host->io, part->from, part->to);
}

static void CUDART_CB logs_on_host(void *ctx)
{
    struct cuda_env_host *host = (struct cuda_env_host *)ctx;
    env_batch_take_logs(host->batch, host->logs);
}

/* ---- copies ---- */

__global__ void __launch_bounds__(CAST_BLOCK) cast_k(__nv_bfloat16 *y /* (n) */, const float *x /* (n) */, size_t n)
{
    size_t i = (size_t)blockIdx.x * CAST_BLOCK + threadIdx.x;

    if (i < n)
        y[i] = __float2bfloat16_rn(x[i]);
}

/* n bytes from element `at` of size `size`. */
static void up(struct kern *k, void *dst, const void *src, size_t at, size_t n, size_t size, cudaStream_t stream)
{
    if (n > 0)
        cuda_check(k,
                   cudaMemcpyAsync((char *)dst + at * size, (const char *)src + at * size, n * size,
                                   cudaMemcpyHostToDevice, stream),
                   "copying a game's step");
}

/* Rows [at, at + n) of observations, by way of `staged` when they become bf16; bytes stay bytes. */
static void up_obs(struct kern *k, struct cuda_env_host *host, void *dst, float *staged, const float *src, size_t at,
                   size_t n, bool bf16, cudaStream_t stream)
{
    size_t D = host->obs_size, values = n * D;

    if (host->u8) {
        up(k, dst, src, at, n, D, stream);
        return;
    }
    up(k, bf16 ? staged : dst, src, at, n, D * sizeof(float), stream);
    if (!bf16 || n == 0)
        return;
    cast_k<<<(unsigned)((values + CAST_BLOCK - 1) / CAST_BLOCK), CAST_BLOCK, 0, stream>>>((__nv_bfloat16 *)dst + at * D,
                                                                                          staged + at * D, values);
    cuda_launched(k, "the cast of observations");
}

static void host_call(struct kern *k, cudaStream_t stream, cudaHostFn_t fn, void *ctx)
{
    cuda_check(k, cudaLaunchHostFunc(stream, fn, ctx), "a game's step on the host");
}

/* What comes next on a stream waits until here on another. */
static void hand_over(struct kern *k, cudaEvent_t event, cudaStream_t from, cudaStream_t to)
{
    cuda_check(k, cudaEventRecord(event, from), "marking a part of a step");
    cuda_check(k, cudaStreamWaitEvent(to, event, 0), "waiting for a part of a step");
}

/* ---- operations ---- */

static void host_observed(struct kern *k, struct cuda_env *env, void *obs, uint8_t *mask, bool bf16, cudaHostFn_t fn)
{
    struct cuda_env_host *host = env->host;
    cudaStream_t stream = cuda_of(k)->stream;

    host_call(k, stream, fn, host);
    up_obs(k, host, obs, host->obs, host->io.obs, 0, host->n_agents, bf16, stream);
    if (mask != NULL && host->mask_width > 0)
        up(k, mask, host->io.mask, 0, host->n_agents, host->mask_width, stream);
}

void cuda_env_host_reset(struct kern *k, struct cuda_env *env, void *obs, uint8_t *mask, bool bf16)
{
    host_observed(k, env, obs, mask, bf16, reset_on_host);
}

void cuda_env_host_observe(struct kern *k, struct cuda_env *env, void *obs, uint8_t *mask, bool bf16)
{
    host_observed(k, env, obs, mask, bf16, observe_on_host);
}

/* What a part gave. */
static void part_up(struct kern *k, struct cuda_env *env, const struct kern_env_io *io, size_t at, size_t n, bool bf16)
{
    struct cuda_env_host *host = env->host;
    cudaStream_t stream = host->copies;

    up_obs(k, host, io->obs, host->obs, host->io.obs, at, n, bf16, stream);
    if (io->final_obs != NULL && host->io.final_obs != NULL)
        up_obs(k, host, io->final_obs, host->final_obs, host->io.final_obs, at, n, bf16, stream);
    up(k, io->rewards, host->io.rewards, at, n, sizeof(float), stream);
    up(k, io->terms, host->io.terms, at, n, 1, stream);
    up(k, io->truncs, host->io.truncs, at, n, 1, stream);
    if (io->mask != NULL && host->mask_width > 0)
        up(k, io->mask, host->io.mask, at, n, host->mask_width, stream);
}

static void actions_down(struct kern *k, const struct cuda_env_host *host, void *dst, const void *src, size_t at,
                         size_t n)
{
    const size_t row = host->n_heads * sizeof(int32_t); /* a number is as large as a choice */

    cuda_check(k,
               cudaMemcpyAsync((char *)dst + at * row, (const char *)src + at * row, n * row, cudaMemcpyDeviceToHost,
                               cuda_of(k)->stream),
               "copying actions");
}

void cuda_env_host_begin(struct kern *k, struct cuda_env *env, const struct kern_env_io *io, size_t part, bool bf16)
{
    struct cuda_env_host *host = env->host;
    struct host_part *p = &host->parts[part];
    size_t at = env->base.part_from[part], n = env->base.part_from[part + 1] - at;

    actions_down(k, host, host->actions, io->actions, at, n);
    if (host->has_reals && io->reals != NULL)
        actions_down(k, host, host->reals, io->reals, at, n);
    hand_over(k, p->decided, cuda_of(k)->stream, host->steps);
    host_call(k, host->steps, step_on_host, p);
    hand_over(k, p->stepped, host->steps, host->copies);
    part_up(k, env, io, at, n, bf16);
    cuda_check(k, cudaEventRecord(p->up, host->copies), "marking a part of a step");
}

void cuda_env_host_wait(struct kern *k, struct cuda_env *env, size_t part)
{
    cuda_check(k, cudaStreamWaitEvent(cuda_of(k)->stream, env->host->parts[part].up, 0),
               "waiting for a part of a step");
    cuda_of(k)->unchained = true;
}

void cuda_env_host_logs(struct kern *k, struct cuda_env *env)
{
    host_call(k, cuda_of(k)->stream, logs_on_host, env->host);
    up(k, env->logs, env->host->logs, 0, env->n_envs, sizeof *env->logs, cuda_of(k)->stream);
}
