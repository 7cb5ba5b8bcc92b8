/* study_json.h - prints a study, as a report has it, as one JSON object. */
#ifndef SWEEP_SHOW_STUDY_JSON_H
#define SWEEP_SHOW_STUDY_JSON_H

#include "base/status.h"

struct study_view;

/* {"study": ..., "trials": [...]} on stdout. */
enum status study_view_print_json(struct study_view *view, const char *store_path, struct error *err) MUST_USE;

#endif
