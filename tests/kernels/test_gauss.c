/* test_gauss.c - actions that are numbers: draws against the normal distribution, log-probabilities and entropies
 * against closed forms and integrals in long double, the whole loss's gradient against differences of those. */
#include "tests/kernels/loss_test.h"

#include <gsl/gsl_cdf.h>

#define PI_L 3.141592653589793238462643383279502884L

/* ---- the oracle: densities as a textbook has them ---- */

static long double normal_density(long double u, long double mean, long double std)
{
    long double z = (u - mean) / std;
    return expl(-z * z / 2) / (std * sqrtl(2 * PI_L));
}

/* Of what the policy draws: u, or x = tanh u, whose density is that of u times du/dx = cosh(u)^2. */
static long double log_density(long double u, long double mean, long double std, bool squash)
{
    return logl(normal_density(u, mean, std)) + (squash ? 2 * logl(coshl(u)) : 0);
}

/* -integral of density times log density over 14 deviations to either side, by Simpson's rule. */
static long double entropy_of(long double mean, long double std, bool squash)
{
    enum { STEPS = 4000 };
    long double width = 28 * std / STEPS, sum = 0;
    for (int i = 0; i <= STEPS; i++) {
        long double u = mean - 14 * std + width * i, weight = i == 0 || i == STEPS ? 1 : i % 2 == 1 ? 4 : 2;
        sum -= weight * normal_density(u, mean, std) * log_density(u, mean, std, squash);
    }
    return sum * width / 3;
}

static int32_t word_of(float u)
{
    int32_t word;
    memcpy(&word, &u, sizeof word);
    return word;
}

static float number_of(int32_t word)
{
    float u;
    memcpy(&u, &word, sizeof u);
    return u;
}

/* Log-probability of token m; *ret_entropy of all its heads. */
static long double token_logp(const struct batch *b, size_t m, long double *ret_entropy)
{
    const double *row = b->out64 + m * b->O;
    const int32_t *actions = b->actions + m * (size_t)b->heads.n_heads;
    long double logp = 0;
    int at = 0, at_std = b->heads.n_logits - b->heads.n_reals;

    *ret_entropy = 0;
    for (int j = 0; j < b->heads.n_heads; j++) {
        int n = b->heads.sizes[j];
        long double sum = 0, std;
        if (n == 0) {
            std = expl((long double)row[at_std++]);
            logp += log_density(number_of(actions[j]), row[at], std, b->heads.squash);
            *ret_entropy += entropy_of(row[at++], std, b->heads.squash);
            continue;
        }
        for (int i = at; i < at + n; i++)
            sum += expl(row[i]);
        logp += row[at + actions[j]] - logl(sum);
        for (int i = at; i < at + n; i++)
            *ret_entropy -= expl(row[i]) / sum * (row[i] - logl(sum));
        at += n;
    }
    return logp;
}

/* The loss of token m times M: policy, value and entropy of docs/ppo.md. */
static long double token_loss(const struct batch *b, size_t m, long double *ret_entropy)
{
    long double eps = b->hyper.clip_coef, ratio = expl(token_logp(b, m, ret_entropy) - b->old_logp[m]);
    long double adv = ((long double)b->adv[m] - b->mean_std[0]) / ((long double)b->mean_std[1] + 1e-8L);
    long double v = b->out64[m * b->O + b->A] - b->ret[m];
    long double clipped = ratio < 1 - eps ? 1 - eps : ratio > 1 + eps ? 1 + eps : ratio;
    return fmaxl(-adv * ratio, -adv * clipped) + b->hyper.vf_coef * 0.5L * v * v - b->hyper.ent_coef * *ret_entropy;
}

static struct kern_heads heads_of(const struct env_shape *shape, bool squash)
{
    struct kern_heads heads;
    kern_heads_init(&heads, shape, squash);
    return heads;
}

static const struct env_shape one = {.n_heads = 1, .low = {-2.0f}, .high = {2.0f}};
static const struct env_shape mixed = {
    .n_heads = 4, .head_sizes = {0, 3, 0, 2}, .low = {-1.0f, 0, 5.0f}, .high = {1.0f, 0, 6.0f}};

