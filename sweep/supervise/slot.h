/* slot.h - a lane of a worker and the trial that it runs, as its supervisor sees it: how far it is, when it last moved,
 * when it was asked to stop. A slot belongs to its worker; the thread of the workers. */
#pragma once

#include "base/base.h"
#include "base/text/json.h"

struct flight;
struct worker;

struct slot {
    struct worker *worker;
    int lane;
    size_t index; /* among the slots of all workers */
    char name[120]; /* "cpu/2", "cuda:1/3", "ssh:gpu2/cuda:1/3" */
    double busy_s, since_s; /* time with a trial that has ended; since it first could have one (for utilisation) */
    struct flight *flight; /* of its trial, where the workers are a controller's; NULL: free */

    bool runs; /* it has a trial; all that follows is the trial's */
    int64_t trial_id, attempt; /* as messages have them */
    double given_s; /* when the worker got it */
    double hang_s; /* how long it may make no progress; 0: for ever */
    bool trains; /* the worker has reported that training began */
    int64_t env_steps, iterations;
    double progress_s; /* when these last moved */
    double gap_s; /* longest time between two moves */
    double asked_s; /* when it was asked to stop; 0: not */
    bool slept; /* the program stood still meanwhile: by the clock its cost is more than the training took */
    bool saves; /* it is to write a checkpoint first, and runs again: nothing is lost if it takes too long */
};

/* The slot has a trial from now on, and the worker gets message. ST_LIMIT: it is too long for one; a worker that takes
 * no message dies, and its trial ends with it. */
enum status slot_run(struct slot *slot, int64_t trial_id, int64_t attempt, double hang_s, cJSON *message, double now_s,
                     struct error *err) MUST_USE;
void slot_ask_stop(struct slot *slot, bool save, double now_s);
/* What a message about its trial, which has come now, shows of its progress. */
void slot_take_message(struct slot *slot, const cJSON *message, double now_s);
void slot_take_alive(struct slot *slot, const cJSON *lane, double now_s); /* its part of an `alive` */
/* Does it hang, or not stop? ret_why: as a reason to kill its worker. */
bool slot_hangs(const struct slot *slot, double now_s, char *ret_why, size_t size);
void slot_slept(struct slot *slot, double gap_s); /* the program stood still for gap_s */
void slot_free(struct slot *slot, double now_s); /* its trial has ended */
