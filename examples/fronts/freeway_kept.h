/* freeway_kept.h - the rules of PufferLib's freeway in Trawl's form, so that fronts.py can play it on a GPU:
 * trawl env build freeway_kept.h
 *
 * A chicken crosses ten lanes of cars as often as it can in 136 s; 60 frames a second, four for a decision. What the
 * built-in game (envs/games/freeway.h, whose comment has the field, the traffic and the rewards) does otherwise: here
 * an instance keeps the level that it draws when it is made; where speeds change they continue from episode to episode,
 * change again as an episode begins, and walk up to three steps from the first; cars of the lanes to the left lie
 * mirrored; the agent sees neither speeds, trucks nor the time.
 * Observation: 34 numbers: chicken's y / 720, lanes reached / 10, crossings / those of a good player, 1 while it is
 * pushed back; for each lane x / 1216 of its three cars, 0 for none. Actions: 0 stay, 1 up, 2 down.
 * score = crossings, perf = crossings / those of a good player, at most 1; PufferLib's may be more. */
#ifndef FREEWAY_KEPT_H
#define FREEWAY_KEPT_H

#include "trawl_env.h"

#define FREEWAY_KEPT_LANES 10
#define FREEWAY_KEPT_CARS 3
#define FREEWAY_KEPT_OBS 40 /* six zeros at the end: tensor cores read rows of eights */
#define FREEWAY_KEPT_WIDE 1216.0f
#define FREEWAY_KEPT_HIGH 720.0f
#define FREEWAY_KEPT_LANE 64.0f
#define FREEWAY_KEPT_ROAD 680.0f /* where lane 0 begins; y grows downwards */
#define FREEWAY_KEPT_LOWEST 688.0f
#define FREEWAY_KEPT_HIGHEST 32.0f
#define FREEWAY_KEPT_X 304.0f
#define FREEWAY_KEPT_STUNNED 40
#define FREEWAY_KEPT_FRAMES 8160

struct freeway_kept_settings {
    int64_t unused; /* the form wants an option */
};

struct freeway_kept_state {
    struct rng rng;
    float y;
    int32_t level, reached, crossings, stunned, frame;
    float cars[FREEWAY_KEPT_LANES][FREEWAY_KEPT_CARS];
    int8_t speeds[FREEWAY_KEPT_LANES]; /* steps, 0..5 */
    int8_t unused[6];
};

ENV_FN void freeway_kept_shape(const struct freeway_kept_settings *settings, struct env_shape *ret_shape)
{
    ret_shape->obs_size = FREEWAY_KEPT_OBS;
    ret_shape->head_sizes[0] = 3;
}

/* ---- levels: a hexadecimal digit for each lane, lane 0 lowest ---- */

ENV_FN int freeway_kept_digit(uint64_t digits, int lane)
{
    return (int)(digits >> 4 * lane & 15);
}

ENV_FN int freeway_kept_n_cars(int level, int lane)
{
    return freeway_kept_digit(level % 4 == 1   ? 0x2232123221ull
                              : level % 4 == 2 ? 0x1313113133ull
                                               : 0x1111111111ull,
                              lane);
}

ENV_FN bool freeway_kept_is_truck(int level, int lane)
{
    return level % 4 == 3 || (level % 4 == 1 && lane == 5) || (level % 4 == 2 && lane == 4);
}

/* Where car `car` is behind the first, in tenths of the width. */
ENV_FN int freeway_kept_gap(int level, int lane, int car)
{
    return level % 4 == 2 ? 2 * car : car == 2 ? 2 : car == 1 ? freeway_kept_digit(0x1214041210ull, lane) : 0;
}

ENV_FN int freeway_kept_first_speed(int level, int lane)
{
    return freeway_kept_digit(level % 4 == 0   ? 0x0123443210ull
                              : level % 4 == 3 ? 0x5424554245ull
                                               : 0x0134554310ull,
                              lane);
}

ENV_FN float freeway_kept_good(int level)
{
    return level % 4 == 0 ? 25.0f : level == 1 || level == 3 ? 20.0f : level == 6 ? 15.0f : 18.0f;
}

/* Pixels a frame to the right at steps 0 to 5, rounded to f32 where there. */
#define FREEWAY_KEPT_PIXELS(factor) ((float)((factor) / 13.0) / 60.0f * FREEWAY_KEPT_WIDE)

