/* loss.cuh - the PPO loss of one token, its gradient and its statistics (private to kernels/cuda); formulas in
 * loss.cu. */
#ifndef KERNELS_CUDA_LOSS_CUH
#define KERNELS_CUDA_LOSS_CUH

#include "kernels/bins.h"
#include "kernels/cuda/nets/softmax.h"

enum partial { P_POLICY, P_VALUE, P_ENTROPY, P_KL, P_CLIPPED, P_RET, P_RET_SQ, P_ERR, P_ERR_SQ, P_COUNT };

/* struct kern_loss as the kernel takes it. */
struct loss {
    const float *out, *old_logp, *adv, *ret, *old_value, *weight, *mean_std;
    const int32_t *actions;
    const uint8_t *mask;
    const struct kern_hyper *hyper;
    struct kern_heads heads;
    size_t M, B;
    float inv_m; /* 1 / tokens of the minibatch */
    double n_all; /* tokens of the minibatch */
};

/* dlogits (n) of one head from g = dloss/dlogp and the entropy bonus; returns the head's entropy. */
static __device__ __forceinline__ float head_gradient(float *dlogits, const float *logits, const uint8_t *mask, int n,
                                                      int action, float log_sum, float g, float ent_scale)
{
    float entropy = 0.0f;
    for (int i = 0; i < n; i++) {
        float logp = logits[i] - log_sum;
        float p = head_allows(mask, i) ? expf(logp) : 0.0f;
        entropy -= p > 0.0f ? p * logp : 0.0f;
    }
    for (int i = 0; i < n; i++) {
        float logp = logits[i] - log_sum;
        float p = head_allows(mask, i) ? expf(logp) : 0.0f;
        float plogp = p > 0.0f ? p * logp : 0.0f;
        dlogits[i] = g * ((i == action ? 1.0f : 0.0f) - p) + ent_scale * (plogp + p * entropy);
    }
    return entropy;
}

/* dout of head j, whose columns at and at_std move past; returns its entropy. */
static __device__ __forceinline__ float head_loss(float *dout, const struct loss &l, int j, const float *logits,
                                                  const uint8_t *mask, const int32_t *actions, float log_sum, float g,
                                                  int *at, int *at_std)
{
    const int n = l.heads.sizes[j], from = *at;
    const float ent_scale = l.hyper->ent_coef * l.inv_m;

    if (n == 0) {
        const int std = (*at_std)++;
        ++*at;
        return gauss_gradient(dout + from, dout + std, gauss_of_word(actions[j]), logits[from], logits[std],
                              l.heads.squash, g, ent_scale);
    }
    *at += n;
    return head_gradient(dout + from, logits + from, head_mask(mask, from, n), n, actions[j], log_sum, g, ent_scale);
}

/* 1/2 max(...) of the value loss; *ret_slope is its derivative with respect to v. */
static __device__ __forceinline__ float value_loss(float v, float old, float target, float clip, float *ret_slope)
{
    float err = v - target, shift = v - old, clipped;

    *ret_slope = err;
    if (!(clip > 0.0f))
        return 0.5f * err * err;
    clipped = shift > clip ? clip : shift < -clip ? -clip : shift;
    clipped = old + clipped - target;
    if (clipped * clipped > err * err) {
        *ret_slope = shift > clip || shift < -clip ? 0.0f : err;
        return 0.5f * clipped * clipped;
    }
    return 0.5f * err * err;
}

/* Token i: its row of dout, and its share of the statistics is added to sums. centres (n_bins) */
static __device__ __forceinline__ void loss_token(float *dout, double (&sums)[P_COUNT], const struct loss &l,
                                                  const float *centres, size_t i)
{
    size_t A = (size_t)l.heads.n_logits;
    const struct kern_hyper *hyper = l.hyper;
    const float *logits = l.out + i * kern_heads_out(&l.heads);
    const uint8_t *mask = l.mask == NULL ? NULL : l.mask + i * A;
    const int32_t *actions = l.actions + i * (size_t)l.heads.n_heads;
    bool norm = hyper->norm_adv != 0;
    float shift = norm ? l.mean_std[0] : 0.0f, scale = norm ? 1.0f / (l.mean_std[1] + 1e-8f) : 1.0f;
    float low = 1.0f - hyper->clip_coef, high = 1.0f + hyper->clip_coef, log_sum[HEADS_KEPT];
    float log_ratio = token_logp(l.heads, logits, mask, actions, log_sum) - l.old_logp[i], ratio = expf(log_ratio);
    float adv = (l.adv[i] - shift) * scale * (l.weight == NULL ? 1.0f : l.weight[i % l.B]);
    float plain = -adv * ratio, clipped = -adv * (ratio < low ? low : ratio > high ? high : ratio);
    float g = clipped > plain ? 0.0f : plain * l.inv_m; /* d(-A r)/dlogp = -A r */
    float v = logits[A], target = l.ret[i], err, entropy = 0.0f, slope;
    int at = 0, at_std = l.heads.n_logits - l.heads.n_reals;

#pragma unroll
    for (int j = 0; j < HEADS_KEPT; j++) {
        if (j >= l.heads.n_heads)
            break;
        entropy += head_loss(dout, l, j, logits, mask, actions, log_sum[j], g, &at, &at_std);
    }
    for (int j = HEADS_KEPT; j < l.heads.n_heads; j++) {
        int n = l.heads.sizes[j];
        float again = n > 0 ? head_log_sum(logits + at, head_mask(mask, at, n), n) : 0.0f;
        entropy += head_loss(dout, l, j, logits, mask, actions, again, g, &at, &at_std);
    }
    sums[P_POLICY] += (double)(clipped > plain ? clipped : plain);
    if (l.heads.n_bins > 0) {
        sums[P_VALUE] +=
            (double)bins_loss(dout + A, &l.heads, centres, logits + A, target, hyper->vf_coef * l.inv_m, &v);
    } else {
        sums[P_VALUE] += (double)value_loss(v, l.old_value[i], target, hyper->vf_clip_coef, &slope);
        dout[A] = hyper->vf_coef * slope * l.inv_m;
    }
    err = target - v;
    sums[P_ENTROPY] += (double)entropy;
    sums[P_KL] += (double)(ratio - 1.0f - log_ratio);
    sums[P_CLIPPED] += ratio < low || ratio > high ? 1.0 : 0.0;
    sums[P_RET] += (double)target;
    sums[P_RET_SQ] += (double)target * (double)target;
    sums[P_ERR] += (double)err;
    sums[P_ERR_SQ] += (double)err * (double)err;
}

/* The sums of n tokens to a minibatch's statistics, which has n_all. */
static __device__ __forceinline__ void loss_add(struct kern_stats *part, const double *total, double n, double n_all)
{
    part->n_tokens += n;
    part->policy_loss += total[P_POLICY];
    part->value_loss += total[P_VALUE];
    part->entropy += total[P_ENTROPY];
    part->approx_kl += total[P_KL];
    part->clip_fraction += total[P_CLIPPED];
    part->ret_sum += total[P_RET];
    part->ret_sq += total[P_RET_SQ];
    part->err_sum += total[P_ERR];
    part->err_sq += total[P_ERR_SQ];
    part->last_kl += total[P_KL] / n_all;
}

static __device__ __forceinline__ bool loss_is_finite(const double *total, double n)
{
    return isfinite((float)(total[P_POLICY] / n)) && isfinite((float)(total[P_VALUE] / n)) &&
           isfinite(total[P_ENTROPY]);
}

#endif
