/* data.c - the report for programs: CSV (RFC 4180) with a row for each trial, and JSON. */
#include "web/report/report_priv.h"

#include "study/findings/believed.h"
#include "study/view/study_view.h"
#include "web/text/trial_field.h"

enum status report_params_parse(const struct trial *trial, cJSON **ret_params, struct error *err)
{
    cJSON *params = NULL;

    *ret_params = NULL;
    if (trial->params == NULL)
        return ST_OK;
    enum status rc = json_parse(trial->params, strlen(trial->params), &params, err);
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

/* "" when the params do not have it. */
static void add_param(struct strbuf *out, const cJSON *params, const char *key, bool for_people)
{
    char buf[HUMAN_TEXT_MAX];
    const cJSON *value = params != NULL ? json_get(params, key) : NULL;

    if (cJSON_IsString(value))
        strbuf_add(out, value->valuestring);
    else if (cJSON_IsBool(value))
        strbuf_add(out, cJSON_IsTrue(value) ? "true" : "false");
    else if (cJSON_IsNumber(value))
        strbuf_add(out, for_people ? text_number(value->valuedouble, buf) : num_format_f64(value->valuedouble, buf));
}

void report_param_text(struct strbuf *out, const struct report *report, size_t i, size_t k)
{
    const struct study_view *v = report->view;

    if (space_is_active(&v->search.space, k, v->x[i]))
        add_param(out, report->params[i], v->search.space.params[k].key, true);
    else
        strbuf_add(out, "-");
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

/* Text. A spreadsheet runs a text that begins like a formula: an apostrophe in front keeps it a text. */
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

static void csv_trial_field(struct strbuf *out, const struct trial_field *field, const struct trial *trial)
{
    if (field->kind == FIELD_TEXT)
        csv_text(out, trial_field_text(field, trial));
    else if (field->kind == FIELD_F64)
        csv_f64(out, trial_field_number(field, trial));
    else if (field->kind == FIELD_I64 || trial_field_i64(field, trial) != 0)
        strbuf_addf(out, "%lld", (long long)trial_field_i64(field, trial));
}

/* Do state and on_front stand after this field? */
static const char *csv_after(size_t field)
{
    const char *name = trial_fields[field].name;

    return strcmp(name, "number") == 0 ? "state" : strcmp(name, "origin") == 0 ? "on_front" : NULL;
}

/* Finished, in a study that has limits. */
static bool judges_limits(const struct study_view *v, size_t i)
{
    return v->search.outcomes.n_limits > 0 &&
           (v->gp[i].state == GP_TRIAL_DONE || v->gp[i].state == GP_TRIAL_INFEASIBLE);
}

static void csv_outcomes(struct strbuf *out, const struct study_view *v, const char *text)
{
    const char *needed[OUTCOMES_MAX];
    size_t n = outcomes_needed(&v->search.outcomes, needed);
    JSON_LOCAL cJSON *values = NULL;

    if (text != NULL && json_parse(text, strlen(text), &values, NULL) != ST_OK)
        values = NULL;
    for (size_t k = 0; k < n; k++) {
        double value = (double)NAN;
        (void)json_get_f64(values, needed[k], &value);
        strbuf_add(out, ",");
        csv_f64(out, value);
    }
}

static enum status csv_row(struct strbuf *out, const struct study_view *v, size_t i, struct error *err)
{
    const struct trial *trial = &v->trials[i];
    JSON_LOCAL cJSON *params = NULL;
    struct promise p;

    TRY(report_params_parse(trial, &params, err));
    for (size_t k = 0; k < TRIAL_FIELDS_OF_CSV; k++) {
        strbuf_add(out, k > 0 ? "," : "");
        csv_trial_field(out, &trial_fields[k], trial);
        if (csv_after(k) != NULL)
            strbuf_addf(out, ",%s", k == 0 ? trial_state_name(trial->state) : v->on_front[i] ? "true" : "false");
    }
    report_promise(v, i, &p);
    const double known[] = {p.mean, p.is_known ? p.score : (double)NAN, p.lo, p.hi, p.start_s};
    strbuf_addf(out, ",%zu", p.n_seeds);
    for (size_t k = 0; k < COUNT(known); k++) {
        strbuf_add(out, ",");
        csv_f64(out, known[k]);
    }
    strbuf_add(out, ",");
    csv_f64(out, trial->score_se);
    strbuf_addf(out, ",%lld,", (long long)trial->eval_episodes);
    csv_text(out, trial->dropped);
    if (v->search.outcomes.n_limits > 0)
        strbuf_addf(out, ",%s", !judges_limits(v, i) ? "" : study_view_breaks_limit(v, i) ? "false" : "true");
    csv_outcomes(out, v, trial->outcomes);
    STRBUF(value, JSON_MAX_BYTES);
    for (size_t k = 0; k < v->search.space.dim && value.status == ST_OK; k++) {
        const char *key = v->search.space.params[k].key;
        strbuf_clear(&value);
        add_param(&value, params, key, false);
        strbuf_add(out, ",");
        if (cJSON_IsString(json_get(params, key)))
            csv_text(out, value.text);
        else
            csv_field(out, "", value.text);
    }
    if (v->search.envs.n > 0) {
        strbuf_add(out, ",");
        csv_text(out, study_view_env(v, i));
    }
    strbuf_add(out, "\r\n");
    return strbuf_status(&value, "a parameter's value", err);
}

enum status report_write_csv(struct strbuf *out, const struct study_view *v, struct error *err)
{
    const char *needed[OUTCOMES_MAX];
    size_t n_outcomes = outcomes_needed(&v->search.outcomes, needed);

    for (size_t k = 0; k < TRIAL_FIELDS_OF_CSV; k++)
        strbuf_addf(out, "%s%s%s%s", k > 0 ? "," : "", trial_fields[k].name, csv_after(k) != NULL ? "," : "",
                    csv_after(k) != NULL ? csv_after(k) : "");
    strbuf_add(out, ",n_seeds,seeds_mean,score_mean,score_lo,score_hi,start_s,score_se,eval_episodes,dropped");
    if (v->search.outcomes.n_limits > 0)
        strbuf_add(out, ",feasible");
    for (size_t k = 0; k < n_outcomes; k++) {
        strbuf_add(out, ",");
        csv_field(out, OUTCOME_COLUMN, needed[k]);
    }
    for (size_t k = 0; k < v->search.space.dim; k++) {
        strbuf_add(out, ",");
        csv_text(out, v->search.space.params[k].key);
    }
    strbuf_add(out, v->search.envs.n > 0 ? ",env\r\n" : "\r\n");
    for (size_t i = 0; i < v->n; i++)
        TRY(csv_row(out, v, i, err));
    return ST_OK;
}

/* -- JSON -- */

/* What is expected of fresh runs; null where nothing is known. */
static void add_promise(cJSON *object, const struct promise *p)
{
    json_add_i64(object, "n_seeds", (int64_t)p->n_seeds);
    json_add_f64(object, "seeds_mean", p->mean);
    json_add_f64(object, "score_mean", p->is_known ? p->score : (double)NAN);
    json_add_f64(object, "score_lo", p->lo);
    json_add_f64(object, "score_hi", p->hi);
    json_add_f64(object, "cost_mean", p->is_known ? p->cost : (double)NAN);
}

static void json_add_trial_field(cJSON *object, const struct trial_field *field, const struct trial *trial)
{
    if (field->kind == FIELD_TEXT)
        json_add_str(object, field->name, trial_field_text(field, trial));
    else if (field->kind == FIELD_I64)
        json_add_i64(object, field->name, trial_field_i64(field, trial));
    else
        json_add_f64(object, field->name, trial_field_number(field, trial));
}

/* Takes params. */
static cJSON *trial_to_json(const struct study_view *v, size_t i, cJSON *params)
{
    const struct trial *trial = &v->trials[i];
    struct promise p;
    cJSON *object = cJSON_CreateObject(), *outcomes = NULL;

    report_promise(v, i, &p);
    json_add_i64(object, "number", trial->number);
    json_add_str(object, "state", trial_state_name(trial->state));
    if (v->search.envs.n > 0) {
        cJSON_DeleteItemFromObjectCaseSensitive(params, SEARCH_ENV_KEY);
        json_add_str(object, "env", study_view_env(v, i));
    }
    json_add(object, "params", params);
    add_promise(object, &p);
    for (size_t k = 1; k < TRIAL_FIELDS; k++) /* after the number */
        json_add_trial_field(object, &trial_fields[k], trial);
    json_add_bool(object, "on_front", v->on_front[i]);
    json_add_f64(object, "propose_s", trial->propose_s);
    json_add_str(object, "log_tail", trial->log_tail);
    if (judges_limits(v, i))
        json_add_bool(object, "feasible", !study_view_breaks_limit(v, i));
    if (trial->outcomes != NULL && json_parse(trial->outcomes, strlen(trial->outcomes), &outcomes, NULL) == ST_OK)
        json_add(object, "outcomes", outcomes);
    return object;
}

static void add_counts(cJSON *object, const struct study_view *v)
{
    cJSON *counts = cJSON_AddObjectToObject(object, "counts");

    for (int state = 0; state < TRIAL_STATES; state++)
        json_add_i64(counts, trial_state_name((enum trial_state)state), study_view_count(v, (enum trial_state)state));
}

static void add_number_of(cJSON *object, const char *key, const struct study_view *v, size_t i)
{
    json_add_f64(object, key, i < v->n ? (double)v->trials[i].number : (double)NAN);
}

/* The picks, each with what is expected of it. */
static void add_picks(cJSON *object, const struct study_view *v)
{
    struct promise p = {.score = NAN, .lo = NAN, .hi = NAN};
    size_t run = study_view_best_run(v), best = report_pick(v, GP_BEST);

    if (best < v->n)
        report_promise(v, best, &p);
    add_number_of(object, "best", v, best);
    json_add_f64(object, "best_score", p.score);
    json_add_f64(object, "best_lo", p.lo);
    json_add_f64(object, "best_hi", p.hi);
    json_add_i64(object, "best_seeds", (int64_t)p.n_seeds);
    json_add_f64(object, "best_run_score", run < v->n ? study_view_run_score(v, run) : (double)NAN);
    add_number_of(object, "knee", v, report_pick(v, GP_KNEE));
}

/* Takes space; NULL: none. */
static void add_study(cJSON *root, const struct study_view *v, cJSON *space)
{
    const struct study *study = &v->study;
    cJSON *object = cJSON_AddObjectToObject(root, "study"), *reference;
    double cost_s = 0.0;

    for (size_t i = 0; i < v->n; i++)
        if (v->trials[i].state >= TRIAL_DONE && isfinite(v->trials[i].cost_s))
            cost_s += v->trials[i].cost_s;
    json_add_str(object, "name", study->name);
    json_add_str(object, "method", study->method);
    json_add_str(object, "metric", study->metric);
    json_add_str(object, "direction", study_direction(study));
    json_add_i64(object, "seed", study->seed);
    json_add_i64(object, "trials_max", study->limits.trials_max);
    json_add_f64(object, "budget_s", study->limits.budget_s);
    json_add_str(object, "program", study->program);
    json_add_i64(object, "created_ms", study->created_ms);
    json_add_str(object, "note", study->note);
    json_add_str(object, "tags", study->tags);
    add_counts(object, v);
    add_picks(object, v);
    json_add_f64(object, "cost_s", cost_s);
    json_add_str(object, "cost_unit", study_cost_unit(v->search.cost));
    json_add_f64(object, "hypervolume", believed_volume(v, &v->ref, BELIEVED_NOW));
    json_add_str(object, "config", study->config);
    reference = cJSON_AddObjectToObject(object, "reference");
    json_add_f64(reference, "cost", v->ref.cost); /* in that unit */
    json_add_f64(reference, "score", study_view_score(v, v->ref.score));
    if (study_view_has_third(v))
        json_add_f64(reference, "objective", outcomes_third(&v->search.outcomes, v->ref.third));
    if (space != NULL)
        json_add(object, "space", space);
}

enum status report_to_json(const struct study_view *v, cJSON **ret_json, struct error *err)
{
    const char *text = v->study.space;
    cJSON *root = cJSON_CreateObject(), *space = NULL, *trials;
    enum status rc = text != NULL ? json_parse(text, strlen(text), &space, err) : ST_OK;

    if (rc != ST_OK)
        error_prefix(err, "the search space of study '%s' in the store", v->study.name);
    else
        add_study(root, v, space);
    trials = cJSON_AddArrayToObject(root, "trials");
    for (size_t i = 0; rc == ST_OK && i < v->n; i++) {
        cJSON *params;
        rc = report_params_parse(&v->trials[i], &params, err);
        if (rc == ST_OK)
            cJSON_AddItemToArray(trials, trial_to_json(v, i, params != NULL ? params : cJSON_CreateObject()));
    }
    *ret_json = rc == ST_OK ? root : NULL;
    if (rc != ST_OK)
        cJSON_Delete(root);
    return rc;
}

enum status report_write_json(struct strbuf *out, const struct study_view *v, struct error *err)
{
    JSON_LOCAL cJSON *json = NULL;

    TRY(report_to_json(v, &json, err));
    MEM_LOCAL char *text = json_print(json, true);
    strbuf_add(out, text);
    strbuf_add(out, "\n");
    return ST_OK;
}
