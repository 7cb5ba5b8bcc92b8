/* optuna.c - the tables and rows of an Optuna storage, as SQL. */
#include "study/exchange/optuna.h"

#include "base/text/json.h"
#include "study/view/study_view.h"

#define SQL_MAX_BYTES (1u << 30)

static const char schema[] =
    "BEGIN;CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL, CONSTRAINT alembic_version_pkc PRIMARY KEY "
    "(version_num));INSERT INTO alembic_version VALUES ('v3.2.0.a');CREATE TABLE version_info (version_info_id INTEGER "
    "NOT NULL, schema_version INTEGER, library_version VARCHAR(256), PRIMARY KEY (version_info_id), CHECK "
    "(version_info_id=1));INSERT INTO version_info VALUES (1, 12, '5.0.0');CREATE TABLE studies (study_id INTEGER NOT "
    "NULL, study_name VARCHAR(512) NOT NULL, PRIMARY KEY (study_id));CREATE UNIQUE INDEX ix_studies_study_name ON "
    "studies (study_name);CREATE TABLE study_directions (study_direction_id INTEGER NOT NULL, direction VARCHAR(8) NOT "
    "NULL, study_id INTEGER NOT NULL, objective INTEGER NOT NULL, PRIMARY KEY (study_direction_id), UNIQUE (study_id, "
    "objective), FOREIGN KEY(study_id) REFERENCES studies (study_id));CREATE TABLE study_system_attributes "
    "(study_system_attribute_id INTEGER NOT NULL, study_id INTEGER, \"key\" VARCHAR(512), value_json TEXT, PRIMARY KEY "
    "(study_system_attribute_id), UNIQUE (study_id, \"key\"), FOREIGN KEY(study_id) REFERENCES studies "
    "(study_id));CREATE TABLE study_user_attributes (study_user_attribute_id INTEGER NOT NULL, study_id INTEGER, "
    "\"key\" VARCHAR(512), value_json TEXT, PRIMARY KEY (study_user_attribute_id), UNIQUE (study_id, \"key\"), FOREIGN "
    "KEY(study_id) REFERENCES studies (study_id));CREATE TABLE trials (trial_id INTEGER NOT NULL, number INTEGER, "
    "study_id INTEGER, state VARCHAR(8) NOT NULL, datetime_start DATETIME, datetime_complete DATETIME, PRIMARY KEY "
    "(trial_id), FOREIGN KEY(study_id) REFERENCES studies (study_id));CREATE INDEX ix_trials_study_id ON trials "
    "(study_id);CREATE TABLE trial_heartbeats (trial_heartbeat_id INTEGER NOT NULL, trial_id INTEGER NOT NULL, "
    "heartbeat DATETIME NOT NULL, PRIMARY KEY (trial_heartbeat_id), UNIQUE (trial_id), FOREIGN KEY(trial_id) "
    "REFERENCES trials (trial_id));CREATE TABLE trial_intermediate_values (trial_intermediate_value_id INTEGER NOT "
    "NULL, trial_id INTEGER NOT NULL, step INTEGER NOT NULL, intermediate_value FLOAT, intermediate_value_type "
    "VARCHAR(7) NOT NULL, PRIMARY KEY (trial_intermediate_value_id), UNIQUE (trial_id, step), FOREIGN KEY(trial_id) "
    "REFERENCES trials (trial_id));CREATE TABLE trial_params (param_id INTEGER NOT NULL, trial_id INTEGER, param_name "
    "VARCHAR(512), param_value FLOAT, distribution_json TEXT, PRIMARY KEY (param_id), UNIQUE (trial_id, param_name), "
    "FOREIGN KEY(trial_id) REFERENCES trials (trial_id));CREATE TABLE trial_system_attributes "
    "(trial_system_attribute_id INTEGER NOT NULL, trial_id INTEGER, \"key\" VARCHAR(512), value_json TEXT, PRIMARY KEY "
    "(trial_system_attribute_id), UNIQUE (trial_id, \"key\"), FOREIGN KEY(trial_id) REFERENCES trials "
    "(trial_id));CREATE TABLE trial_user_attributes (trial_user_attribute_id INTEGER NOT NULL, trial_id INTEGER, "
    "\"key\" VARCHAR(512), value_json TEXT, PRIMARY KEY (trial_user_attribute_id), UNIQUE (trial_id, \"key\"), FOREIGN "
    "KEY(trial_id) REFERENCES trials (trial_id));CREATE TABLE trial_values (trial_value_id INTEGER NOT NULL, trial_id "
    "INTEGER NOT NULL, objective INTEGER NOT NULL, value FLOAT, value_type VARCHAR(7) NOT NULL, PRIMARY KEY "
    "(trial_value_id), UNIQUE (trial_id, objective), FOREIGN KEY(trial_id) REFERENCES trials (trial_id));";

