/* test_go.c - go's rules on boards drawn by hand and, move by move, against a slow board of characters; its
 * opponent. */
#include "envs_test.h"

#include "envs/games/go.h"
#undef ENV_GAME_BYTES
#undef ENV_GAME_HAS_MASK

struct game {
    struct go_settings settings;
    struct go_state s;
    struct env_step step;
    float reward;
};

/* Rows of x (the agent's), o (the opponent's) and points; nobody has just passed, the agent is black. */
static void game_open(struct game *g, int n, const char *const *rows)
{
    *g = (struct game){.settings = {.size = n, .komi = 0.5, .aggression = 0.5}, .s.rng = rng_seed(1)};
    do
        go_reset(&g->settings, &g->s);
    while (g->s.black != GO_OWN);
    for (int i = 0; i < n * n; i++) {
        const char c = rows[i / n][i % n];
        g->s.cells[go_cell(&g->s, i)] = c == 'x' ? GO_OWN : c == 'o' ? GO_OTHER : GO_EMPTY;
    }
    go_find_groups(&g->s);
}

static void game_turn(struct game *g, int32_t action)
{
    g->step = (struct env_step){.rewards = &g->reward};
    go_step(&g->settings, &g->s, &action, &g->step);
}

static int at(const struct game *g, int row, int col)
{
    return go_cell(&g->s, row * g->s.n + col);
}

static void check_board(const struct game *g, const char *const *rows)
{
    for (int i = 0; i < g->s.n * g->s.n; i++) {
        const int is = g->s.cells[go_cell(&g->s, i)];
        assert_int_equal(is == GO_OWN ? 'x' : is == GO_OTHER ? 'o' : '.', rows[i / g->s.n][i % g->s.n]);
    }
}

TEST(taking)
{
    static const char *const rows[] = {".oox.", "xxx..", "..x..", ".xox.", "....."};
    static const char *const corner[] = {"x..x.", "xxx..", "..x..", ".xox.", "....."};
    static const char *const middle[] = {"x..x.", "xxx..", "..x..", ".x.x.", "..x.."};
    struct game g;

    game_open(&g, 5, rows);
    assert_true(go_liberties(&g.s, at(&g, 0, 2)) == 1 && go_liberties(&g.s, at(&g, 3, 2)) == 1);
    assert_int_equal(go_liberties(&g.s, at(&g, 2, 2)), 5);
    assert_false(go_is_legal(&g.s, at(&g, 0, 0), GO_OTHER)); /* would have no liberty and takes nothing */
    assert_true(go_is_legal(&g.s, at(&g, 0, 0), GO_OWN)); /* takes */
    assert_false(go_is_legal(&g.s, at(&g, 2, 2), GO_OWN));
    assert_int_equal(go_put(&g.s, at(&g, 0, 0), GO_OWN), 2);
    check_board(&g, corner);
    assert_int_equal(g.s.ko, -1);
    assert_int_equal(go_put(&g.s, at(&g, 4, 2), GO_OWN), 1);
    check_board(&g, middle);
    assert_int_equal(g.s.ko, -1); /* the stone that took it has other liberties */
}

TEST(ko)
{
    static const char *const rows[] = {".xo..", "x.xo.", ".xo..", ".....", "....."};
    struct game g;

    game_open(&g, 5, rows);
    assert_int_equal(go_put(&g.s, at(&g, 1, 1), GO_OTHER), 1);
    assert_int_equal(g.s.ko, at(&g, 1, 2));
    assert_false(go_is_legal(&g.s, at(&g, 1, 2), GO_OWN));
    go_put(&g.s, at(&g, 4, 4), GO_OWN); /* elsewhere: then it may be taken back */
    assert_int_equal(go_put(&g.s, at(&g, 4, 0), GO_OTHER), 0);
    assert_true(go_is_legal(&g.s, at(&g, 1, 2), GO_OWN));
    assert_int_equal(go_put(&g.s, at(&g, 1, 2), GO_OWN), 1);
    assert_int_equal(g.s.ko, at(&g, 1, 1));
    go_pass(&g.s);
    assert_true(g.s.ko == -1 && g.s.passes == 1);
}

TEST(points)
{
    static const char *const split[] = {".x.o.", ".x.o.", ".x.o.", ".x.o.",
                                        "xx.oo"}; /* 10 and 10, a column of nobody's */
    static const char *const all[] = {".....", "..x..", ".....", ".....", "....."};
    static const char *const none[] = {".....", ".....", ".....", ".....", "....."};
    static const char *const eyes[] = {".xooo", "xxo.o", ".xooo", "xxo..", ".xo.."}; /* 10 and 15 */
    struct game g;

    game_open(&g, 5, split);
    assert_true(go_score(&g.settings, &g.s) == -0.5);
    g.s.black = GO_OTHER;
    assert_true(go_score(&g.settings, &g.s) == 0.5);
    game_open(&g, 5, all);
    assert_true(go_score(&g.settings, &g.s) == 24.5);
    game_open(&g, 5, none);
    assert_true(go_score(&g.settings, &g.s) == -0.5);
    game_open(&g, 5, eyes);
    assert_true(go_score(&g.settings, &g.s) == 10.0 - 15.0 - 0.5);
}

