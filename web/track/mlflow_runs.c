/* mlflow_runs.c - requests to an MLflow server, and the experiment and runs to which entries belong.
 *
 * Invariant: a run has its key in the tag trawl.run and is searched by it before it is made. Its creation is never sent
 * twice without a search in between: a lost answer makes no second run. */
#include "web/track/mlflow.h"

#include "web/text/put.h"

#define KEY_TAG "trawl.run"

/* -- requests -- */

static void explain(const struct mlflow *m, const struct http_request *request, struct track_reply *reply)
{
    char text[sizeof reply->text];

    if (m->c.reply.elsewhere)
        return;
    if (m->c.reply.code == 401 || (m->c.reply.code == 403 && strstr(reply->text, "Host header") == NULL))
        snprintf(text, sizeof text, "%.700s (login from %s)", reply->text, m->settings.auth_source);
    else if (m->c.reply.code == 403)
        snprintf(text, sizeof text,
                 "%.700s; the server accepts only host names that it knows: start it with --allowed-hosts, or give its "
                 "address as 127.0.0.1",
                 reply->text);
    else if (m->c.reply.code == 404 && json_get_str(m->c.reply.json, "error_code") == NULL &&
             strcmp(request->method, "PUT") != 0)
        snprintf(text, sizeof text, "%.700s; there is no MLflow at this address (is the path before /api missing?)",
                 reply->text);
    else
        return;
    reply->verdict = TRACK_REFUSED;
    memcpy(reply->text, text, sizeof text);
}

void mlflow_request(struct mlflow *m, const struct http_request *r, struct track_reply *reply)
{
    track_client_send(&m->c, *r, reply);
    explain(m, r, reply);
}

void mlflow_call(struct mlflow *m, const char *path, const struct strbuf *body, struct track_reply *reply)
{
    STRBUF(url, 4096);

    strbuf_addf(&url, "%s/api/2.0/mlflow/%s", m->settings.url, path);
    if (url.status != ST_OK || (body != NULL && body->status != ST_OK)) {
        track_refuse(reply, TRACK_RUN_REFUSED, "the request is longer than its limit");
    } else {
        struct http_request r = {.method = body != NULL ? "POST" : "GET",
                                 .url = url.text,
                                 .body = body != NULL ? body->text : NULL,
                                 .n_body = body != NULL ? body->len : 0,
                                 .timeout_s = m->settings.timeout_s,
                                 .once = strcmp(path, "runs/create") == 0,
                                 .want_json = true};
        mlflow_request(m, &r, reply);
    }
}

bool mlflow_is_error(const struct mlflow *m, const char *error_code)
{
    const char *code = json_get_str(m->c.reply.json, "error_code");
    return code != NULL && strcmp(code, error_code) == 0;
}

/* Texts of the server that become parts of addresses and bodies. */
static bool take_id(const char *text, char *ret, size_t size)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";

    if (text == NULL || text[0] == '\0' || strlen(text) >= size || text[strspn(text, plain)] != '\0')
        return false;
    snprintf(ret, size, "%s", text);
    return true;
}

bool mlflow_add(struct track_reply *reply, const struct track_reply *step)
{
    int64_t n_requests = reply->n_requests, n_skipped = reply->n_skipped;

    *reply = *step;
    reply->n_requests += n_requests;
    reply->n_skipped += n_skipped;
    return reply->verdict == TRACK_DONE;
}

/* -- experiment -- */

static void experiment_path(const struct mlflow *m, struct strbuf *sb)
{
    if (m->settings.experiment_id[0] != '\0') {
        strbuf_addf(sb, "experiments/get?experiment_id=%s", m->settings.experiment_id);
        return;
    }
    strbuf_add(sb, "experiments/get-by-name?experiment_name=");
    http_escape(sb, m->settings.experiment);
}

/* False: the answer has no experiment, or a deleted one. */
static bool read_experiment(struct mlflow *m, struct track_reply *reply)
{
    const cJSON *experiment = json_get(m->c.reply.json, "experiment");
    const char *stage = json_get_str(experiment, "lifecycle_stage");

    if (!take_id(json_get_str(experiment, "experiment_id"), m->experiment_id, sizeof m->experiment_id)) {
        track_refuse(reply, TRACK_RETRY, "%s names no experiment in its answer", m->settings.url);
        return false;
    }
    if (stage != NULL && strcmp(stage, "deleted") == 0) {
        track_refuse(reply, TRACK_REFUSED,
                     "experiment %s ('%.200s') is deleted on the MLflow server; bring it back with `mlflow experiments "
                     "restore -x %s`, or give another name with track.project",
                     m->experiment_id, m->settings.experiment, m->experiment_id);
        m->experiment_id[0] = '\0';
        return false;
    }
    snprintf(m->c.page, sizeof m->c.page, "%s/#/experiments/%s", m->settings.url, m->experiment_id);
    return true;
}

