/* cmd_bench.c - `trawl bench`: steps per second of a game alone, and of whole training, on this machine.
 * Invariant: every number is the median of repeats, with the lowest and the highest beside it. */
#include "base/os/machine.h"
#include "study/setup/setup.h"
#include "study/version.h"
#include "sweep/cmd/bench/bench.h"
#include "sweep/cmd/commands.h"

struct bench_spread bench_spread_of(double *values, int64_t n)
{
    num_sort(values, (size_t)n);
    return (struct bench_spread){.median = n % 2 ? values[n / 2] : 0.5 * (values[n / 2 - 1] + values[n / 2]),
                                 .min = values[0],
                                 .max = values[n - 1]};
}

void bench_add_spread(cJSON *json, const char *name, const struct bench_spread *s)
{
    char min[64], max[64];

    snprintf(min, sizeof min, "%s_min", name);
    snprintf(max, sizeof max, "%s_max", name);
    json_add_f64(json, name, s->median);
    json_add_f64(json, min, s->min);
    json_add_f64(json, max, s->max);
}

void bench_add_machine(cJSON *json, const char *device)
{
    json_add_str(json, "device", device);
    json_add_str(json, "commit", program_commit);
    json_add_str(json, "version", program_version);
    json_add_i64(json, "memory_bytes", (int64_t)machine_memory_bytes());
}

static enum status check_usage(const struct bench *b, const struct cli_words *words, struct error *err)
{
    if (strcmp(words->v[0], "env") != 0 && strcmp(words->v[0], "train") != 0)
        return FAIL(err, ST_USAGE, "bench: '%s' is not known; `trawl bench env NAME` or `trawl bench train CONFIG`",
                    words->v[0]);
    if (b->repeats < 1 || b->repeats > BENCH_MAX_REPEATS)
        return FAIL(err, ST_USAGE, "bench: --repeats is %lld, 1 to %d are allowed", (long long)b->repeats,
                    BENCH_MAX_REPEATS);
    if (b->envs < 1 || b->envs > 10000000)
        return FAIL(err, ST_USAGE, "bench: --envs is %lld, 1 to 10000000 are allowed", (long long)b->envs);
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
    struct bench b = {.repeats = 5, .threads = -1, .envs = 1024, .seconds = 1, .device = "cpu", .precision = "f32"};
    struct cli_words words;
    const struct cli_opt opts[] = {
        {"repeats", 0, CLI_INT, &b.repeats, "N", "number of measurements, of which the median counts (5)"},
        {"seconds", 0, CLI_SECONDS, &b.seconds, "TIME", "length of each repeat (1s)"},
        {"threads", 0, CLI_INT, &b.threads, "N", "0: one per core (env: 1, train: the config's)"},
        {"envs", 0, CLI_INT, &b.envs, "N", "env: games in the batch (1024)"},
        {"device", 0, CLI_TEXT, &b.device, "NAME", "env: cpu or cuda (cpu; train: the config's train.device)"},
        {"precision", 0, CLI_TEXT, &b.precision, "TYPE", "env: observations as f32 or bf16 (f32)"},
        {"json", 0, CLI_FLAG, &b.json, NULL, "print one JSON object"},
    };
    const struct cli cli = {
        .name = "bench",
        .synopsis =
            "trawl bench env NAME [options]\n       trawl bench train CONFIG|ENV [--section.key value ...] [options]",
        .about = "Measures a game alone under random actions, or whole training with its phases and the share of the\n"
                 "machine's matrix rate that it reaches. Run it on a quiet machine. Single operations and methods of\n"
                 "search are measured by trawl-bench, a program of its own in the build folder's bench/.",
        .examples = "  trawl bench env breakout --json\n"
                    "  trawl bench env breakout --device cuda --precision bf16 --envs 32768\n"
                    "  trawl bench train breakout --train.total_agents 1024 --train.horizon 64 --threads 1",
        CLI_OPTS(opts),
        CLI_WORDS(2, 2, "'env NAME' or 'train CONFIG'"),
    };
    enum status rc = setup_create(&b.setup, err);

    THEN(rc, config_take_args(b.setup->config, &argc, argv, err));
    THEN(rc, cli_parse_beside(&cli, b.setup->config, argc, argv, &words, err));
    if (rc == ST_OK && !words.help)
        rc = check_usage(&b, &words, err);
    if (rc == ST_OK && !words.help)
        rc = run(&b, &words, err);
    session_close(&b.session);
    setup_destroy(b.setup);
    return rc;
}
