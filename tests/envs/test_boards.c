/* test_boards.c - games on a board: minatar_breakout along trajectories that MinAtar's own program gave, the rules of
 * 2048 and of Connect Four at hand-made positions, and how known players fare. */
#include "envs_test.h"

#include "envs/games/connect4.h"
#include "envs/games/g2048.h"
#include "envs/games/minatar_breakout.h"

/* ---- minatar_breakout ---- */

ONE_GAME(minatar, minatar_breakout)

static void minatar_open(struct minatar *m, bool right)
{
    *m = (struct minatar){.settings.max_steps = 1000, .s.rng = rng_seed(1)};
    do
        minatar_breakout_reset(&m->settings, &m->s);
    while ((m->s.x == 9) != right);
}

static int minatar_bricks(const struct minatar_breakout_state *s)
{
    int n = 0;
    for (int i = 0; i < 100; i++)
        n += s->bricks[i / 10][i % 10];
    return n;
}

struct minatar_row {
    int step, x, y, last_x, last_y, paddle, score, bricks, through;
};

/* From the ball at the left and at the right wall: 501 decisions, and what MinAtar's program (commit 4241f24, which has
 * no sticky actions of its own) has after some of them. The second wall stands by the 300th. */
TEST(minatar_trajectories)
{
    static const char *const actions[] = {
        "220000011112010022222000001111112220002222211111022222111110111102222222220111111111022222222201"
        "111111110222222222011111111102222222200011111110002222222000111111220000011112222022222011111111"
        "102222222220111111111022222220000011111112222222011111110222222121212101121222200200011111110001"
        "022222222201111111110222222222011111111000222222200011111110002222221100000222211110111112222022"
        "222011111111102222222220111111100000222220000102220111111111022222222000111111200000222222111111"
        "022222211111101110222",
        "100000022221020011111000002222221110001111122222011111222220222201111111110222222222011111111102"
        "222222220111111111022222222201111111100022222220001111111000222222110000022221111011111022222222"
        "201111111110222222222011111110000022222221111111022222220111111212121202212111100100022222220002"
        "011111111102222222220111111111022222222000111111100022222220001111112200000111122220222221111011"
        "111022222222201111111110222222200000111110000201110222222222011111111000222222100000111111222222"
        "011111122222202220111"};
    static const struct minatar_row rows[2][20] = {{{1, 1, 4, 0, 3, 5, 0, 30, 0},
                                                    {2, 2, 5, 1, 4, 6, 0, 30, 0},
                                                    {5, 5, 8, 4, 7, 6, 0, 30, 0},
                                                    {6, 6, 8, 5, 8, 6, 0, 30, 0},
                                                    {7, 5, 7, 6, 8, 6, 0, 30, 0},
                                                    {10, 2, 4, 3, 5, 3, 0, 30, 0},
                                                    {11, 1, 4, 2, 4, 2, 1, 29, 1},
                                                    {13, 0, 6, 0, 5, 3, 1, 29, 0},
                                                    {21, 8, 4, 7, 4, 7, 2, 28, 1},
                                                    {51, 7, 5, 6, 6, 6, 4, 26, 0},
                                                    {101, 2, 6, 3, 5, 3, 9, 21, 0},
                                                    {201, 8, 8, 7, 7, 7, 18, 12, 0},
                                                    {300, 7, 6, 8, 7, 8, 32, 28, 0},
                                                    {401, 4, 3, 3, 4, 3, 41, 19, 0},
                                                    {501, 4, 2, 3, 2, 3, 50, 10, 1}},
                                                   {{1, 8, 4, 9, 3, 3, 0, 30, 0},
                                                    {2, 7, 5, 8, 4, 3, 0, 30, 0},
                                                    {5, 4, 8, 5, 7, 3, 0, 30, 0},
                                                    {6, 3, 8, 4, 8, 3, 0, 30, 0},
                                                    {7, 4, 7, 3, 8, 3, 0, 30, 0},
                                                    {10, 7, 4, 6, 5, 6, 0, 30, 0},
                                                    {11, 8, 4, 7, 4, 7, 1, 29, 1},
                                                    {13, 9, 6, 9, 5, 6, 1, 29, 0},
                                                    {21, 1, 4, 2, 4, 2, 2, 28, 1},
                                                    {51, 2, 5, 3, 6, 3, 4, 26, 0},
                                                    {101, 7, 6, 6, 5, 6, 9, 21, 0},
                                                    {201, 1, 8, 2, 7, 2, 18, 12, 0},
                                                    {300, 2, 6, 1, 7, 1, 32, 28, 0},
                                                    {401, 5, 3, 6, 4, 6, 41, 19, 0},
                                                    {501, 5, 2, 6, 2, 6, 50, 10, 1}}};
    for (int side = 0; side < 2; side++) {
        const struct minatar_row *row = rows[side];
        struct minatar m;
        minatar_open(&m, side == 1);
        for (int t = 0; actions[side][t] != '\0'; t++) {
            const struct minatar_breakout_state *s = &m.s;
            minatar_turn(&m, actions[side][t] - '0');
            assert_false(m.step.ended || m.step.truncated);
            if (t + 1 != row->step)
                continue;
            const struct minatar_row is = {
                t + 1, s->x, s->y, s->last_x, s->last_y, s->paddle, s->score, minatar_bricks(s), s->through};
            assert_memory_equal(&is, row, sizeof is);
            assert_true((int)m.sum == row->score && m.step.score == (float)row->score);
            row++;
        }
        assert_int_equal(row->step, 0); /* all were seen */
    }
}

