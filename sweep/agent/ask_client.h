/* ask_client.h - one client of ask/tell: requests to a server by HTTP, or to the controller of a store on this machine.
 * A client owns its connection (ask_client_destroy); one thread. */
#pragma once

#include "base/text/json.h"
#include "sweep/agent/ask_outcome.h"
#include "web/http/http.h"

struct ask_client;

/* "http://host:8080/?token=..." with its parts, or the path of a store. */
struct ask_place {
    char url[2048]; /* "": a store */
    char store[4096];
    char token[128]; /* "": none; a secret */
    bool direct; /* a store, without its controller (ask_store.h) */
};
/* token: instead of the address's own; NULL: none. */
enum status ask_place_parse(const char *text, const char *token, struct ask_place *ret_place,
                            struct error *err) MUST_USE;

/* place and cancel are borrowed until the client is destroyed. */
enum status ask_client_create(struct ask_client **ret_client, const struct ask_place *place, const char *study,
                              struct http_cancel *cancel, struct error *err) MUST_USE;
void ask_client_destroy(struct ask_client *client); /* NULL is fine */

/* One try. trial -1: none. text: why not (ERROR_TEXT_MAX). *ret_wait_s: what the server asks to wait; 0: nothing. */
enum ask_outcome ask_client_call(struct ask_client *client, const char *verb, int64_t trial, const cJSON *body,
                                 cJSON **ret_answer, double *ret_wait_s, char *text);
