/* enduro_days.h - the rules of PufferLib's enduro in Trawl's form, so that fronts.py can play it on a GPU:
 * trawl env build enduro_days.h
 *
 * A race on an Atari's screen, seen from above the player's car at its bottom: a road of three lanes whose edges run to
 * a vanishing point, cars that come nearer by how much faster the player is, curves that push outward. 60 decisions a
 * second; a day has 232 s, and is won by overtaking 200 cars, 300 after the first. A car that is hit stops the player
 * for 90 decisions, the edge of the road for 20. Of its nine choices six hold or give up speed.
 * An episode is a day. The next one continues the same race, so a day that was won truncates, one that was lost ends,
 * and the race starts again at the first. perf is a tenth for each day that the instance has won in its life, as
 * PufferLib logs it, at most 1; so it is worth something as train/perf alone.
 * Observation: 68 numbers as there. Reward: 1 for a car overtaken and for a day won, 0.05 with nobody ahead in the
 * lane, 0.001 more for each car since the last crash; less 0.5 for a crash, 0.1 for each car that overtakes, and 0.01 a
 * decision once somebody has crashed. */
#ifndef ENDURO_DAYS_H
#define ENDURO_DAYS_H

#include "trawl_env.h"

#define ENDURO_OBS 68
#define ENDURO_CARS 10
#define ENDURO_DAY_S 232.0f
#define ENDURO_BOTTOM 154.0f /* of the road; y grows downwards */
#define ENDURO_HORIZON 52.0f
#define ENDURO_DEPTH (ENDURO_BOTTOM - ENDURO_HORIZON)
#define ENDURO_WIDE 16.0f /* a car */
#define ENDURO_LONG 11.0f
#define ENDURO_LOW 143.0f /* the player's y, standing and at full speed */
#define ENDURO_HIGH 134.0f
#define ENDURO_SLOWEST -2.5f
#define ENDURO_FASTEST 7.5f
#define ENDURO_WIGGLE 26.0f

struct enduro_days_settings {
    int64_t unused; /* the form wants an option */
};

struct enduro_car {
    float x, y, last_x, last_y;
    int16_t lane, passed;
};

struct enduro_days_state {
    struct rng rng;
    struct enduro_car cars[ENDURO_CARS];
    int32_t n_cars, days, day, to_pass; /* days won in the instance's life; the race's day */
    int32_t lane, gear, stopped_car, stopped_road, drift, section, section_steps, last_lane;
    float x, y, speed, elapsed, spawn_s;
    float left, right; /* the road's edges at the player, the right one less a car */
    float curve, curve_target, top_x; /* top_x: the vanishing point */
    float base_x, across; /* the vanishing point of a straight road; the player's place from edge to edge */
    float wiggle_y, bonus, penalty;
    int16_t day_won, no_crash, scored, unused;
};

ENV_FN void enduro_days_shape(const struct enduro_days_settings *settings, struct env_shape *ret_shape)
{
    ret_shape->obs_size = ENDURO_OBS;
    ret_shape->n_agents = 1;
    ret_shape->n_heads = 1;
    ret_shape->head_sizes[0] = 9;
    ret_shape->may_truncate = true;
}

ENV_FN float enduro_within(float value, float low, float high)
{
    return value < low ? low : value > high ? high : value;
}

ENV_FN float enduro_share(float speed)
{
    return (speed - ENDURO_SLOWEST) / (ENDURO_FASTEST - ENDURO_SLOWEST);
}

/* ---- the road ---- */

/* How far the verge reaches into the road here, at the bottom most. */
ENV_FN float enduro_verge(const struct enduro_days_state *s, float y)
{
    const float along = (y - s->wiggle_y) / ENDURO_WIGGLE, depth = (y - ENDURO_HORIZON) / ENDURO_DEPTH;
    const float scale = 0.03f + depth * depth;
    float reach;

    if (y < s->wiggle_y || y > s->wiggle_y + ENDURO_WIGGLE)
        return 0.0f;
    reach = along < 0.15f ? along / 0.15f : along < 0.87f ? 1.0f : (1.0f - along) / 0.13f;
    return 10.0f * reach * (scale > 0.3f ? 0.3f : scale);
}

