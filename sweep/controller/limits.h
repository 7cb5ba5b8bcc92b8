/* limits.h - when a study has reached a limit. Reads study and view, changes only what study_limits_tick says; the
 * scheduler's thread. */
#ifndef SWEEP_CONTROLLER_LIMITS_H
#define SWEEP_CONTROLLER_LIMITS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "sweep/controller/scheduler.h"

struct store;
struct study;
struct study_run;
struct study_view;
struct sweep_settings;

/* Why a study ends: the rule's name as the store keeps it ("trials", "budget", "target", ...) and what a person
 * reads. */
struct study_end {
    const char *rule; /* static; NULL: it continues */
    char text[SCHED_WHY_MAX];
};
/* Checks the limits at which trials in flight are stopped too. running_s: training of these so far, which no row counts
 * yet. */
void study_limits_check(const struct study_run *run, double running_s, double now_s, struct study_end *ret_end);
/* How many more trials may be created; INT64_MAX: no limit. */
int64_t study_limits_trials_left(const struct study_view *view);
/* Takes limits and priority from the config. */
void study_limits_fill(const struct sweep_settings *settings, struct study *ret_study);
void study_limits_default(struct study *study); /* without any limit: 100 trials */
/* Counts the study's trials in the store, in any state. */
enum status study_limits_count_trials(struct store *store, const struct study *study, int64_t *ret_n,
                                      struct error *err) MUST_USE;
/* Refuses a new limit below the n trials that exist. */
enum status study_limits_check_trials(const char *study, int64_t trials_max, int64_t n, struct error *err) MUST_USE;
/* Counts the time with a controller at work, and stores the cost that would be lost with this controller
 * (study_run_at_risk_s); called some times a second, and with at_once before a study is released. */
enum status study_limits_tick(struct study_run *run, double at_risk_s, double now_s, bool at_once,
                              struct error *err) MUST_USE;
double study_limits_wall_s(const struct study_run *run, double now_s); /* used of wall_max_s */
/* Progress of the whole study by its nearest limit; 0 when its limits cannot be foreseen. */
double study_limits_fraction(const struct study_run *run, double running_s, double now_s);

#endif
