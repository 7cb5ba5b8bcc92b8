/* rerun_train.h - trains the config of a stored trial again. struct rerun is filled and freed by cmd_rerun.c; one
 * thread. */
#pragma once

#include "store/store.h"
#include "study/setup/outcomes.h"
#include "study/space/search.h"
#include "sweep/worker/session.h"

struct setup;

/* One training of the config. */
struct rerun_result {
    int64_t seed, env_steps;
    double score, score_se, perf, cost_s; /* score_se NaN: score of the end of training */
    int64_t eval_episodes;
    char device[256], vector_units[64];
    char *outcomes; /* owned JSON: the metrics at its end that the study needs; NULL: it needs none */
};

struct rerun {
    const char *store_path, *output;
    int64_t number, n_seeds; /* n_seeds 0: trains with the stored seed and compares */
    bool json, quiet, no_store;
    struct study study;
    enum search_cost cost_kind; /* the study's */
    struct outcomes outcomes; /* that the study needs */
    struct trial trial;
    char *checkpoint; /* the trial's, if the store names one and its file exists */
    struct setup *setup;
    struct session session;
    struct rerun_result *runs; /* (max(n_seeds, 1)) */
    size_t n;
    int64_t *stored; /* (max(n_seeds, 1)) trials that the runs became; -1 */
    size_t n_stored;
    int64_t *had_seeds; /* (n_had) that the study has run this config under */
    size_t n_had;
    uint64_t seed_at; /* number of the next fresh seed */
    int params_equal; /* to the stored checkpoint's: 1 yes, 0 no, -1 unknown */
};
/* Cost of a run in the study's unit: seconds, or env steps. */
double rerun_cost(const struct rerun *rerun, const struct rerun_result *again);
size_t rerun_n_wanted(const struct rerun *rerun);
void rerun_begin(struct rerun *rerun); /* allocates runs and stored */
/* Trains once and adds the run to runs; those before it stay there after a failure or an interrupt. */
enum status rerun_train(struct rerun *rerun, struct error *err) MUST_USE;
