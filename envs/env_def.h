/* env_def.h - a game as the program handles it: one table under built-in games, games of the user's and those of other
 * frameworks. (public; part of trawl_env.h: a library's trawl_env() returns it, so every change of the layout of
 * what it reaches raises ENV_API_VERSION: envs/plugin/library.c asserts it)
 *
 * Host only. A batch is n instances of a game with one option set. Its memory is plain bytes (an array of n states of
 * state_size bytes, zeroed, copied to save it), or the game's own: then open makes it and close frees it, and `states`
 * below is whatever open gave. The *_range functions are called by several threads at once, each for instances
 * [from, to) of its own; they touch only the rows of those in the tensors, and their logs. */
#ifndef ENVS_ENV_DEF_H
#define ENVS_ENV_DEF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/config/opt.h"
#include "base/rng.h"
#include "base/status.h"

#define ENV_API_VERSION 9

struct env_io;
struct env_log;
struct env_picture;
struct env_shape;

/* A default that the game sets in another section: {"train.reward_clip", "1"}. */
struct env_default {
    const char *key, *value;
};

/* What a game's header says of it. */
struct env_about {
    const char *summary; /* one line for `trawl envs` */
    const struct env_default *defaults;
    size_t n_defaults;
};

struct env_def {
    uint32_t api_version; /* ENV_API_VERSION; first, whatever comes after: another one is refused */
    uint32_t def_bytes; /* sizeof(struct env_def) */
    const char *name;
    const struct env_about *about;
    struct opt_table options; /* section "env"; settings_size is the settings struct's */
    /* Checks settings beyond their ranges and gives the shape. */
    enum status (*shape)(const struct env_def *def, const void *settings, struct env_shape *ret_shape,
                         struct error *err);
    void (*reset_range)(const void *settings, void *states, struct rng root, size_t from, size_t to);
    void (*observe_range)(const void *settings, const void *states, float *obs, uint8_t *mask, size_t from, size_t to);
    void (*step_range)(const void *settings, void *states, struct env_log *logs, const struct env_io *io, size_t from,
                       size_t to);
    /* Plain bytes. */
    size_t state_size;
    size_t track_at; /* where the struct env_track lies in a state; 0: it has none */
    /* Of a state; of a game with memory of its own, of what save wrote for one instance. NULL: no picture. */
    void (*draw)(const void *settings, const void *state, struct env_picture *picture);
    /* Memory of its own; all NULL in a game of plain bytes. */
    enum status (*open)(const struct env_def *def, const void *settings, size_t n_envs, void **ret_states,
                        struct error *err);
    void (*close)(const void *settings, void *states, size_t n_envs);
    /* NULL: it cannot be saved; a resumed run plays new episodes. */
    size_t (*saved_bytes)(const void *states, size_t n_envs);
    void (*save)(const void *states, size_t n_envs, void *bytes);
    void (*load)(void *states, size_t n_envs, const void *bytes);
    /* Did a step fail (its process died)? Asked after each; what it gave is then not used. NULL: it cannot. */
    enum status (*failed)(const void *states, struct error *err);
    /* Seconds in which processes of its own have stepped it since all of it was reset. NULL: it has none. */
    double (*outside_s)(const void *states);
    /* Numbers of the game's own besides score and perf, at most ENV_MAX_NUMBERS: metrics, whose names begin with "env/"
     * and stay. */
    const char *const *number_names;
    size_t n_numbers;
    /* Sums (n_numbers) over the episodes since it was last asked, then forgotten; returns how many those were. Not
     * while it is stepped. NULL with n_numbers = 0. */
    double (*take_numbers)(void *states, size_t n_envs, double *ret_sums);
    /* Of a game that has processes of its own: asks them for a step of [from, to), and step_range waits for it. Several
     * ranges may be asked for before the first is waited for, in the same order. A range is then one call in one
     * thread. NULL: step_range does it all. */
    void (*begin_range)(const void *settings, void *states, const struct env_io *io, size_t from, size_t to);
    const void *source; /* the program's: where the game comes from; NULL in built-in ones and in libraries */
};

#endif
