/* lane_pool.h - the lanes of a worker process: threads that each train one trial at a time, all on the worker's one
 * device. What each thread may touch: the reader (main thread) puts messages into mailboxes and sets the flags stop and
 * checkpoint; a lane owns its session and whatever of its trial is not atomic; the heartbeat reads atomics. */
#pragma once

#include <stdatomic.h>

#include "base/text/json.h"
#include "study/setup/sweep_settings.h"
#include "study/view/checkpoint_label.h"
#include "sweep/launch/device_spec.h"
#include "sweep/launch/proto.h"
#include "sweep/worker/gate.h"
#include "sweep/worker/session.h"
#include "trainer/trainer.h"

struct setup;

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
    const char *config; /* text; this and the next four point into the message, NULL: not given */
    const char *metric, *owner, *checkpoint_path, *resume_from;
    const cJSON *branches; /* array of env steps, ascending; NULL: none */
    int64_t resume_bytes; /* size of the file resume_from, as the controller has it */
    char maker[CHECKPOINT_LABEL_MAX]; /* builds and devices that have trained it */
    double create_s; /* time to create its trainer */
    double checkpoint_every_s; /* 0: never by time */
    bool checkpoint_end; /* write one more when the trial is done */
    double saved_s; /* time of the last save */
    bool saved; /* checkpoint_path holds the present state of the training */
    double start_s; /* start of training; 0: not begun */
    int64_t last_steps; /* env steps at the last report */
};

struct lane {
    struct lane_pool *pool;
    pthread_t thread;
    struct session session;
    struct lane_trial trial;
    /* guarded by pool->lock */
    enum lane_state state;
    bool taken; /* from a message into the mailbox until the lane is free for the next */
    cJSON *next; /* the mailbox: a "run" message, owned */
    bool keeps; /* its cache holds trainers, and their memory */
    bool drop; /* request to empty the cache */
    uint64_t seen_freed;
    enum status opened;
    struct error opened_err;
    cJSON *chunk; /* the controller's answer to a "fetch", owned */
    char own_checkpoint[PATH_MAX]; /* of a remote worker: its own place for the trial's checkpoint; the lane's thread */
    /* of the trial in the lane, -1: none; read by the heartbeat */
    atomic_llong id, attempt, env_steps, iterations;
    atomic_bool waits; /* for memory that other lanes hold: no progress is to be expected */
    atomic_bool stop, checkpoint; /* requests of the controller; checkpoint: save before the stop */
};

/* What the threads of a worker share. */
struct lane_pool {
    struct proto proto; /* received from by the reader */
    pthread_mutex_t send_lock; /* one message at a time; never held together with another lock */
    atomic_bool gone; /* the controller takes no messages */
    bool remote; /* its files are not the controller's: checkpoints travel in messages */
    char dir[PATH_MAX]; /* of a remote worker, for these files */
    struct gate gate;
    struct train_pace *pace; /* owned */
    pthread_mutex_t
        lock; /* guards the fields that struct lane names, n_freed and exit; never held together with another */
    pthread_cond_t changed;
    struct lane lanes[SWEEP_LANES_MAX];
    size_t n_lanes; /* 0: nothing is open */
    struct train_hosts *hosts; /* owned; with which it trains what it has too few devices for; NULL: none */
    uint64_t n_freed; /* how often a lane gave memory back */
    bool exit;
    atomic_bool lost; /* the device can no longer be used by this process */
    /* several trials were on the lost device: the guilty one is unknown, so no result is sent any more */
    atomic_bool silent;
    atomic_ullong device_bytes; /* memory held on the device, as a lane last measured it */
    struct setup *setup; /* from `open`, owned */
    double process_s; /* from the start of the process to its first line of ours */
    atomic_ullong open_us; /* time that lane 0 took to open its device and to warm it up */
    int64_t memory_bytes; /* that this process may take; 0: no limit */
    int device, ordinal; /* enum kern_kind, -1: the config's; which GPU, the first */
    int n_gpus; /* from it on that trials may use; 0: all */
    pthread_t heartbeat;
    bool beats;
};

void lane_pool_create(struct lane_pool *pool, int in_fd, int out_fd); /* takes both; pool starts zeroed */
/* Lets lanes finish, joins them, frees all. */
void lane_pool_destroy(struct lane_pool *pool);
/* Starts n lanes, each with the device of setup (taken over) open; the first failure closes all. */
enum status lane_pool_open(struct lane_pool *pool, struct setup *setup, size_t n, struct error *err) MUST_USE;
enum status lane_pool_start_heartbeat(struct lane_pool *pool, struct error *err) MUST_USE;
/* Hands a "run" message (taken over) to a lane that has none; false: all are busy. */
bool lane_pool_give(struct lane_pool *pool, cJSON *message);
/* Hands a "chunk" message (taken over) to the lane that waits for it. */
void lane_pool_take_chunk(struct lane_pool *pool, cJSON *message);
/* Stops one trial, or all (-1). */
void lane_pool_stop(struct lane_pool *pool, int64_t trial, bool checkpoint);
bool lane_pool_is_idle(struct lane_pool *pool);
/* This process can no longer use the device: no lane gets another trial, all stop. */
void lane_pool_declare_lost(struct lane_pool *pool);
/* A finished setup of the config in a message. */
enum status lane_pool_read_config(const struct lane_pool *pool, const cJSON *message, struct setup **ret_setup,
                                  struct error *err) MUST_USE;
