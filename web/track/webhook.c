/* webhook.c - a webhook: every row as an event, posted as JSON to one address and signed.
 *
 *   POST URL
 *   Content-Type: application/json
 *   X-Trawl-Signature: t=1795848104,v1=HEX        with a secret: HMAC-SHA256 of "1795848104." and the body
 *   {"version": 1, "study": "first", "run": "k3j9x0ab-7", "trial": 7, "events": [{"id": 12, "ms": ..., "type": ...},
 *     ...]}
 *
 * "trial" is null for events about the study; the rest of an event is its payload (web/track/track.h), with numbers
 * that are not finite as "NaN", "Infinity", "-Infinity". Invariants: (1) an event that is sent again has the same run,
 * id and words: a receiver that has (run, id) can skip it; (2) no message holds the address's path, which may be a
 * secret. */
#include "web/text/put.h"
#include "web/track/track_util.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <strings.h>

#define REQUESTS_PER_MINUTE 120
#define ROWS_MAX 500
#define BATCH_BYTES_MAX (512u << 10)
#define URL_MAX 2048

struct webhook {
    struct track_client c;
    char url[URL_MAX]; /* the path may be a secret */
    char secret[TRACK_SECRET_MAX];
    bool worked; /* a post was accepted */
};

/* "X-Trawl-Signature: t=...,v1=..." of the body. */
static void sign(const struct webhook *w, char *ret_header, size_t size)
{
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned int n_digest = 0;
    int64_t now_s = clock_utc_ms() / 1000;
    STRBUF(text, w->c.body.len + 64);

    strbuf_addf(&text, "%lld.", (long long)now_s);
    strbuf_add_n(&text, w->c.body.text, w->c.body.len);
    if (HMAC(EVP_sha256(), w->secret, (int)strlen(w->secret), (const unsigned char *)text.text, text.len, digest,
             &n_digest) == NULL)
        mem_refused(0); /* its only failure */
    size_t at = (size_t)snprintf(ret_header, size, "X-Trawl-Signature: t=%lld,v1=", (long long)now_s);
    for (unsigned int i = 0; i < n_digest && at + 2 < size; i++)
        at += (size_t)snprintf(ret_header + at, size - at, "%02x", digest[i]);
}

static bool is_page(const struct http_reply *reply)
{
    const char *at = reply->body.text + strspn(reply->body.text, " \t\r\n");
    return strncasecmp(at, "<!doctype", 9) == 0 || strncasecmp(at, "<html", 5) == 0;
}

static void post(struct webhook *w, struct track_reply *reply)
{
    char signature[160];
    const char *headers[2];
    size_t n_headers = 0;

    if (w->c.body.status != ST_OK) {
        track_refuse(reply, TRACK_RUN_REFUSED, "the request has more than %zu bytes", w->c.body.max);
        return;
    }
    if (w->secret[0] != '\0') {
        sign(w, signature, sizeof signature);
        headers[n_headers++] = signature;
    }
    if (w->c.auth[0] != '\0')
        headers[n_headers++] = w->c.auth;
    track_client_send(&w->c,
                      (struct http_request){.method = "POST",
                                            .url = w->url,
                                            .headers = headers,
                                            .n_headers = n_headers,
                                            .body = w->c.body.text,
                                            .n_body = w->c.body.len},
                      reply);
    if (reply->verdict == TRACK_DONE && is_page(&w->c.reply))
        track_refuse(reply, w->worked ? TRACK_RETRY : TRACK_REFUSED,
                     "the webhook's address answered with a web page (a login, or another program's address?)");
    else if (reply->verdict == TRACK_DONE)
        w->worked = true;
    else if (w->c.reply.code == 404 || w->c.reply.code == 405 || w->c.reply.code == 410)
        reply->verdict = TRACK_REFUSED; /* the address is refused, not the events */
}

static void add_event(struct strbuf *sb, const struct track_row *row)
{
    const cJSON *item;

    strbuf_addf(sb, "%s{\"id\":%lld,\"ms\":%lld", sb->text[sb->len - 1] == '[' ? "" : ",", (long long)row->id,
                (long long)row->ms);
    cJSON_ArrayForEach(item, row->json)
    {
        strbuf_add(sb, ",");
        json_write_str(sb, item->string);
        strbuf_add(sb, ":");
        track_json_value(sb, item);
    }
    strbuf_add(sb, "}");
}

