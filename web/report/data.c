/* data.c - the report for programs: CSV (RFC 4180) with a row for each trial, and JSON. */
#include "web/report/report_priv.h"

#include "base/mem.h"
#include "base/num.h"
#include "study/export.h"
#include "study/promise.h"
#include "web/report/report.h"

#include <math.h>
#include <string.h>

enum status report_params_parse(const struct trial *trial, cJSON **ret_params, struct error *err)
{
    cJSON *params = NULL;
    enum status rc = ST_OK;

    *ret_params = NULL;
    if (trial->params == NULL)
        return ST_OK;
    rc = json_parse(trial->params, strlen(trial->params), &params, err);
    if (rc == ST_OK && !cJSON_IsObject(params))
        rc = FAIL(err, ST_CORRUPT, "not an object of names and values");
    if (rc != ST_OK) {
        error_prefix(err, "the parameters of trial %lld in the store", (long long)trial->number);
        cJSON_Delete(params);
        return rc;
    }
    *ret_params = params;
    return ST_OK;
}

void report_param_text(struct strbuf *out, const cJSON *params, const char *key, bool for_people)
{
    char buf[HUMAN_TEXT_MAX];
    const cJSON *value = params != NULL ? cJSON_GetObjectItemCaseSensitive(params, key) : NULL;

    if (cJSON_IsString(value))
        strbuf_add(out, value->valuestring);
    else if (cJSON_IsBool(value))
        strbuf_add(out, cJSON_IsTrue(value) ? "true" : "false");
    else if (cJSON_IsNumber(value))
        strbuf_add(out, for_people ? text_number(value->valuedouble, buf) : num_format_f64(value->valuedouble, buf));
}

/* -- CSV -- */

static void csv_field(struct strbuf *out, const char *mark, const char *text)
{
    if (text[strcspn(text, ",\"\r\n")] == '\0') {
        strbuf_add(out, mark);
        strbuf_add(out, text);
        return;
    }
    strbuf_add(out, "\"");
    strbuf_add(out, mark);
    for (const char *c = text; *c != '\0'; c++) {
        strbuf_add_n(out, c, 1);
        if (*c == '"')
            strbuf_add(out, "\"");
    }
    strbuf_add(out, "\"");
}

/* Words. Spreadsheets take what begins like a formula for one, whoever wrote it: an apostrophe in front makes it
 * text. */
