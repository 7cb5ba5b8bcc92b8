/* supervise.c - the health of workers: a worker that is silent, hangs or does not stop is killed; a device whose
 * workers die again and again is left alone, for longer each time (health.h), and so is a host to which the way fails.
 *
 * Invariant: no worker is killed for our own silence: when the program was suspended (or stopped by a debugger), all
 * deadlines move by that time. */
#include "sweep/controller/devices/supervise.h"

#include "base/text/duration.h"
#include "base/log.h"
#include "base/status.h"
#include "sweep/controller/devices/devices.h"
#include "sweep/controller/trial/flight.h"
#include "sweep/controller/devices/health.h"
#include "sweep/controller/leases.h"
#include "sweep/controller/sched_study.h"
#include "sweep/controller/scheduler.h"
#include "sweep/launch/proto.h"
#include "sweep/launch/worker_process.h"

#include <math.h>
#include <stdio.h>

#define HELLO_TIMEOUT_S 60
#define GAPS 10 /* times the longest time that a trial has taken for an iteration: slow is not hung */
#define STOP_PATIENCE_S 20 /* how long a worker may take to obey */
#define REQUEUE_PATIENCE_S 6 /* and when all are to end: nothing is lost, the trial runs again */
#define FROZEN_S 5 /* without a heartbeat, of which there is one a second: it could not obey */
#define REMOTE_PATIENCE_S 60 /* the same for a remote one, whose checkpoints travel */
#define REMOTE_HELLO_S 180 /* its device may be on another kind of disk */
#define COMMAND_HELLO_S 600 /* and its container may have to be fetched first */
#define PING_S 5
#define IDLE_S 60 /* after which a worker without a trial gives back what a cluster lent */
#define LEFT_PAUSE_S 30 /* until a host whose worker was sent away is tried again */

/* One that does not train yet may wait until another trial of its worker gives memory back. */
static bool may_wait(const struct worker *w, const struct flight *f)
{
    bool others = false;

    for (int lane = 0; lane < w->spec.lanes; lane++)
        others = others || (w->slots[lane].flight != NULL && w->slots[lane].flight != f);
    return others && !f->trains;
}

static void check_flight(const struct scheduler *s, struct worker *w, struct flight *f)
{
    double quiet_s = s->now_s - f->progress_s;
    double patience_s = w->spec.place != PLACE_HERE ? REMOTE_PATIENCE_S
                        : f->stop == FLIGHT_REQUEUE ? REQUEUE_PATIENCE_S
                                                    : STOP_PATIENCE_S;
    bool frozen = s->now_s - w->heard_s > FROZEN_S;
    char why[200], time[32];

    if (f->asked_s > 0 && s->now_s - f->asked_s > patience_s)
        snprintf(why, sizeof why, "killed, it did not stop within %s", format_seconds(patience_s, time));
    else if (s->hang_timeout_s > 0 && !may_wait(w, f) && quiet_s > fmax(s->hang_timeout_s, GAPS * f->gap_s))
        snprintf(why, sizeof why, "killed, it made no progress for %s (sweep.hang_timeout_s)",
                 format_seconds(quiet_s, time));
    else
        return;
    w->outside = w->outside || frozen;
    worker_kill(w, frozen ? NULL : f, why);
}

/* How long a worker may take to open its device, and a remote one to greet before that. A job waits in a queue of
 * Slurm's for as long as that takes. */
static double hello_patience_s(const struct worker *w)
{
    if (w->spec.place == PLACE_HERE)
        return HELLO_TIMEOUT_S;
    if (w->greeted)
        return REMOTE_HELLO_S;
    return w->spec.place == PLACE_SSH ? HELLO_TIMEOUT_S : w->spec.place == PLACE_COMMAND ? COMMAND_HELLO_S : INFINITY;
}

static void check_silence(const struct scheduler *s, struct worker *w)
{
    char why[100], time[32];

    if (w->state == WORKER_STARTING && s->now_s - w->started_s > hello_patience_s(w)) {
        snprintf(why, sizeof why, "killed, it was silent for %.0f s", hello_patience_s(w));
        worker_kill(w, NULL, why);
    } else if (w->state == WORKER_READY && s->silence_timeout_s > 0 && s->now_s - w->heard_s > s->silence_timeout_s) {
        snprintf(why, sizeof why, "killed, it gave no sign of life for %s", format_seconds(s->silence_timeout_s, time));
        w->outside = true; /* its heartbeat waits for nothing: stopped, or swapped out */
        worker_kill(w, NULL, why);
    }
}

static bool is_busy(const struct worker *w)
{
    for (int lane = 0; lane < w->spec.lanes; lane++)
        if (w->slots[lane].flight != NULL)
            return true;
    return false;
}

static void send_to(struct worker *w, const char *type)
{
    struct error gone = {0};
    enum status rc = proto_send(&w->proto, proto_message(type), &gone);

    if (rc != ST_OK)
        worker_unreachable(w, rc, gone.text);
}

/* A remote worker hears from us, so that it ends when we are gone; one of a cluster's that has nothing to do is given
 * back. */
