/* checkpoint_label.h - which trial a checkpoint belongs to, and which build on which device made it. Pure, but for
 * checkpoint_read_label, which reads the file. */
#pragma once

#include "base/base.h"

struct study;
struct trial;

#define CHECKPOINT_LABEL_MAX 512
#define CHECKPOINT_THEN ", then by " /* between makers */
/* "trial 17 of the study first (study 3 of ..., config 1a2b3c4d)": unique over all stores. */
void checkpoint_owner(const struct study *study, const struct trial *trial, char *buf, size_t size);
/* "trawl 0.1.0 (abc1234) on DEVICE"; with makers before this one: "BEFORE, then by ...". before: NULL or ""
 * for a new run. */
void checkpoint_maker(const char *device, const char *before, char *buf, size_t size);
/* The text for trainer_save; owner NULL: a training alone. Caller: mem_free. */
enum status checkpoint_label(const char *owner, const char *maker, const char *config, char **ret_text,
                             struct error *err) MUST_USE;
/* Each is "" where the file has none. */
enum status checkpoint_read_label(const char *path, char *ret_owner, char *ret_maker, size_t size,
                                  struct error *err) MUST_USE;
