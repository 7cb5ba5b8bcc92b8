/* timeline.h - when each slot of a study had a trial. Reads a view. */
#ifndef STUDY_TIMELINE_H
#define STUDY_TIMELINE_H

#include "base/json.h"
#include "base/status.h"

struct study_view;

enum status timeline_print(const struct study_view *view, struct error *err) MUST_USE; /* to stdout */
/* {"begin_ms", "whole_s", "pause_s", "slots": [{"slot", "trials", "busy_s", "idle_s", "training_s"}]}; caller
 * deletes. */
enum status timeline_to_json(const struct study_view *view, cJSON **ret_json, struct error *err) MUST_USE;

#endif
