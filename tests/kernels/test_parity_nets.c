/* test_parity_nets.c - recurrent layers, convolutions and what belongs to networks of the CUDA table against the CPU's,
 * as test_parity.c does for the other rows. */
#include "tests/kernels/parity.h"

/* ---- MinGRU: N, H for a step; T, B, H for a sequence ---- */

static void mingru_step_make(struct parity *p, const size_t *s)
{
    size_t n = s[0] * s[1];
    parity_add(p, "out", BUF_ACT, BUF_OUT, n);
    parity_normal(p, "h", BUF_F32, BUF_INOUT, n, 1.0f);
    parity_normal(p, "gates", BUF_ACT, BUF_IN, 3 * n, 2.0f);
    parity_normal(p, "x", BUF_ACT, BUF_IN, n, 1.0f);
    parity_flags(p, "reset", s[0], 0.2f);
}

static void mingru_step_run(struct kern *k, const struct call *c)
{
    struct kern_mingru l = {.B = c->s[0], .H = c->s[1]};
    l.out = c->p[0], l.state = c->p[1], l.gates = c->p[2], l.x = c->p[3], l.reset = c->p[4];
    kern_ops(k)->mingru_step(k, &l);
}

static void mingru_forward_make(struct parity *p, const size_t *s)
{
    size_t n = s[0] * s[1] * s[2];
    parity_add(p, "out", BUF_ACT, BUF_OUT, n);
    parity_add(p, "h", BUF_ACT, BUF_OUT, n);
    parity_normal(p, "gates", BUF_ACT, BUF_IN, 3 * n, 2.0f);
    parity_normal(p, "x", BUF_ACT, BUF_IN, n, 1.0f);
    parity_normal(p, "h0", BUF_F32, BUF_IN, s[1] * s[2], 1.0f);
    parity_flags(p, "reset", s[0] * s[1], 0.1f);
}

static void mingru_forward_run(struct kern *k, const struct call *c)
{
    struct kern_mingru l = {.T = c->s[0], .B = c->s[1], .H = c->s[2]};
    l.out = c->p[0], l.h = c->p[1], l.gates = c->p[2], l.x = c->p[3], l.h0 = c->p[4], l.reset = c->p[5];
    kern_ops(k)->mingru_forward(k, &l);
}

/* s[3]: dx is dout */
static void mingru_backward_make(struct parity *p, const size_t *s)
{
    size_t n = s[0] * s[1] * s[2];
    parity_add(p, "dgates", BUF_ACT, BUF_OUT, 3 * n);
    parity_normal(p, "dout", BUF_ACT, s[3] ? BUF_INOUT : BUF_IN, n, 1.0f);
    parity_normal(p, "h", BUF_ACT, BUF_IN, n, 1.0f);
    parity_normal(p, "gates", BUF_ACT, BUF_IN, 3 * n, 2.0f);
    parity_normal(p, "x", BUF_ACT, BUF_IN, n, 1.0f);
    parity_normal(p, "h0", BUF_F32, BUF_IN, s[1] * s[2], 1.0f);
    parity_flags(p, "reset", s[0] * s[1], 0.1f);
    if (!s[3])
        parity_add(p, "dx", BUF_ACT, BUF_OUT, n);
}

static void mingru_backward_run(struct kern *k, const struct call *c)
{
    struct kern_mingru l = {.T = c->s[0], .B = c->s[1], .H = c->s[2]};
    l.dx = c->s[3] ? c->p[1] : c->p[7], l.dgates = c->p[0], l.dout = c->p[1], l.h = c->p[2], l.gates = c->p[3];
    l.x = c->p[4], l.h0 = c->p[5], l.reset = c->p[6];
    kern_ops(k)->mingru_backward(k, &l);
}

/* ---- the same with the product of the gates; s[3]: 1: dx is dout, 2: adds to dw ---- */

