/* test_batch.c - what holds for every game of the registry: determinism, resume, logs, ends of episodes. */
#include "envs_test.h"

#include "base/fault.h"

#define N_ENVS 37 /* odd: parts of different sizes */

static void each_game(void (*check)(const struct env_def *def, const void *settings))
{
    assert_true(env_count() > 0);
    for (size_t i = 0; i < env_count(); i++) {
        void *settings = test_settings(env_at(i));
        check(env_at(i), settings);
        mem_free(settings);
    }
}

static void check_equal(const struct test_batch *a, const struct test_batch *b)
{
    assert_memory_equal(a->obs, b->obs, a->obs_bytes);
    assert_memory_equal(a->final_obs, b->final_obs, a->obs_bytes);
    assert_memory_equal(a->rewards, b->rewards, a->n_agents * sizeof *a->rewards);
    assert_memory_equal(a->terms, b->terms, a->n_agents);
    assert_memory_equal(a->truncs, b->truncs, a->n_agents);
    if (a->mask)
        assert_memory_equal(a->mask, b->mask, a->n_agents * a->mask_width);
    size_t n = env_batch_state_bytes(a->batch);
    assert_int_equal(n, env_batch_state_bytes(b->batch));
    MEM_LOCAL char *bytes_a = malloc(n), *bytes_b = malloc(n);
    assert_true(bytes_a && bytes_b);
    env_batch_save(a->batch, bytes_a);
    env_batch_save(b->batch, bytes_b);
    assert_memory_equal(bytes_a, bytes_b, n);
}

/* -- registry -- */
TEST(registry)
{
    char hint[ENV_HINT_MAX];

    for (size_t i = 0; i < env_count(); i++) {
        const struct env_def *def = env_at(i);
        assert_ptr_equal(env_find(def->name), def);
        assert_true(i == 0 || strcmp(env_at(i - 1)->name, def->name) < 0);
        assert_string_equal(def->options.section, "env");
        assert_true(strlen(def->about->summary) > 0);
        for (size_t k = 0; k < def->options.n_defs; k++) {
            const struct opt_def *opt = &def->options.defs[k];
            double value;
            if (opt->type == OPT_INT || opt->type == OPT_FLOAT) {
                assert_true(num_parse_f64(opt->def, &value));
                assert_true(value >= opt->min && value <= opt->max);
            }
            assert_true(opt->offset < def->options.settings_size);
        }
    }
    assert_null(env_find("cartpol"));
    assert_null(env_find(""));
    assert_non_null(strstr(env_hint("cartpol", hint), "did you mean 'cartpole'?"));
    assert_non_null(strstr(env_hint("Memory", hint), "did you mean 'memory'?"));
    assert_string_equal(env_hint("xyzzy", hint), "; `trawl envs` lists all");
    assert_non_null(strstr(env_hint("CartPole-v1", hint), "gym:CartPole-v1"));
    assert_non_null(strstr(env_hint("boards:Guess", hint), "as gym:my_module:MyEnv"));
    assert_non_null(strstr(env_hint("./boards.py", hint), "as gym:my_module:MyEnv"));
}

/* -- determinism -- */
static void check_threads(const struct env_def *def, const void *settings)
{
    struct pool *pool = NULL;
    assert_int_equal(pool_create(&pool, 3, NULL), ST_OK);
    struct test_batch a, b;
    test_batch_open(&a, def, settings, 5 * N_ENVS, 7);
    test_batch_open(&b, def, settings, 5 * N_ENVS, 7);
    env_batch_reset(a.batch, NULL, a.obs, a.mask);
    env_batch_reset(b.batch, pool, b.obs, b.mask);
    check_equal(&a, &b);
    struct rng rng_a = rng_seed(1), rng_b = rng_seed(1);
    for (int t = 0; t < 300; t++) {
        test_batch_random_actions(&a, &rng_a);
        test_batch_random_actions(&b, &rng_b);
        env_batch_step(a.batch, NULL, &a.io);
        env_batch_step(b.batch, pool, &b.io);
        if (t % 50 == 49)
            check_equal(&a, &b);
    }
    test_batch_close(&a);
    test_batch_close(&b);
    pool_destroy(pool);
}

TEST(threads_do_not_matter)
{
    each_game(check_threads);
}

