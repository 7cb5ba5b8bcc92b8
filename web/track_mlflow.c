/* track_mlflow.c - MLflow over its REST interface: an experiment, a run for the study, a child run for each trial.
 *
 * Invariants: (1) a run carries its key in the tag trawl.run and is looked for by it before it is made, and its
 * creation is never sent twice without a look between, so that a lost answer makes no second one; (2) time stamps are those of the rows, so the server takes what comes twice for the same; (3) the
 * login is a header to the server's own address; files go there too, never to where an answer points.
 *
 * State of a run: {"run_id", "artifacts" (path on the server; "": it takes none), "ended" (it was told an end), "name",
 * "file_tries"}. */
#include "web/track_mlflow.h"

#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"

#define REQUESTS_PER_MINUTE 600
#define ROWS_MAX 2000
#define BATCH_BYTES_MAX (1536u << 10)
#define KEY_TAG "trawl.run"
#define FILE_TRIES 3 /* of a file that a server which works otherwise does not take */
#define FILE_TIMEOUT_S 60

/* -- requests -- */

static void explain(const struct mlflow *m, const struct http_request *request, struct track_reply *reply)
{
    char text[sizeof reply->text];

    if (m->reply.elsewhere)
        return;
    if (m->reply.code == 401 || (m->reply.code == 403 && strstr(reply->text, "Host header") == NULL))
        snprintf(text, sizeof text, "%.700s (login from %s)", reply->text, m->settings.auth_source);
    else if (m->reply.code == 403)
        snprintf(text, sizeof text,
                 "%.700s; the server takes only names it knows: start it with --allowed-hosts, or give its address as "
                 "127.0.0.1",
                 reply->text);
    else if (m->reply.code == 404 && json_get_str(m->reply.json, "error_code") == NULL &&
             strcmp(request->method, "PUT") != 0)
        snprintf(text, sizeof text, "%.700s; there is no MLflow at this address (is the path before /api missing?)",
                 reply->text);
    else
        return;
    reply->verdict = TRACK_REFUSED;
    memcpy(reply->text, text, sizeof text);
}

static void request(struct mlflow *m, struct http_request *r, struct track_reply *reply)
{
    const char *headers[] = {m->settings.auth};

    r->headers = headers;
    r->n_headers = m->settings.auth[0] != '\0' ? 1 : 0;
    http_send(m->http, r, &m->reply);
    track_reply_http(reply, &m->reply);
    reply->n_requests = 1;
    explain(m, r, reply);
}

void mlflow_call(struct mlflow *m, const char *path, const struct strbuf *body, struct track_reply *reply)
{
    struct strbuf url;

    strbuf_init(&url, 4096);
    strbuf_addf(&url, "%s/api/2.0/mlflow/%s", m->settings.url, path);
    if (url.status != ST_OK || (body != NULL && body->status != ST_OK)) {
        track_refuse(reply, TRACK_RETRY, "out of memory for a request");
    } else {
        struct http_request r = {.method = body != NULL ? "POST" : "GET",
                                 .url = url.text,
                                 .body = body != NULL ? body->text : NULL,
                                 .n_body = body != NULL ? body->len : 0,
                                 .timeout_s = m->settings.timeout_s,
                                 .once = strcmp(path, "runs/create") == 0,
                                 .want_json = true};
        request(m, &r, reply);
    }
    strbuf_free(&url);
}

