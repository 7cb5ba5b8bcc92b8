/* batch.c - n instances of one game, stepped by a pool of threads.
 * Invariants: (1) instance i is a function of (settings, rng_split(root, i), its actions) alone, so neither the number
 * of threads nor the split into parts changes a byte; (2) nothing is allocated after creation; (3) the whole state of a
 * game of plain bytes is the two arrays `states` and `logs`. One caller at a time. */
#include "base/base.h"
#include "envs/envs.h"

#define BATCH_MAX_AGENTS ((size_t)1 << 31)
#define PICTURE_SIZE_MAX 1e6 /* beyond it, and at 0 or NaN, nothing could be seen */

struct env_batch {
    const struct env_def *def; /* borrowed: a built-in game's, a library's, or a caller's */
    void *settings; /* (def->options.settings_size) owned copy */
    struct env_shape shape;
    size_t n_envs;
    size_t grain; /* instances that stay together, see batch_grain */
    struct rng root;
    void *states; /* (n_envs, def->state_size) owned; of a game with memory of its own: what open gave */
    struct env_log *logs; /* (n_envs) owned */
    uint8_t *rows, *final_rows; /* (A, env_row_bytes) owned: of a batch that widens what its game shows; else NULL */
};

/* Parts of one cache line of flags, so that two threads do not write to the same one. */
static size_t batch_grain(const struct env_shape *shape)
{
    size_t grain = MEM_ALIGN / (size_t)shape->n_agents;
    return grain ? grain : 1;
}

/* Ranges of numbers that are none, and what is left to a default. */
static enum status check_supported(const struct env_def *def, struct env_shape *shape, struct error *err)
{
    for (int h = 0; h < shape->n_heads && h < ENV_MAX_HEADS; h++) {
        double low = (double)shape->low[h], high = (double)shape->high[h];
        if (shape->head_sizes[h] != 0)
            continue;
        if (!(low < high) || !isfinite(low) || !isfinite(high))
            return FAIL(err, ST_CONFIG,
                        "env %s: action %d is a number from %g to %g; both limits must be finite, the "
                        "first below the second",
                        def->name, h, low, high);
        if (shape->has_mask)
            return FAIL(err, ST_CONFIG,
                        "env %s: action %d is a number, and the game has a mask; only games whose "
                        "actions are all choices can have one",
                        def->name, h);
    }
    if (shape->u8 && !(shape->byte_scale >= 0.0f && isfinite(shape->byte_scale)))
        return FAIL(err, ST_CONFIG,
                    "env %s: byte_scale is %g; observations are bytes divided by a finite number above 0", def->name,
                    (double)shape->byte_scale);
    if (shape->u8 && shape->byte_scale == 0.0f)
        shape->byte_scale = ENV_BYTE_SCALE;
    if (shape->n_floats != 0 &&
        (!shape->u8 || shape->n_floats < 0 || shape->n_floats >= shape->obs_size ||
         (double)shape->channels * shape->height * shape->width > shape->obs_size - shape->n_floats))
        return FAIL(
            err, ST_CONFIG,
            "env %s: n_floats is %d of %d numbers; it is how many of the last numbers of an observation of bytes (u8) "
            "are not bytes, and a grid is of bytes then",
            def->name, shape->n_floats, shape->obs_size);
    return ST_OK;
}

/* A game asks for its own shape at each step: one that differs from call to call spoils memory. */
static enum status check_same_shape(const struct env_def *def, const void *settings, const struct env_shape *shape,
                                    struct error *err)
{
    struct env_shape again = {0};

    TRY(def->shape(def, settings, &again, err));
    if (again.obs_size != shape->obs_size || again.n_agents != shape->n_agents || again.n_heads != shape->n_heads ||
        again.has_mask != shape->has_mask || again.u8 != shape->u8 || again.n_floats != shape->n_floats ||
        memcmp(again.head_sizes, shape->head_sizes, sizeof again.head_sizes) != 0)
        return FAIL(err, ST_INTERNAL,
                    "env %s: its shape differs from call to call with the same options (%d observations, then %d; %d "
                    "agents, then %d; %d action heads, then %d); the game is at fault",
                    def->name, shape->obs_size, again.obs_size, shape->n_agents, again.n_agents, shape->n_heads,
                    again.n_heads);
    return ST_OK;
}

