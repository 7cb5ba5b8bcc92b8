/* wandb.c - Weights & Biases: runs by GraphQL, numbers by the file stream.
 *
 * Invariants: (1) a line of the history has one offset for ever: state.lines moves only after a 2xx, and a resend
 * begins at the offset of the lost one and overwrites it; (2) "complete" is sent last and alone; (3) the key is a
 * header to the base URL's host and nowhere else.
 *
 * The state of a run: wandb_run.c. */
#include "web/track/wandb.h"

#define REQUESTS_PER_MINUTE 120
#define ROWS_MAX 2000
#define BATCH_BYTES_MAX (1536u << 10)
#define LINE_MAX_BYTES (10383360u) /* the server refuses longer lines */

static const char query_viewer[] = "query Viewer { viewer { id entity username } }";

/* -- requests -- */

/* Adds entity, project and the key's source to a refusal. */
static void explain(const struct wandb *w, struct track_reply *reply)
{
    char text[ERROR_TEXT_MAX];

    if (reply->verdict != TRACK_REFUSED || w->c.reply.elsewhere)
        return;
    snprintf(text, sizeof text, "%.600s (entity %.120s, project %.128s, key from %s)", reply->text,
             w->entity[0] != '\0' ? w->entity : "of the login", w->settings.project, w->settings.key_source);
    memcpy(reply->text, text, sizeof text);
}

/* Takes body. */
static void post(struct wandb *w, const char *url, cJSON *body, bool graphql, struct track_reply *reply)
{
    const char *headers[3] = {w->c.auth};
    char user[WANDB_NAME_MAX + 32], email[WANDB_NAME_MAX + 32];
    size_t n = 1;
    MEM_LOCAL char *text = json_print(body, false);

    cJSON_Delete(body);
    snprintf(user, sizeof user, "X-WANDB-USERNAME: %s", w->settings.username);
    snprintf(email, sizeof email, "X-WANDB-USER-EMAIL: %s", w->settings.email);
    if (graphql && w->settings.username[0] != '\0')
        headers[n++] = user;
    if (graphql && w->settings.email[0] != '\0')
        headers[n++] = email;
    track_client_send(&w->c,
                      (struct http_request){.method = "POST",
                                            .url = url,
                                            .headers = headers,
                                            .n_headers = n,
                                            .body = text,
                                            .n_body = strlen(text),
                                            .timeout_s = graphql ? w->settings.timeout_s : w->settings.stream_timeout_s,
                                            .want_json = true},
                      reply);
}

const cJSON *wandb_graphql(struct wandb *w, const char *operation, const char *query, cJSON *variables,
                           struct track_reply *reply)
{
    char url[OPT_STR_MAX + 16];
    cJSON *body = cJSON_CreateObject();

    json_add_str(body, "query", query);
    json_add_str(body, "operationName", operation);
    json_add(body, "variables", variables);
    snprintf(url, sizeof url, "%s/graphql", w->settings.base_url);
    post(w, url, body, true, reply);
    explain(w, reply);
    if (reply->verdict == TRACK_RUN_REFUSED && w->c.reply.code == 404) { /* no such project: all runs are refused */
        reply->verdict = TRACK_REFUSED;
        explain(w, reply);
    }
    if (reply->verdict != TRACK_DONE)
        return NULL;
    const cJSON *data = json_get(w->c.reply.json, "data");
    const cJSON *errors = json_get(w->c.reply.json, "errors");
    if (cJSON_IsObject(data) && (!cJSON_IsArray(errors) || cJSON_GetArraySize(errors) == 0 || data->child != NULL))
        return data;
    const char *why = json_get_str(cJSON_GetArrayItem(errors, 0), "message");
    snprintf(reply->text, sizeof reply->text, "%s: %s", operation, why != NULL ? why : "the answer holds no data");
    reply->verdict = TRACK_RUN_REFUSED;
    return NULL;
}

void wandb_stream(struct wandb *w, struct track_run *run, cJSON *body, struct track_reply *reply)
{
    STRBUF(url, 2048);

    strbuf_addf(&url, "%s/files/", w->settings.base_url);
    http_escape(&url, json_get_str(run->state, "entity") != NULL ? json_get_str(run->state, "entity") : "");
    strbuf_add(&url, "/");
    http_escape(&url, json_get_str(run->state, "project") != NULL ? json_get_str(run->state, "project") : "");
    strbuf_add(&url, "/");
    http_escape(&url, wandb_run_id(run));
    strbuf_add(&url, "/file_stream");
    post(w, url.text, body, false, reply);
    explain(w, reply);
    if (reply->verdict == TRACK_DONE)
        reply->stop = cJSON_IsTrue(json_get(w->c.reply.json, "stopped"));
}

