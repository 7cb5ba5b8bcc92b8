/* test_exact.c - the numbers of a rollout against a slow reference of the policy in f64, the training pass against the
 * rollout, and the gradient of the whole loss against finite differences. */
#include "trainer_test.h"

/* ---- a game made for this: even instances are cut after 3 steps, odd ones end after 5; two heads, a mask ---- */

struct clock_settings {
    int64_t unused;
};
struct clock_state {
    struct rng rng;
    int64_t steps, id;
    double ep_return;
};

static enum status clock_shape(const struct env_def *def, const void *settings, struct env_shape *shape,
                               struct error *err)
{
    (void)def;
    (void)settings;
    (void)err;
    *shape = (struct env_shape){.obs_size = 2,
                                .channels = 1,
                                .height = 1,
                                .width = 2,
                                .n_agents = 1,
                                .n_heads = 2,
                                .head_sizes = {3, 2},
                                .has_mask = true,
                                .may_truncate = true};
    return ST_OK;
}

static void clock_observe(const struct clock_state *s, float *obs, uint8_t *mask)
{
    obs[0] = (float)s->steps / 4.0f;
    obs[1] = (float)s->id / 3.0f - 1.0f;
    memset(mask, 1, 5);
    mask[2] = s->steps % 2 == 0;
}

static void clock_observe_range(const void *settings, const void *states, float *obs, uint8_t *mask, size_t from,
                                size_t to)
{
    (void)settings;
    for (size_t i = from; i < to; i++)
        clock_observe((const struct clock_state *)states + i, obs + 2 * i, mask + 5 * i);
}

static void clock_reset_range(const void *settings, void *states, struct rng root, size_t from, size_t to)
{
    struct clock_state *s = states;
    (void)settings;
    for (size_t i = from; i < to; i++)
        s[i] = (struct clock_state){.rng = rng_split(root, i), .id = (int64_t)i};
}

static void clock_step_range(const void *settings, void *states, struct env_log *logs, const struct env_io *io,
                             size_t from, size_t to)
{
    (void)settings;
    for (size_t i = from; i < to; i++) {
        struct clock_state *s = (struct clock_state *)states + i;
        bool odd = s->id % 2 == 1, end = ++s->steps == (odd ? 5 : 3);
        uint8_t scratch[5];

        io->rewards[i] = 0.5f + 0.25f * (float)io->actions[2 * i];
        io->terms[i] = end && odd;
        io->truncs[i] = end && !odd;
        if (io->truncs[i])
            clock_observe(s, io->final_obs + 2 * i, scratch);
        if (end) {
            logs[i].episodes += 1.0;
            logs[i].ep_length += (double)s->steps;
            s->steps = 0;
        }
        clock_observe(s, io->obs + 2 * i, io->mask + 5 * i);
    }
}

static const struct env_about clock_about = {"ends by the clock", NULL, 0};
static const struct env_def clock_def = {
    .api_version = ENV_API_VERSION,
    .name = "clock",
    .about = &clock_about,
    .options = {.section = "env", .title = "Clock", .settings_size = sizeof(struct clock_settings)},
    .state_size = sizeof(struct clock_state),
    .shape = clock_shape,
    .reset_range = clock_reset_range,
    .observe_range = clock_observe_range,
    .step_range = clock_step_range,
};

/* ---- the policy in f64, one agent ---- */

#define REF_MAX 64 /* of a state and of a layer */

static double ref_act(double x, int act)
{
    return act == KERN_ACT_RELU ? fmax(x, 0.0) : act == KERN_ACT_TANH ? tanh(x) : x;
}

static double ref_sigmoid(double x)
{
    return 1.0 / (1.0 + exp(-x));
}

static void ref_linear(double *y, const double *x, const float *w, const float *b, size_t n, size_t k)
{
    for (size_t i = 0; i < n; i++) {
        y[i] = b != NULL ? (double)b[i] : 0.0;
        for (size_t j = 0; j < k; j++)
            y[i] += (double)w[i * k + j] * x[j];
    }
}