/* An edge at this height: a line to the vanishing point, or a parabola that a curve bends. side: -1 left, 1 right. */
ENV_FN float enduro_edge(const struct enduro_days_state *s, float y, float offset, int side)
{
    const float t = (ENDURO_BOTTOM - y) / ENDURO_DEPTH, bottom = s->base_x + (side < 0 ? -46.0f : 47.0f) + offset,
                top = s->top_x + offset;
    float x = bottom + t * (top - bottom);

    if (s->curve > 0.01f || s->curve < -0.01f) {
        const float middle = bottom + (top - bottom) * 0.5f - 30.0f * s->curve;
        x = (1.0f - t) * (1.0f - t) * bottom + 2.0f * (1.0f - t) * t * middle + t * t * top;
    }
    return x - (float)side * enduro_verge(s, y);
}

ENV_FN float enduro_lane_x(const struct enduro_days_state *s, int lane, float y)
{
    const float left = enduro_edge(s, y, 0.0f, -1), right = enduro_edge(s, y, 0.0f, 1);
    return left + (right - left) / 3.0f * ((float)lane + 0.5f);
}

ENV_FN int enduro_lane(const struct enduro_days_state *s)
{
    const float offset = (s->x - 69.0f) * 0.5f, left = enduro_edge(s, s->y, offset, -1),
                right = enduro_edge(s, s->y, offset, 1);
    const int lane = (int)((s->x + ENDURO_WIDE / 2.0f - left) / ((right - left) / 3.0f));
    return lane < 0 ? 0 : lane > 2 ? 2 : lane;
}

/* The outer lane away from the player. */
ENV_FN int enduro_far_lane(const struct enduro_days_state *s)
{
    const int lane = enduro_lane(s);
    const float middle = (enduro_edge(s, s->y, 0.0f, -1) + enduro_edge(s, s->y, 0.0f, 1)) / 2.0f;
    return lane == 0 || (lane == 1 && s->x + ENDURO_WIDE / 2.0f < middle) ? 2 : 0;
}

/* The next curve: after 1500 to 5300 counts, two a decision, whose number is drawn again at each; left, none or right,
 * never from one side to the other at once among the three that are drawn together. */
ENV_FN void enduro_bend(struct enduro_days_state *s)
{
    int until[3], way[3], last = 0;

    for (int i = 0; i < 3; i++) {
        until[i] = 1500 + (int)rng_below(&s->rng, 3801);
        do
            way[i] = (int)rng_below(&s->rng, 3) - 1;
        while (way[i] * last < 0);
        last = way[i];
    }
    for (int i = 0; i < 2; i++) {
        s->section_steps++;
        if (s->section_steps >= until[s->section]) {
            s->curve_target = (float)way[s->section];
            s->section_steps = 0;
            s->section = (s->section + 1) % 3;
        }
    }
    if (s->curve < s->curve_target)
        s->curve = s->curve + 0.05f < s->curve_target ? s->curve + 0.05f : s->curve_target;
    else if (s->curve > s->curve_target)
        s->curve = s->curve - 0.05f > s->curve_target ? s->curve - 0.05f : s->curve_target;
}

ENV_FN int enduro_way(const struct enduro_days_state *s)
{
    return s->curve >= 0.1f ? 1 : s->curve <= -0.1f ? -1 : 0;
}

ENV_FN void enduro_look(struct enduro_days_state *s)
{
    const float speed = s->speed < 0.0f ? -s->speed : s->speed;
    const float step = 1.5f + speed / ENDURO_FASTEST * (ENDURO_FASTEST - ENDURO_SLOWEST),
                want = 102.0f - 48.0f * s->across + 55.0f * (float)enduro_way(s);

    if (s->top_x < want)
        s->top_x = s->top_x + step < want ? s->top_x + step : want;
    else if (s->top_x > want)
        s->top_x = s->top_x - step > want ? s->top_x - step : want;
}

/* ---- cars ---- */

ENV_FN void enduro_remove(struct enduro_days_state *s, int i)
{
    s->n_cars--;
    for (int j = i; j < s->n_cars; j++)
        s->cars[j] = s->cars[j + 1];
}

