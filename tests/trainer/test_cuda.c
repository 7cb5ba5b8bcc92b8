/* test_cuda.c - training on a GPU: recorded or not, out of the cache or new, the same seed gives the same bytes; a
 * checkpoint continues on either side. Needs a GPU; reports it and skips where there is none. */
#include "tests/kernels/kern_test.h"
#include "trainer_test.h"

static char ckpt_path[4096];

struct variant {
    const char *game;
    int core, optimizer, precision;
    double prio_alpha, replay_ratio, target_kl;
    bool vtrace;
    bool normed; /* observations and rewards; tanh and deviations of the state where actions are numbers */
    int64_t value_bins;
    double e3b_coef;
    int64_t frames; /* 0: 1 */
    bool conv;
};

static const struct variant variants[] = {
    {"memory", POLICY_CORE_MINGRU, TRAIN_MUON, TRAIN_F32, 0.0, 1.4, 0.0, true, false, 0, 0, 0, false},
    {"memory", POLICY_CORE_MINGRU, TRAIN_ADAM, TRAIN_BF16, 0.8, 2.0, 0.0, false, false, 0, 0, 0, false},
    {"cartpole", POLICY_CORE_MLP, TRAIN_ADAM, TRAIN_F32, 0.0, 4.0, 0.01, true, false, 0, 0, 0, false},
    {"breakout", POLICY_CORE_MINGRU, TRAIN_MUON, TRAIN_BF16, 0.5, 1.0, 0.0, true, false, 0, 0, 0, false},
    {"pong", POLICY_CORE_NONE, TRAIN_MUON, TRAIN_BF16, 0.0, 2.0, 0.0, true, false, 0, 0, 0, false},
    {"breakout", POLICY_CORE_LSTM, TRAIN_MUON, TRAIN_F32, 0.0, 1.0, 0.0, true, false, 0, 0, 0, false},
    {"pendulum", POLICY_CORE_MLP, TRAIN_ADAM, TRAIN_F32, 0.0, 2.0, 0.0, true, true, 0, 0, 0, false},
    {"pendulum", POLICY_CORE_MINGRU, TRAIN_MUON, TRAIN_BF16, 0.0, 1.4, 0.0, true, false, 0, 0, 0, false},
    {"memory", POLICY_CORE_MINGRU, TRAIN_MUON, TRAIN_F32, 0.0, 1.4, 0.0, true, false, 51, 0, 0, false},
    {"breakout", POLICY_CORE_MINGRU, TRAIN_MUON, TRAIN_BF16, 0.0, 1.0, 0.0, true, false, 0, 0.1, 0, false},
    {"pendulum", POLICY_CORE_MLP, TRAIN_ADAM, TRAIN_F32, 0.0, 2.0, 0.0, true, true, 21, 0.1, 0, false},
    /* bytes */
    {"minatar_breakout", POLICY_CORE_MINGRU, TRAIN_MUON, TRAIN_BF16, 0.0, 1.0, 0.0, true, false, 0, 0, 2, true},
    {"minatar_breakout", POLICY_CORE_MLP, TRAIN_ADAM, TRAIN_F32, 0.0, 1.0, 0.0, true, false, 0, 0, 0, false},
    /* agents that end alone */
    {"snake", POLICY_CORE_MLP, TRAIN_MUON, TRAIN_BF16, 0.0, 1.0, 0.0, true, false, 0, 0, 0, false},
    {"cartpole", POLICY_CORE_MLP, TRAIN_MUON, TRAIN_F32, 0.0, 1.0, 0.0, true, false, 0, 0, 3, false},
    /* each trained by one block of the device */
    {"cartpole", POLICY_CORE_MLP, TRAIN_MUON, TRAIN_BF16, 0.0, 4.0, 0.0, true, false, 0, 0, 0, false},
    {"squared", POLICY_CORE_MLP, TRAIN_ADAM, TRAIN_BF16, 0.0, 1.4, 0.01, false, false, 0, 0, 0, false},
    {"breakout", POLICY_CORE_NONE, TRAIN_MUON, TRAIN_BF16, 0.0, 2.0, 0.0, true, false, 0, 0, 0, false},
};
#define FIRST_OF_POPULATION 15

/* Under a sanitizer the second. Of iterations the first is plain, the second recorded, later ones are replayed. */
static int long_or_short(int n, int n_short)
{
    return test_is_short() ? n_short : n;
}