/* out (O) and h (L, S), which advances. */
static void ref_policy(const struct policy *p, const float *w, const float *obs, double h[][REF_MAX], double *out)
{
    double x[REF_MAX], y[4 * REF_MAX], in[REF_MAX];
    size_t H = p->width;

    for (size_t i = 0; i < p->obs_size; i++)
        in[i] = (double)obs[i];
    ref_linear(x, in, w, w + H * p->obs_size, H, p->obs_size);
    w += H * p->obs_size + H;
    for (size_t i = 0; i < H; i++)
        x[i] = ref_act(x[i], p->encoder_act);
    for (size_t l = 0; l < p->n_layers; l++) {
        if (p->set.core == POLICY_CORE_LSTM) {
            double keep[4 * REF_MAX], *c = h[l] + H;
            ref_linear(y, x, w, w + 8 * H * H, 4 * H, H);
            ref_linear(keep, h[l], w + 4 * H * H, NULL, 4 * H, H);
            w += 8 * H * H + 4 * H;
            for (size_t i = 0; i < 4 * H; i++)
                y[i] += keep[i];
            for (size_t i = 0; i < H; i++) {
                c[i] = ref_sigmoid(y[H + i]) * c[i] + ref_sigmoid(y[i]) * tanh(y[2 * H + i]);
                h[l][i] = x[i] = ref_sigmoid(y[3 * H + i]) * tanh(c[i]);
            }
        } else if (p->recurrent) {
            ref_linear(y, x, w, NULL, 3 * H, H);
            w += 3 * H * H;
            for (size_t i = 0; i < H; i++) {
                double z = ref_sigmoid(y[H + i]), a = y[i], s = ref_sigmoid(y[2 * H + i]);
                h[l][i] = (1.0 - z) * h[l][i] + z * (a >= 0.0 ? a + 0.5 : ref_sigmoid(a));
                x[i] = s * h[l][i] + (1.0 - s) * x[i];
            }
        } else {
            ref_linear(y, x, w, w + H * H, H, H);
            w += H * H + H;
            for (size_t i = 0; i < H; i++)
                x[i] = ref_act(y[i], p->set.activation);
        }
    }
    ref_linear(out, x, w, w + p->n_out * H, p->n_out, H);
}

/* Of the actions under the mask, over heads {3, 2}. */
static double ref_logp(const double *out, const int32_t *actions, const uint8_t *mask)
{
    static const int sizes[2] = {3, 2};
    double logp = 0.0;
    int at = 0;

    for (int head = 0; head < 2; head++) {
        double sum = 0.0;
        for (int i = 0; i < sizes[head]; i++)
            sum += mask[at + i] ? exp(out[at + i]) : 0.0;
        assert_true(mask[at + actions[head]]);
        logp += out[at + actions[head]] - log(sum);
        at += sizes[head];
    }
    return logp;
}

/* Weights that make every value and probability count. */
static void shake_params(struct trainer *t, double size)
{
    MEM_LOCAL float *params = params_copy(t);
    struct rng rng = rng_seed(99);

    for (size_t i = 0; i < trainer_n_params(t); i++)
        params[i] += (float)(size * (rng_f64(&rng) - 0.5));
    OK(kern_upload(t->kern, t->params, params, trainer_n_params(t) * sizeof *params, err));
}

static void check_agent(struct trainer *t, const float *params, size_t n, double h[][REF_MAX])
{
    const struct rollout *r = &t->roll;
    size_t N = t->n_agents, T = t->horizon, L = t->policy.n_layers;
    double out[REF_MAX], next[T + 1], boot[T], adv = 0.0;

    for (size_t s = 0; s <= T; s++) {
        size_t at = s * N + n;
        if (r->reset[at])
            memset(h, 0, L * sizeof *h);
        if (s == T) { /* the value of o_T: the next rollout will advance the state, not this one */
            double copy[POLICY_MAX_LAYERS][REF_MAX];
            memcpy(copy, h, L * sizeof *h);
            ref_policy(&t->policy, params, (const float *)r->obs + at * 2, copy, out);
        } else {
            ref_policy(&t->policy, params, (const float *)r->obs + at * 2, h, out);
            assert_float_equal(r->logp[at], ref_logp(out, r->actions + at * 2, r->mask + at * 5), 2e-5);
            assert_int_equal(r->truncs[at] | r->terms[at], r->reset[at + N]);
        }
        next[s] = out[5];
        assert_float_equal(r->values[at], out[5], 2e-5);
        if (s < T && r->truncs[at]) { /* V of the observation that the reset took away, with the state as it was */
            double copy[POLICY_MAX_LAYERS][REF_MAX];
            float last[2] = {3.0f / 4.0f, (float)n / 3.0f - 1.0f};
            memcpy(copy, h, L * sizeof *h);
            ref_policy(&t->policy, params, last, copy, out);
            boot[s] = out[5];
            assert_float_equal(r->boot[at], out[5], 2e-5);
        }
    }
    for (size_t s = T; s-- > 0;) { /* GAE by its formula */
        size_t at = s * N + n;
        double after = r->truncs[at] ? boot[s] : next[s + 1], gamma = t->set.gamma, done = r->reset[at + N];
        adv = (double)r->rewards[at] + gamma * after * (r->terms[at] ? 0.0 : 1.0) - next[s] +
              gamma * t->set.gae_lambda * (1.0 - done) * adv;
        assert_float_equal(r->adv[at], adv, 2e-4);
        assert_float_equal(r->ret[at], adv + next[s], 2e-4);
    }
}

