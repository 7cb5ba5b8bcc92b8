/* test_tetris.c - tetris's pieces as pictures, its rules on fields made by hand, and long random play. */
#include "envs_test.h"

#include "envs/games/tetris.h"
#undef ENV_GAME_BYTES

enum { STAY, LEFT, RIGHT, ROTATE, SOFT, HARD, HOLD };
enum { I, O, T, S, Z, J, L };

ONE_GAME(field, tetris)

static void field_open(struct field *f, int piece)
{
    *f = (struct field){.settings = {.max_steps = 10000, .garbage = true, .drop_reward = 0.02}, .s.rng = rng_seed(1)};
    tetris_reset(&f->settings, &f->s);
    f->s.piece = (int8_t)piece;
}

static bool is_full(const struct field *f, int row, int col)
{
    return (f->s.rows[row] >> (col + 3) & 1) != 0;
}

/* A row of ten characters, x full. */
static void set_row(struct field *f, int row, const char *cells)
{
    for (int col = 0; col < 10; col++)
        if (cells[col] == 'x')
            f->s.rows[row] |= (uint16_t)(8 << col);
}

static int n_cells(const struct field *f)
{
    int n = 0;
    for (int i = 0; i < 200; i++)
        n += is_full(f, i / 10, i % 10);
    return n;
}

/* The first rotation as drawn, each further one turned clockwise in a box of `side`. */
TEST(pieces)
{
    static const struct {
        int side;
        const char *cells;
    } pieces[7] = {{4, "....xxxx........"}, {4, ".xx..xx........."}, {3, ".x.xxx..."}, {3, ".xxxx...."},
                   {3, "xx..xx..."},        {3, "x..xxx..."},        {3, "..xxxx..."}};

    for (int piece = 0; piece < 7; piece++) {
        const int side = pieces[piece].side;
        char now[16], next[16];
        memcpy(now, pieces[piece].cells, (size_t)(side * side));
        for (int rotation = 0; rotation < 4; rotation++) {
            const uint32_t cells = tetris_cells(piece, rotation);
            for (int i = 0; i < 16; i++) {
                bool want = i / 4 < side && i % 4 < side && now[i / 4 * side + i % 4] == 'x';
                assert_int_equal(cells >> i & 1, want);
            }
            for (int i = 0; i < side * side; i++)
                next[i % side * side + side - 1 - i / side] = now[i];
            if (piece != O)
                memcpy(now, next, sizeof now);
        }
    }
}

TEST(moves_and_walls)
{
    struct field f;

    field_open(&f, I);
    for (int t = 0; t < 5; t++)
        field_turn(&f, LEFT);
    assert_true(f.s.x == 0 && f.s.y == 0);
    field_turn(&f, ROTATE); /* the sixth tick: it falls, too */
    assert_true(f.s.x == 0 && f.s.y == 1 && f.s.rotation == 1);
    field_turn(&f, LEFT);
    field_turn(&f, LEFT);
    assert_int_equal(f.s.x, -2); /* column 2 of its box at the wall */
    field_turn(&f, LEFT);
    assert_int_equal(f.s.x, -2);
    field_turn(&f, ROTATE); /* columns 0 to 3 of a box at -2 do not fit, nor at -3 or -1 */
    assert_true(f.s.rotation == 1 && f.s.x == -2);
    field_turn(&f, RIGHT);
    field_turn(&f, ROTATE); /* at -1 not, but one to the right */
    assert_true(f.s.rotation == 2 && f.s.x == 0);
    for (int t = 0; t < 9; t++)
        field_turn(&f, RIGHT);
    assert_int_equal(f.s.x, 6);
    field_turn(&f, 12);
    assert_int_equal(f.s.x, 6);
}

TEST(falling)
{
    static const struct {
        int lines, ticks;
    } rows[] = {{0, 6}, {29, 6}, {30, 5}, {70, 4}, {110, 3}, {500, 3}};

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct field f;
        field_open(&f, T);
        f.s.lines = rows[i].lines;
        for (int t = 1; t <= 12; t++) {
            field_turn(&f, STAY);
            assert_int_equal(f.s.y, t / rows[i].ticks);
        }
    }
    struct field f;
    field_open(&f, O); /* 18 rows, then it is fixed at the next fall */
    for (int t = 0; t < 17; t++)
        field_turn(&f, SOFT);
    assert_int_equal(f.s.y, 18); /* no lower */
    assert_int_equal(f.s.score, 16); /* the falls at ticks 6 and 12 are not the player's; by tick 16 it lies */
    while (n_cells(&f) == 0)
        field_turn(&f, STAY);
    assert_true(n_cells(&f) == 4 && is_full(&f, 18, 4) && is_full(&f, 19, 5) && f.s.y == 0);
}

