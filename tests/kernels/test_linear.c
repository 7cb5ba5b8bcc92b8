/* test_linear.c - linear layers against plain f64 loops and central differences. */
#include "tests/kernels/kern_test.h"

static const size_t shapes[][3] = {{1, 1, 1}, {3, 5, 7}, {17, 33, 9}, {130, 5, 128}, {1100, 24, 13}, {2049, 37, 40}};

static double act_f64(double x, enum kern_act act)
{
    return act == KERN_ACT_RELU ? (x > 0.0 ? x : 0.0) : act == KERN_ACT_TANH ? tanh(x) : x;
}

static double act_slope(double y, enum kern_act act)
{
    return act == KERN_ACT_RELU ? (y > 0.0 ? 1.0 : 0.0) : act == KERN_ACT_TANH ? 1.0 - y * y : 1.0;
}

static double *forward_f64(const float *x, const float *w, const float *b, size_t M, size_t N, size_t K,
                           enum kern_act act)
{
    double *y = NEW(double, M *N);
    for (size_t m = 0; m < M; m++)
        for (size_t n = 0; n < N; n++) {
            double sum = b == NULL ? 0.0 : (double)b[n];
            for (size_t i = 0; i < K; i++)
                sum += (double)x[m * K + i] * (double)w[n * K + i];
            y[m * N + n] = act_f64(sum, act);
        }
    return y;
}

static void one_shape(struct kern *k, size_t M, size_t N, size_t K, enum kern_act act, bool bias, bool add_dx)
{
    const struct kern_ops *ops = kern_ops(k);
    struct rng rng = rng_seed(M * 7 + N * 3 + K + (size_t)act);
    float *x = test_normal(&rng, M * K, 1.0f), *w = test_normal(&rng, N * K, 1.0f / sqrtf((float)K));
    float *b = bias ? test_normal(&rng, N, 1.0f) : NULL, *dy = test_normal(&rng, M * N, 1.0f);
    float *y = NEW(float, M *N), *dx = test_normal(&rng, M * K, 1.0f), *dw = test_normal(&rng, N * K, 9.0f);
    float *db = test_normal(&rng, N, 9.0f);
    double *y_ref = forward_f64(x, w, b, M, N, K, act), *dy_ref = test_f64(dy, M * N);
    double *dx_ref = test_f64(dx, M * K), *dw_ref = NEW(double, N *K), *db_ref = NEW(double, N);

    ops->linear_forward(k, &(struct kern_linear){.y = y, .x = x, .w = w, .b = b, .M = M, .N = N, .K = K, .act = act});
    check_close("y", y, y_ref, M * N, 2e-6);

    for (size_t i = 0; !add_dx && i < M * K; i++)
        dx_ref[i] = 0.0;
    for (size_t m = 0; m < M; m++)
        for (size_t n = 0; n < N; n++) {
            double d = dy_ref[m * N + n] * act_slope((double)y[m * N + n], act);
            dy_ref[m * N + n] = d;
            db_ref[n] += d;
            for (size_t i = 0; i < K; i++) {
                dw_ref[n * K + i] += d * (double)x[m * K + i];
                dx_ref[m * K + i] += d * (double)w[n * K + i];
            }
        }
    struct kern_linear l = {.M = M, .N = N, .K = K, .act = act, .add_dx = add_dx};
    l.dx = dx, l.dw = dw, l.db = bias ? db : NULL, l.dy = dy, l.y = y, l.x = x, l.w = w;
    ops->linear_backward(k, &l);
    check_close("dy", dy, dy_ref, M * N, 2e-6);
    check_close("dx", dx, dx_ref, M * K, 2e-6);
    check_close("dw", dw, dw_ref, N * K, 5e-6);
    if (bias)
        check_close("db", db, db_ref, N, 5e-6);
}

TEST(agrees_with_plain_loops)
{
    for (size_t t = 0; t < N_THREADS; t++) {
        KERN *k = test_kern(test_threads[t]);
        for (size_t s = 0; s < COUNT(shapes); s++)
            for (int act = KERN_ACT_NONE; act <= KERN_ACT_TANH; act++)
                one_shape(k, shapes[s][0], shapes[s][1], shapes[s][2], (enum kern_act)act, (s + t) % 2 == 0, act == 1);
    }
}

/* More rows of dw than one worker's grain, wider than the blocks of a cache. */
TEST(wide_layers_agree_too)
{
    for (size_t t = 0; t < N_THREADS; t++) {
        KERN *k = test_kern(test_threads[t]);
        one_shape(k, 30, 520, 510, KERN_ACT_TANH, true, true);
    }
}

