/* node.h - `trawl node`: workers on the devices of this machine, which train trials that it takes of a store by itself.
 * The settings are the caller's until node_run returns. The workers belong to the calling thread; each slot has one
 * thread more, which speaks with the store (agent_job.h), and one gives signs of life. */
#pragma once

#include "base/base.h"

struct devices;

struct node_settings {
    const char *store, *name, *spool;
    const char *job; /* of the batch system; "": none */
    const struct devices *devices;
    double idle_s; /* it ends after this long without a trial; 0: never */
};
/* Until a signal (ST_INTERRUPTED: its trials are saved and given back), idle_s without a trial (ST_OK), or a failure
 * that would come again. */
enum status node_run(const struct node_settings *settings, struct error *err) MUST_USE;
