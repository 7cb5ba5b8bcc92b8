/* advantage.cu - advantages and returns of a rollout, and their mean and deviation.
 *   delta_t = rho_t (r_t + gamma V'_{t+1} (1 - term_t) - V_t)      V' = boot where truncated, else values[t + 1]
 *   A_t = delta_t + k_t A_{t+1}, k_t = gamma lambda c_t (1 - done_t),  R_t = A_t + V_t
 * There may be only hundreds of agents, so time is cut into chunks that are worked on side by side: a chunk maps the
 * advantage after it, A, to delta + k A; these maps are put together from the last chunk to the first, and a second
 * sweep over registers gives every step its value. */
#include "kernels/cuda/learn/advantage.cuh"

#define MEAN_BLOCK 256
#define MEAN_MAX_BLOCKS 264 /* two for each multiprocessor of an H100; row mean_std in bench/notes/cuda.md */

static __global__ void __launch_bounds__(ADVANTAGE_BLOCK) advantage_k(struct kern_advantage in)
{
    ptx_chained();
    advantage_agents(in, blockIdx.x);
}

void cuda_advantage(struct kern *k, const struct kern_advantage *a)
{
    cuda_chain(k, "advantage", advantage_k, cuda_ceil_div(a->N, ADVANTAGE_AGENTS), ADVANTAGE_BLOCK, 0, *a);
}

/* ---- mean and deviation ---- */

/* Sums of x - x[0] and of its square: the shift keeps a mean far from 0 from eating the deviation. */
static __global__ void __launch_bounds__(MEAN_BLOCK)
    mean_std_k(float *mean_std /* (2) */, double *partials /* (2, blocks) */, unsigned *ticket,
               const float *x /* (n) */, size_t n)
{
    ptx_chained();
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
    cuda_chain(k, "mean_std", mean_std_k, blocks, MEAN_BLOCK, 0, mean_std, (double *)cuda->partials, cuda->tickets, x,
               n);
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
