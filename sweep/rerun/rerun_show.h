/* rerun_show.h - what a rerun came to, as text and as JSON. */
#ifndef SWEEP_RERUN_RERUN_SHOW_H
#define SWEEP_RERUN_RERUN_SHOW_H

#include "base/status.h"

struct rerun;

/* The run with the stored seed beside what is stored; ST_NUMERIC when it is not the same. */
enum status rerun_tell_compared(const struct rerun *rerun, struct error *err) MUST_USE;
/* Mean, spread and intervals over fresh seeds, and how usual the stored score is. */
enum status rerun_tell_spread(const struct rerun *rerun, struct error *err) MUST_USE;

#endif
