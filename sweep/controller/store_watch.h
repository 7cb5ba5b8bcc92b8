/* store_watch.h - finds a store that was removed, moved or replaced under its controller. The scheduler's thread. */
#ifndef SWEEP_CONTROLLER_STORE_WATCH_H
#define SWEEP_CONTROLLER_STORE_WATCH_H

#include "base/status.h"

struct scheduler;

/* Checks every few seconds. A store that is gone stops the scheduler, which then ends by itself; a store that another
 * controller has taken is ST_BUSY. */
enum status store_watch_round(struct scheduler *s, struct error *err) MUST_USE;
/* Called after the last trial: writes a copy of a store that is gone and fails with its path; otherwise returns rc. */
enum status store_watch_end(struct scheduler *s, enum status rc, struct error *err) MUST_USE;

#endif
