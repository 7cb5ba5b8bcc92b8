/* checkpoints.h - checkpoints from which trials resume, and those of finished trials that are kept. The files are
 * written by workers and removed here, by the scheduler's thread. A failure that only costs time is logged, not
 * returned. */
#pragma once

#include "store/store.h"

struct sched_study;

/* The files of a study that no controller runs get its new name; to NULL: they are removed. */
void checkpoints_rename(const char *store_path, const char *from, const char *to);
/* How many checkpoints of a study lie beside the store, and their bytes. */
void checkpoints_usage(const char *store_path, const char *study, int64_t *ret_n, double *ret_bytes);

void checkpoints_folder(const char *store_path, char *buf /* (PATH_MAX) */);
/* STORE.checkpoints/STUDY-NUMBER.ckpt */
void checkpoint_file(const char *store_path, const char *study, int64_t number, char *buf /* (PATH_MAX) */);
void checkpoint_path(const struct sched_study *ss, const struct trial *trial, char *buf /* (PATH_MAX) */);
void checkpoints_begin(struct sched_study *ss); /* creates their folder */
void checkpoints_end(const struct sched_study *ss); /* removes it when it is empty */
/* Does a file exist from which the trial can resume? A missing file that the store names is logged. */
enum status checkpoint_to_resume(struct store *store, const char *study, const struct trial *trial,
                                 int64_t earlier_attempts, bool *ret_there, struct error *err) MUST_USE;
enum status checkpoints_prune(const struct sched_study *ss, struct error *err) MUST_USE; /* after a trial has ended */
