/* import_file.h - trials of a file as rows. One thread. */
#pragma once

#include "base/base.h"
#include "base/text/json.h"

struct import_file {
    cJSON *study; /* as `trawl export --format jsonl` describes it; NULL: the file says nothing of a study */
    cJSON *rows; /* an array of objects */
    const char *direction; /* in which its scores are better, "maximize" or "minimize"; NULL: it does not say */
};
void import_file_free(struct import_file *file);
/* CSV, JSON lines, a study of another store or of a storage of Optuna's (from NULL: its only one), a log of PufferLib's
 * or a folder of them. */
enum status import_file_read(const char *path, const char *from, struct import_file *ret_file,
                             struct error *err) MUST_USE;
