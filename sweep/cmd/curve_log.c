/* curve_log.c - writes reports of a training to files that other programs read. */
#include "sweep/cmd/curve_log.h"

#include "base/os/file.h"
#include "base/text/json.h"
#include "study/exchange/event_file.h"
#include "trainer/trainer.h"

#include <sys/stat.h>
#include <linux/limits.h>

struct curve_log {
    FILE *csv, *jsonl;
    struct event_file *events;
    const struct env_def *env; /* borrowed */
    struct event_value *values; /* (train_metrics_count(env)) of a report; owned */
    char dir[PATH_MAX];
    bool failed; /* it was logged */
};

static enum status open_one(const char *dir, const char *name, bool append, FILE **ret_file, bool *ret_new,
                            struct error *err)
{
    char path[PATH_MAX + 32];

    snprintf(path, sizeof path, "%s/%s", dir, name);
    *ret_new = !file_exists(path);
    if (!append && !*ret_new)
        return FAIL(err, ST_EXISTS, "train: %s already exists, from another run; name another folder with --log-dir",
                    path);
    *ret_file = fopen(path, "ae");
    return *ret_file != NULL ? ST_OK : FAIL(err, ST_IO, "train: %s cannot be written: %s", path, strerror(errno));
}

enum status curve_log_open(struct curve_log **ret_log, const struct env_def *env, const char *dir, bool append,
                           struct error *err)
{
    struct curve_log *log;
    bool is_new = false, ignored;

    if (strlen(dir) >= PATH_MAX)
        return FAIL(err, ST_USAGE, "train: the path of --log-dir is too long");
    if (mkdir(dir, 0777) != 0 && errno != EEXIST)
        return FAIL(err, ST_IO, "train: the folder %s cannot be created: %s", dir, strerror(errno));
    log = mem_alloc(sizeof *log);
    snprintf(log->dir, sizeof log->dir, "%s", dir);
    enum status rc = open_one(dir, "metrics.csv", append, &log->csv, &is_new, err);
    THEN(rc, open_one(dir, "metrics.jsonl", append, &log->jsonl, &ignored, err));
    THEN(rc, event_file_open(&log->events, dir, err));
    if (rc != ST_OK) {
        curve_log_close(log);
        return rc;
    }
    log->env = env;
    log->values = mem_array(train_metrics_count(env), sizeof *log->values);
    for (size_t i = 0; is_new && i < train_metrics_count(env); i++)
        fprintf(log->csv, "%s%s", i > 0 ? "," : "", train_metrics_name(env, i));
    if (is_new)
        fputs("\n", log->csv);
    *ret_log = log;
    return ST_OK;
}

void curve_log_add(struct curve_log *log, const struct train_metrics *metrics)
{
    char number[NUM_TEXT_MAX];
    struct error why = {0};

    if (log == NULL)
        return;
    JSON_LOCAL cJSON *json = cJSON_CreateObject();
    for (size_t i = 0; i < train_metrics_count(log->env); i++) {
        double value = train_metrics_value(metrics, i);
        log->values[i] = (struct event_value){.tag = train_metrics_name(log->env, i), .value = value};
        fprintf(log->csv, "%s%s", i > 0 ? "," : "", isnan(value) ? "" : num_format_f64(value, number));
        if (!isnan(value))
            json_add_f64(json, train_metrics_name(log->env, i), value);
    }
    MEM_LOCAL char *text = json_print(json, false);
    fputs("\n", log->csv);
    fprintf(log->jsonl, "%s\n", text);
    event_file_add(log->events, (double)clock_utc_ms() / 1000, metrics->env_steps, log->values,
                   train_metrics_count(log->env));
    if ((fflush(log->csv) != 0 || fflush(log->jsonl) != 0 || event_file_flush(log->events, &why) != ST_OK) &&
        !log->failed) {
        log->failed = true;
        log_warn("%s: a report cannot be written (%s), continuing without", log->dir,
                 why.text[0] != '\0' ? why.text : strerror(errno));
    }
}

void curve_log_close(struct curve_log *log)
{
    if (log == NULL)
        return;
    if (log->csv != NULL)
        fclose(log->csv);
    if (log->jsonl != NULL)
        fclose(log->jsonl);
    event_file_close(log->events);
    mem_free(log->values);
    mem_free(log);
}
