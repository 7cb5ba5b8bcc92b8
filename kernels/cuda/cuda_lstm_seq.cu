/* cuda_lstm_seq.cu - a whole LSTM sequence in one launch, for widths 32, 64 and 128 in bf16.
 * A block takes 8 NT agents from the first step to the last. Its warps hold W_hh as mma fragments in their registers, 16
 * units (all four gates) a warp, so that a step reads nothing but its own gates; between steps only h (forward) or the
 * gates' gradient (backward) goes through shared memory, double-buffered, with one barrier a step. c stays f32 in
 * registers. Where reset is 1 a thread puts 0 in place of the state it is about to hand on: resets are exact and free.
 *
 * Fragments (m16n8k16): a warp's rows are units, its columns agents. Lane 4 g + c has units 2g, 2g + 1 (rows g and g + 8 of
 * the fragment, permuted so that they are neighbours in memory) of agents 2c, 2c + 1, of every gate.
 * Invariants: (1) sums do not depend on the number of agents or blocks: a step alone gives the bytes that it gives within a
 * sequence; (2) rows behind the last agent are computed from zeros and never stored. */
#include "kernels/cuda/cuda_lstm.h"
#include "kernels/cuda/cuda_num.h"

#define PAD 8 /* bf16 behind each row in shared memory: rows then fall on different banks */

