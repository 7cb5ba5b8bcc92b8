/* test_freeway.c - freeway's levels against their published lists, and its rules on roads made by hand. */
#include "envs_test.h"

#include "envs/games/freeway.h"

ONE_GAME(road, freeway)

/* One frame a decision; cars stand at `x` in the beginning. */
static void road_open(struct road *r, int64_t level, float x)
{
    *r = (struct road){.settings = {.frameskip = 1, .level = level, .max_steps = 100000}, .s.rng = rng_seed(1)};
    freeway_reset(&r->settings, &r->s);
    for (int lane = 0; lane < 10; lane++)
        for (int car = 0; car < 3; car++)
            r->s.cars[lane][car] = x;
}

TEST(levels)
{
    static const int cars[4][10] = {{1, 1, 1, 1, 1, 1, 1, 1, 1, 1},
                                    {1, 2, 2, 3, 2, 1, 2, 3, 2, 2},
                                    {3, 3, 1, 3, 1, 1, 3, 1, 3, 1},
                                    {1, 1, 1, 1, 1, 1, 1, 1, 1, 1}};
    static const int trucks[4][10] = {{0}, {0, 0, 0, 0, 0, 1}, {0, 0, 0, 0, 1}, {1, 1, 1, 1, 1, 1, 1, 1, 1, 1}};
    static const int speeds[4][10] = {{0, 1, 2, 3, 4, 4, 3, 2, 1, 0},
                                      {0, 1, 3, 4, 5, 5, 4, 3, 1, 0},
                                      {0, 1, 3, 4, 5, 5, 4, 3, 1, 0},
                                      {5, 4, 2, 4, 5, 5, 4, 2, 4, 5}};
    static const double second[10] = {0, 0.1, 0.2, 0.1, 0.4, 0, 0.4, 0.1, 0.2, 0.1}; /* of level 1 */
    static const int good[8] = {25, 20, 18, 20, 25, 18, 15, 18};

    for (int level = 0; level < 8; level++) {
        struct road r;
        road_open(&r, level, 0);
        assert_true(r.s.level == level && freeway_good_score(level) == good[level]);
        for (int lane = 0; lane < 10; lane++) {
            assert_int_equal(freeway_n_cars(level, lane), cars[level % 4][lane]);
            assert_int_equal(freeway_is_truck(level, lane), trucks[level % 4][lane]);
            assert_int_equal(r.s.speeds[lane], speeds[level % 4][lane]);
        }
    }
    for (int lane = 0; lane < 10; lane++) {
        assert_true(fabs((double)freeway_gap(1, lane, 1) - second[lane]) < 1e-6);
        assert_true(fabs((double)freeway_gap(1, lane, 2) - 0.2) < 1e-6 &&
                    fabs((double)freeway_gap(2, lane, 2) - 0.4) < 1e-6);
    }
    assert_true(fabs((double)freeway_speed(0, 5) - 0.34491) < 1e-4 && freeway_speed(9, 0) == -freeway_speed(0, 0));
}

TEST(a_random_level)
{
    struct road r;
    int seen = 0;

    road_open(&r, -1, 0);
    for (int i = 0; i < 200; i++) {
        freeway_reset(&r.settings, &r.s);
        seen |= 1 << r.s.level;
    }
    assert_int_equal(seen, 255);
}

TEST(a_crossing)
{
    struct road r;
    int frames = 0;

    road_open(&r, 0, 1000);
    while (r.s.crossings == 0 && frames < 300) {
        for (int lane = 0; lane < 10; lane++)
            r.s.cars[lane][0] = 1000;
        road_turn(&r, 1);
        frames++;
        if (frames == 20 || frames == 22 || frames == 40 || frames == 58) /* 60, 67, 129, 191 px past the lowest line */
            assert_int_equal(r.s.reached, frames == 20 ? 0 : frames == 22 ? 1 : 2);
    }
    assert_in_range(frames, 189, 190); /* 648 px at 720 / 210 */
    assert_true(fabsf(r.sum - 2.0f) < 1e-5f && r.s.y == 688.0f && r.s.reached == 0 && r.step.score == 1.0f);
    assert_true(fabsf(r.step.perf - 0.04f) < 1e-6f);
    road_turn(&r, 2); /* not lower than the bottom */
    assert_true(r.s.y == 688.0f);
    road_turn(&r, 9);
    assert_true(r.s.y == 688.0f);
}