/* A hard drop of a piece in this column with rows like these at the bottom. */
static void drop_on(struct field *f, int piece, int rotation, int x, int n, const char *const *rows)
{
    field_open(f, piece);
    f->s.rotation = (int8_t)rotation;
    f->s.x = x;
    for (int i = 0; i < n; i++)
        set_row(f, 20 - n + i, rows[i]);
    field_turn(f, HARD);
}

TEST(rows_vanish)
{
    static const char *const one[] = {"x.........", "....xxxxxx"};
    static const char *const two[] = {"xxxxxxxx..", "xxxxxxxx.."};
    static const char *const four[] = {"x.......x.", "xxxxxxxxx.", "xxxxxxxxx.", "xxxxxxxxx.", "xxxxxxxxx."};
    static const char *const gap[] = {"xxxxxxxxx.", "xxxxxxxxx.", ".xxxxxxxx.", "xxxxxxxxx."};
    struct field f;

    drop_on(&f, O, 0, 7, 2, two); /* columns 8 and 9; 18 rows down */
    assert_true(f.s.score == 302 && f.s.lines == 2 && n_cells(&f) == 0 && fabsf(f.reward - 0.66f) < 1e-5f);
    drop_on(&f, I, 0, 0, 1, &one[1]); /* in its box's row 1: 18 down */
    assert_true(f.s.score == 102 && f.s.lines == 1 && n_cells(&f) == 0 && fabsf(f.reward - 0.46f) < 1e-5f);
    drop_on(&f, I, 0, 0, 2, one); /* a cell is in the way: no row */
    assert_true(f.s.score == 2 && n_cells(&f) == 11 && is_full(&f, 17, 0) && fabsf(f.reward - 0.32f) < 1e-5f);
    drop_on(&f, I, 1, 7, 5, four);
    assert_true(f.s.score == 1002 && f.s.lines == 4 && fabsf(f.reward - 1.32f) < 1e-5f);
    assert_true(n_cells(&f) == 2 && is_full(&f, 19, 0) && is_full(&f, 19, 8)); /* what was above has come down */
    drop_on(&f, I, 1, 7, 4, gap);
    assert_true(f.s.score == 502 && f.s.lines == 3 && n_cells(&f) == 9 && !is_full(&f, 19, 0) && is_full(&f, 19, 9));
    assert_true(f.step.score == 502.0f && fabsf(f.step.perf - 502.0f / 150000.0f) < 1e-7f && !f.step.ended);
}

/* Each bag has all seven, and what is shown ahead comes. */
TEST(bags)
{
    int firsts = 0;

    for (uint64_t seed = 0; seed < 100; seed++) {
        struct field f = {.settings = {.max_steps = 10000}, .s.rng = rng_seed(seed)};
        tetris_reset(&f.settings, &f.s);
        firsts |= 1 << f.s.piece;
        for (int bag = 0; bag < 5; bag++) {
            int seen = 0;
            for (int i = 0; i < 7; i++) {
                const int next = tetris_next(&f.s, 1), after = tetris_next(&f.s, 2);
                seen |= 1 << f.s.piece;
                tetris_draw_next(&f.s);
                assert_true(f.s.piece == next && tetris_next(&f.s, 1) == after);
            }
            assert_int_equal(seen, 127);
        }
    }
    assert_int_equal(firsts, 127);
}

TEST(hold)
{
    struct field f;

    field_open(&f, T);
    f.s.y = 5;
    f.s.rotation = 2;
    const int next = tetris_next(&f.s, 1);
    field_turn(&f, HOLD);
    assert_true(f.s.hold == T && f.s.piece == next && f.s.y == 0 && f.s.rotation == 0 && f.s.x == 3);
    field_turn(&f, HOLD); /* once for each piece */
    assert_true(f.s.hold == T && f.s.piece == next);
    field_turn(&f, HARD);
    const int now = f.s.piece, ahead = tetris_next(&f.s, 1);
    field_turn(&f, HOLD);
    assert_true(f.s.piece == T && f.s.hold == now && tetris_next(&f.s, 1) == ahead);
    field_turn(&f, HARD);
    set_row(&f, 1, "...xxxx...");
    f.s.x = 0;
    f.s.y = 10;
    const int last = f.s.piece;
    f.s.hold = I;
    field_turn(&f, HOLD); /* it would not fit */
    assert_true(f.s.piece == last && f.s.hold == I && f.s.y == 10 && !f.step.ended);
}

