/* trash_pickup.h - agents on one grid bring trash to bins. (public)
 * A grid of size x size cells on which agents, bins and pieces of trash begin on random cells, no two on one. The
 * agents move one cell a decision, agent 0 first. One that carries nothing and enters a piece of trash picks it up:
 * reward 0.5. One that carries and moves against a bin stays, and the trash is in the bin: reward 0.5. One that
 * carries nothing and moves against a bin pushes it on by a cell, if that cell is on the grid and empty. Else an
 * agent that would leave the grid or enter a cell that is not empty stays. The episode ends when no trash is left on
 * the grid or in an agent's hands, and is cut after max_steps.
 * Observation: bytes, the 11x11 cells around the agent as a (11, 11, 5) grid of planes: outside, trash, bin, agent
 * (itself included), agent that carries. Actions: 0 up, 1 down, 2 left, 3 right (anything else stays). score =
 * pieces that were picked up, perf = their share. PufferLib counts the same, but a bin as a piece that nobody can
 * pick up and two pieces not at all: its perf ends at 0.975. */
#ifndef ENVS_TRASH_PICKUP_H
#define ENVS_TRASH_PICKUP_H

#include "envs/env.h"

#define TRASH_PICKUP_SIDE_MAX 32
#define TRASH_PICKUP_AGENTS_MAX 32
#define TRASH_PICKUP_VIEW 11 /* cells across what an agent sees */
#define TRASH_PICKUP_VIEW_CELLS (TRASH_PICKUP_VIEW * TRASH_PICKUP_VIEW)
#define TRASH_PICKUP_PLANES 5

enum trash_pickup_kind {
    TRASH_PICKUP_EMPTY,
    TRASH_PICKUP_TRASH,
    TRASH_PICKUP_BIN,
    TRASH_PICKUP_AGENT,
    TRASH_PICKUP_CARRIER
};

struct trash_pickup_settings {
    int64_t agents, bins, trash, size, max_steps;
};

struct trash_pickup_state {
    struct rng rng;
    int32_t steps;
    int32_t lying, carried; /* pieces of trash */
    int16_t at[TRASH_PICKUP_AGENTS_MAX]; /* the agents' cells */
    uint8_t
        cells[TRASH_PICKUP_SIDE_MAX * TRASH_PICKUP_SIDE_MAX]; /* enum trash_pickup_kind; rows of `size` from the top */
    uint32_t unused; /* no padding: whole states compare as bytes */
};

ENV_FN void trash_pickup_shape(const struct trash_pickup_settings *settings, struct env_shape *ret_shape)
{
    ret_shape->obs_size = TRASH_PICKUP_VIEW_CELLS * TRASH_PICKUP_PLANES;
    ret_shape->channels = TRASH_PICKUP_PLANES;
    ret_shape->height = TRASH_PICKUP_VIEW;
    ret_shape->width = TRASH_PICKUP_VIEW;
    ret_shape->u8 = true;
    ret_shape->byte_scale = 1.0f;
    ret_shape->n_agents = (int)settings->agents;
    ret_shape->head_sizes[0] = 4;
    ret_shape->may_truncate = true;
}

/* A random empty cell, each equally likely. There is one: the options' ranges leave some. */
ENV_FN int32_t trash_pickup_empty_cell(const struct trash_pickup_settings *settings, struct trash_pickup_state *state)
{
    const int32_t n = (int32_t)(settings->size * settings->size);
    int32_t at;

    do
        at = (int32_t)rng_below(&state->rng, (uint32_t)n);
    while (state->cells[at] != TRASH_PICKUP_EMPTY);
    return at;
}

ENV_FN void trash_pickup_reset(const struct trash_pickup_settings *settings, struct trash_pickup_state *state)
{
    state->steps = state->carried = 0;
    state->unused = 0;
    state->lying = (int32_t)settings->trash;
    for (int i = 0; i < TRASH_PICKUP_SIDE_MAX * TRASH_PICKUP_SIDE_MAX; i++)
        state->cells[i] = TRASH_PICKUP_EMPTY;
    for (int a = 0; a < TRASH_PICKUP_AGENTS_MAX; a++)
        state->at[a] = 0;
    for (int a = 0; a < (int)settings->agents; a++) {
        state->at[a] = (int16_t)trash_pickup_empty_cell(settings, state);
        state->cells[state->at[a]] = TRASH_PICKUP_AGENT;
    }
    for (int64_t i = 0; i < settings->bins + settings->trash; i++)
        state->cells[trash_pickup_empty_cell(settings, state)] =
            i < settings->bins ? TRASH_PICKUP_BIN : TRASH_PICKUP_TRASH;
}

/* The cell next to `at` in a direction; -1: outside. */
ENV_FN int32_t trash_pickup_next(const struct trash_pickup_settings *settings, int32_t at, int32_t direction)
{
    const int32_t size = (int32_t)settings->size;
    const int32_t x = at % size + (direction == 3) - (direction == 2),
                  y = at / size + (direction == 1) - (direction == 0);

    return x < 0 || x >= size || y < 0 || y >= size ? -1 : y * size + x;
}

