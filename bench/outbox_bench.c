/* outbox_bench.c - how many rows of metrics a second the store takes together with their news for the trackers.
 *
 * usage: ninja -C build bench/outbox_bench && build/bench/outbox_bench STORE [SECONDS] (STORE must not exist). One
 * transaction for each row, as a sweep does it: 24 numbers of a learning curve, and the outbox row that tells them, built as
 * JSON from the worker's message. The second line is without outbox rows: the difference is what trackers cost a sweep. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/mem.h"
#include "store/store.h"

#define N_VALUES 24

static const char *const names[N_VALUES] = {"env_steps",
                                            "updates",
                                            "wall_s",
                                            "steps_per_s",
                                            "episodes",
                                            "score",
                                            "perf",
                                            "ep_return",
                                            "ep_length",
                                            "train/policy_loss",
                                            "train/value_loss",
                                            "train/entropy",
                                            "train/approx_kl",
                                            "train/clip_fraction",
                                            "train/explained_variance",
                                            "train/grad_norm",
                                            "train/lr",
                                            "profile/env",
                                            "profile/forward",
                                            "profile/copy",
                                            "profile/advantage",
                                            "profile/loss",
                                            "profile/optimiser",
                                            "profile/other"};

static cJSON *message(int64_t step)
{
    cJSON *json = cJSON_CreateObject(), *values = cJSON_AddObjectToObject(json, "values");

    (void)json_add_str(json, "type", "metrics");
    (void)json_add_i64(json, "env_steps", step);
    (void)json_add_f64(json, "wall_s", (double)step * 1e-5);
    for (size_t i = 0; i < N_VALUES; i++)
        (void)json_add_f64(values, names[i], sin((double)step + (double)i) * 1e3);
    return json;
}

/* Rows in so many seconds, one transaction each; with: their text for the trackers too. */
static enum status measure(struct store *store, const struct trial *trial, bool with, double seconds, int64_t *step,
                           struct error *err)
{
    double begin_s = clock_mono_s(), end_s;
    int64_t n = 0;

    do {
        cJSON *json = message(++*step);
        char *text = with ? json_print(json, false) : NULL;
        struct metric_point points[N_VALUES];
        for (size_t i = 0; i < N_VALUES; i++)
            points[i] = (struct metric_point){.env_steps = *step, .wall_s = 1, .name = names[i], .value = (double)i};
        enum status rc = store_metrics_add(store, trial->id, points, N_VALUES, text, err);
        mem_free(text);
        cJSON_Delete(json);
        if (rc != ST_OK)
            return rc;
        n++;
        end_s = clock_mono_s();
    } while (end_s - begin_s < seconds);
    printf("%-32s %8.0f rows/s\n", with ? "24 numbers and their outbox row" : "24 numbers alone",
           (double)n / (end_s - begin_s));
    return ST_OK;
}

static enum status measure_outbox(struct store *store, int64_t study_id, int64_t trial_id, double seconds,
                                  struct error *err)
{
    cJSON *json = message(1);
    char *text = json_print(json, false);
    double begin_s = clock_mono_s(), end_s;
    int64_t n = 0;
    enum status rc;

    do {
        rc = store_outbox_add(store, study_id, trial_id, text, err);
        n++;
        end_s = clock_mono_s();
    } while (rc == ST_OK && end_s - begin_s < seconds);
    printf("%-32s %8.0f rows/s (%zu bytes each)\n", "outbox rows alone", (double)n / (end_s - begin_s), strlen(text));
    mem_free(text);
    cJSON_Delete(json);
    return rc;
}

int main(int argc, char **argv)
{
    struct error err = {0};
    struct store *store = NULL;
    struct study study = {.name = "bench",
                          .config = "",
                          .space = "{}",
                          .method = "sobol",
                          .metric = "score",
                          .maximize = true,
                          .trials_max = 1,
                          .program = "outbox_bench"};
    struct trial trial = {.params = "{}", .config = "", .origin = "bench"};
    double seconds = argc > 2 ? atof(argv[2]) : 3;
    int64_t step = 0;
    enum status rc = argc > 1 ? store_open_writer(&store, argv[1], &err) : FAIL(&err, ST_USAGE, "give a path");

    if (rc == ST_OK)
        rc = store_study_create(store, &study, &err);
    trial.study_id = study.id;
    if (rc == ST_OK)
        rc = store_trial_create(store, &trial, &err);
    if (rc == ST_OK)
        rc = store_trial_start(store, trial.id, "cpu", NULL, &err);
    if (rc == ST_OK)
        rc = measure(store, &trial, true, seconds, &step, &err);
    if (rc == ST_OK)
        rc = measure(store, &trial, false, seconds, &step, &err);
    if (rc == ST_OK)
        rc = measure_outbox(store, study.id, trial.id, seconds, &err);
    if (rc != ST_OK)
        fprintf(stderr, "outbox_bench: %s\n", err.text);
    store_close(store);
    return status_exit_code(rc);
}
