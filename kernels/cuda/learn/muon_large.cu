/* muon_large.cu - Muon for matrices too large for a cluster's shared memory.
 * bf16: each step is three products by cuBLASLt, S = X^T X, P = b S + c S S, X' = a X + X P, for all neighbours of the
 * same shape together.
 * f32: each step is three launches, each for all matrices: S = X^T X, P = a I + b S + c S S, X' = X P, in tiles of
 * 64 x 64. S comes in SPLITS parts, each of some rows of X, so that there are enough tiles for all multiprocessors;
 * the reader of S adds them. Of S and P the tiles on and above the diagonal are computed and stored twice.
 * Scratch of a matrix, all padded to multiples of 64 (padding stays 0): X, X' (R, C), S (SPLITS, C, C), P (C, C). */
#include "kernels/cuda/learn/muon.h"

#include "kernels/cuda/nets/matmul.h"

#define BLOCK 256
#define TILE KERN_MUON_PAD
#define CHUNK 32 /* of k in shared memory at a time */
#define LD_ROWS (CHUNK + 8)
#define LD_COLS (TILE + 8)
#define SPLITS KERN_MUON_SPLITS
#define NT 4
#define INIT_BLOCKS 128 /* of one matrix */

/* Tiles [first, next matrix's first) of a launch are of one matrix. */
struct large_item {
    struct muon_item t;
    uint32_t rp, cp; /* R, C padded */
    bool flat; /* it lies in w, g and m as in scratch, so that four numbers go at a time */
    uint32_t gram0, poly0, mult0; /* first tile of each kind of launch */
    float *x, *next, *s, *p;
};
struct large_job {
    struct muon_step step;
    const double *sums; /* (n, INIT_BLOCKS) of squares */
    uint32_t n;
    struct large_item item[KERN_MAX_TENSORS];
};

/* Momentum, and the sum of squares of u. */
static __global__ void __launch_bounds__(BLOCK)
    large_momentum_k(const __grid_constant__ struct large_job job, double *sums)
{
    __shared__ double scratch[BLOCK / CUDA_WARP];
    const struct muon_item *t = &job.item[blockIdx.y].t;
    const uint32_t at = blockIdx.x * BLOCK + threadIdx.x, n = t->R * t->C,
                   packs = job.item[blockIdx.y].flat ? n / 4 : 0;
    float clip, mu;
    double sum = 0.0;

    if (optim_is_off(job.step.norm, job.step.stats))
        return;
    clip = optim_clip(job.step.norm, job.step.hyper), mu = job.step.hyper->beta1;
#pragma unroll 2
    for (uint32_t i = at; i < packs; i += INIT_BLOCKS * BLOCK) {
        float g[4], m[4];
        num_load<4>(g, job.step.g + t->offset + i * 4);
        num_load<4>(m, job.step.m + t->offset + i * 4);
#pragma unroll
        for (int j = 0; j < 4; j++) {
            float u = muon_direction(g[j] * clip, &m[j], mu);
            sum += (double)u * (double)u;
        }
        num_store<4>(job.step.m + t->offset + i * 4, m);
    }
    for (uint32_t i = packs * 4 + at; i < n; i += INIT_BLOCKS * BLOCK) {
        float u = muon_momentum(&job.step, t->offset + i, clip, mu);
        sum += (double)u * (double)u;
    }
    sum = num_block_sum(sum, scratch);
    if (threadIdx.x == 0)
        sums[blockIdx.y * INIT_BLOCKS + blockIdx.x] = sum;
}

/* x = u / |u|, padded */
template <typename T>
static __global__ void __launch_bounds__(BLOCK) large_begin_k(const __grid_constant__ struct large_job job)
{
    const struct large_item *it = &job.item[blockIdx.y];
    const struct muon_item *t = &it->t;
    const double *sums = job.sums + blockIdx.y * INIT_BLOCKS;
    T *x = (T *)it->x;
    float clip, mu, scale;
    double sum = 0.0;

    if (optim_is_off(job.step.norm, job.step.stats))
        return;
    for (int i = (int)threadIdx.x % CUDA_WARP; i < INIT_BLOCKS; i += CUDA_WARP)
        sum += sums[i];
    sum = num_warp_sum(sum);
    scale = sum > 0.0 ? (float)(1.0 / sqrt(sum)) : 0.0f;
    clip = optim_clip(job.step.norm, job.step.hyper), mu = job.step.hyper->beta1;
    const uint32_t from = blockIdx.x * BLOCK + threadIdx.x;
#pragma unroll 2
    for (uint32_t i = from; it->flat && i < t->R * t->C / 4; i += INIT_BLOCKS * BLOCK) {
        float g[4], m[4];
        num_load<4>(g, job.step.g + t->offset + i * 4);
        num_load<4>(m, job.step.m + t->offset + i * 4);
#pragma unroll
        for (int j = 0; j < 4; j++)
            g[j] = (g[j] * clip + mu * m[j]) * scale;
        num_store<4>(x + i * 4, g);
    }
    for (uint32_t i = from; !it->flat && i < it->rp * it->cp; i += INIT_BLOCKS * BLOCK) {
        uint32_t r = i / it->cp, c = i % it->cp;
        float u = 0.0f;
        if (r < t->R && c < t->C) {
            size_t at = muon_at(t, r, c);
            u = job.step.g[at] * clip + mu * job.step.m[at];
        }
        num_set(&x[i], u * scale);
    }
}

