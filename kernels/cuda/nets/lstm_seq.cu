/* lstm_seq.cu - a whole LSTM sequence in one launch, for widths 32, 64 and 128 in bf16.
 * A block takes 8 NT agents from the first step to the last. Its warps hold W_hh as mma fragments in their registers,
 * 16 units (all four gates) a warp, so that a step reads nothing but its own gates, which come ahead of time through a
 * ring in shared memory. Between steps only h (forward) or the gates' gradient (backward) goes through shared memory,
 * with one barrier a step. c stays f32 in registers. Where reset is 1 a thread puts 0 in place of the state that the
 * next step starts from: resets are exact and free.
 *
 * Fragments as in ptx.cuh: a warp's rows are units, its columns agents. Lane 4 g + c has units 2g, 2g + 1 (rows g and
 * g + 8 of the fragment, permuted so that they are neighbours in memory) of agents 2c, 2c + 1, of every gate.
 * Invariants: (1) sums do not depend on the number of agents or blocks: a step alone gives the bytes that it gives
 * within a sequence; (2) columns after the last agent hold anything, meet no other column, and are never stored. */
#include "kernels/cuda/nets/lstm.h"
#include "kernels/cuda/nets/mma.cuh"
#include "kernels/cuda/number.h"

#define PAD 8 /* bf16 after each row in shared memory: rows then fall on different banks */
#define STAGES 6 /* of the ring: steps that are on their way or in use */
/* Agents of a multiprocessor up to which training takes tiles of 8; more: of 16 (measured with 512 and 2048:
 * bench/notes/cuda.md). */
#define TILE_8_AGENTS 8
#define BLOCKS_EACH(H) ((H) == 128 ? 1 : 2) /* of a multiprocessor: W_hh takes that many registers */

/* Four blocks: 8 rows of shared memory, 32 columns from `from`. */
static __device__ __forceinline__ void load_blocks(uint32_t *r, const bf16 *from, int stride, int lane)
{
    ptx_load_blocks(r, ptx_shared(from + lane % 8 * stride + lane / 8 * 8));
}

static __device__ __forceinline__ void mma(float *acc, const uint32_t *a, uint32_t b0, uint32_t b1)
{
    ptx_mma_bf16(acc, a[0], a[1], a[2], a[3], b0, b1);
}

/* ---- the ring ---- */

/* Which tile of agents and which step; the steps of a tile, then those of the block's next tile. */
struct item {
    size_t row; /* the tile's first agent; l->B and more: no more items */
    size_t i; /* step in order of computation: t = i, backward T - 1 - i */
};

template <int NT> static __device__ __forceinline__ void item_next(struct item *it, const struct kern_lstm *l)
{
    if (++it->i == l->T) {
        it->i = 0;
        it->row += (size_t)gridDim.x * 8 * NT;
    }
}

/* rows of COLS numbers, one after the other in memory, of which n exist. */
template <int H, int ROWS, int COLS>
static __device__ __forceinline__ void copy_rows(bf16 *to, const bf16 *from, size_t n)
{
#pragma unroll
    for (int c = 0; c < ROWS * COLS / 8; c += 2 * H) {
        int chunk = c + (int)threadIdx.x, row = chunk / (COLS / 8), col = chunk % (COLS / 8) * 8;
        if (chunk < ROWS * COLS / 8 && (size_t)row < n)
            ptx_copy16(to + row * (COLS + PAD) + col, from + (size_t)row * COLS + col);
    }
}

template <int ROWS> static __device__ __forceinline__ void copy_resets(uint8_t *to, const uint8_t *from, size_t n)
{
    int row = (int)threadIdx.x;

    if (((uintptr_t)from & 3) == 0 && n >= ROWS) {
        if (row < ROWS / 4)
            ptx_copy4(to + 4 * row, from + 4 * row);
    } else if (row < ROWS && (size_t)row < n) {
        to[row] = from[row];
    }
}

