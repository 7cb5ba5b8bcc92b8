/* cpu_heads.h - softmax of one action head with a mask (CPU); a head that is a number has gauss.h, a value of bins
 * bins.h. A masked choice has probability 0. A head whose mask allows nothing is treated as unmasked: a game that
 * leaves no choice must not turn the run into NaN. Sampling, ratio and loss all go through here, so that they agree. */
#pragma once

#include "kernels/cpu/vec_math.h"

#include "kernels/bins.h"

/* The mask of the head whose choices start at `from`, or NULL if nothing of it counts. mask may be NULL. */
static inline const uint8_t *head_mask(const uint8_t *mask, int from, int n)
{
    if (mask == NULL)
        return NULL;
    for (int i = 0; i < n; i++)
        if (mask[from + i] != 0)
            return mask + from;
    return NULL;
}

static inline bool head_allows(const uint8_t *mask, int i)
{
    return mask == NULL || mask[i] != 0;
}

/* log sum exp of the allowed logits (n): log-probability i is logits[i] minus it. */
static inline float head_log_sum(const float *logits, const uint8_t *mask, int n)
{
    float top = -__builtin_inff(), sum = 0.0f;
    for (int i = 0; i < n; i++)
        top = head_allows(mask, i) && !(logits[i] <= top) ? logits[i] : top; /* NaN is taken up */
    for (int i = 0; i < n; i++)
        sum += head_allows(mask, i) ? vec_exp(logits[i] - top) : 0.0f;
    return top + vec_log(sum);
}
