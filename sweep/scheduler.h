/* scheduler.h - many trials on many devices: one scheduler, in one thread, serves one or more studies.
 *
 * A worker is a process for one device; it has lanes that each run one trial at a time. A slot is a lane of a worker. A
 * flight is a trial that a slot runs. A free slot takes the next trial of the study that has had least of the devices for
 * its weight since it waits for them (share.h). All of this is used by the scheduler's thread alone; readers (a view) read plain fields between events.
 *
 * Invariants: (1) a trial's row exists, then is running, before a worker hears of it; (2) a finished row never changes;
 * (3) whatever a worker does costs at most its trials, never the sweep; (4) nothing here waits but poll, and a write to a
 * full disk (room.c): a worker that starts, dies or hangs does not keep the others from their work. */
#ifndef SWEEP_SCHEDULER_H
#define SWEEP_SCHEDULER_H

#include <sys/types.h>

#include "sweep/control.h"
#include "sweep/reports.h"
#include "sweep/share.h"

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

/* ---- devices.c: what [sweep] devices and runs_per_device ask for ---- */

struct device_spec { /* of one worker */
    char name[24]; /* "auto", "cpu", "cuda:1": what the worker opens */
    char label[32]; /* "cpu/2", "cuda:1": names it for people */
    int lanes;
    char cores[96]; /* "0-3,8": the cores it may use; "": all of ours */
    int64_t memory_bytes; /* of the host that it may take, by its own limit; 0: none */
    int64_t group_bytes; /* the same by a cgroup, where there are some; 0: none */
};
struct devices {
    size_t n;
    struct device_spec v[SCHED_MAX_WORKERS];
    bool crowded; /* more trials at a time on the CPU than cores: their time is no measure of cost */
};
/* train_device: train.device of the config, which devices = auto follows. More CPU trials at a time than cores are refused
 * where cost is time. */
enum status devices_parse(const struct sweep_settings *settings, int train_device, struct devices *ret_devices,
                          struct error *err) MUST_USE;

/* ---- memory_groups.c: a cgroup for each worker, where the controller's own group is its alone ---- */

struct memory_groups {
    char root[512]; /* the group that is divided */
    bool on;
    char why_not[128];
};
/* Could it be divided? Changes nothing. root: of another group than ours, for tests; NULL: ours. */
bool memory_groups_look(struct memory_groups *groups, const char *root);
void memory_groups_open(struct memory_groups *groups, const char *root); /* on, or why_not */
void memory_groups_close(struct memory_groups *groups); /* leaves the group as it was */
/* Limits a worker that has just been started. False: it is not limited by a group. */
bool memory_groups_add(const struct memory_groups *groups, const char *label, pid_t pid, int64_t bytes);
bool memory_groups_remove(const struct memory_groups *groups,
                          const char *label); /* true: the kernel ended it for memory */

/* ---- worker_process.c: a worker as the controller sees it ---- */

enum worker_state {
    WORKER_DOWN, /* no process; one is started when there is work and retry_at_s has come */
    WORKER_STARTING, /* it opens its device */
    WORKER_READY,
    WORKER_DYING, /* its socket is closed or it was killed; not yet reaped */
};

#define WORKER_LOG_BYTES 4096

struct slot {
    struct worker *worker;
    int lane;
    char name[40]; /* "cpu/2", "cuda:1/3" */
    struct flight *flight; /* NULL: free */
    double busy_s, since_s; /* time with a trial, since the scheduler first offered it (for utilisation) */
};

