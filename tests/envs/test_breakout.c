/* test_breakout.c - the rules of breakout one by one, and its sweeps against a ball moved in tiny steps. */
#include "envs_test.h"

#include "envs/games/breakout.h"

ONE_GAME(table, breakout)

/* A new game, one frame a step, its ball launched by hand where a test needs it elsewhere. */
static void table_open(struct table *t, int64_t frameskip, uint64_t seed)
{
    *t = (struct table){.settings.frameskip = frameskip, .s.rng = rng_seed(seed)};
    breakout_reset(&t->settings, &t->s);
}

/* angle from straight up, positive to the right */
static void put_ball(struct table *t, float x, float y, double angle)
{
    t->s.fired = 1;
    t->s.ball_x = x;
    t->s.ball_y = y;
    t->s.dir_x = (float)sin(angle);
    t->s.dir_y = (float)-cos(angle);
}

static void clear_bricks(struct table *t)
{
    memset(t->s.bricks, 0, sizeof t->s.bricks);
}

static int standing(const struct breakout_state *s)
{
    int n = 0;
    for (int r = 0; r < BREAKOUT_ROWS; r++)
        n += __builtin_popcount(s->bricks[r]);
    return n;
}

/* Largest overlap of the ball with a standing brick: the smaller side of the common rectangle, 0 if none. */
static double brick_overlap(const uint32_t bricks[BREAKOUT_ROWS], double x, double y)
{
    double worst = 0.0;
    int near = (int)(x / 32.0);
    for (int r = 0; r < BREAKOUT_ROWS && y < 122.0; r++)
        for (int c = near > 0 ? near - 1 : 0; c <= near + 2 && c < BREAKOUT_COLS; c++) {
            if (!(bricks[r] >> c & 1u))
                continue;
            double w = fmin(x + 32.0, 32.0 * c + 32.0) - fmax(x, 32.0 * c);
            double h = fmin(y + 32.0, 50.0 + 12.0 * r + 12.0) - fmax(y, 50.0 + 12.0 * r);
            if (w > 0.0 && h > 0.0)
                worst = fmax(worst, fmin(w, h));
        }
    return worst;
}

TEST(start_and_launch)
{
    int to_right = 0;
    for (uint64_t seed = 0; seed < 400; seed++) {
        struct table t;
        table_open(&t, 1, seed);
        assert_true(t.s.paddle_x == 257.0f && t.s.paddle_width == 62.0f);
        assert_true(t.s.ball_x == 272.0f && t.s.fired == 0 && t.s.balls == 5);
        assert_int_equal(standing(&t.s), 108);
        float y = t.s.ball_y;
        table_turn(&t, 0);
        double dx = (double)(t.s.ball_x - 272.0f), dy = (double)(t.s.ball_y - y);
        assert_int_equal(t.s.fired, 1);
        assert_true(fabs(hypot(dx, dy) - 256.0 / 60.0) < 1e-4);
        assert_true(dy > 0.0 && fabs(atan2(fabs(dx), dy) - M_PI / 3.25) < 1e-4);
        to_right += dx > 0.0;
    }
    assert_true(to_right > 150 && to_right < 250);
}

TEST(paddle)
{
    struct table t;
    table_open(&t, 1, 1);
    clear_bricks(&t);
    put_ball(&t, 100.0f, 200.0f, 0.0);
    table_turn(&t, 1);
    assert_true(fabsf(t.s.paddle_x - (257.0f - 620.0f / 60.0f)) < 1e-3f);
    table_turn(&t, 2);
    table_turn(&t, 2);
    assert_true(fabsf(t.s.paddle_x - (257.0f + 620.0f / 60.0f)) < 1e-3f);
    float x = t.s.paddle_x;
    table_turn(&t, 0);
    assert_true(t.s.paddle_x == x);
    for (int i = 0; i < 60; i++) {
        put_ball(&t, 100.0f, 200.0f, 0.0);
        table_turn(&t, 1);
    }
    assert_true(t.s.paddle_x == 0.0f);
    for (int i = 0; i < 60; i++) {
        put_ball(&t, 100.0f, 200.0f, 0.0);
        table_turn(&t, 2);
    }
    assert_true(t.s.paddle_x == 576.0f - 62.0f);
}

