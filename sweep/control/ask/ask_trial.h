/* ask_trial.h - a leased trial as its client gets it, and its result as it comes back. Plain values; one thread. */
#pragma once

#include "base/text/json.h"
#include "store/store.h"
#include "study/space/search.h"

struct held;
struct sched_study;

/* The answer of ask. */
enum status ask_trial_put(const struct sched_study *ss, const struct held *held, bool again, cJSON *out,
                          struct error *err) MUST_USE;
/* Of a body that ask_body_check took. verb: for messages; elapsed_s: the cost when the body has none, NaN: it is
 * needed. The texts of the result are the body's. */
enum status ask_result_read(const cJSON *body, const char *verb, enum search_cost kind, double elapsed_s,
                            struct trial_result *ret_result, struct error *err) MUST_USE;
