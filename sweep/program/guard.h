/* guard.h - a program in a process of its own, under a guard that lets nothing of it outlive the process that asked for
 * it. A struct guard owns its descriptors and the guard process (guard_close); one thread at a time. */
#pragma once

#include "base/base.h"

#include <sys/types.h>

struct guard {
    pid_t pid; /* of the guard; 0: none */
    int control_fd; /* to it; when this closes, by whatever end of ours, it kills the program */
    int report_fd; /* from it, non-blocking */
    int output_fd; /* the program's stdout and stderr, non-blocking; -1: closed */
};

enum guard_signal { GUARD_TERM = 'T', GUARD_KILL = 'K' };

/* How the program ended. */
struct guard_end {
    int start_errno; /* not 0: it could not be started */
    bool in_directory; /* ... since its folder cannot be entered */
    bool is_there; /* ... although its folder, or the path that names it, has such a file */
    int wait_status; /* of waitpid */
};

/* argv and env: NULL-terminated. The program begins in directory, as the leader of a process group, with the usual
 * signals, stdin from /dev/null. A program that cannot be started is reported by guard_ended. */
enum status guard_start(struct guard *ret_guard, char *const *argv, char *const *env, const char *directory,
                        struct error *err) MUST_USE;
/* GUARD_TERM: to the program's process group; GUARD_KILL: SIGKILL to it and to whatever has left the group. */
void guard_send(struct guard *guard, enum guard_signal signal);
/* True when the program and all that it started has ended. Never waits. */
bool guard_ended(struct guard *guard, struct guard_end *ret_end);
void guard_close(struct guard *guard); /* kills what is left; a zeroed one is fine */
/* Of a process that has started none: a shell's `exec trawl` leaves it the shell's background processes. They are the
 * user's, and look like what a game has started: then guard_sweep_up may not be called. */
bool guard_has_children(void);
/* Kills and reaps all children of this process, and theirs; of a subreaper (PR_SET_CHILD_SUBREAPER) their orphans too.
 * What does not die within seconds (in the kernel) is left to init. Makes only system calls. */
void guard_sweep_up(void);
/* A mark in the environment of a process is in that of all that it starts. guard_mark makes one that no other process
 * has; guard_sweep_marked kills all that have it, wherever they have gone, when the one that it was given to has
 * ended. 0: no mark, nothing is killed. */
#define GUARD_MARK_MAX 48
uint64_t guard_mark(void);
const char *guard_mark_variable(uint64_t mark, char buf[GUARD_MARK_MAX]); /* "TRAWL_WORKER=..." */
void guard_sweep_marked(uint64_t mark);