ENV_FN float enduro_scale(float y)
{
    const float scale = 0.9f * (y - ENDURO_HORIZON) / ENDURO_DEPTH;
    return scale < 0.1f ? 0.1f : scale;
}

ENV_FN bool enduro_hits(const struct enduro_days_state *s, const struct enduro_car *car)
{
    const float scale = enduro_scale(car->y), wide = ENDURO_WIDE * scale,
                left = enduro_lane_x(s, car->lane, car->y) - wide / 2.0f;
    return s->x <= left + wide && s->x + ENDURO_WIDE >= left && s->y <= car->y + ENDURO_LONG * scale &&
           s->y + ENDURO_LONG >= car->y;
}

/* A car ahead, or behind a player who stands, where there is room for one. Is there? */
ENV_FN bool enduro_add_car(struct enduro_days_state *s)
{
    const float y = s->speed > 0.0f ? ENDURO_HORIZON + 10.0f : ENDURO_BOTTOM + ENDURO_LONG;
    const float depth_scale = 0.9f * (y - ENDURO_HORIZON) / ENDURO_DEPTH + 0.1f;
    int lane = s->speed > 0.0f ? (int)rng_below(&s->rng, 3) : enduro_far_lane(s), taken = 0;

    if (rng_below(&s->rng, 100) < 60 && s->last_lane != -1)
        lane = s->last_lane;
    s->last_lane = lane;
    const float room = (6.0f * rng_f32(&s->rng) + 0.5f) * ENDURO_LONG * (depth_scale < 0.1f ? 0.1f : depth_scale);
    for (int i = 0; i < s->n_cars; i++) {
        const float away = s->cars[i].y < y ? y - s->cars[i].y : s->cars[i].y - y;
        if (s->cars[i].lane == lane && away < room)
            return false;
        if (away < 6.0f * ENDURO_LONG)
            taken |= 1 << s->cars[i].lane;
    }
    if ((taken & (taken - 1)) != 0 && (taken >> lane & 1) == 0)
        return false; /* two of three lanes, the third is left free */
    struct enduro_car *car = &s->cars[s->n_cars++];
    car->lane = (int16_t)lane;
    car->passed = 0;
    car->x = car->last_x = enduro_lane_x(s, lane, ENDURO_HORIZON);
    car->y = y;
    car->last_y = ENDURO_HORIZON;
    return true;
}

ENV_FN void enduro_spawn(struct enduro_days_state *s)
{
    const float fast = enduro_within(enduro_share(s->speed), 0.0f, 1.0f);
    const float shortest = s->day == 1   ? 0.5f
                           : s->day == 2 ? 0.25f
                           : s->day == 3 ? 0.4f
                                         : enduro_within(0.4f - 0.1f * (float)(s->day - 3), 0.1f, 0.4f);
    const float interval = 0.5f - fast * (0.5f - shortest) * 1.5f;
    int taken = 0;

    s->spawn_s += 1.0f / 60.0f;
    if (s->spawn_s < interval)
        return;
    s->spawn_s -= interval;
    if (s->n_cars >= ENDURO_CARS)
        return;
    int n = 1;
    if (rng_f32(&s->rng) < enduro_share(s->speed))
        n += (int)rng_below(&s->rng, 2);
    for (int i = 0; i < n && s->n_cars < ENDURO_CARS; i++) {
        int lane;
        do
            lane = (int)rng_below(&s->rng, 3);
        while ((taken >> lane & 1) != 0);
        taken |= 1 << lane;
        if (enduro_add_car(s)) {
            s->cars[s->n_cars - 1].lane = (int16_t)lane; /* another than the one that had room, as there */
            s->cars[s->n_cars - 1].y -= (float)i * ENDURO_LONG * 3.0f;
        }
    }
}

/* ---- the player ---- */

