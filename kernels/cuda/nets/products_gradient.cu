/* products_gradient.cu - see products.h: dw = dy^T x, with the gradient before the activation and db, in one pass over
 * dy, y and x. A block has 8 warps, a stripe of tokens, BN rows and all BK columns of dw; stages of TS tokens are on
 * their way to shared memory while others are multiplied. In a stage dy is first multiplied by act'(y); db is a product
 * with a column of ones. Both operands are read transposed, as tokens are what is summed over.
 * Invariant: sums have a fixed order: the tokens of a warp, the warps of a block, and in a second kernel the stripes,
 * RUNS runs of them side by side and then these one after another. */
#include "kernels/cuda/nets/mma.cuh"
#include "kernels/cuda/nets/products.h"
#include "kernels/cuda/number.h"

#define WARPS 8
#define BLOCK (WARPS * CUDA_WARP)
#define PER_SM 2 /* blocks of a multiprocessor, at most */
#define TWO_FROM 256 /* tokens of a multiprocessor, from which on two blocks share them */
#define RUNS 16
#define ONES 0x3f803f80u /* two bf16 */

struct gradient_job {
    float *partials; /* (stripes, n_rows, BK), then (stripes, n_rows) */
    bf16 *dy; /* (M, N) */
    const bf16 *y; /* (M, N) */
    const bf16 *x; /* (M, K) */
    unsigned M, N, K;
    unsigned n_rows; /* N, and what fills the last block */
    unsigned stripe; /* tokens, a multiple of a stage's */
    enum kern_act act;
    bool sums; /* db is asked for */
};

/* ---- stages ---- */

/* In shared memory; 16 bytes more than the numbers take, so that eight rows meet in no bank. */
#define ROW_BYTES(cols) ((unsigned)(cols)*2 + 16)

/* to (TS, COLS) = columns [c0, c0 + COLS) of rows [m0, m0 + TS), zeros beyond row `end` and column C; N numbers at a
 * time. */
template <int TS, int COLS, int N>
static __device__ __forceinline__ void rows_fetch_by(char *to, const bf16 *from, unsigned m0, unsigned end, unsigned c0,
                                                     unsigned C)
{
    constexpr unsigned ACROSS = COLS / N, TURNS = TS * ACROSS / BLOCK;
    static_assert(TS * ACROSS % BLOCK == 0, "all threads have as many");

#pragma unroll(N == 1 ? 4 : 8)
    for (unsigned turn = 0; turn < TURNS; turn++) {
        unsigned i = turn * BLOCK + threadIdx.x, r = i / ACROSS, c = i % ACROSS * N;
        bool there = m0 + r < end && c0 + c < C;
        mma_fetch<N>(to + r * ROW_BYTES(COLS) + c * 2, from + (there ? (size_t)(m0 + r) * C + c0 + c : 0), there);
    }
}

template <int TS, int COLS>
static __device__ __forceinline__ void rows_fetch(char *to, const bf16 *from, unsigned m0, unsigned end, unsigned c0,
                                                  unsigned C)
{
    if (C % 8 == 0)
        rows_fetch_by<TS, COLS, 8>(to, from, m0, end, c0, C);
    else if (C % 2 == 0)
        rows_fetch_by<TS, COLS, 2>(to, from, m0, end, c0, C);
    else
        rows_fetch_by<TS, COLS, 1>(to, from, m0, end, c0, C);
}

static __device__ __forceinline__ uint32_t pair_before_act(uint32_t d, uint32_t y, enum kern_act act)
{
    float d0 = mma_low(d), d1 = mma_high(d), y0 = mma_low(y), y1 = mma_high(y);

    if (act == KERN_ACT_TANH)
        return mma_pack(d0 * (1.0f - y0 * y0), d1 * (1.0f - y1 * y1));
    return mma_pack(y0 > 0.0f ? d0 : 0.0f, y1 > 0.0f ? d1 : 0.0f);
}

