/* muon.cu - Muon in one launch: a cluster of blocks for each matrix, which holds it in shared memory through all
 * steps; vectors share one more cluster. Matrices too large for that go the way of muon_large.cu.
 * The rows of X (R, C) are shared out. A step: each block's part of S = X^T X; the parts are added up, each block a
 * slice, and the sums are handed to all; then X <- a X + b Y + c Y S with Y = X S, of the block's own rows, needs no
 * one else. Of S only 32 x 32 blocks on and above the diagonal are computed and sent, the others are their mirror
 * images.
 * In bf16 S and P = b S + c S S are bf16, each block has all of P, and X <- a X + X P with X kept in f32 and rounded
 * for the products: a sixth of the instructions, and half the bytes between blocks.
 * Invariant: parts are added in the order of blocks and each tile by one warp, so the bytes do not depend on
 * timing. */
#include "kernels/cuda/learn/muon.h"

#include "kernels/cuda/nets/mma.cuh"

#define CLUSTER 8
#define WARPS (MUON_BLOCK / CUDA_WARP)
#define SHARED_OTHER 1024 /* bytes of the kernel beside its matrix */
/* Matrices of no more numbers are one block's: a cluster's exchanges would take longer. Chosen with the row "Muon, all
 * tensors" of bench/notes/cuda.md, whose 32 wide nets have such matrices; not swept. */
#define ALONE 4096

struct muon_job {
    struct muon_step step;
    uint32_t n_matrices, n_items; /* matrices first, then vectors */
    struct muon_item item[KERN_MAX_TENSORS];
    float *sums[KERN_MAX_TENSORS]; /* of matrices, in scratch */
};

/* f32: as muon_part_place lays it; bf16: x, both xb, yb and sb of struct part. */
static size_t shared_bytes(const struct muon_item *t, bool is_bf16)
{
    const size_t cp = muon_round_up(t->C, MUON_COLS);

    return is_bf16 ? (2 * muon_part_rows(t) + cp) * MUON_LD(cp) * sizeof(float) : muon_part_bytes(t);
}

/* ---- a matrix ---- */

/* One block's share of a matrix. */
struct part : muon_part {
    uint32_t rank, parts;
    float *sums; /* (cp, cp) in global memory: S on its way to all blocks */
    bf16 *xb[2]; /* (rows, ld) x as it was rounded, and as it will be */
    bf16 *yb; /* (cp, ld) the block's part of S, then P */
    bf16 *sb; /* (cp, ld) */
};

/* Adds a slice of every block's part of S up and writes it to sums. */
static __device__ void part_share_sum(const struct part *p)
{
    uint32_t across = p->cp / MUON_COLS, all = across * (across + 1) / 2 * (MUON_COLS * MUON_COLS / 4);
    uint32_t each = (all + p->parts - 1) / p->parts;
    uint32_t end = (p->rank + 1) * each < all ? (p->rank + 1) * each : all;

    for (uint32_t i = p->rank * each + threadIdx.x; i < end; i += MUON_BLOCK) {
        uint32_t row, col;
        float4 in[CLUSTER], sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        muon_triangle(i / (MUON_COLS * MUON_COLS / 4), across, &row, &col);
        row = row * MUON_COLS + i % (MUON_COLS * MUON_COLS / 4) / (MUON_COLS / 4),
        col = col * MUON_COLS + i % (MUON_COLS / 4) * 4;
#pragma unroll
        for (uint32_t r = 0; r < CLUSTER; r++)
            in[r] = ptx_cluster_load(ptx_cluster_at(p->y + row * p->ld + col, r));
#pragma unroll
        for (uint32_t r = 0; r < CLUSTER; r++)
            sum.x += in[r].x, sum.y += in[r].y, sum.z += in[r].z, sum.w += in[r].w;
        __stcg((float4 *)&p->sums[row * p->cp + col], sum);
    }
}

/* S from sums, below the diagonal too. */
static __device__ void part_take_sum(const struct part *p)
{
    uint32_t across = p->cp / MUON_COLS, all = across * (across + 1) / 2 * (MUON_COLS * MUON_COLS / 4);

#pragma unroll 5
    for (uint32_t i = threadIdx.x; i < all; i += MUON_BLOCK) {
        uint32_t row, col;
        muon_triangle(i / (MUON_COLS * MUON_COLS / 4), across, &row, &col);
        bool mirrored = row != col;
        row = row * MUON_COLS + i % (MUON_COLS * MUON_COLS / 4) / (MUON_COLS / 4),
        col = col * MUON_COLS + i % (MUON_COLS / 4) * 4;
        float4 x = __ldcg((const float4 *)&p->sums[row * p->cp + col]);
        *(float4 *)&p->s[row * p->ld + col] = x;
        if (mirrored) {
            float *to = &p->s[col * p->ld + row];
            to[0] = x.x, to[p->ld] = x.y, to[2 * p->ld] = x.z, to[3 * p->ld] = x.w;
        }
    }
}

