/* test_lstm.c - the LSTM layer against the formulas in f64: step, sequence with resets, gradient by differences. */
#include "tests/kernels/kern_test.h"

struct seq {
    size_t T, B, H;
    float *gates, *w, *state, *out, *h_prev, *c_prev;
    const float *dout; /* of loss_f64 */
    uint8_t *reset;
    double *gates64, *w64, *state64, *out64; /* state64: before the first step */
    double *after64; /* (B, 2H) after the last */
};

/* out64 and after64 from gates64, w64, state64 and reset. */
static void forward_f64(const struct seq *s)
{
    size_t B = s->B, H = s->H;
    double *now = s->after64, *pre = NEW(double, 4 * H);

    memcpy(now, s->state64, B * 2 * H * sizeof *now);
    for (size_t t = 0; t < s->T; t++)
        for (size_t b = 0; b < B; b++) {
            size_t at = t * B + b;
            double *h = now + b * 2 * H, *c = h + H;
            for (size_t j = 0; s->reset[at] && j < 2 * H; j++)
                h[j] = 0.0;
            for (size_t r = 0; r < 4 * H; r++) {
                pre[r] = s->gates64[at * 4 * H + r];
                for (size_t j = 0; j < H; j++)
                    pre[r] += s->w64[r * H + j] * h[j];
            }
            for (size_t j = 0; j < H; j++) {
                c[j] = sigmoid_f64(pre[H + j]) * c[j] + sigmoid_f64(pre[j]) * tanh(pre[2 * H + j]);
                h[j] = sigmoid_f64(pre[3 * H + j]) * tanh(c[j]);
                s->out64[at * H + j] = h[j];
            }
        }
}

static struct seq seq_make(size_t T, size_t B, size_t H)
{
    struct rng rng = rng_seed(T * 100 + B * 10 + H);
    size_t n = T * B * H;
    struct seq s = {.T = T, .B = B, .H = H};
    s.gates = test_normal(&rng, n * 4, 1.0f);
    s.w = test_normal(&rng, 4 * H * H, 1.0f / sqrtf((float)H));
    s.state = test_normal(&rng, B * 2 * H, 0.5f);
    s.reset = test_flags(&rng, T * B, 0.2f);
    s.out = NEW(float, n), s.h_prev = NEW(float, n), s.c_prev = NEW(float, n);
    s.gates64 = test_f64(s.gates, n * 4), s.w64 = test_f64(s.w, 4 * H * H), s.state64 = test_f64(s.state, B * 2 * H);
    s.out64 = NEW(double, n), s.after64 = NEW(double, B * 2 * H);
    return s;
}

static struct kern_lstm layer_of(const struct seq *s)
{
    return (struct kern_lstm){.T = s->T,
                              .B = s->B,
                              .H = s->H,
                              .gates = s->gates,
                              .w_hh = s->w,
                              .reset = s->reset,
                              .state = s->state,
                              .out = s->out,
                              .h_prev = s->h_prev,
                              .c_prev = s->c_prev};
}

static void seq_forward(struct kern *k, struct seq *s)
{
    struct kern_lstm l = layer_of(s);
    kern_ops(k)->lstm_forward(k, &l);
}

static const size_t shapes[][3] = {{1, 1, 1}, {5, 3, 7}, {4, 17, 33}, {9, 2, 128}, {6, 50, 16}};

TEST(sequence_and_steps_agree_with_f64)
{
    for (size_t t = 0; t < N_THREADS; t++)
        for (size_t i = 0; i < COUNT(shapes); i++) {
            KERN *k = test_kern(test_threads[t]);
            struct seq s = seq_make(shapes[i][0], shapes[i][1], shapes[i][2]);
            size_t row = s.B * s.H;
            float *carried = test_copy(s.state, row * 2), *gates = test_copy(s.gates, s.T * row * 4);
            float *out = NEW(float, row);

            forward_f64(&s);
            seq_forward(k, &s);
            check_close("out", s.out, s.out64, s.T * row, 2e-6);
            check_close("state", s.state, s.after64, row * 2, 2e-6);
            for (size_t at = 0; at < s.T; at++) { /* what the way back finds, and the same by single steps */
                for (size_t b = 0; b < s.B; b++)
                    for (size_t j = 0; j < s.H; j++) {
                        size_t x = (at * s.B + b) * s.H + j;
                        bool zero = s.reset[at * s.B + b] != 0;
                        float h = carried[b * 2 * s.H + j], c = carried[b * 2 * s.H + s.H + j];
                        check_number("h_prev", (double)s.h_prev[x], zero ? 0.0 : (double)h, 2e-6);
                        check_number("c_prev", (double)s.c_prev[x], zero ? 0.0 : (double)c, 2e-6);
                    }
                struct kern_lstm l = layer_of(&s);
                l.out = out, l.state = carried, l.gates = gates + at * row * 4, l.reset = s.reset + at * s.B;
                kern_ops(k)->lstm_step(k, &l);
                check_close("step", out, s.out64 + at * row, row, 2e-6);
            }
            check_close("carried", carried, s.after64, row * 2, 2e-6);
        }
}

