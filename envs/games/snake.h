/* snake.h - many snakes on one grid; each is an agent, and dies alone. (public)
 * The snakes move one cell a decision, agent 0 first. A snake that turns straight back continues as it went. Food and
 * corpses are eaten: reward 0.1, and the snake is one cell longer from then on, as its end stays where it is for that
 * decision. While there are fewer cells of food and corpses together than `food`, food appears for what is eaten, on an
 * empty cell, each equally likely; so the grid does not fill with corpses. A snake that would leave the grid or enter a
 * snake, itself included, dies: reward -1, and its cells become corpses. Its end has moved on by then, so a snake may
 * follow its own end. The agent's episode ends, and another one begins with a snake of one cell on an empty cell, each
 * equally likely, before anybody decides again; the others' episodes continue. Observation: bytes, the 11x11 cells
 * around the head in rows from the top. With one_hot a (11, 11, 5) grid of planes: food, corpse, outside, own cell,
 * cell of another snake; else 1 to 5 for these, divided by 5, 0 for an empty cell. Actions: 0 up, 1 down, 2 left, 3
 * right (anything else: straight on). score = length at death, perf = length / 120, at most 1. */
#ifndef ENVS_SNAKE_H
#define ENVS_SNAKE_H

#include "envs/env.h"

#define SNAKE_AGENTS_MAX 256
#define SNAKE_SIDE_MAX 256
#define SNAKE_VIEW 11 /* cells across what a snake sees */
#define SNAKE_VIEW_CELLS (SNAKE_VIEW * SNAKE_VIEW)
#define SNAKE_PLANES 5
#define SNAKE_FULL_LENGTH 120
#define SNAKE_TRIES 64 /* random cells that are looked at before all are gone through */

enum snake_kind { SNAKE_EMPTY, SNAKE_FOOD, SNAKE_CORPSE, SNAKE_OUTSIDE, SNAKE_OWN, SNAKE_OTHER };
#define SNAKE_BODY SNAKE_OWN /* of a cell: whose it is stands beside it */

struct snake_settings {
    int64_t agents, width, height, food;
    bool one_hot;
};

struct snake_body {
    struct env_track track;
    int32_t head, tail; /* cells */
    int32_t length; /* 0: dead, until it is back */
    int32_t heading; /* the last move's direction; -1: none yet */
};

/* A cell: enum snake_kind, then of a body which way the next cell towards the head lies, and whose it is. */
struct snake_state {
    struct rng rng;
    int64_t edible; /* cells of food and corpses */
    struct snake_body bodies[SNAKE_AGENTS_MAX];
    uint16_t cells[SNAKE_SIDE_MAX * SNAKE_SIDE_MAX]; /* rows of `width`, from the top */
};

ENV_FN uint16_t snake_cell(int agent, int32_t heading)
{
    return (uint16_t)(SNAKE_BODY | heading << 3 | agent << 5);
}
ENV_FN int snake_cell_kind(uint16_t cell)
{
    return cell & 7;
}
ENV_FN int32_t snake_cell_heading(uint16_t cell)
{
    return cell >> 3 & 3;
}
ENV_FN int snake_cell_agent(uint16_t cell)
{
    return cell >> 5;
}

ENV_FN void snake_shape(const struct snake_settings *settings, struct env_shape *ret_shape)
{
    ret_shape->obs_size = SNAKE_VIEW_CELLS * (settings->one_hot ? SNAKE_PLANES : 1);
    ret_shape->channels = settings->one_hot ? SNAKE_PLANES : 1;
    ret_shape->height = SNAKE_VIEW;
    ret_shape->width = SNAKE_VIEW;
    ret_shape->u8 = true;
    ret_shape->byte_scale = settings->one_hot ? 1.0f : (float)SNAKE_PLANES;
    ret_shape->agents_end = true;
    ret_shape->n_agents = (int)settings->agents;
    ret_shape->head_sizes[0] = 4;
}

ENV_FN struct env_track *snake_track(struct snake_state *state, int agent)
{
    return &state->bodies[agent].track;
}

