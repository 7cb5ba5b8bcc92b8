/* advantage.cu - advantages and returns of a rollout, and their mean and deviation.
 *   delta_t = rho_t (r_t + gamma V'_{t+1} (1 - term_t) - V_t)      V' = boot where truncated, else values[t + 1]
 *   A_t = delta_t + k_t A_{t+1}, k_t = gamma lambda c_t (1 - done_t),  R_t = A_t + V_t
 * There may be only hundreds of agents, so time is cut into chunks that are worked on side by side: a chunk maps the
 * advantage after it, A, to delta + k A; these maps are put together from the last chunk to the first, and a second
 * sweep over registers gives every step its value. */
#include "kernels/cuda/number.h"

#define AGENTS 32 /* of a block: one warp's width, so that rows are read in whole cache lines */
#define CHUNKS 16 /* warps of a block */
#define CHUNK_STEPS 4 /* paragraph "Advantage" in bench/notes/cuda.md */
#define MEAN_BLOCK 256
#define MEAN_MAX_BLOCKS 264 /* two for each multiprocessor of an H100; row mean_std in bench/notes/cuda.md */

/* delta and k of agent i at time t, and its value. */
static __device__ __forceinline__ void advantage_step(float *ret_delta, float *ret_k, float *ret_value,
                                                      const struct kern_advantage &in, size_t t, size_t i)
{
    const struct kern_hyper *hyper = in.hyper;
    size_t N = in.N, at = t * N + i;
    float ratio = in.log_ratio == NULL ? 1.0f : expf(in.log_ratio[at]), v = in.values[at], later = in.values[at + N];
    bool term = in.terms[at] != 0, trunc = in.truncs[at] != 0;
    float rho = in.log_ratio != NULL && ratio > hyper->rho_clip ? hyper->rho_clip : ratio;
    float c = in.log_ratio != NULL && ratio > hyper->c_clip ? hyper->c_clip : ratio;

    if (trunc)
        later = in.boot[at];
    later = term ? 0.0f : later;
    *ret_delta = rho * (in.rewards[at] + hyper->gamma * later - v);
    *ret_k = term || trunc ? 0.0f : hyper->gamma * hyper->gae_lambda * c;
    *ret_value = v;
}

/* k A, where no advantage after the end of an episode counts, not even NaN. */
static __device__ __forceinline__ float carried(float k, float adv)
{
    return k == 0.0f ? 0.0f : k * adv;
}

static __global__ void __launch_bounds__(AGENTS *CHUNKS) advantage_k(struct kern_advantage in)
{
    const size_t Tn = in.T, N = in.N;
    __shared__ float chunk_delta[CHUNKS][AGENTS], chunk_k[CHUNKS][AGENTS];
    size_t lane = threadIdx.x % AGENTS, chunk = threadIdx.x / AGENTS, i = (size_t)blockIdx.x * AGENTS + lane;
    const size_t round_steps = CHUNKS * CHUNK_STEPS;
    float after = 0.0f; /* the advantage after this round, the same in all chunks */

    for (size_t round = (Tn + round_steps - 1) / round_steps; round-- > 0;) {
        size_t t0 = round * round_steps + chunk * CHUNK_STEPS;
        float delta[CHUNK_STEPS], k[CHUNK_STEPS], value[CHUNK_STEPS], sum = 0.0f, product = 1.0f, next;

#pragma unroll
        for (size_t u = 0; u < CHUNK_STEPS; u++) {
            delta[u] = 0.0f, k[u] = 1.0f, value[u] = 0.0f; /* a step past the end passes on what comes after it */
            if (t0 + u < Tn && i < N)
                advantage_step(&delta[u], &k[u], &value[u], in, t0 + u, i);
        }
#pragma unroll
        for (size_t u = CHUNK_STEPS; u-- > 0;) {
            sum = delta[u] + carried(k[u], sum);
            product = carried(k[u], product);
        }
        chunk_delta[chunk][lane] = sum;
        chunk_k[chunk][lane] = product;
        __syncthreads();
        next = after;
        for (size_t c = CHUNKS; c-- > 0;) {
            if (c == chunk)
                next = after;
            after = chunk_delta[c][lane] + carried(chunk_k[c][lane], after);
        }
        __syncthreads();
#pragma unroll
        for (size_t u = CHUNK_STEPS; u-- > 0;) {
            next = delta[u] + carried(k[u], next);
            if (t0 + u < Tn && i < N) {
                in.adv[(t0 + u) * N + i] = next;
                in.ret[(t0 + u) * N + i] = next + value[u];
            }
        }
    }
}

