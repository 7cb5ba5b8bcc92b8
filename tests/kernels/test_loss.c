/* test_loss.c - sampling, ratios and the PPO loss: frequencies against the softmax, values and gradients against
 * f64. */
#include "tests/kernels/loss_test.h"

#include <gsl/gsl_cdf.h>

static struct kern_heads heads_of(int n, const int *sizes)
{
    struct kern_heads heads = {.n_heads = n};
    for (int i = 0; i < n; i++) {
        heads.sizes[i] = sizes[i];
        heads.n_logits += sizes[i];
    }
    return heads;
}

/* Log-probabilities (A; masked: -inf) and entropies (n_heads) of one row. */
static void row_f64(const struct batch *b, const double *row, const uint8_t *mask, double *logp, double *entropy)
{
    int at = 0;
    for (int j = 0; j < b->heads.n_heads; j++) {
        int n = b->heads.sizes[j];
        double sum = 0.0;
        for (int i = at; i < at + n; i++)
            sum += mask == NULL || mask[i] ? exp(row[i]) : 0.0;
        entropy[j] = 0.0;
        for (int i = at; i < at + n; i++) {
            logp[i] = mask == NULL || mask[i] ? row[i] - log(sum) : -INFINITY;
            entropy[j] -= isinf(logp[i]) ? 0.0 : exp(logp[i]) * logp[i];
        }
        at += n;
    }
}

static double token_logp_f64(const struct batch *b, size_t m, double *ret_entropy)
{
    double logp[64], entropy[ENV_MAX_HEADS], sum = 0.0;
    int at = 0;
    row_f64(b, b->out64 + m * b->O, b->mask == NULL ? NULL : b->mask + m * b->A, logp, entropy);
    *ret_entropy = 0.0;
    for (int j = 0; j < b->heads.n_heads; j++) {
        sum += logp[at + b->actions[m * (size_t)b->heads.n_heads + (size_t)j]];
        *ret_entropy += entropy[j];
        at += b->heads.sizes[j];
    }
    return sum;
}

/* Cross entropy of one row's bins to the return, which is shared out to the bins as a tent over it; their mean. */
static double bins_f64(const struct batch *b, const double *row, double target, double *ret_mean)
{
    int n = b->heads.n_bins;
    double most = exp((double)b->heads.value_log) - 1.0, loss = 0.0, sum = 0.0, centre[64];

    target = fmin(fmax(target, -most), most);
    *ret_mean = 0.0;
    for (int i = 0; i < n; i++) {
        double x = (double)b->heads.value_log * (2.0 * i / (n - 1) - 1.0);
        centre[i] = copysign(exp(fabs(x)) - 1.0, x);
        sum += exp(row[i]);
    }
    for (int i = 0; i < n; i++) {
        int beside = target > centre[i] ? i + 1 : i - 1;
        double tent = beside < 0 || beside >= n ? 1.0 : 1.0 - (target - centre[i]) / (centre[beside] - centre[i]);
        *ret_mean += exp(row[i]) / sum * centre[i];
        loss -= fmax(0.0, tent) * (row[i] - log(sum));
    }
    return loss;
}

struct parts {
    double policy, value, entropy, kl, clipped;
};

static double clamp(double x, double low, double high)
{
    return x < low ? low : x > high ? high : x;
}

