/* test_value_bins.c - a value of bins: how it begins, what is saved of it, and that policies and values are learned. */
#include "tests/trainer/trainer_test.h"

static void memory_open(struct setup *s, size_t n_threads)
{
    setup_game(s, "memory", n_threads);
    setup_option(s, "length", 4);
    s->policy.core = POLICY_CORE_MINGRU;
    s->policy.num_layers = 1;
    s->policy.hidden_size = 32;
    s->policy.value_bins = 51;
    s->policy.value_max = 10;
    s->train.total_agents = 128;
    s->train.horizon = 16;
    s->train.minibatch_size = 1024;
    s->train.total_timesteps = UNDER_TSAN ? 128 * 16 * 2 : 300000; /* there its threads pass every layer, and no more */
    s->train.learning_rate = 0.02;
    s->train.replay_ratio = 2;
}

/* All bins are equally likely at first, so every value is 0; then it moves. */
TEST(values_begin_at_zero)
{
    SETUP s;
    float most = 0.0f;

    memory_open(&s, 2);
    TRAINER *t = setup_trainer(&s);
    iterate(t, 1);
    for (size_t i = 0; i < t->n_agents * t->horizon; i++)
        assert_float_equal(t->roll.values[i], 0.0f, 1e-5);
    iterate(t, 1);
    for (size_t i = 0; i < t->n_agents * t->horizon; i++)
        most = fmaxf(most, fabsf(t->roll.values[i]));
    assert_true(most > 1e-3f && most < 10.0f);
}

/* A run that is saved and loaded half-way ends with the same bytes; other bins, or none, are refused by name. */
TEST(a_run_resumes)
{
    SETUP s;
    TEMP_FILE(path);

    memory_open(&s, 1);
    TRAINER *whole = setup_trainer(&s);
    iterate(whole, 2);
    OK(trainer_save(whole, path, "", err));
    iterate(whole, 2);
    TRAINER *half = setup_trainer(&s);
    OK(trainer_load(half, path, err));
    iterate(half, 2);
    assert_same_weights(whole, half);
    s.policy.value_max = 20;
    TRAINER *wider = setup_trainer(&s);
    FAILS(trainer_load(wider, path, err), ST_CONFIG, "--policy.value_max 10");
    s.policy.value_bins = 0;
    TRAINER *none = setup_trainer(&s);
    FAILS(trainer_load_weights(none, path, err), ST_CONFIG, "--policy.value_bins 51");
}

TEST(odd_numbers_of_bins_are_refused)
{
    static const int64_t bad[] = {-1, 1, 2, 256};
    SETUP s;

    memory_open(&s, 1);
    for (size_t i = 0; i < COUNT(bad); i++) {
        s.policy.value_bins = bad[i];
        FAILS(trainer_check(s.def, s.env, &s.policy, &s.train, err), ST_CONFIG, "policy.value_bins");
    }
}

/* Half of the answers are right by chance; a value that knows the question explains most of the returns. */
TEST(memory_is_learned)
{
    SETUP s;
    struct train_result result;

    memory_open(&s, 2);
    TRAINER *t = setup_trainer(&s);
    OK(trainer_run(t, NULL, &result, err));
    printf("# perf %.3f, explained variance %.3f\n", result.window.perf, result.window.explained_variance);
    assert_true(UNDER_TSAN || result.window.perf > 0.95);
    assert_true(UNDER_TSAN || result.window.explained_variance > 0.5);
}

TEST_PROGRAM("value_bins")
