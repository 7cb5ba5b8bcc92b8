/* control_send.h - sends commands on a study. One thread. */
#pragma once

#include "base/base.h"

struct control_command;

#define CONTROL_NOTE_MAX 1024

/* Sends the command to the running controller of the store (*ret_by_controller), or applies it to the store where none
 * runs. */
enum status control_carry_out(const char *store_path, const struct control_command *command, char *ret_text,
                              size_t size, bool *ret_by_controller, struct error *err) MUST_USE;
/* What to add where no controller did it: that the store was written, and what would run the study; "": nothing. */
const char *control_note(const struct control_command *command, const char *store_path, char buf[CONTROL_NOTE_MAX]);
/* control_carry_out after a check of the command; prints what was done. */
enum status control_send(const char *store_path, const struct control_command *command, bool as_json,
                         struct error *err) MUST_USE;
