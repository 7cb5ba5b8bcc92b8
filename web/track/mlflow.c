/* mlflow.c - MLflow over its REST interface: an experiment, a run for the study, a child run for each trial.
 *
 * Invariants: (1) a run is made once (mlflow_runs.c); (2) time stamps come from the rows: the server recognises a
 * resend; (3) the login is a header to the server's own address; files go there too, never to an address from an
 * answer.
 *
 * State of a run: {"run_id", "artifacts" (path on the server; "": the server accepts no files), "ended" (its end was
 * sent), "name", "file_tries"}. */
#include "web/track/mlflow.h"

#define REQUESTS_PER_MINUTE 600
#define ROWS_MAX 2000
#define BATCH_BYTES_MAX (1536u << 10)
#define FILE_TRIES 3 /* for a file that an otherwise working server does not accept */
#define FILE_TIMEOUT_S 60

/* -- rows -- */

/* For track_flatten: adds entries of one kind to the batch, which is sent when it is full. */
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

/* "fast", "team=vision": the user's tags, from [track]. */
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
    char key[64];

    if (!mlflow_ensure_run(m, run, row, reply))
        return;
    if (cJSON_IsTrue(json_get(run->state, "ended"))) {
        mlflow_set_status(m, run, "RUNNING", 0, reply);
        if (reply->verdict == TRACK_RUN_REFUSED)
            mlflow_gone(m, run, reply);
    }
    mlflow_batch_clear(m->batch);
    track_flatten(json_get(row->json, "config"), put_flat, &f);
    f.kind = MLFLOW_TAG;
    for (size_t i = 0; i < COUNT(facts); i++) {
        cJSON *one = cJSON_CreateObject();
        snprintf(key, sizeof key, "trawl.%s", facts[i]);
        const cJSON *item = json_get(row->json, facts[i]);
        if (item != NULL && cJSON_AddItemReferenceToObject(one, key, (cJSON *)item))
            track_flatten(one, put_flat, &f);
        cJSON_Delete(one);
    }
    put_text(&f, MLFLOW_TAG, "trawl.program", m->c.program);
    put_text(&f, MLFLOW_TAG, "trawl.state", "running");
    put_words(&f, json_get(row->json, "tags"));
    if (reply->verdict == TRACK_DONE)
        mlflow_batch_send(m, run, reply);
}

static bool is_numbers(const struct track_row *row)
{
    return row->type == TRACK_ROW_METRICS || row->type == TRACK_ROW_SYSTEM;
}

static size_t count_values(const struct track_row *row)
{
    return (size_t)cJSON_GetArraySize(json_get(row->json, "values")) + 1;
}

/* The first rows, as far as they are numbers, in as few batches as possible. *ret_n: rows that the server has. */
static void send_numbers(struct mlflow *m, struct track_run *run, const struct track_row *rows, size_t n, size_t *ret_n,
                         struct track_reply *reply)
{
    struct filling f = {.m = m, .run = run, .reply = reply};
    size_t in_batch = 0;
    const cJSON *item;
    double value;

    *ret_n = 0;
    if (!mlflow_ensure_run(m, run, &rows[0], reply))
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
        cJSON_ArrayForEach(item, json_get(rows[i].json, "values"))
        {
            if (track_json_is_number(item, &value))
                put_metric(&f, &rows[i], rows[i].env_steps, item->string, value);
        }
        if (json_get_f64(rows[i].json, "wall_s", &value) && rows[i].type == TRACK_ROW_METRICS &&
            json_get(json_get(rows[i].json, "values"), "wall_s") == NULL)
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
    if (!mlflow_ensure_run(m, run, row, reply))
        return;
    mlflow_batch_clear(m->batch);
    int64_t env_steps = json_i64_or(row->json, "env_steps", 0);
    for (size_t i = 0; row->type == TRACK_ROW_RESULT && track_result_names[i].sent != NULL; i++)
        if (json_get_f64(row->json, track_result_names[i].key, &value))
            put_metric(&f, row, env_steps, track_result_names[i].sent, value);
    put_text(&f, MLFLOW_TAG, "trawl.state", state);
    put_text(&f, MLFLOW_TAG, "trawl.reason", json_get_str(row->json, "reason"));
    if (row->type == TRACK_ROW_RESULT) {
        put_text(&f, MLFLOW_TAG, "result/state", state);
        put_text(&f, MLFLOW_TAG, "result/reason", json_get_str(row->json, "reason"));
    }
    if (reply->verdict == TRACK_DONE)
        mlflow_batch_send(m, run, reply);
    if (reply->verdict == TRACK_DONE)
        mlflow_set_status(m, run, status, row->ms, reply);
}

/* -- files -- */

/* An otherwise working server that does not accept a file shall not block the other rows: a file for which the server
 * asks to wait is tried a few times, after another failure once more at once. */
static bool gives_up(struct mlflow *m, struct track_run *run, const struct track_reply *step)
{
    struct track_reply ignored = {.verdict = TRACK_DONE};
    bool asks_to_wait = m->c.reply.code == 429 || m->c.reply.code == 503 || m->c.reply.outcome == HTTP_CANCELLED;
    char url[OPT_STR_MAX + 16];

    if (step->verdict != TRACK_RETRY)
        return step->verdict != TRACK_DONE;
    snprintf(url, sizeof url, "%s/health", m->settings.url);
    track_client_send(&m->c, (struct http_request){.method = "GET", .url = url}, &ignored);
    if (ignored.verdict != TRACK_DONE)
        return false; /* the whole server is down */
    int64_t tries = json_i64_or(run->state, "file_tries", 0);
    cJSON_DeleteItemFromObjectCaseSensitive(run->state, "file_tries");
    json_add_i64(run->state, "file_tries", tries + 1);
    return !asks_to_wait || tries + 1 >= FILE_TRIES;
}

