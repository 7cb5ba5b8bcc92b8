/* env_loop.h - what a batch does with one instance of a game, the same code on host and device. (public)
 * A template: include it once per game, after the game's header:
 *   #define ENV_GAME breakout
 *   #include "envs/env_loop.h"        (a game with a mask has #define ENV_GAME_HAS_MASK below its header's guard)
 * ENV_GAME_PLAIN before it leaves out the struct env_def, and what a header needs for it alone: options, about, draw.
 * It declares struct breakout_instance and the functions breakout_instance_{reset,observe,step}; a batch is an array of
 * instances, and a batch loop calls one of these for every index (a kernel that writes observations in its own way
 * takes breakout_instance_turn instead of step, or breakout_instance_{play,end}). Everything is per instance: nothing
 * is shared, so the result does not depend on the order or the number of threads.
 *
 * Order within a step: game step -> flags -> (at an end) final observation if truncated, log, new episode ->
 * observation and mask of what the next decision sees. */
#include "envs/env.h"

#define LOOP_PASTE_(a, b) a##b
#define LOOP_PASTE(a, b) LOOP_PASTE_(a, b)
#define LOOP(suffix) LOOP_PASTE(ENV_GAME, suffix)
#define LOOP_TEXT_(name) #name
#define LOOP_TEXT(name) LOOP_TEXT_(name)
#ifdef ENV_GAME_BYTES
#define LOOP_HOST_OBS uint8_t
#define LOOP_OBS uint8_t
#define LOOP_OBS_FN ENV_FN
#define LOOP_ROW(shape) ((uint64_t)env_row_bytes(&(shape)))
#else
#define LOOP_HOST_OBS float
#define LOOP_OBS env_obs
#define LOOP_OBS_FN ENV_OBS_FN
#define LOOP_ROW(shape) ((uint64_t)(shape).obs_size)
#endif
#define LOOP_SHAPE(shape)                                                                                              \
    struct env_shape shape;                                                                                            \
    env_shape_plain(&shape);                                                                                           \
    LOOP(_shape)(settings, &shape)

struct LOOP(_instance) {
    struct LOOP(_state) state; /* first: a pointer to the instance is one to its state */
    struct env_track track; /* last */
};

ENV_FN void LOOP(_instance_begin)(const struct LOOP(_settings) * settings, struct LOOP(_instance) * it)
{
    it->track.ep_return = 0.0;
    it->track.ep_length = 0.0;
    it->track.score = 0.0f;
    it->track.perf = 0.0f;
    LOOP(_reset)(settings, &it->state);
}

/* First episode of instance i of a batch whose stream is root; root.counter is the number of its first instance where
 * the batch is a part of a larger one, so that the parts play what the whole would. */
ENV_FN void LOOP(_instance_reset)(const struct LOOP(_settings) * settings, struct LOOP(_instance) * it, struct rng root,
                                  uint64_t i)
{
    it->state.rng = rng_split(root, root.counter + i);
    LOOP(_instance_begin)(settings, it);
}

/* What agent `agent` of instance i sees, and its mask; the tensors are the batch's: obs (A, obs_size), mask (A, sum of
 * head_sizes) or NULL. */
LOOP_OBS_FN void LOOP(_instance_look)(const struct LOOP(_settings) * settings, const struct LOOP(_instance) * it,
                                      LOOP_OBS *obs, uint8_t *mask, uint64_t i, int agent)
{
    LOOP_SHAPE(shape);
    const uint64_t row = i * (uint64_t)shape.n_agents + (uint64_t)agent;
    LOOP(_observe)(settings, &it->state, agent, obs + row * LOOP_ROW(shape));
#ifdef ENV_GAME_HAS_MASK
    uint64_t width = 0;
    for (int h = 0; h < shape.n_heads; h++)
        width += (uint64_t)shape.head_sizes[h];
    LOOP(_mask)(settings, &it->state, agent, mask + row * width);
#else
    (void)mask;
#endif
}

LOOP_OBS_FN void LOOP(_instance_observe)(const struct LOOP(_settings) * settings, const struct LOOP(_instance) * it,
                                         LOOP_OBS *obs, uint8_t *mask, uint64_t i)
{
    LOOP_SHAPE(shape);
    for (int a = 0; a < shape.n_agents; a++)
        LOOP(_instance_look)(settings, it, obs, mask, i, a);
}

/* One decision up to the end of the episode, if it ends: ret_step is for LOOP(_instance_end). The pointers are
 * this instance's rows of the batch's tensors. */