/* An input of bytes, or of numbers with others between the rows, gives what the same numbers give as a plain one. */
static void one_source(struct kern *k, size_t M, size_t N, size_t K, size_t row, bool bytes, bool adds)
{
    const struct kern_ops *ops = kern_ops(k);
    struct rng rng = rng_seed(M + N + K + row);
    const float scale = 1.0f / 255.0f;
    uint8_t *x8 = NEW(uint8_t, M * row);
    float *x = NEW(float, M *row), *plain = NEW(float, M *K), *w = test_normal(&rng, N * K, 1.0f / sqrtf((float)K));
    float *dy = test_normal(&rng, M * N, 1.0f), *y = NEW(float, M *N), *dw = test_normal(&rng, N * K, 1.0f);
    double *y_ref, *dw_ref = NEW(double, N *K);
    void *wide = test_alloc(kern_wide_bytes(k), 1);
    struct kern_linear l = {.M = M, .N = N, .K = K, .act = KERN_ACT_NONE};

    for (size_t i = 0; i < M * row; i++) {
        x8[i] = (uint8_t)rng_u32(&rng);
        x[i] = bytes ? (float)x8[i] * scale : 1.0f - 2.0f * rng_f32(&rng);
        if (i % row < K)
            plain[i / row * K + i % row] = x[i];
    }
    y_ref = forward_f64(plain, w, NULL, M, N, K, KERN_ACT_NONE);
    for (size_t i = 0; i < M * N; i++) {
        y[i] = adds ? dy[i] : NAN;
        y_ref[i] += adds ? (double)dy[i] : 0.0;
    }
    for (size_t n = 0; n < N; n++)
        for (size_t i = 0; i < K; i++) {
            double sum = adds ? (double)dw[n * K + i] : 0.0;
            for (size_t m = 0; m < M; m++)
                sum += (double)dy[m * N + n] * (double)plain[m * K + i];
            dw_ref[n * K + i] = sum;
        }
    l.from = (struct kern_source){.row = row, .bytes = bytes, .scale = scale, .wide = wide};
    l.x = bytes ? (void *)x8 : (void *)x;
    l.w = w, l.y = y, l.dy = dy, l.dw = dw, l.add_y = adds, l.add_dw = adds;
    ops->linear_forward(k, &l);
    check_close("y", y, y_ref, M * N, 2e-6);
    ops->linear_backward(k, &l);
    check_close("dw", dw, dw_ref, N * K, 5e-6);
}

TEST(sources_are_widened)
{
    for (size_t t = 0; t < N_THREADS; t++) {
        KERN *k = test_kern(test_threads[t]);
        one_source(k, 1, 1, 1, 1, true, false);
        one_source(k, 37, 9, 600, 600, true, true); /* three tiles of columns */
        one_source(k, 1300, 5, 300, 307, true, false); /* and several of rows */
        one_source(k, 40, 6, 11, 30, false, true);
    }
}

/* loss = sum of r * y in f64 from f32 parameters moved to and fro */
static double loss_f64(const float *x, const float *w, const float *b, const float *r, size_t M, size_t N, size_t K)
{
    double *y = forward_f64(x, w, b, M, N, K, KERN_ACT_TANH), sum = 0.0;
    for (size_t i = 0; i < M * N; i++)
        sum += y[i] * (double)r[i];
    return sum;
}

static double difference(float *at, const float *x, const float *w, const float *b, const float *r, size_t M, size_t N,
                         size_t K)
{
    const float step = 0x1p-10f;
    float keep = *at, up = keep + step, down = keep - step;
    *at = up;
    double high = loss_f64(x, w, b, r, M, N, K);
    *at = down;
    double low = loss_f64(x, w, b, r, M, N, K);
    *at = keep;
    return (high - low) / ((double)up - (double)down);
}

