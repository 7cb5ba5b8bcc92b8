/* upload_priv.h - types shared by uploader.c (life, counts) and upload_feed.c (one tracker's thread). */
#pragma once

#include "base/rng.h"
#include "web/http/http.h"
#include "web/track/track.h"

#define UPLOAD_TRACKERS_MAX 8

/* One run of the study as a feeder knows it. */
struct feed_run {
    int64_t trial_id, number;
    int64_t last_id; /* its newest row that was read from the outbox */
    bool loaded; /* position and state are read */
    struct tracker_position position;
    cJSON *state; /* position.state, parsed */
    double sent_s; /* clock_mono_s of the last send; 0: never */
    double spoke_s; /* clock_mono_s of the last send or beat */
};

/* One tracker: its thread owns all fields except counts. */
struct feeder {
    struct uploader *uploader;
    const struct tracker_ops *ops;
    void *self;
    struct store *store;
    pthread_t thread;
    bool started;
    struct feed_run *runs; /* (n_runs) */
    size_t n_runs, cap_runs;
    uint64_t seen_wakes;
    int64_t seen_id; /* rows of the outbox up to here are known */
    bool logged_in;
    bool closing, drain, hurry; /* the uploader's, as last read; hurry: one of the two */
    int attempt; /* failures in a row */
    bool logged_down; /* the outage was logged */
    double next_s; /* clock_mono_s: nothing is sent before */
    double tokens, tokens_s; /* requests left in the budget, and the time of that count */
    int64_t thin_ms; /* the setting's, or more while the server asks for less */
    struct rng rng;
    struct upload_counts counts; /* guarded by uploader->lock */
};

struct uploader {
    char *store_path, *study, *program;
    int64_t study_id;
    struct track_settings settings;
    void (*on_stop)(void *ctx, int64_t trial_id, const char *tracker);
    void *ctx;
    bool drain, single;
    char key[TRACKER_KEY_MAX];
    struct http_cancel cancel;
    size_t n_registered; /* trackers for which rows are kept */
    struct feeder feeders[UPLOAD_TRACKERS_MAX];
    size_t n_feeders;
    pthread_mutex_t
        lock; /* guards wakes, closing, drain, deadline_s and every feeder's counts; never held with another lock */
    pthread_cond_t changed; /* by CLOCK_MONOTONIC */
    uint64_t wakes;
    bool closing;
    double deadline_s; /* of closing, by clock_mono_s */
};

/* The thread: sends until closing (or, when draining, nothing is left) and the deadline. */
void *feeder_main(void *ctx);
void feeder_logged_in(struct feeder *feeder); /* the login is good: logs the page's address */
void feeder_free(struct feeder *feeder); /* after its thread has ended */

/* -- upload_batch.c -- */

/* Rows as a tracker gets them: without rows that a later attempt reports again and without thinned ones. */
struct batch {
    struct outbox_list list;
    struct track_row *rows; /* (n) */
    cJSON **json; /* (list.n) owned payloads */
    int64_t *steps_after; /* (n) last_step of the position once row i is acknowledged */
    size_t n;
    int64_t last_step; /* once all are acknowledged */
};
/* All rows of list, parsed. Takes list. */
void batch_read(struct batch *batch, struct outbox_list *list);
/* Is the row the start of an attempt that begins from zero? */
bool batch_starts_over(const struct track_row *row);
/* Cuts the batch: the start of an attempt from zero is alone in its batch, and not with rows of the attempt before.
 * Returns the id of the last row that is left. The batch has a row. */
int64_t batch_cut_at_attempt(struct batch *batch);
/* Removes rows that the tracker does not get. */
void batch_choose(struct batch *batch, int64_t last_step, int64_t thin_ms);
void batch_free(struct batch *batch);
