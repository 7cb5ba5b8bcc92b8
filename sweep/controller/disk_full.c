/* disk_full.c - a write to the store waits while its disk is full or another program keeps it locked, so that a result
 * that took hours is not lost. The scheduler's thread waits, and with it all its next steps; no worker is judged
 * (supervise_slept). Messages and logs of workers are read and kept for later: a worker that had to wait too would
 * count that time as the cost of its trial. Requests to the controller are answered (controller_socket.c), but nothing
 * is changed: the write may be in the middle of a transaction. */
#include "sweep/controller/disk_full.h"

#include "base/clock.h"
#include "base/log.h"
#include "store/store.h"
#include "sweep/controller/scheduler.h"
#include "sweep/launch/proto.h"
#include "sweep/launch/worker_process.h"
#include "sweep/signals.h"

#include <unistd.h>

#define TRY_AGAIN_US 500000
#define LOCK_SHORT_S 2 /* a shorter lock of another program is not logged */
#define LOCK_LAST_S 3 /* how long a lock is waited for once the program is to end */

/* Reads messages and logs of the workers, kept for later: a checkpoint on a full disk is reported again and again. */
static void take_in(struct scheduler *s)
{
    for (size_t i = 0; i < s->n_workers; i++) {
        worker_read_log(&s->workers[i]);
        if (s->workers[i].proto.buf != NULL)
            proto_take_in(&s->workers[i].proto);
    }
}

bool scheduler_wait_for_disk(struct scheduler *s, const char *store_path)
{
    if (s->n_waits++ == 0) /* try at once: the store has freed what it can */
        return true;
    if (signals_stop())
        return false;
    if (s->n_waits == 2) {
        log_warn("%s: the disk is full; what could not be written is kept and tried again: free some "
                 "space (ending the sweep before that loses it)",
                 store_path);
        scheduler_add_event(s, "the disk is full, waiting for space");
        if (s->listener.on_tick != NULL) /* shows it */
            s->listener.on_tick(s->listener.ctx);
    }
    take_in(s);
    usleep(TRY_AGAIN_US); /* a signal ends it early */
    return !signals_stop();
}

bool scheduler_wait_for_lock(struct scheduler *s, const char *store_path, double waited_s)
{
    if (waited_s >= LOCK_SHORT_S && !s->lock_reported) {
        s->lock_reported = true;
        log_warn("%s: another program keeps the store locked; the sweep waits until it lets go: close it (a database "
                 "browser, a backup)",
                 store_path);
        scheduler_add_event(s, "another program keeps the store locked, waiting");
        if (s->listener.on_tick != NULL) /* shows it */
            s->listener.on_tick(s->listener.ctx);
    }
    if (signals_stop() && s->lock_last_s == 0)
        s->lock_last_s = clock_mono_s() + LOCK_LAST_S;
    if (s->lock_last_s > 0 && clock_mono_s() > s->lock_last_s)
        return false;
    take_in(s);
    usleep(waited_s < 0.01 ? 500 : waited_s < LOCK_SHORT_S ? 10000 : TRY_AGAIN_US / 5);
    return true;
}

void scheduler_lock_is_free(struct scheduler *s)
{
    if (!s->lock_reported)
        return;
    s->lock_reported = false;
    log_info("the store is no longer locked, the sweep continues");
    scheduler_add_event(s, "the store is no longer locked");
}

void scheduler_disk_is_back(struct scheduler *s)
{
    if (s->n_waits > 1) {
        log_info("there is space on the disk again, the sweep continues");
        scheduler_add_event(s, "there is space on the disk again");
    }
    s->n_waits = 0;
}
