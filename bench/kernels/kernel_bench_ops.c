/* kernel_bench_ops.c - the tensors of a training setting and every operation that works on them, with the bytes and
 * flops that it needs at least. Bytes count each tensor once, as read or written; a cache may make them cheaper. */
#include "bench/kernels/kernel_bench_ops.h"

#define N_RANDOM ((size_t)1 << 16) /* numbers that are made; tensors repeat them */

/* ---- tensors ---- */

static void must(enum status rc, const struct error *err)
{
    if (rc == ST_OK)
        return;
    fprintf(stderr, "trawl-bench: %s\n", err->text);
    exit(status_exit_code(rc));
}

void *kb_alloc(struct kb *b, size_t bytes)
{
    struct error err = {0};
    void *mem = NULL;

    MEM_ROOM(b->owned, b->n_owned, b->max_owned);
    must(kern_alloc(b->kern, &mem, bytes, "the tensors of the measurement", &err), &err);
    return b->owned[b->n_owned++] = mem;
}

struct fill {
    struct kb *b;
    float *random; /* (N_RANDOM) in [-1, 1) */
    float *host; /* scratch of n_max numbers */
    void *stage; /* device, n_max f32 */
    size_t n_max;
};

static void upload(struct kb *b, void *mem, const void *from, size_t bytes)
{
    struct error err = {0};

    must(kern_upload(b->kern, mem, from, bytes, &err), &err);
    must(kern_sync(b->kern, &err), &err); /* what it came from is used again */
}

static float *fill_f32(struct fill *f, size_t n, float scale)
{
    float *mem = (float *)kb_alloc(f->b, n * sizeof *mem);

    for (size_t i = 0; i < n; i++)
        f->host[i] = f->random[i % N_RANDOM] * scale;
    upload(f->b, mem, f->host, n * sizeof *mem);
    return mem;
}

static void *fill_act(struct fill *f, size_t n, float scale)
{
    struct kb *b = f->b;
    struct error err = {0};

    if (b->ops->act_size == sizeof(float))
        return fill_f32(f, n, scale);
    void *mem = kb_alloc(b, n * b->ops->act_size);
    for (size_t i = 0; i < n; i++)
        f->host[i] = f->random[i % N_RANDOM] * scale;
    upload(b, f->stage, f->host, n * sizeof(float));
    b->ops->weights_cast(b->kern, mem, (const float *)f->stage, n);
    must(kern_sync(b->kern, &err), &err);
    return mem;
}

static uint8_t *fill_flags(struct fill *f, size_t n, size_t one_in)
{
    uint8_t *mem = (uint8_t *)kb_alloc(f->b, n), *host = (uint8_t *)f->host;

    for (size_t i = 0; i < n; i++)
        host[i] = one_in > 0 && i % one_in == 0;
    upload(f->b, mem, host, n);
    return mem;
}

static void fill_set(struct fill *f, struct kb_set *s)
{
    const struct kb_shape *z = &f->b->shape;
    size_t MH = z->M * z->H, TN = z->T * z->N, rows = z->N > z->M ? z->N : z->M;
    size_t n_actions = (size_t)z->heads.n_heads * sizeof *s->actions;

    s->obs = fill_act(f, rows * z->D, 1.0f), s->obs_all = fill_act(f, TN * z->D, 1.0f);
    s->enc = fill_act(f, rows * z->H, 1.0f), s->gates = fill_act(f, rows * 3 * z->H, 2.0f);
    s->out = fill_act(f, rows * z->H, 1.0f), s->h_seq = fill_act(f, MH, 1.0f), s->denc = fill_act(f, MH, 1.0f);
    s->dout = fill_act(f, MH, 1.0f), s->dgates = fill_act(f, 3 * MH, 1.0f);
    s->w = fill_act(f, z->n_params, 0.1f), s->params = fill_f32(f, z->n_params, 0.1f);
    s->grad = fill_f32(f, z->n_params, 0.1f), s->m = fill_f32(f, z->n_params, 0.0f);
    s->v = fill_f32(f, z->n_params, 0.0f), s->h = fill_f32(f, z->N * z->H, 1.0f);
    s->h0 = fill_f32(f, z->B * z->H, 1.0f), s->pol = fill_f32(f, rows * z->O, 1.0f);
    s->dpol = fill_f32(f, rows * z->O, 1.0f), s->logp = fill_f32(f, rows, 1.0f);
    s->logp_all = fill_f32(f, TN, 1.0f), s->adv = fill_f32(f, TN, 1.0f), s->ret = fill_f32(f, TN, 1.0f);
    s->value = fill_f32(f, TN + z->N, 1.0f), s->boot = fill_f32(f, TN, 1.0f), s->ratio = fill_f32(f, TN, 1.0f);
    s->rewards = fill_f32(f, TN, 1.0f), s->weight = fill_f32(f, z->N, 1.0f), s->mean_std = fill_f32(f, 2, 1.0f);
    s->known = fill_f32(f, z->N * KERN_NOVELTY_FEATURES * KERN_NOVELTY_FEATURES, 0.0f);
    s->projection = fill_f32(f, (z->D + 1) * KERN_NOVELTY_FEATURES, 1.0f);
    s->actions = (int32_t *)kb_alloc(f->b, rows * n_actions);
    s->actions_all = (int32_t *)kb_alloc(f->b, TN * n_actions);
    s->reset = fill_flags(f, TN, 97), s->terms = fill_flags(f, TN, 97), s->truncs = fill_flags(f, TN, 0);
    if (z->has_mask)
        s->mask = fill_flags(f, rows * z->A, 1);
}

