/* test_device.c - opening, memory and games through the public face of kernels/. */
#include "tests/kernels/kern_test.h"

#include "tests/envs/envs_test.h"

TEST(auto_opens_the_cpu)
{
    struct kern_settings settings = {.kind = KERN_AUTO, .n_threads = 2};
    struct kern *k;
    OK(kern_open(&k, &settings, err));
    if (kern_kind(k) == KERN_CUDA) { /* a GPU is faster than what this test is about */
        kern_close(k);
        skip();
    }
    assert_int_equal(kern_n_threads(k), 2);
    assert_string_equal(kern_ops(k)->name, "cpu");
    assert_non_null(strstr(kern_device_name(k), "2 threads"));
    assert_null(strstr(kern_device_name(k), "Prescott")); /* see blas_core.c */
    assert_true(kern_memory_bytes(k) > 0);
    kern_close(k);
    kern_close(NULL);
}

TEST(every_row_of_the_table_is_filled)
{
    /* not of an f32 device that plays step by step */
    static const size_t may_lack[] = {offsetof(struct kern_ops, weights_cast), offsetof(struct kern_ops, rollout),
                                      offsetof(struct kern_ops, solo)};
    KERN *k = test_kern(1);
    const struct kern_ops *ops = kern_ops(k);
    void *rows[sizeof *ops / sizeof(void *)];

    memcpy(rows, ops, sizeof rows);
    for (size_t i = 0; i < COUNT(may_lack); i++)
        rows[may_lack[i] / sizeof(void *)] = rows;
    for (size_t i = 0; i < COUNT(rows); i++)
        assert_non_null(rows[i]);
}

TEST(cuda_says_what_to_do)
{
    struct kern_settings settings = {.kind = KERN_CUDA};
    struct error err = {0};
    char reason[512] = "";
    struct kern *k = (struct kern *)1;
    if (kern_cuda_available(reason, sizeof reason))
        skip();
    assert_true(strlen(reason) > 10);
    assert_int_equal(kern_open(&k, &settings, &err), ST_DEVICE);
    assert_null(k);
    assert_non_null(strstr(err.text, reason));
    assert_non_null(strstr(err.text, "train.device = cpu"));
}

TEST(memory_is_zeroed_and_refused_when_absurd)
{
    KERN *k = test_kern(1);
    struct error why = {0};
    int there[3] = {1, 2, 3}, back[3] = {0};
    void *mem;
    OK(kern_alloc(k, &mem, sizeof there, "test", err));
    assert_int_equal((uintptr_t)mem % MEM_ALIGN, 0);
    assert_true(((int *)mem)[0] == 0 && ((int *)mem)[2] == 0);
    OK(kern_upload(k, mem, there, sizeof there, err));
    OK(kern_download(k, back, mem, sizeof back, err));
    OK(kern_sync(k, err));
    assert_memory_equal(there, back, sizeof there);
    kern_free(k, mem);
    kern_free(k, NULL);
    assert_int_equal(kern_alloc(k, &mem, (size_t)1 << 60, "rollout observations", &why), ST_NOMEM);
    assert_null(mem);
    assert_non_null(strstr(why.text, "rollout observations"));
}

/* The same batch steps the same through the table on any number of threads, and continues after save and load. */
TEST(games_step_save_and_load)
{
    enum { N = 37, STEPS = 60 };
    const struct env_def *def = env_find("cartpole");
    struct env_shape shape;
    MEM_LOCAL float *last = NULL;
    MEM_LOCAL void *settings = NULL;
    assert_non_null(def);
    settings = test_settings(def);
    OK(def->shape(def, settings, &shape, err));
    for (size_t t = 0; t < N_THREADS; t++) {
        KERN *k = test_kern(test_threads[t]);
        struct kern_env *env;
        struct env_log log;
        size_t n_obs = N * (size_t)shape.obs_size;
        float *obs = NEW(float, n_obs), *final_obs = NEW(float, n_obs), *rewards = NEW(float, N),
              *again = NEW(float, n_obs);
        uint8_t *terms = NEW(uint8_t, N), *truncs = NEW(uint8_t, N);
        int32_t *actions = NEW(int32_t, N);
        struct kern_env_io io = {.actions = actions,
                                 .rewards = rewards,
                                 .terms = terms,
                                 .truncs = truncs,
                                 .obs = obs,
                                 .final_obs = final_obs};

        OK(kern_env_create(k, &env, def, settings, N, rng_seed(3), err));
        kern_ops(k)->env_reset(k, env, obs, NULL);
        for (int s = 0; s < STEPS; s++) {
            for (int i = 0; i < N; i++)
                actions[i] = (s + i) % 2;
            kern_env_step(k, env, &io);
        }
        if (last != NULL)
            assert_memory_equal(last, obs, n_obs * sizeof *obs);
        char *saved = test_alloc(kern_env_state_bytes(env), 1);
        OK(kern_env_save(k, env, saved, err));
        kern_env_step(k, env, &io);
        memcpy(again, obs, n_obs * sizeof *obs);
        OK(kern_env_load(k, env, saved, err));
        kern_ops(k)->env_observe(k, env, obs, NULL);
        if (last == NULL)
            last = test_copy(obs, n_obs);
        assert_memory_equal(last, obs, n_obs * sizeof *obs);
        kern_env_step(k, env, &io);
        assert_memory_equal(again, obs, n_obs * sizeof *obs);
        OK(kern_env_take_log(k, env, &log, err));
        assert_true(log.episodes > 0.0);
        kern_env_destroy(k, env);
        kern_env_destroy(k, NULL);
        mem_free(obs), mem_free(final_obs), mem_free(rewards), mem_free(again), mem_free(terms), mem_free(truncs);
        mem_free(actions), mem_free(saved);
    }
}

TEST_PROGRAM("device")
