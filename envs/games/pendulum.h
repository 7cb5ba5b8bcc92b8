/* pendulum.h - Gymnasium's Pendulum-v1: swing a rod up with a weak motor and keep it there. (public)
 * Equations and constants as published there, in f64 with the same order of operations. The angle is 0 upright and is
 * not wrapped in the state. Never terminated; truncated after max_steps (200).
 * Observation: cosine and sine of the angle, angular velocity (within +-8). Action: one number, the torque in [-2, 2];
 * one outside counts as the nearer end, NaN as 2. Reward: -(angle^2 + 0.1 velocity^2 + 0.001 torque^2) of the state
 * before the step, the angle in [-pi, pi). score = the episode's sum of rewards; perf = 1 + score / (16.2736 steps),
 * the worst reward at each step being 0. */
#ifndef ENVS_PENDULUM_H
#define ENVS_PENDULUM_H

#include "envs/env.h"
#include "envs/env_math.h"

#define PENDULUM_OBS 3
#define PENDULUM_MAX_SPEED 8.0
#define PENDULUM_MAX_TORQUE 2.0
#define PENDULUM_MAX_COST (ENV_PI * ENV_PI + 0.1 * 8.0 * 8.0 + 0.001 * 2.0 * 2.0)

struct pendulum_settings {
    int64_t max_steps; /* truncation */
};

struct pendulum_state {
    struct rng rng;
    double theta, theta_dot;
    double score; /* sum of rewards so far */
    int64_t steps;
};

ENV_FN void pendulum_shape(const struct pendulum_settings *settings, struct env_shape *ret_shape)
{
    ret_shape->obs_size = PENDULUM_OBS;
    ret_shape->head_sizes[0] = 0;
    ret_shape->low[0] = (float)-PENDULUM_MAX_TORQUE;
    ret_shape->high[0] = (float)PENDULUM_MAX_TORQUE;
    ret_shape->may_truncate = true;
}

ENV_FN void pendulum_reset(const struct pendulum_settings *settings, struct pendulum_state *state)
{
    state->theta = (2.0 * rng_f64(&state->rng) - 1.0) * ENV_PI;
    state->theta_dot = 2.0 * rng_f64(&state->rng) - 1.0;
    state->score = 0.0;
    state->steps = 0;
}

ENV_FN void pendulum_step(const struct pendulum_settings *settings, struct pendulum_state *state,
                          const int32_t *actions, struct env_step *step)
{
    const double gravity = 10.0, mass = 1.0, length = 1.0, dt = 0.05;
    const double u = env_clamp((double)step->reals[0], -PENDULUM_MAX_TORQUE, PENDULUM_MAX_TORQUE);
    double theta = state->theta, theta_dot = state->theta_dot, sine, cosine, cost;
    double turned = theta + ENV_PI, angle = turned - env_floor_f64(turned / (2.0 * ENV_PI)) * (2.0 * ENV_PI) - ENV_PI;

    cost = angle * angle + 0.1 * (theta_dot * theta_dot) + 0.001 * (u * u);
    env_sincos_any(theta, &sine, &cosine);
    theta_dot = theta_dot + (3.0 * gravity / (2.0 * length) * sine + 3.0 / (mass * (length * length)) * u) * dt;
    theta_dot = env_clamp(theta_dot, -PENDULUM_MAX_SPEED, PENDULUM_MAX_SPEED);
    state->theta_dot = theta_dot;
    state->theta = theta + theta_dot * dt;
    state->score -= cost;
    state->steps++;

    step->rewards[0] = (float)-cost;
    step->truncated = state->steps >= settings->max_steps;
    step->score = (float)state->score;
    step->perf = (float)(1.0 + state->score / (PENDULUM_MAX_COST * (double)state->steps));
    step->perf = step->perf > 0.0f ? step->perf : 0.0f; /* the worst sum is rounded */
}

ENV_OBS_FN void pendulum_observe(const struct pendulum_settings *settings, const struct pendulum_state *state,
                                 int agent, env_obs *obs)
{
    double sine, cosine;

    env_sincos_any(state->theta, &sine, &cosine);
    obs[0] = (float)cosine;
    obs[1] = (float)sine;
    obs[2] = (float)state->theta_dot;
}

ENV_GPU(pendulum, env_gpu_rows<PENDULUM_OBS>)

#ifndef __CUDACC__
/* -- what the program shows -- */
static const struct opt_def pendulum_options[] = {
    OPT_ROW_INT(struct pendulum_settings, max_steps, "200", 1, 1e6, OPT_FIXED, 0, 0, "steps",
                "Steps after which an episode is truncated."),
};
static const struct env_about pendulum_about = {"swing a rod up and balance it by torque (Pendulum-v1)", NULL, 0};

static inline void pendulum_draw(const struct pendulum_settings *settings, const struct pendulum_state *s,
                                 struct env_picture *p)
{
    const double middle = 150, rod = 110;

    p->width = 2 * middle;
    p->height = 2 * middle;
    env_draw_line(p, middle, middle, middle - rod * sin(s->theta), middle - rod * cos(s->theta), 16, ENV_OWN);
    env_draw_circle(p, middle, middle, 5, ENV_FOREGROUND);
    env_draw_text(p, 10, 24, 16, -1, "return %.0f", s->score);
}
#endif

#endif