template <int H, int NT> struct forward_stage {
    bf16 gates[8 * NT * (4 * H + PAD)];
    uint8_t reset[16];
};
template <int H, int NT> struct backward_stage {
    bf16 gates[8 * NT * (4 * H + PAD)]; /* then their gradient */
    bf16 dout[8 * NT * (H + PAD)], c_prev[8 * NT * (H + PAD)];
    uint8_t reset[16];
};

template <int H, int NT>
static __device__ __forceinline__ void stage_fill(struct forward_stage<H, NT> *s, const struct kern_lstm *l,
                                                  const struct item *it)
{
    if (it->row < l->B) {
        size_t at = it->i * l->B + it->row, n = l->B - it->row;
        copy_rows<H, 8 * NT, 4 * H>(s->gates, (const bf16 *)l->gates + at * 4 * H, n);
        copy_resets<8 * NT>(s->reset, l->reset + at, n);
    }
    ptx_copy_commit();
}

template <int H, int NT>
static __device__ __forceinline__ void stage_fill(struct backward_stage<H, NT> *s, const struct kern_lstm *l,
                                                  const struct item *it)
{
    if (it->row < l->B) {
        size_t at = (l->T - 1 - it->i) * l->B + it->row, n = l->B - it->row;
        copy_rows<H, 8 * NT, 4 * H>(s->gates, (const bf16 *)l->gates + at * 4 * H, n);
        copy_rows<H, 8 * NT, H>(s->dout, (const bf16 *)l->dout + at * H, n);
        copy_rows<H, 8 * NT, H>(s->c_prev, (const bf16 *)l->c_prev + at * H, n);
        copy_resets<8 * NT>(s->reset, l->reset + at, n);
    }
    ptx_copy_commit();
}

/* The thread's place: two units, and agents 2c, 2c + 1 of each eight. */
struct place {
    int lane, c, unit;
};

static __device__ __forceinline__ struct place place_of(void)
{
    struct place p;
    p.lane = (int)threadIdx.x % CUDA_WARP;
    p.c = p.lane % 4;
    p.unit = (int)threadIdx.x / CUDA_WARP * 16 + p.lane / 4 * 2;
    return p;
}

/* ---- forward ---- */

/* h, c of the thread's units and agents. */
template <int NT> struct state {
    float h[NT][2][2], c[NT][2][2];
};

template <int H, int NT>
static __device__ __forceinline__ void state_load(struct state<NT> *s, const struct kern_lstm *l, const struct place *p,
                                                  size_t first_row)
{
#pragma unroll
    for (int nt = 0; nt < NT; nt++)
#pragma unroll
        for (int e = 0; e < 2; e++) {
            size_t row = first_row + nt * 8 + 2 * p->c + e;
            const float *from = l->state + row * 2 * H + p->unit;
            float2 zero = make_float2(0.0f, 0.0f);
            float2 h = row < l->B ? *(const float2 *)from : zero, c = row < l->B ? *(const float2 *)(from + H) : zero;
            s->h[nt][e][0] = h.x, s->h[nt][e][1] = h.y, s->c[nt][e][0] = c.x, s->c[nt][e][1] = c.y;
        }
}

template <int H, int NT>
static __device__ __forceinline__ void state_store(const struct state<NT> *s, const struct kern_lstm *l,
                                                   const struct place *p, size_t first_row)
{
#pragma unroll
    for (int nt = 0; nt < NT; nt++)
#pragma unroll
        for (int e = 0; e < 2; e++) {
            size_t row = first_row + nt * 8 + 2 * p->c + e;
            float *to = l->state + row * 2 * H + p->unit;
            if (row < l->B) {
                *(float2 *)to = make_float2(s->h[nt][e][0], s->h[nt][e][1]);
                *(float2 *)(to + H) = make_float2(s->c[nt][e][0], s->c[nt][e][1]);
            }
        }
}

