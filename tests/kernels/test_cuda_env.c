/* test_cuda_env.c - games on the device do what they do on the host, to the last byte; so do games that the host steps
 * for the device. Needs a GPU; reports it and skips where there is none. */
#include "tests/kernels/kern_test.h"

#include "tests/envs/envs_test.h"

#define ROW_BYTES(n) (((n) + 15) / 16 * 16)

/* -- a game that the device does not know: two agents, two heads, masks, terminations and truncations -- */
struct pair_settings {
    int64_t length;
};

struct pair_state {
    struct rng rng;
    int64_t steps, limit;
    int64_t sum;
};

ENV_FN void pair_shape(const struct pair_settings *settings, struct env_shape *ret_shape)
{
    (void)settings;
    ret_shape->obs_size = 3;
    ret_shape->n_agents = 2;
    ret_shape->n_heads = 2;
    ret_shape->head_sizes[0] = 3;
    ret_shape->head_sizes[1] = 2;
    ret_shape->has_mask = true;
    ret_shape->may_truncate = true;
}

ENV_FN void pair_reset(const struct pair_settings *settings, struct pair_state *state)
{
    state->steps = 0;
    state->sum = 0;
    state->limit = 1 + (int64_t)rng_below(&state->rng, (uint32_t)settings->length);
}

ENV_FN void pair_step(const struct pair_settings *settings, struct pair_state *state, const int32_t *actions,
                      struct env_step *step)
{
    (void)settings;
    state->steps++;
    for (int a = 0; a < 2; a++) {
        step->rewards[a] = (float)actions[2 * a] - 0.5f * (float)actions[2 * a + 1];
        state->sum += actions[2 * a];
    }
    step->ended = state->steps == state->limit && state->sum % 2 == 0;
    step->truncated = state->steps == state->limit && !step->ended;
    step->score = (float)state->sum;
    step->perf = 0.25f;
}

ENV_OBS_FN void pair_observe(const struct pair_settings *settings, const struct pair_state *state, int agent,
                             env_obs *obs)
{
    (void)settings;
    obs[0] = (float)agent;
    obs[1] = (float)state->steps / 7.0f;
    obs[2] = (float)state->sum;
}

ENV_FN void pair_mask(const struct pair_settings *settings, const struct pair_state *state, int agent, uint8_t *mask)
{
    (void)settings;
    for (int i = 0; i < 5; i++)
        mask[i] = (uint8_t)((state->sum + agent + i) % 3 != 0);
}

#define ENV_GAME pair
#define ENV_GAME_HAS_MASK
#define ENV_GAME_PLAIN
#include "envs/env_loop.h"

static const struct opt_def pair_options[] = {
    OPT_ROW_INT(struct pair_settings, length, "9", 1, 100, OPT_FIXED, 0, 0, "steps", "Longest episode."),
};
static const struct env_about pair_about = {"two agents", NULL, 0};
static const struct env_def pair_def = {
    .api_version = ENV_API_VERSION,
    .name = "pair",
    .about = &pair_about,
    .options = {.section = "env",
                .title = "Environment: pair",
                .defs = pair_options,
                .n_defs = 1,
                .settings_size = sizeof(struct pair_settings)},
    .state_size = sizeof(struct pair_instance),
    .shape = pair_check_shape,
    .reset_range = pair_reset_range,
    .observe_range = pair_observe_range,
    .step_range = pair_step_range,
};

/* -- the same batch on a device: one block of device memory for what a step gives, so that one download brings it -- */
struct side {
    struct kern *kern;
    const struct kern_ops *ops;
    struct kern_env *env;
    struct env_shape shape;
    size_t n_agents, obs_bytes, mask_bytes, number_bytes; /* of a number of an observation */
    size_t off_terms, off_truncs, off_mask, off_obs, off_final, bytes;
    char *dev, *got; /* (bytes): rewards, terms, truncs, mask, obs, final_obs */
    int32_t *actions; /* device, like reals */
    float *reals;
    struct kern_env_io io;
};

