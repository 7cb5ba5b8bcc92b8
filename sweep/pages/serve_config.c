/* serve_config.c - configs, picks, exports, reports and commands for the pages, each by the code of the command line,
 * so that both give the same. */
#include "base/config/config.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/status.h"
#include "base/strbuf.h"
#include "gp/gp.h"
#include "store/store.h"
#include "study/export.h"
#include "study/insight_text.h"
#include "study/promise.h"
#include "study/search.h"
#include "study/setup.h"
#include "study/study_view.h"
#include "sweep/control/control_command.h"
#include "sweep/pages/serve_hooks.h"
#include "web/report/report.h"
#include "web/report/study_report.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum status serve_advise(void *ctx, const struct study *study, const double *x, size_t dim,
                         const struct gp_history *history, struct gp_insight *ret, struct error *err)
{
    struct search *search = mem_alloc(sizeof *search); /* large */
    struct gp_trial *rows = mem_array(history->n + 1, sizeof *rows); /* those without a point are left out */
    size_t n = 0;
    enum status rc = ST_OK;

    (void)ctx;
    *ret = (struct gp_insight){0};
    if (search == NULL || rows == NULL)
        rc = FAIL(err, ST_NOMEM, "out of memory for the advice of %zu trials", history->n);
    if (rc == ST_OK)
        rc = search_from_json(study->space, search, err);
    if (rc == ST_OK && search->space.dim != dim)
        rc = FAIL(err, ST_CORRUPT, "the search space of %s cannot be read", study->name);
    for (; rc == ST_OK && n < history->n; n++) {
        rows[n] = history->trials[n];
        rows[n].x = x + n * dim;
        for (size_t k = 0; k < dim; k++)
            if (!isfinite(rows[n].x[k]))
                rc = FAIL(err, ST_CORRUPT, "trial %zu of %s has no usable parameters", n, study->name);
    }
    if (rc == ST_OK) {
        struct gp_history own = *history;
        own.trials = rows;
        study_score_bounds(study, &own);
        rc = gp_beliefs_init(ret, &search->space, &own, err);
    }
    search_destroy(search);
    mem_free(rows);
    return rc;
}

enum status serve_pick(void *ctx, const struct study *study, const struct gp_insight *advice,
                       const struct gp_history *history, const char *rule, struct gp_picked *ret_picked,
                       struct error *err)
{
    static const char command[] = "export: ";
    struct error why = {0};

    (void)ctx;
    enum status rc = export_pick(study, advice, history, rule, ret_picked, &why);
    size_t skip = strncmp(why.text, command, sizeof command - 1) == 0 ? sizeof command - 1 : 0;
    return rc == ST_OK ? ST_OK : FAIL(err, rc, "%s", why.text + skip);
}

enum status serve_export(void *ctx, const struct study *study, const struct trial *trial, const char *rule,
                         const char *note, const struct promise *promise, const char *format, struct strbuf *out,
                         struct error *err)
{
    enum export_format kind;
    struct export_reason why = {rule, note, *promise};

    (void)ctx;
    TRY(export_find_format(format, NULL, &kind, err));
    return export_build(study, trial, &why, kind, out, err);
}

/* -- config rows -- */

/* The config of a bare `trawl train GAME`; caller deletes. */
static enum status default_config(const char *env, cJSON **ret_json, struct error *err)
{
    struct setup *setup = NULL, *plain = NULL;
    enum status rc = setup_create(&setup, err);

    if (rc == ST_OK)
        rc = setup_load(setup, env, err);
    if (rc == ST_OK)
        rc = setup_finish(setup, err);
    if (rc == ST_OK)
        rc = setup_derive(setup, NULL, 0, "default", &plain, err);
    if (rc == ST_OK) {
        *ret_json = config_to_json(plain->config);
        rc = *ret_json != NULL ? ST_OK : FAIL(err, ST_NOMEM, "out of memory for a config");
    }
    setup_destroy(plain);
    setup_destroy(setup);
    return rc;
}

