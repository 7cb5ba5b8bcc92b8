/* test_share.c - fair shares, found by counting: devices, studies and trials are played through, and what each study
 * got of the devices while it was there is compared with its weight among those that were there with it. */

#include "tests/unit_test.h"
#include "sweep/controller/share.h"

#define N 4
#define SLOTS_MAX 8

struct actor {
    double weight, trial_s; /* how long each of its trials takes */
    double from_s, pause_s, back_s, to_s; /* there from .. to, but not from pause to back; 0: no pause */
    double got_s; /* of the devices since the count began */
};

struct play {
    struct actor actors[N];
    size_t n, slots;
    struct share shares[N];
    struct share_mark mark;
    int who[SLOTS_MAX]; /* -1: free */
    double ends_s[SLOTS_MAX];
};

static bool is_there(const struct actor *a, double at_s)
{
    return at_s >= a->from_s && at_s < a->to_s && !(at_s >= a->pause_s && at_s < a->back_s);
}

/* In steps of a second, all times being whole: until to_s; counts from from_s on. */
static void play(struct play *p, double from_s, double to_s)
{
    struct share *shares[N];
    bool passed[N] = {false};

    for (size_t i = 0; i < p->n; i++)
        shares[i] = &p->shares[i];
    for (size_t k = 0; k < p->slots; k++)
        p->who[k] = -1;
    for (double at = 0; at < to_s; at++) {
        for (int begin = 0; begin < 2; begin++)
            for (size_t i = 0; i < p->n; i++)
                if (is_there(&p->actors[i], at) == (begin != 0))
                    share_look(shares, p->n, i, begin != 0, &p->mark);
        for (size_t k = 0; k < p->slots; k++) {
            if (p->who[k] >= 0 && at < p->ends_s[k])
                continue;
            size_t next = share_next(shares, p->n, passed);
            p->who[k] = next < p->n ? (int)next : -1;
            p->ends_s[k] = next < p->n ? at + p->actors[next].trial_s : 0;
        }
        for (size_t k = 0; k < p->slots; k++)
            if (p->who[k] >= 0) {
                share_charge(&p->shares[p->who[k]], 1, p->actors[p->who[k]].weight);
                p->actors[p->who[k]].got_s += at >= from_s;
            }
    }
}

/* Of the devices between from_s and to_s, in which the same were there, each got its weight's part, but for the trials
 * that were under way at the ends. */
static void all_got_their_part(struct play *p, double from_s, double to_s)
{
    double weights = 0, slack = 0, all = (double)p->slots * (to_s - from_s);

    for (size_t i = 0; i < p->n; i++)
        if (is_there(&p->actors[i], from_s)) {
            weights += p->actors[i].weight;
            slack = fmax(slack, p->actors[i].trial_s);
        }
    slack *= 2 * (double)p->slots;
    play(p, from_s, to_s);
    for (size_t i = 0; i < p->n; i++) {
        double due = is_there(&p->actors[i], from_s) ? all * p->actors[i].weight / weights : 0;
        assert_true(slack < all / 8); /* else this says nothing */
        if (fabs(p->actors[i].got_s - due) > slack)
            fail_msg("%zu got %g s of %g, %g is its part", i, p->actors[i].got_s, all, due);
    }
}

TEST(weights_count_and_lengths_do_not)
{
    struct play p = {
        .actors = {{1, 7, 0, 0, 0, 1e9, 0}, {2, 31, 0, 0, 0, 1e9, 0}, {5, 2, 0, 0, 0, 1e9, 0}}, .n = 3, .slots = 4};

    all_got_their_part(&p, 0, 4000);
}

/* Who came first owes nothing for the time alone, however long its trials are under way when the other comes. */
TEST(a_newcomer_has_its_part_from_then_on)
{
    for (double from = 50; from <= 5000; from *= 10) {
        struct play p = {.actors = {{1, 40, 0, 0, 0, 1e9, 0}, {1, 40, from, 0, 0, 1e9, 0}}, .n = 2, .slots = 4};
        all_got_their_part(&p, from, from + 4000);
    }
}

TEST(a_pause_is_not_made_up_for)
{
    struct play p = {.actors = {{3, 10, 0, 100, 5000, 1e9, 0}, {1, 10, 0, 0, 0, 1e9, 0}}, .n = 2, .slots = 2};

    all_got_their_part(&p, 5000, 7000);
}

/* Nobody was there for a while; then one comes, then the old one. */
TEST(who_comes_into_an_empty_house_owes_nothing)
{
    struct play p = {.actors = {{1, 10, 0, 1000, 3010, 1e9, 0}, {1, 10, 3000, 0, 0, 1e9, 0}}, .n = 2, .slots = 1};

    all_got_their_part(&p, 3010, 4000);
}

/* Who is passed over (its proposal takes long) is not who is next. */
TEST(who_is_passed_over_waits)
{
    struct share a = {.used = 1, .waits = true}, b = {.used = 2, .waits = true}, c = {.used = 0, .waits = false};
    struct share *shares[] = {&a, &b, &c};
    bool passed[3] = {false};

    assert_int_equal(share_next(shares, 3, passed), 0);
    passed[0] = true;
    assert_int_equal(share_next(shares, 3, passed), 1);
    passed[1] = true;
    assert_int_equal(share_next(shares, 3, passed), 3);
}

TEST_PROGRAM("sweep share")