bool mlflow_said(const struct mlflow *m, const char *error_code)
{
    const char *said = json_get_str(m->reply.json, "error_code");
    return said != NULL && strcmp(said, error_code) == 0;
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

static bool add_requests(struct track_reply *reply, const struct track_reply *step)
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

/* False: the answer holds none, or a deleted one. */
static bool read_experiment(struct mlflow *m, struct track_reply *reply)
{
    const cJSON *experiment = cJSON_GetObjectItemCaseSensitive(m->reply.json, "experiment");
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
    snprintf(m->page, sizeof m->page, "%s/#/experiments/%s", m->settings.url, m->experiment_id);
    return true;
}

static void create_experiment(struct mlflow *m, struct track_reply *reply)
{
    struct strbuf body;

    strbuf_init(&body, 4096);
    strbuf_add(&body, "{\"name\":");
    track_json_str(&body, m->settings.experiment);
    strbuf_add(&body, "}");
    mlflow_call(m, "experiments/create", &body, reply);
    strbuf_free(&body);
}

/* The experiment's id, found or made. */
static bool ensure_experiment(struct mlflow *m, struct track_reply *reply)
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
                add_requests(reply, &step);
                return false;
            }
            return add_requests(reply, &step);
        }
        bool is_missing = m->reply.code == 404 && mlflow_said(m, "RESOURCE_DOES_NOT_EXIST");
        if (!is_missing || m->settings.experiment_id[0] != '\0') {
            if (is_missing)
                track_refuse(&step, TRACK_REFUSED, "MLFLOW_EXPERIMENT_ID is %s, and the server has no such experiment",
                             m->settings.experiment_id);
            add_requests(reply, &step);
            return false;
        }
        step = (struct track_reply){.verdict = TRACK_DONE};
        create_experiment(m, &step);
        /* Somebody else was quicker: it is there now. */
        if (step.verdict != TRACK_DONE && !mlflow_said(m, "RESOURCE_ALREADY_EXISTS")) {
            add_requests(reply, &step);
            return false;
        }
        step.verdict = TRACK_DONE;
        add_requests(reply, &step);
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

static void state_set(struct track_run *run, const char *key, const char *value)
{
    cJSON_DeleteItemFromObjectCaseSensitive(run->state, key);
    (void)json_add_str(run->state, key, value);
}

/* "mlflow-artifacts:/1/abc/artifacts" -> "1/abc/artifacts"; "" for places that the server does not hand on to. */
static void artifact_root(const char *uri, char *ret, size_t size)
{
    static const char scheme[] = "mlflow-artifacts:";

    ret[0] = '\0';
    if (uri == NULL || strncmp(uri, scheme, strlen(scheme)) != 0)
        return;
    uri += strlen(scheme);
    if (uri[0] == '/' && uri[1] == '/') /* a host, which is the server's own */
        uri += 2 + strcspn(uri + 2, "/");
    uri += strspn(uri, "/");
    if (strstr(uri, "..") == NULL && uri[strcspn(uri, "?#")] == '\0')
        snprintf(ret, size, "%s", uri);
}

/* "info" of a run that carries the key; NULL: none, or reply says why. */
static const cJSON *search_run(struct mlflow *m, const char *key, struct track_reply *reply)
{
    struct strbuf body;

    strbuf_init(&body, 1024);
    strbuf_addf(&body, "{\"experiment_ids\":[\"%s\"],\"filter\":\"tags.`" KEY_TAG "` = '%s'\",\"max_results\":1}",
                m->experiment_id, key);
    mlflow_call(m, "runs/search", &body, reply);
    strbuf_free(&body);
    if (reply->verdict != TRACK_DONE)
        return NULL;
    const cJSON *runs = cJSON_GetObjectItemCaseSensitive(m->reply.json, "runs");
    return cJSON_GetObjectItemCaseSensitive(cJSON_GetArrayItem(runs, 0), "info");
}

static void add_tag(struct strbuf *sb, const char *key, const char *value)
{
    if (value == NULL || value[0] == '\0')
        return;
    strbuf_addf(sb, "%s{\"key\":\"%s\",\"value\":", sb->text[sb->len - 1] == '[' ? "" : ",", key);
    track_json_str(sb, value);
    strbuf_add(sb, "}");
}

static const cJSON *create_run(struct mlflow *m, const char *key, const char *name, int64_t ms, const char *parent,
                               struct track_reply *reply)
{
    struct strbuf body;

