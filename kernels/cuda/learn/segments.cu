/* segments.cu - which segments a minibatch takes: shuffled, or drawn by priority.
 * Sums over segments run in f64 in a fixed order; what is drawn is what kernels/cpu draws, but where the last bit of a
 * sum decides. */
#include "kernels/cuda/number.h"

#define SHUFFLE_BLOCK 256
#define SHUFFLE_OWN 2 /* entries that a thread ranks */
#define SHUFFLE_SLICES 8 /* warps of a block, each compares with its part of a tile */
#define SHUFFLE_TILE 2048
#define SHUFFLE_BLOCK_ENTRIES (32 * SHUFFLE_OWN)
/* Segments: from there on buckets are sorted. All pairs take 12.2 us for 4096 and 21.2 for 8192 segments (the row
 * segments_shuffle in bench/notes/cuda.md) and grow with the square. */
#define SORT_FROM ((size_t)1 << 15)
#define SORT_BUCKETS 16384
#define SORT_SHIFT 18 /* of a key: its first 14 bits name the bucket */
#define SORT_BUCKET_MAX 2048 /* entries; with 2^24 segments a bucket has 1024, 32 deviations below */
#define SORT_BLOCK 256
#define SCAN_BLOCK 1024
#define PRIO_AGENTS 32
#define PRIO_SLICES 8
#define PRIO_BLOCK (PRIO_AGENTS * PRIO_SLICES)
#define PRIO_MAX_BLOCKS 4096
#define PICK_BLOCK 1024
#define PLAIN_BLOCK 256

/* ---- shuffle ---- */

/* Entry i belongs where its key (draw i of the stream) ranks among all keys: each thread counts the keys before those
 * of its entries. N^2 comparisons, and yet a few microseconds for thousands of segments, in one launch without
 * scratch. */
static __global__ void __launch_bounds__(SHUFFLE_BLOCK)
    segments_shuffle_k(int32_t *perm /* (N) */, const struct rng *rng, unsigned N)
{
    ptx_chained();
    __shared__ uint32_t tile[SHUFFLE_TILE];
    __shared__ unsigned before[SHUFFLE_SLICES][SHUFFLE_BLOCK_ENTRIES];
    unsigned lane = threadIdx.x % 32, slice = threadIdx.x / 32, first = blockIdx.x * SHUFFLE_BLOCK_ENTRIES;
    const unsigned slice_keys = SHUFFLE_TILE / SHUFFLE_SLICES;
    uint64_t key = rng->key, counter = rng->counter;
    uint32_t own[SHUFFLE_OWN];
    unsigned count[SHUFFLE_OWN];

#pragma unroll
    for (unsigned e = 0; e < SHUFFLE_OWN; e++) {
        own[e] = rng_philox(key, counter + first + e * 32 + lane, 0).v[0];
        count[e] = 0;
    }
    for (unsigned t0 = 0; t0 < N; t0 += SHUFFLE_TILE) {
        unsigned from = slice * slice_keys;
        __syncthreads();
        for (unsigned i = threadIdx.x; i < SHUFFLE_TILE && t0 + i < N; i += SHUFFLE_BLOCK)
            tile[i] = rng_philox(key, counter + t0 + i, 0).v[0];
        __syncthreads();
        if (t0 + from + slice_keys <= first || t0 + from >= first + SHUFFLE_BLOCK_ENTRIES) {
            /* all of them before these entries, or all after: that decides between equal keys */
            uint32_t tie = t0 + from < first ? 1 : 0;
            unsigned to = N - t0 < from ? from : N - t0 < from + slice_keys ? N - t0 : from + slice_keys;
#pragma unroll 8
            for (unsigned i = from; i < to; i++) {
                uint64_t other = tile[i];
#pragma unroll
                for (unsigned e = 0; e < SHUFFLE_OWN; e++)
                    count[e] += other < (uint64_t)own[e] + tie;
            }
            continue;
        }
        for (unsigned i = from; i < from + slice_keys && t0 + i < N; i++) {
            uint32_t other = tile[i];
#pragma unroll
            for (unsigned e = 0; e < SHUFFLE_OWN; e++)
                count[e] += other < own[e] || (other == own[e] && t0 + i < first + e * 32 + lane);
        }
    }
#pragma unroll
    for (unsigned e = 0; e < SHUFFLE_OWN; e++)
        before[slice][e * 32 + lane] = count[e];
    __syncthreads();
    if (threadIdx.x < SHUFFLE_BLOCK_ENTRIES && first + threadIdx.x < N) {
        unsigned rank = 0;
        for (unsigned s = 0; s < SHUFFLE_SLICES; s++)
            rank += before[s][threadIdx.x];
        perm[rank] = (int32_t)(first + threadIdx.x);
    }
}

