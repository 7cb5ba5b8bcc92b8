/* server.c - between libmicrohttpd and the routes: access, sizes and times of requests; headers of every answer.
 *
 * Invariants: (1) nothing is looked up before Host and token are judged; (2) nothing that changes state runs without
 * --control, an own origin and the CSRF token; (3) every answer, failures too, carries the headers of `harden`; (4) a
 * request's memory is bounded: SERVE_HEADER_BYTES by libmicrohttpd, SERVE_BODY_BYTES here. */
#include "web/serve/serve_priv.h"

#include "base/text/json.h"
#include "web/text/put.h"
#include "web/serve/models.h"
#include "web/serve/routes.h"
#include "web/serve/mhd.h"

#include <arpa/inet.h>
#include <stdarg.h>

#define CSP_PAGES                                                                                                      \
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; font-src 'self'; "           \
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

/* One request while it is being received and answered. */
struct exchange {
    char *uri; /* as it came; owned */
    bool begun, too_large;
    struct strbuf body;
    struct job *job; /* owned; being made or made: the answer of a ROUTE_SLOW or ROUTE_CLIENT */
};

struct job {
    struct serve *s;
    const struct route *route;
    struct request r; /* with its target and body; owned */
    const char *uri; /* the exchange's */
    pthread_t thread;
    struct answer *answer; /* a reference, or NULL with err */
    struct error err;
};

static int64_t now_ms(void)
{
    return (int64_t)(clock_mono_s() * 1e3);
}

/* -- connections -- */

static struct conn *conn_of(struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info = mhd.get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    return info != NULL ? info->socket_context : NULL;
}

static void set_deadline(struct serve *s, struct MHD_Connection *connection, int seconds)
{
    struct conn *c = conn_of(connection);

    if (c == NULL)
        return;
    pthread_mutex_lock(&s->conns_lock);
    c->deadline_ms = seconds > 0 ? now_ms() + 1000ll * seconds : 0;
    pthread_mutex_unlock(&s->conns_lock);
}

static void on_connection(void *ctx, struct MHD_Connection *connection, void **socket_context,
                          enum MHD_ConnectionNotificationCode code)
{
    struct serve *s = ctx;
    struct conn *c = *socket_context, **at;
    const union MHD_ConnectionInfo *info;

    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        c = mem_alloc(sizeof *c);
        info = mhd.get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
        if (info == NULL) {
            mem_free(c);
            return;
        }
        *socket_context = c;
        c->fd = info->connect_fd;
        c->deadline_ms = now_ms() + 1000 * SERVE_REQUEST_S;
        pthread_mutex_lock(&s->conns_lock);
        c->next = s->conns;
        s->conns = c;
        pthread_mutex_unlock(&s->conns_lock);
        return;
    }
    if (c == NULL)
        return;
    pthread_mutex_lock(&s->conns_lock);
    for (at = &s->conns; *at != NULL && *at != c;)
        at = &(*at)->next;
    if (*at == c)
        *at = c->next;
    pthread_mutex_unlock(&s->conns_lock);
    mem_free(c);
    *socket_context = NULL;
}

static void *on_uri(void *ctx, const char *uri, struct MHD_Connection *connection)
{
    struct exchange *x = mem_alloc(sizeof *x);

    (void)ctx;
    (void)connection;
    x->uri = mem_strdup(uri);
    strbuf_init(&x->body, SERVE_BODY_BYTES);
    return x;
}

/* Waits for its thread, which has come to its end or is about to. */
static void job_free(struct job *job)
{
    if (job == NULL)
        return;
    pthread_join(job->thread, NULL);
    answer_release(job->answer);
    cJSON_Delete(job->r.body);
    target_free(&job->r.target);
    mem_free(job);
}

static void on_completed(void *ctx, struct MHD_Connection *connection, void **con_cls,
                         enum MHD_RequestTerminationCode code)
{
    struct exchange *x = *con_cls;