/* A text in SQL, with its quotes. */
static void add_quoted(struct strbuf *sql, const char *text)
{
    strbuf_add(sql, "'");
    for (const char *c = text; *c != '\0'; c++) {
        strbuf_add_n(sql, c, 1);
        if (*c == '\'')
            strbuf_add(sql, "'");
    }
    strbuf_add(sql, "'");
}

/* A storage in the making: its text, and the number of each '?' in it. SQLite reads some decimals as a double next to
 * the nearest one, so no number passes through the text. */
struct storage {
    struct strbuf sql;
    double *numbers;
    size_t n, cap;
};

static void add_f64(struct storage *out, double value)
{
    MEM_ROOM(out->numbers, out->n, out->cap);
    out->numbers[out->n++] = value;
    strbuf_add(&out->sql, "?");
}

static void add_time(struct strbuf *sql, int64_t ms)
{
    time_t seconds = (time_t)(ms / 1000);
    char text[40];
    struct tm tm;

    if (ms <= 0 || gmtime_r(&seconds, &tm) == NULL || strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &tm) == 0)
        strbuf_add(sql, "NULL");
    else
        strbuf_addf(sql, "'%s.%03d000'", text, (int)(ms % 1000));
}

static void add_study(struct strbuf *sql, const struct study_view *v)
{
    JSON_LOCAL cJSON *names = cJSON_CreateArray();

    strbuf_add(sql, "INSERT INTO studies VALUES (1, ");
    add_quoted(sql, v->study.name);
    strbuf_addf(sql, ");INSERT INTO study_directions VALUES (1, '%s', 1, 0), (2, 'MINIMIZE', 1, 1)",
                v->study.maximize ? "MAXIMIZE" : "MINIMIZE");
    if (study_view_has_third(v))
        strbuf_addf(sql, ", (3, '%s', 1, 2)", v->search.outcomes.third_max ? "MAXIMIZE" : "MINIMIZE");
    strbuf_add(sql, ";");
    cJSON_AddItemToArray(names, cJSON_CreateString(v->study.metric));
    cJSON_AddItemToArray(names, cJSON_CreateString(v->search.cost == SEARCH_COST_OWN     ? "cost"
                                                   : v->search.cost == SEARCH_COST_STEPS ? "cost (steps)"
                                                                                         : "cost (s)"));
    if (study_view_has_third(v))
        cJSON_AddItemToArray(names, cJSON_CreateString(v->search.outcomes.third));
    MEM_LOCAL char *text = json_print(names, false);
    strbuf_add(sql, "INSERT INTO study_system_attributes VALUES (1, 1, 'study:metric_names', ");
    add_quoted(sql, text);
    strbuf_add(sql, ");");
}

/* What Optuna knows of parameter k: its distribution as JSON; caller: mem_free. */
static char *distribution(const struct search *s, size_t k)
{
    const struct space_param *p = &s->space.params[k];
    bool is_int = p->is_int || p->scale == SPACE_POW2, is_choice = p->scale == SPACE_CATEGORICAL;
    JSON_LOCAL cJSON *json = cJSON_CreateObject();

    json_add_str(json, "name",
                 is_choice ? "CategoricalDistribution"
                 : is_int  ? "IntDistribution"
                           : "FloatDistribution");
    cJSON *attributes = cJSON_AddObjectToObject(json, "attributes");
    if (is_choice) {
        cJSON *choices = cJSON_AddArrayToObject(attributes, "choices");
        for (size_t c = 0; c < p->n_choices; c++)
            cJSON_AddItemToArray(choices, cJSON_CreateString(s->choices[k][c]));
    } else {
        json_add_bool(attributes, "log", p->scale == SPACE_LOG || p->scale == SPACE_POW2);
        if (is_int)
            json_add_i64(attributes, "step", 1);
        else
            cJSON_AddNullToObject(attributes, "step");
        json_add_f64(attributes, "low", p->min);
        json_add_f64(attributes, "high", p->max);
    }
    char *text = json_print(json, false);
    return text;
}

static bool has_values(const struct gp_trial *judged)
{
    return judged->state == GP_TRIAL_DONE || judged->state == GP_TRIAL_INFEASIBLE;
}

static const char *state_word(const struct gp_trial *judged, const struct trial *t)
{
    if (has_values(judged))
        return "COMPLETE";
    if (judged->state == GP_TRIAL_STOPPED)
        return "PRUNED";
    if (judged->state == GP_TRIAL_DROPPED && t->state == TRIAL_DONE && t->dropped == NULL)
        return "PRUNED"; /* one game of a trial that has the values of all */
    return t->state == TRIAL_RUNNING ? "RUNNING" : t->state == TRIAL_QUEUED ? "WAITING" : "FAIL";
}

static void add_attribute(struct strbuf *sql, int64_t id, const char *key, const char *text)
{
    if (text == NULL)
        return;
    JSON_LOCAL cJSON *json = cJSON_CreateString(text);
    MEM_LOCAL char *printed = json_print(json, false);
    strbuf_addf(sql, "INSERT INTO trial_user_attributes (trial_id, \"key\", value_json) VALUES (%lld, ", (long long)id);
    add_quoted(sql, key);
    strbuf_add(sql, ", ");
    add_quoted(sql, printed);
    strbuf_add(sql, ");");
}