static void layer_forward_make(struct parity *p, const size_t *s)
{
    size_t H = s[2], n = s[0] * s[1] * H;
    parity_add(p, "out", BUF_ACT, BUF_OUT, n);
    parity_add(p, "h", BUF_ACT, BUF_OUT, n);
    parity_add(p, "gates", BUF_ACT, BUF_OUT, 3 * n);
    parity_normal(p, "x", BUF_ACT, BUF_IN, n, 1.0f);
    parity_normal(p, "h0", BUF_F32, BUF_IN, s[1] * H, 1.0f);
    parity_flags(p, "reset", s[0] * s[1], 0.1f);
    parity_normal(p, "w", BUF_ACT, BUF_IN, 3 * H * H, 1.0f / sqrtf((float)H));
}

static void layer_forward_run(struct kern *k, const struct call *c)
{
    size_t H = c->s[2];
    struct kern_linear product = {.M = c->s[0] * c->s[1], .N = 3 * H, .K = H};
    struct kern_mingru l = {.T = c->s[0], .B = c->s[1], .H = H, .product = &product};
    product.y = c->p[2], product.x = c->p[3], product.w = c->p[6];
    l.out = c->p[0], l.h = c->p[1], l.gates = c->p[2], l.x = c->p[3], l.h0 = c->p[4], l.reset = c->p[5];
    kern_ops(k)->mingru_forward(k, &l);
}

static void layer_backward_make(struct parity *p, const size_t *s)
{
    size_t H = s[2], n = s[0] * s[1] * H;
    parity_add(p, "dgates", BUF_ACT, BUF_SCRATCH, 3 * n);
    parity_normal(p, "dout", BUF_ACT, s[3] & 1 ? BUF_INOUT : BUF_IN, n, 1.0f);
    parity_normal(p, "h", BUF_ACT, BUF_IN, n, 1.0f);
    parity_normal(p, "gates", BUF_ACT, BUF_IN, 3 * n, 2.0f);
    parity_normal(p, "x", BUF_ACT, BUF_IN, n, 1.0f);
    parity_normal(p, "h0", BUF_F32, BUF_IN, s[1] * H, 1.0f);
    parity_flags(p, "reset", s[0] * s[1], 0.1f);
    parity_normal(p, "w", BUF_ACT, BUF_IN, 3 * H * H, 1.0f / sqrtf((float)H));
    parity_result(p, "dw", BUF_F32, 3 * H * H, (s[3] & 2) != 0);
    if ((s[3] & 1) == 0)
        parity_add(p, "dx", BUF_ACT, BUF_OUT, n);
}

static void layer_backward_run(struct kern *k, const struct call *c)
{
    size_t H = c->s[2];
    struct kern_linear product = {.M = c->s[0] * c->s[1], .N = 3 * H, .K = H, .add_dx = true};
    struct kern_mingru l = {.T = c->s[0], .B = c->s[1], .H = H, .product = &product};
    l.dx = c->s[3] & 1 ? c->p[1] : c->p[9], l.dgates = c->p[0], l.dout = c->p[1], l.h = c->p[2], l.gates = c->p[3];
    l.x = c->p[4], l.h0 = c->p[5], l.reset = c->p[6];
    product.dx = l.dx, product.dy = l.dgates, product.x = l.x, product.w = c->p[7], product.dw = c->p[8];
    product.add_dw = (c->s[3] & 2) != 0;
    kern_ops(k)->mingru_backward(k, &l);
}

/* ---- LSTM: N, H for a step; T, B, H for a sequence ---- */

static void lstm_weights(struct parity *p, size_t H)
{
    parity_normal(p, "w_hh", BUF_ACT, BUF_IN, 4 * H * H, 1.0f / sqrtf((float)H));
}

static void lstm_step_make(struct parity *p, const size_t *s)
{
    size_t N = s[0], H = s[1];
    parity_add(p, "out", BUF_ACT, BUF_OUT, N * H);
    parity_normal(p, "state", BUF_F32, BUF_INOUT, N * 2 * H, 0.5f);
    parity_normal(p, "gates", BUF_ACT, BUF_SCRATCH, N * 4 * H, 1.0f);
    lstm_weights(p, H);
    parity_flags(p, "reset", N, 0.2f);
}

