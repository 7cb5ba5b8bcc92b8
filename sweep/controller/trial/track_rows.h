/* track_rows.h - writes the tracker outbox of a sweep, and feeds its uploader. Used by the thread that owns the store's
 * writer; NULL (no trackers) is fine everywhere and costs nothing. A failure of the store is returned. */
#pragma once

#include "web/track/track.h"

struct metric_report;
struct setup;
struct store;
struct study;
struct study_view;
struct trial;
struct trial_result;

struct track_rows; /* of one study */

/* NULL in *ret_rows when setup->track names no tracker, or all are disabled by their own variables. store is
 * borrowed. */
enum status track_rows_open(struct track_rows **ret_rows, struct store *store, const struct study *study,
                            const struct setup *setup, struct error *err) MUST_USE;
/* The same for one training alone: the study's row only holds settings and outbox, and is not reported. */
enum status track_rows_open_single(struct track_rows **ret_rows, struct store *store, const struct study *study,
                                   const struct setup *setup, struct error *err) MUST_USE;
/* Rows alone, for a node: the controller sends them. NULL in *ret_rows: no tracker of the study is registered. */
enum status track_rows_open_quiet(struct track_rows **ret_rows, struct store *store, const struct study *study,
                                  const struct setup *setup, struct error *err) MUST_USE;
/* Called after store_trial_start: the first row of an attempt. from_zero: an earlier attempt's curve was dropped;
 * trackers keep it in a run of its own. */
enum status track_rows_start(struct track_rows *rows, const struct trial *trial, bool from_zero,
                             struct error *err) MUST_USE;
/* The outbox_json of a report that has points, the caller's; NULL: none (no trackers, or they lag too far). */
char *track_rows_metrics(struct track_rows *rows, const struct metric_report *report);
char *track_rows_metrics_text(const struct metric_report *report); /* the same without a struct track_rows */
/* The outbox_json of store_trials_finish; borrowed until the next call. NULL: no trackers. */
const char *track_rows_result(struct track_rows *rows, const struct trial_result *result);
/* Memory of the worker that runs the trial, at most once in 15 s; bytes 0: unknown. */
enum status track_rows_system(struct track_rows *rows, int64_t trial_id, int64_t env_steps, int64_t memory_bytes,
                              int64_t device_memory_bytes, struct error *err) MUST_USE;
/* A small file of the trial, when track.files is set. */
enum status track_rows_file(struct track_rows *rows, int64_t trial_id, const char *name, const char *mime,
                            const char *text, struct error *err) MUST_USE;
/* The trial was queued again; the tracker's run is resumed when the trial is started again. */
enum status track_rows_pause(struct track_rows *rows, int64_t trial_id, int64_t env_steps, struct error *err) MUST_USE;
/* Called after the view has a trial's end: reports the front, at most once in 10 s. */
enum status track_rows_front(struct track_rows *rows, const struct study_view *view, struct error *err) MUST_USE;
/* Has a user pressed Stop for this trial? True once. ret_why: "stopped on the page of wandb". */
bool track_rows_stop(struct track_rows *rows, int64_t trial_id, char *ret_why, size_t size);
/* Ends the rows without waiting: the rest is sent while the caller continues. The study, its view and its setup are no
 * longer used; the store is. The caller then asks track_rows_left now and then, and calls track_rows_close (view NULL)
 * when that is true or the store is to be closed. */
void track_rows_leave(struct track_rows *rows, const struct study_view *view, const char *reason);
bool track_rows_left(struct track_rows *rows);
int64_t track_rows_study(const struct track_rows *rows); /* its id in the store */
/* The end of the controller: last front, picture, report; sends what is left for at most `seconds` and logs what is not
 * sent. Frees the rows. view NULL: nothing is added (after track_rows_leave, or for a training alone). True: nothing
 * is left. */
bool track_rows_close(struct track_rows *rows, const struct study_view *view, const char *reason, double seconds);
