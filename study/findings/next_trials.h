/* next_trials.h - what the search would try next, and why: the proposals that follow the trials of a study, as its
 * controller would make them now. Pure but for the study's config, which the view parses once. */
#pragma once

#include "gp/gp.h"

struct setup;
struct study_view;
struct trial_check;

#define NEXT_TRIALS 3
#define NEXT_WHY_MAX 320

struct next_trial {
    struct suggestion suggestion;
    struct gp_belief belief; /* of its point, by the surrogate: what the study's pages state of every point */
    char why[NEXT_WHY_MAX]; /* a sentence without its full stop */
};

/* How a study of this config is searched; check: of its points, borrowed. */
struct suggest_settings next_settings(const struct setup *setup, struct trial_check *check);
/* What names the next proposal: how many points were proposed. Further runs take no numbers: every second or fourth
 * point of an even sequence alone would be anything but even. */
int64_t next_number(const struct study_view *view);
/* Fills ret (NEXT_TRIALS): each takes those before it as under way. The view has advice; surrogate: of its history.
 * How many; 0: err has the reason. */
size_t next_trials(struct study_view *view, struct gp_surrogate *surrogate, struct next_trial *ret, struct error *err);