/* The state that an item starts from: kept for the way back and put where all warps can read it. */
template <int H, int NT, bool KEEP>
static __device__ __forceinline__ void store_start(bf16 *shared, struct state<NT> *s, const uint8_t *reset,
                                                   const struct kern_lstm *l, const struct place *p,
                                                   const struct item *it)
{
#pragma unroll
    for (int nt = 0; nt < NT; nt++)
#pragma unroll
        for (int e = 0; e < 2; e++) {
            int agent = nt * 8 + 2 * p->c + e;
            size_t row = it->row + agent, at = (it->i * l->B + row) * H + p->unit;
            if (reset[agent])
                s->h[nt][e][0] = s->h[nt][e][1] = s->c[nt][e][0] = s->c[nt][e][1] = 0.0f;
            uint32_t packed = mma_pack(s->h[nt][e][0], s->h[nt][e][1]);
            *(uint32_t *)(shared + agent * (H + PAD) + p->unit) = packed;
            if (KEEP && row < l->B) {
                *(uint32_t *)((bf16 *)l->h_prev + at) = packed;
                *(uint32_t *)((bf16 *)l->c_prev + at) = mma_pack(s->c[nt][e][0], s->c[nt][e][1]);
            }
        }
}

/* The cell: acc of the four gates, for two units of two agents. */
template <int H, bool KEEP>
static __device__ __forceinline__ void forward_cell(float acc[4][4], float h[2][2], float c[2][2],
                                                    const struct kern_lstm *l, const struct place *p, size_t t,
                                                    size_t first_row)
{
#pragma unroll
    for (int e = 0; e < 2; e++) {
        size_t row = first_row + 2 * p->c + e, at = t * l->B + row;
        float x[4][2];
#pragma unroll
        for (int u = 0; u < 2; u++) {
#pragma unroll
            for (int q = 0; q < 4; q++)
                x[q][u] = acc[q][2 * u + e];
            num_sigmoids(&x[0][u], &x[1][u], &x[3][u]);
            x[2][u] = ptx_tanh(x[2][u]);
            c[e][u] = fmaf(x[1][u], c[e][u], x[0][u] * x[2][u]);
            h[e][u] = x[3][u] * ptx_tanh(c[e][u]);
        }
        if (row >= l->B)
            continue;
        *(uint32_t *)((bf16 *)l->out + at * H + p->unit) = mma_pack(h[e][0], h[e][1]);
        if (KEEP)
#pragma unroll
            for (int q = 0; q < 4; q++)
                *(uint32_t *)((bf16 *)l->gates + at * 4 * H + q * H + p->unit) = mma_pack(x[q][0], x[q][1]);
    }
}

/* acc = gates + W_hh h of eight agents. */
template <int H>
static __device__ __forceinline__ void forward_product(float acc[4][4], const bf16 *gates, const bf16 *h,
                                                       const uint32_t w[H / 16][4][4], const struct place *p)
{
#pragma unroll
    for (int q = 0; q < 4; q++)
#pragma unroll
        for (int e = 0; e < 2; e++) {
            uint32_t x = *(const uint32_t *)(gates + (2 * p->c + e) * (4 * H + PAD) + q * H + p->unit);
            acc[q][e] = mma_low(x);
            acc[q][2 + e] = mma_high(x);
        }
#pragma unroll
    for (int k = 0; k < H / 16; k += 2) {
        uint32_t b[4];
        load_blocks(b, h + k * 16, H + PAD, p->lane);
#pragma unroll
        for (int q = 0; q < 4; q++)
            mma(acc[q], w[k][q], b[0], b[1]);
#pragma unroll
        for (int q = 0; q < 4; q++)
            mma(acc[q], w[k + 1][q], b[2], b[3]);
    }
}

template <int H, int NT> struct forward_shared {
    struct forward_stage<H, NT> ring[STAGES];
    bf16 h[2][8 * NT * (H + PAD)];
};

