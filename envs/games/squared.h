/* squared.h - walk from the centre of a square grid to a target on its border. (public)
 * The grid has (2n+1)^2 cells (n = 5: 11x11). A target cell is drawn from the 8n border cells, each equally likely.
 * Reward +1 on the target; -1 on leaving the grid, or when 3n steps have been made without reaching the target. All
 * three end the episode by the rules (the step limit is a rule of the game, not a time limit, so it is a termination);
 * reaching the target with the last step counts as reached. Every target is within 2n steps.
 * Observation: the cells in rows from the top, 0 empty, 1 agent, -1 target. Actions: 0 stay, 1 up, 2 down, 3 left,
 * 4 right (anything else: stay). score = reward of the episode's last step, perf = 1 if reached. */
#ifndef ENVS_SQUARED_H
#define ENVS_SQUARED_H

#include "envs/env.h"

#define SQUARED_N_MAX 31

struct squared_settings {
    int64_t n; /* cells from the centre to the border, 1..SQUARED_N_MAX */
};

struct squared_state {
    struct rng rng;
    int32_t row, col; /* of the agent, 0 at the top and left */
    int32_t target_row, target_col; /* on the border */
    int32_t steps;
    int32_t unused; /* no padding: whole states compare as bytes */
};

ENV_FN void squared_shape(const struct squared_settings *settings, struct env_shape *ret_shape)
{
    int side = 2 * (int)settings->n + 1;
    ret_shape->obs_size = side * side;
    ret_shape->channels = 1;
    ret_shape->height = side;
    ret_shape->width = side;
    ret_shape->head_sizes[0] = 5;
}

ENV_FN void squared_reset(const struct squared_settings *settings, struct squared_state *state)
{
    int32_t n = (int32_t)settings->n, side = 2 * n + 1;
    state->row = n;
    state->col = n;
    state->steps = 0;
    state->unused = 0;
    /* Round the border: 2n cells on each side, corners belong to the side that begins there. */
    int32_t cell = (int32_t)rng_below(&state->rng, 8u * (uint32_t)n);
    int32_t along = cell % (2 * n);
    switch (cell / (2 * n)) {
    case 0: /* top, left to right */
        state->target_row = 0;
        state->target_col = along;
        break;
    case 1: /* right, downwards */
        state->target_row = along;
        state->target_col = side - 1;
        break;
    case 2: /* bottom, right to left */
        state->target_row = side - 1;
        state->target_col = side - 1 - along;
        break;
    default: /* left, upwards */
        state->target_row = side - 1 - along;
        state->target_col = 0;
        break;
    }
}

ENV_FN void squared_step(const struct squared_settings *settings, struct squared_state *state, const int32_t *actions,
                         struct env_step *step)
{
    int32_t n = (int32_t)settings->n, side = 2 * n + 1, action = actions[0];
    state->row += (action == 2) - (action == 1);
    state->col += (action == 4) - (action == 3);
    state->steps++;

    bool reached = state->row == state->target_row && state->col == state->target_col;
    bool outside = state->row < 0 || state->row >= side || state->col < 0 || state->col >= side;
    bool failed = outside || (!reached && state->steps >= 3 * n);
    step->rewards[0] = reached ? 1.0f : failed ? -1.0f : 0.0f;
    step->ended = reached || failed;
    step->score = step->rewards[0];
    step->perf = reached ? 1.0f : 0.0f;
}

/* The cells that are not 0. */
ENV_OBS_FN void squared_observe_cells(const struct squared_settings *settings, const struct squared_state *state,
                                      env_obs *obs)
{
    int side = 2 * (int)settings->n + 1;
    obs[state->target_row * side + state->target_col] = -1.0f;
    obs[state->row * side + state->col] = 1.0f; /* inside: an agent outside has a new episode already */
}

ENV_OBS_FN void squared_observe(const struct squared_settings *settings, const struct squared_state *state, int agent,
                                env_obs *obs)
{
    int side = 2 * (int)settings->n + 1;
    for (int i = 0; i < side * side; i++)
        obs[i] = 0.0f;
    squared_observe_cells(settings, state, obs);
}

/* -- on a GPU: a block clears its rows together, then each instance writes its two cells -- */
#ifdef __CUDACC__
struct squared_gpu : env_gpu_direct {
    enum { sparse = 1 };
    template <typename T>
    __device__ static inline void cells(const squared_settings *settings, const squared_state *state, T *obs)
    {
        squared_observe_cells(settings, state, obs);
    }
};
#else
/* -- what the program shows -- */
static const struct opt_def squared_options[] = {
    OPT_ROW_INT(struct squared_settings, n, "5", 1, SQUARED_N_MAX, OPT_FIXED, 0, 0, "cells",
                "Cells from the centre to the border: the grid has (2n+1)^2 cells."),
};
static const struct env_about squared_about = {"walk to a target on the border of a grid", NULL, 0};

static inline void squared_draw(const struct squared_settings *settings, const struct squared_state *s,
                                struct env_picture *p)
{
    int side = 2 * (int)settings->n + 1;
    double cell = 440.0 / side;

    p->width = p->height = 440;
    for (int i = 0; i <= side; i++) {
        env_draw_line(p, 0, i * cell, 440, i * cell, 1, ENV_FAINT);
        env_draw_line(p, i * cell, 0, i * cell, 440, 1, ENV_FAINT);
    }
    env_draw_rect(p, s->target_col * cell, s->target_row * cell, cell, cell, ENV_GOAL);
    env_draw_circle(p, (s->col + 0.5) * cell, (s->row + 0.5) * cell, 0.4 * cell, ENV_OWN);
}
#endif

#endif
