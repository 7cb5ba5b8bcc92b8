/* sched_study.h - a study while the scheduler serves it: its view, proposals, queue and failures. It owns all it holds
 * but the store; the scheduler's thread. A failure of one study ends that study and is kept in its err. */
#pragma once

#include "study/view/study_view.h"
#include "study/findings/gain.h"
#include "sweep/controller/leases.h"
#include "sweep/controller/stop_rules.h"
#include "sweep/controller/share.h"
#include "sweep/proposals/evidence.h"

struct proposer;
struct run_device;
struct scheduler;
struct search;
struct setup;
struct store;
struct track_rows;
struct trial_check;
struct worker;

enum sched_study_state {
    SCHED_STUDY_ACTIVE,
    SCHED_STUDY_PAUSED, /* no new trials; trials in flight end */
    SCHED_STUDY_ENDING, /* no new trials; ended once no trial is in flight */
    SCHED_STUDY_ENDED,
};

struct sched_study {
    struct store *store; /* the caller's */
    int64_t held_id; /* of store_study_hold */
    bool branches_looked; /* those of trials that nodes ended while no controller was there are taken */
    struct study_view view; /* owned */
    struct setup *setup; /* the view's */
    enum sched_study_state state;
    struct gain_watch gain;
    double wall_from_s; /* start of the time that is not in the store yet; 0: time does not count now */
    double at_risk_s; /* training of its flights that the store counts as lost if this controller ends */
    bool risk_moved; /* one of these flights has ended: the store must be updated */
    struct trial_check *check; /* the proposer's: what may be proposed */
    struct proposer *proposer;
    struct evidence evidence; /* by its proposals */
    int wake_fd; /* the scheduler's, for the proposer */
    struct track_rows *track; /* NULL: no trackers */
    bool used_up; /* every point of a finite space has been tried */
    bool slept; /* the program stood still since a proposal was asked for last: how long it took is not known */
    double slow_s; /* seconds that the slowest recent batch of proposals took; each later one lowers it by 2 % */
    size_t asked_at; /* trials that had ended when a proposal was asked for last */
    size_t confirmed_at; /* the same, when what to confirm was looked for last */
    size_t stuck_at; /* trials that had ended when no point was left to try; SIZE_MAX: a point was left */
    bool cap_reported; /* it was logged that a trial cost more than sweep.max_cost */
    bool has_reported_cost, has_wall_cost; /* of programs; both: it was logged */
    int64_t failures; /* in a row */
    size_t n_flights, n_queued; /* trials in flight, and in the queue */
    struct leases leases; /* trials that clients outside have: running, and in no flight */
    bool lease_unseen; /* a node has a trial whose lease the next look at the store finds: the study has not ended */
    char device_class[256]; /* kind of the devices that its trials run on (device_class.h); "": not known yet */
    bool class_settled; /* a worker of this controller has had one of them */
    char kind[8]; /* of the GPU that the last trial went to: what is queued from trial kind_from on has it already */
    size_t kind_from;
    bool no_workers; /* sweep.devices = none, or no command: only nodes and clients outside get its trials */
    struct share share; /* of the devices, weighed by priority */
    int64_t n_started; /* trials, since it was added */
    int64_t n_recovered; /* cut off by an earlier end of the program */
    struct study_end end; /* why it is ending */
    struct error err; /* a failure that ended it; ST_VERSION, no game or another build of it: paused it */
};
/* Loads a study of the store with its config; nothing is changed. Limits and priority are those of view.study. */
enum status sched_study_open(struct sched_study **ret_run, struct store *store, const char *name,
                             struct error *err) MUST_USE;
/* A wider space of the same points (search_widen), in the store too; takes what wider holds and leaves it empty. */
enum status sched_study_take_space(struct sched_study *ss, struct search *wider, struct error *err) MUST_USE;
void sched_study_destroy(struct sched_study *ss); /* after scheduler_remove or scheduler_destroy */
/* Sets the state in the store and in the view. */
enum status sched_study_set_state(struct sched_study *ss, enum study_state state, const char *rule, const char *text,
                                  struct error *err) MUST_USE;
void sched_study_slept(struct sched_study *ss, double gap_s); /* the program stood still for gap_s */
/* How many trials it could hand out now; INT64_MAX: without limit. */
int64_t sched_study_wants(const struct sched_study *ss);
int64_t sched_study_wants_slots(const struct sched_study *ss); /* the same to slots of this controller */

enum status sched_study_begin(struct sched_study *ss, int wake_fd, struct error *err) MUST_USE;
/* Takes a queued trial for that worker, or for a client outside (NULL); those that people enqueued come first. False:
 * none. */
bool sched_study_take(struct sched_study *ss, const struct worker *worker, size_t *ret_i);
/* Before it starts without a checkpoint: its config names the device that trains it; NULL: a client's, which is
 * unknown. */
enum status sched_study_settle(struct sched_study *ss, struct trial *trial, const struct run_device *device,
                               struct error *err) MUST_USE;
/* Asks for a proposal, or for several where many trials are under way, unless one is being made or none may be made. */
enum status sched_study_ask(struct sched_study *ss, const struct scheduler *s, struct error *err) MUST_USE;
enum status sched_study_collect(struct sched_study *ss,
                                struct error *err) MUST_USE; /* finished proposals become queued trials */
/* Mean seconds of the last proposals, and of the last trials: by the clock, or their cost. False: there are none
 * yet. */
bool sched_study_means(const struct sched_study *ss, bool by_clock, double *ret_propose_s, double *ret_trial_s);
size_t sched_study_ahead(const struct sched_study *ss, size_t n_slots); /* how many trials should wait in the queue */
/* How many of the n_free free slots (of n_all) the study should get by its priority. */
size_t sched_study_lacks(const struct sched_study *ss, const struct scheduler *s, size_t n_all, size_t n_free);
double sched_study_running_s(const struct sched_study *ss, const struct scheduler *s);
/* The part of sched_study_running_s that no checkpoint holds. */
double sched_study_at_risk_s(const struct sched_study *ss, const struct scheduler *s);
/* Takes trials into its queue that another command added to the store (`trawl retry`). */
enum status sched_study_adopt(struct sched_study *ss, struct error *err) MUST_USE;
#define ENQUEUED_ORIGIN "enqueued" /* of a trial whose values a person or a program chose */
/* Queues a trial at x, of a study of several games on the first. */
enum status sched_study_queue(struct sched_study *ss, const double *x, const char *origin, double propose_s,
                              struct error *err) MUST_USE;
/* Adds a trial that was trained elsewhere (store_trial_add) on a game of search.envs; 0 where there is one game. */
enum status sched_study_add(struct sched_study *ss, const double *x, size_t env, const char *origin, int64_t seed,
                            const struct trial_result *result, const char *client, const char *key,
                            const char *result_json, struct error *err) MUST_USE;
/* A part of trial i's run, with its result, becomes a trial of its own; nothing if it is one already. */
enum status sched_study_add_branch(struct sched_study *ss, size_t i, const struct trial_result *result,
                                   struct error *err) MUST_USE;
/* The store has the result of trial i: so has its row of the view, and what follows from it. */
enum status sched_study_take_result(struct sched_study *ss, size_t i, const struct trial_result *result,
                                    struct error *err) MUST_USE;
enum status sched_study_recorded(struct sched_study *ss, size_t i, struct error *err) MUST_USE; /* its row has ended */
/* Trial i ended, or is queued again: events, the listener, a warning of the cap, and its texts are forgotten. */
void sched_study_report_end(struct sched_study *ss, struct scheduler *s, size_t i);
