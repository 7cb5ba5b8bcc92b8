/* confirm.h - when a study runs a config again under a fresh seed (sweep.seeds, sweep.confirm). Pure functions of their
 * inputs; any thread. */
#pragma once

#include "base/base.h"

struct study_view;
struct sweep_settings;
struct trial;

enum confirm_turn {
    CONFIRM_NO,
    CONFIRM_IF_STUCK, /* only when no new point is left to try */
    CONFIRM_FIRST, /* if any advice is doubtful; else a new point */
    CONFIRM_END, /* the same, best and knee first: the rest of the share takes the rest of the study */
    /* as CONFIRM_END, then the runner-up: in the last runs of the study a new point could no longer be confirmed */
    CONFIRM_LAST
};
/* Whether a single run has reached sweep.target, which the best config's expected score then decides. */
enum confirm_target {
    TARGET_FAR,
    TARGET_ADVISE, /* advice is needed, but the study confirms nothing */
    TARGET_CONFIRM, /* the best config is run again, unless it was, whatever the share */
};
struct confirm_plan {
    enum confirm_turn turn;
    enum confirm_target target;
    size_t
        seeds; /* runs that every config is to have before anything else happens, unless it is beaten (gp_seed_next) */
    /* what is left of the share, in the unit of history.cost; INFINITY: the share is counted in another unit */
    double cost_left;
    size_t again; /* CONFIRM_FIRST: runs for which there is room in what may be used by now, at least one */
    size_t at_once; /* how many trials may be proposed by this plan together */
};
/* Decides what the next trial, or each of the next few, is for. Limits in trials or seconds of training are read from
 * the trials alone, so that a resumed study continues as it would have done. running_s: training of the trials in
 * flight; wall_s: used of sweep.wall_time. */
void confirm_plan_make(const struct study_view *view, const struct sweep_settings *settings, double running_s,
                       double wall_s, struct confirm_plan *ret_plan);
/* For n proposals together: on the way, runs to confirm are looked for once in as many results as trials are under way,
 * n_since of which have come since the last time. What those before show is not known earlier, and what is believed of
 * all trials takes longer than a batch of new points. True: they are looked for now. */
bool confirm_plan_spread(struct confirm_plan *plan, size_t n, size_t n_since, size_t n_busy);
