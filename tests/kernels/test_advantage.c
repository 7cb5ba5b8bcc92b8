/* test_advantage.c - advantages against the recursion in f64; shuffled, prioritised and gathered segments; packing. */
#include "tests/kernels/kern_test.h"

struct rollout {
    size_t T, N;
    float *rewards, *values, *boot, *log_ratio, *adv, *ret;
    uint8_t *terms, *truncs;
    struct kern_hyper hyper;
};

static struct rollout rollout_make(size_t T, size_t N, float p_end)
{
    struct rng rng = rng_seed(T * 31 + N);
    struct rollout r = {.T = T, .N = N};
    r.rewards = test_normal(&rng, T * N, 1.0f);
    r.values = test_normal(&rng, (T + 1) * N, 1.0f);
    r.boot = test_normal(&rng, T * N, 1.0f);
    r.log_ratio = NEW(float, T *N);
    for (size_t i = 0; i < T * N; i++)
        r.log_ratio[i] = logf(0.2f + 2.0f * rng_f32(&rng));
    r.terms = test_flags(&rng, T * N, p_end);
    r.truncs = test_flags(&rng, T * N, p_end);
    for (size_t i = 0; i < T * N; i++) {
        if (r.terms[i])
            r.truncs[i] = 0;
        if (!r.truncs[i])
            r.boot[i] = NAN; /* never written by the trainer: must not be looked at */
    }
    r.adv = NEW(float, T *N), r.ret = NEW(float, T *N);
    r.hyper = (struct kern_hyper){.gamma = 0.97f, .gae_lambda = 0.9f, .rho_clip = 1.2f, .c_clip = 0.8f};
    return r;
}

static double delta_f64(const struct rollout *r, size_t t, size_t n, bool vtrace)
{
    size_t i = t * r->N + n;
    double next = r->truncs[i] ? (double)r->boot[i] : (double)r->values[i + r->N];
    double rho = vtrace ? fmin(exp((double)r->log_ratio[i]), (double)r->hyper.rho_clip) : 1.0;
    if (r->terms[i])
        next = 0.0;
    return rho * ((double)r->rewards[i] + (double)r->hyper.gamma * next - (double)r->values[i]);
}

/* The sum over later steps, O(T^2): A_t = sum over u >= t of delta_u times the product of decays in between. */
static double advantage_f64(const struct rollout *r, size_t t, size_t n, bool vtrace)
{
    double sum = 0.0, weight = 1.0;
    for (size_t u = t; u < r->T; u++) {
        size_t i = u * r->N + n;
        sum += weight * delta_f64(r, u, n, vtrace);
        if (r->terms[i] || r->truncs[i])
            break;
        weight *= (double)r->hyper.gamma * (double)r->hyper.gae_lambda *
                  (vtrace ? fmin(exp((double)r->log_ratio[i]), (double)r->hyper.c_clip) : 1.0);
    }
    return sum;
}

static void check_rollout(struct kern *k, struct rollout *r, bool vtrace)
{
    size_t n = r->T * r->N;
    double *adv = NEW(double, n), *ret = NEW(double, n);
    for (size_t i = 0; i < n; i++) {
        adv[i] = advantage_f64(r, i / r->N, i % r->N, vtrace);
        ret[i] = adv[i] + (double)r->values[i];
    }
    struct kern_advantage l = {.T = r->T, .N = r->N};
    l.adv = r->adv, l.ret = r->ret, l.rewards = r->rewards, l.values = r->values, l.boot = r->boot;
    l.terms = r->terms, l.truncs = r->truncs, l.log_ratio = vtrace ? r->log_ratio : NULL, l.hyper = &r->hyper;
    kern_ops(k)->advantage(k, &l);
    check_close("adv", r->adv, adv, n, 1e-6);
    check_close("ret", r->ret, ret, n, 1e-6);
}

TEST(agrees_with_the_sum)
{
    static const size_t shapes[][2] = {{1, 1}, {7, 3}, {64, 33}, {5, 100}};
    for (size_t t = 0; t < N_THREADS; t++)
        for (size_t i = 0; i < COUNT(shapes); i++) {
            KERN *k = test_kern(test_threads[t]);
            struct rollout r = rollout_make(shapes[i][0], shapes[i][1], 0.15f);
            check_rollout(k, &r, true);
            r.hyper.rho_clip = r.hyper.c_clip = 1.0f;
            check_rollout(k, &r, false);
        }
}

TEST(ratio_one_is_plain_gae)
{
    KERN *k = test_kern(2);
    struct rollout r = rollout_make(20, 40, 0.1f);
    float *plain, *ret;
    r.hyper.rho_clip = r.hyper.c_clip = 1.0f;
    check_rollout(k, &r, false);
    plain = test_copy(r.adv, 20 * 40);
    ret = test_copy(r.ret, 20 * 40);
    for (size_t i = 0; i < 20 * 40; i++)
        r.log_ratio[i] = 0.0f;
    check_rollout(k, &r, true);
    assert_memory_equal(plain, r.adv, 20 * 40 * sizeof(float));
    assert_memory_equal(ret, r.ret, 20 * 40 * sizeof(float));
}