/* Instance i of a large batch does the same as in a small one; other seeds and instances do something else. */
static void check_instances(const struct env_def *def, const void *settings)
{
    TEST_BATCH large, small, other;
    test_batch_open(&large, def, settings, N_ENVS, 7);
    test_batch_open(&small, def, settings, 3, 7);
    test_batch_open(&other, def, settings, N_ENVS, 8);
    env_batch_reset(large.batch, NULL, large.obs, large.mask);
    env_batch_reset(small.batch, NULL, small.obs, small.mask);
    env_batch_reset(other.batch, NULL, other.obs, other.mask);
    struct rng rng = rng_seed(2);
    for (int t = 0; t < 100; t++) {
        test_batch_random_actions(&large, &rng);
        test_batch_copy_actions(&other, &large);
        test_batch_copy_actions(&small, &large);
        env_batch_step(large.batch, NULL, &large.io);
        env_batch_step(small.batch, NULL, &small.io);
        env_batch_step(other.batch, NULL, &other.io);
        assert_memory_equal(large.obs, small.obs, small.obs_bytes);
        assert_memory_equal(large.rewards, small.rewards, small.n_agents * sizeof *small.rewards);
    }
    const char *first = test_batch_state(&large, 0), *others_first = test_batch_state(&other, 0);
    assert_true(memcmp(first, others_first, def->state_size) != 0);
    assert_true(memcmp(first, first + def->state_size, def->state_size) != 0);
}

TEST(instances_are_independent)
{
    each_game(check_instances);
}

static void check_reset_again(const struct env_def *def, const void *settings)
{
    TEST_BATCH a, b;
    test_batch_open(&a, def, settings, N_ENVS, 9);
    test_batch_open(&b, def, settings, N_ENVS, 9);
    struct rng rng = rng_seed(3);
    env_batch_reset(a.batch, NULL, a.obs, a.mask);
    env_batch_reset(b.batch, NULL, b.obs, b.mask);
    for (int t = 0; t < 40; t++) {
        test_batch_random_actions(&b, &rng);
        env_batch_step(b.batch, NULL, &b.io);
    }
    env_batch_reset(b.batch, NULL, b.obs, b.mask);
    memcpy(b.final_obs, a.final_obs, a.obs_bytes);
    memcpy(b.rewards, a.rewards, a.n_agents * sizeof *a.rewards);
    memcpy(b.terms, a.terms, a.n_agents);
    memcpy(b.truncs, a.truncs, a.n_agents);
    check_equal(&a, &b);
}

TEST(reset_begins_anew)
{
    each_game(check_reset_again);
}

/* -- resume -- */
static void check_resume(const struct env_def *def, const void *settings)
{
    TEST_BATCH a, b;
    test_batch_open(&a, def, settings, N_ENVS, 11);
    test_batch_open(&b, def, settings, N_ENVS, 999); /* another root: everything must come from the bytes */
    env_batch_reset(a.batch, NULL, a.obs, a.mask);
    env_batch_reset(b.batch, NULL, b.obs, b.mask);
    struct rng rng = rng_seed(4);
    for (int t = 0; t < 75; t++) {
        test_batch_random_actions(&a, &rng);
        env_batch_step(a.batch, NULL, &a.io);
    }
    char *bytes = malloc(env_batch_state_bytes(a.batch));
    assert_non_null(bytes);
    env_batch_save(a.batch, bytes);
    env_batch_load(b.batch, bytes);
    free(bytes);
    env_batch_observe(b.batch, NULL, b.obs, b.mask);
    assert_memory_equal(a.obs, b.obs, a.obs_bytes);
    memcpy(b.final_obs, a.final_obs, a.obs_bytes);
    for (int t = 0; t < 300; t++) {
        test_batch_random_actions(&a, &rng);
        test_batch_copy_actions(&b, &a);
        env_batch_step(a.batch, NULL, &a.io);
        env_batch_step(b.batch, NULL, &b.io);
    }
    check_equal(&a, &b);
    struct env_log log_a, log_b;
    env_batch_take_log(a.batch, &log_a);
    env_batch_take_log(b.batch, &log_b);
    assert_memory_equal(&log_a, &log_b, sizeof log_a);
}

TEST(resume_equals_going_on)
{
    each_game(check_resume);
}

/* -- logs: the sums of what the tensors said -- */
static void check_log(const struct env_def *def, const void *settings)
{
    TEST_BATCH t;
    test_batch_open(&t, def, settings, N_ENVS, 13);
    env_batch_reset(t.batch, NULL, t.obs, t.mask);
    struct rng rng = rng_seed(5);
    struct env_log want = {0}, sum = {0}, got;
    size_t together = t.shape.agents_end ? 1 : (size_t)t.shape.n_agents; /* agents whose episodes are one */
    size_t n = t.n_agents / together;
    MEM_LOCAL double *running = calloc(n, sizeof *running), *length = calloc(n, sizeof *length);
    for (int step = 0; step < 3000; step++) {
        test_batch_random_actions(&t, &rng);
        env_batch_step(t.batch, NULL, &t.io);
        for (size_t i = 0; i < n; i++) {
            double reward = 0.0;
            for (size_t a = i * together; a < (i + 1) * together; a++) {
                assert_true(isfinite(t.rewards[a]));
                assert_true(t.terms[a] <= 1 && t.truncs[a] <= 1 && t.terms[a] + t.truncs[a] <= 1);
                reward += (double)t.rewards[a];
            }
            running[i] += reward / (double)together;
            length[i] += 1.0;
            if (t.terms[i * together] || t.truncs[i * together]) {
                want.episodes += 1.0;
                want.ep_return += running[i];
                want.ep_length += length[i];
                running[i] = length[i] = 0.0;
            }
        }
        for (size_t k = 0; !t.shape.u8 && k < t.obs_len; k++)
            if (!isfinite(t.obs[k]))
                fail_msg("%s: value %zu of step %d is %g", def->name, k, step, (double)t.obs[k]);
        if (step % 1000 == 999) { /* logs add up over reads */
            env_batch_take_log(t.batch, &got);
            assert_true(got.perf >= 0.0 && got.perf <= got.episodes);
            sum.episodes += got.episodes;
            sum.ep_return += got.ep_return;
            sum.ep_length += got.ep_length;
        }
    }
    env_batch_take_log(t.batch, &got);
    assert_true(got.episodes == 0.0 && got.score == 0.0 && got.perf == 0.0 && got.ep_length == 0.0);
    assert_true(want.episodes > 0.0);
    assert_true(sum.episodes == want.episodes && sum.ep_length == want.ep_length);
    assert_true(fabs(sum.ep_return - want.ep_return) < 1e-6 * (1.0 + fabs(want.ep_return)));
}

