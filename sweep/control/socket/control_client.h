/* control_client.h - one request to the running controller of a store, and its answer, as cJSON that the caller
 * deletes.
 *
 * One request is one line of JSON, {"command": "pause", "study": "first", ...}; the answer is one line, {"ok": true,
 * "text": "...", ...} or {"ok": false, "status": "notfound", "error": "..."}. The call waits for a few seconds at most;
 * any thread. */
#pragma once

#include "base/text/json.h"
#include "store/store.h"

/* Takes request. *ret_reached false: no controller listens (ST_NOTFOUND). A refusal of the controller is returned with
 * the status that it had there. */
enum status control_call(const char *store_path, cJSON *request, cJSON **ret_answer, bool *ret_reached,
                         struct error *err) MUST_USE;
/* The same with a wait of at most patience_s. */
enum status control_call_within(const char *store_path, int patience_s, cJSON *request, cJSON **ret_answer,
                                bool *ret_reached, struct error *err) MUST_USE;
