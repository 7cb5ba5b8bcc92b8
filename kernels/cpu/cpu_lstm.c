/* cpu_lstm.c - the LSTM layer: one step, a sequence, and its gradient.
 *   [i, f, g, o] = gates + W_hh hp, i, f, o after a sigmoid, g after tanh; c = f cp + i g, h = o tanh(c), out = h
 * hp, cp is the state before the step: 0 where reset is 1. Agents are independent, so they are what the workers share
 * out; the product with W_hh is one sgemm for each step and worker. */
#include "kernels/cpu/cpu_priv.h"

#include "kernels/cpu/vec_math.h"

#include <string.h>

#define AGENT_GRAIN 8 /* rows that an sgemm should have */

struct lstm {
    float *out, *h_prev, *c_prev; /* (T, B, H); h_prev, c_prev NULL in a single step */
    float *gates; /* (T, B, 4H) */
    float *state; /* (B, 2H) */
    float *dh, *dc; /* (B, H) backward: gradient of the state between two steps */
    const float *dout, *c_seq; /* (T, B, H), backward */
    const float *w; /* (4H, H) */
    const uint8_t *reset; /* (T, B) */
    size_t T, B, H;
};

/* One agent's step after the product: out (H), state (2H) in place, gates (4H) in place. */
static inline void step_row(float *out, float *state, float *gates, size_t H)
{
    float *h = state, *c = state + H, *i = gates, *f = gates + H, *g = gates + 2 * H, *o = gates + 3 * H;

#pragma omp simd
    for (size_t j = 0; j < H; j++) {
        i[j] = vec_sigmoid(i[j]);
        f[j] = vec_sigmoid(f[j]);
        g[j] = vec_tanh(g[j]);
        o[j] = vec_sigmoid(o[j]);
        c[j] = f[j] * c[j] + i[j] * g[j];
        h[j] = o[j] * vec_tanh(c[j]);
        out[j] = h[j];
    }
}

static void forward_part(void *ctx, size_t worker, size_t from, size_t to)
{
    const struct lstm *l = (const struct lstm *)ctx;
    size_t H = l->H, n = to - from;

    (void)worker;
    for (size_t t = 0; n > 0 && t < l->T; t++) {
        size_t at = t * l->B + from;
        float *state = l->state + from * 2 * H, *gates = l->gates + at * 4 * H;

        for (size_t b = 0; b < n; b++)
            if (l->reset[at + b])
                memset(state + b * 2 * H, 0, 2 * H * sizeof *state);
        for (size_t b = 0; l->h_prev != NULL && b < n; b++) {
            memcpy(l->h_prev + (at + b) * H, state + b * 2 * H, H * sizeof *state);
            memcpy(l->c_prev + (at + b) * H, state + b * 2 * H + H, H * sizeof *state);
        }
        cpu_gemm(false, true, n, 4 * H, H, 1.0f, state, 2 * H, l->w, H, 1.0f, gates, 4 * H);
        for (size_t b = 0; b < n; b++)
            step_row(l->out + (at + b) * H, state + b * 2 * H, gates + b * 4 * H, H);
    }
}

void cpu_lstm_step(struct kern *k, void *out, float *state, void *gates, const void *w_hh, const uint8_t *reset,
                   size_t N, size_t H)
{
    struct lstm l = {.out = out, .gates = gates, .state = state, .w = w_hh, .reset = reset, .T = 1, .B = N, .H = H};
    cpu_run(k, N, AGENT_GRAIN, forward_part, &l);
}

void cpu_lstm_forward(struct kern *k, void *out, void *h_prev, void *c_prev, void *gates, float *state,
                      const void *w_hh, const uint8_t *reset, size_t T, size_t B, size_t H)
{
    struct lstm l = {.out = out,
                     .h_prev = h_prev,
                     .c_prev = c_prev,
                     .gates = gates,
                     .state = state,
                     .w = w_hh,
                     .reset = reset,
                     .T = T,
                     .B = B,
                     .H = H};
    cpu_run(k, B, AGENT_GRAIN, forward_part, &l);
}

/* One agent at one time: dh, dc (H) are of the state after the step; dc leaves as that of the state before, gates (4H)
 * as their gradient. */
static inline void backward_row(float *gates, const float *dh_next, float *dc_next, const float *dout,
                                const float *c_prev, size_t H)
{
    float *i = gates, *f = gates + H, *g = gates + 2 * H, *o = gates + 3 * H;

#pragma omp simd
    for (size_t j = 0; j < H; j++) {
        float in = i[j], keep = f[j], new = g[j], show = o[j], prev = c_prev[j];
        float low = vec_tanh(keep * prev + in * new);
        float dh = dout[j] + dh_next[j];
        float dc = dc_next[j] + dh * show * (1.0f - low * low);
        i[j] = dc * new *in *(1.0f - in);
        f[j] = dc * prev * keep * (1.0f - keep);
        g[j] = dc * in * (1.0f - new *new);
        o[j] = dh * low * show * (1.0f - show);
        dc_next[j] = dc * keep;
    }
}

static void backward_part(void *ctx, size_t worker, size_t from, size_t to)
{
    const struct lstm *l = (const struct lstm *)ctx;
    size_t H = l->H, n = to - from;
    float *dh = l->dh + from * H, *dc = l->dc + from * H;

    (void)worker;
    if (n > 0) {
        memset(dh, 0, n * H * sizeof *dh);
        memset(dc, 0, n * H * sizeof *dc);
    }
    for (size_t t = l->T; n > 0 && t-- > 0;) {
        size_t at = t * l->B + from;
        float *gates = l->gates + at * 4 * H;

        for (size_t b = 0; b < n; b++)
            backward_row(gates + b * 4 * H, dh + b * H, dc + b * H, l->dout + (at + b) * H, l->c_seq + (at + b) * H, H);
        cpu_gemm(false, false, n, H, 4 * H, 1.0f, gates, 4 * H, l->w, H, 0.0f, dh, H);
        for (size_t b = 0; b < n; b++)
            if (l->reset[at + b]) { /* what came before does not reach this step */
                memset(dh + b * H, 0, H * sizeof *dh);
                memset(dc + b * H, 0, H * sizeof *dc);
            }
    }
}

void cpu_lstm_backward(struct kern *k, void *gates, float *dstate, const void *dout, const void *c_prev,
                       const void *w_hh, const uint8_t *reset, size_t T, size_t B, size_t H)
{
    struct lstm l = {.gates = gates,
                     .dh = dstate,
                     .dc = dstate + B * H,
                     .dout = dout,
                     .c_seq = c_prev,
                     .w = w_hh,
                     .reset = reset,
                     .T = T,
                     .B = B,
                     .H = H};
    cpu_run(k, B, AGENT_GRAIN, backward_part, &l);
}
