/* rerun_stats.h - mean, spread and intervals of repeated runs. Pure. */
#ifndef SWEEP_RERUN_RERUN_STATS_H
#define SWEEP_RERUN_RERUN_STATS_H

#include <stddef.h>

/* Of n values; with n < 2 spread and intervals are NaN, with n = 0 everything is. */
struct rerun_stats {
    size_t n;
    double mean, sd; /* sd: of one run, n - 1 in the denominator */
    double mean_lo, mean_hi; /* 95 % interval of the mean, by Student's t */
    double next_lo, next_hi; /* where 95 % of further runs are expected */
    double min, max;
};
void rerun_stats(const double *values, size_t n, struct rerun_stats *ret_stats);

#endif