/* Gears of 4, 2.5, 3.25 and 1.5 s for their shares of the speeds; four times as fast in the first, then twice. */
ENV_FN void enduro_accelerate(struct enduro_days_state *s)
{
    const float until[4] = {4.0f / 11.25f, 6.5f / 11.25f, 9.75f / 11.25f, 1.0f};

    s->speed = enduro_within(s->speed, ENDURO_SLOWEST, ENDURO_FASTEST);
    if (s->speed >= ENDURO_FASTEST)
        return;
    if (s->gear < 3 && s->speed >= ENDURO_SLOWEST + 10.0f * until[s->gear])
        s->gear++;
    s->speed += 10.0f / (11.25f * 60.0f) * (s->gear == 0 ? 4.0f : 2.0f);
    const float most = ENDURO_SLOWEST + 10.0f * until[s->gear];
    s->speed = s->speed > most ? most : s->speed;
}

/* Whether the controls answer; if not, the car drifts to the far edge, and cars behind make room. */
ENV_FN void enduro_drive(struct enduro_days_state *s, int act)
{
    if (s->stopped_car <= 0 && s->stopped_road <= 0) {
        const float sideways = enduro_share(s->speed) + 0.3f;
        if (act == 1 || act == 7 || act == 8)
            enduro_accelerate(s);
        if ((act == 4 || act == 5 || act == 6) && s->speed > ENDURO_SLOWEST)
            s->speed -= 0.01f;
        if (act == 2 || act == 5 || act == 7)
            s->x = s->x + sideways > s->right ? s->right : s->x + sideways;
        if (act == 3 || act == 6 || act == 8)
            s->x = s->x - sideways < s->left ? s->left : s->x - sideways;
        return;
    }
    s->stopped_car -= s->stopped_car > 0;
    s->stopped_road -= s->stopped_road > 0;
    s->penalty = -0.01f; /* for good: until a day is lost, as there */
    if (s->drift == 0) {
        s->drift = s->x > (s->left + s->right) / 2.0f ? -1 : 1;
        for (int i = 0; i < s->n_cars; i++)
            if ((s->cars[i].lane == 1 || s->cars[i].lane == s->lane + s->drift) && s->cars[i].y > s->y)
                enduro_remove(s, i--);
    }
    s->x += (float)s->drift * (s->stopped_road > 0 ? 0.12f : 0.25f);
}

ENV_FN void enduro_race(struct enduro_days_state *s)
{
    s->n_cars = s->gear = s->stopped_car = s->stopped_road = s->drift = s->section = s->section_steps = 0;
    s->day = 1;
    s->to_pass = 200;
    s->last_lane = -1;
    s->x = 69.0f;
    s->y = ENDURO_LOW;
    s->speed = ENDURO_SLOWEST;
    s->elapsed = s->spawn_s = s->curve = s->curve_target = s->bonus = s->penalty = 0.0f;
    s->top_x = s->base_x = 86.0f;
    s->wiggle_y = ENDURO_HORIZON;
    s->day_won = 0;
    s->no_crash = 1;
    for (int i = 0; i < ENDURO_CARS; i++)
        s->cars[i].y = 0.0f;
}

ENV_FN void enduro_days_reset(const struct enduro_days_settings *settings, struct enduro_days_state *s)
{
    if (s->rng.counter == 0) { /* a new instance */
        s->days = s->scored = 0;
        s->lane = 1;
        s->across = 86.0f; /* as there, until the first decision sets it */
    }
    if (s->scored == 0) { /* else a day was won, and the race continues */
        enduro_race(s);
        s->left = enduro_edge(s, s->y, 0.0f, -1);
        s->right = enduro_edge(s, s->y, 0.0f, 1) - ENDURO_WIDE;
    }
    s->scored = 0;
}