    (void)code;
    set_deadline(ctx, connection, SERVE_IDLE_S);
    if (x == NULL)
        return;
    job_free(x->job);
    mem_free(x->uri);
    strbuf_free(&x->body);
    mem_free(x);
    *con_cls = NULL;
}

/* libmicrohttpd must not decode: request.c does, once. */
static size_t no_unescape(void *ctx, struct MHD_Connection *connection, char *text)
{
    (void)ctx;
    (void)connection;
    return strlen(text);
}

/* -- answers -- */

static const char *header(struct MHD_Connection *connection, const char *name)
{
    return mhd.lookup_connection_value(connection, MHD_HEADER_KIND, name);
}

static void harden(struct MHD_Response *response, const char *csp)
{
    static const char *const headers[][2] = {
        {"X-Content-Type-Options", "nosniff"},
        {"X-Frame-Options", "DENY"},
        {"Referrer-Policy", "no-referrer"},
        {"Cross-Origin-Resource-Policy", "same-origin"},
        {"Cross-Origin-Opener-Policy", "same-origin"},
        {"Permissions-Policy", "camera=(), microphone=(), geolocation=()"},
        {"Vary", "Accept-Encoding, Cookie, Authorization"},
    };

    for (size_t i = 0; i < COUNT(headers); i++)
        mhd.add_response_header(response, headers[i][0], headers[i][1]);
    mhd.add_response_header(response, "Content-Security-Policy", csp != NULL ? csp : CSP_PAGES);
}

static void free_answer(void *answer)
{
    answer_release(answer);
}

/* Sends an answer; its reference is taken. */
static enum MHD_Result send_answer(struct MHD_Connection *connection, struct answer *a, const char *allow)
{
    bool gzip = a->gzip != NULL && accepts_gzip(header(connection, "Accept-Encoding"));
    bool same = a->etag[0] != '\0' && etag_matches(header(connection, "If-None-Match"), a->etag);
    int status = same ? MHD_HTTP_NOT_MODIFIED : a->status;
    size_t n = same ? 0 : gzip ? a->n_gzip : a->n;
    char *bytes = same ? NULL : gzip ? a->gzip : a->bytes;
    struct MHD_Response *response =
        n > 0 ? mhd.create_response_from_buffer_with_free_callback_cls(n, bytes, free_answer, a)
              : mhd.create_response_from_buffer(0, NULL, MHD_RESPMEM_PERSISTENT);

    if (response == NULL) {
        answer_release(a);
        return MHD_NO;
    }
    harden(response, a->csp);
    mhd.add_response_header(response, "Content-Type", a->type);
    mhd.add_response_header(response, "Cache-Control", a->no_store || a->etag[0] == '\0' ? "no-store" : "no-cache");
    if (a->etag[0] != '\0')
        mhd.add_response_header(response, "ETag", a->etag);
    if (gzip && !same)
        mhd.add_response_header(response, "Content-Encoding", "gzip");
    if (a->disposition != NULL)
        mhd.add_response_header(response, "Content-Disposition", a->disposition);
    if (a->location != NULL)
        mhd.add_response_header(response, "Location", a->location);
    if (a->cookie != NULL)
        mhd.add_response_header(response, "Set-Cookie", a->cookie);
    if (allow != NULL)
        mhd.add_response_header(response, "Allow", allow);
    if (status == MHD_HTTP_SERVICE_UNAVAILABLE || status == MHD_HTTP_ACCEPTED)
        mhd.add_response_header(response, "Retry-After", "1");
    if (status == MHD_HTTP_UNAUTHORIZED)
        mhd.add_response_header(response, "WWW-Authenticate", "Bearer realm=\"trawl\"");
    enum MHD_Result rc = mhd.queue_response(connection, (unsigned)status, response);
    mhd.destroy_response(response);
    if (n == 0)
        answer_release(a);
    return rc;
}

