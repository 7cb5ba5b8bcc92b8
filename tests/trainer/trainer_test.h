/* trainer_test.h - what the tests of trainer/ share: default settings out of the option tables, an opened CPU. */
#pragma once

#include "trainer/trainer_priv.h"

#include "base/config/config.h"
#include "base/os/file.h"
#include "tests/check.h"

/* The thread sanitizer makes training thirty times as slow. */
#ifdef __SANITIZE_THREAD__
#define UNDER_TSAN true
#else
#define UNDER_TSAN false
#endif

struct setup {
    struct kern *kern;
    const struct env_def *def;
    void *env;
    struct policy_settings policy;
    struct train_settings train;
};

/* Defaults of the tables with a small, quick shape on top. def: a game of the registry or of the test. */
static inline void setup_open(struct setup *s, const struct env_def *def, size_t n_threads)
{
    struct kern_settings kern = {.kind = KERN_CPU, .n_threads = n_threads};
    struct config *config = config_create();

    memset(s, 0, sizeof *s);
    s->def = def;
    s->env = calloc(1, def->options.settings_size + 1);
    assert_non_null(s->env);
    OK(config_add_table(config, &policy_opt_table, err));
    OK(config_add_table(config, &train_opt_table, err));
    if (def->options.n_defs > 0)
        OK(config_add_table(config, &def->options, err));
    OK(config_resolve(config, err));
    OK(config_fill(config, &policy_opt_table, &s->policy, err));
    OK(config_fill(config, &train_opt_table, &s->train, err));
    if (def->options.n_defs > 0)
        OK(config_fill(config, &def->options, s->env, err));
    config_destroy(config);
    OK(kern_open(&s->kern, &kern, err));
    s->policy.hidden_size = 16;
    s->policy.num_layers = 2;
    s->train.total_agents = 12;
    s->train.horizon = 8;
    s->train.minibatch_size = 32;
    s->train.replay_ratio = 1.5;
    s->train.total_timesteps = 96 * 40;
    s->train.learning_rate = 0.003;
    s->train.log_interval_s = 1e6;
}

static inline void setup_game(struct setup *s, const char *name, size_t n_threads)
{
    const struct env_def *def = env_find(name);
    assert_non_null(def);
    setup_open(s, def, n_threads);
}

/* A whole-number option of the game. */
static inline void setup_option(struct setup *s, const char *key, int64_t value)
{
    for (size_t i = 0; i < s->def->options.n_defs; i++) {
        const struct opt_def *d = &s->def->options.defs[i];
        if (strcmp(d->key, key) == 0 && d->type == OPT_INT) {
            memcpy((char *)s->env + d->offset, &value, sizeof value);
            return;
        }
    }
    fail_msg("%s has no option %s", s->def->name, key);
}

static inline void setup_close(struct setup *s)
{
    kern_close(s->kern);
    free(s->env);
}

/* A setup, and a trainer, that end with the block that declares them. */
#define SETUP __attribute__((cleanup(setup_close))) struct setup
#define TRAINER __attribute__((cleanup(trainer_drop))) struct trainer

static inline void trainer_drop(struct trainer **t)
{
    trainer_destroy(*t);
}

static inline struct trainer *setup_trainer(struct setup *s)
{
    struct trainer *t = NULL;
    OK(trainer_create(&t, s->kern, s->def, s->env, &s->policy, &s->train, err));
    return t;
}

/* Weights after n iterations; caller frees. */
static inline float *params_copy(struct trainer *t)
{
    float *params = calloc(trainer_n_params(t), sizeof *params);
    assert_non_null(params);
    OK(trainer_get_params(t, params, err));
    return params;
}

static inline void iterate(struct trainer *t, int n)
{
    for (int i = 0; i < n; i++)
        OK(trainer_iterate(t, err));
}

/* Both trainers are in the same state, byte for byte. */
static inline void assert_same_weights(struct trainer *a, struct trainer *b)
{
    float *x = params_copy(a), *y = params_copy(b);
    assert_int_equal(trainer_n_params(a), trainer_n_params(b));
    assert_memory_equal(x, y, trainer_n_params(a) * sizeof *x);
    free(x);
    free(y);
}

/* A run of a schedule without an end that is looked at after 3 and 5 of its 8 rollouts: what it is there, and what it
 * is worth, is what a shorter run gives, and looking changes nothing. */
static inline void check_holds_shorter(struct setup *s)
{
    const int64_t rollout = s->train.total_agents * s->train.horizon;
    const struct eval_settings e = {.episodes = 32, .max_steps = 64};
    struct train_callbacks callbacks = {0};
    struct eval_result a, b;
    struct train_result r, q;

    s->train.decay_steps = 2.0 * (double)rollout;
    s->train.total_timesteps = 8 * rollout;
    assert_true(train_holds_shorter(&s->train));
    TRAINER *whole = setup_trainer(s), *looked = setup_trainer(s);
    OK(trainer_run(whole, NULL, &r, err));
    for (int64_t rollouts = 3; rollouts <= 5; rollouts += 2) {
        s->train.total_timesteps = rollouts * rollout;
        TRAINER *shorter = setup_trainer(s);
        callbacks.until = rollouts * rollout;
        OK(trainer_run(looked, &callbacks, &r, err));
        OK(trainer_run(shorter, NULL, &q, err));
        assert_true(r.env_steps == callbacks.until && q.env_steps == callbacks.until && !r.stopped);
        assert_same_weights(looked, shorter);
        OK(trainer_eval(looked, &e, &a, err));
        OK(trainer_eval(shorter, &e, &b, err));
        assert_true(a.episodes > 0 && a.score == b.score && a.ep_length == b.ep_length);
    }
    callbacks.until = 0;
    OK(trainer_run(looked, &callbacks, &r, err));
    assert_int_equal(r.env_steps, 8 * rollout);
    assert_same_weights(whole, looked);
}
