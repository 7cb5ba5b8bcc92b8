/* supervise.c - the health of workers: a worker that is silent, hangs or does not stop is killed; a device whose
 * workers die again and again is left alone, for longer each time (health.h), and so is a host to which the way fails.
 *
 * Invariant: no worker is killed for our own silence: when the program was suspended (or stopped by a debugger), all
 * deadlines move by that time. */
#include "sweep/supervise/supervise.h"

#include "base/text/duration.h"
#include "sweep/supervise/event_ring.h"
#include "sweep/supervise/health.h"
#include "sweep/launch/proto.h"
#include "sweep/supervise/worker_process.h"
#include "sweep/supervise/workers.h"

#include <sys/wait.h>

#define HELLO_TIMEOUT_S 60
#define LATE_S 2 /* without a heartbeat, of which there is one a second: has it ended? */
#define FROZEN_S 5 /* it could not obey */
#define REMOTE_HELLO_S 180 /* its device may be on another kind of disk */
#define COMMAND_HELLO_S 600 /* and its container may have to be fetched first */
#define PING_S 5
#define IDLE_S 60 /* after which a worker without a trial gives back what a cluster lent */
#define LEFT_PAUSE_S 30 /* until a host whose worker was sent away is tried again */

static void check_slot(const struct workers *ws, struct slot *slot)
{
    struct worker *w = slot->worker;
    bool frozen = ws->now_s - w->heard_s > FROZEN_S;
    char why[200];

    if (!slot->runs || w->state != WORKER_READY || !slot_hangs(slot, ws->now_s, why, sizeof why))
        return;
    w->outside = w->outside || frozen;
    worker_kill(w, frozen ? NULL : slot, why);
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

/* What a game has forked may keep the socket of a dead worker open. */
static bool has_died(const struct workers *ws, const struct worker *w)
{
    siginfo_t info = {0};

    return w->spec.place == PLACE_HERE && w->pid > 0 && w->state != WORKER_DYING && ws->now_s - w->heard_s > LATE_S &&
           waitid(P_PID, (id_t)w->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == w->pid;
}

static void check_silence(const struct workers *ws, struct worker *w)
{
    char why[100], time[32];

    if (has_died(ws, w)) {
        worker_closed(w);
    } else if (w->state == WORKER_STARTING && ws->now_s - w->started_s > hello_patience_s(w)) {
        snprintf(why, sizeof why, "killed, it was silent for %.0f s", hello_patience_s(w));
        worker_kill(w, NULL, why);
    } else if (w->state == WORKER_READY && ws->silence_timeout_s > 0 &&
               ws->now_s - w->heard_s > ws->silence_timeout_s) {
        snprintf(why, sizeof why, "killed, it sent no heartbeat for %s", format_seconds(ws->silence_timeout_s, time));
        w->outside = true; /* its heartbeat waits for nothing: stopped, or swapped out */
        worker_kill(w, NULL, why);
    }
}

/* A remote worker hears from us, so that it ends when we are gone; one of a cluster's that has nothing to do is given
 * back. */
static void look_after_remote(const struct workers *ws, struct worker *w)
{
    if (w->state != WORKER_READY)
        return;
    if (worker_n_runs(w) > 0)
        w->busy_s = ws->now_s;
    if (ws->now_s - w->pinged_s > PING_S) {
        w->pinged_s = ws->now_s;
        worker_send(w, proto_message("ping"));
    }
    if (w->state == WORKER_READY && w->spec.place != PLACE_SSH && !w->leaving && ws->now_s - w->busy_s > IDLE_S) {
        log_debug("%s is given back: it had no trial for %d s", w->spec.label, IDLE_S);
        w->released = w->leaving = true;
        worker_send(w, proto_message("exit"));
    }
}

void supervise_round(struct workers *ws)
{
    for (size_t i = 0; i < ws->n; i++) {
        check_silence(ws, &ws->v[i]);
        if (ws->v[i].spec.place != PLACE_HERE)
            look_after_remote(ws, &ws->v[i]);
    }
    EACH_SLOT (ws, slot)
        check_slot(ws, slot);
}

void supervise_slept(struct workers *ws, double gap_s)
{
    for (size_t i = 0; i < ws->n; i++) {
        ws->v[i].heard_s += gap_s;
        ws->v[i].started_s += gap_s;
        ws->v[i].busy_s += gap_s;
        ws->v[i].dying_s += gap_s;
    }
    EACH_SLOT (ws, slot)
        if (slot->runs)
            slot_slept(slot, gap_s);
}

/* It was sent away by a signal (preempted, a node that is drained), or by us: nobody is to blame. */
static void take_leave(struct workers *ws, struct worker *w)
{
    bool pause = !w->released && w->spec.place == PLACE_SSH; /* Slurm decides by itself when it has room again */

    w->health.retry_at_s = ws->now_s + (pause ? LEFT_PAUSE_S : 0);
    if (!w->released)
        log_warn("the worker of %s was sent away, its trials are saved; continuing", w->spec.label);
    event_ring_add(&ws->events, "%s: %s", w->spec.label, w->released ? "given back, it had no trial" : "sent away");
}

void supervise_death(struct workers *ws, struct worker *w, const char *how)
{
    bool way = w->remote != NULL && (w->cut || !w->greeted); /* to the host, not its device, is to blame */
    struct health *health = way ? &w->remote->health : &w->health;
    const char *name = way ? w->remote->name : w->spec.label;
    bool was_quarantined = health->quarantined;
    char time[32];

    snprintf(w->last_death, sizeof w->last_death, "%s", how);
    if (w->leaving) {
        take_leave(ws, w);
        return;
    }
    switch (health_death(health, w->started_s,
                         w->outside && !w->killed && !way ? HEALTH_OUTSIDE
                         : w->refused && !w->was_ready    ? HEALTH_HOPELESS
                                                          : HEALTH_CRASH,
                         ws->now_s)) {
    case HEALTH_SAME:
        if (!was_quarantined)
            log_warn("the worker of %s is replaced: %s; continuing", w->spec.label, how);
        return;
    case HEALTH_RETRY:
        log_warn("the worker of %s is replaced: %s; continuing", w->spec.label, how);
        event_ring_add(&ws->events, "%s: worker replaced, %s", w->spec.label, how);
        return;
    case HEALTH_QUARANTINED:
        break;
    }
    if (ws->stays || !supervise_all_quarantined(ws))
        log_warn("%s is left alone for %s, %s: %s; continuing", name,
                 format_seconds(health->retry_at_s - ws->now_s, time),
                 w->refused ? "it does not open" : "its workers keep dying", how);
    event_ring_add(&ws->events, "%s: quarantined, %s", name, how);
}

bool supervise_may_start(const struct workers *ws, const struct worker *w)
{
    if (w->state != WORKER_DOWN || !health_may_start(&w->health, ws->now_s))
        return false;
    if (w->remote == NULL)
        return true;
    for (size_t i = 0; i < ws->n && w->remote->health.deaths > 0; i++) { /* one tries the failed way, for all */
        const struct worker *other = &ws->v[i];
        if (other->remote == w->remote && other->state == WORKER_STARTING && !other->greeted)
            return false;
    }
    return health_may_start(&w->remote->health, ws->now_s);
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

bool supervise_all_quarantined(const struct workers *ws)
{
    for (size_t i = 0; i < ws->n; i++)
        if (!supervise_is_quarantined(&ws->v[i]))
            return false;
    return ws->n > 0;
}