static void fill_shared(struct fill *f)
{
    struct kb *b = f->b;
    const struct kb_shape *z = &b->shape;
    const struct kern_hyper hyper = {.lr = 1e-3f,
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
                                     .reward_clip = 1.0f,
                                     .prio_alpha = 0.8f,
                                     .prio_beta = 0.2f,
                                     .norm_adv = 1};
    size_t at = 0;
    const size_t rows[] = {z->H, z->H, 3 * z->H, z->O, z->O}, cols[] = {z->D, 1, z->H, z->H, 1};

    for (size_t i = 0; i < 5; i++) {
        b->tensors[i] = (struct kern_tensor){at, rows[i], cols[i], cols[i] > 1};
        at += rows[i] * cols[i];
    }
    b->hyper = (struct kern_hyper *)kb_alloc(b, sizeof hyper);
    b->stats = (struct kern_stats *)kb_alloc(b, sizeof *b->stats);
    b->part = (struct kern_stats *)kb_alloc(b, sizeof *b->part);
    b->rng = (struct rng *)kb_alloc(b, sizeof *b->rng);
    b->perm = (int32_t *)kb_alloc(f->b, z->N * sizeof *b->perm);
    b->idx = (int32_t *)kb_alloc(f->b, z->B * sizeof *b->idx);
    b->prob = fill_f32(f, z->N, 0.0f);
    b->norm = fill_f32(f, 1, 1.0f);
    b->scratch = kb_alloc(b, kern_muon_scratch_bytes(b->tensors, 5));
    b->step = (int64_t *)kb_alloc(b, sizeof *b->step);
    b->marks = (uint64_t *)kb_alloc(b, 2 * sizeof *b->marks);
    upload(b, b->hyper, &hyper, sizeof hyper);
}

void kb_create(struct kb *b)
{
    const struct kb_shape *z = &b->shape;
    struct rng rng = rng_seed(1);
    size_t rows = z->N > z->M ? z->N : z->M, wide = 3 * z->H > z->D ? 3 * z->H : z->D;
    struct fill f = {.b = b, .n_max = rows * wide};
    size_t TND = z->T * z->N * z->D;
    struct error err = {0};

    f.n_max = (f.n_max > TND ? f.n_max : TND) + z->n_params + N_RANDOM;
    b->sets = (struct kb_set *)mem_array(b->n_sets, sizeof *b->sets);
    f.random = (float *)mem_array(N_RANDOM, sizeof *f.random);
    f.host = (float *)mem_array(f.n_max, sizeof *f.host);
    if (b->ops->act_size != sizeof(float))
        must(kern_alloc(b->kern, &f.stage, f.n_max * sizeof(float), "the tensors of the measurement", &err), &err);
    for (size_t i = 0; i < N_RANDOM; i++)
        f.random[i] = 2.0f * rng_f32(&rng) - 1.0f;
    fill_shared(&f);
    for (size_t i = 0; i < b->n_sets; i++)
        fill_set(&f, &b->sets[i]);
    if (b->ops->segments_shuffle != NULL)
        b->ops->segments_shuffle(b->kern, b->perm, b->rng, z->N);
    must(kern_sync(b->kern, &err), &err);
    kern_free(b->kern, f.stage);
    mem_free(f.random);
    mem_free(f.host);
}

