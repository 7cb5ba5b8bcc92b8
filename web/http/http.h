/* http.h - one HTTP client for all trackers: a libcurl handle with limits, for one thread.
 *
 * Rules: TLS is verified; only http and https; proxies as in the environment (curl's rules); no redirect to another
 * scheme, host or port, and at most 3 to the same one; credentials are headers of one request; a reply is at most
 * max_reply_bytes; an HTML page is never treated as JSON. Messages hold no header, no query and no user part of a
 * URL. */
#pragma once

#include <stdatomic.h>

#include "base/base.h"
#include "base/text/json.h"
#include "base/rng.h"

/* Ends requests early, and counts answers: shared by a main thread and its handles. */
struct http_cancel {
    atomic_int_least64_t deadline_ms; /* by clock_mono_s * 1000; 0: none; set by the main thread */
    atomic_int_least64_t answers; /* HTTP_OK so far; counted by the handles */
};

struct http_settings {
    const char *ca_file; /* NULL or "": CURL_CA_BUNDLE, SSL_CERT_FILE, REQUESTS_CA_BUNDLE, else the system's */
    const char *client_cert, *client_key; /* PEM; NULL or "": none */
    const char *proxy; /* NULL or "": the environment's */
    bool insecure; /* accept any certificate; logged once */
    double connect_s, timeout_s; /* 0: 10 and 30 */
    size_t max_reply_bytes; /* 0: 16 MiB */
    const char *user_agent; /* NULL: "trawl" */
    struct http_cancel *cancel; /* NULL: none */
};

struct http; /* opaque */

enum status http_create(struct http **ret_http, const struct http_settings *settings, struct error *err) MUST_USE;
void http_destroy(struct http *http); /* NULL is fine; wipes the secrets */
/* A text that must never be in a message, also when a server sends it back. Up to HTTP_SECRETS_MAX. */
#define HTTP_SECRETS_MAX 8
enum status http_hide(struct http *http, const char *secret, struct error *err) MUST_USE;

struct http_request {
    const char *method; /* "GET", "POST", "PUT", "PATCH", "DELETE" */
    const char *url;
    const char *const *headers; /* (n_headers) "Name: value"; borrowed; may hold secrets */
    size_t n_headers;
    const void *body; /* may be NULL */
    size_t n_body;
    const char *content_type; /* NULL: application/json with a body */
    double timeout_s; /* 0: the settings' */
    bool once; /* on a new connection: on a kept one that was dropped without an answer, curl sends again by itself */
    bool want_json; /* a reply that is not JSON (an HTML login page) is a refusal with a clear text */
};

/* The action that a caller shall take. A page instead of JSON or a redirect elsewhere is a wrong setting before the
 * first success of this handle, and a passing failure (maintenance, a hotel's network) after it. */
enum http_outcome {
    HTTP_OK, /* 2xx, with JSON when wanted */
    HTTP_RETRY, /* no reply, half a reply, 408, 425, 429, 5xx except 501 and 505 */
    HTTP_REFUSED, /* other 4xx, redirects elsewhere, pages instead of JSON, certificates that do not verify */
    HTTP_CANCELLED, /* by http_cancel */
};

struct http_reply {
    enum http_outcome outcome;
    long code; /* 0: no reply */
    struct strbuf body; /* kept between requests, cleared by each */
    cJSON *json; /* parsed when the reply is JSON, also an error's; owned */
    bool elsewhere; /* refused by a page, a redirect or a certificate: the answer was not the tracker's */
    double retry_after_s; /* both forms of Retry-After; 0: none */
    double pause_s; /* RateLimit-Remaining and -Reset: wait this long before the next request; 0: none */
    char text[ERROR_TEXT_MAX]; /* not HTTP_OK: "POST https://host/path: 503: text of the server" */
};
void http_reply_init(struct http_reply *reply);
void http_reply_free(struct http_reply *reply);

/* Failures are in reply->outcome. */
void http_send(struct http *http, const struct http_request *request, struct http_reply *reply);

/* ---- parts that are tested alone ---- */

/* Full jitter: retry_after_s plus a uniform number in [0, min(60, 2^attempt)] seconds. attempt counts from 0. */
double http_backoff_s(struct rng *rng, int attempt, double retry_after_s);
/* "120" or "Wed, 21 Oct 2015 07:28:00 GMT" -> seconds from now_s (Unix), 0 when past; false: neither. */
bool http_retry_after(const char *text, double now_s, double *ret_s);
/* "https://user:secret@host:8/p?q" -> "https://host:8/p"; for messages. buf holds ERROR_TEXT_MAX / 2 bytes. */
const char *http_url_shown(const char *url, char *buf, size_t size);
/* Has the URL a user, a password or a query that looks like a secret? */
bool http_url_has_secret(const char *url);
/* http or https with a host? trailing slashes are cut. ST_CONFIG names origin. */
enum status http_url_check(const char *url, const char *origin, char *ret_url, size_t size, struct error *err) MUST_USE;
/* A path part or query value as %XX; appended. */
void http_escape(struct strbuf *sb, const char *text);

/* ---- netrc.c ---- */

/* Login and password for "host" or "host:port" from $NETRC, ~/.netrc or ~/_netrc; false: none. The texts are secrets:
 * wipe them. Warns when others may read the file. */
bool netrc_find(const char *host, char *ret_login, size_t login_size, char *ret_password, size_t password_size);

/* One key of a tracker's own ini file ("[default]" section of ~/.config/wandb/settings); false: not set. */
bool track_ini_value(const char *path, const char *section, const char *key, char *ret_value, size_t size);
