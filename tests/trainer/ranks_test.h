/* ranks_test.h - what the tests of several devices share, on the CPU and on GPUs: trainings of many kinds, whether two
 * are as close as rounding allows, and a game that hangs. */
#pragma once

#include "tests/kernels/kern_test.h"
#include "trainer_test.h"

static inline struct trainer *ranks_trainer(struct setup *s, int64_t devices)
{
    s->train.devices = devices;
    return setup_trainer(s);
}

static inline enum status note_rank(void *ctx, struct trainer *t, struct error *err)
{
    (void)err;
    ((struct trainer **)ctx)[t->rank] = t;
    return ST_OK;
}

/* The trainers of all ranks; on a CPU their memory may be read while they have nothing to do. */
static inline void ranks_of(struct trainer *t, struct trainer *ret_ranks[KERN_RANKS_MAX])
{
    OK(ranks_run(t, note_rank, ret_ranks, err));
}

struct variant {
    const char *game;
    int core, optimizer;
    double target_kl, e3b_coef;
    bool normed; /* observations and rewards */
    bool conv;
    int64_t value_bins, frames;
    bool steps; /* are shuffled, and the value has a network of its own */
};

static const struct variant variants[] = {
    {"cartpole", POLICY_CORE_MLP, TRAIN_ADAM, 0, 0, false, false, 0, 0, false},
    {"memory", POLICY_CORE_MINGRU, TRAIN_MUON, 0, 0, false, false, 0, 0, false},
    {"memory", POLICY_CORE_LSTM, TRAIN_ADAM, 0, 0, false, false, 21, 0, false},
    {"pendulum", POLICY_CORE_MLP, TRAIN_MUON, 0, 0, true, false, 0, 0, false},
    {"cartpole", POLICY_CORE_MINGRU, TRAIN_ADAM, 0, 0.1, true, false, 0, 3, false},
    {"cartpole", POLICY_CORE_MLP, TRAIN_ADAM, 0, 0, false, false, 0, 0, true},
    {"squared", POLICY_CORE_MLP, TRAIN_MUON, 1e-5, 0, false, true, 0, 0, false}, /* updates end early */
};
#define N_VARIANTS COUNT(variants)

/* All segments are in every minibatch, so that the choice of segments plays no part. */
static inline void setup_variant(struct setup *s, const struct variant *v)
{
    setup_game(s, v->game, 1);
    s->policy.core = v->core;
    s->policy.norm_obs = v->normed;
    s->policy.value_bins = v->value_bins;
    s->policy.frame_stack = v->frames;
    if (v->conv) {
        s->policy.encoder = POLICY_ENCODER_CONV;
        s->policy.conv_channels = 8;
    }
    if (v->steps) {
        s->train.shuffle = TRAIN_SHUFFLE_STEPS;
        s->policy.value_net = POLICY_VALUE_SEPARATE;
    }
    s->train.optimizer = v->optimizer;
    s->train.target_kl = v->target_kl;
    s->train.e3b_coef = v->e3b_coef;
    s->train.scale_reward = v->normed;
    s->train.minibatch_size = 96;
    s->train.replay_ratio = 2;
}

static inline double largest(const float *x, const float *y, size_t n)
{
    double most = 0.0;

    for (size_t i = 0; i < n; i++)
        most = fmax(most, fabs((double)(y != NULL ? x[i] - y[i] : x[i])));
    return most;
}

static inline void check_near(const char *what, double got, double want, double within)
{
    if (!(fabs(got - want) <= within * (1e-3 + fabs(want))) && !(isnan(got) && isnan(want)))
        fail_msg("%s: %.9g instead of %.9g", what, got, want);
}

