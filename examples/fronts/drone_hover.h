/* drone_hover.h - PufferLib's drone at its task 1, hovering, in Trawl's form, so that fronts.py can play it on a GPU:
 * trawl env build drone_hover.h
 *
 * A quadcopter of the Crazyflie's size (https://github.com/arplaboratory/learning-to-fly) whose mass, inertia, arms,
 * motors and gravity are drawn for each episode, 5 % about its own, flies to a point within 5 m and stays there. Four
 * motors in a cross, thrust by the square of their speed, which follows what is asked for with a lag; rigid body, RK4,
 * 5 steps of 2 ms a decision. The episode ends 6 m from the point, or after 1024 decisions, which counts as an end by
 * the rules there. There 64 drones share an instance and do not meet at this task; so one is an instance here.
 * Observation: velocity in the body's frame, turning, attitude, the point in the body's frame (tanh of a tenth and of
 * ten times), motors. The three numbers that are 0 at this task there are left out. Actions: four motors, -1 to 1, 0 to
 * hover. Reward: coming nearer, being there, and coming to be there, less turning. perf is how well it hovers at the
 * end, score the sum of that over the episode. */
#ifndef DRONE_HOVER_H
#define DRONE_HOVER_H

#include "trawl_env.h"

#define DRONE_OBS 20
#define DRONE_END 1024
#define DRONE_REACH 5.0f /* m, of the point */
#define DRONE_NEAR 0.1f /* m, m/s and rad/s that halve a term of the potential */
#define DRONE_MAX_RPM 21702.0f
#define DRONE_MAX_SPEED 20.0f /* m/s and rad/s, each component */

struct drone_hover_settings {
    double alpha_dist, alpha_hover, alpha_shaping, alpha_omega;
};

struct drone_body {
    float at[3], speed[3], attitude[4], turning[3], rpm[4]; /* attitude: w first */
};

struct drone_hover_state {
    struct rng rng;
    struct drone_body body;
    float per_mass, ixx, iyy, izz, arm, thrust, drag, gravity, per_lag, min_rpm;
    float point[3];
    float potential, hovering, score;
    int32_t steps;
};

ENV_FN void drone_hover_shape(const struct drone_hover_settings *settings, struct env_shape *ret_shape)
{
    ret_shape->obs_size = DRONE_OBS;
    ret_shape->n_agents = 1;
    ret_shape->n_heads = 4;
    for (int i = 0; i < 4; i++) {
        ret_shape->head_sizes[i] = 0;
        ret_shape->low[i] = -1.0f;
        ret_shape->high[i] = 1.0f;
    }
}

ENV_FN float drone_within(float value, float low, float high)
{
    return value > low ? (value < high ? value : high) : low; /* low for a NaN */
}

ENV_FN float drone_length(const float *v)
{
    return sqrtf(v[0] * v[0] + v[1] * v[1] + v[2] * v[2]);
}

ENV_FN float drone_distance(const struct drone_hover_state *s)
{
    const float way[3] = {s->point[0] - s->body.at[0], s->point[1] - s->body.at[1], s->point[2] - s->body.at[2]};
    return drone_length(way);
}

/* v as a body of this attitude sees it (back: 1), or from there into the world (back: -1). */
ENV_FN void drone_turned(const float *q, const float *v, float back, float *ret)
{
    const float w = q[0], x = -back * q[1], y = -back * q[2], z = -back * q[3];
    const float a = -x * v[0] - y * v[1] - z * v[2], b = w * v[0] + y * v[2] - z * v[1];
    const float c = w * v[1] - x * v[2] + z * v[0], d = w * v[2] + x * v[1] - y * v[0];

    ret[0] = -a * x + b * w - c * z + d * y;
    ret[1] = -a * y + b * z + c * w - d * x;
    ret[2] = -a * z - b * y + c * x + d * w;
}

