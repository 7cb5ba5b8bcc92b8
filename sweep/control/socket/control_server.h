/* control_server.h - the controller's side of the socket beside the store. It owns its clients' connections; one
 * thread, and no call waits. A client that fails is dropped and is not an error of the server. */
#pragma once

#include "base/text/json.h"
#include "store/store.h"

#define CONTROL_REQUEST_MAX (2u << 20) /* bytes of a line; a whole config fits */
#define CONTROL_CLIENTS_MAX 64

struct control_server;
/* Answers one request: adds to answer (an object), or fails; the failure is sent to the client. */
typedef enum status control_fn(void *ctx, const cJSON *request, cJSON *answer, struct error *err);
/* The caller holds the store's lock, so an existing socket file is stale and is replaced. */
enum status control_server_create(struct control_server **ret_server, const char *store_path, control_fn *fn, void *ctx,
                                  struct error *err) MUST_USE;
void control_server_destroy(struct control_server *server); /* removes the socket's file; NULL is fine */
int control_server_fd(const struct control_server *server); /* readable when a client waits */
void control_server_serve(struct control_server *server);
/* The answer to one request that came another way; mem_free, with space for one more byte in the NUL's place. */
char *control_server_answer(control_fn *fn, void *ctx, const char *line, size_t n);
const char *control_server_address(const struct control_server *server); /* for messages */
