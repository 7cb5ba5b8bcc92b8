/* minatar_breakout.h - MinAtar's Breakout on a 10x10 grid: a paddle of one cell under three rows of bricks. (public)
 * A decision moves the paddle, then the ball by one cell along its diagonal. Side walls and the top turn it back. A
 * brick that it would enter breaks, for a reward of 1, and turns it back; while it continues through bricks in the
 * steps that follow directly, no other one breaks. Where it would enter the bottom row: a paddle under the cell that it
 * comes from sends it back up on its way, a paddle in the cell that it would enter sends it back the way it came, and
 * else the episode ends. When it gets there with no brick left, three new rows stand. It starts in row 3 at the left or
 * right wall, each equally likely, flying down and inwards; the paddle at column 4.
 * With probability `sticky` a decision is replaced by the one before it, as in MinAtar (0 in stacks that leave it out).
 * MinAtar has no time limit; here one cuts the episode after max_steps (1000 in gymnax).
 * Observation: bytes, (10, 10, 4) from the top left: paddle, ball, the ball's last cell, bricks; 1 or 0. Actions: 0
 * stay, 1 left, 2 right (anything else stays). score = bricks, perf = score / 60, at most 1. */
#ifndef ENVS_MINATAR_BREAKOUT_H
#define ENVS_MINATAR_BREAKOUT_H

#include "envs/env.h"

#define MINATAR_SIDE 10
#define MINATAR_PLANES 4
#define MINATAR_FULL_SCORE 60 /* about what a player that never misses breaks in 1000 steps */

struct minatar_breakout_settings {
    double sticky; /* 0..1 */
    int64_t max_steps;
};

struct minatar_breakout_state {
    struct rng rng;
    int32_t x, y, last_x, last_y; /* of the ball, y downwards */
    int32_t dx, dy; /* -1 or 1 */
    int32_t paddle, last_action;
    int32_t steps, score;
    int32_t through; /* the last step was into a brick */
    int32_t unused; /* no padding: whole states compare as bytes */
    uint8_t bricks[MINATAR_SIDE][MINATAR_SIDE]; /* rows of columns */
    uint8_t unused_too[4];
};

ENV_FN void minatar_breakout_shape(const struct minatar_breakout_settings *settings, struct env_shape *ret_shape)
{
    ret_shape->obs_size = MINATAR_SIDE * MINATAR_SIDE * MINATAR_PLANES;
    ret_shape->channels = MINATAR_PLANES;
    ret_shape->height = MINATAR_SIDE;
    ret_shape->width = MINATAR_SIDE;
    ret_shape->u8 = true;
    ret_shape->byte_scale = 1.0f;
    ret_shape->head_sizes[0] = 3;
    ret_shape->may_truncate = true;
}

ENV_FN void minatar_breakout_wall(struct minatar_breakout_state *state)
{
    for (int row = 1; row <= 3; row++)
        for (int col = 0; col < MINATAR_SIDE; col++)
            state->bricks[row][col] = 1;
}

ENV_FN void minatar_breakout_reset(const struct minatar_breakout_settings *settings,
                                   struct minatar_breakout_state *state)
{
    bool right = rng_below(&state->rng, 2) != 0;

    state->x = state->last_x = right ? MINATAR_SIDE - 1 : 0;
    state->y = state->last_y = 3;
    state->dx = right ? -1 : 1;
    state->dy = 1;
    state->paddle = 4;
    state->last_action = 0;
    state->steps = state->score = state->through = 0;
    state->unused = 0;
    for (int row = 0; row < MINATAR_SIDE; row++)
        for (int col = 0; col < MINATAR_SIDE; col++)
            state->bricks[row][col] = 0;
    minatar_breakout_wall(state);
}

ENV_FN bool minatar_breakout_bare(const struct minatar_breakout_state *state)
{
    int n = 0;
    for (int row = 0; row < MINATAR_SIDE; row++)
        for (int col = 0; col < MINATAR_SIDE; col++)
            n += state->bricks[row][col];
    return n == 0;
}

