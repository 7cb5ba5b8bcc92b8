/* test_pong.c - the rules of pong, one by one and against a frame written a second time from the rules. */
#include "envs_test.h"

#include "envs/games/pong.h"

ONE_GAME(match, pong)

static void match_open(struct match *m, int64_t frameskip, uint64_t seed)
{
    *m = (struct match){.settings.frameskip = frameskip, .s.rng = rng_seed(seed)};
    pong_reset(&m->settings, &m->s);
}

TEST(start)
{
    int flat = 0;
    for (uint64_t seed = 0; seed < 400; seed++) {
        struct match m;
        match_open(&m, 8, seed);
        assert_int_equal(m.s.ball_x, 100);
        assert_int_equal(m.s.ball_y, 304);
        assert_int_equal(m.s.ball_vx, 10);
        assert_true(m.s.ball_vy == 0 || m.s.ball_vy == -1);
        flat += m.s.ball_vy == 0;
        assert_true(m.s.own_y == 285 && m.s.opponent_y == 285);
    }
    assert_true(flat > 150 && flat < 250);
}

TEST(paddle_range)
{
    struct match m;
    match_open(&m, 1, 1);
    m.s.ball_x = 0;
    m.s.ball_vx = 0; /* nothing else happens */
    m.s.ball_vy = 0;
    match_turn(&m, 1);
    assert_int_equal(m.s.own_y, 277); /* up: 8 px */
    match_turn(&m, 2);
    match_turn(&m, 2);
    assert_int_equal(m.s.own_y, 293);
    match_turn(&m, 0);
    assert_int_equal(m.s.own_y, 293);
    for (int i = 0; i < 100; i++)
        match_turn(&m, 1);
    assert_int_equal(m.s.own_y, -35);
    for (int i = 0; i < 100; i++)
        match_turn(&m, 2);
    assert_int_equal(m.s.own_y, 605);
}

TEST(own_bounce)
{
    static const struct {
        int32_t action, vy, want;
    } cases[] = {{0, 4, 4}, {1, 4, 1},  {2, 4, 7},  {2, 12, 13}, {1, -12, -13}, {0, 0, 3},
                 {1, 3, 3}, {2, -3, 3}, {1, 0, -3}, {2, 13, 13}, {0, -13, -13}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct match m;
        match_open(&m, 1, 1);
        m.s.ball_x = 465;
        m.s.ball_y = 310;
        m.s.ball_vy = cases[i].vy;
        match_turn(&m, cases[i].action);
        assert_true(m.reward == 0.1f);
        assert_int_equal(m.s.ball_vy, cases[i].want);
        assert_int_equal(m.s.ball_vx, -10);
        assert_int_equal(m.s.ball_x, 468);
        assert_false(m.step.ended);
    }
}

/* Overlap by one pixel returns the ball, touching does not. */
TEST(points_and_contact)
{
    for (int side = 0; side < 2; side++)
        for (int32_t offset = -33; offset <= 71; offset++) {
            struct match m;
            match_open(&m, 1, 1);
            m.s.own_points = 4;
            m.s.opponent_points = 7;
            m.s.ball_vy = 0;
            m.s.ball_vx = side ? 10 : -10;
            m.s.ball_x = side ? 465 : 5;
            m.s.ball_y = 300;
            /* the opponent moves first: where it ends is what counts */
            int32_t *paddle = side ? &m.s.own_y : &m.s.opponent_y;
            *paddle = m.s.ball_y - offset;
            int32_t at = *paddle;
            if (!side) {
                int32_t d = m.s.ball_y - 19 - at;
                at += d > 8 ? 8 : d < -8 ? -8 : d;
            }
            bool hit = m.s.ball_y + 32 > at && m.s.ball_y < at + 70;
            match_turn(&m, 0);
            if (hit) {
                assert_true(m.reward == (side ? 0.1f : 0.0f));
                assert_true(m.s.own_points == 4 && m.s.opponent_points == 7);
                assert_int_equal(m.s.ball_vx, side ? -10 : 10);
            } else {
                assert_true(m.reward == (side ? -1.0f : 1.0f));
                assert_int_equal(m.s.own_points, side ? 4 : 5);
                assert_int_equal(m.s.opponent_points, side ? 8 : 7);
                assert_true(m.s.ball_x == 100 && m.s.ball_vx == 10); /* a new round */
            }
        }
}

