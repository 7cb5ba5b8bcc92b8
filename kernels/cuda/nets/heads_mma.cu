/* heads_mma.cu - the policy's last layer, bf16 activations, on tensor cores: bound by reading x, not by arithmetic.
 * Weights and gradients are f32: they go in as sums of bf16 parts, three where the result is f32 (which is exact), two
 * where it is bf16. A warp takes 16 tokens and blocks of 32 columns, of which a lane has 8 in a row: columns are
 * counted in another order inside a block (column 8t + 2q + e is n = 2t + e of tile q), which no sum over columns
 * notices. Invariant: dw and db are added up in a fixed order: tokens of a warp, warps of a block as a tree, blocks. */
#include "kernels/cuda/nets/heads.h"
#include "kernels/cuda/nets/mma.cuh"

#define WARPS 8
#define BLOCK (WARPS * CUDA_WARP)
#define TOKENS 16 /* of a warp at a time */
#define COLS 32 /* of a block of columns */
#define PARTS 3
#define BACKWARD_O_MAX 32
#define BLOCKS_EACH 2 /* of a multiprocessor */

static bool is_wide(const void *a, const void *b)
{
    return (((uintptr_t)a | (uintptr_t)b) & 15) == 0;
}

/* ---- forward ---- */

/* shared: w as b fragments [block of columns][half j][8 outputs][part][lane]: k = 2t, 2t + 1 and 2t + 8, 2t + 9 of half
 * j are columns 8t + 4j + 0 .. 3. */
static __device__ void forward_weights(uint2 *shared, const float *w, unsigned O, unsigned H, unsigned n_tiles)
{
    unsigned n = H / COLS * 2 * n_tiles * CUDA_WARP;

    for (unsigned i = threadIdx.x; i < n; i += BLOCK) {
        unsigned lane = i % CUDA_WARP, at = i / CUDA_WARP, o = at % n_tiles * 8 + lane / 4, j = at / n_tiles;
        uint32_t low[PARTS], high[PARTS];
        float4 x = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        if (o < O)
            x = *(const float4 *)&w[(size_t)o * H + j / 2 * COLS + lane % 4 * 8 + j % 2 * 4];
        mma_split<PARTS>(low, x.x, x.y);
        mma_split<PARTS>(high, x.z, x.w);
        for (int p = 0; p < PARTS; p++)
            shared[(at * PARTS + p) * CUDA_WARP + lane] = make_uint2(low[p], high[p]);
    }
}

template <int NT>
static __global__ void __launch_bounds__(BLOCK)
    heads_forward_mma_k(float *out /* (M, O) */, const bf16 *x /* (M, H) */, const float *w, const float *b, size_t M,
                        unsigned O, unsigned H)
{
    extern __shared__ uint2 fragments[];
    unsigned lane = threadIdx.x % CUDA_WARP, g = lane / 4, t = lane % 4;
    size_t step = (size_t)gridDim.x * WARPS * TOKENS;

    forward_weights(fragments, w, O, H, NT);
    __syncthreads();
    for (size_t m = ((size_t)blockIdx.x * WARPS + threadIdx.x / CUDA_WARP) * TOKENS; m < M; m += step) {
        size_t upper = m + g < M ? m + g : M - 1, lower = m + g + 8 < M ? m + g + 8 : M - 1;
        const bf16 *row0 = x + upper * H + t * 8, *row1 = x + lower * H + t * 8;
        float sum[NT][4] = {};
#pragma unroll 4
        for (unsigned block = 0; block < H / COLS; block++) {
            uint4 x0 = *(const uint4 *)(row0 + block * COLS), x1 = *(const uint4 *)(row1 + block * COLS);
            uint4 a[2] = {make_uint4(x0.x, x1.x, x0.y, x1.y), make_uint4(x0.z, x1.z, x0.w, x1.w)};
            const uint2 *from = fragments + block * 2 * NT * PARTS * CUDA_WARP + lane;
#pragma unroll
            for (int j = 0; j < 2; j++)
#pragma unroll
                for (int n = 0; n < NT; n++)
#pragma unroll
                    for (int p = PARTS - 1; p >= 0; p--) {
                        uint2 wp = from[((j * NT + n) * PARTS + p) * CUDA_WARP];
                        mma_add(sum[n], a[j], wp.x, wp.y);
                    }
        }
#pragma unroll
        for (int n = 0; n < NT; n++)
#pragma unroll
            for (int i = 0; i < 4; i++) {
                size_t row = m + g + i / 2 * 8;
                unsigned o = n * 8 + 2 * t + i % 2;
                if (row < M && o < O)
                    out[row * O + o] = sum[n][i] + b[o];
            }
    }
}

