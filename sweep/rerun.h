/* rerun.h - what repeated runs of one config say together; used by `trawl rerun`. */
#ifndef SWEEP_RERUN_H
#define SWEEP_RERUN_H

#include <stdbool.h>
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