ENV_FN float trash_pickup_move(const struct trash_pickup_settings *settings, struct trash_pickup_state *state,
                               int agent, int32_t action)
{
    const int32_t from = state->at[agent];
    const int32_t to = action >= 0 && action < 4 ? trash_pickup_next(settings, from, action) : -1;
    const bool carries = state->cells[from] == TRASH_PICKUP_CARRIER;
    float reward = 0.0f;

    if (to < 0)
        return 0.0f;
    if (state->cells[to] == TRASH_PICKUP_BIN && carries) {
        state->cells[from] = TRASH_PICKUP_AGENT;
        state->carried--;
        return 0.5f;
    }
    if (state->cells[to] == TRASH_PICKUP_BIN) {
        int32_t beyond = trash_pickup_next(settings, to, action);
        if (beyond < 0 || state->cells[beyond] != TRASH_PICKUP_EMPTY)
            return 0.0f;
        state->cells[beyond] = TRASH_PICKUP_BIN;
        state->cells[to] = TRASH_PICKUP_EMPTY;
    } else if (state->cells[to] == TRASH_PICKUP_TRASH && !carries) {
        state->cells[from] = TRASH_PICKUP_CARRIER;
        state->lying--;
        state->carried++;
        reward = 0.5f;
    } else if (state->cells[to] != TRASH_PICKUP_EMPTY) {
        return 0.0f;
    }
    state->cells[to] = state->cells[from];
    state->cells[from] = TRASH_PICKUP_EMPTY;
    state->at[agent] = (int16_t)to;
    return reward;
}

ENV_FN void trash_pickup_step(const struct trash_pickup_settings *settings, struct trash_pickup_state *state,
                              const int32_t *actions, struct env_step *step)
{
    for (int a = 0; a < (int)settings->agents; a++)
        step->rewards[a] = trash_pickup_move(settings, state, a, actions[a]);
    state->steps++;
    step->ended = state->lying == 0 && state->carried == 0;
    step->truncated = !step->ended && state->steps >= settings->max_steps;
    step->score = (float)(settings->trash - state->lying);
    step->perf = step->score / (float)settings->trash;
}

ENV_FN void trash_pickup_observe(const struct trash_pickup_settings *settings, const struct trash_pickup_state *state,
                                 int agent, uint8_t *obs)
{
    const int32_t size = (int32_t)settings->size, left = state->at[agent] % size - TRASH_PICKUP_VIEW / 2;
    const int32_t top = state->at[agent] / size - TRASH_PICKUP_VIEW / 2;

    for (int32_t i = 0; i < TRASH_PICKUP_VIEW_CELLS; i++) {
        const int32_t x = left + i % TRASH_PICKUP_VIEW, y = top + i / TRASH_PICKUP_VIEW;
        const bool inside = x >= 0 && x < size && y >= 0 && y < size;
        const int kind = inside ? state->cells[y * size + x] : (uint8_t)TRASH_PICKUP_EMPTY;
        uint8_t *planes = obs + i * TRASH_PICKUP_PLANES;
        planes[0] = !inside;
        planes[1] = kind == TRASH_PICKUP_TRASH;
        planes[2] = kind == TRASH_PICKUP_BIN;
        planes[3] = kind == TRASH_PICKUP_AGENT || kind == TRASH_PICKUP_CARRIER;
        planes[4] = kind == TRASH_PICKUP_CARRIER;
    }
}

ENV_GPU(trash_pickup, env_gpu_bytes)

#ifndef __CUDACC__
/* -- what the program shows -- */
static const struct opt_def trash_pickup_options[] = {
    OPT_ROW_INT(struct trash_pickup_settings, agents, "8", 1, TRASH_PICKUP_AGENTS_MAX, OPT_FIXED, 0, 0, "agents",
                "Agents on the grid."),
    OPT_ROW_INT(struct trash_pickup_settings, bins, "2", 1, 16, OPT_FIXED, 0, 0, "bins", "Bins on the grid."),
    OPT_ROW_INT(struct trash_pickup_settings, trash, "40", 1, 128, OPT_FIXED, 0, 0, "pieces", "Pieces of trash."),
    OPT_ROW_INT(struct trash_pickup_settings, size, "20", 16, TRASH_PICKUP_SIDE_MAX, OPT_FIXED, 0, 0, "cells",
                "Cells on each side of the grid."),
    OPT_ROW_INT(struct trash_pickup_settings, max_steps, "500", 1, 1e9, OPT_FIXED, 0, 0, "steps",
                "Steps after which an episode is truncated."),
};
static const struct env_about trash_pickup_about = {"many agents bring trash to bins", NULL, 0};

static inline void trash_pickup_draw(const struct trash_pickup_settings *settings, const struct trash_pickup_state *s,
                                     struct env_picture *p)
{
    const double cell = 20;

    p->width = p->height = cell * (double)settings->size;
    for (int i = 0; i < (int)(settings->size * settings->size); i++) {
        const double x = (double)(i % settings->size) * cell, y = (double)(i / settings->size) * cell;
        if (s->cells[i] == TRASH_PICKUP_TRASH)
            env_draw_circle(p, x + cell / 2, y + cell / 2, 0.25 * cell, ENV_GOAL);
        else if (s->cells[i] == TRASH_PICKUP_BIN)
            env_draw_rect(p, x + 2, y + 2, cell - 4, cell - 4, ENV_FOREGROUND);
        else if (s->cells[i] != TRASH_PICKUP_EMPTY)
            env_draw_circle(p, x + cell / 2, y + cell / 2, 0.45 * cell, ENV_OWN);
        if (s->cells[i] == TRASH_PICKUP_CARRIER)
            env_draw_circle(p, x + cell / 2, y + cell / 2, 0.25 * cell, ENV_GOAL);
    }
}
#endif

#endif

/* for every inclusion of env_loop.h, which undefines it */
#define ENV_GAME_BYTES
