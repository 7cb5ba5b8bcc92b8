/* test_run.c - checks before allocation, the ways a run ends, numeric failure, evaluation, and that it learns. */
#include "trainer_test.h"

#include <signal.h>
#include <sys/wait.h>

static void expect_create_fails(struct setup *s, enum status status, const char *text)
{
    struct error err = {0};
    struct trainer *t = NULL;

    if (status == ST_CONFIG && s->train.precision == TRAIN_PRECISION_AUTO) /* which needs no device */
        assert_int_equal(trainer_check(s->def, s->env, &s->policy, &s->train, NULL), ST_CONFIG);
    else
        assert_int_equal(trainer_check(s->def, s->env, &s->policy, &s->train, NULL), ST_OK);
    assert_int_equal(trainer_create(&t, s->kern, s->def, s->env, &s->policy, &s->train, &err), status);
    assert_null(t);
    if (strstr(err.text, text) == NULL)
        fail_msg("\"%s\" is not in: %s", text, err.text);
}

TEST(settings_are_checked)
{
    struct setup good, s;

    setup_game(&good, "cartpole", 1);
    s = good;
    s.train.minibatch_size = 36;
    expect_create_fails(&s, ST_CONFIG, "train.minibatch_size 36 is not a multiple of train.horizon 8; try 40");
    s = good;
    s.train.minibatch_size = 13 * 8;
    expect_create_fails(&s, ST_CONFIG, "more than train.total_agents 12");
    s.train.shuffle = TRAIN_SHUFFLE_STEPS;
    s.train.minibatch_size = 97;
    expect_create_fails(&s, ST_CONFIG, "train.minibatch_size 97 is more than a rollout");
    s.train.minibatch_size = 32;
    s.policy.core = POLICY_CORE_LSTM;
    expect_create_fails(&s, ST_CONFIG, "train.shuffle is steps, but policy.core lstm");
    s.policy.core = POLICY_CORE_MLP;
    s.train.total_agents = 1 << 22;
    expect_create_fails(&s, ST_CONFIG, "a rollout has 33554432 of train.total_agents 4194304 times train.horizon 8");
    s.train.total_agents = 12;
    s.train.shuffle = TRAIN_SHUFFLE_SEGMENTS;
    s = good;
    s.train.total_timesteps = 95;
    expect_create_fails(&s, ST_CONFIG,
                        "train.total_timesteps 95 is less than one rollout of train.total_agents 12 x train.horizon 8");
    s = good;
    s.train.horizon = 0;
    expect_create_fails(&s, ST_CONFIG, "train.horizon 0");
    s = good;
    s.train.precision = TRAIN_BF16;
    expect_create_fails(&s, ST_CONFIG, "bf16");
    s = good;
    s.policy.hidden_size = 0;
    expect_create_fails(&s, ST_CONFIG, "policy.hidden_size is 0");
    s = good;
    s.policy.encoder = POLICY_ENCODER_CONV;
    expect_create_fails(&s, ST_CONFIG, "cartpole shows a plain list of 4 numbers and no grid; use linear");
    setup_close(&good);
    setup_game(&good, "squared", 1);
    s = good;
    s.policy.encoder = POLICY_ENCODER_CONV;
    s.policy.conv_channels = 12;
    expect_create_fails(&s, ST_CONFIG, "policy.conv_channels is 12, it must be a multiple of 8");
    s.policy.conv_channels = 16;
    s.policy.conv_layers = 7;
    expect_create_fails(&s, ST_CONFIG, "policy.conv_layers is 7");
    setup_close(&good);
}

TEST(absurd_sizes)
{
    SETUP good;

    setup_game(&good, "cartpole", 1);
    struct setup s = good;
    s.train.total_agents = 2000000000;
    s.train.total_timesteps = (int64_t)1 << 60;
    s.train.horizon = 60000;
    s.train.minibatch_size = 60000;
    expect_create_fails(&s, ST_NOMEM, "lower train.total_agents");
    s.train.horizon = INT64_MAX / 4; /* overflows */
    s.train.minibatch_size = INT64_MAX / 4;
    expect_create_fails(&s, ST_CONFIG, "2^31 - 1");
    s = good;
    s.policy.hidden_size = 65536;
    s.policy.num_layers = 16;
    s.policy.core = POLICY_CORE_MINGRU;
    expect_create_fails(&s, ST_NOMEM, "this needs");
}

struct watch {
    int n_reports, n_asked, stop_report, stop_asked; /* stop at the nth */
    struct train_metrics last;
};

static bool watch_metrics(void *ctx, const struct train_metrics *metrics)
{
    struct watch *w = ctx;
    w->last = *metrics;
    return ++w->n_reports != w->stop_report;
}