/* -- numbers -- */

/* One body of the stream under construction. */
struct chunk {
    cJSON *history, *events; /* texts of lines */
    cJSON *summary; /* after this chunk; replaces the run's when the chunk is sent */
    int64_t n_skipped;
};

static void chunk_begin(struct chunk *c, const struct track_run *run)
{
    const cJSON *summary = json_get(run->state, "summary");

    *c = (struct chunk){.history = cJSON_CreateArray(),
                        .events = cJSON_CreateArray(),
                        .summary = summary != NULL ? cJSON_Duplicate(summary, true) : cJSON_CreateObject()};
}

static void chunk_row(struct chunk *c, const struct track_run *run, const struct track_row *row)
{
    int64_t started_ms = wandb_state_i64(run, "started_ms", row->ms);

    if (row->type == TRACK_ROW_METRICS && row->env_steps <= wandb_state_i64(run, "after_step", INT64_MIN)) {
        c->n_skipped++; /* the run had steps up to there before Trawl continued it */
        return;
    }
    STRBUF(line, LINE_MAX_BYTES);
    if (row->type == TRACK_ROW_SYSTEM)
        wandb_event_line(&line, row, started_ms);
    else
        wandb_history_line(&line, row, json_get(row->json, "values"), row->env_steps, started_ms, c->summary);
    if (line.status != ST_OK)
        c->n_skipped++;
    else
        cJSON_AddItemToArray(row->type == TRACK_ROW_SYSTEM ? c->events : c->history, cJSON_CreateString(line.text));
}

static void add_file_lines(cJSON *files, const char *name, int64_t offset, cJSON *content)
{
    cJSON *file = cJSON_AddObjectToObject(files, name);

    json_add_i64(file, "offset", offset);
    json_add(file, "content", content);
}

/* Sends the chunk; the run's state moves when the server has it. */
static void chunk_send(struct wandb *w, struct track_run *run, struct chunk *c, struct track_reply *reply)
{
    int64_t lines = wandb_state_i64(run, "lines", 0), events = wandb_state_i64(run, "events", 0);
    int64_t n_lines = cJSON_GetArraySize(c->history), n_events = cJSON_GetArraySize(c->events);
    cJSON *body, *files, *summary;
    struct strbuf text;

    strbuf_init(&text, LINE_MAX_BYTES);
    track_json_bare_value(&text, c->summary);
    if (text.status != ST_OK) {
        strbuf_free(&text);
        track_refuse(reply, TRACK_RUN_REFUSED, "the run's summary has more than %u bytes", LINE_MAX_BYTES);
        return;
    }
    body = cJSON_CreateObject();
    files = cJSON_AddObjectToObject(body, "files");
    summary = cJSON_CreateArray();
    cJSON_AddItemToArray(summary, cJSON_CreateString(text.text));
    strbuf_free(&text);
    add_file_lines(files, "wandb-summary.json", 0, summary);
    if (n_lines > 0) {
        add_file_lines(files, "wandb-history.jsonl", lines, c->history);
        c->history = NULL;
    }
    if (n_events > 0) {
        add_file_lines(files, "wandb-events.jsonl", events, c->events);
        c->events = NULL;
    }
    wandb_stream(w, run, body, reply);
    if (reply->verdict != TRACK_DONE)
        return;
    reply->n_skipped = c->n_skipped;
    wandb_state_set_i64(run, "lines", lines + n_lines);
    wandb_state_set_i64(run, "events", events + n_events);
    cJSON_DeleteItemFromObjectCaseSensitive(run->state, "summary");
    cJSON_AddItemToObject(run->state, "summary", c->summary);
    c->summary = NULL;
}

static void chunk_free(struct chunk *c)
{
    cJSON_Delete(c->history);
    cJSON_Delete(c->events);
    cJSON_Delete(c->summary);
}

/* The first rows, as far as they are metrics or system, in one request. *ret_n: their number. */
static void send_numbers(struct wandb *w, struct track_run *run, const struct track_row *rows, size_t n, size_t *ret_n,
                         struct track_reply *reply)
{
    struct chunk c;
    size_t i = 0;

