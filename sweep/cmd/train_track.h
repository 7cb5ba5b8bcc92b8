/* train_track.h - reports one `trawl train` to experiment trackers: one run, through an outbox in a store of its own.
 * Used by the thread that trains. NULL (no trackers) is fine everywhere and costs nothing; no failure after
 * train_track_open ends the training. */
#pragma once

#include "store/store.h"

struct eval_result;
struct setup;
struct train_metrics;
struct train_result;

struct train_track_options {
    /* NULL: beside the checkpoint; without a checkpoint in a file that is removed when all is sent */
    const char *store_path;
    const char *name; /* of the run; NULL: by the checkpoint's name, else the game's */
    const char *checkpoint; /* where it is saved; NULL: nowhere */
    const char *resume; /* the checkpoint that the training resumes: the trackers' run is resumed too; NULL */
};

struct train_track;

/* Finds settings and logins that cannot be right, and a store that cannot be written, before anything is created. */
enum status train_track_check(const struct setup *setup, const struct train_track_options *options,
                              struct error *err) MUST_USE;
/* Opens the outbox, starts the uploads and reports the start. *ret_track is NULL without trackers. ST_USAGE: the store
 * holds a sweep. */
enum status train_track_open(struct train_track **ret_track, const struct setup *setup, const char *config_text,
                             const char *device, const struct train_track_options *options, struct error *err) MUST_USE;
/* One report, with the memory that is used now. A store that fails is logged once and ends the reports, not the
 * training. */
void train_track_metrics(struct train_track *track, const struct train_metrics *metrics, int64_t device_memory_bytes);
/* Has a user pressed Stop on the run's page? */
bool train_track_stopped(struct train_track *track);
/* The last report: state done, stopped or failed. result and eval may be NULL when it failed; a stopped run has no
 * eval. reason: NULL when done. */
void train_track_result(struct train_track *track, enum trial_state state, const struct train_result *result,
                        const struct eval_result *eval, const char *reason);
/* Instead of train_track_result for an interrupted training, which --resume continues. */
void train_track_pause(struct train_track *track);
/* Sends what is left for at most track.flush_s (interrupted: less), logs what is not sent, and frees. */
void train_track_close(struct train_track *track, bool interrupted);
