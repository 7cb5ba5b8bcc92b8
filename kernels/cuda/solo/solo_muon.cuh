/* solo_muon.cuh - Muon's step of one matrix by a block or by a group of its threads, and of vectors (private to
 * kernels/cuda/solo): as learn/muon.cu in f32, where a matrix has one block. Of S = X^T X only 32 x 32 blocks on and
 * above the diagonal are computed, the others are their mirror images. Invariant: each tile is one warp's, so the bytes
 * do not depend on timing. */
#ifndef KERNELS_CUDA_SOLO_MUON_CUH
#define KERNELS_CUDA_SOLO_MUON_CUH

#include "kernels/cuda/learn/muon.h"

#define MUON_BLOCK 512
#define MUON_NT 4 /* a warp's tile of X or S: 16 x 32 */
#define MUON_COLS 32 /* C is padded to a multiple */
#define MUON_LD(cp) ((cp) + 8)

static inline __host__ __device__ uint32_t muon_part_rows(const struct muon_item *t)
{
    return muon_round_up(t->R, MUON_TILE);
}

static inline size_t muon_shared_bytes(const struct muon_item *t)
{
    uint32_t cp = muon_round_up(t->C, MUON_COLS);
    uint32_t rows = muon_part_rows(t), most = rows > cp ? rows : cp;
    return (size_t)(rows + most + cp) * MUON_LD(cp) * sizeof(float);
}

/* ---- a matrix ---- */

/* Barrier of a group of the block's threads: THREADS of them in a row, or all. */
template <int THREADS> static __device__ __forceinline__ void muon_sync()
{
    if (THREADS == MUON_BLOCK)
        __syncthreads();
    else
        ptx_barrier<THREADS>(1 + (int)threadIdx.x / THREADS);
}

/* A matrix at work. */
struct muon_part {
    uint32_t rows, cp, ld; /* of the tall form, padded */
    float *x; /* (rows, ld) */
    float *y; /* (rows, ld) Y */
    float *s; /* (cp, ld) */
};

/* u into x, 0 where padded; returns the thread's sum of squares. */
template <int THREADS>
static __device__ inline double muon_part_load(const struct muon_part *p, const struct muon_step *s,
                                               const struct muon_item *t)
{
    float clip = optim_clip(s->norm, s->hyper), mu = s->hyper->beta1;
    bool wide = t->rows < t->cols;
    double sum = 0.0;

#pragma unroll 12
    for (uint32_t i = threadIdx.x % THREADS; i < p->rows * p->cp; i += THREADS) {
        uint32_t r = wide ? i % p->rows : i / p->cp, c = wide ? i / p->rows : i % p->cp;
        float u = 0.0f;
        if (r < t->R && c < t->C)
            u = muon_momentum(s, muon_at(t, r, c), clip, mu);
        p->x[r * p->ld + c] = u;
        sum += (double)u * (double)u;
    }
    return sum;
}

template <int THREADS>
static __device__ inline void muon_part_store(const struct muon_part *p, const struct muon_step *s,
                                              const struct muon_item *t)
{
    const struct kern_hyper *h = s->hyper;
    float keep = 1.0f - h->lr * h->weight_decay;
    float rate = h->lr * (t->rows > t->cols ? sqrtf((float)t->rows / (float)t->cols) : 1.0f);
    bool wide = t->rows < t->cols;

#pragma unroll 12
    for (uint32_t i = threadIdx.x % THREADS; i < p->rows * p->cp; i += THREADS) {
        uint32_t r = wide ? i % p->rows : i / p->cp, c = wide ? i / p->rows : i % p->cp;
        if (r < t->R && c < t->C) {
            size_t at = muon_at(t, r, c);
            s->w[at] = s->w[at] * keep - rate * p->x[r * p->ld + c];
        }
    }
}

static __device__ __forceinline__ void muon_tile_store(const struct muon_tile<MUON_NT> *c, float *to, uint32_t ld)
{
    uint32_t g = threadIdx.x % CUDA_WARP / 4, t = threadIdx.x % 4;

#pragma unroll
    for (int n = 0; n < MUON_NT; n++) {
        float *at = to + g * ld + n * 8 + 2 * t;
        *(float2 *)at = make_float2(c->large[n][0] + c->small[n][0], c->large[n][1] + c->small[n][1]);
        *(float2 *)(at + 8 * ld) = make_float2(c->large[n][2] + c->small[n][2], c->large[n][3] + c->small[n][3]);
    }
}

/* to (cp, ld) = x^T x, on and above the diagonal */
template <int THREADS> static __device__ inline void muon_part_gram(const struct muon_part *p, float *to)
{
    uint32_t across = p->cp / MUON_COLS, n_tiles = across * (across + 1);

    for (uint32_t i = threadIdx.x % THREADS / CUDA_WARP; i < n_tiles; i += THREADS / CUDA_WARP) {
        uint32_t row, col;
        struct muon_tile<MUON_NT> c;
        muon_triangle(i / 2, across, &row, &col);
        row = row * MUON_COLS + i % 2 * MUON_TILE, col *= MUON_COLS;
        muon_tile_zero(&c);
        muon_cols<MUON_NT>(&c, p->x + row, p->x + col, (int)p->ld, (int)p->rows);
        muon_tile_store(&c, to + row * p->ld + col, p->ld);
    }
}

