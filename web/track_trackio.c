/* track_trackio.c - Trackio over its HTTP interface: a run for each trial and one for the study, rows by bulk_log.
 *
 * Invariants: (1) a row's log id is made of the run's key and its number in the outbox, and the server passes over one that it
 * has, so a resend changes nothing; (2) the token is a header to the server's own address.
 *
 * The server's times are its own; when a number was measured is told by wall_s. Trackio has no end of a run: the last row
 * says how it ended, and a trial that failed raises an alert. State of a run: {"name", "step"}. */
#include "web/track_util.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/num.h"

#define REQUESTS_PER_MINUTE 240
#define ROWS_MAX 1000
#define BATCH_BYTES_MAX (1u << 20)
#define PROJECT_MAX 128
#define FRONT_ROWS_MAX 200
#define TOKEN_HEADER "X-Trackio-Write-Token: "

struct trackio {
    char url[OPT_STR_MAX], project[PROJECT_MAX + 1], page[OPT_STR_MAX * 2];
    char auth[TRACK_SECRET_MAX + 64]; /* a header; a secret; "": none */
    const char *auth_source;
    bool is_space; /* on Hugging Face: the login is theirs */
    const char *study, *program; /* borrowed */
    struct http *http;
    struct http_reply reply;
    struct strbuf body;
};

/* -- requests -- */

/* The body is in t->body. */
static void call(struct trackio *t, const char *name, struct track_reply *reply)
{
    char url[OPT_STR_MAX + 64];
    const char *headers[] = {t->auth};
    struct http_request request = {.method = "POST",
                                   .url = url,
                                   .headers = headers,
                                   .n_headers = t->auth[0] != '\0' ? 1 : 0,
                                   .body = t->body.text,
                                   .n_body = t->body.len,
                                   .want_json = true};

    *reply = (struct track_reply){.verdict = TRACK_RETRY};
    if (t->body.status != ST_OK) {
        track_refuse(reply, TRACK_RETRY, "out of memory for a request");
        return;
    }
    snprintf(url, sizeof url, "%s/api/%s", t->url, name);
    http_send(t->http, &request, &t->reply);
    track_reply_http(reply, &t->reply);
    reply->n_requests = 1;
    if (reply->verdict == TRACK_DONE || t->reply.elsewhere)
        return;
    const char *error = json_get_str(t->reply.json, "error");
    char text[sizeof reply->text];
    if (reply->verdict == TRACK_REFUSED || (t->reply.code == 400 && error != NULL && strstr(error, "write_token")))
        snprintf(text, sizeof text, "%.700s (token from %s)", reply->text, t->auth_source);
    else if (t->reply.code == 404)
        snprintf(text, sizeof text, "%.700s; is there a Trackio server at this address?", reply->text);
    else
        return;
    reply->verdict = TRACK_REFUSED;
    memcpy(reply->text, text, sizeof text);
}

static bool version_is_ours(struct trackio *t, struct track_reply *reply)
{
    char url[OPT_STR_MAX + 16];
    const char *headers[] = {t->auth};
    const struct http_request request = {.method = "GET",
                                         .url = url,
                                         .headers = headers,
                                         .n_headers = t->is_space && t->auth[0] != '\0' ? 1 : 0,
                                         .want_json = true};
    int64_t version = 0;

    snprintf(url, sizeof url, "%s/version", t->url);
    http_send(t->http, &request, &t->reply);
    track_reply_http(reply, &t->reply);
    reply->n_requests = 1;
    if (reply->verdict != TRACK_DONE)
        return false;
    if (!json_get_i64(t->reply.json, "api_version", &version) || version != 1) {
        track_refuse(reply, TRACK_REFUSED, "%s: the server speaks version %lld of Trackio's interface, 1 is needed",
                     t->url, (long long)version);
        return false;
    }
    return true;
}

