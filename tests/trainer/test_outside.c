/* test_outside.c - games whose processes step while the policy decides for other agents: half of the batch at a time,
 * the same bytes as when each half is stepped before the policy continues, and the same random numbers as of the batch
 * in one. */
#include "trainer_test.h"

#define ROWS 4096 /* numbers of a tensor, at most */

/* A game of the registry as one that is stepped outside: begin takes the actions, and what the step gives is there when
 * it is waited for. Until then rewards and observations of these rows are nonsense, which nobody may read. */
static const struct env_def *inside;
static struct env_shape shape;
static int32_t actions[ROWS];
static float reals[ROWS];
static size_t begun[2], n_begun, n_at_once;

static void outside_begin(const void *settings, void *states, const struct env_io *io, size_t from, size_t to)
{
    size_t heads = (size_t)shape.n_heads, D = (size_t)shape.obs_size;

    (void)settings, (void)states;
    memcpy(actions + from * heads, io->actions + from * heads, (to - from) * heads * sizeof *actions);
    if (io->reals != NULL)
        memcpy(reals + from * heads, io->reals + from * heads, (to - from) * heads * sizeof *reals);
    memset(io->obs + from * D, 0xff, (to - from) * D * sizeof *io->obs);
    memset(io->rewards + from, 0xff, (to - from) * sizeof *io->rewards);
    memset(io->terms + from, 1, to - from);
    begun[n_begun++] = from;
    n_at_once = n_begun > n_at_once ? n_begun : n_at_once;
}

static void outside_step(const void *settings, void *states, struct env_log *logs, const struct env_io *io, size_t from,
                         size_t to)
{
    struct env_io own = *io;

    assert_true(n_begun > 0 && begun[0] == from); /* in the order in which they were begun */
    memmove(begun, begun + 1, --n_begun * sizeof *begun);
    own.actions = actions;
    own.reals = io->reals != NULL ? reals : NULL;
    inside->step_range(settings, states, logs, &own, from, to);
}

/* The same without overlap: the step is done when it is begun. */
static void at_once_begin(const void *settings, void *states, const struct env_io *io, size_t from, size_t to)
{
    static struct env_log logs[ROWS]; /* nobody asks */

    inside->step_range(settings, states, logs, io, from, to);
}

static void at_once_step(const void *settings, void *states, struct env_log *logs, const struct env_io *io, size_t from,
                         size_t to)
{
    (void)settings, (void)states, (void)logs, (void)io, (void)from, (void)to;
}

/* A game whose instances all step by one call of its own. */
static enum status undivided_shape(const struct env_def *def, const void *settings, struct env_shape *ret_shape,
                                   struct error *error)
{
    (void)def;
    TRY(inside->shape(inside, settings, ret_shape, error));
    ret_shape->undivided = true;
    return ST_OK;
}

enum { WHOLE, AT_ONCE, OUTSIDE, UNDIVIDED, N_WAYS };
enum { FRAMES = 1, NORMS = 2, N_FORMS = 4 };

static void check_same(const char *name, int core, int form, int64_t n_agents, size_t n_threads)
{
    struct env_def defs[N_WAYS];
    struct setup s[N_WAYS];
    struct trainer *t[N_WAYS];
    size_t n = 8 * (size_t)n_agents;

    inside = env_find(name);
    defs[WHOLE] = defs[AT_ONCE] = defs[OUTSIDE] = defs[UNDIVIDED] = *inside;
    defs[AT_ONCE].begin_range = at_once_begin, defs[AT_ONCE].step_range = at_once_step;
    defs[OUTSIDE].begin_range = outside_begin, defs[OUTSIDE].step_range = outside_step;
    defs[UNDIVIDED].begin_range = outside_begin, defs[UNDIVIDED].step_range = outside_step;
    defs[UNDIVIDED].shape = undivided_shape;
    n_at_once = 0;
    for (int i = 0; i < N_WAYS; i++) {
        setup_open(&s[i], &defs[i], n_threads);
        OK(env_def_check(inside, s[i].env, 1, &shape, err));
        setup_option(&s[i], "max_steps", 5);
        s[i].policy.core = core;
        s[i].policy.frame_stack = form & FRAMES ? 3 : 1;
        s[i].policy.norm_obs = s[i].train.scale_reward = form & NORMS;
        s[i].train.total_agents = n_agents;
        s[i].train.minibatch_size = 8 * n_agents;
        t[i] = setup_trainer(&s[i]);
        iterate(t[i], 1);
    }
    assert_int_equal(t[OUTSIDE]->env->n_parts, n_agents > 1 ? 2 : 1);
    assert_int_equal(n_at_once, t[OUTSIDE]->env->n_parts);
    assert_int_equal(t[UNDIVIDED]->env->n_parts, 1);
    for (size_t i = 0; i < n; i++) { /* products of fewer rows may be rounded otherwise */
        const struct rollout *a = &t[WHOLE]->roll, *b = &t[OUTSIDE]->roll;
        if (shape.head_sizes[0] > 0)
            assert_int_equal(a->actions[i], b->actions[i]);
        assert_true(fabsf(a->logp[i] - b->logp[i]) < 1e-4f && fabsf(a->values[i] - b->values[i]) < 1e-4f);
        assert_true(fabsf(a->boot[i] - b->boot[i]) < 1e-4f || !a->truncs[i]);
        assert_true(a->terms[i] == b->terms[i] && a->truncs[i] == b->truncs[i]);
    }
    iterate(t[AT_ONCE], 3);
    iterate(t[OUTSIDE], 3);
    iterate(t[WHOLE], 3);
    iterate(t[UNDIVIDED], 3);
    assert_memory_equal(t[WHOLE]->roll.actions, t[UNDIVIDED]->roll.actions, n * sizeof(int32_t));
    assert_same_weights(t[WHOLE], t[UNDIVIDED]);
    assert_memory_equal(t[AT_ONCE]->roll.actions, t[OUTSIDE]->roll.actions, n * sizeof(int32_t));
    assert_same_weights(t[AT_ONCE], t[OUTSIDE]);
    for (int i = 0; i < N_WAYS; i++) {
        trainer_destroy(t[i]);
        setup_close(&s[i]);
    }
}

TEST(halves_give_the_same_bytes)
{
    static const int cores[] = {POLICY_CORE_MLP, POLICY_CORE_MINGRU, POLICY_CORE_LSTM};

    for (size_t i = 0; i < 3; i++)
        for (int form = 0; form < N_FORMS; form++) {
            check_same("cartpole", cores[i], form, 12, 1);
            check_same("pendulum", cores[i], form, 7, 1 + i % 2);
        }
    check_same("cartpole", POLICY_CORE_MLP, 0, 1, 2);
    check_same("cartpole", POLICY_CORE_MLP, FRAMES | NORMS, 96, 2);
}

TEST_PROGRAM("outside")
