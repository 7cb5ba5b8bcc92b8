/* scheduler.h - many trials on many devices: one scheduler, in one thread, serves one or more studies.
 *
 * A worker is a process for one device; it has lanes that each run one trial at a time. A slot is a lane of a worker. A
 * flight is a trial that a slot runs. A free slot takes the next trial of the study that has used least of the devices
 * for its weight. All of this is used by the scheduler's thread alone; a view reads plain fields between events.
 *
 * Invariants: (1) a trial's row exists, then is running, before a worker gets it; (2) a finished row never changes;
 * (3) whatever a worker does costs at most its trials, never the sweep; (4) nothing here waits but poll, and a write to
 * a store that is locked or whose disk is full (store_watch.h): a worker that starts, dies or hangs does not keep the
 * others from their work. */
#pragma once

#include <poll.h>

#include "sweep/controller/nodes.h"
#include "sweep/controller/trial/reports.h"
#include "sweep/controller/share.h"
#include "sweep/supervise/workers.h"

struct devices;
struct store;
struct trial;
struct setup;
struct search;

struct flight;
struct proposer;
struct scheduler;
struct sched_study;
struct slurm_nodes;
struct track_rows;

#define SCHED_MAX_STUDIES 64
#define SCHED_MAX_WATCHES 64
#define LAST_UPLOADS_S 2 /* how long the trackers may take at the end of a daemon; `trawl sync` sends the rest */

/* Callbacks for a view; any may be NULL. */
struct sched_listener {
    void *ctx;
    void (*on_trial_start)(void *ctx, const struct flight *flight);
    void (*on_trial_end)(void *ctx, const struct sched_study *ss, const struct trial *trial); /* also: queued again */
    void (*on_study_end)(void *ctx, struct sched_study *ss); /* it may be removed in the call */
    void (*on_tick)(void *ctx); /* some times a second */
};

typedef void sched_fd_fn(void *ctx, short revents);
struct sched_watch {
    int fd;
    sched_fd_fn *fn;
    void *ctx;
};

struct scheduler {
    struct workers workers;
    struct sched_study *studies[SCHED_MAX_STUDIES]; /* in the order in which they were added */
    size_t n_studies;
    struct sched_watch watches[SCHED_MAX_WATCHES];
    size_t n_watches;
    struct track_rows *leaving[SCHED_MAX_STUDIES]; /* of removed studies, until all is sent */
    size_t n_leaving;
    struct sched_listener listener;
    double hang_timeout_s; /* no progress for this long is a hang; 0: never */
    int64_t n_waits; /* of one write, for space on the disk; > 1: for some time */
    bool lock_reported; /* it was logged that another program keeps the store locked */
    double lock_last_s; /* end of the wait for a lock, once the program is to end; 0: it is not */
    bool lock_given_up; /* this end has come, and was logged */
    bool crowded; /* struct devices has it: only studies whose cost is env steps are taken */
    bool stay; /* keep running without studies, until scheduler_stop */
    bool stopping; /* flights are stopped and queued again */
    struct share_mark shared; /* the level of the studies' shares */
    double ticked_s, now_s; /* now_s: of this round */
    int wake_fd; /* an eventfd: proposals are ready */
    sched_fd_fn *on_mail; /* the store hints at requests that came through it; NULL: nobody takes them */
    void *mail_ctx;
    struct store *store; /* of all its studies; the caller's. NULL: none yet */
    double looked_s; /* when the store's file was last checked */
    struct error lost; /* why the store's file is no longer there */
    struct nodes nodes;
    struct slurm_nodes *launcher; /* owned; NULL: none */
    struct reports reports; /* of this round */
    struct flight **ended; /* (n_ended, room for every slot) in this round, not stored yet */
    size_t n_ended;
    size_t n_left; /* free slots that the last round did not reach */
    struct pollfd *fds; /* capacity for every worker, watch and wake_fd */
};
enum status scheduler_create(struct scheduler **ret_scheduler, const struct devices *devices,
                             struct error *err) MUST_USE;
void scheduler_destroy(struct scheduler *s); /* ends the workers; NULL is fine; studies stay the caller's */
/* Can its workers run the trials of such a study? Else ST_CONFIG: asked before the study is stored, and by
 * scheduler_add. */
enum status scheduler_check(const struct scheduler *s, const struct setup *setup, const struct search *search,
                            struct error *err) MUST_USE;
/* Trials that were running when an earlier program ended are queued again. ss is the caller's until it was removed or
 * the scheduler is gone. */
enum status scheduler_add(struct scheduler *s, struct sched_study *ss, struct error *err) MUST_USE;
void scheduler_remove(struct scheduler *s, struct sched_study *ss); /* an ended one */
struct sched_study *scheduler_find(const struct scheduler *s, const char *name); /* NULL: not served */
void scheduler_pause(struct scheduler *s, struct sched_study *ss, bool paused);
/* Called before its priority changes: its use so far counts by the old one. */
void scheduler_settle(struct scheduler *s, struct sched_study *ss);
/* The study's share of n slots by its priority, beside the studies that want some of the same devices; at least 1. */
size_t scheduler_part(const struct scheduler *s, const struct sched_study *ss, size_t n);
void scheduler_recall(struct scheduler *s, struct sched_study *ss); /* its flights are stopped and queued again */
/* After new limits or `continue`: also a study that was about to end continues, but not one that has ended. */
void scheduler_resume(struct scheduler *s, struct sched_study *ss);
/* A user ends the study: its flights are stopped at once and queued again. */
void scheduler_end(struct scheduler *s, struct sched_study *ss, const char *text);
void scheduler_stop(struct scheduler *s); /* as a signal does: everything is stopped and queued again */
/* fn is called from scheduler_run when fd can be read (it may watch and unwatch). */
enum status scheduler_watch(struct scheduler *s, int fd, sched_fd_fn *fn, void *ctx, struct error *err) MUST_USE;
void scheduler_unwatch(struct scheduler *s, int fd);
/* Returns when every study has ended (or stay, and scheduler_stop). ST_INTERRUPTED after a signal or scheduler_stop. A
 * study's own failure is in its err and is not a failure of the scheduler. */
enum status scheduler_run(struct scheduler *s, struct error *err) MUST_USE;
double slot_utilisation(const struct scheduler *s, const struct slot *slot); /* share of its time with a trial; NaN */