static void trackio_hello(void *self, struct track_reply *reply)
{
    struct trackio *t = self;

    *reply = (struct track_reply){.verdict = TRACK_DONE};
    if (!version_is_ours(t, reply) || t->is_space)
        return;
    strbuf_clear(&t->body);
    strbuf_add(&t->body, "{\"args\":[],\"kwargs\":{}}");
    call(t, "get_run_mutation_status", reply);
    if (reply->verdict != TRACK_DONE)
        return;
    if (!cJSON_IsTrue(
            cJSON_GetObjectItemCaseSensitive(cJSON_GetObjectItemCaseSensitive(t->reply.json, "data"), "allowed")))
        track_refuse(reply, TRACK_REFUSED,
                     "%s does not take the write token from %s; it prints the right one when it starts "
                     "(\"...?write_token=...\"), give it in TRACKIO_WRITE_TOKEN",
                     t->url, t->auth_source);
}

/* -- rows -- */

static const char *run_name(const struct trackio *t, const struct track_run *run)
{
    const char *name = json_get_str(run->state, "name");
    return name != NULL ? name : run->trial_id == 0 ? t->study : run->key;
}

/* {"project": ..., "metrics": { */
static void begin_row(struct trackio *t, const struct track_run *run, const struct track_row *row, int64_t step)
{
    struct strbuf *sb = &t->body;

    strbuf_add(sb, sb->text[sb->len - 1] == '[' ? "{\"project\":" : ",{\"project\":");
    track_json_str(sb, t->project);
    strbuf_add(sb, ",\"run\":");
    track_json_str(sb, run_name(t, run));
    strbuf_addf(sb, ",\"run_id\":\"%s\",\"log_id\":\"%s:%lld\",\"step\":%lld,\"metrics\":{", run->key, run->key,
                (long long)row->id, (long long)step);
}

static void add_name(struct strbuf *sb, const char *name)
{
    if (sb->len > 0 && sb->text[sb->len - 1] != '{')
        strbuf_add(sb, ",");
    track_json_str(sb, name);
    strbuf_add(sb, ":");
}

static void add_number(struct strbuf *sb, const char *name, double value)
{
    add_name(sb, name);
    track_json_number(sb, value);
}

static void add_flat(void *ctx, const char *key, const char *value)
{
    struct strbuf *sb = ctx;
    double number;

    add_name(sb, key);
    if (num_parse_f64(value, &number))
        track_json_number(sb, number);
    else
        track_json_str(sb, value);
}

/* Keys with a low line in front are Trackio's own. */
static void add_config(struct trackio *t, const struct track_row *row)
{
    static const char *const facts[] = {"attempt", "number", "origin", "seed", "device", "metric", "goal", "method"};
    struct strbuf *sb = &t->body;
    char created[40], key[64];
    time_t at = (time_t)(row->ms / 1000);
    struct tm utc;

    strbuf_add(sb, "},\"config\":{");
    track_flatten(cJSON_GetObjectItemCaseSensitive(row->json, "config"), add_flat, sb);
    for (size_t i = 0; i < sizeof facts / sizeof facts[0]; i++) {
        const cJSON *item = cJSON_GetObjectItemCaseSensitive(row->json, facts[i]);
        if (item == NULL)
            continue;
        snprintf(key, sizeof key, "trawl.%s", facts[i]);
        add_name(sb, key);
        track_json_value(sb, item);
    }
    add_name(sb, "trawl.program");
    track_json_str(sb, t->program);
    add_name(sb, "trawl.study");
    track_json_str(sb, t->study);
    if (cJSON_GetArraySize(cJSON_GetObjectItemCaseSensitive(row->json, "tags")) > 0) {
        add_name(sb, "tags");
        track_json_value(sb, cJSON_GetObjectItemCaseSensitive(row->json, "tags"));
    }
    add_name(sb, "_Group");
    track_json_str(sb, t->study);
    add_name(sb, "_Username");
    track_json_str(sb, track_env("USER") != NULL ? track_env("USER") : "");
    add_name(sb, "_Created");
    if (gmtime_r(&at, &utc) == NULL || strftime(created, sizeof created, "%Y-%m-%dT%H:%M:%S+00:00", &utc) == 0)
        created[0] = '\0';
    track_json_str(sb, created);
}

