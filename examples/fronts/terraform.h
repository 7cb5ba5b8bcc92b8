/* terraform.h - the rules of PufferLib's terraform in Trawl's form, so that fronts.py can play it on a GPU:
 * trawl env build terraform.h
 *
 * A bulldozer drives over 64 x 64 cells of earth and carries it to where it is wanted: 16 squares of 11 x 11 that shall
 * be 1 high, all else 0. An instance keeps one terrain, hills of as much earth as the squares take. Of its three
 * choices one accelerates (five ways), one steers (five), one loads or unloads at the cells before it, 1 of height
 * each. It stops before steps of more than 5, and is put elsewhere after 512 decisions. An episode ends after 1023
 * decisions, or when all is as wanted.
 * Observation: 11 x 11 cells around it, their height and what they lack; place, speed, heading, load; of 6 x 6 squares
 * how much too high they are, and in which it is.
 * Reward: a tenth of what the earth came nearer to what is wanted, less its load's change times reward_scale; -0.05 for
 * each cell where it cannot load (full, or in reverse) or unload (empty, or forward). score = perf = the share of the
 * first difference that is gone. */
#ifndef TERRAFORM_H
#define TERRAFORM_H

#include "trawl_env.h"

#define TERRAFORM_SIDE 64
#define TERRAFORM_CELLS (TERRAFORM_SIDE * TERRAFORM_SIDE)
#define TERRAFORM_SQUARES 36 /* of 11 x 11 cells, six in a row */
#define TERRAFORM_VIEW 11
#define TERRAFORM_OBS 320 /* one zero at the end: tensor cores read rows of eights */
#define TERRAFORM_HIGHEST 32.0f
#define TERRAFORM_LOAD 100.0f
#define TERRAFORM_FASTEST 2.0f
#define TERRAFORM_STEP 5.0f
#define TERRAFORM_TURN 6.28318530717958647692f
#define TERRAFORM_DECISIONS 1023

struct terraform_settings {
    double reward_scale;
};

struct terraform_state {
    struct rng rng;
    float first[TERRAFORM_CELLS], now[TERRAFORM_CELLS]; /* heights, at an episode's start and now */
    float first_excess[TERRAFORM_SQUARES], excess[TERRAFORM_SQUARES]; /* height less what is wanted */
    float first_total, total; /* sums of the differences */
    float x, y, speed, heading, load;
    int32_t decisions;
};

ENV_FN void terraform_shape(const struct terraform_settings *settings, struct env_shape *ret_shape)
{
    ret_shape->obs_size = TERRAFORM_OBS;
    ret_shape->n_heads = 3;
    ret_shape->head_sizes[0] = ret_shape->head_sizes[1] = 5;
    ret_shape->head_sizes[2] = 3;
}

ENV_FN float terraform_wanted(int x, int y)
{
    return x >= 3 && x < 59 && (x - 3) % 14 < 11 && y >= 3 && y < 59 && (y - 3) % 14 < 11 ? 1.0f : 0.0f;
}

ENV_FN int terraform_square(int x, int y)
{
    return y / 11 * 6 + x / 11;
}

ENV_FN float terraform_off(float a, float b)
{
    return a < b ? b - a : a - b;
}

/* ---- the terrain ---- */

/* A corner's share of simplex noise: one of 12 slopes, drawn for this corner of this terrain, times how near it is. */
ENV_FN float terraform_corner(int i, int j, float x, float y)
{
    uint32_t hash = (uint32_t)i * 0x9E3779B1u ^ (uint32_t)j * 0x85EBCA77u;
    const float near = 0.5f - x * x - y * y;

    hash = (hash ^ hash >> 15) * 0x2C1B3C6Du;
    hash = (hash ^ hash >> 12) * 0x297A2D39u;
    const uint32_t slope = (hash ^ hash >> 15) % 12;
    const float along_x = slope < 8 ? (slope % 2 == 0 ? 1.0f : -1.0f) : 0.0f, along_y = slope < 4
                                                                                            ? (slope < 2 ? 1.0f : -1.0f)
                                                                                        : slope < 8      ? 0.0f
                                                                                        : slope % 2 == 0 ? 1.0f
                                                                                                         : -1.0f;
    return near > 0.0f ? near * near * near * near * (along_x * x + along_y * y) : 0.0f;
}