/* lambda 1, no ends: A + V is the discounted return with the last value after it. */
TEST(lambda_one_is_the_return)
{
    KERN *k = test_kern(1);
    struct rollout r = rollout_make(12, 5, 0.0f);
    r.hyper.rho_clip = r.hyper.c_clip = r.hyper.gae_lambda = 1.0f;
    check_rollout(k, &r, false);
    for (size_t n = 0; n < 5; n++) {
        double want = (double)r.values[12 * 5 + n];
        for (size_t t = 12; t-- > 0;)
            want = (double)r.rewards[t * 5 + n] + (double)r.hyper.gamma * want;
        check_number("return", (double)r.ret[n], want, 1e-5);
    }
}

TEST(mean_and_deviation)
{
    struct rng rng = rng_seed(4);
    KERN *k = test_kern(1);
    for (size_t n = 1; n < 3000; n = n * 3 + 1) {
        float *x = test_normal(&rng, n, 0.01f), got[2];
        double mean = 0.0, sq = 0.0;
        for (size_t i = 0; i < n; i++) {
            x[i] += 100.0f; /* far from zero: the square of the mean must not eat the variance */
            mean += (double)x[i] / (double)n;
        }
        for (size_t i = 0; i < n; i++)
            sq += ((double)x[i] - mean) * ((double)x[i] - mean);
        kern_ops(k)->mean_std(k, got, x, n);
        check_number("mean", (double)got[0], mean, 1e-7);
        check_number("std", (double)got[1], sqrt(sq / (double)n), 1e-7);
    }
}

