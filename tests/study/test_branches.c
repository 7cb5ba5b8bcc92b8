/* test_branches.c - where the shorter runs that a run holds end. */
#include "study/space/branches.h"
#include "study/setup/setup.h"
#include "trainer/trainer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"

static struct train_settings run_of(int64_t total, int64_t agents, int64_t horizon)
{
    return (struct train_settings){.total_timesteps = total, .total_agents = agents, .horizon = horizon};
}

static void test_evenly_by_ratio(void **unused)
{
    struct train_settings run = run_of(1600, 5, 2);
    int64_t steps[SWEEP_BRANCHES_MAX];

    (void)unused;
    assert_int_equal(branches_of_run(&run, 100, 4, steps), 4); /* 100 doubled four times is 1600 */
    for (int i = 0; i < 4; i++)
        assert_int_equal(steps[i], 100 << i);
    run.horizon = 6; /* whole rollouts of 30 steps, none below the least */
    assert_int_equal(branches_of_run(&run, 100, 4, steps), 4);
    assert_int_equal(steps[0], 120);
    assert_int_equal(steps[1], 210);
    assert_int_equal(steps[3], 810);
}

static void test_near_ones_are_one(void **unused)
{
    struct train_settings run = run_of(1000, 10, 10);
    int64_t steps[SWEEP_BRANCHES_MAX];

    (void)unused;
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

static void test_of_a_program(void **unused)
{
    int64_t steps[SWEEP_BRANCHES_MAX];

    (void)unused;
    assert_int_equal(branches_of_program(1600, 100, 4, steps), 4);
    for (int i = 0; i < 4; i++)
        assert_int_equal(steps[i], 100 << i);
    assert_int_equal(branches_of_program(3, 1, 4, steps), 2); /* whole steps: 1 and 2 */
    assert_int_equal(steps[1], 2);
    assert_int_equal(branches_of_program(100, 100, 4, steps), 0);
    assert_int_equal(branches_of_program(100, 0, 4, steps), 0); /* no length to begin at */
}

static void test_params(void **unused)
{
    struct error err = {0};
    char *text = NULL;

    (void)unused;
    assert_int_equal(
        branches_params("{\"train.gamma\":0.9,\"train.total_timesteps\":4000}", BRANCHES_STEPS_KEY, 1024, &text, &err),
        ST_OK);
    assert_string_equal(text, "{\"train.gamma\":0.9,\"train.total_timesteps\":1024}");
    mem_free(text);
    assert_int_equal(branches_params("{\"train.gamma\":", BRANCHES_STEPS_KEY, 1024, &text, &err), ST_CORRUPT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_evenly_by_ratio),
        cmocka_unit_test(test_near_ones_are_one),
        cmocka_unit_test(test_of_a_program),
        cmocka_unit_test(test_params),
    };
    return cmocka_run_group_tests_name("study_branches", tests, NULL, NULL);
}