/* x of all blocks divided by its norm */
template <typename T> static __device__ void part_normalise(const struct part *p, double sum)
{
    __shared__ double mine;
    float inv;

    sum = muon_sum<MUON_BLOCK>(sum);
    if (p->parts > 1) {
        if (threadIdx.x == 0)
            mine = sum;
        ptx_cluster_sync();
        sum = 0.0;
        for (uint32_t r = 0; r < CLUSTER; r++)
            sum += ptx_cluster_load_f64(ptx_cluster_at(&mine, r));
    }
    inv = sum > 0.0 ? (float)(1.0 / sqrt(sum)) : 0.0f;
    for (uint32_t i = threadIdx.x * MUON_PACK; i < p->rows * p->cp; i += MUON_BLOCK * MUON_PACK) {
        uint32_t at = i / p->cp * p->ld + i % p->cp;
        float v[MUON_PACK];
        num_load<MUON_PACK>(v, p->x + at);
#pragma unroll
        for (int j = 0; j < MUON_PACK; j++)
            v[j] *= inv;
        num_store<MUON_PACK>(p->x + at, v);
        if (sizeof(T) == 2)
            num_store<MUON_PACK>(p->xb[0] + at, v);
    }
    __syncthreads();
}

static __device__ void part_iterate(const struct part *p)
{
    for (int i = 0; i < MUON_STEPS; i++) {
        if (p->parts > 1) {
            muon_part_gram<MUON_BLOCK>(p, p->y);
            ptx_cluster_sync();
            part_share_sum(p);
            ptx_cluster_sync();
            part_take_sum(p);
        } else {
            muon_part_gram<MUON_BLOCK>(p, p->s);
            __syncthreads();
            muon_part_mirror<MUON_BLOCK>(p);
        }
        muon_part_turn<MUON_BLOCK>(p, muon_coef[i]);
    }
}

/* ---- a matrix in bf16 ---- */

#define UNITS (MUON_COLS * MUON_COLS / 8) /* of 16 bytes, in a block of S */

/* c (16 MT, 32) += a b^T: both lie with their K numbers k side by side. */
template <int MT>
static __device__ __forceinline__ void half_rows(float (&c)[MT][MUON_NT][4], const bf16 *a, const bf16 *b, uint32_t ld,
                                                 uint32_t K)
{
    uint32_t lane = threadIdx.x % CUDA_WARP, a_at = ptx_shared(a) + 2 * (lane % 16 * ld + lane / 16 * 8),
             b_at = ptx_shared(b) + 2 * ((lane / 16 * 8 + lane % 8) * ld + lane / 8 % 2 * 8);

    for (uint32_t k = 0; k < K; k += 16) {
        uint32_t av[MT][4], bv[MUON_NT / 2][4];
#pragma unroll
        for (uint32_t m = 0; m < MT; m++)
            ptx_load_blocks(av[m], a_at + 2 * (m * 16 * ld + k));
#pragma unroll
        for (uint32_t n = 0; n < MUON_NT / 2; n++)
            ptx_load_blocks(bv[n], b_at + 2 * (n * 16 * ld + k));
#pragma unroll
        for (int m = 0; m < MT; m++)
#pragma unroll
            for (int n = 0; n < MUON_NT; n++)
                ptx_mma_bf16(c[m][n], av[m][0], av[m][1], av[m][2], av[m][3], bv[n / 2][n % 2 * 2],
                             bv[n / 2][n % 2 * 2 + 1]);
    }
}