enum status env_def_check(const struct env_def *def, const void *settings, size_t n_envs, struct env_shape *ret_shape,
                          struct error *err)
{
    struct env_shape *shape = ret_shape;
    memset(shape, 0, sizeof *shape);
    if (def->api_version != ENV_API_VERSION)
        return FAIL(err, ST_VERSION, "env %s is built for interface version %u, this program has %d; rebuild it",
                    def->name ? def->name : "?", (unsigned)def->api_version, ENV_API_VERSION);
    TRY(def->shape(def, settings, shape, err));
    TRY(check_same_shape(def, settings, shape, err));
    if (shape->n_heads > ENV_MAX_HEADS)
        return FAIL(err, ST_CONFIG,
                    "env %s: an action has %d components, and at most %d are trained; make one of several (two of 3 "
                    "choices are one of 9), or an agent of each part that decides",
                    def->name, shape->n_heads, ENV_MAX_HEADS);
    bool to_learn = false, heads_ok = shape->n_heads >= 1 && shape->n_heads <= ENV_MAX_HEADS;
    for (int h = 0; heads_ok && h < shape->n_heads; h++)
        heads_ok = shape->head_sizes[h] >= 0;
    if (shape->obs_size < 1 || shape->n_agents < 1 || shape->n_agents > ENV_MAX_AGENTS || !heads_ok)
        return FAIL(
            err, ST_INTERNAL,
            "env %s: impossible shape: %d observations (at least 1), %d agents (1 to %d), %d action heads (1 to %d, "
            "each of 1 or more choices, or of 0 for a number); the game is at fault",
            def->name, shape->obs_size, shape->n_agents, ENV_MAX_AGENTS, shape->n_heads, ENV_MAX_HEADS);
    for (int h = 0; !to_learn && h < shape->n_heads; h++)
        to_learn = shape->head_sizes[h] != 1;
    if (!to_learn)
        return FAIL(err, ST_CONFIG, "env %s: its actions have one choice only: there is nothing to learn", def->name);
    TRY(check_supported(def, shape, err));
    if (shape->channels != 0 && (shape->channels < 1 || shape->height < 1 || shape->width < 1 ||
                                 shape->obs_size / shape->channels / shape->height < shape->width))
        return FAIL(err, ST_INTERNAL,
                    "env %s: a grid of %d x %d x %d is more than its %d observations; the game is at fault", def->name,
                    shape->height, shape->width, shape->channels, shape->obs_size);
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
    memcpy(batch->settings, settings, def->options.settings_size);
    batch->logs = mem_try_array(n_envs, sizeof *batch->logs);
    batch->states = def->open == NULL ? mem_try_array(n_envs, def->state_size) : NULL;
    if (!batch->logs || (!batch->states && def->open == NULL))
        rc = FAIL(err, ST_NOMEM, "env %s: %zu instances of %zu bytes do not fit into memory; lower train.total_agents",
                  def->name, n_envs, def->state_size);
    else if (def->open != NULL)
        rc = def->open(def, batch->settings, n_envs, &batch->states, err);
    if (rc != ST_OK) {
        env_batch_destroy(batch);
        return rc;
    }
    *ret_batch = batch;
    return ST_OK;
}

void env_batch_destroy(struct env_batch *batch)
{
    if (!batch)
        return;
    if (batch->def->open == NULL)
        mem_free(batch->states);
    else if (batch->states != NULL)
        batch->def->close(batch->settings, batch->states, batch->n_envs);
    mem_free(batch->logs);
    mem_free(batch->rows);
    mem_free(batch->final_rows);
    mem_free(batch->settings);
    mem_free(batch);
}

