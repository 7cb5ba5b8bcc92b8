/* device_class.h - kinds of devices, and which of them a study's trials may run on: cost is time, and seconds of unlike
 * devices do not compare. The scheduler's thread. */
#ifndef SWEEP_CONTROLLER_DEVICE_CLASS_H
#define SWEEP_CONTROLLER_DEVICE_CLASS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"

struct sched_study;
struct scheduler;
struct worker;

#define DEVICE_CLASS_MAX 256
#define DEVICE_COSTS_ALIKE "alike" /* sweep.device_costs: devices of one kind only */
#define DEVICE_COSTS_ANY "any" /* all, with costs as they are */

/* The kind of a device, from its name: "AMD EPYC (2 threads, Haswell)" is "AMD EPYC (Haswell)", "NVIDIA H200 (700 W,
 * 1980 MHz)" is itself. Pure. */
void device_class_of(const char *device, char buf[DEVICE_CLASS_MAX]);
enum status device_costs_check(const char *text, struct error *err) MUST_USE;
/* By what a second on a device of this kind counts: 1, or the factor of a list; NaN: a list without it. Pure. */
double device_costs_factor(const char *text, const char *device_class);
/* May the worker, whose device is open, have trials of the study? The first that gets one settles the study's kind,
 * which is that of its earlier trials where a device of it can still come. */
bool device_class_fits(const struct scheduler *s, const struct sched_study *ss, const struct worker *worker);
void device_class_report(const struct scheduler *s, struct worker *worker); /* logs once that it fits a study not */
void device_class_settle(struct sched_study *ss, const struct worker *worker); /* it gets a trial */

#endif
