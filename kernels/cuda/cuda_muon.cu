/* cuda_muon.cu - Muon in one launch: a cluster of blocks for each matrix, which holds it in shared memory through all
 * steps; vectors share one more cluster. Matrices too large for that go the way of cuda_muon_large.cu.
 * The rows of X (R, C) are shared out. A step: each block's part of S = X^T X; the parts are added up, each block a slice,
 * and the slice is sent to all; P likewise by tiles of 16 rows; X P needs no one else.
 * Invariant: parts are added in the order of blocks and each tile by one warp, so the bytes do not depend on timing. */
#include "kernels/cuda/cuda_muon.h"

#define CLUSTER 8
#define BLOCK 512
#define WARPS (BLOCK / CUDA_WARP)
#define NT 4 /* a warp's tile of X or S: 16 x 32 */
#define TILES_EACH 3 /* tiles of X that a warp holds in registers, at most */
#define COLS 32 /* C is padded to a multiple */
#define LD(cp) ((cp) + 8)
#define ALONE 4096 /* matrices of no more numbers are one block's: talking would take longer */
#define LOCAL_P 64 /* up to this many columns each block computes all of P itself */
#define SHARED_MAX (220 << 10)

struct muon_job {
    struct muon_step step;
    uint32_t n_matrices, n_items; /* matrices first, then vectors */
    struct muon_item item[KERN_MAX_TENSORS];
};

static __host__ __device__ uint32_t round_up(uint32_t n, uint32_t to)
{
    return (n + to - 1) / to * to;
}

static __host__ __device__ uint32_t part_rows(const struct muon_item *t)
{
    return round_up((t->R + t->parts - 1) / t->parts, MUON_TILE);
}

static size_t shared_bytes(const struct muon_item *t)
{
    uint32_t cp = round_up(t->C, COLS);
    return (size_t)(part_rows(t) + 2 * cp) * LD(cp) * sizeof(float);
}

/* ---- the shared memory of other blocks of the cluster ---- */

/* All blocks of the cluster have come here, and what they wrote before is to be seen. */
static __device__ __forceinline__ void cluster_sync(void)
{
    asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
}

/* Where block `rank` has what lies at p here. */
static __device__ __forceinline__ uint32_t cluster_at(const void *p, uint32_t rank)
{
    uint32_t at;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(at) : "r"((uint32_t)__cvta_generic_to_shared(p)), "r"(rank));
    return at;
}

static __device__ __forceinline__ float4 cluster_load(uint32_t at)
{
    float4 x;
    asm volatile("ld.shared::cluster.v4.f32 {%0,%1,%2,%3}, [%4];"
                 : "=f"(x.x), "=f"(x.y), "=f"(x.z), "=f"(x.w)
                 : "r"(at)
                 : "memory");
    return x;
}

static __device__ __forceinline__ double cluster_load_f64(uint32_t at)
{
    double x;
    asm volatile("ld.shared::cluster.f64 %0, [%1];" : "=d"(x) : "r"(at) : "memory");
    return x;
}

static __device__ __forceinline__ void cluster_store(uint32_t at, float4 x)
{
    asm volatile("st.shared::cluster.v4.f32 [%0], {%1,%2,%3,%4};" ::"r"(at), "f"(x.x), "f"(x.y), "f"(x.z), "f"(x.w)
                 : "memory");
}

static __device__ __forceinline__ void cluster_store(uint32_t at, float2 x)
{
    asm volatile("st.shared::cluster.v2.f32 [%0], {%1,%2};" ::"r"(at), "f"(x.x), "f"(x.y) : "memory");
}

/* ---- a matrix ---- */

/* One block's share of a matrix. */
struct part {
    uint32_t rank, parts, r0, rows, cp, ld; /* rows [r0, r0 + rows) of the tall form, padded; cp: C padded */
    float *x; /* (rows, ld) */
    float *a, *b; /* (cp, ld): S in parts and P, S */
};

