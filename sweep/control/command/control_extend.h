/* control_extend.h - a finished trial continues as a new one, from its kept checkpoint to more steps. One thread, that
 * of the store's writer. */
#pragma once

#include "base/base.h"

struct store;
struct study;

/* Queues the trial that continues trial `number` up to `steps` env steps in all: "2x" (of its train.total_timesteps) or
 * a number. Its curve and checkpoint are there already. ret_text: what was done. ST_USAGE: it cannot be continued, and
 * why. */
enum status control_extend(struct store *store, const struct study *study, int64_t number, const char *steps,
                           char *ret_text, size_t size, struct error *err) MUST_USE;
