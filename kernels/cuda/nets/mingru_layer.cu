/* mingru_layer.cu - a MinGRU layer of 64 units over a sequence in bf16, with the product of its gates: one kernel each
 * way. The gates go from the product to the cells through shared memory, and are also written, for the way back; their
 * gradient goes from the cells to its products the same way, and never to memory (bench/notes/cuda.md has the gain). A
 * block has SEGMENTS segments at a time, a warp for each, a lane for two columns, and takes STEPS steps in a round:
 *   forward: gates = x W^T, a warp 48 columns of all tokens of the round; then the cells
 *   backward: the cells' gradient; then dx = highway + dgates W, a warp 16 columns of all tokens, and dW += dgates^T x,
 *   a warp 48 rows, in registers until the end
 * The loads of the next round are under way meanwhile. Invariant: the sums of dW have a fixed order: the tokens of a
 * block, then the blocks (products_add_stripes). */
#include "kernels/cuda/nets/mingru_layer.h"

#include "kernels/cuda/nets/mingru_cell.cuh"
#include "kernels/cuda/nets/mma.cuh"
#include "kernels/cuda/nets/products.h"
#include "kernels/cuda/pack.h"

#define UNITS 64
#define GATES (3 * UNITS)
#define SEGMENTS 4 /* of a block, a warp each */
#define STEPS 8 /* of a round */
#define TOKENS (SEGMENTS * STEPS) /* of a round: step u of segment s is token s STEPS + u */
#define BLOCK (SEGMENTS * CUDA_WARP)
#define PER_SM 2 /* blocks of a multiprocessor: one multiplies while the other is at its cells */
#define MT (GATES / SEGMENTS / 16) /* tiles of 16 gates of a warp */
#define NT (UNITS / 8)

/* Bytes of a row in shared memory: an odd multiple of 16, so that eight rows share no bank. */
#define GATES_ROW (GATES * 2 + 16)
#define ROW (UNITS * 2 + 16)

bool mingru_layer_fits(const struct kern_mingru *l)
{
    const void *const all[] = {l->out, l->h, l->gates, l->x, l->h0, l->dout, l->dx, l->product ? l->product->w : NULL};

    return l->product != NULL && l->H == UNITS && l->T > 0 && l->B > 0 && l->T <= UINT32_MAX / GATES / l->B &&
           packs_fit(16, all, sizeof all / sizeof *all);
}

static unsigned n_blocks(const struct kern *k, const struct kern_mingru *l)
{
    const unsigned blocks = cuda_ceil_div(l->B, SEGMENTS), most = (unsigned)cuda_of(k)->n_sm * PER_SM;
    return blocks < most ? blocks : most;
}

/* ---- forward ---- */

struct forward_job {
    bf16 *out, *h, *gates; /* (T, B, H), (T, B, H), (T, B, 3H) */
    const bf16 *x, *w; /* (T, B, H), (3H, H) */
    const float *h0; /* (B, H) */
    const uint8_t *reset; /* (T, B) */
    unsigned T, B;
};

struct forward_shared {
    __align__(16) char gates[TOKENS * GATES_ROW];
    __align__(16) char x[TOKENS * ROW];
};

/* The gates of a round's tokens, this warp's columns, whose weights are w. */
static __device__ __forceinline__ void forward_product(forward_shared &s, const uint32_t (&w)[MT * 2][UNITS / 16][2],
                                                       unsigned warp, unsigned lane)
{
    const uint32_t x = ptx_shared(s.x) + lane % 16 * ROW + lane / 16 * 16;

#pragma unroll
    for (int m = 0; m < TOKENS / 16; m++) {
        float sum[MT * 2][4] = {};
        uint32_t a[UNITS / 16][4];
#pragma unroll
        for (int k = 0; k < UNITS / 16; k++)
            ptx_load_blocks(a[k], x + m * 16 * ROW + k * 32);
#pragma unroll
        for (int k = 0; k < UNITS / 16; k++)
#pragma unroll
            for (int n = 0; n < MT * 2; n++)
                ptx_mma_bf16(sum[n], a[k][0], a[k][1], a[k][2], a[k][3], w[n][k][0], w[n][k][1]);
        char *to = s.gates + (m * 16 + lane / 4) * GATES_ROW + (warp * MT * 16 + lane % 4 * 2) * 2;
#pragma unroll
        for (int n = 0; n < MT * 2; n++) {
            *(uint32_t *)(to + n * 16) = mma_pack(sum[n][0], sum[n][1]);
            *(uint32_t *)(to + 8 * GATES_ROW + n * 16) = mma_pack(sum[n][2], sum[n][3]);
        }
    }
}

