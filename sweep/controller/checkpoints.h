/* checkpoints.h - files that let a trial continue, and those of finished trials that are kept. */
#ifndef SWEEP_CONTROLLER_CHECKPOINTS_H
#define SWEEP_CONTROLLER_CHECKPOINTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "store/store.h"

struct study_run;

/* How many checkpoints of a study lie beside the store, and their bytes. */
void checkpoints_usage(const char *store_path, const char *study, int64_t *ret_n, double *ret_bytes);

void checkpoint_path(const struct study_run *run, const struct trial *trial, char *buf /* (PATH_MAX) */);
void checkpoints_begin(struct study_run *run); /* makes their folder */
void checkpoints_end(const struct study_run *run); /* removes it when it is empty */
/* Is there a file for the trial to go on from? One that the store names and that is not there is reported. */
enum status checkpoint_to_resume(const struct study_run *run, const struct trial *trial, bool *ret_there,
                                 struct error *err) MUST_USE;
enum status checkpoints_prune(const struct study_run *run, struct error *err) MUST_USE; /* after a trial has ended */

#endif
