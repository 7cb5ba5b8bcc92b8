/* test_issued.c - iterations that are looked at later give what they give when they are looked at at once; a trainer
 * out of the cache is as good as a new one. On a CPU recording is not possible, but the order of things is the same. */
#include "trainer_test.h"

/* As on a device with a queue. */
static struct trainer *setup_queued(struct setup *s)
{
    struct trainer *t = setup_trainer(s);
    t->direct = false;
    return t;
}

static void assert_same_metrics(struct trainer *a, struct trainer *b)
{
    struct train_metrics m, n;

    OK(trainer_sync(b, err));
    trainer_get_metrics(a, &m);
    trainer_get_metrics(b, &n);
    assert_int_equal(m.env_steps, n.env_steps);
    assert_int_equal(m.updates, n.updates);
    assert_true(m.episodes == n.episodes);
    assert_memory_equal(&m.entropy, &n.entropy, sizeof m.entropy);
    assert_memory_equal(&m.grad_norm, &n.grad_norm, sizeof m.grad_norm);
    assert_memory_equal(&m.score, &n.score, sizeof m.score);
    assert_true(m.lr == n.lr);
    assert_memory_equal(&a->window, &b->window, sizeof a->window);
}

TEST(queue_changes_nothing)
{
    for (int variant = 0; variant < 4; variant++) {
        SETUP s;
        setup_game(&s, variant % 2 == 0 ? "memory" : "cartpole", 2);
        s.policy.core = variant < 2 ? POLICY_CORE_MINGRU : POLICY_CORE_MLP;
        s.train.replay_ratio = 1.4; /* 4 or 5 minibatches */
        s.train.prio_alpha = variant == 3 ? 0.5 : 0.0;
        TRAINER *direct = setup_trainer(&s), *queued = setup_queued(&s);
        iterate(direct, 9);
        iterate(queued, 9);
        assert_int_equal(queued->n_issued - queued->n_collected, 1);
        assert_int_equal(queued->count.env_steps, 8 * 96);
        assert_same_metrics(direct, queued);
        assert_int_equal(queued->n_issued, queued->n_collected);
        assert_same_weights(direct, queued);
    }
}

/* The same with a short last rollout. */
TEST(short_last_rollout)
{
    SETUP s;
    struct train_result a, b;

    setup_game(&s, "memory", 1);
    s.policy.core = POLICY_CORE_MINGRU;
    s.train.total_timesteps = 96 * 4 + 12 * 5 + 7;
    TRAINER *direct = setup_trainer(&s), *queued = setup_queued(&s);
    OK(trainer_run(direct, NULL, &a, err));
    OK(trainer_run(queued, NULL, &b, err));
    assert_int_equal(a.env_steps, 96 * 4 + 12 * 5);
    assert_int_equal(b.env_steps, a.env_steps);
    assert_int_equal(b.window.updates, a.window.updates);
    assert_same_weights(direct, queued);
}

/* Everybody's last observation goes through the network instead of those that were truncated. */
TEST(truncations)
{
    SETUP s;

    setup_game(&s, "cartpole", 1);
    setup_option(&s, "max_steps", 7);
    TRAINER *direct = setup_trainer(&s), *queued = setup_queued(&s);
    int n_truncs = 0;
    for (int i = 0; i < 3; i++) {
        iterate(direct, 1);
        iterate(queued, 1);
        for (size_t j = 0; j < direct->n_agents * direct->horizon; j++)
            if (direct->roll.truncs[j]) {
                assert_float_equal(direct->roll.boot[j], queued->roll.boot[j], 1e-5);
                n_truncs++;
            }
    }
    assert_true(n_truncs > 20);
}

TEST(target_kl)
{
    SETUP s;

    setup_game(&s, "memory", 1);
    s.train.replay_ratio = 20.0;
    s.train.learning_rate = 0.05;
    s.train.target_kl = 0.01;
    TRAINER *direct = setup_trainer(&s), *queued = setup_queued(&s);
    iterate(direct, 4);
    iterate(queued, 4);
    assert_true(direct->count.updates < 4 * 60 / 2); /* 60 would have been made each time */
    OK(trainer_sync(queued, err));
    assert_int_equal(direct->count.updates, queued->count.updates);
}

