/* test_cuda_rollout.c - the rollout in one launch against single operations: those of the CPU in f32 and those of the
 * device in bf16, which at each step get what the rollout saw and did, so that every number of every step compares.
 * Games have to be equal to the byte. Skipped without a GPU. */
#include "tests/kernels/kern_test.h"

#include "kernels/cuda/play/rollout.cuh"
#include "tests/envs/envs_test.h"

static struct kern *gpu;

struct rollout_case {
    const char *game;
    int64_t setting; /* of the game's first option; 0: its default */
    enum kern_core core;
    enum kern_act act;
    size_t H, L, N, T;
    float reward_clip;
};

static const struct rollout_case cases[] = {
    {"breakout", 0, KERN_CORE_MINGRU, KERN_ACT_RELU, 128, 1, 300, 40, 1.0f},
    {"breakout", 3, KERN_CORE_MINGRU, KERN_ACT_TANH, 64, 2, 129, 33, 0.0f},
    {"breakout", 60, KERN_CORE_MINGRU, KERN_ACT_NONE, 32, 4, 1100, 24, 1.0f},
    {"pong", 0, KERN_CORE_MINGRU, KERN_ACT_RELU, 64, 3, 1024, 64, 0.0f},
    {"pong", 0, KERN_CORE_MINGRU, KERN_ACT_RELU, 64, 8, 64, 16, 0.0f},
    {"cartpole", 9, KERN_CORE_MINGRU, KERN_ACT_TANH, 32, 2, 70, 40, 0.0f},
    {"cartpole", 5, KERN_CORE_MLP, KERN_ACT_RELU, 128, 2, 65, 20, 0.5f},
    {"squared", 0, KERN_CORE_NONE, KERN_ACT_RELU, 64, 0, 40, 30, 0.0f},
    {"squared", 2, KERN_CORE_MLP, KERN_ACT_TANH, 32, 3, 33, 17, 0.0f},
    {"memory", 0, KERN_CORE_MLP, KERN_ACT_TANH, 256, 1, 5, 12, 0.0f},
    {"memory", 2, KERN_CORE_MINGRU, KERN_ACT_TANH, 128, 1, 1, 1, 0.0f},
    {"freeway", 0, KERN_CORE_MINGRU, KERN_ACT_RELU, 64, 2, 130, 40, 0.0f}, /* rows of an odd number of values */
};

/* Case i of the three tests below; under a sanitizer fewer agents and steps, which leaves every network and game. */
static struct rollout_case case_of(size_t i)
{
    struct rollout_case c = cases[i];
    if (test_is_short()) {
        c.N = c.N < 40 ? c.N : 40;
        c.T = c.T < 6 ? c.T : 6;
    }
    return c;
}

static void upload(struct kern *k, void *dst, const void *src, size_t bytes)
{
    struct error err = {0};
    must(kern_upload(k, dst, src, bytes, &err), &err);
    must(kern_sync(k, &err), &err);
}

/* ---- what a rollout starts from ---- */

struct start {
    const struct rollout_case *c;
    const struct env_def *def;
    char *settings;
    struct env_shape shape;
    struct kern_net net;
    size_t n_params;
    float *params, *rounded; /* (n_params) */
    float *h; /* (L, N, H) */
    uint8_t *reset; /* (N) */
    struct rng rng;
    struct kern_hyper hyper;
};

static size_t net_add(struct start *s, size_t n)
{
    size_t at = s->n_params;
    s->n_params += n;
    return at;
}

static void start_fill(struct start *s, struct rng *random, size_t at, size_t n, float scale)
{
    MEM_LOCAL float *x = test_normal(random, n, scale);
    memcpy(s->params + at, x, n * sizeof *x);
}

static struct start start_new(const struct rollout_case *c, uint64_t seed)
{
    struct start s = {.c = c, .def = env_find(c->game), .hyper = {.reward_clip = c->reward_clip}};
    struct kern_net *net = &s.net;
    struct rng random = rng_seed(seed);
    size_t D, gates = c->core == KERN_CORE_MINGRU ? 3 : 1;
    struct error err = {0};

