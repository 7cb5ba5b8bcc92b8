/* promise.h - what fresh runs of a trial's config are expected to give. Plain values and pure functions; any thread. */
#pragma once

#include "study/space/search.h"

struct gp_belief;
struct gp_trial;
struct trial;

struct promise { /* of fresh runs of a trial's config; scores in the study's direction */
    bool is_known; /* from the models; else score is that of its one run, and the models' fields are NaN */
    double score, lo, hi; /* expected; 95 % interval of the mean of GP_PROMISE_SEEDS fresh runs */
    double noise_sd; /* spread of one run between seeds */
    size_t n_seeds; /* runs that it has had */
    double mean; /* mean of their scores */
    double cost, cost_lo, cost_hi; /* expected, in the study's unit of cost */
    double start_s; /* time that a fresh process needs in addition; NaN when unknown */
};
/* belief: from gp_insight, NULL: none. row: the same trial's. */
void promise_make(const struct gp_belief *belief, const struct gp_trial *row, const struct trial *trial, bool maximize,
                  struct promise *ret_promise);
#define PROMISE_TEXT_MAX 192 /* bytes of buf, which each function returns */
const char *promise_text(const struct promise *promise, char *buf); /* "0.91, 95 % 0.87 to 0.94 (4 seeds, mean 0.9)" */
const char *promise_interval_text(const struct promise *promise, char *buf); /* "0.87 to 0.94" */
const char *promise_seeds_text(const struct promise *promise, char *buf); /* "seen once" or "4 seeds, mean 0.9" */
/* "0.34 s in a warm worker, 0.55 s from process start"; "0.34 s" or "4.1M steps" where that is all that is known. */
const char *promise_cost_text(const struct promise *promise, enum search_cost kind, char *buf);