/* 1 at the point and at rest, by hyperbolas. */
ENV_FN float drone_potential(const struct drone_hover_state *s)
{
    const float near = 1.0f / (1.0f + drone_distance(s) / DRONE_NEAR);
    const float slow = 1.0f / (1.0f + drone_length(s->body.speed) / DRONE_NEAR),
                calm = 1.0f / (1.0f + drone_length(s->body.turning) / DRONE_NEAR);
    return near * (0.7f + 0.15f * slow + 0.15f * calm);
}

/* The same by straight lines, 0 a metre away. */
ENV_FN float drone_hovers(const struct drone_hover_state *s)
{
    const float bad =
        0.7f * drone_distance(s) + 0.15f * drone_length(s->body.speed) + 0.15f * drone_length(s->body.turning);
    return bad < 10.0f * DRONE_NEAR ? 1.0f - bad / (10.0f * DRONE_NEAR) : 0.0f;
}

ENV_FN float drone_about(struct rng *rng, float value, float share)
{
    return value * (1.0f - share + 2.0f * share * rng_f32(rng));
}

ENV_FN void drone_hover_reset(const struct drone_hover_settings *settings, struct drone_hover_state *s)
{
    const float box[3] = {29.0f, 29.0f, 9.0f};
    float way[3];

    for (int i = 0; i < 3 && s->rng.counter == 0; i++)
        s->point[i] = 0.0f; /* a new instance */
    s->arm = drone_about(&s->rng, 0.0396f, 0.05f) / sqrtf(2.0f);
    const float mass = drone_about(&s->rng, 0.027f, 0.05f);
    s->per_mass = 1.0f / mass;
    s->ixx = drone_about(&s->rng, 3.85e-6f, 0.05f);
    s->iyy = drone_about(&s->rng, 3.85e-6f, 0.05f);
    s->izz = drone_about(&s->rng, 5.9675e-6f, 0.05f);
    s->thrust = drone_about(&s->rng, 3.16e-10f, 0.05f);
    s->drag = drone_about(&s->rng, 0.005964552f, 0.05f);
    s->gravity = drone_about(&s->rng, 9.81f, 0.01f);
    s->per_lag = 1.0f / drone_about(&s->rng, 0.15f, 0.05f);
    const float hover_rpm = sqrtf(mass * s->gravity / (4.0f * s->thrust));
    s->min_rpm = drone_within(2.0f * hover_rpm - DRONE_MAX_RPM, 0.0f, DRONE_MAX_RPM);
    for (int i = 0; i < 4; i++) {
        s->body.rpm[i] = hover_rpm;
        s->body.attitude[i] = i == 0 ? 1.0f : 0.0f;
    }
    for (int i = 0; i < 3; i++) {
        s->body.speed[i] = s->body.turning[i] = 0.0f;
        s->body.at[i] = (2.0f * rng_f32(&s->rng) - 1.0f) * box[i];
    }
    s->potential = drone_potential(s); /* of the last episode's point, as there */
    do
        for (int i = 0; i < 3; i++)
            way[i] = 2.0f * rng_f32(&s->rng) - 1.0f;
    while (drone_length(way) > 1.0f);
    for (int i = 0; i < 3; i++)
        s->point[i] = drone_within(s->body.at[i] + DRONE_REACH * way[i], -box[i], box[i]);
    s->hovering = s->score = 0.0f;
    s->steps = 0;
}

ENV_FN void drone_change(const struct drone_hover_state *s, const struct drone_body *b, const float *wanted,
                         struct drone_body *ret)
{
    const float *q = b->attitude, *o = b->turning;
    float push[4], up[3], all = 0.0f;

