/* products.cu - see products.h: y = act(x w^T + b) and dx = dy w. A block has the weights of some columns of the result
 * in shared memory and 8 warps, which need not wait for each other: a warp takes 16 tokens at a time straight from
 * memory into registers, and writes whole lines from registers.
 *
 * Rows are read 16 bytes a lane: lane 4g + t has numbers 8t to 8t + 7 of each 32 of row g. So what an instruction takes
 * for k = 2t + e of its half h of 8 and its step j of 16 is number 8t + 4j + 2h + e of the 32, which no sum notices:
 * weights are read in that order. Columns of a result are dealt out the same way, n = 2t + e of tile q being column
 * 8t + 2q + e of 32, so that a lane has 8 neighbours to write: forward by the order in which weights are read; with
 * weights turned, lanes exchange them. */
#include "kernels/cuda/nets/products.h"

#include "kernels/cuda/nets/mma.cuh"
#include "kernels/cuda/number.h"

#define WARPS 8
#define BLOCK (WARPS * CUDA_WARP)
#define TOKENS 16 /* of a warp at a time */
#define TILE 8 /* columns of the result that an instruction makes */
#define LINE 32 /* of which a lane writes 8: 4 tiles */
#define DEPTH 32 /* numbers of a row that a lane has 8 of */
#define PER_SM 2 /* blocks of a multiprocessor, at most */
#define FORWARD_COLS 192 /* of a block, at most */

struct rows_job {
    bf16 *y; /* (M, N) */
    const bf16 *x; /* (M, K) */
    const bf16 *w; /* (N, K), turned: (K, N) */
    const bf16 *b; /* (N); NULL: none */
    unsigned M, N, K;
    unsigned cols; /* of a block, a multiple of what a warp makes at a time */
    enum kern_act act;
    bool add; /* to y, before the bias */
};

/* ---- rows in registers ---- */

/* Eight numbers of a row, of which `left` are there, zeros after them. ALIGN numbers begin at a multiple of their size
 * and are there together. */
template <int ALIGN> static __device__ __forceinline__ uint4 row_load(const bf16 *at, int left)
{
    if constexpr (ALIGN == 8) {
        return left > 0 ? *(const uint4 *)at : make_uint4(0, 0, 0, 0);
    } else if constexpr (ALIGN == 2) {
        const uint32_t *p = (const uint32_t *)at;
        return make_uint4(left > 0 ? p[0] : 0, left > 2 ? p[1] : 0, left > 4 ? p[2] : 0, left > 6 ? p[3] : 0);
    } else {
        const unsigned short *p = (const unsigned short *)at;
        uint32_t x[8];
#pragma unroll
        for (int i = 0; i < 8; i++)
            x[i] = left > i ? p[i] : 0;
        return make_uint4(x[0] | x[1] << 16, x[2] | x[3] << 16, x[4] | x[5] << 16, x[6] | x[7] << 16);
    }
}

/* x: numbers [k0, k0 + KB DEPTH) of rows m0 + g and m0 + g + 8. */
template <int ALIGN, int KB>
static __device__ __forceinline__ void rows_load(uint4 (&x)[2][KB], const rows_job &job, unsigned m0, unsigned k0,
                                                 unsigned g, unsigned t)
{
#pragma unroll
    for (int h = 0; h < 2; h++) {
        unsigned row = m0 + g + h * 8;
        const bf16 *from = job.x + (size_t)(row < job.M ? row : job.M - 1) * job.K + k0 + 8 * t;
        const int left = (int)job.K - (int)(k0 + 8 * t);
#pragma unroll
        for (int b = 0; b < KB; b++)
            x[h][b] = row_load<ALIGN>(from + b * DEPTH, left - b * DEPTH);
    }
}

/* ---- weights in shared memory ---- */

/* Bytes of a row of `cols` weights. Forward they are 4 units of 16 bytes more than a multiple of 8: two rows of which
 * lanes read 4 units each meet in no bank. */
static __host__ __device__ __forceinline__ unsigned weights_row(bool turned, unsigned cols)
{
    return turned ? cols * 2 : (cols / 8 + (cols / 8 % 8 == 4 ? 0 : 4)) * 16;
}

/* Where unit u of row r lies in its row. Turned, one load takes rows 8t + e of a block of 32 (t < 4, e < 2): those are
 * in different banks. */
