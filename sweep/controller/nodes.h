/* nodes.h - how nodes, which claim trials from the store, have changed the served studies, and how many trials they
 * wait for. Polling finds it; a write by another connection, or a NOTIFY of PostgreSQL, is a hint.
 * The scheduler's thread. */
#pragma once

#include "base/base.h"

struct sched_study;
struct scheduler;

struct nodes {
    double looked_s; /* when the store was last read */
    int64_t version; /* of the store then */
    int64_t n, slots; /* nodes that live, and their slots */
    int64_t waiting; /* slots without a trial, for which none is queued either */
};

/* A store that cannot be read is looked at again in the next round: what a controller must write fails by itself.
 * ST_BUSY: another controller has the store. */
enum status nodes_round(struct scheduler *s, struct error *err) MUST_USE;
/* Trial i was queued in the view, and is not in the store: has a node taken it? It is then running in the view too. */
bool nodes_took(struct sched_study *ss, size_t i);
