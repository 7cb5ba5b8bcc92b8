/* test_slimevolley.c - flight, bounces, points and the opponent of slimevolley at positions that were worked out by
 * hand. */
#include "envs_test.h"

#include "envs/games/slimevolley.h"

struct match {
    struct slimevolley_settings settings;
    struct slimevolley_state s;
    struct env_step step;
    float reward;
};

/* Both players in their places, the ball in flight. */
static void match_open(struct match *m, float x, float y, float vx, float vy)
{
    *m = (struct match){.settings.max_steps = 3000, .s.rng = rng_seed(1)};
    slimevolley_reset(&m->settings, &m->s);
    m->s.ball = (struct slimevolley_body){x, y, vx, vy};
    m->s.delay = 0;
}

static void match_turn(struct match *m, int32_t forward, int32_t backward, int32_t jump)
{
    const int32_t actions[3] = {forward, backward, jump};
    m->step = (struct env_step){.rewards = &m->reward};
    slimevolley_step(&m->settings, &m->s, actions, &m->step);
}

#define NEAR(a, b) assert_true(fabs((double)(a) - (b)) < 1e-4)

TEST(players_run_and_jump)
{
    struct match m;
    const struct slimevolley_body *p = &m.s.players[SLIMEVOLLEY_AGENT];

    match_open(&m, 0, 40, 0, 0);
    match_turn(&m, 1, 0, 0);
    NEAR(p->x, 11.416667);
    NEAR(p->vx, -17.5);
    match_turn(&m, 1, 1, 0);
    NEAR(p->x, 11.416667);
    match_turn(&m, 7, 1, -3); /* only 1 is an action */
    NEAR(p->x, 12.0);
    assert_true(p->y == 1.5f);
    match_turn(&m, 0, 0, 1);
    NEAR(p->y, 1.95);
    for (int t = 1; t < 28; t++) { /* 13.5 - 0.98 t upwards: back on the ground in the 29th decision */
        match_turn(&m, 0, 0, 1);
        assert_true(p->y > 1.5f);
        m.s.ball = (struct slimevolley_body){0, 40, 0, 0};
    }
    match_turn(&m, 0, 0, 0);
    assert_true(p->y == 1.5f && p->vy == 0.0f);
    for (int t = 0; t < 20; t++) {
        m.s.ball = (struct slimevolley_body){0, 40, 0, 0};
        match_turn(&m, 1, 0, 0);
    }
    assert_true(p->x == 2.0f && p->vx == 0.0f); /* a radius from the fence */
    for (int t = 0; t < 40; t++) {
        m.s.ball = (struct slimevolley_body){0, 40, 0, 0};
        match_turn(&m, 0, 1, 0);
    }
    assert_true(p->x == 22.5f);
}

TEST(ball_flies)
{
    struct match m;

    match_open(&m, 5, 20, 3, 0);
    match_turn(&m, 0, 0, 0);
    NEAR(m.s.ball.vy, -0.98);
    NEAR(m.s.ball.x, 5.1);
    NEAR(m.s.ball.y, 20 - 0.98 / 30);
    match_open(&m, 5, 20, 18, 24.98f); /* 18, 24 is 30: too fast */
    match_turn(&m, 0, 0, 0);
    NEAR(m.s.ball.vx, 13.5);
    NEAR(m.s.ball.vy, 18.0);
    match_open(&m, 0, 0, 0, 0);
    slimevolley_reset(&m.settings, &m.s);
    for (int t = 0; t < 30; t++) {
        match_turn(&m, 0, 0, 0);
        assert_true(m.s.ball.x == 0.0f && m.s.ball.y == 12.0f);
    }
    match_turn(&m, 0, 0, 0);
    assert_true(m.s.ball.y > 12.0f);
}

TEST(bounces)
{
    struct match m;

    match_open(&m, 23.2f, 20, 15, 0); /* a wall */
    match_turn(&m, 0, 0, 0);
    NEAR(m.s.ball.vx, -15.0);
    NEAR(m.s.ball.x, 23.5 - 0.1 / 30);
    match_open(&m, -23.2f, 20, -15, 0);
    match_turn(&m, 0, 0, 0);
    NEAR(m.s.ball.vx, 15.0);
    match_open(&m, 5, 47.3f, 0, 15.98f); /* the ceiling */
    match_turn(&m, 0, 0, 0);
    NEAR(m.s.ball.vy, -15.0);
    match_open(&m, 1.2f, 2.6f, -15, 0); /* the fence's side */
    match_turn(&m, 0, 0, 0);
    NEAR(m.s.ball.vx, 15.0);
    NEAR(m.s.ball.x, 1 + 0.1 / 30);
    match_open(&m, -1.2f, 2.6f, 15, 0);
    match_turn(&m, 0, 0, 0);
    NEAR(m.s.ball.x, -1 - 0.1 / 30);
    match_open(&m, 0, 4.6f, 0, -10); /* its top: 4.234, then out in steps of 0.1 */
    match_turn(&m, 0, 0, 0);
    NEAR(m.s.ball.y, 4.534);
    NEAR(m.s.ball.vy, 10.98);
    match_open(&m, 12, 3.4f, 0, 0); /* a player that stands */
    match_turn(&m, 0, 0, 0);
    NEAR(m.s.ball.vy, 0.98);
    NEAR(m.s.ball.y, 3.567333);
    match_open(&m, 12, 3.9f, 0, 0); /* and one that jumps: 13.5 + 13.5 + 0.98 */
    match_turn(&m, 0, 0, 1);
    NEAR(m.s.ball.vy, 27.98);
    match_open(&m, 13.2f, 2.6f, 0, 0.98f); /* from the side, the ball at rest */
    match_turn(&m, 0, 1, 0); /* to 12.58333 at 17.5: 0.61667 and 1.1 off */
    assert_true(fabsf(m.s.ball.vx - 8.3694f) < 1e-3f && fabsf(m.s.ball.vy - 14.9293f) < 1e-3f);
    match_open(&m, 12, 1.5f, 0, 0.98f); /* middle upon middle: upwards */
    match_turn(&m, 0, 0, 0);
    NEAR(m.s.ball.x, 12.0);
    assert_true(m.s.ball.y > 3.5f);
}