    strbuf_init(&body, 64u << 10);
    strbuf_addf(&body, "{\"experiment_id\":\"%s\",\"start_time\":%lld,\"run_name\":", m->experiment_id, (long long)ms);
    track_json_str(&body, name);
    strbuf_add(&body, ",\"tags\":[");
    add_tag(&body, KEY_TAG, key);
    add_tag(&body, "mlflow.runName", name); /* servers before 2.0 know the name by this only */
    add_tag(&body, "mlflow.parentRunId", parent);
    add_tag(&body, "mlflow.source.name", "trawl");
    add_tag(&body, "mlflow.source.type", "LOCAL");
    add_tag(&body, "mlflow.user", track_env("USER"));
    add_tag(&body, "mlflow.note.content", m->track->notes);
    add_tag(&body, "group", m->study);
    add_tag(&body, "job_type", parent != NULL ? "train" : "study");
    strbuf_add(&body, "]}");
    mlflow_call(m, "runs/create", &body, reply);
    strbuf_free(&body);
    if (reply->verdict != TRACK_DONE)
        return NULL;
    const cJSON *run = cJSON_GetObjectItemCaseSensitive(m->reply.json, "run");
    return cJSON_GetObjectItemCaseSensitive(run, "info");
}

/* The run of this key, found or made: its id and the place of its files. */
static bool find_or_make(struct mlflow *m, const char *key, const char *name, int64_t ms, const char *parent,
                         char ret_id[MLFLOW_ID_MAX], char *ret_root, size_t root_size, struct track_reply *reply)
{
    struct track_reply step = {.verdict = TRACK_DONE};
    const cJSON *info;

    if (!ensure_experiment(m, reply))
        return false;
    info = search_run(m, key, &step);
    if (!add_requests(reply, &step))
        return false;
    if (info == NULL) {
        step = (struct track_reply){.verdict = TRACK_DONE};
        info = create_run(m, key, name, ms, parent, &step);
        if (!add_requests(reply, &step)) {
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

/* The study's own run, which the runs of trials hang on. */
static bool ensure_parent(struct mlflow *m, int64_t ms, struct track_reply *reply)
{
    char key[64], root[OPT_STR_MAX];

    if (m->parent_id[0] != '\0')
        return true;
    snprintf(key, sizeof key, "%.40s-study", m->key);
    return find_or_make(m, key, m->study, ms, NULL, m->parent_id, root, sizeof root, reply);
}

static bool ensure_run(struct mlflow *m, struct track_run *run, const struct track_row *row, struct track_reply *reply)
{
    const char *name = json_get_str(row->json, "name"), *parent = NULL;
    char id[MLFLOW_ID_MAX], root[OPT_STR_MAX];

    if (mlflow_run_id(run) != NULL)
        return true;
    if (name == NULL)
        name = json_get_str(run->state, "name");
    if (run->trial_id != 0) {
        if (!ensure_parent(m, row->ms, reply))
            return false;
        parent = m->parent_id;
    }
    if (!find_or_make(m, run->key, name != NULL ? name : run->key, row->ms, parent, id, root, sizeof root, reply))
        return false;
    if (run->trial_id == 0)
        snprintf(m->parent_id, sizeof m->parent_id, "%s", id);
    state_set(run, "run_id", id);
    state_set(run, "artifacts", root);
    if (name != NULL && json_get_str(run->state, "name") != name)
        state_set(run, "name", name);
    return true;
}

static void set_status(struct mlflow *m, struct track_run *run, const char *status, int64_t end_ms,
                       struct track_reply *reply)
{
    struct track_reply step = {.verdict = TRACK_DONE};
    struct strbuf body;

    strbuf_init(&body, 1024);
    strbuf_addf(&body, "{\"run_id\":\"%s\",\"status\":\"%s\"", mlflow_run_id(run), status);
    if (end_ms > 0)
        strbuf_addf(&body, ",\"end_time\":%lld", (long long)end_ms);
    strbuf_add(&body, "}");
    mlflow_call(m, "runs/update", &body, &step);
    strbuf_free(&body);
    if (add_requests(reply, &step)) {
        cJSON_DeleteItemFromObjectCaseSensitive(run->state, "ended");
        if (end_ms > 0)
            (void)json_add_bool(run->state, "ended", true);
    }
}

/* -- rows -- */

/* For track_flatten: entries of one kind go into the batch, which is sent when it is full. */
struct filling {
    struct mlflow *m;
    struct track_run *run;
    struct track_reply *reply;
    enum mlflow_kind kind;
};

static void put_text(const struct filling *f, enum mlflow_kind kind, const char *key, const char *value)
{
    if (f->reply->verdict != TRACK_DONE || value == NULL || mlflow_batch_text(f->m->batch, kind, key, value))
        return;
    mlflow_batch_send(f->m, f->run, f->reply);
    if (f->reply->verdict == TRACK_DONE)
        (void)mlflow_batch_text(f->m->batch, kind, key, value);
}

static void put_flat(void *ctx, const char *key, const char *value)
{
    const struct filling *f = ctx;
    put_text(f, f->kind, key, value);
}

static void put_metric(const struct filling *f, const struct track_row *row, int64_t step, const char *key,
                       double value)
{
    if (f->reply->verdict != TRACK_DONE || mlflow_batch_metric(f->m->batch, key, value, row->ms, step))
        return;
    mlflow_batch_send(f->m, f->run, f->reply);
    if (f->reply->verdict == TRACK_DONE && !mlflow_batch_metric(f->m->batch, key, value, row->ms, step))
        f->reply->n_skipped++;
}

/* "fast", "team=vision": tags of people, from [track]. */
static void put_words(const struct filling *f, const cJSON *tags)
{
    const cJSON *item;
    char key[OPT_STR_MAX];

    cJSON_ArrayForEach(item, tags)
    {
        if (!cJSON_IsString(item) || item->valuestring[0] == '\0')
            continue;
        size_t n = strcspn(item->valuestring, "=");
        snprintf(key, sizeof key, "%.*s", (int)n, item->valuestring);
        put_text(f, MLFLOW_TAG, key, item->valuestring[n] == '=' ? item->valuestring + n + 1 : "true");
    }
}

/* "start" and "study": the run, its parameters, its tags. */
static void begin_run(struct mlflow *m, struct track_run *run, const struct track_row *row, struct track_reply *reply)
{
    static const char *const facts[] = {"attempt", "number", "origin", "seed",  "device",
                                        "env",     "metric", "goal",   "method"};
    struct filling f = {.m = m, .run = run, .reply = reply, .kind = MLFLOW_PARAM};
    const cJSON *item;
    char key[64];

    if (!ensure_run(m, run, row, reply))
        return;
    if (cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(run->state, "ended"))) {
        set_status(m, run, "RUNNING", 0, reply);
        if (reply->verdict == TRACK_RUN_REFUSED)
            mlflow_gone(m, run, reply);
    }
    mlflow_batch_clear(m->batch);
    track_flatten(cJSON_GetObjectItemCaseSensitive(row->json, "config"), put_flat, &f);
    f.kind = MLFLOW_TAG;
    for (size_t i = 0; i < sizeof facts / sizeof facts[0]; i++) {
        cJSON *one = cJSON_CreateObject();
        snprintf(key, sizeof key, "trawl.%s", facts[i]);
        item = cJSON_GetObjectItemCaseSensitive(row->json, facts[i]);
        if (item != NULL && one != NULL && cJSON_AddItemReferenceToObject(one, key, (cJSON *)item))
            track_flatten(one, put_flat, &f);
        cJSON_Delete(one);
    }
    put_text(&f, MLFLOW_TAG, "trawl.program", m->program);
    put_text(&f, MLFLOW_TAG, "trawl.state", "running");
    put_words(&f, cJSON_GetObjectItemCaseSensitive(row->json, "tags"));
    if (reply->verdict == TRACK_DONE)
        mlflow_batch_send(m, run, reply);
}

static bool is_numbers(const struct track_row *row)
{
    return row->type == TRACK_ROW_METRICS || row->type == TRACK_ROW_SYSTEM;
}

static size_t count_values(const struct track_row *row)
{
    return (size_t)cJSON_GetArraySize(cJSON_GetObjectItemCaseSensitive(row->json, "values")) + 1;
}

/* Rows of numbers from the front, in as few batches as they fit. *ret_n: how many rows the server has got. */
static void send_numbers(struct mlflow *m, struct track_run *run, const struct track_row *rows, size_t n, size_t *ret_n,
                         struct track_reply *reply)
{
    struct filling f = {.m = m, .run = run, .reply = reply};
    size_t in_batch = 0;
    const cJSON *item;
    double value;

    *ret_n = 0;
    if (!ensure_run(m, run, &rows[0], reply))
        return;
    mlflow_batch_clear(m->batch);
    for (size_t i = 0; i < n && is_numbers(&rows[i]); i++) {
        if (in_batch + count_values(&rows[i]) > MLFLOW_METRICS_MAX && i > *ret_n) {
            mlflow_batch_send(m, run, reply);
            if (reply->verdict != TRACK_DONE)
                return;
            *ret_n = i;
            in_batch = 0;
        }
        in_batch += count_values(&rows[i]);
        cJSON_ArrayForEach(item, cJSON_GetObjectItemCaseSensitive(rows[i].json, "values"))
        {
            if (track_json_is_number(item, &value))
                put_metric(&f, &rows[i], rows[i].env_steps, item->string, value);
        }
        if (json_get_f64(rows[i].json, "wall_s", &value) && rows[i].type == TRACK_ROW_METRICS &&
            cJSON_GetObjectItemCaseSensitive(cJSON_GetObjectItemCaseSensitive(rows[i].json, "values"), "wall_s") ==
                NULL)
            put_metric(&f, &rows[i], rows[i].env_steps, "wall_s", value);
        if (reply->verdict != TRACK_DONE)
            return;
        if (i + 1 == n || !is_numbers(&rows[i + 1])) {
            mlflow_batch_send(m, run, reply);
            if (reply->verdict == TRACK_DONE)
                *ret_n = i + 1;
        }
    }
}

static void end_run(struct mlflow *m, struct track_run *run, const struct track_row *row, struct track_reply *reply)
{
    struct filling f = {.m = m, .run = run, .reply = reply};
    const char *state = json_get_str(row->json, "state"), *status = "FINISHED";
    int64_t env_steps = 0;
    double value;

    if (row->type == TRACK_ROW_PAUSE)
        state = "paused";
    else if (row->type == TRACK_ROW_STUDY_END)
        state = "ended";
    if (state == NULL)
        state = "failed";
    if (strcmp(state, "failed") == 0 || strcmp(state, "lost") == 0)
        status = "FAILED";
    else if (strcmp(state, "stopped") == 0 || strcmp(state, "paused") == 0)
        status = "KILLED";
    if (!ensure_run(m, run, row, reply))
        return;
    mlflow_batch_clear(m->batch);
    (void)json_get_i64(row->json, "env_steps", &env_steps);
    for (size_t i = 0; row->type == TRACK_ROW_RESULT && track_result_names[i].told != NULL; i++)
        if (json_get_f64(row->json, track_result_names[i].key, &value))
            put_metric(&f, row, env_steps, track_result_names[i].told, value);
    put_text(&f, MLFLOW_TAG, "trawl.state", state);
    put_text(&f, MLFLOW_TAG, "trawl.reason", json_get_str(row->json, "reason"));
    if (row->type == TRACK_ROW_RESULT) {
        put_text(&f, MLFLOW_TAG, "result/state", state);
        put_text(&f, MLFLOW_TAG, "result/reason", json_get_str(row->json, "reason"));
    }
    if (reply->verdict == TRACK_DONE)
        mlflow_batch_send(m, run, reply);
    if (reply->verdict == TRACK_DONE)
        set_status(m, run, status, row->ms, reply);
}

/* -- files -- */

/* A server that works otherwise and does not take a file shall not keep the rest from going out: what asks to wait is
 * waited for a few times, another failure is met by one more try at once. */
static bool gives_up(struct mlflow *m, struct track_run *run, const struct track_reply *step)
{
    struct http_request health = {.method = "GET"};
    struct track_reply ignored = {.verdict = TRACK_DONE};
    bool asks_to_wait = m->reply.code == 429 || m->reply.code == 503 || m->reply.outcome == HTTP_CANCELLED;
    int64_t tries = 0;
    char url[OPT_STR_MAX + 16];

    if (step->verdict != TRACK_RETRY)
        return step->verdict != TRACK_DONE;
    snprintf(url, sizeof url, "%s/health", m->settings.url);
    health.url = url;
    http_send(m->http, &health, &m->reply);
    track_reply_http(&ignored, &m->reply);
    if (ignored.verdict != TRACK_DONE)
        return false; /* it is down altogether */
    (void)json_get_i64(run->state, "file_tries", &tries);
    cJSON_DeleteItemFromObjectCaseSensitive(run->state, "file_tries");
    (void)json_add_i64(run->state, "file_tries", tries + 1);
    return !asks_to_wait || tries + 1 >= FILE_TRIES;
}

static void put_file(struct mlflow *m, struct track_run *run, const char *name, const char *mime, const char *text,
                     struct track_reply *reply)
{
    struct track_reply step = {.verdict = TRACK_DONE};
    const char *root = json_get_str(run->state, "artifacts");
    struct strbuf url;

    if (root == NULL || root[0] == '\0') {
        if (!m->told_artifacts)
            log_warn("mlflow: the server keeps files of runs where only its own client can write (start it with "
                     "--artifacts-destination to have it hand them on); files stay here, continuing");
        m->told_artifacts = true;
        return;
    }
    strbuf_init(&url, 4096);
    strbuf_addf(&url, "%s/api/2.0/mlflow-artifacts/artifacts/%s/", m->settings.url, root);
    http_escape(&url, name);
    struct http_request r = {.method = "PUT",
                             .url = url.text,
                             .body = text,
                             .n_body = strlen(text),
                             .content_type = mime,
                             .timeout_s = FILE_TIMEOUT_S};
    request(m, &r, &step);
    if (m->reply.code >= 500 && m->reply.code != 503) /* perhaps a passing trouble */
        request(m, &r, &step);
    strbuf_free(&url);
    if (step.verdict != TRACK_DONE && gives_up(m, run, &step)) {
        log_warn("mlflow: %s; the file is left out there, continuing", step.text);
        step = (struct track_reply){.verdict = TRACK_DONE, .n_requests = step.n_requests};
    }
    if (step.verdict == TRACK_DONE)
        cJSON_DeleteItemFromObjectCaseSensitive(run->state, "file_tries");
    add_requests(reply, &step);
}

static void send_file(struct mlflow *m, struct track_run *run, const struct track_row *row, struct track_reply *reply)
{
    const char *name = json_get_str(row->json, "name"), *mime = json_get_str(row->json, "mime"),
               *text = json_get_str(row->json, "text");

    if (m->track->files && name != NULL && text != NULL && ensure_run(m, run, row, reply))
        put_file(m, run, name, mime != NULL ? mime : "text/plain", text, reply);
}

/* Numbers at the step "trials", and the table as MLflow's own log_table leaves one. */
static void send_front(struct mlflow *m, struct track_run *run, const struct track_row *row, struct track_reply *reply)
{
    struct filling f = {.m = m, .run = run, .reply = reply};
    struct strbuf table;
    int64_t trials = 0;
    double value;

    if (!ensure_run(m, run, row, reply))
        return;
    mlflow_batch_clear(m->batch);
    (void)json_get_i64(row->json, "trials", &trials);
    for (size_t i = 0; track_front_names[i].told != NULL; i++)
        if (json_get_f64(row->json, track_front_names[i].key, &value))
            put_metric(&f, row, trials, track_front_names[i].told, value);
    if (m->track->files)
        put_text(&f, MLFLOW_TAG, "mlflow.loggedArtifacts", "[{\"path\": \"front.json\", \"type\": \"table\"}]");
    if (reply->verdict == TRACK_DONE)
        mlflow_batch_send(m, run, reply);
    if (reply->verdict != TRACK_DONE || !m->track->files)
        return;
    strbuf_init(&table, 4u << 20);
    strbuf_add(&table, "{\"columns\":");
    track_json_value(&table, cJSON_GetObjectItemCaseSensitive(row->json, "columns"));
    strbuf_add(&table, ",\"data\":");
    track_json_value(&table, cJSON_GetObjectItemCaseSensitive(row->json, "rows"));
    strbuf_add(&table, "}");
    if (table.status == ST_OK)
        put_file(m, run, "front.json", "application/json", table.text, reply);
    strbuf_free(&table);
}

static void mlflow_send(void *self, struct track_run *run, const struct track_row *rows, size_t n,
                        struct track_reply *ret_reply)
{
    struct mlflow *m = self;
    size_t i = 0;

    *ret_reply = (struct track_reply){.verdict = TRACK_DONE};
    while (i < n && ret_reply->verdict == TRACK_DONE) {
        size_t n_used = 1;
        switch (rows[i].type) {
        case TRACK_ROW_START:
        case TRACK_ROW_STUDY:
            begin_run(m, run, &rows[i], ret_reply);
            break;
        case TRACK_ROW_METRICS:
        case TRACK_ROW_SYSTEM:
            send_numbers(m, run, rows + i, n - i, &n_used, ret_reply);
            i += n_used;
            continue;
        case TRACK_ROW_RESULT:
        case TRACK_ROW_STUDY_END:
        case TRACK_ROW_PAUSE:
            end_run(m, run, &rows[i], ret_reply);
            break;
        case TRACK_ROW_FRONT:
            send_front(m, run, &rows[i], ret_reply);
            break;
        case TRACK_ROW_FILE:
            send_file(m, run, &rows[i], ret_reply);
            break;
        case TRACK_ROW_UNKNOWN:
            break;
        }
        i += ret_reply->verdict == TRACK_DONE ? 1 : 0;
    }
    ret_reply->n_done = i;
}

/* -- login and life -- */

static void mlflow_hello(void *self, struct track_reply *ret_reply)
{
    *ret_reply = (struct track_reply){.verdict = TRACK_DONE};
    (void)ensure_experiment(self, ret_reply);
}

static const char *mlflow_page(void *self)
{
    return ((struct mlflow *)self)->page;
}

static void mlflow_close(void *self)
{
    struct mlflow *m = self;

    if (m == NULL)
        return;
    http_destroy(m->http);
    http_reply_free(&m->reply);
    mlflow_batch_destroy(m->batch);
    explicit_bzero(m, sizeof *m);
    mem_free(m);
}

static enum status mlflow_open(void **ret_self, const struct track_open *open, struct error *err)
{
    struct mlflow *m = mem_alloc(sizeof *m);
    enum status rc;

    *ret_self = NULL;
    if (m == NULL)
        return FAIL(err, ST_NOMEM, "out of memory for mlflow");
    http_reply_init(&m->reply);
    m->study = open->study;
    m->key = open->key;
    m->program = open->program;
    m->track = open->settings;
    rc = mlflow_settings_read(open->settings, open->study, &m->settings, err);
    if (rc == ST_OK) {
        const struct http_settings http = {.ca_file = m->settings.ca_file,
                                           .client_cert = m->settings.client_cert,
                                           .client_key = open->settings->client_key,
                                           .insecure = m->settings.insecure,
                                           .user_agent = open->program,
                                           .cancel = open->cancel};
        rc = http_create(&m->http, &http, err);
    }
    for (size_t i = 0; rc == ST_OK && i < 2; i++)
        rc = http_hide(m->http, m->settings.secrets[i], err);
    if (rc == ST_OK)
        rc = mlflow_batch_create(&m->batch, err);
    if (rc != ST_OK) {
        mlflow_close(m);
        return rc;
    }
    *ret_self = m;
    return ST_OK;
}

const struct tracker_ops track_mlflow_ops = {
    .name = "mlflow",
    .requests_per_minute = REQUESTS_PER_MINUTE,
    .rows_max = ROWS_MAX,
    .bytes_max = BATCH_BYTES_MAX,
    .open = mlflow_open,
    .close = mlflow_close,
    .hello = mlflow_hello,
    .send = mlflow_send,
    .page = mlflow_page,
};
