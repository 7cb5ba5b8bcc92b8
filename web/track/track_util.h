/* track_util.h - helpers of the trackers' clients: texts of JSON with exact numbers, logins, flat configs, requests. */
#pragma once

#include "base/text/json.h"
#include "web/http/http.h"
#include "web/track/track.h"

#define TRACK_SECRET_MAX 512

/* -- JSON as text: numbers keep every bit, non-finite ones are "NaN", "Infinity", "-Infinity" in quotes -- */

void track_json_number(struct strbuf *sb, double value);
void track_json_value(struct strbuf *sb, const cJSON *json); /* words of base/text/json.h ("nan") become those above */
/* The same with NaN, Infinity and -Infinity without quotes, as W&B needs them in the texts inside its JSON. */
void track_json_bare_number(struct strbuf *sb, double value);
void track_json_bare_value(struct strbuf *sb, const cJSON *json);
/* A number, or a word of base/text/json.h for one that is not finite. */
bool track_json_is_number(const cJSON *item, double *ret_value);

/* -- configs -- */

/* Called with "train.gamma" and the value as people write it. */
typedef void track_flat_fn(void *ctx, const char *key, const char *value);
/* Every leaf of an object, keys joined by dots. */
void track_flatten(const cJSON *object, track_flat_fn *each, void *ctx);

/* -- settings -- */

const char *track_env(const char *name); /* NULL when unset or empty */
/* Takes user and password out of a URL, decoded; "" when it has none. The URL ends without a slash. ST_CONFIG names
 * origin. */
enum status track_url_login(const char *url, const char *origin, char *ret_url, size_t url_size, char *ret_user,
                            char *ret_password, size_t size, struct error *err) MUST_USE;
/* "host:port" or "host" of a checked URL, as netrc names machines. */
void track_url_host(const char *url, bool with_port, char *ret_host, size_t size);
/* "Authorization: Basic ..."; ret holds TRACK_SECRET_MAX * 3. */
void track_basic_auth(char *ret_header, size_t size, const char *user, const char *password);

/* -- a client: what all of them have, as the first member of each -- */

struct track_client {
    size_t size; /* of the whole client */
    const struct track_settings *track; /* this and the texts are borrowed */
    const char *study, *key, *program;
    bool single; /* a single training: no run of a study, no group */
    struct http *http;
    struct http_reply reply;
    struct strbuf body;
    char auth[TRACK_SECRET_MAX * 3]; /* a header; a secret; "": none */
    char page[OPT_STR_MAX * 4]; /* the study's page for people; "": none */
};
void *track_client_create(size_t size, const struct track_open *open);
/* With the certificates of [track] where http has none; the secrets (n) and the login never stand in a message. */
enum status track_client_connect(struct track_client *client, const struct track_open *open, struct http_settings http,
                                 const char *const *secrets, size_t n, struct error *err) MUST_USE;
void track_client_close(void *client); /* wipes it; as close of struct tracker_ops */
const char *track_client_page(void *client); /* as page of struct tracker_ops */
/* Sends a request with the login where it has no headers; its reply in client->reply and, as a verdict, in *reply. */
void track_client_send(struct track_client *client, struct http_request request, struct track_reply *reply);

/* -- requests -- */

/* Sends entries [from, to) in one request; reply is TRACK_DONE before. A refusal of a single entry (TRACK_RUN_REFUSED)
 * may be turned into a skip by track_skip. */
typedef void track_send_fn(void *ctx, size_t from, size_t to, struct track_reply *reply);
/* Sends entries [from, to). A refused range is sent again in halves, until the refused entry is alone. */
void track_send_halving(track_send_fn *send, void *ctx, size_t from, size_t to, struct track_reply *reply);
/* The refused entry `what` is left out: TRACK_DONE with one skip, and a line in the debug log. */
void track_skip(struct track_reply *reply, const struct track_run *run, const char *what);

/* -- what a tracker's client remembers of a run -- */

void track_state_set(struct track_run *run, const char *key, const char *value);

/* -- answers -- */

void track_refuse(struct track_reply *reply, enum track_verdict verdict, const char *fmt, ...) PRINTF_LIKE(3, 4);

/* Names of a "front" row's numbers at every tracker ("study/hypervolume"); NULL ends the table. */
struct track_front_name {
    const char *sent, *key; /* name at the tracker; key of the row */
};
extern const struct track_front_name track_front_names[];
extern const struct track_front_name track_result_names[]; /* for a "result" row: "result/score" */
