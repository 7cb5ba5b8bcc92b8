/* promise.h - what may be said of a trial that is shown as advice. */
#ifndef STUDY_PROMISE_H
#define STUDY_PROMISE_H

#include <stdbool.h>
#include <stddef.h>

#include "study/search.h"

struct gp_belief;
struct gp_trial;
struct trial;

struct promise { /* of fresh runs of a trial's config; scores in the study's direction */
    bool is_known; /* the models speak; else score is that of its one run, and NaN what they would say */
    double score, lo, hi; /* expected; 95 % interval of the mean of GP_PROMISE_SEEDS fresh runs */
    double noise_sd; /* of one run, between seeds */
    size_t n_seeds; /* runs that it has had */
    double mean; /* of their scores */
    double cost, cost_lo, cost_hi; /* expected, as the study counts */
    double start_s; /* that a fresh process needs besides; NaN when unknown */
};
/* belief: of gp_insight, NULL: none. row: of the same trial. */
void promise_make(const struct gp_belief *belief, const struct gp_trial *row, const struct trial *trial, bool maximize,
                  struct promise *ret_promise);
#define PROMISE_TEXT_MAX 192 /* bytes of buf; each is returned */
const char *promise_text(const struct promise *promise, char *buf); /* "0.91, 95 % 0.87 to 0.94 (4 seeds, mean 0.9)" */
const char *promise_interval_text(const struct promise *promise, char *buf); /* "0.87 to 0.94" */
const char *promise_seeds_text(const struct promise *promise, char *buf); /* "seen once" or "4 seeds, mean 0.9" */
/* "0.34 s in a warm worker, 0.55 s from process start"; "0.34 s" or "4.1M steps" where that is all that is known. */
const char *promise_cost_text(const struct promise *promise, enum search_cost kind, char *buf);

#endif
