/* controller_socket.h - the socket of a scheduler: commands to its studies, its state as plain data. */
#ifndef SWEEP_CONTROL_CONTROLLER_SOCKET_H
#define SWEEP_CONTROL_CONTROLLER_SOCKET_H

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"

struct control_server;
struct scheduler;
struct store;

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

#endif