TEST(the_end)
{
    static const char *const won[] = {".xo..", "xxo..", ".xo..", "xxo..", ".xo.."};
    static const char *const ahead[] = {".....", "..x..", ".....", ".....", "....."};
    static const char *const atari[] = {".x.xx", "xxoxo", ".xoo.", "xxo..", ".xo.."}; /* three stones */
    struct game g;

    game_open(&g, 5, won);
    game_turn(&g, 25); /* the opponent, ahead, passes too */
    assert_true(g.step.ended && g.reward == -1.0f && g.step.score == -5.5f && g.step.perf == 0.0f);
    game_open(&g, 5, ahead);
    game_turn(&g, 99); /* no point: a pass; the opponent, who has fewer points, does not */
    assert_true(g.s.passes == 0 && !g.step.ended && g.reward == 0.0f);
    game_open(&g, 5, ahead);
    g.s.moves = 3 * 25 - 1;
    game_turn(&g, 25);
    assert_true(g.step.ended && g.reward == 1.0f && g.step.perf == 1.0f && g.step.score == 24.5f);
    game_open(&g, 5, atari);
    g.settings.capture_reward = 0.25;
    game_turn(&g, 25);
    assert_true(g.reward == -0.75f && !g.step.ended && g.s.cells[at(&g, 0, 2)] == GO_OTHER);
}

/* ---- the same on a board of characters ---- */

static bool plain_breathes(char *board, int n, int row, int col, char colour, char *seen)
{
    if (row < 0 || col < 0 || row >= n || col >= n || seen[row * n + col])
        return false;
    if (board[row * n + col] == '.')
        return true;
    if (board[row * n + col] != colour)
        return false;
    seen[row * n + col] = 1;
    return plain_breathes(board, n, row + 1, col, colour, seen) ||
           plain_breathes(board, n, row - 1, col, colour, seen) ||
           plain_breathes(board, n, row, col + 1, colour, seen) || plain_breathes(board, n, row, col - 1, colour, seen);
}

/* Takes off every group of a colour that has no liberty; how many stones. */
static int plain_clear(char *board, int n, char colour)
{
    char after[81];
    int taken = 0;

    memcpy(after, board, (size_t)(n * n));
    for (int i = 0; i < n * n; i++) {
        char seen[81] = {0};
        if (board[i] == colour && !plain_breathes(board, n, i / n, i % n, colour, seen)) {
            after[i] = '.';
            taken++;
        }
    }
    memcpy(board, after, (size_t)(n * n));
    return taken;
}

/* The board after a move; false: it is illegal. `before`: the board before the last move, which may not come back. */
static bool plain_move(char *board, const char *before, int n, int i, char colour)
{
    char next[81];

    if (board[i] != '.')
        return false;
    memcpy(next, board, (size_t)(n * n));
    next[i] = colour;
    plain_clear(next, n, colour == 'x' ? 'o' : 'x');
    char seen[81] = {0};
    if (!plain_breathes(next, n, i / n, i % n, colour, seen) || memcmp(next, before, (size_t)(n * n)) == 0)
        return false;
    memcpy(board, next, (size_t)(n * n));
    return true;
}

TEST(against_a_plain_board)
{
    struct rng rng = rng_seed(9);
    int kos = 0, taken = 0;

    for (int k = 0; k < 60; k++) {
        const int n = 5 + k % 5;
        struct game g = {.settings = {.size = n, .komi = 7.5, .aggression = 0.5}, .s.rng = rng_seed((uint64_t)k)};
        char board[81], before[81];
        do
            go_reset(&g.settings, &g.s);
        while (g.s.black != GO_OWN);
        memset(board, '.', sizeof board);
        memset(before, 'x', sizeof before);
        for (int move = 0; move < 3 * n * n; move++) {
            const char colour = move % 2 == 0 ? 'x' : 'o';
            const uint8_t mover = move % 2 == 0 ? GO_OWN : GO_OTHER;
            int legal[81], n_legal = 0;
            for (int i = 0; i < n * n; i++) {
                char copy[81];
                memcpy(copy, board, sizeof copy);
                const bool want = plain_move(copy, before, n, i, colour);
                assert_int_equal(go_is_legal(&g.s, go_cell(&g.s, i), mover), want);
                if (want)
                    legal[n_legal++] = i;
            }
            if (n_legal == 0) {
                go_pass(&g.s);
                memset(before, 'x', sizeof before);
                continue;
            }
            const int i = legal[rng_below(&rng, (uint32_t)n_legal)];
            char last[81];
            memcpy(last, board, sizeof last);
            plain_move(board, before, n, i, colour);
            memcpy(before, last, sizeof before);
            const int would = mover == GO_OTHER ? go_would_take(&g.s, go_cell(&g.s, i)) : -1;
            const int took = go_put(&g.s, go_cell(&g.s, i), mover);
            assert_true(would < 0 || would == took);
            kos += g.s.ko >= 0;
            taken += took;
            for (int p = 0; p < n * n; p++) {
                const int is = g.s.cells[go_cell(&g.s, p)];
                assert_int_equal(is == GO_OWN ? 'x' : is == GO_OTHER ? 'o' : '.', board[p]);
            }
        }
    }
    print_message("# %d kos, %d stones taken\n", kos, taken);
    assert_true(kos > 20 && taken > 1000);
}

