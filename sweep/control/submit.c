/* submit.c - a new study between its config and the store's row; on the way it may cross a socket.
 * Invariant: what is stored has a config that loads here and now. */
#include "sweep/control/submit.h"

#include "base/config/config.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/status.h"
#include "store/store.h"
#include "study/search.h"
#include "study/setup.h"
#include "study/version.h"
#include "study/warm_start.h"
#include "sweep/control/control_command.h"
#include "sweep/controller/limits.h"
#include "web/track/track.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

bool study_name_is_fine(const char *name)
{
    return name[0] != '\0' && strlen(name) <= 100 && name[0] != '-' && name[0] != '.' &&
           strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") == strlen(name);
}

void submission_free(struct submission *submission)
{
    study_free(&submission->study);
}

static bool copy(char **ret, const char *text)
{
    *ret = mem_strdup(text);
    return *ret != NULL;
}

enum status submission_make(const struct setup *setup, const char *name, const char *from,
                            struct submission *ret_submission, struct error *err)
{
    struct search *search = NULL;
    struct study *study = &ret_submission->study;
    enum status rc;

    *ret_submission = (struct submission){0};
    TRY(search_create(&search, err));
    study->maximize = setup->sweep.goal == 0;
    study->seed = setup->sweep.seed;
    study_limits_fill(&setup->sweep, study);
    study_limits_default(study);
    rc = search_from_setup(setup, search, err);
    if (from != NULL) {
        snprintf(ret_submission->from, sizeof ret_submission->from, "%s", from);
        snprintf(search->from, sizeof search->from, "%s", from);
    }
    if (rc == ST_OK)
        rc = search_to_json(search, &study->space, err);
    if (rc == ST_OK)
        rc = setup_to_ini(setup, &study->config, err);
    if (rc == ST_OK &&
        !(copy(&study->name, name) && copy(&study->metric, setup->sweep.metric) &&
          copy(&study->method, config_peek(setup->config, "sweep.method")) && copy(&study->program, program_text)))
        rc = FAIL(err, ST_NOMEM, "out of memory for a study");
    search_destroy(search);
    if (rc != ST_OK)
        submission_free(ret_submission);
    return rc;
}

cJSON *submission_to_json(const struct submission *submission)
{
    const struct study *s = &submission->study;
    cJSON *json = cJSON_CreateObject();
    bool ok = json != NULL && json_add_str(json, "command", "submit") && json_add_str(json, "study", s->name) &&
              json_add_str(json, "config", s->config) && json_add_str(json, "space", s->space) &&
              json_add_str(json, "method", s->method) && json_add_str(json, "metric", s->metric) &&
              json_add_bool(json, "maximize", s->maximize) && json_add_i64(json, "seed", s->seed) &&
              json_add_i64(json, "trials_max", s->trials_max) && json_add_f64(json, "budget_s", s->budget_s) &&
              json_add_f64(json, "wall_max_s", s->wall_max_s) && json_add_f64(json, "device_max_s", s->device_max_s) &&
              json_add_bool(json, "has_target", s->has_target) && json_add_f64(json, "target_score", s->target_score) &&
              json_add_f64(json, "gain_min", s->gain_min) && json_add_i64(json, "priority", s->priority) &&
              json_add_str(json, "from", submission->from);

    if (!ok) {
        cJSON_Delete(json);
        return NULL;
    }
    return json;
}

/* Does the config load, and the space with it? */
static enum status check(const struct study *study, struct error *err)
{
    struct setup *setup = NULL;
    struct search *search = NULL;
    enum status rc = search_create(&search, err);

    if (rc == ST_OK)
        rc = setup_from_text(&setup, "submitted config", study->config, err);
    if (rc == ST_OK)
        rc = search_from_json(study->space, search, err);
    if (rc == ST_OK)
        rc = search_bind(search, setup, err);
    setup_destroy(setup);
    search_destroy(search);
    return rc;
}