void kb_destroy(struct kb *b)
{
    for (size_t i = 0; i < b->n_owned; i++)
        kern_free(b->kern, b->owned[i]);
    mem_free(b->owned);
    mem_free(b->sets);
}

/* ---- operations ---- */

#define SHAPE const struct kb_shape *z = &b->shape
#define RUN(NAME) static void NAME##_run(struct kb *b, const struct kb_set *s)
#define BYTES(NAME, EXPR)                                                                                              \
    static double NAME##_bytes(const struct kb *b)                                                                     \
    {                                                                                                                  \
        const struct kb_shape *z = &b->shape;                                                                          \
        double a = (double)b->ops->act_size, N = (double)z->N, T = (double)z->T, B = (double)z->B, M = (double)z->M;   \
        double D = (double)z->D, H = (double)z->H, A = (double)z->A, O = (double)z->O, P = (double)z->n_params;        \
        double heads = (double)z->heads.n_heads, mask = z->has_mask ? A : 0.0;                                         \
        (void)a, (void)N, (void)T, (void)B, (void)M, (void)D, (void)H, (void)O, (void)P, (void)heads, (void)mask;      \
        return (EXPR);                                                                                                 \
    }
#define FLOPS(NAME, EXPR)                                                                                              \
    static double NAME##_flops(const struct kb *b)                                                                     \
    {                                                                                                                  \
        const struct kb_shape *z = &b->shape;                                                                          \
        double N = (double)z->N, M = (double)z->M, D = (double)z->D, H = (double)z->H, O = (double)z->O;               \
        (void)N, (void)M, (void)D, (void)H, (void)O;                                                                   \
        return (EXPR);                                                                                                 \
    }
#define WEIGHT(s, b, i) ((char *)(s)->w + (b)->tensors[i].offset * (b)->ops->act_size)

static const void *weights(const struct kb *b, const struct kb_set *s, size_t i)
{
    return b->ops->act_size == sizeof(float) ? (const void *)(s->params + b->tensors[i].offset) : WEIGHT(s, b, i);
}

/* Layers of the rows of a step (N) or of a minibatch (M). */
static void encoder_of(struct kb *b, const struct kb_set *s, size_t rows)
{
    struct kern_linear l = {.M = rows, .N = b->shape.H, .K = b->shape.D, .act = KERN_ACT_RELU};
    l.y = s->enc, l.x = s->obs, l.w = weights(b, s, 0), l.b = weights(b, s, 1);
    b->ops->linear_forward(b->kern, &l);
}

static void gates_of(struct kb *b, const struct kb_set *s, size_t rows)
{
    struct kern_linear l = {.M = rows, .N = 3 * b->shape.H, .K = b->shape.H};
    l.y = s->gates, l.x = s->enc, l.w = weights(b, s, 2);
    b->ops->linear_forward(b->kern, &l);
}

static void heads_of(struct kb *b, const struct kb_set *s, size_t rows)
{
    struct kern_heads_layer l = {.M = rows, .O = b->shape.O, .H = b->shape.H};
    l.out = s->pol, l.x = s->out, l.w = s->params + b->tensors[3].offset, l.b = s->params + b->tensors[4].offset;
    b->ops->heads_forward(b->kern, &l);
}

static void advantage_of(struct kb *b, const struct kb_set *s, size_t agents, const float *log_ratio)
{
    struct kern_advantage l = {.T = b->shape.T, .N = agents, .log_ratio = log_ratio};
    l.adv = s->adv, l.ret = s->ret, l.rewards = s->rewards, l.values = s->value, l.boot = s->boot, l.terms = s->terms;
    l.truncs = s->truncs, l.hyper = b->hyper;
    b->ops->advantage(b->kern, &l);
}

#define ROWS(NAME, CALL)                                                                                               \
    RUN(NAME)                                                                                                          \
    {                                                                                                                  \
        const struct kb_shape *z = &b->shape;                                                                          \
        CALL;                                                                                                          \
    }
