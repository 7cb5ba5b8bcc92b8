/* summary.h - prints the end of a sweep to stdout: front, failures, advice. One thread; only the view's advice
 * changes. */
#pragma once

#include "store/store.h"

struct study_view;

/* Front, failures, recommended trials, next commands. */
enum status progress_print_summary(struct study_view *view, const char *store_path, struct error *err) MUST_USE;
void summary_print_cap(struct study_view *view); /* a warning when every trial is more expensive than sweep.max_cost */
void print_front_table(const struct study_view *view); /* by its advice, if there is any */