static int http_status(enum status status)
{
    switch (status) {
    case ST_OK:
        return MHD_HTTP_OK;
    case ST_USAGE:
    case ST_CONFIG:
        return MHD_HTTP_BAD_REQUEST;
    case ST_LIMIT:
        return MHD_HTTP_URI_TOO_LONG;
    case ST_NOTFOUND:
        return MHD_HTTP_NOT_FOUND;
    case ST_EXISTS:
        return MHD_HTTP_CONFLICT;
    case ST_BUSY:
    case ST_IO:
    case ST_INTERRUPTED:
        return MHD_HTTP_SERVICE_UNAVAILABLE;
    default:
        return MHD_HTTP_INTERNAL_SERVER_ERROR;
    }
}

/* The semicolon before the remedy; in brackets it is part of the fault. NULL: there is no remedy. */
static const char *find_remedy(const char *text)
{
    int depth = 0;

    for (; *text != '\0'; text++) {
        depth += (*text == '(') - (*text == ')');
        if (depth <= 0 && text[0] == ';' && text[1] == ' ')
            return text;
    }
    return NULL;
}

/* A browser that opens the address; scripts of pages ask for JSON. */
static bool wants_html(struct MHD_Connection *connection)
{
    const char *accept = header(connection, "Accept");

    return accept != NULL && strstr(accept, "text/html") != NULL;
}

/* Takes the answer and the text. */
static enum MHD_Result send_text(struct MHD_Connection *connection, struct answer *a, struct strbuf *out,
                                 const char *allow)
{
    enum status rc = answer_finish(a, out, NULL);

    strbuf_free(out);
    if (rc == ST_OK)
        return send_answer(connection, a, allow);
    answer_release(a);
    return MHD_NO;
}

/* {"error", "hint"}, or a page for people: our texts name the fault, then, after a semicolon, the remedy. */
static enum MHD_Result send_failure(struct MHD_Connection *connection, int status, const char *text, const char *allow)
{
    struct answer *a = answer_create(status, "application/json");
    const char *semicolon = find_remedy(text);
    struct strbuf out;
    char error[ERROR_TEXT_MAX];

    strbuf_init(&out, SERVE_BODY_BYTES);
    snprintf(error, sizeof error, "%.*s", (int)(semicolon != NULL ? semicolon - text : (ptrdiff_t)strlen(text)), text);
    if (wants_html(connection)) {
        a->type = "text/html; charset=utf-8";
        page_failure(&out, status, error, semicolon != NULL ? semicolon + 2 : NULL);
        return send_text(connection, a, &out, allow);
    }
    put_json(&out, "{'error':%s,'hint':%s}\n", error, semicolon != NULL ? semicolon + 2 : NULL);
    return send_text(connection, a, &out, allow);
}

static enum MHD_Result refuse(struct MHD_Connection *connection, int status, const char *text)
{
    return send_failure(connection, status, text, NULL);
}

/* -- access -- */

static bool is_address(const char *host)
{
    char name[64];
    struct in_addr v4;
    struct in6_addr v6;
    size_t n = host[0] == '[' ? strcspn(host + 1, "]") : strcspn(host, ":");

    if (n >= sizeof name)
        return false;
    memcpy(name, host + (host[0] == '['), n);
    name[n] = '\0';
    return inet_pton(AF_INET, name, &v4) == 1 || inet_pton(AF_INET6, name, &v6) == 1;
}

static bool host_is_ours(const struct serve *s, const char *host)
{
    if (host_is_allowed(host, s->set.hosts, s->set.n_hosts))
        return true;
    /* Rebinding needs a name. Elsewhere than on the loopback the address that people type is not known here. */
    return s->set.bind != NULL && host != NULL && is_address(host);
}

static bool has_token(const struct serve *s, struct MHD_Connection *connection)
{
    const char *authorization = header(connection, "Authorization");
    char name[32], value[SERVE_TOKEN_MAX + 1];

    if (s->token[0] == '\0')
        return true;
    if (authorization != NULL && strncmp(authorization, "Bearer ", 7) == 0)
        return token_equal(s->token, authorization + 7);
    access_cookie_name(s, name, sizeof name);
    return cookie_find(header(connection, "Cookie"), name, value, sizeof value) && token_equal(s->token, value);
}