static void put_file(struct mlflow *m, struct track_run *run, const char *name, const char *mime, const char *text,
                     struct track_reply *reply)
{
    struct track_reply step = {.verdict = TRACK_DONE};
    const char *root = json_get_str(run->state, "artifacts");

    if (root == NULL || root[0] == '\0') {
        if (!m->logged_artifacts)
            log_warn("mlflow: the server keeps files of runs where only its own client can write (start it with "
                     "--artifacts-destination and it accepts them); files are not sent, continuing");
        m->logged_artifacts = true;
        return;
    }
    STRBUF(url, 4096);
    strbuf_addf(&url, "%s/api/2.0/mlflow-artifacts/artifacts/%s/", m->settings.url, root);
    http_escape(&url, name);
    struct http_request r = {.method = "PUT",
                             .url = url.text,
                             .body = text,
                             .n_body = strlen(text),
                             .content_type = mime,
                             .timeout_s = FILE_TIMEOUT_S};
    mlflow_request(m, &r, &step);
    if (m->c.reply.code >= 500 && m->c.reply.code != 503) /* perhaps a passing failure */
        mlflow_request(m, &r, &step);
    if (step.verdict != TRACK_DONE && gives_up(m, run, &step)) {
        log_warn("mlflow: %s; the file is left out there, continuing", step.text);
        step = (struct track_reply){.verdict = TRACK_DONE, .n_requests = step.n_requests};
    }
    if (step.verdict == TRACK_DONE)
        cJSON_DeleteItemFromObjectCaseSensitive(run->state, "file_tries");
    mlflow_add(reply, &step);
}

static void send_file(struct mlflow *m, struct track_run *run, const struct track_row *row, struct track_reply *reply)
{
    const char *name = json_get_str(row->json, "name"), *mime = json_get_str(row->json, "mime"),
               *text = json_get_str(row->json, "text");

    if (m->c.track->files && name != NULL && text != NULL && mlflow_ensure_run(m, run, row, reply))
        put_file(m, run, name, mime != NULL ? mime : "text/plain", text, reply);
}

/* Numbers at the step "trials", and the table as MLflow's own log_table leaves one. */
static void send_front(struct mlflow *m, struct track_run *run, const struct track_row *row, struct track_reply *reply)
{
    struct filling f = {.m = m, .run = run, .reply = reply};
    struct strbuf table;
    double value;

    if (!mlflow_ensure_run(m, run, row, reply))
        return;
    mlflow_batch_clear(m->batch);
    int64_t trials = json_i64_or(row->json, "trials", 0);
    for (size_t i = 0; track_front_names[i].sent != NULL; i++)
        if (json_get_f64(row->json, track_front_names[i].key, &value))
            put_metric(&f, row, trials, track_front_names[i].sent, value);
    if (m->c.track->files)
        put_text(&f, MLFLOW_TAG, "mlflow.loggedArtifacts", "[{\"path\": \"front.json\", \"type\": \"table\"}]");
    if (reply->verdict == TRACK_DONE)
        mlflow_batch_send(m, run, reply);
    if (reply->verdict != TRACK_DONE || !m->c.track->files)
        return;
    strbuf_init(&table, 4u << 20);
    strbuf_add(&table, "{\"columns\":");
    track_json_value(&table, json_get(row->json, "columns"));
    strbuf_add(&table, ",\"data\":");
    track_json_value(&table, json_get(row->json, "rows"));
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

static void mlflow_login(void *self, struct track_reply *ret_reply)
{
    *ret_reply = (struct track_reply){.verdict = TRACK_DONE};
    (void)mlflow_ensure_experiment(self, ret_reply);
}

static void mlflow_close(void *self)
{
    struct mlflow *m = self;

    if (m != NULL)
        mlflow_batch_destroy(m->batch);
    track_client_close(self);
}

static enum status mlflow_open(void **ret_self, const struct track_open *open, struct error *err)
{
    struct mlflow *m = track_client_create(sizeof *m, open);
    const struct mlflow_settings *s = &m->settings;
    const char *const secrets[] = {s->secrets[0], s->secrets[1]};
    enum status rc = mlflow_settings_read(open->settings, open->single ? "trawl" : open->study, &m->settings, m->c.auth,
                                          sizeof m->c.auth, err);

    m->batch = mlflow_batch_create();
    THEN(rc, track_client_connect(
                 &m->c, open,
                 (struct http_settings){.ca_file = s->ca_file, .client_cert = s->client_cert, .insecure = s->insecure},
                 secrets, 2, err));
    *ret_self = rc == ST_OK ? m : NULL;
    if (rc != ST_OK)
        mlflow_close(m);
    return rc;
}

const struct tracker_ops track_mlflow_ops = {
    .name = "mlflow",
    .requests_per_minute = REQUESTS_PER_MINUTE,
    .rows_max = ROWS_MAX,
    .bytes_max = BATCH_BYTES_MAX,
    .open = mlflow_open,
    .close = mlflow_close,
    .login = mlflow_login,
    .send = mlflow_send,
    .page = track_client_page,
};
