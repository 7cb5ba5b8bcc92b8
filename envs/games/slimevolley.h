/* slimevolley.h - Slime Volleyball against a fixed opponent, by the rules of slimevolleygym. (public)
 * The field is 48 wide with its middle at 0, the ground at a height of 1.5, a ceiling at 48; a fence of width 1 and
 * height 3.5 stands in the middle, with a round top. A player is a half disc of radius 1.5: 17.5 a second to either
 * side, a jump begins at 13.5 from the ground; the ball is a disc of radius 0.5 and has at most 22.5. Gravity is
 * 29.4; a decision is 1/30 s: both players, then the ball, then bounces off players and fence, then walls and
 * ground. A bounce is elastic, off a player relative to its velocity. Where the ball touches the ground the player
 * of that side loses one of 5 lives, and the ball starts again over the fence, after 30 decisions, at a velocity of
 * -20..20 to the side and 10..25 up. A player without a life has lost; after max_steps the episode is cut. The agent
 * plays on the right, the opponent on the left.
 * The opponent always jumps, and runs to where it has the ball in front of it: 0.6 further from the fence than the
 * ball will be in one decision, but for a dead band of 0.15.
 * Observation, as the agent sees it from the right, each / 10: x, y, velocity x and y of the agent, of the ball, and
 * of the opponent as it sees itself. Actions, 0 or 1 each (anything else is 0): to the fence, away from it (both:
 * stay), jump. Reward: 1 when the opponent loses a life, -1 when the agent does. score = difference of lives, perf =
 * (score + 5) / 10. */
#ifndef ENVS_SLIMEVOLLEY_H
#define ENVS_SLIMEVOLLEY_H

#include "envs/env.h"

#define SLIMEVOLLEY_HALF 24.0f /* of the field's width */
#define SLIMEVOLLEY_CEILING 48.0f
#define SLIMEVOLLEY_GROUND 1.5f
#define SLIMEVOLLEY_FENCE 0.5f /* half its width */
#define SLIMEVOLLEY_FENCE_HEIGHT 3.5f
#define SLIMEVOLLEY_RUN 17.5f
#define SLIMEVOLLEY_JUMP 13.5f
#define SLIMEVOLLEY_BALL_SPEED 22.5f
#define SLIMEVOLLEY_GRAVITY (-29.4f)
#define SLIMEVOLLEY_TICK (1.0f / 30.0f)
#define SLIMEVOLLEY_NUDGE (0.1f / 30.0f) /* what is put back stands so far from the edge */
#define SLIMEVOLLEY_PLAYER 1.5f /* radius */
#define SLIMEVOLLEY_BALL 0.5f
#define SLIMEVOLLEY_DELAY 30
#define SLIMEVOLLEY_LIVES 5

struct slimevolley_settings {
    int64_t max_steps;
};

struct slimevolley_body {
    float x, y, vx, vy;
};

enum { SLIMEVOLLEY_AGENT, SLIMEVOLLEY_OPPONENT };

struct slimevolley_state {
    struct rng rng;
    struct slimevolley_body players[2], ball;
    int32_t lives[2];
    int32_t delay; /* decisions until the ball flies */
    int32_t steps;
};

ENV_FN void slimevolley_shape(const struct slimevolley_settings *settings, struct env_shape *ret_shape)
{
    ret_shape->obs_size = 12;
    ret_shape->n_heads = 3;
    for (int h = 0; h < 3; h++)
        ret_shape->head_sizes[h] = 2;
    ret_shape->may_truncate = true;
}

ENV_FN void slimevolley_serve(struct slimevolley_state *state)
{
    state->ball.x = 0.0f;
    state->ball.y = 12.0f;
    state->ball.vx = 40.0f * rng_f32(&state->rng) - 20.0f;
    state->ball.vy = 15.0f * rng_f32(&state->rng) + 10.0f;
    state->delay = SLIMEVOLLEY_DELAY;
}

ENV_FN void slimevolley_reset(const struct slimevolley_settings *settings, struct slimevolley_state *state)
{
    for (int p = 0; p < 2; p++) {
        state->players[p].x = p == SLIMEVOLLEY_AGENT ? 12.0f : -12.0f;
        state->players[p].y = SLIMEVOLLEY_GROUND;
        state->players[p].vx = state->players[p].vy = 0.0f;
        state->lives[p] = SLIMEVOLLEY_LIVES;
    }
    state->steps = 0;
    slimevolley_serve(state);
}

