/* optuna_read.c - reads the tables of Optuna's RDB storage in an SQLite file (schema 12; those since 2.0 have the same
 * columns as far as they are read here). A parameter is kept as a number, which is the index of its choice where its
 * distribution is categorical. */
#include "study/exchange/optuna_read.h"
#include "store/store.h"

#define LIST_MAX 2000

bool optuna_is_storage(const char *path)
{
    JSON_LOCAL cJSON *rows = NULL;
    bool found = store_read_rows(path,
                                 "SELECT name FROM sqlite_master WHERE type = 'table' AND name IN ('studies', "
                                 "'trial_params', 'study_directions')",
                                 0, &rows, NULL) == ST_OK &&
                 cJSON_GetArraySize(rows) == 3;

    return found;
}

static enum status no_such_study(const char *path, const char *study, const cJSON *rows, struct error *err)
{
    const cJSON *row;
    enum status rc;
    STRBUF(list, LIST_MAX);

    cJSON_ArrayForEach(row, rows) strbuf_addf(&list, "%s%s", list.len > 0 ? ", " : "", json_get_str(row, "study_name"));
    if (study != NULL)
        rc = FAIL(err, ST_NOTFOUND, "%s has no study '%.80s'; it has: %s", path, study, list.text);
    else
        rc = FAIL(err, ST_USAGE, "%s has %d studies; which one? --from NAME: %s", path, cJSON_GetArraySize(rows),
                  list.text);
    return rc;
}

static enum status find_study(const char *path, const char *study, int64_t *ret_id, struct error *err)
{
    JSON_LOCAL cJSON *rows = NULL;
    const cJSON *row, *found = NULL;

    TRY(store_read_rows(path, "SELECT study_id, study_name FROM studies ORDER BY study_id", 0, &rows, err));
    cJSON_ArrayForEach(row, rows)
    {
        const char *name = json_get_str(row, "study_name");
        if (study == NULL ? cJSON_GetArraySize(rows) == 1 : name != NULL && strcmp(name, study) == 0)
            found = row;
    }
    if (found == NULL || !json_get_i64(found, "study_id", ret_id))
        return no_such_study(path, study, rows, err);
    return ST_OK;
}

/* What is read of one study, each an array of rows by the number of their trial. */
struct tables {
    cJSON *directions, *names, *trials, *values, *params, *attributes;
    cJSON *metric_names; /* parsed; NULL: the objectives have no names */
};

static enum status read_tables(const char *path, int64_t id, struct tables *t, struct error *err)
{
    const struct {
        const char *sql;
        cJSON **rows;
    } reads[] = {
        {"SELECT direction FROM study_directions WHERE study_id = ?1 ORDER BY objective", &t->directions},
        {"SELECT value_json FROM study_system_attributes WHERE study_id = ?1 AND \"key\" = 'study:metric_names'",
         &t->names},
        {"SELECT number, state, strftime('%s', datetime_complete) - strftime('%s', datetime_start) + "
         "(strftime('%f', datetime_complete) - strftime('%S', datetime_complete)) - "
         "(strftime('%f', datetime_start) - strftime('%S', datetime_start)) AS cost_s "
         "FROM trials WHERE study_id = ?1 ORDER BY number",
         &t->trials},
        {"SELECT t.number, v.objective, v.value FROM trial_values AS v JOIN trials AS t ON t.trial_id = v.trial_id "
         "WHERE t.study_id = ?1 ORDER BY t.number",
         &t->values},
        {"SELECT t.number, p.param_name, p.param_value, p.distribution_json FROM trial_params AS p JOIN trials AS t ON "
         "t.trial_id = p.trial_id WHERE t.study_id = ?1 ORDER BY t.number, p.param_id",
         &t->params},
        {"SELECT t.number, a.\"key\", a.value_json FROM trial_user_attributes AS a JOIN trials AS t ON t.trial_id = "
         "a.trial_id WHERE t.study_id = ?1 ORDER BY t.number",
         &t->attributes},
    };
    const char *names;

    for (size_t i = 0; i < COUNT(reads); i++)
        TRY(store_read_rows(path, reads[i].sql, id, reads[i].rows, err));
    names = json_get_str(t->names->child, "value_json");
    t->metric_names = names != NULL ? cJSON_Parse(names) : NULL;
    return cJSON_GetArraySize(t->directions) > 0
               ? ST_OK
               : FAIL(err, ST_CORRUPT, "%s: the study has no direction of an objective", path);
}

