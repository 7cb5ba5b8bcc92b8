/* pong.h - two paddles and a ball, against an opponent that follows it; first to 21 points. (public)
 * Field 500x640 px, y downwards; opponent on the left, own paddle on the right, both 20x70 and standing just outside
 * the field, so that a ball that leaves the field sideways was hit or missed. Paddles move at most 8 px per frame with
 * their top in [-35, 605]. All positions are whole pixels: the state is exact in integers.
 *
 * Order within a frame: own paddle; opponent; ball; walls; sides. What the rules leave open, and what was chosen:
 *  - Every round begins with both paddles in the middle and the ball at x = 100, half height, flying right (towards the
 *    agent) with 10 px per frame and vy -1 or 0, each equally likely; nobody serves by choice.
 *  - The opponent moves its centre towards the ball's centre, where the ball is before it moves.
 *  - A ball with its edge beyond the top or bottom is put on the edge and its vy reversed.
 *  - A ball beyond a side is returned if it overlaps that paddle in y; it is put on the edge and its vx reversed.
 *  - Own hit: 3 px x paddle direction (up -1, down +1, of this decision) is added to vy, clamped to +-13; 0 becomes 3.
 *    The opponent's hit leaves vy alone.
 *  - A point ends the decision at once: frames left over are not played. Own bounce +0.1, points +1 and -1 add up.
 *
 * Observation, 8 values: opponent's and own paddle top, (y + 35) / 640 in [0, 1]; ball x / 500, y / 640; (vx + 10) /
 * 20; (vy + 13) / 26; opponent's and own points / 21. Actions: 0 stay, 1 up, 2 down (anything else: stay). score = own
 * - opponent's points, perf = own / (own + opponent's). */
#ifndef ENVS_PONG_H
#define ENVS_PONG_H

#include "envs/env.h"
#include "envs/env_math.h"

#define PONG_OBS 8
#define PONG_WIDTH 500
#define PONG_HEIGHT 640
#define PONG_PADDLE_HEIGHT 70
#define PONG_PADDLE_MIN (-PONG_PADDLE_HEIGHT / 2)
#define PONG_PADDLE_MAX (PONG_HEIGHT - PONG_PADDLE_HEIGHT / 2)
#define PONG_PADDLE_SPEED 8
#define PONG_BALL 32
#define PONG_BALL_VX 10
#define PONG_BALL_VY_MAX 13
#define PONG_SPIN 3 /* px per frame that a moving paddle adds to vy */
#define PONG_POINTS 21

struct pong_settings {
    int64_t frameskip; /* frames per decision */
};

struct pong_state {
    struct rng rng;
    int32_t ball_x, ball_y; /* top left corner */
    int32_t ball_vx, ball_vy;
    int32_t own_y, opponent_y; /* tops of the paddles */
    int32_t own_points, opponent_points;
};

ENV_FN void pong_shape(const struct pong_settings *settings, struct env_shape *ret_shape)
{
    ret_shape->obs_size = PONG_OBS;
    ret_shape->head_sizes[0] = 3;
}

ENV_FN int32_t pong_clamp(int32_t value, int32_t low, int32_t high)
{
    int32_t at_least = value < low ? low : value;
    return at_least > high ? high : at_least;
}

ENV_FN void pong_new_round(struct pong_state *state)
{
    state->ball_x = PONG_WIDTH / 5;
    state->ball_y = (PONG_HEIGHT - PONG_BALL) / 2;
    state->ball_vx = PONG_BALL_VX;
    state->ball_vy = (int32_t)rng_below(&state->rng, 2) - 1;
    state->own_y = (PONG_HEIGHT - PONG_PADDLE_HEIGHT) / 2;
    state->opponent_y = state->own_y;
}

ENV_FN void pong_reset(const struct pong_settings *settings, struct pong_state *state)
{
    state->own_points = 0;
    state->opponent_points = 0;
    pong_new_round(state);
}

/* Whether the ball at y overlaps a paddle; touching is no overlap. */
ENV_FN bool pong_covers(int32_t paddle_y, int32_t ball_y)
{
    return ball_y + PONG_BALL > paddle_y && ball_y < paddle_y + PONG_PADDLE_HEIGHT;
}

/* After a frame whose ball is beyond a side: returns it or gives the point and begins a new round. True: a point. */
ENV_FN bool pong_side(struct pong_state *state, int32_t direction, float *reward)
{
    bool own_side = state->ball_x > 0;
    if (!pong_covers(own_side ? state->own_y : state->opponent_y, state->ball_y)) {
        state->own_points += !own_side;
        state->opponent_points += own_side;
        *reward += own_side ? -1.0f : 1.0f;
        pong_new_round(state);
        return true;
    }
    state->ball_x = own_side ? PONG_WIDTH - PONG_BALL : 0;
    state->ball_vx = -state->ball_vx;
    if (own_side) {
        int32_t vy = pong_clamp(state->ball_vy + PONG_SPIN * direction, -PONG_BALL_VY_MAX, PONG_BALL_VY_MAX);
        state->ball_vy = vy == 0 ? PONG_SPIN : vy;
        *reward += 0.1f;
    }
    return false;
}

