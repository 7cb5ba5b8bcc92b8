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
#define BLOCK 512
#define WARPS (BLOCK / CUDA_WARP)
#define NT 4 /* a warp's tile of X or S: 16 x 32 */
#define COLS 32 /* C is padded to a multiple */
#define LD(cp) ((cp) + 8)
#define PACK 4 /* neighbours in memory that a thread takes at once */
#define AHEAD 3 /* packs of a thread that are loaded together */
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

static __host__ __device__ uint32_t part_rows(const struct muon_item *t)
{
    return muon_round_up((t->R + t->parts - 1) / t->parts, MUON_TILE);
}

/* f32: x, y and s of struct part; bf16: x, both xb, yb and sb. */
static size_t shared_bytes(const struct muon_item *t, bool is_bf16)
{
    size_t cp = muon_round_up(t->C, COLS), rows = part_rows(t), most = rows > cp ? rows : cp;
    size_t numbers = is_bf16 ? 2 * rows + cp : rows + most + cp; /* of four bytes */
    return numbers * LD(cp) * sizeof(float);
}

/* ---- a matrix ---- */

/* One block's share of a matrix. */
struct part {
    uint32_t rank, parts, r0, rows, cp, ld; /* rows [r0, r0 + rows) of the tall form, padded; cp: C padded */
    float *x; /* (rows, ld) */
    float *y; /* (rows, ld) Y; or (cp, ld), the block's part of S */
    float *s; /* (cp, ld) */
    float *sums; /* (cp, cp) in global memory: S on its way to all blocks */
    bf16 *xb[2]; /* (rows, ld) x as it was rounded, and as it will be */
    bf16 *yb; /* (cp, ld) the block's part of S, then P */
    bf16 *sb; /* (cp, ld) */
};

/* Where PACK neighbours in memory lie: among the parameters, and in x, where they are `step` apart. */
struct place {
    size_t at;
    uint32_t x, step;
    uint32_t n; /* of them that are there, PACK but for padding */
};

/* Pack i of the block's rows in the order of memory. */
static __device__ __forceinline__ struct place part_at(const struct part *p, const struct muon_item *t, uint32_t i)
{
    const bool wide = t->rows < t->cols;
    const uint32_t r = wide ? i * PACK % p->rows : i * PACK / p->cp, c = wide ? i * PACK / p->rows : i * PACK % p->cp;
    const uint32_t row = p->r0 + r, left = row >= t->R || c >= t->C ? 0 : wide ? t->R - row : t->C - c;

    return {muon_at(t, row, c), r * p->ld + c, wide ? p->ld : 1, left < PACK ? left : PACK};
}

static __device__ __forceinline__ void place_load(float (&v)[PACK], const float *from, const struct place &of)
{
    from += of.at;
    if (of.n == PACK && (uintptr_t)from % sizeof v == 0)
        num_load<PACK>(v, from);
    else
#pragma unroll
        for (uint32_t j = 0; j < PACK; j++)
            v[j] = j < of.n ? from[j] : 0.0f;
}

static __device__ __forceinline__ void place_store(float *to, const float (&v)[PACK], const struct place &of)
{
    to += of.at;
    if (of.n == PACK && (uintptr_t)to % sizeof v == 0)
        num_store<PACK>(to, v);
    else
#pragma unroll
        for (uint32_t j = 0; j < PACK; j++)
            if (j < of.n)
                to[j] = v[j];
}

/* u of the block's rows into x, 0 where padded; returns the thread's sum of squares. */
static __device__ double part_load(const struct part *p, const struct muon_step *s, const struct muon_item *t)
{
    const float clip = optim_clip(s->norm, s->hyper), mu = s->hyper->beta1;
    const uint32_t n = p->rows * p->cp / PACK;
    double sum = 0.0;

    for (uint32_t from = threadIdx.x; from < n; from += AHEAD * BLOCK) {
        float g[AHEAD][PACK], m[AHEAD][PACK];
        struct place of[AHEAD];

#pragma unroll
        for (uint32_t j = 0; j < AHEAD; j++) {
            of[j] = part_at(p, t, from + j * BLOCK);
            of[j].n = from + j * BLOCK < n ? of[j].n : 0;
            place_load(g[j], s->g, of[j]);
            place_load(m[j], s->m, of[j]);
        }
#pragma unroll
        for (uint32_t j = 0; j < AHEAD; j++) {
            if (from + j * BLOCK >= n)
                break;
#pragma unroll
            for (uint32_t i = 0; i < PACK; i++) {
                float u = muon_direction(g[j][i] * clip, &m[j][i], mu);
                p->x[of[j].x + i * of[j].step] = u;
                sum += (double)u * (double)u;
            }
            place_store(s->m, m[j], of[j]);
        }
    }
    return sum;
}