static void add_markdown_cell(struct strbuf *sb, const cJSON *cell)
{
    char text[NUM_TEXT_MAX];

    if (cJSON_IsNumber(cell))
        snprintf(text, sizeof text, "%.6g", cell->valuedouble);
    strbuf_add(sb, " ");
    for (const char *c = cJSON_IsNumber(cell) ? text : cJSON_IsString(cell) ? cell->valuestring : ""; *c != '\0'; c++)
        strbuf_add_n(sb, *c == '|' || *c == '\n' ? " " : c, 1);
    strbuf_add(sb, " |");
}

/* The front's table as a text that Trackio shows. */
static void add_front(struct strbuf *sb, const cJSON *front)
{
    const cJSON *row, *cell;
    struct strbuf table;
    int n = 0;

    strbuf_init(&table, 1u << 20);
    strbuf_add(&table, "|");
    cJSON_ArrayForEach(cell, cJSON_GetObjectItemCaseSensitive(front, "columns")) add_markdown_cell(&table, cell);
    strbuf_add(&table, "\n|");
    cJSON_ArrayForEach(cell, cJSON_GetObjectItemCaseSensitive(front, "columns")) strbuf_add(&table, "---|");
    cJSON_ArrayForEach(row, cJSON_GetObjectItemCaseSensitive(front, "rows"))
    {
        if (n++ == FRONT_ROWS_MAX)
            break;
        strbuf_add(&table, "\n|");
        cJSON_ArrayForEach(cell, row) add_markdown_cell(&table, cell);
    }
    if (table.status == ST_OK) {
        add_name(sb, "study/front");
        strbuf_add(sb, "{\"_type\":\"trackio.markdown\",\"_value\":");
        track_json_str(sb, table.text);
        strbuf_add(sb, "}");
    }
    strbuf_free(&table);
}

static void add_values(struct strbuf *sb, const struct track_row *row)
{
    const cJSON *values = cJSON_GetObjectItemCaseSensitive(row->json, "values"), *item;
    double value;

    cJSON_ArrayForEach(item, values)
    {
        if (track_json_is_number(item, &value))
            add_number(sb, item->string, value);
    }
    if (row->type == TRACK_ROW_METRICS && cJSON_GetObjectItemCaseSensitive(values, "wall_s") == NULL &&
        json_get_f64(row->json, "wall_s", &value))
        add_number(sb, "wall_s", value);
}

static void add_named(struct strbuf *sb, const struct track_front_name *names, const cJSON *json)
{
    double value;

    for (size_t i = 0; names[i].told != NULL; i++)
        if (json_get_f64(json, names[i].key, &value))
            add_number(sb, names[i].told, value);
}

static int64_t last_step(const struct track_run *run)
{
    int64_t step = 0;
    (void)json_get_i64(run->state, "step", &step);
    return step;
}

static void note_start(struct track_run *run, const struct track_row *row)
{
    const char *name = json_get_str(row->json, "name");

    if (name == NULL)
        return;
    cJSON_DeleteItemFromObjectCaseSensitive(run->state, "name");
    (void)json_add_str(run->state, "name", name);
}

/* One row of the outbox as a row of bulk_log; false: Trackio is told nothing of it. */
static bool add_row(struct trackio *t, struct track_run *run, const struct track_row *row, int64_t *step)
{
    struct strbuf *sb = &t->body;
    int64_t attempt = 1, trials = 0;
    const char *state = json_get_str(row->json, "state");

    switch (row->type) {
    case TRACK_ROW_START:
    case TRACK_ROW_STUDY:
        note_start(run, row);
        (void)json_get_i64(row->json, "attempt", &attempt);
        begin_row(t, run, row, *step);
        if (row->type == TRACK_ROW_START)
            add_number(sb, "attempt", (double)attempt);
        add_config(t, row);
        break;
    case TRACK_ROW_METRICS:
    case TRACK_ROW_SYSTEM:
        *step = row->env_steps > *step ? row->env_steps : *step;
        begin_row(t, run, row, row->env_steps);
        add_values(sb, row);
        break;
    case TRACK_ROW_RESULT:
        (void)json_get_i64(row->json, "env_steps", step);
        begin_row(t, run, row, *step);
        add_named(sb, track_result_names, row->json);
        add_name(sb, "result/state");
        track_json_str(sb, state != NULL ? state : "failed");
        if (json_get_str(row->json, "reason") != NULL) {
            add_name(sb, "result/reason");
            track_json_str(sb, json_get_str(row->json, "reason"));
        }
        break;
    case TRACK_ROW_FRONT:
        (void)json_get_i64(row->json, "trials", &trials);
        *step = trials;
        begin_row(t, run, row, trials);
        add_named(sb, track_front_names, row->json);
        add_front(sb, row->json);
        break;
    case TRACK_ROW_STUDY_END:
    case TRACK_ROW_PAUSE:
        begin_row(t, run, row, *step);
        add_name(sb, row->type == TRACK_ROW_PAUSE ? "result/state" : "study/state");
        track_json_str(sb, row->type == TRACK_ROW_PAUSE ? "paused" : "ended");
        break;
    case TRACK_ROW_FILE:
    case TRACK_ROW_UNKNOWN:
        return false;
    }
    strbuf_add(sb, "}}");
    return true;
}

