/* ask_points.h - trials whose values a person or another program chooses: enqueue and add. The scheduler's thread. */
#ifndef SWEEP_CONTROL_ASK_POINTS_H
#define SWEEP_CONTROL_ASK_POINTS_H

#include "base/json.h"
#include "base/status.h"

struct sched_study;

/* Bodies that ask_body_check took; out: the answer. ST_USAGE: a value that no trial can have; ST_EXISTS: no trial is
 * left. */
enum status ask_enqueue(struct sched_study *ss, const cJSON *body, cJSON *out, struct error *err) MUST_USE;
enum status ask_add(struct sched_study *ss, const cJSON *body, cJSON *out, struct error *err) MUST_USE;

#endif