    s.settings = test_settings(s.def);
    if (c->setting != 0)
        memcpy(s.settings, &c->setting, sizeof c->setting);
    must(s.def->shape(s.def, s.settings, &s.shape, &err), &err);
    D = (size_t)s.shape.obs_size;
    *net = (struct kern_net){
        .core = c->core, .encoder_act = c->act, .act = c->act, .obs_size = D, .width = c->H, .n_layers = c->L};
    kern_heads_init(&net->heads, &s.shape, false);
    size_t O = (size_t)net->heads.n_logits + 1;
    net->encoder_w = net_add(&s, c->H * D);
    net->encoder_b = net_add(&s, c->H);
    for (size_t l = 0; l < c->L; l++) {
        net->core_w[l] = net_add(&s, gates * c->H * c->H);
        if (c->core == KERN_CORE_MLP)
            net->core_b[l] = net_add(&s, c->H);
    }
    net->heads_w = net_add(&s, O * c->H);
    net->heads_b = net_add(&s, O);
    s.params = NEW(float, s.n_params);
    s.rounded = NEW(float, s.n_params);
    float width = 1.0f / sqrtf((float)c->H);
    start_fill(&s, &random, net->encoder_w, c->H * D, 1.4f / sqrtf((float)(D < 16 ? D : 16)));
    start_fill(&s, &random, net->encoder_b, c->H, 0.3f);
    for (size_t l = 0; l < c->L; l++) {
        start_fill(&s, &random, net->core_w[l], gates * c->H * c->H, 1.4f * width);
        if (c->core == KERN_CORE_MLP)
            start_fill(&s, &random, net->core_b[l], c->H, 0.3f);
    }
    start_fill(&s, &random, net->heads_w, O * c->H, width);
    start_fill(&s, &random, net->heads_b, O, 0.3f);
    for (size_t i = 0; i < s.n_params; i++)
        s.rounded[i] = bf16_value(bf16_bits(s.params[i]));
    s.h = test_normal(&random, (c->L + 1) * c->N * c->H, 0.5f);
    s.reset = test_flags(&random, c->N, 0.2f);
    s.rng = rng_split(random, 7);
    s.rng.counter = 1000;
    return s;
}

static void start_free(struct start *s)
{
    mem_free(s->settings), mem_free(s->params), mem_free(s->rounded), mem_free(s->h), mem_free(s->reset);
}

static struct kern_env *start_env(const struct start *s, struct kern *k)
{
    struct error err = {0};
    struct kern_env *env;
    must(kern_env_create(k, &env, s->def, s->settings, s->c->N, rng_seed(5), &err), &err);
    return env;
}

/* ---- the rollout, everything back on the host ---- */

#define EACH_TENSOR(X)                                                                                                 \
    X(uint16_t, obs, (T + 1) * N * D)                                                                                  \
    X(uint8_t, reset, (T + 1) * N)                                                                                     \
    X(int32_t, actions, T *N)                                                                                          \
    X(float, logp, T *N)                                                                                               \
    X(float, rewards, T *N)                                                                                            \
    X(float, boot, T *N)                                                                                               \
    X(float, values, (T + 1) * N)                                                                                      \
    X(uint8_t, terms, T *N)                                                                                            \
    X(uint8_t, truncs, T *N)                                                                                           \
    X(float, h, L *N *H)                                                                                               \
    X(struct rng, rng, 1)

struct played {
#define FIELD(type, name, n) type *name;
    EACH_TENSOR(FIELD)
#undef FIELD
    struct env_log log;
    char *games; /* (games_bytes) saved states */
    size_t games_bytes;
};

enum how { DIRECT, RECORDED };

