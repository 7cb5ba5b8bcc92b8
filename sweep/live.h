/* live.h - a scheduler that can be talked to and looked at: commands to its studies, its state as plain data. */
#ifndef SWEEP_LIVE_H
#define SWEEP_LIVE_H

#include "sweep/scheduler.h"
#include "sweep/service.h"

/* ---- live_status.c: what slots do and what has happened, as data that also travels over the socket ---- */

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

/* ---- live.c: the socket of a scheduler ---- */

struct live {
    struct store *store; /* the caller's, like sched */
    struct scheduler *sched;
    struct control_server *server; /* NULL: no socket could be made, which was said */
    bool daemon; /* takes new studies */
    bool waiting; /* studies of the store are to run and have no place */
    bool answers; /* a request is being answered */
    bool locked; /* answers come from within a call of the store, which waits for another program's lock */
};
/* A controller without socket is better than none: that is a warning. */
void live_open(struct live *live, struct store *store, struct scheduler *sched, bool daemon);
void live_close(struct live *live);
/* Opens a study of the store and gives it to the scheduler. In a daemon that has SCHED_MAX_STUDIES already it waits its turn
 * (live->waiting, and scheduler_find does not find it). */
enum status live_add(struct live *live, const char *name, struct error *err) MUST_USE;
/* All studies of the store that are to run and have no place yet, while there are places; one that cannot run is paused, with
 * the reason. *ret_n: how many were taken. */
enum status live_take_studies(struct live *live, size_t *ret_n, struct error *err) MUST_USE;
void live_take_turns(struct live *live); /* some times a second: those that wait, when a place is free */

/* ---- submit.c: a new study on its way into a store, maybe by another process ---- */

struct submission {
    struct study study; /* its strings are owned */
    char from[104];
};
void submission_free(struct submission *submission);
/* Out of a finished setup that searches something. */
enum status submission_make(const struct setup *setup, const char *name, const char *from,
                            struct submission *ret_submission, struct error *err) MUST_USE;
cJSON *submission_to_json(const struct submission *submission);
/* The limits that a request gives, as store/store.h has them; those that are absent stay. */
enum status submission_take_limits(const cJSON *json, struct study *study, struct error *err) MUST_USE;
enum status submission_from_json(const cJSON *json, struct submission *ret_submission, struct error *err) MUST_USE;
/* Adds it to the store. ST_EXISTS says how to go on with the one that has its name. */
enum status submission_store(struct store *store, struct submission *submission, struct error *err) MUST_USE;
bool study_name_is_fine(const char *name);

/* ---- follow.c: a study that a daemon runs, watched from another process ---- */

/* Until it is no longer running. ST_INTERRUPTED: the watcher was, the study goes on. */
enum status follow_study(const char *store_path, const char *name, bool quiet, struct error *err) MUST_USE;

#endif
