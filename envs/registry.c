/* registry.c - the list of games: name, options and batch loops of each.
 * A new game adds its header, its option rows, one inclusion of env_loop.h and one line of the table; the
 * tests of tests/envs run over every game here. Option ranges keep every shape and counter of the game in range. */
#include "envs/envs.h"

#include <string.h>

#include "base/words.h"

/* -- breakout -- */
#include "envs/games/breakout.h"
#define ENV_GAME breakout
#include "envs/env_loop.h"

static const struct opt_def breakout_options[] = {
    OPT_ROW_INT(struct breakout_settings, frameskip, "4", 1, 60, OPT_FIXED, 0, 0, "frames",
                "Frames of 1/60 s played per decision."),
};

/* Bricks give up to 7 points, losing a ball nothing: clipped, every brick is worth the same to the learner. */
static const struct env_default breakout_defaults[] = {{"train.reward_clip", "1"}};

/* -- cartpole -- */
#include "envs/games/cartpole.h"
#define ENV_GAME cartpole
#include "envs/env_loop.h"

static const struct opt_def cartpole_options[] = {
    OPT_ROW_INT(struct cartpole_settings, max_steps, "500", 1, 1e6, OPT_FIXED, 0, 0, "steps",
                "Steps after which an episode is truncated; perf is steps / max_steps."),
};

/* -- memory -- */
#include "envs/games/memory.h"
#define ENV_GAME memory
#include "envs/env_loop.h"

static const struct opt_def memory_options[] = {
    OPT_ROW_INT(struct memory_settings, length, "4", 1, 1e6, OPT_FIXED, 0, 0, "steps",
                "Observations of zero between the cue and the answer."),
};

/* -- pong -- */
#include "envs/games/pong.h"
#define ENV_GAME pong
#include "envs/env_loop.h"

static const struct opt_def pong_options[] = {
    OPT_ROW_INT(struct pong_settings, frameskip, "8", 1, 60, OPT_FIXED, 0, 0, "frames", "Frames played per decision."),
};

/* -- squared -- */
#include "envs/games/squared.h"
#define ENV_GAME squared
#include "envs/env_loop.h"

static const struct opt_def squared_options[] = {
    OPT_ROW_INT(struct squared_settings, n, "5", 1, SQUARED_N_MAX, OPT_FIXED, 0, 0, "cells",
                "Cells from the centre to the border: the grid has (2n+1)^2 cells."),
};

/* -- the table, in alphabetical order -- */
#define COUNT(array) (sizeof(array) / sizeof(array)[0])

/* defaults_: array of struct env_default, or NULL with a count of 0. */
#define ENV_ROW(game, title_, summary_, defaults_, n_defaults_)                                                        \
    {                                                                                                                  \
        .api_version = ENV_API_VERSION, .name = #game, .summary = summary_,                                            \
        .options = {.section = "env",                                                                                  \
                    .title = title_,                                                                                   \
                    .defs = game##_options,                                                                            \
                    .n_defs = COUNT(game##_options),                                                                   \
                    .settings_size = sizeof(struct game##_settings)},                                                  \
        .defaults = defaults_, .n_defaults = n_defaults_, .state_size = sizeof(struct game##_instance),                \
        .track_at = offsetof(struct game##_instance, track), .shape = game##_check_shape,                              \
        .reset_range = game##_reset_range, .observe_range = game##_observe_range, .step_range = game##_step_range,     \
    }

static const struct env_def env_table[] = {
    ENV_ROW(breakout, "Environment: breakout", "clear two walls of bricks with ball and paddle", breakout_defaults,
            COUNT(breakout_defaults)),
    ENV_ROW(cartpole, "Environment: cartpole", "balance a pole on a cart (CartPole-v1)", NULL, 0),
    ENV_ROW(memory, "Environment: memory", "repeat a cue after a silence; needs a recurrent policy", NULL, 0),
    ENV_ROW(pong, "Environment: pong", "return the ball against a following opponent, first to 21", NULL, 0),
    ENV_ROW(squared, "Environment: squared", "walk to a target on the border of a grid", NULL, 0),
};

size_t env_count(void)
{
    return COUNT(env_table);
}

const struct env_def *env_at(size_t i)
{
    return &env_table[i];
}

const struct env_def *env_find(const char *name)
{
    for (size_t i = 0; i < COUNT(env_table); i++)
        if (strcmp(env_table[i].name, name) == 0)
            return &env_table[i];
    return NULL;
}

const char *env_nearest(const char *name)
{
    size_t best = 0, best_distance = SIZE_MAX;
    for (size_t i = 0; i < COUNT(env_table); i++) {
        size_t distance = word_distance(name, env_table[i].name);
        if (distance < best_distance) {
            best = i;
            best_distance = distance;
        }
    }
    return env_table[best].name;
}
