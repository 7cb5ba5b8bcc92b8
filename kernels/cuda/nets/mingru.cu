/* mingru.cu - the MinGRU layer: one step, a sequence, and its gradient (formulas in mingru_cell.cuh; small layers over a
 * sequence in mingru_layer.cu). A thread takes V neighbouring columns of one segment from the first step to the last (or
 * back), with the state in registers. The numbers of STEPS steps are on their way while those of the STEPS before are
 * worked on: what limits all three kernels is memory. */
#include "kernels/cuda/nets/mingru_cell.cuh"
#include "kernels/cuda/nets/mingru_layer.h"
#include "kernels/cuda/pack.h"

#define MINGRU_BLOCK 64
#define STEP_BLOCK 128
#define STEPS 8 /* table "MinGRU over time" in bench/notes/cuda.md, and so are two columns of a thread */

/* ---- one step ---- */

template <typename T, int V>
static __global__ void __launch_bounds__(STEP_BLOCK)
    mingru_step_k(T *out /* (N, H) */, float *h /* (N, H) */, const T *gates /* (N, 3H) */, const T *x /* (N, H) */,
                  const uint8_t *reset /* (N) */, unsigned N, unsigned H)
{
    unsigned n_packs = H / V, at = blockIdx.x * STEP_BLOCK + threadIdx.x;
    unsigned n = at / n_packs, j = at % n_packs * V;
    float a[V], g[V], p[V], in[V], state[V], y[V];

    if (n >= N)
        return;
    const T *row = gates + (size_t)n * 3 * H + j;
    size_t own = (size_t)n * H + j;
    pack_open(a, pack_load<T, V>(row));
    pack_open(g, pack_load<T, V>(row + H));
    pack_open(p, pack_load<T, V>(row + 2 * H));
    pack_open(in, pack_load<T, V>(x + own));
    pack_open(state, pack_load<float, V>(h + own));
    bool from_zero = reset[n] != 0;
#pragma unroll
    for (int v = 0; v < V; v++) {
        state[v] = from_zero ? 0.0f : state[v];
        y[v] = mingru_cell(a[v], g[v], p[v], in[v], &state[v]);
    }
    pack_store<float, V>(h + own, state);
    pack_store<T, V>(out + own, y);
}

template <typename T> static void mingru_step(struct kern *k, const struct kern_mingru *l)
{
    const void *const acts[] = {l->out, l->gates, l->x};
    const T *gates = (const T *)l->gates, *x = (const T *)l->x;
    T *out = (T *)l->out;
    const int V = 4;
    unsigned B = (unsigned)l->B, H = (unsigned)l->H;
    cudaStream_t stream = cuda_of(k)->stream;

    if (H % V == 0 && packs_fit(V * sizeof(T), acts, 3) && (uintptr_t)l->state % 16 == 0)
        mingru_step_k<T, V><<<cuda_ceil_div(l->B * (l->H / V), STEP_BLOCK), STEP_BLOCK, 0, stream>>>(
            out, l->state, gates, x, l->reset, B, H);
    else
        mingru_step_k<T, 1><<<cuda_ceil_div(l->B * l->H, STEP_BLOCK), STEP_BLOCK, 0, stream>>>(out, l->state, gates, x,
                                                                                               l->reset, B, H);
    cuda_launched(k, "mingru_step");
}

/* ---- a sequence ---- */

template <typename T> static void product_forward(struct kern *k, const struct kern_linear *l)
{
    (sizeof(T) == 2 ? cuda_linear_forward_bf16 : cuda_linear_forward_f32)(k, l);
}

template <typename T> static void product_backward(struct kern *k, const struct kern_linear *l)
{
    (sizeof(T) == 2 ? cuda_linear_backward_bf16 : cuda_linear_backward_f32)(k, l);
}

/* What one step of one thread reads on the way forward. */
template <typename T, int V> struct forward_in {
    pack<T, V> a, g, p, x;
    uint8_t reset;
};

template <typename T, int V>
static __device__ __forceinline__ void forward_fetch(forward_in<T, V> (&in)[STEPS], const T *gates, const T *x,
                                                     const uint8_t *reset, unsigned t, unsigned Tn, size_t B, size_t H)
{
#pragma unroll
    for (unsigned u = 0; u < STEPS; u++) {
        size_t at = (t + u < Tn ? t + u : Tn - 1) * B;
        const T *row = gates + at * 3 * H;
        in[u].a = pack_load<T, V>(row);
        in[u].g = pack_load<T, V>(row + H);
        in[u].p = pack_load<T, V>(row + 2 * H);
        in[u].x = pack_load<T, V>(x + at * H);
        in[u].reset = reset[at];
    }
}

