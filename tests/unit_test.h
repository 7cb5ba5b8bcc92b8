/* unit_test.h - how a test program is written: TEST(name) { ... } is a case, and TEST_PROGRAM("module") at the end
 * makes a program of all cases in the file, in the order in which they stand. A case needs no other mention. TEST_WITH
 * gives a case a set-up and a tear-down, TEST_PROGRAM_WITH all of them together; a program with a main of its own calls
 * run_cases there. `fixture` is what the set-up made (`*fixture`, cmocka's state). */
#pragma once

#include "base/base.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum { UNIT_TESTS_MAX = 128 };

static struct CMUnitTest unit_tests[UNIT_TESTS_MAX];
static int unit_test_lines[UNIT_TESTS_MAX]; /* of each */
static size_t n_unit_tests;

/* Cases are added before main, in whatever order the compiler likes. */
static inline void unit_test_add(int line, struct CMUnitTest test)
{
    size_t at = n_unit_tests++;

    assert_true(at < UNIT_TESTS_MAX);
    for (; at > 0 && unit_test_lines[at - 1] > line; at--) {
        unit_tests[at] = unit_tests[at - 1];
        unit_test_lines[at] = unit_test_lines[at - 1];
    }
    unit_tests[at] = test;
    unit_test_lines[at] = line;
}

/* The number of cases that failed. */
static inline int run_cases(const char *program, CMFixtureFunction set_up, CMFixtureFunction tear_down)
{
    return _cmocka_run_group_tests(program, unit_tests, n_unit_tests, set_up, tear_down);
}

#define TEST_WITH(name, set_up, tear_down)                                                                             \
    static void test_##name(void **fixture);                                                                           \
    __attribute__((constructor)) static void add_test_##name(void)                                                     \
    {                                                                                                                  \
        unit_test_add(__LINE__, (struct CMUnitTest){#name, test_##name, set_up, tear_down, NULL});                     \
    }                                                                                                                  \
    static void test_##name(__attribute__((unused)) void **fixture)

#define TEST(name) TEST_WITH(name, NULL, NULL)

/* TEST_ON(name, struct place *p, set_up, tear_down): the case gets what the set-up made under this name and type. */
#define TEST_ON(name, what, set_up, tear_down)                                                                         \
    static void on_fixture_##name(what);                                                                               \
    TEST_WITH(name, set_up, tear_down)                                                                                 \
    {                                                                                                                  \
        on_fixture_##name(*fixture);                                                                                   \
    }                                                                                                                  \
    static void on_fixture_##name(__attribute__((unused)) what)

#define TEST_PROGRAM_WITH(program, set_up, tear_down)                                                                  \
    int main(void)                                                                                                     \
    {                                                                                                                  \
        return run_cases(program, set_up, tear_down);                                                                  \
    }

#define TEST_PROGRAM(program) TEST_PROGRAM_WITH(program, NULL, NULL)
