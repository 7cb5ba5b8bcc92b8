/* follow.h - watches a study that a daemon runs, from another process. It only reads; the caller's thread waits in
 * it. */
#pragma once

#include "store/store.h"

/* Returns when the study no longer runs. ST_INTERRUPTED: the watcher was interrupted, the study continues. */
enum status follow_study(const char *store_path, const char *name, bool quiet, struct error *err) MUST_USE;