static __device__ void part_store(const struct part *p, const struct muon_step *s, const struct muon_item *t)
{
    const struct kern_hyper *h = s->hyper;
    const float keep = 1.0f - h->lr * h->weight_decay;
    const float rate = h->lr * (t->rows > t->cols ? sqrtf((float)t->rows / (float)t->cols) : 1.0f);
    const uint32_t n = p->rows * p->cp / PACK;

    for (uint32_t from = threadIdx.x; from < n; from += AHEAD * BLOCK) {
        float w[AHEAD][PACK];
        struct place of[AHEAD];

#pragma unroll
        for (uint32_t j = 0; j < AHEAD; j++) {
            of[j] = part_at(p, t, from + j * BLOCK);
            of[j].n = from + j * BLOCK < n ? of[j].n : 0;
            place_load(w[j], s->w, of[j]);
        }
#pragma unroll
        for (uint32_t j = 0; j < AHEAD; j++) {
            if (from + j * BLOCK >= n)
                break;
#pragma unroll
            for (uint32_t i = 0; i < PACK; i++)
                w[j][i] = w[j][i] * keep - rate * p->x[of[j].x + i * of[j].step];
            place_store(s->w, w[j], of[j]);
        }
    }
}

static __device__ __forceinline__ void tile_store(const struct muon_tile<NT> *c, float *to, uint32_t ld)
{
    uint32_t g = threadIdx.x % CUDA_WARP / 4, t = threadIdx.x % 4;

#pragma unroll
    for (int n = 0; n < NT; n++) {
        float *at = to + g * ld + n * 8 + 2 * t;
        *(float2 *)at = make_float2(c->large[n][0] + c->small[n][0], c->large[n][1] + c->small[n][1]);
        *(float2 *)(at + 8 * ld) = make_float2(c->large[n][2] + c->small[n][2], c->large[n][3] + c->small[n][3]);
    }
}

/* to (cp, ld) = x^T x of the block's rows, on and above the diagonal */
static __device__ void part_gram(const struct part *p, float *to)
{
    uint32_t across = p->cp / COLS, n_tiles = across * (across + 1);

    for (uint32_t i = threadIdx.x / CUDA_WARP; i < n_tiles; i += WARPS) {
        uint32_t row, col;
        struct muon_tile<NT> c;
        muon_triangle(i / 2, across, &row, &col);
        row = row * COLS + i % 2 * MUON_TILE, col *= COLS;
        muon_tile_zero(&c);
        muon_cols<NT>(&c, p->x + row, p->x + col, (int)p->ld, (int)p->rows);
        tile_store(&c, to + row * p->ld + col, p->ld);
    }
}

