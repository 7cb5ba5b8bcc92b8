/* gym_helper.h - one helper process: Python that runs bridge.py, whose head describes what passes between us. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "base/status.h"

extern const char gym_bridge[]; /* the text of bridge.py */

struct gym_helper {
    pid_t pid; /* 0: none */
    int socket_fd, text_fd;
    int n_asked; /* commands that it has not answered */
    /* What it works on now, for messages and limits: a value in shared memory, or NULL. */
    const volatile int64_t *now;
};

#define GYM_HELPER_NONE ((struct gym_helper){.socket_fd = -1, .text_fd = -1})

/* Moves a descriptor (-1 is fine) above those that a helper gets; -1 without another. */
int gym_fd_above(int fd);
/* helper: GYM_HELPER_NONE. task: its JSON. memory_fd: above those of a helper; -1 for none. Stopped by the caller, also
 * after a failure. */
enum status gym_helper_start(struct gym_helper *helper, const char *python, const char *task, int memory_fd,
                             struct error *err) MUST_USE;
/* A command that cannot be sent while an answer is due is no failure here: gym_helper_wait reports what happened. */
enum status gym_helper_send(struct gym_helper *helper, char what, size_t from, size_t to, struct error *err) MUST_USE;
/* Waits for its answer. timeout_s counts from the last change of `now`; before its first, and without one, there is
 * time to start Python too. what: "in the step of" or the like. A helper that hangs is killed. */
enum status gym_helper_wait(struct gym_helper *helper, const char *what, double timeout_s, struct error *err) MUST_USE;
/* All that it has written, up to size - 1 bytes from its beginning. */
void gym_helper_text(const struct gym_helper *helper, char *buf, size_t size);
/* Ends its input; it has patience_s to end, then it is killed. */
void gym_helper_stop(struct gym_helper *helper, double patience_s);
