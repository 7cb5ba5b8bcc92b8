/* test_maze.c - mazes are trees of every size, walls hold, and a hand on the wall leads out. */
#include "envs_test.h"

#include "envs/games/maze.h"
#undef ENV_GAME_BYTES

ONE_GAME(walk, maze)

static void walk_open(struct walk *w, int64_t min_size, int64_t max_size, uint64_t seed)
{
    *w = (struct walk){.settings = {.min_size = min_size, .max_size = max_size}, .s.rng = rng_seed(seed)};
    maze_reset(&w->settings, &w->s);
}

/* How many open cells can be reached from (x, y); they are closed. */
static int flood(struct maze_state *s, int x, int y)
{
    if (x < 0 || y < 0 || x >= s->size || y >= s->size || (s->open[y] >> x & 1) == 0)
        return 0;
    s->open[y] ^= (uint64_t)1 << x;
    return 1 + flood(s, x + 1, y) + flood(s, x - 1, y) + flood(s, x, y + 1) + flood(s, x, y - 1);
}

TEST(mazes_are_trees)
{
    static const struct {
        int64_t min, max;
        int smallest, largest, sizes;
    } rows[] = {{5, 45, 5, 45, 21}, {5, 5, 5, 5, 1}, {6, 10, 7, 9, 2}, {47, 47, 47, 47, 1}, {21, 5, 21, 21, 1}};

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct walk w;
        uint64_t seen = 0;
        walk_open(&w, rows[i].min, rows[i].max, 3);
        for (int k = 0; k < 300; k++, maze_reset(&w.settings, &w.s)) {
            const int n = w.s.size, half = n / 2;
            struct maze_state copy = w.s;
            assert_true(n % 2 == 1 && n >= rows[i].smallest && n <= rows[i].largest);
            seen |= (uint64_t)1 << n;
            for (int c = 0; c < n; c++) {
                assert_false(maze_is_open(&w.s, c, 0) || maze_is_open(&w.s, c, n - 1));
                assert_false(maze_is_open(&w.s, 0, c) || maze_is_open(&w.s, n - 1, c));
            }
            for (int c = 0; c < half * half; c++)
                assert_true(maze_is_open(&w.s, c % half * 2 + 1, c / half * 2 + 1));
            /* of m cells a tree has m - 1 joints: all are reached, and one wall more would cut some off */
            assert_int_equal(flood(&copy, 1, 1), 2 * half * half - 1);
            for (int row = 0; row < n; row++)
                assert_true(copy.open[row] == 0);
            assert_true(w.s.x == 1 && w.s.y == 1 && w.s.steps == 0);
        }
        assert_int_equal(__builtin_popcountll(seen), rows[i].sizes);
    }
}

TEST(steps)
{
    struct walk w;

    walk_open(&w, 5, 5, 1);
    for (int row = 0; row < 5; row++) /* a maze of one way: right, then down */
        w.s.open[row] = row == 1 ? 0xe : row == 2 || row == 3 ? 0x8 : 0;
    static const int32_t way[] = {0, 2, 1, 3, 3, 3, 7, 1, 0, 1};
    static const int at[][2] = {{1, 1}, {1, 1}, {1, 1}, {2, 1}, {3, 1}, {3, 1}, {3, 1}, {3, 2}, {3, 1}, {3, 2}};
    for (int t = 0; t < 10; t++) {
        walk_turn(&w, way[t]);
        assert_true(w.s.x == at[t][0] && w.s.y == at[t][1] && w.reward == 0.0f && !w.step.ended);
    }
    walk_turn(&w, 1);
    assert_true(w.step.ended && w.reward == 1.0f && w.step.perf == 1.0f && w.step.score == 1.0f);
    walk_open(&w, 7, 7, 1);
    for (int t = 1; t <= 98; t++) {
        walk_turn(&w, 5);
        assert_true(w.step.truncated == (t == 98) && !w.step.ended && w.step.perf == 0.0f);
    }
}

/* The right hand on the wall: out of every maze, in time, since each side of a way is passed at most once. */
TEST(a_hand_on_the_wall)
{
    static const int32_t turns[] = {0, 3, 1, 2}; /* up, right, down, left */

    for (uint64_t seed = 0; seed < 200; seed++) {
        struct walk w;
        int facing = 1;
        walk_open(&w, 5, 45, seed);
        do {
            const int right = (facing + 1) % 4;
            const int order[] = {right, facing, (facing + 3) % 4, (facing + 2) % 4};
            for (int i = 0; i < 4; i++) {
                facing = order[i];
                if (maze_is_open(&w.s, w.s.x + maze_dx(turns[facing]), w.s.y + maze_dy(turns[facing])))
                    break;
            }
            walk_turn(&w, turns[facing]);
        } while (!w.step.ended && !w.step.truncated);
        assert_true(w.step.ended);
    }
}

TEST(view)
{
    struct walk w;
    uint8_t obs[MAZE_VIEW_CELLS * MAZE_PLANES];

    walk_open(&w, 9, 9, 2);
    w.s.x = 3;
    w.s.y = 5;
    maze_observe(&w.settings, &w.s, 0, obs);
    for (int row = 0; row < 11; row++)
        for (int col = 0; col < 11; col++) {
            const int x = col - 2, y = row; /* the agent in the middle, at (5, 5) */
            const bool inside = x >= 0 && x < 9 && y < 9;
            assert_int_equal(obs[(row * 11 + col) * 2], !(inside && (w.s.open[y] >> x & 1) != 0));
            assert_int_equal(obs[(row * 11 + col) * 2 + 1], x == 7 && y == 7);
        }
}

TEST_PROGRAM("envs maze")