    chunk_begin(&c, run);
    for (; i < n && (rows[i].type == TRACK_ROW_METRICS || rows[i].type == TRACK_ROW_SYSTEM); i++)
        chunk_row(&c, run, &rows[i]);
    chunk_send(w, run, &c, reply);
    chunk_free(&c);
    *ret_n = i;
}

void wandb_line_send(struct wandb *w, struct track_run *run, const struct track_row *row, cJSON *values, int64_t step,
                     struct track_reply *reply)
{
    int64_t last = wandb_state_i64(run, "step", -1);
    AT_END(chunk_free) struct chunk c = {0};

    step = step > last ? step : last + 1;
    chunk_begin(&c, run);
    STRBUF(line, LINE_MAX_BYTES);
    wandb_history_line(&line, row, values, step, wandb_state_i64(run, "started_ms", row->ms), c.summary);
    cJSON_AddItemToArray(c.history, cJSON_CreateString(line.text));
    chunk_send(w, run, &c, reply);
    if (reply->verdict == TRACK_DONE)
        wandb_state_set_i64(run, "step", step);
    cJSON_Delete(values);
}

/* Final facts go into the summary, then the run is complete. */
static void end_run(struct wandb *w, struct track_run *run, const struct track_row *row, struct track_reply *reply)
{
    static const char *const facts[] = {"score", "perf", "cost_s", "device_s", "env_steps", "state", "reason"};
    const char *state = json_get_str(row->json, "state");
    bool good = row->type == TRACK_ROW_STUDY_END || (state != NULL && strcmp(state, "done") == 0) ||
                (state != NULL && strcmp(state, "stopped") == 0);
    struct chunk c;
    char key[32];

    *reply = (struct track_reply){.verdict = TRACK_DONE};
    chunk_begin(&c, run);
    for (size_t i = 0; i < COUNT(facts); i++) {
        const cJSON *item = json_get(row->json, facts[i]);
        if (item == NULL || cJSON_IsNull(item))
            continue;
        snprintf(key, sizeof key, "result/%s", facts[i]);
        cJSON_DeleteItemFromObjectCaseSensitive(c.summary, key);
        cJSON_AddItemToObject(c.summary, key, cJSON_Duplicate(item, true));
    }
    if (row->type == TRACK_ROW_RESULT)
        chunk_send(w, run, &c, reply);
    chunk_free(&c);
    if (reply->verdict != TRACK_DONE)
        return;
    cJSON *body = cJSON_CreateObject();
    json_add_bool(body, "complete", true);
    json_add_i64(body, "exitcode", good ? 0 : 1);
    wandb_stream(w, run, body, reply);
    reply->n_requests = 2;
}

static void pause_run(struct wandb *w, struct track_run *run, struct track_reply *reply)
{
    cJSON *body = cJSON_CreateObject();

    json_add_bool(body, "preempting", true);
    wandb_stream(w, run, body, reply);
}

static void send_file(struct wandb *w, struct track_run *run, const struct track_row *row, struct track_reply *reply)
{
    const char *name = json_get_str(row->json, "name"), *mime = json_get_str(row->json, "mime");
    const char *text = json_get_str(row->json, "text");

    *reply = (struct track_reply){.verdict = TRACK_DONE};
    if (!w->c.track->files || name == NULL || text == NULL)
        return;
    if (mime != NULL && strcmp(mime, "image/svg+xml") == 0)
        wandb_picture_send(w, run, row, text, reply);
    else
        wandb_file_send(w, run, name, mime != NULL ? mime : "text/plain", text, strlen(text), reply);
    if (reply->verdict == TRACK_RUN_REFUSED) { /* only the file is lost, not the run */
        reply->verdict = TRACK_DONE;
        reply->n_skipped = 1;
    }
}

/* Does the server not know the run? A run's first rows make it. */
static bool is_unknown(const struct wandb *w, const struct track_row *row, const struct track_reply *reply)
{
    bool is_start = row->type == TRACK_ROW_START || row->type == TRACK_ROW_STUDY;
    bool is_file = row->type == TRACK_ROW_FILE || row->type == TRACK_ROW_FRONT;

    return !is_start && w->c.reply.code == 404 && !w->c.reply.elsewhere &&
           (reply->verdict == TRACK_RUN_REFUSED || (is_file && reply->verdict == TRACK_REFUSED));
}

