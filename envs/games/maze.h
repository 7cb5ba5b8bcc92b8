/* maze.h - find the way out of a maze, of which only what is near is seen. (public)
 * A maze of n x n cells, n odd, each odd number from min_size to max_size equally likely; the outermost cells are
 * walls. Cells of two odd coordinates are open, and joined by open cells to a tree that grows from one of them: a
 * cell of the tree and one of its neighbours outside, each equally likely, are joined, until all are. The cell is
 * the last of a list with a probability that is drawn for each maze from 0 to 1, else a random one of the list: long
 * corridors or many short dead ends. The list takes new cells at its end; a cell without a neighbour outside leaves
 * it, and its last one takes the place. The agent begins at the top left and moves one cell a decision; a wall stops
 * it. The goal is the open cell at the bottom right: reward 1, and the episode ends. After 2 n n decisions it is
 * cut.
 * Observation: bytes, the 11x11 cells around the agent as a (11, 11, 2) grid of planes: wall (outside too), goal.
 * Actions: 0 up, 1 down, 2 left, 3 right (anything else stays). score = reward, perf = 1 if found, else 0. */
#ifndef ENVS_MAZE_H
#define ENVS_MAZE_H

#include "envs/env.h"

#define MAZE_SIDE_MAX 47
#define MAZE_TREE_MAX 529 /* cells of two odd coordinates */
#define MAZE_VIEW 11 /* cells across what is seen */
#define MAZE_VIEW_CELLS (MAZE_VIEW * MAZE_VIEW)
#define MAZE_PLANES 2

struct maze_settings {
    int64_t min_size, max_size;
};

struct maze_state {
    struct rng rng;
    uint64_t open[MAZE_SIDE_MAX]; /* rows from the top; bit x: the cell is open */
    int32_t size, steps;
    int32_t x, y;
    uint16_t tree[MAZE_TREE_MAX + 3]; /* while it grows: the list; no padding */
};

ENV_FN void maze_shape(const struct maze_settings *settings, struct env_shape *ret_shape)
{
    ret_shape->obs_size = MAZE_VIEW_CELLS * MAZE_PLANES;
    ret_shape->channels = MAZE_PLANES;
    ret_shape->height = MAZE_VIEW;
    ret_shape->width = MAZE_VIEW;
    ret_shape->u8 = true;
    ret_shape->byte_scale = 1.0f;
    ret_shape->head_sizes[0] = 4;
    ret_shape->may_truncate = true;
}

ENV_FN bool maze_is_open(const struct maze_state *s, int32_t x, int32_t y)
{
    return x >= 0 && y >= 0 && x < s->size && y < s->size && (s->open[y] >> x & 1) != 0;
}

ENV_FN int32_t maze_dx(int direction)
{
    return (direction == 3) - (direction == 2);
}
ENV_FN int32_t maze_dy(int direction)
{
    return (direction == 1) - (direction == 0);
}

/* The direction of a random neighbour, two cells away, that is not in the tree; -1: there is none. */
ENV_FN int maze_way_out(struct maze_state *s, int32_t x, int32_t y)
{
    int ways[4], n = 0;

    for (int d = 0; d < 4; d++) {
        const int32_t to_x = x + 2 * maze_dx(d), to_y = y + 2 * maze_dy(d);
        if (to_x > 0 && to_y > 0 && to_x < s->size && to_y < s->size && (s->open[to_y] >> to_x & 1) == 0)
            ways[n++] = d;
    }
    return n == 0 ? -1 : n == 1 ? ways[0] : ways[rng_below(&s->rng, (uint32_t)n)];
}

ENV_FN void maze_grow(struct maze_state *s)
{
    const int32_t half = s->size / 2;
    const float last = rng_f32(&s->rng);
    int n = 1;

    s->tree[0] = (uint16_t)rng_below(&s->rng, (uint32_t)(half * half));
    s->open[2 * (s->tree[0] / half) + 1] |= (uint64_t)1 << (2 * (s->tree[0] % half) + 1);
    while (n > 0) {
        const int at = rng_f32(&s->rng) < last ? n - 1 : (int)rng_below(&s->rng, (uint32_t)n);
        const int32_t x = 2 * (s->tree[at] % half) + 1, y = 2 * (s->tree[at] / half) + 1;
        const int way = maze_way_out(s, x, y);
        if (way < 0) {
            s->tree[at] = s->tree[--n];
            continue;
        }
        const int32_t dx = maze_dx(way), dy = maze_dy(way);
        s->open[y + dy] |= (uint64_t)1 << (x + dx);
        s->open[y + 2 * dy] |= (uint64_t)1 << (x + 2 * dx);
        s->tree[n++] = (uint16_t)((y + 2 * dy) / 2 * half + (x + 2 * dx) / 2);
    }
}

