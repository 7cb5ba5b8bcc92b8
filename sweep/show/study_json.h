/* study_json.h - prints a study, as a report has it, as one JSON object. */
#pragma once

#include "base/base.h"

struct study_view;

/* {"study": ..., "trials": [...]} on stdout. */
enum status study_view_print_json(struct study_view *view, const char *store_path, struct error *err) MUST_USE;