/* Sums over tokens, and the loss: what ppo.md says, word for word. */
static double loss_f64(const struct batch *b, struct parts *ret_parts)
{
    struct parts p = {0};
    const struct kern_hyper *h = &b->hyper;
    double eps = (double)h->clip_coef, eps_v = (double)h->vf_clip_coef, M = (double)b->M;
    for (size_t m = 0; m < b->M; m++) {
        double entropy, log_ratio = token_logp_f64(b, m, &entropy) - (double)b->old_logp[m], ratio = exp(log_ratio);
        double adv = (double)b->adv[m], v = b->out64[m * b->O + b->A], old = (double)b->old_value[m];
        double target = (double)b->ret[m], plain = (v - target) * (v - target), clipped;
        if (h->norm_adv)
            adv = (adv - (double)b->mean_std[0]) / ((double)b->mean_std[1] + 1e-8);
        if (b->weight != NULL)
            adv *= (double)b->weight[m % b->B];
        p.policy += fmax(-adv * ratio, -adv * clamp(ratio, 1.0 - eps, 1.0 + eps));
        clipped = old + clamp(v - old, -eps_v, eps_v) - target;
        p.value += b->heads.n_bins > 0 ? bins_f64(b, b->out64 + m * b->O + b->A, target, &v)
                                       : 0.5 * (eps_v > 0.0 ? fmax(plain, clipped * clipped) : plain);
        p.entropy += entropy;
        p.kl += ratio - 1.0 - log_ratio;
        p.clipped += fabs(ratio - 1.0) > eps;
    }
    if (ret_parts != NULL)
        *ret_parts = p;
    return (p.policy + (double)h->vf_coef * p.value - (double)h->ent_coef * p.entropy) / M;
}

/* Random inputs; with a mask, the actions taken are allowed. n_bins: of the value, 0: it is a number. */
static struct batch batch_of_bins(int n_heads, const int *sizes, size_t T, size_t B, bool masked, bool weighted,
                                  bool norm, float vf_clip, int n_bins)
{
    struct rng rng = rng_seed((uint64_t)n_heads * 1000 + T * 10 + B);
    struct kern_heads heads = heads_of(n_heads, sizes);
    heads.n_bins = n_bins, heads.value_log = 0.9f; /* up to 1.46: some returns lie beyond */
    struct batch b = batch_open(&rng, heads, T, B, 1.0f);
    b.weight = test_normal(&rng, B, 0.2f);
    for (size_t i = 0; i < B; i++)
        b.weight[i] += 1.5f;
    if (!weighted)
        b.weight = NULL;
    b.mask = masked ? test_flags(&rng, b.M * b.A, 0.6f) : NULL;
    for (size_t m = 0; m < b.M; m++) {
        size_t at = 0;
        double entropy;
        for (int j = 0; j < n_heads; j++) {
            uint32_t a = rng_below(&rng, (uint32_t)sizes[j]);
            b.actions[m * (size_t)n_heads + (size_t)j] = (int32_t)a;
            if (masked)
                b.mask[m * b.A + at + a] = 1;
            at += (size_t)sizes[j];
        }
        b.old_logp[m] = (float)token_logp_f64(&b, m, &entropy) + 0.4f * (rng_f32(&rng) - 0.5f); /* ratio 0.82 .. 1.22 */
    }
    b.hyper = (struct kern_hyper){
        .clip_coef = 0.1f, .vf_clip_coef = vf_clip, .vf_coef = 0.7f, .ent_coef = 0.05f, .norm_adv = norm};
    return b;
}

static struct batch batch_make(int n_heads, const int *sizes, size_t T, size_t B, bool masked, bool weighted, bool norm,
                               float vf_clip)
{
    return batch_of_bins(n_heads, sizes, T, B, masked, weighted, norm, vf_clip, 0);
}

static void run_loss(struct kern *k, const struct batch *b, float *dout, struct kern_stats *stats)
{
    const struct kern_loss l = loss_of(b, dout, stats);
    kern_ops(k)->ppo_loss(k, &l);
}

