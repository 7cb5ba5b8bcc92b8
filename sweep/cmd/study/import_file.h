/* import_file.h - trials of a file as rows, and a row as the body of a request that adds a trial. One thread. */
#ifndef SWEEP_CMD_STUDY_IMPORT_FILE_H
#define SWEEP_CMD_STUDY_IMPORT_FILE_H

#include <stdbool.h>

#include "base/json.h"
#include "base/status.h"

struct study_view;

struct import_file {
    cJSON *study; /* as `trawl export --format jsonl` describes it; NULL: the file says nothing of a study */
    cJSON *rows; /* an array of objects */
};
void import_file_free(struct import_file *file);
/* CSV, JSON lines, or a study of another store (from NULL: its only one). */
enum status import_file_read(const char *path, const char *from, struct import_file *ret_file,
                             struct error *err) MUST_USE;

struct import_columns {
    const char *score, *cost; /* NULL: by the names that exports use */
};
/* *ret_body NULL: the trial has no result (queued, running, lost). Else the caller deletes it. */
enum status import_row_body(const struct study_view *view, const cJSON *row, const struct import_columns *columns,
                            cJSON **ret_body, struct error *err) MUST_USE;
/* A text of the row; NULL: none. */
const char *import_row_text(const cJSON *row, const char *column);

#endif