static bool wants_page(const struct request *r)
{
    return r->target.n_segments == 0 ||
           (strcmp(r->target.segments[0], "api") != 0 && strcmp(r->target.segments[0], "assets") != 0);
}

/* The form to give the token, the token itself, and what every copy of the program holds, need no token. */
static bool is_open(const struct request *r)
{
    const char *first = r->target.n_segments > 0 ? r->target.segments[0] : "";

    return strcmp(first, "login") == 0 || strcmp(first, "assets") == 0 ||
           (wants_page(r) && target_query(&r->target, "token") != NULL);
}

/* -- requests -- */

static const struct route login_route = {"login", "next", ROUTE_FORM, page_login, "", "text/html; charset=utf-8"};

/* A browser says where a POST comes from, and sends its cookies along. */
static bool is_program(struct MHD_Connection *connection)
{
    return header(connection, "Origin") == NULL && header(connection, "Sec-Fetch-Site") == NULL &&
           header(connection, "Cookie") == NULL;
}

/* May this POST change something? Answers itself when not. */
static bool may_change(struct serve *s, struct MHD_Connection *connection, enum route_kind kind, enum MHD_Result *ret)
{
    bool trusted = kind == ROUTE_CLIENT && is_program(connection);
    const char *type = header(connection, "Content-Type"), *csrf = header(connection, "X-Trawl-Csrf");

    if (s->set.control == NULL)
        *ret = refuse(connection, MHD_HTTP_FORBIDDEN,
                      "this server only reads; start `trawl serve` with --control to steer sweeps and to give trials "
                      "to programs");
    else if (!trusted && !origin_is_own(header(connection, "Origin"), header(connection, "Sec-Fetch-Site"),
                                        header(connection, "Host")))
        *ret = refuse(connection, MHD_HTTP_FORBIDDEN,
                      "the request comes from another site; programs send 'Origin: http://HOST:PORT' of this server");
    else if (!trusted && (csrf == NULL || !token_equal(s->csrf, csrf)))
        *ret = refuse(connection, MHD_HTTP_FORBIDDEN,
                      "the header X-Trawl-Csrf is missing or wrong; take `csrf` of /api/v1/version");
    else if (type == NULL || strncmp(type, "application/json", 16) != 0)
        *ret = refuse(connection, MHD_HTTP_UNSUPPORTED_MEDIA_TYPE,
                      "the body must be JSON; send Content-Type: application/json");
    else
        return true;
    return false;
}

/* What an answer is kept under; false: it is not kept. */
static bool cache_key(struct serve *s, const struct route *route, const struct request *r, const char *uri, char *key,
                      size_t size)
{
    int64_t model_version = 0;

    if (route->kind == ROUTE_MODEL && models_peek(s->models, r->study, r->settled, &model_version) != MODEL_READY)
        return false;
    return (route->kind == ROUTE_CACHED || route->kind == ROUTE_MODEL || route->kind == ROUTE_SLOW) &&
           snprintf(key, size, "%lld %s", (long long)model_version, uri) < (int)size;
}

/* The answer of a route, out of the cache or made now; a reference. */
static enum status make_answer(struct serve *s, const struct route *route, struct request *r, const char *uri,
                               struct answer **ret_answer, struct error *err)
{
    char key[TARGET_MAX_BYTES + 32];
    bool kept = cache_key(s, route, r, uri, key, sizeof key);
    struct answer *a = kept ? cache_find(&s->cache, key, r->version) : NULL;

    *ret_answer = a;
    if (a != NULL)
        return ST_OK;
    a = answer_create(MHD_HTTP_OK, route->type != NULL ? route->type : "application/json");
    STRBUF(out, SERVE_REPLY_BYTES);
    r->answer = a;
    enum status rc = route->run(s, r, &out, err);
    if (rc == ST_OK && a->bytes == NULL)
        rc = answer_finish(a, &out, err);
    if (rc != ST_OK) {
        answer_release(a);
        return rc;
    }
    if (kept && a->status == MHD_HTTP_OK) {
        a->version = r->version;
        cache_keep(&s->cache, key, a);
    }
    *ret_answer = a;
    return ST_OK;
}

