/* batch.c - n instances of one game, stepped by a pool of threads.
 * Invariants: (1) instance i is a function of (settings, rng_split(root, i), its actions) alone, so neither the number
 * of threads nor the split into parts changes a byte; (2) nothing is allocated after creation; (3) the whole state is
 * the two arrays `states` and `logs`. One caller at a time. */
#include "envs/envs.h"

#include "base/mem.h"

#include <string.h>

#define BATCH_MAX_AGENTS ((size_t)1 << 31)

struct env_batch {
    const struct env_def *def; /* borrowed: a registry entry, or a caller's */
    void *settings; /* (def->options.settings_size) owned copy */
    struct env_shape shape;
    size_t n_envs;
    size_t grain; /* instances that stay together, see batch_grain */
    struct rng root;
    void *states; /* (n_envs, def->state_size) owned */
    struct env_log *logs; /* (n_envs) owned */
};

/* Parts of one cache line of flags, so that two threads do not write to the same one. */
static size_t batch_grain(const struct env_shape *shape)
{
    size_t grain = MEM_ALIGN / (size_t)shape->n_agents;
    return grain ? grain : 1;
}

enum status env_def_check(const struct env_def *def, const void *settings, size_t n_envs, struct env_shape *ret_shape,
                          struct error *err)
{
    struct env_shape *shape = ret_shape;
    memset(shape, 0, sizeof *shape);
    if (def->api_version != ENV_API_VERSION)
        return FAIL(err, ST_VERSION, "env %s is built for interface version %u, this program has %d; rebuild it",
                    def->name ? def->name : "?", (unsigned)def->api_version, ENV_API_VERSION);
    TRY(def->shape(settings, shape, err));
    bool heads_ok = shape->n_heads >= 1 && shape->n_heads <= ENV_MAX_HEADS;
    for (int h = 0; heads_ok && h < shape->n_heads; h++)
        heads_ok = shape->head_sizes[h] >= 2;
    if (shape->obs_size < 1 || shape->n_agents < 1 || shape->n_agents > ENV_MAX_AGENTS || !heads_ok)
        return FAIL(err, ST_INTERNAL,
                    "env %s: impossible shape (%d observations, %d agents, %d action heads); the game is at fault",
                    def->name, shape->obs_size, shape->n_agents, shape->n_heads);
    if (shape->channels != 0 && (shape->channels < 1 || shape->height < 1 || shape->width < 1 ||
                                 shape->obs_size / shape->channels / shape->height != shape->width ||
                                 shape->obs_size % (shape->channels * shape->height) != 0))
        return FAIL(err, ST_INTERNAL, "env %s: a grid of %d x %d x %d is not %d observations; the game is at fault",
                    def->name, shape->height, shape->width, shape->channels, shape->obs_size);
    if (n_envs < 1 || n_envs > BATCH_MAX_AGENTS / (size_t)shape->n_agents)
        return FAIL(err, ST_CONFIG, "env %s: %zu instances of %d agents; a batch holds 1 to %zu agents", def->name,
                    n_envs, shape->n_agents, BATCH_MAX_AGENTS);
    return ST_OK;
}

enum status env_batch_create(struct env_batch **ret_batch, const struct env_def *def, const void *settings,
                             size_t n_envs, struct rng root, struct error *err)
{
    *ret_batch = NULL;
    struct env_shape shape;
    TRY(env_def_check(def, settings, n_envs, &shape, err));

    enum status rc = ST_OK;
    struct env_batch *batch = mem_alloc(sizeof *batch);
    batch->def = def;
    batch->shape = shape;
    batch->n_envs = n_envs;
    batch->grain = batch_grain(&shape);
    batch->root = root;
    batch->settings = mem_alloc(def->options.settings_size);
    batch->states = mem_try_array(n_envs, def->state_size);
    batch->logs = mem_try_array(n_envs, sizeof *batch->logs);
    if (!batch->states || !batch->logs) {
        rc = FAIL(err, ST_NOMEM, "env %s: %zu instances of %zu bytes do not fit into memory; lower train.total_agents",
                  def->name, n_envs, def->state_size);
        goto fail;
    }
    memcpy(batch->settings, settings, def->options.settings_size);
    *ret_batch = batch;
    return ST_OK;
fail:
    env_batch_destroy(batch);
    return rc;
}

