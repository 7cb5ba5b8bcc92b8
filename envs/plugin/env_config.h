/* env_config.h - the game that a config names: a built-in one by its name, a library by its path, or an environment of
 * Gymnasium. */
#pragma once

#include <stddef.h>

#include "base/config/opt.h"
#include "base/status.h"

struct config;
struct env_def;

extern const struct opt_table env_opt_table; /* [env] name */
extern const struct opt_table env_library_opt_table; /* [env] hash: of a library's game alone */

/* A word of a command line that is a library: env.name becomes its whole path, above what files say. */
enum status env_config_set_library(struct config *config, const char *word, struct error *err) MUST_USE;
/* Finds it, after dialect_begin; adds its tables and its defaults to config. A path in a file is taken from the folder
 * of that file, and becomes whole; so do the Python of an environment of Gymnasium and the folder of its modules. A
 * library whose hash is not env.hash is refused where it would play, and gives a warning where it is only
 * described. */
enum status env_config_add(struct config *config, const struct env_def **ret_env, struct error *err) MUST_USE;