static bool watch_should_stop(void *ctx)
{
    struct watch *w = ctx;
    return ++w->n_asked == w->stop_asked;
}

static struct train_result run(struct setup *s, struct watch *w)
{
    struct train_callbacks callbacks = {.ctx = w, .on_metrics = watch_metrics, .should_stop = watch_should_stop};
    struct train_result result;
    struct trainer *t = setup_trainer(s);

    OK(trainer_run(t, &callbacks, &result, err));
    trainer_destroy(t);
    return result;
}

/* As Ctrl-Z and `fg` do, for 3 s, less what passes between the two lines below; again if `fg` came before. */
static bool stop_and_continue(void *ctx)
{
    int *n_asked = ctx;
    pid_t parent = getpid(), child;

    if (++*n_asked != 8)
        return false;
    child = fork();
    if (child == 0) {
        while (getppid() == parent) {
            sleep(3);
            kill(parent, SIGCONT);
        }
        _exit(0);
    }
    raise(SIGSTOP);
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, NULL, 0), child);
    return false;
}

TEST(a_stop_is_no_cost)
{
    int n_asked = 0;
    struct train_callbacks callbacks = {.ctx = &n_asked, .should_stop = stop_and_continue};
    struct train_result result;
    SETUP s;

    clock_watch_stops();
    setup_game(&s, "cartpole", 1);
    TRAINER *t = setup_trainer(&s);
    double begin_s = clock_mono_s();
    OK(trainer_run(t, &callbacks, &result, err));
    assert_true(n_asked > 8 && result.cost_s > 0);
    assert_true(result.cost_s < clock_mono_s() - begin_s - 0.5);
}

TEST(ends_of_a_run)
{
    SETUP s;
    struct watch w = {0};
    double sum = 0.0;

    setup_game(&s, "cartpole", 1);
    s.train.log_interval_s = 3600.0;
    struct train_result r = run(&s, &w); /* to the end */
    assert_int_equal(r.env_steps, s.train.total_timesteps);
    assert_int_equal(r.window.updates, 40 * 96 * 1.5 / 32);
    assert_in_range(w.n_reports, 1, 25); /* the last one, and a point for each 24th of the run that took 20 ms */
    assert_int_equal(w.last.env_steps, r.env_steps);
    assert_false(r.stopped);
    assert_true(r.window.episodes > 0.0 && r.window.score >= 1.0 && r.window.score == r.window.ep_length);
    assert_float_equal(r.window.perf, r.window.score / 500.0, 1e-6);
    assert_true(r.cost_s > 0.0 && r.window.steps_per_s > 0.0);
    for (int i = 0; i < PHASE_COUNT; i++)
        sum += r.window.phase_s[i];
    assert_float_equal(sum, r.cost_s, 1e-6 + 0.01 * r.cost_s);

    s.train.log_interval_s = 0.0; /* a report after every rollout */
    w = (struct watch){.stop_report = 3};
    r = run(&s, &w);
    assert_int_equal(w.n_reports, 3);
    assert_int_equal(r.env_steps, 3 * 96);
    assert_true(r.stopped);

    w = (struct watch){.stop_asked = 5};
    r = run(&s, &w);
    assert_int_equal(r.env_steps, 4 * 96);
    assert_int_equal(w.n_reports, 4);
    assert_true(r.stopped);

    s.train.total_timesteps = (int64_t)1 << 40;
    s.train.max_seconds = 0.05;
    w = (struct watch){0};
    r = run(&s, &w);
    assert_false(r.stopped);
    assert_true(r.cost_s >= 0.05 && r.env_steps < s.train.total_timesteps);
    assert_int_equal(w.last.env_steps, r.env_steps);
}

/* What is asked is what runs: never more, less only by what does not make a step of each agent. */
TEST(asked_steps_are_run)
{
    static const int cores[] = {POLICY_CORE_MLP, POLICY_CORE_MINGRU, POLICY_CORE_LSTM};

    for (int64_t asked = 96; asked < 96 * 4; asked += 7)
        for (int prio = 0; prio < 2; prio++) {
            SETUP s;
            struct watch w = {0};
            setup_game(&s, prio ? "memory" : "cartpole", 2);
            s.policy.core = cores[asked % 3];
            s.train.vtrace = asked % 2 == 0;
            s.train.prio_alpha = prio ? 0.5 : 0.0;
            s.train.total_timesteps = asked;
            struct train_result r = run(&s, &w);
            assert_int_equal(r.env_steps, asked / 12 * 12);
            assert_int_equal(w.last.env_steps, r.env_steps);
            assert_float_equal((double)r.window.updates, (double)r.env_steps * 1.5 / 32, 0.5 + 1e-9);
        }
}

