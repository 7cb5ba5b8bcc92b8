/* heads.cu - the policy's last layer: few outputs O, weights and outputs f32. One pass over x each way.
 * Invariant: dw and db are added up in a fixed order: over a thread's tokens, over the rows of threads of a block, over
 * the blocks.
 * Outputs are taken in groups of at most O_MAX, so that what a thread keeps stays in registers. */
#include "kernels/cuda/nets/heads.h"

#define BLOCK 256
#define O_MAX 8 /* outputs of one group */
#define TOKENS_EACH 4 /* tokens of a warp at a time (forward) */
#define BACK_BLOCKS 264 /* at most: two for each multiprocessor of an H100; row "heads" in bench/notes/cuda.md */
#define BACK_AHEAD 4 /* tokens of a thread that are loaded together (backward) */
#define BACK_RUNS 32 /* of rows of partial sums, side by side */
#define BACK_V 4 /* columns of a thread (backward), 1 where rows are of odd length */

/* ---- forward ---- */

/* out (M, O): columns [o0, o0 + NO). A warp has TOKENS_EACH tokens; its lanes share the H columns. */
template <typename T, int NO, int V>
static __global__ void __launch_bounds__(BLOCK)
    heads_forward_k(float *out, const T *x /* (M, H) */, const float *w /* (O, H) */, const float *b, size_t M,
                    unsigned O, unsigned H, unsigned o0)
{
    ptx_chained();
    unsigned lane = threadIdx.x % CUDA_WARP;
    size_t token0 = ((size_t)blockIdx.x * (BLOCK / CUDA_WARP) + threadIdx.x / CUDA_WARP) * TOKENS_EACH;
    float sum[TOKENS_EACH][NO] = {};

    if (token0 >= M)
        return;
    for (unsigned h = lane * V; h < H; h += CUDA_WARP * V) {
        float xs[TOKENS_EACH][V];
#pragma unroll
        for (int i = 0; i < TOKENS_EACH; i++) {
            size_t token = token0 + i < M ? token0 + i : M - 1;
            num_load<V>(xs[i], x + token * H + h);
        }
#pragma unroll
        for (int o = 0; o < NO; o++)
#pragma unroll
            for (int v = 0; v < V; v++) {
                float wi = w[(o0 + o) * H + h + v];
#pragma unroll
                for (int i = 0; i < TOKENS_EACH; i++)
                    sum[i][o] += xs[i][v] * wi;
            }
    }
#pragma unroll
    for (int i = 0; i < TOKENS_EACH; i++)
#pragma unroll
        for (int o = 0; o < NO; o++) {
            float s = num_warp_sum(sum[i][o]);
            if (lane == 0 && token0 + i < M)
                out[(token0 + i) * O + o0 + o] = s + b[o0 + o];
        }
}

template <typename T, int NO>
static void heads_forward_group(struct kern *k, const struct kern_heads_layer *l, size_t o0)
{
    unsigned grid = cuda_ceil_div(l->M, BLOCK / CUDA_WARP * TOKENS_EACH), O = (unsigned)l->O, H = (unsigned)l->H;
    const T *x = (const T *)l->x;

    if (H % 8 == 0 && ((uintptr_t)x & 15) == 0)
        cuda_chain(k, "heads_forward", heads_forward_k<T, NO, 8>, grid, BLOCK, 0, l->out, x, l->w, l->b, l->M, O, H,
                   (unsigned)o0);
    else
        cuda_chain(k, "heads_forward", heads_forward_k<T, NO, 1>, grid, BLOCK, 0, l->out, x, l->w, l->b, l->M, O, H,
                   (unsigned)o0);
}

