/* test_branches.c - where the shorter runs that a run holds end. */
#include "study/space/branches.h"
#include "study/setup/setup.h"

#include "tests/check.h"

static struct train_settings run_of(int64_t total, int64_t agents, int64_t horizon)
{
    return (struct train_settings){.total_timesteps = total, .total_agents = agents, .horizon = horizon};
}

TEST(evenly_by_ratio)
{
    struct train_settings run = run_of(1600, 5, 2);
    int64_t steps[SWEEP_BRANCHES_MAX];

    assert_int_equal(branches_of_run(&run, 100, 4, steps), 4); /* 100 doubled four times is 1600 */
    for (int i = 0; i < 4; i++)
        assert_int_equal(steps[i], 100 << i);
    run.horizon = 6; /* whole rollouts of 30 steps, none below the least */
    assert_int_equal(branches_of_run(&run, 100, 4, steps), 4);
    assert_int_equal(steps[0], 120);
    assert_int_equal(steps[1], 210);
    assert_int_equal(steps[3], 810);
}

TEST(near_ones_are_one)
{
    struct train_settings run = run_of(1000, 10, 10);
    int64_t steps[SWEEP_BRANCHES_MAX];

    assert_int_equal(branches_of_run(&run, 950, 4, steps), 0); /* the run itself is as short */
    assert_int_equal(branches_of_run(&run, 2000, 4, steps), 0);
    assert_int_equal(branches_of_run(&run, 700, 4, steps), 3); /* 700, 800 and 900; 800 is wanted twice */
    assert_int_equal(steps[0], 700);
    assert_int_equal(steps[2], 900);
    assert_int_equal(branches_of_run(&run, 1, 1000, steps) <= SWEEP_BRANCHES_MAX, 1);
    assert_int_equal(branches_of_run(&run, 100, 0, steps), 0);
    run.anneal_lr = true;
    run.decay_share = 1; /* its middle is no shorter run */
    assert_int_equal(branches_of_run(&run, 100, 4, steps), 0);
    run.decay_steps = 100;
    assert_int_equal(branches_of_run(&run, 100, 4, steps), 4);
}

TEST(of_a_program)
{
    int64_t steps[SWEEP_BRANCHES_MAX];

    assert_int_equal(branches_of_program(1600, 100, 4, steps), 4);
    for (int i = 0; i < 4; i++)
        assert_int_equal(steps[i], 100 << i);
    assert_int_equal(branches_of_program(3, 1, 4, steps), 2); /* whole steps: 1 and 2 */
    assert_int_equal(steps[1], 2);
    assert_int_equal(branches_of_program(100, 100, 4, steps), 0);
    assert_int_equal(branches_of_program(100, 0, 4, steps), 0); /* no length to begin at */
}

TEST(params)
{
    struct error why = {0};
    char *text = NULL;

    OK(branches_params("{\"train.gamma\":0.9,\"train.total_timesteps\":4000}", BRANCHES_STEPS_KEY, 1024, &text, err));
    assert_string_equal(text, "{\"train.gamma\":0.9,\"train.total_timesteps\":1024}");
    mem_free(text);
    assert_int_equal(branches_params("{\"train.gamma\":", BRANCHES_STEPS_KEY, 1024, &text, &why), ST_CORRUPT);
}

TEST_PROGRAM("study_branches")