static void lstm_step_run(struct kern *k, const struct call *c)
{
    struct kern_lstm l = {.B = c->s[0], .H = c->s[1]};
    l.out = c->p[0], l.state = c->p[1], l.gates = c->p[2], l.w_hh = c->p[3], l.reset = c->p[4];
    kern_ops(k)->lstm_step(k, &l);
}

static void lstm_forward_make(struct parity *p, const size_t *s)
{
    size_t T = s[0], B = s[1], H = s[2];
    parity_add(p, "out", BUF_ACT, BUF_OUT, T * B * H);
    parity_add(p, "h_prev", BUF_ACT, BUF_OUT, T * B * H);
    parity_add(p, "c_prev", BUF_ACT, BUF_OUT, T * B * H);
    parity_normal(p, "gates", BUF_ACT, BUF_INOUT, T * B * 4 * H, 1.0f);
    parity_normal(p, "state", BUF_F32, BUF_INOUT, B * 2 * H, 0.5f);
    lstm_weights(p, H);
    parity_flags(p, "reset", T * B, 0.1f);
}

static void lstm_forward_run(struct kern *k, const struct call *c)
{
    struct kern_lstm l = {.T = c->s[0], .B = c->s[1], .H = c->s[2]};
    l.out = c->p[0], l.h_prev = c->p[1], l.c_prev = c->p[2], l.gates = c->p[3], l.state = c->p[4], l.w_hh = c->p[5];
    l.reset = c->p[6];
    kern_ops(k)->lstm_forward(k, &l);
}

static void lstm_backward_make(struct parity *p, const size_t *s)
{
    size_t T = s[0], B = s[1], H = s[2];
    float *gates = parity_normal(p, "gates", BUF_ACT, BUF_INOUT, T * B * 4 * H, 1.0f);
    for (size_t i = 0; i < T * B * 4 * H; i++) { /* as forward leaves them: g in (-1, 1), the others in (0, 1) */
        float x = tanhf(gates[i]);
        x = i / H % 4 == 2 ? x : 0.5f + 0.5f * x;
        gates[i] = p->bf16 ? bf16_value(bf16_bits(x)) : x;
    }
    parity_add(p, "dstate", BUF_F32, BUF_OUT, B * 2 * H);
    parity_normal(p, "dout", BUF_ACT, BUF_IN, T * B * H, 1.0f);
    parity_normal(p, "c_prev", BUF_ACT, BUF_IN, T * B * H, 0.5f);
    lstm_weights(p, H);
    parity_flags(p, "reset", T * B, 0.1f);
}

static void lstm_backward_run(struct kern *k, const struct call *c)
{
    struct kern_lstm l = {.T = c->s[0], .B = c->s[1], .H = c->s[2]};
    l.gates = c->p[0], l.dstate = c->p[1], l.dout = c->p[2], l.c_prev = c->p[3], l.w_hh = c->p[4], l.reset = c->p[5];
    kern_ops(k)->lstm_backward(k, &l);
}

/* ---- convolutions ----
 * M, side (and side + 1 across), in, out, stride + 4 act + 16 dx + 32 adds + 64 unaligned + 128 NaN
 * Unaligned: observations begin one number off, as in a rollout of an odd grid and an odd number of agents. NaN: all of
 * one grid, and no activation may swallow it. */

static struct kern_conv conv_of(const size_t *s)
{
    return (struct kern_conv){s[1], s[1] + 1, s[2], s[3], 3, s[4] & 3, 1};
}

