/* early_stop.h - stops trials by the curves of finished ones. struct early_stop owns the curves; the scheduler's
 * thread. */
#ifndef SWEEP_CONTROLLER_EARLY_STOP_H
#define SWEEP_CONTROLLER_EARLY_STOP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

struct gp_curve;
struct setup;
struct store;
struct study_view;

struct early_stop {
    bool on;
    size_t n, cap;
    struct gp_curve *curves; /* (n) owned, with their points */
};
void early_stop_free(struct early_stop *es); /* a zeroed one is fine */
/* Adds the curve of trial i of the view, if the trial is done. */
enum status early_stop_learn(struct early_stop *es, struct store *store, const struct study_view *view, size_t i,
                             struct error *err) MUST_USE;
/* Should trial i, which has reached env_steps and score in seconds of training, be stopped? The reason goes to the
 * store. */
bool early_stop_judge(const struct early_stop *es, const struct study_view *view, size_t i, const struct setup *setup,
                      int64_t env_steps, double score, double seconds, char *ret_reason, size_t size);

#endif
