/* muon.h - what the two ways of Muon on the GPU share: products of f32 matrices on tensor cores, momentum, and the
 * coefficients of the iteration.
 * A matrix is handled in its tall form X (R, C), R >= C: a wide one (rows < cols) is its transpose. Then each step is
 * S = X^T X, X <- X (a I + b S + c S S), with S symmetric. Numbers are f32: each factor is split into two TF32
 * numbers, and of the four products the one of both small parts is left out (2^-22 of the whole). */
#ifndef KERNELS_CUDA_MUON_H
#define KERNELS_CUDA_MUON_H

#include "kernels/cuda/number.h"
#include "kernels/cuda/learn/optim.h"

#define MUON_STEPS 5
#define MUON_TILE 16 /* rows of a warp's tile; its columns are 8 NT */

#define MUON_COEF                                                                                                      \
    {                                                                                                                  \
        {4.0848f, -6.8946f, 2.9270f}, {3.9505f, -6.3029f, 2.6377f}, {3.7418f, -5.5913f, 2.3037f},                      \
            {2.8769f, -3.1427f, 1.2046f}, {2.8366f, -3.0525f, 1.2012f},                                                \
    }
static __constant__ float muon_coef[MUON_STEPS][3] = MUON_COEF;

/* The vectors and matrices of one call, each where its numbers begin. */
struct muon_step {
    float *w, *m;
    const float *g, *norm;
    const struct kern_stats *stats;
    const struct kern_hyper *hyper;
};

struct muon_item {
    size_t offset;
    uint32_t rows, cols; /* as they lie in memory */
    uint32_t R, C; /* tall */
    uint32_t parts; /* muon.cu: blocks that share it; 0: a vector */
};

/* u = g + mu m after m <- mu m + g, of a clipped g */
static __device__ __forceinline__ float muon_direction(float g, float *m, float mu)
{
    *m = mu * *m + g;
    return g + mu * *m;
}

static __device__ __forceinline__ float muon_momentum(const struct muon_step *s, size_t at, float clip, float mu)
{
    return muon_direction(s->g[at] * clip, &s->m[at], mu);
}

static __host__ __device__ inline uint32_t muon_round_up(uint32_t n, uint32_t to)
{
    return (n + to - 1) / to * to;
}

/* Block i of the upper triangle of (across, across) blocks, row by row. */
static __device__ __forceinline__ void muon_triangle(uint32_t i, uint32_t across, uint32_t *row, uint32_t *col)
{
    uint32_t r = 0;

    while (i >= across - r)
        i -= across - r++;
    *row = r;
    *col = r + i;
}

/* Where element (r, c) of the tall form lies. */
static __device__ __forceinline__ size_t muon_at(const struct muon_item *t, uint32_t r, uint32_t c)
{
    return t->offset + (t->rows < t->cols ? (size_t)c * t->R + r : (size_t)r * t->C + c);
}

/* ---- products ---- */

static __device__ __forceinline__ void muon_split(float x, uint32_t *high, uint32_t *low)
{
    *high = __float_as_uint(x) & 0xffffe000u;
    *low = __float_as_uint(x - __uint_as_float(*high));
}

/* A warp's tile: 16 rows and NT times 8 columns, each as in ptx.cuh. small: the products of a large part with a small
 * one. */
template <int NT> struct muon_tile {
    float large[NT][4], small[NT][4];
};

template <int NT> static __device__ __forceinline__ void muon_tile_zero(struct muon_tile<NT> *c)
{
#pragma unroll
    for (int n = 0; n < NT; n++)
#pragma unroll
        for (int i = 0; i < 4; i++)
            c->large[n][i] = c->small[n][i] = 0.0f;
}

template <int NT>
static __device__ __forceinline__ void muon_tile_add(struct muon_tile<NT> *c, const float a[4], const float b[NT][2])
{
    uint32_t a_high[4], a_low[4];

#pragma unroll
    for (int i = 0; i < 4; i++)
        muon_split(a[i], &a_high[i], &a_low[i]);
#pragma unroll
    for (int n = 0; n < NT; n++) {
        uint32_t b_high[2], b_low[2];
        muon_split(b[n][0], &b_high[0], &b_low[0]);
        muon_split(b[n][1], &b_high[1], &b_low[1]);
        ptx_mma_tf32(c->large[n], a_high, b_high);
        ptx_mma_tf32(c->small[n], a_high, b_low);
        ptx_mma_tf32(c->small[n], a_low, b_high);
    }
}

/* c += a b with a (16, K) and, because b is symmetric, its rows: b (8 NT, K). Row length ld, ld % 32 == 8, so that the
 * loads of a warp meet no bank twice; k runs in another order within each 8, in both alike. */
template <int NT>
static __device__ __forceinline__ void muon_rows(struct muon_tile<NT> *c, const float *a, const float *b, int ld, int K)
{
    int g = (int)(threadIdx.x % CUDA_WARP) / 4, t = (int)threadIdx.x % 4;

#pragma unroll 2
    for (int k = 0; k < K; k += 8) {
        float2 a0 = *(const float2 *)&a[g * ld + k + 2 * t], a1 = *(const float2 *)&a[(g + 8) * ld + k + 2 * t];
        float av[4] = {a0.x, a1.x, a0.y, a1.y}, bv[NT][2];
#pragma unroll
        for (int n = 0; n < NT; n++) {
            float2 x = *(const float2 *)&b[(n * 8 + g) * ld + k + 2 * t];
            bv[n][0] = x.x, bv[n][1] = x.y;
        }
        muon_tile_add(c, av, bv);
    }
}

/* c += a^T b with a (K, 16 of a row), b (K, 8 NT of a row), row length ld, ld % 32 == 8. */
template <int NT>
static __device__ __forceinline__ void muon_cols(struct muon_tile<NT> *c, const float *a, const float *b, int ld, int K)
{
    int g = (int)(threadIdx.x % CUDA_WARP) / 4, t = (int)threadIdx.x % 4;

#pragma unroll 2
    for (int k = 0; k < K; k += 8) {
        const float *a0 = &a[(k + t) * ld + g], *a1 = a0 + 4 * ld, *b0 = &b[(k + t) * ld + g], *b1 = b0 + 4 * ld;
        float av[4] = {a0[0], a0[8], a1[0], a1[8]}, bv[NT][2];
#pragma unroll
        for (int n = 0; n < NT; n++)
            bv[n][0] = b0[n * 8], bv[n][1] = b1[n * 8];
        muon_tile_add(c, av, bv);
    }
}

/* ---- muon_large.cu: matrices that do not fit into a cluster's shared memory ---- */
void cuda_muon_large(struct kern *k, const struct muon_step *step, const struct muon_item *items, size_t n_items,
                     float *scratch, bool is_bf16);

#endif
