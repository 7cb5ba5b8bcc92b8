/* test_own_memory.c - games whose memory is their own: opened and closed once, saved where they can be, stepped as a
 * whole, failing. */
#include "envs_test.h"

#include "base/os/pool.h"

#define N 70 /* instances: more than a grain */

struct counter_settings {
    int64_t limit; /* a batch of more instances does not open */
};

/* The game counts to its instance's number, adding its action. */
struct counter {
    int64_t *counts; /* (n) */
    size_t n, from[8], to[8], n_ranges, n_begun;
    int n_steps;
};

static int n_open;
static struct counter *last_opened;

static enum status counter_shape(const struct env_def *def, const void *settings, struct env_shape *shape,
                                 struct error *err)
{
    (void)def, (void)settings, (void)err;
    *shape = (struct env_shape){.obs_size = 1, .n_agents = 1, .n_heads = 1, .head_sizes = {3}};
    return ST_OK;
}

static enum status counter_open(const struct env_def *def, const void *settings, size_t n_envs, void **ret_states,
                                struct error *err)
{
    const struct counter_settings *s = settings;
    struct counter *c;

    assert_string_equal(def->name, "counter");
    if ((int64_t)n_envs > s->limit)
        return FAIL(err, ST_CONFIG, "counter: no more than %d instances", (int)s->limit);
    c = mem_alloc(sizeof *c);
    c->counts = mem_array(n_envs, sizeof *c->counts);
    c->n = n_envs;
    *ret_states = last_opened = c;
    n_open++;
    return ST_OK;
}

static void counter_close(const void *settings, void *states, size_t n_envs)
{
    MEM_LOCAL struct counter *c = states;

    (void)settings;
    assert_int_equal(n_envs, c->n);
    mem_free(c->counts);
    n_open--;
}

static void counter_reset(const void *settings, void *states, struct rng root, size_t from, size_t to)
{
    (void)settings, (void)root;
    for (size_t i = from; i < to; i++)
        ((struct counter *)states)->counts[i] = (int64_t)i;
}

static void counter_observe(const void *settings, const void *states, float *obs, uint8_t *mask, size_t from, size_t to)
{
    (void)settings, (void)mask;
    for (size_t i = from; i < to; i++)
        obs[i] = (float)((const struct counter *)states)->counts[i];
}

static void counter_step(const void *settings, void *states, struct env_log *logs, const struct env_io *io, size_t from,
                         size_t to)
{
    struct counter *c = states;

    (void)logs;
    if (c->n_ranges < 8) { /* with one thread, or as a whole */
        c->from[c->n_ranges] = from;
        c->to[c->n_ranges++] = to;
    }
    c->n_steps++;
    for (size_t i = from; i < to; i++) {
        c->counts[i] += io->actions[i];
        io->rewards[i] = 0.0f;
        io->terms[i] = io->truncs[i] = 0;
    }
    counter_observe(settings, states, io->obs, NULL, from, to);
}

static void counter_begin(const void *settings, void *states, const struct env_io *io, size_t from, size_t to)
{
    (void)settings, (void)io, (void)from, (void)to;
    ((struct counter *)states)->n_begun++;
}

static size_t counter_saved_bytes(const void *states, size_t n_envs)
{
    (void)states;
    return n_envs * sizeof(int64_t);
}

static void counter_save(const void *states, size_t n_envs, void *bytes)
{
    memcpy(bytes, ((const struct counter *)states)->counts, n_envs * sizeof(int64_t));
}

static void counter_load(void *states, size_t n_envs, const void *bytes)
{
    memcpy(((struct counter *)states)->counts, bytes, n_envs * sizeof(int64_t));
}

static void counter_draw(const void *unused, const void *state, struct env_picture *picture)
{
    int64_t count;

    (void)unused;
    memcpy(&count, state, sizeof count);
    env_draw_text(picture, 0, 0, 10, 0, "%d", (int)count);
}

static enum status counter_failed(const void *states, struct error *err)
{
    return ((const struct counter *)states)->n_steps < 3 ? ST_OK : FAIL(err, ST_IO, "counter: its process has ended");
}