template <bool TURNED> static __device__ __forceinline__ unsigned weights_unit(unsigned r, unsigned u, unsigned units)
{
    return !TURNED ? u : units == 4 ? u ^ r / 8 % 4 : u ^ (r / 8 % 4 * 2 + r % 2);
}

/* shared (rows, cols) = the first (n_rows, n_cols) of w (.., row_len), and zeros; N numbers at a time. */
template <bool TURNED, int N>
static __device__ __forceinline__ void weights_fetch_by(char *shared, const bf16 *w, unsigned n_rows, unsigned n_cols,
                                                        unsigned row_len, unsigned rows, unsigned cols)
{
    const unsigned units = cols / 8, row = weights_row(TURNED, cols);
    const unsigned lanes = N < 8 ? CUDA_WARP : units >= 16 ? 16 : units >= 8 ? 8 : 4;

    for (unsigned r = threadIdx.x / lanes; r < rows; r += BLOCK / lanes)
        for (unsigned i = threadIdx.x % lanes * N; i < cols; i += lanes * N) {
            bool there = r < n_rows && i < n_cols;
            mma_fetch<N>(shared + r * row + weights_unit<TURNED>(r, i / 8, units) * 16 + i % 8 * 2,
                         w + (there ? (size_t)r * row_len + i : 0), there);
        }
}

template <bool TURNED>
static __device__ __forceinline__ void weights_fetch(char *shared, const bf16 *w, unsigned n_rows, unsigned n_cols,
                                                     unsigned row_len, unsigned rows, unsigned cols)
{
    if (row_len % 8 == 0)
        weights_fetch_by<TURNED, 8>(shared, w, n_rows, n_cols, row_len, rows, cols);
    else if (row_len % 2 == 0)
        weights_fetch_by<TURNED, 2>(shared, w, n_rows, n_cols, row_len, rows, cols);
    else
        weights_fetch_by<TURNED, 1>(shared, w, n_rows, n_cols, row_len, rows, cols);
    ptx_copy_commit();
}

/* ---- results ---- */

/* Word q of lane t of four neighbours goes to word t of lane q. */
static __device__ __forceinline__ void quad_transpose(uint32_t (&word)[4], unsigned t)
{
#pragma unroll
    for (unsigned d = 1; d < 4; d *= 2) {
        const bool upper = (t & d) != 0;
#pragma unroll
        for (unsigned i = 0; i < 4; i++)
            if ((i & d) == 0) {
                uint32_t other = __shfl_xor_sync(0xffffffffu, upper ? word[i] : word[i | d], d);
                word[i] = upper ? other : word[i];
                word[i | d] = upper ? word[i | d] : other;
            }
    }
}

/* What a bf16 holds after the activation; NaN stays NaN. */
static __device__ __forceinline__ float act_of(float x, enum kern_act act)
{
    return act == KERN_ACT_TANH ? tanhf(x) : x < 0.0f ? 0.0f : x;
}

/* Eight neighbours of a row of the result. */
static __device__ __forceinline__ void row_store(bf16 *to, float (&v)[8], const float (&bias)[8], const rows_job &job)
{
    uint32_t pair[4];

    if (job.add) {
        const uint4 old = *(const uint4 *)to;
        const uint32_t before[4] = {old.x, old.y, old.z, old.w};
#pragma unroll
        for (int i = 0; i < 4; i++)
            v[2 * i] += mma_low(before[i]), v[2 * i + 1] += mma_high(before[i]);
    }
#pragma unroll
    for (int i = 0; i < 4; i++) {
        pair[i] = mma_pack(v[2 * i] + bias[2 * i], v[2 * i + 1] + bias[2 * i + 1]);
        if (job.act != KERN_ACT_NONE) /* of the rounded number, as layers of other sizes have it */
            pair[i] = mma_pack(act_of(mma_low(pair[i]), job.act), act_of(mma_high(pair[i]), job.act));
    }
    *(uint4 *)to = make_uint4(pair[0], pair[1], pair[2], pair[3]);
}