static void check_loss(struct kern *k, struct batch *b)
{
    size_t n = b->M * b->O;
    float *dout = NEW(float, n), *again = NEW(float, n), *log_ratio = NEW(float, 2 * b->M);
    int32_t *idx = NEW(int32_t, b->B);
    double *want = NEW(double, n), ret = 0.0, ret_sq = 0.0, err = 0.0, err_sq = 0.0;
    struct kern_stats stats = {0}, twice = {0};
    struct parts p;

    run_loss(k, b, dout, &stats);
    loss_f64(b, &p);
    check_number("policy loss", stats.policy_loss, p.policy, 1e-5);
    check_number("value loss", stats.value_loss, p.value, 1e-5);
    check_number("entropy", stats.entropy, p.entropy, 1e-5);
    check_number("kl", stats.approx_kl, p.kl, 1e-5);
    check_number("clip fraction", stats.clip_fraction, p.clipped, 1e-12);
    check_number("last kl", stats.last_kl, p.kl / (double)b->M, 1e-5);
    check_number("tokens", stats.n_tokens, (double)b->M, 0.0);
    for (size_t m = 0; m < b->M; m++) {
        double r = (double)b->ret[m], v = (double)b->out[m * b->O + b->A], e;
        if (b->heads.n_bins > 0)
            (void)bins_f64(b, b->out64 + m * b->O + b->A, r, &v);
        e = r - v;
        ret += r, ret_sq += r * r, err += e, err_sq += e * e;
    }
    check_number("ret sum", stats.ret_sum, ret, 1e-6);
    check_number("ret sq", stats.ret_sq, ret_sq, 1e-6);
    check_number("err sum", stats.err_sum, err, 1e-6);
    check_number("err sq", stats.err_sq, err_sq, 1e-6);

    for (size_t i = 0; i < n; i++) {
        double keep = b->out64[i], high, low;
        b->out64[i] = keep + 1e-6;
        high = loss_f64(b, NULL);
        b->out64[i] = keep - 1e-6;
        low = loss_f64(b, NULL);
        b->out64[i] = keep;
        want[i] = (high - low) / 2e-6;
    }
    check_close("dout", dout, want, n, 3e-5);
    run_loss(k, b, again, &stats);
    assert_memory_equal(dout, again, n * sizeof *dout);
    run_loss(k, b, again, &twice);
    run_loss(k, b, again, &twice);
    assert_memory_equal(&stats, &twice, sizeof stats); /* adds, and the same bytes each time */
    assert_true(stats.n_tokens == 2.0 * (double)b->M);

    for (size_t i = 0; i < b->B; i++) /* every other segment of twice as many, backwards */
        idx[i] = (int32_t)(2 * (b->B - 1 - i));
    memset(log_ratio, 0, 2 * b->M * sizeof *log_ratio);
    struct kern_loss l = loss_of(b, NULL, NULL);
    l.log_ratio = log_ratio, l.idx = idx, l.N = 2 * b->B;
    kern_ops(k)->segments_keep(k, &l);
    for (size_t m = 0; m < b->M; m++) {
        size_t at = m / b->B * 2 * b->B + 2 * (b->B - 1 - m % b->B);
        double entropy;
        check_number("log ratio", (double)log_ratio[at], token_logp_f64(b, m, &entropy) - (double)b->old_logp[m], 3e-6);
        assert_true(log_ratio[at + 1] == 0.0f);
    }
}

TEST(loss_and_gradient_agree_with_f64)
{
    const int one[] = {4}, three[] = {3, 2, 5}, wide[] = {40}, many[] = {2, 3, 1, 4, 2, 2, 5, 2, 3, 2, 6, 1};
    for (size_t t = 0; t < N_THREADS; t++)
        for (int v = 0; v < 16; v++) {
            KERN *k = test_kern(test_threads[t]);
            bool masked = v & 1, weighted = v & 2, norm = v & 4;
            float vf_clip = v & 8 ? 0.3f : 0.0f;
            struct batch b = v % 5 == 1   ? batch_make(12, many, 4, 5, masked, weighted, norm, vf_clip)
                             : v % 3 == 0 ? batch_make(1, one, 9, 15, masked, weighted, norm, vf_clip)
                             : v % 3 == 1 ? batch_make(3, three, 5, 7, masked, weighted, norm, vf_clip)
                                          : batch_make(1, wide, 3, 3, masked, weighted, norm, vf_clip);
            check_loss(k, &b);
        }
}

