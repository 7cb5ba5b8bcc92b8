/* event_file.h - learning curves as TensorBoard reads them: events in records with checksums. A file is used by one
 * thread. */
#pragma once

#include "base/base.h"

struct event_file;

struct event_value {
    const char *tag; /* of the curve; borrowed */
    double value; /* NaN: left out; kept as a float */
};

/* Makes a new file in the folder dir, which exists: events.out.tfevents.SECONDS.HOST.PID.N. TensorBoard takes the files
 * of a folder as one run, in the order of their names: a run that is resumed has one more. */
enum status event_file_open(struct event_file **ret_file, const char *dir, struct error *err) MUST_USE;
/* An event at a step; utc_s: seconds since 1970. Goes into a buffer; event_file_flush reports what failed. */
void event_file_add(struct event_file *file, double utc_s, int64_t step, const struct event_value *values, size_t n);
enum status event_file_flush(struct event_file *file, struct error *err) MUST_USE;
void event_file_close(struct event_file *file); /* NULL is fine */
