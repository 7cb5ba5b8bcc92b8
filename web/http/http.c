/* http.c - requests through libcurl with limits; http_send judges a reply and sets its outcome.
 *
 * Invariants: (1) a header that a caller gives leaves for the request's own scheme, host and port only; (2) no message
 * holds a query, a user part of a URL, a header or a text given to http_hide; (3) a reply never takes more memory than
 * its limit; (4) no socket survives an exec. */
#include "web/http/http.h"

#include "web/http/curl.h"

#include <strings.h>
#include <sys/socket.h>

#define REPLY_MAX_DEFAULT (16u << 20)
#define REDIRECTS_MAX 3
#define URL_MAX 2048
#define SERVER_TEXT_MAX 200
#define BACKOFF_MAX_S 60.0
#define RETRY_AFTER_MAX_S 600.0 /* no server delays requests for longer, also by a wrong number */

struct http {
    CURL *curl;
    struct http_settings settings; /* texts borrowed only during http_create */
    char curl_error[CURL_ERROR_SIZE];
    char *secrets[HTTP_SECRETS_MAX];
    size_t n_secrets;
    bool worked; /* a request has succeeded */
};

/* The headers of a reply. */
struct headers {
    char location[URL_MAX];
    char type[128];
    double retry_after_s, remaining, reset_s; /* NaN: not sent */
};

struct transfer {
    struct headers headers;
    struct strbuf *body;
};

/* -- callbacks of curl -- */

static size_t on_body(char *bytes, size_t size, size_t n, void *ctx)
{
    struct transfer *t = ctx;

    strbuf_add_n(t->body, bytes, size * n);
    return t->body->status == ST_OK ? size * n : 0;
}

static bool header_is(const char *line, size_t n, const char *name, char *ret_value, size_t size)
{
    size_t at = strlen(name), len;

    if (n <= at || strncasecmp(line, name, at) != 0 || line[at] != ':')
        return false;
    at++;
    while (at < n && (line[at] == ' ' || line[at] == '\t'))
        at++;
    while (n > at && (line[n - 1] == '\r' || line[n - 1] == '\n' || line[n - 1] == ' '))
        n--;
    len = n - at < size - 1 ? n - at : size - 1;
    memcpy(ret_value, line + at, len);
    ret_value[len] = '\0';
    return true;
}

static void headers_clear(struct headers *h)
{
    *h = (struct headers){.retry_after_s = NAN, .remaining = NAN, .reset_s = NAN};
}

static size_t on_header(char *line, size_t size, size_t n_items, void *ctx)
{
    struct transfer *t = ctx;
    size_t n = size * n_items;
    char value[128];

    if (n > 5 && strncmp(line, "HTTP/", 5) == 0) /* a new reply: an earlier one was "100 Continue" or a proxy's */
        headers_clear(&t->headers);
    else if (header_is(line, n, "Location", t->headers.location, sizeof t->headers.location) ||
             header_is(line, n, "Content-Type", t->headers.type, sizeof t->headers.type))
        return n;
    else if (header_is(line, n, "Retry-After", value, sizeof value))
        (void)http_retry_after(value, (double)clock_utc_ms() / 1e3, &t->headers.retry_after_s);
    else if (header_is(line, n, "RateLimit-Remaining", value, sizeof value))
        (void)num_parse_f64(value, &t->headers.remaining);
    else if (header_is(line, n, "RateLimit-Reset", value, sizeof value))
        (void)num_parse_f64(value, &t->headers.reset_s);
    return n;
}

static bool cancelled(const struct http *http)
{
    int64_t at_ms = http->settings.cancel != NULL ? atomic_load(&http->settings.cancel->deadline_ms) : 0;
    return at_ms != 0 && (int64_t)(clock_mono_s() * 1e3) >= at_ms;
}

static int on_progress(void *ctx, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
    (void)a, (void)b, (void)c, (void)d;
    return cancelled(ctx) ? 1 : 0;
}