/* A value of bins: the loss is the cross entropy, its gradient that of f64; the value is the mean of the
 * bins. Some returns lie beyond the outermost bins. */
TEST(bins_agree_with_f64)
{
    const int one[] = {4}, three[] = {3, 2, 5};
    static const int bins[] = {3, 8, 51};
    for (size_t v = 0; v < COUNT(bins); v++) {
        KERN *k = test_kern(1 + v % 2);
        struct batch b = v == 1 ? batch_of_bins(3, three, 5, 7, true, true, true, 0.0f, bins[v])
                                : batch_of_bins(1, one, 9, 15, false, false, false, 0.3f, bins[v]);
        float *logp = NEW(float, b.M), *value = NEW(float, b.M);
        int32_t *actions = NEW(int32_t, b.M * (size_t)b.heads.n_heads);
        struct rng rng = rng_seed(3);
        struct kern_sample draw = {.N = b.M, .heads = &b.heads, .out = b.out, .mask = b.mask, .rng = &rng};

        check_loss(k, &b);
        draw.actions = actions, draw.logp = logp, draw.value = value;
        kern_ops(k)->sample(k, &draw);
        for (size_t m = 0; m < b.M; m++) {
            double mean;
            (void)bins_f64(&b, b.out64 + m * b.O + b.A, 0.0, &mean);
            check_number("value", (double)value[m], mean, 2e-6);
        }
    }
}

/* Time rows of one segment each: a minibatch given in parts has the loss, gradient and statistics of the whole. */
TEST(parts_add_up)
{
    enum { B = 30, CUT = 13 };
    const int sizes[] = {4};
    KERN *k = test_kern(2);
    struct batch b = batch_make(1, sizes, 1, B, true, true, true, 0.3f);
    float *whole = NEW(float, B *b.O), *parts = NEW(float, B *b.O);
    struct kern_stats one = {0}, two = {.last_kl = 5.0}, part[3] = {{0}};

    run_loss(k, &b, whole, &one);
    for (size_t from = 0; from < B; from += CUT) {
        size_t n = B - from < CUT ? B - from : CUT;
        struct kern_loss l = loss_of(&b, parts + from * b.O, &part[from / CUT]);
        l.T = 1, l.B = n, l.B_all = B;
        l.out += from * b.O, l.actions += from, l.mask += from * b.A, l.weight += from;
        l.old_logp += from, l.old_value += from, l.adv += from, l.ret += from;
        kern_ops(k)->ppo_loss(k, &l);
    }
    kern_ops(k)->minibatch_stats(k, &two, part, 3, &b.hyper);
    assert_true(part[1].n_tokens == 0.0 && part[2].last_kl == 0.0); /* ready for the next */
    double *want = test_f64(whole, B * b.O);
    check_close("dout", parts, want, B * b.O, 1e-7);
    check_number("minibatches", two.n_minibatches, 1.0, 0.0);
    check_number("tokens", two.n_tokens, B, 0.0);
    check_number("policy loss", two.policy_loss, one.policy_loss, 1e-9);
    check_number("last kl", two.last_kl, one.last_kl, 1e-9);
    check_number("err sq", two.err_sq, one.err_sq, 1e-9);
}

