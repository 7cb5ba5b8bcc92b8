/* child.h - this program again as a child that may load a game's library: lines to it and from it, a limit of time, and
 * what became of it. It gets no login of a tracker (base/os/environment.h). One thread; child_end frees it. (public) */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/status.h"
#include "base/text/strbuf.h"

struct child {
    pid_t pid;
    int in, out, log; /* ours: its stdin, stdout and stderr */
    struct strbuf answer; /* read and not taken yet */
    struct strbuf said; /* the end of its log */
    int state; /* of waitpid, once it is reaped */
    int stop; /* child_line gives up at once while it is readable; -1: none. Borrowed */
};

/* argv[0] is "trawl", NULL ends it. On failure nothing is left. */
enum status child_start(struct child *child, char *const argv[], struct error *err) MUST_USE;
/* false: it has closed its stdin. */
bool child_send(struct child *child, const char *line) MUST_USE;
/* Its next line, without its end, until the next call; NULL: it closed its stdout, or said nothing for timeout_s,
 * or `stop`. */
const char *child_line(struct child *child, double timeout_s);
/* All that it says until it ends. */
const char *child_text(struct child *child, double timeout_s);
/* What went wrong, after child_line or child_text gave NULL: kills it if it still runs. what: "describe itself". */
enum status child_fail(struct child *child, const char *path, const char *what, double timeout_s,
                       struct error *err) MUST_USE;
void child_end(struct child *child); /* one that never started, all zero, is fine */
