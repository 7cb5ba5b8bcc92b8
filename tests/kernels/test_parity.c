/* test_parity.c - every operation of the CUDA table against the CPU's, in f32 and bf16, on fresh random inputs of
 * several sizes; the games have a test of their own. Without a GPU the whole program is skipped; rows that the table
 * does not have are skipped with their names.
 * usage: test_parity [PATTERN|--list [LARGEST]]: only tests of that name, only shapes whose first two sizes' product is
 * at most LARGEST; for tools that slow a program down. */
#include "tests/kernels/parity.h"

#define OPS(k) (kern_ops(k))
#define IS_CPU(k) (kern_kind(k) == KERN_CPU)

/* ---- linear ---- */

static void weights_cast_make(struct parity *p, const size_t *s)
{
    parity_add(p, "w", BUF_ACT, BUF_OUT, s[0]);
    parity_f32(p); /* rounded to the nearest, as the host rounds */
    parity_normal(p, "params", BUF_F32, BUF_IN, s[0], 1.0f);
}

static void weights_cast_run(struct kern *k, const struct call *c)
{
    if (IS_CPU(k) || OPS(k)->act_size == 4) /* the weights are the parameters */
        OPS(k)->copy(k, c->p[0], c->p[1], c->s[0] * sizeof(float));
    else
        OPS(k)->weights_cast(k, c->p[0], (const float *)c->p[1], c->s[0]);
    for (size_t i = 0; IS_CPU(k) && parity.bf16 && i < c->s[0]; i++)
        ((float *)c->p[0])[i] = bf16_value(bf16_bits(((float *)c->p[0])[i]));
}

/* M, N, K, 4 bias + act, 8: a token holds a NaN, which no activation may swallow, 16 add_y; shift */
static void linear_forward_make(struct parity *p, const size_t *s)
{
    size_t M = s[0], N = s[1], K = s[2];

    parity_result(p, "y", BUF_ACT, M * N, (s[3] & 16) != 0);
    float *x = parity_normal(p, "x", BUF_ACT, BUF_IN, M * K, 1.0f);
    if (s[3] & 8)
        x[M / 2 * K + K / 2] = NAN;
    parity_normal(p, "w", BUF_ACT, BUF_IN, N * K, 0.3f);
    if (s[3] & 4)
        parity_normal(p, "b", BUF_ACT, BUF_IN, N, 1.0f);
    else
        parity_none(p);
    parity_shift_acts(p, s[4]);
}

static void linear_forward_run(struct kern *k, const struct call *c)
{
    struct kern_linear l = {
        .M = c->s[0], .N = c->s[1], .K = c->s[2], .act = (enum kern_act)(c->s[3] & 3), .add_y = (c->s[3] & 16) != 0};
    l.y = c->p[0], l.x = c->p[1], l.w = c->p[2], l.b = c->p[3];
    OPS(k)->linear_forward(k, &l);
}

/* M, N, K, act + 4 dx + 8 db + 16 add_dx + 32 add_dw, shift */
static void linear_backward_make(struct parity *p, const size_t *s)
{
    size_t M = s[0], N = s[1], K = s[2], how = s[3];
    if (how & 4)
        parity_result(p, "dx", BUF_ACT, M * K, (how & 16) != 0);
    else
        parity_none(p);
    parity_result(p, "dw", BUF_F32, N * K, (how & 32) != 0);
    if (how & 8)
        parity_result(p, "db", BUF_F32, N, (how & 32) != 0);
    else
        parity_none(p);
    parity_normal(p, "dy", BUF_ACT, BUF_INOUT, M * N, 1.0f);
    float *y = parity_normal(p, "y", BUF_ACT, BUF_IN, M * N, 0.15f);
    for (size_t i = 0; (how & 3) == KERN_ACT_RELU && i < M * N; i++)
        y[i] = y[i] < 0.0f ? 0.0f : y[i];
    parity_normal(p, "x", BUF_ACT, BUF_IN, M * K, 1.0f);
    parity_normal(p, "w", BUF_ACT, BUF_IN, N * K, 0.3f);
    parity_shift_acts(p, s[4]);
}

static void linear_backward_run(struct kern *k, const struct call *c)
{
    struct kern_linear l = {.M = c->s[0],
                            .N = c->s[1],
                            .K = c->s[2],
                            .act = (enum kern_act)(c->s[3] & 3),
                            .add_dx = (c->s[3] & 16) != 0,
                            .add_dw = (c->s[3] & 32) != 0};
    l.dx = c->p[0], l.dw = c->p[1], l.db = c->p[2], l.dy = c->p[3], l.y = c->p[4], l.x = c->p[5], l.w = c->p[6];
    OPS(k)->linear_backward(k, &l);
}

/* M, O, H, 0, shift */
static void heads_forward_make(struct parity *p, const size_t *s)
{
    parity_add(p, "out", BUF_F32, BUF_OUT, s[0] * s[1]);
    parity_f32(p);
    parity_normal(p, "x", BUF_ACT, BUF_IN, s[0] * s[2], 1.0f);
    parity_normal(p, "w", BUF_F32, BUF_IN, s[1] * s[2], 0.2f);
    parity_normal(p, "b", BUF_F32, BUF_IN, s[1], 1.0f);
    parity_shift_acts(p, s[4]);
}

static void heads_forward_run(struct kern *k, const struct call *c)
{
    OPS(k)->heads_forward(
        k, &(struct kern_heads_layer){
               .out = c->p[0], .x = c->p[1], .w = c->p[2], .b = c->p[3], .M = c->s[0], .O = c->s[1], .H = c->s[2]});
}