/* Rows from .. to of one run. One that the server does not take is found by halving and left out. */
static void send_range(struct trackio *t, struct track_run *run, const struct track_row *rows, size_t n, int64_t *step,
                       struct track_reply *reply)
{
    int64_t step_before = *step, n_requests, n_skipped = 0;
    size_t n_told = 0;

    strbuf_clear(&t->body);
    strbuf_add(&t->body, "{\"args\":[],\"kwargs\":{\"hf_token\":null,\"logs\":[");
    for (size_t i = 0; i < n; i++)
        n_told += add_row(t, run, &rows[i], step) ? 1 : 0;
    strbuf_add(&t->body, "]}}");
    *reply = (struct track_reply){.verdict = TRACK_DONE};
    if (n_told == 0)
        return;
    call(t, "bulk_log", reply);
    if (reply->verdict != TRACK_RUN_REFUSED)
        return;
    if (n == 1) {
        log_debug("trackio: row %lld of %s is left out: %s", (long long)rows[0].id, run->key, reply->text);
        reply->verdict = TRACK_DONE;
        reply->n_skipped = 1;
        return;
    }
    n_requests = reply->n_requests;
    *step = step_before;
    for (size_t i = 0; i < 2; i++) {
        send_range(t, run, i == 0 ? rows : rows + n / 2, i == 0 ? n / 2 : n - n / 2, step, reply);
        n_requests += reply->n_requests;
        n_skipped += reply->n_skipped;
        if (reply->verdict != TRACK_DONE)
            break;
    }
    reply->n_requests = n_requests;
    reply->n_skipped = n_skipped;
}

/* An alert for a trial that failed or was lost: Trackio has no state of a run. */
static void alert(struct trackio *t, const struct track_run *run, const struct track_row *row,
                  struct track_reply *reply)
{
    const char *state = json_get_str(row->json, "state"), *reason = json_get_str(row->json, "reason");
    int64_t env_steps = 0, n_requests = reply->n_requests;
    char at_text[40], title[200];
    time_t at = (time_t)(row->ms / 1000);
    struct strbuf *sb = &t->body;
    struct tm utc;

    if (row->type != TRACK_ROW_RESULT || state == NULL || (strcmp(state, "failed") != 0 && strcmp(state, "lost") != 0))
        return;
    (void)json_get_i64(row->json, "env_steps", &env_steps);
    if (gmtime_r(&at, &utc) == NULL || strftime(at_text, sizeof at_text, "%Y-%m-%dT%H:%M:%S+00:00", &utc) == 0)
        return;
    snprintf(title, sizeof title, "%.120s: %s", run_name(t, run), state);
    strbuf_clear(sb);
    strbuf_add(sb, "{\"args\":[],\"kwargs\":{\"hf_token\":null,\"alerts\":[{\"project\":");
    track_json_str(sb, t->project);
    strbuf_add(sb, ",\"run\":");
    track_json_str(sb, run_name(t, run));
    strbuf_addf(sb,
                ",\"run_id\":\"%s\",\"alert_id\":\"%s:%lld\",\"level\":\"error\",\"step\":%lld,\"timestamp\":\"%s\"",
                run->key, run->key, (long long)row->id, (long long)env_steps, at_text);
    strbuf_add(sb, ",\"title\":");
    track_json_str(sb, title);
    strbuf_add(sb, ",\"text\":");
    track_json_str(sb, reason != NULL ? reason : "");
    strbuf_add(sb, "}]}}");
    call(t, "bulk_alert", reply);
    if (reply->verdict == TRACK_RUN_REFUSED) { /* not worth the run */
        reply->verdict = TRACK_DONE;
        reply->n_skipped = 1;
    }
    reply->n_requests += n_requests;
}

