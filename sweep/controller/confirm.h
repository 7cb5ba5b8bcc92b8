/* confirm.h - when a config is run again under a fresh seed. */
#ifndef SWEEP_CONTROLLER_CONFIRM_H
#define SWEEP_CONTROLLER_CONFIRM_H

#include <stdbool.h>

struct study_view;
struct sweep_settings;
struct trial;

enum confirm_turn {
    CONFIRM_NO,
    CONFIRM_IF_STUCK, /* only when no new point is left to try */
    CONFIRM_FIRST, /* if any advice is doubtful; else a new point */
    CONFIRM_END, /* the same, best and knee before all: what is left of the share takes what is left of the study */
    CONFIRM_LAST /* as CONFIRM_END, then the runner-up, and in any case: the last runs of the study: a new point could not be confirmed any more */
};
struct confirm_plan {
    enum confirm_turn turn;
    double cost_left; /* of the share, in what history.cost counts; INFINITY: it is counted otherwise */
};
/* What the next trial is for. Of limits in trials or seconds of training it reads the trials alone, so that a resumed study
 * goes on as it would have done. running_s: training of what flies; wall_s: of sweep.wall_time. */
void confirm_plan_make(const struct study_view *view, const struct sweep_settings *settings, double running_s,
                       double wall_s, struct confirm_plan *ret_plan);

#endif