/* M, O, H, add_dw, shift */
static void heads_backward_make(struct parity *p, const size_t *s)
{
    size_t M = s[0], O = s[1], H = s[2];
    parity_add(p, "dx", BUF_ACT, BUF_OUT, M * H);
    parity_result(p, "dw", BUF_F32, O * H, s[3] != 0);
    parity_f32(p);
    parity_result(p, "db", BUF_F32, O, s[3] != 0);
    parity_f32(p);
    parity_normal(p, "dout", BUF_F32, BUF_IN, M * O, 0.1f);
    parity_normal(p, "x", BUF_ACT, BUF_IN, M * H, 1.0f);
    parity_normal(p, "w", BUF_F32, BUF_IN, O * H, 0.2f);
    parity_shift_acts(p, s[4]);
}

static void heads_backward_run(struct kern *k, const struct call *c)
{
    struct kern_heads_layer l = {.M = c->s[0], .O = c->s[1], .H = c->s[2], .add_dw = c->s[3] != 0};
    l.dx = c->p[0], l.dw = c->p[1], l.db = c->p[2], l.dout = c->p[3], l.x = c->p[4], l.w = c->p[5];
    OPS(k)->heads_backward(k, &l);
}

/* ---- acting ---- */

static const struct kern_heads head_sets[] = {
    {.n_heads = 1, .sizes = {4}, .n_logits = 4},
    {.n_heads = 3, .sizes = {2, 5, 3}, .n_logits = 10},
    {.n_heads = 1, .sizes = {67}, .n_logits = 67},
    {.n_heads = 8, .sizes = {2, 2, 3, 2, 9, 2, 2, 2}, .n_logits = 24},
    {.n_heads = 1, .n_logits = 2, .n_reals = 1, .low = {-2}, .high = {2}},
    {.n_heads = 4, .sizes = {0, 3, 0, 0}, .n_logits = 9, .n_reals = 3, .low = {-1, 0, 0, 5}, .high = {1, 0, 7, 5.5f}},
    {.n_heads = 2, .n_logits = 4, .n_reals = 2, .squash = true, .low = {-1, -3}, .high = {1, 5}},
    {.n_heads = 1, .sizes = {4}, .n_logits = 4, .n_bins = 51, .value_log = 2.5f},
    {.n_heads = 2, .sizes = {3, 2}, .n_logits = 5, .n_bins = 8, .value_log = 0.7f},
    {.n_heads = 17,
     .n_logits = 34,
     .n_reals = 17,
     .low = {-0.4f, -0.4f, -0.4f, -0.4f, -0.4f, -0.4f, -0.4f, -0.4f, -0.4f, -0.4f, -0.4f, -0.4f, -0.4f, -0.4f, -0.4f,
             -0.4f, -0.4f},
     .high = {0.4f, 0.4f, 0.4f, 0.4f, 0.4f, 0.4f, 0.4f, 0.4f, 0.4f, 0.4f, 0.4f, 0.4f, 0.4f, 0.4f, 0.4f, 0.4f, 0.4f}},
    {.n_heads = 12, .sizes = {2, 3, 2, 4, 2, 2, 5, 2, 3, 2, 6, 2}, .n_logits = 35},
};

/* A mask of every allowed choice; one head in ten allows nothing. */
static void add_mask(struct parity *p, const struct kern_heads *heads, size_t n)
{
    uint8_t *mask = parity_flags(p, "mask", n * (size_t)heads->n_logits, 0.6f);
    for (size_t i = 0; i < n; i++)
        for (int j = 0, at = 0; j < heads->n_heads; at += heads->sizes[j++])
            if (rng_f32(&p->rng) < 0.1f)
                memset(mask + i * (size_t)heads->n_logits + at, 0, (size_t)heads->sizes[j]);
}

/* Actions that the mask, added last, allows where it allows any. */
static void add_actions(struct parity *p, const struct kern_heads *heads, size_t n, const uint8_t *mask)
{
    int32_t *actions = (int32_t *)parity_add(p, "actions", BUF_I32, BUF_IN, n * (size_t)heads->n_heads);
    for (size_t i = 0; i < n; i++)
        for (int j = 0, at = 0; j < heads->n_heads; at += heads->sizes[j++]) {
            int a = (int)rng_below(&p->rng, (uint32_t)heads->sizes[j]);
            float u = 2.0f * rng_f32(&p->rng) - 1.0f;
            if (heads->sizes[j] == 0)
                memcpy(&a, &u, sizeof a);
            for (int try = 0; mask != NULL && mask[i * (size_t)heads->n_logits + at + a] == 0 && try < 500; try++)
                a = (int)rng_below(&p->rng, (uint32_t)heads->sizes[j]);
            actions[i * (size_t)heads->n_heads + j] = a;
        }
}

/* Means and deviations of numbers that keep log-probabilities within what f32 has digits for. */
static void calm_numbers(const struct kern_heads *heads, float *out, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        float *row = out + i * kern_heads_out(heads);
        for (int j = 0, at = 0; j<heads->n_heads; at += heads->sizes[j]> 0 ? heads->sizes[j] : 1, j++)
            row[at] *= heads->sizes[j] > 0 ? 1.0f : 0.5f;
        for (int j = heads->n_logits - heads->n_reals; j < heads->n_logits; j++)
            row[j] *= 0.3f;
    }
}