struct worker {
    struct device_spec spec;
    const struct memory_groups *groups; /* the scheduler's; NULL: none */
    enum worker_state state;
    pid_t pid; /* 0: none */
    struct proto proto;
    char device[256]; /* "Intel(R) Xeon(R) ... (2 threads)", of its greeting; below too */
    char kind[8]; /* "cpu", "cuda"; "": it did not say */
    int64_t threads; /* of each lane */
    char vector_units[64];
    char log[WORKER_LOG_BYTES]; /* the last of what it wrote to stderr, whole lines but for the first */
    size_t log_n;
    int log_fd; /* its stderr; -1: closed */
    size_t log_shown; /* bytes of log that were passed on */
    double started_s, heard_s, dying_s; /* by the monotonic clock */
    bool lost; /* it said that its device is lost, and ends */
    char why[SCHED_WHY_MAX]; /* of a kill by us: "no progress for 300 s"; "": it died by itself */
    struct flight *culprit; /* the flight that it was killed for; NULL: unknown */
    bool killed; /* by us */
    bool outside; /* killed or frozen from outside: no trial of its is to blame */
    int64_t memory_bytes, device_memory_bytes; /* of its last `alive` */
    /* health: supervise.c */
    int deaths; /* in a row, without a trial that ended well */
    int quarantines; /* in a row */
    bool was_ready; /* once, since the scheduler began */
    bool refused; /* its greeting was a failure */
    bool quarantined;
    double retry_at_s;
    char last_death[SCHED_WHY_MAX];
    struct slot slots[SCHED_MAX_LANES]; /* (spec.lanes) */
};
/* Starts the process and sends it what to open; WORKER_STARTING afterwards. */
enum status worker_spawn(struct worker *worker, const char *config_text, struct error *err) MUST_USE;
/* Its greeting; WORKER_READY afterwards, or a failure that says why the device does not open. */
enum status worker_greeted(struct worker *worker, const cJSON *message, struct error *err) MUST_USE;
void worker_kill(struct worker *worker, struct flight *culprit, const char *why); /* WORKER_DYING afterwards */
void worker_closed(struct worker *worker); /* its socket is closed: WORKER_DYING */
/* A message could not be sent to it: rc and why of proto_send. WORKER_DYING afterwards. */
void worker_deaf(struct worker *worker, enum status rc, const char *why);
/* True when it is reaped (WORKER_DOWN): how is "killed by signal 11 (Segmentation fault)". Never waits. */
bool worker_try_reap(struct worker *worker, char *ret_how, size_t size);
void worker_read_log(struct worker *worker); /* what has come, without waiting */
void workers_stop(struct worker *workers, size_t n); /* asks, waits shortly, kills; all at once */

/* ---- checkpoints.c: files to go on from, and of finished trials that are kept ---- */

void checkpoint_path(const struct study_run *run, const struct trial *trial, char *buf /* (PATH_MAX) */);
void checkpoints_begin(struct study_run *run); /* makes their folder */
void checkpoints_end(const struct study_run *run); /* removes it when it is empty */
/* Is there a file for the trial to go on from? One that the store names and that is not there is reported. */
enum status checkpoint_to_resume(const struct study_run *run, const struct trial *trial, bool *ret_there,
                                 struct error *err) MUST_USE;
enum status checkpoints_prune(const struct study_run *run, struct error *err) MUST_USE; /* after a trial has ended */

/* ---- limits.c: when a study has had enough ---- */

/* Why a study ends: the rule's name as the store keeps it ("trials", "budget", "target", ...) and what a person reads. */
struct study_end {
    const char *rule; /* static; NULL: it goes on */
    char text[SCHED_WHY_MAX];
};
/* Limits at which what flies is stopped too. running_s: training of its flights so far, which no row counts yet. */
void study_limits_check(const struct study_run *run, double running_s, double now_s, struct study_end *ret_end);
/* How many more trials may be created; INT64_MAX: no limit. */
int64_t study_limits_room(const struct study_view *view);
/* Limits and priority, as the config has them. */
void study_limits_fill(const struct sweep_settings *settings, struct study *ret_study);
void study_limits_default(struct study *study); /* without any limit: 100 trials */
/* Trials of the study in the store, whatever their state. */
enum status study_limits_count_trials(struct store *store, const struct study *study, int64_t *ret_n,
                                      struct error *err) MUST_USE;
/* A new limit below the n trials that there are is refused. */
enum status study_limits_check_trials(const char *study, int64_t trials_max, int64_t n, struct error *err) MUST_USE;
/* Counts the time with a controller at work, and keeps what would be lost with this one (study_run_at_risk_s); called some
 * times a second, and at_once before a study is let go. */
