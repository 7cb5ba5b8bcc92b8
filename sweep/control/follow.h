/* follow.h - a study that a daemon runs, watched from another process. */
#ifndef SWEEP_CONTROL_FOLLOW_H
#define SWEEP_CONTROL_FOLLOW_H

#include <stdbool.h>

#include "base/status.h"
#include "store/store.h"

/* Until it is no longer running. ST_INTERRUPTED: the watcher was, the study goes on. */
enum status follow_study(const char *store_path, const char *name, bool quiet, struct error *err) MUST_USE;

#endif
