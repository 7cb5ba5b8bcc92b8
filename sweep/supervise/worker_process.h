/* worker_process.h - a worker process as its controller or node sees it. Workers belong to a struct workers; its
 * thread. No call waits but workers_stop. */
#pragma once

#include <sys/types.h>

#include "base/text/json.h"
#include "study/setup/sweep_settings.h"
#include "sweep/game_log.h"
#include "sweep/launch/device_spec.h"
#include "sweep/supervise/health.h"
#include "sweep/launch/proto.h"
#include "sweep/supervise/slot.h"

struct memory_groups;

#define WORKER_WHY_MAX 512 /* bytes of the reason of an end */

enum worker_state {
    WORKER_DOWN, /* no process; one is started when there is work and retry_at_s has come */
    WORKER_STARTING, /* it opens its device */
    WORKER_READY,
    WORKER_DYING, /* its socket is closed or it was killed; not yet reaped */
};

struct remote_host { /* of remote workers */
    char name[80];
    struct health health; /* of the way to it; struct worker has that of the device */
};

struct worker {
    struct device_spec spec;
    const struct memory_groups *groups; /* of all workers */
    enum worker_state state;
    pid_t pid; /* 0: none */
    uint64_t mark; /* in the environment of the process and of all that its games start */
    struct proto proto;
    char host[80]; /* where it runs, by its greeting; "": not known yet */
    bool greeted; /* its greeting came, and fits */
    int64_t config_of; /* the study that it opened its device for, see struct workers */
    bool leaving; /* a signal asks it to end: it gets no trial */
    bool released; /* we asked it to end, since it had nothing to do */
    bool cut; /* the connection ended it: neither a trial nor the device is to blame */
    char device[256]; /* "Intel(R) Xeon(R) ... (2 threads)", from `hello`, like the next two */
    char device_class[256]; /* kind of its device (device_class.h); "": not known, or of a program's */
    char kind[8]; /* "cpu", "cuda"; "": not given */
    int64_t threads; /* of each lane */
    char vector_units[64];
    char meets[320]; /* where other hosts join its trainings; "": nowhere */
    struct game_log log; /* of its stderr */
    int log_fd; /* its stderr; -1: closed */
    size_t talks_at, logs_at; /* of its socket and log among the descriptors of the last poll; SIZE_MAX: not there */
    bool talks, ends; /* in this round: there may be messages; it is reaped if it can be */
    double started_s, heard_s, dying_s; /* by the monotonic clock */
    double busy_s; /* when it last had a trial, or began */
    double pinged_s;
    bool garbled; /* it sent what is not a message: nothing that follows it counts */
    bool lost; /* it reported that its device is lost, and ends */
    char why[WORKER_WHY_MAX]; /* reason of a kill by us: "no progress for 300 s"; "": it died by itself */
    struct slot *culprit; /* the one that it was killed for; NULL: unknown */
    bool killed; /* by us */
    bool outside; /* killed or frozen from outside: none of its trials is to blame */
    int64_t memory_bytes, device_memory_bytes; /* from its last `alive` */
    struct health health;
    struct remote_host *remote; /* NULL: it runs here */
    bool unlike_reported; /* it was logged that its device is of another kind than a study's */
    bool was_ready; /* once, since the scheduler began */
    bool refused; /* its greeting or `hello` was a failure */
    char last_death[WORKER_WHY_MAX];
    struct slot slots[SWEEP_LANES_MAX]; /* (spec.lanes) */
};
/* Starts the process, whose greeting comes next; WORKER_STARTING afterwards. */
enum status worker_spawn(struct worker *worker, struct error *err) MUST_USE;
enum status worker_take_greeting(struct worker *worker, const cJSON *message, struct error *err) MUST_USE;
void worker_open(struct worker *worker, const char *config_text); /* sends `open` */
/* Takes its `hello`; WORKER_READY afterwards, or the reason why the device does not open. */
enum status worker_take_hello(struct worker *worker, const cJSON *message, struct error *err) MUST_USE;
void worker_kill(struct worker *worker, struct slot *culprit, const char *why); /* WORKER_DYING afterwards */
void worker_closed(struct worker *worker); /* its socket is closed: WORKER_DYING */
/* Both take message; a worker that does not take it is WORKER_DYING afterwards. One that a config may make too long
 * (ST_LIMIT) is tried. */
void worker_send(struct worker *worker, cJSON *message);
enum status worker_try_send(struct worker *worker, cJSON *message, struct error *err) MUST_USE;
/* True when it is reaped (WORKER_DOWN): how is "killed by signal 11 (Segmentation fault)". Never waits. */
bool worker_try_reap(struct worker *worker, char *ret_how, size_t size);
void worker_read_log(struct worker *worker); /* reads what is there, without waiting */
/* The last lines of its log, as text that may go into JSON; NULL: none. */
const char *worker_log_tail(const struct worker *worker, char buf[GAME_LOG_BYTES + 1]);
int worker_n_runs(const struct worker *worker); /* its trials */
bool worker_takes_trials(const struct worker *worker); /* its device is open, and it is not about to end */
void workers_stop(struct worker *workers, size_t n); /* asks, waits briefly, kills; all at once */