ENV_FN float freeway_kept_pixels(int step)
{
    switch (step) {
    case 0:
        return FREEWAY_KEPT_PIXELS(1.0);
    case 1:
        return FREEWAY_KEPT_PIXELS(1.35);
    case 2:
        return FREEWAY_KEPT_PIXELS(1.35 * 1.35);
    case 3:
        return FREEWAY_KEPT_PIXELS(1.35 * 1.35 * 1.35);
    case 4:
        return FREEWAY_KEPT_PIXELS(1.35 * 1.35 * 1.35 * 1.35);
    default:
        return FREEWAY_KEPT_PIXELS(1.35 * 1.35 * 1.35 * 1.35 * 1.35);
    }
}

/* ---- the game ---- */

ENV_FN void freeway_kept_change(struct freeway_kept_state *s)
{
    if (s->level < 4)
        return;
    for (int lane = 0; lane < FREEWAY_KEPT_LANES; lane++) {
        const int first = freeway_kept_first_speed(s->level, lane), by = (int)rng_below(&s->rng, 3) - 1;
        int step = s->speeds[lane];
        step = (step < first - 2 ? first - 2 : step > first + 2 ? first + 2 : step) + by;
        s->speeds[lane] = (int8_t)(step < 0 ? 0 : step > 5 ? 5 : step);
    }
}

ENV_FN void freeway_kept_reset(const struct freeway_kept_settings *settings, struct freeway_kept_state *s)
{
    const bool made = s->rng.counter == 0;

    if (made) {
        s->level = (int32_t)rng_below(&s->rng, 8);
        for (int lane = 0; lane < FREEWAY_KEPT_LANES; lane++)
            s->speeds[lane] = (int8_t)freeway_kept_first_speed(s->level, lane);
        for (int i = 0; i < 6; i++)
            s->unused[i] = 0;
    }
    s->y = FREEWAY_KEPT_LOWEST;
    s->reached = s->crossings = s->stunned = s->frame = 0;
    for (int lane = 0; lane < FREEWAY_KEPT_LANES; lane++) {
        const float by = FREEWAY_KEPT_WIDE * rng_f32(&s->rng);
        for (int car = 0; car < FREEWAY_KEPT_CARS; car++) {
            const float gap = (float)freeway_kept_gap(s->level, lane, car) / 10.0f * FREEWAY_KEPT_WIDE;
            const float x = (lane < FREEWAY_KEPT_LANES / 2 ? gap : FREEWAY_KEPT_WIDE - gap) + by;
            s->cars[lane][car] = car < freeway_kept_n_cars(s->level, lane) ? x : 0.0f;
        }
    }
    if (!made)
        freeway_kept_change(s);
}

ENV_FN bool freeway_kept_is_hit(const struct freeway_kept_state *s)
{
    const int near = (int)((FREEWAY_KEPT_ROAD - s->y) / FREEWAY_KEPT_LANE);

    for (int lane = near - 1; lane <= near + 1; lane++) {
        const float dy = s->y - (FREEWAY_KEPT_ROAD - FREEWAY_KEPT_LANE * ((float)lane + 0.5f));
        if (lane < 0 || lane >= FREEWAY_KEPT_LANES || dy >= 52.0f || dy <= -52.0f)
            continue;
        const float reach = freeway_kept_is_truck(s->level, lane) ? 96.0f : 64.0f;
        const int n = freeway_kept_n_cars(s->level, lane);
        for (int car = 0; car < FREEWAY_KEPT_CARS; car++) {
            const float dx = s->cars[lane][car] - FREEWAY_KEPT_X;
            if (car < n && dx < reach && dx > -reach)
                return true;
        }
    }
    return false;
}

/* The chicken's frame; its reward. */
ENV_FN float freeway_kept_walk(struct freeway_kept_state *s, int32_t action)
{
    float reward = 0.0f;

    if (s->stunned > 0) {
        s->stunned--;
        s->y += 2.4f;
    } else if (action == 1 || action == 2) {
        s->y += (action == 2 ? 1.0f : -1.0f) / 3.5f * FREEWAY_KEPT_HIGH / 60.0f;
    }
    s->y = s->y > FREEWAY_KEPT_LOWEST ? FREEWAY_KEPT_LOWEST : s->y < FREEWAY_KEPT_HIGHEST ? FREEWAY_KEPT_HIGHEST : s->y;
    if (s->stunned == 0 && freeway_kept_is_hit(s)) {
        s->stunned = FREEWAY_KEPT_STUNNED;
        reward -= 0.01f;
    }
    if (s->y <= FREEWAY_KEPT_ROAD - FREEWAY_KEPT_LANE * (float)(s->reached + 1)) {
        s->reached++;
        reward += 0.1f;
    }
    if (s->reached == FREEWAY_KEPT_LANES) {
        s->reached = s->stunned = 0;
        s->y = FREEWAY_KEPT_LOWEST;
        s->crossings++;
        reward += 1.0f;
    }
    return reward;
}