TEST(minatar_ends)
{
    struct minatar m;
    uint8_t obs[400];
    int t = 0, set[4] = {0};

    minatar_open(&m, false);
    while (!m.step.ended && t < 100) { /* flees to the right wall: the ball comes down at column 6 */
        minatar_turn(&m, 2);
        t++;
    }
    assert_true(m.step.ended && m.step.score == 0.0f && t == 6);
    minatar_open(&m, false);
    m.settings.max_steps = 3;
    minatar_turn(&m, 0);
    minatar_turn(&m, 7); /* stays */
    assert_false(m.step.truncated);
    minatar_turn(&m, -1);
    assert_true(m.step.truncated && !m.step.ended && m.s.paddle == 4);
    minatar_breakout_observe(&m.settings, &m.s, 0, obs);
    for (int i = 0; i < 400; i++)
        set[i % 4] += obs[i];
    assert_true(set[0] == 1 && set[1] == 1 && set[2] == 1 && set[3] == 30);
    assert_true(obs[(9 * 10 + 4) * 4] == 1 && obs[(6 * 10 + 3) * 4 + 1] == 1 && obs[(5 * 10 + 2) * 4 + 2] == 1);
}

/* With sticky actions a paddle that is to go left and right in turn does what it did before in a tenth of its steps. */
TEST(minatar_sticky)
{
    struct minatar m;
    int stuck = 0;

    minatar_open(&m, false);
    m.settings.sticky = 0.1;
    for (int t = 0; t < 20000; t++) {
        int32_t before = m.s.last_action;
        minatar_turn(&m, before == 1 ? 2 : 1);
        stuck += m.s.last_action == before;
        if (m.step.ended)
            minatar_breakout_reset(&m.settings, &m.s);
    }
    assert_in_range(stuck, 1800, 2200);
}

/* ---- 2048 ---- */

static int line_cell(int action, int i)
{
    return action < 2 ? (action == 0 ? i : 3 - i) * 4 + 2 : 4 + (action == 2 ? i : 3 - i);
}

/* A line of four slid in each direction, and its reward. */
static void line_becomes(const uint8_t *line, const uint8_t *want, float reward)
{
    for (int action = 0; action < 4; action++) {
        uint8_t cells[16] = {0};
        float got = 0.0f;
        for (int i = 0; i < 4; i++)
            cells[line_cell(action, i)] = line[i];
        bool moved = g2048_slide(cells, action, &got);
        assert_int_equal(moved, memcmp(line, want, 4) != 0);
        for (int i = 0; i < 4; i++)
            assert_int_equal(cells[line_cell(action, i)], want[i]);
        assert_true(fabsf(got - reward) < 1e-6f);
    }
}