static void create_experiment(struct mlflow *m, struct track_reply *reply)
{
    STRBUF(body, 4096);

    put_json(&body, "{'name':%s}", m->settings.experiment);
    mlflow_call(m, "experiments/create", &body, reply);
}

/* The experiment's id, found or made. */
bool mlflow_ensure_experiment(struct mlflow *m, struct track_reply *reply)
{
    struct strbuf path;

    for (int i = 0; i < 3 && m->experiment_id[0] == '\0'; i++) {
        struct track_reply step = {.verdict = TRACK_DONE};
        strbuf_init(&path, 4096);
        experiment_path(m, &path);
        mlflow_call(m, path.text, NULL, &step);
        strbuf_free(&path);
        if (step.verdict == TRACK_DONE) {
            if (!read_experiment(m, &step)) {
                mlflow_add(reply, &step);
                return false;
            }
            return mlflow_add(reply, &step);
        }
        bool is_missing = m->c.reply.code == 404 && mlflow_is_error(m, "RESOURCE_DOES_NOT_EXIST");
        if (!is_missing || m->settings.experiment_id[0] != '\0') {
            if (is_missing)
                track_refuse(&step, TRACK_REFUSED, "MLFLOW_EXPERIMENT_ID is %s, and the server has no such experiment",
                             m->settings.experiment_id);
            mlflow_add(reply, &step);
            return false;
        }
        step = (struct track_reply){.verdict = TRACK_DONE};
        create_experiment(m, &step);
        /* Or another program was faster and has made it. */
        if (step.verdict != TRACK_DONE && !mlflow_is_error(m, "RESOURCE_ALREADY_EXISTS")) {
            mlflow_add(reply, &step);
            return false;
        }
        step.verdict = TRACK_DONE;
        mlflow_add(reply, &step);
    }
    if (m->experiment_id[0] == '\0')
        track_refuse(reply, TRACK_RETRY, "the experiment was made and is not there");
    return m->experiment_id[0] != '\0';
}

/* -- runs -- */

const char *mlflow_run_id(const struct track_run *run)
{
    return json_get_str(run->state, "run_id");
}

/* "mlflow-artifacts:/1/abc/artifacts" -> "1/abc/artifacts"; "" for places to which the server does not forward
 * files. */
static void artifact_root(const char *uri, char *ret, size_t size)
{
    static const char scheme[] = "mlflow-artifacts:";

    ret[0] = '\0';
    if (uri == NULL || strncmp(uri, scheme, strlen(scheme)) != 0)
        return;
    uri += strlen(scheme);
    if (uri[0] == '/' && uri[1] == '/') /* the server's own host */
        uri += 2 + strcspn(uri + 2, "/");
    uri += strspn(uri, "/");
    if (strstr(uri, "..") == NULL && uri[strcspn(uri, "?#")] == '\0')
        snprintf(ret, size, "%s", uri);
}

/* "info" of the run with this key; NULL: none, or reply has the failure. */
static const cJSON *search_run(struct mlflow *m, const char *key, struct track_reply *reply)
{
    STRBUF(body, 1024);

    strbuf_addf(&body, "{\"experiment_ids\":[\"%s\"],\"filter\":\"tags.`" KEY_TAG "` = '%s'\",\"max_results\":1}",
                m->experiment_id, key);
    mlflow_call(m, "runs/search", &body, reply);
    if (reply->verdict != TRACK_DONE)
        return NULL;
    const cJSON *runs = json_get(m->c.reply.json, "runs");
    return json_get(cJSON_GetArrayItem(runs, 0), "info");
}

static void add_tag(struct strbuf *sb, const char *key, const char *value)
{
    if (value == NULL || value[0] == '\0')
        return;
    put_json(sb, sb->text[sb->len - 1] == '[' ? "{'key':%s,'value':%s}" : ",{'key':%s,'value':%s}", key, value);
}

static const cJSON *create_run(struct mlflow *m, const char *key, const char *name, int64_t ms, const char *parent,
                               struct track_reply *reply)
{
    STRBUF(body, 64u << 10);