static struct batch batch_make(const struct env_shape *shape, bool squash, size_t T, size_t B)
{
    struct rng rng = rng_seed(T * 100 + B + squash);
    struct batch b = batch_open(&rng, heads_of(shape, squash), T, B, 0.5f);
    for (size_t m = 0; m < b.M; m++) {
        long double entropy;
        for (int j = 0; j < b.heads.n_heads; j++) {
            uint32_t n = (uint32_t)b.heads.sizes[j];
            b.actions[m * (size_t)b.heads.n_heads + (size_t)j] =
                n > 0 ? (int32_t)rng_below(&rng, n) : word_of(3.0f * rng_f32(&rng) - 1.5f);
        }
        b.old_logp[m] = (float)token_logp(&b, m, &entropy) + 0.4f * (rng_f32(&rng) - 0.5f);
    }
    b.hyper = (struct kern_hyper){.clip_coef = 0.1f, .vf_coef = 0.7f, .ent_coef = 0.3f, .norm_adv = 1};
    return b;
}

static void check_loss(struct kern *k, struct batch *b)
{
    size_t n = b->M * b->O;
    float *dout = NEW(float, n), *log_ratio = NEW(float, b->M);
    int32_t *idx = NEW(int32_t, b->B);
    double *want = NEW(double, n), entropy = 0.0;
    struct kern_stats stats = {0};
    struct kern_loss l = loss_of(b, dout, &stats);
    long double token_entropy;

    kern_ops(k)->ppo_loss(k, &l);
    for (size_t i = 0; i < n; i++) {
        double keep = b->out64[i];
        long double high, low;
        b->out64[i] = keep + 1e-5;
        high = token_loss(b, i / b->O, &token_entropy);
        b->out64[i] = keep - 1e-5;
        low = token_loss(b, i / b->O, &token_entropy);
        b->out64[i] = keep;
        want[i] = (double)((high - low) / 2e-5L / (long double)b->M);
    }
    check_close("dout", dout, want, n, 3e-5);
    for (size_t i = 0; i < b->B; i++)
        idx[i] = (int32_t)i;
    l.log_ratio = log_ratio, l.idx = idx, l.N = b->B;
    kern_ops(k)->segments_keep(k, &l);
    for (size_t m = 0; m < b->M; m++) {
        long double logp = token_logp(b, m, &token_entropy);
        entropy += (double)token_entropy;
        check_number("log ratio", (double)log_ratio[m], (double)(logp - b->old_logp[m]), 1e-5);
    }
    check_number("entropy", stats.entropy, entropy, 1e-5);
}

TEST(loss_and_gradient_agree_with_densities)
{
    for (size_t t = 0; t < N_THREADS; t++)
        for (int squash = 0; squash < 2; squash++) {
            KERN *k = test_kern(test_threads[t]);
            struct batch b = batch_make(t == 1 ? &one : &mixed, squash, 2, 3);
            check_loss(k, &b);
        }
}

/* A log-deviation beyond the limits counts as the limit and is not pushed further. */
TEST(deviations_have_limits)
{
    static const float raw[] = {-40.0f, 40.0f, 1e30f}, limit[] = {-10.0f, 4.0f, 4.0f};
    KERN *k = test_kern(1);
    for (int i = 0; i < 3; i++) {
        struct batch b = batch_make(&one, false, 1, 1);
        float dout[3], at_limit[3];
        struct kern_stats stats = {0}, stats_limit = {0};
        struct kern_loss l = loss_of(&b, dout, &stats);
        b.out[0] = number_of(b.actions[0]) + 1e-5f;
        b.out[1] = raw[i];
        kern_ops(k)->ppo_loss(k, &l);
        b.out[1] = limit[i];
        l = loss_of(&b, at_limit, &stats_limit);
        kern_ops(k)->ppo_loss(k, &l);
        assert_true(dout[1] == 0.0f && at_limit[1] != 0.0f);
        assert_true(dout[0] == at_limit[0] && isfinite(dout[0]));
        assert_true(stats.entropy == stats_limit.entropy);
        check_number("entropy", stats.entropy, 0.5 * log(2.0 * M_PI * M_E) + (double)limit[i], 1e-6);
    }
}

/* ---- acting ---- */

enum { N = 40000 };

/* The largest distance of the empirical distribution from the standard normal one (Kolmogorov and Smirnov). */
static void check_normal(double *z, size_t n)
{
    double worst = 0.0;
    num_sort(z, n);
    for (size_t i = 0; i < n; i++) {
        double p = gsl_cdf_ugaussian_P(z[i]);
        worst = fmax(worst, fmax(p - (double)i / (double)n, (double)(i + 1) / (double)n - p));
    }
    if (worst * sqrt((double)n) > 1.95) /* 1 in 1000 */
        fail_msg("distance from the normal distribution: %g", worst);
}

