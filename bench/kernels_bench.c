/* kernels_bench.c - nanoseconds per token of each operation, at the shapes of breakout with a MinGRU 128x1 policy.
 * usage: kernels_bench [threads [agents [minibatch_tokens [horizon]]]]
 * Each operation is timed alone, best of several runs; the last lines put a whole training loop together from them (rollout and
 * one pass of updates, games left out) and compare its products with the machine's SGEMM rate. */
#include <cblas.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "kernels/kernels.h"

enum { OBS = 118, H = 128, A = 4, O = A + 1 };
enum { RUNS = 15 };
static const struct kern_tensor matrices[] = {
    {0, H, OBS, true}, {H * OBS, 3 * H, H, true}, {H * (OBS + 3 * H), O, H, true}};
#define N_MATRICES (sizeof matrices / sizeof matrices[0])

struct bench {
    struct kern *k;
    const struct kern_ops *ops;
    size_t T, N, B, M; /* horizon, agents, segments and tokens of a minibatch */
    float *obs, *enc, *gates, *h, *out, *pol, *dpol, *dout, *dgates, *denc; /* (M, ...) */
    float *w_enc, *w_gates, *w_pol, *bias, *grad, *m, *v, *scratch, *h0;
    float *logp, *value, *adv, *ret, *mean_std;
    int32_t *actions, *idx;
    uint8_t *flags;
    struct kern_heads heads;
    struct kern_hyper hyper;
    struct kern_stats stats;
    float norm;
    int64_t step;
    struct rng rng;
    bool failed;
};

static void *get(struct bench *b, size_t n, size_t size)
{
    void *p = mem_array(n, size);
    b->failed |= p == NULL;
    return p;
}

static float *numbers(struct bench *b, size_t n, float scale)
{
    float *x = get(b, n, sizeof *x);
    for (size_t i = 0; x != NULL && i < n; i++)
        x[i] = (rng_f32(&b->rng) - 0.5f) * scale;
    return x;
}

typedef void op_fn(struct bench *b);

static void act_encoder(struct bench *b)
{
    b->ops->linear_forward(b->k, b->enc, b->obs, b->w_enc, b->bias, b->N, H, OBS, KERN_ACT_RELU);
}
static void act_gates(struct bench *b)
{
    b->ops->linear_forward(b->k, b->gates, b->enc, b->w_gates, NULL, b->N, 3 * H, H, KERN_ACT_NONE);
}
static void act_mingru(struct bench *b)
{
    b->ops->mingru_step(b->k, b->out, b->h, b->gates, b->enc, b->flags, b->N, H);
}
static void act_heads(struct bench *b)
{
    b->ops->linear_forward(b->k, b->pol, b->out, b->w_pol, b->bias, b->N, O, H, KERN_ACT_NONE);
}
static void act_sample(struct bench *b)
{
    b->ops->sample(b->k, b->actions, b->logp, b->value, b->pol, NULL, &b->heads, &b->rng, false, b->N);
}
static void act_post(struct bench *b)
{
    b->ops->step_post(b->k, b->ret, b->flags, b->flags, b->flags, &b->hyper, b->N);
}