    put_json(&body, "{'experiment_id':%s,'start_time':%lld,'run_name':%s,'tags':[", m->experiment_id, (long long)ms,
             name);
    add_tag(&body, KEY_TAG, key);
    add_tag(&body, "mlflow.runName", name); /* servers before 2.0 know the name by this only */
    add_tag(&body, "mlflow.parentRunId", parent);
    add_tag(&body, "mlflow.source.name", "trawl");
    add_tag(&body, "mlflow.source.type", "LOCAL");
    add_tag(&body, "mlflow.user", track_env("USER"));
    add_tag(&body, "mlflow.note.content", m->c.track->notes);
    add_tag(&body, "group", m->c.single ? NULL : m->c.study);
    add_tag(&body, "job_type", parent != NULL || m->c.single ? "train" : "study");
    strbuf_add(&body, "]}");
    mlflow_call(m, "runs/create", &body, reply);
    if (reply->verdict != TRACK_DONE)
        return NULL;
    const cJSON *run = json_get(m->c.reply.json, "run");
    return json_get(run, "info");
}

/* The run of this key, found or made: its id and the place of its files. */
static bool find_or_make(struct mlflow *m, const char *key, const char *name, int64_t ms, const char *parent,
                         char ret_id[MLFLOW_ID_MAX], char *ret_root, size_t root_size, struct track_reply *reply)
{
    struct track_reply step = {.verdict = TRACK_DONE};

    if (!mlflow_ensure_experiment(m, reply))
        return false;
    const cJSON *info = search_run(m, key, &step);
    if (!mlflow_add(reply, &step))
        return false;
    if (info == NULL) {
        step = (struct track_reply){.verdict = TRACK_DONE};
        info = create_run(m, key, name, ms, parent, &step);
        if (!mlflow_add(reply, &step)) {
            m->experiment_id[0] = '\0'; /* perhaps it was deleted: look again */
            return false;
        }
    }
    const char *id = json_get_str(info, "run_id");
    if (!take_id(id != NULL ? id : json_get_str(info, "run_uuid"), ret_id, MLFLOW_ID_MAX)) {
        track_refuse(reply, TRACK_RETRY, "%s names no run in its answer", m->settings.url);
        return false;
    }
    artifact_root(json_get_str(info, "artifact_uri"), ret_root, root_size);
    return true;
}

/* The study's own run, the parent of its trials' runs. */
static bool ensure_parent(struct mlflow *m, int64_t ms, struct track_reply *reply)
{
    char key[64], root[OPT_STR_MAX];

    if (m->parent_id[0] != '\0')
        return true;
    snprintf(key, sizeof key, "%.40s-study", m->c.key);
    return find_or_make(m, key, m->c.study, ms, NULL, m->parent_id, root, sizeof root, reply);
}

bool mlflow_ensure_run(struct mlflow *m, struct track_run *run, const struct track_row *row, struct track_reply *reply)
{
    const char *name = json_get_str(row->json, "name"), *parent = NULL;
    char id[MLFLOW_ID_MAX], root[OPT_STR_MAX];

    if (mlflow_run_id(run) != NULL)
        return true;
    if (name == NULL)
        name = json_get_str(run->state, "name");
    if (run->trial_id != 0 && !m->c.single) {
        if (!ensure_parent(m, row->ms, reply))
            return false;
        parent = m->parent_id;
    }
    if (!find_or_make(m, run->key, name != NULL ? name : run->key, row->ms, parent, id, root, sizeof root, reply))
        return false;
    if (run->trial_id == 0)
        snprintf(m->parent_id, sizeof m->parent_id, "%s", id);
    track_state_set(run, "run_id", id);
    track_state_set(run, "artifacts", root);
    if (name != NULL && json_get_str(run->state, "name") != name)
        track_state_set(run, "name", name);
    return true;
}

void mlflow_set_status(struct mlflow *m, struct track_run *run, const char *status, int64_t end_ms,
                       struct track_reply *reply)
{
    struct track_reply step = {.verdict = TRACK_DONE};
    STRBUF(body, 1024);

    put_json(&body, "{'run_id':%s,'status':%s", mlflow_run_id(run), status);
    if (end_ms > 0)
        put_json(&body, ",'end_time':%lld", (long long)end_ms);
    strbuf_add(&body, "}");
    mlflow_call(m, "runs/update", &body, &step);
    if (mlflow_add(reply, &step)) {
        cJSON_DeleteItemFromObjectCaseSensitive(run->state, "ended");
        if (end_ms > 0)
            json_add_bool(run->state, "ended", true);
    }
}
