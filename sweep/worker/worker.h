/* worker.h - the lanes of a worker process: threads that each train one trial at a time, all on the worker's one device. */
#ifndef SWEEP_WORKER_WORKER_H
#define SWEEP_WORKER_WORKER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/json.h"
#include "base/status.h"
#include "study/checkpoint_label.h"
#include "sweep/controller/checkpoints.h"
#include "sweep/launch/proto.h"
#include "sweep/worker/gate.h"
#include "sweep/worker/run.h"
#include "trainer/trainer.h"

struct setup;

#define LANES_MAX 64

enum lane_state {
    LANE_OPENING, /* its device */
    LANE_IDLE, /* takes a message */
    LANE_BUSY,
    LANE_WAITING, /* busy, for memory that others hold */
    LANE_ENDED,
};

/* A trial in a lane; the lane's thread alone. */
struct lane_trial {
    int64_t id, attempt;
    const char *config; /* text; these are the message's, NULL: not given */
    const char *metric, *owner, *checkpoint_path, *resume_from;
    char maker[CHECKPOINT_LABEL_MAX]; /* builds and devices that it was trained by */
    double create_s; /* that its trainer took to make */
    double checkpoint_every_s; /* 0: never by time */
    bool checkpoint_end; /* one more when it is done */
    double saved_s; /* when last */
    bool saved; /* what checkpoint_path holds is the state that the run has now */
    double start_s; /* of training; 0: not begun */
    struct train_metrics last;
    bool has_last;
};

struct lane {
    struct workshop *shop;
    pthread_t thread;
    struct run run;
    struct lane_trial trial;
    /* guarded by shop->lock */
    enum lane_state state;
    bool taken; /* from a message into the mailbox until the lane is free for the next */
    cJSON *next; /* the mailbox: a "run" message, owned */
    bool keeps; /* trainers in its cache, and their memory */
    bool drop; /* them, please */
    uint64_t seen_freed;
    enum status opened;
    struct error opened_err;
    /* of the trial in the lane, -1: none; read by the heartbeat */
    atomic_llong id, attempt, env_steps, iterations;
    atomic_bool waits; /* for memory that other lanes hold: no progress is to be expected */
    atomic_bool stop, checkpoint; /* wishes of the controller; checkpoint: before it stops */
};

/* What the threads of a worker share. */
struct workshop {
    struct proto proto; /* received from by the reader */
    pthread_mutex_t send_lock; /* one message at a time; never held together with another lock */
    atomic_bool gone; /* the controller takes no messages */
    struct gate gate;
    pthread_mutex_t lock; /* guards what struct lane says, n_freed and exit; never held together with another */
    pthread_cond_t changed;
    struct lane lanes[LANES_MAX];
    size_t n_lanes; /* 0: nothing is open */
    uint64_t n_freed; /* how often a lane gave memory back */
    bool exit;
    atomic_bool lost; /* the device can no longer be used by this process */
    atomic_bool silent; /* several trials were on it: nobody knows whose fault it was, so no result is sent any more */
    atomic_ullong device_bytes; /* held, when a lane last looked */
    struct setup *setup; /* of "open", owned */
    double process_s; /* from the start of the process to its first line of ours */
    atomic_ullong open_us; /* that lane 0 took to open its device and to warm it up */
    int64_t memory_bytes; /* that this process may take; 0: no limit */
    int device, ordinal; /* enum kern_kind, -1: the config's; which GPU */
    pthread_t heartbeat;
    bool beats;
};

enum status workshop_create(struct workshop *shop, int fd, struct error *err) MUST_USE;
/* Lets lanes finish what they are at, joins them, gives all back. */
void workshop_destroy(struct workshop *shop);
/* Starts n lanes, each with the device of setup (taken over) open; the first failure closes all. */
enum status workshop_open(struct workshop *shop, struct setup *setup, size_t n, struct error *err) MUST_USE;
enum status workshop_start_heartbeat(struct workshop *shop, struct error *err) MUST_USE;
/* Hands a "run" message (taken over) to a lane that has none; false: all are busy. */
bool workshop_give(struct workshop *shop, cJSON *message);
/* A trial, -1: all of them. */
void workshop_stop(struct workshop *shop, int64_t trial, bool checkpoint);
bool workshop_is_idle(struct workshop *shop);
/* The device is of no use to this process any more: no lane gets another trial, all stop. */
void workshop_declare_lost(struct workshop *shop);
/* Takes message; any thread. A controller that does not listen is shop->gone, and stops all. */
void workshop_send(struct workshop *shop, cJSON *message);
/* A finished setup of the config in a message. */
enum status workshop_read_config(const struct workshop *shop, const cJSON *message, struct setup **ret_setup,
                                 struct error *err) MUST_USE;

#endif