static void look_after_remote(const struct scheduler *s, struct worker *w)
{
    if (w->state != WORKER_READY)
        return;
    if (is_busy(w))
        w->busy_s = s->now_s;
    if (s->now_s - w->pinged_s > PING_S) {
        w->pinged_s = s->now_s;
        send_to(w, "ping");
    }
    if (w->state == WORKER_READY && w->spec.place != PLACE_SSH && !w->leaving && s->now_s - w->busy_s > IDLE_S) {
        log_debug("%s is given back: it had no trial for %d s", w->spec.label, IDLE_S);
        w->released = w->leaving = true;
        send_to(w, "exit");
    }
}

void supervise_round(struct scheduler *s)
{
    for (size_t i = 0; i < s->n_workers; i++) {
        check_silence(s, &s->workers[i]);
        if (s->workers[i].spec.place != PLACE_HERE)
            look_after_remote(s, &s->workers[i]);
    }
    EACH_SLOT (s, slot)
        if (slot->flight != NULL && slot->worker->state == WORKER_READY)
            check_flight(s, slot->worker, slot->flight);
}

void supervise_slept(struct scheduler *s, double gap_s)
{
    for (size_t i = 0; i < s->n_workers; i++) {
        struct worker *w = &s->workers[i];
        w->heard_s += gap_s;
        w->started_s += gap_s;
    }
    EACH_SLOT (s, slot) {
        struct flight *f = slot->flight;
        if (f == NULL)
            continue;
        f->slept = true;
        f->progress_s += gap_s;
        if (f->asked_s > 0)
            f->asked_s += gap_s;
    }
    for (size_t i = 0; i < s->n_studies; i++)
        leases_slept(s->studies[i], gap_s);
    scheduler_add_event(s, "the program stood still for %.0f s", gap_s);
}

/* It was sent away by a signal (preempted, a node that is drained), or by us: nobody is to blame. */
static void take_leave(struct scheduler *s, struct worker *w)
{
    bool pause = !w->released && w->spec.place == PLACE_SSH; /* Slurm decides by itself when it has room again */

    w->health.retry_at_s = s->now_s + (pause ? LEFT_PAUSE_S : 0);
    if (!w->released)
        log_warn("the worker of %s was sent away, its trials are saved; continuing", w->spec.label);
    scheduler_add_event(s, "%s: %s", w->spec.label, w->released ? "given back, it had no trial" : "sent away");
}

void supervise_death(struct scheduler *s, struct worker *w, const char *how)
{
    bool way = w->remote != NULL && (w->cut || !w->greeted); /* to the host, not its device, is to blame */
    struct health *health = way ? &w->remote->health : &w->health;
    const char *name = way ? w->remote->name : w->spec.label;
    bool was_quarantined = health->quarantined;
    char time[32];

    snprintf(w->last_death, sizeof w->last_death, "%s", how);
    if (w->leaving) {
        take_leave(s, w);
        return;
    }
    switch (health_death(health, w->started_s,
                         w->outside && !w->killed && !way ? HEALTH_OUTSIDE
                         : w->refused && !w->was_ready    ? HEALTH_HOPELESS
                                                          : HEALTH_CRASH,
                         s->now_s)) {
    case HEALTH_SAME:
        if (!was_quarantined)
            log_warn("the worker of %s is replaced: %s; continuing", w->spec.label, how);
        return;
    case HEALTH_RETRY:
        log_warn("the worker of %s is replaced: %s; continuing", w->spec.label, how);
        scheduler_add_event(s, "%s: worker replaced, %s", w->spec.label, how);
        return;
    case HEALTH_QUARANTINED:
        break;
    }
    if (!supervise_all_quarantined(s))
        log_warn("%s is left alone for %s, %s: %s; the others continue", name,
                 format_seconds(health->retry_at_s - s->now_s, time),
                 w->refused ? "it does not open" : "its workers keep dying", how);
    scheduler_add_event(s, "%s: quarantined, %s", name, how);
}

bool supervise_may_start(const struct scheduler *s, const struct worker *w)
{
    if (w->state != WORKER_DOWN || !health_may_start(&w->health, s->now_s))
        return false;
    if (w->remote == NULL || w->remote->health.deaths == 0)
        return w->remote == NULL || health_may_start(&w->remote->health, s->now_s);
    for (size_t i = 0; i < s->n_workers; i++) { /* one tries the way that has failed, for all */
        const struct worker *other = &s->workers[i];
        if (other->remote == w->remote && other->state == WORKER_STARTING && !other->greeted)
            return false;
    }
    return health_may_start(&w->remote->health, s->now_s);
}

void supervise_started(struct worker *w)
{
    w->health.quarantined = w->refused = false;
    if (w->remote != NULL)
        w->remote->health.quarantined = false;
}

void supervise_success(struct worker *w)
{
    health_success(&w->health);
    if (w->remote != NULL)
        health_success(&w->remote->health);
}

bool supervise_is_quarantined(const struct worker *w)
{
    return w->health.quarantined || (w->remote != NULL && w->remote->health.quarantined);
}

bool supervise_all_quarantined(const struct scheduler *s)
{
    for (size_t i = 0; i < s->n_workers; i++)
        if (!supervise_is_quarantined(&s->workers[i]))
            return false;
    return s->n_workers > 0;
}
