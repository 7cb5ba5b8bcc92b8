/* ask_store.h - a client of ask/tell without a server: it takes trials of a store by itself and writes what comes
 * of them, wherever a connection to the store reaches, with a controller or without one. A client owns its connection;
 * one thread. */
#pragma once

#include "base/text/json.h"
#include "sweep/agent/ask_outcome.h"

struct ask_store;

struct ask_store *ask_store_create(const char *path); /* borrowed until it is destroyed */
void ask_store_destroy(struct ask_store *client); /* NULL is fine */
/* As ask_client_call. Bodies:
 *   ask {client, device: {name, class, spec, kind, threads, vector_units}} -> {trial, attempt, study,
 *       lease: {token, seconds}, run, hang_s} or {state, wait_s}; run: the message for a worker
 *   report {lease, message?} -> {stop, reason?}; message: a worker's metrics, checkpoint, again or branches
 *   tell {lease, state?, message} -> {late?}; message: a worker's result; state: "queued" when the trial is given
 *       back, "lost" when its worker was ended from outside */
enum ask_outcome ask_store_call(struct ask_store *client, const char *verb, const cJSON *body, cJSON **ret_answer,
                                char *text);