/* Fewer than n where instances are many agents, or large. */
static size_t instances_of(const struct env_def *def, const void *settings, size_t n)
{
    struct env_shape shape;
    struct error err = {0};
    must(env_def_check(def, settings, 1, &shape, &err), &err);
    n /= (size_t)shape.n_agents * (1 + def->state_size / 16384);
    return n > 7 ? n : 7;
}

static int steps_of(int n)
{
    return test_is_short() ? n / 200 : n;
}

/* Devices are opened once, as in a worker. */
static struct kern *kern_of_kind(enum kern_kind kind)
{
    static struct kern *opened[KERN_CUDA + 1];
    struct kern_settings device = {.kind = kind, .n_threads = 2};
    struct error err = {0};
    if (opened[kind] == NULL)
        must(kern_open(&opened[kind], &device, &err), &err);
    return opened[kind];
}

/* `shift`: bytes by which observations are off the alignment of device memory. */
static void side_open(struct side *s, enum kern_kind kind, enum kern_precision precision, const struct env_def *def,
                      const void *settings, size_t n_envs, size_t shift)
{
    struct error err = {0};
    size_t width = 0;

    memset(s, 0, sizeof *s);
    s->kern = kern_of_kind(kind);
    must(kern_precision_set(s->kern, precision, &err), &err);
    s->ops = kern_ops(s->kern);
    must(def->shape(def, settings, &s->shape, &err), &err);
    for (int h = 0; s->shape.has_mask && h < s->shape.n_heads; h++)
        width += (size_t)s->shape.head_sizes[h];
    s->n_agents = n_envs * (size_t)s->shape.n_agents;
    s->number_bytes = s->shape.u8 ? 1 : s->ops->act_size;
    s->obs_bytes = s->n_agents * (size_t)s->shape.obs_size * s->number_bytes;
    s->mask_bytes = s->n_agents * width;
    s->off_terms = ROW_BYTES(s->n_agents * sizeof(float));
    s->off_truncs = s->off_terms + ROW_BYTES(s->n_agents);
    s->off_mask = s->off_truncs + ROW_BYTES(s->n_agents);
    s->off_obs = s->off_mask + ROW_BYTES(s->mask_bytes) + shift;
    s->off_final = s->off_obs + ROW_BYTES(s->obs_bytes) + shift;
    s->bytes = s->off_final + s->obs_bytes;
    s->got = NEW(char, s->bytes);
    must(kern_alloc(s->kern, (void **)&s->dev, s->bytes, "test", &err), &err);
    must(kern_alloc(s->kern, (void **)&s->actions, s->n_agents * (size_t)s->shape.n_heads * sizeof(int32_t), "test",
                    &err),
         &err);
    must(kern_alloc(s->kern, (void **)&s->reals, s->n_agents * (size_t)s->shape.n_heads * sizeof(float), "test", &err),
         &err);
    s->io = (struct kern_env_io){.actions = s->actions,
                                 .reals = s->reals,
                                 .rewards = (float *)s->dev,
                                 .terms = (uint8_t *)s->dev + s->off_terms,
                                 .truncs = (uint8_t *)s->dev + s->off_truncs,
                                 .mask = s->mask_bytes > 0 ? (uint8_t *)s->dev + s->off_mask : NULL,
                                 .obs = s->dev + s->off_obs,
                                 .final_obs = s->dev + s->off_final};
    must(kern_env_create(s->kern, &s->env, def, settings, n_envs, rng_seed(11), &err), &err);
    s->ops->env_reset(s->kern, s->env, s->io.obs, s->io.mask);
}

static void side_close(struct side *s)
{
    kern_env_destroy(s->kern, s->env);
    kern_free(s->kern, s->actions);
    kern_free(s->kern, s->reals);
    kern_free(s->kern, s->dev);
    mem_free(s->got);
}