enum large_kind { GRAM, POLY, MULT };

/* Where the two factors' numbers come from, four at a time. */
struct source {
    const float *a, *b; /* rows of length ld */
    uint32_t ld;
    size_t split; /* POLY: from one part of S to the next */
};

template <bool PARTS> static __device__ __forceinline__ float4 large_read(const float *at, size_t split)
{
    float4 sum = *(const float4 *)at;

    if (PARTS)
#pragma unroll
        for (int i = 1; i < SPLITS; i++) {
            float4 x = *(const float4 *)(at + i * split);
            sum.x += x.x, sum.y += x.y, sum.z += x.z, sum.w += x.w;
        }
    return sum;
}

#define EACH (TILE * CHUNK / 4 / BLOCK) /* float4 of a thread, of each factor, in a chunk */

/* A chunk: GRAM takes CHUNK rows of TILE numbers, the others TILE rows of CHUNK numbers. */
template <int KIND>
static __device__ __forceinline__ void chunk_read(float4 *a, float4 *b, const struct source *s, uint32_t k)
{
    constexpr uint32_t across = (KIND == GRAM ? TILE : CHUNK) / 4;
#pragma unroll
    for (int i = 0; i < EACH; i++) {
        uint32_t at = threadIdx.x + (uint32_t)i * BLOCK, row = at / across, col = at % across * 4;
        size_t from = KIND == GRAM ? (size_t)(k + row) * s->ld + col : (size_t)row * s->ld + k + col;
        a[i] = large_read<(KIND == POLY)>(s->a + from, s->split);
        b[i] = large_read<(KIND == POLY)>(s->b + from, s->split);
    }
}

template <int KIND> static __device__ __forceinline__ void chunk_write(float *to, const float4 *from)
{
    constexpr uint32_t across = (KIND == GRAM ? TILE : CHUNK) / 4, ld = KIND == GRAM ? LD_COLS : LD_ROWS;
#pragma unroll
    for (int i = 0; i < EACH; i++) {
        uint32_t at = threadIdx.x + (uint32_t)i * BLOCK;
        *(float4 *)&to[at / across * ld + at % across * 4] = from[i];
    }
}

/* c (TILE, TILE) of the block, a tile of 16 x 32 for each warp, over k in [from, to) */
template <int KIND>
static __device__ void large_product(struct muon_tile<NT> *c, float (*as)[TILE * LD_ROWS], float (*bs)[TILE * LD_ROWS],
                                     const struct source *s, uint32_t from, uint32_t to)
{
    uint32_t warp = threadIdx.x / CUDA_WARP, m0 = warp / 2 * MUON_TILE, n0 = warp % 2 * 8 * NT;
    float4 a[EACH], b[EACH];
    int at = 0;

    muon_tile_zero(c);
    if (from >= to)
        return;
    chunk_read<KIND>(a, b, s, from);
    for (uint32_t k = from; k < to; k += CHUNK, at ^= 1) {
        chunk_write<KIND>(as[at], a);
        chunk_write<KIND>(bs[at], b);
        __syncthreads();
        if (k + CHUNK < to)
            chunk_read<KIND>(a, b, s, k + CHUNK);
        if (KIND == GRAM)
            muon_cols<NT>(c, as[at] + m0, bs[at] + n0, LD_COLS, CHUNK);
        else
            muon_rows<NT>(c, as[at] + m0 * LD_ROWS, bs[at] + n0 * LD_ROWS, LD_ROWS, CHUNK);
    }
}