/* N, heads, 1 mask + 2 greedy. Draws where rounding decides are too rare to be met with these seeds. */
static void sample_make(struct parity *p, const size_t *s)
{
    const struct kern_heads *heads = &head_sets[s[1]];
    struct rng rng = rng_split(rng_seed(s[0]), s[1]);
    rng.counter = 12345;
    p->call.heads = *heads;
    parity_add(p, "actions", heads->n_reals == heads->n_heads ? BUF_F32 : BUF_I32, BUF_OUT,
               s[0] * (size_t)heads->n_heads);
    parity_add(p, "logp", BUF_F32, BUF_OUT, s[0]);
    parity_add(p, "value", BUF_F32, BUF_OUT, s[0]);
    calm_numbers(heads, parity_normal(p, "out", BUF_F32, BUF_IN, s[0] * kern_heads_out(heads), 1.5f), s[0]);
    parity_bytes(p, "rng", BUF_INOUT, &rng, sizeof rng);
    if (s[2] & 1)
        add_mask(p, heads, s[0]);
    else
        parity_none(p);
    if (heads->n_reals == heads->n_heads)
        parity_add(p, "reals", BUF_F32, BUF_OUT, s[0] * (size_t)heads->n_heads);
    else
        parity_none(p);
}

static void sample_run(struct kern *k, const struct call *c)
{
    struct kern_sample l = {.heads = &c->heads, .greedy = (c->s[2] & 2) != 0, .N = c->s[0]};
    l.actions = c->p[0], l.logp = c->p[1], l.value = c->p[2], l.out = c->p[3], l.mask = c->p[5], l.rng = c->p[4];
    l.reals = c->p[6];
    OPS(k)->sample(k, &l);
}

/* N, clipped */
static void step_post_make(struct parity *p, const size_t *s)
{
    struct kern_hyper hyper = {.reward_clip = s[1] ? 0.7f : 0.0f};
    parity_normal(p, "rewards", BUF_F32, BUF_INOUT, s[0], 1.0f);
    parity_add(p, "reset", BUF_BYTES, BUF_OUT, s[0]);
    parity_flags(p, "terms", s[0], 0.2f);
    parity_flags(p, "truncs", s[0], 0.2f);
    parity_bytes(p, "hyper", BUF_IN, &hyper, sizeof hyper);
}

static void step_post_run(struct kern *k, const struct call *c)
{
    OPS(k)->step_post(
        k,
        &(struct kern_step_post){
            .rewards = c->p[0], .reset = c->p[1], .terms = c->p[2], .truncs = c->p[3], .hyper = c->p[4], .N = c->s[0]});
}

/* ---- normalisation ---- */

/* T, N, D. The projection is coarse: a cosine's angle is rounded to bf16's inputs, which are the same on both sides. */
static void novelty_make(struct parity *p, const size_t *s)
{
    struct kern_hyper hyper = {.e3b_coef = 0.5f};
    const size_t F = KERN_NOVELTY_FEATURES;
    parity_normal(p, "obs", BUF_ACT, BUF_IN, (s[0] + 1) * s[1] * s[2], 1.0f);
    parity_flags(p, "reset", (s[0] + 1) * s[1], 0.1f);
    parity_normal(p, "projection", BUF_F32, BUF_IN, (s[2] + 1) * F, 0.5f);
    parity_bytes(p, "hyper", BUF_IN, &hyper, sizeof hyper);
    memset(parity_normal(p, "known", BUF_F32, BUF_INOUT, s[1] * F * F, 1.0f), 0, s[1] * F * F * sizeof(float));
    parity_normal(p, "rewards", BUF_F32, BUF_INOUT, s[0] * s[1], 1.0f);
}

static void novelty_run(struct kern *k, const struct call *c)
{
    OPS(k)->novelty(k, &(struct kern_novelty){.T = c->s[0],
                                              .N = c->s[1],
                                              .D = c->s[2],
                                              .obs = c->p[0],
                                              .reset = c->p[1],
                                              .projection = c->p[2],
                                              .hyper = c->p[3],
                                              .known = c->p[4],
                                              .rewards = c->p[5]});
}

/* ---- advantage ---- */

/* T, N, with ratio */
static void advantage_make(struct parity *p, const size_t *s)
{
    struct kern_hyper hyper = {.gamma = 0.97f, .gae_lambda = 0.9f, .rho_clip = 1.2f, .c_clip = 0.8f};
    size_t T = s[0], N = s[1], n = T * N;
    parity_add(p, "adv", BUF_F32, BUF_OUT, n);
    parity_add(p, "ret", BUF_F32, BUF_OUT, n);
    parity_normal(p, "rewards", BUF_F32, BUF_IN, n, 1.0f);
    parity_normal(p, "values", BUF_F32, BUF_IN, n + N, 1.0f);
    float *boot = parity_normal(p, "boot", BUF_F32, BUF_IN, n, 1.0f);
    uint8_t *terms = parity_flags(p, "terms", n, 0.05f);
    uint8_t *truncs = parity_flags(p, "truncs", n, 0.05f);
    for (size_t i = 0; i < n; i++) {
        truncs[i] = terms[i] ? 0 : truncs[i];
        boot[i] = truncs[i] ? boot[i] : NAN; /* no operation may look there */
    }
    parity_bytes(p, "hyper", BUF_IN, &hyper, sizeof hyper);
    if (!s[2]) {
        parity_none(p);
        return;
    }
    parity_normal(p, "log_ratio", BUF_F32, BUF_IN, n, 0.5f);
}

static void advantage_run(struct kern *k, const struct call *c)
{
    struct kern_advantage l = {.T = c->s[0], .N = c->s[1]};
    l.adv = c->p[0], l.ret = c->p[1], l.rewards = c->p[2], l.values = c->p[3], l.boot = c->p[4], l.terms = c->p[5];
    l.truncs = c->p[6], l.log_ratio = c->p[8], l.hyper = c->p[7];
    OPS(k)->advantage(k, &l);
}