ROWS(act_encoder, encoder_of(b, s, z->N))
BYTES(act_encoder, a *(N *D + N * H + H * D + H))
FLOPS(act_encoder, 2 * N * H * D)
ROWS(act_gates, gates_of(b, s, z->N))
BYTES(act_gates, a *(4 * N * H + 3 * H * H))
FLOPS(act_gates, 6 * N * H * H)
RUN(act_mingru)
{
    SHAPE;
    b->ops->mingru_step(
        b->kern,
        &(struct kern_mingru){
            .out = s->out, .state = s->h, .gates = s->gates, .x = s->enc, .reset = s->reset, .B = z->N, .H = z->H});
}
BYTES(act_mingru, 5 * a * N * H + 8 * N * H + N)
ROWS(act_heads, heads_of(b, s, z->N))
BYTES(act_heads, a *N *H + 4 * (N * O + O * H + O))
FLOPS(act_heads, 2 * N * O * H)
RUN(act_sample)
{
    struct kern_sample l = {.heads = &b->shape.heads, .N = b->shape.N};
    l.actions = s->actions, l.logp = s->logp, l.value = s->value, l.out = s->pol, l.mask = s->mask, l.rng = b->rng;
    b->ops->sample(b->kern, &l);
}
BYTES(act_sample, N *(4 * O + 4 * heads + 8 + mask))
RUN(act_frames) /* observations of two frames, in place */
{
    SHAPE;
    struct kern_frames l = {.N = z->N, .k = 2, .list = z->D / 2, .number_bytes = b->ops->act_size, .reset = s->reset};
    l.dst = s->obs_all, l.old = s->obs_all;
    l.frame = (const char *)s->obs_all + (z->T - 1) * z->N * z->D * b->ops->act_size;
    b->ops->frames_stack(b->kern, &l);
}
BYTES(act_frames, 2 * a * N * D)
RUN(act_post)
{
    struct kern_step_post l = {.N = b->shape.N};
    l.rewards = s->rewards, l.reset = s->reset, l.terms = s->terms, l.truncs = s->truncs, l.hyper = b->hyper;
    b->ops->step_post(b->kern, &l);
}
BYTES(act_post, 11 * N)

