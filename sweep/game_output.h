/* game_output.h - for commands that play games in their own process: what is printed to stdout and stderr meanwhile goes
 * through a process beside it, which shows it as a sweep shows that of its workers (game_log.h), also when a game ends
 * this one. What the command itself prints meanwhile goes to term_err(), and to game_output_result(). State of the
 * process; its main thread. */
#pragma once

#include "base/base.h"

struct env_def;

/* who: the command, for messages. env: the game, NULL: not known yet. Without effect with TRAWL_DEBUG, for a built-in
 * game, which prints nothing, and where the system gives no pipe or process. */
void game_output_begin(const char *who, const struct env_def *env);
/* All that was printed has been shown when it returns, after a failure the last lines too. */
void game_output_end(bool failed);
FILE *game_output_result(void); /* stdout as it was */
