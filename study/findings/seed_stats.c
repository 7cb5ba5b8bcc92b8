/* seed_stats.c - mean, interquartile mean, spread and intervals of repeated runs. Mean and further runs are taken for a
 * normal sample; the interquartile mean, which one run that failed to learn does not move, is resampled. */
#include "study/findings/seed_stats.h"

#include "base/rng.h"

#include <gsl/gsl_cdf.h>

#define COVER 0.975 /* upper end of a two-sided 95 % interval */
#define DRAWS 1000 /* samples with replacement */

/* Mean of the middle half of sorted values: a run that lies across a quartile counts with its part inside. */
static double middle_mean(const double *sorted, size_t n)
{
    double from = 0.25 * (double)n, to = 0.75 * (double)n, sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += sorted[i] * fmax(fmin((double)i + 1, to) - fmax((double)i, from), 0);
    return sum / (to - from);
}

static double quantile(const double *sorted, size_t n, double q)
{
    double at = q * (double)(n - 1);
    size_t i = (size_t)at;

    return i + 1 < n ? sorted[i] + (at - (double)i) * (sorted[i + 1] - sorted[i]) : sorted[n - 1];
}

static void resample(const double *sorted, size_t n, struct seed_stats *s)
{
    MEM_LOCAL double *means = mem_array(DRAWS, sizeof *means), *sample = mem_array(n, sizeof *sample);
    struct rng rng = rng_seed(1);

    for (size_t k = 0; k < DRAWS; k++) {
        for (size_t i = 0; i < n; i++)
            sample[i] = sorted[(size_t)(rng_f64(&rng) * (double)n)];
        num_sort(sample, n);
        means[k] = middle_mean(sample, n);
    }
    num_sort(means, DRAWS);
    s->iqm_lo = quantile(means, DRAWS, 1 - COVER);
    s->iqm_hi = quantile(means, DRAWS, COVER);
}

static void order_stats(const double *values, size_t n, struct seed_stats *s)
{
    MEM_LOCAL double *sorted = mem_array(n, sizeof *sorted);

    for (size_t i = 0; i < n; i++)
        sorted[i] = values[i];
    num_sort(sorted, n);
    s->min = sorted[0];
    s->max = sorted[n - 1];
    s->low = quantile(sorted, n, 0.25);
    s->middle = quantile(sorted, n, 0.5);
    s->high = quantile(sorted, n, 0.75);
    s->iqm = middle_mean(sorted, n);
    if (n >= SEED_STATS_RESAMPLED)
        resample(sorted, n, s);
}

void seed_stats(const double *values, size_t n, struct seed_stats *ret_stats)
{
    struct seed_stats s = {n, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN};
    double sum = 0, squares = 0, t;

    for (size_t i = 0; i < n; i++)
        sum += values[i];
    if (n > 0) {
        s.mean = sum / (double)n;
        order_stats(values, n, &s);
    }
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