ENV_FN float terraform_noise(float x, float y)
{
    const float skew = 0.3660254037844386f, back = 0.21132486540518713f; /* (sqrt(3) - 1) / 2, (3 - sqrt(3)) / 6 */
    const int i = env_floor(x + (x + y) * skew), j = env_floor(y + (x + y) * skew);
    const float t = (float)(i + j) * back, x0 = x - ((float)i - t), y0 = y - ((float)j - t);
    const int right = x0 > y0;

    return 70.0f *
           (terraform_corner(i, j, x0, y0) +
            terraform_corner(i + right, j + 1 - right, x0 - (float)right + back, y0 - (float)(1 - right) + back) +
            terraform_corner(i + 1, j + 1, x0 + 2.0f * back - 1.0f, y0 + 2.0f * back - 1.0f));
}

/* The upper third of eight octaves of noise, as hills of as much earth as is wanted. */
ENV_FN void terraform_make(struct terraform_state *s)
{
    const int from_x = (int)rng_below(&s->rng, 10000), from_y = (int)rng_below(&s->rng, 10000);
    float least = 0.0f, most = 0.0f, sum = 0.0f;

    for (int i = 0; i < TERRAFORM_CELLS; i++) {
        float height = 0.0f, frequency = 1.0f / 16.0f, share = 1.0f;
        for (int octave = 0; octave < 8; octave++, frequency *= 2.0f, share *= 0.5f)
            height += share * terraform_noise(frequency * (float)(i % TERRAFORM_SIDE) + (float)from_x,
                                              frequency * (float)(i / TERRAFORM_SIDE) + (float)from_y);
        s->first[i] = height;
        least = i == 0 || height < least ? height : least;
        most = i == 0 || height > most ? height : most;
    }
    for (int i = 0; i < TERRAFORM_CELLS; i++) {
        const float height = 52.0f * (s->first[i] - least) / (most - least) - 34.0f;
        s->first[i] = height < 0.0f ? 0.0f : height;
        sum += s->first[i];
    }
    s->first_total = 0.0f;
    for (int i = 0; i < TERRAFORM_SQUARES; i++)
        s->first_excess[i] = 0.0f;
    for (int i = 0; i < TERRAFORM_CELLS; i++) {
        const int x = i % TERRAFORM_SIDE, y = i / TERRAFORM_SIDE;
        const float height = s->first[i] * (16.0f * 121.0f / sum);
        s->first[i] = height > TERRAFORM_HIGHEST ? TERRAFORM_HIGHEST : height;
        s->first_total += terraform_off(s->first[i], terraform_wanted(x, y));
        s->first_excess[terraform_square(x, y)] += s->first[i] - terraform_wanted(x, y);
    }
}

/* ---- the bulldozer ---- */

ENV_FN float terraform_height(const struct terraform_state *s, float x, float y)
{
    return s->now[TERRAFORM_SIDE * (int)y + (int)x];
}

/* Onto a cell without earth. */
ENV_FN void terraform_place(struct terraform_state *s)
{
    do {
        s->x = (float)rng_below(&s->rng, TERRAFORM_SIDE);
        s->y = (float)rng_below(&s->rng, TERRAFORM_SIDE);
    } while (terraform_height(s, s->x, s->y) != 0.0f);
}

