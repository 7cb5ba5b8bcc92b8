/* flight.h - one trial in flight. */
#ifndef SWEEP_CONTROLLER_FLIGHT_H
#define SWEEP_CONTROLLER_FLIGHT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/json.h"
#include "base/status.h"
#include "store/store.h"
#include "study/checkpoint_label.h"

struct reports;
struct scheduler;
struct slot;
struct study_run;

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

#endif