enum status submission_take_limits(const cJSON *json, struct study *s, struct error *err)
{
    TRY(control_take_i64(json, "trials_max", &s->trials_max, err));
    TRY(control_take_f64(json, "budget_s", &s->budget_s, err));
    TRY(control_take_f64(json, "wall_max_s", &s->wall_max_s, err));
    TRY(control_take_f64(json, "device_max_s", &s->device_max_s, err));
    TRY(control_take_bool(json, "has_target", &s->has_target, err));
    TRY(control_take_f64(json, "target_score", &s->target_score, err));
    TRY(control_take_f64(json, "gain_min", &s->gain_min, err));
    return ST_OK;
}

static enum status take_numbers(const cJSON *json, struct study *s, struct error *err)
{
    TRY(control_take_bool(json, "maximize", &s->maximize, err));
    TRY(control_take_i64(json, "seed", &s->seed, err));
    TRY(submission_take_limits(json, s, err));
    TRY(control_take_i64(json, "priority", &s->priority, err));
    return ST_OK;
}

enum status submission_from_json(const cJSON *json, struct submission *ret_submission, struct error *err)
{
    struct submission sub = {0};
    struct study *s = &sub.study;
    const struct {
        const char *key;
        char **to;
    } texts[] = {{"study", &s->name},
                 {"config", &s->config},
                 {"space", &s->space},
                 {"method", &s->method},
                 {"metric", &s->metric}};
    const char *from = json_get_str(json, "from");
    enum status rc = ST_OK;

    for (size_t i = 0; rc == ST_OK && i < sizeof texts / sizeof texts[0]; i++) {
        const char *text = json_get_str(json, texts[i].key);
        if (text == NULL)
            rc = FAIL(err, ST_USAGE, "the submitted study has no %s; is the program of another version?", texts[i].key);
        else if (!copy(texts[i].to, text))
            rc = FAIL(err, ST_NOMEM, "out of memory for a study");
    }
    if (rc == ST_OK && !copy(&s->program, program_text))
        rc = FAIL(err, ST_NOMEM, "out of memory for a study");
    s->priority = 1;
    if (rc == ST_OK)
        rc = take_numbers(json, s, err);
    snprintf(sub.from, sizeof sub.from, "%s", from != NULL ? from : "");
    if (rc == ST_OK && !study_name_is_fine(s->name))
        rc = FAIL(err, ST_USAGE, "'%.120s' is no name for a study", s->name);
    if (rc == ST_OK && (s->trials_max < 0 || s->trials_max > SWEEP_TRIALS_MAX || !(s->budget_s >= 0) ||
                        !(s->wall_max_s >= 0) || !(s->device_max_s >= 0) || !(s->gain_min >= 0) || s->priority < 1 ||
                        s->priority > STUDY_PRIORITY_MAX || !isfinite(s->target_score)))
        rc = FAIL(err, ST_USAGE, "the limits of the submitted study are out of range");
    if (rc == ST_OK)
        rc = check(s, err);
    if (rc != ST_OK) {
        study_free(s);
        return rc;
    }
    study_limits_default(s);
    *ret_submission = sub;
    return ST_OK;
}

static enum status check_from(struct store *store, const struct submission *submission, const struct setup *setup,
                              struct error *err)
{
    struct search *search = NULL;
    enum status rc;

    TRY(search_create(&search, err));
    rc = search_from_json(submission->study.space, search, err);
    if (rc == ST_OK)
        rc = warm_start_check(store, submission->from, setup, search, err);
    search_destroy(search);
    return rc;
}

/* What would keep the study from its first trial is found before it has a row and so its name. */
static enum status check_start(struct store *store, const struct submission *submission, struct error *err)
{
    const struct study *study = &submission->study;
    struct setup *setup = NULL;
    enum status rc = setup_from_text(&setup, "study's config", study->config, err);

    if (rc == ST_OK && submission->from[0] != '\0')
        rc = check_from(store, submission, setup, err);
    if (rc == ST_OK && setup->track.trackers[0] != '\0')
        rc = uploader_check(&setup->track, study->name, false, program_text, err);
    setup_destroy(setup);
    return rc;
}

enum status submission_store(struct store *store, struct submission *submission, struct error *err)
{
    struct study *study = &submission->study;
    enum status rc;

    TRY(check_start(store, submission, err));
    rc = store_study_create(store, study, err);
    return rc == ST_EXISTS ? error_prefix(err, "sweep --name %s", study->name) : rc;
}