TEST(rollout_reference)
{
    static const int cores[] = {POLICY_CORE_NONE, POLICY_CORE_MLP, POLICY_CORE_MINGRU, POLICY_CORE_LSTM};

    for (int c = 0; c < 4; c++) {
        SETUP s;
        size_t n_truncs = 0, n_terms = 0;
        setup_open(&s, &clock_def, 2);
        s.policy.core = cores[c];
        s.policy.activation = c == 1 ? KERN_ACT_TANH : KERN_ACT_RELU;
        TRAINER *t = setup_trainer(&s);
        double h[12][POLICY_MAX_LAYERS][REF_MAX] = {0};
        shake_params(t, 0.5);
        float *params = params_copy(t);
        OK(kern_upload(t->kern, t->hyper, &t->host_hyper, sizeof t->host_hyper, err));
        for (int round = 0; round < 3; round++) { /* the state is carried across rollouts */
            OK(rollout_run(t, err));
            update_advantage(t);
            for (size_t n = 0; n < t->n_agents; n++)
                check_agent(t, params, n, h[n]);
            for (size_t i = 0; i < t->n_agents * t->horizon; i++) {
                n_truncs += t->roll.truncs[i];
                n_terms += t->roll.terms[i];
            }
        }
        assert_int_equal(n_truncs, 6 * (24 / 3));
        assert_int_equal(n_terms, 6 * (24 / 5));
        free(params);
    }
}

/* Forward over sequences of a fresh rollout: ratio 1 and the same values for every sample. */
static void check_ratio_one(struct setup *s, size_t n_block)
{
    TRAINER *t = setup_trainer(s);
    size_t T = trainer_segment_steps(t), N = trainer_segments(t), B = t->n_segments, n_resets = 0, n_seen;
    int32_t idx[128];

    if (n_block < t->n_block)
        t->n_block = n_block; /* as with a minibatch that is larger than the cache */
    iterate(t, 4);
    shake_params(t, 0.2);
    OK(rollout_run(t, err));
    assert_true(T * N == t->horizon * t->n_agents && B <= 128);
    for (size_t first = 0; first + B <= N; first += B) {
        for (size_t i = 0; i < B; i++)
            idx[i] = (int32_t)(first + i);
        for (size_t i = 0; i < T * N; i++)
            t->roll.log_ratio[i] = 7.0f;
        update_forward(t, idx);
        update_backward(t, idx, NULL, true);
        for (size_t i = 0; i < T * N; i++) /* new probabilities are the old ones; the other segments keep theirs */
            assert_float_equal(t->roll.log_ratio[i], (i % N - first < B ? 0.0 : 7.0), 2e-5);
        for (size_t i = 0; i < T * B; i++)
            n_resets += t->mb.reset[i];
        n_seen = 0;
        for (size_t shard = 0; shard < t->n_shards; shard++)
            for (struct block b = update_block_first(t, shard); b.n > 0; b = update_block_next(t, b)) {
                assert_int_equal(b.from, n_seen); /* blocks tile the minibatch */
                n_seen += b.n;
                for (size_t i = 0; i < T * b.n; i++) {
                    double value = (double)t->mb.values[b.from * T + i];
                    assert_float_equal(t->pass.out[(b.from * T + i) * t->policy.n_out + t->policy.n_logits], value,
                                       2e-5 * (1.0 + fabs(value)));
                }
            }
        assert_int_equal(n_seen, B);
    }
    assert_true(n_resets > t->n_agents / 2); /* else the test shows nothing */
}

