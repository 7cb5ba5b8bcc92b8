/* tetris.h - Tetris on 10x20 cells, with hold, two pieces shown ahead, and rows that are pushed up from below. (public)
 * Pieces come in bags of all seven, shuffled, and appear in the middle at the top as the Super Rotation System has
 * them. A decision is a tick. Actions: 0 stay, 1 left, 2 right, 3 rotate clockwise (where that does not fit, a
 * column further left or else right), 4 soft drop by a row, 5 hard drop: down, and fixed at once, 6 hold: the piece
 * is exchanged for the held one, or the next when none is held, once for each piece. What does not fit does nothing.
 * Then, every max(3, 6 - level / 4) ticks, the piece falls by a row, or is fixed where it cannot. Full rows vanish;
 * the level is 1 more for each ten of them. With `garbage`, from tick 500 on, every max(40, 100 - 7 sqrt(level))
 * ticks a full row but for min(5, max(1, level / 8)) holes pushes all up by a row.
 * The episode ends where the next piece does not fit, or a row is pushed out at the top or into the piece; it is cut
 * after max_steps.
 * Reward: 0.1, 0.3, 0.5, 1 for 1 to 4 rows at once, and `drop_reward` for each row of a hard drop.
 * Observation: bytes, (20, 10, 2) planes of fixed cells and the piece, then a list of 35: the piece, the next two
 * and the held one, 7 places each, 1 if it may be held, and ticks until it falls, 6 places. score = 100, 300, 500,
 * 1000 for rows, 1 for each row of a soft drop, 2 for a hard drop; perf = score / 150000, at most 1 (PufferLib
 * divides by 67890: compare scores). */
#ifndef ENVS_TETRIS_H
#define ENVS_TETRIS_H

#include "envs/env.h"

#define TETRIS_ROWS 20
#define TETRIS_COLS 10
#define TETRIS_PIECES 7
#define TETRIS_GRID (TETRIS_ROWS * TETRIS_COLS * 2)
#define TETRIS_LIST (4 * TETRIS_PIECES + 1 + 6)
#define TETRIS_FULL_SCORE 150000.0f
#define TETRIS_EMPTY_ROW 0xe007 /* bit 3 + column; what lies beside the field counts as full */
#define TETRIS_FULL_ROW 0xffff

struct tetris_settings {
    int64_t max_steps;
    bool garbage;
    double drop_reward;
};

struct tetris_state {
    struct rng rng;
    int32_t tick, fall_ticks, garbage_ticks; /* the latter two since the last one */
    int32_t lines, score;
    int32_t x, y; /* of the piece's box of 4x4 cells */
    uint16_t rows[TETRIS_ROWS]; /* from the top */
    int8_t bags[2 * TETRIS_PIECES]; /* two, one after the other; the one that is used up is shuffled again */
    int8_t at; /* of the piece in them */
    int8_t piece, rotation;
    int8_t hold; /* -1: none */
    int8_t may_hold;
    uint8_t unused; /* no padding: whole states compare as bytes */
};

ENV_FN void tetris_shape(const struct tetris_settings *settings, struct env_shape *ret_shape)
{
    ret_shape->obs_size = TETRIS_GRID + TETRIS_LIST;
    ret_shape->channels = 2;
    ret_shape->height = TETRIS_ROWS;
    ret_shape->width = TETRIS_COLS;
    ret_shape->u8 = true;
    ret_shape->byte_scale = 1.0f;
    ret_shape->head_sizes[0] = 7;
    ret_shape->may_truncate = true;
}

/* ---- pieces ---- */

/* Cells of a piece in its box: bit 4 row + column. */
ENV_FN uint32_t tetris_cells(int piece, int rotation)
{
    uint64_t all; /* 16 bits for each rotation, the first one lowest */

    switch (piece) {
    case 0: /* I */
        all = 0x22220f00444400f0ull;
        break;
    case 1: /* O */
        all = 0x0066006600660066ull;
        break;
    case 2: /* T */
        all = 0x0232027002620072ull;
        break;
    case 3: /* S */
        all = 0x0231036004620036ull;
        break;
    case 4: /* Z */
        all = 0x0132063002640063ull;
        break;
    case 5: /* J */
        all = 0x0322047002260071ull;
        break;
    default: /* L */
        all = 0x0223017006220074ull;
        break;
    }
    return (uint32_t)(all >> 16 * rotation) & 0xffff;
}

