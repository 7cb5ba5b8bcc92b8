/* library.h - games in shared libraries (trawl_env.h): found by path, loaded or only described. (public)
 *
 * A process that may lose itself runs them: a worker, `trawl train`, eval, rerun, env check. It calls env_libraries_run
 * at its start, and env_open loads the library. Every other process (controller, serve, report) never loads one:
 * env_open asks a child, `trawl env describe`, under a time limit, and gets a table whose batches cannot be made.
 * What was loaded or described stays until the process ends. Any thread. */
#pragma once

#include <stdbool.h>

#include "base/status.h"

struct env_def;

#define ENV_LIBRARY_NAME_MAX 31 /* of the game's own name */
#define ENV_LIBRARY_HASH_BYTES 17

/* Does a game's name mean a library: does it end with ".so"? */
bool env_is_library(const char *name);
/* The same, or an environment of Gymnasium (gym:ID)? Neither is built in. */
bool env_is_outside(const char *name);
void env_libraries_run(void);
/* The program itself ends. A process with a library that ends in another way was ended by a game, which is an error. */
void env_libraries_leave(void);
/* How the line ends that such a process prints last: "trawl: PATH: ...". */
#define ENV_LIBRARY_EXITED "the game ended the process by exit(); a game reports what is wrong by FAIL"

/* A built-in game by its name, a library's by its path, or an environment of Gymnasium by gym:ID. A name that is
 * neither is ST_CONFIG. */
enum status env_open(const char *name, const struct env_def **ret_def, struct error *err) MUST_USE;

/* Of a game of a library: 16 hex digits of its file as it was opened; "" of a built-in one. */
const char *env_library_hash(const struct env_def *def);
bool env_library_has_changed(const struct env_def *def); /* its file, since then; or it is gone */
/* What its trawl_env_device() gave, device code of the layout of kernels/cuda: checked by who knows it. NULL: it has
 * none. */
const void *env_library_device(const struct env_def *def);
/* Is it for a child to play: a library's game that is only described here, or an environment of Gymnasium in a process
 * that runs no libraries? */
bool env_plays_elsewhere(const struct env_def *def);