/* c (32, 32) += a^T b, with a and b 32 columns of a matrix of K rows. */
static __device__ __forceinline__ void half_cols(float (&c)[2][MUON_NT][4], const bf16 *a, const bf16 *b, uint32_t ld,
                                                 uint32_t K)
{
    uint32_t lane = threadIdx.x % CUDA_WARP,
             a_at = ptx_shared(a) + 2 * ((lane % 8 + lane / 16 * 8) * ld + lane / 8 % 2 * 8),
             b_at = ptx_shared(b) + 2 * ((lane % 8 + lane / 8 % 2 * 8) * ld + lane / 16 * 8);

    for (uint32_t k = 0; k < K; k += 16) {
        uint32_t av[2][4], bv[2][4];
#pragma unroll
        for (uint32_t i = 0; i < 2; i++) {
            ptx_load_blocks_turned(av[i], a_at + 2 * (k * ld + i * 16));
            ptx_load_blocks_turned(bv[i], b_at + 2 * (k * ld + i * 16));
        }
#pragma unroll
        for (int m = 0; m < 2; m++)
#pragma unroll
            for (int n = 0; n < MUON_NT; n++)
                ptx_mma_bf16(c[m][n], av[m][0], av[m][1], av[m][2], av[m][3], bv[n / 2][n % 2 * 2],
                             bv[n / 2][n % 2 * 2 + 1]);
    }
}

/* A tile of a symmetric matrix at (row, col) of to, and perhaps its mirror image. */
static __device__ __forceinline__ void half_store(const float (&c)[2][MUON_NT][4], bf16 *to, uint32_t ld, uint32_t row,
                                                  uint32_t col, bool mirrored)
{
    uint32_t lane = threadIdx.x % CUDA_WARP, g = lane / 4, t = lane % 4;

#pragma unroll
    for (uint32_t m = 0; m < 2; m++)
#pragma unroll
        for (uint32_t n = 0; n < MUON_NT; n++) {
            uint32_t upper = mma_pack(c[m][n][0], c[m][n][1]), lower = mma_pack(c[m][n][2], c[m][n][3]);
            uint32_t r = row + 16 * m, q = col + 8 * n;
            *(uint32_t *)&to[(r + g) * ld + q + 2 * t] = upper;
            *(uint32_t *)&to[(r + 8 + g) * ld + q + 2 * t] = lower;
            if (mirrored)
                ptx_store_transposed(ptx_shared(&to[(q + lane % 8) * ld + r + lane / 8 % 2 * 8]), upper, lower);
        }
}

/* to = x^T x of the block's rows: on and above the diagonal, or all of it. */
static __device__ void half_gram(const struct part *p, const bf16 *x, bf16 *to, bool all)
{
    uint32_t across = p->cp / MUON_COLS, n_tiles = across * (across + 1) / 2;

    for (uint32_t i = threadIdx.x / CUDA_WARP; i < n_tiles; i += WARPS) {
        uint32_t row, col;
        float c[2][MUON_NT][4] = {};
        muon_triangle(i, across, &row, &col);
        half_cols(c, x + row * MUON_COLS, x + col * MUON_COLS, p->ld, p->rows);
        half_store(c, to, p->ld, row * MUON_COLS, col * MUON_COLS, all && row != col);
    }
}

/* Adds a slice of every block's part of S up and gives the sums to every block. */
static __device__ void half_share(const struct part *p)
{
    uint32_t across = p->cp / MUON_COLS, n_units = across * (across + 1) / 2 * UNITS;
    uint32_t each = (n_units + p->parts - 1) / p->parts;
    uint32_t end = (p->rank + 1) * each < n_units ? (p->rank + 1) * each : n_units;

    for (uint32_t i = p->rank * each + threadIdx.x; i < end; i += MUON_BLOCK) {
        uint32_t row, col;
        float4 in[CLUSTER];
        float sum[8] = {0};
        muon_triangle(i / UNITS, across, &row, &col);
        uint32_t at =
            (row * MUON_COLS + i % UNITS / (MUON_COLS / 8)) * p->ld + col * MUON_COLS + i % (MUON_COLS / 8) * 8;
#pragma unroll
        for (uint32_t r = 0; r < CLUSTER; r++)
            in[r] = ptx_cluster_load(ptx_cluster_at(p->yb + at, r));
#pragma unroll
        for (uint32_t r = 0; r < CLUSTER; r++) {
            const float pair[4] = {in[r].x, in[r].y, in[r].z, in[r].w};
#pragma unroll
            for (int j = 0; j < 4; j++) {
                sum[2 * j] += mma_low(__float_as_uint(pair[j]));
                sum[2 * j + 1] += mma_high(__float_as_uint(pair[j]));
            }
        }
        uint4 out = make_uint4(mma_pack(sum[0], sum[1]), mma_pack(sum[2], sum[3]), mma_pack(sum[4], sum[5]),
                               mma_pack(sum[6], sum[7]));
#pragma unroll
        for (uint32_t r = 0; r < CLUSTER; r++)
            ptx_cluster_store(ptx_cluster_at(p->sb + at, r), out);
    }
}