/* A head that is a number gets one from a quarter below its range to a quarter above it, by the action's low bits. */
static void side_act(struct side *s, const int32_t *actions)
{
    struct error err = {0};
    size_t n_heads = (size_t)s->shape.n_heads, n = s->n_agents * n_heads;
    MEM_LOCAL float *reals = NEW(float, n);
    for (size_t i = 0; i < n; i++) {
        float low = s->shape.low[i % n_heads], width = s->shape.high[i % n_heads] - low;
        reals[i] = low + width * ((float)(actions[i] & 0xffff) * (1.5f / 65536.0f) - 0.25f);
    }
    must(kern_upload(s->kern, s->actions, actions, n * sizeof *actions, &err), &err);
    must(kern_upload(s->kern, s->reals, reals, n * sizeof *reals, &err), &err);
    must(kern_sync(s->kern, &err), &err);
}

static void side_fetch(struct side *s, bool with_obs)
{
    struct error err = {0};
    must(kern_download(s->kern, s->got, s->dev, with_obs ? s->bytes : s->off_obs, &err), &err);
}

/* Row `agent` of observations: bytes as they are, or rounded to bf16. */
static void check_row(const struct side *host, const struct side *dev, size_t off_host, size_t off_dev, size_t agent,
                      const char *what, int step)
{
    size_t D = (size_t)host->shape.obs_size;
    const float *want = (const float *)(host->got + off_host) + agent * D;
    const char *got = dev->got + off_dev + agent * D * dev->number_bytes;
    const char *bytes = host->got + off_host + agent * D;
    if (dev->number_bytes == 1 && memcmp(got, bytes, D) != 0)
        fail_msg("step %d, %s of agent %zu: other bytes than the host's", step, what, agent);
    if (dev->number_bytes == 1)
        return;
    for (size_t d = 0; d < D; d++) {
        uint16_t narrow;
        float wide;
        if (dev->ops->act_size == 4) {
            memcpy(&wide, got + 4 * d, sizeof wide);
            if (memcmp(&wide, &want[d], sizeof wide) != 0)
                fail_msg("step %d, %s of agent %zu, value %zu: %.9g, host has %.9g", step, what, agent, d, (double)wide,
                         (double)want[d]);
        } else {
            memcpy(&narrow, got + 2 * d, sizeof narrow);
            if (narrow != bf16_bits(want[d]))
                fail_msg("step %d, %s of agent %zu, value %zu: bf16 %#x, host's %.9g is %#x", step, what, agent, d,
                         narrow, (double)want[d], bf16_bits(want[d]));
        }
    }
}

static void check_same(const struct side *host, const struct side *dev, bool with_obs, int step)
{
    size_t n = host->n_agents;
    for (size_t a = 0; a < n; a++)
        if (memcmp(host->got + 4 * a, dev->got + 4 * a, 4) != 0)
            fail_msg("step %d, reward of agent %zu: %.9g, host has %.9g", step, a, (double)((float *)dev->got)[a],
                     (double)((float *)host->got)[a]);
    if (memcmp(host->got + host->off_terms, dev->got + dev->off_terms, n) != 0)
        fail_msg("step %d: terms differ", step);
    if (memcmp(host->got + host->off_truncs, dev->got + dev->off_truncs, n) != 0)
        fail_msg("step %d: truncs differ", step);
    if (memcmp(host->got + host->off_mask, dev->got + dev->off_mask, host->mask_bytes) != 0)
        fail_msg("step %d: masks differ", step);
    for (size_t a = 0; with_obs && a < n; a++) {
        check_row(host, dev, host->off_obs, dev->off_obs, a, "observation", step);
        if (host->got[host->off_truncs + a])
            check_row(host, dev, host->off_final, dev->off_final, a, "last observation", step);
    }
}

static void random_actions(int32_t *actions, const struct side *s, struct rng *rng)
{
    size_t heads = (size_t)s->shape.n_heads;
    for (size_t i = 0; i < s->n_agents * heads; i++) {
        uint32_t size = (uint32_t)s->shape.head_sizes[i % heads];
        actions[i] = (int32_t)rng_below(rng, size > 0 ? size : 1u << 16);
    }
}

static char *save(struct side *s)
{
    struct error err = {0};
    char *bytes = NEW(char, kern_env_state_bytes(s->env));
    must(kern_env_save(s->kern, s->env, bytes, &err), &err);
    return bytes;
}