/* More segments: entries go to buckets by the first bits of their keys, in any order, and each bucket is then ranked as
 * above. ends (SORT_BUCKETS): entries of each bucket, where it begins, and at last where it ends. */
static __global__ void __launch_bounds__(SORT_BLOCK) sort_count_k(uint32_t *ends, const struct rng *rng, unsigned N)
{
    unsigned i = blockIdx.x * SORT_BLOCK + threadIdx.x;

    if (i < N)
        atomicAdd(&ends[rng_philox(rng->key, rng->counter + i, 0).v[0] >> SORT_SHIFT], 1u);
}

static __global__ void __launch_bounds__(SCAN_BLOCK) sort_scan_k(uint32_t *ends)
{
    __shared__ uint32_t sums[SCAN_BLOCK / CUDA_WARP];
    const unsigned n_own = SORT_BUCKETS / SCAN_BLOCK;
    unsigned lane = threadIdx.x % CUDA_WARP, warp = threadIdx.x / CUDA_WARP;
    uint32_t own[n_own], sum = 0, before;

#pragma unroll
    for (unsigned b = 0; b < n_own; b++)
        sum += own[b] = ends[threadIdx.x * n_own + b];
    before = sum;
#pragma unroll
    for (unsigned d = 1; d < CUDA_WARP; d *= 2) {
        uint32_t left = __shfl_up_sync(0xffffffffu, before, d);
        before += lane >= d ? left : 0;
    }
    if (lane == CUDA_WARP - 1)
        sums[warp] = before;
    __syncthreads();
    before -= sum;
    for (unsigned w = 0; w < warp; w++)
        before += sums[w];
#pragma unroll
    for (unsigned b = 0; b < n_own; b++) {
        ends[threadIdx.x * n_own + b] = before;
        before += own[b];
    }
}

static __global__ void __launch_bounds__(SORT_BLOCK)
    sort_spread_k(int32_t *perm /* (N) */, uint32_t *ends, const struct rng *rng, unsigned N)
{
    unsigned i = blockIdx.x * SORT_BLOCK + threadIdx.x;

    if (i < N)
        perm[atomicAdd(&ends[rng_philox(rng->key, rng->counter + i, 0).v[0] >> SORT_SHIFT], 1u)] = (int32_t)i;
}

static __global__ void __launch_bounds__(SORT_BLOCK)
    sort_bucket_k(int32_t *perm /* (N) */, const uint32_t *ends, const struct rng *rng)
{
    __shared__ uint64_t entries[SORT_BUCKET_MAX]; /* key, then index */
    uint32_t from = blockIdx.x == 0 ? 0 : ends[blockIdx.x - 1], n = ends[blockIdx.x] - from;

    if (n > SORT_BUCKET_MAX)
        __trap();
    for (uint32_t i = threadIdx.x; i < n; i += SORT_BLOCK) {
        uint32_t entry = (uint32_t)perm[from + i];
        entries[i] = (uint64_t)rng_philox(rng->key, rng->counter + entry, 0).v[0] << 32 | entry;
    }
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < n; i += SORT_BLOCK) {
        uint64_t own = entries[i];
        uint32_t rank = 0;
        for (uint32_t j = 0; j < n; j++)
            rank += entries[j] < own;
        perm[from + rank] = (int32_t)(uint32_t)own;
    }
}

static_assert(SORT_BUCKETS * sizeof(uint32_t) <= CUDA_PARTIALS_BYTES, "the buckets' ends fit");

