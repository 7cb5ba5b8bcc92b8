/* test_cuda_start.c - a training of small layers on a GPU never opens cuBLASLt, whose first products take longer than
 * such a training. A program of its own, as a library that was opened once stays. Needs a GPU; reports it and skips
 * where there is none. */
#include "tests/kernels/kern_test.h"
#include "trainer_test.h"

/* Is it part of this process? */
static bool has_library(void)
{
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[4096];
    bool found = false;

    assert_non_null(maps);
    while (fgets(line, sizeof line, maps) != NULL)
        found = found || strstr(line, "libcublasLt") != NULL;
    fclose(maps);
    return found;
}

/* Trains and evaluates. */
static void train(const char *game, int core, int64_t width, int64_t layers, int optimizer)
{
    const struct kern_settings cuda = {.kind = KERN_CUDA};
    const struct eval_settings e = {
        .episodes = 64, .agents = 64, .seed = 5, .max_steps = test_is_short() ? 20 : 100000};
    struct eval_result result;
    SETUP s;

    setup_game(&s, game, 1);
    kern_close(s.kern);
    OK(kern_open(&s.kern, &cuda, err));
    s.policy.core = core;
    s.policy.hidden_size = width;
    s.policy.num_layers = layers;
    s.train.precision = TRAIN_BF16;
    s.train.optimizer = optimizer;
    s.train.total_agents = 64;
    s.train.horizon = 16;
    s.train.minibatch_size = 256;
    s.train.total_timesteps = 64 * 16 * 100;
    TRAINER *t = setup_trainer(&s);
    iterate(t, test_is_short() ? 1 : 3);
    OK(trainer_sync(t, err));
    OK(trainer_eval(t, &e, &result, err));
}

TEST(small_layers_need_no_library)
{
    train("breakout", POLICY_CORE_MINGRU, 64, 2, TRAIN_MUON);
    train("breakout", POLICY_CORE_MINGRU, 128, 1, TRAIN_MUON);
    train("cartpole", POLICY_CORE_MLP, 128, 1, TRAIN_ADAM);
    train("pong", POLICY_CORE_MLP, 64, 2, TRAIN_MUON);
    train("memory", POLICY_CORE_MINGRU, 32, 1, TRAIN_MUON);
    assert_false(has_library());
}

/* So the test above can fail. */
TEST(large_ones_do)
{
    train("breakout", POLICY_CORE_MINGRU, 256, 1, TRAIN_ADAM);
    assert_true(has_library());
}

/* usage: trainer_test_cuda_start [PATTERN|--list] */
int main(int argc, char **argv)
{
    char reason[256];

    if (test_listed(argc > 1 ? argv[1] : NULL))
        return 0;
    if (!kern_cuda_available(reason, sizeof reason))
        return test_no_gpu(reason);
    return run_cases("start on a GPU", NULL, NULL);
}
