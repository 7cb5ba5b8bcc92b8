/* softmax.h - softmax of one action head with a mask (CUDA); the rules are those of cpu/cpu_heads.h.
 * Sampling, ratio and loss all go through here, so that they agree. One thread works on one agent or token. */
#ifndef KERNELS_CUDA_SOFTMAX_H
#define KERNELS_CUDA_SOFTMAX_H

#include "kernels/cuda/number.h"
#include "kernels/gauss.h"

/* The mask of the head whose choices start at `from`, or NULL if nothing of it counts. mask may be NULL. */
static __device__ __forceinline__ const uint8_t *head_mask(const uint8_t *mask, int from, int n)
{
    if (mask == NULL)
        return NULL;
    for (int i = 0; i < n; i++)
        if (mask[from + i] != 0)
            return mask + from;
    return NULL;
}

static __device__ __forceinline__ bool head_allows(const uint8_t *mask, int i)
{
    return mask == NULL || mask[i] != 0;
}

/* log sum exp of the allowed logits (n): log-probability i is logits[i] minus it. */
static __device__ __forceinline__ float head_log_sum(const float *logits, const uint8_t *mask, int n)
{
    float top = -INFINITY, sum = 0.0f;
    for (int i = 0; i < n; i++)
        top = head_allows(mask, i) && !(logits[i] <= top) ? logits[i] : top; /* NaN is taken up */
    for (int i = 0; i < n; i++)
        sum += head_allows(mask, i) ? expf(logits[i] - top) : 0.0f;
    return top + logf(sum);
}

/* Sums of a token stay in registers for this number of heads; those of further heads are computed again. */
#define HEADS_KEPT 8

/* Log-probability of head j's action; at and at_std move past its columns. *ret_log_sum: of choices. */
static __device__ __forceinline__ float token_head_logp(const struct kern_heads &heads, int j, const float *logits,
                                                        const uint8_t *mask, const int32_t *actions, int *at,
                                                        int *at_std, float *ret_log_sum)
{
    int n = heads.sizes[j], from = *at;

    if (n == 0)
        return gauss_logp(gauss_of_word(actions[j]), logits[(*at)++], logits[(*at_std)++], heads.squash);
    *ret_log_sum = head_log_sum(logits + from, head_mask(mask, from, n), n);
    *at += n;
    return logits[from + actions[j]] - *ret_log_sum;
}

/* Log-probability of a token's actions under its logits; log_sum receives that of each of the first heads. */
static __device__ __forceinline__ float token_logp(const struct kern_heads &heads, const float *logits,
                                                   const uint8_t *mask, const int32_t *actions,
                                                   float (&log_sum)[HEADS_KEPT])
{
    float logp = 0.0f, dropped;
    int at = 0, at_std = heads.n_logits - heads.n_reals;
#pragma unroll
    for (int j = 0; j < HEADS_KEPT; j++) {
        if (j >= heads.n_heads)
            break;
        logp += token_head_logp(heads, j, logits, mask, actions, &at, &at_std, &log_sum[j]);
    }
    for (int j = HEADS_KEPT; j < heads.n_heads; j++)
        logp += token_head_logp(heads, j, logits, mask, actions, &at, &at_std, &dropped);
    return logp;
}

#endif