static int order_i32(const void *a, const void *b)
{
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

TEST(shuffle_is_a_permutation)
{
    enum { N = 1000, RUNS = 4000 };
    KERN *k = test_kern(1);
    struct rng a = rng_seed(1), b = rng_seed(2);
    int32_t first[N], other[N], small[4];
    double counts[4][4] = {{0}};
    kern_ops(k)->segments_shuffle(k, first, &a, N);
    kern_ops(k)->segments_shuffle(k, other, &a, N);
    assert_memory_equal(first, other, sizeof first); /* named by *rng, which stays */
    assert_int_equal(a.counter, 0);
    kern_ops(k)->segments_shuffle(k, other, &b, N);
    assert_memory_not_equal(first, other, sizeof first);
    kern_ops(k)->rng_advance(k, &a, 5);
    assert_int_equal(a.counter, 5);
    kern_ops(k)->segments_shuffle(k, other, &a, N);
    assert_memory_not_equal(first, other, sizeof first);
    qsort(first, N, sizeof *first, order_i32);
    qsort(other, N, sizeof *other, order_i32);
    for (int32_t i = 0; i < N; i++)
        assert_true(first[i] == i && other[i] == i);
    for (uint64_t run = 0; run < RUNS; run++) { /* every value at every place equally often: 5 sigma */
        struct rng r = rng_split(b, run);
        kern_ops(k)->segments_shuffle(k, small, &r, 4);
        for (int i = 0; i < 4; i++)
            counts[i][small[i]]++;
    }
    for (int i = 0; i < 16; i++)
        assert_true(fabs(counts[i / 4][i % 4] - RUNS / 4.0) < 5.0 * sqrt(RUNS * 0.25 * 0.75));
}

static struct rng order_rng;
static int order_key(const void *a, const void *b)
{
    int32_t i = *(const int32_t *)a, j = *(const int32_t *)b;
    struct rng x = order_rng, y = order_rng;
    x.counter += (uint64_t)i, y.counter += (uint64_t)j;
    uint32_t p = rng_u32(&x), q = rng_u32(&y);
    return p != q ? (p > q) - (p < q) : (i > j) - (i < j);
}

TEST(shuffle_is_the_order_of_draws)
{
    static const size_t sizes[] = {1, 2, 37, 5000, 300000}; /* the last: many keys in a bucket, some of them equal */
    KERN *k = test_kern(1);
    order_rng = rng_seed(11);
    order_rng.counter = UINT64_MAX - 20;
    for (size_t s = 0; s < COUNT(sizes); s++) {
        size_t n = sizes[s];
        int32_t *got = NEW(int32_t, n), *want = NEW(int32_t, n);
        for (size_t i = 0; i < n; i++)
            want[i] = (int32_t)i;
        qsort(want, n, sizeof *want, order_key);
        kern_ops(k)->segments_shuffle(k, got, &order_rng, n);
        assert_memory_equal(got, want, n * sizeof *got);
    }
}

TEST(priority_follows_the_formula)
{
    enum { T = 9, N = 37 };
    struct rng rng = rng_seed(6);
    KERN *k = test_kern(2);
    float *adv = test_normal(&rng, T * N, 1.0f), prob[N];
    for (float alpha = 0.0f; alpha < 1.1f; alpha += 0.5f) {
        struct kern_hyper hyper = {.prio_alpha = alpha};
        double w[N] = {0}, total = 0.0;
        kern_ops(k)->segments_priority(
            k, &(struct kern_segments){.prob = prob, .adv = adv, .hyper = &hyper, .T = T, .N = N});
        for (size_t n = 0; n < N; n++) {
            for (size_t t = 0; t < T; t++)
                w[n] += fabs((double)adv[t * N + n]);
            w[n] = pow(w[n], (double)alpha);
            total += w[n];
        }
        for (size_t n = 0; n < N; n++)
            check_number("prob", (double)prob[n], (w[n] + 1e-6) / (total + 1e-6), 1e-6);
    }
}

/* Systematic: each segment is taken floor or ceil of B p times, and B p on average. */
TEST(pick_is_systematic_and_fair)
{
    enum { N = 23, B = 40, RUNS = 3000 };
    struct rng rng = rng_seed(9), draw = rng_seed(10);
    KERN *k = test_kern(1);
    struct kern_hyper hyper = {.prio_beta = 0.4f};
    float prob[N], weight[B], total = 0.0f;
    double counts[N] = {0};
    int32_t idx[B];
    for (int i = 0; i < N; i++) {
        prob[i] = i == 5 ? 0.0f : 0.05f + rng_f32(&rng);
        total += prob[i];
    }
    for (int i = 0; i < N; i++)
        prob[i] /= total;
    for (int run = 0; run < RUNS; run++) {
        int times[N] = {0};
        uint64_t before = draw.counter;
        kern_ops(k)->segments_pick(
            k, &(struct kern_segments){
                   .idx = idx, .weight = weight, .prob = prob, .rng = &draw, .hyper = &hyper, .N = N, .B = B});
        assert_true(draw.counter > before);
        for (int j = 0; j < B; j++) {
            assert_in_range(idx[j], 0, N - 1);
            times[idx[j]]++;
            check_number("weight", (double)weight[j], pow(N * (double)prob[idx[j]], -0.4), 1e-5);
        }
        for (int i = 0; i < N; i++) {
            double expected = B * (double)prob[i];
            assert_true(times[i] >= floor(expected - 1e-4) && times[i] <= ceil(expected + 1e-4));
            counts[i] += times[i];
        }
    }
    for (int i = 0; i < N; i++) /* a count varies by at most 1/2 each run */
        assert_true(fabs(counts[i] / RUNS - B * (double)prob[i]) < 5.0 * 0.5 / sqrt((double)RUNS));
    assert_true(counts[5] == 0.0);
}

TEST(gather_takes_columns)
{
    static const size_t widths[] = {1, 4, 7, 512};
    enum { T = 5, N = 11, B = 6 };
    const int32_t idx[B] = {10, 0, 3, 3, 7, 1};
    for (size_t t = 0; t < N_THREADS; t++)
        for (size_t i = 0; i < 4; i++) {
            struct rng rng = rng_seed(i);
            KERN *k = test_kern(test_threads[t]);
            size_t w = widths[i];
            uint8_t *src = test_flags(&rng, T * N * w, 0.5f), *dst = NEW(uint8_t, T * B * w);
            struct kern_gather_item item = {dst, src, w, T};
            kern_ops(k)->gather(k, &(struct kern_gather){.items = &item, .n_items = 1, .idx = idx, .N = N, .B = B});
            for (size_t at = 0; at < T; at++)
                for (size_t b = 0; b < B; b++)
                    assert_memory_equal(dst + (at * B + b) * w, src + (at * N + (size_t)idx[b]) * w, w);
        }
}

TEST(pack_and_unpack_are_inverse)
{
    enum { N = 50, W = 12 };
    struct rng rng = rng_seed(2);
    KERN *k = test_kern(1);
    uint8_t *src = test_flags(&rng, N * W, 0.5f), *flag = test_flags(&rng, N, 0.3f), packed[N * W], back[N * W];
    int64_t n = -1, seen = 0;
    kern_ops(k)->pack_rows(
        k, &(struct kern_pack){.dst = packed, .n_packed = &n, .src = src, .flag = flag, .row_bytes = W, .N = N});
    memset(back, 7, sizeof back);
    kern_ops(k)->unpack_rows(k, &(struct kern_pack){.dst = back, .src = packed, .flag = flag, .row_bytes = W, .N = N});
    for (size_t i = 0; i < N; i++) {
        if (flag[i]) {
            assert_memory_equal(packed + seen++ * W, src + i * W, W);
            assert_memory_equal(back + i * W, src + i * W, W);
        } else {
            assert_int_equal(back[i * W], 7);
        }
    }
    assert_int_equal(n, seen);
    kern_ops(k)->copy(k, back, src, N * W);
    assert_memory_equal(back, src, N * W);
    kern_ops(k)->zero(k, back, 5);
    assert_true(back[4] == 0 && memcmp(back + 5, src + 5, N * W - 5) == 0);
}

TEST_PROGRAM("advantage")