template <int NT>
static void forward_launch(struct kern *k, float *out, const bf16 *x, const float *w, const float *b, size_t M,
                           size_t O, size_t H)
{
    struct cuda *cuda = cuda_of(k);
    size_t shared = H / COLS * 2 * NT * PARTS * CUDA_WARP * sizeof(uint2);
    unsigned grid = cuda_ceil_div(M, WARPS * TOKENS), most = (unsigned)cuda->n_sm * BLOCKS_EACH;

    grid = grid > most ? most : grid;
    cuda_shared_allow(k, (const void *)heads_forward_mma_k<NT>, "heads_forward");
    heads_forward_mma_k<NT><<<grid, BLOCK, shared, cuda->stream>>>(out, x, w, b, M, (unsigned)O, (unsigned)H);
    cuda_launched(k, "heads_forward");
}

bool heads_forward_mma(struct kern *k, float *out, const bf16 *x, const float *w, const float *b, size_t M, size_t O,
                       size_t H)
{
    size_t tiles = (O + 7) / 8;

    if (H % COLS != 0 || tiles > 4 || !is_wide(x, w) ||
        H / COLS * 2 * tiles * PARTS * CUDA_WARP * sizeof(uint2) > cuda_of(k)->shared_max)
        return false;
    if (tiles == 1)
        forward_launch<1>(k, out, x, w, b, M, O, H);
    else if (tiles == 2)
        forward_launch<2>(k, out, x, w, b, M, O, H);
    else if (tiles == 3)
        forward_launch<3>(k, out, x, w, b, M, O, H);
    else
        forward_launch<4>(k, out, x, w, b, M, O, H);
    return true;
}

/* ---- backward ---- */

/* A warp's part: 16 NG outputs and SB blocks of columns, dw as c fragments with rows of outputs. */
template <int NG, int SB> struct back_sums {
    float dw[NG][SB][4][4], db[NG][4];
};

/* w as b fragments: k = outputs 2t, 2t + 1 and 2t + 8, 2t + 9 of group ng, n = g: tile q of a block */
template <int NG, int SB>
static __device__ void backward_weights(uint2 (*shared)[SB][4][2][CUDA_WARP], const float *w, unsigned O, unsigned H,
                                        unsigned col0)
{
    for (unsigned i = threadIdx.x; i < NG * SB * 4 * CUDA_WARP; i += BLOCK) {
        unsigned lane = i % CUDA_WARP, q = i / CUDA_WARP % 4, sb = i / CUDA_WARP / 4 % SB, ng = i / CUDA_WARP / 4 / SB;
        unsigned g = lane / 4, col = col0 + sb * COLS + g / 2 * 8 + 2 * q + g % 2;
        uint32_t low[2], high[2];
        float x[4];
#pragma unroll
        for (int j = 0; j < 4; j++) {
            unsigned o = ng * 16 + lane % 4 * 2 + j % 2 + j / 2 * 8;
            x[j] = o < O ? w[(size_t)o * H + col] : 0.0f;
        }
        mma_split<2>(low, x[0], x[1]);
        mma_split<2>(high, x[2], x[3]);
        shared[ng][sb][q][0][lane] = make_uint2(low[0], high[0]);
        shared[ng][sb][q][1][lane] = make_uint2(low[1], high[1]);
    }
}

