/* flight.h - one trial in flight: a trial that a slot runs. A flight belongs to its slot from flight_start until
 * flights_end or flight_died frees it; the scheduler's thread. A failure of the store is returned, one of the worker is
 * recorded as the trial's. */
#pragma once

#include "base/text/json.h"
#include "store/store.h"
#include "sweep/controller/trial/run_message.h"
#include "sweep/supervise/workers.h"

struct file_chunks;
struct reports;
struct scheduler;
struct slot;
struct sched_study;

enum flight_stop { FLIGHT_NO_STOP, FLIGHT_REQUEUE, FLIGHT_LIMIT, FLIGHT_EARLY };

struct flight {
    struct sched_study *ss;
    size_t i; /* index of its trial in run->view */
    struct slot *slot;
    double charged_s; /* until when its device time is in its study's share */
    double start_s; /* when training began; before that: when the worker got it */
    double cost_factor; /* by what a second on its device counts (sweep.device_costs) */
    double trained_cost_s; /* cost of the whole training, known once the evaluation begins; NaN: not yet */
    double looked_s; /* since when a branch is evaluated, which is not part of its cost; 0: it trains */
    enum flight_stop stop;
    double score; /* its metric at the last report; NaN */
    double reported_s; /* its cost at the last report */
    double saved_s; /* the part of its cost that a checkpoint holds */
    bool resumed; /* from a checkpoint, whose cost comes with the first report */
    struct file_chunks *upload; /* of a remote worker's checkpoint; NULL: none yet */
    bool uploaded; /* its last chunk has come, and not yet the message that it is one */
    bool ended; /* result is complete */
    struct run_result result; /* owned */
};
/* Afterwards a trial whose message the worker could not take has ended. */
enum status flight_start(struct slot *slot, struct sched_study *ss, size_t i, double hang_s, double now_s,
                         struct error *err) MUST_USE;
/* Takes a message of the worker about this trial. Metrics wait in reports; before any other message they are stored. */
enum status flight_message(struct flight *flight, const cJSON *message, struct reports *reports, double now_s,
                           struct error *err) MUST_USE;
void flight_ask_stop(struct flight *flight, enum flight_stop why, double now_s);
/* Its cost so far. Beside other trials time is not a measure of cost; its reports are. */
double flight_cost_s(const struct flight *flight, double now_s);
double flight_at_risk_s(const struct flight *flight, double now_s); /* the part of it that no checkpoint holds */
/* Called now and then while it runs: its worker's memory for the trackers, and whether a user pressed Stop on their
 * pages. */
enum status flight_alive(struct flight *flight, double now_s, struct error *err) MUST_USE;
void flight_forget(struct flight *flight); /* frees it and records nothing; NULL is fine */
/* Both record how trials have ended, and free their flights and slots; those of flights_end have a complete result, and
 * the disk is waited for once. how: "killed by signal 9 (Killed)". */
enum status flights_end(struct flight *const *flights, size_t n, struct scheduler *s, struct error *err) MUST_USE;
enum status flight_died(struct flight *flight, struct scheduler *s, enum slot_guilt guilt, const char *how,
                        struct error *err) MUST_USE;
