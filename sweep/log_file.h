/* log_file.h - the program's log in a file that rotates: PATH, PATH.1, PATH.2, ... by size and number. Any thread may
 * log; a line that cannot be written is dropped. */
#pragma once

#include "base/base.h"

struct log_file;
/* From now on all log lines go to the file, with the time in UTC. A line is never split over two files. */
enum status log_file_open(struct log_file **ret_log, const char *path, int64_t max_bytes, int64_t n_keep,
                          struct error *err) MUST_USE;
void log_file_close(struct log_file *log); /* log lines go to stderr again; NULL is fine */