void env_batch_destroy(struct env_batch *batch)
{
    if (!batch)
        return;
    mem_free(batch->logs);
    mem_free(batch->states);
    mem_free(batch->settings);
    mem_free(batch);
}

void env_batch_set_root(struct env_batch *batch, struct rng root)
{
    batch->root = root;
}

/* -- jobs -- */
struct batch_job {
    const struct env_batch *batch;
    size_t first; /* step: instance that index 0 of the pool is */
    const struct env_io *io; /* step */
    float *obs; /* reset, observe */
    uint8_t *mask;
};

static void reset_job(void *ctx, size_t worker, size_t from, size_t to)
{
    (void)worker;
    const struct batch_job *job = ctx;
    const struct env_batch *batch = job->batch;
    batch->def->reset_range(batch->settings, batch->states, batch->root, from, to);
    batch->def->observe_range(batch->settings, batch->states, job->obs, job->mask, from, to);
}

static void step_job(void *ctx, size_t worker, size_t from, size_t to)
{
    (void)worker;
    const struct batch_job *job = ctx;
    const struct env_batch *batch = job->batch;
    batch->def->step_range(batch->settings, batch->states, batch->logs, job->io, job->first + from, job->first + to);
}

static void observe_job(void *ctx, size_t worker, size_t from, size_t to)
{
    (void)worker;
    const struct batch_job *job = ctx;
    const struct env_batch *batch = job->batch;
    batch->def->observe_range(batch->settings, batch->states, job->obs, job->mask, from, to);
}

void env_batch_reset(struct env_batch *batch, struct pool *pool, float *obs, uint8_t *mask)
{
    struct batch_job job = {.batch = batch, .obs = obs, .mask = mask};
    memset(batch->states, 0, batch->n_envs * batch->def->state_size);
    memset(batch->logs, 0, batch->n_envs * sizeof *batch->logs);
    pool_run(pool, batch->n_envs, batch->grain, reset_job, &job);
}

void env_batch_step(struct env_batch *batch, struct pool *pool, const struct env_io *io)
{
    env_batch_step_part(batch, pool, io, 0, batch->n_envs);
}

void env_batch_step_part(struct env_batch *batch, struct pool *pool, const struct env_io *io, size_t from, size_t to)
{
    struct batch_job job = {.batch = batch, .first = from, .io = io};
    pool_run(pool, to - from, batch->grain, step_job, &job);
}

void env_batch_observe(const struct env_batch *batch, struct pool *pool, float *obs, uint8_t *mask)
{
    struct batch_job job = {.batch = batch, .obs = obs, .mask = mask};
    pool_run(pool, batch->n_envs, batch->grain, observe_job, &job);
}

void env_batch_take_logs(struct env_batch *batch, struct env_log *ret_logs)
{
    memcpy(ret_logs, batch->logs, batch->n_envs * sizeof *batch->logs);
    memset(batch->logs, 0, batch->n_envs * sizeof *batch->logs);
}

void env_batch_take_log(struct env_batch *batch, struct env_log *ret_log)
{
    struct env_log sum = {0};
    for (size_t i = 0; i < batch->n_envs; i++)
        env_log_sum(&sum, &batch->logs[i]);
    memset(batch->logs, 0, batch->n_envs * sizeof *batch->logs);
    *ret_log = sum;
}

/* -- whole state -- */
size_t env_batch_state_bytes(const struct env_batch *batch)
{
    return batch->n_envs * (batch->def->state_size + sizeof *batch->logs);
}

void env_batch_save(const struct env_batch *batch, void *bytes)
{
    size_t n = batch->n_envs * batch->def->state_size;
    memcpy(bytes, batch->states, n);
    memcpy((char *)bytes + n, batch->logs, batch->n_envs * sizeof *batch->logs);
}

void env_batch_load(struct env_batch *batch, const void *bytes)
{
    size_t n = batch->n_envs * batch->def->state_size;
    memcpy(batch->states, bytes, n);
    memcpy(batch->logs, (const char *)bytes + n, batch->n_envs * sizeof *batch->logs);
}