/* 16 tokens from m on. */
template <int NG, int SB>
static __device__ __forceinline__ void backward_tokens(struct back_sums<NG, SB> *s, bf16 *dx, const float *dout,
                                                       const bf16 *x, const uint2 (*weights)[SB][4][2][CUDA_WARP],
                                                       size_t m, size_t M, unsigned O, unsigned H, unsigned col0)
{
    unsigned lane = threadIdx.x % CUDA_WARP, g = lane / 4, t = lane % 4;
    size_t rows[2] = {m + g, m + g + 8};
    uint4 in[SB][2];
    uint32_t a[NG][4][PARTS]; /* dout (16 tokens, 16 outputs) */

#pragma unroll
    for (int sb = 0; sb < SB; sb++)
#pragma unroll
        for (int i = 0; i < 2; i++)
            in[sb][i] =
                rows[i] < M ? *(const uint4 *)(x + rows[i] * H + col0 + sb * COLS + t * 8) : make_uint4(0, 0, 0, 0);
#pragma unroll
    for (int ng = 0; ng < NG; ng++)
#pragma unroll
        for (int i = 0; i < 4; i++) { /* i: as in an a fragment */
            unsigned o = ng * 16 + 2 * t + i / 2 * 8;
            const float *from = dout + rows[i % 2] * O + o;
            float d0 = rows[i % 2] < M && o < O ? from[0] : 0.0f, d1 = rows[i % 2] < M && o + 1 < O ? from[1] : 0.0f;
            s->db[ng][i / 2 * 2] += d0;
            s->db[ng][i / 2 * 2 + 1] += d1;
            mma_split<PARTS>(a[ng][i], d0, d1);
        }
#pragma unroll
    for (int sb = 0; sb < SB && dx != NULL; sb++) {
        uint32_t out[2][4];
#pragma unroll
        for (int q = 0; q < 4; q++) {
            float c[4] = {};
#pragma unroll
            for (int ng = 0; ng < NG; ng++) {
                uint4 high = make_uint4(a[ng][0][0], a[ng][1][0], a[ng][2][0], a[ng][3][0]);
                uint4 low = make_uint4(a[ng][0][1], a[ng][1][1], a[ng][2][1], a[ng][3][1]);
                uint2 w_high = weights[ng][sb][q][0][lane], w_low = weights[ng][sb][q][1][lane];
                mma_add(c, low, w_high.x, w_high.y);
                mma_add(c, high, w_low.x, w_low.y);
                mma_add(c, high, w_high.x, w_high.y);
            }
            out[0][q] = mma_pack(c[0], c[1]);
            out[1][q] = mma_pack(c[2], c[3]);
        }
#pragma unroll
        for (int i = 0; i < 2; i++)
            if (rows[i] < M)
                *(uint4 *)(dx + rows[i] * H + col0 + sb * COLS + t * 8) = *(const uint4 *)out[i];
    }
#pragma unroll
    for (int ng = 0; ng < NG; ng++) { /* dout^T: rows are outputs now, columns tokens */
        uint4 at[PARTS];
#pragma unroll
        for (int p = 0; p < PARTS; p++)
            at[p] = make_uint4(mma_transpose(a[ng][0][p]), mma_transpose(a[ng][2][p]), mma_transpose(a[ng][1][p]),
                               mma_transpose(a[ng][3][p]));
#pragma unroll
        for (int sb = 0; sb < SB; sb++)
#pragma unroll
            for (int q = 0; q < 4; q++) {
                uint32_t upper = mma_transpose(((const uint32_t *)&in[sb][0])[q]);
                uint32_t lower = mma_transpose(((const uint32_t *)&in[sb][1])[q]);
#pragma unroll
                for (int p = PARTS - 1; p >= 0; p--)
                    mma_add(s->dw[ng][sb][q], at[p], upper, lower);
            }
    }
}

/* Adds the warps' sums up: the upper half hands over to the lower one, until one is left. */
template <int NG, int SB> static __device__ void backward_tree(struct back_sums<NG, SB> *s, float (*shared)[CUDA_WARP])
{
    constexpr int n = NG * SB * 16 + NG * 4;
    unsigned lane = threadIdx.x % CUDA_WARP, warp = threadIdx.x / CUDA_WARP;
    float *mine = (float *)s;

    for (unsigned half = WARPS / 2; half > 0; half /= 2) {
        __syncthreads();
        if (warp >= half && warp < 2 * half)
#pragma unroll
            for (int i = 0; i < n; i++)
                shared[(warp - half) * n + i][lane] = mine[i];
        __syncthreads();
        if (warp < half)
#pragma unroll
            for (int i = 0; i < n; i++)
                mine[i] += shared[warp * n + i][lane];
    }
}

