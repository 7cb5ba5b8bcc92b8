/* node_list.h - the nodes of a store (`trawl node`), and what they did for a study. */
#pragma once

#include "base/base.h"
#include "base/text/json.h"

struct store;

/* [{"name", "host", "device", "job", "state", "slots", "running", "done", "started_ms", "beat_ms", "silent_s"}]: all
 * nodes that gave a sign of life within a day; caller deletes. state: "training", "idle", "starting" (no device is open
 * yet) or "silent". */
enum status node_list_to_json(struct store *store, int64_t study_id, cJSON **ret_json) MUST_USE;
/* The same as a table on stdout; nothing where there are none. */
enum status node_list_print(struct store *store, int64_t study_id, struct error *err) MUST_USE;
