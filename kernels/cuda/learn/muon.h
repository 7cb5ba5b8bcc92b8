/* muon.h - what the implementations of Muon on the GPU share: products of f32 matrices on tensor cores, momentum, the
 * coefficients of the iteration, and its steps for a matrix in shared memory.
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
    uint32_t parts; /* blocks that share it: 1 but in muon.cu */
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

static inline struct muon_item muon_item_of(const struct kern_tensor *t)
{
    const uint32_t rows = (uint32_t)t->rows, cols = (uint32_t)t->cols;

    return (struct muon_item){t->offset, rows, cols, rows > cols ? rows : cols, rows > cols ? cols : rows, 1};
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

/* ---- the rows of a matrix that a block, or a group of its threads, has in shared memory, in f32 ----
 * A share of the matrix (muon.cu) or all of it (kernels/cuda/solo). Of S only 32 x 32 blocks on and above the diagonal
 * are computed, the others are their mirror images. THREADS: those of the group; MUON_BLOCK is a whole block.
 * Invariant: each tile is one warp's and sums have an order, so the bytes do not depend on timing. */
#define MUON_BLOCK 512
#define MUON_NT 4 /* a warp's tile of X or S: 16 x 32 */
#define MUON_COLS 32 /* C is padded to a multiple */
#define MUON_LD(cp) ((cp) + 8)
#define MUON_PACK 4 /* neighbours in memory that a thread takes at once */
#define MUON_AHEAD 3 /* packs of a thread that are loaded together */

static inline __host__ __device__ uint32_t muon_part_rows(const struct muon_item *t)
{
    return muon_round_up((t->R + t->parts - 1) / t->parts, MUON_TILE);
}

static inline size_t muon_part_bytes(const struct muon_item *t)
{
    size_t cp = muon_round_up(t->C, MUON_COLS), rows = muon_part_rows(t), most = rows > cp ? rows : cp;
    return (rows + most + cp) * MUON_LD(cp) * sizeof(float);
}

/* The plain number for a whole block: the compiler does not see through the remainder. */
template <int THREADS> static __device__ __forceinline__ uint32_t muon_thread()
{
    return THREADS == MUON_BLOCK ? threadIdx.x : threadIdx.x % THREADS;
}

template <int THREADS> static __device__ __forceinline__ void muon_sync()
{
    if (THREADS == MUON_BLOCK)
        __syncthreads();
    else
        ptx_barrier<THREADS>(1 + (int)threadIdx.x / THREADS);
}

/* Sum of x over the group. */
template <int THREADS> static __device__ __forceinline__ double muon_sum(double x)
{
    __shared__ double scratch[MUON_BLOCK / CUDA_WARP];
    const double *of_group = scratch + (THREADS == MUON_BLOCK ? 0 : threadIdx.x / THREADS * (THREADS / CUDA_WARP));
    double sum = 0.0;

    x = num_warp_sum(x);
    if (threadIdx.x % CUDA_WARP == 0)
        scratch[threadIdx.x / CUDA_WARP] = x;
    muon_sync<THREADS>();
    for (int w = 0; w < THREADS / CUDA_WARP; w++)
        sum += of_group[w];
    return sum;
}

struct muon_part {
    uint32_t r0, rows, cp, ld; /* rows [r0, r0 + rows) of the tall form, padded; cp: C padded */
    float *x; /* (rows, ld) */
    float *y; /* (rows, ld) Y; or (cp, ld), a block's part of S */
    float *s; /* (cp, ld) */
};

/* Share `rank` of the item's parts, in shared memory. */
static __device__ __forceinline__ void muon_part_place(struct muon_part *p, const struct muon_item *t, uint32_t rank,
                                                       void *shared)
{
    p->rows = muon_part_rows(t);
    p->r0 = rank * p->rows;
    p->cp = muon_round_up(t->C, MUON_COLS);
    p->ld = MUON_LD(p->cp);
    p->x = (float *)shared;
    p->y = p->x + p->rows * p->ld;
    p->s = p->y + (p->rows > p->cp ? p->rows : p->cp) * p->ld;
}

/* Where MUON_PACK neighbours in memory lie: among the parameters, and in x, where they are `step` apart. */
struct muon_pack {
    size_t at;
    uint32_t x, step;
    uint32_t n; /* of them that are there, MUON_PACK but for padding */
};

/* Pack i of the rows in the order of memory. */
static __device__ __forceinline__ struct muon_pack muon_pack_at(const struct muon_part *p, const struct muon_item *t,
                                                                uint32_t i)
{
    const bool wide = t->rows < t->cols;
    const uint32_t r = wide ? i * MUON_PACK % p->rows : i * MUON_PACK / p->cp,
                   c = wide ? i * MUON_PACK / p->rows : i * MUON_PACK % p->cp;
    const uint32_t row = p->r0 + r, left = row >= t->R || c >= t->C ? 0 : wide ? t->R - row : t->C - c;

    return {muon_at(t, row, c), r * p->ld + c, wide ? p->ld : 1, left < MUON_PACK ? left : MUON_PACK};
}

static __device__ __forceinline__ void muon_pack_load(float (&v)[MUON_PACK], const float *from,
                                                      const struct muon_pack &of)
{
    from += of.at;
    if (of.n == MUON_PACK && (uintptr_t)from % sizeof v == 0)
        num_load<MUON_PACK>(v, from);
    else
#pragma unroll
        for (uint32_t j = 0; j < MUON_PACK; j++)
            v[j] = j < of.n ? from[j] : 0.0f;
}

static __device__ __forceinline__ void muon_pack_store(float *to, const float (&v)[MUON_PACK],
                                                       const struct muon_pack &of)
{
    to += of.at;
    if (of.n == MUON_PACK && (uintptr_t)to % sizeof v == 0)
        num_store<MUON_PACK>(to, v);
    else
#pragma unroll
        for (uint32_t j = 0; j < MUON_PACK; j++)
            if (j < of.n)
                to[j] = v[j];
}

/* u of the rows into x, 0 where padded; returns the thread's sum of squares. */
template <int THREADS>
static __device__ inline double muon_part_load(const struct muon_part *p, const struct muon_step *s,
                                               const struct muon_item *t)
{
    const float clip = optim_clip(s->norm, s->hyper), mu = s->hyper->beta1;
    const uint32_t n = p->rows * p->cp / MUON_PACK;
    double sum = 0.0;

    for (uint32_t from = muon_thread<THREADS>(); from < n; from += MUON_AHEAD * THREADS) {
        float g[MUON_AHEAD][MUON_PACK], m[MUON_AHEAD][MUON_PACK];
        struct muon_pack of[MUON_AHEAD];

#pragma unroll
        for (uint32_t j = 0; j < MUON_AHEAD; j++) {
            of[j] = muon_pack_at(p, t, from + j * THREADS);
            of[j].n = from + j * THREADS < n ? of[j].n : 0;
            muon_pack_load(g[j], s->g, of[j]);
            muon_pack_load(m[j], s->m, of[j]);
        }
#pragma unroll
        for (uint32_t j = 0; j < MUON_AHEAD; j++) {
            if (from + j * THREADS >= n)
                break;
#pragma unroll
            for (uint32_t i = 0; i < MUON_PACK; i++) {
                float u = muon_direction(g[j][i] * clip, &m[j][i], mu);
                p->x[of[j].x + i * of[j].step] = u;
                sum += (double)u * (double)u;
            }
            muon_pack_store(s->m, m[j], of[j]);
        }
    }
    return sum;
}

template <int THREADS>
static __device__ inline void muon_part_store(const struct muon_part *p, const struct muon_step *s,
                                              const struct muon_item *t)
{
    const struct kern_hyper *h = s->hyper;
    const float keep = 1.0f - h->lr * h->weight_decay;
    const float rate = h->lr * (t->rows > t->cols ? sqrtf((float)t->rows / (float)t->cols) : 1.0f);
    const uint32_t n = p->rows * p->cp / MUON_PACK;

    for (uint32_t from = muon_thread<THREADS>(); from < n; from += MUON_AHEAD * THREADS) {
        float w[MUON_AHEAD][MUON_PACK];
        struct muon_pack of[MUON_AHEAD];

#pragma unroll
        for (uint32_t j = 0; j < MUON_AHEAD; j++) {
            of[j] = muon_pack_at(p, t, from + j * THREADS);
            of[j].n = from + j * THREADS < n ? of[j].n : 0;
            muon_pack_load(w[j], s->w, of[j]);
        }
#pragma unroll
        for (uint32_t j = 0; j < MUON_AHEAD; j++) {
            if (from + j * THREADS >= n)
                break;
#pragma unroll
            for (uint32_t i = 0; i < MUON_PACK; i++)
                w[j][i] = w[j][i] * keep - rate * p->x[of[j].x + i * of[j].step];
            muon_pack_store(s->w, w[j], of[j]);
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

/* to (cp, ld) = x^T x of the rows, on and above the diagonal */
template <int THREADS> static __device__ inline void muon_part_gram(const struct muon_part *p, float *to)
{
    uint32_t across = p->cp / MUON_COLS, n_tiles = across * (across + 1);

    for (uint32_t i = muon_thread<THREADS>() / CUDA_WARP; i < n_tiles; i += THREADS / CUDA_WARP) {
        uint32_t row, col;
        struct muon_tile<MUON_NT> c;
        muon_triangle(i / 2, across, &row, &col);
        row = row * MUON_COLS + i % 2 * MUON_TILE, col *= MUON_COLS;
        muon_tile_zero(&c);
        muon_cols<MUON_NT>(&c, p->x + row, p->x + col, (int)p->ld, (int)p->rows);
        muon_tile_store(&c, to + row * p->ld + col, p->ld);
    }
}

/* S below the diagonal, where the group has all of it. */
template <int THREADS> static __device__ inline void muon_part_mirror(const struct muon_part *p)
{
    for (uint32_t i = muon_thread<THREADS>(); i < p->cp * p->cp; i += THREADS) {
        uint32_t row = i / p->cp, col = i % p->cp;
        if (row / MUON_COLS > col / MUON_COLS)
            p->s[row * p->ld + col] = p->s[col * p->ld + row];
    }
}

/* y = x S */
template <int THREADS> static __device__ inline void muon_part_first(const struct muon_part *p)
{
    uint32_t across = p->cp / MUON_COLS, n_tiles = p->rows / MUON_TILE * across;

    for (uint32_t i = muon_thread<THREADS>() / CUDA_WARP; i < n_tiles; i += THREADS / CUDA_WARP) {
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

    for (uint32_t i = muon_thread<THREADS>() / CUDA_WARP; i < n_tiles; i += THREADS / CUDA_WARP) {
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

/* X from its S, all of which is there: X <- X (a I + b S + c S S); begins and ends with a barrier. */
template <int THREADS> static __device__ inline void muon_part_turn(const struct muon_part *p, const float *coef)
{
    muon_sync<THREADS>();
    muon_part_first<THREADS>(p);
    muon_sync<THREADS>();
    muon_part_second<THREADS>(p, coef);
    muon_sync<THREADS>();
}

/* A vector's numbers from `first` on, `each` apart. */
static __device__ inline void muon_vector(const struct muon_step *s, const struct muon_item *t, uint32_t first,
                                          uint32_t each)
{
    const struct kern_hyper *h = s->hyper;
    float clip = optim_clip(s->norm, h), keep = 1.0f - h->lr * h->weight_decay;

    for (size_t i = first; i < t->rows; i += each) {
        float u = muon_momentum(s, t->offset + i, clip, h->beta1);
        s->w[t->offset + i] = s->w[t->offset + i] * keep - h->lr * u;
    }
}

/* ---- muon_large.cu: matrices that do not fit into a cluster's shared memory ---- */
void cuda_muon_large(struct kern *k, const struct muon_step *step, const struct muon_item *items, size_t n_items,
                     float *scratch, bool is_bf16);

#endif
