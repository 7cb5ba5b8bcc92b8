/* memory.h - repeat a cue after a silence; only a policy with memory can. (public)
 * The first observation is the cue, -1 or 1, each equally likely; then `length` observations of 0 follow. An episode is
 * length + 1 decisions, one per observation. Only the last counts: reward 1 if it repeats the cue, else 0.
 * Observation: 1 value. Actions: 1 says the cue was 1, 0 (or anything else) that it was -1.
 * score = perf = 1 if right. */
#ifndef ENVS_MEMORY_H
#define ENVS_MEMORY_H

#include "envs/env.h"

struct memory_settings {
    int64_t length; /* zeros between the cue and the answer, >= 1 */
};

struct memory_state {
    struct rng rng;
    int64_t steps;
    int64_t cue; /* -1 or 1 */
};

ENV_FN void memory_shape(const struct memory_settings *settings, struct env_shape *ret_shape)
{
    ret_shape->obs_size = 1;
    ret_shape->head_sizes[0] = 2;
}

ENV_FN void memory_reset(const struct memory_settings *settings, struct memory_state *state)
{
    state->steps = 0;
    state->cue = rng_below(&state->rng, 2) ? 1 : -1;
}

ENV_FN void memory_step(const struct memory_settings *settings, struct memory_state *state, const int32_t *actions,
                        struct env_step *step)
{
    bool last = state->steps == settings->length;
    bool right = (actions[0] == 1) == (state->cue == 1);
    state->steps++;
    step->rewards[0] = last && right ? 1.0f : 0.0f;
    step->ended = last;
    step->score = step->rewards[0];
    step->perf = step->rewards[0];
}

ENV_OBS_FN void memory_observe(const struct memory_settings *settings, const struct memory_state *state, int agent,
                               env_obs *obs)
{
    obs[0] = state->steps == 0 ? (float)state->cue : 0.0f;
}

ENV_GPU(memory, env_gpu_rows<1>)

#ifndef __CUDACC__
/* -- what the program shows -- */
static const struct opt_def memory_options[] = {
    OPT_ROW_INT(struct memory_settings, length, "4", 1, 1e6, OPT_FIXED, 0, 0, "steps",
                "Observations of zero between the cue and the answer."),
};
static const struct env_about memory_about = {"repeat a cue after a silence; needs a recurrent policy", NULL, 0};

static inline void memory_draw(const struct memory_settings *settings, const struct memory_state *s,
                               struct env_picture *p)
{
    double length = (double)settings->length, done = (double)s->steps / length;

    p->width = 360;
    p->height = 160;
    env_draw_text(p, 180, 34, 18, 0,
                  s->steps == 0                 ? "the cue"
                  : s->steps < settings->length ? "silence"
                                                : "the answer?");
    if (s->steps == 0)
        env_draw_text(p, 180, 92, 40, 0, "%+d", (int)s->cue);
    else
        env_draw_circle(p, 180, 78, s->steps < settings->length ? 6 : 16,
                        s->steps < settings->length ? ENV_FAINT : ENV_GOAL);
    env_draw_rect(p, 20, 126, 320, 10, ENV_FAINT);
    env_draw_rect(p, 20, 126, 320 * (done < 1 ? done : 1), 10, ENV_OWN);
}
#endif

#endif
