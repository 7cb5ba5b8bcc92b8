/* import_file.c - what a file holds of trials, from whichever program it is.
 * Invariant: a value that is not understood is an error with its row, never left out. */
#include "sweep/cmd/study/import_file.h"

#include "base/file.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/status.h"
#include "gp/gp.h"
#include "store/store.h"
#include "study/exchange/csv.h"
#include "study/study_view.h"
#include "web/report/report.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define FILE_MAX_BYTES (512u << 20)

void import_file_free(struct import_file *file)
{
    cJSON_Delete(file->study);
    cJSON_Delete(file->rows);
    *file = (struct import_file){0};
}

/* The only study of a store. */
static enum status only_study(const char *path, char *ret_name, size_t size, struct error *err)
{
    struct store *store = NULL;
    struct study *studies = NULL;
    size_t n = 0;

    TRY(store_open_reader(&store, path, err));
    enum status rc = store_study_list(store, &studies, &n, err);
    if (rc == ST_OK && n != 1)
        rc = FAIL(err, ST_USAGE, "import: %s has %zu studies; which one? --from NAME (`trawl ls --store %s`)", path, n,
                  path);
    if (rc == ST_OK)
        snprintf(ret_name, size, "%s", studies[0].name);
    study_list_free(studies, n);
    store_close(store);
    return rc;
}

static enum status read_store(const char *path, const char *from, struct import_file *ret, struct error *err)
{
    struct study_view *v = mem_alloc(sizeof *v); /* large */
    char name[160] = "";
    cJSON *json = NULL;
    enum status rc = ST_OK;

    if (from != NULL)
        snprintf(name, sizeof name, "%s", from);
    else
        rc = only_study(path, name, sizeof name, err);
    if (rc == ST_OK)
        rc = study_view_open(path, name, v, err);
    if (rc == ST_OK)
        rc = report_to_json(v, &json, err);
    if (rc == ST_OK) {
        ret->study = cJSON_DetachItemFromObjectCaseSensitive(json, "study");
        ret->rows = cJSON_DetachItemFromObjectCaseSensitive(json, "trials");
    }
    cJSON_Delete(json);
    study_view_free(v);
    mem_free(v);
    return rc;
}

static enum status read_jsonl(const char *text, struct import_file *ret, struct error *err)
{
    size_t line = 1;

    ret->rows = cJSON_CreateArray();
    for (const char *at = text; *at != '\0'; line++) {
        size_t n = strcspn(at, "\n");
        cJSON *json = NULL;
        if (n > 0 && json_parse(at, n, &json, err) != ST_OK)
            return error_prefix(err, "line %zu", line);
        cJSON *study = cJSON_DetachItemFromObjectCaseSensitive(json, "study");
        if (cJSON_IsObject(study) && ret->study == NULL) {
            ret->study = study;
            cJSON_Delete(json);
        } else if (cJSON_IsObject(json)) {
            cJSON_Delete(study);
            cJSON_AddItemToArray(ret->rows, json);
        } else if (n > 0) {
            cJSON_Delete(study);
            cJSON_Delete(json);
            return FAIL(err, ST_CORRUPT, "line %zu: an object is needed for each trial", line);
        }
        at += n + (at[n] == '\n');
    }
    return ST_OK;
}

enum status import_file_read(const char *path, const char *from, struct import_file *ret, struct error *err)
{
    static const char sqlite[] = "SQLite format 3"; /* with its NUL */
    char *text = NULL;
    size_t n = 0;
    enum status rc;

    *ret = (struct import_file){0};
    TRY(file_read_all(path, FILE_MAX_BYTES, &text, &n, err));
    if (n >= sizeof sqlite && memcmp(text, sqlite, sizeof sqlite) == 0) {
        mem_free(text);
        rc = read_store(path, from, ret, err);
    } else {
        rc = text[0] == '{' ? read_jsonl(text, ret, err) : csv_parse(text, n, &ret->rows, err);
        mem_free(text);
        if (rc != ST_OK)
            error_prefix(err, "%s", path);
    }
    if (rc != ST_OK)
        import_file_free(ret);
    return rc;
}

