/* scheduler.h - many trials on many devices: one scheduler, in one thread, serves one or more studies. */
#ifndef SWEEP_CONTROLLER_SCHEDULER_H
#define SWEEP_CONTROLLER_SCHEDULER_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "sweep/controller/reports.h"
#include "sweep/controller/share.h"
#include "sweep/launch/memory_groups.h"

struct devices;
struct slot;
struct store;
struct trial;
struct worker;

struct flight;
struct proposer;
struct scheduler;
struct study_run;
struct track_hooks;

#define SCHED_MAX_WORKERS 256
#define SCHED_MAX_LANES 64
#define SCHED_MAX_STUDIES 64
#define SCHED_MAX_WATCHES 64
#define LAST_NEWS_S 2 /* for the trackers at the end of a daemon; the rest is for `trawl sync` */
#define SCHED_WHY_MAX 512 /* bytes of why something ended */
#define SCHED_EVENTS 64 /* kept for a view */

struct sched_event {
    int64_t at_ms;
    char text[200];
};

/* What a view is told; any may be NULL. */
struct sched_listener {
    void *ctx;
    void (*on_trial_start)(void *ctx, const struct flight *flight);
    void (*on_trial_end)(void *ctx, const struct study_run *run, const struct trial *trial); /* also: queued again */
    void (*on_study_end)(void *ctx, struct study_run *run); /* it may be removed in the call */
    void (*on_tick)(void *ctx); /* some times a second */
};

typedef void sched_fd_fn(void *ctx, short revents);
struct sched_watch {
    int fd;
    short events;
    sched_fd_fn *fn;
    void *ctx;
};

struct scheduler {
    struct worker *workers; /* (n_workers) */
    size_t n_workers;
    struct study_run *studies[SCHED_MAX_STUDIES]; /* in order of coming */
    size_t n_studies;
    struct sched_watch watches[SCHED_MAX_WATCHES];
    size_t n_watches;
    struct track_hooks *leaving[SCHED_MAX_STUDIES]; /* of removed studies, until their trackers have all */
    size_t n_leaving;
    struct sched_listener listener;
    double hang_timeout_s; /* no progress for so long is a hang; 0: never */
    double silence_timeout_s; /* of a worker that says each second that it lives */
    int64_t n_waits; /* of one write, for room on the disk; > 1: of some time */
    bool lock_told; /* that another program keeps the store locked */
    double lock_last_s; /* until when a lock is waited for, once the program is to end; 0: it is not */
    bool crowded; /* as the devices: only studies whose cost is env steps are taken */
    bool stay; /* run on without studies, until told to stop */
    bool stopping; /* flights are stopped and queued again */
    struct share_mark shared; /* where the studies' shares have come to */
    double begun_s, ticked_s, now_s; /* now_s: of this round */
    int wake_fd; /* an eventfd: proposals have come */
    struct store *store; /* of all its studies; the caller's. NULL: none yet */
    double looked_s; /* when its place was last looked at */
    struct error lost; /* what became of it, when it is no longer where it was */
    struct reports reports; /* of the worker that is read */
    struct memory_groups groups;
    struct pollfd *fds; /* room for every worker, watch and wake_fd */
    struct sched_event events[SCHED_EVENTS]; /* ring; event k of n_events at k % SCHED_EVENTS */
    size_t n_events;
};
enum status scheduler_create(struct scheduler **ret_scheduler, const struct devices *devices,
                             struct error *err) MUST_USE;
void scheduler_destroy(struct scheduler *s); /* ends the workers; NULL is fine; studies stay the caller's */
/* Trials that were running when an earlier program ended are queued again. run is the caller's until it was removed or the
 * scheduler is gone. */
enum status scheduler_add(struct scheduler *s, struct study_run *run, struct error *err) MUST_USE;
void scheduler_remove(struct scheduler *s, struct study_run *run); /* an ended one */
struct study_run *scheduler_find(const struct scheduler *s, const char *name); /* NULL: not served */
void scheduler_pause(struct scheduler *s, struct study_run *run, bool paused);
/* Before its priority changes: what it has used so far counts by the old one. */
void scheduler_settle(struct scheduler *s, struct study_run *run);
void scheduler_recall(struct scheduler *s, struct study_run *run); /* its flights are stopped and queued again */
/* New limits, or told to continue: also one that was about to end goes on. Not one that has ended. */
void scheduler_go_on(struct scheduler *s, struct study_run *run);
/* requeue: its flights are stopped at once and queued again; else they may end. */
void scheduler_end(struct scheduler *s, struct study_run *run, bool requeue, const char *rule, const char *text);
void scheduler_stop(struct scheduler *s); /* as a signal does: everything is stopped and queued again */
/* fn is called from scheduler_run when fd is ready (it may watch and unwatch). */
enum status scheduler_watch(struct scheduler *s, int fd, short events, sched_fd_fn *fn, void *ctx,
                            struct error *err) MUST_USE;
void scheduler_unwatch(struct scheduler *s, int fd);
/* Until every study has ended (or stay, and scheduler_stop). ST_INTERRUPTED after a signal or scheduler_stop. A study's own
 * failure is in its err and none of the scheduler's. */
enum status scheduler_run(struct scheduler *s, struct error *err) MUST_USE;
/* An event for the view. */
void scheduler_tell(struct scheduler *s, const char *fmt, ...) PRINTF_LIKE(2, 3);
double slot_utilisation(const struct scheduler *s, const struct slot *slot); /* share of its time with a trial; NaN */

#endif