enum status env_batch_widen(struct env_batch *batch, struct error *err)
{
    size_t n = env_batch_agents(batch);

    batch->rows = mem_try_array(n, env_row_bytes(&batch->shape));
    batch->final_rows = mem_try_array(n, env_row_bytes(&batch->shape));
    if (batch->rows == NULL || batch->final_rows == NULL)
        return FAIL(err, ST_NOMEM,
                    "env %s: observations of %zu agents do not fit into memory; lower train.total_agents",
                    batch->def->name, n);
    return ST_OK;
}

size_t env_batch_agents(const struct env_batch *batch)
{
    return batch->n_envs * (size_t)batch->shape.n_agents;
}

enum status env_batch_failed(const struct env_batch *batch, struct error *err)
{
    return batch->def->failed != NULL ? batch->def->failed(batch->states, err) : ST_OK;
}

void env_batch_set_root(struct env_batch *batch, struct rng root)
{
    batch->root = root;
}

double env_batch_outside_s(const struct env_batch *batch)
{
    return batch->def->outside_s != NULL ? batch->def->outside_s(batch->states) : 0.0;
}

/* -- jobs -- */
struct batch_job {
    const struct env_batch *batch;
    size_t first; /* step: instance that index 0 of the pool is */
    const struct env_io *io; /* step */
    float *obs; /* reset, observe */
    uint8_t *mask;
};

/* What the rows of instances [from, to) of a batch that widens show. */
static void widen_rows(const struct env_batch *batch, const uint8_t *rows, float *obs, size_t from, size_t to)
{
    size_t agents = (size_t)batch->shape.n_agents, D = (size_t)batch->shape.obs_size;

    for (size_t a = from * agents; rows != NULL && obs != NULL && a < to * agents; a++)
        env_numbers(&batch->shape, rows + a * env_row_bytes(&batch->shape), 1.0f / batch->shape.byte_scale,
                    obs + a * D);
}

static void observe_job(void *ctx, size_t worker, size_t from, size_t to)
{
    (void)worker;
    const struct batch_job *job = ctx;
    const struct env_batch *batch = job->batch;
    float *obs = batch->rows != NULL ? (float *)(void *)batch->rows : job->obs;
    batch->def->observe_range(batch->settings, batch->states, obs, job->mask, from, to);
    widen_rows(batch, batch->rows, job->obs, from, to);
}

static void reset_job(void *ctx, size_t worker, size_t from, size_t to)
{
    const struct batch_job *job = ctx;
    const struct env_batch *batch = job->batch;
    batch->def->reset_range(batch->settings, batch->states, batch->root, from, to);
    observe_job(ctx, worker, from, to);
}

static void step_job(void *ctx, size_t worker, size_t from, size_t to)
{
    (void)worker;
    const struct batch_job *job = ctx;
    const struct env_batch *batch = job->batch;
    struct env_io io = *job->io;
    if (batch->rows != NULL) {
        io.obs = (float *)(void *)batch->rows;
        io.final_obs = (float *)(void *)batch->final_rows;
    }
    from += job->first, to += job->first;
    batch->def->step_range(batch->settings, batch->states, batch->logs, &io, from, to);
    widen_rows(batch, batch->rows, job->io->obs, from, to);
    widen_rows(batch, batch->final_rows, job->io->final_obs, from, to);
}

static void run(struct pool *pool, const struct env_batch *batch, size_t n, pool_fn *fn, struct batch_job *job)
{
    pool_run(batch->def->begin_range != NULL ? NULL : pool, n, batch->grain, fn, job);
}

void env_batch_reset(struct env_batch *batch, struct pool *pool, float *obs, uint8_t *mask)
{
    struct batch_job job = {.batch = batch, .obs = obs, .mask = mask};
    if (batch->def->open == NULL)
        memset(batch->states, 0, batch->n_envs * batch->def->state_size);
    memset(batch->logs, 0, batch->n_envs * sizeof *batch->logs);
    run(pool, batch, batch->n_envs, reset_job, &job);
}