/* Each side of both clips, by hand: one token, two actions, logits 0 and 0, so that logp = -log 2. */
TEST(every_clip_branch)
{
    static const struct {
        float ratio, adv, v, old, ret; /* in */
        double policy, slope_logp, value, slope_v;
    } rows[] = {
        {1.0f, 2.0f, 0.0f, 0.0f, 1.0f, -2.0, -2.0, 0.5, -1.0}, /* inside both */
        {1.5f, 2.0f, 0.0f, 0.0f, 1.0f, -2.4, 0.0, 0.5, -1.0}, /* ratio too high, A > 0: clipped */
        {1.5f, -2.0f, 0.0f, 0.0f, 1.0f, 3.0, 3.0, 0.5, -1.0}, /* ratio too high, A < 0: not clipped */
        {0.5f, 2.0f, 0.0f, 0.0f, 1.0f, -1.0, -1.0, 0.5, -1.0}, /* ratio too low, A > 0: not clipped */
        {0.5f, -2.0f, 0.0f, 0.0f, 1.0f, 1.6, 0.0, 0.5, -1.0}, /* ratio too low, A < 0: clipped */
        {1.0f, 0.0f, 0.9f, 0.0f, 1.0f, 0.0, 0.0, 0.245, 0.0}, /* value moved too far towards ret: clipped */
        {1.0f, 0.0f, -0.9f, 0.0f, -1.0f, 0.0, 0.0, 0.245, 0.0}, /* the same downwards */
        {1.0f, 0.0f, 3.0f, 0.0f, 1.0f, 0.0, 0.0, 2.0, 2.0}, /* overshot: the plain loss is larger */
        {1.0f, 0.0f, 0.2f, 0.0f, 1.0f, 0.0, 0.0, 0.32, -0.8}, /* moved a little */
    };
    const int sizes[] = {2};
    KERN *k = test_kern(1);
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct kern_heads heads = heads_of(1, sizes);
        struct kern_hyper hyper = {.clip_coef = 0.2f, .vf_clip_coef = 0.3f, .vf_coef = 1.0f};
        struct kern_stats stats = {0};
        float out[3] = {0.0f, 0.0f, rows[i].v}, dout[3], old_logp = -logf(2.0f) - logf(rows[i].ratio);
        float mean_std[2] = {5.0f, 5.0f}; /* not used: norm_adv is off */
        int32_t action = 1;
        kern_ops(k)->ppo_loss(k, &(struct kern_loss){.dout = dout,
                                                     .part = &stats,
                                                     .out = out,
                                                     .actions = &action,
                                                     .old_logp = &old_logp,
                                                     .adv = &rows[i].adv,
                                                     .ret = &rows[i].ret,
                                                     .old_value = &rows[i].old,
                                                     .mean_std = mean_std,
                                                     .heads = &heads,
                                                     .hyper = &hyper,
                                                     .T = 1,
                                                     .B = 1,
                                                     .B_all = 1});
        check_number("policy", stats.policy_loss, rows[i].policy, 1e-6);
        check_number("dlogit taken", (double)dout[1], 0.5 * rows[i].slope_logp, 1e-6);
        check_number("dlogit other", (double)dout[0], -0.5 * rows[i].slope_logp, 1e-6);
        check_number("value", stats.value_loss, rows[i].value, 1e-6);
        check_number("dvalue", (double)dout[2], rows[i].slope_v, 1e-6);
    }
}

TEST(loss_that_is_not_finite_reaches_the_norm)
{
    const int sizes[] = {2};
    for (int v = 0; v < 3; v++) {
        KERN *k = test_kern(2);
        struct batch b = batch_make(1, sizes, 10, 20, false, false, false, 0.0f);
        float *dout = NEW(float, b.M *b.O), norm = 0.0f;
        struct kern_stats stats = {0};
        if (v == 0)
            b.out[7 * b.O] = NAN;
        else if (v == 1)
            b.ret[199] = 3e30f; /* squared it overflows, its gradient does not */
        else
            b.old_logp[150] = -INFINITY, b.adv[150] = -1.0f;
        run_loss(k, &b, dout, &stats);
        kern_ops(k)->grad_norm(k, &norm, &stats, dout, b.M * b.O);
        assert_true(isnan(norm));
        assert_int_equal(stats.nonfinite, 1);
        assert_true(stats.grad_norm == 0.0);
    }
}