/* A row of the box as bits of a row of the field. */
ENV_FN uint32_t tetris_box_row(uint32_t cells, int row, int32_t x)
{
    return (cells >> 4 * row & 15u) << (x + 3);
}

ENV_FN bool tetris_fits(const struct tetris_state *s, int piece, int rotation, int32_t x, int32_t y)
{
    const uint32_t cells = tetris_cells(piece, rotation);

    for (int row = 0; row < 4; row++) {
        const uint32_t bits = tetris_box_row(cells, row, x);
        if (bits != 0 && (y + row >= TETRIS_ROWS || (s->rows[y + row] & bits) != 0))
            return false;
    }
    return true;
}

ENV_FN void tetris_shuffle(struct rng *rng, int8_t *bag)
{
    for (int i = 0; i < TETRIS_PIECES; i++)
        bag[i] = (int8_t)i;
    for (int i = TETRIS_PIECES - 1; i > 0; i--) {
        const uint32_t with = rng_below(rng, (uint32_t)i + 1);
        const int8_t one = bag[i];
        bag[i] = bag[with];
        bag[with] = one;
    }
}

/* The piece `ahead` places after the one that falls. */
ENV_FN int tetris_next(const struct tetris_state *s, int ahead)
{
    return s->bags[(s->at + ahead) % (2 * TETRIS_PIECES)];
}

/* Puts a piece at the top; false: it does not fit. */
ENV_FN bool tetris_appear(struct tetris_state *s, int piece)
{
    s->piece = (int8_t)piece;
    s->rotation = 0;
    s->x = 3;
    s->y = 0;
    s->fall_ticks = 0;
    return tetris_fits(s, piece, 0, s->x, s->y);
}

ENV_FN bool tetris_draw_next(struct tetris_state *s)
{
    s->at = (int8_t)((s->at + 1) % (2 * TETRIS_PIECES));
    if (s->at % TETRIS_PIECES == 0)
        tetris_shuffle(&s->rng, s->bags + (s->at == 0 ? TETRIS_PIECES : 0));
    return tetris_appear(s, s->bags[s->at]);
}

/* ---- the game ---- */

ENV_FN void tetris_reset(const struct tetris_settings *settings, struct tetris_state *state)
{
    state->tick = state->fall_ticks = state->garbage_ticks = 0;
    state->lines = state->score = 0;
    for (int row = 0; row < TETRIS_ROWS; row++)
        state->rows[row] = TETRIS_EMPTY_ROW;
    tetris_shuffle(&state->rng, state->bags);
    tetris_shuffle(&state->rng, state->bags + TETRIS_PIECES);
    state->at = 0;
    state->hold = -1;
    state->may_hold = 1;
    state->unused = 0;
    tetris_appear(state, state->bags[0]);
}

ENV_FN int32_t tetris_level(const struct tetris_state *s)
{
    return 1 + s->lines / 10;
}

/* Fixes the piece, takes full rows away and brings the next piece; false: it does not fit. */
ENV_FN bool tetris_fix(struct tetris_state *s, float *reward)
{
    const uint32_t cells = tetris_cells(s->piece, s->rotation);
    int lines = 0;

    for (int row = 0; row < 4; row++)
        if (tetris_box_row(cells, row, s->x) != 0)
            s->rows[s->y + row] |= (uint16_t)tetris_box_row(cells, row, s->x);
    for (int row = TETRIS_ROWS - 1; row >= 0; row--)
        if (s->rows[row] == TETRIS_FULL_ROW)
            lines++;
        else
            s->rows[row + lines] = s->rows[row];
    for (int row = 0; row < lines; row++)
        s->rows[row] = TETRIS_EMPTY_ROW;
    s->lines += lines;
    s->score += lines == 4 ? 1000 : lines > 0 ? 200 * lines - 100 : 0;
    *reward += lines == 4 ? 1.0f : lines > 0 ? 0.2f * (float)lines - 0.1f : 0.0f;
    s->may_hold = 1;
    return tetris_draw_next(s);
}