enum status serve_answer(struct serve *s, const char *uri, struct answer **ret_answer, struct error *err)
{
    struct request r = {.uri = uri, .trial = -1};
    const struct route *route = NULL;
    struct error why = {0}; /* routes need one */
    enum status rc = target_parse(&r.target, uri, &why);

    *ret_answer = NULL;
    THEN(rc, route_find(s, &r, &route, &why));
    THEN(rc, make_answer(s, route, &r, uri, ret_answer, &why));
    target_free(&r.target);
    return rc == ST_OK ? ST_OK : FAIL(err, rc, "%s", why.text);
}

static enum MHD_Result send_made(struct MHD_Connection *connection, const char *uri, struct answer *a,
                                 const struct error *err)
{
    if (a != NULL)
        return send_answer(connection, a, NULL);
    if (http_status(err->status) == MHD_HTTP_INTERNAL_SERVER_ERROR)
        log_warn("%.200s could not be answered: %s", uri, err->text);
    return refuse(connection, http_status(err->status), err->text);
}

static enum MHD_Result run_route(struct serve *s, const struct route *route, struct request *r, const char *uri)
{
    struct answer *a = NULL;
    struct error err = {0};

    (void)!make_answer(s, route, r, uri, &a, &err);
    return send_made(r->connection, uri, a, &err);
}

/* Is there a place for one more job of this kind? */
static bool take_place(struct serve *s, enum route_kind kind)
{
    if (kind == ROUTE_SLOW)
        return !atomic_exchange(&s->slow_busy, true);
    if (atomic_fetch_add(&s->n_client_jobs, 1) < SERVE_CLIENT_JOBS)
        return true;
    atomic_fetch_sub(&s->n_client_jobs, 1);
    return false;
}

static void leave_place(struct serve *s, enum route_kind kind)
{
    if (kind == ROUTE_SLOW)
        atomic_store(&s->slow_busy, false);
    else
        atomic_fetch_sub(&s->n_client_jobs, 1);
}

static void *job_run(void *ctx)
{
    struct job *job = ctx;
    struct serve *s = job->s;
    enum route_kind kind = job->route->kind;

    (void)!make_answer(s, job->route, &job->r, job->uri, &job->answer, &job->err);
    mhd.resume_connection(job->r.connection); /* on_request is called again, and joins */
    leave_place(s, kind);
    return NULL;
}

/* Begins a job and takes the request's target and body. */
static enum MHD_Result begin_job(struct serve *s, const struct route *route, struct request *r, struct exchange *x)
{
    struct job *job;

    if (!take_place(s, route->kind))
        return refuse(r->connection, MHD_HTTP_SERVICE_UNAVAILABLE,
                      route->kind == ROUTE_SLOW ? "another report is being made; try again in a moment"
                                                : "too many requests at a time; try again in a moment");
    if (atomic_load(&s->stopping)) { /* serve_destroy looks at the places after it has set this: one of us sees the
                                        other */
        leave_place(s, route->kind);
        return refuse(r->connection, MHD_HTTP_SERVICE_UNAVAILABLE, "the server is ending; try again in a moment");
    }
    job = mem_alloc(sizeof *job);
    *job = (struct job){.s = s, .route = route, .r = *r, .uri = x->uri};
    mhd.suspend_connection(r->connection);
    if (pthread_create(&job->thread, NULL, job_run, job) != 0) {
        mhd.resume_connection(r->connection);
        leave_place(s, route->kind);
        mem_free(job);
        return MHD_NO;
    }
    r->target = (struct target){0};
    r->body = NULL;
    x->job = job;
    return MHD_YES;
}

static enum MHD_Result end_job(struct MHD_Connection *connection, struct exchange *x)
{
    struct job *job = x->job;

