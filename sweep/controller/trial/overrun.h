/* overrun.h - trials that cost far more than was predicted, and have nothing to gain. Pure; the scheduler's thread. */
#pragma once

#include "base/base.h"

struct study_view;

/* Trial i of the view was proposed, has cost more so far than 97.5 % of such runs were expected to, and at least
 * OVERRUN_FACTOR times what was expected and OVERRUN_LEAST_S more; and another that cost no more than this scored at
 * least what it has now (score) and what 97.5 % of such runs were expected to stay below. cost: in seconds, the unit of
 * sweep.cost. ret_why: for people. */
bool overrun_is_hopeless(const struct study_view *view, size_t i, double cost, double score, char *ret_why,
                         size_t size);
#define OVERRUN_FACTOR 2.0
#define OVERRUN_LEAST_S 2.0 /* a busy machine holds up any run for moments */