TEST(training_equals_rollout)
{
    static const char *const games[] = {"cartpole", "memory", "squared"};
    struct setup s;

    for (int g = 0; g < 3; g++) {
        for (int core = POLICY_CORE_NONE; core <= POLICY_CORE_LSTM; core++) {
            setup_game(&s, games[g], 2);
            s.policy.core = core;
            s.train.horizon = 32;
            s.train.minibatch_size = 128;
            check_ratio_one(&s, 3 + 97 * (size_t)(core % 2));
            setup_close(&s);
        }
    }
    for (int frames = 1; frames <= 2; frames++) { /* minibatches of single steps, in blocks and shards */
        setup_game(&s, "squared", (size_t)frames);
        s.policy.core = POLICY_CORE_MLP;
        s.policy.frame_stack = frames;
        s.train.shuffle = TRAIN_SHUFFLE_STEPS;
        s.train.horizon = 32;
        s.train.minibatch_size = 100;
        check_ratio_one(&s, 7);
        setup_close(&s);
    }
    for (int core = POLICY_CORE_MINGRU; core <= POLICY_CORE_LSTM; core++) {
        setup_open(&s, &clock_def, 1);
        s.policy.core = core;
        check_ratio_one(&s, 100);
        setup_close(&s);
    }
    for (int stride = 1; stride <= 2; stride++) { /* convolutions, in blocks and shards */
        setup_game(&s, "squared", (size_t)stride);
        s.policy.encoder = POLICY_ENCODER_CONV;
        s.policy.conv_channels = 8;
        s.policy.conv_layers = 1 + stride;
        s.policy.conv_stride = stride;
        s.train.horizon = 32;
        s.train.minibatch_size = 128;
        check_ratio_one(&s, 3);
        setup_close(&s);
    }
}

/* What the weights make of agent n's segment now, and the advantages that follow, by the formulas of docs/ppo.md. */
static void check_used_again(const struct trainer *t, const float *params, const float *old_logp, size_t n)
{
    const struct rollout *r = &t->roll;
    size_t N = t->n_agents, T = t->horizon;
    double h[POLICY_MAX_LAYERS][REF_MAX] = {0}, out[REF_MAX], ratio[T], adv = 0.0;

    for (size_t s = 0; s < T; s++) {
        size_t at = s * N + n;
        if (r->reset[at])
            memset(h, 0, sizeof h);
        ref_policy(&t->policy, params, (const float *)r->obs + at * 2, h, out);
        ratio[s] = exp(ref_logp(out, r->actions + at * 2, r->mask + at * 5) - (double)old_logp[at]);
        assert_float_equal(r->log_ratio[at], log(ratio[s]), 2e-5);
    }
    for (size_t s = T; s-- > 0;) {
        size_t at = s * N + n;
        double after = r->terms[at] ? 0.0 : r->truncs[at] ? (double)r->boot[at] : (double)r->values[at + N];
        adv =
            fmin(ratio[s], t->set.rho_clip) * ((double)r->rewards[at] + t->set.gamma * after - (double)r->values[at]) +
            t->set.gamma * t->set.gae_lambda * fmin(ratio[s], t->set.c_clip) * (r->reset[at + N] ? 0.0 : adv);
        assert_float_equal(r->adv[at], adv, 3e-4);
        assert_float_equal(r->ret[at], adv + (double)r->values[at], 3e-4);
    }
}

/* Segments that are used again take the ratios of their last use. Here nothing is learned (learning_rate 0), but the
 * rollout's log-probabilities are made to differ from the weights'. */
TEST(segments_used_again)
{
    for (int i_case = 0; i_case < 8; i_case++) { /* shuffled, prioritised; the last of each with single steps */
        static const int cores[] = {POLICY_CORE_MLP, POLICY_CORE_MINGRU, POLICY_CORE_LSTM};
        SETUP s;
        struct rng rng = rng_seed(5);
        setup_open(&s, &clock_def, 1 + (size_t)i_case % 4);
        bool steps = i_case >= 6, prio = i_case % 6 >= 3 || i_case == 7;
        s.policy.core = steps ? POLICY_CORE_MLP : cores[i_case % 3];
        s.train.shuffle = steps ? TRAIN_SHUFFLE_STEPS : TRAIN_SHUFFLE_SEGMENTS;
        s.train.prio_alpha = prio ? 0.5 : 0.0;
        s.train.learning_rate = 0.0;
        s.train.rho_clip = 1.1;
        s.train.c_clip = 0.9;
        TRAINER *t = setup_trainer(&s);
        size_t n = t->horizon * t->n_agents;
        int64_t n_epoch = (int64_t)(trainer_segments(t) / t->n_segments);
        shake_params(t, 0.5);
        float *params = params_copy(t), *old_logp = calloc(n, sizeof *old_logp), *adv = calloc(n, sizeof *adv);
        assert_int_equal(trainer_segments(t) % t->n_segments, 0);
        OK(kern_upload(t->kern, t->hyper, &t->host_hyper, sizeof t->host_hyper, err));
        OK(rollout_run(t, err));
        for (size_t i = 0; i < n; i++)
            old_logp[i] = t->roll.logp[i] += 0.5f * (rng_f32(&rng) - 0.5f);
        update_advantage(t);
        memcpy(adv, t->roll.adv, n * sizeof *adv);
        if (!prio) { /* each segment once: nothing of it shows */
            OK(update_run(t, n_epoch, err));
            assert_memory_equal(adv, t->roll.adv, n * sizeof *adv);
        }
        OK(update_run(t, !prio ? n_epoch + 1 : 20 * n_epoch, err));
        for (size_t i = 0; i < t->n_agents; i++)
            check_used_again(t, params, old_logp, i);
        free(params);
        free(old_logp);
        free(adv);
    }
}

