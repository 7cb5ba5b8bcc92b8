/* envs_test.h - what the test programs of games share: default settings, tensors of a batch, one instance alone. */
#pragma once

#pragma GCC diagnostic ignored "-Wunused-parameter" /* of the games */
#include "tests/check.h"
#include "tests/check.h"
#include "base/rng.h"
#include "envs/envs.h"

/* The defaults of the option table; caller frees. */
static inline void *test_settings(const struct env_def *def)
{
    char *settings = mem_alloc(def->options.settings_size);
    assert_non_null(settings);
    for (size_t i = 0; i < def->options.n_defs; i++) {
        const struct opt_def *opt = &def->options.defs[i];
        if (opt->type == OPT_INT) {
            int64_t value;
            assert_true(num_parse_i64(opt->def, &value));
            memcpy(settings + opt->offset, &value, sizeof value);
        } else if (opt->type == OPT_FLOAT) {
            double value;
            assert_true(num_parse_f64(opt->def, &value));
            memcpy(settings + opt->offset, &value, sizeof value);
        } else {
            assert_int_equal(opt->type, OPT_BOOL);
            settings[opt->offset] = strcmp(opt->def, "true") == 0;
        }
    }
    return settings;
}

/* A batch with tensors of exactly its sizes (so that ASan sees one byte too many). */
struct test_batch {
    struct env_batch *batch;
    struct env_shape shape;
    size_t n_agents, obs_len, mask_width;
    size_t obs_bytes; /* of all observations: bytes in the place of floats where the game gives bytes */
    int32_t *actions;
    float *reals;
    float *obs, *final_obs, *rewards;
    uint8_t *terms, *truncs, *mask;
    struct env_io io;
    char *saved; /* of test_batch_state */
    size_t state_size;
};

static inline void test_batch_open(struct test_batch *t, const struct env_def *def, const void *settings, size_t n_envs,
                                   uint64_t seed)
{
    memset(t, 0, sizeof *t);
    OK(env_batch_create(&t->batch, def, settings, n_envs, rng_seed(seed), err));
    OK(env_def_check(def, settings, n_envs, &t->shape, err));
    t->n_agents = n_envs * (size_t)t->shape.n_agents;
    t->saved = mem_alloc(env_batch_state_bytes(t->batch));
    t->state_size = def->state_size;
    t->obs_len = t->n_agents * (size_t)t->shape.obs_size;
    for (int h = 0; h < t->shape.n_heads; h++)
        t->mask_width += (size_t)t->shape.head_sizes[h];
    t->actions = calloc(t->n_agents * (size_t)t->shape.n_heads, sizeof *t->actions);
    t->reals = calloc(t->n_agents * (size_t)t->shape.n_heads, sizeof *t->reals);
    t->obs_bytes = t->n_agents * env_row_bytes(&t->shape);
    t->obs = calloc(t->obs_bytes, 1);
    t->final_obs = calloc(t->obs_bytes, 1);
    t->rewards = calloc(t->n_agents, sizeof *t->rewards);
    t->terms = calloc(t->n_agents, 1);
    t->truncs = calloc(t->n_agents, 1);
    t->mask = t->shape.has_mask ? calloc(t->n_agents, t->mask_width) : NULL;
    assert_true(t->saved && t->actions && t->reals && t->obs && t->final_obs && t->rewards && t->terms && t->truncs);
    t->io = (struct env_io){.actions = t->actions,
                            .reals = t->reals,
                            .rewards = t->rewards,
                            .terms = t->terms,
                            .truncs = t->truncs,
                            .obs = t->obs,
                            .final_obs = t->final_obs,
                            .mask = t->mask};
}

static inline void test_batch_close(struct test_batch *t)
{
    env_batch_destroy(t->batch);
    mem_free(t->saved);
    free(t->actions);
    free(t->reals);
    free(t->obs);
    free(t->final_obs);
    free(t->rewards);
    free(t->terms);
    free(t->truncs);
    free(t->mask);
}

/* One that is closed at the end of the block that declares it. */
#define TEST_BATCH __attribute__((cleanup(test_batch_close))) struct test_batch

/* An instance's state as it is now, until the next call. */
static inline const void *test_batch_state(struct test_batch *t, size_t i)
{
    env_batch_save(t->batch, t->saved);
    return t->saved + i * t->state_size;
}

static inline void test_batch_random_actions(struct test_batch *t, struct rng *rng)
{
    for (size_t a = 0; a < t->n_agents; a++)
        for (int h = 0; h < t->shape.n_heads; h++) {
            size_t at = a * (size_t)t->shape.n_heads + (size_t)h;
            t->actions[at] = (int32_t)rng_below(rng, (uint32_t)t->shape.head_sizes[h]);
            t->reals[at] = t->shape.low[h] + rng_f32(rng) * (t->shape.high[h] - t->shape.low[h]);
        }
}

/* The first rows of `from`, which has as many or more. */
static inline void test_batch_copy_actions(struct test_batch *to, const struct test_batch *from)
{
    size_t n = to->n_agents * (size_t)to->shape.n_heads;
    memcpy(to->actions, from->actions, n * sizeof *to->actions);
    memcpy(to->reals, from->reals, n * sizeof *to->reals);
}

/* One game by itself: `struct NAME` and NAME_turn, a decision of its only agent; `sum` adds up what it gave. A test
 * writes NAME_open itself, which zeroes the struct, seeds `s.rng` and resets the game. */
#define ONE_GAME(name, game)                                                                                           \
    struct name {                                                                                                      \
        struct game##_settings settings;                                                                               \
        struct game##_state s;                                                                                         \
        struct env_step step;                                                                                          \
        float reward, sum;                                                                                             \
    };                                                                                                                 \
    static void name##_turn(struct name *one, int32_t action)                                                          \
    {                                                                                                                  \
        one->step = (struct env_step){.rewards = &one->reward};                                                        \
        game##_step(&one->settings, &one->s, &action, &one->step);                                                     \
        one->sum += one->reward;                                                                                       \
    }
