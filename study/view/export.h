/* export.h - the trial that a rule picks, and its config as a file. Reads only; any thread. */
#pragma once

#include "study/view/promise.h"

struct gp_picked;
struct strbuf;
struct study;
struct study_view;
struct trial;

enum export_format { EXPORT_INI, EXPORT_JSON, EXPORT_ARGS, EXPORT_CSV, EXPORT_JSONL, EXPORT_OPTUNA, EXPORT_CURVES };

/* The first three are of one trial, the others of all. name: "ini", ..., or NULL: by the path's suffix (NULL: ini). */
enum status export_find_format(const char *name, const char *path, enum export_format *ret_format,
                               struct error *err) MUST_USE;
/* "best" (recommended by the models, or the best run while there are too few trials), "best-run", "knee" (the best
 * where the front has no bend), "cost<=30", "score>=18" (score<= when the study minimizes), "trial=3". By the view's
 * advice, among the trials that it covers. */
enum status export_pick(const struct study_view *view, const char *rule, struct gp_picked *ret_picked,
                        struct error *err) MUST_USE;

struct export_reason { /* why this trial was picked, for the head of an ini */
    const char *rule, *note; /* note: from gp_picked, may be NULL */
    const char *store_path; /* absolute, for the commands that it suggests */
    struct promise promise;
};
/* trial must have its config loaded. */
enum status export_build(const struct study *study, const struct trial *trial, const struct export_reason *why,
                         enum export_format format, struct strbuf *out, struct error *err) MUST_USE;