enum status study_limits_tick(struct study_run *run, double at_risk_s, double now_s, bool at_once,
                              struct error *err) MUST_USE;
double study_limits_wall_s(const struct study_run *run, double now_s); /* of wall_max_s */
/* Of the whole study, by the limit that is nearest; 0 when its limits cannot be foreseen. */
double study_limits_fraction(const struct study_run *run, double running_s, double now_s);

/* ---- confirm.c: when a config is run again under a fresh seed ---- */

#define CONFIRM_ORIGIN "confirm" /* of such a trial, in the store */

enum confirm_turn {
    CONFIRM_NO,
    CONFIRM_IF_STUCK, /* only when no new point is left to try */
    CONFIRM_FIRST, /* if any advice is doubtful; else a new point */
    CONFIRM_END, /* the same, best and knee before all: what is left of the share takes what is left of the study */
    CONFIRM_LAST /* as CONFIRM_END, then the runner-up, and in any case: the last runs of the study: a new point could not be confirmed any more */
};
struct confirm_plan {
    enum confirm_turn turn;
    double cost_left; /* of the share, in what history.cost counts; INFINITY: it is counted otherwise */
};
/* What the next trial is for. Of limits in trials or seconds of training it reads the trials alone, so that a resumed study
 * goes on as it would have done. running_s: training of what flies; wall_s: of sweep.wall_time. */
void confirm_plan_make(const struct study_view *view, const struct sweep_settings *settings, double running_s,
                       double wall_s, struct confirm_plan *ret_plan);
bool trial_is_confirming(const struct trial *trial);

/* ---- gain.c: growth of the hypervolume ---- */

struct gain_watch {
    double begun_s; /* when work on the study began, pauses left out: before now by the time at work */
    double *ended_s; /* (n) when trial i of the view ended, in the same way; -INFINITY: long ago. Owned */
    size_t n;
    double recent, recent_at_s; /* what gain_watch_recent said last */
};
void gain_watch_free(struct gain_watch *watch);
/* With what earlier controllers have done. */
enum status gain_watch_begin(struct gain_watch *watch, const struct study_view *view, double now_s,
                             struct error *err) MUST_USE;
enum status gain_watch_note(struct gain_watch *watch, size_t i, double now_s, struct error *err) MUST_USE;
/* Share of the hypervolume that the last window_s have added, for each hour; NaN while too little is known. */
double gain_watch_rate(const struct gain_watch *watch, const struct study_view *view, double window_s, double now_s);
/* For a view: over the last hour, or half of a shorter time; worked out anew every few seconds. */
double gain_watch_recent(struct gain_watch *watch, const struct study_view *view, double now_s);

/* ---- study_run.c: a study while it is served ---- */

enum study_run_state {
    STUDY_RUN_ACTIVE,
    STUDY_RUN_PAUSED, /* no new trials; what flies, ends */
    STUDY_RUN_ENDING, /* no new trials; ended once nothing flies */
    STUDY_RUN_ENDED,
};

struct study_run {
    struct store *store; /* the caller's */
    struct setup *setup; /* owned, like view */
    struct study_view view;
    enum study_run_state state;
    struct early_stop early;
    struct gain_watch gain;
    double wall_from_s; /* since when its time is not in the store yet; 0: it does not count now */
    double at_risk_s; /* training of its flights that the store counts as lost in case this controller ends */
    bool risk_moved; /* one of these flights has ended: the store is to know */
    struct trial_check *check; /* the proposer's: what may be proposed */
    struct proposer *proposer;
    int wake_fd; /* the scheduler's, for the proposer */
    struct track_hooks *track; /* NULL: no trackers */
    bool used_up; /* every point of a finite space has been tried */
    size_t asked_at; /* trials that had ended when a proposal was asked for last */
    size_t stuck_at; /* trials that had ended when no point was left to try; SIZE_MAX: one was */
    bool told_cap; /* that a trial cost more than sweep.max_cost */
    int64_t failures; /* in a row */
    size_t n_flights, n_queued; /* of its trials */
    struct share share; /* of the devices, weighed by priority */
    int64_t n_started; /* trials, since it was added */
    int64_t n_recovered; /* cut off by an earlier end of the program */
    struct study_end end; /* why it is ending */
    struct error err; /* a failure that ended it */
};
/* Loads a study of the store with its config; nothing is changed. Limits and priority are those of view.study. */
enum status study_run_open(struct study_run **ret_run, struct store *store, const char *name,
                           struct error *err) MUST_USE;