/* n, mean */
static void mean_std_make(struct parity *p, const size_t *s)
{
    parity_add(p, "mean_std", BUF_F32, BUF_OUT, 2);
    float *x = parity_normal(p, "x", BUF_F32, BUF_IN, s[0], 0.1f);
    for (size_t i = 0; i < s[0]; i++)
        x[i] += (float)s[1];
}

static void mean_std_run(struct kern *k, const struct call *c)
{
    OPS(k)->mean_std(k, (float *)c->p[0], (const float *)c->p[1], c->s[0]);
}

/* ---- segments ---- */

static void add_rng(struct parity *p, enum buf_role role)
{
    struct rng rng = rng_split(p->rng, 77);
    rng.counter = 0xfffffff0u; /* draws pass the end of 32 bits */
    parity_bytes(p, "rng", role, &rng, sizeof rng);
}

static void segments_shuffle_make(struct parity *p, const size_t *s)
{
    parity_add(p, "perm", BUF_I32, BUF_OUT, s[0]);
    add_rng(p, BUF_IN);
}

static void segments_shuffle_run(struct kern *k, const struct call *c)
{
    OPS(k)->segments_shuffle(k, (int32_t *)c->p[0], (const struct rng *)c->p[1], c->s[0]);
}

/* T, N, 10 alpha */
static void segments_priority_make(struct parity *p, const size_t *s)
{
    struct kern_hyper hyper = {.prio_alpha = 0.1f * (float)s[2]};
    parity_add(p, "prob", BUF_F32, BUF_OUT, s[1]);
    parity_normal(p, "adv", BUF_F32, BUF_IN, s[0] * s[1], 1.0f);
    parity_bytes(p, "hyper", BUF_IN, &hyper, sizeof hyper);
}

static void segments_priority_run(struct kern *k, const struct call *c)
{
    OPS(k)->segments_priority(
        k, &(struct kern_segments){.prob = c->p[0], .adv = c->p[1], .hyper = c->p[2], .T = c->s[0], .N = c->s[1]});
}

/* N, B, skewed */
static void segments_pick_make(struct parity *p, const size_t *s)
{
    struct kern_hyper hyper = {.prio_beta = 0.4f};
    double total = 0.0;
    parity_add(p, "idx", BUF_I32, BUF_OUT, s[1]);
    parity_add(p, "weight", BUF_F32, BUF_OUT, s[1]);
    float *prob = (float *)parity_add(p, "prob", BUF_F32, BUF_IN, s[0]);
    for (size_t i = 0; i < s[0]; i++) {
        prob[i] = rng_f32(&p->rng) + 1e-3f;
        prob[i] = s[2] ? powf(prob[i], 9.0f) : prob[i];
        total += (double)prob[i];
    }
    for (size_t i = 0; i < s[0]; i++)
        prob[i] = (float)((double)prob[i] / total);
    add_rng(p, BUF_INOUT);
    parity_bytes(p, "hyper", BUF_IN, &hyper, sizeof hyper);
}

static void segments_pick_run(struct kern *k, const struct call *c)
{
    struct kern_segments l = {.N = c->s[0], .B = c->s[1]};
    l.idx = c->p[0], l.weight = c->p[1], l.prob = c->p[2], l.rng = c->p[3], l.hyper = c->p[4];
    OPS(k)->segments_pick(k, &l);
}

static void rng_advance_make(struct parity *p, const size_t *s)
{
    (void)s;
    add_rng(p, BUF_INOUT);
}

static void rng_advance_run(struct kern *k, const struct call *c)
{
    OPS(k)->rng_advance(k, (struct rng *)c->p[0], c->s[0]);
}

/* T, N, B; gather_bytes: the size of a row. Every second item has T + 1 steps. */
static const size_t gather_bytes[] = {1, 4, 2, 472, 7, 512, 3, 8, 12, 16, 33, 236};

static void gather_make(struct parity *p, const size_t *s)
{
    int32_t *idx = (int32_t *)parity_add(p, "idx", BUF_I32, BUF_IN, s[2]);
    for (size_t i = 0; i < s[2]; i++)
        idx[i] = (int32_t)rng_below(&p->rng, (uint32_t)s[1]);
    for (size_t i = 0; i < COUNT(gather_bytes); i++) {
        size_t T = s[0] + i % 2, n = T * s[1] * gather_bytes[i];
        parity_add(p, "dst", BUF_BYTES, BUF_OUT, T * s[2] * gather_bytes[i]);
        uint8_t *src = (uint8_t *)parity_add(p, "src", BUF_BYTES, BUF_IN, n);
        for (size_t j = 0; j < n; j++)
            src[j] = (uint8_t)rng_u32(&p->rng);
    }
}

static void gather_run(struct kern *k, const struct call *c)
{
    struct kern_gather_item items[COUNT(gather_bytes)];
    for (size_t i = 0; i < COUNT(gather_bytes); i++)
        items[i] = (struct kern_gather_item){c->p[1 + 2 * i], c->p[2 + 2 * i], gather_bytes[i], c->s[0] + i % 2};
    OPS(k)->gather(k, &(struct kern_gather){
                          .items = items, .n_items = COUNT(gather_bytes), .idx = c->p[0], .N = c->s[1], .B = c->s[2]});
}

/* ---- loss ---- */