TEST(target_kl_stops)
{
    KERN *k = test_kern(1);
    static const float target[] = {0.0f, 0.6f, 0.4f};
    struct kern_stats stats = {0};
    for (int i = 0; i < 3; i++) { /* off, not reached, passed by the two shards together */
        struct kern_hyper hyper = {.target_kl = target[i]};
        struct kern_stats parts[2] = {{.last_kl = 0.3}, {.last_kl = 0.2}};
        kern_ops(k)->minibatch_stats(k, &stats, parts, 2, &hyper);
        assert_int_equal(stats.stop, i == 2);
        assert_float_equal(stats.last_kl, 0.5, 1e-12);
    }
}

static void *shard_seen[8];

static void note_shard(void *ctx, struct kern *shard, size_t i)
{
    (void)ctx;
    assert_int_equal(kern_n_threads(shard), 1);
    shard_seen[i] = shard;
}

/* Every shard runs once, each is its own, and rows of shards add up in order. */
TEST(shards_run_once_each)
{
    float x[3][5] = {{1, 2, 3, 4, 5}, {10, 20, 30, 40, 50}, {0.5f, 0.5f, 0.5f, 0.5f, 0.5f}};
    for (size_t n = 1; n <= 3; n++) {
        KERN *k = test_kern(n);
        memset(shard_seen, 0, sizeof shard_seen);
        assert_int_equal(kern_n_shards(k), n);
        kern_each_shard(k, note_shard, NULL);
        for (size_t i = 0; i < n; i++)
            for (size_t j = 0; j <= i; j++)
                assert_true(shard_seen[i] != NULL && (i == j || shard_seen[i] != shard_seen[j]));
    }
    KERN *k = test_kern(2);
    kern_ops(k)->sum_rows(k, x[0], 3, 5);
    for (int i = 0; i < 5; i++)
        assert_float_equal(x[0][i], 11.0 * (i + 1) + 0.5, 0.0);
}

/* Chi-square over the choices of each head; the seed is fixed, so this passes or fails for good. */
TEST(sampling_follows_the_softmax)
{
    enum { N = 60000, A = 9 };
    const int sizes[] = {4, 5};
    static const float logits[A + 1] = {0.5f, -1.0f, 2.0f, 0.0f, 1.0f, 1.5f, -2.0f, 0.3f, -0.7f, 42.0f};
    static const uint8_t mask[A] = {1, 1, 0, 1, 1, 1, 1, 0, 1};
    for (int masked = 0; masked < 2; masked++) {
        KERN *k = test_kern(2);
        struct batch b = {.heads = heads_of(2, sizes), .A = A, .O = A + 1};
        struct rng rng = rng_seed(77), start = rng;
        float *out = NEW(float, N *(A + 1)), *logp = NEW(float, N), *value = NEW(float, N);
        uint8_t *masks = NEW(uint8_t, N * A);
        int32_t *actions = NEW(int32_t, N * 2), *again = NEW(int32_t, N * 2);
        double counts[A] = {0}, want[A], entropy[2], both = 0.0, joint = 0.0, row[A + 1];

        for (size_t i = 0; i < N; i++) {
            memcpy(out + i * (A + 1), logits, sizeof logits);
            memcpy(masks + i * A, mask, sizeof mask);
        }
        for (int i = 0; i <= A; i++)
            row[i] = (double)logits[i];
        row_f64(&b, row, masked ? mask : NULL, want, entropy);
        struct kern_sample draw = {.N = N, .heads = &b.heads, .out = out, .mask = masked ? masks : NULL, .rng = &rng};
        draw.actions = actions, draw.logp = logp, draw.value = value;
        kern_ops(k)->sample(k, &draw);
        assert_int_equal(rng.counter, start.counter + 2);
        for (size_t i = 0; i < N; i++) {
            int32_t a0 = actions[2 * i], a1 = actions[2 * i + 1];
            assert_in_range(a0, 0, 3);
            assert_in_range(a1, 0, 4);
            counts[a0]++, counts[4 + a1]++;
            both += a0 == 0 && a1 == 0;
            check_number("logp", (double)logp[i], want[a0] + want[4 + a1], 2e-6);
            assert_true(value[i] == 42.0f);
        }
        for (int head = 0; head < 2; head++) {
            double chi = 0.0;
            int choices = 0, from = head == 0 ? 0 : sizes[0];
            for (int i = from; i < from + sizes[head]; i++) {
                double expected = exp(want[i]) * N;
                if (isinf(want[i])) {
                    assert_true(counts[i] == 0.0);
                    continue;
                }
                choices++;
                chi += (counts[i] - expected) * (counts[i] - expected) / expected;
            }
            if (gsl_cdf_chisq_Q(chi, choices - 1) < 0.001)
                fail_msg("head %d: chi-square %g of %d choices", head, chi, choices);
        }
        joint = exp(want[0] + want[4]) * N; /* heads are independent */
        assert_true(fabs(both - joint) < 4.0 * sqrt(joint));
        for (size_t t = 0; t < N_THREADS; t++) { /* a draw depends on agent and counter alone */
            struct kern *other = test_kern(test_threads[t]);
            struct rng same = start;
            draw.rng = &same, draw.actions = again;
            kern_ops(other)->sample(other, &draw);
            assert_memory_equal(actions, again, N * 2 * sizeof *actions);
            kern_ops(other)->sample(other, &draw);
            assert_memory_not_equal(actions, again, N * 2 * sizeof *actions);
            kern_close(other);
        }
    }
}