static void check_states(struct side *host, struct side *dev)
{
    MEM_LOCAL char *a = save(host), *b = save(dev);
    assert_int_equal(kern_env_state_bytes(host->env), kern_env_state_bytes(dev->env));
    if (memcmp(a, b, kern_env_state_bytes(host->env)) != 0)
        fail_msg("states differ");
}

static void check_log(const struct env_log *got, const struct env_log *want)
{
    assert_true(got->episodes == want->episodes);
    check_number("score", got->score, want->score, 1e-9);
    check_number("perf", got->perf, want->perf, 1e-9);
    check_number("return", got->ep_return, want->ep_return, 1e-9);
    check_number("length", got->ep_length, want->ep_length, 1e-9);
}

/* `steps` random decisions on both; observations and states are looked at now and then, and at the end. */
static void check_steps(const struct env_def *def, const void *settings, enum kern_precision precision, size_t n_envs,
                        size_t shift, int steps, int every)
{
    struct side host, dev;
    struct error err = {0};
    struct rng rng = rng_seed(5);
    struct env_log a, b;

    side_open(&host, KERN_CPU, KERN_F32, def, settings, n_envs, 0);
    side_open(&dev, KERN_CUDA, precision, def, settings, n_envs, shift);
    MEM_LOCAL int32_t *actions = NEW(int32_t, host.n_agents * (size_t)host.shape.n_heads);
    side_fetch(&host, true), side_fetch(&dev, true);
    check_same(&host, &dev, true, -1);
    for (int t = 0; t < steps; t++) {
        bool look = t % every == every - 1 || t == steps - 1;
        random_actions(actions, &host, &rng);
        side_act(&host, actions), side_act(&dev, actions);
        kern_env_step(host.kern, host.env, &host.io);
        kern_env_step(dev.kern, dev.env, &dev.io);
        side_fetch(&host, look), side_fetch(&dev, look);
        check_same(&host, &dev, look, t);
        if (t % 1000 == 499) {
            must(kern_env_take_log(host.kern, host.env, &a, &err), &err);
            must(kern_env_take_log(dev.kern, dev.env, &b, &err), &err);
            check_log(&b, &a);
        }
    }
    check_states(&host, &dev);
    dev.ops->env_observe(dev.kern, dev.env, dev.io.obs, dev.io.mask);
    side_fetch(&dev, true);
    check_same(&host, &dev, true, steps);
    side_close(&host), side_close(&dev);
}

/* -- tests -- */

TEST(each_game_steps_as_on_the_host)
{
    struct error err = {0};
    for (size_t g = 0; g < env_count(); g++) {
        void *settings = test_settings(env_at(g));
        size_t n = instances_of(env_at(g), settings, 1000);
        struct env_shape shape;
        must(env_def_check(env_at(g), settings, 1, &shape, &err), &err);
        int steps = shape.has_mask ? 1000 : 10000; /* games with masks are those whose opponent thinks */
        print_message("# %s: %d steps of %zu instances\n", env_at(g)->name, steps_of(steps), n);
        check_steps(env_at(g), settings, KERN_F32, n, 0, steps_of(steps), 97);
        mem_free(settings);
    }
}

/* Each game's one option at other values, few instances, observations that begin anywhere. */
TEST(other_settings_sizes_and_types)
{
    static const struct {
        const char *name;
        int64_t option;
    } cases[] = {{"breakout", 1}, {"breakout", 7}, {"cartpole", 13}, {"memory", 1},  {"memory", 9},
                 {"pong", 1},     {"pong", 3},     {"squared", 1},   {"squared", 8}, {"squared", 31}};
    static const size_t sizes[] = {1, 37, 400};
    for (size_t c = 0; c < COUNT(cases); c++)
        for (size_t n = 0; n < 3; n++) {
            const struct env_def *def = env_find(cases[c].name);
            assert_int_equal(def->options.n_defs, 1);
            assert_int_equal(def->options.settings_size, sizeof cases[c].option);
            check_steps(def, &cases[c].option, KERN_F32, sizes[n], 4 * n, steps_of(300), 7);
            check_steps(def, &cases[c].option, KERN_BF16, sizes[n], 2 * n, steps_of(300), 7);
        }
    for (size_t g = 0; g < env_count(); g++) { /* more than a wave of blocks */
        void *settings = test_settings(env_at(g));
        check_steps(env_at(g), settings, KERN_BF16, instances_of(env_at(g), settings, 50001), 0, steps_of(20), 10);
        mem_free(settings);
    }
}

