/* node_slots.h - the lanes of a node's workers, each with the trial that it trains. The node's main thread. */
#ifndef SWEEP_AGENT_NODE_SLOTS_H
#define SWEEP_AGENT_NODE_SLOTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text/json.h"
#include "sweep/agent/agent_job.h"

struct worker;

struct node_slot {
    struct agent_slot named; /* its client's name */
    struct agent_job job;
    struct worker *worker; /* the node's */
    double given_s, progress_s, gap_s; /* since its trial was given; it last moved; longest time between two moves */
    double asked_s; /* when it was asked to stop; 0: not */
    double hang_s; /* sweep.hang_timeout_s of its study */
    int64_t trial_id, attempt; /* as messages have them */
    int64_t env_steps, iterations;
    cJSON *branches; /* messages of its trial, which go out with its result; owned, NULL: none */
};

/* Called in each round: gives the worker a trial that the slot's thread got, and passes on that it is to stop. */
void node_slot_step(struct node_slot *slot, double now_s);
bool node_slot_runs(struct node_slot *slot);
bool node_slot_waits(struct node_slot *slot); /* it has no trial */
void node_slot_hold(struct node_slot *slot, bool held, const cJSON *device); /* may it ask for trials? */
/* A message of the worker about its trial: metrics, a result, ... */
void node_slot_message(struct node_slot *slot, const cJSON *message, double now_s);
void node_slot_alive(struct node_slot *slot, int64_t env_steps, int64_t iterations, bool waits, double now_s);
/* Why its worker must be killed: it hangs or does not stop. False: all is well. */
bool node_slot_hangs(struct node_slot *slot, double now_s, char *ret_why, size_t size);
/* Its worker died: the trial has failed, or (not guilty) goes back, as lost or as if nothing had been. */
enum node_guilt { NODE_GUILTY, NODE_LOST, NODE_INNOCENT };
void node_slot_died(struct node_slot *slot, enum node_guilt guilt, const char *how, double now_s);

#endif