TEST(log_sums)
{
    each_game(check_log);
}

/* Actions that no policy gives must do no harm. */
static void check_wild_actions(const struct env_def *def, const void *settings)
{
    static const int32_t wild[] = {-1, INT32_MIN, INT32_MAX, 1000};
    static const float wild_reals[] = {NAN, -INFINITY, 3e38f, -1000.0f};
    TEST_BATCH t;
    test_batch_open(&t, def, settings, 5, 17);
    env_batch_reset(t.batch, NULL, t.obs, t.mask);
    struct rng rng = rng_seed(6);
    for (int step = 0; step < 500; step++) {
        for (size_t k = 0; k < t.n_agents * (size_t)t.shape.n_heads; k++) {
            t.actions[k] = wild[rng_below(&rng, 4)];
            t.reals[k] = wild_reals[rng_below(&rng, 4)];
        }
        env_batch_step(t.batch, NULL, &t.io);
        for (size_t k = 0; !t.shape.u8 && k < t.obs_len; k++)
            if (!isfinite(t.obs[k]))
                fail_msg("%s: value %zu of step %d is %g", def->name, k, step, (double)t.obs[k]);
    }
}

TEST(wild_actions)
{
    each_game(check_wild_actions);
}

/* Every size from 1 on: exact tensors, so a sanitizer sees any write outside. */
static void check_sizes(const struct env_def *def, const void *settings)
{
    struct pool *pool = NULL;
    assert_int_equal(pool_create(&pool, 2, NULL), ST_OK);
    struct rng rng = rng_seed(8);
    for (size_t n = 1; n <= 67; n += n < 4 ? 1 : 21) {
        TEST_BATCH t;
        test_batch_open(&t, def, settings, n, 19);
        t.io.final_obs = n % 2 ? t.final_obs : NULL;
        env_batch_reset(t.batch, pool, t.obs, t.mask);
        for (int step = 0; step < 60; step++) {
            test_batch_random_actions(&t, &rng);
            env_batch_step(t.batch, pool, &t.io);
        }
    }
    pool_destroy(pool);
}

TEST(sizes)
{
    each_game(check_sizes);
}

/* -- refusals -- */
TEST(create_refuses)
{
    const struct env_def *def = env_find("cartpole");
    MEM_LOCAL void *settings = test_settings(def);
    struct env_batch *batch;
    struct error why = {0};
    assert_int_equal(env_batch_create(&batch, def, settings, 0, rng_seed(1), &why), ST_CONFIG);
    assert_null(batch);
    error_clear(&why);
    assert_int_equal(env_batch_create(&batch, def, settings, SIZE_MAX / 2, rng_seed(1), &why), ST_CONFIG);
    error_clear(&why);
    struct env_def old = *def;
    old.api_version++;
    FAILS(env_batch_create(&batch, &old, settings, 1, rng_seed(1), err), ST_VERSION, "cartpole");
}

/* Every buffer that is refused is an ST_NOMEM that names the game; nothing leaks (ASan). */
static void check_out_of_memory(const struct env_def *def, const void *settings)
{
    bool fired = true;
    int n = 0;
    for (int nth = 1; fired; nth++) {
        struct env_batch *batch = NULL;
        struct error err = {0};
        fault_arm(FAULT_TRY_MALLOC, nth);
        enum status rc = env_batch_create(&batch, def, settings, 3, rng_seed(1), &err);
        fired = fault_disarm(FAULT_TRY_MALLOC);
        assert_int_equal(rc, fired ? ST_NOMEM : ST_OK);
        assert_int_equal(batch == NULL, fired);
        if (fired)
            assert_non_null(strstr(err.text, def->name));
        n += fired;
        env_batch_destroy(batch);
    }
    assert_int_equal(n, 2); /* states and logs */
}

TEST(out_of_memory)
{
    each_game(check_out_of_memory);
}

TEST_PROGRAM("envs batch")
