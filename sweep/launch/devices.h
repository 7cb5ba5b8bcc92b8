/* devices.h - which workers [sweep] devices and runs_per_device ask for. A plain value; a list that cannot be right is
 * ST_CONFIG with the option's name. */
#pragma once

#include "sweep/launch/device_spec.h"

struct search;
struct sweep_settings;

#define DEVICES_NONE "none" /* sweep.devices of a study whose trials only nodes and clients outside get */

#define WORKERS_MAX 2048

struct devices {
    size_t n;
    struct device_spec v[WORKERS_MAX];
    bool crowded; /* more trials at a time on the CPU than cores: time is not a measure of their cost */
};
/* train_device: train.device of the config, which devices = auto follows. More CPU trials at a time than cores are
 * refused where cost is time. */
enum status devices_parse(const struct sweep_settings *settings, int train_device, struct devices *ret_devices,
                          struct error *err) MUST_USE;
enum status devices_add(struct devices *devices, const struct device_spec *spec, struct error *err) MUST_USE;
/* Can the worker train what the study asks for at most: train.devices of its config (wanted), or of its search? */
enum status devices_check_width(const struct device_spec *spec, const struct search *search, int64_t wanted,
                                struct error *err) MUST_USE;
/* Only finds wrong settings. */
enum status devices_check(const struct sweep_settings *settings, int train_device, struct error *err) MUST_USE;
