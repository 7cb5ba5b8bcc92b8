/* worker_limits.h - limits of a worker's cores and memory, set before its device opens. State of the process; a limit
 * that cannot be set is logged. */
#pragma once

#include "base/base.h"
#include "base/text/json.h"

/* Sets cores, memory and the order in which the kernel ends processes from an `open` message. */
void worker_limits_apply(const cJSON *open_message);
/* The limit that a worker out of memory has met, and what to do about it: "sweep.worker_memory leaves it 60 MB" for
 * memory_bytes (0: none), else an inherited limit of address space. False: there is no limit. */
bool worker_limits_explain(int64_t memory_bytes, char *buf, size_t size);
