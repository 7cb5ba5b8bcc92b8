/* cpu_lstm.c - the LSTM layer: one step, a sequence, and its gradient.
 *   [i, f, g, o] = gates + W_hh hp, i, f, o after a sigmoid, g after tanh; c = f cp + i g, h = o tanh(c), out = h
 * hp, cp is the state before the step: 0 where reset is 1. Agents are independent, so they are what the workers share
 * out; the product with W_hh is one sgemm for each step and worker. */
#include "base/base.h"
#include "kernels/cpu/cpu_priv.h"

#include "kernels/cpu/vec_math.h"

#define AGENT_GRAIN 8 /* rows that an sgemm should have */

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
    const struct kern_lstm *l = (const struct kern_lstm *)ctx;
    float *out = l->out, *h_prev = l->h_prev, *c_prev = l->c_prev; /* the last two NULL in a single step */
    size_t H = l->H, n = to - from;

    (void)worker;
    for (size_t t = 0; n > 0 && t < l->T; t++) {
        size_t at = t * l->B + from;
        float *state = l->state + from * 2 * H, *gates = (float *)l->gates + at * 4 * H;

        for (size_t b = 0; b < n; b++)
            if (l->reset[at + b])
                memset(state + b * 2 * H, 0, 2 * H * sizeof *state);
        for (size_t b = 0; h_prev != NULL && b < n; b++) {
            memcpy(h_prev + (at + b) * H, state + b * 2 * H, H * sizeof *state);
            memcpy(c_prev + (at + b) * H, state + b * 2 * H + H, H * sizeof *state);
        }
        cpu_gemm(false, true, n, 4 * H, H, 1.0f, state, 2 * H, l->w_hh, H, 1.0f, gates, 4 * H);
        for (size_t b = 0; b < n; b++)
            step_row(out + (at + b) * H, state + b * 2 * H, gates + b * 4 * H, H);
    }
}

void cpu_lstm_step(struct kern *k, const struct kern_lstm *l)
{
    struct kern_lstm step = *l;

    step.T = 1;
    step.h_prev = step.c_prev = NULL;
    cpu_run(k, l->B, AGENT_GRAIN, forward_part, &step);
}

void cpu_lstm_forward(struct kern *k, const struct kern_lstm *l)
{
    cpu_run(k, l->B, AGENT_GRAIN, forward_part, l);
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
    const struct kern_lstm *l = (const struct kern_lstm *)ctx;
    const float *dout = l->dout, *c_prev = l->c_prev;
    size_t H = l->H, n = to - from;
    float *dh = l->dstate + from * H, *dc = dh + l->B * H; /* gradient of the state between two steps */

    (void)worker;
    if (n > 0) {
        memset(dh, 0, n * H * sizeof *dh);
        memset(dc, 0, n * H * sizeof *dc);
    }
    for (size_t t = l->T; n > 0 && t-- > 0;) {
        size_t at = t * l->B + from;
        float *gates = (float *)l->gates + at * 4 * H;

        for (size_t b = 0; b < n; b++)
            backward_row(gates + b * 4 * H, dh + b * H, dc + b * H, dout + (at + b) * H, c_prev + (at + b) * H, H);
        cpu_gemm(false, false, n, H, 4 * H, 1.0f, gates, 4 * H, l->w_hh, H, 0.0f, dh, H);
        for (size_t b = 0; b < n; b++)
            if (l->reset[at + b]) { /* what came before does not reach this step */
                memset(dh + b * H, 0, H * sizeof *dh);
                memset(dc + b * H, 0, H * sizeof *dc);
            }
    }
}

void cpu_lstm_backward(struct kern *k, const struct kern_lstm *l)
{
    cpu_run(k, l->B, AGENT_GRAIN, backward_part, l);
}