/* From here on each game's log takes that number of episodes and no more. */
static void limit_logs(struct side *side, size_t n, double limit)
{
    struct error err = {0};
    size_t bytes = kern_env_state_bytes(side->env);
    MEM_LOCAL char *state = NEW(char, bytes);
    struct env_log log = {.limit = limit};

    must(kern_env_save(side->kern, side->env, state, &err), &err);
    for (size_t i = 0; i < n; i++)
        memcpy(state + bytes - (n - i) * sizeof log, &log, sizeof log);
    must(kern_env_load(side->kern, side->env, state, &err), &err);
    must(kern_sync(side->kern, &err), &err);
}

static void check_limit(struct side *side, size_t n, double limit)
{
    struct error err = {0};
    size_t bytes = kern_env_state_bytes(side->env), n_full = 0;
    MEM_LOCAL char *state = NEW(char, bytes);
    struct env_log log;

    must(kern_env_save(side->kern, side->env, state, &err), &err);
    for (size_t i = 0; i < n; i++) {
        memcpy(&log, state + bytes - (n - i) * sizeof log, sizeof log);
        assert_true(log.episodes <= limit && log.limit == limit);
        n_full += log.episodes == limit;
    }
    /* of agents that end alone the limit counts lives from the beginning: here they have had theirs */
    assert_true(side->shape.agents_end ? n_full == 0 : n_full > 0);
}

/* Default settings, but for a limit of steps, so that episodes of every game end soon; caller frees. */
static void *short_settings(const struct env_def *def)
{
    const int64_t limit = 100;
    char *settings = test_settings(def);
    for (size_t i = 0; i < def->options.n_defs; i++)
        if (strcmp(def->options.defs[i].key, "max_steps") == 0)
            memcpy(settings + def->options.defs[i].offset, &limit, sizeof limit);
    return settings;
}

/* Sums of all, and, where the logs have a limit, the first few episodes of each: of a game of the device and of one of
 * the host. */
TEST(logs_add_up)
{
    const int steps = steps_of(3000) < 300 ? 300 : steps_of(3000); /* in which episodes of every game end */
    for (size_t g = 0; g <= env_count(); g++) {
        const struct env_def *def = g < env_count() ? env_at(g) : &pair_def;
        void *settings = short_settings(def);
        struct side host, dev;
        struct error err = {0};
        struct rng rng = rng_seed(6);
        struct env_log want, got, *sum;
        int32_t *actions;
        size_t N = instances_of(def, settings, 777);
        double limit;

        side_open(&host, KERN_CPU, KERN_F32, def, settings, N, 0);
        side_open(&dev, KERN_CUDA, KERN_F32, def, settings, N, 0);
        limit = 2.0 * (host.shape.agents_end ? host.shape.n_agents : 1); /* agents that end alone: as many of each */
        actions = NEW(int32_t, host.n_agents * (size_t)host.shape.n_heads);
        must(kern_alloc(dev.kern, (void **)&sum, sizeof *sum, "test", &err), &err);
        for (int t = 0; t < steps; t++) {
            random_actions(actions, &host, &rng);
            side_act(&host, actions), side_act(&dev, actions);
            kern_env_step(host.kern, host.env, &host.io);
            kern_env_step(dev.kern, dev.env, &dev.io);
            if (t == steps / 2) {
                host.ops->env_log_take(host.kern, host.env, &want);
                dev.ops->env_log_take(dev.kern, dev.env, sum);
                must(kern_download(dev.kern, &got, sum, sizeof got, &err), &err);
                assert_true(want.episodes > 0.0);
                check_log(&got, &want);
                limit_logs(&host, N, limit), limit_logs(&dev, N, limit);
            }
        }
        check_states(&host, &dev); /* with the logs */
        check_limit(&dev, N, limit);
        kern_free(dev.kern, sum);
        mem_free(actions), mem_free(settings);
        side_close(&host), side_close(&dev);
    }
}

