/* gate.c - a lock for readers and writers with tickets, in order of arrival.
 * Invariants: (1) alone means n_inside is 1; (2) tickets are let in in order, so a lane waits only for those before it;
 * (3) at most one lane is between gate_enter_open and gate_leave_open. */
#include "sweep/worker/gate.h"

void gate_create(struct gate *gate)
{
    memset(gate, 0, sizeof *gate);
    pthread_mutex_init(&gate->lock, NULL);
    pthread_cond_init(&gate->moved, NULL);
}

void gate_destroy(struct gate *gate)
{
    pthread_cond_destroy(&gate->moved);
    pthread_mutex_destroy(&gate->lock);
}

/* With the lock held. */
static void let_in(struct gate *gate, bool alone)
{
    uint64_t ticket = gate->next++;

    while (ticket != gate->now || gate->alone || (alone && gate->n_inside > 0))
        pthread_cond_wait(&gate->moved, &gate->lock);
    gate->now++;
    gate->n_inside++;
    gate->alone = alone;
    pthread_cond_broadcast(&gate->moved); /* the next may fit beside */
}

void gate_enter(struct gate *gate, bool alone)
{
    if (alone)
        atomic_fetch_add(&gate->n_want, 1);
    pthread_mutex_lock(&gate->lock);
    let_in(gate, alone);
    pthread_mutex_unlock(&gate->lock);
    if (alone)
        atomic_fetch_sub(&gate->n_want, 1);
}

void gate_leave(struct gate *gate)
{
    pthread_mutex_lock(&gate->lock);
    gate->n_inside--;
    gate->alone = false;
    pthread_cond_broadcast(&gate->moved);
    pthread_mutex_unlock(&gate->lock);
}

bool gate_wanted(struct gate *gate)
{
    return atomic_load_explicit(&gate->n_want, memory_order_relaxed) > 0;
}

void gate_enter_open(struct gate *gate)
{
    pthread_mutex_lock(&gate->lock);
    while (gate->opening)
        pthread_cond_wait(&gate->moved, &gate->lock);
    gate->opening = true;
    let_in(gate, false);
    pthread_mutex_unlock(&gate->lock);
}

void gate_leave_open(struct gate *gate)
{
    pthread_mutex_lock(&gate->lock);
    gate->opening = false;
    gate->n_inside--;
    pthread_cond_broadcast(&gate->moved);
    pthread_mutex_unlock(&gate->lock);
}
