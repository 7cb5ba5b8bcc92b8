/* loss.cu - the PPO loss and its gradient with respect to the policy's output, in one pass over the tokens.
 *   policy: max(-A r, -A clip(r, 1 +- eps)), r = exp(logp - old_logp), A = weight (adv - mean) / (std + 1e-8)
 *   value: 1/2 max((v - R)^2, (v_old + clip(v - v_old, +- eps_v) - R)^2), with bins their cross entropy (bins.h)
 *   entropy: summed over heads
 * One thread has one token. Statistics: f64 sums of each block, which the block that finishes last adds up in order.
 * A minibatch whose loss is not finite gets NaN in dout[0], so that its gradient norm is NaN and no step is made. */
#include "kernels/cuda/learn/loss.cuh"

#define KEEP_BLOCK 128
#define LOSS_BLOCK 128
#define LOSS_MAX_BLOCKS 2048

static_assert(P_COUNT * LOSS_MAX_BLOCKS * sizeof(double) <= CUDA_PARTIALS_BYTES, "every block's sums fit");

/* Token t B + b goes to t N + idx[b]. */
static __global__ void __launch_bounds__(KEEP_BLOCK)
    segments_keep_k(float *log_ratio /* (T, N) */, const float *out /* (M, O) */,
                    const int32_t *actions /* (M, n_heads) */, const float *old_logp /* (M) */,
                    const uint8_t *mask /* (M, A) or NULL */, struct kern_heads heads, const int32_t *idx /* (B) */,
                    bool has_before, size_t N, size_t B, size_t M)
{
    ptx_chained();
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

    cuda_chain(k, "segments_keep", segments_keep_k, cuda_ceil_div(M, KEEP_BLOCK), KEEP_BLOCK, 0, l->log_ratio, l->out,
               l->actions, l->old_logp, l->mask, *l->heads, l->idx, l->has_before, l->N, l->B, M);
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
    loss_add(part, total, (double)l.M, l.n_all);
    if (!loss_is_finite(total, (double)l.M))
        dout[0] = NAN;
}

static __global__ void __launch_bounds__(LOSS_BLOCK)
    ppo_loss_k(float *dout /* (M, O) */, struct kern_stats *part, double *partials /* (P_COUNT, blocks) */,
               unsigned *ticket, struct loss l)
{
    ptx_chained();
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
    cuda_chain(k, "ppo_loss", ppo_loss_k, blocks, LOSS_BLOCK, 0, of->dout, of->part, (double *)cuda->partials,
               cuda->tickets, l);
}
