/* cpu_device.c - the CPU backend: threads, plain memory, games stepped on the host, and the table of operations.
 * Invariant: everything a launcher needs (threads, partial sums) exists from open to close, so none of them
 * allocates. */
#include "kernels/cpu/cpu_priv.h"

#include "base/os/machine.h"

#include <cblas.h>
#include <sys/mman.h>
#include <sys/resource.h>

/* Of one shard. With 128 wide layers the activations of 512 tokens are 2 MB, an L2 cache. */
#define CPU_BLOCK_TOKENS 1024
/* What the compiler was allowed to use (-march). */
#if defined(__AVX512F__)
#define BUILT_FOR "avx512"
#elif defined(__AVX2__)
#define BUILT_FOR "avx2"
#else
#define BUILT_FOR "base"
#endif
#define BLAS_WORK_BYTES ((size_t)160 << 20) /* 128 MB and what the allocator adds */

struct cpu_env {
    struct kern_env base; /* first: see kern_priv.h */
    struct env_batch *batch;
    struct env_io io[KERN_ENV_PARTS]; /* of the parts that were begun */
    size_t n_agents; /* of an instance */
};

static struct env_batch *batch_of(const struct kern_env *env)
{
    return ((const struct cpu_env *)env)->batch;
}

extern void *blas_memory_alloc(int) __attribute__((weak)); /* OpenBLAS's own, as its products call them */
extern void blas_memory_free(void *) __attribute__((weak));

/* OpenBLAS maps a work area for each thread at its first product, and tries for ever when a limit on the address space
 * or on data forbids it. So ask for as much before it does, and let it keep the areas: what is mapped until then, a
 * policy or a thread's heap, would take their place. */
static enum status reserve_blas_areas(size_t n_threads, struct error *err)
{
    struct rlimit limit, data;
    size_t need = n_threads * BLAS_WORK_BYTES;

    if (getrlimit(RLIMIT_AS, &limit) != 0 || getrlimit(RLIMIT_DATA, &data) != 0)
        return ST_OK;
    limit.rlim_cur = data.rlim_cur < limit.rlim_cur ? data.rlim_cur : limit.rlim_cur;
    if (limit.rlim_cur == RLIM_INFINITY)
        return ST_OK;
    void *area = mmap(NULL, need, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (area == MAP_FAILED)
        return FAIL(err, ST_NOMEM,
                    "OpenBLAS needs %zu MB of address space for %zu thread%s and the limit is %zu MB in all; raise it "
                    "(ulimit -v, or the worker's share of memory) or lower train.threads",
                    need >> 20, n_threads, n_threads == 1 ? "" : "s", (size_t)(limit.rlim_cur >> 20));
    munmap(area, need);
    if (blas_memory_alloc == NULL || blas_memory_free == NULL)
        return ST_OK;
    MEM_LOCAL void **areas = mem_array(n_threads, sizeof *areas);
    for (size_t i = 0; i < n_threads; i++)
        areas[i] = blas_memory_alloc(0);
    for (size_t i = 0; i < n_threads; i++)
        blas_memory_free(areas[i]);
    return ST_OK;
}

static enum status cpu_open(struct kern *kern, const struct kern_settings *settings, struct error *err)
{
    char model[128];
    double from_s = clock_mono_s();
    struct pool *pool;
    struct cpu *cpu;

