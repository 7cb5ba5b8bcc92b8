/* ask_forward.h - a request of ask/tell on its way to the controller of a store: what `trawl serve --control` and a
 * `trawl agent` on the same machine call. Any thread. */
#pragma once

#include "base/base.h"
#include "base/text/json.h"

/* trial -1: none. *ret_answer: the caller's. While a trial is being chosen an ask waits, for FORWARD_WAIT_S at most.
 * ST_BUSY: no controller runs; otherwise the controller's own refusal. */
#define FORWARD_WAIT_S 2.0
enum status ask_forward(const char *store_path, const char *verb, const char *study, int64_t trial, const cJSON *body,
                        cJSON **ret_answer, struct error *err) MUST_USE;
