/* gate.h - how the lanes of a worker share its device: together, or one of them alone, so that the cost of a trial can
 * be measured beside others (train_gate in trainer/trainer.h). Any lane's thread.
 * First come, first served: a lane that wants to be alone waits until all that were let in before it have left, and no
 * lane waits for more than those before it. */
#pragma once

#include "base/base.h"

#include <stdatomic.h>

struct gate {
    pthread_mutex_t lock; /* guards all but n_want; never held together with another */
    pthread_cond_t moved;
    uint64_t next, now; /* tickets: of the next to arrive, of the next to be let in */
    int n_inside;
    bool alone; /* the one inside is to stay alone */
    bool opening;
    atomic_int n_want; /* lanes that wait to be alone */
};

void gate_create(struct gate *gate);
void gate_destroy(struct gate *gate);
void gate_enter(struct gate *gate, bool alone);
void gate_leave(struct gate *gate);
bool gate_wanted(struct gate *gate); /* does a lane wait to be alone? Cheap */
/* For creating a trainer: beside running trials, but one at a time, so that two do not count on the same free
 * memory. */
void gate_enter_open(struct gate *gate);
void gate_leave_open(struct gate *gate);
