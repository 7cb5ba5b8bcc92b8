/* puffer_log.h - what PufferLib 3.0 and 4.0 leave of a run: logs/GAME/ID.json, its whole config and its metrics. Any
 * thread. */
#pragma once

#include "base/base.h"
#include "base/text/json.h"

/* The log's text, where NaN and Infinity stand for numbers. The caller deletes it. */
enum status puffer_log_parse(const char *text, size_t n, cJSON **ret_log, struct error *err) MUST_USE;
bool puffer_is_log(const cJSON *json);
/* The run as a row of a table: state, the options as "section.key", the last value of each metric by its name. A log
 * without metrics is one that has not ended. The caller deletes it. */
cJSON *puffer_log_row(const cJSON *log);
/* PufferLib's k-th name, from 0, for our option key; NULL: there are no more. */
const char *puffer_name(const char *key, size_t k);