TEST(paddle_halves_at_the_top)
{
    struct table t;
    table_open(&t, 1, 1);
    clear_bricks(&t);
    put_ball(&t, 100.0f, 2.0f, 0.3);
    table_turn(&t, 0);
    assert_true(t.s.dir_y > 0.0f && t.s.ball_y > 0.0f);
    assert_true(t.s.paddle_width == 31.0f && t.s.paddle_x == 257.0f + 15.5f);
    put_ball(&t, 100.0f, 2.0f, 0.3);
    table_turn(&t, 0);
    assert_true(t.s.paddle_width == 31.0f && t.s.paddle_x == 257.0f + 15.5f); /* once */
    put_ball(&t, 0.0f, 318.0f, M_PI);
    table_turn(&t, 0); /* lost: the next ball has the whole paddle */
    assert_int_equal(t.s.balls, 4);
    assert_true(t.s.paddle_width == 62.0f && t.s.paddle_x == 257.0f && t.s.fired == 0);
}

TEST(bounce_angle)
{
    for (int narrow = 0; narrow < 2; narrow++)
        for (int i = -20; i <= 120; i++) {
            struct table t;
            table_open(&t, 1, 1);
            if (narrow)
                t.s.paddle_width = 31.0f;
            float at = (float)i / 100.0f; /* of the ball's middle along the paddle */
            float x = t.s.paddle_x + at * t.s.paddle_width - 16.0f;
            put_ball(&t, x, 279.0f, M_PI);
            table_turn(&t, 0);
            double want = (fmin(fmax((double)at, 0.0), 1.0) - 0.5) * M_PI / 2.0;
            assert_int_equal(t.s.hits, 1);
            assert_true(fabs(atan2((double)t.s.dir_x, (double)-t.s.dir_y) - want) < 1e-4);
            assert_true(fabs(hypot((double)t.s.dir_x, (double)t.s.dir_y) - 1.0) < 1e-6);
        }
    /* Beside the paddle: touching is a miss. */
    for (int right = 0; right < 2; right++) {
        struct table t;
        table_open(&t, 1, 1);
        put_ball(&t, right ? 257.0f + 62.0f : 257.0f - 32.0f, 279.0f, M_PI);
        table_turn(&t, 0);
        assert_true(t.s.hits == 0 && t.s.dir_y > 0.0f);
    }
}

TEST(speed_steps)
{
    struct table t;
    table_open(&t, 1, 1);
    for (int hit = 1; hit <= 24; hit++) {
        put_ball(&t, 272.0f, 279.5f, M_PI);
        float y = t.s.ball_y, before = t.s.speed / 60.0f;
        table_turn(&t, 0);
        float want = 256.0f + 64.0f * (float)(hit / 4 > 3 ? 3 : hit / 4);
        assert_int_equal(t.s.hits, hit);
        assert_true(t.s.speed == want);
        /* down to 280 at the old speed, the rest of the frame upwards at the new one */
        float rest = 1.0f - (280.0f - y) / before;
        assert_true(fabsf(t.s.ball_y - (280.0f - rest * want / 60.0f)) < 1e-3f);
    }
}

TEST(bricks)
{
    static const int points[6] = {7, 7, 4, 4, 1, 1};
    for (int row = 0; row < 6; row++)
        for (int col = 0; col < 18; col++)
            for (int from_above = 0; from_above < 2; from_above++) {
                struct table t;
                table_open(&t, 1, 1);
                clear_bricks(&t);
                t.s.bricks[row] = 1u << col;
                float top = 50.0f + 12.0f * (float)row;
                put_ball(&t, 32.0f * (float)col, from_above ? top - 33.0f : top + 13.0f, from_above ? M_PI : 0.0);
                table_turn(&t, 0);
                assert_int_equal(standing(&t.s), 0);
                assert_true(t.reward == (float)points[row] && t.s.points == points[row]);
                assert_true(t.s.speed == (row < 3 ? 448.0f : 256.0f));
                assert_true(from_above ? t.s.dir_y < 0.0f : t.s.dir_y > 0.0f);
                assert_true(t.step.perf == (float)points[row] / 864.0f);
            }
}