/* False: refused. */
static bool play(const struct start *s, int blocks, int groups, enum how how, struct played *ret)
{
    const struct rollout_case *c = s->c;
    const size_t N = c->N, T = c->T, D = s->net.obs_size, H = c->H, L = c->core == KERN_CORE_MINGRU ? c->L : 0;
    const struct kern_ops *ops = kern_ops(gpu);
    struct error err = {0};
    struct played dev = {0};
    struct kern_env *env = start_env(s, gpu);
    struct kern_graph *graph = NULL;
    void *w = test_device_bytes(gpu, NULL, s->n_params * 2),
         *params = test_device_bytes(gpu, s->params, s->n_params * 4);
    struct kern_hyper *hyper = test_device_bytes(gpu, &s->hyper, sizeof s->hyper);
    bool done;

#define ALLOC(type, name, n) dev.name = test_device_bytes(gpu, NULL, (n) * sizeof(type));
    EACH_TENSOR(ALLOC)
#undef ALLOC
    MEM_LOCAL uint16_t *rounded = NEW(uint16_t, s->n_params);
    for (size_t i = 0; i < s->n_params; i++)
        memcpy(&rounded[i], (char *)&s->rounded[i] + 2, 2);
    upload(gpu, w, rounded, s->n_params * 2);
    upload(gpu, dev.reset, s->reset, N);
    upload(gpu, dev.h, s->h, L * N * H * sizeof(float));
    upload(gpu, dev.rng, &s->rng, sizeof s->rng);
    ops->env_reset(gpu, env, dev.obs, NULL);

    struct kern_rollout r = {
        .net = &s->net,
        .weights = w,
        .params = params,
        .env = env,
        .hyper = hyper,
        .rng = dev.rng,
        .T = T,
        .N = N,
        .obs = dev.obs,
        .reset = dev.reset,
        .actions = dev.actions,
        .logp = dev.logp,
        .rewards = dev.rewards,
        .boot = dev.boot,
        .values = dev.values,
        .terms = dev.terms,
        .truncs = dev.truncs,
        .h = dev.h,
    };
    if (how == RECORDED)
        must(kern_record_begin(gpu, &err), &err);
    done = blocks != 0 ? cuda_rollout_tiled(gpu, &r, blocks, groups) : ops->rollout(gpu, &r);
    if (how == RECORDED) {
        must(kern_record_end(gpu, &graph, &err), &err);
        must(kern_replay(gpu, graph, &err), &err);
    }
    must(kern_sync(gpu, &err), &err);
    memset(ret, 0, sizeof *ret);
    if (done) {
#define DOWNLOAD(type, name, n) ret->name = test_host_bytes(gpu, dev.name, (n) * sizeof(type));
        EACH_TENSOR(DOWNLOAD)
#undef DOWNLOAD
        must(kern_env_take_log(gpu, env, &ret->log, &err), &err);
        ret->games_bytes = kern_env_state_bytes(env);
        ret->games = test_alloc(ret->games_bytes, 1);
        must(kern_env_save(gpu, env, ret->games, &err), &err);
    }
    kern_graph_destroy(gpu, graph);
#define FREE(type, name, n) kern_free(gpu, dev.name);
    EACH_TENSOR(FREE)
#undef FREE
    kern_free(gpu, w), kern_free(gpu, params), kern_free(gpu, hyper);
    kern_env_destroy(gpu, env);
    return done;
}

static void played_free(struct played *p)
{
#define FREE(type, name, n) mem_free(p->name);
    EACH_TENSOR(FREE)
#undef FREE
    mem_free(p->games);
}

/* ---- the same by single operations ---- */

struct steps {
    const struct start *s;
    struct kern *k;
    const struct kern_ops *ops;
    size_t act;
    void *w, *x[2], *gates, *obs, *next_obs, *final_obs;
    float *params, *out, *h, *h_after, *logp, *value, *rewards;
    int32_t *actions, *sampled;
    uint8_t *reset, *no_reset, *terms, *truncs;
    struct rng *rng, *rng_tmp;
    struct kern_hyper *hyper;
    struct kern_env *env;
};

static struct steps steps_open(const struct start *s, struct kern *k)
{
    const size_t N = s->c->N, H = s->c->H, L = s->c->L, D = s->net.obs_size;
    struct steps p = {.s = s, .k = k, .ops = kern_ops(k), .act = kern_ops(k)->act_size};
    MEM_LOCAL float *mixed = test_copy(s->rounded, s->n_params);