static void free_tables(struct tables *t)
{
    cJSON_Delete(t->directions);
    cJSON_Delete(t->names);
    cJSON_Delete(t->trials);
    cJSON_Delete(t->values);
    cJSON_Delete(t->params);
    cJSON_Delete(t->attributes);
    cJSON_Delete(t->metric_names);
}

static bool is_maximized(const struct tables *t, int64_t objective)
{
    const char *word = json_get_str(cJSON_GetArrayItem(t->directions, (int)objective), "direction");

    return word != NULL && strcmp(word, "MAXIMIZE") == 0;
}

static void add_value(const struct tables *t, const cJSON *value, cJSON *row)
{
    int64_t objective;
    double number;
    char text[40];

    if (!json_get_i64(value, "objective", &objective) || !json_get_f64(value, "value", &number))
        return;
    snprintf(text, sizeof text, "objective %lld", (long long)objective);
    json_add_f64(row, text, number);
    const cJSON *name = cJSON_GetArrayItem(t->metric_names, (int)objective);
    if (cJSON_IsString(name) && json_get(row, name->valuestring) == NULL)
        json_add_f64(row, name->valuestring, number);
    if (objective == 0 && json_get(row, "score") == NULL)
        json_add_f64(row, "score", number);
    if (objective == 1 && !is_maximized(t, 1) && json_get(row, "cost") == NULL)
        json_add_f64(row, "cost", number);
}

/* The parameter's value as its program sees it. */
static void add_param(const cJSON *param, cJSON *params)
{
    const char *name = json_get_str(param, "param_name"), *text = json_get_str(param, "distribution_json");
    JSON_LOCAL cJSON *distribution = text != NULL ? cJSON_Parse(text) : NULL;
    const cJSON *attributes = json_get(distribution, "attributes");
    const cJSON *choices = json_get(attributes, "choices"), *choice;
    double value;

    if (name != NULL && json_get_f64(param, "param_value", &value)) {
        choice = cJSON_IsArray(choices) && value >= 0 && value < 1e6 ? cJSON_GetArrayItem(choices, (int)value) : NULL;
        if (choice != NULL)
            json_add(params, name, cJSON_Duplicate(choice, true));
        else if (choices == NULL)
            json_add_f64(params, name, value);
    }
}

static void add_attribute(const cJSON *attribute, cJSON *row)
{
    const char *key = json_get_str(attribute, "key"), *text = json_get_str(attribute, "value_json");
    cJSON *value = text != NULL ? cJSON_Parse(text) : NULL;

    if (key == NULL || json_get(row, key) != NULL)
        cJSON_Delete(value);
    else
        json_add(row, key, value);
}

/* Is *at a row of this trial? */
static bool is_of(const cJSON *at, int64_t number)
{
    int64_t own;

    return at != NULL && json_get_i64(at, "number", &own) && own == number;
}

static cJSON *make_rows(const struct tables *t)
{
    cJSON *rows = cJSON_CreateArray();
    const cJSON *trial, *value = t->values->child, *param = t->params->child, *attribute = t->attributes->child;

    cJSON_ArrayForEach(trial, t->trials)
    {
        cJSON *row = cJSON_CreateObject(), *params = cJSON_AddObjectToObject(row, "params");
        double cost_s;
        int64_t number = json_i64_or(trial, "number", -1);
        json_add_i64(row, "number", number);
        json_add_str(row, "state", json_get_str(trial, "state"));
        for (; is_of(value, number); value = value->next)
            add_value(t, value, row);
        for (; is_of(param, number); param = param->next)
            add_param(param, params);
        if (json_get_f64(trial, "cost_s", &cost_s))
            json_add_f64(row, "cost_s", cost_s);
        for (; is_of(attribute, number); attribute = attribute->next)
            add_attribute(attribute, row);
        cJSON_AddItemToArray(rows, row);
    }
    return rows;
}

enum status optuna_read(const char *path, const char *study, cJSON **ret_rows, bool *ret_maximize, struct error *err)
{
    struct tables t = {0};
    int64_t id;

    TRY(find_study(path, study, &id, err));
    enum status rc = read_tables(path, id, &t, err);
    if (rc == ST_OK) {
        *ret_maximize = is_maximized(&t, 0);
        *ret_rows = make_rows(&t);
    }
    free_tables(&t);
    return rc;
}
