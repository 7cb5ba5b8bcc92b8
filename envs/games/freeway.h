/* freeway.h - Freeway: a chicken crosses ten lanes of cars as often as it can in 136 seconds. (public)
 * The field is 1216x720 px, y downwards; ten lanes of 64 px lie from y = 680 (lane 0) up to y = 40. The game runs at
 * 60 frames a second, and a decision is held for `frameskip` frames. The chicken is 64x64, stands at x = 304, begins
 * with its middle at y = 688 and moves a 210th of the height a frame. Cars are 64x40, trucks 128x40, in the middle
 * of their lane; those of lanes 0 to 4 drive right, the others left, and a car that has left on one side comes in
 * again on the other. In a frame the chicken moves, and is hit where it overlaps a car: it cannot move for 40
 * frames, in which it is pushed back by one and a half lanes, and cannot be hit. With its middle past the end of the
 * next lane that it has not reached in this crossing it gets 0.1; past the last lane 1 more, and it begins again at
 * the bottom. A hit costs 0.01. Then the cars move.
 * Eight levels, by Atari's eight games: four kinds of traffic, from 4 on with speeds that change at random every 360
 * frames, each lane's by one step at most and two from its first. A step is a factor of 1.35 from 1/13 of the width
 * a second. Cars of a lane begin at a random place. level -1: each episode has a random one.
 * Observation: chicken's y / 720, lanes reached / 10, crossings / what the level's good player has, 1 while it is
 * pushed back, share of the time that is left; for each lane its speed, in widths a second, negative to the left,
 * and x / 1216 of its three cars, 0 for none, and 1 where they are trucks. Actions: 0 stay, 1 up, 2 down (anything
 * else stays). score = crossings, perf = crossings / those of a good player (25, 20, 18, 20, 25, 18, 15, 18 by
 * level), at most 1. */
#ifndef ENVS_FREEWAY_H
#define ENVS_FREEWAY_H

#include "envs/env.h"

#define FREEWAY_WIDTH 1216.0f
#define FREEWAY_HEIGHT 720.0f
#define FREEWAY_LANES 10
#define FREEWAY_CARS 3 /* of a lane, at most */
#define FREEWAY_LANE 64.0f
#define FREEWAY_ROAD 680.0f /* where lane 0 begins */
#define FREEWAY_PLAYER_X 304.0f
#define FREEWAY_PLAYER 32.0f /* half its side */
#define FREEWAY_CAR 20.0f /* half a car's height */
#define FREEWAY_STUNNED 40
#define FREEWAY_LANE_OBS (FREEWAY_CARS + 2)
#define FREEWAY_OBS (5 + FREEWAY_LANES * FREEWAY_LANE_OBS)

struct freeway_settings {
    int64_t frameskip, level, max_steps;
};

struct freeway_state {
    struct rng rng;
    float y;
    int32_t reached; /* lanes of this crossing */
    int32_t crossings;
    int32_t stunned; /* frames that are left */
    int32_t steps, frame, level;
    float cars[FREEWAY_LANES][FREEWAY_CARS]; /* x of their middles */
    int8_t speeds[FREEWAY_LANES]; /* steps, 0..5 */
    uint8_t unused[2]; /* no padding: whole states compare as bytes */
};

ENV_FN void freeway_shape(const struct freeway_settings *settings, struct env_shape *ret_shape)
{
    ret_shape->obs_size = FREEWAY_OBS;
    ret_shape->head_sizes[0] = 3;
}

/* ---- the levels: a decimal digit for each lane, lane 0 first ---- */

ENV_FN int freeway_digit(uint64_t digits, int lane)
{
    for (int i = lane; i < FREEWAY_LANES - 1; i++)
        digits /= 10;
    return (int)(digits % 10);
}

ENV_FN int freeway_n_cars(int level, int lane)
{
    switch (level % 4) {
    case 1:
        return freeway_digit(1223212322ull, lane);
    case 2:
        return freeway_digit(3313113131ull, lane);
    default:
        return 1;
    }
}

ENV_FN bool freeway_is_truck(int level, int lane)
{
    return level % 4 == 3 || (level % 4 == 1 && lane == 5) || (level % 4 == 2 && lane == 4);
}

/* From the first car of a lane to car `car`, as a share of the width. */
ENV_FN float freeway_gap(int level, int lane, int car)
{
    const int tenths = level % 4 == 2 ? 2 * car : car == 2 ? 2 : car == 1 ? freeway_digit(121404121ull, lane) : 0;
    return (float)tenths / 10.0f;
}

