/* cpu_mingru.c - the MinGRU layer: one step, a sequence, and its gradient.
 *   z = sigmoid(g), c = a + 1/2 or sigmoid(a), h = hp + z (c - hp), s = sigmoid(p), out = x + s (h - x)
 * hp is the state before the step: 0 where reset is 1. Agents are independent, so they are what the workers share
 * out. */
#include "kernels/cpu/cpu_priv.h"

#include "kernels/cpu/vec_math.h"

#define AGENT_GRAIN 1
#define CARRY_FLOATS 4096 /* state gradient of the agents in hand: 16 kB, a third of the L1 cache */

VEC_FN float candidate(float a)
{
    float s = vec_sigmoid(a);
    return a >= 0.0f ? a + 0.5f : s;
}

/* One agent's step: out, h (H) from gates (3H), x (H), hp (H). h may be hp. */
static inline void step_row(float *out, float *h, const float *gates, const float *x, const float *hp, bool reset,
                            size_t H)
{
    const float *a = gates, *g = gates + H, *p = gates + 2 * H;
#pragma omp simd
    for (size_t j = 0; j < H; j++) {
        float prev = reset ? 0.0f : hp[j];
        float now = prev + vec_sigmoid(g[j]) * (candidate(a[j]) - prev);
        float in = x[j];
        h[j] = now;
        out[j] = in + vec_sigmoid(p[j]) * (now - in);
    }
}

static void step_part(void *ctx, size_t worker, size_t from, size_t to)
{
    const struct kern_mingru *l = (const struct kern_mingru *)ctx;
    const float *gates = l->gates, *x = l->x;
    float *out = l->out;
    size_t H = l->H;

    (void)worker;
    for (size_t i = from; i < to; i++)
        step_row(out + i * H, l->state + i * H, gates + i * 3 * H, x + i * H, l->state + i * H, l->reset[i] != 0, H);
}

void cpu_mingru_step(struct kern *k, const struct kern_mingru *l)
{
    cpu_run(k, l->B, AGENT_GRAIN, step_part, l);
}

static void forward_part(void *ctx, size_t worker, size_t from, size_t to)
{
    const struct kern_mingru *l = (const struct kern_mingru *)ctx;
    const float *gates = l->gates, *x = l->x;
    float *out = l->out, *h = l->h;
    size_t H = l->H, B = l->B;

    (void)worker;
    for (size_t t = 0; t < l->T; t++) {
        const float *prev = t == 0 ? l->h0 : h + (t - 1) * B * H;
        for (size_t b = from; b < to; b++) {
            size_t at = t * B + b;
            step_row(out + at * H, h + at * H, gates + at * 3 * H, x + at * H, prev + b * H, l->reset[at] != 0, H);
        }
    }
}

void cpu_mingru_forward(struct kern *k, const struct kern_mingru *l)
{
    if (l->product != NULL)
        cpu_linear_forward(k, l->product);
    cpu_run(k, l->B, AGENT_GRAIN, forward_part, l);
}

/* One agent at one time, columns [0, n) of a row: carry (n) holds dh from later steps and leaves with that of earlier
 * ones. H is the distance from gate to gate. */
static inline void backward_row(const struct kern_mingru *l, float *carry, const float *hp, size_t at, size_t col,
                                size_t n)
{
    size_t H = l->H, own = at * H + col;
    bool reset = l->reset[at] != 0;
    const float *gates = (const float *)l->gates + at * 3 * H + col, *x = (const float *)l->x + own;
    const float *h = (const float *)l->h + own, *dout = (const float *)l->dout + own;
    float *dx = (float *)l->dx + own, *dgates = (float *)l->dgates + at * 3 * H + col;

    hp += col;
#pragma omp simd
    for (size_t j = 0; j < n; j++) {
        float a = gates[j];
        float prev = reset ? 0.0f : hp[j];
        float z = vec_sigmoid(gates[H + j]);
        float s = vec_sigmoid(gates[2 * H + j]);
        float low = vec_sigmoid(a);
        float c = a >= 0.0f ? a + 0.5f : low;
        float slope = a >= 0.0f ? 1.0f : low * (1.0f - low);
        float d = dout[j];
        float dh = d * s + carry[j];
        dgates[j] = dh * z * slope;
        dgates[H + j] = dh * (c - prev) * z * (1.0f - z);
        dgates[2 * H + j] = d * (h[j] - x[j]) * s * (1.0f - s);
        dx[j] = d * (1.0f - s);
        carry[j] = reset ? 0.0f : dh * (1.0f - z);
    }
}

/* Groups of agents and columns whose carry fits, each from the last step to the first. */
static void backward_part(void *ctx, size_t worker, size_t from, size_t to)
{
    const struct kern_mingru *l = (const struct kern_mingru *)ctx;
    size_t H = l->H, B = l->B;
    size_t n_cols = H < CARRY_FLOATS ? H : CARRY_FLOATS;
    size_t n_agents = CARRY_FLOATS / n_cols;
    float carry[CARRY_FLOATS];

    (void)worker;
    for (size_t b0 = from; b0 < to; b0 += n_agents) {
        size_t b1 = to - b0 < n_agents ? to : b0 + n_agents;
        for (size_t col = 0; col < H; col += n_cols) {
            size_t n = H - col < n_cols ? H - col : n_cols;
            for (size_t i = 0; i < (b1 - b0) * n; i++)
                carry[i] = 0.0f;
            for (size_t t = l->T; t-- > 0;) {
                const float *prev = t == 0 ? l->h0 : (const float *)l->h + (t - 1) * B * H;
                for (size_t b = b0; b < b1; b++)
                    backward_row(l, carry + (b - b0) * n, prev + b * H, t * B + b, col, n);
            }
        }
    }
}

void cpu_mingru_backward(struct kern *k, const struct kern_mingru *l)
{
    cpu_run(k, l->B, AGENT_GRAIN, backward_part, l);
    if (l->product != NULL)
        cpu_linear_backward(k, l->product);
}