TEST(greedy_takes_the_best_allowed)
{
    const int sizes[] = {3, 2};
    const float out[12] = {1, 5, 3, 0, -1, 9, -1, -2, -3, 4, 4, 8};
    const uint8_t mask[10] = {1, 0, 1, 0, 1, 0, 0, 0, 1, 1}; /* the last row's first head allows nothing: no mask */
    struct kern_heads heads = heads_of(2, sizes);
    KERN *k = test_kern(1);
    struct rng rng = rng_seed(1);
    int32_t actions[4];
    float logp[2], value[2];
    struct kern_sample s = {.N = 2, .heads = &heads, .greedy = true, .out = out, .rng = &rng};
    s.actions = actions, s.logp = logp, s.value = value;
    kern_ops(k)->sample(k, &s);
    assert_int_equal(actions[0], 1);
    assert_int_equal(actions[1], 0);
    assert_int_equal(actions[2], 0);
    assert_int_equal(actions[3], 0);
    s.mask = mask;
    kern_ops(k)->sample(k, &s);
    assert_int_equal(actions[0], 2);
    assert_int_equal(actions[1], 1);
    assert_int_equal(actions[2], 0);
    check_number("logp", (double)logp[0], -log(1.0 + exp(-2.0)), 1e-6);
    check_number("value", (double)value[1], 8.0, 0.0);
}

TEST(step_post_clamps_and_joins_flags)
{
    float rewards[4] = {5.0f, -3.0f, 0.25f, 1.0f};
    uint8_t terms[4] = {1, 0, 0, 0}, truncs[4] = {0, 1, 0, 0}, reset[4] = {9, 9, 9, 9};
    struct kern_hyper hyper = {.reward_clip = 0.0f};
    KERN *k = test_kern(1);
    struct kern_step_post p = {.N = 4, .terms = terms, .truncs = truncs, .hyper = &hyper};
    p.rewards = rewards, p.reset = reset;
    kern_ops(k)->step_post(k, &p);
    assert_true(rewards[0] == 5.0f && rewards[1] == -3.0f);
    assert_true(reset[0] == 1 && reset[1] == 1 && reset[2] == 0 && reset[3] == 0);
    hyper.reward_clip = 1.0f;
    kern_ops(k)->step_post(k, &p);
    assert_true(rewards[0] == 1.0f && rewards[1] == -1.0f && rewards[2] == 0.25f && rewards[3] == 1.0f);
}

TEST_PROGRAM("loss")