ENV_FN int freeway_first_speed(int level, int lane)
{
    const uint64_t steps = level % 4 == 0 ? 123443210ull : level % 4 == 3 ? 5424554245ull : 134554310ull;
    return freeway_digit(steps, lane);
}

ENV_FN int freeway_good_score(int level)
{
    const int scores[8] = {25, 20, 18, 20, 25, 18, 15, 18};
    return scores[level];
}

/* Widths a second, negative to the left. */
ENV_FN float freeway_speed(int lane, int step)
{
    float speed = 1.0f / 13.0f;
    for (int i = 0; i < step; i++)
        speed *= 1.35f;
    return lane < FREEWAY_LANES / 2 ? speed : -speed;
}

/* ---- the game ---- */

ENV_FN float freeway_half_car(int level, int lane)
{
    return freeway_is_truck(level, lane) ? 64.0f : 32.0f;
}

/* A car that has left on one side comes in again on the other. */
ENV_FN float freeway_wrap(float x, float half)
{
    return x > FREEWAY_WIDTH + half ? x - FREEWAY_WIDTH : x < -half ? x + FREEWAY_WIDTH : x;
}

ENV_FN void freeway_reset(const struct freeway_settings *settings, struct freeway_state *state)
{
    state->y = FREEWAY_HEIGHT - FREEWAY_PLAYER;
    state->reached = state->crossings = state->stunned = 0;
    state->steps = state->frame = 0;
    state->level = settings->level >= 0 ? (int32_t)settings->level : (int32_t)rng_below(&state->rng, 8);
    state->unused[0] = state->unused[1] = 0;
    for (int lane = 0; lane < FREEWAY_LANES; lane++) {
        const float first = rng_f32(&state->rng) * FREEWAY_WIDTH;
        state->speeds[lane] = (int8_t)freeway_first_speed(state->level, lane);
        for (int car = 0; car < FREEWAY_CARS; car++) {
            float x = first + freeway_gap(state->level, lane, car) * FREEWAY_WIDTH;
            state->cars[lane][car] = x > FREEWAY_WIDTH ? x - FREEWAY_WIDTH : x;
        }
    }
}

ENV_FN bool freeway_is_hit(const struct freeway_state *s)
{
    for (int lane = 0; lane < FREEWAY_LANES; lane++) {
        const float middle = FREEWAY_ROAD - FREEWAY_LANE * ((float)lane + 0.5f), dy = s->y - middle;
        const float reach = FREEWAY_PLAYER + freeway_half_car(s->level, lane);
        if (dy >= FREEWAY_PLAYER + FREEWAY_CAR || dy <= -(FREEWAY_PLAYER + FREEWAY_CAR))
            continue;
        for (int car = 0; car < freeway_n_cars(s->level, lane); car++) {
            const float dx = s->cars[lane][car] - FREEWAY_PLAYER_X;
            if (dx < reach && dx > -reach)
                return true;
        }
    }
    return false;
}

/* The chicken's frame; its reward. */
ENV_FN float freeway_walk(struct freeway_state *s, int32_t action)
{
    const float lowest = FREEWAY_HEIGHT - FREEWAY_PLAYER;
    float reward = 0.0f;

    if (s->stunned > 0) {
        s->stunned--;
        s->y += 1.5f * FREEWAY_LANE / (float)FREEWAY_STUNNED;
    } else if (action == 1 || action == 2) {
        s->y += (action == 2 ? FREEWAY_HEIGHT : -FREEWAY_HEIGHT) / 210.0f;
    }
    s->y = s->y > lowest ? lowest : s->y < FREEWAY_PLAYER ? FREEWAY_PLAYER : s->y;
    if (s->stunned == 0 && freeway_is_hit(s)) {
        s->stunned = FREEWAY_STUNNED;
        reward -= 0.01f;
    }
    if (s->y <= FREEWAY_ROAD - FREEWAY_LANE * (float)(s->reached + 1)) {
        s->reached++;
        reward += 0.1f;
    }
    if (s->reached == FREEWAY_LANES) {
        s->reached = s->stunned = 0;
        s->y = lowest;
        s->crossings++;
        reward += 1.0f;
    }
    return reward;
}

ENV_FN void freeway_drive(struct freeway_state *s)
{
    for (int lane = 0; lane < FREEWAY_LANES; lane++) {
        const float half = freeway_half_car(s->level, lane);
        const float step = freeway_speed(lane, s->speeds[lane]) * FREEWAY_WIDTH / 60.0f;
        for (int car = 0; car < FREEWAY_CARS; car++)
            s->cars[lane][car] = freeway_wrap(s->cars[lane][car] + step, half);
    }
    if (s->level < 4 || s->frame % 360 != 0)
        return;
    for (int lane = 0; lane < FREEWAY_LANES; lane++) {
        const int first = freeway_first_speed(s->level, lane), step = s->speeds[lane] + (int)rng_below(&s->rng, 3) - 1;
        const bool fits = step >= 0 && step <= 5 && step >= first - 2 && step <= first + 2;
        s->speeds[lane] = fits ? (int8_t)step : s->speeds[lane];
    }
}

