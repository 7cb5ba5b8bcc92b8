/* store_watch.c - checks that the store's path still names the file that is written, and that the lock is still ours.
 *
 * A store that was removed, moved or replaced ends the controller: its trials are stopped and queued again as after a
 * signal, their last messages are taken, and all is written as a file beside the old path. A lock that another process
 * has taken after its file was removed ends the controller at once: nothing more is written to a store that is not
 * ours. */
#include "sweep/controller/store_watch.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/status.h"
#include "store/store.h"
#include "sweep/controller/scheduler.h"
#include "sweep/controller/sched_study.h"

#define LOOK_S 2

enum status store_watch_round(struct scheduler *s, struct error *err)
{
    bool again;
    enum status rc;

    if (s->store == NULL || s->lost.status != ST_OK)
        return ST_OK;
    if (!store_sqlite_warned() && s->now_s - s->looked_s < LOOK_S)
        return ST_OK;
    if (s->looked_s == 0 && store_network_fs(store_path(s->store)) != NULL)
        log_warn("%s is on %s: the locks and the shared memory of a store hold on one machine alone. Whatever uses it "
                 "must run on "
                 "this machine; a local disk is safer, continuing",
                 store_path(s->store), store_network_fs(store_path(s->store)));
    s->looked_s = s->now_s;
    store_fold(s->store); /* what the uploaders have written */
    rc = store_place_check(s->store, &again, &s->lost);
    if (rc == ST_OK && again) {
        log_warn("%s: its lock file was removed; the store is locked again, continuing", store_path(s->store));
        scheduler_add_event(s, "the store's lock file was removed; locked again");
    }
    if (rc == ST_BUSY) {
        store_let_go(s->store);
        return FAIL(err, rc, "the lock file of the store was removed, and now %s", s->lost.text);
    }
    if (rc != ST_OK) {
        log_error("%s; this ends the controller, running trials save their state first", s->lost.text);
        scheduler_add_event(s, "the store is gone: %.150s", s->lost.text);
        scheduler_stop(s);
    }
    return ST_OK;
}

enum status store_watch_end(struct scheduler *s, enum status rc, struct error *err)
{
    struct error why = {0};
    char *path = NULL;

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