template <int KIND>
static __global__ void __launch_bounds__(BLOCK, 2) large_tile_k(const __grid_constant__ struct large_job job, int step)
{
    __shared__ __align__(16) float as[2][TILE * LD_ROWS], bs[2][TILE * LD_ROWS];
    const float *coef = muon_coef[step];
    uint32_t which = 0, tile = blockIdx.x, m0, n0, from = 0, to;
    struct muon_tile<NT> c;
    struct source s;

    if (optim_is_off(job.step.norm, job.step.stats))
        return;
    while (which + 1 < job.n && tile >= (KIND == GRAM   ? job.item[which + 1].gram0
                                         : KIND == POLY ? job.item[which + 1].poly0
                                                        : job.item[which + 1].mult0))
        which++;
    const struct large_item *it = &job.item[which];
    uint32_t cp = it->cp, across = cp / TILE;
    float *out;
    tile -= KIND == GRAM ? it->gram0 : KIND == POLY ? it->poly0 : it->mult0;
    to = cp;
    if (KIND == MULT) {
        m0 = tile / across * TILE, n0 = tile % across * TILE;
        s = (struct source){it->x + (size_t)m0 * cp, it->p + (size_t)n0 * cp, cp, 0};
        out = it->next;
    } else {
        uint32_t split = KIND == GRAM ? tile % SPLITS : 0, chunks = it->rp / CHUNK;
        muon_triangle(KIND == GRAM ? tile / SPLITS : tile, across, &m0, &n0);
        m0 *= TILE, n0 *= TILE;
        if (KIND == GRAM) {
            from = chunks * split / SPLITS * CHUNK, to = chunks * (split + 1) / SPLITS * CHUNK;
            s = (struct source){it->x + m0, it->x + n0, cp, 0};
            out = it->s + (size_t)split * cp * cp;
        } else {
            s = (struct source){it->s + (size_t)m0 * cp, it->s + (size_t)n0 * cp, cp, (size_t)cp * cp};
            out = it->p;
        }
    }
    large_product<KIND>(&c, as, bs, &s, from, to);
    uint32_t warp = threadIdx.x / CUDA_WARP, g = threadIdx.x % CUDA_WARP / 4, t = threadIdx.x % 4;
#pragma unroll
    for (int n = 0; n < NT; n++)
#pragma unroll
        for (int i = 0; i < 4; i++) {
            uint32_t row = m0 + warp / 2 * MUON_TILE + g + i / 2 * 8,
                     col = n0 + warp % 2 * 8 * NT + n * 8 + 2 * t + i % 2;
            size_t at = (size_t)row * cp + col;
            float v = c.large[n][i] + c.small[n][i];
            if (KIND == POLY) {
                float own = 0.0f;
                for (int j = 0; j < SPLITS; j++)
                    own += it->s[j * (size_t)cp * cp + at];
                v = coef[1] * own + coef[2] * v + (row == col ? coef[0] : 0.0f);
            }
            out[at] = v;
            if (KIND != MULT && m0 != n0)
                out[(size_t)col * cp + row] = v;
        }
}

template <typename T>
static __global__ void __launch_bounds__(BLOCK) large_apply_k(const __grid_constant__ struct large_job job)
{
    const struct large_item *it = &job.item[blockIdx.y];
    const T *x = (const T *)it->x;
    const struct muon_item *t = &it->t;
    const struct kern_hyper *h = job.step.hyper;
    float keep, rate;

    if (optim_is_off(job.step.norm, job.step.stats))
        return;
    keep = 1.0f - h->lr * h->weight_decay;
    rate = h->lr * (t->rows > t->cols ? sqrtf((float)t->rows / (float)t->cols) : 1.0f);
    const uint32_t from = blockIdx.x * BLOCK + threadIdx.x;
#pragma unroll 2
    for (uint32_t i = from; it->flat && i < t->R * t->C / 4; i += INIT_BLOCKS * BLOCK) {
        float w[4], d[4];
        num_load<4>(w, job.step.w + t->offset + i * 4);
        num_load<4>(d, x + i * 4);
#pragma unroll
        for (int j = 0; j < 4; j++)
            w[j] = w[j] * keep - rate * d[j];
        num_store<4>(job.step.w + t->offset + i * 4, w);
    }
    for (uint32_t i = from; !it->flat && i < t->R * t->C; i += INIT_BLOCKS * BLOCK) {
        uint32_t r = i / t->C, c = i % t->C;
        size_t at = muon_at(t, r, c);
        job.step.w[at] = job.step.w[at] * keep - rate * num_f32(x[(size_t)r * it->cp + c]);
    }
}