/* partials (gridDim.x, O H + O): dw, db of the block's tokens. Slab blockIdx.y of SB blocks of columns. */
template <int NG, int SB>
static __global__ void __launch_bounds__(BLOCK, NG *SB > 2 ? 1 : BLOCKS_EACH)
    heads_backward_mma_k(bf16 *dx, float *partials, const float *dout, const bf16 *x, const float *w, size_t M,
                         unsigned O, unsigned H)
{
    extern __shared__ float tree[][CUDA_WARP];
    __shared__ uint2 weights[NG][SB][4][2][CUDA_WARP];
    unsigned col0 = blockIdx.y * SB * COLS, lane = threadIdx.x % CUDA_WARP, warp = threadIdx.x / CUDA_WARP;
    size_t step = (size_t)gridDim.x * WARPS * TOKENS;
    struct back_sums<NG, SB> s = {
    };

    backward_weights<NG, SB>(weights, w, O, H, col0);
    __syncthreads();
    for (size_t m = ((size_t)blockIdx.x * WARPS + warp) * TOKENS; m < M; m += step)
        backward_tokens<NG, SB>(&s, dx, dout, x, weights, m, M, O, H, col0);
    backward_tree<NG, SB>(&s, tree);
    if (warp > 0)
        return;
    unsigned g = lane / 4, t = lane % 4;
    float *to = partials + blockIdx.x * ((size_t)O * H + O);
#pragma unroll
    for (int ng = 0; ng < NG; ng++) {
#pragma unroll
        for (int sb = 0; sb < SB; sb++)
#pragma unroll
            for (int q = 0; q < 4; q++)
#pragma unroll
                for (int i = 0; i < 4; i++) {
                    unsigned o = ng * 16 + g + i / 2 * 8, col = col0 + sb * COLS + 8 * t + 2 * q + i % 2;
                    if (o < O)
                        to[(size_t)o * H + col] = s.dw[ng][sb][q][i];
                }
#pragma unroll
        for (int i = 0; i < 4; i++) {
            unsigned o = ng * 16 + 2 * t + i / 2 * 8 + i % 2;
            float sum = s.db[ng][i];
#pragma unroll
            for (int d = 4; d < CUDA_WARP; d *= 2) /* over g */
                sum += __shfl_xor_sync(0xffffffffu, sum, d);
            if (g == 0 && o < O && blockIdx.y == 0)
                to[(size_t)O * H + o] = sum;
        }
    }
}

template <int NG, int SB>
static void backward_launch(struct kern *k, bf16 *dx, float *dw, float *db, const float *dout, const bf16 *x,
                            const float *w, size_t M, size_t O, size_t H, bool add_dw)
{
    struct cuda *cuda = cuda_of(k);
    unsigned slabs = (unsigned)(H / COLS / SB), each = NG * SB > 2 ? 1 : BLOCKS_EACH;
    unsigned most = ((unsigned)cuda->n_sm * each + slabs - 1) / slabs, grid = cuda_ceil_div(M, WARPS * TOKENS);
    size_t shared = (size_t)WARPS / 2 * (NG * SB * 16 + NG * 4) * CUDA_WARP * sizeof(float);
    float *partials = (float *)cuda->workspace;

    grid = grid < most ? grid : most;
    cuda_shared_allow(k, (const void *)heads_backward_mma_k<NG, SB>, "heads_backward");
    heads_backward_mma_k<NG, SB>
        <<<dim3(grid, slabs), BLOCK, shared, cuda->stream>>>(dx, partials, dout, x, w, M, (unsigned)O, (unsigned)H);
    cuda_launched(k, "heads_backward");
    heads_add_partials(k, dw, db, partials, grid, O * H, O, add_dw);
}

bool heads_backward_mma(struct kern *k, bf16 *dx, float *dw, float *db, const float *dout, const bf16 *x,
                        const float *w, size_t M, size_t O, size_t H, bool add_dw)
{
    size_t blocks = H / COLS;

    if (H % COLS != 0 || O > BACKWARD_O_MAX || !is_wide(x, dx) ||
        (O * H + O) * sizeof(float) * 264 > CUDA_WORKSPACE_BYTES)
        return false;
    if (O <= 16 && blocks % 4 == 0)
        backward_launch<1, 4>(k, dx, dw, db, dout, x, w, M, O, H, add_dw);
    else if (O <= 16 && blocks % 2 == 0)
        backward_launch<1, 2>(k, dx, dw, db, dout, x, w, M, O, H, add_dw);
    else if (O <= 16)
        backward_launch<1, 1>(k, dx, dw, db, dout, x, w, M, O, H, add_dw);
    else if (blocks % 2 == 0)
        backward_launch<2, 2>(k, dx, dw, db, dout, x, w, M, O, H, add_dw);
    else
        backward_launch<2, 1>(k, dx, dw, db, dout, x, w, M, O, H, add_dw);
    return true;
}
