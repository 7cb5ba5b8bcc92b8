/* breakout_steep.h - Breakout by the rules of PufferLib's game, so that fronts.py can play it on a GPU:
 * trawl env build breakout_steep.h
 *
 * The program's own breakout with these differences. Beyond the paddle's ends the angle grows, to 68 degrees, and to
 * 91 once the paddle is short: a ball may fly almost flat, out of reach, for 20,000 decisions and more until it lands.
 * A frame has one contact: the ball stops there, and flies on in the next frame; on the paddle it turns where it was.
 * The brick that is touched first is hit, of several the one that the ball covers most. A brick of the upper three rows
 * makes the ball fast at the next touch of the paddle, not at once. The paddle shrinks to its left end, and rests while
 * a ball is launched. There the frames of a decision that are left when an episode ends belong to the next one; here
 * they are dropped.
 * Observation, actions, reward and scores are those of the program's game. */
#ifndef BREAKOUT_STEEP_H
#define BREAKOUT_STEEP_H

#include "trawl_env.h"

#define STEEP_ROWS 6
#define STEEP_COLS 18
#define STEEP_OBS (10 + STEEP_ROWS * STEEP_COLS)
#define STEEP_WIDTH 576.0f
#define STEEP_HEIGHT 330.0f
#define STEEP_BALL 32.0f
#define STEEP_TOP 50.0f /* of the bricks */
#define STEEP_BRICK_W 32.0f
#define STEEP_BRICK_H 12.0f
#define STEEP_PADDLE_Y (STEEP_HEIGHT - 18.0f)
#define STEEP_PADDLE_W 62.0f
#define STEEP_FAST 448.0f /* px/s */
#define STEEP_WALL 432 /* points */

struct breakout_steep_settings {
    int64_t frameskip;
};

struct breakout_steep_state {
    struct rng rng;
    float paddle_x, paddle_w, x, y, vx, vy, speed; /* the ball's upper left corner, px and px per frame; speed: px/s */
    int32_t fired, balls, hits, points;
    uint32_t gone[STEEP_ROWS]; /* bit c: the brick of column c is */
};

ENV_FN void breakout_steep_shape(const struct breakout_steep_settings *settings, struct env_shape *ret_shape)
{
    ret_shape->obs_size = STEEP_OBS;
    ret_shape->n_agents = 1;
    ret_shape->n_heads = 1;
    ret_shape->head_sizes[0] = 3;
}

ENV_FN void breakout_steep_ball(struct breakout_steep_state *s)
{
    s->paddle_w = STEEP_PADDLE_W;
    s->paddle_x = (STEEP_WIDTH - STEEP_PADDLE_W) / 2.0f;
    s->x = (STEEP_WIDTH - STEEP_BALL) / 2.0f;
    s->y = STEEP_HEIGHT / 2.0f - 30.0f;
    s->vx = s->vy = 0.0f;
    s->speed = 256.0f;
    s->fired = s->hits = 0;
}

ENV_FN void breakout_steep_reset(const struct breakout_steep_settings *settings, struct breakout_steep_state *s)
{
    s->balls = 5;
    s->points = 0;
    for (int row = 0; row < STEEP_ROWS; row++)
        s->gone[row] = 0;
    breakout_steep_ball(s);
}

/* The first contact of a frame: when (in frames), how much of the ball it takes, where the ball is then, with what. */
enum { STEEP_AIR = -4, STEEP_SIDE, STEEP_BACK, STEEP_PADDLE }; /* or a brick's number */
struct breakout_steep_touch {
    float when, share, x, y;
    bool turns_x;
    int with;
};

/* Takes what was found, where it is in this frame and before `touch`. */
ENV_FN void breakout_steep_earlier(struct breakout_steep_touch *touch, struct breakout_steep_touch found)
{
    if (found.share > 0.0f && found.when > 0.0f && found.when <= 1.0f &&
        (found.when < touch->when || (found.when == touch->when && found.share > touch->share)))
        *touch = found;
}

/* Does the ball's left or right edge (at `edge`) reach the vertical line at x from `top`, `length` long, before what
 * was found until now? */
ENV_FN void breakout_steep_upright(const struct breakout_steep_state *s, float x, float top, float length, float edge,
                                   int with, struct breakout_steep_touch *touch)
{
    const float when = (x - edge) / s->vx, y = s->y + s->vy * when;
    const float low = top + length, below = s->y + STEEP_BALL + s->vy * when;
    const float share = (low < below ? low : below) - (top > y ? top : y);

    breakout_steep_earlier(
        touch, (struct breakout_steep_touch){when, share, s->vx > 0.0f ? x - STEEP_BALL : x, y, true, with});
}

