/* checkpoint_label.h - whose a checkpoint is, and which build on which device made it. */
#ifndef STUDY_CHECKPOINT_LABEL_H
#define STUDY_CHECKPOINT_LABEL_H

#include <stddef.h>

#include "base/status.h"

struct study;
struct trial;

#define CHECKPOINT_LABEL_MAX 512
#define CHECKPOINT_THEN ", then by " /* between makers */
/* "trial 17 of the study first (study 3 of ..., config 1a2b3c4d)": no other trial of any store is called that. */
void checkpoint_owner(const struct study *study, const struct trial *trial, char *buf, size_t size);
/* "trawl 0.1.0 (abc1234) on DEVICE"; of a run that others have made so far (before): "BEFORE, then by ...". before: NULL or ""
 * for a new run. */
void checkpoint_maker(const char *device, const char *before, char *buf, size_t size);
/* The text for trainer_save; owner NULL: of a training alone. Caller: mem_free. */
enum status checkpoint_label(const char *owner, const char *maker, const char *config, char **ret_text,
                             struct error *err) MUST_USE;
/* Both are "" where the file does not say. */
enum status checkpoint_read_label(const char *path, char *ret_owner, char *ret_maker, size_t size,
                                  struct error *err) MUST_USE;

#endif