    TRY(pool_create(&pool, settings->n_threads, err));
    kern->n_threads = pool_size(pool);
    enum status rc = reserve_blas_areas(kern->n_threads, err);
    if (rc != ST_OK) {
        pool_destroy(pool);
        return rc;
    }
    cpu = mem_alloc(sizeof *cpu);
    cpu->pool = pool;
    cpu->partials = mem_array2(kern->n_threads, CPU_PARTIALS, sizeof *cpu->partials);
    cpu->shards = mem_array(kern->n_threads, sizeof *cpu->shards);
    machine_cpu_name(model, sizeof model);
    snprintf(kern->name, sizeof kern->name, "%s (%zu thread%s, %s)", model, kern->n_threads,
             kern->n_threads == 1 ? "" : "s", cpu_blas_core());
    snprintf(kern->vector_units, sizeof kern->vector_units, "%s+%s", cpu_blas_core(), BUILT_FOR);
    kern->memory_bytes = machine_memory_bytes();
    kern->block_tokens = CPU_BLOCK_TOKENS;
    kern->impl = cpu;
    for (size_t w = 0; w < kern->n_threads; w++) {
        struct cpu_shard *shard = &cpu->shards[w];
        shard->cpu.partials = cpu->partials + w * CPU_PARTIALS;
        shard->kern = *kern;
        shard->kern.impl = &shard->cpu;
        shard->kern.n_threads = 1;
    }
    kern_part_end(kern, "threads", &from_s);
    return ST_OK;
}

static void cpu_close(struct kern *kern)
{
    MEM_LOCAL struct cpu *cpu = cpu_of(kern);
    pool_destroy(cpu->pool);
    mem_free(cpu->shards);
    mem_free(cpu->partials);
}

static void *cpu_alloc(struct kern *kern, size_t bytes)
{
    if (kern->memory_bytes != 0 && bytes > kern->memory_bytes)
        return NULL; /* zeroing it would bring the machine down before the allocator refuses */
    return mem_try_alloc(bytes);
}

static void cpu_free(struct kern *kern, void *mem)
{
    (void)kern;
    mem_free(mem);
}

static enum status cpu_transfer(struct kern *kern, void *dst, const void *src, size_t bytes, struct error *err)
{
    (void)kern, (void)err;
    if (bytes > 0)
        memcpy(dst, src, bytes);
    return ST_OK;
}

/* Every operation has finished when it returns; what is left to report is a game that failed. */
static enum status cpu_sync(struct kern *kern, struct error *err)
{
    struct error failed = cpu_of(kern)->failed;