/* A random cell that is empty; when none is found, one that is no snake's; -1: there is none either. */
ENV_FN int32_t snake_free_cell(const struct snake_settings *settings, struct snake_state *state, bool only_empty)
{
    int32_t n = (int32_t)(settings->width * settings->height), at = 0, spare = -1;

    for (int i = 0; i < SNAKE_TRIES; i++) {
        at = (int32_t)rng_below(&state->rng, (uint32_t)n);
        if (snake_cell_kind(state->cells[at]) == SNAKE_EMPTY)
            return at;
    }
    for (int32_t i = 0; i < n; i++, at = at + 1 < n ? at + 1 : 0) {
        if (snake_cell_kind(state->cells[at]) == SNAKE_EMPTY)
            return at;
        if (snake_cell_kind(state->cells[at]) != SNAKE_BODY)
            spare = at;
    }
    return only_empty ? -1 : spare;
}

ENV_FN void snake_feed(const struct snake_settings *settings, struct snake_state *state)
{
    int32_t at = state->edible < settings->food ? snake_free_cell(settings, state, true) : -1;
    if (at < 0)
        return;
    state->cells[at] = SNAKE_FOOD;
    state->edible++;
}

ENV_FN void snake_respawn(const struct snake_settings *settings, struct snake_state *state, int agent)
{
    struct snake_body *body = &state->bodies[agent];
    int32_t at = snake_free_cell(settings, state, false);

    state->edible -= snake_cell_kind(state->cells[at]) != SNAKE_EMPTY;
    body->head = body->tail = at; /* there is one: a snake that dies leaves a cell */
    body->length = 1;
    body->heading = -1;
    state->cells[at] = snake_cell(agent, 0);
}

ENV_FN void snake_reset(const struct snake_settings *settings, struct snake_state *state)
{
    for (int32_t i = 0; i < SNAKE_SIDE_MAX * SNAKE_SIDE_MAX; i++)
        state->cells[i] = SNAKE_EMPTY;
    state->edible = 0;
    for (int64_t i = 0; i < settings->food; i++)
        snake_feed(settings, state);
    for (int a = 0; a < (int)settings->agents; a++)
        snake_respawn(settings, state, a);
}

/* The cell next to `at` that way; -1: outside. */
ENV_FN int32_t snake_next(const struct snake_settings *settings, int32_t at, int32_t heading)
{
    int32_t width = (int32_t)settings->width, x = at % width, y = at / width;

    x += (heading == 3) - (heading == 2);
    y += (heading == 1) - (heading == 0);
    return x < 0 || x >= width || y < 0 || y >= (int32_t)settings->height ? -1 : y * width + x;
}

ENV_FN void snake_die(const struct snake_settings *settings, struct snake_state *state, struct snake_body *body)
{
    int32_t at = body->tail;

    for (int32_t i = 0; i < body->length; i++) {
        uint16_t cell = state->cells[at];
        state->cells[at] = SNAKE_CORPSE;
        state->edible++;
        if (at != body->head)
            at = snake_next(settings, at, snake_cell_heading(cell));
    }
    body->length = 0;
}

/* Frees the cell at the snake's end. */
ENV_FN void snake_move_tail(const struct snake_settings *settings, struct snake_state *state, struct snake_body *body)
{
    uint16_t cell = state->cells[body->tail];

    state->cells[body->tail] = SNAKE_EMPTY;
    if (body->tail != body->head)
        body->tail = snake_next(settings, body->tail, snake_cell_heading(cell));
    body->length--;
}

ENV_FN float snake_move(const struct snake_settings *settings, struct snake_state *state, int agent, int32_t action,
                        uint8_t *ret_dead)
{
    struct snake_body *body = &state->bodies[agent];
    int32_t heading = action >= 0 && action < 4 ? action : body->heading;
    bool back = body->heading >= 0 && (heading ^ 1) == body->heading;
    int32_t to, length = body->length;
    float reward = 0.0f;
    int kind;

    heading = back ? body->heading : heading >= 0 ? heading : 0;
    to = snake_next(settings, body->head, heading);
    kind = to >= 0 ? snake_cell_kind(state->cells[to]) : SNAKE_OUTSIDE;
    if (kind == SNAKE_FOOD || kind == SNAKE_CORPSE) {
        reward = 0.1f;
        length++;
    } else {
        snake_move_tail(settings, state, body);
        kind = to >= 0 ? snake_cell_kind(state->cells[to]) : SNAKE_OUTSIDE; /* it may have been the end */
    }
    if (kind == SNAKE_OUTSIDE || kind == SNAKE_BODY) {
        snake_die(settings, state, body);
        *ret_dead = 1;
        reward = -1.0f;
    } else {
        if (body->length > 0)
            state->cells[body->head] = snake_cell(agent, heading);
        else
            body->tail = to;
        body->head = to;
        body->heading = heading;
        body->length = length;
        state->cells[to] = snake_cell(agent, heading);
        if (reward > 0.0f) {
            state->edible--;
            snake_feed(settings, state);
        }
    }
    body->track.score = (float)length;
    body->track.perf = length < SNAKE_FULL_LENGTH ? (float)length / SNAKE_FULL_LENGTH : 1.0f;
    return reward;
}

