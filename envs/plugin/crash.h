/* crash.h - the line that a process with a game's library leaves when a signal of a wrong instruction kills it. (public) */
#pragma once

#define CRASH_LINE "killed by signal " /* how that line begins */

/* Before the library at path is opened; by the same thread after that, with what dlopen gave. Never fail: without them
 * the process dies as it did, without the line. */
void crash_begin(const char *path);
void crash_opened(const char *path, void *handle);
