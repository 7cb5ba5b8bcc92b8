/* events.h - server-sent events: one ring of events, read by any number of streams.
 * Publishing never waits for a client. Any thread may call; the ring has a lock of its own. */
#pragma once

#include <microhttpd.h>

#include "base/base.h"
#include "base/text/json.h"

struct events;
struct events *events_create(void);
void events_destroy(struct events *events);
/* Takes json. study: NULL for all. */
void events_publish(struct events *events, const char *type, const char *study, cJSON *json);
/* Every stream gets the version of all studies and the age of the last look at the store: who hears it is connected. */
void events_pulse(struct events *events, int64_t version, double age_s);
void events_end(struct events *events); /* every stream ends */
/* A stream for this connection; last_id: NULL or Last-Event-ID; store_error: NULL when the store can be read. */
struct MHD_Response *events_response(struct events *events, struct MHD_Connection *connection, const char *study,
                                     const char *last_id, const char *program, int64_t version,
                                     const char *store_error);