TEST(draws_are_normal_and_in_range)
{
    static const float row[] = {0.4f, 0.0f, 1.0f, 0.0f, -0.9f, 2.0f, -2.0f, -0.7f, 0.5f, 42.0f}; /* mixed: means 0, 4 */
    float *out = NEW(float, N * 10), *logp = NEW(float, N), *value = NEW(float, N), *reals = NEW(float, N * 4);
    int32_t *actions = NEW(int32_t, N * 4), *again = NEW(int32_t, N * 4);
    double *z = NEW(double, N), both = 0.0;
    for (size_t i = 0; i < N; i++)
        memcpy(out + 10 * i, row, sizeof row);
    for (int squash = 0; squash < 2; squash++) {
        KERN *k = test_kern(3);
        struct rng rng = rng_seed(5), start = rng;
        struct kern_sample s = {.N = N, .out = out, .rng = &rng};
        struct kern_heads heads = heads_of(&mixed, squash);
        s.heads = &heads, s.actions = actions, s.reals = reals, s.logp = logp, s.value = value;
        kern_ops(k)->sample(k, &s);
        assert_int_equal(rng.counter, start.counter + 4);
        both = 0.0;
        for (size_t i = 0; i < N; i++) {
            const int32_t *a = actions + 4 * i;
            long double u0 = number_of(a[0]), u2 = number_of(a[2]), want;
            double x = squash ? tanh((double)u2) : fmin(fmax((double)u2, -1.0), 1.0);
            want = log_density(u0, (long double)row[0], expl((long double)row[7]), squash) +
                   log_density(u2, (long double)row[4], expl((long double)row[8]), squash) + row[1 + a[1]] -
                   logl(2 + expl(1)) + row[5 + a[3]] - logl(expl(2) + expl(-2));
            check_number("logp", (double)logp[i], (double)want, 1e-5);
            check_number("action", (double)reals[4 * i + 2], 5.5 + 0.5 * x, 1e-6);
            assert_true(reals[4 * i] >= -1.0f && reals[4 * i] <= 1.0f);
            z[i] = (double)(u2 - row[4]) / exp((double)row[8]);
            both += z[i] * ((double)u0 - (double)row[0]) / exp((double)row[7]);
            assert_true(value[i] == 42.0f && a[1] >= 0 && a[1] < 3 && a[3] >= 0 && a[3] < 2);
        }
        check_normal(z, N);
        assert_true(fabs(both) < 4.0 * sqrt(N)); /* heads are independent */
        for (size_t t = 0; t < N_THREADS; t++) {
            KERN *other = test_kern(test_threads[t]);
            struct rng same = start;
            s.rng = &same, s.actions = again, s.reals = NULL;
            kern_ops(other)->sample(other, &s);
            assert_memory_equal(actions, again, N * 4 * sizeof *actions);
        }
    }
}

TEST(greedy_takes_the_mean)
{
    static const float out[][3] = {{0.25f, 1.0f, 7.0f}, {3.0f, -1.0f, 7.0f}, {NAN, 0.0f, 7.0f}};
    KERN *k = test_kern(1);
    struct rng rng = rng_seed(1);
    int32_t actions[3];
    float reals[3], logp[3], value[3];
    for (int squash = 0; squash < 2; squash++) {
        struct kern_heads heads = heads_of(&one, squash);
        struct kern_sample s = {.N = 3, .heads = &heads, .greedy = true, .out = out[0], .rng = &rng};
        s.actions = actions, s.reals = reals, s.logp = logp, s.value = value;
        kern_ops(k)->sample(k, &s);
        assert_true(number_of(actions[0]) == 0.25f && number_of(actions[1]) == 3.0f);
        check_number("inside", (double)reals[0], squash ? 2.0 * tanh(0.25) : 0.5, 1e-6);
        check_number("beyond", (double)reals[1], squash ? 2.0 * tanh(3.0) : 2.0, 1e-6);
        assert_true(fabsf(reals[2]) <= 2.0f); /* a game is never given NaN */
        check_number("logp", (double)logp[0], (double)log_density(0.25L, 0.25L, expl(1), squash), 1e-6);
    }
}

TEST_PROGRAM("gauss")
