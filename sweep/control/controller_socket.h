/* controller_socket.h - commands to a running scheduler, and its state as plain data, over the socket beside the store.
 * Used by the scheduler's thread, between its events or while it waits for the disk or a lock. Store and scheduler are
 * borrowed, the server is owned. */
#pragma once

#include "sweep/controller/scheduler.h"

struct control_server;
struct store;

struct study_without { /* a controller */
    int64_t id;
    double since_s; /* when it was first seen so */
};
struct controller_socket {
    struct store *store; /* the caller's, like sched */
    struct scheduler *sched;
    struct control_server *server; /* NULL: no socket could be made, which was logged, or none is wanted */
    int mail_fd; /* a timer that looks for requests that come through a store in PostgreSQL; -1: none */
    bool daemon; /* takes new studies */
    struct study_without free[SCHED_MAX_STUDIES]; /* (n_free) that are to run, at the last look */
    size_t n_free;
    double looked_s;
    bool waiting; /* studies of the store are to run and all SCHED_MAX_STUDIES are taken */
    bool answers; /* a request is being answered */
    bool locked; /* answers come from within a call of the store, which waits for another program's lock */
};
/* A socket that cannot be made is a warning: a controller without socket is better than none. */
void controller_socket_open(struct controller_socket *sock, struct store *store, struct scheduler *sched, bool daemon);
void controller_socket_close(struct controller_socket *sock);
/* Adds the studies of the store that are to run, up to SCHED_MAX_STUDIES; a study that cannot run is paused, with the
 * reason. *ret_n: how many were added. */
enum status controller_socket_take_studies(struct controller_socket *sock, size_t *ret_n, struct error *err) MUST_USE;
void controller_socket_take_turns(
    struct controller_socket *sock); /* some times a second: adds waiting studies when others have ended */