template <typename T, int V>
static __global__ void __launch_bounds__(MINGRU_BLOCK)
    mingru_forward_k(T *out /* (T, B, H) */, T *h /* (T, B, H) */, const T *gates /* (T, B, 3H) */,
                     const T *x /* (T, B, H) */, const float *h0 /* (B, H) */, const uint8_t *reset /* (T, B) */,
                     unsigned Tn, size_t B, size_t H)
{
    ptx_chained();
    size_t n_packs = H / V, i = (size_t)blockIdx.x * MINGRU_BLOCK + threadIdx.x;
    size_t b = i / n_packs, j = i % n_packs * V;
    forward_in<T, V> now[STEPS], next[STEPS];
    float state[V];

    if (b >= B)
        return;
    gates += b * 3 * H + j, x += b * H + j, reset += b;
    forward_fetch(next, gates, x, reset, 0, Tn, B, H);
    pack_open(state, pack_load<float, V>(h0 + b * H + j));
    for (unsigned t0 = 0; t0 < Tn; t0 += STEPS) {
#pragma unroll
        for (int u = 0; u < STEPS; u++)
            now[u] = next[u];
        if (t0 + STEPS < Tn)
            forward_fetch(next, gates, x, reset, t0 + STEPS, Tn, B, H);
#pragma unroll
        for (unsigned u = 0; u < STEPS; u++) {
            float a[V], g[V], p[V], in[V], y[V];
            size_t at = ((t0 + u) * B + b) * H + j;
            if (t0 + u >= Tn)
                break;
            pack_open(a, now[u].a);
            pack_open(g, now[u].g);
            pack_open(p, now[u].p);
            pack_open(in, now[u].x);
#pragma unroll
            for (int v = 0; v < V; v++) {
                state[v] = now[u].reset != 0 ? 0.0f : state[v];
                y[v] = mingru_cell(a[v], g[v], p[v], in[v], &state[v]);
            }
            pack_store<T, V>(h + at, state);
            pack_store<T, V>(out + at, y);
        }
    }
}

template <typename T> static void mingru_forward(struct kern *k, const struct kern_mingru *l)
{
    const void *const acts[] = {l->out, l->h, l->gates, l->x};
    const T *gates = (const T *)l->gates, *x = (const T *)l->x;
    T *out = (T *)l->out, *h = (T *)l->h;
    const int V = 2;
    size_t B = l->B, H = l->H;

    if (sizeof(T) == 2 && mingru_layer_fits(l)) {
        mingru_layer_forward(k, l);
        return;
    }
    if (l->product != NULL)
        product_forward<T>(k, l->product);
    if (H % V == 0 && packs_fit(V * sizeof(T), acts, 4) && (uintptr_t)l->h0 % 8 == 0)
        cuda_chain(k, "mingru_forward", mingru_forward_k<T, V>, cuda_ceil_div(B * (H / V), MINGRU_BLOCK), MINGRU_BLOCK,
                   0, out, h, gates, x, l->h0, l->reset, (unsigned)l->T, B, H);
    else
        cuda_chain(k, "mingru_forward", mingru_forward_k<T, 1>, cuda_ceil_div(B * H, MINGRU_BLOCK), MINGRU_BLOCK, 0,
                   out, h, gates, x, l->h0, l->reset, (unsigned)l->T, B, H);
}

/* ---- its gradient ---- */

template <typename T, int V> struct backward_in {
    pack<T, V> a, g, p, x, dout, hp; /* hp: the state that the step before left (steps but the first) */
    uint8_t reset;
};

/* Steps t, t - 1, ... of which those below 0 are not there. */
template <typename T, int V>
static __device__ __forceinline__ void backward_fetch(backward_in<T, V> (&in)[STEPS], const T *dout, const T *h,
                                                      const T *gates, const T *x, const uint8_t *reset, int t, size_t B,
                                                      size_t H)
{
#pragma unroll
    for (int u = 0; u < STEPS; u++) {
        size_t at = (size_t)(t > u ? t - u : 0) * B, before = (size_t)(t > u ? t - u - 1 : 0) * B;
        const T *row = gates + at * 3 * H;
        in[u].a = pack_load<T, V>(row);
        in[u].g = pack_load<T, V>(row + H);
        in[u].p = pack_load<T, V>(row + 2 * H);
        in[u].x = pack_load<T, V>(x + at * H);
        in[u].dout = pack_load<T, V>(dout + at * H);
        in[u].hp = pack_load<T, V>(h + before * H);
        in[u].reset = reset[at];
    }
}

