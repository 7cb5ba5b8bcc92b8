/* late.h - libraries that few commands need, opened when they are first used: linked, they and what they need in turn
 * were most of the time from the start of a process to main (bench/notes/cuda.md).
 *
 * A table is a list EACH(F) of F(prefix, name), a struct { EACH(LATE_CALL) } with a pointer for each function, typed by
 * the library's header, and a struct late_library. Calls go through the struct, after late_open. `trawl doctor` has a
 * row for each (sweep/cmd/cmd_doctor.c, kernels/cuda/facts.cu). */
#pragma once

#include <stdbool.h>

#include "base/status.h"

#define LATE_CALL(prefix, name) __typeof__(prefix##name) *name;
#define LATE_NAME(prefix, name) #prefix #name "\0"

struct late_library {
    const char *file; /* "libcurl.so.4" */
    const char *package; /* of Debian and Ubuntu, for messages */
    const char *names; /* of the functions: EACH(LATE_NAME) */
    void *calls; /* the struct */
    bool open; /* atomic */
    const char *folder; /* where else to look for it; NULL: nowhere */
};

/* Also of an open one, by any thread. It stays open until the process ends. ST_IO: it or a function is missing. */
enum status late_open(struct late_library *library, struct error *err) MUST_USE;
