/* test_trash_pickup.c - trash_pickup's rules on grids made by hand, and long random play. */
#include "envs_test.h"

#include "envs/games/trash_pickup.h"
#undef ENV_GAME_BYTES

enum { UP, DOWN, LEFT, RIGHT };

struct grid {
    struct trash_pickup_settings settings;
    struct trash_pickup_state s;
    struct env_step step;
    float rewards[TRASH_PICKUP_AGENTS_MAX];
    int32_t actions[TRASH_PICKUP_AGENTS_MAX];
};

/* By its first rows: A and B are agents 0 and 1, t trash, b a bin; the rest is empty. */
static void grid_open(struct grid *g, int n, const char *const *rows)
{
    *g = (struct grid){.settings = {.agents = 2, .bins = 1, .trash = 1, .size = 16, .max_steps = 500},
                       .s.rng = rng_seed(1)};
    trash_pickup_reset(&g->settings, &g->s);
    memset(g->s.cells, TRASH_PICKUP_EMPTY, sizeof g->s.cells);
    g->s.lying = 0;
    for (int i = 0; i < n * 16; i++) {
        const char c = rows[i / 16][i % 16];
        if (c == 'A' || c == 'B')
            g->s.at[c - 'A'] = (int16_t)i;
        g->s.lying += c == 't';
        g->s.cells[i] = c == 'A' || c == 'B' ? TRASH_PICKUP_AGENT
                        : c == 't'           ? TRASH_PICKUP_TRASH
                        : c == 'b'           ? TRASH_PICKUP_BIN
                                             : TRASH_PICKUP_EMPTY;
    }
    g->settings.trash = g->s.lying;
}

static void grid_turn(struct grid *g, int32_t a, int32_t b)
{
    g->actions[0] = a;
    g->actions[1] = b;
    g->step = (struct env_step){.rewards = g->rewards};
    trash_pickup_step(&g->settings, &g->s, g->actions, &g->step);
}

TEST(pick_up_and_bring)
{
    static const char *const rows[] = {"Attb............", "..............B."};
    struct grid g;

    grid_open(&g, 2, rows);
    grid_turn(&g, RIGHT, 9);
    assert_true(g.rewards[0] == 0.5f && g.rewards[1] == 0.0f && g.s.at[0] == 1 && g.s.cells[1] == TRASH_PICKUP_CARRIER);
    assert_true(g.s.cells[0] == TRASH_PICKUP_EMPTY && g.step.score == 1.0f && g.step.perf == 0.5f);
    grid_turn(&g, RIGHT, 9); /* its hands are full: the next piece is in the way */
    assert_true(g.rewards[0] == 0.0f && g.s.at[0] == 1 && g.s.lying == 1);
    grid_turn(&g, DOWN, LEFT);
    grid_turn(&g, RIGHT, LEFT);
    grid_turn(&g, RIGHT, LEFT);
    grid_turn(&g, UP, LEFT); /* against the bin */
    assert_true(g.rewards[0] == 0.5f && g.s.at[0] == 19 && g.s.cells[19] == TRASH_PICKUP_AGENT && !g.step.ended);
    grid_turn(&g, LEFT, LEFT);
    grid_turn(&g, UP, LEFT);
    assert_true(g.rewards[0] == 0.5f && g.step.perf == 1.0f && !g.step.ended); /* still in its hands */
    grid_turn(&g, RIGHT, LEFT);
    assert_true(g.rewards[0] == 0.5f && g.step.ended && g.step.score == 2.0f);
}

TEST(bins_are_pushed)
{
    static const char *const rows[] = {"A.b.t.........B.", "................"};
    struct grid g;

    grid_open(&g, 2, rows);
    grid_turn(&g, RIGHT, UP); /* above is not a cell */
    assert_true(g.s.at[0] == 1 && g.s.at[1] == 14);
    grid_turn(&g, RIGHT, RIGHT);
    assert_true(g.s.at[0] == 2 && g.s.cells[3] == TRASH_PICKUP_BIN && g.rewards[0] == 0.0f && g.s.at[1] == 15);
    grid_turn(&g, RIGHT, RIGHT); /* trash beyond it: it stays; so does B at the edge */
    assert_true(g.s.at[0] == 2 && g.s.cells[3] == TRASH_PICKUP_BIN && g.s.at[1] == 15);
    grid_turn(&g, DOWN, LEFT);
    grid_turn(&g, RIGHT, LEFT);
    grid_turn(&g, UP, LEFT); /* beyond the bin is not a cell */
    assert_true(g.s.at[0] == 19 && g.s.cells[3] == TRASH_PICKUP_BIN);
    grid_turn(&g, RIGHT, LEFT);
    grid_turn(&g, UP, LEFT);
    assert_true(g.rewards[0] == 0.5f && g.s.at[0] == 4);
    grid_turn(&g, LEFT, LEFT); /* it carries: brought, not pushed */
    assert_true(g.rewards[0] == 0.5f && g.s.cells[3] == TRASH_PICKUP_BIN && g.step.ended);
}