    if (failed.status == ST_OK)
        return ST_OK;
    error_clear(&cpu_of(kern)->failed);
    return FAIL(err, failed.status, "%s", failed.text);
}

struct kern_slot {
    size_t bytes;
    _Alignas(16) char mem[];
};

static enum status cpu_slot_create(struct kern *kern, struct kern_slot **ret_slot, size_t bytes, struct error *err)
{
    (void)kern, (void)err;
    *ret_slot = mem_alloc(sizeof(struct kern_slot) + bytes);
    (*ret_slot)->bytes = bytes;
    return ST_OK;
}

static void cpu_slot_destroy(struct kern *kern, struct kern_slot *slot)
{
    (void)kern;
    mem_free(slot);
}

static enum status cpu_slot_take(struct kern *kern, struct kern_slot *slot, const void *src, struct error *err)
{
    return cpu_transfer(kern, slot->mem, src, slot->bytes, err);
}

static enum status cpu_slot_wait(struct kern *kern, struct kern_slot *slot, const void **ret_bytes, struct error *err)
{
    *ret_bytes = slot->mem;
    return cpu_sync(kern, err);
}

static size_t cpu_n_shards(const struct kern *kern)
{
    return kern->n_threads;
}

struct shard_job {
    struct cpu *cpu;
    kern_shard_fn *fn;
    void *ctx;
};

static void shard_part(void *ctx, size_t worker, size_t from, size_t to)
{
    const struct shard_job *job = (const struct shard_job *)ctx;

    (void)worker;
    for (size_t i = from; i < to; i++)
        job->fn(job->ctx, &job->cpu->shards[i].kern, i);
}

static void cpu_each_shard(struct kern *kern, kern_shard_fn *fn, void *ctx)
{
    struct shard_job job = {.cpu = cpu_of(kern), .fn = fn, .ctx = ctx};
    pool_run(job.cpu->pool, kern->n_threads, 1, shard_part, &job);
}

static enum status cpu_env_create(struct kern *kern, struct kern_env **ret_env, const struct env_def *def,
                                  const void *settings, size_t n_envs, struct rng root, struct error *err)
{
    struct cpu_env *env = mem_alloc(sizeof *env);

    (void)kern;
    env->base.device = &cpu_device;
    enum status rc = env_batch_create(&env->batch, def, settings, n_envs, root, err);
    if (rc != ST_OK) {
        mem_free(env);
        return rc;
    }
    env->n_agents = env_batch_agents(env->batch) / n_envs;
    env->base.n_parts = env_batch_overlaps(env->batch) && n_envs >= KERN_ENV_PARTS ? KERN_ENV_PARTS : 1;
    for (size_t p = 1; p <= env->base.n_parts; p++)
        env->base.part_from[p] = n_envs * p / env->base.n_parts * env->n_agents;
    *ret_env = &env->base;
    return ST_OK;
}

static void cpu_env_destroy(struct kern *kern, struct kern_env *env)
{
    (void)kern;
    env_batch_destroy(batch_of(env));
    mem_free(env);
}

static enum status cpu_env_restart(struct kern *kern, struct kern_env *env, struct rng root, struct error *err)
{
    (void)kern, (void)err;
    env_batch_set_root(batch_of(env), root);
    return ST_OK;
}

static enum status cpu_env_take_log(struct kern *kern, struct kern_env *env, struct env_log *ret_log, struct error *err)
{
    (void)kern, (void)err;
    env_batch_take_log(batch_of(env), ret_log);
    return ST_OK;
}

static enum status cpu_env_take_numbers(struct kern *kern, struct kern_env *env, double *ret_sums, double *ret_episodes,
                                        struct error *err)
{
    (void)kern, (void)err;
    *ret_episodes = env_batch_take_numbers(batch_of(env), ret_sums);
    return ST_OK;
}

static double cpu_env_outside_s(const struct kern_env *env)
{
    return env_batch_outside_s(batch_of(env));
}

static size_t cpu_env_state_bytes(const struct kern_env *env)
{
    return env_batch_state_bytes(batch_of(env));
}

static enum status cpu_env_save(struct kern *kern, struct kern_env *env, void *bytes, struct error *err)
{
    (void)kern, (void)err;
    env_batch_save(batch_of(env), bytes);
    return ST_OK;
}

static enum status cpu_env_load(struct kern *kern, struct kern_env *env, const void *bytes, struct error *err)
{
    (void)kern, (void)err;
    env_batch_load(batch_of(env), bytes);
    return ST_OK;
}

void cpu_env_reset(struct kern *k, struct kern_env *env, void *obs, uint8_t *mask)
{
    env_batch_reset(batch_of(env), cpu_of(k)->pool, obs, mask);
}

void cpu_env_begin(struct kern *k, struct kern_env *env, const struct kern_env_io *io, size_t part)
{
    struct cpu_env *own = (struct cpu_env *)env;

    (void)k;
    own->io[part] = (struct env_io){.actions = io->actions,
                                    .reals = io->reals,
                                    .rewards = io->rewards,
                                    .terms = io->terms,
                                    .truncs = io->truncs,
                                    .obs = io->obs,
                                    .final_obs = io->final_obs,
                                    .mask = io->mask};
    env_batch_begin_part(own->batch, &own->io[part], env->part_from[part] / own->n_agents,
                         env->part_from[part + 1] / own->n_agents);
}

void cpu_env_wait(struct kern *k, struct kern_env *env, size_t part)
{
    struct cpu_env *own = (struct cpu_env *)env;

    env_batch_end_part(own->batch, cpu_of(k)->pool, &own->io[part], env->part_from[part] / own->n_agents,
                       env->part_from[part + 1] / own->n_agents);
    if (env_batch_failed(own->batch, &cpu_of(k)->failed) != ST_OK)
        return; /* reported by the next cpu_sync */
}

void cpu_env_observe(struct kern *k, struct kern_env *env, void *obs, uint8_t *mask)
{
    env_batch_observe(batch_of(env), cpu_of(k)->pool, obs, mask);
}

void cpu_env_log_take(struct kern *k, struct kern_env *env, struct env_log *log)
{
    (void)k;
    env_batch_take_log(batch_of(env), log);
}

void cpu_mark(struct kern *k, uint64_t *ns)
{
    (void)k;
    *ns = clock_mono_ns();
}

#define CPU_ROW(name) .name = cpu_##name,
static const struct kern_ops cpu_ops = {.name = "cpu", .act_size = sizeof(float), KERN_EACH_OP(CPU_ROW, CPU_ROW)};

const struct kern_device cpu_device = {
    .kind = KERN_CPU,
    .ops = {[KERN_F32] = &cpu_ops},
    .open = cpu_open,
    .close = cpu_close,
    .alloc = cpu_alloc,
    .free = cpu_free,
    .upload = cpu_transfer,
    .download = cpu_transfer,
    .sync = cpu_sync,
    .slot_create = cpu_slot_create,
    .slot_destroy = cpu_slot_destroy,
    .slot_take = cpu_slot_take,
    .slot_wait = cpu_slot_wait,
    .n_shards = cpu_n_shards,
    .conv_scratch_bytes = cpu_conv_scratch_bytes,
    .wide_bytes = cpu_wide_bytes,
    .each_shard = cpu_each_shard,
    .env_create = cpu_env_create,
    .env_destroy = cpu_env_destroy,
    .env_restart = cpu_env_restart,
    .env_take_log = cpu_env_take_log,
    .env_outside_s = cpu_env_outside_s,
    .env_take_numbers = cpu_env_take_numbers,
    .env_state_bytes = cpu_env_state_bytes,
    .env_save = cpu_env_save,
    .env_load = cpu_env_load,
};
