/* store_watch.c - what a controller does when its store cannot be written, or is no longer its own.
 *
 * A write waits while the disk is full or another program keeps the store locked, so that a result that took hours is
 * not lost. The scheduler's thread waits, and with it all its next steps; no worker is judged (supervise_slept).
 * Messages and logs of workers are read and kept for later: a worker that had to wait too would count that time as the
 * cost of its trial. Requests to the controller are answered (controller_socket.c), but nothing is changed: the write
 * may be in the middle of a transaction.
 *
 * A store that was removed, moved or replaced ends the controller: its trials are stopped and queued again as after a
 * signal, their last messages are taken, and all is written as a file beside the old path. A lock that another process
 * has taken after its file was removed ends the controller at once: nothing more is written to a store that is not
 * ours. */
#include "sweep/controller/store_watch.h"

#include "sweep/controller/sched_study.h"
#include "sweep/launch/proto.h"
#include "sweep/signals.h"

#define LOOK_S 2
#define TRY_AGAIN_US 500000
#define LOCK_SHORT_S 2 /* a shorter lock of another program is not logged */
#define LOCK_LAST_S 3 /* how long a lock is waited for once the program is to end */

/* ---- a full disk, a foreign lock ---- */

/* Reads messages and logs of the workers, kept for later: a checkpoint on a full disk is reported again and again. */
static void take_in(struct scheduler *s)
{
    for (size_t i = 0; i < s->workers.n; i++) {
        worker_read_log(&s->workers.v[i]);
        if (s->workers.v[i].proto.buf != NULL)
            proto_take_in(&s->workers.v[i].proto);
    }
}

bool scheduler_wait_for_disk(struct scheduler *s, const char *store_path)
{
    if (s->n_waits++ == 0) /* try at once: the store has freed what it can */
        return true;
    if (signals_stop())
        return false;
    if (s->n_waits == 2) {
        if (s->store != NULL && store_is_away(s->store))
            log_warn("%s: the database does not answer; what could not be written is kept and tried again until it "
                     "does (ending the sweep before that loses it)",
                     store_path);
        else
            log_warn("%s: the disk is full; what could not be written is kept and tried again: free some "
                     "space (ending the sweep before that loses it)",
                     store_path);
        event_ring_add(&s->workers.events, s->store != NULL && store_is_away(s->store)
                                               ? "the database does not answer, waiting"
                                               : "the disk is full, waiting for space");
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
        event_ring_add(&s->workers.events, "another program keeps the store locked, waiting");
        if (s->listener.on_tick != NULL) /* shows it */
            s->listener.on_tick(s->listener.ctx);
    }
    if (signals_stop() && s->lock_last_s == 0)
        s->lock_last_s = clock_mono_s() + LOCK_LAST_S;
    if (s->lock_last_s > 0 && clock_mono_s() > s->lock_last_s) {
        if (!s->lock_given_up)
            log_warn("%s: it is still locked; running trials save their state, and the sweep ends", store_path);
        s->lock_given_up = true;
        return false;
    }
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
    event_ring_add(&s->workers.events, "the store is no longer locked");
}

void scheduler_disk_is_back(struct scheduler *s)
{
    if (s->n_waits > 1) {
        log_info("the store can be written again, the sweep continues");
        event_ring_add(&s->workers.events, "the store can be written again");
    }
    s->n_waits = 0;
}

/* ---- a store that is gone ---- */

/* A store that is gone is in s->lost; a failure is another controller's lock. */
static enum status look(struct scheduler *s, struct error *err)
{
    bool again;
    enum status rc = store_place_check(s->store, &again, &s->lost);

    if (rc == ST_OK && again) {
        log_warn("%s: its lock file was removed; the store is locked again, continuing", store_path(s->store));
        event_ring_add(&s->workers.events, "the store's lock file was removed; locked again");
    }
    if (rc != ST_BUSY)
        return ST_OK;
    store_let_go(s->store);
    return FAIL(err, rc, "%snow %s",
                store_is_address(store_path(s->store)) ? "the connection to the database was lost, and "
                                                       : "the lock file of the store was removed, and ",
                s->lost.text);
}

enum status store_watch_round(struct scheduler *s, struct error *err)
{
    if (s->store == NULL || s->lost.status != ST_OK)
        return ST_OK;
    if (!store_sqlite_warned() && s->now_s - s->looked_s < LOOK_S)
        return ST_OK;
    if (s->looked_s == 0 && store_network_fs(store_path(s->store)) != NULL)
        log_warn("%s is on %s: the locks and the shared memory of a store hold on one machine alone. Whatever uses it "
                 "must run on this machine; a local disk is safer, continuing",
                 store_path(s->store), store_network_fs(store_path(s->store)));
    s->looked_s = s->now_s;
    store_fold(s->store); /* what the uploaders have written */
    TRY(look(s, err));
    if (s->lost.status != ST_OK) {
        log_error("%s; this ends the controller, running trials save their state first", s->lost.text);
        event_ring_add(&s->workers.events, "the store is gone: %.150s", s->lost.text);
        scheduler_stop(s);
    }
    return ST_OK;
}

enum status store_watch_end(struct scheduler *s, enum status rc, struct error *err)
{
    struct error why = {0};
    char *path = NULL;

    if (rc == ST_OK && s->store != NULL && s->lost.status == ST_OK)
        TRY(look(s, err)); /* the last results are younger than the last look */
    if (s->lost.status == ST_OK || s->lost.status == ST_BUSY)
        return rc;
    error_clear(err);
    if (store_rescue(s->store, &path, &why) != ST_OK)
        return FAIL(err, ST_IO, "%s; a copy of what is open could not be written either: %.300s", s->lost.text,
                    why.text);
    struct store_verdict verdict;
    if (store_verify(path, &verdict, NULL, NULL, &why) != ST_OK || verdict.n_damaged > 0) {
        rc = FAIL(err, ST_IO,
                  "%.400s, and with it results of this study are lost: %s has what could be saved, which is damaged "
                  "(`trawl check`); restore a backup",
                  s->lost.text, path);
        mem_free(path);
        return rc;
    }
    rc = FAIL(err, ST_IO,
              "%.400s; every result is in %s: put it in the place of %s and continue with `trawl sweep --resume %s`",
              s->lost.text, path, store_path(s->store), s->n_studies > 0 ? s->studies[0]->view.study.name : "NAME");
    mem_free(path);
    return rc;
}
