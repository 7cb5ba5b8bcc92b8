/* serve.h - an HTTP server with pages and an API over a store (public face of web/serve/).
 * The caller owns the settings and their texts until serve_destroy; the server has its own threads and connections to
 * the store, which it only reads. */
#pragma once

#include "base/base.h"
#include "base/text/json.h"

#define SERVE_HOSTS_MAX 16
#define SERVE_TOKEN_MAX 49 /* with its end */

/* Carries out the body of POST /control on a study, which may change the store or call its controller. ST_USAGE: the
 * request makes no sense; ST_EXISTS: not in the study's state. *ret_message: the caller's (mem_free). Any thread. */
typedef enum status serve_control_fn(const char *store_path, const char *study, const cJSON *request,
                                     char **ret_message, struct error *err);

/* Passes a request of ask/tell to the controller of the store: verb "ask", ...; trial -1: none. ST_BUSY: none runs.
 * *ret_answer: the caller's. Any thread. */
typedef enum status serve_ask_fn(const char *store_path, const char *verb, const char *study, int64_t trial,
                                 const cJSON *body, cJSON **ret_answer, struct error *err);

struct serve_settings {
    const char *store_path;
    const char *bind; /* NULL: loopback */
    int port; /* 0: any free one */
    serve_control_fn *control; /* NULL: this server only reads */
    serve_ask_fn *ask; /* set when control is */
    const char *hosts[SERVE_HOSTS_MAX]; /* names besides the loopback's that a Host header may hold */
    size_t n_hosts;
    const char *token; /* NULL: one is made where it is needed */
    bool no_token; /* every user of this machine may read and, with control, steer */
    const char *program, *version, *commit;
};

struct serve;
/* Answers when it returns. ST_EXISTS: the port is in use. */
enum status serve_create(struct serve **ret_serve, const struct serve_settings *settings, struct error *err) MUST_USE;
void serve_destroy(struct serve *serve); /* ends streams, waits for its threads; NULL is fine */
/* Without a socket: the store is read once, and serve_answer gives what a server would. */
enum status serve_open(struct serve **ret_serve, const struct serve_settings *settings, struct error *err) MUST_USE;
struct answer;
/* The answer to GET uri ("/api/v1/studies"), which is not a stream; its status may be 202 while a model is computed. A
 * reference: answer_release. */
enum status serve_answer(struct serve *serve, const char *uri, struct answer **ret_answer, struct error *err) MUST_USE;
int serve_port(const struct serve *serve);
const char *serve_token(const struct serve *serve); /* "": none needed */
/* Instead of the token, for one browser and once: another user of the machine may see the command that opens it. */
const char *serve_ticket(const struct serve *serve);
enum status serve_make_token(char token[SERVE_TOKEN_MAX], struct error *err) MUST_USE; /* random */