static __device__ __forceinline__ void mma(float *acc, const uint32_t *a, uint32_t b0, uint32_t b1)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
                 "{%0,%1,%2,%3};"
                 : "+f"(acc[0]), "+f"(acc[1]), "+f"(acc[2]), "+f"(acc[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/* Four 8x8 matrices of bf16: 8 rows of shared memory, 32 columns from `from`. */
static __device__ __forceinline__ void load_matrices(uint32_t *r, const bf16 *from, int stride, int lane)
{
    uint32_t at = (uint32_t)__cvta_generic_to_shared(from + lane % 8 * stride + lane / 8 * 8);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(at));
}

static __device__ __forceinline__ uint32_t pack(float a, float b)
{
    __nv_bfloat162 x = __floats2bfloat162_rn(a, b);
    return *(const uint32_t *)&x;
}
static __device__ __forceinline__ float low(uint32_t x)
{
    return __uint_as_float(x << 16);
}
static __device__ __forceinline__ float high(uint32_t x)
{
    return __uint_as_float(x & 0xffff0000u);
}

/* The hardware's tanh: off by 2^-11 at most, a quarter of what rounding to bf16 is. */
static __device__ __forceinline__ float fast_tanh(float x)
{
    float y;
    asm("tanh.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
static __device__ __forceinline__ float fast_sigmoid(float x)
{
    return fmaf(fast_tanh(0.5f * x), 0.5f, 0.5f);
}

/* Where a thread's two units of agents 2c and 2c + 1 of tile nt lie. */
struct place {
    int lane, g, c, unit;
    size_t row; /* of agent 2c in tile 0 */
};

static __device__ __forceinline__ struct place place_of(size_t first_row)
{
    struct place p;
    p.lane = (int)threadIdx.x % CUDA_WARP;
    p.g = p.lane / 4;
    p.c = p.lane % 4;
    p.unit = (int)threadIdx.x / CUDA_WARP * 16 + 2 * p.g;
    p.row = first_row + 2 * p.c;
    return p;
}

/* ---- forward ---- */

template <int H, int NT> struct forward_step {
    uint32_t gates[NT][4][2]; /* of tile, gate, agent: two units */
    uint8_t reset[NT][2]; /* of the step behind it */
};

template <int H, int NT>
static __device__ __forceinline__ void forward_load(struct forward_step<H, NT> *s, const struct cuda_lstm *l,
                                                    const struct place *p, size_t t)
{
#pragma unroll
    for (int nt = 0; nt < NT; nt++)
#pragma unroll
        for (int e = 0; e < 2; e++) {
            size_t row = p->row + nt * 8 + e;
            bool inside = row < l->B && t < l->T;
            const bf16 *from = (const bf16 *)l->gates + (t * l->B + row) * 4 * H + p->unit;
#pragma unroll
            for (int q = 0; q < 4; q++)
                s->gates[nt][q][e] = inside ? *(const uint32_t *)(from + q * H) : 0;
            s->reset[nt][e] = inside && t + 1 < l->T ? l->reset[(t + 1) * l->B + row] : 0;
        }
}

/* The state that a step starts from: kept for the way back and put where all warps can read it. */
template <int H, int NT, bool KEEP>
static __device__ __forceinline__ void forward_hand_on(bf16 *shared, float h[NT][2][2], float c[NT][2][2],
                                                       const uint8_t reset[NT][2], const struct cuda_lstm *l,
                                                       const struct place *p, size_t t)
{
#pragma unroll
    for (int nt = 0; nt < NT; nt++)
#pragma unroll
        for (int e = 0; e < 2; e++) {
            size_t row = p->row + nt * 8 + e, at = (t * l->B + row) * H + p->unit;
            if (reset[nt][e])
                h[nt][e][0] = h[nt][e][1] = c[nt][e][0] = c[nt][e][1] = 0.0f;
            uint32_t packed = pack(h[nt][e][0], h[nt][e][1]);
            *(uint32_t *)(shared + (nt * 8 + 2 * p->c + e) * (H + PAD) + p->unit) = packed;
            if (KEEP && row < l->B) {
                *(uint32_t *)((bf16 *)l->h_prev + at) = packed;
                *(uint32_t *)((bf16 *)l->c_prev + at) = pack(c[nt][e][0], c[nt][e][1]);
            }
        }
}

/* The cell: acc of the four gates, for two units of two agents. */
template <int H, bool KEEP>
static __device__ __forceinline__ void forward_cell(float acc[4][4], float h[2][2], float c[2][2],
                                                    const struct cuda_lstm *l, const struct place *p, size_t t, int nt)
{
#pragma unroll
    for (int e = 0; e < 2; e++) {
        size_t row = p->row + nt * 8 + e, at = t * l->B + row;
        float x[4][2];
#pragma unroll
        for (int u = 0; u < 2; u++) {
            x[0][u] = fast_sigmoid(acc[0][2 * u + e]);
            x[1][u] = fast_sigmoid(acc[1][2 * u + e]);
            x[2][u] = fast_tanh(acc[2][2 * u + e]);
            x[3][u] = fast_sigmoid(acc[3][2 * u + e]);
            c[e][u] = fmaf(x[1][u], c[e][u], x[0][u] * x[2][u]);
            h[e][u] = x[3][u] * fast_tanh(c[e][u]);
        }
        if (row >= l->B)
            continue;
        *(uint32_t *)((bf16 *)l->out + at * H + p->unit) = pack(h[e][0], h[e][1]);
        if (KEEP)
#pragma unroll
            for (int q = 0; q < 4; q++)
                *(uint32_t *)((bf16 *)l->gates + at * 4 * H + q * H + p->unit) = pack(x[q][0], x[q][1]);
    }
}

/* One tile of agents through all steps. */
template <int H, int NT, bool KEEP>
static __device__ __forceinline__ void forward_tile(bf16 *shared, const uint32_t w[H / 16][4][4],
                                                    const struct cuda_lstm *l, size_t first_row)
{
    const int stride = H + PAD;
    struct place p = place_of(first_row);
    struct forward_step<H, NT> next;
    float h[NT][2][2], c[NT][2][2];
    uint8_t reset[NT][2];

#pragma unroll
    for (int nt = 0; nt < NT; nt++)
#pragma unroll
        for (int e = 0; e < 2; e++) {
            size_t row = p.row + nt * 8 + e;
            bool inside = row < l->B;
            const float *state = l->state + row * 2 * H + p.unit;
            float2 zero = make_float2(0.0f, 0.0f);
            float2 h0 = inside ? *(const float2 *)state : zero, c0 = inside ? *(const float2 *)(state + H) : zero;
            h[nt][e][0] = h0.x, h[nt][e][1] = h0.y, c[nt][e][0] = c0.x, c[nt][e][1] = c0.y;
            reset[nt][e] = inside ? l->reset[row] : 1;
        }
    forward_load<H, NT>(&next, l, &p, 0);
    forward_hand_on<H, NT, KEEP>(shared, h, c, reset, l, &p, 0);
    for (size_t t = 0; t < l->T; t++) {
        bf16 *now = shared + (t & 1) * NT * 8 * stride;
        float acc[NT][4][4];

#pragma unroll
        for (int nt = 0; nt < NT; nt++) {
#pragma unroll
            for (int q = 0; q < 4; q++)
#pragma unroll
                for (int e = 0; e < 2; e++) {
                    acc[nt][q][e] = low(next.gates[nt][q][e]);
                    acc[nt][q][2 + e] = high(next.gates[nt][q][e]);
                }
            reset[nt][0] = next.reset[nt][0], reset[nt][1] = next.reset[nt][1];
        }
        __syncthreads();
        forward_load<H, NT>(&next, l, &p, t + 1);
#pragma unroll
        for (int k = 0; k < H / 16; k += 2)
#pragma unroll
            for (int nt = 0; nt < NT; nt++) {
                uint32_t b[4];
                load_matrices(b, now + nt * 8 * stride + k * 16, stride, p.lane);
#pragma unroll
                for (int q = 0; q < 4; q++)
                    mma(acc[nt][q], w[k][q], b[0], b[1]);
#pragma unroll
                for (int q = 0; q < 4; q++)
                    mma(acc[nt][q], w[k + 1][q], b[2], b[3]);
            }
#pragma unroll
        for (int nt = 0; nt < NT; nt++)
            forward_cell<H, KEEP>(acc[nt], h[nt], c[nt], l, &p, t, nt);
        if (t + 1 < l->T)
            forward_hand_on<H, NT, KEEP>(shared + ((t + 1) & 1) * NT * 8 * stride, h, c, reset, l, &p, t + 1);
    }
#pragma unroll
    for (int nt = 0; nt < NT; nt++)
#pragma unroll
        for (int e = 0; e < 2; e++) {
            size_t row = p.row + nt * 8 + e;
            float *state = l->state + row * 2 * H + p.unit;
            if (row < l->B) {
                *(float2 *)state = make_float2(h[nt][e][0], h[nt][e][1]);
                *(float2 *)(state + H) = make_float2(c[nt][e][0], c[nt][e][1]);
            }
        }
}

template <int H, int NT, bool KEEP>
static __global__ void __launch_bounds__(2 * H, H == 128 ? 1 : 2) lstm_forward_k(struct cuda_lstm l)
{
    __shared__ __align__(16) bf16 shared[2 * NT * 8 * (H + PAD)];
    struct place p = place_of(0);
    uint32_t w[H / 16][4][4]; /* of k-step and gate */
    const bf16 *from = (const bf16 *)l.w + (size_t)p.unit * H + 2 * p.c;

#pragma unroll
    for (int k = 0; k < H / 16; k++)
#pragma unroll
        for (int q = 0; q < 4; q++)
#pragma unroll
            for (int i = 0; i < 4; i++)
                w[k][q][i] = *(const uint32_t *)(from + (size_t)(q * H + i % 2) * H + k * 16 + i / 2 * 8);
    for (size_t row = (size_t)blockIdx.x * 8 * NT; row < l.B; row += (size_t)gridDim.x * 8 * NT) {
        forward_tile<H, NT, KEEP>(shared, w, &l, row);
        __syncthreads(); /* the next tile starts with the first buffer again */
    }
}

/* ---- backward ---- */

template <int NT> struct backward_step {
    uint32_t gates[NT][4][2], dout[NT][2], c_prev[NT][2];
    uint8_t reset[NT][2]; /* of the step itself */
};

template <int H, int NT>
static __device__ __forceinline__ void backward_load(struct backward_step<NT> *s, const struct cuda_lstm *l,
                                                     const struct place *p, size_t t)
{
#pragma unroll
    for (int nt = 0; nt < NT; nt++)
#pragma unroll
        for (int e = 0; e < 2; e++) {
            size_t row = p->row + nt * 8 + e, at = t * l->B + row;
            bool inside = row < l->B;
#pragma unroll
            for (int q = 0; q < 4; q++)
                s->gates[nt][q][e] =
                    inside ? *(const uint32_t *)((const bf16 *)l->gates + at * 4 * H + q * H + p->unit) : 0;
            s->dout[nt][e] = inside ? *(const uint32_t *)((const bf16 *)l->dout + at * H + p->unit) : 0;
            s->c_prev[nt][e] = inside ? *(const uint32_t *)((const bf16 *)l->c_prev + at * H + p->unit) : 0;
            s->reset[nt][e] = inside ? l->reset[at] : 0;
        }
}

/* One agent's two units: gates' gradient into memory and shared memory; dc becomes that of the state before. */
template <int H>
static __device__ __forceinline__ void
backward_cell(bf16 *shared, const uint32_t gates[4][2], uint32_t dout, uint32_t c_prev, const float dh_next[2],
              float dc[2], const struct cuda_lstm *l, const struct place *p, size_t t, int nt, int e)
{
    size_t row = p->row + nt * 8 + e, at = t * l->B + row;
    float d[4][2];

#pragma unroll
    for (int u = 0; u < 2; u++) {
        float i = u ? high(gates[0][e]) : low(gates[0][e]), f = u ? high(gates[1][e]) : low(gates[1][e]);
        float g = u ? high(gates[2][e]) : low(gates[2][e]), o = u ? high(gates[3][e]) : low(gates[3][e]);
        float prev = u ? high(c_prev) : low(c_prev);
        float shown = fast_tanh(fmaf(f, prev, i * g));
        float dh = (u ? high(dout) : low(dout)) + dh_next[u];
        float dc_now = dc[u] + dh * o * (1.0f - shown * shown);
        d[0][u] = dc_now * g * i * (1.0f - i);
        d[1][u] = dc_now * prev * f * (1.0f - f);
        d[2][u] = dc_now * i * (1.0f - g * g);
        d[3][u] = dh * shown * o * (1.0f - o);
        dc[u] = dc_now * f;
    }
#pragma unroll
    for (int q = 0; q < 4; q++) {
        uint32_t packed = pack(d[q][0], d[q][1]);
        *(uint32_t *)(shared + (nt * 8 + 2 * p->c + e) * (4 * H + PAD) + q * H + p->unit) = packed;
        if (row < l->B)
            *(uint32_t *)((bf16 *)l->gates + at * 4 * H + q * H + p->unit) = packed;
    }
}

template <int H, int NT>
static __device__ __forceinline__ void backward_tile(bf16 *shared, const uint32_t w[H / 4][4],
                                                     const struct cuda_lstm *l, size_t first_row)
{
    const int stride = 4 * H + PAD;
    struct place p = place_of(first_row);
    struct backward_step<NT> next;
    float dh[NT][2][2] = {}, dc[NT][2][2] = {};

    backward_load<H, NT>(&next, l, &p, l->T - 1);
    for (size_t t = l->T; t-- > 0;) {
        bf16 *now = shared + (t & 1) * NT * 8 * stride;
        struct backward_step<NT> s = next;

        if (t > 0)
            backward_load<H, NT>(&next, l, &p, t - 1);
#pragma unroll
        for (int nt = 0; nt < NT; nt++)
#pragma unroll
            for (int e = 0; e < 2; e++)
                backward_cell<H>(now, s.gates[nt], s.dout[nt][e], s.c_prev[nt][e], dh[nt][e], dc[nt][e], l, &p, t, nt,
                                 e);
        __syncthreads();
#pragma unroll
        for (int nt = 0; nt < NT; nt++) {
            float acc[4][4] = {}; /* four sums that do not wait for each other */
#pragma unroll
            for (int k = 0; k < H / 4; k += 2) {
                uint32_t b[4];
                load_matrices(b, now + nt * 8 * stride + k * 16, stride, p.lane);
                mma(acc[k % 4], w[k], b[0], b[1]);
                mma(acc[k % 4 + 1], w[k + 1], b[2], b[3]);
            }
#pragma unroll
            for (int e = 0; e < 2; e++)
#pragma unroll
                for (int u = 0; u < 2; u++) {
                    float sum = (acc[0][2 * u + e] + acc[1][2 * u + e]) + (acc[2][2 * u + e] + acc[3][2 * u + e]);
                    dh[nt][e][u] = s.reset[nt][e] ? 0.0f : sum; /* what came before does not reach this step */
                    dc[nt][e][u] = s.reset[nt][e] ? 0.0f : dc[nt][e][u];
                }
        }
    }
#pragma unroll
    for (int nt = 0; nt < NT; nt++)
#pragma unroll
        for (int e = 0; e < 2; e++) {
            size_t row = p.row + nt * 8 + e;
            if (row < l->B) {
                *(float2 *)(l->dstate + row * H + p.unit) = make_float2(dh[nt][e][0], dh[nt][e][1]);
                *(float2 *)(l->dstate + (l->B + row) * H + p.unit) = make_float2(dc[nt][e][0], dc[nt][e][1]);
            }
        }
}

template <int H, int NT>
static __global__ void __launch_bounds__(2 * H, H == 128 ? 1 : 2) lstm_backward_k(struct cuda_lstm l)
{
    __shared__ __align__(16) bf16 shared[2 * NT * 8 * (4 * H + PAD)];
    struct place p = place_of(0);
    uint32_t w[H / 4][4]; /* of k-step: W_hh transposed, rows are units */
    const bf16 *from = (const bf16 *)l.w + (size_t)(2 * p.c) * H + p.unit;

#pragma unroll
    for (int k = 0; k < H / 4; k++)
#pragma unroll
        for (int i = 0; i < 2; i++) {
            uint32_t x = *(const uint32_t *)(from + (size_t)(k * 16 + i * 8) * H);
            uint32_t y = *(const uint32_t *)(from + (size_t)(k * 16 + i * 8 + 1) * H);
            w[k][2 * i] = __byte_perm(x, y, 0x5410);
            w[k][2 * i + 1] = __byte_perm(x, y, 0x7632);
        }
    for (size_t row = (size_t)blockIdx.x * 8 * NT; row < l.B; row += (size_t)gridDim.x * 8 * NT) {
        backward_tile<H, NT>(shared, w, &l, row);
        __syncthreads();
    }
}

/* ---- launchers ---- */

/* A block for each tile; a single step is short, there a block takes several and reads W_hh once. */
template <int H, int NT> static unsigned n_blocks(const struct kern *k, const struct cuda_lstm *l)
{
    size_t tiles = (l->B + 8 * NT - 1) / (8 * NT), most = (size_t)cuda_of(k)->n_sm * (H == 128 ? 1 : 2);
    return (unsigned)(l->T > 1 || tiles < most ? tiles : most);
}

template <int H> static void forward(struct kern *k, const struct cuda_lstm *l)
{
    cudaStream_t stream = cuda_of(k)->stream;

    if (l->h_prev == NULL)
        lstm_forward_k<H, 2, false><<<n_blocks<H, 2>(k, l), 2 * H, 0, stream>>>(*l);
    else if (l->B <= 8 * (size_t)cuda_of(k)->n_sm)
        lstm_forward_k<H, 1, true><<<n_blocks<H, 1>(k, l), 2 * H, 0, stream>>>(*l);
    else
        lstm_forward_k<H, 2, true><<<n_blocks<H, 2>(k, l), 2 * H, 0, stream>>>(*l);
    cuda_launched(k, "lstm_forward");
}

template <int H> static void backward(struct kern *k, const struct cuda_lstm *l)
{
    cudaStream_t stream = cuda_of(k)->stream;

    lstm_backward_k<H, 1><<<n_blocks<H, 1>(k, l), 2 * H, 0, stream>>>(*l);
    cuda_launched(k, "lstm_backward");
}

bool cuda_lstm_seq_forward(struct kern *k, const struct cuda_lstm *l)
{
    switch (l->H) {
    case 32:
        forward<32>(k, l);
        return true;
    case 64:
        forward<64>(k, l);
        return true;
    case 128:
        forward<128>(k, l);
        return true;
    default:
        return false;
    }
}

bool cuda_lstm_seq_backward(struct kern *k, const struct cuda_lstm *l)
{
    switch (l->H) {
    case 32:
        backward<32>(k, l);
        return true;
    case 64:
        backward<64>(k, l);
        return true;
    case 128:
        backward<128>(k, l);
        return true;
    default:
        return false;
    }
}