static __global__ void __launch_bounds__(BLOCK, PER_SM) layer_forward_k(const forward_job job)
{
    ptx_chained();
    extern __shared__ __align__(16) char memory[];
    forward_shared &s = *(forward_shared *)memory;
    const unsigned warp = threadIdx.x / CUDA_WARP, lane = threadIdx.x % CUDA_WARP;
    uint32_t w[MT * 2][UNITS / 16][2];

#pragma unroll
    for (int n = 0; n < MT * 2; n++)
#pragma unroll
        for (int k = 0; k < UNITS / 16; k++)
#pragma unroll
            for (int half = 0; half < 2; half++)
                w[n][k][half] = *(const uint32_t *)(job.w + (warp * MT * 16 + n * 8 + lane / 4) * UNITS + k * 16 +
                                                    half * 8 + lane % 4 * 2);
    for (unsigned b0 = blockIdx.x * SEGMENTS; b0 < job.B; b0 += gridDim.x * SEGMENTS) {
        const bool there = b0 + warp < job.B;
        const unsigned b = there ? b0 + warp : job.B - 1;
        float2 h = ((const float2 *)(job.h0 + (size_t)b * UNITS))[lane];
        uint32_t next[STEPS];
        uint8_t next_reset[STEPS];

        auto fetch = [&](unsigned t0) {
#pragma unroll
            for (unsigned u = 0; u < STEPS; u++) {
                const size_t at = (size_t)(t0 + u < job.T ? t0 + u : job.T - 1) * job.B + b;
                next[u] = ((const uint32_t *)job.x)[at * (UNITS / 2) + lane];
                next_reset[u] = job.reset[at];
            }
        };
        fetch(0);
        for (unsigned t0 = 0; t0 < job.T; t0 += STEPS) {
            uint32_t x[STEPS];
            uint8_t reset[STEPS];
#pragma unroll
            for (unsigned u = 0; u < STEPS; u++) {
                x[u] = next[u], reset[u] = next_reset[u];
                ((uint32_t *)(s.x + (warp * STEPS + u) * ROW))[lane] = x[u];
            }
            if (t0 + STEPS < job.T)
                fetch(t0 + STEPS);
            __syncthreads();
            forward_product(s, w, warp, lane);
            __syncthreads();
            uint32_t a[STEPS], g[STEPS], p[STEPS], y[STEPS], state[STEPS];
#pragma unroll
            for (unsigned u = 0; u < STEPS; u++) {
                const uint32_t *gates = (const uint32_t *)(s.gates + (warp * STEPS + u) * GATES_ROW) + lane;
                a[u] = gates[0], g[u] = gates[UNITS / 2], p[u] = gates[UNITS];
            }
#pragma unroll
            for (unsigned u = 0; u < STEPS; u++) {
                h.x = reset[u] != 0 ? 0.0f : h.x, h.y = reset[u] != 0 ? 0.0f : h.y;
                const float y0 = mingru_cell(mma_low(a[u]), mma_low(g[u]), mma_low(p[u]), mma_low(x[u]), &h.x);
                const float y1 = mingru_cell(mma_high(a[u]), mma_high(g[u]), mma_high(p[u]), mma_high(x[u]), &h.y);
                y[u] = mma_pack(y0, y1), state[u] = mma_pack(h.x, h.y);
            }
#pragma unroll
            for (unsigned u = 0; u < STEPS; u++) {
                const size_t at = (size_t)(t0 + u) * job.B + b;
                uint32_t *to = (uint32_t *)(job.gates + at * GATES) + lane;
                if (!there || t0 + u >= job.T)
                    break;
                to[0] = a[u], to[UNITS / 2] = g[u], to[UNITS] = p[u];
                ((uint32_t *)(job.h + at * UNITS))[lane] = state[u];
                ((uint32_t *)(job.out + at * UNITS))[lane] = y[u];
            }
        }
    }
}

