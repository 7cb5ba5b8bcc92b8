/* probe.h - tries the way to a host: starts a worker there, takes its greeting, opens a device, and ends it. */
#pragma once

#include "base/base.h"

struct device_spec;

struct probe {
    struct error why; /* what is wrong, and what to do; ST_OK: nothing */
    char host[80]; /* its own name */
    char device[256]; /* the one that was opened; "": none was asked for */
    int64_t gpus, cores;
    double greeting_s; /* until its greeting came */
};
/* Waits for at most patience_s. open_device: also opens spec's device. */
void probe_host(const struct device_spec *spec, bool open_device, double patience_s, struct probe *ret_probe);
/* The greeting of every one of n that stands for all devices of its host, all at once; ret_probes: (n). */
void probe_hosts(const struct device_spec *specs, size_t n, struct probe *ret_probes, double patience_s);
