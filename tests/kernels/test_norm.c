/* test_norm.c - normalisation by running sums: against mean and deviation of all rows at once, in long double. */
#include "tests/kernels/kern_test.h"

#include <lapacke.h>

/* Mean and deviation (n in the denominator) of column d of x (n, D). */
static void column(const float *x, size_t n, size_t D, size_t d, long double *ret_mean, long double *ret_std)
{
    long double sum = 0, squares = 0;
    for (size_t i = 0; i < n; i++)
        sum += x[i * D + d];
    *ret_mean = sum / (long double)n;
    for (size_t i = 0; i < n; i++)
        squares += (x[i * D + d] - *ret_mean) * (x[i * D + d] - *ret_mean);
    *ret_std = sqrtl(squares / (long double)n);
}

/* Rows in four parts of different sizes give what all rows give, also far from zero; the same with more threads. */
TEST(parts_add_up_to_all_rows)
{
    enum { N = 1000, D = 5 };
    static const size_t cuts[] = {0, 1, 8, 600, N};
    struct rng rng = rng_seed(4);
    float *x = test_normal(&rng, N * D, 1.0f), *first = NEW(float, N *D), *y = NEW(float, N *D);
    double sums_of_one[3 * D];
    for (size_t i = 0; i < N * D; i++)
        x[i] = x[i] * (float)(i % D) + (i % D == 3 ? 5000.0f : 0.0f); /* column 0: all zeros */
    for (size_t t = 0; t < N_THREADS; t++) {
        KERN *k = test_kern(test_threads[t]);
        double sums[3 * D] = {0};
        float scale[2 * D];
        struct kern_norm norm = {.D = D, .sums = sums, .scale = scale};
        kern_ops(k)->norm_freeze(k, &norm); /* of no row: nothing changes */
        for (size_t d = 0; d < D; d++)
            assert_true(scale[2 * d] == 0.0f && scale[2 * d + 1] == 1.0f);
        for (size_t i = 0; i < 4; i++) {
            norm.x = x + cuts[i] * D, norm.n = cuts[i + 1] - cuts[i];
            kern_ops(k)->norm_add(k, &norm);
        }
        if (t == 0)
            memcpy(sums_of_one, sums, sizeof sums);
        assert_memory_equal(sums, sums_of_one, sizeof sums);
        kern_ops(k)->norm_freeze(k, &norm);
        memcpy(y, x, N * D * sizeof *y);
        norm.x = y, norm.n = N;
        kern_ops(k)->norm_apply(k, &norm);
        for (size_t d = 0; d < D; d++) {
            long double mean, std;
            column(x, N, D, d, &mean, &std);
            assert_true(sums[3 * d] == N);
            check_number("mean", sums[3 * d + 1], (double)mean, 1e-12 * (1.0 + fabs((double)mean)));
            check_number("squares", sums[3 * d + 2], (double)(std * std * N), 1e-9 * N);
            check_number("scale", 1.0 / (double)scale[2 * d + 1], (double)sqrtl(std * std + 1e-8L), 1e-6);
            for (size_t i = 0; i < N; i++)
                assert_true(fabsl(y[i * D + d] - (x[i * D + d] - mean) / sqrtl(std * std + 1e-8L)) <
                            (d == 3 ? 3e-4L : 1e-5L));
        }
        if (t == 0)
            memcpy(first, y, N * D * sizeof *y);
        assert_memory_equal(first, y, N * D * sizeof *y);
    }
}

/* Rows that several ranks have added, each to sums of its own, joined: what all rows give; and again without new
 * rows. */
TEST(joined_parts_are_all_rows)
{
    enum { N = 600, D = 3, PARTS = 4 };
    static const size_t cuts[PARTS + 1] = {0, 100, 100, 107, N}; /* the second has none */
    struct rng rng = rng_seed(5);
    float *x = test_normal(&rng, N * D, 2.0f), *before = test_normal(&rng, D * 50, 1.0f);
    float *all = NEW(float, (N + 50) * D);
    double sums[3 * D] = {0}, parts[PARTS * 3 * D] = {0}, first[3 * D];
    KERN *k = test_kern(1);
    struct kern_norm norm = {.D = D, .sums = sums, .n = 50, .x = before};
    memcpy(all, before, 50 * D * sizeof *all);
    memcpy(all + 50 * D, x, N * D * sizeof *all);
    kern_ops(k)->norm_add(k, &norm);
    for (size_t i = 0; i < PARTS; i++) {
        struct kern_norm part = {.D = D, .sums = parts + i * 3 * D, .x = x + cuts[i] * D, .n = cuts[i + 1] - cuts[i]};
        if (part.n > 0)
            kern_ops(k)->norm_add(k, &part);
    }
    norm.parts = parts, norm.n_parts = PARTS;
    kern_ops(k)->norm_join(k, &norm);
    for (size_t d = 0; d < D; d++) {
        long double mean, std;
        column(all, N + 50, D, d, &mean, &std);
        assert_true(sums[3 * d] == N + 50);
        check_number("mean", sums[3 * d + 1], (double)mean, 1e-12);
        check_number("squares", sums[3 * d + 2], (double)(std * std * (N + 50)), 1e-8);
    }
    memcpy(first, sums, sizeof sums);
    kern_ops(k)->norm_join(k, &norm);
    assert_memory_equal(sums, first, sizeof sums);
}

