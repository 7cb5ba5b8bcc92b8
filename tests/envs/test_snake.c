/* test_snake.c - snake's rules at hand-made positions and over long random play, and what the loop does for agents that
 * end alone, in snake and in a game that also cuts their episodes. */
#include "envs_test.h"

#include "envs/games/snake.h"
#undef ENV_GAME_BYTES
#undef ENV_GAME_AGENTS_END
#include "tests/plain_game.h"

enum { UP, DOWN, LEFT, RIGHT };

/* On the heap: a grid is large. */
struct play {
    struct snake_settings settings;
    struct snake_state state;
    struct env_step step;
    float rewards[SNAKE_AGENTS_MAX];
    uint8_t terms[SNAKE_AGENTS_MAX], truncs[SNAKE_AGENTS_MAX];
    int32_t actions[SNAKE_AGENTS_MAX];
};

static struct play *play_open(int64_t agents, int64_t food)
{
    struct play *p = mem_alloc(sizeof *p);
    p->settings = (struct snake_settings){.agents = agents, .width = 40, .height = 32, .food = food, .one_hot = false};
    p->state.rng = rng_seed(1);
    snake_reset(&p->settings, &p->state);
    return p;
}

static void play_turn(struct play *p)
{
    memset(p->terms, 0, sizeof p->terms);
    p->step = (struct env_step){.rewards = p->rewards, .terms = p->terms, .truncs = p->truncs};
    snake_step(&p->settings, &p->state, p->actions, &p->step);
}

static int32_t at(int x, int y)
{
    return y * 40 + x;
}

/* The only snakes of an empty grid, at these cells, each of one cell. */
static void play_place(struct play *p, int n, const int32_t *heads)
{
    memset(p->state.cells, 0, sizeof p->state.cells);
    for (int a = 0; a < n; a++) {
        p->state.bodies[a] = (struct snake_body){.head = heads[a], .tail = heads[a], .length = 1, .heading = -1};
        p->state.cells[heads[a]] = snake_cell(a, 0);
    }
}

static int count(const struct play *p, int kind)
{
    int n = 0;
    for (int i = 0; i < 40 * 32; i++)
        n += snake_cell_kind(p->state.cells[i]) == kind;
    return n;
}

TEST(eating_and_growing)
{
    MEM_LOCAL struct play *p = play_open(1, 1);
    const int32_t head = at(5, 5);

    play_place(p, 1, &head);
    p->state.cells[at(6, 5)] = SNAKE_FOOD;
    p->state.cells[at(7, 5)] = SNAKE_CORPSE;
    p->state.edible = 2;
    p->actions[0] = RIGHT;
    play_turn(p);
    assert_true(p->rewards[0] == 0.1f && p->state.bodies[0].length == 2 && p->state.bodies[0].tail == head);
    assert_int_equal(count(p, SNAKE_FOOD), 0); /* the corpse is enough */
    play_turn(p);
    assert_true(p->rewards[0] == 0.1f && p->state.bodies[0].length == 3 && count(p, SNAKE_CORPSE) == 0);
    assert_int_equal(count(p, SNAKE_FOOD), 1); /* of one cell it appears again */
    p->actions[0] = LEFT; /* straight back: continues as it went */
    play_turn(p);
    assert_true(p->rewards[0] == 0.0f && p->state.bodies[0].head == at(8, 5) && p->state.bodies[0].tail == at(6, 5));
    p->actions[0] = 9; /* nothing: straight on */
    play_turn(p);
    assert_true(p->state.bodies[0].head == at(9, 5) && count(p, SNAKE_BODY) == 3);
}

/* Agent 0 leaves the grid; agent 1 bites itself. */
TEST(deaths)
{
    static const int32_t bite[] = {DOWN, LEFT, UP};
    MEM_LOCAL struct play *p = play_open(2, 0);
    const int32_t heads[2] = {at(0, 3), at(20, 20)};

    play_place(p, 2, heads);
    for (int x = 21; x <= 24; x++)
        p->state.cells[at(x, 20)] = SNAKE_CORPSE;
    p->actions[0] = DOWN;
    p->actions[1] = RIGHT;
    for (int t = 0; t < 4; t++)
        play_turn(p);
    assert_true(p->state.bodies[1].length == 5 && count(p, SNAKE_CORPSE) == 0);
    p->actions[0] = LEFT;
    for (int t = 0; t < 3; t++) { /* five cells long: the cell above is its own, not its end's */
        p->actions[1] = bite[t];
        play_turn(p);
        assert_int_equal(p->terms[1], t == 2);
        if (t == 0) {
            assert_true(p->terms[0] == 1 && p->rewards[0] == -1.0f && p->rewards[1] == 0.0f);
            assert_int_equal(p->state.bodies[0].length, 0);
            snake_respawn(&p->settings, &p->state, 0);
            assert_true(p->state.bodies[0].length == 1 && count(p, SNAKE_BODY) == 6);
            p->state.cells[p->state.bodies[0].head] = SNAKE_EMPTY; /* out of the way of what follows */
            p->state.bodies[0].head = p->state.bodies[0].tail = at(0, 0);
            p->state.cells[at(0, 0)] = snake_cell(0, 0);
            p->actions[0] = RIGHT;
        }
    }
    assert_true(p->rewards[1] == -1.0f && count(p, SNAKE_CORPSE) == 4 && count(p, SNAKE_BODY) == 1);
    assert_true(p->state.bodies[1].track.score == 5.0f && fabsf(p->state.bodies[1].track.perf - 5.0f / 120.0f) < 1e-6f);
}