/* ---- a row ---- */

/* "train/learning-rate" is "train.learning_rate": trackers and PufferLib write either. */
static bool same_name(const char *column, const char *key)
{
    for (; *column != '\0' && *key != '\0'; column++, key++) {
        char a = *column == '/' ? '.' : *column == '-' ? '_' : *column;
        if (a != (*key == '-' ? '_' : *key))
            return false;
    }
    return *column == *key;
}

static const cJSON *cell(const cJSON *row, const char *name)
{
    const cJSON *item;

    cJSON_ArrayForEach(item, row) if (same_name(item->string, name)) return item;
    return NULL;
}

const char *import_row_text(const cJSON *row, const char *column)
{
    const cJSON *item = cell(row, column);

    return cJSON_IsString(item) && item->valuestring[0] != '\0' ? item->valuestring : NULL;
}

/* *ret_value is left when the cell is empty or missing. */
static enum status number(const cJSON *row, const char *name, double *ret_value, struct error *err)
{
    const cJSON *item = cell(row, name);

    if (cJSON_IsNumber(item))
        *ret_value = item->valuedouble;
    else if (cJSON_IsString(item) && item->valuestring[0] != '\0' && !num_parse_f64(item->valuestring, ret_value))
        return FAIL(err, ST_CORRUPT, "%s is '%.60s', a number is needed", name, item->valuestring);
    return ST_OK;
}

/* The first of the columns that has a number; NaN: none. */
static enum status first_number(const cJSON *row, const char *const *names, size_t n, double *ret_value,
                                struct error *err)
{
    *ret_value = NAN;
    for (size_t i = 0; i < n && isnan(*ret_value); i++)
        if (names[i] != NULL)
            TRY(number(row, names[i], ret_value, err));
    return ST_OK;
}

/* In the words of Trawl, W&B and Optuna. *ret_word NULL: no result. */
static enum status state(const cJSON *row, const char **ret_word, struct error *err)
{
    static const char *const words[][2] = {{"done", "done"},      {"finished", "done"}, {"completed", "done"},
                                           {"complete", "done"},  {"failed", "failed"}, {"crashed", "failed"},
                                           {"killed", "failed"},  {"fail", "failed"},   {"stopped", "stopped"},
                                           {"pruned", "stopped"}, {"queued", NULL},     {"running", NULL},
                                           {"lost", NULL},        {"waiting", NULL}};
    const char *word = import_row_text(row, "state");

    if (word == NULL)
        word = import_row_text(row, "State");
    *ret_word = "done";
    for (size_t i = 0; word != NULL && i < sizeof words / sizeof words[0]; i++)
        if (strcasecmp(word, words[i][0]) == 0) {
            *ret_word = words[i][1];
            return ST_OK;
        }
    return word == NULL ? ST_OK : FAIL(err, ST_CORRUPT, "the state '%.40s' is not known", word);
}

static const char *last_part(const char *key)
{
    const char *dot = strrchr(key, '.');

    return dot != NULL ? dot + 1 : key;
}

/* A column of parameter k: by its key, or by the last part of it where no other parameter ends so. */
static const cJSON *param_cell(const struct search *s, size_t k, const cJSON *row)
{
    const char *key = s->space.params[k].key;
    const cJSON *item = cell(row, key);
    size_t n_same = 0;

    for (size_t i = 0; i < s->space.dim; i++)
        n_same += strcmp(last_part(s->space.params[i].key), last_part(key)) == 0;
    return item != NULL || n_same > 1 ? item : cell(row, last_part(key));
}

static enum status add_params(const struct study_view *v, const cJSON *row, cJSON *body, struct error *err)
{
    const struct search *s = &v->search;
    const cJSON *given = cJSON_GetObjectItemCaseSensitive(row, "params");
    cJSON *params = cJSON_AddObjectToObject(body, "params");
    const cJSON *from = cJSON_IsObject(given) ? given : row;
    double value;