static const struct env_about counter_about = {"counts", NULL, 0};
static const struct env_def counter_def = {
    .api_version = ENV_API_VERSION,
    .def_bytes = sizeof(struct env_def),
    .name = "counter",
    .about = &counter_about,
    .options = {.section = "env", .title = "Counter", .settings_size = sizeof(struct counter_settings)},
    .shape = counter_shape,
    .reset_range = counter_reset,
    .observe_range = counter_observe,
    .step_range = counter_step,
    .open = counter_open,
    .close = counter_close,
    .saved_bytes = counter_saved_bytes,
    .save = counter_save,
    .load = counter_load,
    .draw = counter_draw,
};
static const struct counter_settings settings = {.limit = 100};

TEST(opened_and_closed_once)
{
    struct env_batch *batch = NULL;
    struct error err = {0};

    assert_int_equal(env_batch_create(&batch, &counter_def, &settings, 101, rng_seed(1), &err), ST_CONFIG);
    assert_null(batch);
    assert_string_equal(err.text, "counter: no more than 100 instances");
    assert_int_equal(n_open, 0);
    assert_int_equal(env_batch_create(&batch, &counter_def, &settings, N, rng_seed(1), NULL), ST_OK);
    assert_int_equal(n_open, 1);
    env_batch_destroy(batch);
    assert_int_equal(n_open, 0);
}

TEST(saved_and_loaded)
{
    TEST_BATCH a, b;
    struct env_picture picture;

    test_batch_open(&a, &counter_def, &settings, N, 1);
    test_batch_open(&b, &counter_def, &settings, N, 2);
    assert_int_equal(env_batch_state_bytes(a.batch), N * (sizeof(int64_t) + sizeof(struct env_log)));
    env_batch_reset(a.batch, NULL, a.obs, NULL);
    env_batch_reset(b.batch, NULL, b.obs, NULL);
    for (int i = 0; i < N; i++)
        a.actions[i] = 2;
    env_batch_step(a.batch, NULL, &a.io);
    MEM_LOCAL char *bytes = mem_alloc(env_batch_state_bytes(a.batch));
    env_batch_save(a.batch, bytes);
    env_batch_load(b.batch, bytes);
    env_batch_observe(b.batch, NULL, b.obs, NULL);
    for (int i = 0; i < N; i++)
        assert_true(b.obs[i] == (float)(i + 2));
    env_draw(&counter_def, &settings, bytes + 7 * sizeof(int64_t), &picture);
    assert_string_equal(picture.marks[0].text, "9");
}

/* Without save only the logs are kept; a load leaves the games as they are. */
TEST(one_that_cannot_be_saved)
{
    struct env_def def = counter_def;
    struct env_log logs[N] = {[3] = {.episodes = 5}}, got[N];
    TEST_BATCH a;

    def.saved_bytes = NULL, def.save = NULL, def.load = NULL;
    test_batch_open(&a, &def, &settings, N, 1);
    assert_int_equal(env_batch_state_bytes(a.batch), sizeof logs);
    env_batch_reset(a.batch, NULL, a.obs, NULL);
    for (int i = 0; i < N; i++)
        a.actions[i] = 1;
    env_batch_step(a.batch, NULL, &a.io);
    env_batch_load(a.batch, logs);
    env_batch_observe(a.batch, NULL, a.obs, NULL);
    assert_true(a.obs[9] == 10.0f);
    env_batch_take_logs(a.batch, got);
    assert_memory_equal(got, logs, sizeof logs);
}

/* A game that has processes of its own sees each call as one range in the caller's thread, also with a pool. */
TEST(stepped_as_a_whole)
{
    struct env_def def = counter_def;
    AT_END(test_batch_close) struct test_batch a = {0};
    struct pool *pool = NULL;

    def.begin_range = counter_begin;
    def.saved_bytes = NULL, def.save = NULL, def.load = NULL;
    assert_int_equal(pool_create(&pool, 3, NULL), ST_OK);
    test_batch_open(&a, &def, &settings, N, 1);
    env_batch_reset(a.batch, pool, a.obs, NULL);
    env_batch_step(a.batch, pool, &a.io);
    env_batch_begin_part(a.batch, &a.io, N / 2, N);
    env_batch_end_part(a.batch, pool, &a.io, N / 2, N);
    struct counter *c = last_opened;
    assert_int_equal(c->n_begun, 2);
    assert_int_equal(c->n_ranges, 2);
    assert_true(c->from[0] == 0 && c->to[0] == N && c->from[1] == N / 2 && c->to[1] == N);
    pool_destroy(pool);
}

