/* room.c - a write to the store waits while its disk is full, so that a result that took hours is not lost to it.
 * The scheduler's thread waits, and with it whatever it would do next; no worker is judged (supervise_slept). What workers
 * say and log is read and kept for later: a worker that had to wait too would count that time as the cost of its trial.
 * Who asks the controller is answered (live.c), but nothing is changed: the write may be in the middle of something. */
#include "sweep/scheduler.h"

#include <unistd.h>

#include "base/log.h"

#define TRY_AGAIN_US 500000

bool scheduler_wait_for_room(struct scheduler *s, const char *store_path)
{
    if (s->n_waits++ == 0) /* at once: the store has made what room it can */
        return true;
    if (signals_stop())
        return false;
    if (s->n_waits == 2) {
        log_warn(
            "%s: the disk is full; what could not be written is kept and tried again until there is room: free some "
            "space (ending the sweep before that loses it)",
            store_path);
        scheduler_tell(s, "the disk is full, waiting for room");
        if (s->listener.on_tick != NULL) /* shows it */
            s->listener.on_tick(s->listener.ctx);
    }
    for (size_t i = 0; i < s->n_workers; i++) {
        worker_read_log(&s->workers[i]); /* a checkpoint that finds no room is told again and again */
        if (s->workers[i].proto.buf != NULL)
            proto_take_in(&s->workers[i].proto);
    }
    usleep(TRY_AGAIN_US); /* a signal ends it early */
    return !signals_stop();
}

void scheduler_had_room(struct scheduler *s)
{
    if (s->n_waits > 1) {
        log_info("there is room on the disk again, the sweep goes on");
        scheduler_tell(s, "there is room on the disk again");
    }
    s->n_waits = 0;
}
