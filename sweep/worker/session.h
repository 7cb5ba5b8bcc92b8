/* session.h - a device and a trainer for a setup. struct session owns them until session_close; one thread. */
#pragma once

#include "base/text/json.h"
#include "trainer/trainer.h"

struct kern;
struct setup;
struct train_hosts;
struct trainer;
struct trainer_cache;

struct session {
    struct kern *kern;
    int device; /* train.device and threads that kern, the first device of a run, was opened with */
    int64_t threads, ranks, ranks_were; /* and train.devices; ranks_were: ranks_here then */
    int ordinal; /* which GPU; set before it is opened */
    int n_gpus; /* from it on that a run may use; 0: all */
    struct train_hosts *hosts; /* borrowed: of a run on several hosts; NULL: of others */
    bool by_hand; /* hosts join by the line that is logged, which has the secret; else by the store */
    bool (*stop_waiting)(void *ctx); /* for hosts */
    void *ctx;
    int64_t ranks_here; /* of its devices this process has; 0: all */
    struct trainer *trainer;
    struct trainer_cache *cache; /* on a GPU: what earlier trainers leave to later ones */
};
/* This process has one session: a GPU is prepared for no more. session_open does it, unless the device is open already.
 * Before there are other threads. */
void session_expect_one(const struct setup *setup);
/* A session starts zeroed; an open device of the same kind is kept. */
enum status session_open_device(struct session *session, const struct setup *setup, struct error *err) MUST_USE;
size_t session_threads(const struct session *session); /* of the open device, with those of all devices of a run */
/* Waits for the hosts of a run, and logs which come and leave. session_open waits again for one instead of each that
 * cannot take part. ST_INTERRUPTED: stop_waiting(ctx) has returned true. */
enum status session_gather(struct session *session, struct train_hosts *hosts, int64_t n_ranks,
                           bool (*stop_waiting)(void *ctx), void *ctx, struct error *err) MUST_USE;
enum status session_open(struct session *session, const struct setup *setup, struct error *err) MUST_USE;
/* A training that begins, not one that is resumed: with the weights of train.from_policy. */
enum status session_begin(struct session *session, const struct setup *setup, struct error *err) MUST_USE;
/* On a GPU: loads what a run of this setup needs and leaves a trainer of its shape in the cache, so that no trial pays
 * for it. A failure is ignored: the trial meets it again. */
void session_warm_up(struct session *session, const struct setup *setup);
void session_close(struct session *session);
/* {"env": {"ms": 12.3, "percent": 4.5}, ...} */
cJSON *session_profile_json(const double phase_s[PHASE_COUNT]);