TEST(2048_slides)
{
    static const struct {
        uint8_t line[4], want[4];
        float reward;
    } rows[] = {
        {{0, 0, 0, 1}, {1, 0, 0, 0}, 0.0f},
        {{1, 0, 0, 1}, {2, 0, 0, 0}, 0.05f},
        {{1, 1, 1, 1}, {2, 2, 0, 0}, 0.1f},
        {{1, 1, 1, 0}, {2, 1, 0, 0}, 0.05f},
        {{2, 1, 1, 0}, {2, 2, 0, 0}, 0.05f},
        {{1, 2, 1, 2}, {1, 2, 1, 2}, 0.0f},
        {{0, 3, 0, 3}, {4, 0, 0, 0}, 0.05f},
        {{6, 6, 0, 0}, {7, 0, 0, 0}, 0.05f},
        {{7, 7, 0, 0}, {8, 0, 0, 0}, 0.08f},
        {{9, 9, 10, 0}, {10, 10, 0, 0}, 0.05f + 0.03f * 5.196152f},
        {{10, 10, 10, 10}, {11, 11, 0, 0}, 0.1f + 0.06f * 8.0f},
    };
    for (size_t i = 0; i < COUNT(rows); i++)
        line_becomes(rows[i].line, rows[i].want, rows[i].reward);
}

static int tiles_of(const struct g2048_state *s)
{
    int n = 0;
    for (int c = 0; c < 16; c++)
        n += s->cells[c] != 0;
    return n;
}

TEST(2048_steps)
{
    static const uint8_t one_left[16] = {1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4, 5, 6, 11, 11};
    const struct g2048_settings settings = {.max_steps = 5, .one_hot = true};
    struct g2048_state s = {.rng = rng_seed(2)};
    uint8_t obs[16 * 18], before[16];
    float reward;
    struct env_step step = {.rewards = &reward};
    int32_t left = 2, up = 0;
    int fours = 0;

    for (int i = 0; i < 4000; i++) { /* two tiles, a tenth of them 4 */
        g2048_reset(&settings, &s);
        for (int c = 0; c < 16; c++)
            fours += s.cells[c] == 2;
        assert_int_equal(tiles_of(&s), 2);
    }
    assert_in_range(fours, 700, 900);
    memset(s.cells, 0, 16);
    s.cells[4] = 3; /* at the left wall: illegal, and nothing appears */
    memcpy(before, s.cells, 16);
    g2048_step(&settings, &s, &left, &step);
    assert_true(reward == -0.05f && !step.ended);
    assert_memory_equal(s.cells, before, 16);
    g2048_step(&settings, &s, &up, &step); /* legal: one tile more */
    assert_true(tiles_of(&s) == 2 && s.cells[0] == 3 && reward == 0.0f && step.score == 8.0f);
    g2048_observe(&settings, &s, 0, obs);
    for (int i = 0; i < 16 * 18; i++)
        assert_int_equal(obs[i], s.cells[i / 18] == i % 18);
    memcpy(s.cells, one_left, 16);
    assert_true(g2048_can_move(s.cells));
    g2048_step(&settings, &s, &left, &step); /* 4096; what appears beside it has no equal there */
    assert_true(step.ended && fabsf(reward - (0.05f + 0.03f * 11.18034f - 1.0f)) < 1e-5f);
    assert_true(step.score == 4096.0f && fabsf(step.perf - 0.05f) < 1e-6f);
    g2048_reset(&settings, &s);
    for (int t = 1; t <= 5; t++) {
        int32_t action = t % 4;
        g2048_step(&settings, &s, &action, &step);
        assert_true(!step.ended && step.truncated == (t == 5));
    }
}

/* The mean of the largest tiles of 60 games: random decisions, or the first of left, down, right, up that moves
 * anything. */
static double g2048_largest(bool corner)
{
    static const int32_t order[] = {2, 1, 3, 0};
    const struct g2048_settings settings = {.max_steps = 100000, .one_hot = false};
    struct rng rng = rng_seed(5);
    double sum = 0.0;

    for (uint64_t game = 0; game < 60; game++) {
        struct g2048_state s = {.rng = rng_seed(game)};
        float reward;
        struct env_step step = {.rewards = &reward};
        g2048_reset(&settings, &s);
        while (!step.ended) {
            int32_t action = (int32_t)rng_below(&rng, 4);
            for (int i = 3; corner && i >= 0; i--) {
                struct g2048_state copy = s;
                float ignored = 0.0f;
                if (g2048_slide(copy.cells, order[i], &ignored))
                    action = order[i];
            }
            g2048_step(&settings, &s, &action, &step);
        }
        sum += (double)step.score;
    }
    return sum / 60.0;
}