/* ---- what is seen, and the opponent ---- */

TEST(observation)
{
    static const char *const rows[] = {"xo...", "x.o..", "..xo.", "oo...", "....."};
    struct game g;
    uint8_t obs[25 * 7 + 2], mask[26];
    int sum = 0;

    game_open(&g, 5, rows);
    go_observe(&g.settings, &g.s, 0, obs);
    for (size_t i = 0; i < sizeof obs; i++)
        sum += obs[i];
    assert_int_equal(sum, 8 + 1); /* a plane for each stone, and black */
    assert_true(obs[0 * 7 + 1] == 1 && obs[5 * 7 + 1] == 1); /* x at the corner: two liberties */
    assert_true(obs[1 * 7 + 4] == 1 && obs[7 * 7 + 5] == 1); /* o above: two; the next one three */
    assert_true(obs[12 * 7 + 1] == 1 && obs[13 * 7 + 5] == 1 && obs[15 * 7 + 5] == 1);
    g.s.ko = at(&g, 4, 4);
    g.s.passes = 1;
    go_observe(&g.settings, &g.s, 0, obs);
    assert_true(obs[24 * 7 + 6] == 1 && obs[175] == 1 && obs[176] == 1);
    go_mask(&g.settings, &g.s, 0, mask);
    assert_true(mask[25] == 1 && mask[24] == 0 && mask[0] == 0 && mask[6] == 1 && mask[23] == 1);
}

TEST(opponent_moves)
{
    static const char *const takes[] = {".....", ".xo..", "oxo..", ".o...", "....."};
    static const char *const saves[] = {".....", ".xox.", "..x..", ".....", "....."};
    static const char *const attacks[] = {".....", "..x..", ".....", ".....", "....."};
    struct game g;
    int beside = 0;

    for (uint64_t seed = 0; seed < 20; seed++) {
        game_open(&g, 5, saves);
        g.s.rng = rng_seed(seed);
        go_opponent(&g.settings, &g.s); /* the only liberty: two more there */
        assert_true(g.s.cells[at(&g, 0, 2)] == GO_OTHER);
        game_open(&g, 5, takes);
        g.s.rng = rng_seed(seed);
        g.s.cells[at(&g, 0, 1)] = GO_OTHER;
        go_find_groups(&g.s);
        assert_int_equal(go_opponent(&g.settings, &g.s), 2);
        assert_true(g.s.cells[at(&g, 1, 0)] == GO_OTHER && g.s.cells[at(&g, 1, 1)] == GO_EMPTY);
        game_open(&g, 5, attacks);
        g.settings.aggression = 1.0;
        g.s.rng = rng_seed(seed);
        go_opponent(&g.settings, &g.s);
        assert_int_equal(go_liberties(&g.s, at(&g, 1, 2)), 3);
        game_open(&g, 5, attacks);
        g.settings.aggression = 0.0;
        g.s.rng = rng_seed(seed);
        go_opponent(&g.settings, &g.s);
        beside += go_liberties(&g.s, at(&g, 1, 2)) == 3;
    }
    assert_in_range(beside, 0, 9); /* of 24 points four */
}

TEST(eyes_stay_open)
{
    static const char *const rows[] = {".o.oo", "ooooo", "ooooo", "ooooo", "ooooo"};
    struct game g;

    game_open(&g, 5, rows);
    g.settings.komi = 100.0;
    g.s.black = GO_OTHER; /* so that the agent is ahead */
    assert_int_equal(go_opponent(&g.settings, &g.s), 0);
    assert_true(g.s.passes == 1 && g.s.cells[at(&g, 0, 0)] == GO_EMPTY);
}

static double random_wins(int games)
{
    struct game g = {.settings = {.size = 9, .komi = 7.5, .aggression = 0.5}, .s.rng = rng_seed(4)};
    struct rng rng = rng_seed(7);
    double wins = 0.0;

    for (int k = 0; k < games; k++) {
        go_reset(&g.settings, &g.s);
        do {
            uint8_t mask[82];
            int32_t action;
            go_mask(&g.settings, &g.s, 0, mask);
            do
                action = (int32_t)rng_below(&rng, 82);
            while (mask[action] == 0);
            game_turn(&g, action);
        } while (!g.step.ended);
        wins += (double)g.step.perf;
        assert_true(g.reward == (g.step.score > 0.0f ? 1.0f : -1.0f));
    }
    return wins / games;
}

TEST(random_player)
{
    const double wins = random_wins(200);

    print_message("# a random player wins %.3f\n", wins);
    assert_true(wins < 0.1);
}

TEST_PROGRAM("envs go")