/* u of the block's rows into x, 0 where padded; returns the thread's sum of squares. */
static __device__ double part_load(const struct part *p, const struct muon_step *s, const struct muon_item *t)
{
    float clip = optim_clip(s->norm, s->hyper), mu = s->hyper->beta1;
    bool wide = t->rows < t->cols;
    double sum = 0.0;

#pragma unroll 4
    for (uint32_t i = threadIdx.x; i < p->rows * p->cp; i += BLOCK) {
        uint32_t r = wide ? i % p->rows : i / p->cp, c = wide ? i / p->rows : i % p->cp;
        float u = 0.0f;
        if (p->r0 + r < t->R && c < t->C)
            u = muon_momentum(s, muon_at(t, p->r0 + r, c), clip, mu);
        p->x[r * p->ld + c] = u;
        sum += (double)u * (double)u;
    }
    return sum;
}

static __device__ void part_store(const struct part *p, const struct muon_step *s, const struct muon_item *t)
{
    const struct kern_hyper *h = s->hyper;
    float keep = 1.0f - h->lr * h->weight_decay;
    float rate = h->lr * (t->rows > t->cols ? sqrtf((float)t->rows / (float)t->cols) : 1.0f);
    bool wide = t->rows < t->cols;

#pragma unroll 4
    for (uint32_t i = threadIdx.x; i < p->rows * p->cp; i += BLOCK) {
        uint32_t r = wide ? i % p->rows : i / p->cp, c = wide ? i / p->rows : i % p->cp;
        if (p->r0 + r < t->R && c < t->C) {
            size_t at = muon_at(t, p->r0 + r, c);
            s->w[at] = s->w[at] * keep - rate * p->x[r * p->ld + c];
        }
    }
}

/* to (cp, ld) = x^T x of the block's rows */
static __device__ void part_gram(const struct part *p, float *to)
{
    uint32_t warp = threadIdx.x / CUDA_WARP, g = threadIdx.x % CUDA_WARP / 4, t = threadIdx.x % 4;
    uint32_t across = p->cp / COLS, n_tiles = p->cp / MUON_TILE * across;

    for (uint32_t i = warp; i < n_tiles; i += WARPS) {
        uint32_t m0 = i / across * MUON_TILE, n0 = i % across * COLS;
        struct muon_tile<NT> c;
        muon_tile_zero(&c);
        muon_cols<NT>(&c, p->x + m0, p->x + n0, (int)p->ld, (int)p->rows);
#pragma unroll
        for (int n = 0; n < NT; n++) {
            float *at = to + (m0 + g) * p->ld + n0 + n * 8 + 2 * t;
            *(float2 *)at = make_float2(c.large[n][0] + c.small[n][0], c.large[n][1] + c.small[n][1]);
            *(float2 *)(at + 8 * p->ld) = make_float2(c.large[n][2] + c.small[n][2], c.large[n][3] + c.small[n][3]);
        }
    }
}

/* Adds a slice of every block's `from` up and sends it to every block's `to`. */
static __device__ void part_share_sum(const struct part *p, float *from, float *to)
{
    uint32_t row = p->cp / 4, all = p->cp * row, each = (all + p->parts - 1) / p->parts;
    uint32_t end = (p->rank + 1) * each < all ? (p->rank + 1) * each : all;

    for (uint32_t i = p->rank * each + threadIdx.x; i < end; i += BLOCK) {
        uint32_t at = i / row * p->ld + i % row * 4;
        float4 in[CLUSTER], sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
#pragma unroll
        for (uint32_t r = 0; r < CLUSTER; r++)
            in[r] = cluster_load(cluster_at(from + at, r));
#pragma unroll
        for (uint32_t r = 0; r < CLUSTER; r++)
            sum.x += in[r].x, sum.y += in[r].y, sum.z += in[r].z, sum.w += in[r].w;
#pragma unroll
        for (uint32_t r = 0; r < CLUSTER; r++)
            cluster_store(cluster_at(to + at, r), sum);
    }
}