static void train_advantage(struct bench *b)
{
    b->ops->advantage(b->k, b->adv, b->ret, b->logp, b->value, b->ret, b->flags, b->flags, b->logp, &b->hyper, b->T,
                      b->B);
}
static void train_gather(struct bench *b) /* observations only: nearly all of the bytes */
{
    struct kern_gather item = {b->dgates, b->obs, OBS * sizeof(float), b->T};
    b->ops->gather(b->k, &item, 1, b->idx, b->B, b->B);
}
static void train_encoder(struct bench *b)
{
    b->ops->linear_forward(b->k, b->enc, b->obs, b->w_enc, b->bias, b->M, H, OBS, KERN_ACT_RELU);
}
static void train_gates(struct bench *b)
{
    b->ops->linear_forward(b->k, b->gates, b->enc, b->w_gates, NULL, b->M, 3 * H, H, KERN_ACT_NONE);
}
static void train_mingru(struct bench *b)
{
    b->ops->mingru_forward(b->k, b->out, b->h, b->gates, b->enc, b->h0, b->flags, b->T, b->B, H);
}
static void train_heads(struct bench *b)
{
    b->ops->linear_forward(b->k, b->pol, b->out, b->w_pol, b->bias, b->M, O, H, KERN_ACT_NONE);
}
static void train_loss(struct bench *b)
{
    b->ops->ppo_loss(b->k, b->dpol, &b->stats, b->pol, b->actions, b->logp, b->adv, b->ret, b->value, NULL, b->mean_std,
                     NULL, &b->heads, &b->hyper, b->T, b->B, b->B);
}
static void train_heads_back(struct bench *b)
{
    b->ops->linear_backward(b->k, b->dout, b->grad, b->grad + H * O, b->dpol, b->pol, b->out, b->w_pol, b->M, O, H,
                            KERN_ACT_NONE, false, false);
}
static void train_mingru_back(struct bench *b)
{
    b->ops->mingru_backward(b->k, b->denc, b->dgates, b->dout, b->h, b->gates, b->enc, b->h0, b->flags, b->T, b->B, H);
}
static void train_gates_back(struct bench *b)
{
    b->ops->linear_backward(b->k, b->denc, b->grad, NULL, b->dgates, b->gates, b->enc, b->w_gates, b->M, 3 * H, H,
                            KERN_ACT_NONE, true, false);
}
static void train_encoder_back(struct bench *b)
{
    b->ops->linear_backward(b->k, NULL, b->grad, b->grad + H * OBS, b->denc, b->enc, b->obs, b->w_enc, b->M, H, OBS,
                            KERN_ACT_RELU, false, false);
}
static void train_adam(struct bench *b)
{
    b->ops->grad_norm(b->k, &b->norm, &b->stats, b->grad, H * (OBS + 3 * H + O));
    b->ops->adam(b->k, b->w_enc, b->m, b->v, b->grad, &b->norm, &b->stats, &b->step, &b->hyper, H * (OBS + 3 * H + O));
}
static void train_muon(struct bench *b)
{
    b->ops->grad_norm(b->k, &b->norm, &b->stats, b->grad, H * (OBS + 3 * H + O));
    b->ops->muon(b->k, b->w_enc, b->m, b->grad, &b->norm, b->scratch, &b->stats, &b->hyper, matrices, N_MATRICES);
}

struct row {
    const char *name;
    op_fn *fn;
    bool acting; /* per agent step; else per token of a minibatch */
    double flops; /* of the products, per token */
    bool extra; /* not part of the loop's sum */
};

static const struct row rows[] = {
    {"act encoder 118->128 relu", act_encoder, true, 2.0 * OBS *H, false},
    {"act gates 128->384", act_gates, true, 6.0 * H *H, false},
    {"act mingru_step", act_mingru, true, 0, false},
    {"act heads 128->5", act_heads, true, 2.0 * H *O, false},
    {"act sample", act_sample, true, 0, false},
    {"act step_post", act_post, true, 0, false},
    {"gather obs", train_gather, false, 0, false},
    {"encoder forward", train_encoder, false, 2.0 * OBS *H, false},
    {"gates forward", train_gates, false, 6.0 * H *H, false},
    {"mingru_forward", train_mingru, false, 0, false},
    {"heads forward", train_heads, false, 2.0 * H *O, false},
    {"advantage", train_advantage, false, 0, false},
    {"ppo_loss", train_loss, false, 0, false},
    {"heads backward", train_heads_back, false, 4.0 * H *O, false},
    {"mingru_backward", train_mingru_back, false, 0, false},
    {"gates backward", train_gates_back, false, 12.0 * H *H, false},
    {"encoder backward (no dx)", train_encoder_back, false, 2.0 * OBS *H, false},
    {"grad_norm + adam", train_adam, false, 0, false},
    {"grad_norm + muon", train_muon, false, 0, true},
};