ENV_FN void LOOP(_instance_play)(const struct LOOP(_settings) * settings, struct LOOP(_instance) * it,
                                 const int32_t *actions, const float *reals, float *rewards, uint8_t *terms,
                                 uint8_t *truncs, struct env_step *ret_step)
{
    LOOP_SHAPE(shape);

    ret_step->reals = reals;
    ret_step->rewards = rewards;
    ret_step->terms = ret_step->truncs = NULL;
    ret_step->ended = false;
    ret_step->truncated = false;
    ret_step->score = 0.0f;
    ret_step->perf = 0.0f;
    LOOP(_step)(settings, &it->state, actions, ret_step);

    double sum = 0.0;
    for (int a = 0; a < shape.n_agents; a++) {
        sum += (double)rewards[a];
        terms[a] = ret_step->ended;
        truncs[a] = ret_step->truncated;
    }
    it->track.ep_return += shape.n_agents == 1 ? sum : sum / (double)shape.n_agents;
    it->track.ep_length += 1.0;
    it->track.score = ret_step->score;
    it->track.perf = ret_step->perf;
}

/* After a step that ended the episode: it goes into the log, and the next one begins. */
ENV_FN void LOOP(_instance_end)(const struct LOOP(_settings) * settings, struct LOOP(_instance) * it,
                                struct env_log *log, const struct env_step *step)
{
    env_log_add(log, &it->track, step->score, step->perf);
    LOOP(_instance_begin)(settings, it);
}

/* A whole decision but for what the next one sees. The pointers are this instance's rows; final_obs or NULL. */
LOOP_OBS_FN void LOOP(_instance_turn)(const struct LOOP(_settings) * settings, struct LOOP(_instance) * it,
                                      struct env_log *log, const int32_t *actions, const float *reals, float *rewards,
                                      uint8_t *terms, uint8_t *truncs, LOOP_OBS *final_obs)
{
    LOOP_SHAPE(shape);
    const uint64_t size = LOOP_ROW(shape);
    struct env_step step;

#ifdef ENV_GAME_AGENTS_END
    step.reals = reals;
    step.rewards = rewards;
    step.terms = terms;
    step.truncs = truncs;
    step.ended = step.truncated = false;
    for (int a = 0; a < shape.n_agents; a++)
        terms[a] = truncs[a] = 0;
    LOOP(_step)(settings, &it->state, actions, &step);
    for (int a = 0; a < shape.n_agents; a++) {
        struct env_track *track = LOOP(_track)(&it->state, a);
        track->ep_return += (double)rewards[a];
        track->ep_length += 1.0;
        terms[a] |= step.ended;
        truncs[a] |= step.truncated && !terms[a];
        if (!terms[a] && !truncs[a])
            continue;
        if (truncs[a] && final_obs)
            LOOP(_observe)(settings, &it->state, a, final_obs + (uint64_t)a * size);
        track->episodes += 1.0;
        if (!(log->limit > 0.0) ||
            track->episodes * (double)shape.n_agents <= log->limit) /* else short lives count more */
            env_log_add(log, track, track->score, track->perf);
        track->ep_return = track->ep_length = 0.0;
        track->score = track->perf = 0.0f;
    }
    for (int a = 0; a < shape.n_agents && !step.ended && !step.truncated; a++)
        if (terms[a] || truncs[a])
            LOOP(_respawn)(settings, &it->state, a);
    if (step.ended || step.truncated)
        LOOP(_reset)(settings, &it->state);
#else
    LOOP(_instance_play)(settings, it, actions, reals, rewards, terms, truncs, &step);
    if (!step.ended && !step.truncated)
        return;
    if (shape.may_truncate && step.truncated && final_obs)
        for (int a = 0; a < shape.n_agents; a++)
            LOOP(_observe)(settings, &it->state, a, final_obs + (uint64_t)a * size);
    LOOP(_instance_end)(settings, it, log, &step);
#endif
}

/* io: the batch's tensors; only the rows of instance i are touched. */
ENV_FN void LOOP(_instance_step)(const struct LOOP(_settings) * settings, struct LOOP(_instance) * it,
                                 struct env_log *log, const struct env_io *io, uint64_t i)
{
    LOOP_SHAPE(shape);
    const uint64_t first = i * (uint64_t)shape.n_agents, actions = first * (uint64_t)shape.n_heads;
    LOOP_HOST_OBS *final_obs = (LOOP_HOST_OBS *)(void *)io->final_obs;

    LOOP(_instance_turn)
    (settings, it, log, io->actions + actions, io->reals ? io->reals + actions : NULL, io->rewards + first,
     io->terms + first, io->truncs + first, final_obs ? final_obs + first * LOOP_ROW(shape) : NULL);
    LOOP(_instance_observe)(settings, it, (LOOP_HOST_OBS *)(void *)io->obs, io->mask, i);
}

#ifndef __CUDACC__
/* The host's batch loops, as struct env_def wants them. Settings and tensor pointers are copied to locals: the compiler
 * then knows that no write to a tensor changes them. */
