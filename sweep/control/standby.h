/* standby.h - a controller that waits until it may take the place of another one. */
#ifndef SWEEP_CONTROL_STANDBY_H
#define SWEEP_CONTROL_STANDBY_H

#include "base/status.h"

struct store;

/* Opens a store in PostgreSQL for writing when its controller has ended; ST_INTERRUPTED: a signal came first. */
enum status standby_open(struct store **ret_store, const char *path, struct error *err) MUST_USE;

#endif