ENV_FN void maze_reset(const struct maze_settings *settings, struct maze_state *state)
{
    const int32_t smallest = (int32_t)settings->min_size / 2, largest = ((int32_t)settings->max_size - 1) / 2;
    const int32_t choices = largest > smallest ? largest - smallest + 1 : 1;

    state->size = 2 * (smallest + (int32_t)rng_below(&state->rng, (uint32_t)choices)) + 1;
    state->steps = 0;
    state->x = state->y = 1;
    for (int row = 0; row < MAZE_SIDE_MAX; row++)
        state->open[row] = 0;
    for (int i = 0; i < MAZE_TREE_MAX + 3; i++)
        state->tree[i] = 0;
    maze_grow(state);
}

ENV_FN void maze_step(const struct maze_settings *settings, struct maze_state *state, const int32_t *actions,
                      struct env_step *step)
{
    const int32_t x = state->x + maze_dx(actions[0]), y = state->y + maze_dy(actions[0]);

    if (maze_is_open(state, x, y)) {
        state->x = x;
        state->y = y;
    }
    state->steps++;
    step->ended = state->x == state->size - 2 && state->y == state->size - 2;
    step->truncated = !step->ended && state->steps >= 2 * state->size * state->size;
    step->rewards[0] = step->ended ? 1.0f : 0.0f;
    step->score = step->perf = step->rewards[0];
}

ENV_FN void maze_observe(const struct maze_settings *settings, const struct maze_state *s, int agent, uint8_t *obs)
{
    for (int32_t i = 0; i < MAZE_VIEW_CELLS; i++) {
        const int32_t x = s->x - MAZE_VIEW / 2 + i % MAZE_VIEW, y = s->y - MAZE_VIEW / 2 + i / MAZE_VIEW;
        obs[i * MAZE_PLANES] = !maze_is_open(s, x, y);
        obs[i * MAZE_PLANES + 1] = x == s->size - 2 && y == s->size - 2;
    }
}

ENV_GPU(maze, env_gpu_bytes)

#ifndef __CUDACC__
/* -- what the program shows -- */
static const struct opt_def maze_options[] = {
    OPT_ROW_INT(struct maze_settings, min_size, "5", 5, MAZE_SIDE_MAX, OPT_FIXED, 0, 0, "cells",
                "Side of the smallest maze; an even number counts as the next odd one."),
    OPT_ROW_INT(struct maze_settings, max_size, "45", 5, MAZE_SIDE_MAX, OPT_FIXED, 0, 0, "cells",
                "Side of the largest maze, at least min_size; an even number counts as the odd one before it."),
};
static const struct env_about maze_about = {"find the way out of a maze", NULL, 0};

/* Around the agent: a large maze has more cells than a picture has shapes. */
static inline void maze_draw(const struct maze_settings *settings, const struct maze_state *s, struct env_picture *p)
{
    const double cell = 30;
    uint8_t view[MAZE_VIEW_CELLS * MAZE_PLANES];

    p->width = p->height = cell * MAZE_VIEW;
    maze_observe(settings, s, 0, view);
    for (int i = 0; i < MAZE_VIEW_CELLS; i++)
        if (view[i * MAZE_PLANES] || view[i * MAZE_PLANES + 1])
            env_draw_rect(p, i % MAZE_VIEW * cell, i / MAZE_VIEW * cell, cell, cell,
                          view[i * MAZE_PLANES] ? ENV_FAINT : ENV_GOAL);
    env_draw_circle(p, p->width / 2, p->height / 2, 0.4 * cell, ENV_OWN);
    env_draw_text(p, 8, 20, 16, -1, "%d, %d of %d", (int)s->x, (int)s->y, (int)s->size);
}
#endif

#endif

/* for every inclusion of env_loop.h, which undefines it */
#define ENV_GAME_BYTES