    for (size_t i = s->net.heads_w; i < s->n_params; i++)
        mixed[i] = s->params[i];
    p.params = test_device_bytes(k, mixed, s->n_params * 4); /* heads stay f32 */
    p.w = p.act == 4 ? p.params : test_device_bytes(k, NULL, s->n_params * p.act);
    if (p.act != 4)
        p.ops->weights_cast(k, p.w, p.params, s->n_params);
    p.x[0] = test_device_bytes(k, NULL, N * H * p.act), p.x[1] = test_device_bytes(k, NULL, N * H * p.act);
    p.gates = test_device_bytes(k, NULL, N * 3 * H * p.act);
    p.obs = test_device_bytes(k, NULL, N * D * p.act), p.next_obs = test_device_bytes(k, NULL, N * D * p.act);
    p.final_obs = test_device_bytes(k, NULL, N * D * p.act);
    p.out = test_device_bytes(k, NULL, N * ((size_t)s->net.heads.n_logits + 1) * 4);
    p.h = test_device_bytes(k, s->h, L * N * H * 4), p.h_after = test_device_bytes(k, NULL, L * N * H * 4);
    p.logp = test_device_bytes(k, NULL, N * 4), p.value = test_device_bytes(k, NULL, N * 4);
    p.rewards = test_device_bytes(k, NULL, N * 4);
    p.actions = test_device_bytes(k, NULL, N * 4), p.sampled = test_device_bytes(k, NULL, N * 4);
    p.reset = test_device_bytes(k, NULL, N), p.no_reset = test_device_bytes(k, NULL, N);
    p.terms = test_device_bytes(k, NULL, N), p.truncs = test_device_bytes(k, NULL, N);
    p.rng = test_device_bytes(k, &s->rng, sizeof s->rng), p.rng_tmp = test_device_bytes(k, &s->rng, sizeof s->rng);
    p.hyper = test_device_bytes(k, &s->hyper, sizeof s->hyper);
    p.env = start_env(s, k);
    return p;
}

static void steps_close(struct steps *p)
{
    void *all[] = {p->act == 4 ? NULL : p->w,
                   p->x[0],
                   p->x[1],
                   p->gates,
                   p->obs,
                   p->next_obs,
                   p->final_obs,
                   p->params,
                   p->out,
                   p->h,
                   p->h_after,
                   p->logp,
                   p->value,
                   p->rewards,
                   p->actions,
                   p->sampled,
                   p->reset,
                   p->no_reset,
                   p->terms,
                   p->truncs,
                   p->rng,
                   p->rng_tmp,
                   p->hyper};
    for (size_t i = 0; i < COUNT(all); i++)
        kern_free(p->k, all[i]);
    kern_env_destroy(p->k, p->env);
}

static void *weight(struct steps *p, size_t offset)
{
    return (char *)p->w + offset * p->act;
}

static void forward(struct steps *p, const void *obs, float *h, const uint8_t *reset)
{
    const struct kern_net *net = &p->s->net;
    const size_t N = p->s->c->N, H = net->width, O = (size_t)net->heads.n_logits + 1;
    const struct kern_ops *ops = p->ops;
    size_t cur = 0;

    struct kern_linear encoder = {.M = N, .N = H, .K = net->obs_size, .act = net->act};
    encoder.y = p->x[0], encoder.x = obs, encoder.w = weight(p, net->encoder_w), encoder.b = weight(p, net->encoder_b);
    ops->linear_forward(p->k, &encoder);
    for (size_t l = 0; l < net->n_layers && net->core != KERN_CORE_NONE; l++, cur ^= 1) {
        void *x = p->x[cur], *y = p->x[cur ^ 1];
        if (net->core == KERN_CORE_MINGRU) {
            ops->linear_forward(p->k,
                                &(struct kern_linear){
                                    .y = p->gates, .x = x, .w = weight(p, net->core_w[l]), .M = N, .N = 3 * H, .K = H});
            ops->mingru_step(
                p->k, &(struct kern_mingru){
                          .out = y, .state = h + l * N * H, .gates = p->gates, .x = x, .reset = reset, .B = N, .H = H});
        } else {
            struct kern_linear core = {.M = N, .N = H, .K = H, .act = net->act};
            core.y = y, core.x = x, core.w = weight(p, net->core_w[l]), core.b = weight(p, net->core_b[l]);
            ops->linear_forward(p->k, &core);
        }
    }
    struct kern_heads_layer heads = {.M = N, .O = O, .H = H};
    heads.out = p->out, heads.x = p->x[cur], heads.w = p->params + net->heads_w, heads.b = p->params + net->heads_b;
    ops->heads_forward(p->k, &heads);
}

