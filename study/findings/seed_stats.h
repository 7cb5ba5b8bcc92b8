/* seed_stats.h - mean, interquartile mean, spread and intervals of repeated runs. Pure. */
#pragma once

#include "base/base.h"

/* Of n values; with n < 2 spread and intervals are NaN, with n = 0 everything is. */
struct seed_stats {
    size_t n;
    double mean, sd; /* sd: of one run, n - 1 in the denominator */
    double mean_lo, mean_hi; /* 95 % interval of the mean, by Student's t */
    double next_lo, next_hi; /* where 95 % of further runs are expected */
    double min, max;
    double iqm; /* interquartile mean: of the middle half, runs at its ends in part */
    double iqm_lo, iqm_hi; /* its 95 % interval by resampling; NaN with n < SEED_STATS_RESAMPLED */
    double low, middle, high; /* quartiles, linear between runs */
};
#define SEED_STATS_RESAMPLED 3
/* Same values, same bytes. */
void seed_stats(const double *values, size_t n, struct seed_stats *ret_stats);