/* to = a I + b s + c s s: all of it, or the block's tiles of rows, sent to every block. */
static __device__ void part_polynomial(const struct part *p, float *to, const float *s, const float *coef, bool shared)
{
    uint32_t warp = threadIdx.x / CUDA_WARP, g = threadIdx.x % CUDA_WARP / 4, t = threadIdx.x % 4;
    uint32_t first = shared ? p->rank : 0, step = shared ? p->parts : 1, across = p->cp / 8;
    uint32_t n_down = (p->cp / MUON_TILE + step - 1 - first) / step;

    for (uint32_t i = warp; i < n_down * across; i += WARPS) {
        uint32_t m0 = (i / across * step + first) * MUON_TILE, n0 = i % across * 8;
        struct muon_tile<1> c;
        muon_tile_zero(&c);
        muon_rows<1>(&c, s + m0 * p->ld, s + n0 * p->ld, (int)p->ld, (int)p->cp);
#pragma unroll
        for (int half = 0; half < 2; half++) {
            uint32_t m = m0 + g + 8 * half, n = n0 + 2 * t, at = m * p->ld + n;
            float2 x = *(const float2 *)(s + at);
            x.x = coef[1] * x.x + coef[2] * (c.large[0][2 * half] + c.small[0][2 * half]) + (m == n ? coef[0] : 0.0f);
            x.y = coef[1] * x.y + coef[2] * (c.large[0][2 * half + 1] + c.small[0][2 * half + 1]) +
                  (m == n + 1 ? coef[0] : 0.0f);
            if (!shared) {
                *(float2 *)(to + at) = x;
                continue;
            }
#pragma unroll
            for (uint32_t r = 0; r < CLUSTER; r++)
                cluster_store(cluster_at(to + at, r), x);
        }
    }
}

/* x <- x P */
static __device__ void part_multiply(const struct part *p, const float *poly)
{
    uint32_t warp = threadIdx.x / CUDA_WARP, g = threadIdx.x % CUDA_WARP / 4, t = threadIdx.x % 4;
    uint32_t across = p->cp / COLS, n_tiles = p->rows / MUON_TILE * across;
    float2 out[TILES_EACH][NT][2];

#pragma unroll
    for (uint32_t j = 0; j < TILES_EACH; j++) {
        uint32_t i = warp + j * WARPS, m0 = i / across * MUON_TILE, n0 = i % across * COLS;
        struct muon_tile<NT> c;
        muon_tile_zero(&c);
        if (i < n_tiles)
            muon_rows<NT>(&c, p->x + m0 * p->ld, poly + n0 * p->ld, (int)p->ld, (int)p->cp);
#pragma unroll
        for (int n = 0; n < NT; n++) {
            out[j][n][0] = make_float2(c.large[n][0] + c.small[n][0], c.large[n][1] + c.small[n][1]);
            out[j][n][1] = make_float2(c.large[n][2] + c.small[n][2], c.large[n][3] + c.small[n][3]);
        }
    }
    __syncthreads();
#pragma unroll
    for (uint32_t j = 0; j < TILES_EACH; j++) {
        uint32_t i = warp + j * WARPS, m0 = i / across * MUON_TILE, n0 = i % across * COLS;
        if (i >= n_tiles)
            continue;
#pragma unroll
        for (int n = 0; n < NT; n++) {
            float *at = p->x + (m0 + g) * p->ld + n0 + n * 8 + 2 * t;
            *(float2 *)at = out[j][n][0];
            *(float2 *)(at + 8 * p->ld) = out[j][n][1];
        }
    }
    __syncthreads();
}

/* x of all blocks divided by its norm */
static __device__ void part_normalise(const struct part *p, double sum)
{
    __shared__ double scratch[WARPS], mine;
    float inv;

    sum = num_block_sum(sum, scratch);
    if (p->parts > 1) {
        if (threadIdx.x == 0)
            mine = sum;
        cluster_sync();
        sum = 0.0;
        for (uint32_t r = 0; r < CLUSTER; r++)
            sum += cluster_load_f64(cluster_at(&mine, r));
    }
    inv = sum > 0.0 ? (float)(1.0 / sqrt(sum)) : 0.0f;
    for (uint32_t i = threadIdx.x; i < p->rows * p->cp; i += BLOCK)
        p->x[i / p->cp * p->ld + i % p->cp] *= inv;
    __syncthreads();
}