static void upload_obs(struct steps *p, void *dst, const uint16_t *obs, size_t n)
{
    if (p->act == 2) {
        upload(p->k, dst, obs, n * 2);
        return;
    }
    MEM_LOCAL uint32_t *wide = NEW(uint32_t, n);
    for (size_t i = 0; i < n; i++)
        wide[i] = (uint32_t)obs[i] << 16;
    upload(p->k, dst, wide, n * 4);
}

static void check_obs(struct steps *p, const char *what, const uint16_t *got, const void *dev, size_t n)
{
    MEM_LOCAL char *want = test_host_bytes(p->k, dev, n * p->act);
    for (size_t i = 0; i < n; i++) {
        float f;
        uint32_t u = 0;
        uint16_t w;
        if (p->act == 2) {
            memcpy(&w, want + 2 * i, 2);
        } else {
            memcpy(&f, want + 4 * i, 4);
            f = bf16_value(bf16_bits(f));
            memcpy(&u, &f, 4);
            w = (uint16_t)(u >> 16);
        }
        if (got[i] != w)
            fail_msg("%s: observation %zu is %04x, want %04x", what, i, got[i], w);
    }
}

static void check_equal(struct steps *p, const char *what, const void *got, const void *dev, size_t bytes)
{
    MEM_LOCAL char *want = test_host_bytes(p->k, dev, bytes);
    for (size_t i = 0; i < bytes; i++)
        if (((const char *)got)[i] != want[i])
            fail_msg("%s: byte %zu differs", what, i);
}

struct compared {
    double *logp, *values, *boot; /* (T, N), (T + 1, N), (T, N) */
    size_t n_other_actions;
};

/* What step t of the rollout is by single operations, from the rollout's own observations, resets and actions. */
static void steps_play(struct steps *p, const struct played *got, size_t t, struct compared *c)
{
    const struct start *s = p->s;
    const size_t N = s->c->N, H = s->c->H, L = s->c->L, D = s->net.obs_size, O = (size_t)s->net.heads.n_logits + 1;
    struct kern_env_io io = {.actions = p->actions,
                             .rewards = p->rewards,
                             .terms = p->terms,
                             .truncs = p->truncs,
                             .obs = p->next_obs,
                             .final_obs = p->final_obs};
    char what[100];

    snprintf(what, sizeof what, "%s %s step %zu", s->c->game, p->ops->name, t);
    upload_obs(p, p->obs, got->obs + t * N * D, N * D);
    upload(p->k, p->reset, got->reset + t * N, N);
    upload(p->k, p->actions, got->actions + t * N, N * 4);
    forward(p, p->obs, p->h, p->reset);
    struct kern_sample draw = {.heads = &s->net.heads, .N = N};
    draw.actions = p->sampled, draw.logp = p->logp, draw.value = p->value, draw.out = p->out, draw.rng = p->rng;
    p->ops->sample(p->k, &draw);
    int32_t *sampled = test_host_bytes(p->k, p->sampled, N * 4);
    float *out = test_host_bytes(p->k, p->out, N * O * 4);
    for (size_t i = 0; i < N; i++) {
        double sum = 0.0;
        for (size_t a = 0; a + 1 < O; a++)
            sum += exp((double)out[i * O + a]);
        c->logp[t * N + i] = (double)out[i * O + (size_t)got->actions[t * N + i]] - log(sum);
        c->values[t * N + i] = (double)out[i * O + O - 1];
        c->n_other_actions += sampled[i] != got->actions[t * N + i];
    }
    mem_free(sampled), mem_free(out);
    kern_env_step(p->k, p->env, &io);
    struct kern_step_post post = {.N = N};
    post.rewards = p->rewards, post.reset = p->reset, post.terms = p->terms, post.truncs = p->truncs;
    post.hyper = p->hyper;
    p->ops->step_post(p->k, &post);
    check_equal(p, what, got->rewards + t * N, p->rewards, N * 4);
    check_equal(p, what, got->terms + t * N, p->terms, N);
    check_equal(p, what, got->truncs + t * N, p->truncs, N);
    check_equal(p, what, got->reset + (t + 1) * N, p->reset, N);
    check_obs(p, what, got->obs + (t + 1) * N * D, p->next_obs, N * D);

    p->ops->copy(p->k, p->h_after, p->h, L * N * H * 4);
    forward(p, p->final_obs, p->h_after, p->no_reset);
    out = test_host_bytes(p->k, p->out, N * O * 4);
    for (size_t i = 0; i < N; i++)
        c->boot[t * N + i] = got->truncs[t * N + i] ? (double)out[i * O + O - 1] : 0.0;
    mem_free(out);
}