/* One thread: its own CPU time, which other programs disturb less. */
static double now_ns(const struct bench *b)
{
    struct timespec t;
    clock_gettime(kern_n_threads(b->k) == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static double best_ns(struct bench *b, op_fn *fn)
{
    double best = 1e30;
    for (int run = 0; run < RUNS; run++) {
        double start = now_ns(b);
        fn(b);
        double ns = now_ns(b) - start;
        best = ns < best ? ns : best;
    }
    return best;
}

/* Rate of one thread on a square product that fits the L2 cache. */
static double sgemm_rate(struct bench *b)
{
    enum { S = 512 };
    float *x = numbers(b, S * S, 1.0f), *y = numbers(b, S * S, 1.0f), *z = numbers(b, S * S, 1.0f);
    double best = 1e30;
    for (int run = 0; x && y && z && run < 3 * RUNS; run++) {
        double start = now_ns(b);
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, S, S, S, 1.0f, x, S, y, S, 0.0f, z, S);
        double ns = now_ns(b) - start;
        best = ns < best ? ns : best;
    }
    mem_free(x);
    mem_free(y);
    mem_free(z);
    return 2.0 * S * S * S / best;
}

static void fill(struct bench *b)
{
    size_t M = b->M, n_params = H * (OBS + 3 * H + O);
    b->obs = numbers(b, M * OBS, 2.0f), b->enc = numbers(b, M * H, 1.0f), b->gates = numbers(b, M * 3 * H, 4.0f);
    b->h = numbers(b, M * H, 1.0f), b->out = numbers(b, M * H, 1.0f), b->pol = numbers(b, M * O, 1.0f);
    b->dpol = numbers(b, M * O, 1.0f), b->dout = numbers(b, M * H, 1.0f), b->dgates = numbers(b, M * 3 * H, 1.0f);
    b->denc = numbers(b, M * H, 1.0f), b->h0 = numbers(b, b->N * H, 1.0f);
    b->w_enc = numbers(b, n_params, 0.3f), b->w_gates = numbers(b, 3 * H * H, 0.3f), b->w_pol = numbers(b, O * H, 0.1f);
    b->bias = numbers(b, H, 0.1f), b->grad = numbers(b, n_params, 0.1f), b->m = numbers(b, n_params, 0.0f);
    b->v = numbers(b, n_params, 0.0f);
    b->scratch = get(b, kern_muon_scratch_bytes(matrices, N_MATRICES), 1);
    b->logp = numbers(b, M + b->B, 1.0f), b->value = numbers(b, M + b->B, 1.0f), b->adv = numbers(b, M, 1.0f);
    b->ret = numbers(b, M, 1.0f), b->mean_std = numbers(b, 2, 1.0f);
    b->actions = get(b, M, sizeof *b->actions), b->idx = get(b, b->B, sizeof *b->idx);
    b->flags = get(b, M, sizeof *b->flags);
    if (b->failed)
        return;
    for (size_t i = 0; i < M; i++)
        b->flags[i] = i % 97 == 0;
    b->ops->segments_shuffle(b->k, b->idx, &b->rng, b->B);
    b->heads = (struct kern_heads){.n_heads = 1, .sizes = {A}, .n_logits = A};
    b->hyper = (struct kern_hyper){.lr = 1e-3f,
                                   .gamma = 0.99f,
                                   .gae_lambda = 0.95f,
                                   .rho_clip = 1.0f,
                                   .c_clip = 1.0f,
                                   .clip_coef = 0.2f,
                                   .vf_clip_coef = 0.2f,
                                   .vf_coef = 1.0f,
                                   .ent_coef = 0.01f,
                                   .max_grad_norm = 1.0f,
                                   .beta1 = 0.9f,
                                   .beta2 = 0.999f,
                                   .eps = 1e-8f,
                                   .norm_adv = 1};
    b->mean_std[0] = 0.0f, b->mean_std[1] = 1.0f;
}

static size_t arg(int argc, char **argv, int i, size_t otherwise)
{
    return argc > i ? (size_t)strtoull(argv[i], NULL, 10) : otherwise;
}

int main(int argc, char **argv)
{
    static struct bench b = {.rng = {.key = 1}};
    struct kern_settings settings = {.kind = KERN_CPU, .n_threads = arg(argc, argv, 1, 1)};
    struct error err = {0};
    double total = 0.0, flops = 0.0, rate;

    b.N = arg(argc, argv, 2, 1024), b.M = arg(argc, argv, 3, 16384), b.T = arg(argc, argv, 4, 64);
    b.B = b.T > 0 ? b.M / b.T : 0;
    if (b.B == 0 || b.B * b.T != b.M || b.N == 0 || b.N > b.M) {
        fprintf(stderr, "kernels_bench: minibatch_tokens must be a multiple of horizon and at least agents\n");
        return 2;
    }
    if (kern_open(&b.k, &settings, &err) != ST_OK) {
        fprintf(stderr, "kernels_bench: %s\n", err.text);
        return 1;
    }
    b.ops = kern_ops(b.k);
    fill(&b);
    if (b.failed) {
        fprintf(stderr, "kernels_bench: out of memory; lower minibatch_tokens\n");
        return 1;
    }
    rate = sgemm_rate(&b);
    printf("%s; %zu agents, minibatch %zu x %zu; sgemm 512^3 on one thread: %.1f GFLOP/s\n", kern_device_name(b.k), b.N,
           b.T, b.B, rate);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct row *r = &rows[i];
        double ns = best_ns(&b, r->fn) / (double)(r->acting ? b.N : b.M);
        printf("%-28s %9.1f ns/token", r->name, ns);
        if (r->flops > 0.0)
            printf(" %7.1f GFLOP/s", r->flops / ns);
        printf("%s\n", r->extra ? " (not in the sum)" : "");
        if (!r->extra) {
            total += ns;
            flops += r->flops;
        }
    }
    printf("loop without games: %.0f ns/token, %.0f steps/s; products alone at that sgemm rate: %.0f ns (%.0f %%)\n",
           total, 1e9 / total, flops / rate, 100.0 * flops / rate / total);
    kern_close(b.k);
    return 0; /* the arrays live until exit */
}