ENV_FN void freeway_step(const struct freeway_settings *settings, struct freeway_state *state, const int32_t *actions,
                         struct env_step *step)
{
    const float good = (float)freeway_good_score(state->level);

    step->rewards[0] = 0.0f;
    for (int64_t i = 0; i < settings->frameskip; i++) {
        state->frame++;
        step->rewards[0] += freeway_walk(state, actions[0]);
        freeway_drive(state);
    }
    state->steps++;
    step->ended = state->steps >= settings->max_steps;
    step->score = (float)state->crossings;
    step->perf = step->score < good ? step->score / good : 1.0f;
}

ENV_OBS_FN void freeway_observe(const struct freeway_settings *settings, const struct freeway_state *s, int agent,
                                env_obs *obs)
{
    obs[0] = s->y / FREEWAY_HEIGHT;
    obs[1] = (float)s->reached / (float)FREEWAY_LANES;
    obs[2] = (float)s->crossings / (float)freeway_good_score(s->level);
    obs[3] = s->stunned > 0 ? 1.0f : 0.0f;
    obs[4] = 1.0f - (float)s->steps / (float)settings->max_steps;
    for (int lane = 0; lane < FREEWAY_LANES; lane++) {
        const int at = 5 + lane * FREEWAY_LANE_OBS, n = freeway_n_cars(s->level, lane);
        obs[at] = freeway_speed(lane, s->speeds[lane]);
        for (int car = 0; car < FREEWAY_CARS; car++)
            obs[at + 1 + car] = car < n ? s->cars[lane][car] / FREEWAY_WIDTH : 0.0f;
        obs[at + 1 + FREEWAY_CARS] = freeway_is_truck(s->level, lane) ? 1.0f : 0.0f;
    }
}

ENV_GPU(freeway, env_gpu_rows<FREEWAY_OBS>)

#ifndef __CUDACC__
/* -- what the program shows -- */
static const struct opt_def freeway_options[] = {
    OPT_ROW_INT(struct freeway_settings, frameskip, "4", 1, 60, OPT_FIXED, 0, 0, "frames", "Frames per decision."),
    OPT_ROW_INT(struct freeway_settings, max_steps, "2040", 1, 1000000, OPT_FIXED, 0, 0, "steps",
                "Decisions of an episode: of four frames each, 2040 are 136 s."),
    OPT_ROW_INT(struct freeway_settings, level, "-1", -1, 7, OPT_FIXED, 0, 0, "",
                "Traffic: 0 to 3 at steady speeds, 4 to 7 at speeds that change; -1: a random one each episode."),
};
static const struct env_about freeway_about = {"Freeway: cross ten lanes of cars", NULL, 0};

static inline void freeway_draw(const struct freeway_settings *settings, const struct freeway_state *s,
                                struct env_picture *p)
{
    const double scale = 0.5, lane_px = (double)FREEWAY_LANE * scale, road = (double)FREEWAY_ROAD * scale;

    p->width = (double)FREEWAY_WIDTH * scale;
    p->height = (double)FREEWAY_HEIGHT * scale;
    for (int lane = 0; lane <= FREEWAY_LANES; lane++)
        env_draw_line(p, 0, road - lane * lane_px, p->width, road - lane * lane_px, 1, ENV_FAINT);
    for (int lane = 0; lane < FREEWAY_LANES; lane++)
        for (int car = 0; car < freeway_n_cars(s->level, lane); car++) {
            const double half = (double)freeway_half_car(s->level, lane) * scale;
            env_draw_rect(p, (double)s->cars[lane][car] * scale - half, road - (lane + 0.5) * lane_px - 10, 2 * half,
                          20, ENV_OPPONENT);
        }
    env_draw_circle(p, (double)FREEWAY_PLAYER_X * scale, (double)s->y * scale, (double)FREEWAY_PLAYER * scale,
                    s->stunned > 0 ? ENV_GOAL : ENV_OWN);
    env_draw_text(p, 8, 16, 14, -1, "%d", (int)s->crossings);
    env_draw_text(p, p->width - 8, 16, 14, 1, "%d left", (int)settings->max_steps - (int)s->steps);
}
#endif

#endif