/* A wider space of the same points (search_widen), in the store too; takes what wider holds and leaves it empty. */
enum status study_run_take_space(struct study_run *run, struct search *wider, struct error *err) MUST_USE;
void study_run_destroy(struct study_run *run); /* after the scheduler let go of it */
/* In the store and in the view. */
enum status study_run_set_state(struct study_run *run, enum study_state state, const char *rule, const char *text,
                                struct error *err) MUST_USE;
/* How many trials it could hand out now, INT64_MAX: no end. */
int64_t study_run_wants(const struct study_run *run);

/* ---- the scheduler ---- */

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

/* ---- room.c: what a controller does while the disk is full or the store is locked ---- */

/* Before a write is tried again; false: the program is to end. */
bool scheduler_wait_for_room(struct scheduler *s, const char *store_path);
void scheduler_had_room(struct scheduler *s); /* when it has been written: says so if it was told to wait */
/* While another program keeps the store locked; false: the program is to end, and has waited a little more. */
bool scheduler_wait_for_lock(struct scheduler *s, const char *store_path, double waited_s);
void scheduler_had_lock(struct scheduler *s); /* when nothing waits: says so if it did */

/* ---- store_watch.c: a store that is removed, moved or replaced under its controller ---- */

/* Looks now and then. A store that is gone stops the scheduler, which then ends by itself; one that another controller has
 * taken is the failure ST_BUSY. */
enum status store_watch_round(struct scheduler *s, struct error *err) MUST_USE;
/* After the last trial: of a store that is gone a copy is written, and the failure says where; else rc. */
enum status store_watch_end(struct scheduler *s, enum status rc, struct error *err) MUST_USE;

/* ---- flight.c ---- */

enum flight_stop { FLIGHT_GOES, FLIGHT_REQUEUE, FLIGHT_LIMIT, FLIGHT_EARLY };
/* Of the death of its worker; FLIGHT_BEREFT: the worker was killed or frozen from outside. */
enum flight_guilt { FLIGHT_INNOCENT, FLIGHT_SUSPECT, FLIGHT_GUILTY, FLIGHT_BEREFT };

struct flight {
    struct study_run *run;
    size_t i; /* index of its trial in run->view */
    struct slot *slot;
    int64_t trial_id, attempt;
    double charged_s; /* until when its device time is in its study's share */
    double handed_s, start_s; /* given to the worker; training began (before that: handed_s) */
    bool trains; /* it has said so */
    double trained_cost_s; /* of the whole training: it is evaluated now; NaN: not yet */
    double asked_s; /* told to stop; 0: not */
    enum flight_stop stop;
    int64_t env_steps, iterations;
    double progress_s; /* when these last moved */
    double gap_s; /* longest time between two moves */
    double score; /* its metric at the last report; NaN */
    double reported_s; /* its cost at the last report */
    double saved_s; /* of its cost, what a checkpoint holds */
    bool resumed; /* from a checkpoint, whose cost its first report tells */
    bool ended; /* result is whole */
    struct trial_result result;
    char reason[ERROR_TEXT_MAX], cost_method[16];
    char program[CHECKPOINT_LABEL_MAX], vector_units[64], device[256];
};
/* A trial whose message no worker could take has ended afterwards. */
enum status flight_start(struct slot *slot, struct study_run *run, size_t i, double now_s, struct error *err) MUST_USE;
/* A message of its worker about it. Metrics wait in reports; any other message has these stored first. */
enum status flight_message(struct flight *flight, const cJSON *message, struct reports *reports, double now_s,
                           struct error *err) MUST_USE;
