/* track_rows.h - what a sweep tells the trackers. Used by the thread that owns the store's writer; NULL hooks (no trackers)
 * are fine everywhere and cost nothing. */
#ifndef SWEEP_CONTROLLER_TRACK_ROWS_H
#define SWEEP_CONTROLLER_TRACK_ROWS_H

#include "base/status.h"
#include "web/track/track.h"

struct setup;
struct store;
struct study;
struct study_view;
struct trial;
struct trial_result;

struct track_hooks; /* of one study */

/* NULL in *ret_hooks when setup->track names no tracker, or all are disabled by their own variables. store is borrowed. */
enum status track_hooks_open(struct track_hooks **ret_hooks, struct store *store, const struct study *study,
                             const struct setup *setup, struct error *err) MUST_USE;
/* The same for one training alone: nothing is told of the study, a study's row in the store only holds settings and outbox. */
enum status track_hooks_open_single(struct track_hooks **ret_hooks, struct store *store, const struct study *study,
                                    const struct setup *setup, struct error *err) MUST_USE;
/* After store_trial_start: the first row of an attempt. */
/* anew: an earlier attempt's curve was thrown away, which trackers keep in a run of its own. */
enum status track_hooks_start(struct track_hooks *hooks, const struct trial *trial, bool anew,
                              struct error *err) MUST_USE;
/* The outbox_json of a metric_report for a worker's report, and of store_trial_finish; borrowed until the next call. NULL:
 * none (no trackers, or out of memory, which is logged: a tracker is no reason to lose a trial). values: the JSON text of an
 * object of numbers, as the worker wrote it. */
const char *track_hooks_metrics(struct track_hooks *hooks, int64_t env_steps, double wall_s, const char *values,
                                size_t n_values);
/* The same text without hooks, owned by the caller; NULL: out of memory. It comes often: the numbers are handed on as they are. */
char *track_hooks_metrics_text(int64_t env_steps, double wall_s, const char *values, size_t n_values);
const char *track_hooks_result(struct track_hooks *hooks, const struct trial_result *result);
/* Memory of the worker that runs the trial, at most once in 15 s; bytes 0: unknown. */
enum status track_hooks_system(struct track_hooks *hooks, int64_t trial_id, int64_t env_steps, int64_t memory_bytes,
                               int64_t device_memory_bytes, struct error *err) MUST_USE;
/* A small file of the trial, when track.files says so. */
enum status track_hooks_file(struct track_hooks *hooks, int64_t trial_id, const char *name, const char *mime,
                             const char *text, struct error *err) MUST_USE;
/* The trial was queued again; it goes on in the same run of the tracker when it is started again. */
enum status track_hooks_pause(struct track_hooks *hooks, int64_t trial_id, int64_t env_steps,
                              struct error *err) MUST_USE;
/* A trial has ended and the view knows: the front, at most once in 10 s. */
enum status track_hooks_front(struct track_hooks *hooks, const struct study_view *view, struct error *err) MUST_USE;
/* Has somebody pressed Stop for this trial? Said once. ret_why: "stopped on the page of wandb". */
bool track_hooks_stop(struct track_hooks *hooks, int64_t trial_id, char *ret_why, size_t size);
/* The same without waiting: what is left is sent while the caller goes on. The study, its view and its setup are not used any
 * more; the store is. Then track_hooks_left is asked now and then, and track_hooks_close ends it when that is true or the
 * store is to be closed (view NULL). */
void track_hooks_leave(struct track_hooks *hooks, const struct study_view *view, const char *reason);
bool track_hooks_left(struct track_hooks *hooks);
int64_t track_hooks_study(const struct track_hooks *hooks); /* its id in the store */
/* The end of the controller: last front, picture, report; sends what is left for at most so many seconds and says what is not
 * sent. Frees the hooks. view NULL: nothing is added (after track_hooks_leave, of a training alone). True: nothing is left. */
bool track_hooks_close(struct track_hooks *hooks, const struct study_view *view, const char *reason, double seconds);

#endif