/* The loss of the minibatch idx with weights params + eps * dir; leaves its gradient in t->grads. */
static double loss_at(struct trainer *t, const int32_t *idx, const float *params, const float *dir, double eps)
{
    size_t n = trainer_n_params(t);
    float *moved = calloc(n, sizeof *moved);
    struct kern_stats stats;

    for (size_t i = 0; i < n; i++)
        moved[i] = params[i] + (float)eps * dir[i];
    OK(kern_upload(t->kern, t->params, moved, n * sizeof *moved, err));
    t->ops->zero(t->kern, t->stats, sizeof *t->stats);
    update_forward(t, idx);
    update_backward(t, idx, NULL, false);
    OK(kern_download(t->kern, &stats, t->stats, sizeof stats, err));
    free(moved);
    return (stats.policy_loss + t->set.vf_coef * stats.value_loss - t->set.ent_coef * stats.entropy) / stats.n_tokens;
}

TEST(gradient)
{
    for (int i_case = 0; i_case < 25; i_case++) { /* each core in one block and in two, in 1, 2 and 5 shards; with
                                                   * convolutions; with two networks; of single steps */
        int core = i_case < 16 || i_case >= 20 ? i_case % 4
                                               : POLICY_CORE_LSTM; /* MinGRU has kinks, bent by that number of biases */
        SETUP s;
        int32_t idx[] = {1, 2, 5, 8};
        setup_open(&s, &clock_def, i_case < 8 ? 1 : i_case < 12 ? 2 : 5);
        s.policy.core = core;
        s.policy.hidden_size = 7;
        s.policy.activation = KERN_ACT_TANH;
        s.policy.encoder = i_case >= 16 && i_case < 21 ? POLICY_ENCODER_CONV : POLICY_ENCODER_LINEAR;
        s.policy.value_net = i_case >= 20 ? POLICY_VALUE_SEPARATE : POLICY_VALUE_SHARED;
        s.train.shuffle = i_case == 24 ? TRAIN_SHUFFLE_STEPS : TRAIN_SHUFFLE_SEGMENTS;
        s.train.minibatch_size = i_case == 24 ? 4 : 32;
        s.policy.conv_layers = 1 + i_case % 3;
        s.policy.conv_channels = 8;
        s.train.vtrace = false; /* advantages stay what they are */
        s.train.clip_coef = 100.0;
        s.train.vf_clip_coef = 0.0; /* no kinks */
        s.train.ent_coef = 0.05;
        TRAINER *t = setup_trainer(&s);
        size_t n = trainer_n_params(t);
        t->n_block = i_case / 4 == 1 ? 3 : t->n_block;
        float *grads = calloc(n, sizeof *grads), *dir = calloc(n, sizeof *dir), *params;
        shake_params(t, 0.5);
        OK(kern_upload(t->kern, t->hyper, &t->host_hyper, sizeof t->host_hyper, err));
        OK(rollout_run(t, err));
        update_advantage(t);
        shake_params(t, 0.3); /* the new policy differs from the one that played */
        params = params_copy(t);
        loss_at(t, idx, params, dir, 0.0);
        OK(kern_download(t->kern, grads, t->grads, n * sizeof *grads, err));
        for (size_t k = 0; k < t->policy.n_tensors; k++) { /* along the gradient of each tensor alone */
            const struct kern_tensor *tensor = &t->policy.tensors[k];
            size_t from = tensor->offset, to = from + tensor->rows * tensor->cols;
            double norm = 0.0, slope, eps = 4e-3;
            memset(dir, 0, n * sizeof *dir);
            for (size_t i = from; i < to; i++)
                norm += (double)grads[i] * (double)grads[i];
            norm = sqrt(norm);
            assert_true(norm > 1e-3);
            for (size_t i = from; i < to; i++)
                dir[i] = grads[i] / (float)norm;
            slope = (loss_at(t, idx, params, dir, eps) - loss_at(t, idx, params, dir, -eps)) / (2.0 * eps);
            if (fabs(slope - norm) > 0.01 * norm + 2e-4)
                fail_msg("core %d, %s: slope %g along the gradient, its norm is %g", core, t->policy.names[k], slope,
                         norm);
        }
        free(grads);
        free(dir);
        free(params);
    }
}

TEST_PROGRAM("exact")
