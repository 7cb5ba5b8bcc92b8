/* store_watch.h - a store that is removed, moved or replaced under its controller. */
#ifndef SWEEP_CONTROLLER_STORE_WATCH_H
#define SWEEP_CONTROLLER_STORE_WATCH_H

#include "base/status.h"

struct scheduler;

/* Looks now and then. A store that is gone stops the scheduler, which then ends by itself; one that another controller has
 * taken is the failure ST_BUSY. */
enum status store_watch_round(struct scheduler *s, struct error *err) MUST_USE;
/* After the last trial: of a store that is gone a copy is written, and the failure says where; else rc. */
enum status store_watch_end(struct scheduler *s, enum status rc, struct error *err) MUST_USE;

#endif
