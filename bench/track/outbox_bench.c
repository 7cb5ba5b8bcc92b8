/* outbox_bench.c - how many reports a second the controller takes in: from the worker's line to the commit of its
 * numbers and of the outbox row that tells them to every tracker.
 *
 * usage: ninja -C build bench/outbox_bench && build/bench/outbox_bench STORE [SECONDS] (STORE must not exist). A report
 * is one row of a run's history: 24 numbers and the row for the outbox. It is parsed from the worker's line, its row is
 * made of that line's text, and both go into the store, as sweep/controller/trial/flight.c does it: those that wait
 * when the controller looks go in one transaction, so with one in each it is not busy and with 64 it is as busy as it
 * can be. Making the line is the worker's and is not counted. Prints one line of JSON for each way. */

#include "base/text/json.h"
#include "store/store.h"
#include "sweep/controller/trial/reports.h"
#include "sweep/controller/trial/track_rows.h"

#define N_VALUES 24

static cJSON *message(int64_t step)
{
    cJSON *json = cJSON_CreateObject(), *values = cJSON_AddObjectToObject(json, "values");

    json_add_str(json, "type", "metrics");
    json_add_i64(json, "env_steps", step);
    json_add_f64(json, "wall_s", (double)step * 1e-5);
    for (size_t i = 0; i < N_VALUES; i++) {
        char name[32];
        snprintf(name, sizeof name, "train/some_metric_%zu", i);
        json_add_f64(values, name, sin((double)step + (double)i) * 1e3);
    }
    return json;
}

/* From the worker's line to a report that waits, as the controller does it. */
static enum status take_in(struct reports *reports, struct store *store, const char *line, bool with, int64_t trial_id,
                           struct error *err)
{
    struct metric_report report;
    cJSON *json;

    TRY(json_parse(line, strlen(line), &json, err));
    bool ok = report_parse(json, trial_id, 1, &report);
    if (ok && with)
        report.outbox_json = track_rows_metrics_text(&report);
    cJSON_Delete(json);
    return ok ? reports_add(reports, store, &report, err) : FAIL(err, ST_INTERNAL, "no report");
}

/* Of this thread: what others do on the machine does not count. */
static double processor_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Reports for `seconds`, `batch` in each transaction; with: their rows for the trackers too. */
static enum status measure(struct store *store, const struct trial *trial, bool with, size_t batch, double seconds,
                           int64_t *step, struct error *err)
{
    MEM_LOCAL struct reports *reports = mem_alloc(sizeof *reports);
    MEM_LOCAL char **lines = mem_array(batch, sizeof *lines);
    double spent_s = 0, busy_s = 0;
    enum status rc = ST_OK;
    int64_t n = 0;

    while (rc == ST_OK && spent_s < seconds) {
        for (size_t i = 0; i < batch; i++) {
            cJSON *json = message(++*step);
            lines[i] = json_print(json, false);
            cJSON_Delete(json);
        }
        double begin_s = clock_mono_s(), begin_busy_s = processor_s();
        for (size_t i = 0; rc == ST_OK && i < batch; i++)
            rc = take_in(reports, store, lines[i], with, trial->id, err);
        THEN(rc, reports_flush(reports, err));
        spent_s += clock_mono_s() - begin_s;
        busy_s += processor_s() - begin_busy_s;
        for (size_t i = 0; i < batch; i++)
            mem_free(lines[i]);
        n += (int64_t)batch;
    }
    if (rc == ST_OK)
        printf("{\"what\": \"%s\", \"in_a_transaction\": %zu, \"reports_per_s\": %.0f, \"processor_us_per_report\": "
               "%.1f}\n",
               with ? "24 numbers and their outbox row" : "24 numbers", batch, (double)n / spent_s,
               busy_s / (double)n * 1e6);
    fflush(stdout);
    return rc;
}

static enum status measure_outbox(struct store *store, int64_t study_id, int64_t trial_id, double seconds,
                                  struct error *err)
{
    JSON_LOCAL cJSON *json = message(1);
    MEM_LOCAL char *text = json_print(json, false);
    double begin_s = clock_mono_s(), end_s;
    int64_t n = 0;
    enum status rc;

    do {
        rc = store_outbox_add(store, study_id, trial_id, text, err);
        n++;
        end_s = clock_mono_s();
    } while (rc == ST_OK && end_s - begin_s < seconds);
    printf("{\"what\": \"outbox rows of %zu bytes\", \"in_a_transaction\": 1, \"rows_per_s\": %.0f}\n", strlen(text),
           (double)n / (end_s - begin_s));
    return rc;
}

int main(int argc, char **argv)
{
    struct error err = {0};
    AT_END(store_close_at) struct store *store = NULL;
    struct study study = {.name = "bench",
                          .config = "",
                          .space = "{}",
                          .method = "sobol",
                          .metric = "score",
                          .maximize = true,
                          .limits.trials_max = 1,
                          .program = "outbox_bench"};
    struct trial trial = {.params = "{}", .config = "", .origin = "bench"};
    double seconds = argc > 2 ? atof(argv[2]) : 3;
    int64_t step = 0;
    enum status rc = argc > 1 ? store_open_writer(&store, argv[1], &err) : FAIL(&err, ST_USAGE, "give a path");

    THEN(rc, store_study_create(store, &study, &err));
    trial.study_id = study.id;
    THEN(rc, store_trial_create(store, &trial, &err));
    THEN(rc, store_trial_start(store, trial.id, "cpu", NULL, &err));
    for (size_t batch = 1; rc == ST_OK && batch <= 64; batch *= 8)
        rc = measure(store, &trial, true, batch, seconds, &step, &err);
    THEN(rc, measure(store, &trial, false, 64, seconds, &step, &err));
    THEN(rc, measure_outbox(store, study.id, trial.id, seconds, &err));
    if (rc != ST_OK)
        fprintf(stderr, "outbox_bench: %s\n", err.text);
    return status_exit_code(rc);
}