/* Agent 0 first: where both would enter, it is there; agents do not enter each other. */
TEST(order)
{
    static const char *const rows[] = {"AtB............t", "................"};
    struct grid g;

    grid_open(&g, 2, rows);
    grid_turn(&g, RIGHT, LEFT);
    assert_true(g.rewards[0] == 0.5f && g.rewards[1] == 0.0f && g.s.at[0] == 1 && g.s.at[1] == 2);
    grid_turn(&g, LEFT, LEFT); /* agent 0 has left by then */
    assert_true(g.s.at[0] == 0 && g.s.at[1] == 1 && g.s.cells[0] == TRASH_PICKUP_CARRIER &&
                g.s.cells[1] == TRASH_PICKUP_AGENT);
    g.settings.max_steps = 3;
    grid_turn(&g, 4, -1);
    assert_true(g.step.truncated && !g.step.ended && g.step.perf == 0.5f);
}

TEST(view)
{
    static const char *const rows[] = {"................", "..A.t..b........", "....B..........."};
    struct grid g;
    uint8_t obs[605];
    int sum = 0;

    grid_open(&g, 3, rows);
    g.s.cells[g.s.at[1]] = TRASH_PICKUP_CARRIER;
    trash_pickup_observe(&g.settings, &g.s, 0, obs); /* agent 0 at (2, 1) is (5, 5) of the view */
    for (int row = 0; row < 11; row++)
        for (int col = 0; col < 11; col++) {
            const uint8_t *planes = obs + (row * 11 + col) * 5;
            assert_int_equal(planes[0], row < 4 || col < 3);
            assert_int_equal(planes[1], row == 5 && col == 7);
            assert_int_equal(planes[2], row == 5 && col == 10);
            assert_int_equal(planes[3], (row == 5 && col == 5) || (row == 6 && col == 7));
            assert_int_equal(planes[4], row == 6 && col == 7);
        }
    trash_pickup_observe(&g.settings, &g.s, 1, obs);
    for (int i = 0; i < 605; i++)
        sum += obs[i];
    assert_true(obs[(5 * 11 + 5) * 5 + 4] == 1 && sum == 11 * 3 + 8 * 1 + 5);
}

/* Nothing is lost: what lies, is carried and was brought is all, and agents stand where they are said to stand. */
TEST(random_play)
{
    struct grid g = {.settings = {.agents = 8, .bins = 2, .trash = 40, .size = 20, .max_steps = 500},
                     .s.rng = rng_seed(2)};
    struct rng rng = rng_seed(6);
    double picked = 0.0;

    for (int game = 0; game < 30; game++) {
        int brought = 0, steps = 0;
        trash_pickup_reset(&g.settings, &g.s);
        do {
            int kinds[5] = {0}, before = g.s.carried + g.s.lying;
            for (int a = 0; a < 8; a++)
                g.actions[a] = (int32_t)rng_below(&rng, 4);
            g.step = (struct env_step){.rewards = g.rewards};
            trash_pickup_step(&g.settings, &g.s, g.actions, &g.step);
            for (int i = 0; i < 400; i++)
                kinds[g.s.cells[i]]++;
            assert_true(kinds[TRASH_PICKUP_TRASH] == g.s.lying && kinds[TRASH_PICKUP_BIN] == 2);
            assert_true(kinds[TRASH_PICKUP_CARRIER] == g.s.carried && kinds[TRASH_PICKUP_AGENT] + g.s.carried == 8);
            for (int a = 0; a < 8; a++)
                assert_true(g.s.cells[g.s.at[a]] >= TRASH_PICKUP_AGENT);
            brought += before - g.s.carried - g.s.lying;
            assert_int_equal(brought + g.s.carried + g.s.lying, 40);
            steps++;
        } while (!g.step.ended && !g.step.truncated);
        assert_true(steps == 500 || (brought == 40 && g.step.ended));
        picked += (double)g.step.perf / 30;
    }
    print_message("# random agents pick up %.2f\n", picked);
    assert_true(picked > 0.1 && picked < 0.9);
}

TEST_PROGRAM("envs trash_pickup")