TEST(failure_comes_later)
{
    SETUP s;
    struct error failure = {0};

    setup_game(&s, "memory", 1);
    TRAINER *t = setup_queued(&s);
    iterate(t, 2);
    t->set.gamma = NAN;
    OK(trainer_iterate(t, err)); /* looks at the one before */
    assert_int_equal(trainer_iterate(t, &failure), ST_NUMERIC);
    if (strstr(failure.text, "advantage") == NULL)
        fail_msg("\"advantage\" is not in: %s", failure.text);
    assert_int_equal(trainer_save(t, "never-written.ckpt", "", NULL), ST_NUMERIC);
}

TEST(profile)
{
    SETUP s;
    struct train_result r;
    double sum = 0.0;

    setup_game(&s, "memory", 1);
    s.train.total_timesteps = 96 * 200;
    TRAINER *t = setup_queued(&s);
    OK(trainer_run(t, NULL, &r, err));
    assert_int_equal(r.env_steps, 96 * 200);
    for (int i = 0; i < PHASE_COUNT; i++)
        sum += r.window.phase_s[i];
    assert_float_equal(sum, r.cost_s, 1e-6 + 0.01 * r.cost_s);
    for (int i = 0; i < PHASE_OTHER; i++)
        if (r.window.phase_s[i] <= 0.0)
            fail_msg("phase %d took no time", i);
}

/* ---- the cache ---- */

static struct trainer *cached(struct setup *s, struct trainer_cache *cache)
{
    struct trainer *t = NULL;
    OK(trainer_create_cached(&t, cache, s->kern, s->def, s->env, &s->policy, &s->train, err));
    return t;
}

TEST(cache_is_as_new)
{
    SETUP s;

    struct trainer_cache *cache = trainer_cache_create();
    setup_game(&s, "memory", 2);
    s.policy.core = POLICY_CORE_MINGRU;
    s.train.optimizer = TRAIN_ADAM;
    struct trainer *t = cached(&s, cache), *first = t, *fresh;
    iterate(t, 5);
    trainer_destroy(t);
    s.train.seed = 77;
    s.train.learning_rate *= 2.0;
    s.train.gamma = 0.9;
    s.train.replay_ratio = 3.0;
    t = cached(&s, cache);
    assert_ptr_equal(t, first); /* else the test shows nothing */
    fresh = setup_trainer(&s);
    iterate(t, 6);
    iterate(fresh, 6);
    assert_same_metrics(fresh, t);
    assert_same_weights(fresh, t);
    trainer_destroy(fresh);
    trainer_destroy(t);

    s.train.horizon *= 2; /* another shape: nothing may be taken from the cache */
    t = cached(&s, cache);
    assert_ptr_not_equal(t, first);
    trainer_destroy(t);
    setup_option(&s, "length", 3);
    fresh = cached(&s, cache);
    assert_ptr_not_equal(fresh, t);
    trainer_destroy(fresh);
    trainer_cache_destroy(cache);
}

/* A trainer that broke down leaves nothing to the next. */
TEST(cache_after_failure)
{
    SETUP s;

    struct trainer_cache *cache = trainer_cache_create();
    setup_game(&s, "memory", 1);
    struct trainer *t = cached(&s, cache), *fresh;
    t->set.gamma = NAN;
    assert_int_equal(trainer_iterate(t, NULL), ST_NUMERIC);
    trainer_destroy(t);
    t = cached(&s, cache);
    fresh = setup_trainer(&s);
    iterate(t, 3);
    iterate(fresh, 3);
    assert_same_weights(fresh, t);
    trainer_destroy(fresh);
    trainer_destroy(t);
    for (int i = 0; i < 9; i++) { /* more shapes than it keeps */
        s.policy.hidden_size = 16 + i;
        trainer_destroy(cached(&s, cache));
    }
    trainer_cache_destroy(cache);
}

TEST_PROGRAM("issued")
