/* trial_folders.h - the folders of a study's trials, whose programs write there: STORE.runs/STUDY/NUMBER. One thread;
 * no controller runs the study. */
#pragma once

#include "base/base.h"

#define TRIAL_FOLDER_MAX 4096
/* STORE.runs/STUDY/NUMBER, in TRIAL_FOLDER_MAX bytes. */
void trial_folder_path(const char *store_path, const char *study, int64_t number, char *buf);
/* They get the study's new name; to NULL: they are removed with all that is in them. A failure is logged, and the
 * study's rows stay as they are. */
void trial_folders_rename(const char *store_path, const char *from, const char *to);
