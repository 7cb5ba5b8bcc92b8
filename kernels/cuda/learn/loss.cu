/* loss.cu - the PPO loss and its gradient with respect to the policy's output, in one pass over the tokens.
 *   policy: max(-A r, -A clip(r, 1 +- eps)), r = exp(logp - old_logp), A = weight (adv - mean) / (std + 1e-8)
 *   value: 1/2 max((v - R)^2, (v_old + clip(v - v_old, +- eps_v) - R)^2), with bins their cross entropy (kernels/bins.h)
 *   entropy: summed over heads
 * One thread has one token. Statistics: f64 sums of each block, which the block that finishes last adds up in order.
 * A minibatch whose loss is not finite gets NaN in dout[0], so that its gradient norm is NaN and no step is made. */
#include "kernels/bins.h"
#include "kernels/cuda/nets/softmax.h"

#define KEEP_BLOCK 128
#define LOSS_BLOCK 128
#define LOSS_MAX_BLOCKS 2048

enum partial { P_POLICY, P_VALUE, P_ENTROPY, P_KL, P_CLIPPED, P_RET, P_RET_SQ, P_ERR, P_ERR_SQ, P_COUNT };
static_assert(P_COUNT * LOSS_MAX_BLOCKS * sizeof(double) <= CUDA_PARTIALS_BYTES, "every block's sums fit");

/* Token t B + b goes to t N + idx[b]. */
static __global__ void __launch_bounds__(KEEP_BLOCK)
    segments_keep_k(float *log_ratio /* (T, N) */, const float *out /* (M, O) */,
                    const int32_t *actions /* (M, n_heads) */, const float *old_logp /* (M) */,
                    const uint8_t *mask /* (M, A) or NULL */, struct kern_heads heads, const int32_t *idx /* (B) */,
                    bool has_before, size_t N, size_t B, size_t M)
{
    size_t A = (size_t)heads.n_logits, O = kern_heads_out(&heads), i = (size_t)blockIdx.x * KEEP_BLOCK + threadIdx.x;
    ptrdiff_t b = (ptrdiff_t)(i % B);
    float log_sum[HEADS_KEPT];

    if (i >= M || ((b > 0 || has_before) && idx[b] == idx[b - 1]))
        return;
    log_ratio[i / B * N + (size_t)idx[b]] = token_logp(heads, out + i * O, mask == NULL ? NULL : mask + i * A,
                                                       actions + i * (size_t)heads.n_heads, log_sum) -
                                            old_logp[i];
}

void cuda_segments_keep(struct kern *k, const struct kern_loss *l)
{
    size_t M = l->T * l->B;

    segments_keep_k<<<cuda_ceil_div(M, KEEP_BLOCK), KEEP_BLOCK, 0, cuda_of(k)->stream>>>(
        l->log_ratio, l->out, l->actions, l->old_logp, l->mask, *l->heads, l->idx, l->has_before, l->N, l->B, M);
    cuda_launched(k, "segments_keep");
}

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

/* The minibatch's statistics (P_COUNT) from all blocks' sums; by one block. */
static __device__ void loss_finish(float *dout, struct kern_stats *part, double (&total)[P_COUNT],
                                   const double *partials, const struct loss &l)
{
    unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;

    for (unsigned p = warp; p < P_COUNT; p += LOSS_BLOCK / 32) {
        double sum = 0.0;
        for (unsigned b = lane; b < gridDim.x; b += 32)
            sum += __ldcg(&partials[p * gridDim.x + b]);
        sum = num_warp_sum(sum);
        if (lane == 0)
            total[p] = sum;
    }
    __syncthreads();
    if (threadIdx.x != 0)
        return;
    part->n_tokens += (double)l.M;
    part->policy_loss += total[P_POLICY];
    part->value_loss += total[P_VALUE];
    part->entropy += total[P_ENTROPY];
    part->approx_kl += total[P_KL];
    part->clip_fraction += total[P_CLIPPED];
    part->ret_sum += total[P_RET];
    part->ret_sq += total[P_RET_SQ];
    part->err_sum += total[P_ERR];
    part->err_sq += total[P_ERR_SQ];
    part->last_kl += total[P_KL] / l.n_all;
    if (!isfinite((float)(total[P_POLICY] / (double)l.M)) || !isfinite((float)(total[P_VALUE] / (double)l.M)) ||
        !isfinite(total[P_ENTROPY]))
        dout[0] = NAN;
}

static __global__ void __launch_bounds__(LOSS_BLOCK)
    ppo_loss_k(float *dout /* (M, O) */, struct kern_stats *part, double *partials /* (P_COUNT, blocks) */,
               unsigned *ticket, struct loss l)
{
    __shared__ double warp_sums[P_COUNT][LOSS_BLOCK / 32], total[P_COUNT];
    __shared__ float centres[KERN_MAX_BINS];
    unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    double sums[P_COUNT] = {0};

    for (int b = (int)threadIdx.x; b < l.heads.n_bins; b += LOSS_BLOCK)
        centres[b] = bins_centre(&l.heads, b);
    __syncthreads();
    for (size_t i = (size_t)blockIdx.x * LOSS_BLOCK + threadIdx.x; i < l.M; i += (size_t)gridDim.x * LOSS_BLOCK)
        loss_token(dout + i * kern_heads_out(&l.heads), sums, l, centres, i);
#pragma unroll
    for (int p = 0; p < P_COUNT; p++) {
        sums[p] = num_warp_sum(sums[p]);
        if (lane == 0)
            warp_sums[p][warp] = sums[p];
    }
    __syncthreads();
    if (threadIdx.x < P_COUNT) {
        double sum = 0.0;
        for (unsigned w = 0; w < LOSS_BLOCK / 32; w++)
            sum += warp_sums[threadIdx.x][w];
        partials[threadIdx.x * gridDim.x + blockIdx.x] = sum;
    }
    if (num_last_block(ticket, gridDim.x))
        loss_finish(dout, part, total, partials, l);
}

void cuda_ppo_loss(struct kern *k, const struct kern_loss *of)
{
    struct cuda *cuda = cuda_of(k);
    double n_all = (double)of->T * (double)of->B_all;
    struct loss l = {.out = of->out,
                     .old_logp = of->old_logp,
                     .adv = of->adv,
                     .ret = of->ret,
                     .old_value = of->old_value,
                     .weight = of->weight,
                     .mean_std = of->mean_std,
                     .actions = of->actions,
                     .mask = of->mask,
                     .hyper = of->hyper,
                     .heads = *of->heads,
                     .M = of->T * of->B,
                     .B = of->B,
                     .inv_m = (float)(1.0 / n_all),
                     .n_all = n_all};
    size_t blocks = cuda_ceil_div(l.M, LOSS_BLOCK);

    blocks = blocks < LOSS_MAX_BLOCKS ? blocks : LOSS_MAX_BLOCKS;
    ppo_loss_k<<<blocks, LOSS_BLOCK, 0, cuda->stream>>>(of->dout, of->part, (double *)cuda->partials, cuda->tickets, l);
    cuda_launched(k, "ppo_loss");
}
