/* control_client.h - one request to the controller of a store, and its answer. */
#ifndef SWEEP_CONTROL_CONTROL_CLIENT_H
#define SWEEP_CONTROL_CONTROL_CLIENT_H

#include <stdbool.h>

#include "base/json.h"
#include "base/status.h"
#include "store/store.h"

/* Takes request. *ret_reached false: no controller listens (ST_NOTFOUND). A refusal of the controller is returned with the
 * status that it had there. */
enum status control_call(const char *store_path, cJSON *request, cJSON **ret_answer, bool *ret_reached,
                         struct error *err) MUST_USE;
/* The same for who would rather know nothing than wait longer. */
enum status control_call_within(const char *store_path, int patience_s, cJSON *request, cJSON **ret_answer,
                                bool *ret_reached, struct error *err) MUST_USE;

#endif