/* The sums of 16 tokens and LINE columns from `col`, of which this lane writes 8 from col + 8t. */
template <bool TURNED>
static __device__ __forceinline__ void line_store(const float (*sum)[4] /* of 4 tiles */, const rows_job &job,
                                                  unsigned m0, unsigned col, unsigned g, unsigned t)
{
    const unsigned mine = col + 8 * t;
    float bias[8] = {};

    if (job.b != NULL && mine < job.N)
        num_load<8>(bias, job.b + mine);
#pragma unroll
    for (int h = 0; h < 2; h++) {
        const unsigned row = m0 + g + h * 8;
        float v[8];
#pragma unroll
        for (int i = 0; i < 8; i++)
            v[i] = sum[i / 2][h * 2 + i % 2];
        if (TURNED) {
            uint32_t bits[2][4];
#pragma unroll
            for (int i = 0; i < 8; i++)
                bits[i % 2][i / 2] = __float_as_uint(v[i]);
            quad_transpose(bits[0], t);
            quad_transpose(bits[1], t);
#pragma unroll
            for (int i = 0; i < 8; i++)
                v[i] = __uint_as_float(bits[i % 2][i / 2]);
        }
        if (row < job.M && mine < job.N)
            row_store(job.y + (size_t)row * job.N + mine, v, bias, job);
    }
}

/* ---- products ---- */

/* A warp makes NT tiles at a time. KB times DEPTH numbers of a row are in registers at a time; all of K forward. */
template <int KB, int NT, bool TURNED, int ALIGN>
static __global__ void __launch_bounds__(BLOCK, PER_SM) rows_product_k(const rows_job job)
{
    extern __shared__ __align__(16) char weights[];
    const unsigned lane = threadIdx.x % CUDA_WARP, g = lane / 4, t = lane % 4, r8 = lane % 8;
    const unsigned n_parts = TURNED ? (job.K + KB * DEPTH - 1) / (KB * DEPTH) : 1;
    const unsigned c0 = blockIdx.y * job.cols, cols = job.N - c0 < job.cols ? job.N - c0 : job.cols;
    const unsigned row = weights_row(TURNED, TURNED ? job.cols : KB * DEPTH), step = gridDim.x * WARPS * TOKENS;
    unsigned m0 = (blockIdx.x * WARPS + threadIdx.x / CUDA_WARP) * TOKENS;
    uint4 x[2][KB];

    ptx_chained();
    if (TURNED)
        weights_fetch<true>(weights, job.w + c0, job.K, cols, job.N, n_parts * KB * DEPTH, job.cols);
    else
        weights_fetch<false>(weights, job.w + (size_t)c0 * job.K, cols, job.K, job.K, job.cols, KB * DEPTH);
    if (m0 < job.M)
        rows_load<ALIGN>(x, job, m0, 0, g, t);
    ptx_copy_wait<0>();
    __syncthreads();
    /* forward, this lane's 16 bytes of row 8 (g / 2) + g % 2; turned, its part of loading rows 8t + e + 2i, i < 4 */
    const char *forward = weights + (8 * (g / 2) + g % 2) * row + t * 16;
    const uint32_t turned = ptx_shared(weights) + (8 * (r8 / 2) + r8 % 2 + 2 * (lane / 8)) * row;
    const unsigned turn = weights_unit<TURNED>(8 * (r8 / 2) + r8 % 2, 0, job.cols / 8);

    for (bool loaded = true; m0 < job.M; m0 += step, loaded = false) {
        for (unsigned col = 0; col < cols; col += NT * TILE) {
            float sum[NT][4] = {};
            for (unsigned part = 0; part < n_parts; part++) {
                if (!loaded)
                    rows_load<ALIGN>(x, job, m0, part * KB * DEPTH, g, t);
                loaded = n_parts == 1;
#pragma unroll
                for (int b = 0; b < KB; b++)
#pragma unroll
                    for (int n = 0; n < NT; n++) {
                        uint32_t w[4];
                        if (TURNED) {
                            ptx_load_blocks_turned(w, turned + (part * KB + b) * DEPTH * row +
                                                          ((col / 8 + n) ^ turn) * 16);
                        } else {
                            const uint4 eight =
                                *(const uint4 *)(forward + (col + n / 4 * LINE + n % 4 * 2) * row + b * DEPTH * 2);
                            w[0] = eight.x, w[1] = eight.y, w[2] = eight.z, w[3] = eight.w;
                        }
                        ptx_mma_bf16(sum[n], x[0][b].x, x[1][b].x, x[0][b].y, x[1][b].y, w[0], w[1]);
                        ptx_mma_bf16(sum[n], x[0][b].z, x[1][b].z, x[0][b].w, x[1][b].w, w[2], w[3]);
                    }
            }
#pragma unroll
            for (int n = 0; n < NT; n += 4)
                line_store<TURNED>(sum + n, job, m0, c0 + col + n * TILE, g, t);
        }
    }
}

