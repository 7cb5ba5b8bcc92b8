/* env_commands.h - `trawl env new|build|check|describe|play`: games of the user's own, from nothing to a library. */
#pragma once

#include "sweep/cmd/commands.h"

command_fn env_new, env_build, env_check, env_play;

/* For an answer to a parent, with which this process ends even while a game hangs. What the game prints goes to stderr
 * from here on; *ret_out is where stdout went (fclose). */
enum status env_keep_stdout(FILE **ret_out, struct error *err) MUST_USE;

/* Half of the machine's memory for this process, and as much for each that it starts: a game that takes more and more
 * fails before other programs do. */
void env_limit_memory(void);

/* env_puffer.c: writes folder/puffer_game.h for a game in the folder dir: its name and its options, found in its
 * binding.c, with the defaults of the config of PufferLib's tree that it lies in, if it lies in one. */
enum status env_puffer_write(const char *dir, const char *name, const char *folder, struct error *err) MUST_USE;