ROWS(advantage_all, advantage_of(b, s, z->N, NULL))
BYTES(advantage_all, T *N *(4 * 4 + 2) + 4 * N)
RUN(priority)
{
    b->ops->segments_priority(
        b->kern,
        &(struct kern_segments){.prob = b->prob, .adv = s->adv, .hyper = b->hyper, .T = b->shape.T, .N = b->shape.N});
}
BYTES(priority, 4 * T * N + 4 * N)
RUN(pick)
{
    struct kern_segments l = {.N = b->shape.N, .B = b->shape.B};
    l.idx = b->idx, l.weight = s->weight, l.prob = b->prob, l.rng = b->rng, l.hyper = b->hyper;
    b->ops->segments_pick(b->kern, &l);
}
BYTES(pick, 4 * N + 8 * B)
RUN(shuffle)
{
    (void)s;
    b->ops->segments_shuffle(b->kern, b->perm, b->rng, b->shape.N);
}
BYTES(shuffle, 4 * N)
RUN(gather)
{
    SHAPE;
    size_t i32 = 4, n_heads = (size_t)z->heads.n_heads;
    const struct kern_gather_item items[] = {{s->obs, s->obs_all, z->D * b->ops->act_size, z->T},
                                             {s->actions, s->actions_all, n_heads * i32, z->T},
                                             {s->logp, s->logp_all, i32, z->T},
                                             {s->ratio, s->adv, i32, z->T},
                                             {s->boot, s->ret, i32, z->T},
                                             {s->h0, s->h, z->H * i32, 1}};
    b->ops->gather(
        b->kern, &(struct kern_gather){.items = items, .n_items = COUNT(items), .idx = b->perm, .N = z->N, .B = z->B});
}
BYTES(gather, 2 * M * (D * a + 4 * heads + 12) + 8 * B * H + 4 * B)
ROWS(encoder, encoder_of(b, s, z->M))
BYTES(encoder, a *(M *D + M * H + H * D + H))
FLOPS(encoder, 2 * M * H * D)
RUN(mingru)
{
    SHAPE;
    struct kern_linear product = {.M = z->M, .N = 3 * z->H, .K = z->H, .x = s->enc, .y = s->gates};
    struct kern_mingru l = {.T = z->T, .B = z->B, .H = z->H, .product = &product};
    product.w = weights(b, s, 2);
    l.out = s->out, l.h = s->h_seq, l.gates = s->gates, l.x = s->enc, l.h0 = s->h0, l.reset = s->reset;
    b->ops->mingru_forward(b->kern, &l);
}
BYTES(mingru, a *(6 * M * H + 3 * H * H) + 4 * B * H + M)
FLOPS(mingru, 6 * M * H * H)
ROWS(heads, heads_of(b, s, z->M))
BYTES(heads, a *M *H + 4 * (M * O + O * H + O))
FLOPS(heads, 2 * M * O * H)
RUN(segments_keep)
{
    SHAPE;
    struct kern_loss l = {.heads = &z->heads, .N = z->N, .T = z->T, .B = z->B};
    l.log_ratio = s->ratio, l.out = s->pol, l.actions = s->actions, l.old_logp = s->logp, l.mask = s->mask;
    l.idx = b->perm;
    b->ops->segments_keep(b->kern, &l);
}
BYTES(segments_keep, M *(4 * O + 4 * heads + 8 + mask) + 4 * B)
ROWS(advantage, advantage_of(b, s, z->B, s->ratio))
BYTES(advantage, M *(5 * 4 + 2) + 4 * B)
RUN(novelty) /* of the steps whose observation is there */
{
    SHAPE;
    struct kern_novelty l = {.T = z->T - 1, .N = z->N, .D = z->D};
    l.obs = s->obs_all, l.reset = s->reset, l.projection = s->projection, l.hyper = b->hyper, l.known = s->known;
    l.rewards = s->rewards;
    b->ops->novelty(b->kern, &l);
}
BYTES(novelty, T *N *(a *D + 9) + 8 * N * KERN_NOVELTY_FEATURES * KERN_NOVELTY_FEATURES)
RUN(mean_std)
{
    b->ops->mean_std(b->kern, s->mean_std, s->adv, b->shape.M);
}
BYTES(mean_std, 4 * M + 8)
RUN(loss)
{
    SHAPE;
    struct kern_loss l = {.heads = &z->heads, .T = z->T, .B = z->B, .B_all = z->B};
    l.dout = s->dpol, l.part = b->part, l.out = s->pol, l.actions = s->actions, l.old_logp = s->logp, l.adv = s->adv;
    l.ret = s->ret, l.old_value = s->value, l.mean_std = s->mean_std, l.mask = s->mask, l.hyper = b->hyper;
    b->ops->ppo_loss(b->kern, &l);
}
BYTES(loss, M *(8 * O + 4 * heads + 16 + mask))
RUN(minibatch_stats)
{
    (void)s;
    b->ops->minibatch_stats(b->kern, b->stats, b->part, 1, b->hyper);
}
BYTES(minibatch_stats, 3 * (double)sizeof(struct kern_stats))
RUN(heads_back)
{
    SHAPE;
    struct kern_heads_layer l = {.M = z->M, .O = z->O, .H = z->H};
    l.dx = s->dout, l.dw = s->grad + b->tensors[3].offset, l.db = s->grad + b->tensors[4].offset, l.dout = s->dpol;
    l.x = s->out, l.w = s->params + b->tensors[3].offset;
    b->ops->heads_backward(b->kern, &l);
}
BYTES(heads_back, 2 * a * M * H + 4 * (M * O + 2 * O * H + O))
FLOPS(heads_back, 4 * M * O * H)
RUN(mingru_back)
{
    SHAPE;
    struct kern_linear product = {.M = z->M, .N = 3 * z->H, .K = z->H, .x = s->enc, .add_dx = true};
    struct kern_mingru l = {.T = z->T, .B = z->B, .H = z->H, .product = &product};
    product.dx = s->denc, product.dw = s->grad + b->tensors[2].offset, product.dy = s->dgates;
    product.w = weights(b, s, 2);
    l.dx = s->denc, l.dgates = s->dgates, l.dout = s->dout, l.h = s->h_seq, l.gates = s->gates, l.x = s->enc;
    l.h0 = s->h0, l.reset = s->reset;
    b->ops->mingru_backward(b->kern, &l);
}
BYTES(mingru_back, a *(7 * M * H + 3 * H * H) + 12 * H * H + 4 * B * H + M)
FLOPS(mingru_back, 12 * M * H * H)
RUN(encoder_back)
{
    SHAPE;
    struct kern_linear l = {.M = z->M, .N = z->H, .K = z->D, .act = KERN_ACT_RELU};
    l.dw = s->grad, l.db = s->grad + b->tensors[1].offset, l.dy = s->denc, l.y = s->enc, l.x = s->obs;
    l.w = weights(b, s, 0);
    b->ops->linear_backward(b->kern, &l);
}
BYTES(encoder_back, a *(3 * M * H + M * D) + 4 * (H * D + H))
FLOPS(encoder_back, 2 * M * H * D)
RUN(grad_norm)
{
    b->ops->grad_norm(b->kern, b->norm, b->stats, s->grad, b->shape.n_params);
}
BYTES(grad_norm, 4 * P)
RUN(adam)
{
    struct kern_optimiser l = {.n = b->shape.n_params};
    l.w = s->params, l.m = s->m, l.v = s->v, l.g = s->grad, l.norm = b->norm, l.stats = b->stats, l.step = b->step;
    l.hyper = b->hyper;
    b->ops->adam(b->kern, &l);
}
BYTES(adam, 28 * P)
RUN(muon)
{
    struct kern_optimiser l = {.tensors = b->tensors, .n_tensors = 5};
    l.w = s->params, l.m = s->m, l.g = s->grad, l.norm = b->norm, l.scratch = b->scratch, l.stats = b->stats;
    l.hyper = b->hyper;
    b->ops->muon(b->kern, &l);
}
BYTES(muon, 20 * P)
/* Five steps: S = X X^T and S X with n side flops, S S with side^3, n numbers whose shorter side is side; each times
 * 2. */
