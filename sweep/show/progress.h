/* progress.h - shows the progress of a sweep on stderr. Borrows scheduler and study until progress_end; the scheduler's
 * thread. */
#pragma once

#include "base/base.h"

struct study_view;
struct trial;

struct scheduler;
struct sched_study;
struct flight;

struct progress {
    const struct scheduler *sched;
    struct sched_study *ss;
    bool tty, quiet;
    double begin_s;
    double fraction_before; /* share of the study that earlier controllers have done */
};
/* Sets the scheduler's listener. */
void progress_begin(struct progress *progress, struct scheduler *sched, struct sched_study *ss, bool quiet);
void progress_end(struct progress *progress);
/* A line about a trial that has ended, the nth of its study, to stderr. */
void progress_print_trial(const struct study_view *view, const struct trial *trial, int64_t n);
