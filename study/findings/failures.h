/* failures.h - why trials of a study failed: the reasons, without the numbers in them, and the values at which nearly
 * every trial fails. A struct failures owns its texts; pure, any thread. */
#pragma once

#include "base/base.h"

struct strbuf;
struct study_view;

#define FAILURE_REASONS 8
#define FAILURE_RULES 4

struct failure_reason {
    char *text; /* first line of that of its first trial, owned */
    size_t n, first; /* trials, and the index of the first one */
};
struct failure_rule { /* beyond a bound, or with a choice, trials fail */
    size_t param;
    int side; /* 1: from `from` upwards, -1: downwards, 0: at the choice `from` */
    double from, bound; /* bound: the nearest value on the other side at which a trial did not fail; NaN: none */
    size_t n_failed, n_tried; /* there */
};
struct failures {
    size_t n; /* trials that failed */
    size_t n_other; /* of them, for a reason that is not among these */
    struct failure_reason reasons[FAILURE_REASONS]; /* (n_reasons) most common first */
    size_t n_reasons;
    struct failure_rule rules[FAILURE_RULES]; /* (n_rules) surest first */
    size_t n_rules;
};
void failures_find(const struct study_view *view, struct failures *ret_failures);
void failures_free(struct failures *failures);
/* "train.minibatch_size >= 2048 failed 5 of 5" */
void failure_rule_text(const struct study_view *view, const struct failure_rule *rule, struct strbuf *out);
/* Lines of a config that keep a new search away from there, "[sweep.train.minibatch_size]\nmax = 1024\n"; nothing where
 * too little of the range is left. */
void failures_ini(const struct study_view *view, const struct failures *failures, struct strbuf *out);
