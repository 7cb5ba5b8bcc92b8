/* test_mingru.c - the MinGRU layer against the formulas in f64: step, sequence with resets, gradient by differences. */
#include "tests/kernels/kern_test.h"

/* out (T, B, H), h (T, B, H) from gates (T, B, 3H), x, h0, reset. */
static void forward_f64(double *out, double *h, const double *gates, const double *x, const double *h0,
                        const uint8_t *reset, size_t T, size_t B, size_t H)
{
    for (size_t t = 0; t < T; t++)
        for (size_t b = 0; b < B; b++)
            for (size_t j = 0; j < H; j++) {
                size_t at = t * B + b, i = at * H + j;
                double a = gates[at * 3 * H + j], g = gates[at * 3 * H + H + j], p = gates[at * 3 * H + 2 * H + j];
                double prev = t == 0 ? h0[b * H + j] : h[i - B * H];
                double z = sigmoid_f64(g), c = a >= 0.0 ? a + 0.5 : sigmoid_f64(a), s = sigmoid_f64(p);
                if (reset[at])
                    prev = 0.0;
                h[i] = (1.0 - z) * prev + z * c;
                out[i] = s * h[i] + (1.0 - s) * x[i];
            }
}

struct seq {
    size_t T, B, H;
    float *gates, *x, *h0, *out, *h;
    const float *dout; /* of loss_f64 */
    uint8_t *reset;
    double *gates64, *x64, *h064, *out64, *h64;
};

static struct seq seq_make(size_t T, size_t B, size_t H)
{
    struct rng rng = rng_seed(T * 100 + B * 10 + H);
    size_t n = T * B * H;
    struct seq s = {.T = T, .B = B, .H = H};
    s.gates = test_normal(&rng, n * 3, 1.5f);
    s.x = test_normal(&rng, n, 1.0f);
    s.h0 = test_normal(&rng, B * H, 1.0f);
    s.reset = test_flags(&rng, T * B, 0.2f);
    s.out = NEW(float, n), s.h = NEW(float, n);
    s.gates64 = test_f64(s.gates, n * 3), s.x64 = test_f64(s.x, n), s.h064 = test_f64(s.h0, B * H);
    s.out64 = NEW(double, n), s.h64 = NEW(double, n);
    return s;
}

static struct kern_mingru layer_of(const struct seq *s)
{
    return (struct kern_mingru){.T = s->T,
                                .B = s->B,
                                .H = s->H,
                                .gates = s->gates,
                                .x = s->x,
                                .reset = s->reset,
                                .out = s->out,
                                .h0 = s->h0,
                                .h = s->h};
}

static const size_t shapes[][3] = {{1, 1, 1}, {5, 3, 7}, {4, 17, 33}, {9, 2, 128}, {3, 2, 4100}};

TEST(sequence_and_steps_agree_with_f64)
{
    for (size_t t = 0; t < N_THREADS; t++)
        for (size_t i = 0; i < COUNT(shapes); i++) {
            KERN *k = test_kern(test_threads[t]);
            struct seq s = seq_make(shapes[i][0], shapes[i][1], shapes[i][2]);
            struct kern_mingru l = layer_of(&s);
            size_t row = s.B * s.H;
            float *carried = test_copy(s.h0, row), *out = NEW(float, row);

            forward_f64(s.out64, s.h64, s.gates64, s.x64, s.h064, s.reset, s.T, s.B, s.H);
            kern_ops(k)->mingru_forward(k, &l);
            check_close("out", s.out, s.out64, s.T * row, 1e-6);
            check_close("h", s.h, s.h64, s.T * row, 1e-6);
            /* A rollout's steps give the very bytes that training on the sequence gives. */
            for (size_t at = 0; at < s.T; at++) {
                l.out = out, l.state = carried, l.gates = s.gates + at * row * 3, l.x = s.x + at * row,
                l.reset = s.reset + at * s.B;
                kern_ops(k)->mingru_step(k, &l);
                assert_memory_equal(out, s.out + at * row, row * sizeof(float));
                assert_memory_equal(carried, s.h + at * row, row * sizeof(float));
            }
        }
}

