/* events.h - server-sent events: one ring of events, read by any number of streams.
 * Publishing never waits for a client. Any thread may call; the ring has a lock of its own. An event that does not fit
 * into memory is left out, since clients read the data themselves when they next look. */
#ifndef WEB_SERVE_EVENTS_H
#define WEB_SERVE_EVENTS_H

#include <microhttpd.h>
#include <stdint.h>

#include "base/json.h"
#include "base/status.h"

struct events;
enum status events_create(struct events **ret_events, struct error *err) MUST_USE;
void events_destroy(struct events *events);
/* json is taken; NULL (out of memory): no client is notified. study: NULL for all. */
void events_publish(struct events *events, const char *type, const char *study, cJSON *json);
void events_heartbeat(struct events *events);
void events_end(struct events *events); /* every stream ends */
/* A stream for this connection; last_id: NULL or Last-Event-ID. */
struct MHD_Response *events_response(struct events *events, struct MHD_Connection *connection, const char *study,
                                     const char *last_id, const char *program, int64_t version);

#endif