static void conv_make(struct parity *p, const size_t *s, bool backward)
{
    struct kern_conv conv = conv_of(s);
    size_t n_x = s[0] * conv.height * conv.width * conv.in, n_w = conv.out * 9 * conv.in;
    size_t n_y = s[0] * kern_conv_height(&conv) * kern_conv_width(&conv) * conv.out;
    bool relu = (s[4] >> 2 & 3) == KERN_ACT_RELU;

    if (backward && s[4] & 16)
        parity_add(p, "dx", BUF_ACT, BUF_OUT, n_x);
    else
        parity_none(p);
    if (backward) {
        parity_normal(p, "dw", BUF_F32, BUF_INOUT, n_w, 1.0f);
        parity_normal(p, "db", BUF_F32, BUF_INOUT, conv.out, 1.0f);
        if (!p->bf16) /* both devices add millions of numbers in f32, in orders of their own */
            p->bufs[p->n_bufs - 1].tolerance = p->bufs[p->n_bufs - 2].tolerance =
                PARITY_F32 * (1.0 + (double)n_y / (double)conv.out / 1e6);
        parity_normal(p, "dy", BUF_ACT, BUF_INOUT, n_y, 1.0f);
        float *y = parity_normal(p, "y", BUF_ACT, BUF_IN, n_y, 0.15f);
        for (size_t i = 0; relu && i < n_y; i++)
            y[i] = y[i] < 0.0f ? 0.0f : y[i];
    } else {
        parity_add(p, "y", BUF_ACT, BUF_OUT, n_y);
    }
    float *x = parity_normal(p, "x", BUF_ACT, BUF_IN, n_x, 1.0f);
    if (s[4] & 64)
        parity_shift(p, 1);
    for (size_t i = 0; s[4] & 128 && i < n_x / s[0]; i++)
        x[s[0] / 2 * (n_x / s[0]) + i] = NAN;
    parity_normal(p, "w", BUF_ACT, BUF_IN, n_w, 0.3f);
    if (!backward)
        parity_normal(p, "b", BUF_ACT, BUF_IN, conv.out, 1.0f);
    parity_add(p, "scratch", BUF_BYTES, BUF_SCRATCH, kern_conv_scratch_bytes(p->cpu, &conv));
}

static void conv_forward_make(struct parity *p, const size_t *s)
{
    conv_make(p, s, false);
}

static void conv_forward_run(struct kern *k, const struct call *c)
{
    struct kern_conv conv = conv_of(c->s);
    struct kern_conv_layer l = {.shape = &conv, .M = c->s[0], .act = (enum kern_act)(c->s[4] >> 2 & 3)};
    l.y = c->p[1], l.x = c->p[2], l.w = c->p[3], l.b = c->p[4], l.scratch = c->p[5];
    kern_ops(k)->conv_forward(k, &l);
}

static void conv_backward_make(struct parity *p, const size_t *s)
{
    conv_make(p, s, true);
}

static void conv_backward_run(struct kern *k, const struct call *c)
{
    struct kern_conv conv = conv_of(c->s);
    struct kern_conv_layer l = {
        .shape = &conv, .M = c->s[0], .act = (enum kern_act)(c->s[4] >> 2 & 3), .add_dw = (c->s[4] & 32) != 0};
    l.dx = c->p[0], l.dw = c->p[1], l.db = c->p[2], l.dy = c->p[3], l.y = c->p[4], l.x = c->p[5], l.w = c->p[6];
    l.scratch = c->p[7];
    kern_ops(k)->conv_backward(k, &l);
}

/* ---- inputs that are widened: M, N, K, numbers between rows, 1 adds + 2 bytes ---- */

static struct kern_linear source_layer(struct kern *k, const struct call *c)
{
    const size_t *s = c->s;
    struct kern_linear l = {.M = s[0], .N = s[1], .K = s[2], .add_y = (s[4] & 1) != 0, .add_dw = (s[4] & 1) != 0};
    l.y = c->p[0], l.dw = c->p[1], l.dy = c->p[2], l.x = c->p[3], l.w = c->p[4];
    l.from =
        (struct kern_source){.row = s[2] + s[3], .bytes = (s[4] & 2) != 0, .scale = 1.0f / 255.0f, .wide = c->p[5]};
    (void)k;
    return l;
}

