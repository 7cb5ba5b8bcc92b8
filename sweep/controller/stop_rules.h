/* stop_rules.h - when a study has reached a limit. Reads study and view, changes only what stop_rules_tick names; the
 * scheduler's thread. */
#pragma once

#include "sweep/controller/scheduler.h"

struct sched_study;
struct study_view;

/* Why a study ends: the rule's name as the store keeps it ("trials", "budget", "target", ...) and what a person
 * reads. */
struct study_end {
    const char *rule; /* static; NULL: it continues */
    char text[WORKER_WHY_MAX];
};
/* Checks the limits at which trials in flight are stopped too. running_s: training of these so far, which no row counts
 * yet. */
void stop_rules_check(const struct sched_study *ss, double running_s, double now_s, struct study_end *ret_end);
/* How many more trials may be created; INT64_MAX: no limit. */
int64_t stop_rules_trials_left(const struct study_view *view);
/* Counts the time with a controller at work, and stores the cost that would be lost with this controller
 * (sched_study_at_risk_s); called some times a second, and with at_once before a study is released. */
enum status stop_rules_tick(struct sched_study *ss, double at_risk_s, double now_s, bool at_once,
                            struct error *err) MUST_USE;
double stop_rules_wall_s(const struct sched_study *ss, double now_s); /* used of wall_max_s */
/* Progress of the whole study by its nearest limit; 0 when its limits cannot be foreseen. */
double stop_rules_fraction(const struct sched_study *ss, double running_s, double now_s);