static void setup_variant(struct setup *s, const struct variant *v)
{
    struct kern_settings cuda = {.kind = KERN_CUDA};

    setup_game(s, v->game, 1);
    kern_close(s->kern);
    OK(kern_open(&s->kern, &cuda, err));
    s->policy.core = v->core;
    s->policy.hidden_size = 32;
    s->train.precision = v->precision;
    s->train.optimizer = v->optimizer;
    s->train.prio_alpha = v->prio_alpha;
    s->train.replay_ratio = v->replay_ratio;
    s->train.target_kl = v->target_kl;
    s->train.vtrace = v->vtrace;
    s->policy.norm_obs = s->train.scale_reward = v->normed;
    s->policy.value_bins = v->value_bins;
    s->train.e3b_coef = v->e3b_coef;
    s->policy.frame_stack = v->frames;
    s->policy.encoder = v->conv ? POLICY_ENCODER_CONV : POLICY_ENCODER_LINEAR;
    s->policy.conv_channels = 16;
    s->policy.action_std = v->normed ? POLICY_STD_STATE : POLICY_STD_FIXED;
    s->policy.action_bounds = v->normed ? POLICY_BOUNDS_TANH : POLICY_BOUNDS_CLIP;
    s->train.population = v >= variants + FIRST_OF_POPULATION;
    s->train.total_agents = long_or_short(256, 32);
    s->train.horizon = long_or_short(16, s->train.population ? 4 : 8);
    s->train.minibatch_size = s->train.total_agents * s->train.horizon / 4;
    s->train.total_timesteps = s->train.total_agents * s->train.horizon * long_or_short(100, 20);
}

static struct trainer *cached(struct setup *s, struct trainer_cache *cache)
{
    struct trainer *t = NULL;
    OK(trainer_create_cached(&t, cache, s->kern, s->def, s->env, &s->policy, &s->train, err));
    return t;
}

static void assert_same_run(struct trainer *a, struct trainer *b)
{
    struct train_metrics m, n;

    assert_same_weights(a, b);
    OK(trainer_sync(a, err));
    OK(trainer_sync(b, err));
    trainer_get_metrics(a, &m);
    trainer_get_metrics(b, &n);
    assert_int_equal(m.env_steps, n.env_steps);
    assert_int_equal(m.updates, n.updates);
    assert_memory_equal(&m.episodes, &n.episodes, sizeof m.episodes);
    assert_memory_equal(&m.entropy, &n.entropy,
                        sizeof m.entropy); /* NaN when nothing was trained since the last report */
    assert_memory_equal(&m.lr, &n.lr, sizeof m.lr);
    assert_memory_equal(&a->window, &b->window, sizeof a->window);
}

static void test_recorded_or_not(void **state)
{
    SETUP s;
    setup_variant(&s, (const struct variant *)*state);
    s.train.graphs = false;
    TRAINER *plain = setup_trainer(&s);
    s.train.graphs = true;
    TRAINER *recorded = setup_trainer(&s);
    const int n = long_or_short(12, s.train.population ? 9 : 4); /* of a population one launch makes eight */
    assert_true((plain->solo.slot != NULL) == s.train.population);
    for (int i = 0; i < n; i++) {
        iterate(plain, 1);
        if (s.train.population) /* a launch for each iteration, beside one for eight */
            OK(trainer_sync(plain, err));
    }
    iterate(recorded, n);
    assert_same_run(plain, recorded);
    assert_true((recorded->recordings[0].graph == NULL) == s.train.population); /* else the test shows nothing */
    assert_null(plain->recordings[0].graph);
}

/* A run ends at the steps asked for, by a shorter rollout that is played plainly after recorded ones; what comes after
 * it, of a run that continues, is replayed again. */
static void test_short_last_rollout(void **state)
{
    SETUP s;
    struct train_result a, b;
    setup_variant(&s, (const struct variant *)*state);
    int64_t rollout = s.train.total_agents * s.train.horizon;
    s.train.total_timesteps = rollout * 5 + s.train.total_agents * 3 + 1;
    s.train.graphs = false;
    TRAINER *plain = setup_trainer(&s);
    s.train.graphs = true;
    TRAINER *recorded = setup_trainer(&s);
    OK(trainer_run(plain, NULL, &a, err));
    OK(trainer_run(recorded, NULL, &b, err));
    assert_int_equal(a.env_steps, s.train.total_timesteps - 1);
    assert_int_equal(b.env_steps, s.train.total_timesteps - 1);
    assert_same_run(plain, recorded);
    iterate(plain, 2);
    iterate(recorded, 2);
    assert_same_run(plain, recorded);
}

