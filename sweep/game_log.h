/* game_log.h - what a process that plays games prints, line by line: its own lines ("trawl: ...") and the first of others
 * are shown, since games may print at each step; the end is kept. One thread. */
#pragma once

#include "base/base.h"

#define GAME_LOG_BYTES 4096

struct game_log {
    char text[GAME_LOG_BYTES]; /* the end, whole lines but for the first */
    size_t n, shown; /* bytes of text; those that have been dealt with */
    int64_t n_others; /* lines that are not the program's own */
    bool counts; /* others count: games may play */
    bool again; /* lines are shown again: not the program's own */
    const char *who; /* for the message that lines are left out: "cuda:0"; borrowed */
    void (*show)(void *ctx, const char *line, bool left_out); /* left_out: only where all details are shown */
    void *ctx;
};
void game_log_add(struct game_log *log, const char *bytes, size_t n);
void game_log_end(struct game_log *log); /* nothing follows: shows a last line without an end */
/* Where lines were left out: the last ones, for whoever asks why it died. */
void game_log_show_last(struct game_log *log);
