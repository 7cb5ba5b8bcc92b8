/* served.h - which studies a running controller serves, for `ls` and `show`. No failure: a controller that does not
 * answer in time is an answer too. One thread. */
#pragma once

#include "base/text/json.h"
#include "store/store.h"

struct served {
    bool held; /* a controller has the store; in PostgreSQL: a daemon has it */
    cJSON *names; /* of the studies that it serves; NULL: it did not answer. Owned */
};
/* Asks the controller of the store, if there is one, and waits briefly. */
void served_ask(const char *store_path, struct served *ret_served);
void served_free(struct served *served);
/* "running": a controller runs it; "waiting": one has the store and runs others; "interrupted": trials are marked
 * running (n_running) and no controller runs them; "idle": it could continue and no controller runs it; else "paused",
 * "ended". */
const char *served_state(const struct served *served, const struct study *study, int64_t n_running);