/* Loads (1) or unloads (2) at a cell; its reward, without that for what cannot be. */
ENV_FN float terraform_scoop(const struct terraform_settings *settings, struct terraform_state *s, int x, int y,
                             int act, float *penalty)
{
    const float wanted = terraform_wanted(x, y), scale = (float)settings->reward_scale;
    float *height = &s->now[TERRAFORM_SIDE * y + x], amount = 1.0f;
    const float before = terraform_off(*height, wanted), carried = s->load;

    if (act == 1 ? s->speed < 0.0f || s->load >= TERRAFORM_LOAD : s->speed > 0.0f || s->load == 0.0f) {
        *penalty -= 0.05f;
        return 0.0f;
    }
    if (act == 1) {
        amount = *height <= 1.0f ? *height : 1.0f;
        amount = s->load + amount > TERRAFORM_LOAD ? TERRAFORM_LOAD - s->load : amount;
    } else {
        amount = s->load < 1.0f ? s->load : 1.0f;
        amount = -(*height + amount > TERRAFORM_HIGHEST ? TERRAFORM_HIGHEST - *height : amount);
    }
    s->load += amount;
    *height -= amount;
    s->excess[terraform_square(x, y)] -= amount;
    const float after = terraform_off(*height, wanted);
    s->total += after - before;
    return ((before + scale * carried) - (after + scale * s->load)) / 10.0f;
}

/* Is there, within the border, a step at this cell that it cannot take? */
ENV_FN bool terraform_stops(const struct terraform_state *s, float height, float x, float y)
{
    const float last = (float)TERRAFORM_SIDE - 1.0f;
    return x >= 0.0f && x < last && y >= 0.0f && y < last &&
           terraform_off(height, terraform_height(s, x, y)) > TERRAFORM_STEP;
}

/* The way of a heading, one long. */
ENV_FN void terraform_way(float heading, float *ret_x, float *ret_y)
{
    double sine, cosine;
    env_sincos_any((double)heading, &sine, &cosine);
    *ret_x = (float)cosine;
    *ret_y = (float)sine;
}

ENV_FN void terraform_drive(struct terraform_state *s, int accelerate, int steer)
{
    const float height = terraform_height(s, s->x, s->y), most = (float)TERRAFORM_SIDE;
    float along_x, along_y;

    s->heading += (float)(steer - 2) / 10.0f;
    s->heading -= s->heading > TERRAFORM_TURN ? TERRAFORM_TURN : 0.0f;
    s->heading += s->heading < 0.0f ? TERRAFORM_TURN : 0.0f;
    s->speed += (float)(accelerate - 2) / 2.0f;
    s->speed = s->speed > TERRAFORM_FASTEST    ? TERRAFORM_FASTEST
               : s->speed < -TERRAFORM_FASTEST ? -TERRAFORM_FASTEST
                                               : s->speed;
    terraform_way(s->heading, &along_x, &along_y);
    for (int d = 0; (float)d < s->speed; d++)
        if (terraform_stops(s, height, s->x + (float)d * along_x, s->y + (float)d * along_y))
            s->speed = 0.0f;
    const float to_x = s->x + s->speed * along_x, to_y = s->y + s->speed * along_y;
    for (int x = (int)(to_x - 1.0f); x <= (int)(to_x + 1.0f); x++)
        for (int y = (int)(to_y - 1.0f); y <= (int)(to_y + 1.0f); y++)
            if (terraform_stops(s, height, (float)x, (float)y))
                s->speed = 0.0f;
    s->x += s->speed * along_x;
    s->y += s->speed * along_y;
    s->x = s->x < 0.0f ? 0.0f : s->x >= most ? most - 1.0f : s->x;
    s->y = s->y < 0.0f ? 0.0f : s->y >= most ? most - 1.0f : s->y;
}

/* ---- the game ---- */

ENV_FN void terraform_reset(const struct terraform_settings *settings, struct terraform_state *s)
{
    if (s->rng.counter == 0) /* a new instance */
        terraform_make(s);
    for (int i = 0; i < TERRAFORM_CELLS; i++)
        s->now[i] = s->first[i];
    for (int i = 0; i < TERRAFORM_SQUARES; i++)
        s->excess[i] = s->first_excess[i];
    s->total = s->first_total;
    s->speed = s->heading = s->load = 0.0f;
    s->decisions = 0;
    terraform_place(s);
}

ENV_FN void terraform_step(const struct terraform_settings *settings, struct terraform_state *s, const int32_t *actions,
                           struct env_step *step)
{
    const int accelerate = actions[0] >= 0 && actions[0] < 5 ? actions[0] : 2;
    const int steer = actions[1] >= 0 && actions[1] < 5 ? actions[1] : 2;
    float reward = 0.0f, penalty = 0.0f, way_x, way_y;

