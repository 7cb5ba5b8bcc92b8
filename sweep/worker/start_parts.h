/* start_parts.h - where the time goes from the start of a process to its first iteration. */
#pragma once

#include "base/base.h"
#include "base/text/json.h"
#include "kernels/kernels.h"

struct session;

#define START_PARTS_MAX 12
struct start_parts {
    struct kern_part rows[START_PARTS_MAX];
    size_t n;
    double from_s; /* when the next part began */
};
/* Call it first: what came before it is the part "process". */
void start_parts_begin(struct start_parts *parts);
/* The time since the last call is this part. name: static. */
void start_parts_end(struct start_parts *parts, const char *name);
/* The same for session_open, in parts of its own. */
void start_parts_session(struct start_parts *parts, const struct session *session);
double start_parts_sum_s(const struct start_parts *parts);
cJSON *start_parts_json(const struct start_parts *parts); /* {"process_s": 0.01, ...} */
/* The parts of a millisecond and more, in lines of at most 80 columns. */
void start_parts_print(const struct start_parts *parts, FILE *file);
