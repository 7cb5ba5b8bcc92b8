/* submit.h - a new study on its way into a store, maybe through another process. A submission owns its strings
 * (submission_free); one thread. A config or limit that cannot be right is ST_CONFIG or ST_USAGE. */
#pragma once

#include "base/text/json.h"
#include "store/store.h"

struct setup;
struct store;

struct submission {
    struct study study; /* its strings are owned */
    char from[104];
};
void submission_free(struct submission *submission);
/* Built from a finished setup that searches something. */
enum status submission_make(const struct setup *setup, const char *name, const char *from,
                            struct submission *ret_submission, struct error *err) MUST_USE;
cJSON *submission_to_json(const struct submission *submission);
enum status submission_from_json(const cJSON *json, struct submission *ret_submission, struct error *err) MUST_USE;
/* Adds it to the store. ST_EXISTS: a study of that name exists; the text names the command that resumes it. */
enum status submission_store(struct store *store, struct submission *submission, struct error *err) MUST_USE;
/* ST_USAGE, with what makes a name; where it was given: "sweep: --name". */
enum status study_name_check(const char *where, const char *name, struct error *err) MUST_USE;