TEST(reset_forgets_even_nan)
{
    KERN *k = test_kern(1);
    float carried[4] = {NAN, INFINITY, -INFINITY, NAN}, gates[8] = {0, 0, 0, 0, 1, 1, 0, 0}, out[2];
    float w[16] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    uint8_t reset = 1;
    double c = 0.5 * tanh(1.0);

    kern_ops(k)->lstm_step(
        k,
        &(struct kern_lstm){.out = out, .state = carried, .gates = gates, .w_hh = w, .reset = &reset, .B = 1, .H = 2});
    for (size_t j = 0; j < 2; j++) {
        check_number("c", (double)carried[2 + j], c, 1e-6);
        check_number("h", (double)carried[j], 0.5 * tanh(c), 1e-6);
        check_number("out", (double)out[j], 0.5 * tanh(c), 1e-6);
    }
}

/* sum of dout * out */
static double loss_f64(const void *of)
{
    const struct seq *s = of;
    double sum = 0.0;
    forward_f64(s);
    for (size_t i = 0; i < s->T * s->B * s->H; i++)
        sum += s->out64[i] * (double)s->dout[i];
    return sum;
}

TEST(gradient_is_finite_differences)
{
    for (size_t t = 0; t < N_THREADS; t++) {
        KERN *k = test_kern(test_threads[t]);
        struct seq s = seq_make(7, 5, 3);
        struct rng rng = rng_seed(3);
        size_t n = s.T * s.B * s.H, inside = 0;
        float *dout = test_normal(&rng, n, 1.0f), *dstate = NEW(float, s.B * 2 * s.H);
        float *dw = NEW(float, 4 * s.H * s.H);

        s.dout = dout;
        for (size_t i = s.B; i < s.T * s.B; i++)
            inside += s.reset[i];
        assert_true(inside > 2); /* the test is about resets inside the segment too */
        seq_forward(k, &s);
        dstate[0] = NAN; /* whatever was there */
        struct kern_lstm l = layer_of(&s);
        l.dstate = dstate, l.dout = dout;
        kern_ops(k)->lstm_backward(k, &l);
        for (size_t i = 0; i < n * 4; i++)
            check_number("dgates", (double)s.gates[i], central_difference(&s.gates64[i], loss_f64, &s), 4e-6);
        for (size_t b = 0; b < s.B; b++)
            for (size_t j = 0; j < 2 * s.H; j++) {
                double got = (double)dstate[(j / s.H * s.B + b) * s.H + j % s.H];
                check_number("dstate", got, central_difference(&s.state64[b * 2 * s.H + j], loss_f64, &s), 4e-6);
            }
        kern_ops(k)->linear_backward(
            k, &(struct kern_linear){
                   .dw = dw, .dy = s.gates, .x = s.h_prev, .w = s.w, .M = s.T * s.B, .N = 4 * s.H, .K = s.H});
        for (size_t i = 0; i < 4 * s.H * s.H; i++)
            check_number("dw_hh", (double)dw[i], central_difference(&s.w64[i], loss_f64, &s), 4e-6);
    }
}

/* The gradient does not depend on how agents are shared out. */
TEST(threads_do_not_matter)
{
    struct seq a = seq_make(5, 61, 40), b = seq_make(5, 61, 40);
    KERN *one = test_kern(1), *three = test_kern(3);
    struct rng rng = rng_seed(8);
    size_t n = a.T * a.B * a.H;
    float *dout = test_normal(&rng, n, 1.0f), *dstate = NEW(float, a.B * 2 * a.H);

    seq_forward(one, &a);
    struct kern_lstm l = layer_of(&a);
    l.dstate = dstate, l.dout = dout;
    kern_ops(one)->lstm_backward(one, &l);
    double *want = test_f64(a.gates, n * 4);
    seq_forward(three, &b);
    l = layer_of(&b);
    l.dstate = dstate, l.dout = dout;
    kern_ops(three)->lstm_backward(three, &l);
    check_close("dgates", b.gates, want, n * 4, 1e-6);
}

TEST_PROGRAM("lstm")
