/* once.h - a program's run from its start to its end, in the foreground: for `trawl train` and `trawl rerun`. */
#pragma once

#include "sweep/program/program_run.h"

struct trial_program;

/* Ctrl-C (signals_catch) stops it: the outcome is PROGRAM_STOPPED. ret_last: the last known value of each metric that
 * it reported, n 0 when there is none. A program that failed is an outcome and no error. */
enum status program_once(const struct trial_program *trial, struct program_end *ret_end, struct metric_line *ret_last,
                         struct error *err) MUST_USE;
