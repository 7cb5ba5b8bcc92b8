/* rerun_show.h - prints the result of a rerun to stdout, as text or as JSON, and its progress. Only reads the rerun. */
#pragma once

#include "base/base.h"

struct rerun;

/* The run with the stored seed beside the stored result; ST_NUMERIC when they differ. */
enum status rerun_print_compared(const struct rerun *rerun, struct error *err) MUST_USE;
/* The newest run of several, as a line of progress to stderr. */
void rerun_print_progress(const struct rerun *rerun);
/* Mean, spread and intervals over fresh seeds, and how usual the stored score is. */
void rerun_print_spread(const struct rerun *rerun);