/* run: -1 to the fence, 1 away from it, 0. side: 1 right, -1 left. */
ENV_FN void slimevolley_player_move(struct slimevolley_body *p, float run, bool jump, float side)
{
    const float nearest = SLIMEVOLLEY_FENCE + SLIMEVOLLEY_PLAYER, farthest = SLIMEVOLLEY_HALF - SLIMEVOLLEY_PLAYER;

    p->vy += SLIMEVOLLEY_GRAVITY * SLIMEVOLLEY_TICK;
    if (p->y <= SLIMEVOLLEY_GROUND + SLIMEVOLLEY_NUDGE)
        p->vy = jump ? SLIMEVOLLEY_JUMP : 0.0f;
    p->vx = run * SLIMEVOLLEY_RUN * side;
    p->x += p->vx * SLIMEVOLLEY_TICK;
    p->y += p->vy * SLIMEVOLLEY_TICK;
    if (p->y <= SLIMEVOLLEY_GROUND) {
        p->y = SLIMEVOLLEY_GROUND;
        p->vy = 0.0f;
    }
    if (p->x * side <= nearest || p->x * side >= farthest) {
        p->x = side * (p->x * side <= nearest ? nearest : farthest);
        p->vx = 0.0f;
    }
}

ENV_FN float slimevolley_opponent(const struct slimevolley_state *s)
{
    const struct slimevolley_body *p = &s->players[SLIMEVOLLEY_OPPONENT];
    const float away = (p->x - s->ball.x - s->ball.vx * SLIMEVOLLEY_TICK) + 0.6f; /* > 0: too near the fence */

    return away > 0.15f ? 1.0f : away < -0.15f ? -1.0f : 0.0f;
}

/* The ball off a disc, where they overlap: it is moved out, then reflected. */
ENV_FN void slimevolley_bounce(struct slimevolley_body *ball, const struct slimevolley_body *disc, float radius)
{
    const float reach = SLIMEVOLLEY_BALL + radius;
    float dx = ball->x - disc->x, dy = ball->y - disc->y, square = dx * dx + dy * dy;

    if (square >= reach * reach)
        return;
    const float distance = sqrtf(square);
    const float nx = distance > 0.0f ? dx / distance : 0.0f, ny = distance > 0.0f ? dy / distance : 1.0f;
    while (square < reach * reach) { /* 0.1 at a time */
        ball->x += 0.1f * nx;
        ball->y += 0.1f * ny;
        dx = ball->x - disc->x;
        dy = ball->y - disc->y;
        square = dx * dx + dy * dy;
    }
    const float ux = ball->vx - disc->vx, uy = ball->vy - disc->vy, along = 2.0f * (ux * nx + uy * ny);
    ball->vx = ux - nx * along + disc->vx;
    ball->vy = uy - ny * along + disc->vy;
}

ENV_FN void slimevolley_fly(struct slimevolley_body *ball)
{
    ball->vy += SLIMEVOLLEY_GRAVITY * SLIMEVOLLEY_TICK;
    const float square = ball->vx * ball->vx + ball->vy * ball->vy;
    if (square > SLIMEVOLLEY_BALL_SPEED * SLIMEVOLLEY_BALL_SPEED) {
        const float speed = sqrtf(square);
        ball->vx = ball->vx / speed * SLIMEVOLLEY_BALL_SPEED;
        ball->vy = ball->vy / speed * SLIMEVOLLEY_BALL_SPEED;
    }
    ball->x += ball->vx * SLIMEVOLLEY_TICK;
    ball->y += ball->vy * SLIMEVOLLEY_TICK;
}

/* Walls, ceiling, the fence's sides, ground; last_x: where the ball was before it moved. On which side it touches the
 * ground: 1 right, -1 left, 0 neither. */
ENV_FN int slimevolley_edges(struct slimevolley_body *ball, float last_x)
{
    const float wall = SLIMEVOLLEY_HALF - SLIMEVOLLEY_BALL, fence = SLIMEVOLLEY_FENCE + SLIMEVOLLEY_BALL;

    if (ball->x <= -wall || ball->x >= wall) {
        ball->vx = -ball->vx;
        ball->x = ball->x <= -wall ? -wall + SLIMEVOLLEY_NUDGE : wall - SLIMEVOLLEY_NUDGE;
    }
    if (ball->y <= SLIMEVOLLEY_GROUND + SLIMEVOLLEY_BALL)
        return ball->x <= 0.0f ? -1 : 1;
    if (ball->y >= SLIMEVOLLEY_CEILING - SLIMEVOLLEY_BALL) {
        ball->vy = -ball->vy;
        ball->y = SLIMEVOLLEY_CEILING - SLIMEVOLLEY_BALL - SLIMEVOLLEY_NUDGE;
    }
    if (ball->y <= SLIMEVOLLEY_FENCE_HEIGHT && ball->x <= fence && last_x > fence) {
        ball->vx = -ball->vx;
        ball->x = fence + SLIMEVOLLEY_NUDGE;
    }
    if (ball->y <= SLIMEVOLLEY_FENCE_HEIGHT && ball->x >= -fence && last_x < -fence) {
        ball->vx = -ball->vx;
        ball->x = -fence - SLIMEVOLLEY_NUDGE;
    }
    return 0;
}