/* Calls GROUP<T, n>(k, l, o0) for groups of n = O_MAX outputs and, at the end, of what is left. */
#define EACH_GROUP(GROUP)                                                                                              \
    for (size_t o0 = 0; o0 < l->O; o0 += O_MAX) {                                                                      \
        switch (l->O - o0) {                                                                                           \
        case 1:                                                                                                        \
            GROUP<T, 1>(k, l, o0);                                                                                     \
            break;                                                                                                     \
        case 2:                                                                                                        \
            GROUP<T, 2>(k, l, o0);                                                                                     \
            break;                                                                                                     \
        case 3:                                                                                                        \
            GROUP<T, 3>(k, l, o0);                                                                                     \
            break;                                                                                                     \
        case 4:                                                                                                        \
            GROUP<T, 4>(k, l, o0);                                                                                     \
            break;                                                                                                     \
        case 5:                                                                                                        \
            GROUP<T, 5>(k, l, o0);                                                                                     \
            break;                                                                                                     \
        case 6:                                                                                                        \
            GROUP<T, 6>(k, l, o0);                                                                                     \
            break;                                                                                                     \
        case 7:                                                                                                        \
            GROUP<T, 7>(k, l, o0);                                                                                     \
            break;                                                                                                     \
        default:                                                                                                       \
            GROUP<T, O_MAX>(k, l, o0);                                                                                 \
            break;                                                                                                     \
        }                                                                                                              \
    }

template <typename T> static void heads_forward(struct kern *k, const struct kern_heads_layer *l)
{
    if (l->M == 0)
        return;
    if constexpr (sizeof(T) == 2)
        if (heads_forward_mma(k, l))
            return;
    EACH_GROUP(heads_forward_group)
}

/* ---- backward ---- */

/* A thread has V columns for all tokens of its row of threads: their dx, and their dw of NO outputs in registers.
 * Groups after the first add to dx. partials (gridDim.y, NO H + NO): dw, db. */
template <typename T, int NO, int V>
static __global__ void __launch_bounds__(BLOCK)
    heads_backward_k(T *dx /* (M, H) or NULL */, float *partials, const float *dout /* (M, O) */, const T *x,
                     const float *w /* (O, H) */, size_t M, unsigned O, unsigned H, unsigned o0)
{
    ptx_chained();
    __shared__ __align__(16) float sums[BLOCK * V * NO];
    __shared__ float of_db[BLOCK][NO];
    unsigned h = (blockIdx.x * blockDim.x + threadIdx.x) * V;
    size_t step = (size_t)gridDim.y * blockDim.y;
    float dw[NO][V] = {}, db[NO] = {}, wi[NO][V] = {};
    bool mine = h < H;

#pragma unroll
    for (int o = 0; o < NO; o++)
#pragma unroll
        for (int v = 0; v < V; v++)
            wi[o][v] = mine ? w[(o0 + o) * H + h + v] : 0.0f;
    for (size_t m = (size_t)blockIdx.y * blockDim.y + threadIdx.y; m < M && mine; m += BACK_AHEAD * step) {
        float xs[BACK_AHEAD][V], d[BACK_AHEAD][V], g[BACK_AHEAD][NO];
#pragma unroll
        for (int i = 0; i < BACK_AHEAD; i++) {
            const bool there = m + i * step < M;
            const size_t at = there ? m + i * step : M - 1;
            num_load<V>(xs[i], x + at * H + h);
#pragma unroll
            for (int o = 0; o < NO; o++)
                g[i][o] = 0.0f;
            if (there && NO % 4 == 0 && O % 4 == 0)
                num_load<NO>(g[i], dout + at * O + o0);
            else if (there)
#pragma unroll
                for (int o = 0; o < NO; o++)
                    g[i][o] = dout[at * O + o0 + o];
            if (dx != NULL && o0 > 0)
                num_load<V>(d[i], dx + at * H + h);
            else
#pragma unroll
                for (int v = 0; v < V; v++)
                    d[i][v] = 0.0f;
        }
#pragma unroll
        for (int i = 0; i < BACK_AHEAD; i++) {
#pragma unroll
            for (int o = 0; o < NO; o++) {
                db[o] += g[i][o];
#pragma unroll
                for (int v = 0; v < V; v++) {
                    dw[o][v] += g[i][o] * xs[i][v];
                    d[i][v] += g[i][o] * wi[o][v];
                }
            }
            if (dx != NULL && m + i * step < M)
                num_store<V>(dx + (m + i * step) * H + h, d[i]);
        }
    }
    float *to = partials + (size_t)blockIdx.y * (NO * H + NO);
    const unsigned row = blockDim.x * V, at = threadIdx.x * V;
#pragma unroll
    for (int o = 0; o < NO; o++) {
        num_store<V>(sums + (threadIdx.y * NO + o) * row + at, dw[o]);
        if (threadIdx.x == 0)
            of_db[threadIdx.y][o] = db[o];
    }
    __syncthreads();
    const unsigned thread = threadIdx.y * blockDim.x + threadIdx.x;
    for (unsigned i = thread; i < NO * row; i += BLOCK) {
        const unsigned o = i / row, col = blockIdx.x * row + i % row;
        float s = 0.0f;
        for (unsigned y = 0; y < blockDim.y; y++)
            s += sums[y * NO * row + i];
        if (col < H)
            to[o * H + col] = s;
    }
    if (thread < NO && blockIdx.x == 0) {
        float s = 0.0f;
        for (unsigned y = 0; y < blockDim.y; y++)
            s += of_db[y][thread];
        to[NO * H + thread] = s;
    }
}