/* A run whose last rollout was short continues from where it ended: without updates, games and actions are those of a
 * run that never stopped there. */
TEST(goes_on_after_a_short_rollout)
{
    TEMP_FILE(path);

    for (int core = POLICY_CORE_MLP; core <= POLICY_CORE_LSTM; core++) {
        SETUP s;
        struct train_result r;
        setup_game(&s, core == POLICY_CORE_MLP ? "cartpole" : "memory", 2);
        s.policy.core = core;
        s.train.replay_ratio = 0.0;
        s.train.total_timesteps = 96 * 5;
        TRAINER *straight = setup_trainer(&s);
        OK(trainer_run(straight, NULL, &r, err));
        s.train.total_timesteps = 96 * 3 + 12 * 3;
        TRAINER *first = setup_trainer(&s);
        OK(trainer_run(first, NULL, &r, err));
        assert_int_equal(r.env_steps, s.train.total_timesteps);
        OK(trainer_save(first, path, "", err));
        s.train.total_timesteps = 96 * 5;
        TRAINER *second = setup_trainer(&s);
        OK(trainer_load(second, path, err));
        OK(trainer_run(second, NULL, &r, err));
        assert_int_equal(r.env_steps, 96 * 5);
        size_t row = straight->n_agents * straight->policy.obs_size;
        assert_memory_equal((float *)straight->roll.obs + straight->horizon * row,
                            (float *)second->roll.obs + second->horizon * row, row * sizeof(float));
        assert_memory_equal(straight->roll.reset + 8 * 12, second->roll.reset + 8 * 12, 12);
        assert_memory_equal(straight->roll.actions + 7 * 12, second->roll.actions + 4 * 12, 12 * sizeof(int32_t));
    }
}

TEST(no_episode)
{
    SETUP s;
    struct watch w = {0};

    setup_game(&s, "squared", 1);
    s.train.total_timesteps = 12;
    s.train.horizon = 1;
    s.train.minibatch_size = 4;
    struct train_result r = run(&s, &w);
    assert_int_equal(r.env_steps, 12);
    assert_true(isnan(r.window.score) && isnan(r.window.perf) && isnan(w.last.score) && r.window.episodes == 0.0);
}

static int64_t memory_of(struct setup *s, int64_t agents, size_t *ret_n_params)
{
    struct train_metrics m;

    s->train.total_agents = agents;
    s->train.total_timesteps = agents * s->train.horizon;
    struct trainer *t = setup_trainer(s);
    trainer_get_metrics(t, &m);
    *ret_n_params = trainer_n_params(t);
    trainer_destroy(t);
    return m.memory;
}

/* At least the observations of a rollout and the weights with gradients and a moment, and as much more for the same
 * number of agents more. */
TEST(memory)
{
    SETUP s;
    size_t n_params, n_more;

    setup_game(&s, "cartpole", 1);
    int64_t few = memory_of(&s, 1200, &n_params), more = memory_of(&s, 2400, &n_more);
    int64_t observations = 1200 * s.train.horizon * 4 * (int64_t)sizeof(float);
    assert_int_equal(n_params, n_more);
    assert_true(few >= observations + 3 * (int64_t)(n_params * sizeof(float)));
    assert_true(more - few >= observations && more - few < 100 * observations);
    assert_int_equal(memory_of(&s, 3600, &n_more) - more, more - few);
}

TEST(target_kl)
{
    SETUP s;

    setup_game(&s, "cartpole", 1);
    s.train.replay_ratio = 30.0;
    s.train.learning_rate = 0.05;
    s.train.target_kl = 0.01;
    TRAINER *t = setup_trainer(&s);
    iterate(t, 5);
    assert_true(t->count.updates > 0);
    assert_true(t->count.updates < 5 * 90 / 2); /* 90 would have been made each time */
    trainer_destroy(t);
    s.train.target_kl = 1e9;
    t = setup_trainer(&s);
    iterate(t, 5);
    assert_int_equal(t->count.updates, 5 * 90);
}

