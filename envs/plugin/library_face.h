/* library_face.h - what trawl_env.h has besides the contract of a game: the one symbol of a library. (make_header.py
 * puts this file and all that it includes into one.)
 *
 * A game outside the program is a shared library that exports trawl_env(). From nothing:
 *   trawl env new my_game && trawl env build my_game.h && trawl env check ./my_game.so && trawl train ./my_game.so
 * Three ways to make one, from short to free:
 *   1. a header of the same form as a built-in game's (struct env_shape tells how): `trawl env build my_game.h`. Where
 *      there is nvcc, it lives on a GPU too;
 *   2. the same in a file of your own, for memory of your own or C++:
 *        #include "trawl_env.h"
 *        ... struct my_game_settings, struct my_game_state, my_game_shape, _reset, _step, _observe, _draw, ...
 *        #define ENV_GAME my_game
 *        #include "trawl_env.h"            (again: the batch loop and struct env_def my_game_def)
 *        TRAWL_ENV(my_game_def)
 *   3. a struct env_def filled by hand, in any language that can export a C function.
 * The library runs in workers alone: what it breaks costs a trial. */
#ifndef TRAWL_ENV_FACE_H
#define TRAWL_ENV_FACE_H

#include "base/rng.h"
#include "base/status.h"
#include "base/config/opt.h"
#include "envs/draw.h"
#include "envs/env_def.h"
#include "envs/env.h"
#include "envs/env_math.h"

#include <stdarg.h>
#include <stdio.h>

#ifdef __cplusplus
#define TRAWL_EXPORT extern "C" __attribute__((visibility("default")))
#else
#define TRAWL_EXPORT __attribute__((visibility("default")))
#endif

/* The symbol: the table lives as long as the library. Called once, before anything else. */
TRAWL_EXPORT const struct env_def *trawl_env(void);
#define TRAWL_ENV(def)                                                                                                 \
    TRAWL_EXPORT const struct env_def *trawl_env(void)                                                                 \
    {                                                                                                                  \
        return &(def);                                                                                                 \
    }

/* error_set is the program's; a library reports what is wrong by FAIL(err, ST_CONFIG, "size is %d, ...", size). */
__attribute__((unused, format(printf, 3, 4))) static inline enum status
trawl_fail(struct error *err, enum status status, const char *fmt, ...)
{
    va_list args;

    if (err == NULL || err->status != ST_OK)
        return status;
    err->status = status;
    va_start(args, fmt);
    vsnprintf(err->text, sizeof err->text, fmt, args);
    va_end(args);
    return status;
}
#undef FAIL
#define FAIL(err, status, ...) trawl_fail((err), (status), __VA_ARGS__)

#endif
