/* plain_game.h - the struct env_def of a test's own game, after envs/env_loop.h with ENV_GAME_PLAIN, whose loops it
 * names. track: its track_at. */
#pragma once

#include "envs/env_def.h"

#define PLAIN_GAME(game, what, track)                                                                                  \
    static const struct env_about game##_about = {what, NULL, 0};                                                      \
    static const struct env_def game##_def = {                                                                         \
        .api_version = ENV_API_VERSION,                                                                                \
        .name = #game,                                                                                                 \
        .about = &game##_about,                                                                                        \
        .options = {.section = "env", .title = #game, .settings_size = sizeof(struct game##_settings)},                \
        .state_size = sizeof(struct game##_instance),                                                                  \
        .track_at = track,                                                                                             \
        .shape = game##_check_shape,                                                                                   \
        .reset_range = game##_reset_range,                                                                             \
        .observe_range = game##_observe_range,                                                                         \
        .step_range = game##_step_range,                                                                               \
    }