TEST(numeric_failure)
{
    static const char *const names[] = {"weight tensor core.1.weight", "advantage", "number 0 of an observation is nan",
                                        "number 2 of an observation is 1e+30"};
    static const char *const advice[] = {"a lower train.max_grad_norm", "train.max_grad_norm = 1", "", ""};

    for (int i = 0; i < 4; i++) {
        SETUP s;
        struct error failure = {0};
        float bad = i == 0 ? INFINITY : i == 3 ? 1e30f : NAN;
        setup_game(&s, "cartpole", 1);
        s.train.max_grad_norm = i == 1 ? 0 : 1;
        TRAINER *t = setup_trainer(&s);
        iterate(t, 2);
        if (i == 0)
            OK(kern_upload(s.kern, t->params + t->policy.tensors[4].offset + 3, &bad, sizeof bad, err));
        s.train.total_timesteps = 96;
        if (i == 1) /* a discount that is NaN reaches the loss through the advantages */
            t->set.gamma = NAN;
        if (i >= 2)
            for (size_t n = 0; n < t->n_agents; n++)
                OK(kern_upload(s.kern, (float *)t->roll.obs + (t->horizon * t->n_agents + n) * 4 + (i == 3 ? 2 : 0),
                               &bad, sizeof bad, err));
        assert_int_equal(trainer_iterate(t, &failure), ST_NUMERIC);
        if (strstr(failure.text, names[i]) == NULL || strstr(failure.text, "env step 288") == NULL ||
            strstr(failure.text, advice[i]) == NULL)
            fail_msg("\"%s\" or \"%s\" is not in: %s", names[i], advice[i], failure.text);
        assert_int_equal(trainer_save(t, "never-written.ckpt", "", NULL), ST_NUMERIC);
        assert_false(file_exists("never-written.ckpt"));
        assert_int_equal(trainer_iterate(t, NULL), ST_NUMERIC);
    }
}

static double learn(const char *game, int core, int encoder, int64_t steps)
{
    AT_END(setup_close) struct setup s = {0};
    struct watch w = {0};

    setup_game(&s, game, 2);
    s.policy.core = core;
    s.policy.encoder = encoder;
    s.policy.conv_channels = 8;
    s.policy.hidden_size = 32;
    s.policy.num_layers = 1;
    s.train.total_agents = 128;
    s.train.horizon = 16;
    s.train.minibatch_size = 512;
    s.train.replay_ratio = 4.0;
    s.train.optimizer = TRAIN_ADAM;
    s.train.learning_rate = 0.01;
    s.train.total_timesteps = steps;
    setup_option(&s, strcmp(game, "memory") == 0 ? "length" : "n", 2);
    double perf = run(&s, &w).window.perf;
    return perf;
}

TEST(learns)
{
    if (UNDER_TSAN) { /* whether it learns is proven without: here its threads pass every layer */
        learn("squared", POLICY_CORE_NONE, POLICY_ENCODER_CONV, 8192);
        learn("squared", POLICY_CORE_MLP, POLICY_ENCODER_LINEAR, 8192);
        learn("memory", POLICY_CORE_MINGRU, POLICY_ENCODER_LINEAR, 8192);
        learn("memory", POLICY_CORE_LSTM, POLICY_ENCODER_LINEAR, 8192);
        return;
    }
    assert_true(learn("squared", POLICY_CORE_MLP, POLICY_ENCODER_LINEAR, 2048) < 0.5);
    assert_true(learn("squared", POLICY_CORE_MLP, POLICY_ENCODER_LINEAR, 100000) > 0.9);
    assert_true(learn("squared", POLICY_CORE_NONE, POLICY_ENCODER_CONV, 100000) > 0.9);
    assert_true(learn("memory", POLICY_CORE_MINGRU, POLICY_ENCODER_LINEAR, 100000) > 0.9);
    assert_true(learn("memory", POLICY_CORE_LSTM, POLICY_ENCODER_LINEAR, 100000) > 0.9);
    assert_float_equal(learn("memory", POLICY_CORE_NONE, POLICY_ENCODER_LINEAR, 100000), 0.5, 0.05);
}

static void count_line(void *ctx, enum log_level level, const char *line)
{
    (void)level, (void)line;
    ++*(int *)ctx;
}

/* What rounding has put past 1 is not a fault of the game, and takes no warning from a later one that is. */
TEST(perf_outside_is_warned_of_once)
{
    static const struct env_def def = {.name = "odd"};
    static const struct {
        double perf, counts_as;
        int n_warnings; /* so far */
    } logs[] = {{1.5, 1.5, 0}, {2.0 + 1e-9, 2.0, 0}, {3.0, 2.0, 1}, {-1.0, 0.0, 1}};
    MEM_LOCAL struct trainer *t = mem_alloc(sizeof *t);
    int n = 0;

    t->def = &def;
    log_set_sink(count_line, &n);
    for (size_t i = 0; i < COUNT(logs); i++) {
        struct env_log log = {.episodes = 2.0, .perf = logs[i].perf};
        log_bound_perf(t, &log);
        assert_true(log.perf == logs[i].counts_as);
        assert_int_equal(n, logs[i].n_warnings);
    }
    log_set_sink(NULL, NULL);
}

TEST_PROGRAM("run")