static void test_cached_or_new(void **state)
{
    SETUP s;
    setup_variant(&s, (const struct variant *)*state);
    struct trainer_cache *cache = trainer_cache_create();
    struct trainer *t = cached(&s, cache), *first = t, *fresh;
    iterate(t, long_or_short(7, 4));
    trainer_destroy(t);
    s.train.seed = 42;
    s.train.learning_rate *= 0.5;
    s.train.gamma = 0.97;
    t = cached(&s, cache);
    assert_ptr_equal(t, first);
    fresh = setup_trainer(&s);
    iterate(t, long_or_short(7, 4));
    iterate(fresh, long_or_short(7, 4));
    assert_same_run(t, fresh);
    trainer_destroy(t);
    trainer_destroy(fresh);
    trainer_cache_destroy(cache);
}

/* A lane of a worker: a device, a stream and a trainer of its own, in a thread of its own. */
struct lane {
    struct setup setup;
    struct trainer *trainer;
    pthread_t thread;
    enum status rc;
    struct error err;
};

static void *lane_run(void *ctx)
{
    struct lane *lane = (struct lane *)ctx;

    for (int i = 0; i < long_or_short(12, 3) && lane->rc == ST_OK; i++)
        lane->rc = trainer_iterate(lane->trainer, &lane->err);
    if (lane->rc == ST_OK)
        lane->rc = trainer_sync(lane->trainer, &lane->err);
    return NULL;
}

/* Trials that share the device, some of them of one shape, give the bytes that they give alone. */
static void run_side_by_side(const size_t variant[4])
{
    struct lane lanes[4] = {0};

    for (size_t i = 0; i < 4; i++) {
        setup_variant(&lanes[i].setup, &variants[variant[i]]);
        lanes[i].setup.train.seed = (int64_t)i;
        lanes[i].trainer = setup_trainer(&lanes[i].setup);
    }
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&lanes[i].thread, NULL, lane_run, &lanes[i]), 0);
    for (size_t i = 0; i < 4; i++)
        pthread_join(lanes[i].thread, NULL);
    for (size_t i = 0; i < 4; i++) {
        struct lane *lane = &lanes[i];
        if (lane->rc != ST_OK)
            fail_msg("lane %zu: %s", i, lane->err.text);
        struct trainer *alone = setup_trainer(&lane->setup);
        iterate(alone, long_or_short(12, 3));
        assert_same_run(alone, lane->trainer);
        trainer_destroy(alone);
    }
    for (size_t i = 0; i < 4; i++) {
        trainer_destroy(lanes[i].trainer);
        setup_close(&lanes[i].setup);
    }
}

TEST(side_by_side)
{
    run_side_by_side((const size_t[]){3, 3, 1, 5});
}

TEST(population_side_by_side)
{
    const size_t first = FIRST_OF_POPULATION;

    run_side_by_side((const size_t[]){first, first, first + 1, first + 2});
}

static void gate_enter(void *ctx, bool alone)
{
    *(bool *)ctx |= alone;
}

static void gate_leave(void *ctx)
{
    (void)ctx;
}

static bool gate_wanted(void *ctx)
{
    (void)ctx;
    return false;
}

/* What a run costs that shares the device with n_runs in all. */
static double cost_among(size_t n_runs)
{
    struct train_result result;
    bool alone = false;
    const struct train_gate gate = {
        .ctx = &alone, .enter = gate_enter, .leave = gate_leave, .wanted = gate_wanted, .n_runs = n_runs};
    const struct train_callbacks callbacks = {.gate = &gate};
    AT_END(setup_close) struct setup s = {0};

    setup_variant(&s, &variants[FIRST_OF_POPULATION]);
    struct trainer *t = setup_trainer(&s);
    OK(trainer_run(t, &callbacks, &result, err));
    assert_true(result.cost_calibrated && !alone);
    trainer_destroy(t);
    return result.cost_s;
}

