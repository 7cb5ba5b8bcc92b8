/* gain.h - growth of a study's hypervolume, of what is believed of its configs (believed.h), over the time with a
 * controller at work. A watch owns its times; the scheduler's thread. */
#pragma once

#include "base/base.h"

struct study_view;

struct gain_watch {
    double begun_s; /* when work on the study began, pauses left out: before now by the time at work */
    double *ended_s; /* (n) when trial i of the view ended, in the same way; -INFINITY: long ago. Owned */
    size_t n, cap;
    double recent, recent_at_s; /* the last result of gain_watch_recent */
};
void gain_watch_free(struct gain_watch *watch);
/* Begins with the trials of earlier controllers. */
void gain_watch_begin(struct gain_watch *watch, const struct study_view *view, double now_s);
void gain_watch_note(struct gain_watch *watch, size_t i, double now_s);
/* Share of the hypervolume that the last window_s have added, for each hour; NaN while too little is known. */
double gain_watch_rate(const struct gain_watch *watch, const struct study_view *view, double window_s, double now_s);
/* For a view: over the last hour, or half of a shorter time; computed again every few seconds. */
double gain_watch_recent(struct gain_watch *watch, const struct study_view *view, double now_s);

/* Hypervolume that another ahead_s at work are expected to add, as a share of what there is; NaN while too little is
 * known. Half of what was added while the second half of the cost was spent is taken for as much work again.
 * work_s: the work so far, without pauses. */
struct gain_expected {
    double work_s, ahead_s, share;
};
void gain_expected(const struct study_view *view, struct gain_expected *ret_expected);
