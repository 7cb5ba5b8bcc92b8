/* rerun.h - a stored trial trained again: the runs, what they say together, how it is told. Used by `trawl rerun`. */
#ifndef SWEEP_RERUN_H
#define SWEEP_RERUN_H

#include "sweep/control.h"

/* ---- rerun_stats.c ---- */

/* Of n values; with n < 2 spread and intervals are NaN, with n = 0 everything is. */
struct rerun_stats {
    size_t n;
    double mean, sd; /* sd: of one run, n - 1 in the denominator */
    double mean_lo, mean_hi; /* 95 % interval of the mean, by Student's t */
    double next_lo, next_hi; /* where 95 % of further runs are expected */
    double min, max;
};
void rerun_stats(const double *values, size_t n, struct rerun_stats *ret_stats);

/* ---- rerun_train.c ---- */

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

/* ---- rerun_tell.c, to stdout ---- */

/* The run with the stored seed beside what is stored; ST_NUMERIC when it is not the same. */
enum status rerun_tell_compared(const struct rerun *rerun, struct error *err) MUST_USE;
/* Mean, spread and intervals over fresh seeds, and how usual the stored score is. */
enum status rerun_tell_spread(const struct rerun *rerun, struct error *err) MUST_USE;

#endif
