/* test_health.c - when what died may be started again: the times of the table in docs/many-machines.md, one by one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "sweep/supervise/health.h"

/* It begins when it may and dies a second later; returns how long it then has to wait. */
static double die(struct health *h, double *now_s, enum health_verdict wanted)
{
    double began_s = h->retry_at_s > *now_s ? h->retry_at_s : *now_s;

    *now_s = began_s + 1;
    h->quarantined = false;
    assert_int_equal(health_death(h, began_s, HEALTH_CRASH, *now_s), wanted);
    assert_int_equal(h->quarantined, wanted == HEALTH_QUARANTINED);
    return h->retry_at_s - *now_s;
}

static void waits_grow_until_it_is_left_alone(void **state)
{
    static const double waits_s[] = {0, 0.5, 1, 2}, long_s[] = {600, 1200, 2400, 4800, 7200, 7200};
    struct health h = {0};
    double now_s = 100;

    (void)state;
    assert_true(health_may_start(&h, now_s));
    for (size_t i = 0; i < 4; i++)
        assert_float_equal(die(&h, &now_s, HEALTH_RETRY), waits_s[i], 1e-9);
    for (size_t i = 0; i < 6; i++) {
        assert_float_equal(die(&h, &now_s, HEALTH_QUARANTINED), long_s[i], 1e-9);
        assert_false(health_may_start(&h, now_s + long_s[i] - 0.1));
        assert_true(health_may_start(&h, now_s + long_s[i] + 0.1));
    }
}

static void a_success_forgives_all(void **state)
{
    struct health h = {0};
    double now_s = 100;

    (void)state;
    for (int i = 0; i < 6; i++)
        (void)die(&h, &now_s, i < 4 ? HEALTH_RETRY : HEALTH_QUARANTINED);
    health_success(&h);
    assert_float_equal(die(&h, &now_s, HEALTH_RETRY), 0, 1e-9);
}

static void a_long_life_forgives_too(void **state)
{
    struct health h = {0};
    double now_s = 100;

    (void)state;
    for (int i = 0; i < 4; i++)
        (void)die(&h, &now_s, HEALTH_RETRY);
    now_s += 10;
    assert_int_equal(health_death(&h, now_s, HEALTH_CRASH, now_s + 599), HEALTH_QUARANTINED);
    h = (struct health){.deaths = 4, .died_s = 50};
    assert_int_equal(health_death(&h, 100, HEALTH_CRASH, 700), HEALTH_RETRY);
    assert_int_equal(h.deaths, 1);
}

static void what_dies_together_counts_once(void **state)
{
    struct health h = {0};

    (void)state;
    assert_int_equal(health_death(&h, 10, HEALTH_CRASH, 20), HEALTH_RETRY);
    for (int i = 0; i < 7; i++)
        assert_int_equal(health_death(&h, 10 + i, HEALTH_CRASH, 20 + i), HEALTH_SAME);
    assert_int_equal(h.deaths, 1);
    assert_int_equal(health_death(&h, 21, HEALTH_CRASH, 22), HEALTH_RETRY);
    assert_int_equal(h.deaths, 2);
}

static void a_stated_reason_is_believed_at_once(void **state)
{
    struct health h = {0};

    (void)state;
    assert_int_equal(health_death(&h, 10, HEALTH_HOPELESS, 11), HEALTH_QUARANTINED);
    assert_float_equal(h.retry_at_s, 611, 1e-9);
}

/* Killed again and again by someone: it is soon started again, and what crashes afterwards counts from one. */
static void kills_from_outside_never_quarantine(void **state)
{
    static const double waits_s[] = {0, 0.5, 1, 2, 4, 8, 16, 30, 30, 30};
    struct health h = {0};
    double now_s = 100;

    (void)state;
    for (size_t i = 0; i < sizeof waits_s / sizeof waits_s[0]; i++) {
        assert_int_equal(health_death(&h, now_s, HEALTH_OUTSIDE, now_s + 1), HEALTH_RETRY);
        assert_float_equal(h.retry_at_s - now_s - 1, waits_s[i], 1e-9);
        assert_false(h.quarantined);
        now_s = h.retry_at_s;
    }
    assert_float_equal(die(&h, &now_s, HEALTH_RETRY), 0, 1e-9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(waits_grow_until_it_is_left_alone),
                                       cmocka_unit_test(a_success_forgives_all),
                                       cmocka_unit_test(a_long_life_forgives_too),
                                       cmocka_unit_test(what_dies_together_counts_once),
                                       cmocka_unit_test(a_stated_reason_is_believed_at_once),
                                       cmocka_unit_test(kills_from_outside_never_quarantine)};

    return cmocka_run_group_tests_name("sweep/health", tests, NULL, NULL);
}
