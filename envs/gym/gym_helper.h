/* gym_helper.h - one helper process: Python that runs bridge.py, whose head describes what passes between us. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/status.h"

extern const char gym_bridge[]; /* the texts of bridge_spaces.py and bridge.py */

/* What the program and one helper share; each cache line has one writer. bridge.py knows the places. */
struct gym_line {
    int64_t asked, awaited; /* how many commands; 1: the program sleeps until an answer */
    struct gym_command {
        int64_t what, from, to; /* 0 resets, 1 steps */
    } commands[2]; /* the two last, number i in place i % 2 */
    int64_t answered, asleep; /* how many; 1: the helper sleeps until a command */
    int64_t now; /* the instance that it works on, -1 before the first; for messages and limits */
    int64_t busy_ns; /* of all steps since the reset */
    int64_t late; /* 1: an instance is reset in the step after the one that ended its episode */
    int64_t planes; /* 1: the image that begins an observation has its channels first */
    int64_t height, width; /* of the frame of a film */
};

struct gym_helper {
    pid_t pid; /* 0: none */
    int socket_fd, text_fd, wakes_it, wakes_us; /* the last two: eventfd */
    int64_t n_received; /* answers */
    int misses, skipped; /* how often it was waited for in vain without sleep, less the other times; waits since */
    bool woken; /* for the last command, from sleep */
    int64_t spin_ns; /* how long we wait for an answer without sleep */
    volatile struct gym_line *line; /* NULL: it gets no commands */
};

#define GYM_HELPER_NONE ((struct gym_helper){.socket_fd = -1, .text_fd = -1, .wakes_it = -1, .wakes_us = -1})

/* Moves a descriptor (-1 is fine) above those that a helper gets; -1 without another. */
int gym_fd_above(int fd);
/* How long either side waits without sleep; 0: both always sleep and are woken. */
int64_t gym_helper_spin_ns(void);
/* helper: GYM_HELPER_NONE, and its line. task: its JSON. memory_fd: above those of a helper; -1 for none. Stopped by the
 * caller, also after a failure. */
enum status gym_helper_start(struct gym_helper *helper, const char *python, const char *task, int memory_fd,
                             struct error *err) MUST_USE;
/* At most two are unanswered. When it has died while an answer is due, gym_helper_wait reports what happened. */
enum status gym_helper_send(struct gym_helper *helper, struct gym_command command, struct error *err) MUST_USE;
/* Waits for the next answer; the first one is that it has started. timeout_s counts from the last change of `now`; before
 * its first, and without one, there is time to start Python too. what: "in the step of" or the like. A helper that hangs
 * is killed. */
enum status gym_helper_wait(struct gym_helper *helper, const char *what, double timeout_s, struct error *err) MUST_USE;
/* All that it has written, up to size - 1 bytes from its beginning. */
void gym_helper_text(const struct gym_helper *helper, char *buf, size_t size);
/* Ends its input; it has patience_s to end, then it is killed. */
void gym_helper_stop(struct gym_helper *helper, double patience_s);