static void trackio_send(void *self, struct track_run *run, const struct track_row *rows, size_t n,
                         struct track_reply *reply)
{
    struct trackio *t = self;
    int64_t step = last_step(run);

    send_range(t, run, rows, n, &step, reply);
    for (size_t i = 0; i < n && reply->verdict == TRACK_DONE; i++)
        alert(t, run, &rows[i], reply);
    if (reply->verdict == TRACK_DONE) {
        cJSON_DeleteItemFromObjectCaseSensitive(run->state, "step");
        (void)json_add_i64(run->state, "step", step);
    }
    reply->n_done = 0; /* all rows or none */
}

/* -- settings -- */

/* Takes "write_token=..." out of a URL's query; anything else there stays an error of http_url_check. */
static enum status take_token(char *url, const char *origin, char *ret_token, size_t size, struct error *err)
{
    char *query = strchr(url, '?');
    static const char name[] = "write_token=";

    ret_token[0] = '\0';
    if (query == NULL)
        return ST_OK;
    if (strncmp(query + 1, name, strlen(name)) != 0 || strchr(query, '&') != NULL || strchr(query, '#') != NULL)
        return FAIL(err, ST_CONFIG, "trackio: %s has a query; only ?write_token=TOKEN may stand there", origin);
    snprintf(ret_token, size, "%s", query + 1 + strlen(name));
    *query = '\0';
    return ST_OK;
}

/* "user/space" -> "https://user-space.hf.space"; the login is Hugging Face's. */
static enum status read_space(struct trackio *t, const char *space, char *ret_token, struct error *err)
{
    const char *token = track_env("HF_TOKEN"), *slash = strchr(space, '/');
    char host[64];
    size_t n = 0;

    if (slash == NULL || strlen(space) >= sizeof host || slash == space || slash[1] == '\0')
        return FAIL(err, ST_CONFIG, "TRACKIO_SPACE_ID is '%.80s', USER/SPACE is wanted", space);
    for (const char *c = space; *c != '\0'; c++)
        host[n++] = isalnum((unsigned char)*c) ? (char)tolower((unsigned char)*c) : '-';
    host[n] = '\0';
    if (token == NULL)
        return FAIL(err, ST_CONFIG, "trackio: a Space needs a Hugging Face token with the right to write in HF_TOKEN");
    snprintf(t->url, sizeof t->url, "https://%s.hf.space", host);
    snprintf(ret_token, TRACK_SECRET_MAX, "%s", token);
    t->is_space = true;
    t->auth_source = "HF_TOKEN";
    return ST_OK;
}

static enum status read_address(struct trackio *t, const struct track_settings *track, char *ret_token,
                                struct error *err)
{
    const char *origin = track->trackio_url[0] != '\0' ? "track.trackio_url" : "TRACKIO_SERVER_URL";
    const char *from = track->trackio_url[0] != '\0' ? track->trackio_url : track_env("TRACKIO_SERVER_URL");
    const char *token = track_env("TRACKIO_WRITE_TOKEN"), *space = track_env("TRACKIO_SPACE_ID");
    char url[OPT_STR_MAX + TRACK_SECRET_MAX];
    enum status rc;

