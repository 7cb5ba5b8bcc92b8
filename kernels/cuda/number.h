/* number.h - numbers of either activation type in device code, sums over a warp and a block, and loads of several
 * numbers at a time. Every sum has a fixed order. */
#ifndef KERNELS_CUDA_NUMBER_H
#define KERNELS_CUDA_NUMBER_H

#include "kernels/cuda/common.h"
#include "kernels/cuda/gates.cuh"
#include "kernels/cuda/ptx.cuh"

typedef __nv_bfloat16 bf16;

#define CUDA_WARP 32

/* The two rows of an operation that its file has as a template over the activation's type. */
#define CUDA_ACT_OP(name, args)                                                                                        \
    void cuda_##name##_f32(struct kern *k, const struct args *a)                                                       \
    {                                                                                                                  \
        name<float>(k, a);                                                                                             \
    }                                                                                                                  \
    void cuda_##name##_bf16(struct kern *k, const struct args *a)                                                      \
    {                                                                                                                  \
        name<bf16>(k, a);                                                                                              \
    }

static inline unsigned cuda_ceil_div(size_t n, size_t d)
{
    return (unsigned)((n + d - 1) / d);
}

static __device__ __forceinline__ float num_f32(float x)
{
    return x;
}
static __device__ __forceinline__ float num_f32(bf16 x)
{
    return __bfloat162float(x);
}
static __device__ __forceinline__ void num_set(float *to, float x)
{
    *to = x;
}
static __device__ __forceinline__ void num_set(bf16 *to, float x)
{
    *to = __float2bfloat16(x);
}

/* V numbers from 16-byte aligned memory (or V = 1 from anywhere). */
template <int V> static __device__ __forceinline__ void num_load(float *to, const float *from)
{
    if constexpr (V % 4 == 0) {
#pragma unroll
        for (int i = 0; i < V; i += 4) {
            float4 x = *(const float4 *)(from + i);
            to[i] = x.x, to[i + 1] = x.y, to[i + 2] = x.z, to[i + 3] = x.w;
        }
    } else {
#pragma unroll
        for (int i = 0; i < V; i++)
            to[i] = from[i];
    }
}
template <int V> static __device__ __forceinline__ void num_load(float *to, const bf16 *from)
{
    if constexpr (V % 8 == 0) {
#pragma unroll
        for (int i = 0; i < V; i += 8) {
            uint4 x = *(const uint4 *)(from + i);
            const bf16 *h = (const bf16 *)&x;
#pragma unroll
            for (int j = 0; j < 8; j++)
                to[i + j] = __bfloat162float(h[j]);
        }
    } else if constexpr (V % 4 == 0) {
#pragma unroll
        for (int i = 0; i < V; i += 4) {
            uint2 x = *(const uint2 *)(from + i);
            const bf16 *h = (const bf16 *)&x;
#pragma unroll
            for (int j = 0; j < 4; j++)
                to[i + j] = __bfloat162float(h[j]);
        }
    } else {
#pragma unroll
        for (int i = 0; i < V; i++)
            to[i] = __bfloat162float(from[i]);
    }
}
template <int V> static __device__ __forceinline__ void num_store(float *to, const float *from)
{
    if constexpr (V % 4 == 0) {
#pragma unroll
        for (int i = 0; i < V; i += 4)
            *(float4 *)(to + i) = make_float4(from[i], from[i + 1], from[i + 2], from[i + 3]);
    } else {
#pragma unroll
        for (int i = 0; i < V; i++)
            to[i] = from[i];
    }
}
template <int V> static __device__ __forceinline__ void num_store(bf16 *to, const float *from)
{
    if constexpr (V % 8 == 0) {
#pragma unroll
        for (int i = 0; i < V; i += 8) {
            uint4 x;
            bf16 *h = (bf16 *)&x;
#pragma unroll
            for (int j = 0; j < 8; j++)
                h[j] = __float2bfloat16(from[i + j]);
            *(uint4 *)(to + i) = x;
        }
    } else if constexpr (V % 4 == 0) {
#pragma unroll
        for (int i = 0; i < V; i += 4) {
            uint2 x;
            bf16 *h = (bf16 *)&x;
#pragma unroll
            for (int j = 0; j < 4; j++)
                h[j] = __float2bfloat16(from[i + j]);
            *(uint2 *)(to + i) = x;
        }
    } else {
#pragma unroll
        for (int i = 0; i < V; i++)
            to[i] = __float2bfloat16(from[i]);
    }
}

template <typename S> static __device__ __forceinline__ S num_warp_sum(S x)
{
#pragma unroll
    for (int d = CUDA_WARP / 2; d > 0; d /= 2)
        x += __shfl_xor_sync(0xffffffffu, x, d);
    return x;
}

/* Sum over the block, in every thread; scratch holds one S for each warp and is free again after the next barrier. */
template <typename S> static __device__ __forceinline__ S num_block_sum(S x, S *scratch)
{
    int n_warps = (int)(blockDim.x / CUDA_WARP);
    S sum = 0;

    x = num_warp_sum(x);
    if (threadIdx.x % CUDA_WARP == 0)
        scratch[threadIdx.x / CUDA_WARP] = x;
    __syncthreads();
    for (int i = 0; i < n_warps; i++)
        sum += scratch[i];
    return sum;
}

/* True in all threads of the block of a launch that comes here last; what the others wrote before is then to be seen.
 * The ticket is 0 again afterwards. */
static __device__ __forceinline__ bool num_last_block(unsigned *ticket, unsigned n_blocks)
{
    __shared__ unsigned mine;

    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0)
        mine = atomicInc(ticket, n_blocks - 1);
    __syncthreads();
    if (mine != n_blocks - 1)
        return false;
    __threadfence();
    return true;
}

#endif
