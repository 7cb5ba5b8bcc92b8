/* store_watch.h - a store whose disk is full, that another program keeps locked, or that was removed, moved or replaced
 * under its controller. The scheduler's thread; the waits are called from within a write of the store. */
#pragma once

#include "base/base.h"

struct scheduler;

/* Checks every few seconds. A store that is gone stops the scheduler, which then ends by itself; a store that another
 * controller has taken is ST_BUSY. */
enum status store_watch_round(struct scheduler *s, struct error *err) MUST_USE;
/* Called after the last trial: writes a copy of a store that is gone and fails with its path; otherwise returns rc. */
enum status store_watch_end(struct scheduler *s, enum status rc, struct error *err) MUST_USE;
/* Waits before a write is tried again; false: the program is to end. */
bool scheduler_wait_for_disk(struct scheduler *s, const char *store_path);
void scheduler_disk_is_back(struct scheduler *s); /* after a write: logs it if there was a wait */
/* Waits while another program keeps the store locked; false: the program is to end, and has waited a little more. */
bool scheduler_wait_for_lock(struct scheduler *s, const char *store_path, double waited_s);
void scheduler_lock_is_free(struct scheduler *s); /* after a call of the store: logs it if there was a wait */
