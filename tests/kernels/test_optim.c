/* test_optim.c - gradient norm, Adam and Muon against their published formulas in f64. */
#include "tests/kernels/kern_test.h"

#include <lapacke.h>

static const struct kern_stats no_stop;

TEST(norm_and_nonfinite)
{
    struct rng rng = rng_seed(1);
    for (size_t t = 0; t < N_THREADS; t++)
        for (size_t n = 1; n < 20000; n = n * 5 + 2) {
            KERN *k = test_kern(test_threads[t]);
            float *g = test_normal(&rng, n, 1.0f), norm;
            struct kern_stats stats = {0};
            double sum = 0.0;
            for (size_t i = 0; i < n; i++)
                sum += (double)g[i] * (double)g[i];
            kern_ops(k)->grad_norm(k, &norm, &stats, g, n);
            check_number("norm", (double)norm, sqrt(sum), 1e-6);
            check_number("stats", stats.grad_norm, sqrt(sum), 1e-9);
            g[n - 1] = t == 0 ? NAN : INFINITY;
            kern_ops(k)->grad_norm(k, &norm, &stats, g, n);
            assert_true(isnan(norm));
            assert_int_equal(stats.nonfinite, 1);
            check_number("stats", stats.grad_norm, sqrt(sum), 1e-9);
        }
}

TEST(adam_is_as_published)
{
    enum { N = 5003, STEPS = 4 };
    for (size_t t = 0; t < N_THREADS; t++)
        for (int decay = 0; decay < 2; decay++) {
            struct rng rng = rng_seed(2);
            KERN *k = test_kern(test_threads[t]);
            struct kern_hyper h = {.lr = 0.01f,
                                   .beta1 = 0.9f,
                                   .beta2 = 0.99f,
                                   .eps = 1e-5f,
                                   .max_grad_norm = 0.5f,
                                   .weight_decay = decay ? 0.1f : 0.0f};
            float *w = test_normal(&rng, N, 1.0f), *m = NEW(float, N), *v = NEW(float, N);
            double *w64 = test_f64(w, N), *m64 = NEW(double, N), *v64 = NEW(double, N);
            int64_t step = 0;
            for (int s = 1; s <= STEPS; s++) {
                struct kern_stats stats = {0};
                float *g = test_normal(&rng, N, s == 2 ? 1e-4f : 0.1f), norm; /* step 2 is below the clip */
                kern_ops(k)->grad_norm(k, &norm, &stats, g, N);
                struct kern_optimiser l = {.n = N};
                l.w = w, l.m = m, l.v = v, l.g = g, l.norm = &norm, l.stats = &stats, l.step = &step, l.hyper = &h;
                kern_ops(k)->adam(k, &l);
                kern_ops(k)->optimiser_tick(k, &step, &norm, &stats);
                assert_int_equal(step, s);
                double scale = fmin(1.0, 0.5 / (stats.grad_norm + 1e-6));
                assert_true((scale == 1.0) == (s == 2));
                for (size_t i = 0; i < N; i++) {
                    double gi = (double)g[i] * scale, b1 = (double)h.beta1, b2 = (double)h.beta2, lr = (double)h.lr;
                    m64[i] = b1 * m64[i] + (1.0 - b1) * gi;
                    v64[i] = b2 * v64[i] + (1.0 - b2) * gi * gi;
                    w64[i] -= lr * (double)h.weight_decay * w64[i];
                    w64[i] -= lr * (m64[i] / (1.0 - pow(b1, s))) / (sqrt(v64[i] / (1.0 - pow(b2, s))) + (double)h.eps);
                }
            }
            check_close("w", w, w64, N, 1e-6);
            check_close("m", m, m64, N, 1e-6);
            check_close("v", v, v64, N, 1e-5);
        }
}

/* c (n, m) = a (n, k) b (k, m) */
static void mul(double *c, const double *a, const double *b, size_t n, size_t k, size_t m)
{
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < m; j++) {
            double sum = 0.0;
            for (size_t l = 0; l < k; l++)
                sum += a[i * k + l] * b[l * m + j];
            c[i * m + j] = sum;
        }
}

/* Newton-Schulz as ppo.md writes it, with X X^T whatever the shape. */
static void orthogonalise(double *x, size_t rows, size_t cols)
{
    static const double coef[5][3] = {{4.0848, -6.8946, 2.9270},
                                      {3.9505, -6.3029, 2.6377},
                                      {3.7418, -5.5913, 2.3037},
                                      {2.8769, -3.1427, 1.2046},
                                      {2.8366, -3.0525, 1.2012}};
    size_t n = rows * cols;
    double *xt = NEW(double, n), *s = NEW(double, rows *rows), *sx = NEW(double, n), *ssx = NEW(double, n), norm = 0.0;
    for (size_t i = 0; i < n; i++)
        norm += x[i] * x[i];
    for (size_t i = 0; i < n; i++)
        x[i] /= sqrt(norm);
    for (int step = 0; step < 5; step++) {
        for (size_t i = 0; i < n; i++)
            xt[i % cols * rows + i / cols] = x[i];
        mul(s, x, xt, rows, cols, rows);
        mul(sx, s, x, rows, rows, cols);
        mul(ssx, s, sx, rows, rows, cols);
        for (size_t i = 0; i < n; i++)
            x[i] = coef[step][0] * x[i] + coef[step][1] * sx[i] + coef[step][2] * ssx[i];
    }
}