void mingru_layer_forward(struct kern *k, const struct kern_mingru *l)
{
    forward_job job = {};

    job.out = (bf16 *)l->out, job.h = (bf16 *)l->h, job.gates = (bf16 *)l->product->y;
    job.x = (const bf16 *)l->x, job.w = (const bf16 *)l->product->w;
    job.h0 = l->h0, job.reset = l->reset;
    job.T = (unsigned)l->T, job.B = (unsigned)l->B;
    cuda_kernel_prepare(k, (const void *)layer_forward_k, "mingru_forward");
    cuda_chain(k, "mingru_forward", layer_forward_k, n_blocks(k, l), BLOCK, sizeof(forward_shared), job);
}

/* ---- backward ---- */

struct backward_job {
    float *partials; /* (blocks, 3H, H) */
    bf16 *dx; /* (T, B, H) */
    const bf16 *dout, *h, *gates, *x; /* (T, B, H), (T, B, H), (T, B, 3H), (T, B, H) */
    const bf16 *w; /* (3H, H) */
    const float *h0; /* (B, H) */
    const uint8_t *reset; /* (T, B) */
    int T;
    unsigned B;
};

struct backward_shared {
    __align__(16) char w[GATES * ROW];
    __align__(16) char dgates[TOKENS * GATES_ROW];
    __align__(16) char x[TOKENS * ROW];
    __align__(16) char highway[TOKENS * ROW];
};

/* What a step of a lane reads. */
struct backward_in {
    uint32_t a, g, p, x, dout, before; /* before: the state that the step before left */
    uint8_t reset;
};

static __device__ __forceinline__ void backward_fetch(backward_in &in, const backward_job &job, int t, unsigned b,
                                                      unsigned lane)
{
    const unsigned at = (unsigned)(t > 0 ? t : 0) * job.B + b, before = (unsigned)(t > 1 ? t - 1 : 0) * job.B + b;
    const uint32_t *row = (const uint32_t *)job.gates + at * (GATES / 2) + lane;

    in.a = row[0];
    in.g = row[UNITS / 2];
    in.p = row[UNITS];
    in.x = ((const uint32_t *)job.x)[at * (UNITS / 2) + lane];
    in.dout = ((const uint32_t *)job.dout)[at * (UNITS / 2) + lane];
    in.before = ((const uint32_t *)job.h)[before * (UNITS / 2) + lane];
    in.reset = job.reset[at];
}

/* One step of a lane's two columns: from the gradient of the states after it (carry) to that of the states before. A
 * token that is not there has no gradient. */
static __device__ __forceinline__ void backward_step(backward_shared &s, const backward_in &in, float2 &carry,
                                                     float2 state, float2 before, unsigned token, bool there,
                                                     unsigned lane)
{
    const mingru_gates low = {mma_low(in.a), mma_low(in.g), mma_low(in.p)};
    const mingru_gates high = {mma_high(in.a), mma_high(in.g), mma_high(in.p)};
    const bool reset = in.reset != 0;
    float2 highway;
    const mingru_gates d0 =
        mingru_cell_gradient(low, mma_low(in.x), mma_low(in.dout), state.x, before.x, reset, &carry.x, &highway.x);
    const mingru_gates d1 =
        mingru_cell_gradient(high, mma_high(in.x), mma_high(in.dout), state.y, before.y, reset, &carry.y, &highway.y);

    uint32_t *to = (uint32_t *)(s.dgates + token * GATES_ROW) + lane;
    to[0] = there ? mma_pack(d0.a, d1.a) : 0;
    to[UNITS / 2] = there ? mma_pack(d0.g, d1.g) : 0;
    to[UNITS] = there ? mma_pack(d0.p, d1.p) : 0;
    ((uint32_t *)(s.x + token * ROW))[lane] = in.x;
    ((uint32_t *)(s.highway + token * ROW))[lane] = mma_pack(highway.x, highway.y);
}