/* Of two bricks in the way the one nearer to the ball's middle goes; one per contact; sides reverse vx. */
TEST(which_brick)
{
    struct table t;
    table_open(&t, 1, 1);
    put_ball(&t, 32.0f * 4 + 10.0f, 123.0f, 0.0);
    table_turn(&t, 0);
    assert_int_equal(t.s.bricks[5], BREAKOUT_FULL_ROW & ~(1u << 4));
    table_open(&t, 1, 1);
    put_ball(&t, 32.0f * 4 + 22.0f, 123.0f, 0.0);
    table_turn(&t, 0);
    assert_int_equal(t.s.bricks[5], BREAKOUT_FULL_ROW & ~(1u << 5));

    table_open(&t, 1, 1);
    clear_bricks(&t);
    for (int r = 0; r < 6; r++)
        t.s.bricks[r] = 1u << 9;
    put_ball(&t, 32.0f * 8 - 1.0f, 66.0f, M_PI / 2); /* its middle, 82, is in row 2 */
    table_turn(&t, 0);
    assert_int_equal(standing(&t.s), 5);
    assert_int_equal(t.s.bricks[2], 0);
    assert_true(t.s.dir_x < 0.0f);
    put_ball(&t, 32.0f * 10 + 1.0f, 66.0f, -M_PI / 2);
    table_turn(&t, 0);
    assert_int_equal(standing(&t.s), 4); /* row 1 or 3 is next */
    assert_true(t.s.dir_x > 0.0f);
}

TEST(wall_refills_once)
{
    struct table t;
    table_open(&t, 1, 1);
    clear_bricks(&t);
    t.s.bricks[5] = 1;
    t.s.points = 431;
    put_ball(&t, 272.0f, 279.5f, M_PI);
    table_turn(&t, 0);
    assert_int_equal(standing(&t.s), 1); /* 431 is not enough */
    put_ball(&t, 0.0f, 123.0f, 0.0);
    table_turn(&t, 0);
    assert_int_equal(t.s.points, 432);
    assert_int_equal(standing(&t.s), 0); /* not before the paddle hit */
    assert_false(t.step.ended);
    put_ball(&t, 272.0f, 279.5f, M_PI);
    table_turn(&t, 0);
    assert_int_equal(standing(&t.s), 108);
    assert_int_equal(t.s.points, 432);
    put_ball(&t, 272.0f, 279.5f, M_PI);
    t.s.bricks[0] = 0;
    table_turn(&t, 0);
    assert_int_equal(t.s.bricks[0], 0); /* still 432 points, but it is the second wall */

    clear_bricks(&t);
    t.s.bricks[1] = 1u << 3;
    t.s.points = 857;
    put_ball(&t, 96.0f, 75.0f, 0.0);
    table_turn(&t, 0);
    assert_true(t.step.ended && t.s.points == 864);
    assert_true(t.step.score == 864.0f && t.step.perf == 1.0f && t.reward == 7.0f);
}

TEST(six_balls)
{
    struct table t;
    table_open(&t, 1, 1);
    for (int ball = 1; ball <= 6; ball++) {
        float obs[BREAKOUT_OBS];
        breakout_observe(&t.settings, &t.s, 0, obs);
        assert_true(obs[8] == (float)(6 - ball) / 5.0f);
        put_ball(&t, 0.0f, 285.0f, M_PI);
        t.s.speed = 448.0f;
        int frames = 0;
        while (t.s.fired && !t.step.ended) {
            table_turn(&t, 0);
            frames++;
        }
        assert_int_equal(frames, 5); /* 35 px to y = 320 */
        assert_int_equal(t.step.ended, ball == 6);
        if (ball < 6)
            assert_true(t.s.speed == 256.0f && t.s.hits == 0 && t.s.ball_x == 272.0f);
    }
}