ENV_FN void snake_step(const struct snake_settings *settings, struct snake_state *state, const int32_t *actions,
                       struct env_step *step)
{
    for (int a = 0; a < (int)settings->agents; a++)
        step->rewards[a] = snake_move(settings, state, a, actions[a], &step->terms[a]);
}

ENV_FN void snake_observe(const struct snake_settings *settings, const struct snake_state *state, int agent,
                          uint8_t *obs)
{
    const int32_t width = (int32_t)settings->width, height = (int32_t)settings->height;
    const int32_t head = state->bodies[agent].head, left = head % width - SNAKE_VIEW / 2;
    const int32_t top = head / width - SNAKE_VIEW / 2;

    for (int32_t i = 0; i < SNAKE_VIEW_CELLS; i++) {
        int32_t x = left + i % SNAKE_VIEW, y = top + i / SNAKE_VIEW;
        bool inside = x >= 0 && x < width && y >= 0 && y < height;
        uint16_t cell = inside ? state->cells[y * width + x] : (uint16_t)SNAKE_OUTSIDE;
        int kind = snake_cell_kind(cell);
        if (kind == SNAKE_BODY && snake_cell_agent(cell) != agent)
            kind = SNAKE_OTHER;
        if (!settings->one_hot)
            obs[i] = (uint8_t)kind;
        for (int plane = 0; settings->one_hot && plane < SNAKE_PLANES; plane++)
            obs[i * SNAKE_PLANES + plane] = kind == plane + 1;
    }
}

ENV_GPU(snake, env_gpu_bytes)

#ifndef __CUDACC__
/* -- what the program shows -- */
static const struct opt_def snake_options[] = {
    OPT_ROW_INT(struct snake_settings, agents, "16", 1, SNAKE_AGENTS_MAX, OPT_FIXED, 0, 0, "snakes",
                "Snakes on the grid."),
    OPT_ROW_INT(struct snake_settings, width, "160", 32, SNAKE_SIDE_MAX, OPT_FIXED, 0, 0, "cells",
                "Cells of the grid's rows."),
    OPT_ROW_INT(struct snake_settings, height, "90", 32, SNAKE_SIDE_MAX, OPT_FIXED, 0, 0, "cells", "Rows of the grid."),
    OPT_ROW_INT(struct snake_settings, food, "256", 0, 512, OPT_FIXED, 0, 0, "cells",
                "Cells with food, those with corpses counted."),
    OPT_ROW_BOOL(struct snake_settings, one_hot, "true", "Shows a plane for each kind of cell instead of a number."),
};
static const struct env_about snake_about = {"many snakes on one grid, each of which dies alone", NULL, 0};

/* Around the first snake: the whole grid has more cells than a picture has shapes. */
static inline void snake_draw(const struct snake_settings *settings, const struct snake_state *s, struct env_picture *p)
{
    static const enum env_colour colours[] = {[SNAKE_FOOD] = ENV_GOAL,
                                              [SNAKE_CORPSE] = ENV_FAINT,
                                              [SNAKE_OUTSIDE] = ENV_FOREGROUND,
                                              [SNAKE_OWN] = ENV_OWN,
                                              [SNAKE_OTHER] = ENV_OPPONENT};
    const struct snake_settings plain = {settings->agents, settings->width, settings->height, settings->food, false};
    const double cell = 30;
    uint8_t view[SNAKE_VIEW_CELLS];

    p->width = p->height = cell * SNAKE_VIEW;
    snake_observe(&plain, s, 0, view);
    for (int i = 0; i < SNAKE_VIEW_CELLS; i++)
        if (view[i] != SNAKE_EMPTY)
            env_draw_rect(p, i % SNAKE_VIEW * cell + 1, i / SNAKE_VIEW * cell + 1, cell - 2, cell - 2,
                          colours[view[i]]);
    env_draw_text(p, 8, 20, 16, -1, "length %d", (int)s->bodies[0].length);
}
#endif

#endif

/* for every inclusion of env_loop.h, which undefines it */
#define ENV_GAME_BYTES
#define ENV_GAME_AGENTS_END