static size_t muon_scratch_floats(size_t rows, size_t cols)
{
    struct kern_tensor tensor = {.rows = rows, .cols = cols, .is_matrix = true};
    return (kern_muon_scratch_bytes(&tensor, 1) + sizeof(float) - 1) / sizeof(float);
}

static void muon_matrix(struct kern *k, float *w, float *m, const float *g, const float *norm, float *scratch,
                        const struct kern_stats *stats, const struct kern_hyper *h, size_t rows, size_t cols)
{
    struct kern_tensor tensor = {.rows = rows, .cols = cols, .is_matrix = true};
    struct kern_optimiser l = {.tensors = &tensor, .n_tensors = 1};
    l.w = w, l.m = m, l.g = g, l.norm = norm, l.scratch = scratch, l.stats = stats, l.hyper = h;
    kern_ops(k)->muon(k, &l);
}

static void muon_vector(struct kern *k, float *w, float *m, const float *g, const float *norm,
                        const struct kern_stats *stats, const struct kern_hyper *h, size_t n)
{
    struct kern_tensor tensor = {.rows = n, .cols = 1};
    kern_ops(k)->muon(
        k, &(struct kern_optimiser){
               .w = w, .m = m, .g = g, .norm = norm, .stats = stats, .hyper = h, .tensors = &tensor, .n_tensors = 1});
}

TEST(muon_matrix_is_as_published)
{
    static const size_t shapes[][2] = {{40, 40}, {90, 31}, {31, 90}, {1, 17}, {17, 1}, {5, 128}};
    for (size_t t = 0; t < N_THREADS; t++)
        for (size_t i = 0; i < COUNT(shapes); i++) {
            size_t rows = shapes[i][0], cols = shapes[i][1], n = rows * cols;
            struct rng rng = rng_seed(i);
            KERN *k = test_kern(test_threads[t]);
            struct kern_hyper h = {.lr = 0.05f, .beta1 = 0.8f, .weight_decay = 0.02f, .max_grad_norm = 1.0f};
            float *w = test_normal(&rng, n, 1.0f), *m = NEW(float, n);
            float *scratch = NEW(float, muon_scratch_floats(rows, cols)), norm = 3.0f;
            double *w64 = test_f64(w, n), *m64 = NEW(double, n), *u = NEW(double, n);
            double scale = 1.0 / (3.0 + 1e-6), gain = sqrt(fmax(1.0, (double)rows / (double)cols));
            for (int step = 0; step < 2; step++) {
                float *g = test_normal(&rng, n, 1.0f);
                muon_matrix(k, w, m, g, &norm, scratch, &no_stop, &h, rows, cols);
                for (size_t j = 0; j < n; j++) {
                    m64[j] = 0.8 * m64[j] + (double)g[j] * scale;
                    u[j] = (double)g[j] * scale + 0.8 * m64[j];
                }
                orthogonalise(u, rows, cols);
                for (size_t j = 0; j < n; j++)
                    w64[j] = w64[j] * (1.0 - 0.05 * 0.02) - 0.05 * gain * u[j];
            }
            check_close("m", m, m64, n, 1e-6);
            check_close("w", w, w64, n, 2e-5);
        }
}

/* What the iteration is for: the update's singular values are all near sqrt(max(1, rows / cols)). */
TEST(muon_update_is_near_orthogonal)
{
    static const size_t shapes[][2] = {{64, 64}, {192, 64}, {64, 192}, {128, 118}};
    for (size_t i = 0; i < COUNT(shapes); i++) {
        size_t rows = shapes[i][0], cols = shapes[i][1], n = rows * cols, side = rows < cols ? rows : cols;
        struct rng rng = rng_seed(i + 50);
        KERN *k = test_kern(2);
        struct kern_hyper h = {.lr = 1.0f, .beta1 = 0.9f};
        float *w = NEW(float, n), *m = NEW(float, n), *g = test_normal(&rng, n, 1e-3f), norm = 1.0f;
        float *scratch = NEW(float, muon_scratch_floats(rows, cols)), *sv = NEW(float, side), *rest = NEW(float, side);
        double gain = sqrt(fmax(1.0, (double)rows / (double)cols));
        size_t near = 0;

        muon_matrix(k, w, m, g, &norm, scratch, &no_stop, &h, rows, cols);
        assert_int_equal(LAPACKE_sgesvd(LAPACK_ROW_MAJOR, 'N', 'N', (lapack_int)rows, (lapack_int)cols, w,
                                        (lapack_int)cols, sv, NULL, 1, NULL, 1, rest),
                         0);
        for (size_t j = 0; j < side; j++) {
            double s = (double)sv[j] / gain;
            assert_true(s < 1.25);
            near += s > 0.75;
        }
        assert_true(near >= side - side / 10); /* the smallest few of a square one may still be on their way */
    }
}