template <int H, int NT, bool KEEP>
static __global__ void __launch_bounds__(2 * H, BLOCKS_EACH(H)) lstm_forward_k(struct kern_lstm l)
{
    extern __shared__ __align__(16) unsigned char memory[];
    struct forward_shared<H, NT> *shared = (struct forward_shared<H, NT> *)memory;
    struct place p = place_of();
    struct item now = {(size_t)blockIdx.x * 8 * NT, 0}, ahead = now;
    struct state<NT> s, next;
    uint32_t w[H / 16][4][4]; /* of k-step and gate */
    const bf16 *from = (const bf16 *)l.w_hh + (size_t)p.unit * H + 2 * p.c;
    int slot = 0, parity = 0;

    for (int i = 0; i < STAGES - 1; i++, item_next<NT>(&ahead, &l))
        stage_fill(&shared->ring[i], &l, &ahead);
    state_load<H, NT>(&s, &l, &p, now.row);
#pragma unroll
    for (int k = 0; k < H / 16; k++)
#pragma unroll
        for (int q = 0; q < 4; q++)
#pragma unroll
            for (int i = 0; i < 4; i++)
                w[k][q][i] = *(const uint32_t *)(from + (size_t)(q * H + i % 2) * H + k * 16 + i / 2 * 8);
    ptx_copy_wait<STAGES - 2>();
    __syncthreads();
    store_start<H, NT, KEEP>(shared->h[0], &s, shared->ring[0].reset, &l, &p, &now);
    while (now.row < l.B) {
        struct item last = now;
        bool ends = now.i + 1 == l.T;

        ptx_copy_wait<STAGES - 3>(); /* this item and the next one's resets */
        __syncthreads();
        stage_fill(&shared->ring[slot == 0 ? STAGES - 1 : slot - 1], &l, &ahead);
        item_next<NT>(&ahead, &l);
        item_next<NT>(&now, &l);
        if (ends)
            state_load<H, NT>(&next, &l, &p, now.row);
#pragma unroll
        for (int nt = 0; nt < NT; nt++) {
            float acc[4][4];
            forward_product<H>(acc, shared->ring[slot].gates + nt * 8 * (4 * H + PAD),
                               shared->h[parity] + nt * 8 * (H + PAD), w, &p);
            forward_cell<H, KEEP>(acc, s.h[nt], s.c[nt], &l, &p, last.i, last.row + nt * 8);
        }
        if (ends) {
            state_store<H, NT>(&s, &l, &p, last.row);
            s = next;
        }
        slot = slot == STAGES - 1 ? 0 : slot + 1;
        parity ^= 1;
        if (now.row < l.B)
            store_start<H, NT, KEEP>(shared->h[parity], &s, shared->ring[slot].reset, &l, &p, &now);
    }
}

/* ---- backward ---- */

/* One agent's two units: gates' gradient into memory and in the place of the gates; dc becomes that of the state
 * before. */
template <int H, int NT>
static __device__ __forceinline__ void backward_cell(struct backward_stage<H, NT> *s, int agent, const float dh_next[2],
                                                     float dc[2], const struct kern_lstm *l, const struct place *p,
                                                     size_t t, size_t first_row)
{
    uint32_t *gates = (uint32_t *)(s->gates + agent * (4 * H + PAD) + p->unit);
    uint32_t dout = *(const uint32_t *)(s->dout + agent * (H + PAD) + p->unit);
    uint32_t c_prev = *(const uint32_t *)(s->c_prev + agent * (H + PAD) + p->unit);
    size_t row = first_row + agent, at = t * l->B + row;
    float d[4][2];

#pragma unroll
    for (int u = 0; u < 2; u++) {
        float i = u ? mma_high(gates[0]) : mma_low(gates[0]), f = u ? mma_high(gates[H / 2]) : mma_low(gates[H / 2]);
        float g = u ? mma_high(gates[H]) : mma_low(gates[H]),
              o = u ? mma_high(gates[3 * H / 2]) : mma_low(gates[3 * H / 2]);
        float prev = u ? mma_high(c_prev) : mma_low(c_prev);
        float shown = ptx_tanh(fmaf(f, prev, i * g));
        float dh = (u ? mma_high(dout) : mma_low(dout)) + dh_next[u];
        float dc_now = dc[u] + dh * o * (1.0f - shown * shown);
        d[0][u] = dc_now * g * i * (1.0f - i);
        d[1][u] = dc_now * prev * f * (1.0f - f);
        d[2][u] = dc_now * i * (1.0f - g * g);
        d[3][u] = dh * shown * o * (1.0f - o);
        dc[u] = dc_now * f;
    }
#pragma unroll
    for (int q = 0; q < 4; q++) {
        uint32_t packed = mma_pack(d[q][0], d[q][1]);
        gates[q * H / 2] = packed;
        if (row < l->B)
            *(uint32_t *)((bf16 *)l->gates + at * 4 * H + q * H + p->unit) = packed;
    }
}

