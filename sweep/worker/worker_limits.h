/* worker_limits.h - cores and memory of a worker, before its device opens. */
#ifndef SWEEP_WORKER_WORKER_LIMITS_H
#define SWEEP_WORKER_WORKER_LIMITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/json.h"

/* Cores, memory and the order in which the kernel ends processes, as an `open` message says. */
void worker_limits_apply(const cJSON *open_message);
/* The limit that a worker out of memory has met, and what to do about it: "sweep.worker_memory leaves it 60 MB" is of
 * memory_bytes (0: none), an inherited limit of address space is its caller's. False: there is no limit. */
bool worker_limits_explain(int64_t memory_bytes, char *buf, size_t size);

#endif