void env_batch_step(struct env_batch *batch, struct pool *pool, const struct env_io *io)
{
    env_batch_begin_part(batch, io, 0, batch->n_envs);
    env_batch_end_part(batch, pool, io, 0, batch->n_envs);
}

bool env_batch_overlaps(const struct env_batch *batch)
{
    return batch->def->begin_range != NULL && !batch->shape.undivided;
}

void env_batch_begin_part(struct env_batch *batch, const struct env_io *io, size_t from, size_t to)
{
    if (batch->def->begin_range != NULL)
        batch->def->begin_range(batch->settings, batch->states, io, from, to);
}

void env_batch_end_part(struct env_batch *batch, struct pool *pool, const struct env_io *io, size_t from, size_t to)
{
    struct batch_job job = {.batch = batch, .first = from, .io = io};
    run(pool, batch, to - from, step_job, &job);
}

void env_batch_observe(const struct env_batch *batch, struct pool *pool, float *obs, uint8_t *mask)
{
    struct batch_job job = {.batch = batch, .obs = obs, .mask = mask};
    run(pool, batch, batch->n_envs, observe_job, &job);
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

double env_batch_take_numbers(struct env_batch *batch, double *ret_sums)
{
    return batch->def->n_numbers > 0 ? batch->def->take_numbers(batch->states, batch->n_envs, ret_sums) : 0.0;
}

/* -- whole state -- */
static size_t states_bytes(const struct env_batch *batch)
{
    const struct env_def *def = batch->def;

    if (def->open == NULL)
        return batch->n_envs * def->state_size;
    return def->saved_bytes != NULL ? def->saved_bytes(batch->states, batch->n_envs) : 0;
}

size_t env_batch_state_bytes(const struct env_batch *batch)
{
    return states_bytes(batch) + batch->n_envs * sizeof *batch->logs;
}

void env_batch_save(const struct env_batch *batch, void *bytes)
{
    size_t n = states_bytes(batch);

    if (batch->def->open == NULL)
        memcpy(bytes, batch->states, n);
    else if (n > 0)
        batch->def->save(batch->states, batch->n_envs, bytes);
    memcpy((char *)bytes + n, batch->logs, batch->n_envs * sizeof *batch->logs);
}

void env_batch_load(struct env_batch *batch, const void *bytes)
{
    size_t n = states_bytes(batch);

    if (batch->def->open == NULL)
        memcpy(batch->states, bytes, n);
    else if (n > 0)
        batch->def->load(batch->states, batch->n_envs, bytes);
    memcpy(batch->logs, (const char *)bytes + n, batch->n_envs * sizeof *batch->logs);
}

void env_numbers(const struct env_shape *shape, const void *row, float scale, float *ret_numbers)
{
    size_t D = (size_t)shape->obs_size, n_floats = shape->u8 ? (size_t)shape->n_floats : D;
    const uint8_t *bytes = row;

    for (size_t i = 0; i < D - n_floats; i++)
        ret_numbers[i] = (float)bytes[i] * scale;
    memcpy(ret_numbers + (D - n_floats), bytes + env_row_bytes(shape) - n_floats * sizeof(float),
           n_floats * sizeof(float));
}

/* -- picture -- */
void env_draw(const struct env_def *def, const void *settings, const void *state, struct env_picture *ret_picture)
{
    const struct env_picture empty = {.width = 320, .height = 120};

    *ret_picture = empty;
    if (def->draw != NULL && (def->open == NULL || def->save != NULL))
        def->draw(settings, state, ret_picture);
    else
        env_draw_text(ret_picture, 160, 64, 16, 0, "no picture of %.20s", def->name);
    if (!(ret_picture->width > 0 && ret_picture->width <= PICTURE_SIZE_MAX && ret_picture->height > 0 &&
          ret_picture->height <= PICTURE_SIZE_MAX)) {
        *ret_picture = empty;
        env_draw_text(ret_picture, 160, 64, 16, 0, "%.20s draws without a size", def->name);
    }
}