TEST(a_step_that_fails)
{
    struct env_def def = counter_def;
    struct error why = {0};
    TEST_BATCH a;

    def.failed = counter_failed;
    test_batch_open(&a, &def, &settings, N, 1);
    env_batch_reset(a.batch, NULL, a.obs, NULL);
    for (int i = 0; i < 2; i++)
        env_batch_step(a.batch, NULL, &a.io);
    OK(env_batch_failed(a.batch, err));
    env_batch_step(a.batch, NULL, &a.io);
    assert_int_equal(env_batch_failed(a.batch, &why), ST_IO);
    assert_string_equal(why.text, "counter: its process has ended");
}

static float number_range[2] = {-1.0f, 1.0f};
static bool number_masked;

static enum status number_shape(const struct env_def *def, const void *s, struct env_shape *shape, struct error *err)
{
    enum status rc = counter_shape(def, s, shape, err);

    shape->head_sizes[0] = 0;
    shape->low[0] = number_range[0];
    shape->high[0] = number_range[1];
    shape->has_mask = number_masked;
    return rc;
}

static float byte_scale;

static enum status bytes_shape(const struct env_def *def, const void *s, struct env_shape *shape, struct error *err)
{
    enum status rc = counter_shape(def, s, shape, err);

    shape->u8 = true;
    shape->byte_scale = byte_scale;
    return rc;
}

/* Bytes are divided by 255 unless the game names another number; one below 0, or none at all, is refused. */
TEST(bytes)
{
    struct env_def def = counter_def;
    struct env_shape shape;
    struct error why = {0};

    def.shape = bytes_shape;
    assert_int_equal(env_def_check(&def, &settings, 1, &shape, NULL), ST_OK);
    assert_true(shape.u8 && shape.byte_scale == 255.0f);
    byte_scale = 1.0f;
    assert_int_equal(env_def_check(&def, &settings, 1, &shape, NULL), ST_OK);
    assert_true(shape.byte_scale == 1.0f);
    byte_scale = NAN;
    FAILS(env_def_check(&def, &settings, 1, &shape, err), ST_CONFIG, "byte_scale is nan");
    byte_scale = -1.0f;
    assert_int_equal(env_def_check(&def, &settings, 1, &shape, &why), ST_CONFIG);
}

/* Numbers of a finite range are taken, of an open or empty one, or beside a mask, they are not. */
TEST(numbers)
{
    struct env_def def = counter_def;
    struct env_shape shape;
    static const float none[][2] = {{-1.0f, INFINITY}, {NAN, 1.0f}, {1.0f, 1.0f}};

    def.shape = number_shape;
    assert_int_equal(env_def_check(&def, &settings, 1, &shape, NULL), ST_OK);
    assert_true(shape.head_sizes[0] == 0 && shape.low[0] == -1.0f && shape.high[0] == 1.0f);
    for (size_t i = 0; i < 3; i++) {
        memcpy(number_range, none[i], sizeof number_range);
        FAILS(env_def_check(&def, &settings, 1, &shape, err), ST_CONFIG, "both limits must be finite");
    }
    number_range[0] = -1.0f;
    number_masked = true;
    FAILS(env_def_check(&def, &settings, 1, &shape, err), ST_CONFIG, "has a mask");
}

static int sizes[3];

static enum status sized_shape(const struct env_def *def, const void *s, struct env_shape *shape, struct error *err)
{
    enum status rc = counter_shape(def, s, shape, err);

    shape->n_heads = 3;
    memcpy(shape->head_sizes, sizes, sizeof sizes);
    return rc;
}

/* One choice beside others, or beside a number, is a component like them; alone it leaves nothing to learn. */
TEST(components_of_one_choice)
{
    struct env_def def = counter_def;
    struct env_shape shape;

    def.shape = sized_shape;
    memcpy(sizes, (int[]){1, 1, 1}, sizeof sizes);
    FAILS(env_def_check(&def, &settings, 1, &shape, err), ST_CONFIG, "one choice only");
    sizes[1] = 3;
    assert_int_equal(env_def_check(&def, &settings, 1, &shape, NULL), ST_OK);
    sizes[2] = -1;
    FAILS(env_def_check(&def, &settings, 1, &shape, err), ST_INTERNAL, "impossible shape");
}

TEST_PROGRAM("own_memory")