/* Four cells on four cells: each move enters the cell that the snake's end has left. */
TEST(square_of_four)
{
    static const int32_t round[] = {RIGHT, DOWN, LEFT, UP};
    MEM_LOCAL struct play *p = play_open(1, 0);
    const int32_t head = at(10, 10);

    play_place(p, 1, &head);
    p->state.cells[at(11, 10)] = p->state.cells[at(11, 11)] = p->state.cells[at(10, 11)] = SNAKE_CORPSE;
    for (int t = 0; t < 40; t++) {
        p->actions[0] = round[t % 4];
        play_turn(p);
        assert_int_equal(p->terms[0], 0);
    }
    assert_true(p->state.bodies[0].length == 4 && count(p, SNAKE_BODY) == 4);
}

TEST(view)
{
    MEM_LOCAL struct play *p = play_open(2, 0);
    const int32_t heads[2] = {at(3, 2), at(4, 2)};
    uint8_t values[SNAKE_VIEW_CELLS], planes[SNAKE_VIEW_CELLS * SNAKE_PLANES];

    play_place(p, 2, heads);
    p->state.cells[at(3, 7)] = SNAKE_FOOD;
    p->state.cells[at(2, 2)] = SNAKE_CORPSE;
    snake_observe(&p->settings, &p->state, 0, values);
    for (int y = 0; y < 11; y++)
        for (int x = 0; x < 11; x++) {
            int want = x < 2 || y < 3 ? SNAKE_OUTSIDE : SNAKE_EMPTY; /* the head is in the middle, at (5, 5) */
            want = x == 5 && y == 5 ? SNAKE_OWN : x == 6 && y == 5 ? SNAKE_OTHER : want;
            want = x == 5 && y == 10 ? SNAKE_FOOD : x == 4 && y == 5 ? SNAKE_CORPSE : want;
            assert_int_equal(values[y * 11 + x], want);
        }
    p->settings.one_hot = true;
    snake_observe(&p->settings, &p->state, 0, planes);
    for (int i = 0; i < SNAKE_VIEW_CELLS * SNAKE_PLANES; i++)
        assert_int_equal(planes[i], values[i / SNAKE_PLANES] == i % SNAKE_PLANES + 1);
}

static void check_body(const struct play *p, int agent)
{
    const struct snake_body *body = &p->state.bodies[agent];
    int32_t cell = body->tail;

    for (int i = 1; i < body->length; i++) {
        assert_int_equal(snake_cell_agent(p->state.cells[cell]), agent);
        cell = snake_next(&p->settings, cell, snake_cell_heading(p->state.cells[cell]));
    }
    assert_true(cell == body->head && snake_cell_kind(p->state.cells[cell]) == SNAKE_BODY);
}

/* Many snakes at random for a long time: every body is one line of its length, there is always enough to eat,
 * and no cell is lost. */
TEST(bodies_stay_whole)
{
    MEM_LOCAL struct play *p = play_open(20, 60);
    struct rng rng = rng_seed(6);
    int deaths = 0;

    for (int t = 0; t < 3000; t++) {
        int cells = 0;
        for (int a = 0; a < 20; a++)
            if (rng_below(&rng, 4) == 0)
                p->actions[a] = (int32_t)rng_below(&rng, 4);
        play_turn(p);
        for (int a = 0; a < 20; a++)
            if (p->terms[a] != 0) {
                assert_true(p->rewards[a] == -1.0f && p->state.bodies[a].length == 0);
                snake_respawn(&p->settings, &p->state, a);
                deaths++;
            }
        for (int a = 0; a < 20; a++) {
            check_body(p, a);
            cells += p->state.bodies[a].length;
        }
        assert_int_equal(cells, count(p, SNAKE_BODY));
        assert_true(count(p, SNAKE_FOOD) + count(p, SNAKE_CORPSE) == p->state.edible && p->state.edible >= 60);
    }
    assert_true(deaths > 100 && count(p, SNAKE_EMPTY) > 1000); /* the grid does not fill */
}

/* ---- the loop ---- */

/* Agent a's life is 2 + a decisions long: ended by the rules when a is even, else cut. It sees its age. */
struct lives_settings {
    int64_t unused;
};
struct lives_state {
    struct rng rng;
    struct env_track tracks[3];
    int64_t age[3], lives[3];
};