static void wandb_send(void *self, struct track_run *run, const struct track_row *rows, size_t n,
                       struct track_reply *ret_reply)
{
    struct wandb *w = self;
    struct track_reply total = {.verdict = TRACK_DONE};
    size_t i = 0;

    while (i < n && total.verdict == TRACK_DONE) {
        struct track_reply reply = {.verdict = TRACK_DONE};
        size_t n_used = 1;
        switch (rows[i].type) {
        case TRACK_ROW_START:
        case TRACK_ROW_STUDY:
            wandb_run_start(w, run, &rows[i], &reply);
            break;
        case TRACK_ROW_METRICS:
        case TRACK_ROW_SYSTEM:
            send_numbers(w, run, rows + i, n - i, &n_used, &reply);
            break;
        case TRACK_ROW_RESULT:
        case TRACK_ROW_STUDY_END:
            end_run(w, run, &rows[i], &reply);
            break;
        case TRACK_ROW_PAUSE:
            pause_run(w, run, &reply);
            break;
        case TRACK_ROW_FRONT:
            wandb_front_send(w, run, &rows[i], &reply);
            break;
        case TRACK_ROW_FILE:
            send_file(w, run, &rows[i], &reply);
            break;
        case TRACK_ROW_UNKNOWN:
            break;
        }
        if (is_unknown(w, &rows[i], &reply))
            wandb_run_remake(w, run, &reply);
        else if (reply.verdict == TRACK_DONE)
            cJSON_DeleteItemFromObjectCaseSensitive(run->state, "remade");
        i += reply.verdict == TRACK_DONE ? n_used : 0;
        reply.n_requests = total.n_requests + (reply.n_requests > 0 ? reply.n_requests : 1);
        reply.n_skipped += total.n_skipped;
        reply.stop = reply.stop || total.stop;
        total = reply;
    }
    *ret_reply = total;
    ret_reply->n_done = i;
}

static void wandb_beat(void *self, struct track_run *run, struct track_reply *ret_reply)
{
    wandb_stream(self, run, cJSON_CreateObject(), ret_reply);
}

/* -- login and life -- */

static void wandb_login(void *self, struct track_reply *ret_reply)
{
    struct wandb *w = self;
    const cJSON *data = wandb_graphql(w, "Viewer", query_viewer, cJSON_CreateObject(), ret_reply), *viewer;

    if (data == NULL)
        return;
    viewer = json_get(data, "viewer");
    if (!cJSON_IsObject(viewer)) {
        track_refuse(ret_reply, TRACK_REFUSED, "the login is not known");
        w->c.reply.elsewhere = false;
        explain(w, ret_reply);
        return;
    }
    const char *entity = json_get_str(viewer, "entity");
    if (w->entity[0] == '\0' && entity != NULL)
        snprintf(w->entity, sizeof w->entity, "%s", entity);
    if (w->c.single)
        snprintf(w->c.page, sizeof w->c.page, "%.250s/%.200s/%.128s", w->settings.app_url, w->entity,
                 w->settings.project);
    else
        snprintf(w->c.page, sizeof w->c.page, "%.250s/%.200s/%.128s/groups/%.200s", w->settings.app_url, w->entity,
                 w->settings.project, w->c.study);
}

static enum status wandb_open(void **ret_self, const struct track_open *open, struct error *err)
{
    struct wandb *w = track_client_create(sizeof *w, open);
    const char *const secrets[] = {w->settings.api_key};
    enum status rc = wandb_settings_read(open->settings, &w->settings, err);

    if (rc == ST_OK) {
        *open->ret_mode = w->settings.mode;
        snprintf(w->entity, sizeof w->entity, "%s", w->settings.entity);
        track_basic_auth(w->c.auth, sizeof w->c.auth, "api", w->settings.api_key);
        rc = track_client_connect(&w->c, open,
                                  (struct http_settings){.proxy = w->settings.proxy, .insecure = w->settings.insecure},
                                  secrets, 1, err);
    }
    *ret_self = rc == ST_OK ? w : NULL;
    if (rc != ST_OK)
        track_client_close(w);
    return rc;
}

const struct tracker_ops track_wandb_ops = {
    .name = "wandb",
    .requests_per_minute = REQUESTS_PER_MINUTE,
    .rows_max = ROWS_MAX,
    .bytes_max = BATCH_BYTES_MAX,
    .open = wandb_open,
    .close = track_client_close,
    .login = wandb_login,
    .send = wandb_send,
    .beat = wandb_beat,
    .page = track_client_page,
};