    if (from == NULL && space != NULL)
        return read_space(t, space, ret_token, err);
    if (from == NULL)
        return FAIL(err, ST_CONFIG,
                    "trackio: there is no address; start `trackio show` and set TRACKIO_SERVER_URL to the address with "
                    "write access that it prints (or track.trackio_url and TRACKIO_WRITE_TOKEN)");
    if (strlen(from) >= sizeof url)
        return FAIL(err, ST_CONFIG, "trackio: %s is too long", origin);
    snprintf(url, sizeof url, "%s", from);
    rc = take_token(url, origin, ret_token, TRACK_SECRET_MAX, err);
    if (rc == ST_OK && http_url_has_secret(url))
        rc = FAIL(err, ST_CONFIG, "trackio: %s holds a login; the token belongs into TRACKIO_WRITE_TOKEN", origin);
    if (rc == ST_OK)
        rc = http_url_check(url, origin, t->url, sizeof t->url, err);
    explicit_bzero(url, sizeof url);
    t->auth_source = ret_token[0] != '\0' ? origin : "TRACKIO_WRITE_TOKEN";
    if (rc != ST_OK || ret_token[0] != '\0')
        return rc;
    if (token == NULL)
        return FAIL(
            err, ST_CONFIG,
            "trackio: there is no write token; set TRACKIO_WRITE_TOKEN to the one that the server prints when it "
            "starts (\"...?write_token=...\")");
    snprintf(ret_token, TRACK_SECRET_MAX, "%s", token);
    return ST_OK;
}

static enum status read_settings(struct trackio *t, const struct track_settings *track, char *ret_token,
                                 struct error *err)
{
    const char *project = track->project[0] != '\0' ? track->project : track_env("TRACKIO_PROJECT");
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_ ";

    if (project == NULL)
        project = "trawl";
    /* The server would leave out other characters without a word, and two projects could become one. */
    if (strlen(project) > PROJECT_MAX || project[strspn(project, plain)] != '\0')
        return FAIL(err, ST_CONFIG,
                    "trackio: a project has up to %d letters, digits, blanks, - and _ ('%.140s' is given)", PROJECT_MAX,
                    project);
    snprintf(t->project, sizeof t->project, "%s", project);
    TRY(read_address(t, track, ret_token, err));
    if (ret_token[strcspn(ret_token, " \t\r\n\"'")] != '\0')
        return FAIL(err, ST_CONFIG, "trackio: the token from %s holds a blank, a quote or a line's end",
                    t->auth_source);
    snprintf(t->auth, sizeof t->auth, "%s%s", t->is_space ? "Authorization: Bearer " : TOKEN_HEADER, ret_token);
    snprintf(t->page, sizeof t->page, "%s/?project=%s", t->url, t->project);
    return ST_OK;
}

/* -- life -- */

static const char *trackio_page(void *self)
{
    return ((struct trackio *)self)->page;
}

static void trackio_close(void *self)
{
    struct trackio *t = self;

    if (t == NULL)
        return;
    http_destroy(t->http);
    http_reply_free(&t->reply);
    strbuf_free(&t->body);
    explicit_bzero(t, sizeof *t);
    mem_free(t);
}

static enum status trackio_open(void **ret_self, const struct track_open *open, struct error *err)
{
    struct trackio *t = mem_alloc(sizeof *t);
    char token[TRACK_SECRET_MAX] = "";
    enum status rc;

    *ret_self = NULL;
    if (t == NULL)
        return FAIL(err, ST_NOMEM, "out of memory for trackio");
    http_reply_init(&t->reply);
    strbuf_init(&t->body, 16u << 20);
    t->study = open->study;
    t->program = open->program;
    rc = read_settings(t, open->settings, token, err);
    if (rc == ST_OK) {
        const struct http_settings http = {.ca_file = open->settings->ca_file,
                                           .client_cert = open->settings->client_cert,
                                           .client_key = open->settings->client_key,
                                           .user_agent = open->program,
                                           .cancel = open->cancel};
        rc = http_create(&t->http, &http, err);
    }
    if (rc == ST_OK)
        rc = http_hide(t->http, token, err);
    explicit_bzero(token, sizeof token);
    if (rc != ST_OK) {
        trackio_close(t);
        return rc;
    }
    *ret_self = t;
    return ST_OK;
}

const struct tracker_ops track_trackio_ops = {
    .name = "trackio",
    .requests_per_minute = REQUESTS_PER_MINUTE,
    .rows_max = ROWS_MAX,
    .bytes_max = BATCH_BYTES_MAX,
    .open = trackio_open,
    .close = trackio_close,
    .hello = trackio_hello,
    .send = trackio_send,
    .page = trackio_page,
};
