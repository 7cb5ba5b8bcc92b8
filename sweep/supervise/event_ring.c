/* event_ring.c - a ring of dated lines, of which the oldest is overwritten. */
#include "sweep/supervise/event_ring.h"

#include <stdarg.h>

void event_ring_add(struct event_ring *ring, const char *fmt, ...)
{
    struct ring_event *e = &ring->v[ring->n++ % EVENT_RING_SIZE];
    va_list args;

    e->at_ms = clock_utc_ms();
    va_start(args, fmt);
    vsnprintf(e->text, sizeof e->text, fmt, args);
    va_end(args);
}