    pthread_join(job->thread, NULL);
    x->job = NULL;
    enum MHD_Result result = send_made(connection, x->uri, job->answer, &job->err);
    cJSON_Delete(job->r.body);
    target_free(&job->r.target);
    mem_free(job);
    return result;
}

/* A policy that plays may run code of the user's, at a GET, which a page of another site can send: a browser's needs the
 * token that only pages of ours can read. */
static bool may_stream(struct serve *s, const struct request *r)
{
    const char *csrf = target_query(&r->target, "csrf");

    return r->trial < 0 || is_program(r->connection) || (csrf != NULL && token_equal(s->csrf, csrf));
}

static enum MHD_Result send_stream(struct serve *s, const struct request *r)
{
    struct error err = {0};
    struct MHD_Response *response = NULL;
    enum status rc;

    if (!may_stream(s, r))
        return refuse(r->connection, MHD_HTTP_FORBIDDEN,
                      "the parameter csrf is missing or wrong; take `csrf` of /api/v1/version");
    rc = serve_stream_open(s, r, &response, &err);
    if (rc != ST_OK)
        return refuse(r->connection, http_status(rc), err.text);
    harden(response, NULL);
    mhd.add_response_header(response, "Content-Type", "text/event-stream");
    mhd.add_response_header(response, "Cache-Control", "no-store");
    mhd.add_response_header(response, "X-Accel-Buffering", "no"); /* nginx passes it on at once */
    set_deadline(s, r->connection, 0);
    enum MHD_Result ok = mhd.queue_response(r->connection, MHD_HTTP_OK, response);
    mhd.destroy_response(response);
    return ok;
}

static enum MHD_Result run_post(struct serve *s, const struct route *route, struct request *r, struct exchange *x)
{
    struct error err = {0};
    enum MHD_Result result;
    cJSON *body = NULL;
    char text[320];

    if (!may_change(s, r->connection, route->kind, &result))
        return result;
    if (json_parse(x->body.text, x->body.len, &body, &err) != ST_OK || !cJSON_IsObject(body)) {
        cJSON_Delete(body);
        snprintf(text, sizeof text, "the body is not a JSON object%s%.200s; see docs/http-api.md for what it holds",
                 err.status != ST_OK ? ": " : "", err.text);
        return refuse(r->connection, MHD_HTTP_BAD_REQUEST, text);
    }
    r->body = body;
    result = route->kind == ROUTE_CLIENT ? begin_job(s, route, r, x) : run_route(s, route, r, x->uri);
    cJSON_Delete(r->body); /* unless a job took it */
    return result;
}

static bool posts_only(const struct route *route)
{
    return route->kind == ROUTE_POST || route->kind == ROUTE_CLIENT;
}

static enum MHD_Result answer(struct serve *s, struct MHD_Connection *connection, const char *method,
                              struct exchange *x)
{
    bool reads = strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0, posts = strcmp(method, "POST") == 0;
    struct request r = {.uri = x->uri, .connection = connection, .trial = -1};
    const struct route *route = NULL;
    struct error err = {0};
    enum MHD_Result result;