TEST(garbage)
{
    struct field f;

    field_open(&f, O);
    f.s.tick = 498;
    f.s.garbage_ticks = 300;
    field_turn(&f, STAY);
    assert_int_equal(n_cells(&f), 0);
    field_turn(&f, STAY);
    assert_true(n_cells(&f) == 9 && (f.s.rows[19] & 0x1ff8) != 0x1ff8 && f.s.garbage_ticks == 0 && !f.step.ended);
    for (int t = 1; t < 93; t++) { /* 100 - 7 at level 1 */
        f.s.y = 4;
        field_turn(&f, STAY);
    }
    assert_int_equal(n_cells(&f), 9);
    f.s.y = 4;
    f.s.fall_ticks = 0;
    field_turn(&f, STAY);
    assert_true(n_cells(&f) == 18 && f.s.y == 3); /* the piece is pushed, too */
    f.s.lines = 239; /* level 24: three holes, every 65 ticks */
    f.s.garbage_ticks = 64;
    f.s.fall_ticks = 0;
    field_turn(&f, STAY);
    assert_int_equal(n_cells(&f), 25);
    set_row(&f, 0, "x.........");
    f.s.garbage_ticks = 64;
    field_turn(&f, STAY);
    assert_true(f.step.ended && !f.step.truncated);
    field_open(&f, O);
    f.settings.garbage = false;
    f.s.tick = 5000;
    f.s.garbage_ticks = 5000;
    field_turn(&f, STAY);
    assert_int_equal(n_cells(&f), 0);
}

TEST(the_end)
{
    struct field f;

    field_open(&f, O);
    set_row(&f, 2, "...xxxx...");
    field_turn(&f, HARD);
    assert_true(f.step.ended && n_cells(&f) == 8);
    field_open(&f, O);
    f.settings.max_steps = 2;
    field_turn(&f, STAY);
    assert_false(f.step.truncated);
    field_turn(&f, STAY);
    assert_true(f.step.truncated && !f.step.ended);
}

TEST(observation)
{
    struct field f;
    uint8_t obs[TETRIS_GRID + TETRIS_LIST];
    int sum = 0;

    field_open(&f, J);
    set_row(&f, 19, "x........x");
    f.s.hold = S;
    f.s.y = 2;
    f.s.fall_ticks = 2;
    tetris_observe(&f.settings, &f.s, 0, obs);
    assert_true(obs[190 * 2] == 1 && obs[199 * 2] == 1 && obs[191 * 2] == 0);
    assert_true(obs[23 * 2 + 1] == 1 && obs[33 * 2 + 1] == 1 && obs[34 * 2 + 1] == 1 && obs[35 * 2 + 1] == 1);
    for (size_t i = 0; i < sizeof obs; i++)
        sum += obs[i];
    assert_int_equal(sum, 2 + 4 + 4 + 1 + 1);
    assert_true(obs[400 + J] == 1 && obs[407 + tetris_next(&f.s, 1)] == 1 && obs[414 + tetris_next(&f.s, 2)] == 1);
    assert_true(obs[421 + S] == 1 && obs[428] == 1 && obs[429 + 3] == 1); /* it falls in four ticks */
}

/* The piece always fits, no row is full, every piece adds four cells and every row takes ten. */
TEST(random_play)
{
    struct field f;
    struct rng rng = rng_seed(5);
    int ends = 0, lines = 0;

    field_open(&f, T);
    f.settings.garbage = false;
    for (int t = 0; t < 200000; t++) {
        if (f.s.tick == 0) /* narrow below, so that rows fill */
            for (int row = 8; row < 20; row++)
                set_row(&f, row, "xxx....xxx");
        const int before = n_cells(&f), had = f.s.lines;
        field_turn(&f, (int32_t)rng_below(&rng, 7));
        const int gone = f.s.lines - had, added = n_cells(&f) - before + 10 * gone;
        assert_true(added == 0 || added == 4);
        for (int row = 0; row < 20; row++)
            assert_true(f.s.rows[row] != 0xffff && (f.s.rows[row] & 0xe007) == 0xe007);
        assert_true(f.step.ended || tetris_fits(&f.s, f.s.piece, f.s.rotation, f.s.x, f.s.y));
        lines += gone;
        if (f.step.ended) {
            ends++;
            tetris_reset(&f.settings, &f.s);
        }
    }
    print_message("# %d games, %d rows\n", ends, lines);
    assert_true(ends > 500 && lines > 200);
}

TEST_PROGRAM("envs tetris")