static enum status trial_json(const struct trial *trial, cJSON **ret_json, char *ret_env, size_t size,
                              struct error *err)
{
    struct setup *setup = NULL;

    TRY(trial_setup(trial, &setup, err));
    *ret_json = config_to_json(setup->config);
    if (ret_env != NULL)
        snprintf(ret_env, size, "%s", setup->env->name);
    setup_destroy(setup);
    return *ret_json != NULL ? ST_OK : FAIL(err, ST_NOMEM, "out of memory for a config");
}

/* A value of config_to_json as the text that a config file would hold. */
static bool add_text(cJSON *row, const char *key, const cJSON *value)
{
    char buf[NUM_TEXT_MAX];

    if (cJSON_IsString(value) || cJSON_IsRaw(value))
        return json_add_str(row, key, value->valuestring);
    if (cJSON_IsBool(value))
        return json_add_str(row, key, cJSON_IsTrue(value) ? "true" : "false");
    if (cJSON_IsNumber(value))
        return json_add_str(row, key, num_format_f64(value->valuedouble, buf));
    return json_add_str(row, key, NULL);
}

static const cJSON *value_of(const cJSON *config, const char *section, const char *key)
{
    return cJSON_GetObjectItemCaseSensitive(cJSON_GetObjectItemCaseSensitive(config, section), key);
}

struct configs {
    cJSON *own, *plain, *against, *params;
};

static cJSON *row_json(const struct configs *c, const char *section, const cJSON *value)
{
    char key[CONFIG_KEY_MAX];
    const cJSON *usual = value_of(c->plain, section, value->string);
    bool differs = usual == NULL || !cJSON_Compare(usual, value, true);
    cJSON *row = cJSON_CreateObject();

    snprintf(key, sizeof key, "%s.%s", section, value->string);
    bool searched = cJSON_GetObjectItemCaseSensitive(c->params, key) != NULL;
    bool ok = row != NULL && json_add_str(row, "key", key) && add_text(row, "value", value) &&
              add_text(row, "default", usual) &&
              json_add_str(row, "origin",
                           searched  ? "searched"
                           : differs ? "set"
                                     : "default") &&
              json_add_bool(row, "differs", differs) &&
              (c->against == NULL || add_text(row, "against", value_of(c->against, section, value->string)));
    if (ok)
        return row;
    cJSON_Delete(row);
    return NULL;
}

static enum status config_rows(const struct configs *c, cJSON **ret_rows, struct error *err)
{
    cJSON *rows = cJSON_CreateArray();
    const cJSON *section, *value;
    bool ok = rows != NULL;

    cJSON_ArrayForEach(section, c->own)
    {
        cJSON_ArrayForEach(value, section)
        {
            cJSON *row = ok ? row_json(c, section->string, value) : NULL;
            ok = row != NULL && cJSON_AddItemToArray(rows, row);
        }
    }
    if (!ok) {
        cJSON_Delete(rows);
        return FAIL(err, ST_NOMEM, "out of memory for a trial's config");
    }
    *ret_rows = rows;
    return ST_OK;
}

enum status serve_trial_config(void *ctx, const struct study *study, const struct trial *trial,
                               const struct trial *against, cJSON **ret_rows, struct error *err)
{
    struct configs c = {0};
    char env[64] = "";
    enum status rc = trial_json(trial, &c.own, env, sizeof env, err);

    (void)ctx;
    (void)study;
    *ret_rows = NULL;
    if (rc == ST_OK)
        rc = default_config(env, &c.plain, err);
    if (rc == ST_OK && against != NULL)
        rc = trial_json(against, &c.against, NULL, 0, err);
    if (rc == ST_OK && trial->params != NULL)
        rc = json_parse(trial->params, strlen(trial->params), &c.params, err);
    if (rc == ST_OK)
        rc = config_rows(&c, ret_rows, err);
    cJSON_Delete(c.own);
    cJSON_Delete(c.plain);
    cJSON_Delete(c.against);
    cJSON_Delete(c.params);
    return rc;
}

/* -- report -- */