    if (!host_is_ours(s, header(connection, "Host")))
        return refuse(connection, MHD_HTTP_FORBIDDEN,
                      "this server does not answer under the name in the Host header; use http://localhost, or start "
                      "`trawl serve` with --host NAME");
    enum status rc = target_parse(&r.target, x->uri, &err);
    if (rc != ST_OK)
        return refuse(connection, http_status(rc), err.text);
    if (!has_token(s, connection) && !is_open(&r)) {
        result = wants_page(&r) && reads
                     ? run_route(s, &login_route, &r, x->uri)
                     : refuse(connection, MHD_HTTP_UNAUTHORIZED,
                              "the token is missing or wrong; send 'Authorization: Bearer TOKEN' with the one that "
                              "`trawl serve` printed, or open /login");
        target_free(&r.target);
        return result;
    }
    r.form = posts ? x->body.text : NULL;
    rc = route_find(s, &r, &route, &err);
    if (rc != ST_OK)
        result = refuse(connection, http_status(rc), err.text);
    else if (posts_only(route) ? !posts : !reads && !(route->kind == ROUTE_FORM && posts))
        result = send_failure(connection, MHD_HTTP_METHOD_NOT_ALLOWED, "this address does not know that method",
                              posts_only(route)           ? "POST"
                              : route->kind == ROUTE_FORM ? "GET, HEAD, POST"
                                                          : "GET, HEAD");
    else if (x->too_large)
        result = refuse(connection, MHD_HTTP_CONTENT_TOO_LARGE, "the body is too large; 64 KiB are taken");
    else if (route->kind == ROUTE_STREAM && strcmp(method, "HEAD") != 0)
        result = send_stream(s, &r);
    else if (route->kind == ROUTE_STREAM)
        result = send_failure(connection, MHD_HTTP_METHOD_NOT_ALLOWED, "a stream has no HEAD", "GET");
    else if (route->kind == ROUTE_SLOW)
        result = begin_job(s, route, &r, x);
    else if (posts_only(route))
        result = run_post(s, route, &r, x);
    else
        result = run_route(s, route, &r, x->uri);
    target_free(&r.target);
    return result;
}

static enum MHD_Result on_request(void *ctx, struct MHD_Connection *connection, const char *url, const char *method,
                                  const char *http_version, const char *data, size_t *n_data, void **con_cls)
{
    struct serve *s = ctx;
    struct exchange *x = *con_cls;

    (void)url;
    (void)http_version;
    if (x == NULL)
        return MHD_NO;
    if (!x->begun) {
        x->begun = true;
        set_deadline(s, connection, SERVE_REQUEST_S); /* for the body */
        const char *length = header(connection, "Content-Length");
        if (length != NULL && (strlen(length) > 8 || strtoul(length, NULL, 10) > SERVE_BODY_BYTES))
            return refuse(connection, MHD_HTTP_CONTENT_TOO_LARGE, "the body is too large; 64 KiB are taken");
        return MHD_YES;
    }
    if (*n_data > 0) {
        if (x->body.len + *n_data >= SERVE_BODY_BYTES)
            x->too_large = true;
        else
            strbuf_add_n(&x->body, data, *n_data);
        *n_data = 0;
        return MHD_YES;
    }
    set_deadline(s, connection, SERVE_ANSWER_S);
    if (x->job != NULL)
        return end_job(connection, x);
    return answer(s, connection, method, x);
}

static void on_log(void *ctx, const char *fmt, va_list args)
{
    char text[512];

    (void)ctx;
    vsnprintf(text, sizeof text, fmt, args);
    text[strcspn(text, "\r\n")] = '\0';
    log_debug("http: %s", text);
}

enum status serve_http_start(struct serve *s, int listen_fd, bool is_v6, struct error *err)
{
    unsigned flags = MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG |
                     (is_v6 ? MHD_USE_IPv6 : MHD_NO_FLAG);

    TRY(mhd_open(err));
    s->daemon = mhd.start_daemon(
        flags, 0, NULL, NULL, on_request, s, MHD_OPTION_EXTERNAL_LOGGER, on_log, NULL, MHD_OPTION_LISTEN_SOCKET,
        listen_fd, MHD_OPTION_THREAD_POOL_SIZE, (unsigned)SERVE_THREADS, MHD_OPTION_CONNECTION_LIMIT,
        (unsigned)SERVE_CONNECTIONS, MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)SERVE_HEADER_BYTES,
        MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)SERVE_IDLE_S, MHD_OPTION_STRICT_FOR_CLIENT, 1,
        MHD_OPTION_NOTIFY_COMPLETED, on_completed, s, MHD_OPTION_NOTIFY_CONNECTION, on_connection, s,
        MHD_OPTION_URI_LOG_CALLBACK, on_uri, s, MHD_OPTION_UNESCAPE_CALLBACK, no_unescape, NULL, MHD_OPTION_END);
    if (s->daemon == NULL)
        return FAIL(err, ST_IO,
                    "the HTTP server did not start; the system's limit of threads or open files may be reached");
    return ST_OK;
}
