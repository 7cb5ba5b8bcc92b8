/* status_json.h - what slots do and what has happened, as data that also travels over the socket. */
#ifndef SWEEP_CONTROL_STATUS_JSON_H
#define SWEEP_CONTROL_STATUS_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/json.h"
#include "sweep/controller/scheduler.h"

struct study_run;

#define STATUS_SLOTS 64
#define STATUS_EVENTS 6

struct status_slot {
    char name[40], state[16]; /* "cpu/1"; "training", "idle", "starting", "down", "quarantined" */
    double utilisation; /* share of its time with a trial; NaN: unknown */
    int64_t memory_bytes, device_memory_bytes; /* of its worker; 0: unknown */
    char study[104]; /* "": idle; then the rest is empty too */
    int64_t trial, env_steps;
    double elapsed_s, score; /* score: its study's metric at the last report; NaN */
};
struct sweep_status {
    bool daemon;
    int64_t pid;
    size_t n_slots, n_more; /* slots in v; slots beyond them */
    struct status_slot slots[STATUS_SLOTS];
    size_t n_events;
    struct sched_event events[STATUS_EVENTS]; /* oldest first */
    double fraction, wall_s; /* of one study; NaN: it is not served */
    double gain; /* of its hypervolume, share an hour; NaN: too early */
};
/* run: whose fraction and time are told; NULL: nobody's. */
void live_status_take(const struct scheduler *sched, struct study_run *run, struct sweep_status *ret_status);
cJSON *live_status_to_json(const struct sweep_status *status); /* NULL: out of memory */
void live_status_from_json(const cJSON *json, struct sweep_status *ret_status); /* what is missing is empty */

#endif
