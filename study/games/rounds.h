/* rounds.h - a study of several games: what the runs of each configuration come to. Pure. */
#pragma once

#include "base/base.h"

struct gp_trial;

struct missing_run {
    size_t of; /* a trial of the configuration; n: none is missing */
    size_t env; /* the game */
};

/* rows (n), judged one by one, and the game of each (below n_envs <= SWEEP_ENVS_MAX). Joins the runs of each point into
 * rounds, of one run a game in order of number. A round's first trial gets the means of score and cost once all of its
 * runs are done; until then it waits (pending), and the other runs teach nothing. A run that failed, was stopped or was
 * dropped leaves its round without a result. *ret_missing: the first run that a round waits for and that no trial
 * is. */
void rounds_judge(struct gp_trial *rows, const size_t *env, size_t n, size_t n_envs, size_t dim,
                  struct missing_run *ret_missing);
