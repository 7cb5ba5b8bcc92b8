/* workers.h - the workers of a controller or of a node: starts them, listens to them, kills those that are silent or
 * hang, starts them again. What becomes of their trials is their owner's: it gives slots trials (slot.h), polls, and
 * takes the events of each round. One thread; no call waits but workers_destroy. */
#pragma once

#include <poll.h>

#include "base/text/json.h"
#include "sweep/supervise/event_ring.h"
#include "sweep/supervise/memory_groups.h"
#include "sweep/supervise/worker_process.h"

struct devices;

struct workers {
    struct worker *v; /* (n) */
    size_t n;
    struct remote_host *hosts; /* (n_hosts) of remote workers */
    size_t n_hosts;
    struct memory_groups groups;
    struct event_ring events;
    double silence_timeout_s; /* how long a worker, which sends `alive` each second, may be silent */
    bool stays; /* the program continues when every device is left alone */
    bool stopping; /* no worker's end is a failure any more */
    const char *config; /* what they open their devices for; the owner's. NULL: nothing, they are sent away */
    int64_t config_of; /* the study of that config */

    double now_s; /* of this round; the owner sets it when its rounds begin */
    size_t at; /* the worker that is looked at */
    int lane; /* of it, whose trial is ended next, since it is dead; -1: it is not */
    int n_ran; /* trials that it had */
    const struct slot *culprit; /* that it was killed for; NULL: unknown */
    cJSON *message; /* of the last event */
    char how[WORKER_WHY_MAX];
};
/* A loop over the slots of all workers. */
#define EACH_SLOT(ws, slot)                                                                                            \
    for (struct worker *w_ = (ws)->v; w_ < (ws)->v + (ws)->n; w_++)                                                    \
        for (struct slot *slot = w_->slots; slot < w_->slots + w_->spec.lanes; slot++)

enum workers_event_type {
    WORKERS_READY, /* its device is open */
    WORKERS_ALIVE, /* its sign of life: how far its trials are is in their slots */
    WORKERS_MESSAGE, /* about the trial of slot, other than that */
    WORKERS_TRIAL_DIED, /* the trial of slot, with its worker: the owner ends it */
    WORKERS_OTHER_GAME, /* it opens no device for worker->config_of, whose game is of another build (how); it ends */
};
/* A trial's guilt of its worker's death. */
enum slot_guilt {
    SLOT_INNOCENT,
    SLOT_SUSPECT,
    SLOT_GUILTY,
    SLOT_OUTSIDE /* the worker was killed or frozen from outside */
};
struct workers_event {
    enum workers_event_type type;
    struct worker *worker;
    struct slot *slot;
    cJSON *message; /* the workers', until the next event */
    enum slot_guilt guilt;
    const char *how; /* "killed by signal 9 (Killed)" */
};

enum status workers_create(struct workers *ws, const struct devices *devices, struct error *err) MUST_USE;
void workers_destroy(struct workers *ws); /* ends them; a zeroed one is fine */
/* Starts workers that may start, until there are n_slots more. */
void workers_start(struct workers *ws, int64_t n_slots);
/* Adds what they are listened to by to fds, which has n already and room for two a worker; how many there are then.
 * *timeout_ms becomes shorter while a worker ends. */
size_t workers_poll(struct workers *ws, struct pollfd *fds, size_t n, int *timeout_ms);
/* After the poll: a round begins, whose events workers_next returns. Returns for how many seconds the program stood
 * still since the last one, by which all deadlines have moved; 0: not. */
double workers_begin(struct workers *ws, const struct pollfd *fds, double now_s);
bool workers_next(struct workers *ws, struct workers_event *ret_event); /* false: no more */