/* S below the diagonal. */
static __device__ void half_mirror(const struct part *p)
{
    const uint32_t pairs = MUON_COLS / 8 * (MUON_COLS / 16); /* of 8 x 8 numbers, one above the other, in a block */
    uint32_t across = p->cp / MUON_COLS, n = across * (across - 1) / 2 * pairs;
    uint32_t lane = threadIdx.x % CUDA_WARP, g = lane / 4, t = lane % 4;

    for (uint32_t i = threadIdx.x / CUDA_WARP; i < n; i += WARPS) {
        uint32_t row, col;
        muon_triangle(i / pairs, across - 1, &row, &col);
        row = row * MUON_COLS + i % pairs / (MUON_COLS / 8) * 16, col = (col + 1) * MUON_COLS + i % (MUON_COLS / 8) * 8;
        ptx_store_transposed(ptx_shared(&p->sb[(col + lane % 8) * p->ld + row + lane / 8 % 2 * 8]),
                             *(const uint32_t *)&p->sb[(row + g) * p->ld + col + 2 * t],
                             *(const uint32_t *)&p->sb[(row + 8 + g) * p->ld + col + 2 * t]);
    }
}

/* yb = P = b S + c S S */
static __device__ void half_poly(const struct part *p, const float *coef)
{
    uint32_t across = p->cp / MUON_COLS, n_tiles = across * (across + 1) / 2;
    uint32_t g = threadIdx.x % CUDA_WARP / 4, t = threadIdx.x % 4;

    for (uint32_t i = threadIdx.x / CUDA_WARP; i < n_tiles; i += WARPS) {
        uint32_t row, col;
        float c[2][MUON_NT][4] = {};
        muon_triangle(i, across, &row, &col);
        row *= MUON_COLS, col *= MUON_COLS;
        half_rows<2>(c, p->sb + row * p->ld, p->sb + col * p->ld, p->ld, p->cp);
#pragma unroll
        for (uint32_t m = 0; m < 2; m++)
#pragma unroll
            for (uint32_t n = 0; n < MUON_NT; n++)
#pragma unroll
                for (uint32_t half = 0; half < 2; half++) {
                    uint32_t at = (row + 16 * m + 8 * half + g) * p->ld + col + 8 * n + 2 * t;
                    uint32_t s = *(const uint32_t *)&p->sb[at];
                    c[m][n][2 * half] = coef[1] * mma_low(s) + coef[2] * c[m][n][2 * half];
                    c[m][n][2 * half + 1] = coef[1] * mma_high(s) + coef[2] * c[m][n][2 * half + 1];
                }
        half_store(c, p->yb, p->ld, row, col, row != col);
    }
}

/* x <- a x + x P */
static __device__ void half_apply(const struct part *p, const bf16 *x, bf16 *next, float a)
{
    uint32_t across = p->cp / MUON_COLS, n_tiles = p->rows / MUON_TILE * across;
    uint32_t g = threadIdx.x % CUDA_WARP / 4, t = threadIdx.x % 4;

    for (uint32_t i = threadIdx.x / CUDA_WARP; i < n_tiles; i += WARPS) {
        uint32_t m0 = i / across * MUON_TILE, n0 = i % across * MUON_COLS;
        float c[1][MUON_NT][4] = {};
        half_rows<1>(c, x + m0 * p->ld, p->yb + n0 * p->ld, p->ld, p->cp);
#pragma unroll
        for (uint32_t n = 0; n < MUON_NT; n++)
#pragma unroll
            for (uint32_t half = 0; half < 2; half++) {
                uint32_t at = (m0 + g + 8 * half) * p->ld + n0 + n * 8 + 2 * t;
                float2 v = *(const float2 *)(p->x + at);
                v.x = a * v.x + c[0][n][2 * half], v.y = a * v.y + c[0][n][2 * half + 1];
                *(float2 *)(p->x + at) = v;
                *(uint32_t *)&next[at] = mma_pack(v.x, v.y);
            }
    }
}

static __device__ void half_iterate(const struct part *p)
{
    bf16 *x = p->xb[0], *next = p->xb[1];

    for (int i = 0; i < MUON_STEPS; i++) {
        if (p->parts > 1) {
            half_gram(p, x, p->yb, false);
            ptx_cluster_sync();
            half_share(p);
            ptx_cluster_sync();
            half_mirror(p);
        } else {
            half_gram(p, x, p->sb, true);
        }
        __syncthreads();
        half_poly(p, muon_coef[i]);
        __syncthreads();
        half_apply(p, x, next, muon_coef[i][0]);
        __syncthreads();
        bf16 *done = x;
        x = next, next = done;
    }
}