    terraform_way(s->heading, &way_x, &way_y);
    const float x = s->x + 2.0f * way_x, y = s->y + 2.0f * way_y;
    s->decisions++;
    for (int i = (int)(x - 1.0f); (float)i < x + 1.0f && (actions[2] == 1 || actions[2] == 2); i++)
        for (int j = (int)(y - 1.0f); (float)j < y + 1.0f; j++)
            if (i >= 0 && i < TERRAFORM_SIDE && j >= 0 && j < TERRAFORM_SIDE)
                reward += terraform_scoop(settings, s, i, j, actions[2], &penalty);
    terraform_drive(s, accelerate, steer);
    if (s->decisions == 512)
        terraform_place(s);
    const bool done = s->total < 0.01f;
    const float share = 1.0f - s->total / s->first_total;
    step->rewards[0] = done ? 1.0f : penalty + reward;
    step->ended = done || s->decisions >= TERRAFORM_DECISIONS;
    step->score = step->perf = share < 0.0f ? 0.0f : share > 1.0f ? 1.0f : share;
}

ENV_OBS_FN void terraform_observe(const struct terraform_settings *settings, const struct terraform_state *s, int agent,
                                  env_obs *obs)
{
    const int from_x = (int)(s->x - 5.0f), from_y = (int)(s->y - 5.0f), n = TERRAFORM_VIEW * TERRAFORM_VIEW;
    env_obs *own = obs + 2 * n;

    for (int i = 0; i < n; i++) {
        const int x = from_x + i % TERRAFORM_VIEW, y = from_y + i / TERRAFORM_VIEW;
        const bool inside = x >= 0 && x < TERRAFORM_SIDE && y >= 0 && y < TERRAFORM_SIDE;
        const float height = inside ? s->now[TERRAFORM_SIDE * y + x] : 0.0f;
        obs[i] = height / TERRAFORM_HIGHEST;
        obs[n + i] = inside ? (terraform_wanted(x, y) - height) / (2.0f * TERRAFORM_HIGHEST) : 0.0f;
    }
    own[0] = s->x / (float)TERRAFORM_SIDE;
    own[1] = s->y / (float)TERRAFORM_SIDE;
    own[2] = s->speed / TERRAFORM_FASTEST;
    own[3] = s->heading / TERRAFORM_TURN;
    own[4] = s->load / TERRAFORM_LOAD;
    own[5 + 2 * TERRAFORM_SQUARES] = 0.0f;
    for (int i = 0; i < TERRAFORM_SQUARES; i++) {
        own[5 + i] = s->excess[i] / 121.0f;
        own[5 + TERRAFORM_SQUARES + i] = i == terraform_square((int)s->x, (int)s->y) ? 1.0f : 0.0f;
    }
}

ENV_GPU(terraform, env_gpu_direct)

#ifndef __CUDACC__
static const struct opt_def terraform_options[] = {
    OPT_ROW_FLOAT(struct terraform_settings, reward_scale, "0.0907157", 0, 1, OPT_LINEAR, 0.01, 1, "",
                  "What a unit of load costs."),
};
static const struct env_about terraform_about = {"a bulldozer that carries hills to where earth is wanted", NULL, 0};

static inline void terraform_draw(const struct terraform_settings *settings, const struct terraform_state *s,
                                  struct env_picture *p)
{
    p->width = p->height = TERRAFORM_SIDE;
    for (int i = 0; i < TERRAFORM_CELLS; i++) {
        const int x = i % TERRAFORM_SIDE, y = i / TERRAFORM_SIDE;
        const float height = s->now[i];
        if (height > 0.0f || terraform_wanted(x, y) > 0.0f)
            env_draw_rect(p, x, y, 1, 1, height == 0.0f ? ENV_FAINT : height > 1.0f ? ENV_OPPONENT : ENV_FOREGROUND);
    }
    env_draw_circle(p, s->x + 0.5, s->y + 0.5, 1.5, ENV_OWN);
}
#endif

#endif