/* A batch that is used again with another root plays as a new one does. */
TEST(restarted_games_are_new_games)
{
    for (size_t g = 0; g <= env_count(); g++) {
        const struct env_def *def = g < env_count() ? env_at(g) : &pair_def;
        void *settings = test_settings(def);
        struct side host, dev;
        struct error err = {0};
        struct rng rng = rng_seed(9);
        int32_t *actions;

        side_open(&host, KERN_CPU, KERN_F32, def, settings, 65, 0);
        side_open(&dev, KERN_CUDA, KERN_F32, def, settings, 65, 0);
        actions = NEW(int32_t, host.n_agents * (size_t)host.shape.n_heads);
        for (int round = 0; round < 2; round++) {
            for (int t = 0; t < 40; t++) {
                random_actions(actions, &host, &rng);
                side_act(&host, actions), side_act(&dev, actions);
                if (round == 1) /* the first round is the device's alone */
                    kern_env_step(host.kern, host.env, &host.io);
                kern_env_step(dev.kern, dev.env, &dev.io);
            }
            if (round == 0) {
                must(kern_env_restart(host.kern, host.env, rng_seed(77), &err), &err);
                must(kern_env_restart(dev.kern, dev.env, rng_seed(77), &err), &err);
                host.ops->env_reset(host.kern, host.env, host.io.obs, host.io.mask);
                dev.ops->env_reset(dev.kern, dev.env, dev.io.obs, dev.io.mask);
            }
        }
        side_fetch(&host, true), side_fetch(&dev, true);
        check_same(&host, &dev, true, 40);
        check_states(&host, &dev);
        mem_free(actions), mem_free(settings);
        side_close(&host), side_close(&dev);
    }
}

/* Saved on one and loaded on the other, both ways; then both continue alike. */
TEST(states_move_between_devices)
{
    for (size_t g = 0; g <= env_count(); g++) {
        const struct env_def *def = g < env_count() ? env_at(g) : &pair_def;
        void *settings = test_settings(def);
        struct side from, to;
        struct error err = {0};
        struct rng rng = rng_seed(7);

        for (int way = 0; way < 2; way++) {
            int32_t *actions;
            char *bytes;
            side_open(&from, way == 0 ? KERN_CPU : KERN_CUDA, KERN_F32, def, settings, 100, 0);
            side_open(&to, way == 0 ? KERN_CUDA : KERN_CPU, KERN_F32, def, settings, 100, 0);
            actions = NEW(int32_t, from.n_agents * (size_t)from.shape.n_heads);
            for (int t = 0; t < (test_is_short() ? 40 : 400); t++) {
                random_actions(actions, &from, &rng);
                side_act(&from, actions);
                kern_env_step(from.kern, from.env, &from.io);
            }
            bytes = save(&from);
            must(kern_env_load(to.kern, to.env, bytes, &err), &err);
            to.ops->env_observe(to.kern, to.env, to.io.obs, to.io.mask);
            for (int t = 0; t < (test_is_short() ? 10 : 100); t++) {
                random_actions(actions, &from, &rng);
                side_act(&from, actions), side_act(&to, actions);
                kern_env_step(from.kern, from.env, &from.io);
                kern_env_step(to.kern, to.env, &to.io);
                side_fetch(&from, true), side_fetch(&to, true);
                check_same(&from, &to, true, t);
            }
            check_states(&from, &to);
            mem_free(bytes), mem_free(actions);
            side_close(&from), side_close(&to);
        }
        mem_free(settings);
    }
}

