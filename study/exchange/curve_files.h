/* curve_files.h - the learning curves of a study as files. Any thread. */
#pragma once

#include "base/base.h"

struct study_view;

/* Makes the folder dir (ST_EXISTS), and in it a folder "trial-N" for each trial that has curves: an event file for
 * TensorBoard, metrics.csv and metrics.jsonl, a line for each step at which any curve has a point. *ret_n: the number
 * of those trials. */
enum status curve_files_write(const struct study_view *view, const char *dir, size_t *ret_n,
                              struct error *err) MUST_USE;
