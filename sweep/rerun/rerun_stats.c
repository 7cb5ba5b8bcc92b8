/* rerun_stats.c - mean, spread and intervals of repeated runs, which are taken for a normal sample. */
#include "sweep/rerun/rerun_stats.h"

#include <gsl/gsl_cdf.h>

#include <math.h>

#define COVER 0.975 /* upper end of a two-sided 95 % interval */

void rerun_stats(const double *values, size_t n, struct rerun_stats *ret_stats)
{
    struct rerun_stats s = {n, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN};
    double sum = 0, squares = 0, t;

    for (size_t i = 0; i < n; i++) {
        sum += values[i];
        s.min = i == 0 ? values[i] : fmin(s.min, values[i]);
        s.max = i == 0 ? values[i] : fmax(s.max, values[i]);
    }
    if (n > 0)
        s.mean = sum / (double)n;
    if (n > 1) {
        for (size_t i = 0; i < n; i++)
            squares += (values[i] - s.mean) * (values[i] - s.mean);
        s.sd = sqrt(squares / (double)(n - 1));
        t = gsl_cdf_tdist_Pinv(COVER, (double)(n - 1));
        s.mean_lo = s.mean - t * s.sd / sqrt((double)n);
        s.mean_hi = s.mean + t * s.sd / sqrt((double)n);
        s.next_lo = s.mean - t * s.sd * sqrt(1 + 1 / (double)n);
        s.next_hi = s.mean + t * s.sd * sqrt(1 + 1 / (double)n);
    }
    *ret_stats = s;
}