/* within: of weights, as a share of the largest; of means 20 times that. */
static inline void assert_close_trainers(struct trainer *got, struct trainer *want, double within, const char *what)
{
    size_t n = trainer_n_params(want);
    float *x = params_copy(got), *y = params_copy(want);
    struct train_metrics a, b;

    if (!(largest(x, y, n) < within * largest(y, NULL, n)))
        fail_msg("%s: weights differ by %g of %g", what, largest(x, y, n), largest(y, NULL, n));
    free(x);
    free(y);
    OK(trainer_sync(got, err));
    OK(trainer_sync(want, err));
    trainer_get_metrics(got, &a);
    trainer_get_metrics(want, &b);
    assert_int_equal(a.env_steps, b.env_steps);
    assert_int_equal(a.updates, b.updates);
    assert_true(a.episodes == b.episodes && b.updates > 0);
    check_near("score", a.score, b.score, 20 * within);
    check_near("length", a.ep_length, b.ep_length, 20 * within);
    check_near("policy loss", a.policy_loss + 1.0, b.policy_loss + 1.0, 20 * within);
    check_near("value loss", a.value_loss, b.value_loss, 20 * within);
    check_near("entropy", a.entropy, b.entropy, 20 * within);
    check_near("explained variance", a.explained_variance + 1.0, b.explained_variance + 1.0, 20 * within);
    check_near("gradient", a.grad_norm, b.grad_norm, 20 * within);
}

/* ---- a game that hangs ---- */

/* A game of which one instance does not come back from its 20th step until it is let go. */
struct stuck_settings {
    int64_t unused;
};
struct stuck_state {
    struct rng rng;
    int64_t steps;
};
static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool released;
    uint64_t hangs; /* the key of its stream; 0: none does */
} stuck = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static enum status stuck_shape(const struct env_def *def, const void *settings, struct env_shape *shape,
                               struct error *err)
{
    (void)def, (void)settings, (void)err;
    *shape = (struct env_shape){.obs_size = 1, .n_agents = 1, .n_heads = 1, .head_sizes = {2}};
    return ST_OK;
}

static void stuck_reset_range(const void *settings, void *states, struct rng root, size_t from, size_t to)
{
    struct stuck_state *s = states;
    (void)settings;
    for (size_t i = from; i < to; i++)
        s[i] = (struct stuck_state){.rng = rng_split(root, i)};
}

static void stuck_observe_range(const void *settings, const void *states, float *obs, uint8_t *mask, size_t from,
                                size_t to)
{
    const struct stuck_state *s = states;
    (void)settings, (void)mask;
    for (size_t i = from; i < to; i++)
        obs[i] = (float)s[i].steps;
}

static void stuck_step_range(const void *settings, void *states, struct env_log *logs, const struct env_io *io,
                             size_t from, size_t to)
{
    struct stuck_state *s = states;
    (void)settings, (void)logs;
    for (size_t i = from; i < to; i++) {
        s[i].steps++;
        io->rewards[i] = (float)io->actions[i];
        io->terms[i] = io->truncs[i] = 0;
        io->obs[i] = (float)(s[i].steps % 4);
        pthread_mutex_lock(&stuck.lock);
        while (s[i].rng.key == stuck.hangs && s[i].steps == 20 && !stuck.released)
            pthread_cond_wait(&stuck.changed, &stuck.lock);
        pthread_mutex_unlock(&stuck.lock);
    }
}

TEST_UNUSED static const struct env_def stuck_def = {
    .api_version = ENV_API_VERSION,
    .name = "stuck",
    .options = {.section = "env", .title = "stuck", .settings_size = sizeof(struct stuck_settings)},
    .state_size = sizeof(struct stuck_state),
    .shape = stuck_shape,
    .reset_range = stuck_reset_range,
    .step_range = stuck_step_range,
    .observe_range = stuck_observe_range,
};

static inline uint64_t stuck_key(struct trainer *t)
{
    MEM_LOCAL struct stuck_state *states = mem_alloc(kern_env_state_bytes(t->env));
    uint64_t key;

    OK(kern_env_save(t->kern, t->env, states, err));
    key = states[t->n_envs - 1].rng.key;
    return key;
}
