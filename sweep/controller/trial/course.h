/* course.h - what a program reports on its way, as branches of its run (sweep.branches_length). The scheduler's
 * thread. */
#pragma once

#include "base/text/json.h"
#include "store/store.h"

struct reports;
struct sched_study;

/* A report of trial i, the run having cost cost_s so far, may be the end of a shorter run that the study wants: it
 * becomes a trial. waiting (NULL: none): reports that are stored before. */
enum status course_take(struct sched_study *ss, size_t i, const struct metric_report *report, double cost_s,
                        struct reports *waiting, struct error *err) MUST_USE;
/* A worker's `branch` message about a run: a shorter one that it holds becomes a trial, once, whatever attempt comes
 * by. */
enum status course_take_branch(struct sched_study *ss, size_t i, const cJSON *message, double cost_factor,
                               struct error *err) MUST_USE;
