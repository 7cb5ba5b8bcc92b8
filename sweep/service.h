/* service.h - a running controller and the commands that talk to it: the socket beside the store, what is said over it,
 * and the same commands written to the store when no controller runs.
 *
 * One request is one line of JSON, {"command": "pause", "study": "first", ...}; the answer is one line,
 * {"ok": true, "text": "...", ...} or {"ok": false, "status": "notfound", "error": "..."}. */
#ifndef SWEEP_SERVICE_H
#define SWEEP_SERVICE_H

#include <limits.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "sweep/sweep.h"

/* ---- control_address.c: where the controller of a store listens ---- */

#define CONTROL_ADDRESSES 3

struct control_address {
    struct sockaddr_un sun; /* with size: of an abstract name */
    socklen_t size;
    bool is_abstract; /* no file, so no mode: the peer's user is checked all the same */
    char path[PATH_MAX]; /* else the socket's file; maybe too long for a sockaddr_un */
    char text[128]; /* for people; '@' in front of an abstract name */
};
/* What bind and connect take, however long the path: *ret_folder (-1: none) is open until they are done, then the caller's to
 * close. False: errno says why. */
bool control_address_open(const struct control_address *address, struct sockaddr_un *ret_sun, socklen_t *ret_size,
                          int *ret_folder);
/* In the order to try: STORE.sock by the store's real path, unless its name alone is too long for a socket; a name made from
 * that path in $XDG_RUNTIME_DIR; the same as an abstract name. */
enum status control_addresses(const char *store_path, struct control_address ret_addresses[CONTROL_ADDRESSES],
                              size_t *ret_n, struct error *err) MUST_USE;

/* ---- control_server.c: the controller's side. Nothing here ever waits. ---- */

#define CONTROL_REQUEST_MAX (2u << 20) /* bytes of a line; a whole config fits */
#define CONTROL_CLIENTS_MAX 16

struct control_server;
/* Answers one request: adds to answer (an object), or fails, which the client is told. */
typedef enum status control_fn(void *ctx, const cJSON *request, cJSON *answer, struct error *err);
/* The caller holds the store's lock, so a socket that is there already belongs to nobody and is replaced. */
enum status control_server_create(struct control_server **ret_server, const char *store_path, control_fn *fn, void *ctx,
                                  struct error *err) MUST_USE;
void control_server_destroy(struct control_server *server); /* removes the socket's file; NULL is fine */
int control_server_fd(const struct control_server *server); /* readable when there is something to serve */
void control_server_serve(struct control_server *server);
const char *control_server_address(const struct control_server *server); /* for messages */

/* ---- control_client.c ---- */

/* Takes request. *ret_reached false: no controller listens (ST_NOTFOUND). A refusal of the controller is returned with the
 * status that it had there. */
enum status control_call(const char *store_path, cJSON *request, cJSON **ret_answer, bool *ret_reached,
                         struct error *err) MUST_USE;
/* The same for who would rather know nothing than wait longer. */
enum status control_call_within(const char *store_path, int patience_s, cJSON *request, cJSON **ret_answer,
                                bool *ret_reached, struct error *err) MUST_USE;

/* ---- control_command.c: what can be asked of a study ---- */

enum control_kind {
    CONTROL_STOP,
    CONTROL_PAUSE,
    CONTROL_CONTINUE,
    CONTROL_ADD,
    CONTROL_PRIORITY,
    CONTROL_RETRY,
    CONTROL_KINDS
};

struct control_command {
    enum control_kind kind;
    char study[104];
    bool now; /* pause: running trials go back into the queue at once */
    int64_t trials; /* add: 0 none */
    double budget_s; /* add: 0 none */
    int64_t priority; /* 1 to STUDY_PRIORITY_MAX */
    int64_t trial; /* retry: its number; -1: none */
};
/* A value of a request: one that is absent leaves *ret_value, anything but a number (or a bool) is ST_USAGE. */
enum status control_take_i64(const cJSON *json, const char *key, int64_t *ret_value, struct error *err) MUST_USE;
enum status control_take_f64(const cJSON *json, const char *key, double *ret_value, struct error *err) MUST_USE;
enum status control_take_bool(const cJSON *json, const char *key, bool *ret_value, struct error *err) MUST_USE;
const char *control_kind_name(enum control_kind kind); /* "stop", ... */
cJSON *control_command_to_json(const struct control_command *command); /* NULL: out of memory */
/* Everything is checked: what comes over a socket may be anything. */
enum status control_command_from_json(const cJSON *json, struct control_command *ret_command,
                                      struct error *err) MUST_USE;
/* Changes the study's row and says in a sentence what was done; study (of the store, found by its name) is brought up to
 * date, whoever runs it acts on that. ST_USAGE when the command makes no sense in the study's state. */
enum status control_command_apply(struct store *store, const struct control_command *command, struct study *study,
                                  char *ret_text, size_t size, struct error *err) MUST_USE;

/* cmd_control.c: says it to the running controller of the store (*ret_live), or writes it to the store where none runs. */
enum status control_carry_out(const char *store_path, const struct control_command *command, char *ret_text,
                              size_t size, bool *ret_live, struct error *err) MUST_USE;

/* ---- served.c: who runs a study, for `ls` and `show` ---- */

struct served {
    bool held; /* a controller has the store */
    cJSON *names; /* of the studies that it serves; NULL: it did not say. Owned */
};
/* Asks the controller of the store, if there is one, and waits shortly; whatever goes wrong is an answer too. */
void served_ask(const char *store_path, struct served *ret_served);
void served_free(struct served *served);
/* "running": a controller runs it; "waiting": one has the store and runs others; "interrupted": trials are marked running
 * (n_running) and nobody runs them; "idle": it could go on and nobody runs it; else "paused", "ended". */
const char *served_state(const struct served *served, const struct study *study, int64_t n_running);

#endif