/* dx of the tokens of a round whose last step is t0, this warp's 16 columns. */
static __device__ __forceinline__ void backward_input_gradient(const backward_shared &s, const backward_job &job,
                                                               int t0, unsigned b0, unsigned warp, unsigned lane)
{
    const uint32_t dgates = ptx_shared(s.dgates) + lane % 16 * GATES_ROW + lane / 16 * 16;
    const uint32_t w = ptx_shared(s.w) + lane % 16 * ROW + warp * 32 + lane / 16 * 16;
    float sum[TOKENS / 16][2][4] = {};
    uint32_t a[2][TOKENS / 16][4], b[2][4];

    auto load = [&](int k) {
        ptx_load_blocks_turned(b[k % 2], w + k * 16 * ROW);
#pragma unroll
        for (int m = 0; m < TOKENS / 16; m++)
            ptx_load_blocks(a[k % 2][m], dgates + m * 16 * GATES_ROW + k * 32);
    };
    load(0);
#pragma unroll
    for (int k = 0; k < GATES / 16; k++) {
        if (k + 1 < GATES / 16)
            load(k + 1);
#pragma unroll
        for (int m = 0; m < TOKENS / 16; m++)
#pragma unroll
            for (int n = 0; n < 2; n++)
                ptx_mma_bf16(sum[m][n], a[k % 2][m][0], a[k % 2][m][1], a[k % 2][m][2], a[k % 2][m][3], b[k % 2][2 * n],
                             b[k % 2][2 * n + 1]);
    }
#pragma unroll
    for (int m = 0; m < TOKENS / 16; m++)
#pragma unroll
        for (int half = 0; half < 2; half++) {
            const unsigned token = m * 16 + half * 8 + lane / 4, segment = b0 + token / STEPS;
            const int t = t0 - (int)(token % STEPS);
#pragma unroll
            for (int n = 0; n < 2; n++) {
                const unsigned column = warp * 16 + n * 8 + lane % 4 * 2;
                const uint32_t highway = *(const uint32_t *)(s.highway + token * ROW + column * 2);
                if (t >= 0 && segment < job.B)
                    *(uint32_t *)(job.dx + ((size_t)t * job.B + segment) * UNITS + column) =
                        mma_pack(sum[m][n][half * 2] + mma_low(highway), sum[m][n][half * 2 + 1] + mma_high(highway));
            }
        }
}

/* This warp's rows of dW += those of the round. */
static __device__ __forceinline__ void backward_weight_gradient(float (&dw)[MT][NT][4], const backward_shared &s,
                                                                unsigned warp, unsigned lane)
{
    const uint32_t dgates =
        ptx_shared(s.dgates) + (lane % 8 + lane / 16 * 8) * GATES_ROW + (warp * MT * 16 + lane / 8 % 2 * 8) * 2;
    const uint32_t x = ptx_shared(s.x) + lane % 16 * ROW + lane / 16 * 16;

#pragma unroll
    for (int k = 0; k < TOKENS / 16; k++) {
        uint32_t a[MT][4], b[2][4];
        ptx_load_blocks_turned(b[0], x + k * 16 * ROW);
#pragma unroll
        for (int m = 0; m < MT; m++)
            ptx_load_blocks_turned(a[m], dgates + k * 16 * GATES_ROW + m * 32);
#pragma unroll
        for (int n = 0; n < NT / 2; n++) {
            if (n + 1 < NT / 2)
                ptx_load_blocks_turned(b[(n + 1) % 2], x + k * 16 * ROW + (n + 1) * 32);
#pragma unroll
            for (int m = 0; m < MT; m++) {
                ptx_mma_bf16(dw[m][2 * n], a[m][0], a[m][1], a[m][2], a[m][3], b[n % 2][0], b[n % 2][1]);
                ptx_mma_bf16(dw[m][2 * n + 1], a[m][0], a[m][1], a[m][2], a[m][3], b[n % 2][2], b[n % 2][3]);
            }
        }
    }
}