static __device__ void muon_matrix(const struct part *p, const struct muon_step *s, const struct muon_item *t)
{
    bool shared = p->parts > 1;

    part_normalise(p, part_load(p, s, t));
    for (int i = 0; i < MUON_STEPS; i++) {
        part_gram(p, p->a);
        if (!shared) {
            __syncthreads();
            part_polynomial(p, p->b, p->a, muon_coef[i], false);
            __syncthreads();
            part_multiply(p, p->b);
            continue;
        }
        cluster_sync();
        part_share_sum(p, p->a, p->b);
        cluster_sync();
        if (p->cp > LOCAL_P) {
            part_polynomial(p, p->a, p->b, muon_coef[i], true);
            cluster_sync();
        } else {
            part_polynomial(p, p->a, p->b, muon_coef[i], false);
            __syncthreads();
        }
        part_multiply(p, p->a);
    }
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

static __global__ void __cluster_dims__(CLUSTER, 1, 1) __launch_bounds__(BLOCK, 1)
    muon_k(const __grid_constant__ struct muon_job job)
{
    extern __shared__ float4 shared[];
    uint32_t at = blockIdx.x / CLUSTER, rank = blockIdx.x % CLUSTER;
    const struct muon_item *t = &job.item[at];
    struct part p;

    if (optim_is_off(job.step.norm, job.step.stats))
        return;
    if (at >= job.n_matrices) {
        for (uint32_t i = job.n_matrices; i < job.n_items; i++)
            muon_vector(&job.step, &job.item[i], rank);
        return;
    }
    if (rank >= t->parts) /* a matrix of one block: the others are not talked to */
        return;
    p.rank = rank, p.parts = t->parts;
    p.rows = part_rows(t);
    p.r0 = rank * p.rows;
    p.cp = round_up(t->C, COLS);
    p.ld = LD(p.cp);
    p.x = (float *)shared;
    p.a = p.x + p.rows * p.ld;
    p.b = p.a + p.cp * p.ld;
    muon_matrix(&p, &job.step, t);
}

static bool fits(const struct muon_item *t)
{
    uint32_t tiles = part_rows(t) / MUON_TILE * (round_up(t->C, COLS) / COLS);
    return shared_bytes(t) <= SHARED_MAX && tiles <= WARPS * TILES_EACH;
}

/* In tall form, with the number of blocks for it; false: it does not fit. */
static bool muon_item_set(struct muon_item *item, const struct kern_tensor *t)
{
    item->offset = t->offset;
    item->rows = (uint32_t)t->rows, item->cols = (uint32_t)t->cols;
    item->R = item->rows > item->cols ? item->rows : item->cols;
    item->C = item->rows > item->cols ? item->cols : item->rows;
    if (t->rows * t->cols <= ALONE) {
        item->parts = 1;
        if (fits(item))
            return true;
    }
    item->parts = CLUSTER;
    return fits(item);
}

void cuda_muon(struct kern *k, float *w, float *m, const float *g, const float *norm, void *scratch,
               const struct kern_stats *stats, const struct kern_hyper *hyper, const struct kern_tensor *tensors,
               size_t n_tensors)
{
    struct muon_job job = {};
    struct muon_item large[KERN_MAX_TENSORS];
    size_t n_large = 0, bytes = 0;
    unsigned grid;

    job.step = (struct muon_step){w, m, g, norm, stats, hyper};
    for (size_t i = 0; i < n_tensors; i++) {
        struct muon_item item = {};
        if (!tensors[i].is_matrix)
            continue;
        if (muon_item_set(&item, &tensors[i])) {
            size_t need = shared_bytes(&item);
            bytes = need > bytes ? need : bytes;
            job.item[job.n_items++] = item;
        } else {
            large[n_large++] = item;
        }
    }
    job.n_matrices = job.n_items;
    for (size_t i = 0; i < n_tensors; i++)
        if (!tensors[i].is_matrix) {
            struct muon_item *item = &job.item[job.n_items++];
            item->offset = tensors[i].offset;
            item->rows = (uint32_t)tensors[i].rows;
        }
    grid = CLUSTER * (job.n_matrices + (job.n_items > job.n_matrices));
    if (grid > 0) {
        cuda_check(k, cudaFuncSetAttribute(muon_k, cudaFuncAttributeMaxDynamicSharedMemorySize, SHARED_MAX), "muon");
        muon_k<<<grid, BLOCK, bytes, cuda_of(k)->stream>>>(job);
        cuda_launched(k, "muon");
    }
    if (n_large > 0)
        cuda_muon_large(k, &job.step, large, n_large, (float *)scratch);
}