/* Random play reaches tiles of about 100, and keeping to a corner beats it by far. */
TEST(2048_players)
{
    double random = g2048_largest(false), corner = g2048_largest(true);

    printf("# random %.0f, corner %.0f\n", random, corner);
    assert_true(random > 60.0 && random < 160.0 && corner > 1.5 * random);
}

/* ---- Connect Four ---- */

static uint64_t bit_of(int row, int col) /* rows from the bottom */
{
    return (uint64_t)1 << (7 * col + row);
}

/* A line that lacks this cell does not win; the next stone wins there when it would come to lie there. */
static void check_gap(uint64_t line, int row, int col)
{
    uint64_t gap = bit_of(row, col), three = line & ~gap, all = three;

    for (int r = 0; r < row; r++)
        all |= bit_of(r, col);
    assert_false(connect4_wins(three));
    if (row < 5 && (three & bit_of(row + 1, col)) != 0) /* stones above it: no stone can come to lie there */
        return;
    assert_true((connect4_threats(three) & connect4_open(all)) != 0);
}

TEST(connect4_lines)
{
    static const int ways[4][2] = {{1, 0}, {0, 1}, {1, 1}, {-1, 1}};
    int n = 0;

    for (int cell = 0; cell < 4 * 42; cell++) {
        const int *way = ways[cell / 42];
        int row = cell % 42 / 7, col = cell % 7, end_row = row + 3 * way[0];
        uint64_t line = 0;
        if (end_row < 0 || end_row > 5 || col + 3 * way[1] > 6)
            continue;
        for (int i = 0; i < 4; i++)
            line |= bit_of(row + i * way[0], col + i * way[1]);
        assert_true(connect4_wins(line));
        for (int i = 0; i < 4; i++)
            check_gap(line, row + i * way[0], col + i * way[1]);
        n++;
    }
    assert_int_equal(n, 69);
    assert_false(
        connect4_wins(bit_of(5, 0) | bit_of(0, 1) | bit_of(1, 1) | bit_of(2, 1))); /* not round a column's end */
}

static bool plain_wins(char board[6][7], char who)
{
    static const int dr[] = {1, 0, 1, -1}, dc[] = {0, 1, 1, 1};

    for (int cell = 0; cell < 4 * 42; cell++) {
        int w = cell / 42, row = cell % 42 / 7, col = cell % 7, k = 0;
        for (; k < 4; k++) {
            int r = row + k * dr[w], c = col + k * dc[w];
            if (r < 0 || r > 5 || c > 6 || board[r][c] != who)
                break;
        }
        if (k == 4)
            return true;
    }
    return false;
}

/* Plain minimax on a board of characters; the meaning of a value is connect4_value's. */
static int plain_value(char board[6][7], char mover, int depth)
{
    char other = mover == 'x' ? 'o' : 'x';
    int best = -1000, n = 0;

    if (plain_wins(board, other))
        return -CONNECT4_WIN;
    for (int col = 0; depth > 0 && col < 7; col++) {
        int row = 0, value;
        while (row < 6 && board[row][col] != 0)
            row++;
        if (row == 6)
            continue;
        n++;
        board[row][col] = mover;
        value = plain_value(board, other, depth - 1);
        board[row][col] = 0;
        value = value == 0 ? 0 : value > 0 ? 1 - value : -1 - value;
        best = value > best ? value : best;
    }
    return n == 0 ? 0 : best;
}

TEST(connect4_looks_ahead)
{
    struct rng rng = rng_seed(4);
    int decided = 0;

    for (int game = 0; game < 200; game++) {
        char board[6][7] = {{0}};
        uint64_t stones[2] = {0};
        int n = 6 + (int)rng_below(&rng, game < 150 ? 18 : 34), put = 0;
        for (int tries = 0; put < n && tries < 200; tries++) {
            int col = (int)rng_below(&rng, 7), row = 0;
            while (row < 6 && board[row][col] != 0)
                row++;
            if (row == 6 || connect4_wins(stones[put % 2] | bit_of(row, col)))
                continue;
            board[row][col] = put % 2 == 0 ? 'x' : 'o';
            stones[put % 2] |= bit_of(row, col);
            put++;
        }
        bool wins = false;
        for (int col = 0; col < 7; col++)
            wins |= !connect4_is_full(stones[0] | stones[1], col) &&
                    connect4_wins(stones[put % 2] | connect4_drop(stones[0] | stones[1], col));
        assert_int_equal((connect4_threats(stones[put % 2]) & connect4_open(stones[0] | stones[1])) != 0, wins);
        for (int depth = 0; depth <= (game % 20 == 0 ? 6 : 4); depth++) {
            int want = plain_value(board, put % 2 == 0 ? 'x' : 'o', depth);
            assert_int_equal(connect4_value(stones[put % 2], stones[1 - put % 2], depth), want);
            decided += want != 0;
        }
    }
    assert_true(decided > 100);
}

