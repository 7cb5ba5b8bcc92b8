/* lstm.cu - the LSTM layer where W_hh does not fit a block (f32, and bf16 wider than 128): for each step one product
 * through cuBLASLt and one kernel for the cell, which also makes ready what the next step starts from. Other widths in
 * bf16 take lstm_seq.cu. Invariant: h and c are carried in f32; only what the product reads is rounded to the
 * activation type. */
#include "kernels/cuda/nets/lstm.h"
#include "kernels/cuda/nets/matmul.h"
#include "kernels/cuda/number.h"

#define BLOCK 256

/* The state (h, c) that step t starts from: what the product reads (h_prev, without one: out), and c_prev. */
template <typename T>
static __device__ __forceinline__ void store_start(const struct kern_lstm *l, size_t t, size_t row, size_t j, float h,
                                                   float c)
{
    size_t at = (t * l->B + row) * l->H + j;
    num_set(l->h_prev != NULL ? (T *)l->h_prev + at : (T *)l->out + at, h);
    if (l->c_prev != NULL)
        num_set((T *)l->c_prev + at, c);
}

/* Before the first step: resets, and its start. A thread for each unit of each agent. */
template <typename T> static __global__ void lstm_start_k(struct kern_lstm l)
{
    size_t i = (size_t)blockIdx.x * BLOCK + threadIdx.x, row = i / l.H, j = i % l.H;

    if (row >= l.B)
        return;
    float *state = l.state + row * 2 * l.H + j;
    if (l.reset[row])
        state[0] = state[l.H] = 0.0f;
    store_start<T>(&l, 0, row, j, state[0], state[l.H]);
}

/* Step t after its product, and the start of the next. */
template <typename T> static __global__ void lstm_cell_k(struct kern_lstm l, size_t t)
{
    size_t i = (size_t)blockIdx.x * BLOCK + threadIdx.x, H = l.H, row = i / H, j = i % H, at = t * l.B + row;

    if (row >= l.B)
        return;
    T *gates = (T *)l.gates + at * 4 * H + j;
    float *state = l.state + row * 2 * H + j;
    float in = num_f32(gates[0]), keep = num_f32(gates[H]), show = num_f32(gates[3 * H]);
    float add = tanhf(num_f32(gates[2 * H]));

    num_sigmoids(&in, &keep, &show);
    float c = keep * state[H] + in * add, h = show * tanhf(c);

    num_set((T *)l.out + at * H + j, h);
    if (l.h_prev != NULL) {
        num_set(gates, in);
        num_set(gates + H, keep);
        num_set(gates + 2 * H, add);
        num_set(gates + 3 * H, show);
    }
    if (t + 1 < l.T) {
        if (l.reset[at + l.B])
            h = c = 0.0f;
        store_start<T>(&l, t + 1, row, j, h, c);
    }
    state[0] = h;
    state[H] = c;
}

/* Step t of the way back; dstate is that of the state after it, dc of which becomes that of the state before. */
template <typename T> static __global__ void lstm_cell_back_k(struct kern_lstm l, size_t t)
{
    size_t i = (size_t)blockIdx.x * BLOCK + threadIdx.x, H = l.H, row = i / H, j = i % H, at = t * l.B + row;

    if (row >= l.B)
        return;
    T *gates = (T *)l.gates + at * 4 * H + j;
    float *dc_next = l.dstate + (l.B + row) * H + j;
    bool last = t + 1 == l.T || l.reset[at + l.B]; /* nothing comes back to here */
    float in = num_f32(gates[0]), keep = num_f32(gates[H]), add = num_f32(gates[2 * H]), show = num_f32(gates[3 * H]);
    float prev = num_f32(((const T *)l.c_prev)[at * H + j]), shown = tanhf(keep * prev + in * add);
    float dh = num_f32(((const T *)l.dout)[at * H + j]) + (last ? 0.0f : l.dstate[row * H + j]);
    float dc = (last ? 0.0f : *dc_next) + dh * show * (1.0f - shown * shown);

    num_set(gates, dc * add * in * (1.0f - in));
    num_set(gates + H, dc * prev * keep * (1.0f - keep));
    num_set(gates + 2 * H, dc * in * (1.0f - add * add));
    num_set(gates + 3 * H, dh * shown * show * (1.0f - show));
    *dc_next = dc * keep;
}

/* What the first step's resets cut off. */
static __global__ void lstm_end_back_k(struct kern_lstm l)
{
    size_t i = (size_t)blockIdx.x * BLOCK + threadIdx.x, row = i / l.H;

    if (row < l.B && l.reset[row])
        l.dstate[i] = l.dstate[l.B * l.H + i] = 0.0f;
}

template <typename T> static void lstm_forward(struct kern *k, const struct kern_lstm *l)
{
    cudaStream_t stream = cuda_of(k)->stream;
    size_t row = l->B * l->H;
    unsigned n = cuda_ceil_div(row, BLOCK);

    if (row == 0 || l->T == 0 || (sizeof(T) == 2 && cuda_lstm_seq_forward(k, l)))
        return;
    lstm_start_k<T><<<n, BLOCK, 0, stream>>>(*l);
    cuda_launched(k, "lstm_start");
    for (size_t t = 0; t < l->T; t++) {
        struct cuda_matmul p = {};
        p.c = (T *)l->gates + t * row * 4;
        p.a = (const T *)(l->h_prev != NULL ? l->h_prev : l->out) + t * row, p.b = l->w_hh;
        p.m = l->B, p.n = 4 * l->H, p.k = l->H;
        p.b_t = true;
        p.in_bf16 = p.out_bf16 = sizeof(T) == 2;
        p.beta = 1.0f;
        cuda_matmul_run(k, &p);
        lstm_cell_k<T><<<n, BLOCK, 0, stream>>>(*l, t);
        cuda_launched(k, "lstm_cell");
    }
}

template <typename T> static void lstm_backward(struct kern *k, const struct kern_lstm *l)
{
    cudaStream_t stream = cuda_of(k)->stream;
    size_t row = l->B * l->H;
    unsigned n = cuda_ceil_div(row, BLOCK);

    if (row == 0 || l->T == 0 || (sizeof(T) == 2 && cuda_lstm_seq_backward(k, l)))
        return;
    for (size_t t = l->T; t-- > 0;) {
        struct cuda_matmul p = {};
        lstm_cell_back_k<T><<<n, BLOCK, 0, stream>>>(*l, t);
        cuda_launched(k, "lstm_cell_back");
        p.c = l->dstate, p.a = (const T *)l->gates + t * row * 4, p.b = l->w_hh;
        p.m = l->B, p.n = l->H, p.k = 4 * l->H;
        p.in_bf16 = sizeof(T) == 2;
        cuda_matmul_run(k, &p);
    }
    lstm_end_back_k<<<n, BLOCK, 0, stream>>>(*l);
    cuda_launched(k, "lstm_end_back");
}

template <typename T> static void lstm_step(struct kern *k, const struct kern_lstm *l)
{
    struct kern_lstm step = *l;

    step.T = 1;
    step.h_prev = step.c_prev = NULL;
    lstm_forward<T>(k, &step);
}

CUDA_ACT_OP(lstm_step, kern_lstm)
CUDA_ACT_OP(lstm_forward, kern_lstm)
CUDA_ACT_OP(lstm_backward, kern_lstm)