/* The ball's step; false: it is lost. */
ENV_FN bool minatar_breakout_fly(struct minatar_breakout_state *s, float *reward)
{
    int32_t x = s->x + s->dx, y = s->y + s->dy;
    bool lost = false, into_brick = false;

    s->last_x = s->x;
    s->last_y = s->y;
    if (x < 0 || x >= MINATAR_SIDE) {
        x = x < 0 ? 0 : MINATAR_SIDE - 1;
        s->dx = -s->dx;
    }
    if (y < 0) {
        y = 0;
        s->dy = 1;
    } else if (s->bricks[y][x] != 0) {
        into_brick = true;
        if (!s->through) {
            *reward = 1.0f;
            s->score++;
            s->bricks[y][x] = 0;
            y = s->last_y;
            s->dy = -s->dy;
        }
    } else if (y == MINATAR_SIDE - 1) {
        if (minatar_breakout_bare(s))
            minatar_breakout_wall(s);
        lost = s->x != s->paddle && x != s->paddle;
        if (s->x != s->paddle && x == s->paddle)
            s->dx = -s->dx;
        if (!lost) {
            s->dy = -1;
            y = s->last_y;
        }
    }
    s->through = into_brick;
    s->x = x;
    s->y = y;
    return !lost;
}

ENV_FN void minatar_breakout_step(const struct minatar_breakout_settings *settings,
                                  struct minatar_breakout_state *state, const int32_t *actions, struct env_step *step)
{
    int32_t action = actions[0];

    if (settings->sticky > 0.0 && rng_f64(&state->rng) < settings->sticky)
        action = state->last_action;
    state->last_action = action;
    if (action == 1 && state->paddle > 0)
        state->paddle--;
    if (action == 2 && state->paddle < MINATAR_SIDE - 1)
        state->paddle++;
    step->rewards[0] = 0.0f;
    step->ended = !minatar_breakout_fly(state, &step->rewards[0]);
    state->steps++;
    step->truncated = !step->ended && state->steps >= settings->max_steps;
    step->score = (float)state->score;
    step->perf = state->score < MINATAR_FULL_SCORE ? (float)state->score / MINATAR_FULL_SCORE : 1.0f;
}

ENV_FN void minatar_breakout_observe(const struct minatar_breakout_settings *settings,
                                     const struct minatar_breakout_state *s, int agent, uint8_t *obs)
{
    for (int cell = 0; cell < MINATAR_SIDE * MINATAR_SIDE; cell++) {
        int row = cell / MINATAR_SIDE, col = cell % MINATAR_SIDE;
        obs[cell * MINATAR_PLANES] = row == MINATAR_SIDE - 1 && col == s->paddle;
        obs[cell * MINATAR_PLANES + 1] = row == s->y && col == s->x;
        obs[cell * MINATAR_PLANES + 2] = row == s->last_y && col == s->last_x;
        obs[cell * MINATAR_PLANES + 3] = s->bricks[row][col];
    }
}

ENV_GPU(minatar_breakout, env_gpu_bytes)

#ifndef __CUDACC__
/* -- what the program shows -- */
static const struct opt_def minatar_breakout_options[] = {
    OPT_ROW_FLOAT(struct minatar_breakout_settings, sticky, "0.1", 0, 1, OPT_FIXED, 0, 0, "",
                  "Probability that a decision is replaced by the one before it."),
    OPT_ROW_INT(struct minatar_breakout_settings, max_steps, "1000", 1, 1e9, OPT_FIXED, 0, 0, "steps",
                "Steps after which an episode is truncated."),
};
static const struct env_default minatar_breakout_defaults[] = {{"policy.encoder", "conv"}};
static const struct env_about minatar_breakout_about = {"MinAtar's Breakout: bricks on a 10x10 grid, seen as planes",
                                                        minatar_breakout_defaults, 1};

static inline void minatar_breakout_draw(const struct minatar_breakout_settings *settings,
                                         const struct minatar_breakout_state *s, struct env_picture *p)
{
    const double cell = 30;

    p->width = p->height = cell * MINATAR_SIDE;
    for (int row = 0; row < MINATAR_SIDE; row++)
        for (int col = 0; col < MINATAR_SIDE; col++)
            if (s->bricks[row][col] != 0)
                env_draw_rect(p, col * cell + 1, row * cell + 1, cell - 2, cell - 2,
                              (enum env_colour)(ENV_RAMP + row % 6));
    env_draw_circle(p, (s->last_x + 0.5) * cell, (s->last_y + 0.5) * cell, 0.2 * cell, ENV_FAINT);
    env_draw_circle(p, (s->x + 0.5) * cell, (s->y + 0.5) * cell, 0.4 * cell, ENV_GOAL);
    env_draw_rect(p, s->paddle * cell, (MINATAR_SIDE - 0.5) * cell, cell, 0.5 * cell, ENV_OWN);
    env_draw_text(p, 8, 20, 16, -1, "%d", (int)s->score);
}
#endif

#endif

/* for every inclusion of env_loop.h, which undefines it */
#define ENV_GAME_BYTES