/* M, heads, mask */
static void outputs_make(struct parity *p, const size_t *s)
{
    const struct kern_heads *heads = &head_sets[s[1]];
    const uint8_t *mask = NULL;
    p->call.heads = *heads;
    calm_numbers(heads, parity_normal(p, "out", BUF_F32, BUF_IN, s[0] * kern_heads_out(heads), 1.0f), s[0]);
    float *old = parity_normal(p, "old_logp", BUF_F32, BUF_IN, s[0], 0.5f);
    for (size_t i = 0; i < s[0]; i++)
        old[i] -= 1.4f * (float)heads->n_heads;
    if (s[2]) {
        add_mask(p, heads, s[0]);
        mask = (const uint8_t *)p->bufs[p->n_bufs - 1].start;
    } else {
        parity_none(p);
    }
    add_actions(p, heads, s[0], mask);
}

/* T * B, heads, mask, B, N: segments with repetitions, as prioritised ones are, the first a repetition of one before
 * them */
static void segments_keep_make(struct parity *p, const size_t *s)
{
    size_t n = s[0] / s[3] * s[4];
    outputs_make(p, s);
    parity_normal(p, "log_ratio", BUF_F32, BUF_INOUT, n, 0.3f); /* the other segments keep theirs */
    int32_t *idx = (int32_t *)parity_add(p, "idx", BUF_I32, BUF_IN, s[3] + 1);
    idx[0] = idx[1] = (int32_t)rng_below(&p->rng, 3);
    for (size_t b = 2; b <= s[3]; b++) {
        int32_t next = idx[b - 1] + (int32_t)rng_below(&p->rng, 3);
        idx[b] = next < (int32_t)s[4] ? next : (int32_t)s[4] - 1;
    }
}

static void segments_keep_run(struct kern *k, const struct call *c)
{
    struct kern_loss l = {.heads = &c->heads, .has_before = true, .N = c->s[4], .T = c->s[0] / c->s[3], .B = c->s[3]};
    l.log_ratio = c->p[4], l.out = c->p[0], l.actions = c->p[3], l.old_logp = c->p[1], l.mask = c->p[2];
    l.idx = (const int32_t *)c->p[5] + 1;
    OPS(k)->segments_keep(k, &l);
}

/* T, B, heads, 1 mask + 2 weight + 4 norm_adv + 8 clipped value + 16 a value that is not finite */
static void ppo_loss_make(struct parity *p, const size_t *s)
{
    size_t M = s[0] * s[1], how = s[3], one[] = {M, s[2], how & 1};
    struct kern_hyper hyper = {.clip_coef = 0.2f,
                               .vf_clip_coef = how & 8 ? 0.3f : 0.0f,
                               .vf_coef = 0.7f,
                               .ent_coef = 0.02f,
                               .norm_adv = (how & 4) != 0};
    outputs_make(p, one);
    parity_add(p, "dout", BUF_F32, BUF_OUT, p->bufs[0].n);
    parity_add(p, "part", BUF_STATS, BUF_INOUT, 1);
    parity_normal(p, "adv", BUF_F32, BUF_IN, M, 1.0f);
    parity_normal(p, "ret", BUF_F32, BUF_IN, M, 1.0f);
    parity_normal(p, "old_value", BUF_F32, BUF_IN, M, 1.0f);
    if (how & 16)
        ((float *)p->bufs[p->n_bufs - 1].start)[M / 2] = ((float *)p->bufs[p->n_bufs - 2].start)[M / 2] = INFINITY;
    if (how & 2)
        parity_normal(p, "weight", BUF_F32, BUF_IN, s[1], 0.2f);
    else
        parity_none(p);
    float *mean_std = (float *)parity_add(p, "mean_std", BUF_F32, BUF_IN, 2);
    mean_std[0] = 0.2f, mean_std[1] = 1.3f;
    parity_bytes(p, "hyper", BUF_IN, &hyper, sizeof hyper);
}

static void ppo_loss_run(struct kern *k, const struct call *c)
{
    struct kern_loss l = {.heads = &c->heads, .T = c->s[0], .B = c->s[1], .B_all = 2 * c->s[1]};
    l.dout = c->p[4], l.part = c->p[5], l.out = c->p[0], l.actions = c->p[3], l.old_logp = c->p[1], l.adv = c->p[6];
    l.ret = c->p[7], l.old_value = c->p[8], l.weight = c->p[9], l.mean_std = c->p[10], l.mask = c->p[2];
    l.hyper = c->p[11];
    OPS(k)->ppo_loss(k, &l);
}

static void add_stats(struct parity *p, const char *name, size_t n, bool stop)
{
    struct kern_stats *stats = (struct kern_stats *)parity_add(p, name, BUF_STATS, BUF_INOUT, n);
    for (size_t i = 0; i < n; i++) {
        double *x = (double *)&stats[i];
        for (size_t j = 0; j < offsetof(struct kern_stats, nonfinite) / sizeof *x; j++)
            x[j] = rng_f64(&p->rng);
        stats[i].stop = stop;
    }
}

/* parts, 10 target_kl, stop */
static void minibatch_stats_make(struct parity *p, const size_t *s)
{
    struct kern_hyper hyper = {.target_kl = 0.1f * (float)s[1]};
    add_stats(p, "stats", 1, s[2] != 0);
    add_stats(p, "parts", s[0], false);
    parity_bytes(p, "hyper", BUF_IN, &hyper, sizeof hyper);
}

static void minibatch_stats_run(struct kern *k, const struct call *c)
{
    OPS(k)->minibatch_stats(k, (struct kern_stats *)c->p[0], (struct kern_stats *)c->p[1], c->s[0],
                            (const struct kern_hyper *)c->p[2]);
}

/* ---- optimiser: n, 0 plain, 1 not finite, 2 stopped ---- */

