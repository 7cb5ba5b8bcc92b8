/* event_ring.h - the last events of a program, for a view. A plain value; one thread. */
#pragma once

#include "base/base.h"

#define EVENT_RING_SIZE 64

struct ring_event {
    int64_t at_ms;
    char text[200];
};
struct event_ring {
    struct ring_event v[EVENT_RING_SIZE]; /* event k of n at k % EVENT_RING_SIZE */
    size_t n;
};
void event_ring_add(struct event_ring *ring, const char *fmt, ...) PRINTF_LIKE(2, 3);