static void source_make(struct parity *p, const size_t *s, bool backward)
{
    size_t row = s[2] + s[3],
           wide = kern_wide_bytes(p->gpu) > kern_wide_bytes(p->cpu) ? kern_wide_bytes(p->gpu) : kern_wide_bytes(p->cpu);
    bool adds = (s[4] & 1) != 0;

    if (backward) {
        parity_none(p);
        parity_result(p, "dw", BUF_F32, s[1] * s[2], adds);
        parity_normal(p, "dy", BUF_ACT, BUF_IN, s[0] * s[1], 1.0f);
    } else {
        parity_result(p, "y", BUF_ACT, s[0] * s[1], adds);
        parity_none(p);
        parity_none(p);
    }
    if (s[4] & 2) {
        uint8_t *x = (uint8_t *)parity_add(p, "x", BUF_BYTES, BUF_IN, s[0] * row);
        for (size_t i = 0; i < s[0] * row; i++)
            x[i] = (uint8_t)rng_u32(&p->rng);
    } else {
        parity_normal(p, "x", BUF_ACT, BUF_IN, s[0] * row, 1.0f);
    }
    parity_normal(p, "w", BUF_ACT, BUF_IN, s[1] * s[2], 1.0f / sqrtf((float)s[2]));
    parity_add(p, "wide", BUF_BYTES, BUF_SCRATCH, wide);
}

static void source_forward_make(struct parity *p, const size_t *s)
{
    source_make(p, s, false);
}

static void source_forward_run(struct kern *k, const struct call *c)
{
    const struct kern_linear l = source_layer(k, c);
    kern_ops(k)->linear_forward(k, &l);
}

static void source_backward_make(struct parity *p, const size_t *s)
{
    source_make(p, s, true);
}

static void source_backward_run(struct kern *k, const struct call *c)
{
    const struct kern_linear l = source_layer(k, c);
    kern_ops(k)->linear_backward(k, &l);
}

/* Grids of bytes: M, side, channels, filters, numbers between grids. */
static struct kern_conv bytes_conv(const size_t *s)
{
    return (struct kern_conv){s[1], s[1] + 1, s[2], s[3], 3, 1, 1};
}

static void bytes_conv_make(struct parity *p, const size_t *s)
{
    struct kern_conv conv = bytes_conv(s);
    size_t n_y = s[0] * kern_conv_height(&conv) * kern_conv_width(&conv) * conv.out;
    size_t n_x = s[0] * (conv.height * conv.width * conv.in + s[4]), n_w = conv.out * 9 * conv.in;
    size_t scratch = kern_conv_scratch_bytes(p->cpu, &conv);

    parity_add(p, "y", BUF_ACT, BUF_OUT, n_y);
    parity_add(p, "dw", BUF_F32, BUF_OUT, n_w);
    parity_add(p, "db", BUF_F32, BUF_OUT, conv.out);
    parity_normal(p, "dy", BUF_ACT, BUF_INOUT, n_y, 1.0f);
    uint8_t *x = (uint8_t *)parity_add(p, "x", BUF_BYTES, BUF_IN, n_x);
    for (size_t i = 0; i < n_x; i++)
        x[i] = (uint8_t)rng_u32(&p->rng);
    parity_normal(p, "w", BUF_ACT, BUF_IN, n_w, 0.3f);
    parity_normal(p, "b", BUF_ACT, BUF_IN, conv.out, 1.0f);
    parity_add(p, "scratch", BUF_BYTES, BUF_SCRATCH, scratch);
    parity_add(p, "wide", BUF_BYTES, BUF_SCRATCH, kern_wide_bytes(p->gpu));
}