/* dy *= act'(y), in the stage and in memory. */
template <int TS, int BN>
static __device__ __forceinline__ void stage_before_act(char *dy, const char *y, const gradient_job &job, unsigned m0,
                                                        unsigned end, unsigned n0)
{
    constexpr unsigned UNITS = BN / 8;

#pragma unroll
    for (unsigned i = threadIdx.x; i < TS * UNITS; i += BLOCK) {
        unsigned r = i / UNITS, c = i % UNITS * 8;
        uint4 *at = (uint4 *)(dy + r * ROW_BYTES(BN) + c * 2);
        uint4 d = *at, o = *(const uint4 *)(y + r * ROW_BYTES(BN) + c * 2);
        d = make_uint4(pair_before_act(d.x, o.x, job.act), pair_before_act(d.y, o.y, job.act),
                       pair_before_act(d.z, o.z, job.act), pair_before_act(d.w, o.w, job.act));
        *at = d;
        if (m0 + r < end && n0 + c < job.N)
            *(uint4 *)(job.dy + (size_t)(m0 + r) * job.N + n0 + c) = d;
    }
}

/* ---- products ---- */

/* Warps lie over the block's part of dw as WN x WK, and WT such groups have other tokens of a stage. */
template <int BN, int BK, int WN, int WK, int WT, int TS, int STAGES> struct gradient_tile {
    static constexpr int MT = BN / WN / 16, NT = BK / WK / 8, SUMS = NT + 1, STEPS = TS / 16 / WT;
    static constexpr unsigned DY = TS * ROW_BYTES(BN), X = TS * ROW_BYTES(BK);
    static_assert(WN * WK * WT == WARPS && WN * WK * MT * SUMS * 4 * CUDA_WARP * 4 <= STAGES * (DY + X), "");
};

/* The sums of the groups of warps, the last to the first, through shared memory. True in the first group. */
template <typename Tile, int WT, int GROUP>
static __device__ __forceinline__ bool groups_add(float (&sum)[Tile::MT][Tile::SUMS][4], float *shared, int warp,
                                                  int lane)
{
    float *mine = shared + warp % GROUP * (Tile::MT * Tile::SUMS * 4 * CUDA_WARP) + lane;
    const int group = warp / GROUP;

#pragma unroll
    for (int from = WT - 1; from > 0; from--) {
        __syncthreads();
#pragma unroll
        for (int i = 0; group == from && i < Tile::MT * Tile::SUMS * 4; i++)
            mine[i * CUDA_WARP] = sum[i / 4 / Tile::SUMS][i / 4 % Tile::SUMS][i % 4];
        __syncthreads();
#pragma unroll
        for (int i = 0; group == from - 1 && i < Tile::MT * Tile::SUMS * 4; i++)
            sum[i / 4 / Tile::SUMS][i / 4 % Tile::SUMS][i % 4] += mine[i * CUDA_WARP];
    }
    return group == 0;
}

