/* bench.h - shared by the files of `trawl bench`. struct bench owns its setup and run; one thread. */
#pragma once

#include "base/text/json.h"
#include "sweep/worker/session.h"

struct setup;

#define BENCH_MAX_REPEATS 99

struct bench {
    bool json;
    int64_t repeats, threads, envs;
    double seconds; /* of each repeat */
    const char *device, *precision; /* of bench env */
    struct setup *setup;
    struct session session;
};

struct bench_spread {
    double median, min, max;
};

struct bench_spread bench_spread_of(double *values, int64_t n); /* sorts values */
void bench_add_spread(cJSON *json, const char *name, const struct bench_spread *spread);
void bench_add_machine(cJSON *json, const char *device);

enum status bench_env(const struct bench *bench, struct error *err) MUST_USE;
enum status bench_train(struct bench *bench, struct error *err) MUST_USE;