ENV_FN void lives_shape(const struct lives_settings *settings, struct env_shape *shape)
{
    (void)settings;
    *shape = (struct env_shape){.obs_size = 2, .n_agents = 3, .n_heads = 1, .head_sizes = {2}};
    shape->may_truncate = shape->agents_end = true;
}

ENV_FN void lives_respawn(const struct lives_settings *settings, struct lives_state *s, int agent)
{
    (void)settings;
    s->age[agent] = 0;
    s->lives[agent]++;
}

ENV_FN void lives_reset(const struct lives_settings *settings, struct lives_state *s)
{
    for (int a = 0; a < 3; a++)
        lives_respawn(settings, s, a);
}

ENV_FN struct env_track *lives_track(struct lives_state *s, int agent)
{
    return &s->tracks[agent];
}

ENV_FN void lives_step(const struct lives_settings *settings, struct lives_state *s, const int32_t *actions,
                       struct env_step *step)
{
    (void)settings;
    for (int a = 0; a < 3; a++) {
        bool over = ++s->age[a] == 2 + a;
        step->rewards[a] = (float)(a + 1);
        step->terms[a] = over && a % 2 == 0;
        step->truncs[a] = over && a % 2 == 1;
        s->tracks[a].score = (float)(10 * a);
        s->tracks[a].perf = 0.5f;
    }
    step->truncated = actions[0] == 1; /* all of it is cut, but for those that end by the rules */
}

ENV_OBS_FN void lives_observe(const struct lives_settings *settings, const struct lives_state *s, int agent,
                              env_obs *obs)
{
    (void)settings;
    obs[0] = (float)s->age[agent];
    obs[1] = (float)s->lives[agent];
}

#define ENV_GAME lives
#define ENV_GAME_AGENTS_END
#define ENV_GAME_PLAIN
#include "envs/env_loop.h"
PLAIN_GAME(lives, "lives of fixed lengths", 0);

TEST(agents_end_alone)
{
    const struct lives_settings settings = {0};
    TEST_BATCH b;
    struct env_log log;

    test_batch_open(&b, &lives_def, &settings, 2, 1);
    env_batch_reset(b.batch, NULL, b.obs, NULL);
    for (int t = 1; t <= 12; t++) {
        env_batch_step(b.batch, NULL, &b.io);
        for (size_t row = 0; row < 6; row++) {
            int a = (int)row % 3, length = 2 + a;
            bool over = t % length == 0;
            assert_int_equal(b.terms[row], over && a % 2 == 0);
            assert_int_equal(b.truncs[row], over && a % 2 == 1);
            assert_true(b.obs[2 * row] == (float)(t % length) && b.obs[2 * row + 1] == (float)(1 + t / length));
            if (b.truncs[row]) /* the life that was cut, as it was */
                assert_true(b.final_obs[2 * row] == (float)length && b.final_obs[2 * row + 1] == (float)(t / length));
        }
    }
    env_batch_take_log(b.batch, &log);
    /* 6, 4 and 3 lives of 2, 3 and 4 decisions for 1, 2 and 3 each, in each of two instances */
    assert_true(log.episodes == 26.0 && log.ep_length == 72.0);
    assert_true(log.ep_return == 2.0 * (12 * 1 + 12 * 2 + 12 * 3) && log.score == 2.0 * (4 * 10 + 3 * 20));
    assert_true(log.perf == 13.0);
    b.actions[0] = 1; /* the first instance is cut: its agents have lived one decision each */
    env_batch_step(b.batch, NULL, &b.io);
    for (size_t row = 0; row < 6; row++)
        assert_true(b.truncs[row] == (row < 3) && b.terms[row] == 0);
    env_batch_take_log(b.batch, &log);
    assert_true(log.episodes == 3.0 && log.ep_length == 3.0 && log.ep_return == 6.0);
}

/* The log counts lives of snakes, each with its length. */
TEST(snakes_in_a_batch)
{
    const struct env_def *def = env_find("snake");
    MEM_LOCAL void *settings = test_settings(def);
    struct rng rng = rng_seed(2);
    TEST_BATCH b;
    struct env_log log;
    int deaths = 0, mixed = 0;

    test_batch_open(&b, def, settings, 3, 5);
    env_batch_reset(b.batch, NULL, b.obs, NULL);
    for (int t = 0; t < 500; t++) {
        int n = 0;
        test_batch_random_actions(&b, &rng);
        env_batch_step(b.batch, NULL, &b.io);
        for (size_t a = 0; a < b.n_agents; a++)
            n += b.terms[a];
        deaths += n;
        mixed += n > 0 && n < (int)b.n_agents;
    }
    env_batch_take_log(b.batch, &log);
    assert_true(deaths > 20 && mixed > 20 && log.episodes == deaths);
    assert_true(log.score >= deaths && log.ep_length > log.episodes);
}

TEST_PROGRAM("snake")