/* Puts the matrices into scratch and counts their tiles; the counts of all are returned. */
static void large_plan(struct large_job *job, const struct muon_item *items, size_t n, float *scratch,
                       uint32_t total[3])
{
    const bool wide = (((uintptr_t)job->step.w | (uintptr_t)job->step.g | (uintptr_t)job->step.m) & 15) == 0;

    job->n = (uint32_t)n;
    for (size_t i = 0; i < n; i++) {
        struct large_item *it = &job->item[i];
        it->t = items[i];
        it->rp = (items[i].R + TILE - 1) / TILE * TILE, it->cp = (items[i].C + TILE - 1) / TILE * TILE;
        it->flat = it->rp == items[i].R && it->cp == items[i].C && items[i].rows >= items[i].cols &&
                   items[i].offset % 4 == 0 && wide;
        it->gram0 = total[GRAM], it->poly0 = total[POLY], it->mult0 = total[MULT];
        uint32_t across = it->cp / TILE, triangles = across * (across + 1) / 2;
        total[GRAM] += triangles * SPLITS, total[POLY] += triangles, total[MULT] += it->rp / TILE * across;
        it->x = scratch;
        it->next = it->x + (size_t)it->rp * it->cp;
        it->s = it->next + (size_t)it->rp * it->cp;
        it->p = it->s + (size_t)SPLITS * it->cp * it->cp;
        scratch = it->p + (size_t)it->cp * it->cp;
    }
}

/* The next X of items [from, to), which have one shape and lie side by side. */
static void large_products(struct kern *k, const struct large_job *job, uint32_t from, uint32_t to, int step)
{
    static const float coef[MUON_STEPS][3] = MUON_COEF;
    const struct large_item *it = &job->item[from];
    struct cuda_matmul gram = {}, poly = {}, mult = {};

    gram.in_bf16 = gram.out_bf16 = true;
    gram.batch = to - from;
    gram.stride = to - from > 1 ? 2 * (size_t)(it[1].p - it[0].p) : 0;
    poly = mult = gram;
    gram.a = gram.b = it->x, gram.c = it->s;
    gram.a_t = true;
    gram.m = gram.n = it->cp, gram.k = it->rp;
    poly.a = poly.b = poly.add = it->s, poly.c = it->p;
    poly.m = poly.n = poly.k = it->cp;
    poly.alpha = coef[step][2], poly.beta = coef[step][1];
    mult.a = mult.add = it->x, mult.b = it->p, mult.c = it->next;
    mult.m = it->rp, mult.n = mult.k = it->cp;
    mult.beta = coef[step][0];
    cuda_matmul_run(k, &gram);
    cuda_matmul_run(k, &poly);
    cuda_matmul_run(k, &mult);
}

static void large_step(struct kern *k, const struct large_job *job, const uint32_t total[3], int step, bool is_bf16)
{
    cudaStream_t stream = cuda_of(k)->stream;

    for (uint32_t from = 0, to; is_bf16 && from < job->n; from = to) {
        for (to = from + 1;
             to < job->n && job->item[to].rp == job->item[from].rp && job->item[to].cp == job->item[from].cp;)
            to++;
        large_products(k, job, from, to, step);
    }
    if (is_bf16)
        return;
    large_tile_k<GRAM><<<total[GRAM], BLOCK, 0, stream>>>(*job, step);
    large_tile_k<POLY><<<total[POLY], BLOCK, 0, stream>>>(*job, step);
    large_tile_k<MULT><<<total[MULT], BLOCK, 0, stream>>>(*job, step);
}

void cuda_muon_large(struct kern *k, const struct muon_step *step, const struct muon_item *items, size_t n_items,
                     float *scratch, bool is_bf16)
{
    struct cuda *cuda = cuda_of(k);
    const dim3 grid(INIT_BLOCKS, (unsigned)n_items);
    struct large_job job = {};
    uint32_t total[3] = {0, 0, 0};

    job.step = *step;
    job.sums = (const double *)cuda->partials;
    large_plan(&job, items, n_items, scratch, total);
    large_momentum_k<<<grid, BLOCK, 0, cuda->stream>>>(job, (double *)cuda->partials);
    if (is_bf16)
        large_begin_k<bf16><<<grid, BLOCK, 0, cuda->stream>>>(job);
    else
        large_begin_k<float><<<grid, BLOCK, 0, cuda->stream>>>(job);
    for (int i = 0; i < MUON_STEPS; i++) {
        large_step(k, &job, total, i, is_bf16);
        for (size_t j = 0; j < n_items; j++) {
            float *x = job.item[j].x;
            job.item[j].x = job.item[j].next;
            job.item[j].next = x;
        }
    }
    if (is_bf16)
        large_apply_k<bf16><<<grid, BLOCK, 0, cuda->stream>>>(job);
    else
        large_apply_k<float><<<grid, BLOCK, 0, cuda->stream>>>(job);
    cuda_launched(k, "muon of large matrices");
}
