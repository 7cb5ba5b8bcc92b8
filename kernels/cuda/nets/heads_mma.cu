/* heads_mma.cu - the policy's last layer, bf16 activations, on tensor cores: bound by reading x, not by arithmetic.
 * Weights are f32: they go in as sums of three bf16 parts, which is exact. A warp takes 16 tokens and blocks of 32
 * columns, of which a lane has 8 in a row: columns are counted in another order inside a block (column 8t + 4j + 2h + e
 * is k = 2t + e of half h of step j), which no sum over columns notices. */
#include "kernels/cuda/nets/heads.h"
#include "kernels/cuda/nets/mma.cuh"

#define WARPS 8
#define BLOCK (WARPS * CUDA_WARP)
#define TOKENS 16 /* of a warp at a time */
#define COLS 32 /* of a block of columns */
#define PARTS 3
#define BLOCKS_EACH 2 /* of a multiprocessor, at most */

/* Of a block: the fragments of w. */
static size_t shared_bytes(size_t H, size_t n_tiles)
{
    return H / COLS * 2 * n_tiles * PARTS * CUDA_WARP * sizeof(uint2);
}

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
    ptx_chained();
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
                        ptx_mma_bf16(sum[n], a[j].x, a[j].y, a[j].z, a[j].w, wp.x, wp.y);
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

template <int NT> static void forward_launch(struct kern *k, const struct kern_heads_layer *l)
{
    struct cuda *cuda = cuda_of(k);
    unsigned grid = cuda_ceil_div(l->M, WARPS * TOKENS), most = (unsigned)cuda->n_sm * BLOCKS_EACH;

    grid = grid > most ? most : grid;
    cuda_kernel_prepare(k, (const void *)heads_forward_mma_k<NT>, "heads_forward");
    cuda_chain(k, "heads_forward", heads_forward_mma_k<NT>, grid, BLOCK, shared_bytes(l->H, NT), l->out,
               (const bf16 *)l->x, l->w, l->b, l->M, (unsigned)l->O, (unsigned)l->H);
}

bool heads_forward_mma(struct kern *k, const struct kern_heads_layer *l)
{
    size_t tiles = (l->O + 7) / 8;

    if (l->H % COLS != 0 || tiles > 4 || (((uintptr_t)l->x | (uintptr_t)l->w) & 15) != 0 ||
        shared_bytes(l->H, tiles) > cuda_of(k)->shared_max)
        return false;
    if (tiles == 1)
        forward_launch<1>(k, l);
    else if (tiles == 2)
        forward_launch<2>(k, l);
    else if (tiles == 3)
        forward_launch<3>(k, l);
    else
        forward_launch<4>(k, l);
    return true;
}