static void compare(const struct start *s, struct kern *k, const struct played *got, double tolerance, double others)
{
    const size_t N = s->c->N, T = s->c->T, H = s->c->H, D = s->net.obs_size, O = (size_t)s->net.heads.n_logits + 1;
    const size_t L = s->c->core == KERN_CORE_MINGRU ? s->c->L : 0;
    struct compared c = {.logp = NEW(double, T *N), .values = NEW(double, (T + 1) * N), .boot = NEW(double, T *N)};
    AT_END(steps_close) struct steps p = steps_open(s, k);
    struct error err = {0};
    struct env_log log;

    p.ops->env_reset(k, p.env, p.obs, NULL);
    check_obs(&p, "first observations", got->obs, p.obs, N * D);
    for (size_t t = 0; t < T; t++)
        steps_play(&p, got, t, &c);
    float *h = test_host_bytes(k, p.h, L * N * H * 4);
    upload_obs(&p, p.obs, got->obs + T * N * D, N * D);
    upload(k, p.reset, got->reset + T * N, N);
    forward(&p, p.obs, p.h, p.reset);
    float *out = test_host_bytes(k, p.out, N * O * 4);
    for (size_t i = 0; i < N; i++)
        c.values[T * N + i] = (double)out[i * O + O - 1];
    must(kern_env_take_log(k, p.env, &log, &err), &err);
    assert_memory_equal(&log, &got->log, sizeof log);
    struct rng *rng = test_host_bytes(k, p.rng, sizeof *rng);
    assert_memory_equal(rng, got->rng, sizeof *rng);

    double *h64 = test_f64(h, L * N * H + 0);
    check_close("log-probabilities", got->logp, c.logp, T * N, tolerance);
    check_close("values", got->values, c.values, (T + 1) * N, tolerance);
    check_close("values after truncations", got->boot, c.boot, T * N, tolerance);
    check_close("recurrent states", got->h, h64, L * N * H, tolerance);
    if ((double)c.n_other_actions > others * (double)(T * N) + 1.0)
        fail_msg("%s: %zu of %zu actions differ", p.ops->name, c.n_other_actions, T * N);
    print_message("# %s %zux%zu, %s: %zu of %zu actions differ\n", s->c->game, H, s->c->L, p.ops->name,
                  c.n_other_actions, T * N);
    mem_free(h), mem_free(h64), mem_free(out), mem_free(rng);
    mem_free(c.logp), mem_free(c.values), mem_free(c.boot);
}

static void check_same(const struct start *s, const struct played *a, const struct played *b)
{
    const size_t N = s->c->N, T = s->c->T, D = s->net.obs_size, H = s->c->H;
    const size_t L = s->c->core == KERN_CORE_MINGRU ? s->c->L : 0;
#define SAME(type, name, n) assert_memory_equal(a->name, b->name, (n) * sizeof(type));
    EACH_TENSOR(SAME)
#undef SAME
    assert_memory_equal(a->games, b->games, a->games_bytes);
    assert_memory_equal(&a->log, &b->log, sizeof a->log);
}