/* Without an activation, so that both see the same gradient. */
static void bytes_conv_run(struct kern *k, const struct call *c)
{
    struct kern_conv conv = bytes_conv(c->s);
    struct kern_conv_layer l = {.shape = &conv, .M = c->s[0], .act = KERN_ACT_NONE};
    l.y = c->p[0], l.dw = c->p[1], l.db = c->p[2], l.dy = c->p[3], l.x = c->p[4], l.w = c->p[5], l.b = c->p[6];
    l.scratch = c->p[7];
    l.from = (struct kern_source){
        .row = conv.height * conv.width * conv.in + c->s[4], .bytes = true, .scale = 1.0f / 255.0f, .wide = c->p[8]};
    kern_ops(k)->conv_forward(k, &l);
    kern_ops(k)->conv_backward(k, &l);
}

/* ---- frames: N, k, pixels, channels, list + 64 bytes of a number + 1024 with resets and flags + 2048 in place ---- */

static void frames_make(struct parity *p, const size_t *s)
{
    size_t D = s[2] * s[3] + (s[4] & 63), size = s[4] >> 6 & 7;
    const char *names[] = {"old", "frame"};

    parity_add(p, "dst", BUF_BYTES, BUF_INOUT, s[0] * s[1] * D * size);
    memset(p->bufs[0].start, 1, s[0] * s[1] * D * size);
    for (size_t b = 0; b < 2; b++) {
        size_t n = s[0] * D * size * (b == 0 ? s[1] : 1);
        uint8_t *x = (uint8_t *)parity_add(p, names[b], BUF_BYTES, BUF_IN, n);
        for (size_t i = 0; i < n; i++)
            x[i] = (uint8_t)rng_u32(&p->rng);
    }
    parity_flags(p, "reset", s[0], 0.3f);
    parity_flags(p, "only", s[0], 0.5f);
}

static void frames_run(struct kern *k, const struct call *c)
{
    const size_t *s = c->s;
    struct kern_frames f = {.N = s[0], .k = s[1], .pixels = s[2], .channels = s[3], .list = s[4] & 63};
    f.number_bytes = s[4] >> 6 & 7;
    f.dst = c->p[0], f.frame = c->p[2], f.old = s[4] & 2048 ? c->p[0] : c->p[1];
    if (s[4] & 1024)
        f.reset = c->p[3], f.only = c->p[4];
    kern_ops(k)->frames_stack(k, &f);
}

/* ---- gradients between two networks: words of a row, words from row to row, rows ---- */

static void zero_rows_make(struct parity *p, const size_t *s)
{
    parity_normal(p, "dst", BUF_F32, BUF_INOUT, s[1] * s[2], 1.0f);
}

static void zero_rows_run(struct kern *k, const struct call *c)
{
    kern_ops(k)->zero_rows(k, c->p[0], 4 * c->s[0], 4 * c->s[1], c->s[2]);
}

