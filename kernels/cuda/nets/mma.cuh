/* mma.cuh - matrix products of small tiles on tensor cores (private to kernels/cuda).
 * Y^T (rows, tokens) = W (rows, K) X (tokens, K)^T: the weights are the left operand in blocks of 16 rows, the tokens
 * the right one in blocks of 8, so that a tile may be as small as 8 tokens. bf16 in, f32 sums. ptx.cuh has the picture
 * of what a lane holds.
 *
 * Both operands lie in shared memory as blocks of 8 x 8 elements, 128 bytes each, so that no access meets another in a
 * bank: X as [K / 8][tokens / 8] blocks of [token][k]. Two ways to multiply:
 *   - a warpgroup (4 warps, 64 rows) hands over both operands in place: weights as tiles of 64 rows and 16 columns,
 *     [k / 8][row / 8] blocks of [row][k];
 *   - a warp alone (16 rows), where fewer than 4 warps share the tokens: weights in the order in which lanes hold them,
 *     one 16-byte load for 16 rows and 16 columns.
 * What was written the ordinary way must pass ptx_publish_shared and a barrier before a warpgroup multiplies it. */
#ifndef KERNELS_CUDA_MMA_CUH
#define KERNELS_CUDA_MMA_CUH

#include <cuda_bf16.h>
#include <stdint.h>

#include "kernels/cuda/ptx.cuh"

#define MMA_ROWS 16 /* of a warp */
#define MMA_TOKENS 8 /* of a block */
#define MMA_K 16 /* columns that one instruction takes; K is a multiple of twice that here, padded with zeros */
#define MMA_BLOCK 128 /* bytes of 8 x 8 elements */
#define MMA_GROUP_TILE (8 * 2 * MMA_BLOCK) /* bytes of a warpgroup's weights for 16 columns */

__device__ static inline uint32_t mma_pack(float low, float high)
{
    __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
    return *(uint32_t *)&pair;
}

__device__ static inline float mma_low(uint32_t pair)
{
    return __uint_as_float(pair << 16);
}

__device__ static inline float mma_high(uint32_t pair)
{
    return __uint_as_float(pair & 0xffff0000u);
}

/* Brings N numbers to shared memory, or zeros where none are there; `from` may then be anything. 8 or 2 have to lie at
 * a multiple of their size and have arrived after ptx_copy_wait; 1 is written at once. */
template <int N> __device__ static inline void mma_fetch(void *shared, const __nv_bfloat16 *from, bool there)
{
    if constexpr (N == 8)
        ptx_copy16_or_zero(shared, from, there);
    else if constexpr (N == 2)
        ptx_copy4_or_zero(shared, from, there);
    else
        *(__nv_bfloat16 *)shared = there ? *from : __ushort_as_bfloat16(0);
}

/* ---- one warp ---- */

/* x and y as sums of N bf16, 8 bits of each in a part: three parts are exact. */
template <int N> __device__ static inline void mma_split(uint32_t (&part)[N], float x, float y)
{
#pragma unroll
    for (int i = 0; i < N; i++) {
        part[i] = mma_pack(x, y);
        x -= mma_low(part[i]);
        y -= mma_high(part[i]);
    }
}

/* Where a lane's part of ptx_load_blocks lies: columns 0-31 of the first block of tokens, `NT` blocks in all. */
template <int NT> __device__ static inline uint32_t mma_load_at(const void *x, int lane)
{
    return ptx_shared(x) + (uint32_t)(lane / 8 * NT * MMA_BLOCK + lane % 8 * 16);
}

/* Where a lane's part of ptx_store_transposed lies: 16 columns from `column` of the first block of tokens. */
template <int NT> __device__ static inline uint32_t mma_store_at(const void *y, int column, int lane)
{
    return ptx_shared(y) + (uint32_t)((column / 8 + lane / 8 % 2) * NT * MMA_BLOCK + lane % 8 * 16);
}

