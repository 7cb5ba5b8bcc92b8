/* submit.c - a new study between its config and the store's row; on the way it may cross a socket.
 * Invariant: what is stored has a config that loads here and now. */
#include "sweep/control/command/submit.h"

#include "study/space/branches.h"
#include "study/setup/limits.h"
#include "study/space/search.h"
#include "study/setup/setup.h"
#include "study/version.h"
#include "study/view/warm_start.h"
#include "web/track/track.h"

static bool name_is_fine(const char *name)
{
    return name[0] != '\0' && strlen(name) <= 100 && name[0] != '-' && name[0] != '.' &&
           strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") == strlen(name);
}

enum status study_name_check(const char *where, const char *name, struct error *err)
{
    if (name_is_fine(name))
        return ST_OK;
    return FAIL(err, ST_USAGE,
                "%s '%.120s': up to 100 letters, digits, '.', '_' and '-' make a name, beginning with a letter, "
                "digit or '_'",
                where, name);
}

void submission_free(struct submission *submission)
{
    study_free(&submission->study);
}

enum status submission_make(const struct setup *setup, const char *name, const char *from,
                            struct submission *ret_submission, struct error *err)
{
    struct search *search = search_create();
    struct study *study = &ret_submission->study;

    *ret_submission = (struct submission){.study = {.maximize = setup->sweep.goal == 0, .seed = setup->sweep.seed}};
    limits_from_settings(&setup->sweep, &study->limits);
    limits_default(&study->limits);
    enum status rc = search_from_setup(setup, search, err);
    THEN(rc, branches_check(setup, search, err));
    if (from != NULL) {
        snprintf(ret_submission->from, sizeof ret_submission->from, "%s", from);
        snprintf(search->from, sizeof search->from, "%s", from);
    }
    if (rc == ST_OK)
        study->space = search_to_json(search);
    THEN(rc, setup_to_ini(setup, &study->config, err));
    study->name = mem_strdup(name);
    study->metric = mem_strdup(setup->sweep.metric);
    study->method = mem_strdup(config_peek(setup->config, "sweep.method"));
    study->program = mem_strdup(program_text);
    search_destroy(search);
    if (rc != ST_OK)
        submission_free(ret_submission);
    return rc;
}

cJSON *submission_to_json(const struct submission *submission)
{
    const struct study *s = &submission->study;
    cJSON *json = cJSON_CreateObject();

    json_add_str(json, "command", "submit");
    json_add_str(json, "study", s->name);
    json_add_str(json, "config", s->config);
    json_add_str(json, "space", s->space);
    json_add_str(json, "method", s->method);
    json_add_str(json, "metric", s->metric);
    json_add_bool(json, "maximize", s->maximize);
    json_add_i64(json, "seed", s->seed);
    limits_add_json(json, &s->limits);
    json_add_str(json, "from", submission->from);
    return json;
}

/* Does the config load, and the space with it? */
static enum status check(const struct study *study, struct error *err)
{
    AT_END(setup_destroy_at) struct setup *setup = NULL;
    AT_END(search_destroy_at) struct search *search = search_create();
    TRY(setup_from_text(&setup, "submitted config", study->config, err));
    TRY(search_from_json(study->space, search, err));
    return search_bind(search, setup, err);
}

static enum status read_study(const cJSON *json, struct study *s, struct error *err)
{
    const struct {
        const char *key;
        char **to;
    } texts[] = {{"study", &s->name},
                 {"config", &s->config},
                 {"space", &s->space},
                 {"method", &s->method},
                 {"metric", &s->metric}};

    for (size_t i = 0; i < COUNT(texts); i++) {
        const char *text = json_get_str(json, texts[i].key);
        if (text == NULL)
            return FAIL(err, ST_USAGE, "the submitted study has no %s; is the program of another version?",
                        texts[i].key);
        *texts[i].to = mem_strdup(text);
    }
    s->program = mem_strdup(program_text);
    s->limits.priority = 1;
    TRY(json_take_bool(json, "maximize", &s->maximize, err));
    TRY(json_take_i64(json, "seed", &s->seed, err));
    TRY(limits_take_json(json, &s->limits, err));
    limits_default(&s->limits);
    if (!name_is_fine(s->name))
        return FAIL(err, ST_USAGE, "'%.120s' is not a name for a study", s->name);
    return check(s, err);
}

enum status submission_from_json(const cJSON *json, struct submission *ret_submission, struct error *err)
{
    struct submission sub = {0};
    const char *from = json_get_str(json, "from");
    enum status rc = read_study(json, &sub.study, err);

    snprintf(sub.from, sizeof sub.from, "%s", from != NULL ? from : "");
    if (rc != ST_OK)
        submission_free(&sub);
    else
        *ret_submission = sub;
    return rc;
}

static enum status check_from(struct store *store, const struct submission *submission, const struct setup *setup,
                              struct error *err)
{
    AT_END(search_destroy_at) struct search *search = search_create();

    TRY(search_from_json(submission->study.space, search, err));
    return warm_start_check(store, submission->from, setup, search, err);
}

/* What would keep the study from its first trial is found before it has a row and so its name. */
static enum status check_start(struct store *store, const struct submission *submission, struct error *err)
{
    const struct study *study = &submission->study;
    AT_END(setup_destroy_at) struct setup *setup = NULL;

    TRY(setup_from_text(&setup, "study's config", study->config, err));
    if (submission->from[0] != '\0')
        TRY(check_from(store, submission, setup, err));
    if (setup->track.trackers[0] != '\0')
        TRY(uploader_check(&setup->track, study->name, false, program_text, err));
    return ST_OK;
}

enum status submission_store(struct store *store, struct submission *submission, struct error *err)
{
    struct study *study = &submission->study;

    TRY(check_start(store, submission, err));
    enum status rc = store_study_create(store, study, err);
    return rc == ST_EXISTS ? error_prefix(err, "sweep --name %s", study->name) : rc;
}