    for (int i = 0; i < 4; i++) {
        const float rpm = b->rpm[i] < 0.0f ? 0.0f : b->rpm[i];
        push[i] = s->thrust * rpm * rpm;
        all += push[i];
        ret->rpm[i] = s->per_lag * (wanted[i] - b->rpm[i]);
    }
    const float body_up[3] = {0.0f, 0.0f, all};
    drone_turned(q, body_up, -1.0f, up);
    for (int i = 0; i < 3; i++) {
        ret->at[i] = b->speed[i];
        ret->speed[i] = up[i] * s->per_mass - (i == 2 ? s->gravity : 0.0f);
    }
    ret->attitude[0] = 0.5f * (-q[1] * o[0] - q[2] * o[1] - q[3] * o[2]);
    ret->attitude[1] = 0.5f * (q[0] * o[0] + q[2] * o[2] - q[3] * o[1]);
    ret->attitude[2] = 0.5f * (q[0] * o[1] - q[1] * o[2] + q[3] * o[0]);
    ret->attitude[3] = 0.5f * (q[0] * o[2] + q[1] * o[1] - q[2] * o[0]);
    ret->turning[0] = (s->arm * (push[2] + push[3] - push[0] - push[1]) + (s->iyy - s->izz) * o[1] * o[2]) / s->ixx;
    ret->turning[1] = (s->arm * (push[1] + push[2] - push[0] - push[3]) + (s->izz - s->ixx) * o[2] * o[0]) / s->iyy;
    ret->turning[2] = (s->drag * (push[1] + push[3] - push[0] - push[2]) + (s->ixx - s->iyy) * o[0] * o[1]) / s->izz;
}

/* from + dt change, of length 1 in attitude. */
ENV_FN void drone_moved(const struct drone_body *from, const struct drone_body *change, float dt,
                        struct drone_body *ret)
{
    float square = 0.0f;

    for (int i = 0; i < 4; i++) {
        ret->rpm[i] = from->rpm[i] + dt * change->rpm[i];
        ret->attitude[i] = from->attitude[i] + dt * change->attitude[i];
        square += ret->attitude[i] * ret->attitude[i];
    }
    const float unit = 1.0f / sqrtf(square);
    for (int i = 0; i < 4; i++)
        ret->attitude[i] *= unit;
    for (int i = 0; i < 3; i++) {
        ret->at[i] = from->at[i] + dt * change->at[i];
        ret->speed[i] = from->speed[i] + dt * change->speed[i];
        ret->turning[i] = from->turning[i] + dt * change->turning[i];
    }
}

ENV_FN void drone_add(struct drone_body *sum, const struct drone_body *more, float times)
{
    for (int i = 0; i < 4; i++) {
        sum->rpm[i] += times * more->rpm[i];
        sum->attitude[i] += times * more->attitude[i];
    }
    for (int i = 0; i < 3; i++) {
        sum->at[i] += times * more->at[i];
        sum->speed[i] += times * more->speed[i];
        sum->turning[i] += times * more->turning[i];
    }
}

ENV_FN void drone_fly(struct drone_hover_state *s, const float *wanted)
{
    const float dt = 0.002f, ahead[3] = {0.5f * dt, 0.5f * dt, dt}, weight[3] = {2.0f, 2.0f, 1.0f};
    struct drone_body sum, change, there;

    drone_change(s, &s->body, wanted, &sum);
    change = sum;
    for (int i = 0; i < 3; i++) {
        drone_moved(&s->body, &change, ahead[i], &there);
        drone_change(s, &there, wanted, &change);
        drone_add(&sum, &change, weight[i]);
    }
    drone_moved(&s->body, &sum, dt / 6.0f, &s->body);
    for (int i = 0; i < 3; i++) {
        s->body.speed[i] = drone_within(s->body.speed[i], -DRONE_MAX_SPEED, DRONE_MAX_SPEED);
        s->body.turning[i] = drone_within(s->body.turning[i], -DRONE_MAX_SPEED, DRONE_MAX_SPEED);
    }
    for (int i = 0; i < 4; i++)
        s->body.rpm[i] = drone_within(s->body.rpm[i], 0.0f, DRONE_MAX_RPM);
}

