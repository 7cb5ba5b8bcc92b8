/* curve_log.h - a training's curves as files: DIR/metrics.csv and DIR/metrics.jsonl, a line for each report, and
 * event files for TensorBoard. Used by the thread that trains. NULL is fine everywhere and does nothing. */
#pragma once

#include "base/base.h"

struct curve_log;
struct env_def;
struct train_metrics;

/* Makes the folder. append: the run continues, and so do its files; else they must not be there (ST_EXISTS). */
enum status curve_log_open(struct curve_log **ret_log, const struct env_def *env, const char *dir, bool append,
                           struct error *err) MUST_USE;
/* What cannot be written is logged once, and the training continues. */
void curve_log_add(struct curve_log *log, const struct train_metrics *metrics);
void curve_log_close(struct curve_log *log);