ENV_FN void enduro_days_step(const struct enduro_days_settings *settings, struct enduro_days_state *s,
                             const int32_t *actions, struct env_step *step)
{
    float reward = 0.0f;
    bool over = false, free_ahead = true;

    s->elapsed += 1.0f / 60.0f;
    if (s->elapsed >= ENDURO_DAY_S) {
        s->elapsed -= ENDURO_DAY_S;
        over = true;
    }
    enduro_bend(s);
    enduro_look(s);
    for (int i = 0; i < s->n_cars; i++)
        s->cars[i].y += s->speed * enduro_scale(s->cars[i].y) * 0.75f;
    s->left = enduro_edge(s, s->y, 0.0f, -1);
    s->right = enduro_edge(s, s->y, 0.0f, 1) - ENDURO_WIDE;
    enduro_drive(s, actions[0]);
    s->lane = enduro_lane(s);
    for (int i = 0; i < s->n_cars; i++)
        if (s->cars[i].lane == s->lane && s->cars[i].y < s->y && s->y - s->cars[i].y < ENDURO_DEPTH)
            free_ahead = false;
    reward += free_ahead ? 0.05f : 0.0f;

    s->x -= s->curve * 0.025f * (s->speed < 0.0f ? -s->speed : s->speed);
    s->x = s->x < s->left ? s->left : s->x;
    s->x = s->x > s->right ? s->right : s->x;
    s->across = enduro_within((s->x - 57.5f) / 26.0f, 0.0f, 1.0f);
    s->base_x = 102.0f - 48.0f * s->across;
    const float share = enduro_within(enduro_share(s->speed), 0.0f, 1.0f);
    s->wiggle_y += ENDURO_DEPTH / ((5.8f - sqrtf(sqrtf(share)) * 5.5f) * 60.0f);
    if (s->wiggle_y > ENDURO_BOTTOM)
        s->wiggle_y = ENDURO_HORIZON;
    s->y = enduro_within(ENDURO_LOW - enduro_share(s->speed) * (ENDURO_LOW - ENDURO_HIGH), ENDURO_HIGH, ENDURO_LOW);
    if (s->x <= s->left || s->x >= s->right) {
        reward -= 0.5f;
        s->speed = s->speed - 1.25f < ENDURO_SLOWEST ? ENDURO_SLOWEST : s->speed - 1.25f;
        s->stopped_road = 20;
        s->drift = 0;
        s->x = s->x < s->right - 1.0f ? s->x : s->right - 1.0f;
        s->x = s->x > s->left + 1.0f ? s->x : s->left + 1.0f;
    }

    for (int i = 0; i < s->n_cars; i++) {
        struct enduro_car *car = &s->cars[i];
        if (car->y > ENDURO_BOTTOM + 5.0f * ENDURO_LONG || (s->speed < 0.0f && car->y <= ENDURO_HORIZON + 12.0f)) {
            enduro_remove(s, i--);
            continue;
        }
        if (s->speed <= 0.0f && car->y >= s->y + ENDURO_LONG) { /* behind: it passes in the far lane */
            car->lane = (int16_t)enduro_far_lane(s);
            continue;
        }
        if (s->speed > 0.0f && car->last_y < s->y + ENDURO_LONG && car->y >= s->y + ENDURO_LONG &&
            s->stopped_car <= 0 && s->stopped_road <= 0) {
            s->to_pass -= s->to_pass > 0;
            if (!car->passed) {
                reward += 1.0f;
                s->no_crash = 1;
                s->bonus += 0.001f;
            }
            car->passed = 1;
        } else if (s->speed < 0.0f && car->last_y > s->y && car->y <= s->y && s->to_pass != (s->day == 1 ? 200 : 300)) {
            s->to_pass++;
            reward -= 0.1f;
        }
        car->last_y = car->y;
        car->last_x = car->x;
        if (s->stopped_car <= 0 && enduro_hits(s, car)) {
            reward -= 0.5f;
            s->speed = ENDURO_SLOWEST + 1.0f;
            s->stopped_car = 90;
            s->drift = 0;
            s->no_crash = 0;
            s->bonus = 0.0f;
        }
    }
    enduro_spawn(s);

    if (s->to_pass <= 0)
        s->day_won = 1;
    const bool won = over && s->day_won, lost = over && !s->day_won;
    if (won) {
        s->days++;
        s->day++;
        reward += 1.0f;
        s->to_pass = 300;
        s->day_won = 0;
        s->scored = 1;
    }
    if (!lost)
        reward += (s->no_crash ? s->bonus : 0.0f) + s->penalty;
    s->lane = enduro_lane(s);
    step->rewards[0] = reward;
    step->ended = lost;
    step->truncated = won;
    step->score = (float)s->days;
    step->perf = s->days < 10 ? 0.1f * (float)s->days : 1.0f;
}