static void shuffle_sorted(struct kern *k, int32_t *perm, const struct rng *rng, size_t N)
{
    struct cuda *cuda = cuda_of(k);
    uint32_t *ends = (uint32_t *)cuda->partials;
    unsigned blocks = cuda_ceil_div(N, SORT_BLOCK);

    cuda_zero(k, ends, SORT_BUCKETS * sizeof *ends);
    sort_count_k<<<blocks, SORT_BLOCK, 0, cuda->stream>>>(ends, rng, (unsigned)N);
    cuda_launched(k, "segments_shuffle");
    sort_scan_k<<<1, SCAN_BLOCK, 0, cuda->stream>>>(ends);
    cuda_launched(k, "segments_shuffle");
    sort_spread_k<<<blocks, SORT_BLOCK, 0, cuda->stream>>>(perm, ends, rng, (unsigned)N);
    cuda_launched(k, "segments_shuffle");
    sort_bucket_k<<<SORT_BUCKETS, SORT_BLOCK, 0, cuda->stream>>>(perm, ends, rng);
    cuda_launched(k, "segments_shuffle");
}

void cuda_segments_shuffle(struct kern *k, int32_t *perm, const struct rng *rng, size_t N)
{
    if (N >= SORT_FROM) {
        shuffle_sorted(k, perm, rng, N);
        return;
    }
    cuda_chain(k, "segments_shuffle", segments_shuffle_k, cuda_ceil_div(N, SHUFFLE_BLOCK_ENTRIES), SHUFFLE_BLOCK, 0,
               perm, rng, (unsigned)N);
}

/* ---- priorities ---- */

/* prob = (sum over t of |adv|)^alpha, not yet divided; partials (blocks) get each block's sum of them. */
static __global__ void __launch_bounds__(PRIO_BLOCK)
    priority_weigh_k(float *prob /* (N) */, double *partials, const float *adv /* (T, N) */,
                     const struct kern_hyper *hyper, size_t Tn, size_t N)
{
    ptx_chained();
    __shared__ float part[PRIO_SLICES][PRIO_AGENTS];
    size_t lane = threadIdx.x % PRIO_AGENTS, slice = threadIdx.x / PRIO_AGENTS;
    double total = 0.0;

    for (size_t first = (size_t)blockIdx.x * PRIO_AGENTS; first < N; first += (size_t)gridDim.x * PRIO_AGENTS) {
        size_t i = first + lane;
        float sum = 0.0f;
        for (size_t t = slice; t < Tn && i < N; t += PRIO_SLICES)
            sum += fabsf(adv[t * N + i]);
        part[slice][lane] = sum;
        __syncthreads();
        if (slice == 0 && i < N) {
            for (size_t s = 1; s < PRIO_SLICES; s++)
                sum += part[s][lane];
            sum = powf(sum, hyper->prio_alpha);
            prob[i] = sum;
            total += (double)sum;
        }
        __syncthreads();
    }
    if (slice == 0) {
        total = num_warp_sum(total);
        if (lane == 0)
            partials[blockIdx.x] = total;
    }
}

static __global__ void __launch_bounds__(PLAIN_BLOCK)
    priority_divide_k(float *prob /* (N) */, const double *partials, unsigned n_partials, size_t N)
{
    ptx_chained();
    __shared__ double part[PLAIN_BLOCK / 32];
    size_t i = (size_t)blockIdx.x * PLAIN_BLOCK + threadIdx.x;
    double sum = 0.0, total = 0.0;

    for (unsigned p = threadIdx.x; p < n_partials; p += PLAIN_BLOCK)
        sum += partials[p];
    sum = num_warp_sum(sum);
    if (threadIdx.x % 32 == 0)
        part[threadIdx.x / 32] = sum;
    __syncthreads();
    for (int w = 0; w < PLAIN_BLOCK / 32; w++)
        total += part[w];
    if (i < N)
        prob[i] = (float)(((double)prob[i] + 1e-6) / (total + 1e-6));
}

