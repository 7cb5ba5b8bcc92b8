/* optuna_read.h - the trials of a storage of Optuna's, as rows like those of other files. Any thread. */
#pragma once

#include "base/base.h"
#include "base/text/json.h"

/* Is it the SQLite file of a storage, and no store? */
bool optuna_is_storage(const char *path);

/* An array with an object for each trial by number: number, state, params; score (the first objective), cost (the
 * second, if it is minimised), each objective under its own name and as "objective K"; cost_s, the time that the trial
 * took; and its user attributes. The caller deletes it. study NULL: the only one. *ret_maximize: the first objective's
 * direction. ST_NOTFOUND names the studies that there are. */
enum status optuna_read(const char *path, const char *study, cJSON **ret_rows, bool *ret_maximize,
                        struct error *err) MUST_USE;