TEST(reset_forgets_even_nan)
{
    KERN *k = test_kern(1);
    float h[2] = {NAN, INFINITY}, gates[6] = {1, 1, 0, 0, 0, 0}, x[2] = {0, 0}, out[2];
    uint8_t reset = 1;
    kern_ops(k)->mingru_step(
        k, &(struct kern_mingru){.out = out, .state = h, .gates = gates, .x = x, .reset = &reset, .B = 1, .H = 2});
    check_number("h", (double)h[0], 0.75, 1e-6);
    check_number("h", (double)h[1], 0.75, 1e-6);
}

/* sum of dout * out */
static double loss_f64(const void *of)
{
    const struct seq *s = of;
    double sum = 0.0;
    forward_f64(s->out64, s->h64, s->gates64, s->x64, s->h064, s->reset, s->T, s->B, s->H);
    for (size_t i = 0; i < s->T * s->B * s->H; i++)
        sum += s->out64[i] * (double)s->dout[i];
    return sum;
}

TEST(gradient_is_finite_differences)
{
    for (size_t t = 0; t < N_THREADS; t++) {
        KERN *k = test_kern(test_threads[t]);
        struct seq s = seq_make(7, 5, 3);
        struct kern_mingru l = layer_of(&s);
        struct rng rng = rng_seed(3);
        size_t n = s.T * s.B * s.H;
        float *dout = test_normal(&rng, n, 1.0f), *dx = NEW(float, n), *dgates = NEW(float, n * 3);
        size_t inside = 0;

        s.dout = dout;
        for (size_t i = s.B; i < s.T * s.B; i++)
            inside += s.reset[i];
        assert_true(inside > 2); /* the test is about resets inside the segment too */
        kern_ops(k)->mingru_forward(k, &l);
        l.dx = dx, l.dgates = dgates, l.dout = dout;
        kern_ops(k)->mingru_backward(k, &l);
        for (size_t i = 0; i < n; i++)
            check_number("dx", (double)dx[i], central_difference(&s.x64[i], loss_f64, &s), 2e-6);
        for (size_t i = 0; i < n * 3; i++)
            check_number("dgates", (double)dgates[i], central_difference(&s.gates64[i], loss_f64, &s), 2e-6);
        /* dx may be dout */
        l.dx = dout;
        kern_ops(k)->mingru_backward(k, &l);
        assert_memory_equal(dout, dx, n * sizeof(float));
    }
}

/* Wide layers and many agents go in groups: the same numbers as one agent and few columns at a time. */
TEST(groups_do_not_matter)
{
    KERN *k = test_kern(2);
    struct seq s = seq_make(4, 70, 130);
    struct kern_mingru l = layer_of(&s);
    struct rng rng = rng_seed(8);
    size_t n = s.T * s.B * s.H, H = s.H;
    float *dout = test_normal(&rng, n, 1.0f), *dx = NEW(float, n), *dgates = NEW(float, n * 3);
    double *carry = NEW(double, s.B *H), *want = NEW(double, n * 3);

    kern_ops(k)->mingru_forward(k, &l);
    l.dx = dx, l.dgates = dgates, l.dout = dout;
    kern_ops(k)->mingru_backward(k, &l);
    forward_f64(s.out64, s.h64, s.gates64, s.x64, s.h064, s.reset, s.T, s.B, H);
    for (size_t t = s.T; t-- > 0;)
        for (size_t b = 0; b < s.B; b++)
            for (size_t j = 0; j < H; j++) {
                size_t at = t * s.B + b, i = at * H + j;
                const double *gates = s.gates64 + at * 3 * H;
                double a = gates[j], z = sigmoid_f64(gates[H + j]), gate = sigmoid_f64(gates[2 * H + j]);
                double prev = s.reset[at] ? 0.0 : t == 0 ? s.h064[b * H + j] : s.h64[i - s.B * H];
                double c = a >= 0.0 ? a + 0.5 : sigmoid_f64(a), slope = a >= 0.0 ? 1.0 : c * (1.0 - c);
                double dh = (double)dout[i] * gate + carry[b * H + j];
                want[at * 3 * H + j] = dh * z * slope;
                want[at * 3 * H + H + j] = dh * (c - prev) * z * (1.0 - z);
                want[at * 3 * H + 2 * H + j] = (double)dout[i] * (s.h64[i] - s.x64[i]) * gate * (1.0 - gate);
                carry[b * H + j] = s.reset[at] ? 0.0 : dh * (1.0 - z);
            }
    check_close("dgates", dgates, want, n * 3, 2e-6);
}

TEST_PROGRAM("mingru")
