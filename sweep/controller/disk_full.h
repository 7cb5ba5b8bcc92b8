/* disk_full.h - how a controller waits while the disk is full or another program keeps the store locked. Called by the
 * scheduler's thread, from within a write of the store. */
#ifndef SWEEP_CONTROLLER_DISK_FULL_H
#define SWEEP_CONTROLLER_DISK_FULL_H

#include <stdbool.h>

#include "store/store.h"

struct scheduler;

/* Waits before a write is tried again; false: the program is to end. */
bool scheduler_wait_for_disk(struct scheduler *s, const char *store_path);
void scheduler_disk_is_back(struct scheduler *s); /* after a write: logs it if there was a wait */
/* Waits while another program keeps the store locked; false: the program is to end, and has waited a little more. */
bool scheduler_wait_for_lock(struct scheduler *s, const char *store_path, double waited_s);
void scheduler_lock_is_free(struct scheduler *s); /* after a call of the store: logs it if there was a wait */

#endif
