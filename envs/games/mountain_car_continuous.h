/* mountain_car_continuous.h - Gymnasium's MountainCarContinuous-v0: rock an underpowered car up a hill. (public)
 * Equations and constants as published there, in f64 with the same order of operations; the state is rounded to f32
 * after each step, as there. Terminated at a position of
 * 0.45 or more with a velocity of 0 or more; truncated after max_steps (999), unless the same step also reached the
 * goal.
 * Observation: position in [-1.2, 0.6], velocity in [-0.07, 0.07]. Action: one number, the force in [-1, 1]; one
 * outside counts as the nearer end, NaN as 1. Reward: -0.1 force^2, and 100 on reaching the goal. score = the episode's
 * sum of rewards; perf = max(0, score) / 100. */
#ifndef ENVS_MOUNTAIN_CAR_CONTINUOUS_H
#define ENVS_MOUNTAIN_CAR_CONTINUOUS_H

#include "envs/env.h"
#include "envs/env_math.h"

#define MOUNTAIN_CAR_OBS 2
#define MOUNTAIN_CAR_LEFT (-1.2)
#define MOUNTAIN_CAR_RIGHT 0.6
#define MOUNTAIN_CAR_GOAL 0.45
#define MOUNTAIN_CAR_MAX_SPEED 0.07

struct mountain_car_continuous_settings {
    int64_t max_steps; /* truncation */
};

struct mountain_car_continuous_state {
    struct rng rng;
    float x, v;
    double score; /* sum of rewards so far */
    int64_t steps;
};

ENV_FN void mountain_car_continuous_shape(const struct mountain_car_continuous_settings *settings,
                                          struct env_shape *ret_shape)
{
    ret_shape->obs_size = MOUNTAIN_CAR_OBS;
    ret_shape->head_sizes[0] = 0;
    ret_shape->low[0] = -1.0f;
    ret_shape->high[0] = 1.0f;
    ret_shape->may_truncate = true;
}

ENV_FN void mountain_car_continuous_reset(const struct mountain_car_continuous_settings *settings,
                                          struct mountain_car_continuous_state *state)
{
    state->x = (float)(0.2 * rng_f64(&state->rng) - 0.6);
    state->v = 0.0f;
    state->score = 0.0;
    state->steps = 0;
}

ENV_FN void mountain_car_continuous_step(const struct mountain_car_continuous_settings *settings,
                                         struct mountain_car_continuous_state *state, const int32_t *actions,
                                         struct env_step *step)
{
    const double power = 0.0015, force = env_clamp((double)step->reals[0], -1.0, 1.0);
    double v = (double)state->v, x = (double)state->x, sine, cosine, reward;
    bool goal;

    env_sincos_any(3.0 * x, &sine, &cosine);
    v += force * power - 0.0025 * cosine;
    v = env_clamp(v, -MOUNTAIN_CAR_MAX_SPEED, MOUNTAIN_CAR_MAX_SPEED);
    x = env_clamp(x + v, MOUNTAIN_CAR_LEFT, MOUNTAIN_CAR_RIGHT);
    if (x == MOUNTAIN_CAR_LEFT && v < 0.0)
        v = 0.0;
    goal = x >= MOUNTAIN_CAR_GOAL && v >= 0.0;
    reward = (goal ? 100.0 : 0.0) - force * force * 0.1;
    state->x = (float)x;
    state->v = (float)v;
    state->score += reward;
    state->steps++;

    step->rewards[0] = (float)reward;
    step->ended = goal;
    step->truncated = !goal && state->steps >= settings->max_steps;
    step->score = (float)state->score;
    step->perf = state->score > 0.0 ? (float)state->score / 100.0f : 0.0f;
}

ENV_OBS_FN void mountain_car_continuous_observe(const struct mountain_car_continuous_settings *settings,
                                                const struct mountain_car_continuous_state *state, int agent,
                                                env_obs *obs)
{
    obs[0] = state->x;
    obs[1] = state->v;
}

ENV_GPU(mountain_car_continuous, env_gpu_rows<MOUNTAIN_CAR_OBS>)

#ifndef __CUDACC__
/* -- what the program shows -- */
static const struct opt_def mountain_car_continuous_options[] = {
    OPT_ROW_INT(struct mountain_car_continuous_settings, max_steps, "999", 1, 1e6, OPT_FIXED, 0, 0, "steps",
                "Steps after which an episode is truncated."),
};
static const struct env_about mountain_car_continuous_about = {
    "rock a car up a hill by force (MountainCarContinuous-v0)", NULL, 0};

static inline void mountain_car_continuous_draw(const struct mountain_car_continuous_settings *settings,
                                                const struct mountain_car_continuous_state *s, struct env_picture *p)
{
    enum { PIECES = 36 };
    const double scale = 180, floor_y = 190;
    double left = 0, left_y = 0;

    p->width = scale * (MOUNTAIN_CAR_RIGHT - MOUNTAIN_CAR_LEFT);
    p->height = 200;
    for (int i = 0; i <= PIECES; i++) {
        double at = p->width * i / PIECES, x = MOUNTAIN_CAR_LEFT + at / scale, y = floor_y - 75 * (sin(3 * x) + 1);
        if (i > 0)
            env_draw_line(p, left, left_y, at, y, 2, ENV_FOREGROUND);
        left = at;
        left_y = y;
    }
    env_draw_circle(p, scale * (MOUNTAIN_CAR_GOAL - MOUNTAIN_CAR_LEFT),
                    floor_y - 75 * (sin(3 * MOUNTAIN_CAR_GOAL) + 1) - 10, 6, ENV_GOAL);
    env_draw_circle(p, scale * ((double)s->x - MOUNTAIN_CAR_LEFT), floor_y - 75 * (sin(3 * (double)s->x) + 1) - 8, 8,
                    ENV_OWN);
    env_draw_text(p, 10, 24, 16, -1, "%lld steps", (long long)s->steps);
}
#endif

#endif