void flight_ask_stop(struct flight *flight, enum flight_stop why, double now_s);
/* What it has cost so far. Beside others time is no measure of that; its reports are. */
double flight_cost_s(const struct flight *flight, double now_s);
double flight_at_risk_s(const struct flight *flight, double now_s); /* the part of it that no checkpoint holds */
/* Every now and then while it flies: its worker's memory for the trackers, and whether somebody pressed Stop on their pages. */
enum status flight_alive(struct flight *flight, double now_s, struct error *err) MUST_USE;
void flight_progress(struct flight *flight, int64_t env_steps, int64_t iterations, double now_s);
/* Both record what became of it and free it and its slot. how: "killed by signal 9 (Killed)". */
enum status flight_end(struct flight *flight, struct scheduler *s, struct error *err) MUST_USE;
enum status flight_died(struct flight *flight, struct scheduler *s, enum flight_guilt guilt, const char *how,
                        struct error *err) MUST_USE;

/* ---- supervise.c: the health of workers ---- */

void supervise_round(struct scheduler *s); /* finds what hangs or does not obey, and kills it */
void supervise_death(struct scheduler *s, struct worker *worker, const char *how); /* back-off, quarantine */
void supervise_slept(struct scheduler *s, double gap_s); /* the program stood still: no worker is to blame */
void supervise_success(struct worker *worker); /* a trial ended as it should */
bool supervise_all_quarantined(const struct scheduler *s);

/* ---- study_run.c, for the scheduler ---- */

enum status study_run_begin(struct study_run *run, int wake_fd, struct error *err) MUST_USE;
/* A queued trial for that worker; false: none. */
bool study_run_take(struct study_run *run, const struct worker *worker, size_t *ret_i);
/* For a proposal, unless one is on its way or may not be. */
enum status study_run_ask(struct study_run *run, const struct scheduler *s, struct error *err) MUST_USE;
enum status study_run_collect(struct study_run *run,
                              struct error *err) MUST_USE; /* a finished proposal becomes a queued trial */
size_t study_run_ahead(const struct study_run *run, size_t n_slots); /* how many trials should wait in the queue */
double study_run_running_s(const struct study_run *run, const struct scheduler *s);
/* The part of it that no checkpoint holds. */
double study_run_at_risk_s(const struct study_run *run, const struct scheduler *s);
/* Queued trials that were added to the store beside it (`trawl retry`) come into its queue. */
enum status study_run_adopt(struct study_run *run, struct error *err) MUST_USE;
enum status study_run_recorded(struct study_run *run, size_t i, struct error *err) MUST_USE; /* its row has ended */
/* Lets go of the texts of trial i, if it has ended: the store has them, and nobody asks the controller any more. */
void study_run_forget(struct study_run *run, size_t i);

/* ---- proposer.c: the suggester in a thread of its own ---- */

enum status proposer_create(struct proposer **ret_proposer, const struct space *space,
                            const struct suggest_settings *settings, size_t n_room /* trials, to begin with */,
                            int wake_fd, struct error *err) MUST_USE;
void proposer_destroy(struct proposer *proposer); /* waits for a proposal on its way */
/* The history is copied, but for the points, which must stay. One at a time. */
enum status proposer_ask(struct proposer *proposer, const struct gp_history *history, int64_t number,
                         const struct confirm_plan *plan, struct error *err) MUST_USE;
bool proposer_is_busy(const struct proposer *proposer);
struct proposal {
    struct suggestion suggestion; /* origin CONFIRM_ORIGIN: a run again */
    double seconds; /* that it took */
    struct gp_insight advice; /* n 0: nobody needed it; else of the history that was asked for */
    enum status status; /* of suggester_next */
};
/* False: not yet. The advice becomes the caller's (gp_insight_free). */
bool proposer_take(struct proposer *proposer, struct proposal *ret_proposal, struct error *err);

#endif