template <int BN, int BK, int WN, int WK, int WT, int TS, int STAGES>
static __global__ void __launch_bounds__(BLOCK, PER_SM) weight_gradient_k(const gradient_job job)
{
    ptx_chained();
    typedef gradient_tile<BN, BK, WN, WK, WT, TS, STAGES> Tile;
    constexpr int MT = Tile::MT, NT = Tile::NT, STEPS = Tile::STEPS;
    constexpr unsigned DY_ROW = ROW_BYTES(BN), X_ROW = ROW_BYTES(BK);
    extern __shared__ __align__(16) char shared[];
    const int lane = (int)threadIdx.x % CUDA_WARP, warp = (int)threadIdx.x / CUDA_WARP;
    const int wn = warp % WN, wk = warp / WN % WK, wt = warp / (WN * WK);
    const unsigned n0 = blockIdx.y * BN, from = blockIdx.x * job.stripe;
    const unsigned end = from + job.stripe < job.M ? from + job.stripe : job.M;
    const unsigned n_stages = (end - from + TS - 1) / TS;
    const bool before_act = job.act != KERN_ACT_NONE, sums = job.sums && wk == 0;
    const unsigned stage_bytes = Tile::DY + Tile::X + (before_act ? Tile::DY : 0); /* dy, x, y */
    /* what this lane addresses of four blocks: 16 rows of dw by 16 tokens, and 16 tokens by 16 columns */
    const uint32_t dy_at = ptx_shared(shared) + (unsigned)(wt * STEPS * 16 + lane % 8 + lane / 16 * 8) * DY_ROW +
                           (unsigned)(wn * MT * 16 + lane / 8 % 2 * 8) * 2;
    const uint32_t x_at = ptx_shared(shared) + Tile::DY + (unsigned)(wt * STEPS * 16 + lane % 16) * X_ROW +
                          (unsigned)(wk * NT * 8 + lane / 16 * 8) * 2;
    float sum[MT][NT + 1][4] = {}; /* the last: of the column of ones */

    auto fetch = [&](unsigned s) {
        if (s < n_stages) {
            char *to = shared + s % STAGES * stage_bytes;
            unsigned m0 = from + s * TS;
            rows_fetch<TS, BN>(to, job.dy, m0, end, n0, job.N);
            rows_fetch<TS, BK>(to + Tile::DY, job.x, m0, end, 0, job.K);
            if (before_act)
                rows_fetch<TS, BN>(to + Tile::DY + Tile::X, job.y, m0, end, n0, job.N);
        }
        ptx_copy_commit();
    };
#pragma unroll
    for (unsigned s = 0; s < STAGES - 1; s++)
        fetch(s);
    for (unsigned s = 0; s < n_stages; s++) {
        const unsigned at = s % STAGES * stage_bytes;
        ptx_copy_wait<STAGES - 2>();
        __syncthreads();
        fetch(s + STAGES - 1);
        if (before_act) {
            stage_before_act<TS, BN>(shared + at, shared + at + Tile::DY + Tile::X, job, from + s * TS, end, n0);
            __syncthreads();
        }
#pragma unroll
        for (int u = 0; u < STEPS; u++) {
            uint32_t a[MT][4], b[NT / 2][4];
#pragma unroll
            for (int m = 0; m < MT; m++)
                ptx_load_blocks_turned(a[m], dy_at + at + u * 16 * DY_ROW + m * 32);
#pragma unroll
            for (int n = 0; n < NT / 2; n++)
                ptx_load_blocks_turned(b[n], x_at + at + u * 16 * X_ROW + n * 32);
#pragma unroll
            for (int m = 0; m < MT; m++) {
#pragma unroll
                for (int n = 0; n < NT; n++)
                    ptx_mma_bf16(sum[m][n], a[m][0], a[m][1], a[m][2], a[m][3], b[n / 2][n % 2 * 2],
                                 b[n / 2][n % 2 * 2 + 1]);
                if (sums)
                    ptx_mma_bf16(sum[m][NT], a[m][0], a[m][1], a[m][2], a[m][3], ONES, ONES);
            }
        }
    }
    if (WT > 1 && !groups_add<Tile, WT, WN * WK>(sum, (float *)shared, warp, lane))
        return;
    const unsigned g = (unsigned)lane / 4, t = (unsigned)lane % 4, row = n0 + wn * MT * 16 + g;
    float *to = job.partials + ((size_t)blockIdx.x * job.n_rows + row) * BK + wk * NT * 8 + 2 * t;
#pragma unroll
    for (int m = 0; m < MT; m++)
#pragma unroll
        for (int n = 0; n < NT; n++) {
            *(float2 *)(to + (m * 16) * BK + n * 8) = make_float2(sum[m][n][0], sum[m][n][1]);
            *(float2 *)(to + (m * 16 + 8) * BK + n * 8) = make_float2(sum[m][n][2], sum[m][n][3]);
        }
    to = job.partials + (size_t)gridDim.x * job.n_rows * BK + (size_t)blockIdx.x * job.n_rows + row;
#pragma unroll
    for (int m = 0; sums && t == 0 && m < MT; m++)
        to[m * 16] = sum[m][NT][0], to[m * 16 + 8] = sum[m][NT][2];
}

