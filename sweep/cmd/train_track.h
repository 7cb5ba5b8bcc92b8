/* train_track.h - what `trawl train` tells experiment trackers: one run, through an outbox in a store of its own.
 * Used by the thread that trains; NULL (no trackers) is fine everywhere and costs nothing. */
#ifndef SWEEP_CMD_TRAIN_TRACK_H
#define SWEEP_CMD_TRAIN_TRACK_H

#include "base/status.h"
#include "store/store.h"

struct eval_result;
struct setup;
struct train_metrics;
struct train_result;

struct train_track_options {
    const char *store_path; /* NULL: beside the checkpoint; without one in a file that goes when all is told */
    const char *name; /* of the run; NULL: by the checkpoint's name, else the game's */
    const char *checkpoint; /* where it is saved; NULL: nowhere */
    const char *resume; /* the checkpoint that it goes on from: the run that was told before goes on too; NULL */
};

struct train_track;

/* Settings and logins that cannot be right, a store that cannot be written: found before anything is made. */
enum status train_track_check(const struct setup *setup, const struct train_track_options *options,
                              struct error *err) MUST_USE;
/* Opens the outbox, starts the uploads and tells the beginning. *ret_track is NULL when nobody is to be told. ST_USAGE: the store
 * holds a sweep. */
enum status train_track_open(struct train_track **ret_track, const struct setup *setup, const char *config_text,
                             const char *device, const struct train_track_options *options, struct error *err) MUST_USE;
/* One report, with the memory that is used now. A store that fails is told once and ends the telling, not the training. */
void train_track_metrics(struct train_track *track, const struct train_metrics *metrics, int64_t device_memory_bytes);
/* Has somebody pressed Stop on the run's page? */
bool train_track_stopped(struct train_track *track);
/* The last word: state done, stopped or failed. result and eval may be NULL when it failed; a stopped run has no eval. reason: NULL when done. */
void train_track_result(struct train_track *track, enum trial_state state, const struct train_result *result,
                        const struct eval_result *eval, const char *reason);
/* In place of it: it was interrupted, and --resume goes on. */
void train_track_pause(struct train_track *track);
/* Sends what is left for at most track.flush_s (interrupted: less), says what is not sent, and frees. */
void train_track_close(struct train_track *track, bool interrupted);

#endif
