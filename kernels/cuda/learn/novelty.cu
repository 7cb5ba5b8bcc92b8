/* novelty.cu - the bonus of E3B (struct kern_novelty). A warp has an agent: lane j has feature j and column j of
 * `known` in registers through all steps. */
#include "kernels/cuda/number.h"

#define F KERN_NOVELTY_FEATURES
#define BLOCK 128
#define ALL 0xffffffffu

static_assert(F == CUDA_WARP, "a lane has a feature");

static __device__ __forceinline__ float obs_number(uint8_t x)
{
    return (float)x;
}
template <typename T> static __device__ __forceinline__ float obs_number(T x)
{
    return num_f32(x);
}

template <typename T>
static __global__ void __launch_bounds__(BLOCK)
    novelty_k(float *rewards /* (T, N) */, float *known_all /* (N, F, F) */, const T *obs /* (T + 1, N, D) */,
              float scale, const uint8_t *reset /* (T + 1, N) */, const float *projection /* (D + 1, F) */,
              const struct kern_hyper *hyper, size_t steps, size_t N, size_t D)
{
    const unsigned lane = threadIdx.x % CUDA_WARP;
    const size_t agent = (size_t)blockIdx.x * (BLOCK / CUDA_WARP) + threadIdx.x / CUDA_WARP;
    float known[F], coef = hyper->e3b_coef;

    if (agent >= N)
        return;
#pragma unroll
    for (int i = 0; i < F; i++)
        known[i] = known_all[(agent * F + i) * F + lane];
    for (size_t t = 0; t < steps; t++) {
        const size_t after = (t + 1) * N + agent;
        const bool begins = reset[after] != 0;
        const T *row = obs + after * D;
        float angle = projection[D * F + lane];
        for (size_t d = 0; d < D; d++)
            angle += obs_number(row[d]) * scale * projection[d * F + lane];
        const float feature = sqrtf(2.0f / F) * cosf(angle);
        float unknown = feature;
#pragma unroll
        for (int i = 0; i < F; i++) {
            known[i] = begins ? 0.0f : known[i];
            unknown -= known[i] * __shfl_sync(ALL, feature, i);
        }
        float worth = num_warp_sum(feature * unknown);
        worth = worth < 0.0f ? 0.0f : worth; /* rounding; NaN stays */
        const float weight = 1.0f / (KERN_NOVELTY_RIDGE + worth);
#pragma unroll
        for (int i = 0; i < F; i++)
            known[i] += weight * __shfl_sync(ALL, unknown, i) * unknown;
        if (lane == 0 && !begins)
            rewards[t * N + agent] += coef * worth;
    }
#pragma unroll
    for (int i = 0; i < F; i++)
        known_all[(agent * F + i) * F + lane] = known[i];
}

template <typename T> static void novelty_of(struct kern *k, const struct kern_novelty *n, float scale)
{
    novelty_k<T><<<cuda_ceil_div(n->N, BLOCK / CUDA_WARP), BLOCK, 0, cuda_of(k)->stream>>>(
        n->rewards, n->known, (const T *)n->obs, scale, n->reset, n->projection, n->hyper, n->T, n->N, n->D);
    cuda_launched(k, "novelty");
}

template <typename T> static void novelty(struct kern *k, const struct kern_novelty *n)
{
    if (n->from.bytes)
        novelty_of<uint8_t>(k, n, n->from.scale);
    else
        novelty_of<T>(k, n, 1.0f);
}

CUDA_ACT_OP(novelty, kern_novelty)