/* The same for the upper or lower edge and a horizontal line. */
ENV_FN void breakout_steep_level(const struct breakout_steep_state *s, float y, float left, float length, float edge,
                                 int with, struct breakout_steep_touch *touch)
{
    const float when = (y - edge) / s->vy, x = s->x + s->vx * when;
    const float right = left + length, beyond = s->x + STEEP_BALL + s->vx * when;
    const float share = (right < beyond ? right : beyond) - (left > x ? left : x);

    breakout_steep_earlier(
        touch, (struct breakout_steep_touch){when, share, x, s->vy > 0.0f ? y - STEEP_BALL : y, false, with});
}

ENV_FN void breakout_steep_bricks(const struct breakout_steep_state *s, struct breakout_steep_touch *touch)
{
    const float x = s->vx < 0.0f ? s->x + s->vx : s->x, y = s->vy < 0.0f ? s->y + s->vy : s->y;
    const float x_end = s->vx > 0.0f ? s->x + STEEP_BALL + s->vx : s->x + STEEP_BALL;
    const float y_end = s->vy > 0.0f ? s->y + STEEP_BALL + s->vy : s->y + STEEP_BALL;

    if (y >= STEEP_TOP + STEEP_ROWS * STEEP_BRICK_H || y_end < STEEP_TOP)
        return;
    const int first = x > 0.0f ? (int)(x / STEEP_BRICK_W) : 0, last = (int)(x_end / STEEP_BRICK_W);
    const int upper = y > STEEP_TOP ? (int)((y - STEEP_TOP) / STEEP_BRICK_H) : 0;
    const int lower = (int)((y_end - STEEP_TOP) / STEEP_BRICK_H);
    for (int row = upper; row <= lower && row < STEEP_ROWS; row++)
        for (int col = first; col <= last && col < STEEP_COLS; col++) {
            const float left = STEEP_BRICK_W * (float)col, top = STEEP_TOP + STEEP_BRICK_H * (float)row;
            const int with = row * STEEP_COLS + col;
            if ((s->gone[row] >> col & 1u) != 0)
                continue;
            if (s->vx > 0.0f)
                breakout_steep_upright(s, left, top, STEEP_BRICK_H, s->x + STEEP_BALL, with, touch);
            if (s->vx < 0.0f)
                breakout_steep_upright(s, left + STEEP_BRICK_W, top, STEEP_BRICK_H, s->x, with, touch);
            if (s->vy > 0.0f)
                breakout_steep_level(s, top, left, STEEP_BRICK_W, s->y + STEEP_BALL, with, touch);
            if (s->vy < 0.0f)
                breakout_steep_level(s, top + STEEP_BRICK_H, left, STEEP_BRICK_W, s->y, with, touch);
        }
}

ENV_FN void breakout_steep_return(struct breakout_steep_state *s)
{
    const float quarter = (float)(ENV_PI / 4.0), at = (s->x + STEEP_BALL / 2.0f - s->paddle_x) / s->paddle_w;
    double sine, cosine;

    env_sincos_any((double)(-quarter + at * 2.0f * quarter), &sine, &cosine);
    s->vx = (float)sine * s->speed / 60.0f;
    s->vy = -(float)cosine * s->speed / 60.0f;
    s->hits++;
    if (s->hits % 4 == 0 && s->speed < STEEP_FAST)
        s->speed += 64.0f;
    for (int row = 0; row < STEEP_ROWS && s->points == STEEP_WALL; row++)
        s->gone[row] = 0;
}

/* Should rounding have put the ball outside, it comes back. */
ENV_FN void breakout_steep_inside(struct breakout_steep_state *s)
{
    const float back = STEEP_FAST * 1.1f / 60.0f;

    if (s->x < 0.0f)
        s->x += back;
    if (s->x > STEEP_WIDTH)
        s->x -= back;
    if (s->y < 0.0f)
        s->y += back;
}

ENV_FN void breakout_steep_fly(struct breakout_steep_state *s)
{
    struct breakout_steep_touch touch = {2.0f, -1.0f, 0.0f, 0.0f, false, STEEP_AIR};

    breakout_steep_inside(s);
    breakout_steep_bricks(s, &touch);
    if (s->vx < 0.0f)
        breakout_steep_upright(s, 0.0f, 0.0f, STEEP_HEIGHT, s->x, STEEP_SIDE, &touch);
    if (s->vx > 0.0f)
        breakout_steep_upright(s, STEEP_WIDTH, 0.0f, STEEP_HEIGHT, s->x + STEEP_BALL, STEEP_SIDE, &touch);
    if (s->vy < 0.0f)
        breakout_steep_level(s, 0.0f, 0.0f, STEEP_WIDTH, s->y, STEEP_BACK, &touch);
    if (s->y + STEEP_BALL + s->vy >= STEEP_PADDLE_Y)
        breakout_steep_level(s, STEEP_PADDLE_Y, s->paddle_x, s->paddle_w, s->y + STEEP_BALL, STEEP_PADDLE, &touch);

    if (touch.with == STEEP_PADDLE) {
        breakout_steep_return(s);
        return;
    }
    if (touch.with == STEEP_AIR) {
        s->x += s->vx;
        s->y += s->vy;
        return;
    }
    s->x = touch.x;
    s->y = touch.y;
    if (touch.turns_x)
        s->vx = -s->vx;
    else
        s->vy = -s->vy;
    if (touch.with == STEEP_BACK)
        s->paddle_w = STEEP_PADDLE_W / 2.0f;
    if (touch.with >= 0) {
        const int row = touch.with / STEEP_COLS;
        s->gone[row] |= 1u << touch.with % STEEP_COLS;
        s->points += 7 - 3 * (row / 2);
        if (row < 3)
            s->speed = STEEP_FAST;
    }
}

