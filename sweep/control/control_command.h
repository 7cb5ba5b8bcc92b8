/* control_command.h - the commands on a study: their JSON, what they do to the study's row, and how they are carried
 * out by a running controller or in the store where none runs. A command is a plain value; texts are written into the
 * caller's buffers. One thread. */
#ifndef SWEEP_CONTROL_CONTROL_COMMAND_H
#define SWEEP_CONTROL_CONTROL_COMMAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/json.h"
#include "base/status.h"
#include "store/store.h"

struct store;

enum control_kind {
    CONTROL_STOP,
    CONTROL_PAUSE,
    CONTROL_CONTINUE,
    CONTROL_ADD,
    CONTROL_PRIORITY,
    CONTROL_RETRY,
    CONTROL_KINDS
};

struct control_command {
    enum control_kind kind;
    char study[104];
    bool now; /* pause: running trials go back into the queue at once */
    int64_t trials; /* add: 0 none */
    double budget_s; /* add: 0 none */
    int64_t priority; /* 1 to STUDY_PRIORITY_MAX */
    int64_t trial; /* retry: its number; -1: none */
};
const char *control_kind_name(enum control_kind kind); /* "stop", ... */
cJSON *control_command_to_json(const struct control_command *command);
/* Checks every field: a socket may deliver anything. */
enum status control_command_from_json(const cJSON *json, struct control_command *ret_command,
                                      struct error *err) MUST_USE;
/* Changes the study's row and writes a sentence on what was done; study (of the store, found by its name) is brought up
 * to date, and its controller acts on that. ST_USAGE when the command makes no sense in the study's state. */
enum status control_command_apply(struct store *store, const struct control_command *command, struct study *study,
                                  char *ret_text, size_t size, struct error *err) MUST_USE;

/* cmd_control.c: sends the command to the running controller of the store (*ret_by_controller), or applies it to the
 * store where none runs. */
enum status control_carry_out(const char *store_path, const struct control_command *command, char *ret_text,
                              size_t size, bool *ret_by_controller, struct error *err) MUST_USE;

#endif