void cuda_advantage(struct kern *k, const struct kern_advantage *a)
{
    advantage_k<<<cuda_ceil_div(a->N, AGENTS), AGENTS * CHUNKS, 0, cuda_of(k)->stream>>>(*a);
    cuda_launched(k, "advantage");
}

/* ---- mean and deviation ---- */

/* Sums of x - x[0] and of its square: the shift keeps a mean far from 0 from eating the deviation. */
static __global__ void __launch_bounds__(MEAN_BLOCK)
    mean_std_k(float *mean_std /* (2) */, double *partials /* (2, blocks) */, unsigned *ticket,
               const float *x /* (n) */, size_t n)
{
    __shared__ double scratch[2][MEAN_BLOCK / CUDA_WARP], last_scratch[2][MEAN_BLOCK / CUDA_WARP];
    double sum = 0.0, sq = 0.0, shift = (double)x[0];

    for (size_t i = (size_t)blockIdx.x * MEAN_BLOCK + threadIdx.x; i < n; i += (size_t)gridDim.x * MEAN_BLOCK) {
        double d = (double)x[i] - shift;
        sum += d;
        sq += d * d;
    }
    sum = num_block_sum(sum, scratch[0]);
    sq = num_block_sum(sq, scratch[1]);
    if (threadIdx.x == 0) {
        partials[blockIdx.x] = sum;
        partials[gridDim.x + blockIdx.x] = sq;
    }
    if (!num_last_block(ticket, gridDim.x))
        return;
    sum = sq = 0.0;
    for (unsigned b = threadIdx.x; b < gridDim.x; b += MEAN_BLOCK) {
        sum += __ldcg(&partials[b]);
        sq += __ldcg(&partials[gridDim.x + b]);
    }
    sum = num_block_sum(sum, last_scratch[0]);
    sq = num_block_sum(sq, last_scratch[1]);
    if (threadIdx.x == 0) {
        double mean = sum / (double)n, var = sq / (double)n - mean * mean;
        mean_std[0] = (float)(shift + mean);
        mean_std[1] = (float)sqrt(var < 0.0 ? 0.0 : var); /* NaN stays NaN */
    }
}

void cuda_mean_std(struct kern *k, float *mean_std, const float *x, size_t n)
{
    struct cuda *cuda = cuda_of(k);
    size_t blocks = cuda_ceil_div(n, MEAN_BLOCK);

    blocks = blocks < MEAN_MAX_BLOCKS ? blocks : MEAN_MAX_BLOCKS;
    mean_std_k<<<blocks, MEAN_BLOCK, 0, cuda->stream>>>(mean_std, (double *)cuda->partials, cuda->tickets, x, n);
    cuda_launched(k, "mean_std");
}

static __global__ void mean_std_join_k(float *mean_std /* (2) */, const float *parts /* (n_parts, 2) */, size_t n_parts)
{
    double mean = 0.0, var = 0.0;

    for (size_t i = 0; i < n_parts; i++)
        mean += (double)parts[2 * i] / (double)n_parts;
    for (size_t i = 0; i < n_parts; i++) {
        double apart = (double)parts[2 * i] - mean, deviation = (double)parts[2 * i + 1];
        var += (deviation * deviation + apart * apart) / (double)n_parts;
    }
    mean_std[0] = (float)mean;
    mean_std[1] = (float)sqrt(var);
}

void cuda_mean_std_join(struct kern *k, float *mean_std, const float *parts, size_t n_parts)
{
    mean_std_join_k<<<1, 1, 0, cuda_of(k)->stream>>>(mean_std, parts, n_parts);
    cuda_launched(k, "mean_std_join");
}