/* Adds a slice of every block's part of S up and writes it to sums. */
static __device__ void part_share_sum(const struct part *p)
{
    uint32_t across = p->cp / COLS, all = across * (across + 1) / 2 * (COLS * COLS / 4);
    uint32_t each = (all + p->parts - 1) / p->parts;
    uint32_t end = (p->rank + 1) * each < all ? (p->rank + 1) * each : all;

    for (uint32_t i = p->rank * each + threadIdx.x; i < end; i += BLOCK) {
        uint32_t row, col;
        float4 in[CLUSTER], sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        muon_triangle(i / (COLS * COLS / 4), across, &row, &col);
        row = row * COLS + i % (COLS * COLS / 4) / (COLS / 4), col = col * COLS + i % (COLS / 4) * 4;
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
    uint32_t across = p->cp / COLS, all = across * (across + 1) / 2 * (COLS * COLS / 4);

#pragma unroll 5
    for (uint32_t i = threadIdx.x; i < all; i += BLOCK) {
        uint32_t row, col;
        muon_triangle(i / (COLS * COLS / 4), across, &row, &col);
        bool mirrored = row != col;
        row = row * COLS + i % (COLS * COLS / 4) / (COLS / 4), col = col * COLS + i % (COLS / 4) * 4;
        float4 x = __ldcg((const float4 *)&p->sums[row * p->cp + col]);
        *(float4 *)&p->s[row * p->ld + col] = x;
        if (mirrored) {
            float *to = &p->s[col * p->ld + row];
            to[0] = x.x, to[p->ld] = x.y, to[2 * p->ld] = x.z, to[3 * p->ld] = x.w;
        }
    }
}

/* Below the diagonal, where the block has all of S itself. */
static __device__ void part_mirror(const struct part *p)
{
    for (uint32_t i = threadIdx.x; i < p->cp * p->cp; i += BLOCK) {
        uint32_t row = i / p->cp, col = i % p->cp;
        if (row / COLS > col / COLS)
            p->s[row * p->ld + col] = p->s[col * p->ld + row];
    }
}

/* y = x S */
static __device__ void part_first(const struct part *p)
{
    uint32_t across = p->cp / COLS, n_tiles = p->rows / MUON_TILE * across;

    for (uint32_t i = threadIdx.x / CUDA_WARP; i < n_tiles; i += WARPS) {
        uint32_t m0 = i / across * MUON_TILE, n0 = i % across * COLS;
        struct muon_tile<NT> c;
        muon_tile_zero(&c);
        muon_rows<NT>(&c, p->x + m0 * p->ld, p->s + n0 * p->ld, (int)p->ld, (int)p->cp);
        tile_store(&c, p->y + m0 * p->ld + n0, p->ld);
    }
}

/* x <- a x + b y + c y S */
static __device__ void part_second(const struct part *p, const float *coef)
{
    uint32_t across = p->cp / COLS, n_tiles = p->rows / MUON_TILE * across;
    uint32_t g = threadIdx.x % CUDA_WARP / 4, t = threadIdx.x % 4;

    for (uint32_t i = threadIdx.x / CUDA_WARP; i < n_tiles; i += WARPS) {
        uint32_t m0 = i / across * MUON_TILE, n0 = i % across * COLS;
        struct muon_tile<NT> c;
        muon_tile_zero(&c);
        muon_rows<NT>(&c, p->y + m0 * p->ld, p->s + n0 * p->ld, (int)p->ld, (int)p->cp);
#pragma unroll
        for (int n = 0; n < NT; n++)
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

/* x of all blocks divided by its norm */
template <typename T> static __device__ void part_normalise(const struct part *p, double sum)
{
    __shared__ double scratch[WARPS], mine;
    float inv;

    sum = num_block_sum(sum, scratch);
    if (p->parts > 1) {
        if (threadIdx.x == 0)
            mine = sum;
        ptx_cluster_sync();
        sum = 0.0;
        for (uint32_t r = 0; r < CLUSTER; r++)
            sum += ptx_cluster_load_f64(ptx_cluster_at(&mine, r));
    }
    inv = sum > 0.0 ? (float)(1.0 / sqrt(sum)) : 0.0f;
    for (uint32_t i = threadIdx.x * PACK; i < p->rows * p->cp; i += BLOCK * PACK) {
        uint32_t at = i / p->cp * p->ld + i % p->cp;
        float v[PACK];
        num_load<PACK>(v, p->x + at);
#pragma unroll
        for (int j = 0; j < PACK; j++)
            v[j] *= inv;
        num_store<PACK>(p->x + at, v);
        if (sizeof(T) == 2)
            num_store<PACK>(p->xb[0] + at, v);
    }
    __syncthreads();
}

static __device__ void part_iterate(const struct part *p)
{
    for (int i = 0; i < MUON_STEPS; i++) {
        if (p->parts > 1) {
            part_gram(p, p->y);
            ptx_cluster_sync();
            part_share_sum(p);
            ptx_cluster_sync();
            part_take_sum(p);
        } else {
            part_gram(p, p->s);
            __syncthreads();
            part_mirror(p);
        }
        __syncthreads();
        part_first(p);
        __syncthreads();
        part_second(p, muon_coef[i]);
        __syncthreads();
    }
}

/* ---- a matrix in bf16 ---- */

#define UNITS (COLS * COLS / 8) /* of 16 bytes, in a block of S */

/* c (16 MT, 32) += a b^T: both lie with their K numbers k side by side. */
template <int MT>
static __device__ __forceinline__ void half_rows(float (&c)[MT][NT][4], const bf16 *a, const bf16 *b, uint32_t ld,
                                                 uint32_t K)
{
    uint32_t lane = threadIdx.x % CUDA_WARP, a_at = ptx_shared(a) + 2 * (lane % 16 * ld + lane / 16 * 8),
             b_at = ptx_shared(b) + 2 * ((lane / 16 * 8 + lane % 8) * ld + lane / 8 % 2 * 8);

    for (uint32_t k = 0; k < K; k += 16) {
        uint32_t av[MT][4], bv[NT / 2][4];
#pragma unroll
        for (uint32_t m = 0; m < MT; m++)
            ptx_load_blocks(av[m], a_at + 2 * (m * 16 * ld + k));
#pragma unroll
        for (uint32_t n = 0; n < NT / 2; n++)
            ptx_load_blocks(bv[n], b_at + 2 * (n * 16 * ld + k));
#pragma unroll
        for (int m = 0; m < MT; m++)
#pragma unroll
            for (int n = 0; n < NT; n++)
                ptx_mma_bf16(c[m][n], av[m][0], av[m][1], av[m][2], av[m][3], bv[n / 2][n % 2 * 2],
                             bv[n / 2][n % 2 * 2 + 1]);
    }
}

/* c (32, 32) += a^T b, with a and b 32 columns of a matrix of K rows. */
static __device__ __forceinline__ void half_cols(float (&c)[2][NT][4], const bf16 *a, const bf16 *b, uint32_t ld,
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
            for (int n = 0; n < NT; n++)
                ptx_mma_bf16(c[m][n], av[m][0], av[m][1], av[m][2], av[m][3], bv[n / 2][n % 2 * 2],
                             bv[n / 2][n % 2 * 2 + 1]);
    }
}

/* A tile of a symmetric matrix at (row, col) of to, and perhaps its mirror image. */
static __device__ __forceinline__ void half_store(const float (&c)[2][NT][4], bf16 *to, uint32_t ld, uint32_t row,
                                                  uint32_t col, bool mirrored)
{
    uint32_t lane = threadIdx.x % CUDA_WARP, g = lane / 4, t = lane % 4;

#pragma unroll
    for (uint32_t m = 0; m < 2; m++)
#pragma unroll
        for (uint32_t n = 0; n < NT; n++) {
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
    uint32_t across = p->cp / COLS, n_tiles = across * (across + 1) / 2;

    for (uint32_t i = threadIdx.x / CUDA_WARP; i < n_tiles; i += WARPS) {
        uint32_t row, col;
        float c[2][NT][4] = {};
        muon_triangle(i, across, &row, &col);
        half_cols(c, x + row * COLS, x + col * COLS, p->ld, p->rows);
        half_store(c, to, p->ld, row * COLS, col * COLS, all && row != col);
    }
}

/* Adds a slice of every block's part of S up and gives the sums to every block. */
static __device__ void half_share(const struct part *p)
{
    uint32_t across = p->cp / COLS, n_units = across * (across + 1) / 2 * UNITS;
    uint32_t each = (n_units + p->parts - 1) / p->parts;
    uint32_t end = (p->rank + 1) * each < n_units ? (p->rank + 1) * each : n_units;

    for (uint32_t i = p->rank * each + threadIdx.x; i < end; i += BLOCK) {
        uint32_t row, col;
        float4 in[CLUSTER];
        float sum[8] = {0};
        muon_triangle(i / UNITS, across, &row, &col);
        uint32_t at = (row * COLS + i % UNITS / (COLS / 8)) * p->ld + col * COLS + i % (COLS / 8) * 8;
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
    const uint32_t pairs = COLS / 8 * (COLS / 16); /* of 8 x 8 numbers, one above the other, in a block */
    uint32_t across = p->cp / COLS, n = across * (across - 1) / 2 * pairs;
    uint32_t lane = threadIdx.x % CUDA_WARP, g = lane / 4, t = lane % 4;

    for (uint32_t i = threadIdx.x / CUDA_WARP; i < n; i += WARPS) {
        uint32_t row, col;
        muon_triangle(i / pairs, across - 1, &row, &col);
        row = row * COLS + i % pairs / (COLS / 8) * 16, col = (col + 1) * COLS + i % (COLS / 8) * 8;
        ptx_store_transposed(ptx_shared(&p->sb[(col + lane % 8) * p->ld + row + lane / 8 % 2 * 8]),
                             *(const uint32_t *)&p->sb[(row + g) * p->ld + col + 2 * t],
                             *(const uint32_t *)&p->sb[(row + 8 + g) * p->ld + col + 2 * t]);
    }
}

/* yb = P = b S + c S S */
static __device__ void half_poly(const struct part *p, const float *coef)
{
    uint32_t across = p->cp / COLS, n_tiles = across * (across + 1) / 2;
    uint32_t g = threadIdx.x % CUDA_WARP / 4, t = threadIdx.x % 4;

    for (uint32_t i = threadIdx.x / CUDA_WARP; i < n_tiles; i += WARPS) {
        uint32_t row, col;
        float c[2][NT][4] = {};
        muon_triangle(i, across, &row, &col);
        row *= COLS, col *= COLS;
        half_rows<2>(c, p->sb + row * p->ld, p->sb + col * p->ld, p->ld, p->cp);
#pragma unroll
        for (uint32_t m = 0; m < 2; m++)
#pragma unroll
            for (uint32_t n = 0; n < NT; n++)
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
    uint32_t across = p->cp / COLS, n_tiles = p->rows / MUON_TILE * across;
    uint32_t g = threadIdx.x % CUDA_WARP / 4, t = threadIdx.x % 4;

    for (uint32_t i = threadIdx.x / CUDA_WARP; i < n_tiles; i += WARPS) {
        uint32_t m0 = i / across * MUON_TILE, n0 = i % across * COLS;
        float c[1][NT][4] = {};
        half_rows<1>(c, x + m0 * p->ld, p->yb + n0 * p->ld, p->ld, p->cp);
#pragma unroll
        for (uint32_t n = 0; n < NT; n++)
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
    part_normalise<T>(p, part_load(p, s, t));
    if (sizeof(T) == 2)
        half_iterate(p);
    else
        part_iterate(p);
    part_store(p, s, t);
}

static __device__ void muon_vector(const struct muon_step *s, const struct muon_item *t, uint32_t rank)
{
    const struct kern_hyper *h = s->hyper;
    float clip = optim_clip(s->norm, h), keep = 1.0f - h->lr * h->weight_decay;

    for (size_t i = rank * BLOCK + threadIdx.x; i < t->rows; i += CLUSTER * BLOCK) {
        float u = muon_momentum(s, t->offset + i, clip, h->beta1);
        s->w[t->offset + i] = s->w[t->offset + i] * keep - h->lr * u;
    }
}

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
#define CLUSTERED __cluster_dims__(CLUSTER, 1, 1)
#else
#define CLUSTERED
#endif

/* Without clusters only the vectors are done here. */
template <typename T>
static __global__ void CLUSTERED __launch_bounds__(BLOCK, 1) muon_k(const __grid_constant__ struct muon_job job)
{
    ptx_chained();
    uint32_t at = blockIdx.x / CLUSTER, rank = blockIdx.x % CLUSTER;

    if (optim_is_off(job.step.norm, job.step.stats))
        return;
    if (at >= job.n_matrices) {
        for (uint32_t i = job.n_matrices; i < job.n_items; i++)
            muon_vector(&job.step, &job.item[i], rank);
        return;
    }
#if __CUDA_ARCH__ >= 900
    extern __shared__ float4 shared[];
    const struct muon_item *t = &job.item[at];
    struct part p;

    if (rank >= t->parts) /* a matrix of one block: the others are not talked to */
        return;
    p.rank = rank, p.parts = t->parts;
    p.rows = part_rows(t);
    p.r0 = rank * p.rows;
    p.cp = muon_round_up(t->C, COLS);
    p.ld = LD(p.cp);
    p.x = (float *)shared;
    p.y = p.x + p.rows * p.ld;
    p.s = p.y + (p.rows > p.cp ? p.rows : p.cp) * p.ld;
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
    item->offset = t->offset;
    item->rows = (uint32_t)t->rows, item->cols = (uint32_t)t->cols;
    item->R = item->rows > item->cols ? item->rows : item->cols;
    item->C = item->rows > item->cols ? item->cols : item->rows;
    if (t->rows * t->cols <= ALONE) {
        item->parts = 1;
        if (fits(cuda, item, is_bf16))
            return true;
    }
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
            scratch += (size_t)muon_round_up(item.C, COLS) * muon_round_up(item.C, COLS);
            job.item[job.n_items++] = item;
        } else {
            large[n_large++] = item;
        }
    }
    job.n_matrices = job.n_items;
    for (size_t i = 0; i < o->n_tensors; i++)
        if (!tensors[i].is_matrix) {
            struct muon_item *item = &job.item[job.n_items++];
            item->offset = tensors[i].offset;
            item->rows = (uint32_t)tensors[i].rows;
        }
    grid = CLUSTER * (job.n_matrices + (job.n_items > job.n_matrices));
    if (grid > 0) {
        cuda_kernel_prepare(k, (const void *)muon_k<T>, "muon");
        cuda_chain(k, "muon", muon_k<T>, grid, BLOCK, bytes, job);
    }
    if (n_large > 0)
        cuda_muon_large(k, &job.step, large, n_large, scratch, is_bf16);
}

CUDA_ACT_OP(muon, kern_optimiser)
