/* node_slots.h - the lanes of a node's workers, each with the trial that it trains. The node's main thread. */
#pragma once

#include "base/text/json.h"
#include "sweep/agent/agent_job.h"
#include "sweep/supervise/workers.h"

struct slot;

struct node_slot {
    struct agent_slot named; /* its client's name */
    struct agent_job *job; /* the node's, like lane */
    struct slot *lane; /* its worker's */
    cJSON *branches; /* messages of its trial; owned, NULL: none */
};

/* Called in each round: gives the worker a trial that the slot's thread got, passes on that it is to stop, and lets the
 * thread ask for trials while the worker can take one. */
void node_slot_step(struct node_slot *slot, double now_s);
bool node_slot_waits(struct node_slot *slot); /* it has no trial */
/* A message of the worker about its trial: metrics, a result, ... */
void node_slot_message(struct node_slot *slot, const cJSON *message, double now_s);
/* Its worker died: the trial has failed if it is guilty; else it goes back, as lost or as if nothing had been. */
void node_slot_died(struct node_slot *slot, enum slot_guilt guilt, const char *how, double now_s);
