/* device_fits.h - which devices a study's trials may run on. The scheduler's thread. */
#pragma once

#include "base/base.h"

struct sched_study;
struct scheduler;
struct worker;

/* May the worker, whose device is open, have trials of the study? The first that gets one settles the study's kind,
 * which is that of its earlier trials where a device of it can still come. */
bool device_class_fits(const struct scheduler *s, const struct sched_study *ss, const struct worker *worker);
void device_class_report(const struct scheduler *s, struct worker *worker); /* logs once that it fits a study not */
void device_class_settle(struct sched_study *ss, const struct worker *worker); /* it gets a trial */