static __global__ void __launch_bounds__(BLOCK, PER_SM) layer_backward_k(const backward_job job)
{
    ptx_chained();
    extern __shared__ __align__(16) char memory[];
    backward_shared &s = *(backward_shared *)memory;
    const unsigned warp = threadIdx.x / CUDA_WARP, lane = threadIdx.x % CUDA_WARP;
    float dw[MT][NT][4] = {};
    backward_in in[STEPS];

    for (unsigned i = threadIdx.x; i < GATES * UNITS / 8; i += BLOCK)
        *(uint4 *)(s.w + i / (UNITS / 8) * ROW + i % (UNITS / 8) * 16) = ((const uint4 *)job.w)[i];
    for (unsigned b0 = blockIdx.x * SEGMENTS; b0 < job.B; b0 += gridDim.x * SEGMENTS) {
        const bool there = b0 + warp < job.B;
        const unsigned b = there ? b0 + warp : job.B - 1;
        const float2 first = ((const float2 *)(job.h0 + (size_t)b * UNITS))[lane];
        const uint32_t last = ((const uint32_t *)(job.h + ((size_t)(job.T - 1) * job.B + b) * UNITS))[lane];
        float2 carry = make_float2(0.0f, 0.0f), state = make_float2(mma_low(last), mma_high(last));

#pragma unroll
        for (int u = 0; u < STEPS; u++)
            backward_fetch(in[u], job, job.T - 1 - u, b, lane);
        for (int t0 = job.T - 1; t0 >= 0; t0 -= STEPS) {
#pragma unroll
            for (int u = 0; u < STEPS; u++) {
                const int t = t0 - u;
                const float2 before = t > 0 ? make_float2(mma_low(in[u].before), mma_high(in[u].before)) : first;
                backward_step(s, in[u], carry, state, before, warp * STEPS + u, there && t >= 0, lane);
                state = before;
                backward_fetch(in[u], job, t - STEPS, b, lane); /* unused in the last round: a branch would cost more */
            }
            __syncthreads();
            backward_input_gradient(s, job, t0, b0, warp, lane);
            backward_weight_gradient(dw, s, warp, lane);
            __syncthreads();
        }
    }
    float *to = job.partials + ((size_t)blockIdx.x * GATES + warp * MT * 16 + lane / 4) * UNITS + lane % 4 * 2;
#pragma unroll
    for (int m = 0; m < MT; m++)
#pragma unroll
        for (int n = 0; n < NT; n++) {
            *(float2 *)(to + m * 16 * UNITS + n * 8) = make_float2(dw[m][n][0], dw[m][n][1]);
            *(float2 *)(to + (m * 16 + 8) * UNITS + n * 8) = make_float2(dw[m][n][2], dw[m][n][3]);
        }
}

void mingru_layer_backward(struct kern *k, const struct kern_mingru *l)
{
    const unsigned blocks = n_blocks(k, l);
    backward_job job = {};

    job.partials = (float *)cuda_of(k)->workspace;
    job.dx = (bf16 *)l->dx;
    job.dout = (const bf16 *)l->dout, job.h = (const bf16 *)l->h, job.gates = (const bf16 *)l->gates;
    job.x = (const bf16 *)l->x, job.w = (const bf16 *)l->product->w;
    job.h0 = l->h0, job.reset = l->reset;
    job.T = (int)l->T, job.B = (unsigned)l->B;
    cuda_kernel_prepare(k, (const void *)layer_backward_k, "mingru_backward");
    cuda_chain(k, "mingru_backward", layer_backward_k, blocks, BLOCK, sizeof(backward_shared), job);
    products_add_stripes(k, l->product->dw, NULL, job.partials, blocks, GATES, UNITS, GATES, UNITS, l->product->add_dw);
}