template <typename T>
[[maybe_unused]] static __device__ void muon_matrix(const struct part *p, const struct muon_step *s,
                                                    const struct muon_item *t)
{
    part_normalise<T>(p, muon_part_load<MUON_BLOCK>(p, s, t));
    if (sizeof(T) == 2)
        half_iterate(p);
    else
        part_iterate(p);
    muon_part_store<MUON_BLOCK>(p, s, t);
}

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
#define CLUSTERED __cluster_dims__(CLUSTER, 1, 1)
#else
#define CLUSTERED
#endif

/* Without clusters only the vectors are done here. */
template <typename T>
static __global__ void CLUSTERED __launch_bounds__(MUON_BLOCK, 1) muon_k(const __grid_constant__ struct muon_job job)
{
    ptx_chained();
    uint32_t at = blockIdx.x / CLUSTER, rank = blockIdx.x % CLUSTER;

    if (optim_is_off(job.step.norm, job.step.stats))
        return;
    if (at >= job.n_matrices) {
        for (uint32_t i = job.n_matrices; i < job.n_items; i++)
            muon_vector(&job.step, &job.item[i], rank * MUON_BLOCK + threadIdx.x, CLUSTER * MUON_BLOCK);
        return;
    }
#if __CUDA_ARCH__ >= 900
    extern __shared__ float4 shared[];
    const struct muon_item *t = &job.item[at];
    struct part p;

    if (rank >= t->parts) /* a matrix of one block: the others are not talked to */
        return;
    p.rank = rank, p.parts = t->parts;
    muon_part_place(&p, t, rank, shared);
    p.sums = job.sums[at];
    p.xb[0] = (bf16 *)p.y; /* in place of y and s */
    p.xb[1] = p.xb[0] + p.rows * p.ld;
    p.yb = p.xb[1] + p.rows * p.ld;
    p.sb = p.yb + p.cp * p.ld;
    muon_matrix<T>(&p, &job.step, t);
#endif
}

static bool fits(const struct cuda *cuda, const struct muon_item *t, bool is_bf16)
{
    return cuda->has_clusters && shared_bytes(t, is_bf16) + SHARED_OTHER <= cuda->shared_max;
}

/* In tall form, with the number of blocks for it; false: it does not fit. */
static bool muon_item_set(const struct cuda *cuda, struct muon_item *item, const struct kern_tensor *t, bool is_bf16)
{
    *item = muon_item_of(t);
    if (t->rows * t->cols <= ALONE && fits(cuda, item, is_bf16))
        return true;
    item->parts = CLUSTER;
    return fits(cuda, item, is_bf16);
}

template <typename T> static void muon(struct kern *k, const struct kern_optimiser *o)
{
    const bool is_bf16 = sizeof(T) == 2;
    const struct kern_tensor *tensors = o->tensors;
    struct muon_job job = {};
    struct muon_item large[KERN_MAX_TENSORS];
    float *scratch = (float *)o->scratch;
    size_t n_large = 0, bytes = 0;
    unsigned grid;

    job.step = (struct muon_step){o->w, o->m, o->g, o->norm, o->stats, o->hyper};
    for (size_t i = 0; i < o->n_tensors; i++) {
        struct muon_item item = {};
        if (!tensors[i].is_matrix)
            continue;
        if (muon_item_set(cuda_of(k), &item, &tensors[i], is_bf16)) {
            size_t need = shared_bytes(&item, is_bf16);
            bytes = need > bytes ? need : bytes;
            job.sums[job.n_items] = scratch;
            scratch += (size_t)muon_round_up(item.C, MUON_COLS) * muon_round_up(item.C, MUON_COLS);
            job.item[job.n_items++] = item;
        } else {
            large[n_large++] = item;
        }
    }
    job.n_matrices = job.n_items;
    for (size_t i = 0; i < o->n_tensors; i++)
        if (!tensors[i].is_matrix)
            job.item[job.n_items++] = muon_item_of(&tensors[i]);
    grid = CLUSTER * (job.n_matrices + (job.n_items > job.n_matrices));
    if (grid > 0) {
        cuda_kernel_prepare(k, (const void *)muon_k<T>, "muon");
        cuda_chain(k, "muon", muon_k<T>, grid, MUON_BLOCK, bytes, job);
    }
    if (n_large > 0)
        cuda_muon_large(k, &job.step, large, n_large, scratch, is_bf16);
}

CUDA_ACT_OP(muon, kern_optimiser)
