/* cmd_bench.c - `trawl bench`: steps per second of a game alone, and of whole training, on this machine.
 * Invariant: every number is the median of repeats, with the lowest and the highest beside it. */
#include "sweep/bench.h"
#include "sweep/bench_sweep.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/machine.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/pool.h"
#include "kernels/kernels.h"

#define N_ACTION_SETS 16 /* random actions made before the clock starts, used in turn */

static int compare_f64(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

struct bench_spread bench_spread_of(double *values, int64_t n)
{
    qsort(values, (size_t)n, sizeof *values, compare_f64);
    return (struct bench_spread){.median = n % 2 ? values[n / 2] : 0.5 * (values[n / 2 - 1] + values[n / 2]),
                                 .min = values[0],
                                 .max = values[n - 1]};
}

bool bench_add_spread(cJSON *json, const char *name, const struct bench_spread *s)
{
    char min[64], max[64];

    snprintf(min, sizeof min, "%s_min", name);
    snprintf(max, sizeof max, "%s_max", name);
    return json_add_f64(json, name, s->median) && json_add_f64(json, min, s->min) && json_add_f64(json, max, s->max);
}

bool bench_add_machine(cJSON *json, const char *device)
{
    return json_add_str(json, "device", device) && json_add_str(json, "commit", program_commit) &&
           json_add_str(json, "version", program_version) &&
           json_add_i64(json, "memory_bytes", (int64_t)machine_memory_bytes());
}

/* ---- a game alone ---- */

struct env_bench {
    struct env_batch *batch;
    struct pool *pool;
    struct env_io io;
    int32_t *actions; /* (N_ACTION_SETS, A, n_heads) */
    size_t agents, n_heads;
};

static void env_bench_free(struct env_bench *b)
{
    env_batch_destroy(b->batch);
    pool_destroy(b->pool);
    mem_free(b->actions);
    mem_free(b->io.rewards);
    mem_free(b->io.terms);
    mem_free(b->io.truncs);
    mem_free(b->io.obs);
    mem_free(b->io.final_obs);
    mem_free(b->io.mask);
}

static enum status env_bench_create(struct env_bench *b, const struct setup *setup, const struct bench *options,
                                    struct error *err)
{
    const struct env_shape *shape;
    struct rng rng = rng_seed(1);
    size_t n_actions;

    TRY(env_batch_create(&b->batch, setup->env, setup->env_settings, (size_t)options->envs, rng, err));
    TRY(pool_create(&b->pool, (size_t)options->threads, err));
    shape = env_batch_shape(b->batch);
    b->agents = env_batch_agents(b->batch);
    b->n_heads = (size_t)shape->n_heads;
    n_actions = b->agents * b->n_heads;
    b->actions = mem_array2(N_ACTION_SETS, n_actions, sizeof *b->actions);
    b->io.rewards = mem_array(b->agents, sizeof *b->io.rewards);
    b->io.terms = mem_array(b->agents, 1);
    b->io.truncs = mem_array(b->agents, 1);
    b->io.obs = mem_array2(b->agents, (size_t)shape->obs_size, sizeof *b->io.obs);
    b->io.final_obs = mem_array2(b->agents, (size_t)shape->obs_size, sizeof *b->io.final_obs);
    if (b->actions == NULL || b->io.rewards == NULL || b->io.terms == NULL || b->io.truncs == NULL ||
        b->io.obs == NULL || b->io.final_obs == NULL)
        return FAIL(err, ST_NOMEM, "out of memory for %lld games; lower --envs", (long long)options->envs);
    if (shape->has_mask) {
        size_t logits = 0;
        for (int h = 0; h < shape->n_heads; h++)
            logits += (size_t)shape->head_sizes[h];
        b->io.mask = mem_array2(b->agents, logits, 1);
        if (b->io.mask == NULL)
            return FAIL(err, ST_NOMEM, "out of memory for %lld games; lower --envs", (long long)options->envs);
    }
    for (size_t i = 0; i < N_ACTION_SETS * n_actions; i++)
        b->actions[i] = (int32_t)rng_below(&rng, (uint32_t)shape->head_sizes[i % b->n_heads]);
    env_batch_reset(b->batch, b->pool, b->io.obs, b->io.mask);
    return ST_OK;
}

/* Agent steps per second over about `seconds`. */
static double env_bench_run(struct env_bench *b, double seconds)
{
    double start = clock_mono_s(), now;
    size_t steps = 0;

    do {
        for (int i = 0; i < N_ACTION_SETS; i++) {
            b->io.actions = b->actions + (size_t)i * b->agents * b->n_heads;
            env_batch_step(b->batch, b->pool, &b->io);
        }
        steps += N_ACTION_SETS * b->agents;
        now = clock_mono_s();
    } while (now - start < seconds);
    return (double)steps / (now - start);
}

static enum status print_env(const struct bench *o, const struct env_bench *b, const struct bench_spread *rate,
                             struct error *err)
{
    size_t threads = pool_size(b->pool);
    struct bench_spread per_core = {rate->median / (double)threads, rate->min / (double)threads,
                                    rate->max / (double)threads};
    struct kern *kern = NULL;
    struct kern_settings settings = {.kind = KERN_CPU, .n_threads = threads};
    char text[NUM_TEXT_MAX], low[NUM_TEXT_MAX], high[NUM_TEXT_MAX];

    if (!o->json) {
        printf("%s: %s steps/s on %zu thread(s) (%s to %s over %lld repeats, %lld games)\n", o->setup->env->name,
               num_format_short(rate->median, text), threads, num_format_short(rate->min, low),
               num_format_short(rate->max, high), (long long)o->repeats, (long long)o->envs);
        return ST_OK;
    }
    TRY(kern_open(&kern, &settings, err));
    cJSON *json = cJSON_CreateObject();
    bool ok = json != NULL && json_add_str(json, "bench", "env") && json_add_str(json, "env", o->setup->env->name) &&
              bench_add_spread(json, "steps_per_s", rate) &&
              bench_add_spread(json, "steps_per_s_per_core", &per_core) &&
              json_add_i64(json, "threads", (int64_t)threads) && json_add_i64(json, "envs", o->envs) &&
              json_add_i64(json, "repeats", o->repeats) && json_add_f64(json, "seconds", o->seconds) &&
              bench_add_machine(json, kern_device_name(kern));
    kern_close(kern);
    if (!ok) {
        cJSON_Delete(json);
        json = NULL;
    }
    return cli_print_json(json, err);
}

static enum status bench_env(const struct bench *o, struct error *err)
{
    struct env_bench b = {0};
    double rates[BENCH_MAX_REPEATS];
    enum status rc = env_bench_create(&b, o->setup, o, err);

    if (rc == ST_OK) {
        (void)env_bench_run(&b, 0.1 * o->seconds); /* warm */
        for (int64_t i = 0; i < o->repeats; i++)
            rates[i] = env_bench_run(&b, o->seconds);
        struct bench_spread rate = bench_spread_of(rates, o->repeats);
        rc = print_env(o, &b, &rate, err);
    }
    env_bench_free(&b);
    return rc;
}

static enum status check_usage(const struct bench *b, const struct cli_words *words, struct error *err)
{
    if (strcmp(words->v[0], "env") != 0 && strcmp(words->v[0], "train") != 0)
        return FAIL(err, ST_USAGE, "bench: '%s' is not known; `trawl bench env NAME` or `trawl bench train CONFIG`",
                    words->v[0]);
    if (b->repeats < 1 || b->repeats > BENCH_MAX_REPEATS)
        return FAIL(err, ST_USAGE, "bench: --repeats is %lld, 1 to %d are possible", (long long)b->repeats,
                    BENCH_MAX_REPEATS);
    if (b->envs < 1 || b->envs > 10000000)
        return FAIL(err, ST_USAGE, "bench: --envs is %lld, 1 to 10000000 are possible", (long long)b->envs);
    return ST_OK;
}

static enum status run(struct bench *b, const struct cli_words *words, struct error *err)
{
    char threads[32];
    bool of_env = strcmp(words->v[0], "env") == 0;

    if (b->threads >= 0) {
        snprintf(threads, sizeof threads, "%lld", (long long)b->threads);
        TRY(config_set(b->setup->config, CONFIG_COMMAND, "train.threads", threads, "--threads", err));
    }
    TRY(setup_load(b->setup, words->v[1], err));
    TRY(setup_finish(b->setup, err));
    if (!of_env)
        return bench_train(b, err);
    if (b->threads < 0)
        b->threads = 1;
    return bench_env(b, err);
}

enum status cmd_bench(int argc, char **argv, struct error *err)
{
    if (argc > 1 && strcmp(argv[1], "sweep") == 0)
        return bench_sweep(argc - 1, argv + 1, err);
    if (argc > 1 && strcmp(argv[1], "evaluate") == 0)
        return bench_evaluate(argc - 1, argv + 1, err);
    if (argc > 1 && strcmp(argv[1], "front") == 0)
        return bench_front(argc - 1, argv + 1, err);

    struct bench b = {.repeats = 5, .threads = -1, .envs = 1024, .seconds = 1};
    struct cli_words words;
    const struct cli_opt opts[] = {
        {"repeats", 0, CLI_INT, &b.repeats, "N", "measure this often, give the median (5)"},
        {"seconds", 0, CLI_SECONDS, &b.seconds, "TIME", "length of each repeat (1s)"},
        {"threads", 0, CLI_INT, &b.threads, "N", "0: one per core (env: 1, train: the config's)"},
        {"envs", 0, CLI_INT, &b.envs, "N", "env: games in the batch (1024)"},
        {"json", 0, CLI_FLAG, &b.json, NULL, "print one JSON object"},
    };
    const struct cli cli = {
        .name = "bench",
        .synopsis =
            "trawl bench env NAME [options]\n       trawl bench train CONFIG|ENV [--section.key value ...] [options]\n"
            "       trawl bench sweep|evaluate|front [options]",
        .about = "Measures a game alone under random actions, or whole training with its phases and the share of the "
                 "machine's\n"
                 "matrix rate that it reaches. Run it on a quiet machine. `trawl bench sweep --help`: the methods of "
                 "sweeps measured.",
        .examples = "  trawl bench env breakout --json\n"
                    "  trawl bench train breakout --train.total_agents 1024 --train.horizon 64 --threads 1",
        .opts = opts,
        .n_opts = sizeof opts / sizeof opts[0],
        .min_words = 2,
        .max_words = 2,
        .words_text = "'env NAME' or 'train CONFIG'",
    };
    enum status rc = setup_create(&b.setup, err);

    if (rc == ST_OK)
        rc = config_take_args(b.setup->config, &argc, argv, err);
    if (rc == ST_OK)
        rc = cli_parse(&cli, argc, argv, &words, err);
    if (rc == ST_OK && !words.help)
        rc = check_usage(&b, &words, err);
    if (rc == ST_OK && !words.help)
        rc = run(&b, &words, err);
    run_close(&b.run);
    setup_destroy(b.setup);
    return rc;
}