/* How often a player that looks own_depth stones ahead beats the opponent; who moves first is drawn. */
static double connect4_rate(int64_t opponent, int own_depth, int games)
{
    const struct connect4_settings settings = {.opponent_depth = opponent, .opening = 2};
    struct connect4_state s = {.rng = rng_seed(8)};
    struct rng rng = rng_seed(9);
    double won = 0.0;

    for (int game = 0; game < games; game++) {
        float reward = 0.0f;
        struct env_step step = {.rewards = &reward};
        connect4_reset(&settings, &s);
        assert_in_range(s.stones, 2, 3);
        for (int t = 0; !step.ended; t++) {
            uint8_t mask[7];
            int32_t action = connect4_choose(&rng, s.own, s.other, own_depth);
            connect4_mask(&settings, &s, 0, mask);
            assert_int_equal(mask[action], 1);
            connect4_step(&settings, &s, &action, &step);
            assert_true(t < 21 && (s.own & s.other) == 0);
        }
        assert_true(reward == (connect4_wins(s.own) ? 1.0f : connect4_wins(s.other) ? -1.0f : 0.0f));
        assert_true(step.perf == (reward > 0.0f ? 1.0f : 0.0f));
        won += (double)step.perf / games;
    }
    return won;
}

TEST(connect4_players)
{
    assert_true(connect4_rate(4, 0, 200) < 0.1);
    assert_true(connect4_rate(0, 4, 200) > 0.9);
    assert_true(connect4_rate(2, 6, 60) > 0.6);
}

TEST(connect4_board)
{
    const struct connect4_settings settings = {.opponent_depth = 4, .opening = 2};
    struct connect4_state s = {.rng = rng_seed(3), .stones = 6};
    float reward, obs[42];
    struct env_step step = {.rewards = &reward};
    int32_t action = 3;
    uint8_t mask[7];

    s.own = bit_of(0, 0) | bit_of(0, 1) | bit_of(0, 2); /* 3 wins, before the opponent moves */
    s.other = bit_of(1, 0) | bit_of(1, 1) | bit_of(1, 2);
    connect4_observe(&settings, &s, 0, obs);
    assert_true(obs[5 * 7] == 1.0f && obs[4 * 7] == -1.0f && obs[5 * 7 + 3] == 0.0f && obs[0] == 0.0f);
    connect4_step(&settings, &s, &action, &step);
    assert_true(step.ended && reward == 1.0f && step.perf == 1.0f);
    s = (struct connect4_state){.rng = rng_seed(3), .stones = 6};
    s.own = bit_of(0, 0) | bit_of(1, 4) | bit_of(1, 5);
    s.other = bit_of(0, 4) | bit_of(0, 5) | bit_of(0, 6);
    action = 0; /* does not block: the opponent's fourth is at column 3 */
    connect4_step(&settings, &s, &action, &step);
    assert_true(step.ended && reward == -1.0f && step.perf == 0.0f && (s.other & bit_of(0, 3)) != 0);
    s = (struct connect4_state){.rng = rng_seed(3), .own = bit_of(0, 1), .stones = 7};
    for (int row = 0; row < 6; row++) /* the first column is full, the second has a stone */
        *(row % 2 == 0 ? &s.own : &s.other) |= bit_of(row, 0);
    connect4_mask(&settings, &s, 0, mask);
    for (int col = 0; col < 7; col++)
        assert_int_equal(mask[col], col != 0);
    connect4_step(&settings, &s, &action, &step); /* full: the first that is not */
    assert_true((s.own & bit_of(1, 1)) != 0);
}

TEST_PROGRAM("boards")