/* Its part of the time, whatever the others do. */
TEST(a_run_of_a_population_costs_its_share)
{
    enum { RUNS = 1 << 16 };
    double begun_s = clock_mono_s(), whole_s = cost_among(1), took_s = clock_mono_s() - begun_s;
    double part_s = cost_among(RUNS);

    assert_true(whole_s > 0 && whole_s < took_s);
    if (fabs(log(whole_s / part_s / RUNS)) > log(16.0)) /* the same work, at another time and beside who knows what */
        fail_msg("%g s alone, %g s as one of %d", whole_s, part_s, RUNS);
}

/* One iteration by one block and by single operations: the same games and counts, and weights as near as bf16 products
 * in another order are. */
static void test_population_as_operations(void **state)
{
    struct train_metrics m[2];
    struct setup s[2];
    struct trainer *t[2];
    float *w[2];
    double apart = 0.0, all = 0.0;

    for (int i = 0; i < 2; i++) {
        setup_variant(&s[i], (const struct variant *)*state);
        s[i].train.population = i == 0;
        t[i] = setup_trainer(&s[i]);
        iterate(t[i], 1);
        w[i] = params_copy(t[i]);
        trainer_get_metrics(t[i], &m[i]);
    }
    assert_int_equal(m[0].updates, m[1].updates);
    assert_memory_equal(&m[0].episodes, &m[1].episodes, sizeof m[0].episodes);
    for (size_t i = 0; i < trainer_n_params(t[0]); i++) {
        apart += pow((double)w[0][i] - (double)w[1][i], 2.0);
        all += pow((double)w[1][i], 2.0);
    }
    if (sqrt(apart / all) > 0.01)
        fail_msg("%s: weights are %g apart", s[0].def->name, sqrt(apart / all));
    for (int i = 0; i < 2; i++) {
        free(w[i]);
        trainer_destroy(t[i]);
        setup_close(&s[i]);
    }
}

static void test_resume(void **state)
{
    SETUP s;
    setup_variant(&s, (const struct variant *)*state);
    TRAINER *straight = setup_trainer(&s), *first = setup_trainer(&s), *second = NULL;
    iterate(straight, long_or_short(12, 6));
    iterate(first, long_or_short(5, 3));
    OK(trainer_save(first, ckpt_path, "", err));
    second = setup_trainer(&s);
    iterate(second, 3);
    OK(trainer_load(second, ckpt_path, err));
    iterate(second, long_or_short(7, 3));
    assert_same_run(straight, second);
}

static void test_holds_shorter_runs(void **state)
{
    SETUP s;

    setup_variant(&s, (const struct variant *)*state);
    check_holds_shorter(&s);
}

/* A checkpoint of the GPU on the CPU: the same games continue, and the policy is worth the same. */
static void test_checkpoint_crosses(void **state)
{
    const struct variant *v = (const struct variant *)*state;
    struct eval_settings e = {.episodes = 256, .agents = 256, .seed = 5, .max_steps = 100000};
    struct eval_result there, again, here;
    SETUP s, cpu;

    setup_variant(&s, v);
    setup_variant(&cpu, v);
    kern_close(cpu.kern);
    OK(kern_open(&cpu.kern, &(struct kern_settings){.kind = KERN_CPU, .n_threads = 2}, err));
    cpu.train.precision = TRAIN_F32;
    TRAINER *gpu = setup_trainer(&s), *host = setup_trainer(&cpu);
    iterate(gpu, long_or_short(40, 8));
    OK(trainer_save(gpu, ckpt_path, "", err));
    OK(trainer_load(host, ckpt_path, err));
    assert_same_weights(gpu, host);
    size_t n_bytes = kern_env_state_bytes(gpu->env);
    char *a = calloc(n_bytes, 1), *b = calloc(n_bytes, 1);
    OK(kern_env_save(gpu->kern, gpu->env, a, err));
    OK(kern_env_save(host->kern, host->env, b, err));
    assert_memory_equal(a, b, n_bytes);
    free(a);
    free(b);
    OK(trainer_eval(gpu, &e, &there, err));
    OK(trainer_eval(host, &e, &here, err));
    assert_true(there.episodes == here.episodes && there.unfinished == 0);
    gpu->set.graphs = false; /* launched one by one, and to look on leaves no trace: the same bytes */
    OK(trainer_eval(gpu, &e, &again, err));
    gpu->set.graphs = true;
    there.eval_s = again.eval_s = 0.0;
    assert_memory_equal(&there, &again, sizeof there);
    assert_same_weights(gpu, host);
    if (fabs(there.perf - here.perf) > 0.05)
        fail_msg("%s: perf %g on the GPU, %g on the CPU", v->game, there.perf, here.perf);
    iterate(host, 2); /* and back */
    OK(trainer_save(host, ckpt_path, "", err));
    OK(trainer_load(gpu, ckpt_path, err));
    assert_same_weights(gpu, host);
    iterate(gpu, 2);
    OK(trainer_sync(gpu, err));
}