/* ---- launches ---- */

template <int KB, int NT, bool TURNED, int ALIGN>
static void rows_launch(struct kern *k, const rows_job &job, const char *what)
{
    struct cuda *cuda = cuda_of(k);
    const unsigned deep = cuda_ceil_div(job.K, KB * DEPTH) * KB * DEPTH, across = cuda_ceil_div(job.N, job.cols);
    const unsigned tiles = cuda_ceil_div(job.M, WARPS * TOKENS), most = (unsigned)cuda->n_sm * PER_SM / across;
    const size_t bytes = TURNED ? deep * weights_row(true, job.cols) : job.cols * weights_row(false, deep);
    const unsigned down = tiles < most ? tiles : most > 0 ? most : 1;

    cuda_kernel_prepare(k, (const void *)rows_product_k<KB, NT, TURNED, ALIGN>, what);
    cuda_chain(k, what, rows_product_k<KB, NT, TURNED, ALIGN>, dim3(down, across), BLOCK, bytes, job);
}

/* Columns of a block: as many as there may be when nearly all multiprocessors have a block. */
static unsigned forward_cols(const struct cuda *cuda, const rows_job &job)
{
    const unsigned lines = cuda_ceil_div(job.N, LINE), down = cuda_ceil_div(job.M, WARPS * TOKENS);
    unsigned across = cuda_ceil_div(job.N, FORWARD_COLS);

    while (across < lines && down * across < (unsigned)cuda->n_sm * 9 / 10)
        across++;
    return cuda_ceil_div(lines, across) * LINE;
}

template <int KB> static void forward_launch(struct kern *k, const rows_job &job)
{
    if (job.K % 8 == 0)
        rows_launch<KB, 4, false, 8>(k, job, "linear_forward");
    else if (job.K % 2 == 0)
        rows_launch<KB, 4, false, 2>(k, job, "linear_forward");
    else
        rows_launch<KB, 4, false, 1>(k, job, "linear_forward");
}

bool products_fit(const struct kern_linear *l)
{
    const void *const x = l->from.row != 0 ? l->from.wide : l->x;
    const uintptr_t all =
        (uintptr_t)x | (uintptr_t)l->w | (uintptr_t)l->b | (uintptr_t)l->y | (uintptr_t)l->dy | (uintptr_t)l->dx;

    return l->K <= PRODUCTS_K_MAX && l->N <= PRODUCTS_N_MAX && l->N % 8 == 0 && (l->dx == NULL || l->K % 8 == 0) &&
           l->M <= INT32_MAX && all % 16 == 0;
}

void products_forward(struct kern *k, const struct kern_linear *l, const void *x, size_t at, size_t rows)
{
    rows_job job = {};

    job.y = (bf16 *)l->y + at * l->N;
    job.x = (const bf16 *)x, job.w = (const bf16 *)l->w, job.b = (const bf16 *)l->b;
    job.M = (unsigned)rows, job.N = (unsigned)l->N, job.K = (unsigned)l->K;
    job.act = l->act;
    job.add = l->add_y;
    job.cols = forward_cols(cuda_of(k), job);
    if (l->K > 64)
        forward_launch<4>(k, job);
    else if (l->K > 32)
        forward_launch<2>(k, job);
    else
        forward_launch<1>(k, job);
}

template <int NT> static void input_gradient_launch(struct kern *k, rows_job job)
{
    const unsigned depth = cuda_ceil_div(job.K, DEPTH);

    job.cols = NT * TILE;
    if (depth <= 2)
        rows_launch<2, NT, true, 8>(k, job, "linear_backward");
    else if (depth % 3 == 0 && depth % 4 != 0)
        rows_launch<3, NT, true, 8>(k, job, "linear_backward");
    else
        rows_launch<4, NT, true, 8>(k, job, "linear_backward");
}

void products_input_gradient(struct kern *k, const struct kern_linear *l)
{
    rows_job job = {};

    job.y = (bf16 *)l->dx;
    job.x = (const bf16 *)l->dy, job.w = (const bf16 *)l->w;
    job.M = (unsigned)l->M, job.N = (unsigned)l->K, job.K = (unsigned)l->N;
    job.add = l->add_dx;
    if (l->K > 32)
        input_gradient_launch<8>(k, job);
    else
        input_gradient_launch<4>(k, job);
}