ENV_FN void breakout_steep_frame(struct breakout_steep_state *s, float move)
{
    if (s->fired == 0) {
        s->fired = 1;
        s->vx = (rng_below(&s->rng, 2) != 0 ? 0.82298386f : -0.82298386f) * s->speed / 60.0f; /* pi / 3.25 */
        s->vy = 0.56806475f * s->speed / 60.0f;
        move = 0.0f;
    }
    s->paddle_x += move * 620.0f / 60.0f;
    if (s->paddle_x <= 0.0f)
        s->paddle_x = 0.0f;
    else if (s->paddle_x > STEEP_WIDTH - s->paddle_w)
        s->paddle_x = STEEP_WIDTH - s->paddle_w;
    breakout_steep_fly(s);
    if (s->y >= STEEP_PADDLE_Y + 8.0f) {
        s->balls--;
        if (s->balls >= 0)
            breakout_steep_ball(s);
    }
}

ENV_FN void breakout_steep_step(const struct breakout_steep_settings *settings, struct breakout_steep_state *s,
                                const int32_t *actions, struct env_step *step)
{
    const int32_t before = s->points;
    const float move = (float)((actions[0] == 2) - (actions[0] == 1));

    for (int64_t frame = 0; frame < settings->frameskip && !step->ended; frame++) {
        breakout_steep_frame(s, move);
        step->ended = s->balls < 0 || s->points == 2 * STEEP_WALL;
    }
    step->rewards[0] = (float)(s->points - before);
    step->score = (float)s->points;
    step->perf = (float)s->points / (2.0f * STEEP_WALL);
}

ENV_OBS_FN void breakout_steep_observe(const struct breakout_steep_settings *settings,
                                       const struct breakout_steep_state *s, int agent, env_obs *obs)
{
    obs[0] = s->paddle_x / STEEP_WIDTH;
    obs[1] = STEEP_PADDLE_Y / STEEP_HEIGHT;
    obs[2] = s->x / STEEP_WIDTH;
    obs[3] = s->y / STEEP_HEIGHT;
    obs[4] = s->vx / 512.0f;
    obs[5] = s->vy / 512.0f;
    obs[6] = (float)s->fired / 5.0f;
    obs[7] = (float)s->points / 864.0f;
    obs[8] = (float)s->balls / 5.0f;
    obs[9] = s->paddle_w / STEEP_PADDLE_W;
    for (int row = 0; row < STEEP_ROWS; row++)
        for (int col = 0; col < STEEP_COLS; col++)
            obs[10 + row * STEEP_COLS + col] = (float)(s->gone[row] >> col & 1u);
}

ENV_GPU(breakout_steep, env_gpu_rows<STEEP_OBS>)

#ifndef __CUDACC__
/* Bricks give up to 7 points: clipped, every brick is worth the same to the learner. */
static const struct env_default breakout_steep_defaults[] = {{"train.reward_clip", "1"}};
static const struct opt_def breakout_steep_options[] = {
    OPT_ROW_INT(struct breakout_steep_settings, frameskip, "4", 1, 60, OPT_FIXED, 0, 0, "frames",
                "Frames of 1/60 s played per decision."),
};
static const struct env_about breakout_steep_about = {"breakout whose paddle returns steeper balls at its ends",
                                                      breakout_steep_defaults, 1};

static inline void breakout_steep_draw(const struct breakout_steep_settings *settings,
                                       const struct breakout_steep_state *s, struct env_picture *p)
{
    p->width = STEEP_WIDTH;
    p->height = STEEP_HEIGHT;
    for (int brick = 0; brick < STEEP_ROWS * STEEP_COLS; brick++)
        if ((s->gone[brick / STEEP_COLS] >> brick % STEEP_COLS & 1u) == 0)
            env_draw_rect(p, brick % STEEP_COLS * 32.0 + 1, 51.0 + brick / STEEP_COLS * 12, 30, 10,
                          (enum env_colour)(ENV_RAMP + brick / STEEP_COLS));
    env_draw_rect(p, (double)s->paddle_x, (double)STEEP_PADDLE_Y, (double)s->paddle_w, 8, ENV_OWN);
    env_draw_rect(p, (double)s->x, (double)s->y, (double)STEEP_BALL, (double)STEEP_BALL, ENV_GOAL);
    env_draw_text(p, 8, 30, 20, -1, "%d points", (int)s->points);
}
#endif

#endif
