/* control_apply.h - what the commands on a study do to its row. Texts are written into the caller's buffers. One
 * thread. */
#pragma once

#include "base/base.h"

struct control_command;
struct store;
struct study;

/* Changes the study's row and writes a sentence on what was done; study (of the store, found by its name) is brought up
 * to date, and its controller acts on that. ST_USAGE when the command makes no sense in the study's state. */
enum status control_command_apply(struct store *store, const struct control_command *command, struct study *study,
                                  char *ret_text, size_t size, struct error *err) MUST_USE;
