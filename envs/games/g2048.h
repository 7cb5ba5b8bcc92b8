/* g2048.h - 2048: slide the tiles of a 4x4 board, equal ones merge. (public)
 * A decision slides every tile as far as it goes; two equal tiles that meet become one of twice the value, each tile
 * once a move, those nearest to the wall first. Then a tile appears on an empty cell, each equally likely: 2 (90 %) or
 * 4 (10 %). A board begins with two. A decision that moves nothing is illegal: no tile appears. When no decision would
 * move anything the episode ends; after max_steps it is cut.
 * Reward: 0.05 for each merge, and 0.03 k^1.5 for a merge that makes a tile 2^(k+7), k >= 1; -0.05 for an illegal
 * decision; -1 more when the episode ends. Observation: bytes, the log2 of the tiles in rows from the top, 0 empty,
 * divided by 16; with one_hot a (4, 4, 18) grid of planes, 1 where the tile's log2 is the plane's number. Actions: 0
 * up, 1 down, 2 left, 3 right (anything else: up). score = largest tile, perf = 0.8 x largest tile / 65536, at most
 * 1. */
#ifndef ENVS_G2048_H
#define ENVS_G2048_H

#include "envs/env.h"

#define G2048_SIDE 4
#define G2048_CELLS 16
#define G2048_RANKS 18 /* log2 of a tile is at most 17 on 16 cells */

struct g2048_settings {
    int64_t max_steps;
    bool one_hot;
};

struct g2048_state {
    struct rng rng;
    int64_t steps;
    uint8_t cells[G2048_CELLS]; /* log2 of the tile, 0 empty; rows from the top */
};

ENV_FN void g2048_shape(const struct g2048_settings *settings, struct env_shape *ret_shape)
{
    ret_shape->obs_size = settings->one_hot ? G2048_CELLS * G2048_RANKS : G2048_CELLS;
    ret_shape->channels = settings->one_hot ? G2048_RANKS : 1;
    ret_shape->height = G2048_SIDE;
    ret_shape->width = G2048_SIDE;
    ret_shape->u8 = true;
    ret_shape->byte_scale = settings->one_hot ? 1.0f : 16.0f;
    ret_shape->head_sizes[0] = 4;
    ret_shape->may_truncate = true;
}

ENV_FN void g2048_spawn(struct g2048_state *state)
{
    uint32_t n = 0;
    for (int i = 0; i < G2048_CELLS; i++)
        n += state->cells[i] == 0;
    uint32_t at = rng_below(&state->rng, n);
    uint8_t rank = rng_below(&state->rng, 10) == 0 ? 2 : 1;
    for (int i = 0; i < G2048_CELLS; i++)
        if (state->cells[i] == 0 && at-- == 0)
            state->cells[i] = rank;
}

ENV_FN void g2048_reset(const struct g2048_settings *settings, struct g2048_state *state)
{
    state->steps = 0;
    for (int i = 0; i < G2048_CELLS; i++)
        state->cells[i] = 0;
    g2048_spawn(state);
    g2048_spawn(state);
}

/* The cell that is i-th from the wall in line `line`, when tiles slide towards it. */
ENV_FN int g2048_cell(int32_t action, int line, int i)
{
    switch (action) {
    case 1: /* down */
        return (G2048_SIDE - 1 - i) * G2048_SIDE + line;
    case 2: /* left */
        return line * G2048_SIDE + i;
    case 3: /* right */
        return line * G2048_SIDE + G2048_SIDE - 1 - i;
    default: /* up */
        return i * G2048_SIDE + line;
    }
}

/* What a merge into this rank gives. */
ENV_FN float g2048_merge_reward(int rank)
{
    float k = (float)(rank - 7);
    return 0.05f + (rank > 7 ? 0.03f * (k * sqrtf(k)) : 0.0f);
}

