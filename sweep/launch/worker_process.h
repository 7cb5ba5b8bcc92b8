/* worker_process.h - a worker process as the controller sees it. Workers belong to the scheduler; its thread. No call
 * waits but workers_stop. */
#ifndef SWEEP_LAUNCH_WORKER_PROCESS_H
#define SWEEP_LAUNCH_WORKER_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/text/json.h"
#include "base/status.h"
#include "sweep/controller/devices/health.h"
#include "sweep/controller/scheduler.h"
#include "sweep/launch/device_spec.h"
#include "sweep/launch/proto.h"

struct flight;
struct memory_groups;

enum worker_state {
    WORKER_DOWN, /* no process; one is started when there is work and retry_at_s has come */
    WORKER_STARTING, /* it opens its device */
    WORKER_READY,
    WORKER_DYING, /* its socket is closed or it was killed; not yet reaped */
};

#define WORKER_LOG_BYTES 4096

struct host { /* of remote workers */
    char name[80];
    struct health health; /* of the way to it; struct worker has that of the device */
};

struct slot {
    struct worker *worker;
    int lane;
    char name[120]; /* "cpu/2", "cuda:1/3", "ssh:gpu2/cuda:1/3" */
    struct flight *flight; /* NULL: free */
    double busy_s, since_s; /* time with a trial, since the scheduler first offered it (for utilisation) */
};

struct worker {
    struct device_spec spec;
    const struct memory_groups *groups; /* the scheduler's; NULL: none */
    enum worker_state state;
    pid_t pid; /* 0: none */
    struct proto proto;
    char host[80]; /* where it runs, by its greeting; "": not known yet */
    bool greeted; /* its greeting came, and fits */
    bool leaving; /* it was told to end, by a signal: it gets no trial */
    bool released; /* we asked it to end, since it had nothing to do */
    bool cut; /* the connection ended it: neither a trial nor the device is to blame */
    char device[256]; /* "Intel(R) Xeon(R) ... (2 threads)", from `hello`, like the next two */
    char device_class[256]; /* kind of its device (device_class.h); "": not known, or of a program's */
    char kind[8]; /* "cpu", "cuda"; "": not given */
    int64_t threads; /* of each lane */
    char vector_units[64];
    char log[WORKER_LOG_BYTES]; /* the end of its stderr, whole lines but for the first */
    size_t log_n;
    int log_fd; /* its stderr; -1: closed */
    size_t talks_at, logs_at; /* of its socket and log among the descriptors of the last poll; SIZE_MAX: not there */
    size_t log_shown; /* bytes of log that were logged */
    double started_s, heard_s, dying_s; /* by the monotonic clock */
    double busy_s; /* when it last had a trial, or began */
    double pinged_s;
    bool lost; /* it reported that its device is lost, and ends */
    char why[SCHED_WHY_MAX]; /* reason of a kill by us: "no progress for 300 s"; "": it died by itself */
    struct flight *culprit; /* the flight that it was killed for; NULL: unknown */
    bool killed; /* by us */
    bool outside; /* killed or frozen from outside: none of its trials is to blame */
    int64_t memory_bytes, device_memory_bytes; /* from its last `alive` */
    struct health health;
    struct host *remote; /* NULL: it runs here */
    bool unlike_reported; /* it was logged that its device is of another kind than a study's */
    bool was_ready; /* once, since the scheduler began */
    bool refused; /* its greeting or `hello` was a failure */
    char last_death[SCHED_WHY_MAX];
    struct slot slots[SCHED_MAX_LANES]; /* (spec.lanes) */
};
/* A loop over the slots of all workers of a scheduler. */
#define EACH_SLOT(s, slot)                                                                                             \
    for (struct worker *w_ = (s)->workers; w_ < (s)->workers + (s)->n_workers; w_++)                                   \
        for (struct slot *slot = w_->slots; slot < w_->slots + w_->spec.lanes; slot++)
/* Starts the process, whose greeting comes next; WORKER_STARTING afterwards. */
enum status worker_spawn(struct worker *worker, struct error *err) MUST_USE;
enum status worker_take_greeting(struct worker *worker, const cJSON *message, struct error *err) MUST_USE;
void worker_open(struct worker *worker, const char *config_text); /* sends `open`; WORKER_DYING where that fails */
/* Takes its `hello`; WORKER_READY afterwards, or the reason why the device does not open. */
enum status worker_take_hello(struct worker *worker, const cJSON *message, struct error *err) MUST_USE;
void worker_kill(struct worker *worker, struct flight *culprit, const char *why); /* WORKER_DYING afterwards */
void worker_closed(struct worker *worker); /* its socket is closed: WORKER_DYING */
/* A message could not be sent to it: rc and why of proto_send. WORKER_DYING afterwards. */
void worker_unreachable(struct worker *worker, enum status rc, const char *why);
/* True when it is reaped (WORKER_DOWN): how is "killed by signal 11 (Segmentation fault)". Never waits. */
bool worker_try_reap(struct worker *worker, char *ret_how, size_t size);
void worker_read_log(struct worker *worker); /* reads what is there, without waiting */
/* The last lines of its log, as text that may go into JSON; NULL: none. */
const char *worker_log_tail(const struct worker *worker, char buf[WORKER_LOG_BYTES + 1]);
void workers_stop(struct worker *workers, size_t n); /* asks, waits briefly, kills; all at once */

#endif