static void grad_norm_make(struct parity *p, const size_t *s)
{
    parity_add(p, "norm", BUF_F32, BUF_OUT, 1);
    add_stats(p, "stats", 1, s[1] == 2);
    float *g = parity_normal(p, "g", BUF_F32, BUF_IN, s[0], 0.1f);
    if (s[1] == 1)
        g[s[0] / 2] = INFINITY;
}

static void grad_norm_run(struct kern *k, const struct call *c)
{
    OPS(k)->grad_norm(k, (float *)c->p[0], (struct kern_stats *)c->p[1], (const float *)c->p[2], c->s[0]);
}

static void add_optimiser(struct parity *p, size_t n, size_t how)
{
    struct kern_hyper hyper = {
        .lr = 0.01f, .max_grad_norm = 1.5f, .beta1 = 0.9f, .beta2 = 0.99f, .eps = 1e-6f, .weight_decay = 0.1f};
    float *norm = (float *)parity_add(p, "norm", BUF_F32, BUF_IN, 1);
    *norm = how == 1 ? NAN : 2.5f;
    add_stats(p, "stats", 1, how == 2);
    parity_bytes(p, "hyper", BUF_IN, &hyper, sizeof hyper);
    parity_normal(p, "w", BUF_F32, BUF_INOUT, n, 0.3f);
    parity_normal(p, "m", BUF_F32, BUF_INOUT, n, 0.1f);
    parity_normal(p, "g", BUF_F32, BUF_IN, n, 0.1f);
}

static void adam_make(struct parity *p, const size_t *s)
{
    int64_t step = 4;
    add_optimiser(p, s[0], s[1]);
    float *v = parity_normal(p, "v", BUF_F32, BUF_INOUT, s[0], 0.01f);
    for (size_t i = 0; i < s[0]; i++)
        v[i] = v[i] * v[i];
    parity_bytes(p, "step", BUF_IN, &step, sizeof step);
}

static void adam_run(struct kern *k, const struct call *c)
{
    struct kern_optimiser l = {.n = c->s[0]};
    l.w = c->p[3], l.m = c->p[4], l.v = c->p[6], l.g = c->p[5], l.norm = c->p[0], l.stats = c->p[1], l.step = c->p[7];
    l.hyper = c->p[2];
    OPS(k)->adam(k, &l);
}

/* Which tensors, how, 1: the gradient has parts of low rank */
static const struct kern_tensor muon_sets[][8] = {
    {{0, 1, 1, true}},
    {{0, 128, 118, true}, {15104, 128, 1, false}, {15232, 384, 128, true}, {64384, 5, 128, true}, {65024, 5, 1, false}},
    {{0, 7, 33, true}, {231, 33, 7, true}, {462, 65, 64, true}, {4622, 3, 1, false}, {4625, 130, 257, true}},
    {{0, 96, 32, true}, {3072, 96, 32, true}, {6144, 96, 32, true}, {9216, 96, 32, true}, {12288, 32, 118, true}},
    {{0, 31, 90, true},
     {2790, 90, 31, true},
     {5580, 1, 17, true},
     {5597, 17, 2, true},
     {5631, 5, 128, true},
     {6271, 1, 1, true},
     {6272, 33, 1, false},
     {6305, 64, 64, true}},
    {{0, 256, 118, true}, {30208, 256, 1, false}, {30464, 768, 256, true}, {227072, 20, 256, true}},
    {{0, 512, 118, true}, {60416, 1536, 512, true}, {846848, 200, 300, true}, {906848, 301, 199, true}},
    {{0, 320, 256, true}, {81920, 320, 256, true}, {163840, 256, 320, true}, {245760, 7, 1, false}}, /* of one size */
    /* Products of one size, at other distances after each other. */
    {{0, 768, 256, true}, {196608, 768, 256, true}, {393216, 768, 256, true}},
    {{0, 256, 256, true}, {65536, 256, 256, true}, {131072, 256, 256, true}},
};
static const size_t muon_counts[] = {1, 5, 5, 5, 8, 4, 4, 4, 3, 3};

static void muon_make(struct parity *p, const size_t *s)
{
    const struct kern_tensor *tensors = muon_sets[s[0] - 1];
    size_t count = muon_counts[s[0] - 1], n = tensors[count - 1].offset;
    n += tensors[count - 1].rows * tensors[count - 1].cols;
    p->call.tensors = tensors;
    p->call.n_tensors = count;
    add_optimiser(p, n, s[1]);
    for (size_t i = 0; s[2] != 0 && i < n; i++) /* g was added last */
        ((float *)p->bufs[p->n_bufs - 1].start)[i] += 0.02f * (float)(i % 13);
    if (p->bf16) /* the products are of bf16 then, and w after a small step would hide them */
        ((struct kern_hyper *)p->bufs[2].start)->lr = 3.0f;
    parity_add(p, "scratch", BUF_BYTES, BUF_SCRATCH, kern_muon_scratch_bytes(tensors, count));
}

static void muon_run(struct kern *k, const struct call *c)
{
    struct kern_optimiser l = {.tensors = c->tensors, .n_tensors = c->n_tensors};
    l.w = c->p[3], l.m = c->p[4], l.g = c->p[5], l.norm = c->p[0], l.scratch = c->p[6], l.stats = c->p[1];
    l.hyper = c->p[2];
    OPS(k)->muon(k, &l);
}

static void optimiser_tick_make(struct parity *p, const size_t *s)
{
    int64_t step = 41;
    add_optimiser(p, 1, s[1]);
    parity_bytes(p, "step", BUF_INOUT, &step, sizeof step);
}

static void optimiser_tick_run(struct kern *k, const struct call *c)
{
    OPS(k)->optimiser_tick(k, (int64_t *)c->p[6], (const float *)c->p[0], (const struct kern_stats *)c->p[1]);
}

