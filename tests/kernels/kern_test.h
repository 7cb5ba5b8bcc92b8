/* kern_test.h - what the tests of kernels/ share: random inputs, comparison with f64 references, devices of 1-3
 * threads. */
#pragma once

#include "tests/unit_test.h"

#include "kernels/kernels.h"

#define TEST_UNUSED __attribute__((unused))

static const size_t test_threads[] = {1, 2, 3};
#define N_THREADS COUNT(test_threads)

/* What a program for a GPU says and returns where there is none: skipped, or failed when one is demanded. */
TEST_UNUSED static int test_no_gpu(const char *reason)
{
    if (getenv("TRAWL_REQUIRE_GPU") != NULL) {
        printf("Bail out! a GPU is demanded: %s\n", reason);
        return EXIT_FAILURE;
    }
    printf("1..0 # SKIP no GPU, nothing of it was tested: %s\n", reason);
    return EXIT_SUCCESS;
}

/* Under a sanitizer, which makes a program a hundred times slower: only small shapes, and few steps of a game. */
TEST_UNUSED static bool test_is_short(void)
{
    return getenv("TRAWL_TEST_SHORT") != NULL;
}

/* The last argument of a program for a GPU, NULL: none. A pattern leaves the tests of that name; --list prints all
 * names, GPU or not, and that was all: true. */
TEST_UNUSED static bool test_listed(const char *which)
{
    bool list = which != NULL && strcmp(which, "--list") == 0;

    if (which != NULL && !list)
        cmocka_set_test_filter(which);
    for (size_t i = 0; list && i < n_unit_tests; i++)
        printf("%s\n", unit_tests[i].name);
    return list;
}

TEST_UNUSED static struct kern *test_kern(size_t n_threads)
{
    struct kern_settings settings = {.kind = KERN_CPU, .n_threads = n_threads};
    struct error err = {0};
    struct kern *k;
    if (kern_open(&k, &settings, &err) != ST_OK)
        fail_msg("%s", err.text);
    return k;
}

/* One that is closed at the end of the block that declares it. */
#define KERN __attribute__((cleanup(test_kern_close))) struct kern

TEST_UNUSED static void test_kern_close(struct kern **k)
{
    kern_close(*k);
}

/* Memory that lives until the program ends; large tensors may be given back by mem_free. */
TEST_UNUSED static void *test_alloc(size_t n, size_t size)
{
    static void **all; /* so that checkers of leaks find them */
    static size_t n_all, cap;
    void *p = mem_array(n, size);

    MEM_ROOM(all, n_all, cap);
    all[n_all++] = p;
    return p;
}
#define NEW(type, n) ((type *)test_alloc((n), sizeof(type)))

/* Normal numbers times scale (sum of 12 uniforms: close enough, bounded by 6 scale). */
TEST_UNUSED static float *test_normal(struct rng *rng, size_t n, float scale)
{
    float *x = NEW(float, n);
    for (size_t i = 0; i < n; i++) {
        float sum = -6.0f;
        for (int j = 0; j < 12; j++)
            sum += rng_f32(rng);
        x[i] = sum * scale;
    }
    return x;
}

TEST_UNUSED static uint8_t *test_flags(struct rng *rng, size_t n, float p)
{
    uint8_t *x = NEW(uint8_t, n);
    for (size_t i = 0; i < n; i++)
        x[i] = rng_f32(rng) < p;
    return x;
}

TEST_UNUSED static float *test_copy(const float *x, size_t n)
{
    float *y = NEW(float, n);
    memcpy(y, x, n * sizeof *y);
    return y;
}

TEST_UNUSED static double *test_f64(const float *x, size_t n)
{
    double *y = NEW(double, n);
    for (size_t i = 0; i < n; i++)
        y[i] = (double)x[i];
    return y;
}

/* Norm of the difference over the norm of the reference, and no single element further off than 100 times that. */
TEST_UNUSED static void check_close(const char *what, const float *got, const double *want, size_t n, double tolerance)
{
    double diff = 0.0, norm = 0.0, worst = 0.0;
    size_t at = 0;
    for (size_t i = 0; i < n; i++) {
        double d = fabs((double)got[i] - want[i]);
        if (!isfinite((double)got[i]))
            fail_msg("%s[%zu] is %g, want %g", what, i, (double)got[i], want[i]);
        diff += d * d;
        norm += want[i] * want[i];
        if (d > worst) {
            worst = d;
            at = i;
        }
    }
    diff = sqrt(diff);
    norm = sqrt(norm);
    if (diff > tolerance * norm + 1e-30)
        fail_msg("%s: relative error %g, allowed %g; worst at %zu: %g, want %g", what, diff / norm, tolerance, at,
                 (double)got[at], want[at]);
}

TEST_UNUSED static void check_number(const char *what, double got, double want, double tolerance)
{
    if (!(fabs(got - want) <= tolerance * (1.0 + fabs(want))))
        fail_msg("%s is %.9g, want %.9g", what, got, want);
}

TEST_UNUSED static double sigmoid_f64(double x)
{
    return 1.0 / (1.0 + exp(-x));
}

/* How the loss of `of` changes with *at: a central difference. */
TEST_UNUSED static double central_difference(double *at, double (*loss)(const void *of), const void *of)
{
    const double step = 1e-5;
    double keep = *at, high, low;
    *at = keep + step;
    high = loss(of);
    *at = keep - step;
    low = loss(of);
    *at = keep;
    return (high - low) / (2.0 * step);
}

/* ---- bf16 on the host ---- */

TEST_UNUSED static uint16_t bf16_bits(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    if (x != x)
        return (uint16_t)(bits >> 16 | 0x40u);
    return (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16); /* to nearest, ties to even */
}

TEST_UNUSED static float bf16_value(uint16_t bits)
{
    uint32_t wide = (uint32_t)bits << 16;
    float x;
    memcpy(&x, &wide, sizeof x);
    return x;
}

/* ---- memory of a device, filled and read by the way ---- */

TEST_UNUSED static void must(enum status rc, const struct error *err)
{
    if (rc != ST_OK)
        fail_msg("%s", err->text);
}

/* bytes, from the host unless NULL; the caller's to kern_free. */
TEST_UNUSED static void *test_device_bytes(struct kern *k, const void *from, size_t bytes)
{
    struct error err = {0};
    void *mem;
    must(kern_alloc(k, &mem, bytes + 1, "test", &err), &err);
    if (from != NULL)
        must(kern_upload(k, mem, from, bytes, &err), &err);
    must(kern_sync(k, &err), &err);
    return mem;
}

/* The caller's to mem_free. */
TEST_UNUSED static void *test_host_bytes(struct kern *k, const void *mem, size_t bytes)
{
    struct error err = {0};
    void *to = test_alloc(bytes + 1, 1);
    must(kern_download(k, to, mem, bytes, &err), &err);
    return to;
}
