/* gap.h - fly through the gaps of walls: a game in a library, in the form of the built-in ones.
 *
 *   trawl env build examples/plugin/gap.h && trawl env check ./gap.so && trawl train ./gap.so
 *
 * A bird falls with gravity and rises when it flaps. Walls come towards it, one every GAP_EVERY steps, each with a gap
 * at a height drawn at random. The episode ends when the bird leaves the field or meets a wall, or after `walls` walls.
 * Reward: 1 for a wall that was passed, -1 for the end by a collision.
 * Observation: height and speed of the bird, distance and height of the next gap. Actions: 0 fall, 1 flap (anything
 * else falls). score = walls passed, perf = score / walls. */
#ifndef EXAMPLE_GAP_H
#define EXAMPLE_GAP_H

#include "trawl_env.h"

#define GAP_EVERY 20 /* steps from wall to wall */
#define GAP_HALF 0.15f /* of a gap's height; the field is 1 high */
#define GAP_GRAVITY 0.004f /* per step */
#define GAP_FLAP 0.03f

struct gap_settings {
    int64_t walls; /* of an episode */
};

struct gap_state {
    struct rng rng;
    float y, vy, gap;
    int32_t distance; /* steps to the next wall */
    int32_t passed;
    int32_t unused; /* no padding: whole states compare as bytes */
};

ENV_FN void gap_shape(const struct gap_settings *settings, struct env_shape *ret_shape)
{
    (void)settings;
    ret_shape->obs_size = 4;
    ret_shape->n_agents = 1;
    ret_shape->n_heads = 1;
    ret_shape->head_sizes[0] = 2;
}

ENV_FN void gap_next(struct gap_state *state)
{
    state->gap = 0.25f + 0.5f * rng_f32(&state->rng);
    state->distance = GAP_EVERY;
}

ENV_FN void gap_reset(const struct gap_settings *settings, struct gap_state *state)
{
    (void)settings;
    state->y = 0.5f;
    state->vy = 0.0f;
    state->passed = 0;
    gap_next(state);
}

ENV_FN void gap_step(const struct gap_settings *settings, struct gap_state *state, const int32_t *actions,
                     struct env_step *step)
{
    state->vy = actions[0] == 1 ? GAP_FLAP : state->vy - GAP_GRAVITY;
    state->y += state->vy;
    state->distance--;

    bool wall = state->distance == 0;
    float off = state->y - state->gap;
    bool hit = state->y < 0.0f || state->y > 1.0f || (wall && (off > GAP_HALF || off < -GAP_HALF));
    if (wall && !hit) {
        state->passed++;
        gap_next(state);
    }
    step->rewards[0] = hit ? -1.0f : wall ? 1.0f : 0.0f;
    step->ended = hit || state->passed == settings->walls;
    step->score = (float)state->passed;
    step->perf = (float)state->passed / (float)settings->walls;
}

ENV_OBS_FN void gap_observe(const struct gap_settings *settings, const struct gap_state *state, int agent, env_obs *obs)
{
    (void)settings;
    (void)agent;
    obs[0] = 2.0f * state->y - 1.0f;
    obs[1] = state->vy / GAP_FLAP;
    obs[2] = (float)state->distance / (float)GAP_EVERY;
    obs[3] = 2.0f * state->gap - 1.0f;
}

/* on a GPU: an observation is 4 numbers */
ENV_GPU(gap, env_gpu_rows<4>)

#ifndef __CUDACC__
static const struct opt_def gap_options[] = {
    OPT_ROW_INT(struct gap_settings, walls, "10", 1, 1000, OPT_FIXED, 0, 0, "walls",
                "Ends an episode after this many walls."),
};
static const struct env_about gap_about = {"fly through the gaps of walls", NULL, 0};

static inline void gap_draw(const struct gap_settings *settings, const struct gap_state *state, struct env_picture *p)
{
    double x = 40.0 + 15.0 * state->distance;

    (void)settings;
    p->width = 400;
    p->height = 300;
    env_draw_rect(p, x, 0, 20, 300.0 * (1.0 - (double)state->gap - (double)GAP_HALF), ENV_OPPONENT);
    env_draw_rect(p, x, 300.0 * (1.0 - (double)state->gap + (double)GAP_HALF), 20, 300, ENV_OPPONENT);
    env_draw_circle(p, 40, 300.0 * (1.0 - (double)state->y), 10, ENV_OWN);
    env_draw_text(p, 10, 24, 16, -1, "%d walls", (int)state->passed);
}
#endif

#endif