static const struct parity_case cases[] = {
    PARITY_ROW(mingru_step, true, {1, 1}, {3, 5}, {33, 66}, {1000, 128}, {129, 32}),
    PARITY_ROW(mingru_forward, true, {1, 1, 1}, {5, 3, 7}, {64, 9, 130}, {33, 17, 64}, {8, 100, 128}, {100, 5, 36}),
    PARITY_ROW(mingru_backward, true, {1, 1, 1}, {5, 3, 7}, {64, 9, 130}, {33, 17, 64, 1}, {8, 100, 128, 1},
               {100, 5, 36}),
    PARITY_ROW_AS("mingru_layer_forward", mingru_forward, true, layer_forward_make, layer_forward_run, {1, 1, 64},
                  {8, 4, 64}, {64, 9, 64}, {33, 17, 64}, {64, 512, 64}, {16, 1100, 64}, {5, 3, 7}, {12, 50, 128}),
    PARITY_ROW_AS("mingru_layer_backward", mingru_backward, true, layer_backward_make, layer_backward_run, {1, 1, 64},
                  {8, 4, 64}, {64, 9, 64}, {33, 17, 64, 1}, {7, 1, 64, 2}, {64, 512, 64, 2}, {16, 1100, 64, 1},
                  {5, 3, 7}, {12, 50, 128, 2}),
    PARITY_ROW(lstm_step, true, {1, 1}, {33, 66}, {37, 24}, {1000, 32}, {77, 64}, {5, 128}, {4099, 128}, {300, 256}),
    PARITY_ROW(lstm_forward, true, {1, 1, 1}, {64, 9, 64}, {33, 17, 32}, {5, 13, 24}, {16, 100, 32}, {9, 33, 64},
               {12, 50, 128}, {3, 1100, 128}, {1, 7, 128}, {4, 20, 256}),
    PARITY_ROW(lstm_backward, true, {1, 1, 1}, {64, 9, 64}, {33, 17, 32}, {5, 13, 24}, {16, 100, 32}, {9, 33, 64},
               {12, 50, 128}, {3, 1100, 128}, {1, 7, 128}, {4, 20, 256}),
    PARITY_ROW(conv_forward, true, {1, 1, 1, 1, 1}, {7, 11, 1, 32, 1 + 4}, {33, 5, 3, 7, 2 + 8},
               {100, 11, 32, 32, 1 + 4}, {9, 12, 16, 8, 2 + 4}, {17, 6, 8, 16, 1}, {7, 11, 1, 32, 1 + 4 + 64},
               {33, 5, 3, 8, 2 + 8 + 64}, {100, 11, 32, 32, 1 + 4 + 64}, {7, 11, 1, 32, 1 + 4 + 128},
               {100, 11, 32, 32, 1 + 4 + 128}),
    PARITY_ROW(conv_backward, true, {1, 1, 1, 1, 1}, {7, 11, 1, 32, 1 + 4}, {33, 5, 3, 7, 2 + 8 + 16 + 32},
               {100, 11, 32, 32, 1 + 4 + 16}, {9, 12, 16, 8, 2 + 4 + 16 + 32}, {17, 6, 8, 16, 1 + 16},
               {7, 11, 1, 32, 1 + 4 + 64}, {33, 5, 3, 8, 2 + 8 + 32 + 64}, {3, 3, 512, 128, 1 + 4 + 32},
               {32768, 11, 1, 16, 1 + 4}),
    PARITY_ROW_AS("linear_forward_of_bytes", linear_forward, true, source_forward_make, source_forward_run,
                  {1, 1, 1, 0, 2}, {37, 9, 600, 0, 3}, {1300, 5, 300, 7, 2}, {4000, 64, 9408, 0, 2}, {40, 6, 11, 19, 1},
                  {900, 64, 118, 5, 3}),
    PARITY_ROW_AS("linear_backward_of_bytes", linear_backward, true, source_backward_make, source_backward_run,
                  {1, 1, 1, 0, 2}, {37, 9, 600, 0, 3}, {1300, 5, 300, 7, 2}, {4000, 64, 9408, 0, 2}, {40, 6, 11, 19, 1},
                  {900, 64, 118, 5, 3}),
    PARITY_ROW_AS("conv_of_bytes", conv_forward, true, bytes_conv_make, bytes_conv_run, {1, 1, 1, 1, 0},
                  {33, 10, 4, 16, 0}, {70, 10, 4, 16, 5},
                  {16, 84, 4, 16,
                   0}) /* more rows: db is a sum of millions of numbers around 0, and f32 keeps too few digits of it */,
    PARITY_ROW_AS("zero_rows", zero_rows, false, zero_rows_make, zero_rows_run, {1, 2, 1}, {7, 14, 31}, {64, 128, 192},
                  {100, 300, 1000}),
    PARITY_ROW_AS("frames_stack", frames_stack, false, frames_make, frames_run, {1, 2, 0, 0, 1 + 64},
                  {33, 4, 100, 4, 64 + 1024}, {50, 3, 7, 2, 5 + 128}, {50, 3, 7, 2, 5 + 256 + 1024},
                  {40, 4, 9, 3, 2 + 64 + 2048 + 1024}),
};

int main(int argc, char **argv)
{
    return parity_main(argc, argv, "parity_nets", cases, COUNT(cases));
}