/* One step: from the gradient of the states after it (carry) to that of the states before; all of V columns. */
template <typename T, int V>
static __device__ __forceinline__ void backward_step(T *dx, T *dgates, float (&carry)[V], const backward_in<T, V> &in,
                                                     const float (&state)[V], const float (&before)[V], size_t H)
{
    float a[V], g[V], p[V], x[V], dout[V], da[V], dg[V], dp[V], dhighway[V];

    pack_open(a, in.a);
    pack_open(g, in.g);
    pack_open(p, in.p);
    pack_open(x, in.x);
    pack_open(dout, in.dout);
#pragma unroll
    for (int v = 0; v < V; v++) {
        const mingru_gates gates = {a[v], g[v], p[v]};
        const mingru_gates d =
            mingru_cell_gradient(gates, x[v], dout[v], state[v], before[v], in.reset != 0, &carry[v], &dhighway[v]);
        da[v] = d.a, dg[v] = d.g, dp[v] = d.p;
    }
    pack_store<T, V>(dgates, da);
    pack_store<T, V>(dgates + H, dg);
    pack_store<T, V>(dgates + 2 * H, dp);
    pack_store<T, V>(dx, dhighway);
}

/* dx may be dout: a step's dout is read before its dx is written, by the same thread. */
template <typename T, int V>
static __global__ void __launch_bounds__(MINGRU_BLOCK)
    mingru_backward_k(T *dx /* (T, B, H) */, T *dgates /* (T, B, 3H) */, const T *dout /* (T, B, H) */,
                      const T *h /* (T, B, H) */, const T *gates /* (T, B, 3H) */, const T *x /* (T, B, H) */,
                      const float *h0 /* (B, H) */, const uint8_t *reset /* (T, B) */, int Tn, size_t B, size_t H)
{
    ptx_chained();
    size_t n_packs = H / V, i = (size_t)blockIdx.x * MINGRU_BLOCK + threadIdx.x;
    size_t b = i / n_packs, j = i % n_packs * V;
    backward_in<T, V> now[STEPS], next[STEPS];
    float carry[V], state[V], first[V];

    if (b >= B)
        return;
    dx += b * H + j, dgates += b * 3 * H + j, dout += b * H + j, h += b * H + j;
    gates += b * 3 * H + j, x += b * H + j, reset += b;
    backward_fetch(next, dout, h, gates, x, reset, Tn - 1, B, H);
    pack_open(state, pack_load<T, V>(h + (size_t)(Tn - 1) * B * H));
    pack_open(first, pack_load<float, V>(h0 + b * H + j));
#pragma unroll
    for (int v = 0; v < V; v++)
        carry[v] = 0.0f;
    for (int t0 = Tn - 1; t0 >= 0; t0 -= STEPS) {
#pragma unroll
        for (int u = 0; u < STEPS; u++)
            now[u] = next[u];
        if (t0 >= STEPS)
            backward_fetch(next, dout, h, gates, x, reset, t0 - STEPS, B, H);
#pragma unroll
        for (int u = 0; u < STEPS; u++) {
            float before[V];
            size_t at = (size_t)(t0 - u) * B;
            if (u > t0)
                break;
            pack_open(before, now[u].hp);
#pragma unroll
            for (int v = 0; v < V; v++)
                before[v] = u == t0 ? first[v] : before[v];
            backward_step(dx + at * H, dgates + at * 3 * H, carry, now[u], state, before, H);
#pragma unroll
            for (int v = 0; v < V; v++)
                state[v] = before[v];
        }
    }
}

template <typename T> static void mingru_backward(struct kern *k, const struct kern_mingru *l)
{
    const void *const acts[] = {l->dx, l->dgates, l->dout, l->h, l->gates, l->x};
    const T *dout = (const T *)l->dout, *h = (const T *)l->h, *gates = (const T *)l->gates, *x = (const T *)l->x;
    T *dx = (T *)l->dx, *dgates = (T *)l->dgates;
    const int V = 2;
    size_t B = l->B, H = l->H;

    if (sizeof(T) == 2 && mingru_layer_fits(l)) {
        mingru_layer_backward(k, l);
        return;
    }
    if (H % V == 0 && packs_fit(V * sizeof(T), acts, 6) && (uintptr_t)l->h0 % 8 == 0)
        cuda_chain(k, "mingru_backward", mingru_backward_k<T, V>, cuda_ceil_div(B * (H / V), MINGRU_BLOCK),
                   MINGRU_BLOCK, 0, dx, dgates, dout, h, gates, x, l->h0, l->reset, (int)l->T, B, H);
    else
        cuda_chain(k, "mingru_backward", mingru_backward_k<T, 1>, cuda_ceil_div(B * H, MINGRU_BLOCK), MINGRU_BLOCK, 0,
                   dx, dgates, dout, h, gates, x, l->h0, l->reset, (int)l->T, B, H);
    if (l->product != NULL)
        product_backward<T>(k, l->product);
}

CUDA_ACT_OP(mingru_step, kern_mingru)
CUDA_ACT_OP(mingru_forward, kern_mingru)
CUDA_ACT_OP(mingru_backward, kern_mingru)