ENV_FN void pong_step(const struct pong_settings *settings, struct pong_state *state, const int32_t *actions,
                      struct env_step *step)
{
    const int32_t bottom = PONG_HEIGHT - PONG_BALL, centre = (PONG_PADDLE_HEIGHT - PONG_BALL) / 2;
    int32_t direction = (actions[0] == 2) - (actions[0] == 1);
    float reward = 0.0f;
    for (int64_t frame = 0; frame < settings->frameskip; frame++) {
        state->own_y = pong_clamp(state->own_y + PONG_PADDLE_SPEED * direction, PONG_PADDLE_MIN, PONG_PADDLE_MAX);
        /* The ball is always inside, so following it needs no clamp to [-35, 605]. */
        state->opponent_y +=
            pong_clamp(state->ball_y - centre - state->opponent_y, -PONG_PADDLE_SPEED, PONG_PADDLE_SPEED);
        state->ball_x += state->ball_vx;
        int32_t y = state->ball_y + state->ball_vy, inside = pong_clamp(y, 0, bottom);
        state->ball_vy = y == inside ? state->ball_vy : -state->ball_vy;
        state->ball_y = inside;
        if (state->ball_x < 0 || state->ball_x > PONG_WIDTH - PONG_BALL)
            if (pong_side(state, direction, &reward))
                break;
    }
    float own = (float)state->own_points, opponent = (float)state->opponent_points;
    step->rewards[0] = reward;
    step->ended = state->own_points == PONG_POINTS || state->opponent_points == PONG_POINTS;
    step->score = own - opponent;
    step->perf = own + opponent > 0.0f ? own / (own + opponent) : 0.0f;
}

ENV_OBS_FN void pong_observe(const struct pong_settings *settings, const struct pong_state *state, int agent,
                             env_obs *obs)
{
    const float range = (float)(PONG_PADDLE_MAX - PONG_PADDLE_MIN);
    obs[0] = env_div_const((float)(state->opponent_y - PONG_PADDLE_MIN), range);
    obs[1] = env_div_const((float)(state->own_y - PONG_PADDLE_MIN), range);
    obs[2] = env_div_const((float)state->ball_x, (float)PONG_WIDTH);
    obs[3] = env_div_const((float)state->ball_y, (float)PONG_HEIGHT);
    obs[4] = env_div_const((float)(state->ball_vx + PONG_BALL_VX), 2.0f * PONG_BALL_VX);
    obs[5] = env_div_const((float)(state->ball_vy + PONG_BALL_VY_MAX), 2.0f * PONG_BALL_VY_MAX);
    obs[6] = env_div_const((float)state->opponent_points, (float)PONG_POINTS);
    obs[7] = env_div_const((float)state->own_points, (float)PONG_POINTS);
}

ENV_GPU(pong, env_gpu_rows<PONG_OBS>)

#ifndef __CUDACC__
/* -- what the program shows -- */
static const struct opt_def pong_options[] = {
    OPT_ROW_INT(struct pong_settings, frameskip, "8", 1, 60, OPT_FIXED, 0, 0, "frames", "Frames played per decision."),
};
static const struct env_about pong_about = {"return the ball against a following opponent, first to 21", NULL, 0};

static inline void pong_draw(const struct pong_settings *settings, const struct pong_state *s, struct env_picture *p)
{
    const double paddle = 20;

    p->width = PONG_WIDTH + 2 * paddle;
    p->height = PONG_HEIGHT;
    for (int i = 0; i < 16; i++)
        env_draw_line(p, p->width / 2, i * 40.0 + 10, p->width / 2, i * 40.0 + 30, 2, ENV_FAINT);
    env_draw_text(p, p->width / 2 - 30, 50, 36, 1, "%d", (int)s->opponent_points);
    env_draw_text(p, p->width / 2 + 30, 50, 36, -1, "%d", (int)s->own_points);
    env_draw_rect(p, 0, s->opponent_y, paddle, PONG_PADDLE_HEIGHT, ENV_OPPONENT);
    env_draw_rect(p, paddle + PONG_WIDTH, s->own_y, paddle, PONG_PADDLE_HEIGHT, ENV_OWN);
    env_draw_rect(p, paddle + s->ball_x, s->ball_y, PONG_BALL, PONG_BALL, ENV_GOAL);
}
#endif

#endif