/* dw (n) and db (n_db) = the rows of partials (rows, n + n_db) added up in a fixed order: BACK_RUNS runs of rows side
 * by side, and then these one after another. add: adds to dw and db. */
static __global__ void __launch_bounds__(CUDA_WARP *BACK_RUNS)
    add_partials_k(float *dw, float *db, const float *partials, unsigned rows, unsigned n, unsigned n_db, bool add)
{
    ptx_chained();
    __shared__ float sums[BACK_RUNS][CUDA_WARP];
    unsigned i = blockIdx.x * CUDA_WARP + threadIdx.x, each = (rows + BACK_RUNS - 1) / BACK_RUNS,
             end = (threadIdx.y + 1) * each;
    float sum = 0.0f, *to = i < n ? dw + i : db + (i - n);

#pragma unroll 8
    for (unsigned r = threadIdx.y * each; r < end && r < rows && i < n + n_db; r++)
        sum += partials[(size_t)r * (n + n_db) + i];
    sums[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.y > 0 || i >= n + n_db)
        return;
    sum = add ? *to : 0.0f;
    for (int r = 0; r < BACK_RUNS; r++)
        sum += sums[r][threadIdx.x];
    *to = sum;
}

template <typename T, int NO>
static void heads_backward_group(struct kern *k, const struct kern_heads_layer *l, size_t o0)
{
    struct cuda *cuda = cuda_of(k);
    const T *x = (const T *)l->x;
    T *dx = (T *)l->dx;
    size_t M = l->M, H = l->H;
    bool wide = H % 8 == 0 && (((uintptr_t)x | (uintptr_t)dx) & 15) == 0;
    unsigned V = wide ? BACK_V : 1, bx = 1, rows, cols;
    float *partials = (float *)cuda->workspace;

    while (bx < 64 && bx * V < H)
        bx *= 2;
    cols = cuda_ceil_div(H, (size_t)bx * V);
    rows = cuda_ceil_div(M, (size_t)(BLOCK / bx) * 4);
    rows = rows < BACK_BLOCKS / cols ? rows : BACK_BLOCKS / cols > 0 ? BACK_BLOCKS / cols : 1;
    if (wide)
        cuda_chain(k, "heads_backward", heads_backward_k<T, NO, BACK_V>, dim3(cols, rows), dim3(bx, BLOCK / bx), 0, dx,
                   partials, l->dout, x, l->w, M, (unsigned)l->O, (unsigned)H, (unsigned)o0);
    else
        cuda_chain(k, "heads_backward", heads_backward_k<T, NO, 1>, dim3(cols, rows), dim3(bx, BLOCK / bx), 0, dx,
                   partials, l->dout, x, l->w, M, (unsigned)l->O, (unsigned)H, (unsigned)o0);
    cuda_chain(k, "heads_backward sums", add_partials_k, cuda_ceil_div(NO * H + NO, CUDA_WARP),
               dim3(CUDA_WARP, BACK_RUNS), 0, l->dw + o0 * H, l->db + o0, partials, rows, (unsigned)(NO * H), NO,
               l->add_dw);
}

template <typename T>
static void heads_backward(struct kern *k, const struct kern_heads_layer *l){EACH_GROUP(heads_backward_group)}

CUDA_ACT_OP(heads_forward, kern_heads_layer) CUDA_ACT_OP(heads_backward, kern_heads_layer)