TEST(failure_is_found)
{
    struct error failure = {0};
    SETUP s;
    enum status rc = ST_OK;

    setup_variant(&s, &variants[0]);
    TRAINER *t = setup_trainer(&s);
    iterate(t, 4);
    t->set.gamma = NAN;
    for (int i = 0; i < 2 && rc == ST_OK; i++)
        rc = trainer_iterate(t, &failure);
    assert_int_equal(rc, ST_NUMERIC);
    if (strstr(failure.text, "advantage") == NULL)
        fail_msg("\"advantage\" is not in: %s", failure.text);
}

TEST(too_large)
{
    struct error failure = {0};
    SETUP s;
    TRAINER *t = NULL;

    setup_variant(&s, &variants[3]);
    s.train.total_agents = 1 << 20;
    s.train.horizon = 1024;
    s.train.minibatch_size = 1 << 20;
    s.train.total_timesteps = (int64_t)1 << 30;
    assert_int_equal(trainer_create(&t, s.kern, s.def, s.env, &s.policy, &s.train, &failure), ST_NOMEM);
    assert_non_null(strstr(failure.text, "lower train.total_agents, train.horizon, train.minibatch_size"));
    s.train.total_agents = 256; /* and the device is as good as before */
    s.train.horizon = 16;
    s.train.minibatch_size = 1024;
    t = setup_trainer(&s);
    iterate(t, 3);
    OK(trainer_sync(t, err));
}

/* usage: trainer_test_cuda [PATTERN|--list] */
int main(int argc, char **argv)
{
#define OF_VARIANT(f, v) ((struct CMUnitTest){#f "_" #v, f, NULL, NULL, (void *)(uintptr_t)&variants[v]})
#define OF_EACH_VARIANT(f)                                                                                             \
    OF_VARIANT(f, 0), OF_VARIANT(f, 1), OF_VARIANT(f, 2), OF_VARIANT(f, 3), OF_VARIANT(f, 4), OF_VARIANT(f, 5),        \
        OF_VARIANT(f, 6), OF_VARIANT(f, 7), OF_VARIANT(f, 8), OF_VARIANT(f, 9), OF_VARIANT(f, 10), OF_VARIANT(f, 11),  \
        OF_VARIANT(f, 12), OF_VARIANT(f, 13), OF_VARIANT(f, 14), OF_VARIANT(f, 15), OF_VARIANT(f, 16),                 \
        OF_VARIANT(f, 17)
    const struct CMUnitTest of_variants[] = {
        OF_EACH_VARIANT(test_recorded_or_not),         OF_EACH_VARIANT(test_cached_or_new),
        OF_EACH_VARIANT(test_short_last_rollout),      OF_EACH_VARIANT(test_resume),
        OF_EACH_VARIANT(test_holds_shorter_runs),      OF_VARIANT(test_checkpoint_crosses, 0),
        OF_VARIANT(test_checkpoint_crosses, 1),        OF_VARIANT(test_checkpoint_crosses, 2),
        OF_VARIANT(test_checkpoint_crosses, 6),        OF_VARIANT(test_checkpoint_crosses, 15),
        OF_VARIANT(test_population_as_operations, 15), OF_VARIANT(test_population_as_operations, 16),
        OF_VARIANT(test_population_as_operations, 17),
    };
    _Static_assert(COUNT(variants) == 18, "each has a test of each kind");
    char reason[256];

    for (size_t i = 0; i < COUNT(of_variants); i++)
        unit_test_add(0, of_variants[i]);
    if (test_listed(argc > 1 ? argv[1] : NULL))
        return 0;
    if (!kern_cuda_available(reason, sizeof reason))
        return test_no_gpu(reason);
    snprintf(ckpt_path, sizeof ckpt_path, "%s/trawl-cuda-%d.ckpt", getenv("TMPDIR") != NULL ? getenv("TMPDIR") : "/tmp",
             (int)getpid());
    int rc = run_cases("trainer on a GPU", NULL, NULL);
    unlink(ckpt_path);
    return rc;
}
