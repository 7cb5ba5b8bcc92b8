/* ask_request.h - ask/tell: the requests of clients that train elsewhere, answered by the running controller
 * (docs/decisions/0013-leases.md). The scheduler's thread. */
#pragma once

#include "base/base.h"
#include "base/text/json.h"

struct scheduler;
struct store;

/* {"command": "trial", "verb": "ask", "study": NAME, "trial": N or absent, "body": {...}}; adds "answer", whose fields
 * are in web/api/ask_form.c. ST_USAGE: a wrong request; ST_NOTFOUND: no such study, trial or lease; ST_EXISTS: the
 * study's or the lease's state forbids it. */
#define ASK_COMMAND "trial"
enum status ask_request(struct store *store, struct scheduler *sched, bool waiting /* studies wait their turn */,
                        const cJSON *request, cJSON *answer, struct error *err) MUST_USE;
