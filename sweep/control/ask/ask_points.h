/* ask_points.h - trials whose values a person or another program chooses: enqueue and add. The scheduler's thread. */
#pragma once

#include "base/base.h"
#include "base/text/json.h"

struct sched_study;
struct search;
struct store;

/* Bodies that ask_body_check took; out: the answer. ST_USAGE: a value that no trial can have; ST_EXISTS: no trial is
 * left. */
enum status ask_enqueue(struct sched_study *ss, const cJSON *body, cJSON *out, struct error *err) MUST_USE;
enum status ask_add(struct sched_study *ss, const cJSON *body, cJSON *out, struct error *err) MUST_USE;
/* Would ask_add take the body? ST_USAGE: not. */
enum status ask_add_check(const struct search *search, const cJSON *body, struct error *err) MUST_USE;
/* The point that a trial queued at params would have. */
enum status ask_points_read(const struct search *search, const cJSON *params, double *ret_x,
                            struct error *err) MUST_USE;
/* Queues a trial of a study of the store at params, as the next to run, whoever serves the study. */
enum status ask_points_queue(struct store *store, const char *study, const cJSON *params, int64_t *ret_number,
                             struct error *err) MUST_USE;