/* A row from below; false: it pushes a cell out at the top, or cells into the piece. */
ENV_FN bool tetris_push(struct tetris_state *s)
{
    const int32_t eighth = tetris_level(s) / 8, holes = eighth < 1 ? 1 : eighth > 5 ? 5 : eighth;
    const bool room = s->rows[0] == TETRIS_EMPTY_ROW;

    for (int row = 0; row + 1 < TETRIS_ROWS; row++)
        s->rows[row] = s->rows[row + 1];
    s->rows[TETRIS_ROWS - 1] = TETRIS_FULL_ROW;
    for (int32_t i = 0; i < holes;) {
        const uint16_t hole = (uint16_t)(8u << rng_below(&s->rng, TETRIS_COLS));
        i += (s->rows[TETRIS_ROWS - 1] & hole) != 0;
        s->rows[TETRIS_ROWS - 1] &= (uint16_t)~hole;
    }
    s->y -= s->y > 0;
    return room && tetris_fits(s, s->piece, s->rotation, s->x, s->y);
}

/* What the player does; false: the next piece does not fit. */
ENV_FN bool tetris_act(const struct tetris_settings *settings, struct tetris_state *s, int32_t action, float *reward)
{
    const int32_t x = s->x + (action == 2) - (action == 1);
    const int turned = (s->rotation + 1) % 4, other = s->hold >= 0 ? s->hold : tetris_next(s, 1);
    const int8_t held = s->piece;

    switch (action) {
    case 1:
    case 2:
        s->x = tetris_fits(s, s->piece, s->rotation, x, s->y) ? x : s->x;
        return true;
    case 3:
        for (int i = 0; i < 3; i++) { /* in place, to the left, to the right */
            const int32_t to = s->x + (i == 2) - (i == 1);
            if (!tetris_fits(s, s->piece, turned, to, s->y))
                continue;
            s->x = to;
            s->rotation = (int8_t)turned;
            break;
        }
        return true;
    case 4:
        if (tetris_fits(s, s->piece, s->rotation, s->x, s->y + 1)) {
            s->y++;
            s->score++;
        }
        return true;
    case 5:
        for (; tetris_fits(s, s->piece, s->rotation, s->x, s->y + 1); s->y++)
            *reward += (float)settings->drop_reward;
        s->score += 2;
        return tetris_fix(s, reward);
    case 6:
        if (!s->may_hold || !tetris_fits(s, other, 0, 3, 0))
            return true;
        if (s->hold >= 0)
            tetris_appear(s, s->hold);
        else
            tetris_draw_next(s);
        s->hold = held;
        s->may_hold = 0;
        return true;
    default:
        return true;
    }
}

ENV_FN int32_t tetris_fall_every(const struct tetris_state *s)
{
    const int32_t ticks = 6 - tetris_level(s) / 4;
    return ticks > 3 ? ticks : 3;
}

ENV_FN void tetris_step(const struct tetris_settings *settings, struct tetris_state *s, const int32_t *actions,
                        struct env_step *step)
{
    const int32_t every = (int32_t)(100.0f - 7.0f * sqrtf((float)tetris_level(s)));
    float reward = 0.0f;
    bool alive;

    s->tick++;
    s->fall_ticks++;
    s->garbage_ticks++;
    alive = tetris_act(settings, s, actions[0], &reward);
    if (alive && s->fall_ticks >= tetris_fall_every(s)) {
        s->fall_ticks = 0;
        if (tetris_fits(s, s->piece, s->rotation, s->x, s->y + 1))
            s->y++;
        else
            alive = tetris_fix(s, &reward);
    }
    if (alive && settings->garbage && s->tick >= 500 && s->garbage_ticks >= (every > 40 ? every : 40)) {
        s->garbage_ticks = 0;
        alive = tetris_push(s);
    }
    step->ended = !alive;
    step->truncated = alive && s->tick >= settings->max_steps;
    step->rewards[0] = reward;
    step->score = (float)s->score;
    step->perf = step->score < TETRIS_FULL_SCORE ? step->score / TETRIS_FULL_SCORE : 1.0f;
}

