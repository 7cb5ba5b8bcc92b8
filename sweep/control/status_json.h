/* status_json.h - state of slots and the last events, as a plain value that also travels over the socket. A copy: it
 * stays valid when the scheduler moves on. */
#pragma once

#include "base/text/json.h"
#include "sweep/controller/scheduler.h"

struct sched_study;

#define STATUS_SLOTS 64
#define STATUS_EVENTS 6

struct status_slot {
    char name[120], state[16]; /* "cpu/1"; "training", "idle", "starting", "down", "quarantined" */
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
    struct ring_event events[STATUS_EVENTS]; /* oldest first */
    double fraction, wall_s; /* progress and time at work of one study; NaN: it is not served */
    double gain; /* growth of its hypervolume, share an hour; NaN: too early */
};
/* run: the study whose fraction, time and gain are taken; NULL: none. */
void sweep_status_take(const struct scheduler *sched, struct sched_study *ss, struct sweep_status *ret_status);
cJSON *sweep_status_to_json(const struct sweep_status *status);
void sweep_status_from_json(const cJSON *json, struct sweep_status *ret_status); /* missing fields become empty */