/* dw (N, K), db (N) = the stripes' partials in order. A thread has four numbers of a row of dw, or of db. */
static __global__ void __launch_bounds__(CUDA_WARP *RUNS)
    weight_gradient_add_k(float *dw, float *db /* NULL: none */, const float *partials, unsigned n_stripes, unsigned N,
                          unsigned K, unsigned n_rows, unsigned BK, bool add)
{
    ptx_chained();
    __shared__ float4 sums[RUNS][CUDA_WARP];
    const unsigned i = (blockIdx.x * CUDA_WARP + threadIdx.x) * 4, of_dw = n_rows * BK;
    const unsigned each = (n_stripes + RUNS - 1) / RUNS, from = threadIdx.y * each;
    const unsigned end = from + each < n_stripes ? from + each : n_stripes;
    const bool is_db = i >= of_dw;
    const unsigned n = is_db ? i - of_dw : i / BK, k = is_db ? 0 : i % BK, left = is_db ? N - n : K - k;
    const bool mine = n < N && k < K && (!is_db || db != NULL);
    float4 s = make_float4(0.0f, 0.0f, 0.0f, 0.0f);

    if (mine) {
        const float *at = is_db ? partials + (size_t)n_stripes * of_dw + n : partials + i;
        const size_t step = is_db ? n_rows : of_dw;
#pragma unroll 8
        for (unsigned r = from; r < end; r++) {
            float4 x = *(const float4 *)(at + r * step);
            s.x += x.x, s.y += x.y, s.z += x.z, s.w += x.w;
        }
    }
    sums[threadIdx.y][threadIdx.x] = s;
    __syncthreads();
    if (threadIdx.y > 0 || !mine)
        return;
    for (int r = 1; r < RUNS; r++) {
        float4 x = sums[r][threadIdx.x];
        s.x += x.x, s.y += x.y, s.z += x.z, s.w += x.w;
    }
    const float v[4] = {s.x, s.y, s.z, s.w};
    float *to = is_db ? db + n : dw + (size_t)n * K + k;
#pragma unroll
    for (unsigned e = 0; e < 4; e++)
        if (e < left)
            to[e] = add ? to[e] + v[e] : v[e];
}

/* ---- launches ---- */

void products_add_stripes(struct kern *k, float *dw, float *db, const float *partials, unsigned n_stripes, unsigned N,
                          unsigned K, unsigned n_rows, unsigned n_cols, bool add)
{
    const unsigned n = (n_rows * n_cols + (db != NULL ? N : 0)) / 4;

    cuda_chain(k, "weight_gradient_add", weight_gradient_add_k, cuda_ceil_div(n, CUDA_WARP), dim3(CUDA_WARP, RUNS), 0,
               dw, db, partials, n_stripes, N, K, n_rows, n_cols, add);
}

template <int BN, int BK, int WN, int WK, int WT, int TS, int STAGES>
static void gradient_launch(struct kern *k, const struct kern_linear *l, gradient_job job, bool add)
{
    typedef gradient_tile<BN, BK, WN, WK, WT, TS, STAGES> Tile;
    struct cuda *cuda = cuda_of(k);
    const unsigned across = cuda_ceil_div(l->N, BN), stages = cuda_ceil_div(job.M, TS);
    const unsigned of_one = cuda_ceil_div((size_t)job.M * across, (size_t)cuda->n_sm); /* tokens of a multiprocessor */
    const unsigned blocks = (unsigned)cuda->n_sm * (of_one > TWO_FROM ? 2 : 1),
                   most = blocks > across ? blocks / across : 1;
    const size_t bytes = STAGES * (Tile::DY + Tile::X + (job.act != KERN_ACT_NONE ? Tile::DY : 0));
    const void *kernel = (const void *)weight_gradient_k<BN, BK, WN, WK, WT, TS, STAGES>;
    unsigned n_stripes;

    job.n_rows = across * BN;
    job.stripe = cuda_ceil_div(stages, most) * TS;
    n_stripes = cuda_ceil_div(job.M, job.stripe);
    cuda_kernel_prepare(k, kernel, "weight_gradient");
    cuda_chain(k, "weight_gradient", weight_gradient_k<BN, BK, WN, WK, WT, TS, STAGES>, dim3(n_stripes, across), BLOCK,
               bytes, job);
    products_add_stripes(k, l->dw, l->db, job.partials, n_stripes, job.N, job.K, job.n_rows, BK, add);
}

void products_weight_gradient(struct kern *k, const struct kern_linear *l, const void *x, size_t at, size_t rows,
                              bool add)
{
    gradient_job job = {};

    job.partials = (float *)cuda_of(k)->workspace;
    job.dy = (bf16 *)l->dy + at * l->N;
    job.x = (const bf16 *)x;
    job.M = (unsigned)rows, job.N = (unsigned)l->N, job.K = (unsigned)l->K;
    job.act = l->act;
    job.sums = l->db != NULL;
    if (job.act != KERN_ACT_NONE)
        job.y = (const bf16 *)l->y + at * l->N;
    if (l->K > 64)
        gradient_launch<64, 128, 2, 4, 1, 32, 4>(k, l, job, add);
    else if (l->K > 32)
        gradient_launch<64, 64, 2, 2, 2, 64, 3>(k, l, job, add);
    else
        gradient_launch<64, 32, 2, 1, 4, 64, 3>(k, l, job, add);
}