/* ---- plain ---- */

static void random_bytes(struct parity *p, const char *name, enum buf_role role, size_t n)
{
    uint8_t *x = (uint8_t *)parity_add(p, name, BUF_BYTES, role, n);
    for (size_t i = 0; i < n; i++)
        x[i] = (uint8_t)rng_u32(&p->rng);
}

/* bytes, and those by which dst and src are off an address of 256 */
static void copy_make(struct parity *p, const size_t *s)
{
    random_bytes(p, "dst", BUF_INOUT, s[0] + 9); /* what lies past the end must stay */
    parity_shift(p, s[1]);
    random_bytes(p, "src", BUF_IN, s[0]);
    parity_shift(p, s[2]);
}

static void zero_run(struct kern *k, const struct call *c)
{
    OPS(k)->zero(k, c->p[0], c->s[0]);
}

static void copy_run(struct kern *k, const struct call *c)
{
    OPS(k)->copy(k, c->p[0], c->p[1], c->s[0]);
}

/* rows, n */
static void sum_rows_make(struct parity *p, const size_t *s)
{
    parity_normal(p, "x", BUF_F32, BUF_INOUT, s[0] * s[1], 1.0f);
    if (s[0] < 5) /* what ranks add up: the same sums everywhere */
        p->bufs[0].tolerance = 1e-12;
}

static void sum_rows_run(struct kern *k, const struct call *c)
{
    OPS(k)->sum_rows(k, (float *)c->p[0], c->s[0], c->s[1]);
}

/* N, row_bytes, percent flagged */
static void rows_make(struct parity *p, const size_t *s)
{
    int64_t none = -1;
    random_bytes(p, "dst", BUF_INOUT, s[0] * s[1]); /* rows that are not written keep their bytes */
    random_bytes(p, "src", BUF_IN, s[0] * s[1]);
    parity_flags(p, "flag", s[0], 0.01f * (float)s[2]);
    parity_bytes(p, "n_packed", BUF_INOUT, &none, sizeof none);
}

static void pack_rows_run(struct kern *k, const struct call *c)
{
    OPS(k)->pack_rows(
        k,
        &(struct kern_pack){
            .dst = c->p[0], .n_packed = c->p[3], .src = c->p[1], .flag = c->p[2], .row_bytes = c->s[1], .N = c->s[0]});
}

static void unpack_rows_run(struct kern *k, const struct call *c)
{
    OPS(k)->unpack_rows(
        k, &(struct kern_pack){.dst = c->p[0], .src = c->p[1], .flag = c->p[2], .row_bytes = c->s[1], .N = c->s[0]});
}

/* ---- table ---- */