void cuda_segments_priority(struct kern *k, const struct kern_segments *s)
{
    struct cuda *cuda = cuda_of(k);
    double *partials = (double *)cuda->partials;
    size_t blocks = cuda_ceil_div(s->N, PRIO_AGENTS);

    blocks = blocks < PRIO_MAX_BLOCKS ? blocks : PRIO_MAX_BLOCKS;
    cuda_chain(k, "segments_priority", priority_weigh_k, blocks, PRIO_BLOCK, 0, s->prob, partials, s->adv, s->hyper,
               s->T, s->N);
    cuda_chain(k, "segments_priority", priority_divide_k, cuda_ceil_div(s->N, PLAIN_BLOCK), PLAIN_BLOCK, 0, s->prob,
               partials, (unsigned)blocks, s->N);
}

/* ---- pick ---- */

/* The first of B points at(j) = (j + u) step that is not below c; per_step is about 1 / step. */
static __device__ __forceinline__ size_t first_point(double c, double u, double step, double per_step, size_t B)
{
    double guess = ceil(c * per_step - u);
    size_t j = !(guess > 0.0) ? 0 : guess < (double)B ? (size_t)guess : B;

    while (j > 0 && ((double)(j - 1) + u) * step >= c)
        j--;
    while (j < B && ((double)j + u) * step < c)
        j++;
    return j;
}

/* Sums of prob up to each segment cut the line of points; every thread has a run of neighbouring segments and writes
 * the picks that fall into them. A cut between two threads is one number that both read, so that they miss and share
 * none. */
static __global__ void __launch_bounds__(PICK_BLOCK)
    segments_pick_k(int32_t *idx /* (B) */, float *weight /* (B) */, const float *prob /* (N) */, struct rng *rng,
                    const struct kern_hyper *hyper, size_t N, size_t B)
{
    ptx_chained();
    __shared__ double warp_sums[PICK_BLOCK / 32], up_to[PICK_BLOCK];
    unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    size_t n_own = (N + PICK_BLOCK - 1) / PICK_BLOCK, from = threadIdx.x * n_own,
           to = from + n_own < N ? from + n_own : N, j;
    struct rng draw = *rng;
    double u = rng_f64(&draw), sum = 0.0, base = 0.0, step, per_step, c, end;

    for (size_t i = from; i < to; i++)
        sum += (double)prob[i];
    for (unsigned d = 1; d < 32; d *= 2) {
        double left = __shfl_up_sync(0xffffffffu, sum, d);
        sum = lane >= d ? sum + left : sum;
    }
    if (lane == 31)
        warp_sums[warp] = sum;
    __syncthreads();
    for (unsigned w = 0; w < warp; w++)
        base += warp_sums[w];
    up_to[threadIdx.x] = base + sum;
    __syncthreads();
    if (threadIdx.x == 0)
        rng->counter = draw.counter;
    if (from >= to)
        return;
    step = up_to[PICK_BLOCK - 1] / (double)B;
    per_step = 1.0 / step;
    c = threadIdx.x == 0 ? 0.0 : up_to[threadIdx.x - 1];
    end = up_to[threadIdx.x];
    j = threadIdx.x == 0 ? 0 : first_point(c, u, step, per_step, B);
    for (size_t i = from; i < to; i++) {
        float p = prob[i];
        c = i + 1 == to || c + (double)p > end ? end : c + (double)p;
        size_t next = i + 1 == N ? B : first_point(c, u, step, per_step, B);
        float w = j < next ? powf((float)N * p, -hyper->prio_beta) : 0.0f;
        for (; j < next; j++) {
            idx[j] = (int32_t)i;
            weight[j] = w;
        }
    }
}

void cuda_segments_pick(struct kern *k, const struct kern_segments *s)
{
    cuda_chain(k, "segments_pick", segments_pick_k, 1, PICK_BLOCK, 0, s->idx, s->weight, s->prob, s->rng, s->hyper,
               s->N, s->B);
}

static __global__ void rng_advance_k(struct rng *rng, uint64_t n)
{
    ptx_chained();
    rng->counter += n;
}

void cuda_rng_advance(struct kern *k, struct rng *rng, uint64_t n)
{
    cuda_chain(k, "rng_advance", rng_advance_k, 1, 1, 0, rng, n);
}