ENV_FN void tetris_observe(const struct tetris_settings *settings, const struct tetris_state *s, int agent,
                           uint8_t *obs)
{
    const uint32_t cells = tetris_cells(s->piece, s->rotation);
    uint8_t *list = obs + TETRIS_GRID;

    for (int row = 0; row < TETRIS_ROWS; row++) {
        const int in_box = row - s->y;
        const uint32_t piece = in_box >= 0 && in_box < 4 ? tetris_box_row(cells, in_box, s->x) : 0;
        for (int col = 0; col < TETRIS_COLS; col++) {
            obs[(row * TETRIS_COLS + col) * 2] = s->rows[row] >> (col + 3) & 1;
            obs[(row * TETRIS_COLS + col) * 2 + 1] = piece >> (col + 3) & 1;
        }
    }
    for (int i = 0; i < TETRIS_PIECES; i++) {
        list[i] = i == s->piece;
        list[TETRIS_PIECES + i] = i == tetris_next(s, 1);
        list[2 * TETRIS_PIECES + i] = i == tetris_next(s, 2);
        list[3 * TETRIS_PIECES + i] = i == s->hold;
    }
    list[4 * TETRIS_PIECES] = (uint8_t)s->may_hold;
    for (int i = 0; i < 6; i++)
        list[4 * TETRIS_PIECES + 1 + i] = tetris_fall_every(s) - s->fall_ticks == i + 1;
}

ENV_GPU(tetris, env_gpu_bytes)

#ifndef __CUDACC__
/* -- what the program shows -- */
static const struct opt_def tetris_options[] = {
    OPT_ROW_INT(struct tetris_settings, max_steps, "10000", 1, 1e9, OPT_FIXED, 0, 0, "steps",
                "Steps after which an episode is truncated."),
    OPT_ROW_BOOL(struct tetris_settings, garbage, "true", "Rows are pushed up from below, from tick 500 on."),
    OPT_ROW_FLOAT(struct tetris_settings, drop_reward, "0.02", 0, 1, OPT_LINEAR, 0, 0.05, "",
                  "Reward for each row of a hard drop."),
};
static const struct env_about tetris_about = {"Tetris with hold and garbage", NULL, 0};

static inline void tetris_draw(const struct tetris_settings *settings, const struct tetris_state *s,
                               struct env_picture *p)
{
    static const char names[] = "IOTSZJL";
    const double cell = 20;
    uint8_t obs[TETRIS_GRID + TETRIS_LIST];

    p->width = cell * (TETRIS_COLS + 4);
    p->height = cell * TETRIS_ROWS;
    tetris_observe(settings, s, 0, obs);
    env_draw_line(p, cell * TETRIS_COLS, 0, cell * TETRIS_COLS, p->height, 2, ENV_FAINT);
    for (int i = 0; i < TETRIS_ROWS * TETRIS_COLS; i++)
        if (obs[2 * i] || obs[2 * i + 1])
            env_draw_rect(p, i % TETRIS_COLS * cell + 1, i / TETRIS_COLS * cell + 1, cell - 2, cell - 2,
                          obs[2 * i + 1] ? ENV_OWN : (enum env_colour)(ENV_RAMP + i / TETRIS_COLS % 6));
    env_draw_text(p, p->width - 8, 24, 14, 1, "%d", (int)s->score);
    env_draw_text(p, p->width - 8, 48, 14, 1, "next %c %c", names[tetris_next(s, 1)], names[tetris_next(s, 2)]);
    if (s->hold >= 0)
        env_draw_text(p, p->width - 8, 72, 14, 1, "held %c", names[s->hold]);
}
#endif

#endif

/* for every inclusion of env_loop.h, which undefines it */
#define ENV_GAME_BYTES