/* A recorded pair of steps and a log, replayed: as the host does it. */
TEST(recorded_steps_do_the_same)
{
    for (size_t g = 0; g <= env_count(); g++) {
        const struct env_def *def = g < env_count() ? env_at(g) : &pair_def;
        void *settings = test_settings(def);
        struct side host, dev;
        struct error err = {0};
        struct rng rng = rng_seed(8);
        struct kern_graph *graph;
        struct env_log *sum, got, want;
        int32_t *actions;

        side_open(&host, KERN_CPU, KERN_F32, def, settings, 333, 0);
        side_open(&dev, KERN_CUDA, KERN_BF16, def, settings, 333, 0);
        actions = NEW(int32_t, host.n_agents * (size_t)host.shape.n_heads);
        must(kern_alloc(dev.kern, (void **)&sum, sizeof *sum, "test", &err), &err);
        assert_true(kern_can_record(dev.kern));
        must(kern_record_begin(dev.kern, &err), &err);
        kern_env_step(dev.kern, dev.env, &dev.io);
        kern_env_step(dev.kern, dev.env, &dev.io);
        dev.ops->env_log_take(dev.kern, dev.env, sum);
        must(kern_record_end(dev.kern, &graph, &err), &err);
        for (int t = 0; t < steps_of(300); t++) {
            random_actions(actions, &host, &rng);
            side_act(&host, actions), side_act(&dev, actions);
            kern_env_step(host.kern, host.env, &host.io);
            kern_env_step(host.kern, host.env, &host.io);
            host.ops->env_log_take(host.kern, host.env, &want);
            must(kern_replay(dev.kern, graph, &err), &err);
            side_fetch(&host, true), side_fetch(&dev, true);
            check_same(&host, &dev, true, t);
        }
        must(kern_download(dev.kern, &got, sum, sizeof got, &err), &err);
        check_log(&got, &want);
        check_states(&host, &dev);
        kern_graph_destroy(dev.kern, graph);
        kern_free(dev.kern, sum);
        mem_free(actions), mem_free(settings);
        side_close(&host), side_close(&dev);
    }
}

/* Games that are not ours, one of them by the name of one that is: the host steps them. */
TEST(games_of_the_host)
{
    struct env_def namesake = *env_find("cartpole"), numbers = *env_find("pendulum");
    struct pair_settings pair = {.length = 9};
    MEM_LOCAL void *settings = test_settings(&namesake), *numbers_settings = test_settings(&numbers);
    for (size_t n = 1; n <= 1000; n *= 10) {
        check_steps(&pair_def, &pair, KERN_F32, n, 0, steps_of(200), 3);
        check_steps(&pair_def, &pair, KERN_BF16, n + 1, 0, steps_of(200), 3);
        check_steps(&namesake, settings, KERN_BF16, n, 0, steps_of(200), 3);
        check_steps(&numbers, numbers_settings, KERN_F32, n, 0, steps_of(250), 3);
    }
}

TEST(too_many_games_are_refused)
{
    const struct env_def *def = env_find("breakout");
    MEM_LOCAL void *settings = test_settings(def);
    struct error err = {0};
    struct kern_env *env = NULL;
    struct kern *k = kern_of_kind(KERN_CUDA);
    assert_int_equal(kern_env_create(k, &env, def, settings, (size_t)1 << 40, rng_seed(1), &err), ST_CONFIG);
    err = (struct error){0};
    assert_int_equal(kern_env_create(k, &env, def, settings, (size_t)1 << 31, rng_seed(1), &err), ST_NOMEM);
    assert_non_null(strstr(err.text, "train.total_agents"));
    err = (struct error){0};
    must(kern_sync(k, &err), &err); /* and the device continues */
    must(kern_env_create(k, &env, def, settings, 8, rng_seed(1), &err), &err);
    kern_env_destroy(k, env);
}

/* usage: test_cuda_env [PATTERN|--list] */
int main(int argc, char **argv)
{
    char reason[512];
    if (test_listed(argc > 1 ? argv[1] : NULL))
        return 0;
    if (!kern_cuda_available(reason, sizeof reason))
        return test_no_gpu(reason);
    int failed = run_cases("cuda_env", NULL, NULL);
    kern_close(kern_of_kind(KERN_CPU));
    kern_close(kern_of_kind(KERN_CUDA));
    return failed;
}
