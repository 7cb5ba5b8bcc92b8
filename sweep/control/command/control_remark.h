/* control_remark.h - commands that change no run: drop, rename, note, tag, rm, and removing what is in the trash. */
#pragma once

#include "base/base.h"

struct control_command;
struct store;
struct study;

/* As control_command_apply. Of rename, rm and purge: no controller runs the study. */
enum status control_remark_apply(struct store *store, const struct control_command *command, struct study *study,
                                 char *ret_text, size_t size, struct error *err) MUST_USE;
