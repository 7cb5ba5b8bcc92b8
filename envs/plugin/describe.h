/* describe.h - a game's table as JSON, so that a process can know a library's game without loading it.
 * Strings and rows of a described table are owned by nobody and stay: a library is described once in a process. */
#pragma once

#include <stddef.h>

#include "base/text/json.h"
#include "base/status.h"
#include "envs/env.h"

struct env_def;

/* The settings by the rows' defaults; caller: mem_free. */
enum status env_default_settings(const struct env_def *def, void **ret_settings, struct error *err) MUST_USE;

/* With the shape under settings; caller deletes. */
enum status env_describe(const struct env_def *def, const void *settings, cJSON **ret_json, struct error *err) MUST_USE;
/* From such a text: all of the table that is not a function. */
enum status env_described(const cJSON *json, struct env_def *ret_def, struct env_shape *ret_shape,
                          struct error *err) MUST_USE;

void env_described_shape(const cJSON *json, struct env_shape *ret_shape); /* the shape alone */

/* What `trawl env describe PATH` prints, run as a child for at most ENV_DESCRIBE_TIMEOUT_S; settings NULL: the
 * defaults. A child that dies or hangs is an error with its signal and the end of its log. */
#define ENV_DESCRIBE_TIMEOUT_S 20
enum status env_describe_in_child(const char *path, const void *settings, size_t settings_size, cJSON **ret_json,
                                  struct error *err) MUST_USE;
/* The settings of its option --settings; caller: mem_free. */
enum status env_settings_from_hex(const char *hex, size_t settings_size, void **ret_settings,
                                  struct error *err) MUST_USE;
