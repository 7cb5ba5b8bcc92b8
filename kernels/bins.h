/* bins.h - the value as a distribution over bins (docs/ppo.md), for CPU and CUDA: its mean, and the loss of a return.
 * Bin i of n stands for the number c_i: symmetric around 0, evenly spaced in sign(x) log(1 + |x|), the outermost at the
 * value's limits. A return is put onto the two bins beside it, so that their mean is the return; the loss is the cross
 * entropy to that. Private to the backends (on the host its includer has vec_math.h). */
#pragma once

#include "kernels/gauss.h"

/* On the host a loop's numbers may be added in vectors. */
#ifdef __CUDACC__
#define BINS_SIMD(...)
#else
#define BINS_SIMD(...) _Pragma(#__VA_ARGS__)
#endif

/* c_i */
GAUSS_FN float bins_centre(const struct kern_heads *heads, int i)
{
    float x = heads->value_log * (float)(2 * i + 1 - heads->n_bins) / (float)(heads->n_bins - 1);
    float a = x < 0.0f ? -x : x, y = GAUSS_EXP(a) - 1.0f;
    return x < 0.0f ? -y : x > 0.0f ? y : 0.0f;
}

/* max of the columns (n) and the sum of exp(column - max), NaN if one of them is. */
GAUSS_FN float bins_sum(const float *columns, int n, float *ret_top)
{
    float top = -__builtin_inff(), sum = 0.0f;
    for (int i = 0; i < n; i++)
        top = columns[i] > top ? columns[i] : top;
    BINS_SIMD(omp simd reduction(+ : sum))
    for (int i = 0; i < n; i++)
        sum += GAUSS_EXP(columns[i] - top);
    *ret_top = top;
    return sum;
}

/* The mean of the distribution whose columns (n_bins) these are; centres (n_bins). */
GAUSS_FN float bins_value(const struct kern_heads *heads, const float *centres, const float *columns)
{
    float top, sum = bins_sum(columns, heads->n_bins, &top), mean = 0.0f;
    BINS_SIMD(omp simd reduction(+ : mean))
    for (int i = 0; i < heads->n_bins; i++)
        mean += GAUSS_EXP(columns[i] - top) * centres[i];
    return mean / sum;
}

/* The lower of the two bins beside target; *ret_upper is the upper one's share. Beyond the limits: the outermost. */
GAUSS_FN int bins_place(const struct kern_heads *heads, const float *centres, float target, float *ret_upper)
{
    int low = 0, high = heads->n_bins - 1;
    while (high - low > 1) {
        int middle = (low + high) / 2;
        if (centres[middle] <= target)
            low = middle;
        else
            high = middle;
    }
    float upper = (target - centres[low]) / (centres[high] - centres[low]);
    *ret_upper = upper < 0.0f ? 0.0f : upper > 1.0f ? 1.0f : upper; /* NaN stays NaN */
    return low;
}

/* The loss of target, and its gradient dcolumns (n_bins) times scale; *ret_value is the distribution's mean. */
GAUSS_FN float bins_loss(float *dcolumns, const struct kern_heads *heads, const float *centres, const float *columns,
                         float target, float scale, float *ret_value)
{
    int n = heads->n_bins;
    float upper, top, mean = 0.0f;
    int low = bins_place(heads, centres, target, &upper);
    float sum = bins_sum(columns, n, &top), log_sum = top + GAUSS_LOG(sum);
    BINS_SIMD(omp simd reduction(+ : mean))
    for (int i = 0; i < n; i++) {
        float p = GAUSS_EXP(columns[i] - log_sum);
        mean += p * centres[i];
        dcolumns[i] = scale * p;
    }
    dcolumns[low] -= scale * (1.0f - upper);
    dcolumns[low + 1] -= scale * upper;
    *ret_value = mean;
    return log_sum - (1.0f - upper) * columns[low] - upper * columns[low + 1];
}
