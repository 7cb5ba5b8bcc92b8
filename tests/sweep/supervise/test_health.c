/* test_health.c - when what died may be started again: the times of the table in docs/many-machines.md, one by one. */

#include "tests/unit_test.h"
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

TEST(waits_grow_until_it_is_left_alone)
{
    static const double waits_s[] = {0, 0.5, 1, 2}, long_s[] = {600, 1200, 2400, 4800, 7200, 7200};
    struct health h = {0};
    double now_s = 100;

    assert_true(health_may_start(&h, now_s));
    for (size_t i = 0; i < 4; i++)
        assert_float_equal(die(&h, &now_s, HEALTH_RETRY), waits_s[i], 1e-9);
    for (size_t i = 0; i < 6; i++) {
        assert_float_equal(die(&h, &now_s, HEALTH_QUARANTINED), long_s[i], 1e-9);
        assert_false(health_may_start(&h, now_s + long_s[i] - 0.1));
        assert_true(health_may_start(&h, now_s + long_s[i] + 0.1));
    }
}

TEST(a_success_forgives_all)
{
    struct health h = {0};
    double now_s = 100;

    for (int i = 0; i < 6; i++)
        (void)die(&h, &now_s, i < 4 ? HEALTH_RETRY : HEALTH_QUARANTINED);
    health_success(&h);
    assert_float_equal(die(&h, &now_s, HEALTH_RETRY), 0, 1e-9);
}

TEST(a_long_life_forgives_too)
{
    struct health h = {0};
    double now_s = 100;

    for (int i = 0; i < 4; i++)
        (void)die(&h, &now_s, HEALTH_RETRY);
    now_s += 10;
    assert_int_equal(health_death(&h, now_s, HEALTH_CRASH, now_s + 599), HEALTH_QUARANTINED);
    h = (struct health){.deaths = 4, .died_s = 50};
    assert_int_equal(health_death(&h, 100, HEALTH_CRASH, 700), HEALTH_RETRY);
    assert_int_equal(h.deaths, 1);
}

TEST(what_dies_together_counts_once)
{
    struct health h = {0};

    assert_int_equal(health_death(&h, 10, HEALTH_CRASH, 20), HEALTH_RETRY);
    for (int i = 0; i < 7; i++)
        assert_int_equal(health_death(&h, 10 + i, HEALTH_CRASH, 20 + i), HEALTH_SAME);
    assert_int_equal(h.deaths, 1);
    assert_int_equal(health_death(&h, 21, HEALTH_CRASH, 22), HEALTH_RETRY);
    assert_int_equal(h.deaths, 2);
}

TEST(a_stated_reason_is_believed_at_once)
{
    struct health h = {0};

    assert_int_equal(health_death(&h, 10, HEALTH_HOPELESS, 11), HEALTH_QUARANTINED);
    assert_float_equal(h.retry_at_s, 611, 1e-9);
}

/* Killed again and again by someone: it is soon started again, and what crashes afterwards counts from one. */
TEST(kills_from_outside_never_quarantine)
{
    static const double waits_s[] = {0, 0.5, 1, 2, 4, 8, 10, 10};
    struct health h = {0};
    double now_s = 100;

    for (size_t i = 0; i < COUNT(waits_s); i++) {
        assert_int_equal(health_death(&h, now_s, HEALTH_OUTSIDE, now_s + 1), HEALTH_RETRY);
        assert_float_equal(h.retry_at_s - now_s - 1, waits_s[i], 1e-9);
        assert_false(h.quarantined);
        now_s = h.retry_at_s;
    }
    assert_float_equal(die(&h, &now_s, HEALTH_RETRY), 0, 1e-9);
}

TEST_PROGRAM("sweep/health")
