/* gauss.h - the Gaussian of an action that is a number: log-probability, entropy and their gradients, for CPU and CUDA.
 * A head's outputs are a mean and the log of a standard deviation; u is drawn from them, in half widths of the action's
 * range around its middle, and kept as it was drawn. The game gets u clipped to [-1, 1] or tanh(u), moved to the range
 * (docs/ppo.md). Log-probabilities are those of u where it is clipped, and of tanh(u), exactly, where it is squashed.
 * Private to the backends (on the host its includer has vec_math.h); sampling, ratio and loss all go through here, so
 * that they agree. */
#pragma once

#include "kernels/kernels.h"

#include <string.h>

#ifdef __CUDACC__
#define GAUSS_FN static __device__ __forceinline__
#define GAUSS_EXP expf
#define GAUSS_LOG logf
#define GAUSS_TANH tanhf
#else
#define GAUSS_FN static inline
#define GAUSS_EXP vec_exp
#define GAUSS_LOG vec_log
#define GAUSS_TANH vec_tanh
#endif

#define GAUSS_HALF_LOG_2PI 0.918938533f

/* The word of an action tensor that holds u. */
GAUSS_FN float gauss_of_word(int32_t word)
{
    float u;
    memcpy(&u, &word, sizeof u);
    return u;
}

GAUSS_FN int32_t gauss_to_word(float u)
{
    int32_t word;
    memcpy(&word, &u, sizeof word);
    return word;
}

GAUSS_FN float gauss_log_std(float raw) /* NaN stays NaN */
{
    return raw < KERN_LOG_STD_MIN ? KERN_LOG_STD_MIN : raw > KERN_LOG_STD_MAX ? KERN_LOG_STD_MAX : raw;
}

/* What the game gets of u: within the range of head j whatever u is. */
GAUSS_FN float gauss_action(const struct kern_heads *heads, int j, float u)
{
    float low = heads->low[j], high = heads->high[j], x = heads->squash ? GAUSS_TANH(u) : u;
    float y = 0.5f * (low + high) + 0.5f * (high - low) * x;
    return y < high ? (y > low ? y : low) : high; /* NaN becomes high */
}

/* log(1 - tanh(u)^2), the log of the slope of tanh, without its cancellation. */
GAUSS_FN float gauss_log_slope(float u)
{
    float a = u < 0.0f ? -u : u;
    return 2.0f * (0.693147181f - a - GAUSS_LOG(1.0f + GAUSS_EXP(-2.0f * a)));
}

GAUSS_FN float gauss_logp(float u, float mean, float raw, bool squash)
{
    float log_std = gauss_log_std(raw), z = (u - mean) * GAUSS_EXP(-log_std);
    float logp = -0.5f * z * z - log_std - GAUSS_HALF_LOG_2PI;
    return squash ? logp - gauss_log_slope(u) : logp;
}

/* The mean of log_slope over the Gaussian and its two derivatives, by the trapezoidal rule from -6 to 6 standard
 * deviations in steps of 1/4: right to f32's last digits up to a deviation of 2.5, to 1 % of its size at the
 * largest. */
GAUSS_FN float gauss_mean_log_slope(float mean, float std, float *ret_dmean, float *ret_dlog_std)
{
    float sum = 0.0f, dmean = 0.0f, dlog_std = 0.0f;
    for (int i = -24; i <= 24; i++) {
        float z = 0.25f * (float)i, weight = 0.25f * GAUSS_EXP(-0.5f * z * z - GAUSS_HALF_LOG_2PI), u = mean + std * z;
        float slope = -2.0f * weight * GAUSS_TANH(u);
        sum += weight * gauss_log_slope(u);
        dmean += slope;
        dlog_std += slope * std * z;
    }
    *ret_dmean = dmean;
    *ret_dlog_std = dlog_std;
    return sum;
}

/* Gradients of one head from g = dloss/dlogp and the entropy bonus; returns the head's entropy. */
GAUSS_FN float gauss_gradient(float *ret_dmean, float *ret_draw, float u, float mean, float raw, bool squash, float g,
                              float ent_scale)
{
    float log_std = gauss_log_std(raw), inverse = GAUSS_EXP(-log_std), z = (u - mean) * inverse;
    float entropy = 0.5f + GAUSS_HALF_LOG_2PI + log_std, ent_dmean = 0.0f, ent_dlog_std = 0.0f;
    if (squash)
        entropy += gauss_mean_log_slope(mean, GAUSS_EXP(log_std), &ent_dmean, &ent_dlog_std);
    *ret_dmean = g * z * inverse - ent_scale * ent_dmean;
    *ret_draw = raw == log_std ? g * (z * z - 1.0f) - ent_scale * (1.0f + ent_dlog_std) : 0.0f;
    return entropy;
}
