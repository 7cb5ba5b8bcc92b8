/* timeline.h - when each slot of a study had a trial. Reads a view. */
#pragma once

#include "base/text/json.h"

struct study_view;

void timeline_print(const struct study_view *view); /* to stdout */
/* {"begin_ms", "whole_s", "pause_s", "slots": [{"slot", "trials", "busy_s", "idle_s", "training_s"}]}; caller
 * deletes. */
cJSON *timeline_to_json(const struct study_view *view);