    for (size_t k = 0; k < s->space.dim; k++) {
        const char *key = s->space.params[k].key;
        const cJSON *item = param_cell(s, k, from);
        bool is_text = cJSON_IsString(item) && item->valuestring[0] != '\0';
        if (item == NULL)
            return FAIL(err, ST_USAGE, "there is no value of %s, which the study searches", key);
        if (s->space.params[k].scale == SPACE_CATEGORICAL && (is_text || cJSON_IsNumber(item) || cJSON_IsBool(item)))
            json_add(params, key, cJSON_Duplicate(item, true));
        else if (cJSON_IsNumber(item))
            json_add_f64(params, key, item->valuedouble);
        else if (is_text && num_parse_f64(item->valuestring, &value))
            json_add_f64(params, key, value);
        else if (is_text)
            return FAIL(err, ST_CORRUPT, "%s is '%.60s', a number is needed", key, item->valuestring);
    }
    return ST_OK;
}

static enum status add_results(const struct study_view *v, const cJSON *row, const struct import_columns *c,
                               cJSON *body, struct error *err)
{
    static const char *const by_kind[] = {
        [SEARCH_COST_WALL] = "cost_s", [SEARCH_COST_DEVICE] = "device_s", [SEARCH_COST_STEPS] = "env_steps"};
    const char *const scores[] = {c->score, c->score == NULL ? "score" : NULL,
                                  c->score == NULL ? v->study.metric : NULL};
    const char *const costs[] = {c->cost, c->cost == NULL ? "cost" : NULL,
                                 c->cost == NULL ? by_kind[v->search.cost] : NULL};
    static const char *const steps[] = {"env_steps", "step"};
    double score, cost, step, seed = 0, se = NAN, episodes = 0;

    TRY(first_number(row, scores, 3, &score, err));
    TRY(first_number(row, costs, 3, &cost, err));
    TRY(first_number(row, steps, 2, &step, err));
    TRY(number(row, "seed", &seed, err));
    TRY(number(row, "score_se", &se, err));
    TRY(number(row, "eval_episodes", &episodes, err));
    if (isfinite(score))
        json_add_f64(body, "score", score);
    if (isfinite(cost))
        json_add_f64(body, "cost", cost);
    if (step >= 0 && step < 9e15)
        json_add_i64(body, "step", (int64_t)step);
    if (seed > -9e15 && seed < 9e15)
        json_add_i64(body, "seed", (int64_t)seed);
    if (isfinite(se) && episodes >= 1 && episodes < 9e15) {
        json_add_f64(body, "score_se", se);
        json_add_i64(body, "eval_episodes", (int64_t)episodes);
    }
    return ST_OK;
}

/* Of the same row the same, so that a file that is imported twice adds its trials once. */
static void add_key(cJSON *body)
{
    char *text = json_print(body, false), key[40];
    size_t n = strlen(text);

    snprintf(key, sizeof key, "import-%08x%08x", (unsigned)file_crc32(0, text, n), (unsigned)file_crc32(1, text, n));
    json_add_str(body, "key", key);
    mem_free(text);
}

enum status import_row_body(const struct study_view *v, const cJSON *row, const struct import_columns *columns,
                            cJSON **ret_body, struct error *err)
{
    const char *word = NULL, *reason = import_row_text(row, "reason");
    cJSON *body;
    enum status rc;

    *ret_body = NULL;
    TRY(state(row, &word, err));
    if (word == NULL)
        return ST_OK;
    body = cJSON_CreateObject();
    json_add_str(body, "state", word);
    rc = add_params(v, row, body, err);
    if (rc == ST_OK)
        rc = add_results(v, row, columns, body, err);
    if (rc != ST_OK) {
        cJSON_Delete(body);
        return rc;
    }
    if (reason != NULL)
        json_add_str(body, "reason", reason);
    json_add_str(body, "client", "import");
    add_key(body);
    *ret_body = body;
    return ST_OK;
}