ENV_FN void drone_hover_step(const struct drone_hover_settings *settings, struct drone_hover_state *s,
                             const int32_t *actions, struct env_step *step)
{
    const float before = drone_distance(s);
    float wanted[4];

    for (int i = 0; i < 4; i++)
        wanted[i] =
            s->min_rpm + 0.5f * (drone_within(step->reals[i], -1.0f, 1.0f) + 1.0f) * (DRONE_MAX_RPM - s->min_rpm);
    for (int i = 0; i < 5; i++)
        drone_fly(s, wanted);
    s->steps++;

    const float now = drone_potential(s), distance = drone_distance(s), hovers = drone_hovers(s);
    step->rewards[0] = (float)settings->alpha_dist * (before - distance) + (float)settings->alpha_hover * now +
                       (float)settings->alpha_shaping * (now - s->potential) -
                       (float)settings->alpha_omega * drone_length(s->body.turning);
    s->potential = now;
    s->score += hovers;
    s->hovering = 0.98f * s->hovering + 0.02f * hovers;
    step->ended = distance > DRONE_REACH + 1.0f || s->steps >= DRONE_END;
    step->score = s->score;
    step->perf = drone_within(s->hovering, 0.0f, 1.0f);
}

/* The hyperbolic tangent by + * and / alone: e^x is (1 + x / 2^20)^(2^20), a little better. */
ENV_FN float drone_tanh(float x)
{
    const double y = 2.0 * (double)drone_within(x, -9.0f, 9.0f) / 1048576.0;
    double e = 1.0 + y * (1.0 + 0.5 * y);

    for (int i = 0; i < 20; i++)
        e *= e;
    return (float)((e - 1.0) / (e + 1.0));
}

ENV_OBS_FN void drone_hover_observe(const struct drone_hover_settings *settings, const struct drone_hover_state *s,
                                    int agent, env_obs *obs)
{
    const float way[3] = {s->point[0] - s->body.at[0], s->point[1] - s->body.at[1], s->point[2] - s->body.at[2]};
    float speed[3], there[3];

    drone_turned(s->body.attitude, s->body.speed, 1.0f, speed);
    drone_turned(s->body.attitude, way, 1.0f, there);
    for (int i = 0; i < 3; i++) {
        obs[i] = speed[i] / (DRONE_MAX_SPEED * 1.7320508f);
        obs[3 + i] = s->body.turning[i] / DRONE_MAX_SPEED;
        obs[10 + i] = drone_tanh(0.1f * there[i]);
        obs[13 + i] = drone_tanh(10.0f * there[i]);
    }
    for (int i = 0; i < 4; i++) {
        obs[6 + i] = s->body.attitude[i];
        obs[16 + i] = s->body.rpm[i] / DRONE_MAX_RPM;
    }
}

ENV_GPU(drone_hover, env_gpu_rows<DRONE_OBS>)

#ifndef __CUDACC__
static const struct opt_def drone_hover_options[] = {
    OPT_ROW_FLOAT(struct drone_hover_settings, alpha_dist, "0.782192", 0, 1000, OPT_LOG, 0.1, 10, "1/m",
                  "Rewards each metre nearer to the point."),
    OPT_ROW_FLOAT(struct drone_hover_settings, alpha_hover, "0.071445", 0, 1000, OPT_LOG, 0.01, 0.3, "",
                  "Rewards each decision at the point."),
    OPT_ROW_FLOAT(struct drone_hover_settings, alpha_shaping, "3.9754", 0, 1000, OPT_LOG, 0.5, 10, "",
                  "Rewards coming to be at the point, at rest."),
    OPT_ROW_FLOAT(struct drone_hover_settings, alpha_omega, "0.00135588", 0, 1000, OPT_LOG, 0.0001, 0.01, "s",
                  "Takes this for each radian a second of turning."),
};
static const struct env_about drone_hover_about = {"a quadcopter that flies to a point and hovers", NULL, 0};

static inline void drone_hover_draw(const struct drone_hover_settings *settings, const struct drone_hover_state *s,
                                    struct env_picture *p)
{
    p->width = p->height = 12;
    env_draw_circle(p, 6, 6, 0.2, ENV_GOAL);
    env_draw_circle(p, 6.0 + (double)(s->body.at[0] - s->point[0]), 6.0 - (double)(s->body.at[2] - s->point[2]), 0.3,
                    ENV_OWN);
}
#endif

#endif
