/* run.h - a device and a trainer for a setup. struct run owns them until run_close; one thread. */
#ifndef SWEEP_WORKER_RUN_H
#define SWEEP_WORKER_RUN_H

#include <stdint.h>

#include "base/json.h"
#include "base/status.h"
#include "trainer/trainer.h"

struct kern;
struct setup;
struct trainer;
struct trainer_cache;

struct run {
    struct kern *kern;
    int device; /* train.device and threads that kern was opened with */
    int64_t threads;
    int ordinal; /* which GPU; set before it is opened */
    struct trainer *trainer;
    struct trainer_cache *cache; /* on a GPU: what earlier trainers of this run leave to later ones */
};
/* run starts zeroed; an open device of the same kind is kept. */
enum status run_open_device(struct run *run, const struct setup *setup, struct error *err) MUST_USE;
enum status run_open(struct run *run, const struct setup *setup, struct error *err) MUST_USE;
/* On a GPU: loads what a run of this setup needs and leaves a trainer of its shape in the cache, so that no trial pays
 * for it. A failure is ignored: the trial meets it again. */
void run_warm_up(struct run *run, const struct setup *setup);
void run_close(struct run *run);
/* {"env": {"ms": 12.3, "percent": 4.5}, ...}; NULL: out of memory. */
cJSON *run_profile_json(const double phase_s[PHASE_COUNT]);

#endif
