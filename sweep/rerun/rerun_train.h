/* rerun_train.h - trains the config of a stored trial again. */
#ifndef SWEEP_RERUN_RERUN_TRAIN_H
#define SWEEP_RERUN_RERUN_TRAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "store/store.h"
#include "study/search.h"
#include "sweep/worker/run.h"

struct setup;

/* One training of the config. */
struct rerun_again {
    int64_t seed, env_steps;
    double score, score_se, perf, cost_s; /* score_se NaN: of the end of training */
    int64_t eval_episodes, eval_unfinished;
    double eval_s;
    char device[256], vector_units[64];
};

struct rerun {
    const char *store_path, *output;
    int64_t number, n_seeds; /* n_seeds 0: the stored seed, compared */
    bool json, quiet;
    struct study study;
    enum search_cost cost_kind; /* the study's */
    struct trial trial;
    char *checkpoint; /* of the trial, if the store knows one that is still there */
    struct setup *setup;
    struct run run;
    struct rerun_again *runs; /* (max(n_seeds, 1)) */
    size_t n;
    int params_equal; /* to the stored checkpoint's: 1 yes, 0 no, -1 unknown */
};
/* What the study counts as the cost of a run: seconds, or env steps. */
double rerun_cost(const struct rerun *rerun, const struct rerun_again *again);
/* Fills runs; what was trained stays there when it fails or is interrupted. */
enum status rerun_train(struct rerun *rerun, struct error *err) MUST_USE;

#endif