static void csv_text(struct strbuf *out, const char *text)
{
    if (text != NULL)
        csv_field(out, text[0] != '\0' && strchr("=+-@\t\r", text[0]) != NULL ? "'" : "", text);
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
    cJSON *params;
    struct strbuf value;
    struct promise p;

    TRY(report_params_parse(trial, &params, err));
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
    report_promise(report, i, &p);
    const double known[] = {p.is_known ? p.score : (double)NAN, p.lo, p.hi, p.start_s};
    strbuf_addf(out, ",%zu", p.n_seeds);
    for (size_t k = 0; k < sizeof known / sizeof known[0]; k++) {
        strbuf_add(out, ",");
        csv_f64(out, known[k]);
    }
    strbuf_init(&value, JSON_MAX_BYTES);
    for (size_t k = 0; k < report->space->dim && value.status == ST_OK; k++) {
        const char *key = report->space->params[k].key;
        strbuf_clear(&value);
        report_param_text(&value, params, key, false);
        strbuf_add(out, ",");
        if (cJSON_IsString(cJSON_GetObjectItemCaseSensitive(params, key)))
            csv_text(out, value.text);
        else
            csv_field(out, "", value.text);
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
             "started_ms,finished_ms,n_seeds,score_mean,score_lo,score_hi,start_s");
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

/* What is expected of fresh runs; null where nothing is known. */
static bool add_promise(cJSON *object, const struct promise *p)
{
    return json_add_i64(object, "n_seeds", (int64_t)p->n_seeds) &&
           add_f64(object, "score_mean", p->is_known ? p->score : (double)NAN) && add_f64(object, "score_lo", p->lo) &&
           add_f64(object, "score_hi", p->hi) && add_f64(object, "cost_mean", p->is_known ? p->cost : (double)NAN);
}

/* Takes params. NULL: out of memory. */
static cJSON *trial_to_json(const struct report *report, size_t i, cJSON *params)
{
    const struct trial *trial = &report->trials[i];
    bool on_front = report->on_front[i];
    struct promise p;
    cJSON *object = cJSON_CreateObject();
    bool ok = object != NULL && json_add_i64(object, "number", trial->number) &&
              json_add_str(object, "state", trial_state_name(trial->state));

    if (ok)
        ok = json_add(object, "params", params);
    else
        cJSON_Delete(params);
    report_promise(report, i, &p);
    ok = ok && add_promise(object, &p) && add_f64(object, "score", trial->score) &&
         add_f64(object, "perf", trial->perf) && add_f64(object, "cost_s", trial->cost_s) &&
         add_f64(object, "device_s", trial->device_s) && json_add_i64(object, "env_steps", trial->env_steps) &&
         json_add_i64(object, "seed", trial->seed) && json_add_i64(object, "attempt", trial->attempt) &&
         json_add_str(object, "origin", trial->origin) && json_add_bool(object, "on_front", on_front) &&
         json_add_str(object, "device", trial->device) && json_add_str(object, "reason", trial->reason) &&
         add_time(object, "created_ms", trial->created_ms) && add_time(object, "started_ms", trial->started_ms) &&
         add_time(object, "finished_ms", trial->finished_ms) && json_add_str(object, "slot", trial->slot) &&
         json_add_str(object, "cost_method", trial->cost_method) && json_add_i64(object, "deaths", trial->deaths) &&
         json_add_i64(object, "losses", trial->losses) && add_f64(object, "propose_s", trial->propose_s) &&
         json_add_str(object, "log_tail", trial->log_tail) && add_f64(object, "score_se", trial->score_se) &&
         json_add_i64(object, "eval_episodes", trial->eval_episodes) &&
         json_add_i64(object, "eval_unfinished", trial->eval_unfinished) && add_f64(object, "eval_s", trial->eval_s) &&
         add_f64(object, "start_s", trial->start_s) && json_add_str(object, "program", trial->program) &&
         json_add_str(object, "vector_units", trial->kernels);
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

/* The picks, each with what is promised of it. */
static bool add_picks(cJSON *object, const struct report *report, size_t best, size_t knee)
{
    struct promise p = {.score = NAN, .lo = NAN, .hi = NAN};
    size_t run = best_run(report->history);

    if (best < report->n_trials)
        report_promise(report, best, &p);
    return (best < report->n_trials ? json_add_i64(object, "best", report->trials[best].number)
                                    : json_add_str(object, "best", NULL)) &&
           add_f64(object, "best_score", p.score) && add_f64(object, "best_lo", p.lo) &&
           add_f64(object, "best_hi", p.hi) && json_add_i64(object, "best_seeds", (int64_t)p.n_seeds) &&
           add_f64(object, "best_run_score", run < report->n_trials ? report->trials[run].score : (double)NAN) &&
           (knee < report->n_trials ? json_add_i64(object, "knee", report->trials[knee].number)
                                    : json_add_str(object, "knee", NULL));
}

static enum status study_to_json(const struct report *report, cJSON **ret_json, struct error *err)
{
    const struct study *study = report->study;
    cJSON *object = cJSON_CreateObject(), *space = NULL, *reference = cJSON_CreateObject();
    double cost_s = 0.0, volume = NAN;
    size_t best = report->n_trials, knee = report->n_trials;
    enum status rc = report_pick(report, GP_BEST, &best, err);

    if (rc == ST_OK)
        rc = report_pick(report, GP_KNEE, &knee, err);
    if (rc == ST_OK)
        rc = report_hypervolume(report, report->n_trials, &volume, err);

    for (size_t i = 0; i < report->n_trials; i++) {
        const struct trial *trial = &report->trials[i];
        if (trial->state >= TRIAL_DONE && isfinite(trial->cost_s))
            cost_s += trial->cost_s;
    }
    if (rc == ST_OK && study->space != NULL) {
        rc = json_parse(study->space, strlen(study->space), &space, err);
        if (rc != ST_OK)
            error_prefix(err, "the search space of study '%s' in the store", study->name);
    }
    if (rc != ST_OK) {
        cJSON_Delete(object);
        cJSON_Delete(reference);
        return rc;
    }
    bool ok = object != NULL && reference != NULL && json_add_str(object, "name", study->name) &&
              json_add_str(object, "method", study->method) && json_add_str(object, "metric", study->metric) &&
              json_add_str(object, "direction", study->maximize ? "maximize" : "minimize") &&
              json_add_i64(object, "seed", study->seed) &&
              json_add_i64(object, "trials_max", study->limits.trials_max) &&
              add_f64(object, "budget_s", study->limits.budget_s) && json_add_str(object, "program", study->program) &&
              json_add_i64(object, "created_ms", study->created_ms) && add_counts(object, report) &&
              add_picks(object, report, best, knee) && add_f64(object, "cost_s", cost_s) &&
              json_add_str(object, "cost_unit", report->cost == SEARCH_COST_STEPS ? "steps" : "s") &&
              add_f64(reference, "cost", report->ref.cost) && /* in that unit */
              add_f64(reference, "score", study->maximize ? report->ref.score : -report->ref.score) &&
              add_f64(object, "hypervolume", volume) && json_add_str(object, "config", study->config);
    if (ok) { /* json_add takes its value in any case */
        ok = json_add(object, "reference", reference);
        reference = NULL;
    }
    if (ok && space != NULL) {
        ok = json_add(object, "space", space);
        space = NULL;
    }
    if (ok) {
        *ret_json = object;
        return ST_OK;
    }
    cJSON_Delete(object);
    cJSON_Delete(space);
    cJSON_Delete(reference);
    return FAIL(err, ST_NOMEM, "no memory for the JSON of a study");
}

static enum status trials_to_json(const struct report *report, cJSON *trials, struct error *err)
{
    for (size_t i = 0; i < report->n_trials; i++) {
        cJSON *params;
        TRY(report_params_parse(&report->trials[i], &params, err));
        if (params == NULL)
            params = cJSON_CreateObject();
        if (!append(trials, trial_to_json(report, i, params)))
            return FAIL(err, ST_NOMEM, "no memory for the JSON of %zu trials", report->n_trials);
    }
    return ST_OK;
}

enum status report_to_json(const struct report *report, cJSON **ret_json, struct error *err)
{
    cJSON *root = cJSON_CreateObject(), *study = NULL, *trials = NULL;
    enum status rc =
        root != NULL ? study_to_json(report, &study, err) : FAIL(err, ST_NOMEM, "no memory for the JSON of a study");

    *ret_json = NULL;
    if (rc == ST_OK) {
        bool added = json_add(root, "study", study);
        trials = added ? cJSON_AddArrayToObject(root, "trials") : NULL;
        rc = trials != NULL ? trials_to_json(report, trials, err)
                            : FAIL(err, ST_NOMEM, "no memory for the JSON of a study");
    }
    if (rc != ST_OK) {
        cJSON_Delete(root);
        return rc;
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
