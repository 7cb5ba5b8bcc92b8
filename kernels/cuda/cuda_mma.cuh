/* cuda_mma.cuh - matrix products of small tiles by one warp on tensor cores (private to kernels/cuda).
 * Y^T (rows, tokens) = W (rows, K) X (tokens, K)^T: the weights are the left operand in blocks of 16 rows, the tokens
 * the right one in blocks of 8, so that a tile may be as small as 8 tokens. bf16 in, f32 sums.
 * Fragments of W are kept in the order in which lanes hold them: one 16-byte load for each block of 16 rows and 16
 * columns. X lies in shared memory, a row for each token, MMA_PAD elements longer than K: neither loads nor stores of
 * 8x8 blocks meet in a bank. A lane's sums of a block (16 rows, 8 tokens): row lane / 4 (elements 0, 1) and lane / 4 + 8
 * (2, 3), tokens 2 (lane % 4) and the next. */
#ifndef KERNELS_CUDA_MMA_CUH
#define KERNELS_CUDA_MMA_CUH

#include <cuda_bf16.h>
#include <stdint.h>

#define MMA_PAD 8
#define MMA_ROWS 16
#define MMA_TOKENS 8
#define MMA_K 16 /* columns of a fragment; K is a multiple of twice that here, padded with zeros */

__device__ static inline uint32_t mma_address(const void *shared)
{
    return (uint32_t)__cvta_generic_to_shared(shared);
}

__device__ static inline void mma_add(float (&sum)[4], const uint4 &w, uint32_t x0, uint32_t x1)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
                 "{%0, %1, %2, %3};"
                 : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
                 : "r"(w.x), "r"(w.y), "r"(w.z), "r"(w.w), "r"(x0), "r"(x1));
}

/* Four 8x8 blocks, whose rows of 16 bytes begin where lanes 0-7, 8-15, 16-23, 24-31 say. */
__device__ static inline void mma_load(uint32_t (&x)[4], uint32_t address)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
                 : "r"(address)
                 : "memory");
}

/* The transposes of two 8x8 blocks, to rows that begin where lanes 0-7, 8-15 say. */
__device__ static inline void mma_store(uint32_t address, uint32_t y0, uint32_t y1)
{
    asm volatile("stmatrix.sync.aligned.m8n8.x2.trans.shared.b16 [%0], {%1, %2};" ::"r"(address), "r"(y0), "r"(y1)
                 : "memory");
}

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

/* Where a lane's part of mma_load (token lane % 8, columns 8 (lane / 8)) lies in rows of `stride` elements. */
__device__ static inline uint32_t mma_load_at(const __nv_bfloat16 *x, int stride, int lane)
{
    return mma_address(x + (lane % 8) * stride + lane / 8 * 8);
}

/* Where a lane's part of mma_store (token lane % 8, rows 8 (lane / 8 % 2) of the 16) lies. */
__device__ static inline uint32_t mma_store_at(const __nv_bfloat16 *y, int stride, int lane)
{
    return mma_address(y + (lane % 8) * stride + lane / 8 % 2 * 8);
}

/* sum (MT, NT) += fragments w (MT, k_steps, 32 lanes) times the rows at x_at (mma_load_at), NT blocks of tokens. */
template <int MT, int NT>
__device__ static inline void mma_tile(float (&sum)[MT][NT][4], const uint4 *w, uint32_t x_at, int stride, int k_steps,
                                       int lane)
{
    const uint4 *mine = w + lane;

#pragma unroll 2
    for (int k = 0; k < k_steps; k += 2) {
        uint32_t x[NT][4];
#pragma unroll
        for (int n = 0; n < NT; n++)
            mma_load(x[n], x_at + (uint32_t)(n * MMA_TOKENS * stride + k * MMA_K) * 2);
#pragma unroll
        for (int kk = 0; kk < 2; kk++) {
#pragma unroll
            for (int m = 0; m < MT; m++) {
                uint4 a = mine[(m * k_steps + k + kk) * 32];
#pragma unroll
                for (int n = 0; n < NT; n++)
                    mma_add(sum[m][n], a, x[n][2 * kk], x[n][2 * kk + 1]);
            }
        }
    }
}

/* Two neighbours of a row of W (rows, K), zeros beyond K. */
__device__ static inline uint32_t mma_weight_pair(const __nv_bfloat16 *w, size_t row, int col, int K)
{
    const unsigned short *p = (const unsigned short *)w + row * (size_t)K + col;

    if (col + 1 < K && (uintptr_t)p % 4 == 0)
        return *(const uint32_t *)p;
    uint32_t low = col < K ? p[0] : 0, high = col + 1 < K ? p[1] : 0;
    return low | high << 16;
}

/* A lane's fragment of W's 16 rows from `row` and 16 columns from `col`. */
__device__ static inline uint4 mma_fragment(const __nv_bfloat16 *w, size_t row, int col, int K, int lane)
{
    size_t r = row + (size_t)(lane / 4);
    int c = col + lane % 4 * 2;
    uint4 a;

    a.x = mma_weight_pair(w, r, c, K);
    a.y = mma_weight_pair(w, r + 8, c, K);
    a.z = mma_weight_pair(w, r, c + 8, K);
    a.w = mma_weight_pair(w, r + 8, c + 8, K);
    return a;
}

#endif
