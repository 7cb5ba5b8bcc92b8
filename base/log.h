/* log.h - one line per event to a replaceable sink (stderr by default).
 * Library folders log at debug only; sweep/ and web/ log where they give up or continue.
 * Thread-safe: a line is written by one call of the sink under the log's own lock. */
#pragma once

#include <stdint.h>

#include "base/status.h"

enum log_level { LOG_LEVEL_DEBUG, LOG_LEVEL_INFO, LOG_LEVEL_WARN, LOG_LEVEL_ERROR };

typedef void log_sink_fn(void *ctx, enum log_level level, const char *line);

void log_set_level(enum log_level level); /* lines below are dropped; default info */
void log_set_sink(log_sink_fn *sink, void *ctx); /* NULL: back to stderr */
void log_set_trial(int64_t trial_number); /* this thread's context, shown on each line; -1: none */
void log_write(enum log_level level, const char *fmt, ...) PRINTF_LIKE(2, 3);

#define log_debug(...) log_write(LOG_LEVEL_DEBUG, __VA_ARGS__)
#define log_info(...) log_write(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_warn(...) log_write(LOG_LEVEL_WARN, __VA_ARGS__)
#define log_error(...) log_write(LOG_LEVEL_ERROR, __VA_ARGS__)