TEST(observation)
{
    struct table t;
    table_open(&t, 4, 1);
    put_ball(&t, 144.0f, 165.0f, M_PI / 6);
    t.s.paddle_x = 288.0f;
    t.s.paddle_width = 31.0f;
    t.s.speed = 320.0f;
    t.s.points = 216;
    t.s.balls = 3;
    struct rng rng = rng_seed(3);
    for (int round = 0; round < 50; round++) {
        for (int r = 0; r < 6; r++)
            t.s.bricks[r] = rng_u32(&rng) & BREAKOUT_FULL_ROW;
        float obs[BREAKOUT_OBS + 1];
        obs[BREAKOUT_OBS] = 77.0f;
        breakout_observe(&t.settings, &t.s, 0, obs);
        const double want[10] = {
            0.5, 312.0 / 330.0, 0.25, 0.5, 320.0 / 60.0 * 0.5 / 512.0, -320.0 / 60.0 * sqrt(0.75) / 512.0,
            0.2, 0.25,          0.6,  0.5};
        for (int i = 0; i < 10; i++)
            assert_true(fabs((double)obs[i] - want[i]) < 1e-6);
        for (int r = 0; r < 6; r++)
            for (int c = 0; c < 18; c++)
                assert_true(obs[10 + 18 * r + c] == ((t.s.bricks[r] >> c & 1u) ? 0.0f : 1.0f));
        assert_true(obs[BREAKOUT_OBS] == 77.0f);
    }
    table_open(&t, 4, 1);
    float obs[BREAKOUT_OBS];
    breakout_observe(&t.settings, &t.s, 0, obs);
    assert_true(obs[6] == 0.0f && obs[4] == 0.0f && obs[7] == 0.0f && obs[8] == 1.0f && obs[9] == 1.0f);
}

/* -- sweeps -- */

/* One frame in n tiny steps of f64, walls and bricks only, axis by axis. */
static void crawl(uint32_t bricks[BREAKOUT_ROWS], double *x, double *y, double *ret_vx, double *ret_vy, int n)
{
    double vx = *ret_vx, vy = *ret_vy;
    for (int i = 0; i < n; i++) {
        double nx = *x + vx / n, ny = *y + vy / n;
        if (nx < 0.0 || nx > 544.0) {
            vx = -vx;
            nx = *x;
        }
        if (ny < 0.0) {
            vy = -vy;
            ny = *y;
        }
        if (brick_overlap(bricks, nx, ny) > 0.0) {
            bool by_x = brick_overlap(bricks, nx, *y) > 0.0;
            double px = by_x ? nx : *x, py = by_x ? *y : ny, nearest = 1e9;
            if (!by_x && !(brick_overlap(bricks, *x, ny) > 0.0))
                px = nx; /* corner against corner */
            int row = -1, col = -1;
            for (int r = 0; r < BREAKOUT_ROWS; r++)
                for (int c = 0; c < BREAKOUT_COLS; c++) {
                    uint32_t one[BREAKOUT_ROWS] = {0};
                    one[r] = bricks[r] & 1u << c;
                    double d = hypot(px + 16.0 - 32.0 * c - 16.0, py + 16.0 - 50.0 - 12.0 * r - 6.0);
                    if (one[r] && brick_overlap(one, px, py) > 0.0 && d < nearest) {
                        nearest = d;
                        row = r;
                        col = c;
                    }
                }
            bricks[row] &= ~(1u << col);
            if (by_x) {
                vx = -vx;
                nx = *x;
            } else {
                vy = -vy;
                ny = *y;
            }
        }
        *x = nx;
        *y = ny;
    }
    *ret_vx = vx;
    *ret_vy = vy;
}