/* dh (agent, unit) of eight agents = W_hh^T times the gates' gradient. */
template <int H>
static __device__ __forceinline__ void backward_product(float dh[2][2], const bf16 *gates, const uint32_t w[H / 4][4],
                                                        const struct place *p)
{
    float acc[4][4] = {}; /* four sums that do not wait for each other */

#pragma unroll
    for (int k = 0; k < H / 4; k += 2) {
        uint32_t b[4];
        load_blocks(b, gates + k * 16, 4 * H + PAD, p->lane);
        mma(acc[k % 4], w[k], b[0], b[1]);
        mma(acc[k % 4 + 1], w[k + 1], b[2], b[3]);
    }
#pragma unroll
    for (int e = 0; e < 2; e++)
#pragma unroll
        for (int u = 0; u < 2; u++)
            dh[e][u] = (acc[0][2 * u + e] + acc[1][2 * u + e]) + (acc[2][2 * u + e] + acc[3][2 * u + e]);
}

template <int H, int NT> struct backward_shared {
    struct backward_stage<H, NT> ring[STAGES];
};

template <int H, int NT>
static __global__ void __launch_bounds__(2 * H, BLOCKS_EACH(H)) lstm_backward_k(struct kern_lstm l)
{
    extern __shared__ __align__(16) unsigned char memory[];
    struct backward_shared<H, NT> *shared = (struct backward_shared<H, NT> *)memory;
    struct place p = place_of();
    struct item now = {(size_t)blockIdx.x * 8 * NT, 0}, ahead = now;
    float dh[NT][2][2] = {}, dc[NT][2][2] = {};
    uint32_t w[H / 4][4]; /* of k-step: W_hh transposed, rows are units */
    const bf16 *from = (const bf16 *)l.w_hh + (size_t)(2 * p.c) * H + p.unit;
    int slot = 0;

    for (int i = 0; i < STAGES - 1; i++, item_next<NT>(&ahead, &l))
        stage_fill(&shared->ring[i], &l, &ahead);
#pragma unroll
    for (int k = 0; k < H / 4; k++)
#pragma unroll
        for (int i = 0; i < 2; i++) {
            uint32_t x = *(const uint32_t *)(from + (size_t)(k * 16 + i * 8) * H);
            uint32_t y = *(const uint32_t *)(from + (size_t)(k * 16 + i * 8 + 1) * H);
            w[k][2 * i] = __byte_perm(x, y, 0x5410);
            w[k][2 * i + 1] = __byte_perm(x, y, 0x7632);
        }
    ptx_copy_wait<STAGES - 2>();
    __syncthreads();
    while (now.row < l.B) {
        struct backward_stage<H, NT> *s = &shared->ring[slot];
        size_t t = l.T - 1 - now.i;

#pragma unroll
        for (int nt = 0; nt < NT; nt++)
#pragma unroll
            for (int e = 0; e < 2; e++)
                backward_cell<H, NT>(s, nt * 8 + 2 * p.c + e, dh[nt][e], dc[nt][e], &l, &p, t, now.row);
        ptx_copy_wait<STAGES - 3>(); /* the next item */
        __syncthreads();
        stage_fill(&shared->ring[slot == 0 ? STAGES - 1 : slot - 1], &l, &ahead);
        item_next<NT>(&ahead, &l);
#pragma unroll
        for (int nt = 0; nt < NT; nt++) {
            backward_product<H>(dh[nt], s->gates + nt * 8 * (4 * H + PAD), w, &p);
#pragma unroll
            for (int e = 0; e < 2; e++) {
                int agent = nt * 8 + 2 * p.c + e;
                size_t row = now.row + agent;
                if (s->reset[agent]) /* what came before does not reach this step */
                    dh[nt][e][0] = dh[nt][e][1] = dc[nt][e][0] = dc[nt][e][1] = 0.0f;
                if (t == 0 && row < l.B) {
                    *(float2 *)(l.dstate + row * H + p.unit) = make_float2(dh[nt][e][0], dh[nt][e][1]);
                    *(float2 *)(l.dstate + (l.B + row) * H + p.unit) = make_float2(dc[nt][e][0], dc[nt][e][1]);
                }
                if (t == 0) /* the next tile begins */
                    dh[nt][e][0] = dh[nt][e][1] = dc[nt][e][0] = dc[nt][e][1] = 0.0f;
            }
        }
        slot = slot == STAGES - 1 ? 0 : slot + 1;
        item_next<NT>(&now, &l);
    }
}

