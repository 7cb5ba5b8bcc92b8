/* trackio.c - Trackio over its HTTP interface: a run for each trial and one for the study, rows by bulk_log.
 *
 * Invariants: (1) the server ignores a log id that it has: a resend changes nothing; (2) the token is a header to the
 * server's own address.
 *
 * The server sets its own times; wall_s is the time of a measurement. Trackio has no end of a run: the last row has the
 * final state, and a trial that failed raises an alert. State of a run: {"name", "step"}. */
#include "web/track/trackio.h"

#define REQUESTS_PER_MINUTE 240
#define ROWS_MAX 1000
#define BATCH_BYTES_MAX (1u << 20)

/* -- requests -- */

/* The body is in t->c.body. */
static void call(struct trackio *t, const char *name, struct track_reply *reply)
{
    char url[OPT_STR_MAX + 64];

    *reply = (struct track_reply){.verdict = TRACK_RETRY};
    if (t->c.body.status != ST_OK) {
        track_refuse(reply, TRACK_RUN_REFUSED, "the request has more than %zu bytes", t->c.body.max);
        return;
    }
    snprintf(url, sizeof url, "%s/api/%s", t->settings.url, name);
    track_client_send(
        &t->c,
        (struct http_request){
            .method = "POST", .url = url, .body = t->c.body.text, .n_body = t->c.body.len, .want_json = true},
        reply);
    if (reply->verdict == TRACK_DONE || t->c.reply.elsewhere)
        return;
    const char *error = json_get_str(t->c.reply.json, "error");
    char text[sizeof reply->text];
    if (reply->verdict == TRACK_REFUSED || (t->c.reply.code == 400 && error != NULL && strstr(error, "write_token")))
        snprintf(text, sizeof text, "%.700s (token from %s)", reply->text, t->settings.token_source);
    else if (t->c.reply.code == 404)
        snprintf(text, sizeof text, "%.700s; is there a Trackio server at this address?", reply->text);
    else
        return;
    reply->verdict = TRACK_REFUSED;
    memcpy(reply->text, text, sizeof text);
}

static bool check_version(struct trackio *t, struct track_reply *reply)
{
    char url[OPT_STR_MAX + 16];
    static const char *const none[] = {NULL}; /* the token is for writing alone */
    int64_t version = 0;

    snprintf(url, sizeof url, "%s/version", t->settings.url);
    track_client_send(
        &t->c,
        (struct http_request){
            .method = "GET", .url = url, .headers = t->settings.is_space ? NULL : none, .want_json = true},
        reply);
    if (reply->verdict != TRACK_DONE)
        return false;
    if (!json_get_i64(t->c.reply.json, "api_version", &version) || version != 1) {
        track_refuse(reply, TRACK_REFUSED, "%s: the server speaks version %lld of Trackio's interface, 1 is needed",
                     t->settings.url, (long long)version);
        return false;
    }
    return true;
}

static void trackio_login(void *self, struct track_reply *reply)
{
    struct trackio *t = self;

    *reply = (struct track_reply){.verdict = TRACK_DONE};
    if (!check_version(t, reply) || t->settings.is_space)
        return;
    strbuf_clear(&t->c.body);
    strbuf_add(&t->c.body, "{\"args\":[],\"kwargs\":{}}");
    call(t, "get_run_mutation_status", reply);
    if (reply->verdict != TRACK_DONE)
        return;
    if (!cJSON_IsTrue(json_get(json_get(t->c.reply.json, "data"), "allowed")))
        track_refuse(reply, TRACK_REFUSED,
                     "%s does not take the write token from %s; it prints the right one when it starts "
                     "(\"...?write_token=...\"), give it in TRACKIO_WRITE_TOKEN",
                     t->settings.url, t->settings.token_source);
}

/* -- rows -- */

/* The arguments of one send, for track_send_halving. */
struct sending {
    struct trackio *t;
    struct track_run *run;
    const struct track_row *rows;
    int64_t step; /* after the rows that are sent */
};

static void send_range(void *ctx, size_t from, size_t to, struct track_reply *reply)
{
    struct sending *s = ctx;
    struct trackio *t = s->t;
    int64_t step = s->step;
    size_t n_logs = 0;

    strbuf_clear(&t->c.body);
    strbuf_add(&t->c.body, "{\"args\":[],\"kwargs\":{\"hf_token\":null,\"logs\":[");
    for (size_t i = from; i < to; i++)
        n_logs += trackio_add_row(t, s->run, &s->rows[i], &step) ? 1 : 0;
    strbuf_add(&t->c.body, "]}}");
    if (n_logs > 0)
        call(t, "bulk_log", reply);
    if (reply->verdict == TRACK_RUN_REFUSED && to - from == 1) {
        track_skip(reply, s->run, "a row");
        return;
    }
    if (reply->verdict == TRACK_DONE)
        s->step = step;
}

static void alert(struct trackio *t, const struct track_run *run, const struct track_row *row,
                  struct track_reply *reply)
{
    int64_t n_requests = reply->n_requests, n_skipped = reply->n_skipped;

    if (!trackio_make_alert(t, run, row))
        return;
    call(t, "bulk_alert", reply);
    if (reply->verdict == TRACK_RUN_REFUSED) { /* not worth the run */
        reply->verdict = TRACK_DONE;
        n_skipped++;
    }
    reply->n_requests += n_requests;
    reply->n_skipped = n_skipped;
}

static void trackio_send(void *self, struct track_run *run, const struct track_row *rows, size_t n,
                         struct track_reply *reply)
{
    struct trackio *t = self;
    struct sending sending = {.t = t, .run = run, .rows = rows, .step = trackio_last_step(run)};

    track_send_halving(send_range, &sending, 0, n, reply);
    for (size_t i = 0; i < n && reply->verdict == TRACK_DONE; i++)
        alert(t, run, &rows[i], reply);
    if (reply->verdict == TRACK_DONE) {
        cJSON_DeleteItemFromObjectCaseSensitive(run->state, "step");
        json_add_i64(run->state, "step", sending.step);
    }
    reply->n_done = 0; /* all rows or none */
}

/* -- life -- */

static enum status trackio_open(void **ret_self, const struct track_open *open, struct error *err)
{
    struct trackio *t = track_client_create(sizeof *t, open);
    struct trackio_settings *s = &t->settings;
    const char *const secrets[] = {s->token};
    enum status rc = trackio_settings_read(open->settings, s, err);

    THEN(rc, track_client_connect(&t->c, open, (struct http_settings){0}, secrets, 1, err));
    *ret_self = rc == ST_OK ? t : NULL;
    if (rc != ST_OK) {
        track_client_close(t);
        return rc;
    }
    snprintf(t->c.auth, sizeof t->c.auth, "%s%s",
             s->is_space ? "Authorization: Bearer " : "X-Trackio-Write-Token: ", s->token);
    snprintf(t->c.page, sizeof t->c.page, "%s/?project=%s", s->url, s->project);
    return ST_OK;
}

const struct tracker_ops track_trackio_ops = {
    .name = "trackio",
    .requests_per_minute = REQUESTS_PER_MINUTE,
    .rows_max = ROWS_MAX,
    .bytes_max = BATCH_BYTES_MAX,
    .open = trackio_open,
    .close = track_client_close,
    .login = trackio_login,
    .send = trackio_send,
    .page = track_client_page,
};