/* A flying ball somewhere above the paddle that overlaps nothing, among random bricks. */
static void random_flight(struct table *t, struct rng *rng)
{
    uint32_t density = rng_below(rng, 4); /* 0: sparse */
    do {
        for (int r = 0; r < BREAKOUT_ROWS; r++) {
            t->s.bricks[r] = rng_u32(rng) & BREAKOUT_FULL_ROW;
            for (uint32_t k = density; k < 3; k++)
                t->s.bricks[r] &= rng_u32(rng);
        }
        put_ball(t, 544.0f * rng_f32(rng), 200.0f * rng_f32(rng), 2.0 * M_PI * rng_f64(rng));
    } while (brick_overlap(t->s.bricks, (double)t->s.ball_x, (double)t->s.ball_y) > 0.0);
}

TEST(sweep_equals_crawl)
{
    struct rng rng = rng_seed(21);
    int hits = 0, differ = 0, n = 2000;
    for (int i = 0; i < n; i++) {
        struct table t;
        table_open(&t, 1, 1);
        random_flight(&t, &rng);
        t.s.speed = 448.0f; /* so that no brick changes it */
        uint32_t bricks[BREAKOUT_ROWS];
        memcpy(bricks, t.s.bricks, sizeof bricks);
        double x = (double)t.s.ball_x, y = (double)t.s.ball_y, v = 448.0 / 60.0;
        double vx = (double)t.s.dir_x * v, vy = (double)t.s.dir_y * v;
        bool same = true;
        for (int frame = 0; frame < 8 && same && y < 270.0; frame++) {
            int before = standing(&t.s);
            crawl(bricks, &x, &y, &vx, &vy, 1024);
            table_turn(&t, 0);
            hits += before - standing(&t.s);
            same = memcmp(bricks, t.s.bricks, sizeof bricks) == 0 && fabs(x - (double)t.s.ball_x) < 0.2 &&
                   fabs(y - (double)t.s.ball_y) < 0.2;
        }
        differ += !same;
    }
    assert_true(hits > 600);
    assert_true(differ * 100 < n); /* near ties, where the crawl's step decides: below 1 in 100 */
}

/* However fast: the ball never is inside a brick or outside the walls, keeps its speed, and what it destroyed it
 * hit. */
TEST(no_tunnelling)
{
    struct rng rng = rng_seed(22);
    for (int i = 0; i < 30000; i++) {
        struct table t;
        table_open(&t, 1, 1);
        random_flight(&t, &rng);
        bool absurd = i % 4 == 3;
        for (int frame = 0; frame < 12; frame++) {
            t.s.speed = absurd ? 3000.0f : 448.0f;
            struct breakout_state old = t.s;
            table_turn(&t, 0);
            if (!t.s.fired)
                break;
            const struct breakout_state *s = &t.s;
            assert_true(s->ball_x >= 0.0f && s->ball_x <= 544.0f && s->ball_y >= 0.0f);
            assert_true(brick_overlap(s->bricks, (double)s->ball_x, (double)s->ball_y) < 1e-4);
            for (int r = 0; r < BREAKOUT_ROWS; r++)
                assert_int_equal(s->bricks[r] & ~old.bricks[r], 0);
            double moved = hypot((double)(s->ball_x - old.ball_x), (double)(s->ball_y - old.ball_y));
            assert_true(moved <= (double)old.speed / 60.0 + 1e-3);
            if (memcmp(&s->dir_x, &old.dir_x, 2 * sizeof s->dir_x) == 0 && standing(s) == standing(&old))
                assert_true(fabs(moved - (double)old.speed / 60.0) < 1e-3); /* no contact: the whole way */
        }
    }
}