TEST(first_to_21)
{
    for (int side = 0; side < 2; side++) {
        struct match m;
        match_open(&m, 8, 1);
        m.s.own_points = side ? 13 : 20;
        m.s.opponent_points = side ? 20 : 13;
        m.s.ball_x = side ? 465 : 5;
        m.s.ball_vx = side ? 10 : -10;
        m.s.ball_y = 0;
        m.s.own_y = m.s.opponent_y = 600;
        match_turn(&m, 0);
        assert_true(m.step.ended && !m.step.truncated);
        assert_true(m.step.score == (side ? -8.0f : 8.0f));
        assert_true(fabsf(m.step.perf - (side ? 13.0f : 21.0f) / 34.0f) < 1e-6f);
        assert_true(m.reward == (side ? -1.0f : 1.0f));
    }
}

TEST(observation)
{
    struct match m;
    match_open(&m, 8, 1);
    m.s.opponent_y = -35;
    m.s.own_y = 605;
    m.s.ball_x = 250;
    m.s.ball_y = 480;
    m.s.ball_vx = -10;
    m.s.ball_vy = 13;
    m.s.opponent_points = 7;
    m.s.own_points = 20;
    float obs[8];
    static const float want[8] = {0.0f, 1.0f, 0.5f, 0.75f, 0.0f, 1.0f, 7.0f / 21.0f, 20.0f / 21.0f};
    pong_observe(&m.settings, &m.s, 0, obs);
    for (int i = 0; i < 8; i++)
        assert_true(fabsf(obs[i] - want[i]) < 1e-6f);
    m.s.ball_vx = 10;
    m.s.ball_vy = -13;
    pong_observe(&m.settings, &m.s, 0, obs);
    assert_true(obs[4] == 1.0f && obs[5] == 0.0f);
}

/* A step of 8 frames is 8 steps of one frame, unless a point cuts it short. */
TEST(frameskip)
{
    struct match whole, single;
    match_open(&whole, 8, 4);
    match_open(&single, 1, 4);
    struct rng rng = rng_seed(9);
    int points = 0, bounces = 0;
    for (int step = 0; step < 20000; step++) {
        int32_t action = (int32_t)rng_below(&rng, 3);
        if (rng_below(&rng, 3)) /* good enough to get the ball back often */
            action = whole.s.ball_y + 16 < whole.s.own_y + 35 ? 1 : 2;
        match_turn(&whole, action);
        float sum = 0.0f;
        bool point = false;
        for (int frame = 0; frame < 8 && !point; frame++) {
            match_turn(&single, action);
            sum += single.reward;
            point = fabsf(single.reward) == 1.0f;
            bounces += single.reward == 0.1f;
        }
        points += point;
        assert_true(fabsf(sum - whole.reward) < 1e-6f);
        assert_memory_equal(&whole.s, &single.s, sizeof whole.s);
        assert_int_equal(whole.step.ended, single.step.ended);
        if (whole.step.ended) {
            pong_reset(&whole.settings, &whole.s);
            pong_reset(&single.settings, &single.s);
        }
    }
    assert_true(points > 20 && bounces > 20);
}

/* Bounds of everything in long random play; walls reverse vy, the opponent moves at most 8 px per frame. */
TEST(invariants)
{
    struct match m;
    match_open(&m, 1, 6);
    struct rng rng = rng_seed(10);
    int walls = 0;
    for (int step = 0; step < 200000; step++) {
        struct pong_state old = m.s;
        int32_t action = (int32_t)rng_below(&rng, 3);
        if (rng_below(&rng, 4))
            action = old.ball_y + 16 < old.own_y + 35 ? 1 : 2;
        match_turn(&m, action);
        const struct pong_state *s = &m.s;
        assert_true(s->ball_x >= 0 && s->ball_x <= 468 && s->ball_y >= 0 && s->ball_y <= 608);
        assert_true(s->own_y >= -35 && s->own_y <= 605 && s->opponent_y >= -35 && s->opponent_y <= 605);
        assert_true(s->ball_vy >= -13 && s->ball_vy <= 13 && (s->ball_vx == 10 || s->ball_vx == -10));
        if (fabsf(m.reward) != 1.0f) {
            assert_true(abs(s->opponent_y - old.opponent_y) <= 8);
            int32_t want = old.ball_y - 19 - old.opponent_y; /* towards the ball */
            assert_true(abs(want) <= 8 ? s->opponent_y == old.opponent_y + want
                                       : (s->opponent_y > old.opponent_y) == (want > 0));
            int32_t y = old.ball_y + old.ball_vy;
            if ((y < 0 || y > 608) && s->ball_vx == old.ball_vx) {
                walls++;
                assert_int_equal(s->ball_vy, -old.ball_vy);
                assert_int_equal(s->ball_y, y < 0 ? 0 : 608);
            }
        }
        if (m.step.ended)
            pong_reset(&m.settings, &m.s);
    }
    assert_true(walls > 100);
}

TEST_PROGRAM("pong")
