/* report_data.c - the report for programs: CSV (RFC 4180) with a row for each trial, and JSON. */
#include "web/report_priv.h"

#include "base/mem.h"
#include "base/num.h"

#include <math.h>
#include <string.h>

/* The trial's params as JSON; NULL when they are none (a row written by hand): such values stay empty. */
static cJSON *parse_params(const struct trial *trial)
{
    cJSON *params = NULL;

    if (trial->params == NULL || json_parse(trial->params, strlen(trial->params), &params, NULL) != ST_OK)
        return NULL;
    return params;
}

void report_param_text(struct strbuf *out, const cJSON *params, const char *key, bool for_people)
{
    char buf[REPORT_TEXT_MAX];
    const cJSON *value = params != NULL ? cJSON_GetObjectItemCaseSensitive(params, key) : NULL;

    if (cJSON_IsString(value))
        strbuf_add(out, value->valuestring);
    else if (cJSON_IsBool(value))
        strbuf_add(out, cJSON_IsTrue(value) ? "true" : "false");
    else if (cJSON_IsNumber(value))
        strbuf_add(out, for_people ? text_number(value->valuedouble, buf) : num_format_f64(value->valuedouble, buf));
}

/* -- CSV -- */

static void csv_text(struct strbuf *out, const char *text)
{
    if (text == NULL)
        return;
    if (text[strcspn(text, ",\"\r\n")] == '\0') {
        strbuf_add(out, text);
        return;
    }
    strbuf_add(out, "\"");
    for (const char *c = text; *c != '\0'; c++) {
        strbuf_add_n(out, c, 1);
        if (*c == '"')
            strbuf_add(out, "\"");
    }
    strbuf_add(out, "\"");
}

static void csv_f64(struct strbuf *out, double value)
{
    char buf[NUM_TEXT_MAX];

    if (!isnan(value)) /* unknown: an empty field */
        strbuf_add(out, num_format_f64(value, buf));
}

static void csv_time(struct strbuf *out, int64_t ms)
{
    if (ms != 0)
        strbuf_addf(out, "%lld", (long long)ms);
}

static enum status csv_row(struct strbuf *out, const struct report *report, size_t i, struct error *err)
{
    const struct trial *trial = &report->trials[i];
    cJSON *params = parse_params(trial);
    struct strbuf value;

    strbuf_addf(out, "%lld,%s,", (long long)trial->number, trial_state_name(trial->state));
    csv_f64(out, trial->score);
    strbuf_add(out, ",");
    csv_f64(out, trial->perf);
    strbuf_add(out, ",");
    csv_f64(out, trial->cost_s);
    strbuf_add(out, ",");
    csv_f64(out, trial->device_s);
    strbuf_addf(out, ",%lld,%lld,%lld,", (long long)trial->env_steps, (long long)trial->seed,
                (long long)trial->attempt);
    csv_text(out, trial->origin);
    strbuf_addf(out, ",%s,", report->on_front[i] ? "true" : "false");
    csv_text(out, trial->device);
    strbuf_add(out, ",");
    csv_text(out, trial->reason);
    strbuf_add(out, ",");
    csv_time(out, trial->created_ms);
    strbuf_add(out, ",");
    csv_time(out, trial->started_ms);
    strbuf_add(out, ",");
    csv_time(out, trial->finished_ms);
    strbuf_init(&value, JSON_MAX_BYTES);
    for (size_t k = 0; k < report->space->dim; k++) {
        strbuf_clear(&value);
        report_param_text(&value, params, report->space->params[k].key, false);
        strbuf_add(out, ",");
        csv_text(out, value.text);
    }
    strbuf_add(out, "\r\n");
    enum status rc = strbuf_status(&value, "a parameter's value", err);
    strbuf_free(&value);
    cJSON_Delete(params);
    return rc;
}

enum status report_write_csv(struct strbuf *out, const struct report *report, struct error *err)
{
    strbuf_add(
        out, "number,state,score,perf,cost_s,device_s,env_steps,seed,attempt,origin,on_front,device,reason,created_ms,"
             "started_ms,finished_ms");
    for (size_t k = 0; k < report->space->dim; k++) {
        strbuf_add(out, ",");
        csv_text(out, report->space->params[k].key);
    }
    strbuf_add(out, "\r\n");
    for (size_t i = 0; i < report->n_trials; i++)
        TRY(csv_row(out, report, i, err));
    return ST_OK;
}

/* -- JSON -- */

static bool add_f64(cJSON *object, const char *key, double value)
{
    return isnan(value) ? json_add_str(object, key, NULL) : json_add_f64(object, key, value);
}

static bool add_time(cJSON *object, const char *key, int64_t ms)
{
    return ms == 0 ? json_add_str(object, key, NULL) : json_add_i64(object, key, ms);
}

/* Takes item; false when it or its place could not be made. */
static bool append(cJSON *array, cJSON *item)
{
    if (item != NULL && cJSON_AddItemToArray(array, item))
        return true;
    cJSON_Delete(item);
    return false;
}

