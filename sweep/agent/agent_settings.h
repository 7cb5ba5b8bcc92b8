/* agent_settings.h - what an agent is asked to do: plain values, borrowed while it runs. */
#pragma once

#include "sweep/agent/ask_client.h"

#define AGENT_SLOTS_MAX 256

struct agent_slot {
    char client[120]; /* its name to the server */
    int gpu; /* the one that its program sees; -1: all that we see */
};

struct agent_settings {
    struct ask_place place;
    const char *study;
    const char *const *words; /* (n_words) of the command */
    size_t n_words;
    const struct agent_slot *slots; /* (n_slots) */
    size_t n_slots;
    const char *spool; /* folder of results that are not acknowledged yet */
    const char *dir; /* of the trials' folders */
    double limit_s, grace_s; /* as in struct program_job */
};