/* ---- launchers ---- */

/* A block for each tile; a single step is short, there a block takes several and reads W_hh once. */
template <int H, int NT> static unsigned n_blocks(const struct kern *k, const struct kern_lstm *l)
{
    size_t tiles = (l->B + 8 * NT - 1) / (8 * NT), most = (size_t)cuda_of(k)->n_sm * (BLOCKS_EACH(H));
    return (unsigned)(l->T > 1 || tiles < most ? tiles : most);
}

template <int H, int NT, bool KEEP> static void launch_forward(struct kern *k, const struct kern_lstm *l)
{
    const int size = (int)sizeof(struct forward_shared<H, NT>);

    cuda_kernel_prepare(k, (const void *)lstm_forward_k<H, NT, KEEP>, "lstm_forward");
    lstm_forward_k<H, NT, KEEP><<<n_blocks<H, NT>(k, l), 2 * H, size, cuda_of(k)->stream>>>(*l);
    cuda_launched(k, "lstm_forward");
}

template <int H> static bool forward(struct kern *k, const struct kern_lstm *l)
{
    bool small = l->B <= TILE_8_AGENTS * (size_t)cuda_of(k)->n_sm;

    if (l->h_prev == NULL)
        launch_forward<H, 1, false>(k, l);
    else if (small)
        launch_forward<H, 1, true>(k, l);
    else
        launch_forward<H, 2, true>(k, l);
    return true;
}

template <int H> static bool backward(struct kern *k, const struct kern_lstm *l)
{
    const int size = (int)sizeof(struct backward_shared<H, 1>);

    cuda_kernel_prepare(k, (const void *)lstm_backward_k<H, 1>, "lstm_backward");
    lstm_backward_k<H, 1><<<n_blocks<H, 1>(k, l), 2 * H, size, cuda_of(k)->stream>>>(*l);
    cuda_launched(k, "lstm_backward");
    return true;
}

/* Both ways or neither. */
template <int H> static bool fits(const struct kern *k)
{
    return sizeof(struct forward_shared<H, 2>) <= cuda_of(k)->shared_max &&
           sizeof(struct backward_shared<H, 1>) <= cuda_of(k)->shared_max;
}

bool cuda_lstm_seq_forward(struct kern *k, const struct kern_lstm *l)
{
    switch (l->H) {
    case 32:
        return fits<32>(k) && forward<32>(k, l);
    case 64:
        return fits<64>(k) && forward<64>(k, l);
    case 128:
        return fits<128>(k) && forward<128>(k, l);
    default:
        return false;
    }
}

bool cuda_lstm_seq_backward(struct kern *k, const struct kern_lstm *l)
{
    switch (l->H) {
    case 32:
        return fits<32>(k) && backward<32>(k, l);
    case 64:
        return fits<64>(k) && backward<64>(k, l);
    case 128:
        return fits<128>(k) && backward<128>(k, l);
    default:
        return false;
    }
}