TEST(points)
{
    struct match m;

    match_open(&m, 8, 2.1f, 0, -10); /* 1.73: below 2 */
    match_turn(&m, 0, 0, 0);
    assert_true(m.reward == -1.0f && m.s.lives[SLIMEVOLLEY_AGENT] == 4 && m.s.lives[SLIMEVOLLEY_OPPONENT] == 5);
    assert_true(m.s.ball.x == 0.0f && m.s.ball.y == 12.0f && m.s.delay == 30);
    assert_true(fabsf(m.s.ball.vx) <= 20.0f && m.s.ball.vy >= 10.0f && m.s.ball.vy <= 25.0f);
    assert_true(m.step.score == -1.0f && fabsf(m.step.perf - 0.4f) < 1e-6f && !m.step.ended);
    for (int k = 1; k <= 5; k++) {
        m.s.ball = (struct slimevolley_body){-20, 2.1f, 0, -10};
        m.s.delay = 0;
        m.s.players[SLIMEVOLLEY_OPPONENT].x = -2.0f;
        match_turn(&m, 0, 0, 0);
        assert_true(m.reward == 1.0f && m.s.lives[SLIMEVOLLEY_OPPONENT] == 5 - k && m.step.ended == (k == 5));
    }
    assert_true(m.step.score == 4.0f && fabsf(m.step.perf - 0.9f) < 1e-6f && !m.step.truncated);
    match_open(&m, 0, 20, 0, 0);
    m.settings.max_steps = 1;
    match_turn(&m, 0, 0, 0);
    assert_true(m.step.truncated && !m.step.ended && m.reward == 0.0f);
}

TEST(observation)
{
    struct match m;
    float obs[12];
    static const float want[12] = {1.1f, 0.2f, 0.3f, -0.4f, -0.5f, 0.6f, 0.7f, -0.8f, 0.9f, 0.15f, 1.2f, 0.0f};

    match_open(&m, -5, 6, 7, -8);
    m.s.players[SLIMEVOLLEY_AGENT] = (struct slimevolley_body){11, 2, 3, -4};
    m.s.players[SLIMEVOLLEY_OPPONENT] =
        (struct slimevolley_body){-9, 1.5f, -12, 0}; /* away from the fence, as the agent's 3 */
    slimevolley_observe(&m.settings, &m.s, 0, obs);
    for (int i = 0; i < 12; i++)
        assert_true(fabsf(obs[i] - want[i]) < 1e-6f);
}

/* The opponent stands further from the fence than the ball, and runs there. */
TEST(opponent)
{
    struct match m;

    match_open(&m, -6, 20, 0, 0);
    assert_true(slimevolley_opponent(&m.s) == -1.0f); /* it stands at -12 */
    m.s.players[SLIMEVOLLEY_OPPONENT].x = -6.6f;
    assert_true(slimevolley_opponent(&m.s) == 0.0f);
    m.s.ball.vx = -15.0f; /* half a unit further in a decision */
    assert_true(slimevolley_opponent(&m.s) == 1.0f);
    match_turn(&m, 0, 0, 0);
    NEAR(m.s.players[SLIMEVOLLEY_OPPONENT].y, 1.95);
    NEAR(m.s.players[SLIMEVOLLEY_OPPONENT].x, -6.6 - 17.5 / 30);
}

enum player { IDLE, RANDOM, MIRROR };

static double mean_perf(enum player player, int games)
{
    struct match m;
    struct rng rng = rng_seed(3);
    double sum = 0.0;

    for (int g = 0; g < games; g++) {
        match_open(&m, 0, 0, 0, 0);
        m.s.rng = rng_seed(100 + (uint64_t)g);
        slimevolley_reset(&m.settings, &m.s);
        do {
            struct slimevolley_state mirror = m.s;
            mirror.ball.x = -m.s.ball.x;
            mirror.ball.vx = -m.s.ball.vx;
            mirror.players[SLIMEVOLLEY_OPPONENT].x = -m.s.players[SLIMEVOLLEY_AGENT].x;
            const float run = slimevolley_opponent(&mirror);
            const int32_t dice = (int32_t)rng_below(&rng, 8);
            if (player == MIRROR)
                match_turn(&m, run<0.0f, run> 0.0f, 1);
            else
                match_turn(&m, player == RANDOM ? dice & 1 : 0, player == RANDOM ? dice >> 1 & 1 : 0,
                           player == RANDOM ? dice >> 2 : 0);
        } while (!m.step.ended && !m.step.truncated);
        sum += (double)m.step.perf;
    }
    return sum / games;
}

TEST(players)
{
    const double idle = mean_perf(IDLE, 40), random = mean_perf(RANDOM, 40), mirror = mean_perf(MIRROR, 40);

    print_message("# idle %.3f, random %.3f, against itself %.3f\n", idle, random, mirror);
    assert_true(idle < 0.1 && random < 0.25 && mirror > 0.4 && mirror < 0.6);
}

TEST_PROGRAM("envs slimevolley")