static double muon_flops(const struct kb *b)
{
    double sum = 0.0;
    for (size_t i = 0; i < 5; i++) {
        double n = (double)b->tensors[i].rows * (double)b->tensors[i].cols;
        double side = (double)(b->tensors[i].rows < b->tensors[i].cols ? b->tensors[i].rows : b->tensors[i].cols);
        sum += b->tensors[i].is_matrix ? 10.0 * (2.0 * n * side + side * side * side) : 0.0;
    }
    return sum;
}
RUN(weights_cast)
{
    b->ops->weights_cast(b->kern, s->w, s->params, b->shape.n_params);
}
BYTES(weights_cast, (4 + a) * P)

#define OP(TITLE, ROW, NAME)                                                                                           \
    {                                                                                                                  \
        TITLE, offsetof(struct kern_ops, ROW), NAME##_run, NAME##_bytes, NULL                                          \
    }
#define OP_PRODUCT(TITLE, ROW, NAME)                                                                                   \
    {                                                                                                                  \
        TITLE, offsetof(struct kern_ops, ROW), NAME##_run, NAME##_bytes, NAME##_flops                                  \
    }
const struct kb_op kb_ops[] = {
    OP_PRODUCT("act: encoder", linear_forward, act_encoder),
    OP_PRODUCT("act: gates", linear_forward, act_gates),
    OP("act: mingru_step", mingru_step, act_mingru),
    OP_PRODUCT("act: heads_forward", heads_forward, act_heads),
    OP("act: sample", sample, act_sample),
    OP("act: frames_stack", frames_stack, act_frames),
    OP("act: step_post", step_post, act_post),
    OP("rollout: advantage", advantage, advantage_all),
    OP("rollout: novelty (E3B)", novelty, novelty),
    OP("rollout: segments_priority", segments_priority, priority),
    OP("rollout: segments_shuffle", segments_shuffle, shuffle),
    OP("train: segments_pick", segments_pick, pick),
    OP("train: gather", gather, gather),
    OP_PRODUCT("train: encoder", linear_forward, encoder),
    OP_PRODUCT("train: mingru_forward, gates", mingru_forward, mingru),
    OP_PRODUCT("train: heads_forward", heads_forward, heads),
    OP("train: ratios kept", segments_keep, segments_keep),
    OP("train: advantage", advantage, advantage),
    OP("train: mean_std", mean_std, mean_std),
    OP("train: ppo_loss", ppo_loss, loss),
    OP("train: minibatch_stats", minibatch_stats, minibatch_stats),
    OP_PRODUCT("train: heads_backward", heads_backward, heads_back),
    OP_PRODUCT("train: mingru_backward, gates", mingru_backward, mingru_back),
    OP_PRODUCT("train: encoder backward", linear_backward, encoder_back),
    OP("train: grad_norm", grad_norm, grad_norm),
    OP("train: adam", adam, adam),
    OP_PRODUCT("train: muon", muon, muon),
    OP("train: weights_cast", weights_cast, weights_cast),
};
const size_t kb_n_ops = COUNT(kb_ops);