/* As Optuna keeps them: one number for each bound, above 0 where it is broken. */
static void add_constraints(struct strbuf *sql, const struct study_view *v, size_t i)
{
    const struct outcomes *o = &v->search.outcomes;
    JSON_LOCAL cJSON *list = cJSON_CreateArray();

    for (size_t k = 0; k < o->n_limits; k++) {
        double value = v->gp[i].outcomes[k], unknown = isfinite(value) ? 0.0 : 1.0;
        if (isfinite(o->bounds[k].min))
            cJSON_AddItemToArray(list, cJSON_CreateNumber(unknown > 0.0 ? unknown : o->bounds[k].min - value));
        if (isfinite(o->bounds[k].max))
            cJSON_AddItemToArray(list, cJSON_CreateNumber(unknown > 0.0 ? unknown : value - o->bounds[k].max));
    }
    if (o->n_limits > 0) {
        char *text = json_print(list, false);
        strbuf_addf(sql,
                    "INSERT INTO trial_system_attributes (trial_id, \"key\", value_json) VALUES (%lld, 'constraints', ",
                    (long long)v->trials[i].number + 1);
        add_quoted(sql, text);
        strbuf_add(sql, ");");
        mem_free(text);
    }
}

static void add_trial(struct storage *out, const struct study_view *v, size_t i, char *const *distributions)
{
    const struct trial *t = &v->trials[i];
    struct strbuf *sql = &out->sql;
    const struct space *space = &v->search.space;
    long long id = t->number + 1;
    char seed[32];

    strbuf_addf(sql, "INSERT INTO trials VALUES (%lld, %lld, 1, '%s', ", id, (long long)t->number,
                state_word(&v->gp[i], t));
    add_time(sql, t->started_ms > 0 ? t->started_ms : t->created_ms);
    strbuf_add(sql, ", ");
    add_time(sql, t->finished_ms);
    strbuf_add(sql, ");");
    for (size_t k = 0; k < space->dim; k++) {
        if (!isfinite(v->x[i][k]) || !space_is_active(space, k, v->x[i]))
            continue;
        strbuf_addf(
            sql, "INSERT INTO trial_params (trial_id, param_name, param_value, distribution_json) VALUES (%lld, ", id);
        add_quoted(sql, space->params[k].key);
        strbuf_add(sql, ", ");
        add_f64(out, v->x[i][k]);
        strbuf_add(sql, ", ");
        add_quoted(sql, distributions[k]);
        strbuf_add(sql, ");");
    }
    if (has_values(&v->gp[i])) {
        strbuf_addf(sql, "INSERT INTO trial_values (trial_id, objective, value, value_type) VALUES (%lld, 0, ", id);
        add_f64(out, study_view_run_score(v, i));
        strbuf_addf(sql, ", 'FINITE'), (%lld, 1, ", id);
        add_f64(out, v->search.envs.n > 0 ? v->gp[i].cost : study_view_trial_cost(v, t));
        strbuf_add(sql, ", 'FINITE')");
        if (study_view_has_third(v)) {
            strbuf_addf(sql, ", (%lld, 2, ", id);
            add_f64(out, study_view_third(v, i));
            strbuf_add(sql, ", 'FINITE')");
        }
        strbuf_add(sql, ";");
        add_constraints(sql, v, i);
    }
    snprintf(seed, sizeof seed, "%lld", (long long)t->seed);
    add_attribute(sql, id, "seed", seed);
    add_attribute(sql, id, "origin", t->origin);
    add_attribute(sql, id, "env", study_view_env(v, i));
    add_attribute(sql, id, "device", t->device);
    add_attribute(sql, id, "reason", t->reason);
    add_attribute(sql, id, "dropped", t->dropped);
    add_attribute(sql, id, "note", t->note);
    add_attribute(sql, id, "tags", t->tags);
}

enum status optuna_write(const struct study_view *v, const char *path, struct error *err)
{
    char *distributions[SPACE_MAX_DIM];
    struct storage out = {0};

    strbuf_init(&out.sql, SQL_MAX_BYTES);
    strbuf_add(&out.sql, schema);
    add_study(&out.sql, v);
    for (size_t k = 0; k < v->search.space.dim; k++)
        distributions[k] = distribution(&v->search, k);
    for (size_t i = 0; i < v->n; i++)
        add_trial(&out, v, i, distributions);
    for (size_t k = 0; k < v->search.space.dim; k++)
        mem_free(distributions[k]);
    strbuf_add(&out.sql, "COMMIT;");
    enum status rc = strbuf_status(&out.sql, "the Optuna storage", err);
    THEN(rc, store_write_script(path, out.sql.text, out.numbers, out.n, err));
    strbuf_free(&out.sql);
    mem_free(out.numbers);
    return rc;
}
