/* cartpole.h - Gymnasium's CartPole-v1: keep a pole upright on a cart by pushing left or right. (public)
 * Equations and constants as published there: explicit Euler in f64 with the same order of operations, so that the
 * states agree to the last bit as long as sine and cosine do.
 * An episode ends beyond +-2.4 (cart) or +-12 degrees (pole); after max_steps (500) it is truncated, unless the same
 * step also ended it by the rules. The pole is never moved from a state beyond 12 degrees, which is what env_sincos
 * asks. Observation: x, x_dot, theta, theta_dot as f32. Actions: 0 push left, 1 push right (anything else counts as
 * left). */
#ifndef ENVS_CARTPOLE_H
#define ENVS_CARTPOLE_H

#include "envs/env.h"
#include "envs/env_math.h"

#define CARTPOLE_OBS 4
#define CARTPOLE_X_LIMIT 2.4
#define CARTPOLE_THETA_LIMIT (12.0 * 2.0 * ENV_PI / 360.0)

struct cartpole_settings {
    int64_t max_steps; /* truncation */
};

struct cartpole_state {
    struct rng rng;
    double x, x_dot, theta, theta_dot;
    int64_t steps;
};

ENV_FN void cartpole_shape(const struct cartpole_settings *settings, struct env_shape *ret_shape)
{
    ret_shape->obs_size = CARTPOLE_OBS;
    ret_shape->head_sizes[0] = 2;
    ret_shape->may_truncate = true;
}

ENV_FN void cartpole_reset(const struct cartpole_settings *settings, struct cartpole_state *state)
{
    state->x = 0.1 * rng_f64(&state->rng) - 0.05;
    state->x_dot = 0.1 * rng_f64(&state->rng) - 0.05;
    state->theta = 0.1 * rng_f64(&state->rng) - 0.05;
    state->theta_dot = 0.1 * rng_f64(&state->rng) - 0.05;
    state->steps = 0;
}

ENV_FN void cartpole_step(const struct cartpole_settings *settings, struct cartpole_state *state,
                          const int32_t *actions, struct env_step *step)
{
    const double gravity = 9.8, mass_pole = 0.1, mass = 1.0 + 0.1, length = 0.5, tau = 0.02;
    const double pole_mass_length = mass_pole * length;
    double x_dot = state->x_dot, theta = state->theta, theta_dot = state->theta_dot;
    double sin_theta, cos_theta;
    env_sincos(theta, &sin_theta, &cos_theta);

    double force = actions[0] == 1 ? 10.0 : -10.0;
    double temp = (force + pole_mass_length * (theta_dot * theta_dot) * sin_theta) / mass;
    double theta_acc =
        (gravity * sin_theta - cos_theta * temp) / (length * (4.0 / 3.0 - mass_pole * (cos_theta * cos_theta) / mass));
    double x_acc = temp - pole_mass_length * theta_acc * cos_theta / mass;
    state->x += tau * x_dot;
    state->x_dot = x_dot + tau * x_acc;
    state->theta = theta + tau * theta_dot;
    state->theta_dot = theta_dot + tau * theta_acc;
    state->steps++;

    bool out = (state->x < -CARTPOLE_X_LIMIT) | (state->x > CARTPOLE_X_LIMIT) | (state->theta < -CARTPOLE_THETA_LIMIT) |
               (state->theta > CARTPOLE_THETA_LIMIT);
    step->rewards[0] = 1.0f;
    step->ended = out;
    step->truncated = !out && state->steps >= settings->max_steps;
    step->score = (float)state->steps;
    step->perf = (float)state->steps / (float)settings->max_steps;
}

ENV_OBS_FN void cartpole_observe(const struct cartpole_settings *settings, const struct cartpole_state *state,
                                 int agent, env_obs *obs)
{
    obs[0] = (float)state->x;
    obs[1] = (float)state->x_dot;
    obs[2] = (float)state->theta;
    obs[3] = (float)state->theta_dot;
}

ENV_GPU(cartpole, env_gpu_rows<CARTPOLE_OBS>)

#ifndef __CUDACC__
/* -- what the program shows -- */
static const struct opt_def cartpole_options[] = {
    OPT_ROW_INT(struct cartpole_settings, max_steps, "500", 1, 1e6, OPT_FIXED, 0, 0, "steps",
                "Steps after which an episode is truncated; perf is steps / max_steps."),
};
static const struct env_about cartpole_about = {"balance a pole on a cart (CartPole-v1)", NULL, 0};

static inline void cartpole_draw(const struct cartpole_settings *settings, const struct cartpole_state *s,
                                 struct env_picture *p)
{
    const double scale = 100, cart_w = 60, cart_h = 30, pole = 125, ground = 220;
    double x, y = ground - cart_h;

    p->width = 2 * scale * CARTPOLE_X_LIMIT + 80;
    p->height = 260;
    x = p->width / 2 + scale * s->x;
    env_draw_line(p, 0, ground, p->width, ground, 2, ENV_FOREGROUND);
    for (int side = -1; side <= 1; side += 2)
        env_draw_line(p, p->width / 2 + side * scale * CARTPOLE_X_LIMIT, ground - 12,
                      p->width / 2 + side * scale * CARTPOLE_X_LIMIT, ground + 12, 2, ENV_FAINT);
    env_draw_rect(p, x - cart_w / 2, y, cart_w, cart_h, ENV_OWN);
    env_draw_line(p, x, y, x + pole * sin(s->theta), y - pole * cos(s->theta), 10, ENV_GOAL);
    env_draw_circle(p, x, y, 5, ENV_FOREGROUND);
    env_draw_text(p, 10, 24, 16, -1, "%lld steps", (long long)s->steps);
}
#endif

#endif