ENV_FN void freeway_kept_drive(struct freeway_kept_state *s)
{
    ENV_UNROLL
    for (int lane = 0; lane < FREEWAY_KEPT_LANES; lane++) {
        const float half = freeway_kept_is_truck(s->level, lane) ? 64.0f : 32.0f;
        const float pixels = freeway_kept_pixels(s->speeds[lane]);
        const int n = freeway_kept_n_cars(s->level, lane);
        ENV_UNROLL
        for (int car = 0; car < FREEWAY_KEPT_CARS; car++) {
            const float x = s->cars[lane][car] + (lane < FREEWAY_KEPT_LANES / 2 ? pixels : -pixels);
            const float on = x > FREEWAY_KEPT_WIDE + half ? x - FREEWAY_KEPT_WIDE
                             : x < -half                  ? x + FREEWAY_KEPT_WIDE
                                                          : x;
            s->cars[lane][car] = car < n ? on : 0.0f;
        }
    }
}

ENV_FN void freeway_kept_step(const struct freeway_kept_settings *settings, struct freeway_kept_state *s,
                              const int32_t *actions, struct env_step *step)
{
    const float good = freeway_kept_good(s->level);
    float reward = 0.0f;

    for (int i = 0; i < 4; i++) {
        s->frame++;
        reward += freeway_kept_walk(s, actions[0]);
        freeway_kept_drive(s);
    }
    step->ended = s->frame >= FREEWAY_KEPT_FRAMES;
    if (!step->ended && s->frame % 360 == 0)
        freeway_kept_change(s);
    step->rewards[0] = reward;
    step->score = (float)s->crossings;
    step->perf = step->score < good ? step->score / good : 1.0f;
}

ENV_OBS_FN void freeway_kept_observe(const struct freeway_kept_settings *settings, const struct freeway_kept_state *s,
                                     int agent, env_obs *obs)
{
    obs[0] = s->y / FREEWAY_KEPT_HIGH;
    obs[1] = (float)s->reached / (float)FREEWAY_KEPT_LANES;
    obs[2] = (float)s->crossings / freeway_kept_good(s->level);
    obs[3] = s->stunned > 0 ? 1.0f : 0.0f;
    ENV_UNROLL
    for (int i = 0; i < FREEWAY_KEPT_LANES * FREEWAY_KEPT_CARS; i++)
        obs[4 + i] = env_div_const(s->cars[i / FREEWAY_KEPT_CARS][i % FREEWAY_KEPT_CARS], FREEWAY_KEPT_WIDE);
    for (int i = 4 + FREEWAY_KEPT_LANES * FREEWAY_KEPT_CARS; i < FREEWAY_KEPT_OBS; i++)
        obs[i] = 0.0f;
}

ENV_GPU(freeway_kept, env_gpu_rows<FREEWAY_KEPT_OBS>)

#ifndef __CUDACC__
static const struct opt_def freeway_kept_options[] = {
    OPT_ROW_INT(struct freeway_kept_settings, unused, "0", 0, 0, OPT_FIXED, 0, 0, "", "Has no effect."),
};
static const struct env_about freeway_kept_about = {"Freeway, one level for each instance", NULL, 0};

static inline void freeway_kept_draw(const struct freeway_kept_settings *settings, const struct freeway_kept_state *s,
                                     struct env_picture *p)
{
    p->width = 1216;
    p->height = 720;
    for (int lane = 0; lane < FREEWAY_KEPT_LANES; lane++)
        for (int car = 0; car < freeway_kept_n_cars(s->level, lane); car++) {
            const double half = freeway_kept_is_truck(s->level, lane) ? 64 : 32;
            env_draw_rect(p, (double)s->cars[lane][car] - half, 680 - lane * 64 - 52, 2 * half, 40, ENV_OPPONENT);
        }
    env_draw_circle(p, 304, (double)s->y, 32, s->stunned > 0 ? ENV_GOAL : ENV_OWN);
}
#endif

#endif