enum status serve_report(void *ctx, const char *study, enum report_format format, struct strbuf *out, struct error *err)
{
    const struct serve_ctx *c = ctx;
    struct study_view *view = mem_alloc(sizeof *view); /* large */
    struct gp_insight insight = {0};
    struct store *store = NULL;
    struct report report;
    enum status rc;

    if (view == NULL)
        return FAIL(err, ST_NOMEM, "out of memory for a report");
    rc = store_open_reader(&store, c->store_path, err);
    if (rc == ST_OK)
        rc = study_view_load(store, study, view, err);
    store_close(store);
    if (rc == ST_OK)
        rc = study_view_advise(view, err);
    if (rc == ST_OK) {
        study_view_report(view, c->store_path, &report);
        if (format != REPORT_CSV && format != REPORT_JSON) {
            rc = insight_init(&insight, view, err);
            report.insight = &insight;
        }
    }
    if (rc == ST_OK)
        rc = report_write(&report, format, out, err);
    gp_insight_free(&insight);
    study_view_free(view);
    mem_free(view);
    return rc;
}

/* -- control -- */

/* A field that is misspelt or belongs to another action would be ignored otherwise, and the answer be "ok". */
static enum status check_fields(const char *action, const cJSON *request, struct error *err)
{
    static const struct {
        const char *field, *action;
    } known[] = {
        {"now", "pause"}, {"trials", "add"}, {"budget_s", "add"}, {"priority", "priority"}, {"trial", "retry"}};
    const cJSON *item;

    cJSON_ArrayForEach(item, request)
    {
        size_t i = 0, n = sizeof known / sizeof known[0];
        for (const cJSON *other = item->next; other != NULL; other = other->next)
            if (strcmp(other->string, item->string) == 0)
                return FAIL(err, ST_USAGE, "the field '%.40s' is given twice", item->string);
        if (strcmp(item->string, "action") == 0)
            continue;
        while (i < n && (strcmp(item->string, known[i].field) != 0 || strcmp(action, known[i].action) != 0))
            i++;
        if (i == n)
            return FAIL(err, ST_USAGE,
                        "%.20s takes no field '%.40s'; pause takes now, add takes trials and budget_s, priority takes "
                        "priority, retry takes trial",
                        action, item->string);
    }
    return ST_OK;
}

static bool is_action(const char *action)
{
    for (int i = 0; i < CONTROL_KINDS; i++)
        if (strcmp(action, control_kind_name((enum control_kind)i)) == 0)
            return true;
    return false;
}

/* ST_USAGE: the request makes no sense; ST_EXISTS: not in the study's state. */
enum status serve_control(void *ctx, const char *study, const cJSON *request, char **ret_message, struct error *err)
{
    const struct serve_ctx *c = ctx;
    const char *action = json_get_str(request, "action");
    cJSON *wire;
    struct control_command command;
    struct error why = {0};
    char text[512];
    bool live = false;
    enum status rc;

    *ret_message = NULL;
    if (action == NULL || !is_action(action))
        return FAIL(err, ST_USAGE, "the action is '%.40s'; pause, continue, stop, add, priority and retry are known",
                    action != NULL ? action : "");
    TRY(check_fields(action, request, err));
    wire = cJSON_Duplicate(request, true);
    if (wire == NULL || !json_add_str(wire, "command", action) || !json_add_str(wire, "study", study)) {
        cJSON_Delete(wire);
        return FAIL(err, ST_NOMEM, "out of memory for a command");
    }
    rc = control_command_from_json(wire, &command, err);
    cJSON_Delete(wire);
    if (rc != ST_OK)
        return rc;
    rc = control_carry_out(c->store_path, &command, text, sizeof text, &live, &why);
    if (rc != ST_OK)
        return FAIL(err, rc == ST_USAGE ? ST_EXISTS : rc, "%s", why.text);
    *ret_message = mem_strdup(text);
    return *ret_message != NULL ? ST_OK : FAIL(err, ST_NOMEM, "out of memory for an answer");
}
