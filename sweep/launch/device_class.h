/* device_class.h - kinds of devices: cost is time, and seconds of unlike devices do not compare. Pure. */
#pragma once

#include "base/base.h"

#define DEVICE_CLASS_MAX 256
#define DEVICE_COSTS_ALIKE "alike" /* sweep.device_costs: devices of one kind only */
#define DEVICE_COSTS_ANY "any" /* all, with costs as they are */

/* Why a study's trials do not run on a device: its name, its kind, theirs. */
#define DEVICE_UNLIKE "%s is %s, and its trials run on %s: their times would not compare (sweep.device_costs)"
#define DEVICE_COSTS_NAMED "what sweep.device_costs names" /* theirs, where that is a list */

/* The kind of a device, from its name: "AMD EPYC (2 threads, Haswell)" is "AMD EPYC (Haswell)", "NVIDIA H200 (700 W,
 * 1980 MHz)" is itself. Pure. */
void device_class_of(const char *device, char buf[DEVICE_CLASS_MAX]);
enum status device_costs_check(const char *text, struct error *err) MUST_USE;
/* By what a second on a device of this kind counts: 1, or the factor of a list; NaN: a list without it. Pure. */
double device_costs_factor(const char *text, const char *device_class);
/* The same for a trial that runs there all the same: its seconds count as they are. */
double device_costs_scale(const char *text, const char *device_class);
bool device_costs_is_list(const char *text); /* neither alike nor any */