/* ---- tests ---- */

static int group_open(void **state)
{
    struct kern_settings settings = {.kind = KERN_CUDA};
    struct error err = {0};
    (void)state;
    must(kern_open(&gpu, &settings, &err), &err);
    must(kern_precision_set(gpu, KERN_BF16, &err), &err);
    return 0;
}

static int group_close(void **state)
{
    (void)state;
    kern_close(gpu);
    return 0;
}

TEST(a_rollout_is_its_single_operations)
{
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct rollout_case c = case_of(i);
        struct start s = start_new(&c, 100 + i);
        KERN *cpu = test_kern(2);
        struct played got;
        if (!play(&s, 0, 0, DIRECT, &got))
            fail_msg("case %zu, %s: refused", i, cases[i].game);
        compare(&s, cpu, &got, 2e-2, 1e-2);
        compare(&s, gpu, &got, 1e-2, 2e-3);
        played_free(&got);
        start_free(&s);
    }
}

TEST(the_tile_changes_no_byte)
{
    static const int tiles[][2] = {{1, 1}, {1, 2}, {2, 1}, {2, 2}, {4, 1}, {4, 2}, {2, 4}, {1, 4}, {1, 8}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct rollout_case c = case_of(i);
        struct start s = start_new(&c, 200 + i);
        struct played first, other;
        int n = 0;
        assert_true(play(&s, 0, 0, DIRECT, &first));
        for (size_t j = 0; j < COUNT(tiles); j++)
            if (play(&s, tiles[j][0], tiles[j][1], DIRECT, &other)) {
                check_same(&s, &first, &other);
                played_free(&other);
                n++;
            }
        assert_true(n >= 1); /* of the largest nets only one tile fits */
        played_free(&first);
        start_free(&s);
    }
}

TEST(again_and_recorded_it_is_the_same)
{
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct rollout_case c = case_of(i);
        struct start s = start_new(&c, 300 + i);
        struct played first, again, recorded;
        assert_true(play(&s, 0, 0, DIRECT, &first));
        assert_true(play(&s, 0, 0, DIRECT, &again));
        assert_true(play(&s, 0, 0, RECORDED, &recorded));
        check_same(&s, &first, &again);
        check_same(&s, &first, &recorded);
        played_free(&first), played_free(&again), played_free(&recorded);
        start_free(&s);
    }
}

TEST(what_does_not_fit_is_refused)
{
    static const struct rollout_case no[] = {
        {"breakout", 0, KERN_CORE_MINGRU, KERN_ACT_RELU, 96, 1, 16, 2, 0.0f}, /* width */
        {"breakout", 0, KERN_CORE_MINGRU, KERN_ACT_RELU, 256, 1, 16, 2, 0.0f}, /* shared memory */
        {"breakout", 0, KERN_CORE_MINGRU, KERN_ACT_RELU, 128, 4, 16, 2, 0.0f},
        {"pong", 0, KERN_CORE_LSTM, KERN_ACT_RELU, 32, 1, 16, 2, 0.0f},
        {"pendulum", 0, KERN_CORE_MLP, KERN_ACT_RELU, 32, 1, 16, 2, 0.0f}, /* a number as action */
    };
    struct error err = {0};
    struct played got;
    for (size_t i = 0; i < COUNT(no); i++) {
        struct start s = start_new(&no[i], 1);
        assert_false(play(&s, 0, 0, DIRECT, &got));
        start_free(&s);
    }
    struct start s = start_new(&cases[0], 1);
    must(kern_precision_set(gpu, KERN_F32, &err), &err);
    assert_false(play(&s, 0, 0, DIRECT, &got));
    must(kern_precision_set(gpu, KERN_BF16, &err), &err);
    start_free(&s);
}

/* usage: test_cuda_rollout [PATTERN|--list] */
int main(int argc, char **argv)
{
    char reason[512];

    if (test_listed(argc > 1 ? argv[1] : NULL))
        return 0;
    if (!kern_cuda_available(reason, sizeof reason))
        return test_no_gpu(reason);
    return run_cases("cuda_rollout", group_open, group_close);
}