ENV_OBS_FN void enduro_days_observe(const struct enduro_days_settings *settings, const struct enduro_days_state *s,
                                    int agent, env_obs *obs)
{
    const float wide = s->right - s->left, push = s->curve * (s->speed < 0.0f ? -s->speed : s->speed);
    float nearest[3] = {ENDURO_DEPTH, ENDURO_DEPTH, ENDURO_DEPTH};

    obs[0] = (s->x - s->left) / wide;
    obs[1] = (ENDURO_LOW - s->y) / (ENDURO_LOW - ENDURO_HIGH);
    obs[2] = enduro_share(s->speed);
    obs[3] = enduro_edge(s, s->y, 0.0f, -1) / 152.0f;
    obs[4] = (enduro_edge(s, s->y, 0.0f, 1) - ENDURO_WIDE) / 152.0f;
    obs[5] = s->left / 152.0f;
    obs[6] = s->right / 152.0f;
    obs[7] = 0.5f * (float)s->lane;
    for (int i = 0; i < ENDURO_CARS; i++) {
        const struct enduro_car *car = &s->cars[i];
        const bool seen = car->y > ENDURO_HORIZON && car->y < ENDURO_BOTTOM; /* one that is gone too, as there */
        obs[8 + 5 * i] = seen ? enduro_within((car->x - ENDURO_WIDE * 0.5f - s->left) / wide, 0.0f, 1.0f) : 0.5f;
        obs[9 + 5 * i] =
            seen ? enduro_within((ENDURO_BOTTOM - car->y + ENDURO_LONG * 0.5f) / ENDURO_DEPTH, 0.0f, 1.0f) : 0.5f;
        obs[10 + 5 * i] = seen ? (car->last_x - car->x) / wide : 0.0f;
        obs[11 + 5 * i] = seen ? (car->last_y - car->y) / ENDURO_DEPTH : 0.0f;
        obs[12 + 5 * i] = seen && car->lane == s->lane ? 1.0f : 0.0f;
    }
    obs[58] = 0.5f * (float)(enduro_way(s) + 1);
    obs[59] = s->curve > 0.0f ? 1.0f : -1.0f;
    obs[60] = (push < 0.0f ? -push : push) / ENDURO_FASTEST;
    obs[61] = s->curve;
    obs[62] = s->elapsed / ENDURO_DAY_S;
    obs[63] = (float)s->to_pass / 200.0f;
    for (int i = 0; i < s->n_cars; i++)
        if (s->cars[i].y < s->y && s->y - s->cars[i].y < nearest[s->cars[i].lane])
            nearest[s->cars[i].lane] = s->y - s->cars[i].y;
    for (int lane = 0; lane < 3; lane++)
        obs[64 + lane] = nearest[lane] / ENDURO_DEPTH;
    obs[67] = 0.0f;
}

ENV_GPU(enduro_days, env_gpu_rows<ENDURO_OBS>)

#ifndef __CUDACC__
static const struct opt_def enduro_days_options[] = {
    OPT_ROW_INT(struct enduro_days_settings, unused, "0", 0, 0, OPT_FIXED, 0, 0, "", "Has no effect."),
};
static const struct env_about enduro_days_about = {"overtaking cars, day after day", NULL, 0};

static inline void enduro_days_draw(const struct enduro_days_settings *settings, const struct enduro_days_state *s,
                                    struct env_picture *p)
{
    p->width = 152;
    p->height = 154;
    for (int side = -1; side <= 1; side += 2)
        for (int y = 52; y < 152; y += 4)
            env_draw_line(p, enduro_edge(s, (float)y, 0.0f, side), y, enduro_edge(s, (float)y + 4.0f, 0.0f, side),
                          y + 4, 1, ENV_FOREGROUND);
    for (int i = 0; i < s->n_cars; i++) {
        const double wide = ENDURO_WIDE * enduro_scale(s->cars[i].y);
        env_draw_rect(p, enduro_lane_x(s, s->cars[i].lane, s->cars[i].y) - wide / 2, s->cars[i].y, wide, wide * 0.7,
                      ENV_OPPONENT);
    }
    env_draw_rect(p, s->x, s->y, ENDURO_WIDE, ENDURO_LONG, ENV_OWN);
}
#endif

#endif
