/* bench_train.c - steps per second of whole training, its phases, and the share of the machine's matrix rate.
 * The share: matrix flops that training needs for a step, 2 P to act and 6 P replay_ratio to learn (forward, and both
 * gradients) for P weights, times steps per second, over the rate of one large linear_forward on the same threads. */
#include "study/setup/setup.h"
#include "sweep/cli.h"
#include "sweep/cmd/bench/bench.h"

#define SGEMM_SIZE 1024
#define SGEMM_SIZE_GPU 8192
#define SGEMM_SECONDS 0.3
#define SGEMM_SECONDS_GPU 0.05
#define WARM_ITERATIONS 4 /* on a GPU: plain, recorded, and with a profile */

/* Flops per second of linear_forward (n, n) x (n, n) in the trainer's precision, the best of three. */
static enum status sgemm_rate(struct kern *kern, double *ret_rate, struct error *err)
{
    bool gpu = kern_can_record(kern);
    const size_t n = gpu ? SGEMM_SIZE_GPU : SGEMM_SIZE, bytes = n * n * kern_ops(kern)->act_size;
    double seconds = gpu ? SGEMM_SECONDS_GPU : SGEMM_SECONDS;
    void *m[3] = {NULL, NULL, NULL};
    enum status rc = ST_OK;

    *ret_rate = 0;
    for (int i = 0; rc == ST_OK && i < 3; i++)
        rc = kern_alloc(kern, &m[i], bytes, "matrix rate", err);
    for (int repeat = 0; rc == ST_OK && repeat < 4; repeat++) { /* the first one warms up */
        double start = clock_mono_s(), now;
        size_t calls = 0;
        do {
            for (int i = 0; i < (gpu ? 8 : 1); i++, calls++)
                kern_ops(kern)->linear_forward(
                    kern, &(struct kern_linear){.y = m[0], .x = m[1], .w = m[2], .M = n, .N = n, .K = n});
            rc = kern_sync(kern, err);
            now = clock_mono_s();
        } while (rc == ST_OK && now - start < seconds);
        double rate = 2.0 * (double)n * (double)n * (double)n * (double)calls / (now - start);
        if (repeat > 0 && rate > *ret_rate)
            *ret_rate = rate;
    }
    for (int i = 0; i < 3; i++)
        kern_free(kern, m[i]);
    return rc;
}

struct train_numbers {
    struct bench_spread rate;
    double phase_s[PHASE_COUNT];
    double sgemm, share;
    size_t n_params;
};

static enum status measure(struct bench *b, struct train_numbers *t, struct error *err)
{
    double rates[BENCH_MAX_REPEATS];
    struct train_metrics before, after;
    struct train_settings *train = &b->setup->train;

    if (train->total_timesteps <
        train->total_agents * train->horizon) /* it runs by time: the steps asked for are not its own */
        train->total_timesteps = train->total_agents * train->horizon;
    TRY(session_open(&b->session, b->setup, err));
    TRY(sgemm_rate(b->session.kern, &t->sgemm, err));
    for (int i = 0; i < WARM_ITERATIONS; i++)
        TRY(trainer_iterate(b->session.trainer, err));
    TRY(trainer_sync(b->session.trainer, err));
    trainer_get_metrics(b->session.trainer, &before);
    for (int i = 0; i < PHASE_COUNT; i++)
        t->phase_s[i] = -before.phase_s[i];
    for (int64_t i = 0; i < b->repeats; i++) {
        double start = clock_mono_s(), now;
        trainer_get_metrics(b->session.trainer, &before);
        do {
            TRY(trainer_iterate(b->session.trainer, err));
            now = clock_mono_s();
        } while (now - start < b->seconds);
        TRY(trainer_sync(b->session.trainer, err)); /* what is in flight counts with its time */
        now = clock_mono_s();
        trainer_get_metrics(b->session.trainer, &after);
        rates[i] = (double)(after.env_steps - before.env_steps) / (now - start);
    }
    for (int i = 0; i < PHASE_COUNT; i++)
        t->phase_s[i] += after.phase_s[i];
    t->rate = bench_spread_of(rates, b->repeats);
    t->n_params = trainer_n_params(b->session.trainer);
    t->share = t->rate.median * (2 + 6 * b->setup->train.replay_ratio) * (double)t->n_params / t->sgemm;
    return ST_OK;
}

static cJSON *numbers_json(const struct bench *b, const struct train_numbers *t)
{
    cJSON *json = cJSON_CreateObject();

    json_add_str(json, "bench", "train");
    json_add_str(json, "env", b->setup->env->name);
    json_add_str(json, "operations", kern_ops(b->session.kern)->name);
    bench_add_spread(json, "steps_per_s", &t->rate);
    json_add(json, "profile", session_profile_json(t->phase_s));
    json_add_f64(json, "sgemm_gflops", t->sgemm * 1e-9);
    json_add_f64(json, "sgemm_share", t->share);
    json_add_i64(json, "n_params", (int64_t)t->n_params);
    json_add_i64(json, "threads", (int64_t)kern_n_threads(b->session.kern));
    json_add_i64(json, "repeats", b->repeats);
    json_add_f64(json, "seconds", b->seconds);
    json_add(json, "config", config_to_json(b->setup->config));
    bench_add_machine(json, kern_device_name(b->session.kern));
    return json;
}

enum status bench_train(struct bench *b, struct error *err)
{
    struct train_numbers t = {0};
    char text[NUM_TEXT_MAX], low[NUM_TEXT_MAX], high[NUM_TEXT_MAX];
    double sum = 0;

    TRY(measure(b, &t, err));
    if (b->json) {
        cli_print_json(numbers_json(b, &t));
        return ST_OK;
    }
    printf("%s: %s steps/s on %s (%s to %s over %lld repeats)\n", b->setup->env->name,
           num_format_short(t.rate.median, text), kern_device_name(b->session.kern), num_format_short(t.rate.min, low),
           num_format_short(t.rate.max, high), (long long)b->repeats);
    printf("%zu weights; %.1f %% of this device's matrix rate of %.1f GFLOP/s\n", t.n_params, 100 * t.share,
           t.sgemm * 1e-9);
    for (int i = 0; i < PHASE_COUNT; i++)
        sum += t.phase_s[i];
    for (int i = 0; i < PHASE_COUNT; i++)
        printf("  %-10s %5.1f %%  %8.1f ms\n", train_phase_name((enum train_phase)i),
               sum > 0 ? 100 * t.phase_s[i] / sum : 0.0, t.phase_s[i] * 1e3);
    return ST_OK;
}
