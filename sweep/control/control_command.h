/* control_command.h - what can be asked of a study. */
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
/* A value of a request: one that is absent leaves *ret_value, anything but a number (or a bool) is ST_USAGE. */
enum status control_take_i64(const cJSON *json, const char *key, int64_t *ret_value, struct error *err) MUST_USE;
enum status control_take_f64(const cJSON *json, const char *key, double *ret_value, struct error *err) MUST_USE;
enum status control_take_bool(const cJSON *json, const char *key, bool *ret_value, struct error *err) MUST_USE;
const char *control_kind_name(enum control_kind kind); /* "stop", ... */
cJSON *control_command_to_json(const struct control_command *command); /* NULL: out of memory */
/* Everything is checked: what comes over a socket may be anything. */
enum status control_command_from_json(const cJSON *json, struct control_command *ret_command,
                                      struct error *err) MUST_USE;
/* Changes the study's row and says in a sentence what was done; study (of the store, found by its name) is brought up to
 * date, whoever runs it acts on that. ST_USAGE when the command makes no sense in the study's state. */
enum status control_command_apply(struct store *store, const struct control_command *command, struct study *study,
                                  char *ret_text, size_t size, struct error *err) MUST_USE;

/* cmd_control.c: says it to the running controller of the store (*ret_live), or writes it to the store where none runs. */
enum status control_carry_out(const char *store_path, const struct control_command *command, char *ret_text,
                              size_t size, bool *ret_live, struct error *err) MUST_USE;

#endif