/* Slides the board; false: nothing moved. */
ENV_FN bool g2048_slide(uint8_t *cells, int32_t action, float *reward)
{
    bool moved = false;

    for (int line = 0; line < G2048_SIDE; line++) {
        int free_at = 0; /* the next cell from the wall that takes a tile */
        bool merges = false; /* the tile before it is one that has not merged */
        for (int i = 0; i < G2048_SIDE; i++) {
            int from = g2048_cell(action, line, i);
            uint8_t rank = cells[from];
            if (rank == 0)
                continue;
            int before = free_at > 0 ? g2048_cell(action, line, free_at - 1) : 0;
            cells[from] = 0;
            if (merges && cells[before] == rank) {
                cells[before] = (uint8_t)(rank + 1);
                *reward += g2048_merge_reward(rank + 1);
                merges = false;
                moved = true;
            } else {
                cells[g2048_cell(action, line, free_at)] = rank;
                moved = moved || i != free_at;
                merges = true;
                free_at++;
            }
        }
    }
    return moved;
}

/* Has any decision an effect? */
ENV_FN bool g2048_can_move(const uint8_t *cells)
{
    for (int i = 0; i < G2048_CELLS; i++) {
        int row = i / G2048_SIDE, col = i % G2048_SIDE;
        if (cells[i] == 0 || (col + 1 < G2048_SIDE && cells[i] == cells[i + 1]) ||
            (row + 1 < G2048_SIDE && cells[i] == cells[i + G2048_SIDE]))
            return true;
    }
    return false;
}

ENV_FN void g2048_step(const struct g2048_settings *settings, struct g2048_state *state, const int32_t *actions,
                       struct env_step *step)
{
    float reward = 0.0f, largest;
    int rank = 0;

    if (g2048_slide(state->cells, actions[0], &reward))
        g2048_spawn(state);
    else
        reward = -0.05f;
    state->steps++;
    step->ended = !g2048_can_move(state->cells);
    step->truncated = !step->ended && state->steps >= settings->max_steps;
    step->rewards[0] = step->ended ? reward - 1.0f : reward;
    for (int i = 0; i < G2048_CELLS; i++)
        rank = state->cells[i] > rank ? state->cells[i] : rank;
    largest = (float)(1 << rank);
    step->score = largest;
    step->perf = 0.8f * largest / 65536.0f;
    step->perf = step->perf < 1.0f ? step->perf : 1.0f;
}

ENV_FN void g2048_observe(const struct g2048_settings *settings, const struct g2048_state *state, int agent,
                          uint8_t *obs)
{
    for (int i = 0; i < G2048_CELLS && !settings->one_hot; i++)
        obs[i] = state->cells[i];
    for (int i = 0; i < G2048_CELLS * G2048_RANKS && settings->one_hot; i++)
        obs[i] = state->cells[i / G2048_RANKS] == i % G2048_RANKS;
}

ENV_GPU(g2048, env_gpu_bytes)

#ifndef __CUDACC__
/* -- what the program shows -- */
static const struct opt_def g2048_options[] = {
    OPT_ROW_INT(struct g2048_settings, max_steps, "10000", 1, 1e9, OPT_FIXED, 0, 0, "steps",
                "Steps after which an episode is truncated."),
    OPT_ROW_BOOL(struct g2048_settings, one_hot, "true", "Shows a plane for each size of tile instead of a number."),
};
static const struct env_about g2048_about = {"2048: slide and merge the tiles of a 4x4 board", NULL, 0};

static inline void g2048_draw(const struct g2048_settings *settings, const struct g2048_state *s, struct env_picture *p)
{
    const double cell = 90;

    p->width = p->height = cell * G2048_SIDE;
    for (int i = 0; i < G2048_CELLS; i++) {
        double x = i % G2048_SIDE * cell, y = i / G2048_SIDE * cell;
        int rank = s->cells[i];
        env_draw_rect(p, x + 3, y + 3, cell - 6, cell - 6,
                      rank == 0 ? ENV_FAINT : (enum env_colour)(ENV_RAMP + (rank - 1) / 2 % 6));
        if (rank > 0)
            env_draw_text(p, x + cell / 2, y + cell / 2 + 9, 26, 0, "%d", 1 << rank);
    }
}
#endif

#endif

/* for every inclusion of env_loop.h, which undefines it */
#define ENV_GAME_BYTES