static curl_socket_t open_socket(void *ctx, curlsocktype purpose, struct curl_sockaddr *address)
{
    (void)ctx, (void)purpose;
    return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

/* -- life -- */

static const char *ca_file_of(const struct http_settings *s)
{
    static const char *const names[] = {"CURL_CA_BUNDLE", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"};

    if (s->ca_file != NULL && s->ca_file[0] != '\0')
        return s->ca_file;
    for (size_t i = 0; i < COUNT(names); i++) {
        const char *path = getenv(names[i]);
        if (path != NULL && path[0] != '\0')
            return path;
    }
    return NULL;
}

static bool set_up(struct http *http)
{
    const struct http_settings *s = &http->settings;
    CURL *c = http->curl;
    const char *ca = ca_file_of(s);
    bool ok = true;

#define SET(option, value) ok = curl.easy_setopt(c, option, value) == CURLE_OK && ok
    SET(CURLOPT_NOSIGNAL, 1L);
    SET(CURLOPT_FOLLOWLOCATION, 0L); /* http_send follows, to the same host only */
#if LIBCURL_VERSION_NUM >= 0x075500
    SET(CURLOPT_PROTOCOLS_STR, "http,https");
#else
    SET(CURLOPT_PROTOCOLS, (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
#endif
#if LIBCURL_VERSION_NUM >= 0x075700
    SET(CURLOPT_QUICK_EXIT, 1L); /* no waiting for a name server at the end */
#endif
    SET(CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    SET(CURLOPT_NETRC, (long)CURL_NETRC_IGNORED);
    SET(CURLOPT_ACCEPT_ENCODING, "");
    SET(CURLOPT_USERAGENT, s->user_agent != NULL ? s->user_agent : "trawl");
    SET(CURLOPT_ERRORBUFFER, http->curl_error);
    SET(CURLOPT_WRITEFUNCTION, on_body);
    SET(CURLOPT_HEADERFUNCTION, on_header);
    SET(CURLOPT_NOPROGRESS, 0L);
    SET(CURLOPT_XFERINFOFUNCTION, on_progress);
    SET(CURLOPT_XFERINFODATA, http);
    SET(CURLOPT_OPENSOCKETFUNCTION, open_socket);
    SET(CURLOPT_CONNECTTIMEOUT_MS, (long)((s->connect_s > 0 ? s->connect_s : 10.0) * 1e3));
    if (ca != NULL)
        SET(CURLOPT_CAINFO, ca);
    if (s->client_cert != NULL && s->client_cert[0] != '\0')
        SET(CURLOPT_SSLCERT, s->client_cert);
    if (s->client_key != NULL && s->client_key[0] != '\0')
        SET(CURLOPT_SSLKEY, s->client_key);
    if (s->proxy != NULL && s->proxy[0] != '\0')
        SET(CURLOPT_PROXY, s->proxy);
    if (s->insecure) {
        SET(CURLOPT_SSL_VERIFYPEER, 0L);
        SET(CURLOPT_SSL_VERIFYHOST, 0L);
    }
#undef SET
    return ok;
}

enum status http_create(struct http **ret_http, const struct http_settings *settings, struct error *err)
{
    struct http *http;

    *ret_http = NULL;
    TRY(curl_open(err));
    http = mem_alloc(sizeof *http);
    http->settings = *settings;
    if (curl.global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK)
        http->curl = curl.easy_init();
    if (http->curl == NULL || !set_up(http)) {
        http_destroy(http);
        return FAIL(err, ST_IO, "libcurl %s cannot be set up: it lacks HTTP, TLS or memory", curl.version());
    }
    http->settings.ca_file = http->settings.client_cert = http->settings.client_key = NULL;
    http->settings.proxy = http->settings.user_agent = NULL;
    if (settings->insecure)
        log_warn("certificates of trackers are not checked (requested by the environment), continuing");
    *ret_http = http;
    return ST_OK;
}

void http_destroy(struct http *http)
{
    if (http == NULL)
        return;
    if (http->curl != NULL)
        curl.easy_cleanup(http->curl);
    for (size_t i = 0; i < http->n_secrets; i++) {
        explicit_bzero(http->secrets[i], strlen(http->secrets[i]));
        mem_free(http->secrets[i]);
    }
    mem_free(http);
}

enum status http_hide(struct http *http, const char *secret, struct error *err)
{
    if (strlen(secret) < 4) /* would blank half of every message */
        return ST_OK;
    if (http->n_secrets == HTTP_SECRETS_MAX)
        return FAIL(err, ST_INTERNAL, "more than %d secrets for one HTTP client", HTTP_SECRETS_MAX);
    http->secrets[http->n_secrets++] = mem_strdup(secret);
    return ST_OK;
}

void http_reply_init(struct http_reply *reply)
{
    *reply = (struct http_reply){.outcome = HTTP_RETRY};
    strbuf_init(&reply->body, REPLY_MAX_DEFAULT);
}

void http_reply_free(struct http_reply *reply)
{
    strbuf_free(&reply->body);
    cJSON_Delete(reply->json);
    *reply = (struct http_reply){0};
}

/* -- one request -- */

static void blank_secrets(const struct http *http, char *text)
{
    for (size_t i = 0; i < http->n_secrets; i++)
        for (char *at = text; (at = strstr(at, http->secrets[i])) != NULL; at += strlen(http->secrets[i]))
            memset(at, '*', strlen(http->secrets[i]));
}

/* The error text in the server's JSON, in the forms that trackers use. */
static const char *server_words(const cJSON *json)
{
    static const char *const keys[] = {"message", "error", "detail", "errors"};

    if (cJSON_IsString(json))
        return json->valuestring;
    if (cJSON_IsArray(json))
        return server_words(cJSON_GetArrayItem(json, 0));
    for (size_t i = 0; cJSON_IsObject(json) && i < COUNT(keys); i++) {
        const char *words = server_words(json_get(json, keys[i]));
        if (words != NULL && words[0] != '\0')
            return words;
    }
    return NULL;
}

static bool looks_like_page(const struct transfer *t)
{
    const char *at = t->body->text;

    if (strncasecmp(t->headers.type, "text/html", 9) == 0)
        return true;
    at += strspn(at, " \t\r\n");
    return strncasecmp(at, "<!doctype", 9) == 0 || strncasecmp(at, "<html", 5) == 0;
}

static void set_text(const struct http *http, const struct http_request *request, struct http_reply *reply,
                     const char *what)
{
    char shown[ERROR_TEXT_MAX / 2];

    snprintf(reply->text, sizeof reply->text, "%s %s: %s", request->method,
             http_url_shown(request->url, shown, sizeof shown), what);
    blank_secrets(http, reply->text);
    for (char *c = reply->text; *c != '\0'; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f)
            *c = ' ';
}

static void set_code_text(const struct http *http, const struct http_request *request, const struct transfer *t,
                          struct http_reply *reply)
{
    const char *words = server_words(reply->json);
    char what[SERVER_TEXT_MAX + 64];

    if (words == NULL)
        words = looks_like_page(t) ? "(a web page)" : reply->body.text;
    if (words == reply->body.text || reply->json != NULL)
        blank_secrets(http, (char *)words); /* before it is cut: half a secret is one too */
    snprintf(what, sizeof what, "the server answered %ld%s%.*s", reply->code, words[0] != '\0' ? ": " : "",
             SERVER_TEXT_MAX, words);
    set_text(http, request, reply, what);
}

/* curl gave no whole reply. */
static void judge_failure(const struct http *http, const struct http_request *request, CURLcode rc,
                          struct http_reply *reply)
{
    const char *text = http->curl_error[0] != '\0' ? http->curl_error : curl.easy_strerror(rc);
    char what[CURL_ERROR_SIZE + 300];

    reply->code = 0;
    reply->outcome = HTTP_RETRY;
    if (rc == CURLE_ABORTED_BY_CALLBACK) {
        reply->outcome = HTTP_CANCELLED;
        set_text(http, request, reply, "given up, the time for it is over");
        return;
    }
    if (rc == CURLE_WRITE_ERROR && reply->body.status == ST_LIMIT) {
        reply->outcome = HTTP_REFUSED;
        snprintf(what, sizeof what, "the reply is longer than %zu bytes; is this the tracker's address?",
                 reply->body.max);
    } else if (rc == CURLE_PEER_FAILED_VERIFICATION || rc == CURLE_SSL_CACERT_BADFILE || rc == CURLE_SSL_CERTPROBLEM) {
        reply->outcome = HTTP_REFUSED;
        reply->elsewhere = true;
        snprintf(what, sizeof what,
                 "%s; for a certificate of your own give its authority's file in track.ca_file, CURL_CA_BUNDLE or "
                 "SSL_CERT_FILE",
                 text);
    } else {
        if (rc == CURLE_URL_MALFORMAT || rc == CURLE_UNSUPPORTED_PROTOCOL)
            reply->outcome = HTTP_REFUSED;
        snprintf(what, sizeof what, "%s", text);
    }
    set_text(http, request, reply, what);
}

static void judge_elsewhere(const struct http *http, const struct http_request *request, struct http_reply *reply,
                            const char *what)
{
    reply->outcome = http->worked ? HTTP_RETRY : HTTP_REFUSED;
    reply->elsewhere = true;
    set_text(http, request, reply, what);
}

static void judge_reply(struct http *http, const struct http_request *request, const struct transfer *t,
                        struct http_reply *reply)
{
    struct error none = {0};
    char shown[ERROR_TEXT_MAX / 2], what[sizeof shown + 200];
    bool empty = t->body->len == 0;

    reply->retry_after_s = isfinite(t->headers.retry_after_s) ? fmin(t->headers.retry_after_s, RETRY_AFTER_MAX_S) : 0;
    if (isfinite(t->headers.remaining) && isfinite(t->headers.reset_s) && t->headers.reset_s > 0)
        reply->pause_s = fmin(BACKOFF_MAX_S, t->headers.reset_s / (fmax(0, t->headers.remaining) + 1));
    if (!empty && !looks_like_page(t) && json_parse(t->body->text, t->body->len, &reply->json, &none) != ST_OK)
        reply->json = NULL;
    if (reply->code >= 300 && reply->code < 400) {
        snprintf(what, sizeof what,
                 "the server answered %ld and redirects to %s, where nothing was sent; give the tracker's real address",
                 reply->code,
                 t->headers.location[0] != '\0' ? http_url_shown(t->headers.location, shown, sizeof shown) : "nowhere");
        judge_elsewhere(http, request, reply, what);
        return;
    }
    if (reply->code < 200 || reply->code >= 400) {
        bool again = reply->code == 408 || reply->code == 425 || reply->code == 429 ||
                     (reply->code >= 500 && reply->code != 501 && reply->code != 505);
        reply->outcome = again ? HTTP_RETRY : HTTP_REFUSED;
        set_code_text(http, request, t, reply);
        return;
    }
    if (request->want_json && reply->json == NULL) {
        if (looks_like_page(t)) {
            judge_elsewhere(http, request, reply,
                            "a web page came instead of an answer (a login page, or another program's address?)");
            return;
        }
        reply->outcome = HTTP_RETRY; /* incomplete JSON is half a reply */
        set_text(http, request, reply, empty ? "the answer is empty" : "the answer is cut off or no JSON");
        return;
    }
    reply->outcome = HTTP_OK;
    reply->text[0] = '\0';
    http->worked = true;
    if (http->settings.cancel != NULL)
        atomic_fetch_add(&http->settings.cancel->answers, 1);
}

static void add_header(struct curl_slist **list, const char *text)
{
    struct curl_slist *longer = curl.slist_append(*list, text);

    if (longer == NULL)
        mem_refused(strlen(text));
    *list = longer;
}

static struct curl_slist *headers_of(const struct http_request *request)
{
    struct curl_slist *list = NULL;
    char type[200];

    for (size_t i = 0; i < request->n_headers; i++)
        add_header(&list, request->headers[i]);
    add_header(&list, "Expect:"); /* no waiting for "100 Continue" */
    if (request->body != NULL) {
        snprintf(type, sizeof type, "Content-Type: %s",
                 request->content_type != NULL ? request->content_type : "application/json");
        add_header(&list, type);
    }
    return list;
}

/* Each option that the body or the method of the last request set is set again. */
static CURLcode set_method(CURL *c, const struct http_request *request)
{
    curl.easy_setopt(c, CURLOPT_POSTFIELDS, NULL);
    curl.easy_setopt(c, CURLOPT_HTTPGET, 1L);
    if (request->body != NULL || strcmp(request->method, "GET") != 0) {
        curl.easy_setopt(c, CURLOPT_POST, 1L);
        curl.easy_setopt(c, CURLOPT_POSTFIELDS, request->body != NULL ? request->body : "");
        curl.easy_setopt(c, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)request->n_body);
    }
    return curl.easy_setopt(c, CURLOPT_CUSTOMREQUEST, request->method); /* copies the text */
}

/* One exchange at url; *t gets headers and body of the reply. */
static CURLcode exchange(struct http *http, const struct http_request *request, const char *url, struct transfer *t)
{
    double timeout_s = request->timeout_s > 0         ? request->timeout_s
                       : http->settings.timeout_s > 0 ? http->settings.timeout_s
                                                      : 30.0;
    struct curl_slist *headers = headers_of(request);
    CURL *c = http->curl;
    CURLcode rc = set_method(c, request);

    headers_clear(&t->headers);
    strbuf_clear(t->body);
    http->curl_error[0] = '\0';
    curl.easy_setopt(c, CURLOPT_HTTPHEADER, headers);
    curl.easy_setopt(c, CURLOPT_FRESH_CONNECT, request->once ? 1L : 0L);
    curl.easy_setopt(c, CURLOPT_WRITEDATA, t);
    curl.easy_setopt(c, CURLOPT_HEADERDATA, t);
    curl.easy_setopt(c, CURLOPT_TIMEOUT_MS, (long)(timeout_s * 1e3));
    if (rc == CURLE_OK)
        rc = curl.easy_setopt(c, CURLOPT_URL, url); /* the last one that can fail: it copies the text */
    if (rc == CURLE_OK)
        rc = cancelled(http) ? CURLE_ABORTED_BY_CALLBACK : curl.easy_perform(c);
    curl.easy_setopt(c, CURLOPT_HTTPHEADER, NULL);
    curl.easy_setopt(c, CURLOPT_POSTFIELDS, NULL);
    curl.slist_free_all(headers);
    return rc;
}

/* The address to which a redirect of this request may be followed: same scheme, host and port, same method. */
static bool may_follow(const char *from, const char *location, long code, const char *method, char *ret_url)
{
    static const CURLUPart parts[] = {CURLUPART_SCHEME, CURLUPART_HOST, CURLUPART_PORT};
    CURLU *a = curl.url(), *b = curl.url();
    bool same = location[0] != '\0' && a != NULL && b != NULL && curl.url_set(a, CURLUPART_URL, from, 0) == CURLUE_OK &&
                curl.url_set(b, CURLUPART_URL, from, 0) == CURLUE_OK &&
                curl.url_set(b, CURLUPART_URL, location, 0) == CURLUE_OK;

    if (code != 307 && code != 308 && strcmp(method, "GET") != 0)
        same = false;
    for (size_t i = 0; same && i < COUNT(parts); i++) {
        char *x = NULL, *y = NULL;
        same = curl.url_get(a, parts[i], &x, CURLU_DEFAULT_PORT) == CURLUE_OK &&
               curl.url_get(b, parts[i], &y, CURLU_DEFAULT_PORT) == CURLUE_OK && strcasecmp(x, y) == 0;
        curl.free(x);
        curl.free(y);
    }
    if (same) {
        char *url = NULL;
        same = curl.url_get(b, CURLUPART_URL, &url, 0) == CURLUE_OK && strlen(url) < URL_MAX;
        if (same)
            snprintf(ret_url, URL_MAX, "%s", url);
        curl.free(url);
    }
    curl.url_cleanup(a);
    curl.url_cleanup(b);
    return same;
}

void http_send(struct http *http, const struct http_request *request, struct http_reply *reply)
{
    struct transfer t = {.body = &reply->body};
    char url[URL_MAX];
    CURLcode rc = CURLE_OK;

    cJSON_Delete(reply->json);
    reply->json = NULL;
    reply->code = 0;
    reply->retry_after_s = reply->pause_s = 0;
    reply->elsewhere = false;
    reply->text[0] = '\0';
    reply->body.max = http->settings.max_reply_bytes > 0 ? http->settings.max_reply_bytes : REPLY_MAX_DEFAULT;
    if (strlen(request->url) >= sizeof url) {
        reply->outcome = HTTP_REFUSED;
        set_text(http, request, reply, "the address is too long");
        return;
    }
    snprintf(url, sizeof url, "%s", request->url);
    for (int i = 0; i <= REDIRECTS_MAX; i++) {
        char next[URL_MAX];
        rc = exchange(http, request, url, &t);
        if (rc != CURLE_OK)
            break;
        curl.easy_getinfo(http->curl, CURLINFO_RESPONSE_CODE, &reply->code);
        if (reply->code < 300 || reply->code >= 400 || i == REDIRECTS_MAX ||
            !may_follow(url, t.headers.location, reply->code, request->method, next))
            break;
        memcpy(url, next, sizeof url);
    }
    if (rc != CURLE_OK)
        judge_failure(http, request, rc, reply);
    else
        judge_reply(http, request, &t, reply);
}
