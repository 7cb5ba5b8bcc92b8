/* disk_full.h - what a controller does while the disk is full. */
#ifndef SWEEP_CONTROLLER_DISK_FULL_H
#define SWEEP_CONTROLLER_DISK_FULL_H

#include <stdbool.h>

#include "store/store.h"

struct scheduler;

/* Before a write is tried again; false: the program is to end. */
bool scheduler_wait_for_room(struct scheduler *s, const char *store_path);
void scheduler_had_room(struct scheduler *s); /* when it has been written: says so if it was told to wait */
/* While another program keeps the store locked; false: the program is to end, and has waited a little more. */
bool scheduler_wait_for_lock(struct scheduler *s, const char *store_path, double waited_s);
void scheduler_had_lock(struct scheduler *s); /* when nothing waits: says so if it did */

#endif