/* sum (MT, NT) = fragments w (MT, k_steps, 32 lanes) times the tokens x. */
template <int MT, int NT>
__device__ static inline void mma_tile(float (&sum)[MT][NT][4], const uint4 *w, const void *x, int k_steps, int lane)
{
    const uint4 *mine = w + lane;
    const uint32_t at = mma_load_at<NT>(x, lane);

#pragma unroll
    for (int m = 0; m < MT; m++)
#pragma unroll
        for (int n = 0; n < NT; n++)
            sum[m][n][0] = sum[m][n][1] = sum[m][n][2] = sum[m][n][3] = 0.0f;
#pragma unroll 2
    for (int k = 0; k < k_steps; k += 2) {
        uint32_t b[NT][4];
#pragma unroll
        for (int n = 0; n < NT; n++)
            ptx_load_blocks(b[n], at + (uint32_t)((k * 2 * NT + n) * MMA_BLOCK));
#pragma unroll
        for (int kk = 0; kk < 2; kk++) {
#pragma unroll
            for (int m = 0; m < MT; m++) {
                uint4 a = mine[(m * k_steps + k + kk) * 32];
#pragma unroll
                for (int n = 0; n < NT; n++)
                    ptx_mma_bf16(sum[m][n], a.x, a.y, a.z, a.w, b[n][2 * kk], b[n][2 * kk + 1]);
            }
        }
    }
}

/* ---- a warpgroup ---- */

/* Blocks without swizzle: neighbours in k are `k_bytes` apart, neighbours in rows or tokens one block. */
__device__ static inline uint64_t wgmma_operand(const void *shared, uint32_t k_bytes)
{
    return (uint64_t)(ptx_shared(shared) >> 4) | (uint64_t)(k_bytes >> 4) << 16 | (uint64_t)(MMA_BLOCK >> 4) << 32;
}

/* Sums stay where they are. */
template <int MT, int NT> __device__ static inline void wgmma_hold(float (&sum)[MT][NT][4])
{
#pragma unroll
    for (int m = 0; m < MT; m++)
#pragma unroll
        for (int n = 0; n < NT; n++)
            ptx_hold(sum[m][n]);
}

/* sum (MT, NT) = weights w (MT, k_steps tiles of a warpgroup) times the tokens x. */
template <int MT, int NT>
__device__ static inline void wgmma_tile(float (&sum)[MT][NT][4], const void *w, const void *x, int k_steps)
{
    const uint64_t a = wgmma_operand(w, 8 * MMA_BLOCK), b = wgmma_operand(x, NT * MMA_BLOCK);

#pragma unroll
    for (int m = 0; m < MT; m++)
#pragma unroll
        for (int n = 0; n < NT; n++)
            sum[m][n][0] = sum[m][n][1] = sum[m][n][2] = sum[m][n][3] = 0.0f;
    wgmma_hold(sum);
#pragma unroll 1 /* unrolled, it is held to be a divergent path, and then each waits for the one before */
    for (int k = 0; k < k_steps; k++) {
        ptx_wgmma_fence();
#pragma unroll
        for (int m = 0; m < MT; m++)
            ptx_wgmma_add(sum[m], a + (uint64_t)((m * k_steps + k) * (MMA_GROUP_TILE >> 4)),
                          b + (uint64_t)(k * 2 * NT * (MMA_BLOCK >> 4)));
    }
    ptx_wgmma_finish();
    wgmma_hold(sum);
}

/* ---- weights from global memory ---- */

/* Two neighbours of a row of W (rows, K), zeros beyond K. */
__device__ static inline uint32_t mma_weight_pair(const __nv_bfloat16 *w, size_t row, int col, int K)
{
    const unsigned short *p = (const unsigned short *)w + row * (size_t)K + col;

    if (col + 1 < K && (uintptr_t)p % 4 == 0)
        return *(const uint32_t *)p;
    uint32_t low = col < K ? p[0] : 0, high = col + 1 < K ? p[1] : 0;
    return low | high << 16;
}

/* Eight neighbours. */
__device__ static inline uint4 mma_weights(const __nv_bfloat16 *w, size_t row, int col, int K)
{
    const __nv_bfloat16 *p = w + row * (size_t)K + col;

    if (col + 8 <= K && (uintptr_t)p % 16 == 0)
        return *(const uint4 *)p;
    return make_uint4(mma_weight_pair(w, row, col, K), mma_weight_pair(w, row, col + 2, K),
                      mma_weight_pair(w, row, col + 4, K), mma_weight_pair(w, row, col + 6, K));
}

/* A lane's fragment of W's 16 rows from `row` and 16 columns from `col`. */
__device__ static inline uint4 mma_fragment(const __nv_bfloat16 *w, size_t row, int col, int K, int lane)
{
    size_t r = row + (size_t)(lane / 4);
    int c = col + lane % 4 * 2;

    return make_uint4(mma_weight_pair(w, r, c, K), mma_weight_pair(w, r + 8, c, K), mma_weight_pair(w, r, c + 8, K),
                      mma_weight_pair(w, r + 8, c + 8, K));
}

#endif