/* Onto the paddle from everywhere and at any speed: passed over exactly when it is not below at the crossing. */
TEST(no_tunnelling_of_the_paddle)
{
    struct rng rng = rng_seed(23);
    int hits = 0;
    for (int i = 0; i < 50000; i++) {
        struct table t;
        table_open(&t, 1, 1);
        clear_bricks(&t);
        t.s.paddle_x = 514.0f * rng_f32(&rng);
        t.s.speed = i % 3 ? 448.0f : 2000.0f;
        double v = (double)t.s.speed / 60.0, angle = M_PI + M_PI / 2.2 * (2.0 * rng_f64(&rng) - 1.0);
        put_ball(&t, 64.0f + 400.0f * rng_f32(&rng), 280.0f - (float)v * rng_f32(&rng), angle);
        double down = (280.0 - (double)t.s.ball_y) / ((double)t.s.dir_y * v);
        double at = (double)t.s.ball_x + down * (double)t.s.dir_x * v;
        double left = at + 32.0 - (double)t.s.paddle_x, right = (double)t.s.paddle_x + 62.0 - at;
        if (down > 1.0 || fabs(left) < 1e-3 || fabs(right) < 1e-3)
            continue; /* not this frame, or a tie */
        table_turn(&t, 0);
        bool hit = t.s.hits == 1;
        assert_int_equal(hit, left > 0.0 && right > 0.0);
        hits += hit;
    }
    assert_true(hits > 1000);
}

/* -- play -- */
static int32_t follow(const struct breakout_state *s, struct rng *rng)
{
    float middle = s->ball_x + 16.0f + 30.0f * (rng_f32(rng) - 0.5f);
    float paddle = s->paddle_x + s->paddle_width / 2.0f;
    return middle < paddle - 5.0f ? 1 : middle > paddle + 5.0f ? 2 : 0;
}

TEST(frameskip)
{
    struct table whole, single;
    table_open(&whole, 4, 4);
    table_open(&single, 1, 4);
    struct rng rng = rng_seed(9);
    int ends = 0;
    for (int step = 0; step < 60000; step++) {
        int32_t action = rng_below(&rng, 4) ? follow(&whole.s, &rng) : (int32_t)rng_below(&rng, 3);
        table_turn(&whole, action);
        assert_false(whole.step.truncated);
        float sum = 0.0f;
        bool ended = false;
        for (int frame = 0; frame < 4 && !ended; frame++) {
            table_turn(&single, action);
            sum += single.reward;
            ended = single.step.ended;
        }
        assert_true(sum == whole.reward);
        assert_int_equal(ended, whole.step.ended);
        assert_memory_equal(&whole.s, &single.s, sizeof whole.s);
        if (ended) {
            ends++;
            breakout_reset(&whole.settings, &whole.s);
            breakout_reset(&single.settings, &single.s);
        }
    }
    assert_true(ends > 0);
}

/* A good player finishes both walls; points always are those of the bricks that are gone. */
TEST(whole_games)
{
    static const int points[6] = {7, 7, 4, 4, 1, 1};
    int best = 0;
    for (uint64_t seed = 0; seed < 10; seed++) {
        struct table t;
        table_open(&t, 1, seed);
        struct rng rng = rng_seed(seed + 50);
        float total = 0.0f;
        for (int step = 0; step < 100000 && !t.step.ended; step++) {
            table_turn(&t, follow(&t.s, &rng));
            assert_false(t.step.truncated);
            total += t.reward;
            int gone = 432 * (t.s.walls - 1);
            for (int r = 0; r < 6; r++)
                gone += points[r] * (18 - __builtin_popcount(t.s.bricks[r]));
            assert_int_equal(gone, t.s.points);
            assert_true(total == (float)t.s.points && t.s.points <= 864);
        }
        best = t.s.points > best ? t.s.points : best;
    }
    assert_int_equal(best, 864);
}

TEST(default_clip)
{
    const struct env_def *def = env_find("breakout");
    assert_int_equal(def->about->n_defaults, 1);
    assert_string_equal(def->about->defaults[0].key, "train.reward_clip");
    assert_string_equal(def->about->defaults[0].value, "1");
}

TEST_PROGRAM("breakout")