TEST(gradients_are_finite_differences)
{
    enum { M = 6, N = 5, K = 7 };
    struct rng rng = rng_seed(11);
    KERN *k = test_kern(2);
    float *x = test_normal(&rng, M * K, 1.0f), *w = test_normal(&rng, N * K, 0.3f), *b = test_normal(&rng, N, 0.3f);
    float *r = test_normal(&rng, M * N, 1.0f), *dy = test_copy(r, M * N);
    float *y = NEW(float, M *N), *dx = NEW(float, M *K), *dw = NEW(float, N *K), *db = NEW(float, N);

    kern_ops(k)->linear_forward(
        k, &(struct kern_linear){.y = y, .x = x, .w = w, .b = b, .M = M, .N = N, .K = K, .act = KERN_ACT_TANH});
    struct kern_linear l = {.M = M, .N = N, .K = K, .act = KERN_ACT_TANH};
    l.dx = dx, l.dw = dw, l.db = db, l.dy = dy, l.y = y, l.x = x, l.w = w;
    kern_ops(k)->linear_backward(k, &l);
    for (size_t i = 0; i < M * K; i++)
        check_number("dx", (double)dx[i], difference(&x[i], x, w, b, r, M, N, K), 1e-5);
    for (size_t i = 0; i < N * K; i++)
        check_number("dw", (double)dw[i], difference(&w[i], x, w, b, r, M, N, K), 1e-5);
    for (size_t i = 0; i < N; i++)
        check_number("db", (double)db[i], difference(&b[i], x, w, b, r, M, N, K), 1e-5);
}

TEST(same_bytes_twice)
{
    enum { M = 3001, N = 48, K = 21 };
    for (size_t t = 0; t < N_THREADS; t++) {
        float *got[2][3];
        for (int run = 0; run < 2; run++) {
            struct rng rng = rng_seed(5);
            KERN *k = test_kern(test_threads[t]);
            float *x = test_normal(&rng, M * K, 1.0f), *w = test_normal(&rng, N * K, 0.3f),
                  *dy = test_normal(&rng, M * N, 1.0f);
            float *y = NEW(float, M *N), *dx = NEW(float, M *K), *dw = NEW(float, N *K), *db = NEW(float, N);
            kern_ops(k)->linear_forward(
                k, &(struct kern_linear){.y = y, .x = x, .w = w, .M = M, .N = N, .K = K, .act = KERN_ACT_RELU});
            struct kern_linear l = {.M = M, .N = N, .K = K, .act = KERN_ACT_RELU};
            l.dx = dx, l.dw = dw, l.db = db, l.dy = dy, l.y = y, l.x = x, l.w = w;
            kern_ops(k)->linear_backward(k, &l);
            got[run][0] = dx, got[run][1] = dw, got[run][2] = db;
        }
        assert_memory_equal(got[0][0], got[1][0], M * K * sizeof(float));
        assert_memory_equal(got[0][1], got[1][1], N * K * sizeof(float));
        assert_memory_equal(got[0][2], got[1][2], N * sizeof(float));
    }
}

/* Two halves of the tokens, the second adding, give what all of them give. */
TEST(blocks_add_up)
{
    enum { M = 150, CUT = 61, N = 20, K = 9 };
    struct rng rng = rng_seed(21);
    KERN *k = test_kern(2);
    float *x = test_normal(&rng, M * K, 1.0f), *w = test_normal(&rng, N * K, 0.3f),
          *dy = test_normal(&rng, M * N, 1.0f);
    float *dw = NEW(float, N *K), *db = NEW(float, N), *dw2 = test_normal(&rng, N * K, 1.0f), *db2 = NEW(float, N);
    double *dw_ref, *db_ref;

    kern_ops(k)->linear_backward(
        k, &(struct kern_linear){.dw = dw, .db = db, .dy = dy, .x = x, .w = w, .M = M, .N = N, .K = K});
    kern_ops(k)->linear_backward(
        k, &(struct kern_linear){.dw = dw2, .db = db2, .dy = dy, .x = x, .w = w, .M = CUT, .N = N, .K = K});
    struct kern_linear l = {.M = M - CUT, .N = N, .K = K, .add_dw = true};
    l.dw = dw2, l.db = db2, l.dy = dy + CUT * N, l.x = x + CUT * K, l.w = w;
    kern_ops(k)->linear_backward(k, &l);
    dw_ref = test_f64(dw, N * K), db_ref = test_f64(db, N);
    check_close("dw", dw2, dw_ref, N * K, 1e-6);
    check_close("db", db2, db_ref, N, 1e-6);
}

TEST(no_dx_wanted)
{
    float x[6] = {1, 2, 3, 4, 5, 6}, w[3] = {1, 1, 1}, dy[2] = {1, -1}, dw[3];
    KERN *k = test_kern(1);
    kern_ops(k)->linear_backward(k, &(struct kern_linear){.dw = dw, .dy = dy, .x = x, .w = w, .M = 2, .N = 1, .K = 3});
    for (int i = 0; i < 3; i++)
        assert_true(dw[i] == -3.0f);
}

TEST_PROGRAM("linear")