static cJSON *trial_to_json(const struct trial *trial, bool on_front)
{
    cJSON *object = cJSON_CreateObject(), *params = parse_params(trial);

    if (params == NULL)
        params = cJSON_CreateObject();
    bool ok = object != NULL && json_add_i64(object, "number", trial->number) &&
              json_add_str(object, "state", trial_state_name(trial->state)) && json_add(object, "params", params);
    if (ok)
        params = NULL; /* the object's now */
    ok = ok && add_f64(object, "score", trial->score) && add_f64(object, "perf", trial->perf) &&
         add_f64(object, "cost_s", trial->cost_s) && add_f64(object, "device_s", trial->device_s) &&
         json_add_i64(object, "env_steps", trial->env_steps) && json_add_i64(object, "seed", trial->seed) &&
         json_add_i64(object, "attempt", trial->attempt) && json_add_str(object, "origin", trial->origin) &&
         json_add_bool(object, "on_front", on_front) && json_add_str(object, "device", trial->device) &&
         json_add_str(object, "reason", trial->reason) && add_time(object, "created_ms", trial->created_ms) &&
         add_time(object, "started_ms", trial->started_ms) && add_time(object, "finished_ms", trial->finished_ms);
    if (ok)
        return object;
    cJSON_Delete(object);
    return NULL;
}

static bool add_counts(cJSON *object, const struct report *report)
{
    size_t n[TRIAL_STATES] = {0};
    cJSON *counts = cJSON_CreateObject();
    bool ok = counts != NULL;

    for (size_t i = 0; i < report->n_trials; i++)
        n[report->trials[i].state]++;
    for (int state = 0; state < TRIAL_STATES && ok; state++)
        ok = json_add_i64(counts, trial_state_name((enum trial_state)state), (int64_t)n[state]);
    return json_add(object, "counts", counts) && ok;
}

static cJSON *study_to_json(const struct report *report)
{
    const struct study *study = report->study;
    cJSON *object = cJSON_CreateObject(), *space = NULL, *reference = cJSON_CreateObject();
    double best = NAN, cost_s = 0.0;
    size_t knee = report->n_trials > 0 ? pareto_knee(report->history) : 0;

    for (size_t i = 0; i < report->n_trials; i++) {
        const struct trial *trial = &report->trials[i];
        bool better = isnan(best) || (study->maximize ? trial->score > best : trial->score < best);
        if (trial->state == TRIAL_DONE && isfinite(trial->score) && better)
            best = trial->score;
        if (trial->state >= TRIAL_DONE && isfinite(trial->cost_s))
            cost_s += trial->cost_s;
    }
    if (study->space != NULL && json_parse(study->space, strlen(study->space), &space, NULL) != ST_OK)
        space = NULL;
    bool ok = object != NULL && reference != NULL && json_add_str(object, "name", study->name) &&
              json_add_str(object, "method", study->method) && json_add_str(object, "metric", study->metric) &&
              json_add_str(object, "direction", study->maximize ? "maximize" : "minimize") &&
              json_add_i64(object, "seed", study->seed) && json_add_i64(object, "trials_max", study->trials_max) &&
              add_f64(object, "budget_s", study->budget_s) && json_add_str(object, "program", study->program) &&
              json_add_i64(object, "created_ms", study->created_ms) && add_counts(object, report) &&
              add_f64(object, "best_score", best) && add_f64(object, "cost_s", cost_s) &&
              add_f64(reference, "cost_s", report->ref.cost) && add_f64(reference, "score", report->ref.score) &&
              add_f64(object, "hypervolume", pareto_hypervolume(report->history, &report->ref)) &&
              (knee < report->n_trials ? json_add_i64(object, "knee", report->trials[knee].number)
                                       : json_add_str(object, "knee", NULL)) &&
              json_add_str(object, "config", study->config);
    if (ok) {
        ok = json_add(object, "reference", reference);
        reference = ok ? NULL : reference;
    }
    if (ok && space != NULL) {
        ok = json_add(object, "space", space);
        space = ok ? NULL : space;
    }
    if (ok)
        return object;
    cJSON_Delete(object);
    cJSON_Delete(space);
    cJSON_Delete(reference);
    return NULL;
}

enum status report_to_json(const struct report *report, cJSON **ret_json, struct error *err)
{
    cJSON *root = cJSON_CreateObject(), *trials = root != NULL ? cJSON_AddArrayToObject(root, "trials") : NULL;
    cJSON *study = trials != NULL ? study_to_json(report) : NULL;
    bool ok = study != NULL && json_add(root, "study", study);

    *ret_json = NULL;
    if (ok) /* study first: the order people expect */
        cJSON_AddItemToObject(root, "trials", cJSON_DetachItemFromObject(root, "trials"));
    for (size_t i = 0; i < report->n_trials && ok; i++)
        ok = append(trials, trial_to_json(&report->trials[i], report->on_front[i]));
    if (!ok) {
        cJSON_Delete(root);
        return FAIL(err, ST_NOMEM, "no memory for the JSON of %zu trials", report->n_trials);
    }
    *ret_json = root;
    return ST_OK;
}

enum status report_write_json(struct strbuf *out, const struct report *report, struct error *err)
{
    cJSON *json;
    char *text;

    TRY(report_to_json(report, &json, err));
    text = json_print(json, true);
    cJSON_Delete(json);
    if (text == NULL)
        return FAIL(err, ST_NOMEM, "no memory for the JSON of %zu trials", report->n_trials);
    strbuf_add(out, text);
    strbuf_add(out, "\n");
    mem_free(text);
    return ST_OK;
}