static const struct parity_case cases[] = {
    PARITY_ROW(weights_cast, true, {1}, {7}, {4098}, {70001}),
    PARITY_ROW(linear_forward, true, {1, 1, 1, 0}, {3, 5, 7, 5}, {17, 33, 9, 6}, {64, 128, 118, 5}, {4096, 128, 118, 5},
               {257, 384, 128, 0}, {1000, 37, 40, 4}, {2050, 130, 66, 1}, {64, 128, 118, 8 + 5}, {64, 128, 118, 8 + 1},
               {17, 33, 9, 8 + 5}, {64, 128, 118, 8 + 6}, {77, 64, 4, 4}, {129, 96, 32, 5}, {1, 128, 118, 6},
               {65, 33, 17, 2}, {257, 7, 5, 5}, {4096, 512, 256, 6}, {500, 128, 1, 5}, {130, 128, 118, 5, 1},
               {130, 64, 24, 6, 3}, {70001, 64, 118, 5}, {3000, 192, 64, 8}, {300, 384, 128, 4}, {77, 40, 126, 16 + 6},
               {999, 160, 50, 16}),
    PARITY_ROW(linear_backward, true, {1, 1, 1, 12}, {3, 5, 7, 13}, {17, 33, 9, 14}, {64, 128, 118, 9},
               {4096, 128, 118, 4 + 8 + 1}, {257, 384, 128, 4 + 16}, {1000, 37, 40, 4 + 8 + 16 + 32 + 1},
               {2050, 130, 66, 4 + 32 + 2}, {77, 64, 4, 12}, {129, 96, 32, 4 + 8 + 16 + 32 + 1}, {1, 128, 118, 14},
               {65, 33, 17, 13}, {257, 7, 5, 8 + 32}, {4096, 512, 256, 14}, {500, 128, 1, 4 + 8 + 16 + 32 + 1},
               {130, 128, 118, 4 + 8 + 16 + 32 + 1, 1}, {130, 64, 24, 14, 3}, {70001, 64, 32, 4 + 16},
               {3000, 192, 64, 4 + 16 + 32}, {300, 384, 128, 4 + 8}, {77, 40, 126, 8 + 2}, {999, 160, 96, 4 + 8 + 1}),
    PARITY_ROW(heads_forward, true, {1, 2, 1}, {3, 5, 7}, {4096, 5, 128}, {1001, 25, 64}, {130, 68, 33}, {70, 5, 128},
               {1000, 1, 1}, {333, 2, 7}, {1000, 3, 32}, {333, 9, 64}, {1000, 13, 96}, {333, 17, 128}, {1000, 20, 200},
               {333, 23, 512}, {1000, 5, 128, 0, 1}, {16384, 4, 128}),
    PARITY_ROW(heads_backward, true, {1, 2, 1}, {3, 5, 7, 1}, {4096, 5, 128, 0}, {1001, 25, 64, 1}, {130, 68, 33, 0},
               {70, 5, 128, 1}, {1000, 1, 1, 1}, {333, 2, 7, 1}, {1000, 3, 32}, {333, 9, 64, 1}, {1000, 13, 96},
               {333, 17, 128, 1}, {1000, 20, 200}, {333, 23, 512, 1}, {1000, 5, 128, 0, 1}, {16384, 4, 128}),
    PARITY_ROW(sample, false, {1, 0, 0}, {33, 1, 1}, {4096, 0, 0}, {1001, 2, 1}, {500, 3, 0}, {500, 1, 3}, {77, 2, 2},
               {1000, 4, 0}, {300, 6, 0}, {64, 4, 2}, {64, 6, 2}, {333, 7, 1}, {70, 8, 0}, {200, 9, 0}, {150, 10, 1}),
    PARITY_ROW(step_post, false, {1, 0}, {33, 1}, {4099, 1}, {4096, 0}),
    PARITY_ROW(novelty, true, {1, 1, 1}, {20, 7, 5}, {64, 130, 3}, {3, 33, 67}),
    PARITY_ROW(advantage, false, {1, 1, 1}, {7, 3, 1}, {64, 33, 0}, {64, 512, 1}, {65, 100, 1}, {300, 40, 1},
               {5, 4099, 0}),
    PARITY_ROW(mean_std, false, {1, 0}, {2, 5}, {33, 100}, {32768, 0}, {70001, 1}),
    PARITY_ROW(segments_shuffle, false, {1}, {2}, {37}, {64}, {4096}, {5001}, {16384}, {32767}, {32768}, {70001},
               {1 << 20}),
    PARITY_ROW(segments_priority, false, {1, 1, 10}, {9, 37, 5}, {64, 4096, 9}, {64, 5001, 0}, {33, 16384, 7}),
    PARITY_ROW(segments_pick, false, {1, 1, 0}, {37, 5, 1}, {5, 100, 0}, {4096, 512, 0}, {5001, 700, 1},
               {16384, 512, 1}, {70001, 1024, 0}),
    PARITY_ROW(rng_advance, false, {1}, {12345678901}),
    PARITY_ROW(gather, false, {1, 1, 1}, {5, 11, 6}, {64, 129, 32}, {3, 1000, 513}),
    PARITY_ROW(segments_keep, false, {1, 0, 0, 1, 1}, {33, 1, 1, 11, 7}, {32768, 0, 0, 512, 4096},
               {1001, 2, 1, 143, 100}, {500, 3, 1, 50, 50}, {264, 5, 0, 33, 40}, {60, 6, 0, 20, 20}, {70, 7, 1, 7, 9},
               {70, 9, 0, 7, 9}, {70, 10, 1, 7, 9}),
    PARITY_ROW(ppo_loss, false, {1, 1, 0, 0}, {3, 11, 1, 15}, {64, 512, 0, 12}, {7, 143, 2, 5}, {10, 50, 3, 10},
               {8, 33, 4, 6}, {5, 40, 5, 12}, {9, 30, 6, 4}, {64, 4099, 0, 14}, {5, 60, 1, 16}, {11, 300, 7, 15},
               {5, 41, 8, 2}, {5, 30, 9, 12}, {6, 33, 10, 5}),
    PARITY_ROW(minibatch_stats, false, {1, 0}, {3, 1}, {2, 100}, {2, 1, 1}),
    PARITY_ROW(grad_norm, false, {1, 0}, {67, 0}, {70001, 0}, {1000001, 0}, {4096, 1}, {4096, 2}),
    PARITY_ROW(adam, false, {1, 0}, {13, 0}, {67, 0}, {1093, 0}, {70001, 0}, {4096, 1}, {4096, 2}),
    PARITY_ROW(muon, true, {1, 0}, {2, 0}, {3, 0}, {4, 0}, {2, 1}, {2, 2}, {5, 0}, {2, 0, 1}, {4, 0, 1}, {5, 0, 1}),
    PARITY_ROW_AS("muon_large", muon, true, muon_make, muon_run, {6, 0}, {7, 0}, {6, 0, 1}, {7, 0, 1}, {7, 1}, {7, 2},
                  {8, 0}, {8, 0, 1}, {9, 0}, {10, 0}),
    PARITY_ROW(optimiser_tick, false, {1, 0}, {1, 1}, {1, 2}),
    PARITY_ROW_OF(zero, false, copy_make, zero_run, {1}, {77}, {4096}, {100003}, {18, 2}, {1200, 4}, {58001, 2}),
    PARITY_ROW(copy, false, {1}, {77}, {4096}, {100003}, {2, 2}, {20, 2, 0}, {1202, 0, 2}, {58000, 4}, {58001, 0, 4}),
    PARITY_ROW(sum_rows, false, {1, 5}, {3, 1}, {4, 777}, {16, 4099}, {2, 70001}),
    PARITY_ROW_OF(pack_rows, false, rows_make, pack_rows_run, {1, 4, 100}, {37, 12, 30}, {4096, 472, 2}, {5001, 7, 90},
                  {4096, 512, 0}, {1001, 1, 25}, {2001, 13, 50}, {3001, 40, 75}, {4001, 121, 100}, {5000, 256, 1}),
    PARITY_ROW_OF(unpack_rows, false, rows_make, unpack_rows_run, {1, 4, 100}, {37, 12, 30}, {4096, 472, 2},
                  {5001, 7, 90}, {4096, 512, 0}, {1001, 1, 25}, {2001, 13, 50}, {3001, 40, 75}, {4001, 121, 100},
                  {5000, 256, 1}),
};

int main(int argc, char **argv)
{
    return parity_main(argc, argv, "parity", cases, COUNT(cases));
}
