/* import_row.h - a trial of a file as the body of a request that adds it. One thread. */
#pragma once

#include "base/base.h"
#include "base/text/json.h"

struct study_view;

struct import_columns {
    const char *score, *cost; /* NULL: by the names that exports use */
};
/* Does it name a game that the study does not train on? The view has its setup (study_view_setup), here and below. */
bool import_row_is_elsewhere(const struct study_view *view, const cJSON *row);
/* Of a row of the study's games. *ret_body NULL: the trial has no result (queued, running, lost). Else the caller
 * deletes it. */
enum status import_row_body(const struct study_view *view, const cJSON *row, const struct import_columns *columns,
                            cJSON **ret_body, struct error *err) MUST_USE;
/* Does the study have this result already, of a training of its own too? *ret_number: of its trial. */
bool import_row_is_there(const struct study_view *view, const cJSON *body, int64_t *ret_number);
/* Is it a branch of another row's run? *ret_number: of that row's trial, in the file. */
bool import_row_is_branch(const cJSON *row, int64_t *ret_number);
/* A text of the row; NULL: none. */
const char *import_row_text(const cJSON *row, const char *column);
