/* play.h - one study on a problem, in virtual time, and its measures. */
#pragma once

#include "bench/sweep/known.h"

struct play_trial {
    double *x; /* (dim) */
    struct outcome seen, truth; /* truth is filled by play_measure */
    double start, end; /* virtual time */
    bool is_start; /* see struct gp_trial */
    bool is_predicted; /* by the models that proposed it; what came, in standard deviations of one run's prediction: */
    double score_z, cost_z;
};

struct play {
    const struct problem *problem;
    const char *method;
    bool sees_limit;
    uint64_t seed;
    size_t n_started, n_done, max_trials, parallel;
    struct play_trial *trials; /* by number */
    size_t *order; /* (n_done) numbers in the order of finishing */
    double *x; /* memory of all x */
    double *latency_s; /* (n_started) time of each proposal */
    size_t n_latency;
    size_t *row; /* (n_started) of each in the history that methods see */
    double scale, offset; /* a score counts as offset + scale * score */
    size_t branches; /* shorter runs that each run gives on its way, at no cost of their own */
    const struct play *source; /* an earlier study; NULL: none */
    bool other_game; /* that study counts as one of another game */
};

void play_init(struct play *study, const struct problem *problem, const char *method, uint64_t seed, size_t max_trials,
               size_t parallel);
void play_free(struct play *study);
/* Starts one trial at x: draws its outcome from the stream (seed, number). */
void play_start(struct play *study, const double *x, double now);
/* The shorter runs that run `number` holds, as study/space/branches.c places them: ret_x (branches, dim), ret_seen
 * (branches + 1), those that do not fail. Returns how many. */
size_t play_branches(const struct play *study, size_t number, double *ret_x, struct outcome *ret_seen);
struct play_method {
    enum suggest_method own;
    bool ignores_limit; /* it does not see the problem's limit, which counts all the same */
};
/* Plays the whole study. */
enum status play_run(struct play *study, struct play_method method, struct error *err) MUST_USE;
/* The measures as one JSON object. */
cJSON *play_measure(struct play *study, const struct known *known);