/* Returns the number of events in the body. */
static size_t make_body(struct webhook *w, const struct track_run *run, const struct track_row *rows, size_t n)
{
    struct strbuf *sb = &w->c.body;
    size_t n_events = 0;

    strbuf_clear(sb);
    put_json(sb, "{'version':1,'study':%s,'run':%s,'trial':%g,'events':[", w->c.study, run->key,
             run->trial_id != 0 ? (double)run->number : (double)NAN);
    for (size_t i = 0; i < n; i++) {
        if (rows[i].type == TRACK_ROW_FILE && !w->c.track->files)
            continue;
        add_event(sb, &rows[i]);
        n_events++;
    }
    strbuf_add(sb, "]}");
    return n_events;
}

/* The arguments of one send, for track_send_halving. */
struct sending {
    struct webhook *w;
    const struct track_run *run;
    const struct track_row *rows;
};

static void send_range(void *ctx, size_t from, size_t to, struct track_reply *reply)
{
    struct sending *s = ctx;

    if (make_body(s->w, s->run, s->rows + from, to - from) > 0)
        post(s->w, reply);
    if (reply->verdict == TRACK_RUN_REFUSED && to - from == 1)
        track_skip(reply, s->run, "a row");
}

static void webhook_send(void *self, struct track_run *run, const struct track_row *rows, size_t n,
                         struct track_reply *reply)
{
    struct sending sending = {.w = self, .run = run, .rows = rows};

    track_send_halving(send_range, &sending, 0, n, reply);
    reply->n_done = 0; /* all rows or none */
}

static enum status read_settings(struct webhook *w, const struct track_settings *track, struct error *err)
{
    const char *origin = track->webhook_url[0] != '\0' ? "track.webhook_url" : "TRAWL_WEBHOOK_URL";
    const char *url = track->webhook_url[0] != '\0' ? track->webhook_url : track_env("TRAWL_WEBHOOK_URL");
    const char *secret = track_env("TRAWL_WEBHOOK_SECRET");
    char user[TRACK_SECRET_MAX], password[TRACK_SECRET_MAX];

    if (url == NULL)
        return FAIL(err, ST_CONFIG, "webhook: there is no address; set TRAWL_WEBHOOK_URL or track.webhook_url");
    TRY(track_url_login(url, origin, w->url, sizeof w->url - 1, user, password, sizeof user, err));
    if (url[strlen(url) - 1] == '/')
        strcat(w->url, "/"); /* the address may need it */
    if (user[0] != '\0')
        track_basic_auth(w->c.auth, sizeof w->c.auth, user, password);
    explicit_bzero(user, sizeof user);
    explicit_bzero(password, sizeof password);
    if (secret != NULL && strlen(secret) >= sizeof w->secret)
        return FAIL(err, ST_CONFIG, "webhook: TRAWL_WEBHOOK_SECRET has more than %zu bytes", sizeof w->secret - 1);
    snprintf(w->secret, sizeof w->secret, "%s", secret != NULL ? secret : "");
    return ST_OK;
}

static enum status webhook_open(void **ret_self, const struct track_open *open, struct error *err)
{
    struct webhook *w = track_client_create(sizeof *w, open);
    const char *path = NULL;
    enum status rc = read_settings(w, open->settings, err);

    if (rc == ST_OK && open->settings->webhook_url[0] == '\0') /* an address from the environment may be a secret */
        path = strchr(strstr(w->url, "://") + 3, '/');
    const char *const secrets[] = {w->secret, path != NULL ? path : ""};
    THEN(rc, track_client_connect(&w->c, open, (struct http_settings){0}, secrets, 2, err));
    *ret_self = rc == ST_OK ? w : NULL;
    if (rc != ST_OK)
        track_client_close(w);
    return rc;
}

const struct tracker_ops track_webhook_ops = {
    .name = "webhook",
    .requests_per_minute = REQUESTS_PER_MINUTE,
    .rows_max = ROWS_MAX,
    .bytes_max = BATCH_BYTES_MAX,
    .open = webhook_open,
    .close = track_client_close,
    .send = webhook_send,
};