/* S below the diagonal. */
template <int THREADS> static __device__ inline void muon_part_mirror(const struct muon_part *p)
{
    for (uint32_t i = threadIdx.x % THREADS; i < p->cp * p->cp; i += THREADS) {
        uint32_t row = i / p->cp, col = i % p->cp;
        if (row / MUON_COLS > col / MUON_COLS)
            p->s[row * p->ld + col] = p->s[col * p->ld + row];
    }
}

/* y = x S */
template <int THREADS> static __device__ inline void muon_part_first(const struct muon_part *p)
{
    uint32_t across = p->cp / MUON_COLS, n_tiles = p->rows / MUON_TILE * across;

    for (uint32_t i = threadIdx.x % THREADS / CUDA_WARP; i < n_tiles; i += THREADS / CUDA_WARP) {
        uint32_t m0 = i / across * MUON_TILE, n0 = i % across * MUON_COLS;
        struct muon_tile<MUON_NT> c;
        muon_tile_zero(&c);
        muon_rows<MUON_NT>(&c, p->x + m0 * p->ld, p->s + n0 * p->ld, (int)p->ld, (int)p->cp);
        muon_tile_store(&c, p->y + m0 * p->ld + n0, p->ld);
    }
}

/* x <- a x + b y + c y S */
template <int THREADS> static __device__ inline void muon_part_second(const struct muon_part *p, const float *coef)
{
    uint32_t across = p->cp / MUON_COLS, n_tiles = p->rows / MUON_TILE * across;
    uint32_t g = threadIdx.x % CUDA_WARP / 4, t = threadIdx.x % 4;

    for (uint32_t i = threadIdx.x % THREADS / CUDA_WARP; i < n_tiles; i += THREADS / CUDA_WARP) {
        uint32_t m0 = i / across * MUON_TILE, n0 = i % across * MUON_COLS;
        struct muon_tile<MUON_NT> c;
        muon_tile_zero(&c);
        muon_rows<MUON_NT>(&c, p->y + m0 * p->ld, p->s + n0 * p->ld, (int)p->ld, (int)p->cp);
#pragma unroll
        for (int n = 0; n < MUON_NT; n++)
#pragma unroll
            for (int half = 0; half < 2; half++) {
                uint32_t at = (m0 + g + 8 * half) * p->ld + n0 + n * 8 + 2 * t;
                float2 x = *(const float2 *)(p->x + at), y = *(const float2 *)(p->y + at);
                x.x = coef[0] * x.x + coef[1] * y.x + coef[2] * (c.large[n][2 * half] + c.small[n][2 * half]);
                x.y = coef[0] * x.y + coef[1] * y.y + coef[2] * (c.large[n][2 * half + 1] + c.small[n][2 * half + 1]);
                *(float2 *)(p->x + at) = x;
            }
    }
}

/* x divided by its norm */
template <int THREADS> static __device__ inline void muon_part_normalise(const struct muon_part *p, double sum)
{
    __shared__ double scratch[MUON_BLOCK / CUDA_WARP];
    const double *of_warps = scratch + threadIdx.x / THREADS * (THREADS / CUDA_WARP);
    float inv;

    sum = num_warp_sum(sum);
    if (threadIdx.x % CUDA_WARP == 0)
        scratch[threadIdx.x / CUDA_WARP] = sum;
    muon_sync<THREADS>();
    sum = 0.0;
    for (int w = 0; w < THREADS / CUDA_WARP; w++)
        sum += of_warps[w];
    inv = sum > 0.0 ? (float)(1.0 / sqrt(sum)) : 0.0f;
    for (uint32_t i = threadIdx.x % THREADS; i < p->rows * p->cp; i += THREADS)
        p->x[i / p->cp * p->ld + i % p->cp] *= inv;
    muon_sync<THREADS>();
}

template <int THREADS>
static __device__ inline void muon_matrix(const struct muon_part *p, const struct muon_step *s,
                                          const struct muon_item *t)
{
    muon_part_normalise<THREADS>(p, muon_part_load<THREADS>(p, s, t));
    for (int i = 0; i < MUON_STEPS; i++) {
        muon_part_gram<THREADS>(p, p->s);
        muon_sync<THREADS>();
        muon_part_mirror<THREADS>(p);
        muon_sync<THREADS>();
        muon_part_first<THREADS>(p);
        muon_sync<THREADS>();
        muon_part_second<THREADS>(p, muon_coef[i]);
        muon_sync<THREADS>();
    }
    muon_part_store<THREADS>(p, s, t);
}

static __device__ inline void muon_vector(const struct muon_step *s, const struct muon_item *t)
{
    const struct kern_hyper *h = s->hyper;
    float clip = optim_clip(s->norm, h), keep = 1.0f - h->lr * h->weight_decay;

    for (size_t i = threadIdx.x; i < t->rows; i += MUON_BLOCK) {
        float u = muon_momentum(s, t->offset + i, clip, h->beta1);
        s->w[t->offset + i] = s->w[t->offset + i] * keep - h->lr * u;
    }
}

#endif