static void LOOP(_reset_range)(const void *settings, void *states, struct rng root, size_t from, size_t to)
{
    const struct LOOP(_settings) own = *(const struct LOOP(_settings) *)settings;
    struct LOOP(_instance) *instances = (struct LOOP(_instance) *)states;
    for (size_t i = from; i < to; i++)
        LOOP(_instance_reset)(&own, &instances[i], root, i);
}

static void LOOP(_observe_range)(const void *settings, const void *states, float *obs, uint8_t *mask, size_t from,
                                 size_t to)
{
    const struct LOOP(_settings) own = *(const struct LOOP(_settings) *)settings;
    const struct LOOP(_instance) *instances = (const struct LOOP(_instance) *)states;
    for (size_t i = from; i < to; i++)
        LOOP(_instance_observe)(&own, &instances[i], (LOOP_HOST_OBS *)(void *)obs, mask, i);
}

static void LOOP(_step_range)(const void *settings, void *states, struct env_log *logs, const struct env_io *io,
                              size_t from, size_t to)
{
    const struct LOOP(_settings) own = *(const struct LOOP(_settings) *)settings;
    const struct env_io own_io = *io;
    struct LOOP(_instance) *instances = (struct LOOP(_instance) *)states;
    for (size_t i = from; i < to; i++)
        LOOP(_instance_step)(&own, &instances[i], &logs[i], &own_io, i);
}

static enum status LOOP(_check_shape)(const struct env_def *def, const void *settings, struct env_shape *ret_shape,
                                      struct error *err)
{
#ifdef ENV_GAME_HAS_MASK
    const bool has_mask = true;
#else
    const bool has_mask = false;
#endif
#ifdef ENV_GAME_BYTES
    const bool bytes = true;
#else
    const bool bytes = false;
#endif
#ifdef ENV_GAME_AGENTS_END
    const bool agents_end = true;
#else
    const bool agents_end = false;
#endif
    (void)def;
    *ret_shape = (struct env_shape){0};
    env_shape_plain(ret_shape);
    LOOP(_shape)((const struct LOOP(_settings) *)settings, ret_shape);
    if (ret_shape->u8 != bytes || ret_shape->agents_end != agents_end)
        return FAIL(
            err, ST_CONFIG,
            "env " LOOP_TEXT(ENV_GAME) ": its shape has u8 = %s and agents_end = %s, its header %s ENV_GAME_BYTES "
                                       "and %s ENV_GAME_AGENTS_END; each stands in both or in none",
            ret_shape->u8 ? "true" : "false", ret_shape->agents_end ? "true" : "false",
            bytes ? "defines" : "does not define", agents_end ? "defines" : "does not define");
    if (ret_shape->has_mask != has_mask)
        return FAIL(err, ST_CONFIG,
                    "env " LOOP_TEXT(ENV_GAME) ": its shape has has_mask = %s, its header %s ENV_GAME_HAS_MASK; a game "
                                               "with a mask has both",
                    ret_shape->has_mask ? "true" : "false", has_mask ? "defines" : "does not define");
    return ST_OK;
}

#ifndef ENV_GAME_PLAIN
static void LOOP(_draw_state)(const void *settings, const void *state, struct env_picture *picture)
{
    LOOP(_draw)((const struct LOOP(_settings) *)settings, (const struct LOOP(_state) *)state, picture);
}

static const struct env_def LOOP(_def) = {
    .api_version = ENV_API_VERSION,
    .def_bytes = sizeof(struct env_def),
    .name = LOOP_TEXT(ENV_GAME),
    .about = &LOOP(_about),
    .options = {.section = "env",
                .title = "Environment: " LOOP_TEXT(ENV_GAME),
                .defs = LOOP(_options),
                .n_defs = sizeof LOOP(_options) / sizeof LOOP(_options)[0],
                .settings_size = sizeof(struct LOOP(_settings))},
    .shape = LOOP(_check_shape),
    .reset_range = LOOP(_reset_range),
    .observe_range = LOOP(_observe_range),
    .step_range = LOOP(_step_range),
    .state_size = sizeof(struct LOOP(_instance)),
#ifndef ENV_GAME_AGENTS_END /* each agent has its own, and what counts is their log */
    .track_at = offsetof(struct LOOP(_instance), track),
#endif
    .draw = LOOP(_draw_state),
};
#endif
#endif

#undef LOOP
#undef LOOP_PASTE
#undef LOOP_PASTE_
#undef LOOP_TEXT
#undef LOOP_TEXT_
#undef LOOP_OBS
#undef LOOP_HOST_OBS
#undef LOOP_OBS_FN
#undef LOOP_ROW
#undef LOOP_SHAPE
#undef ENV_GAME_BYTES
#undef ENV_GAME_AGENTS_END
#undef ENV_GAME
#undef ENV_GAME_HAS_MASK
#undef ENV_GAME_PLAIN
