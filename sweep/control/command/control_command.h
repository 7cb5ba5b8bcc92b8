/* control_command.h - the commands on a study, and their JSON. A command is a plain value. One thread. */
#pragma once

#include "base/text/json.h"
#include "store/store.h"

enum control_kind {
    CONTROL_STOP,
    CONTROL_PAUSE,
    CONTROL_CONTINUE,
    CONTROL_ADD,
    CONTROL_PRIORITY,
    CONTROL_RETRY,
    CONTROL_CONFIRM,
    CONTROL_EXTEND,
    CONTROL_TRY,
    CONTROL_DROP,
    CONTROL_RENAME,
    CONTROL_NOTE,
    CONTROL_TAG,
    CONTROL_RM,
    CONTROL_PURGE, /* of `trawl gc`: removes a study that is in the trash */
    CONTROL_KINDS
};

#define CONTROL_TEXT_MAX 8192

struct control_command {
    enum control_kind kind;
    char study[160];
    bool now; /* pause: running trials go back into the queue at once */
    int64_t trials; /* add: 0 none; confirm: runs under fresh seeds */
    double budget_s; /* add: 0 none */
    int64_t priority; /* 1 to STUDY_PRIORITY_MAX */
    int64_t trial; /* its number; -1: none, or the study */
    bool undo; /* drop, tag, rm: takes it back */
    /* extend: the steps; try: values as JSON; drop: the reason; rename: the new name; note, tag: what is written */
    char text[CONTROL_TEXT_MAX];
};
const char *control_kind_name(enum control_kind kind); /* "stop", ... */
cJSON *control_command_to_json(const struct control_command *command);
/* Checks every field: a socket may deliver anything. */
enum status control_command_from_json(const cJSON *json, struct control_command *ret_command,
                                      struct error *err) MUST_USE;