TEST(far_values_are_clipped)
{
    KERN *k = test_kern(1);
    double sums[3] = {100.0, 2.0, 100.0 * 4.0}; /* deviation 2 */
    float scale[2], x[] = {4.0f, 1e6f, -1e6f, NAN};
    struct kern_norm norm = {.n = 4, .D = 1, .x = x, .sums = sums, .scale = scale};
    kern_ops(k)->norm_freeze(k, &norm);
    kern_ops(k)->norm_apply(k, &norm);
    check_number("inside", (double)x[0], 1.0, 1e-6);
    assert_true(x[1] == 10.0f && x[2] == -10.0f && isnan(x[3]));
}

/* Two rollouts: the discounted sums run on from one to the next, but not over the end of an episode. */
TEST(rewards_are_divided)
{
    enum { T = 30, N = 7 };
    struct rng rng = rng_seed(9);
    struct kern_hyper hyper = {.gamma = 0.9f};
    float carry[N] = {0}, discounted[T * N], scale[2], all[2 * T * N];
    double sums[3] = {0}, running[N] = {0};
    KERN *k = test_kern(2);
    for (size_t part = 0; part < 2; part++) {
        float *rewards = test_normal(&rng, T * N, 3.0f), *given = NEW(float, T *N);
        uint8_t *terms = test_flags(&rng, T * N, 0.1f), *truncs = test_flags(&rng, T * N, 0.1f);
        long double mean, std;
        memcpy(given, rewards, T * N * sizeof *given);
        kern_ops(k)->reward_scale(k, &(struct kern_reward_scale){.T = T,
                                                                 .N = N,
                                                                 .rewards = rewards,
                                                                 .terms = terms,
                                                                 .truncs = truncs,
                                                                 .hyper = &hyper,
                                                                 .carry = carry,
                                                                 .discounted = discounted,
                                                                 .sums = sums,
                                                                 .scale = scale});
        for (size_t i = 0; i < T * N; i++) {
            running[i % N] = 0.9 * running[i % N] + (double)given[i];
            all[part * T * N + i] = (float)running[i % N];
            if (terms[i] || truncs[i])
                running[i % N] = 0.0;
        }
        column(all, (part + 1) * T * N, 1, 0, &mean, &std);
        for (size_t i = 0; i < T * N; i++)
            check_number("reward", (double)rewards[i], (double)given[i] / (double)std, 1e-5);
    }
}

/* The worth of each observation against C = ridge I + sum of f f' itself, built up and solved from scratch each time.
 * Two rollouts, so that an episode continues from one to the next. */
TEST(novelty_is_that_of_the_covariance)
{
    enum { T = 25, N = 3, D = 4, F = KERN_NOVELTY_FEATURES };
    struct rng rng = rng_seed(21);
    struct kern_hyper hyper = {.e3b_coef = 0.7f};
    float *known = NEW(float, N *F *F), *projection = test_normal(&rng, (D + 1) * F, 1.0f);
    double *covariance = NEW(double, N *F *F);
    const double ridge = (double)KERN_NOVELTY_RIDGE;
    for (size_t i = 0; i < N * F; i++)
        covariance[i * F + i % F] = ridge;
    for (size_t part = 0; part < 2; part++) {
        KERN *k = test_kern(1 + part);
        float *obs = test_normal(&rng, (T + 1) * N * D, 1.0f), *rewards = test_normal(&rng, T * N, 1.0f);
        float *given = NEW(float, T *N);
        uint8_t *reset = test_flags(&rng, (T + 1) * N, 0.1f);
        for (size_t i = 0; i < D; i++) /* agent 0 sees the same twice */
            obs[(10 * N) * D + i] = obs[(9 * N) * D + i];
        reset[9 * N] = reset[10 * N] = 0;
        memcpy(given, rewards, T * N * sizeof *given);
        kern_ops(k)->novelty(k, &(struct kern_novelty){.T = T,
                                                       .N = N,
                                                       .D = D,
                                                       .obs = obs,
                                                       .reset = reset,
                                                       .projection = projection,
                                                       .hyper = &hyper,
                                                       .known = known,
                                                       .rewards = rewards});
        for (size_t at = 0; at < T * N; at++) {
            double *c = covariance + at % N * F * F, f[F], solved[F], factor[F * F], worth = 0.0;
            const float *seen = obs + (at + N) * D;
            for (size_t j = 0; j < F; j++) {
                double angle = (double)projection[D * F + j];
                for (size_t d = 0; d < D; d++)
                    angle += (double)seen[d] * (double)projection[d * F + j];
                f[j] = solved[j] = sqrt(2.0 / F) * cos(angle);
            }
            if (reset[at + N])
                for (size_t i = 0; i < F * F; i++)
                    c[i] = i % (F + 1) == 0 ? ridge : 0.0;
            memcpy(factor, c, sizeof factor);
            assert_int_equal(LAPACKE_dposv(LAPACK_ROW_MAJOR, 'L', F, 1, factor, F, solved, 1), 0);
            for (size_t j = 0; j < F; j++)
                worth += ridge * f[j] * solved[j];
            assert_true(worth > 0.0 && worth < 2.0);
            if (at == 9 * N)
                assert_true(worth < 0.12); /* seen just before: ridge / (ridge + 1) at most */
            check_number("reward", (double)rewards[at], (double)given[at] + (reset[at + N] ? 0.0 : 0.7 * worth), 2e-5);
            for (size_t i = 0; i < F * F; i++)
                c[i] += f[i / F] * f[i % F];
        }
    }
}

TEST_PROGRAM("norm")
