/* norm.cu - running mean and variance of columns, and what is normalised by them: formulas of cpu/cpu_norm.c. A block
 * adds a column; every sum has a fixed order. */
#include "kernels/cuda/number.h"

#define ADD_BLOCK 256
#define APPLY_BLOCK 256
#define NORM_LIMIT 10.0f
#define NORM_EPS 1e-8

template <typename T>
static __global__ void __launch_bounds__(ADD_BLOCK)
    add_k(double *sums /* (D, 3) */, const T *x /* (n, D), `row` apart */, size_t n, size_t row)
{
    __shared__ double scratch[2][ADD_BLOCK / CUDA_WARP];
    const size_t d = blockIdx.x;
    double sum = 0.0, squares = 0.0, mean;

    for (size_t i = threadIdx.x; i < n; i += ADD_BLOCK)
        sum += (double)num_f32(x[i * row + d]);
    mean = num_block_sum(sum, scratch[0]) / (double)n;
    for (size_t i = threadIdx.x; i < n; i += ADD_BLOCK) {
        double apart = (double)num_f32(x[i * row + d]) - mean;
        squares += apart * apart;
    }
    squares = num_block_sum(squares, scratch[1]);
    if (threadIdx.x == 0) {
        double *own = sums + 3 * d, all = own[0] + (double)n, apart = mean - own[1];
        own[2] += squares + apart * apart * (own[0] * (double)n / all);
        own[1] += apart * ((double)n / all);
        own[0] = all;
    }
}

static __global__ void __launch_bounds__(APPLY_BLOCK)
    freeze_k(float *scale /* (D, 2) */, const double *sums /* (D, 3) */, size_t D)
{
    size_t d = (size_t)blockIdx.x * APPLY_BLOCK + threadIdx.x;

    if (d >= D)
        return;
    scale[2 * d] = (float)sums[3 * d + 1];
    scale[2 * d + 1] = sums[3 * d] > 0.0 ? (float)(1.0 / sqrt(sums[3 * d + 2] / sums[3 * d] + NORM_EPS)) : 1.0f;
}

/* A thread has a column, of which it joins the parts in turn, and clears them. */
static __global__ void __launch_bounds__(APPLY_BLOCK)
    join_k(double *sums /* (D, 3) */, double *parts /* (n_parts, D, 3) */, size_t n_parts, size_t D)
{
    size_t d = (size_t)blockIdx.x * APPLY_BLOCK + threadIdx.x;

    if (d >= D)
        return;
    double *own = sums + 3 * d;
    for (size_t p = 0; p < n_parts; p++) {
        double *part = parts + 3 * (p * D + d);
        if (part[0] > 0.0) {
            double all = own[0] + part[0], apart = part[1] - own[1];
            own[2] += part[2] + apart * apart * (own[0] * part[0] / all);
            own[1] += apart * (part[0] / all);
            own[0] = all;
        }
        part[0] = part[1] = part[2] = 0.0;
    }
}

/* NaN stays. */
static __device__ __forceinline__ float limited(float x)
{
    return x > NORM_LIMIT ? NORM_LIMIT : x < -NORM_LIMIT ? -NORM_LIMIT : x;
}

template <typename T>
static __global__ void __launch_bounds__(APPLY_BLOCK)
    apply_k(T *x /* (n, D), `row` apart */, const float *scale /* (D, 2) */, size_t n, size_t D, size_t row)
{
    size_t i = (size_t)blockIdx.x * APPLY_BLOCK + threadIdx.x;

    if (i >= n * D)
        return;
    size_t d = i % D;
    T *at = &x[i / D * row + d];
    num_set(at, limited((num_f32(*at) - scale[2 * d]) * scale[2 * d + 1]));
}

/* A thread has an agent. */
static __global__ void __launch_bounds__(APPLY_BLOCK)
    discounted_k(float *discounted /* (T, N) */, float *carry /* (N) */, const float *rewards /* (T, N) */,
                 const uint8_t *terms, const uint8_t *truncs, const struct kern_hyper *hyper, size_t T, size_t N)
{
    size_t i = (size_t)blockIdx.x * APPLY_BLOCK + threadIdx.x;

    if (i >= N)
        return;
    float gamma = hyper->gamma, before = carry[i];
    for (size_t at = i; at < T * N; at += N) {
        float sum = gamma * before + rewards[at];
        discounted[at] = sum;
        before = terms[at] | truncs[at] ? 0.0f : sum;
    }
    carry[i] = before;
}

static __global__ void __launch_bounds__(APPLY_BLOCK)
    divide_k(float *rewards /* (n) */, const float *scale /* (2) */, size_t n)
{
    size_t i = (size_t)blockIdx.x * APPLY_BLOCK + threadIdx.x;

    if (i < n)
        rewards[i] = limited(rewards[i] * scale[1]);
}

template <typename T> static void norm_add(struct kern *k, const struct kern_norm *norm)
{
    add_k<<<(unsigned)norm->D, ADD_BLOCK, 0, cuda_of(k)->stream>>>(norm->sums, (const T *)norm->x, norm->n,
                                                                   norm->row > 0 ? norm->row : norm->D);
    cuda_launched(k, "norm_add");
}

template <typename T> static void norm_apply(struct kern *k, const struct kern_norm *norm)
{
    apply_k<<<cuda_ceil_div(norm->n * norm->D, APPLY_BLOCK), APPLY_BLOCK, 0, cuda_of(k)->stream>>>(
        (T *)norm->x, norm->scale, norm->n, norm->D, norm->row > 0 ? norm->row : norm->D);
    cuda_launched(k, "norm_apply");
}

void cuda_norm_freeze(struct kern *k, const struct kern_norm *norm)
{
    freeze_k<<<cuda_ceil_div(norm->D, APPLY_BLOCK), APPLY_BLOCK, 0, cuda_of(k)->stream>>>(norm->scale, norm->sums,
                                                                                          norm->D);
    cuda_launched(k, "norm_freeze");
}

void cuda_norm_join(struct kern *k, const struct kern_norm *norm)
{
    join_k<<<cuda_ceil_div(norm->D, APPLY_BLOCK), APPLY_BLOCK, 0, cuda_of(k)->stream>>>(norm->sums, norm->parts,
                                                                                        norm->n_parts, norm->D);
    cuda_launched(k, "norm_join");
}

void cuda_reward_scale(struct kern *k, const struct kern_reward_scale *r)
{
    cudaStream_t stream = cuda_of(k)->stream;
    size_t n = r->T * r->N;
    struct kern_norm norm = {};

    norm.n = n, norm.D = 1, norm.x = r->discounted, norm.sums = r->sums, norm.scale = r->scale;
    if (r->part != KERN_REWARD_APPLY) {
        discounted_k<<<cuda_ceil_div(r->N, APPLY_BLOCK), APPLY_BLOCK, 0, stream>>>(
            r->discounted, r->carry, r->rewards, r->terms, r->truncs, r->hyper, r->T, r->N);
        norm_add<float>(k, &norm);
    }
    if (r->part == KERN_REWARD_ADD)
        return;
    cuda_norm_freeze(k, &norm);
    divide_k<<<cuda_ceil_div(n, APPLY_BLOCK), APPLY_BLOCK, 0, stream>>>(r->rewards, r->scale, n);
    cuda_launched(k, "reward_scale");
}

CUDA_ACT_OP(norm_add, kern_norm)
CUDA_ACT_OP(norm_apply, kern_norm)