TEST(muon_of_no_gradient_is_no_update)
{
    KERN *k = test_kern(1);
    struct kern_hyper h = {.lr = 1.0f, .beta1 = 0.9f};
    float w[6] = {1, 2, 3, 4, 5, 6}, m[6] = {0}, g[6] = {0}, norm = 0.0f,
          *scratch = NEW(float, muon_scratch_floats(2, 3));
    muon_matrix(k, w, m, g, &norm, scratch, &no_stop, &h, 2, 3);
    for (int i = 0; i < 6; i++)
        assert_true(w[i] == (float)(i + 1));
}

TEST(muon_vector_takes_u)
{
    enum { N = 77 };
    struct rng rng = rng_seed(3);
    KERN *k = test_kern(1);
    struct kern_hyper h = {.lr = 0.1f, .beta1 = 0.7f, .weight_decay = 0.5f};
    float *w = test_normal(&rng, N, 1.0f), *m = test_normal(&rng, N, 1.0f), *g = test_normal(&rng, N, 1.0f),
          norm = 9.0f;
    double *w64 = test_f64(w, N), *m64 = test_f64(m, N);
    muon_vector(k, w, m, g, &norm, &no_stop, &h, N);
    for (size_t i = 0; i < N; i++) {
        m64[i] = 0.7 * m64[i] + (double)g[i];
        w64[i] = w64[i] * (1.0 - 0.1 * 0.5) - 0.1 * ((double)g[i] + 0.7 * m64[i]);
    }
    check_close("w", w, w64, N, 1e-6);
    check_close("m", m, m64, N, 1e-6);
}

/* A norm that is NaN, or the stop flag: weights, moments and step keep their bytes. */
TEST(skipped_steps_touch_nothing)
{
    enum { ROWS = 8, COLS = 6, N = ROWS * COLS };
    for (int v = 0; v < 2; v++) {
        struct rng rng = rng_seed(4);
        KERN *k = test_kern(2);
        struct kern_hyper h = {.lr = 0.1f, .beta1 = 0.9f, .beta2 = 0.9f, .eps = 1e-8f, .weight_decay = 0.1f};
        struct kern_stats stats = {.stop = v};
        float *w = test_normal(&rng, N, 1.0f), *m = test_normal(&rng, N, 1.0f), *vv = test_normal(&rng, N, 1.0f);
        float *g = test_normal(&rng, N, 1.0f), *scratch = NEW(float, muon_scratch_floats(ROWS, COLS));
        float *w0 = test_copy(w, N), *m0 = test_copy(m, N), *v0 = test_copy(vv, N), norm = v == 0 ? NAN : 1.0f;
        int64_t step = 3;
        kern_ops(k)->adam(
            k,
            &(struct kern_optimiser){
                .w = w, .m = m, .v = vv, .g = g, .norm = &norm, .stats = &stats, .step = &step, .hyper = &h, .n = N});
        muon_matrix(k, w, m, g, &norm, scratch, &stats, &h, ROWS, COLS);
        muon_vector(k, w, m, g, &norm, &stats, &h, N);
        kern_ops(k)->optimiser_tick(k, &step, &norm, &stats);
        assert_memory_equal(w, w0, N * sizeof *w);
        assert_memory_equal(m, m0, N * sizeof *m);
        assert_memory_equal(vv, v0, N * sizeof *vv);
        assert_int_equal(step, 3);
    }
}

TEST(same_bytes_twice)
{
    enum { ROWS = 96, COLS = 50, N = ROWS * COLS };
    for (size_t t = 0; t < N_THREADS; t++) {
        float *got[2];
        for (int run = 0; run < 2; run++) {
            struct rng rng = rng_seed(12);
            KERN *k = test_kern(test_threads[t]);
            struct kern_hyper h = {.lr = 0.1f, .beta1 = 0.9f, .max_grad_norm = 1.0f};
            struct kern_stats stats = {0};
            float *m = NEW(float, N), *g = test_normal(&rng, N, 1.0f), norm;
            float *scratch = NEW(float, muon_scratch_floats(ROWS, COLS));
            got[run] = test_normal(&rng, N, 1.0f);
            kern_ops(k)->grad_norm(k, &norm, &stats, g, N);
            muon_matrix(k, got[run], m, g, &norm, scratch, &stats, &h, ROWS, COLS);
        }
        assert_memory_equal(got[0], got[1], N * sizeof(float));
    }
}

TEST_PROGRAM("optim")