TEST(a_hit)
{
    struct road r;

    road_open(&r, 0, 1000);
    r.s.y = 456.0f; /* in the middle of lane 3 */
    r.s.reached = 4;
    r.s.cars[3][0] = 304.0f + 64.5f;
    road_turn(&r, 0);
    assert_true(r.s.stunned == 0 && r.reward == 0.0f);
    r.s.cars[3][0] = 304.0f + 63.5f;
    road_turn(&r, 1);
    assert_true(r.s.stunned == 40 && fabsf(r.reward + 0.01f) < 1e-6f);
    for (int i = 0; i < 40; i++) {
        assert_true(r.s.stunned == 40 - i);
        r.s.cars[3][0] = i < 39 ? 304.0f : 1000.0f; /* another one does no harm meanwhile */
        road_turn(&r, 1);
    }
    assert_true(fabs((double)r.s.y - (456.0 - 720.0 / 210.0 + 96.0)) < 1e-2); /* one and a half lanes down */
    road_open(&r, 3, 1000); /* a truck reaches further */
    r.s.y = 456.0f;
    r.s.reached = 4;
    r.s.cars[3][0] = 304.0f + 95.0f;
    road_turn(&r, 0);
    assert_int_equal(r.s.stunned, 40);
    road_open(&r, 0, 1000); /* above the bottom: 40 px under the middle of lane 0 */
    r.s.cars[0][0] = 304.0f;
    road_turn(&r, 0);
    assert_int_equal(r.s.stunned, 40);
}

TEST(cars_drive)
{
    struct road r;

    road_open(&r, 0, 1000);
    road_turn(&r, 0);
    assert_true(fabs((double)r.s.cars[0][0] - (1000.0 + 1216.0 / 13.0 / 60.0)) < 1e-3);
    assert_true(fabs((double)r.s.cars[1][0] - (1000.0 + 1.35 * 1216.0 / 13.0 / 60.0)) < 1e-3);
    assert_true(fabs((double)r.s.cars[9][0] - (1000.0 - 1216.0 / 13.0 / 60.0)) < 1e-3);
    r.s.cars[0][0] = 1248.0f;
    r.s.cars[9][0] = -32.0f;
    road_turn(&r, 0);
    assert_true(r.s.cars[0][0] > 32.0f && r.s.cars[0][0] < 36.0f);
    assert_true(r.s.cars[9][0] < 1184.0f && r.s.cars[9][0] > 1180.0f);
}

/* Only levels from 4 on change, every 360 frames, and not far. */
TEST(speeds_change)
{
    static const int first[10] = {0, 1, 3, 4, 5, 5, 4, 3, 1, 0};
    struct road r;
    int changes = 0;

    for (int level = 1; level < 8; level += 4) {
        road_open(&r, level, 0);
        for (int t = 1; t <= 36000; t++) {
            int8_t before[10];
            memcpy(before, r.s.speeds, sizeof before);
            road_turn(&r, 0);
            for (int lane = 0; lane < 10; lane++) {
                const int now = r.s.speeds[lane];
                assert_true(now >= 0 && now <= 5 && abs(now - first[lane]) <= 2 && abs(now - before[lane]) <= 1);
                assert_true(now == before[lane] || (t % 360 == 0 && level == 5));
                changes += now != before[lane];
            }
        }
    }
    assert_in_range(changes, 300, 800); /* of 1000 draws two thirds, some of which do not fit */
}

TEST(the_end_and_what_is_seen)
{
    struct road r;
    float obs[FREEWAY_OBS];

    road_open(&r, 1, 608);
    r.settings = (struct freeway_settings){.frameskip = 4, .level = 1, .max_steps = 2040};
    r.s.crossings = 5;
    r.s.reached = 3;
    r.s.steps = 510;
    r.s.y = 180;
    freeway_observe(&r.settings, &r.s, 0, obs);
    assert_true(obs[0] == 0.25f && fabsf(obs[1] - 0.3f) < 1e-6f && obs[2] == 0.25f && obs[3] == 0.0f &&
                obs[4] == 0.75f);
    assert_true(fabsf(obs[5] - 1.0f / 13.0f) < 1e-6f && obs[6] == 0.5f && obs[7] == 0.0f && obs[9] == 0.0f);
    assert_true(obs[5 + 25] < 0.0f && obs[5 + 25 + 4] == 1.0f && obs[5 + 15 + 3] == 0.5f); /* lane 5, lane 3 */
    r.s.steps = 2038;
    r.s.frame = 2038 * 4;
    road_turn(&r, 0);
    assert_true(!r.step.ended && r.s.frame == 2039 * 4);
    road_turn(&r, 0);
    assert_true(r.step.ended && !r.step.truncated);
    assert_true(r.step.score == 5.0f && r.step.perf == 0.25f);
}

static double crossings(int64_t level, int32_t action)
{
    struct road r;

    road_open(&r, level, 0);
    r.settings = (struct freeway_settings){.frameskip = 4, .level = level, .max_steps = 2040};
    freeway_reset(&r.settings, &r.s);
    do
        road_turn(&r, action);
    while (!r.step.ended);
    return (double)r.step.score;
}

TEST(players)
{
    for (int64_t level = 0; level < 8; level++) {
        const double up = crossings(level, 1);
        print_message("# level %d: always up %.0f\n", (int)level, up);
        assert_true(up <= 35.0 && (level > 0 || up >= 10.0)); /* 43 without a car */
        assert_true(crossings(level, 0) == 0.0);
    }
}

TEST_PROGRAM("envs freeway")
