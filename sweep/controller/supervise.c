/* supervise.c - the health of workers: a worker that is silent, hangs or does not stop is killed; a device whose
 * workers die again and again is left alone, for longer each time.
 *
 *   death 1: a new worker at once; 2, 3, ...: after BACKOFF_S, twice that, ...; MAX_DEATHS in a row: quarantine, for
 *   QUARANTINE_S, then one more try, then twice as long. A trial that ends as it should resets all counts.
 *
 * Invariant: no worker is killed for our own silence: when the program was suspended (or stopped by a debugger), all
 * deadlines move by that time. */
#include "sweep/controller/supervise.h"

#include "base/duration.h"
#include "base/log.h"
#include "sweep/controller/flight.h"
#include "sweep/controller/leases.h"
#include "sweep/controller/sched_study.h"
#include "sweep/controller/scheduler.h"
#include "sweep/launch/worker_process.h"

#include <math.h>
#include <stdio.h>

#define HELLO_TIMEOUT_S 60
#define GAPS 10 /* times the longest time that a trial has taken for an iteration: slow is not hung */
#define STOP_PATIENCE_S 20 /* how long a worker may take to obey */
#define REQUEUE_PATIENCE_S 6 /* and when all are to end: nothing is lost, the trial runs again */
#define FROZEN_S 5 /* without a heartbeat, of which there is one a second: it could not obey */
#define MAX_DEATHS 5
#define BACKOFF_S 0.5
#define QUARANTINE_S 600
#define QUARANTINE_MAX_S 7200

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
    double patience_s = f->stop == FLIGHT_REQUEUE ? REQUEUE_PATIENCE_S : STOP_PATIENCE_S;
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

void supervise_round(struct scheduler *s)
{
    for (size_t i = 0; i < s->n_workers; i++) {
        struct worker *w = &s->workers[i];
        char why[100], time[32];
        if (w->state == WORKER_STARTING && s->now_s - w->started_s > HELLO_TIMEOUT_S) {
            snprintf(why, sizeof why, "killed, it was silent for %d s", HELLO_TIMEOUT_S);
            worker_kill(w, NULL, why);
        } else if (w->state == WORKER_READY && s->silence_timeout_s > 0 &&
                   s->now_s - w->heard_s > s->silence_timeout_s) {
            snprintf(why, sizeof why, "killed, it gave no sign of life for %s",
                     format_seconds(s->silence_timeout_s, time));
            w->outside = true; /* its heartbeat waits for nothing: stopped, or swapped out */
            worker_kill(w, NULL, why);
        }
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
        f->progress_s += gap_s;
        if (f->asked_s > 0)
            f->asked_s += gap_s;
    }
    for (size_t i = 0; i < s->n_studies; i++)
        leases_slept(s->studies[i], gap_s);
    scheduler_add_event(s, "the program stood still for %.0f s", gap_s);
}

void supervise_death(struct scheduler *s, struct worker *w, const char *how)
{
    char time[32];

    w->deaths++;
    snprintf(w->last_death, sizeof w->last_death, "%s", how);
    if (w->deaths < MAX_DEATHS && !(w->refused && !w->was_ready)) {
        w->retry_at_s = s->now_s + (w->deaths > 1 ? BACKOFF_S * pow(2, w->deaths - 2) : 0);
        log_warn("the worker of %s is replaced: %s; continuing", w->spec.label, how);
        scheduler_add_event(s, "%s: worker replaced, %s", w->spec.label, how);
        return;
    }
    double wait_s = fmin(QUARANTINE_S * pow(2, w->quarantines), QUARANTINE_MAX_S);
    w->quarantined = true;
    w->quarantines++;
    w->deaths = MAX_DEATHS - 1; /* one more try, then again */
    w->retry_at_s = s->now_s + wait_s;
    if (!supervise_all_quarantined(s))
        log_warn("%s is left alone for %s, %s: %s; the others continue", w->spec.label, format_seconds(wait_s, time),
                 w->refused ? "it does not open" : "its workers keep dying", how);
    scheduler_add_event(s, "%s: quarantined, %s", w->spec.label, how);
}

void supervise_success(struct worker *w)
{
    w->deaths = w->quarantines = 0;
}

bool supervise_all_quarantined(const struct scheduler *s)
{
    for (size_t i = 0; i < s->n_workers; i++)
        if (!s->workers[i].quarantined)
            return false;
    return s->n_workers > 0;
}