ENV_FN void slimevolley_step(const struct slimevolley_settings *settings, struct slimevolley_state *s,
                             const int32_t *actions, struct env_step *step)
{
    const float run = (float)((actions[1] == 1) - (actions[0] == 1)), against = slimevolley_opponent(s);
    float last_x = s->ball.x;
    struct slimevolley_body top;
    int lost;

    top.x = top.vx = top.vy = 0.0f;
    top.y = SLIMEVOLLEY_FENCE_HEIGHT;
    slimevolley_player_move(&s->players[SLIMEVOLLEY_OPPONENT], against, true, -1.0f);
    slimevolley_player_move(&s->players[SLIMEVOLLEY_AGENT], run, actions[2] == 1, 1.0f);
    if (s->delay > 0)
        s->delay--;
    else
        slimevolley_fly(&s->ball);
    slimevolley_bounce(&s->ball, &s->players[SLIMEVOLLEY_OPPONENT], SLIMEVOLLEY_PLAYER);
    slimevolley_bounce(&s->ball, &s->players[SLIMEVOLLEY_AGENT], SLIMEVOLLEY_PLAYER);
    slimevolley_bounce(&s->ball, &top, SLIMEVOLLEY_FENCE);
    lost = slimevolley_edges(&s->ball, last_x);
    step->rewards[0] = (float)-lost;
    if (lost != 0) {
        s->lives[lost > 0 ? SLIMEVOLLEY_AGENT : SLIMEVOLLEY_OPPONENT]--;
        slimevolley_serve(s);
    }
    s->steps++;
    step->ended = s->lives[SLIMEVOLLEY_AGENT] == 0 || s->lives[SLIMEVOLLEY_OPPONENT] == 0;
    step->truncated = !step->ended && s->steps >= settings->max_steps;
    step->score = (float)(s->lives[SLIMEVOLLEY_AGENT] - s->lives[SLIMEVOLLEY_OPPONENT]);
    step->perf = (step->score + (float)SLIMEVOLLEY_LIVES) / (float)(2 * SLIMEVOLLEY_LIVES);
}

ENV_OBS_FN void slimevolley_observe(const struct slimevolley_settings *settings, const struct slimevolley_state *s,
                                    int agent, env_obs *obs)
{
    const struct slimevolley_body *const bodies[3] = {&s->players[SLIMEVOLLEY_AGENT], &s->ball,
                                                      &s->players[SLIMEVOLLEY_OPPONENT]};
    ENV_UNROLL
    for (int b = 0; b < 3; b++) {
        const float side = b == 2 ? -1.0f : 1.0f;
        obs[4 * b] = bodies[b]->x * side * 0.1f;
        obs[4 * b + 1] = bodies[b]->y * 0.1f;
        obs[4 * b + 2] = bodies[b]->vx * side * 0.1f;
        obs[4 * b + 3] = bodies[b]->vy * 0.1f;
    }
}

ENV_GPU(slimevolley, env_gpu_rows<12>)

#ifndef __CUDACC__
/* -- what the program shows -- */
static const struct opt_def slimevolley_options[] = {
    OPT_ROW_INT(struct slimevolley_settings, max_steps, "3000", 1, 1e9, OPT_FIXED, 0, 0, "steps",
                "Steps after which an episode is truncated."),
};
static const struct env_about slimevolley_about = {"Slime Volleyball against a fixed opponent", NULL, 0};

static inline void slimevolley_draw(const struct slimevolley_settings *settings, const struct slimevolley_state *s,
                                    struct env_picture *p)
{
    const double unit = 12, ground = SLIMEVOLLEY_GROUND * unit;

    p->width = 48 * unit;
    p->height = 24 * unit; /* the ball may be above it */
    env_draw_rect(p, 0, p->height - ground, p->width, ground, ENV_FAINT);
    env_draw_rect(p, p->width / 2 - unit / 2, p->height - SLIMEVOLLEY_FENCE_HEIGHT * unit, unit,
                  SLIMEVOLLEY_FENCE_HEIGHT * unit - ground, ENV_FOREGROUND);
    for (int i = 0; i < 2; i++)
        env_draw_circle(p, p->width / 2 + (double)s->players[i].x * unit, p->height - (double)s->players[i].y * unit,
                        SLIMEVOLLEY_PLAYER * unit, i == SLIMEVOLLEY_AGENT ? ENV_OWN : ENV_OPPONENT);
    env_draw_circle(p, p->width / 2 + (double)s->ball.x * unit, p->height - (double)s->ball.y * unit,
                    SLIMEVOLLEY_BALL * unit, ENV_GOAL);
    env_draw_text(p, 8, 20, 16, -1, "%d lives", (int)s->lives[SLIMEVOLLEY_OPPONENT]);
    env_draw_text(p, p->width - 8, 20, 16, 1, "%d lives", (int)s->lives[SLIMEVOLLEY_AGENT]);
}
#endif

#endif
