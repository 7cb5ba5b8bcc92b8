/* handover.c - `trawl sweep` where a daemon holds the store: the study is handed over and watched.
 * Invariant: everything that can be wrong with the config is found here, where the user is. */
#include "sweep/control/handover.h"

#include "base/text/json.h"
#include "study/setup/limits.h"
#include "sweep/control/socket/control_client.h"
#include "sweep/control/follow.h"
#include "sweep/control/status_json.h"
#include "sweep/control/command/submit.h"
#include "sweep/controller/sched_study.h"
#include "sweep/show/study_json.h"
#include "sweep/show/summary.h"
#include "sweep/signals.h"

/* Does a daemon hold the store? It then takes the study, and here is only watched. */
bool handover_is_possible(const struct sweep_cmd *s)
{
    JSON_LOCAL cJSON *answer = NULL;
    struct error ignored = {0};
    struct sweep_status *status;
    int64_t pid;
    bool reached = false, is_daemon = false;

    if (!store_is_held(s->store_path, NULL, &pid))
        return false;
    cJSON *request = cJSON_CreateObject();
    json_add_str(request, "command", "status");
    status = mem_alloc(sizeof *status);
    if (control_call(s->store_path, request, &answer, &reached, &ignored) == ST_OK) {
        sweep_status_from_json(json_get(answer, "live"), status);
        is_daemon = status->daemon;
    }
    mem_free(status);
    return is_daemon;
}

static enum status ask_daemon(const struct sweep_cmd *s, cJSON *request, struct error *err)
{
    JSON_LOCAL cJSON *answer = NULL;
    bool reached;

    return control_call(s->store_path, request, &answer, &reached, err);
}

static enum status submit(const struct sweep_cmd *s, struct error *err)
{
    AT_END(submission_free) struct submission submission = {0};

    TRY(submission_make(s->setup, s->name, s->from, &submission, err));
    return ask_daemon(s, submission_to_json(&submission), err);
}

/* A space that became wider, for the daemon to take. */
static enum status add_space(const struct sweep_cmd *s, cJSON *json, struct error *err)
{
    AT_END(search_destroy_at) struct search *wider = search_create();
    MEM_LOCAL char *text = NULL;
    bool is_wider = false;

    TRY(sweep_check_same(s, wider, &is_wider, err));
    if (is_wider) {
        text = search_to_json(wider);
        json_add_str(json, "space", text);
    }
    return ST_OK;
}

/* The checks of a resume here, where the config is; the daemon gets the new limits. */
static enum status resume_by_daemon(struct sweep_cmd *s, struct error *err)
{
    AT_END(store_close_at) struct store *reader = NULL;
    JSON_LOCAL cJSON *json = cJSON_CreateObject();
    enum status rc = store_open_reader(&reader, s->store_path, err);

    THEN(rc, sched_study_open(&s->ss, reader, s->resume, err));
    if (rc == ST_OK && s->has_config)
        rc = add_space(s, json, err);
    if (rc == ST_OK) {
        struct limits want;
        sweep_new_limits(s, &want);
        json_add_str(json, "command", "resume");
        json_add_str(json, "study", s->resume);
        limits_add_json(json, &want);
        rc = ask_daemon(s, json, err);
        json = NULL;
    }
    sched_study_destroy(s->ss);
    s->ss = NULL;
    return rc;
}

static enum status report_followed(struct sweep_cmd *s, enum status rc, struct error *err)
{
    AT_END(store_close_at) struct store *reader = NULL;
    AT_END(study_view_free) struct study_view view = {0};
    enum status read = store_open_reader(&reader, s->store_path, err);

    THEN(read, study_view_load(reader, s->resume != NULL ? s->resume : s->name, &view, err));
    if (read == ST_OK && s->json)
        read = study_view_print_json(&view, s->store_path, err);
    else if (read == ST_OK)
        read = progress_print_summary(&view, s->store_path, err);
    if (read == ST_OK && rc == ST_OK)
        read = sweep_check_any_done(&view, err);
    return rc != ST_OK ? rc : read;
}

enum status handover_run(struct sweep_cmd *s, struct error *err)
{
    if (s->devices != NULL || s->runs_per_device >= 0)
        return FAIL(err, ST_USAGE,
                    "sweep: a daemon holds %s and chooses the devices; leave --devices and "
                    "--runs-per-device out",
                    s->store_path);
    signals_catch(); /* first: from the request on the daemon runs the study, and a signal only ends watching */
    TRY(s->resume != NULL ? resume_by_daemon(s, err) : submit(s, err));
    if (!s->quiet)
        fprintf(stderr, "a daemon holds %s and runs the study %s; Ctrl-C only ends watching\n", s->store_path,
                s->resume != NULL ? s->resume : s->name);
    enum status rc = follow_study(s->store_path, s->resume != NULL ? s->resume : s->name, s->quiet, err);
    return rc == ST_OK || rc == ST_INTERRUPTED ? report_followed(s, rc, err) : rc;
}
