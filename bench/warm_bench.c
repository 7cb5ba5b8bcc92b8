/* warm_bench.c - what the start of a trial costs in a worker that lives on, and whether memory grows over many.
 *
 * usage: build/bench/warm_bench TRIALS STEPS   trials of breakout, back to back on one GPU, as JSON
 * A start is trainer_create_cached, trainer_iterate, trainer_sync, less what one more iteration of the same trainer takes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "base/config.h"
#include "trainer/trainer.h"

#define FAIL_MAIN(err)                                                                                                 \
    do {                                                                                                               \
        fprintf(stderr, "%s\n", (err).text);                                                                           \
        return 1;                                                                                                      \
    } while (0)

static const char *const lines[][2] = {
    {"policy.core", "mingru"},      {"policy.hidden_size", "128"}, {"policy.num_layers", "1"},
    {"train.total_agents", "4096"}, {"train.horizon", "64"},       {"train.minibatch_size", "32768"},
    {"train.replay_ratio", "1"},    {"train.optimizer", "muon"},   {"train.learning_rate", "0.01"},
};

static long resident_kb(void)
{
    FILE *file = fopen("/proc/self/statm", "r");
    long all = 0, resident = 0;

    if (file != NULL) {
        if (fscanf(file, "%ld %ld", &all, &resident) != 2)
            resident = 0;
        fclose(file);
    }
    return resident * 4;
}

static enum status make(struct policy_settings *policy, struct train_settings *train, void *env,
                        const struct env_def *def, struct error *err)
{
    struct config *config = NULL;

    TRY(config_create(&config, err));
    TRY(config_add_table(config, &policy_opt_table, err));
    TRY(config_add_table(config, &train_opt_table, err));
    TRY(config_add_table(config, &def->options, err));
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
        TRY(config_set(config, CONFIG_COMMAND, lines[i][0], lines[i][1], "bench", err));
    TRY(config_resolve(config, err));
    TRY(config_fill(config, &policy_opt_table, policy, err));
    TRY(config_fill(config, &train_opt_table, train, err));
    TRY(config_fill(config, &def->options, env, err));
    config_destroy(config);
    return ST_OK;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
    const struct env_def *def = env_find("breakout");
    struct kern_settings settings = {.kind = KERN_CUDA};
    struct policy_settings policy;
    struct train_settings train;
    struct trainer_cache *cache = NULL;
    struct error err = {0};
    struct kern *kern = NULL;
    int n = argc > 1 ? atoi(argv[1]) : 200;
    double *start_ms = calloc((size_t)n, sizeof *start_ms), open_s = clock_mono_s(), all_s;
    void *env = calloc(1, def->options.settings_size);
    long first_kb = 0;
    size_t first_left = 0;

    if (n < 4 || start_ms == NULL || env == NULL)
        return 2;
    if (make(&policy, &train, env, def, &err) != ST_OK || kern_open(&kern, &settings, &err) != ST_OK ||
        trainer_cache_create(&cache, &err) != ST_OK)
        FAIL_MAIN(err);
    train.total_timesteps = argc > 2 ? atoll(argv[2]) : 20000000;
    printf("{\"device\": \"%s\", \"open_s\": %.3f, ", kern_device_name(kern), clock_mono_s() - open_s);
    all_s = clock_mono_s();
    for (int i = 0; i < n; i++) {
        struct train_result result;
        struct trainer *t = NULL;
        double create_s = clock_mono_s(), first_s, one_s;

        train.seed = i;
        if (i > 0 && i % 10 == 0) /* now and then another shape */
            policy.hidden_size = policy.hidden_size == 128 ? 64 : 128;
        if (trainer_create_cached(&t, cache, kern, def, env, &policy, &train, &err) != ST_OK ||
            trainer_iterate(t, &err) != ST_OK || trainer_sync(t, &err) != ST_OK)
            FAIL_MAIN(err);
        first_s = clock_mono_s() - create_s;
        if (trainer_run(t, NULL, &result, &err) != ST_OK)
            FAIL_MAIN(err);
        one_s = result.cost_s * (double)(train.total_agents * train.horizon) / (double)result.env_steps;
        start_ms[i] = (first_s - one_s) * 1e3;
        trainer_destroy(t);
        if (i == 20) {
            first_kb = resident_kb();
            first_left = kern_memory_bytes(kern);
        }
    }
    all_s = clock_mono_s() - all_s;
    printf("\"trials\": %d, \"seconds\": %.2f, \"start_ms_first\": %.2f, \"start_ms_new_shape\": %.2f, ", n, all_s,
           start_ms[0], n > 10 ? start_ms[10] : 0.0);
    if (n > 20)
        printf("\"grown_host_kb_since_20\": %ld, \"grown_device_bytes_since_20\": %lld, ", resident_kb() - first_kb,
               (long long)first_left - (long long)kern_memory_bytes(kern));
    start_ms[0] = start_ms[n > 10 ? 10 : 0] = 0.0;
    qsort(start_ms, (size_t)n, sizeof *start_ms, compare);
    printf("\"start_ms_known_median\": %.2f, \"start_ms_known_max\": %.2f}\n", start_ms[n / 2], start_ms[n - 1]);
    trainer_cache_destroy(cache);
    kern_close(kern);
    free(start_ms);
    free(env);
    return 0;
}
