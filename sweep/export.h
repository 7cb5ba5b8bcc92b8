/* export.h - a picked trial and its config as a file. */
#ifndef SWEEP_EXPORT_H
#define SWEEP_EXPORT_H

#include "sweep/control.h"

enum export_format { EXPORT_INI, EXPORT_JSON, EXPORT_ARGS };

/* name: "ini", "json", "args", or NULL: by the path's suffix (NULL: ini). */
enum status export_find_format(const char *name, const char *path, enum export_format *ret_format,
                               struct error *err) MUST_USE;
/* "best" (what the models recommend; the best run while they know too little), "best-run", "knee", "cost<=30", "score>=18"
 * (score<= when the study minimizes), "trial=3"; rows: the trials by study_judge. */
enum status export_pick(const struct study *study, const struct trial *trials, const struct gp_trial *rows, size_t n,
                        const char *rule, size_t *ret_i, struct error *err) MUST_USE;
/* rule: named in the head of an ini. The trial has its config. */
enum status export_build(const struct study *study, const struct trial *trial, const char *rule,
                         enum export_format format, struct strbuf *out, struct error *err) MUST_USE;

#endif
