/* store.h - studies, trials, learning curves, checkpoints and the tracker outbox in one SQLite file (public face of store/).
 *
 * Invariants: (1) one writer: the process that holds PATH.lock (an flock, tied to the process's life); readers open
 * read-only and never block it; (2) a trial row exists before its worker starts and a finished row never changes;
 * (3) a trial's result, its last metrics and its outbox rows are one transaction; (4) WAL, synchronous=NORMAL, foreign
 * keys on, schema version in user_version, migrations numbered, a newer file is refused with ST_VERSION.
 * Times are UTC milliseconds, durations seconds. Strings returned in structs are owned by them (…_free). */
#ifndef STORE_STORE_H
#define STORE_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

struct store; /* a connection; used by one thread at a time */

enum trial_state { TRIAL_QUEUED, TRIAL_RUNNING, TRIAL_DONE, TRIAL_STOPPED, TRIAL_FAILED, TRIAL_LOST, TRIAL_STATES };
const char *trial_state_name(enum trial_state state); /* "queued", ...: the words in the table and in --json */

/* -- open -- */
/* Creates the file when missing; takes the writer's lock (ST_BUSY names the holder's pid); migrates. */
enum status store_open_writer(struct store **ret_store, const char *path, struct error *err) MUST_USE;
/* ST_IO if missing, ST_NOTFOUND if nothing was ever written to it. Sees what was committed when each call began. */
enum status store_open_reader(struct store **ret_store, const char *path, struct error *err) MUST_USE;
void store_close(struct store *store); /* NULL is fine */
const char *store_path(const struct store *store);

/* -- studies -- */
struct study {
    int64_t id;
    char *name;
    char *config; /* ini text of the whole resolved config */
    char *space; /* JSON of the search space (sweep/ writes and reads it) */
    char *method, *metric;
    bool maximize;
    int64_t seed;
    int64_t trials_max; /* 0: no limit */
    double budget_s; /* 0: no limit */
    char *program; /* "trawl 0.1.0 (abc1234)" */
    int64_t created_ms;
};
void study_free(struct study *study); /* its strings; NULL-safe */
/* study->id and created_ms are filled in. ST_EXISTS when the name is taken. */
enum status store_study_create(struct store *store, struct study *study, struct error *err) MUST_USE;
enum status store_study_find(struct store *store, const char *name, struct study *ret_study,
                             struct error *err) MUST_USE; /* ST_NOTFOUND names the near ones */
/* New limits on resume. */
enum status store_study_set_limits(struct store *store, int64_t study_id, int64_t trials_max, double budget_s,
                                   struct error *err) MUST_USE;
enum status store_study_list(struct store *store, struct study **ret_studies, size_t *ret_n,
                             struct error *err) MUST_USE;
void study_list_free(struct study *studies, size_t n);

/* -- trials -- */
struct trial {
    int64_t id, study_id, number; /* number: 0-based in its study */
    enum trial_state state;
    char *params; /* JSON object: natural values of the searched parameters */
    char *config; /* ini text of the whole resolved config */
    char *origin; /* "default", "sobol", "ehvi", ... */
    int64_t seed, attempt;
    char *device; /* NULL until started */
    double score, perf, cost_s, device_s; /* NaN when unknown */
    int64_t env_steps; /* 0 until finished */
    char *reason; /* why failed, stopped, lost; NULL */
    int64_t created_ms, started_ms, finished_ms; /* 0: not yet */
};
void trial_free(struct trial *trial);

/* Inserts a queued trial; number is the study's next one; fills id, number, created_ms. */
enum status store_trial_create(struct store *store, struct trial *trial, struct error *err) MUST_USE;
/* queued or lost -> running, attempt + 1; curve and checkpoints of an earlier attempt are forgotten. ST_EXISTS from
 * any other state. */
enum status store_trial_start(struct store *store, int64_t trial_id, const char *device, struct error *err) MUST_USE;

struct metric_point {
    int64_t env_steps;
    double wall_s;
    const char *name;
    double value; /* NaN and Inf are kept */
};
/* One transaction for all points of a report (and their outbox row when outbox_json is not NULL). The same name and
 * env_steps again replaces the point. ST_EXISTS when the trial is not running (a stale report). */
enum status store_metrics_add(struct store *store, int64_t trial_id, const struct metric_point *points, size_t n,
                              const char *outbox_json, struct error *err) MUST_USE;

struct trial_result {
    enum trial_state state; /* done, stopped, failed or lost */
    double score, perf, cost_s, device_s;
    int64_t env_steps;
    const char *reason; /* NULL when done */
    const char *checkpoint_path; /* NULL: none */
    const struct metric_point *points; /* last points of the learning curve, in the same transaction; may be NULL */
    size_t n_points;
};
/* Ends a running (or queued) trial. A second finish of the same trial is accepted (and writes nothing) when equal and
 * ST_EXISTS otherwise. A done trial needs a finite score: ST_NUMERIC if not (record it as failed, with a reason). */
enum status store_trial_finish(struct store *store, int64_t trial_id, const struct trial_result *result,
                               const char *outbox_json, struct error *err) MUST_USE;
/* Start-up recovery by the writer: running -> queued again (requeue) or lost. *ret_n: how many. */
enum status store_trials_recover(struct store *store, int64_t study_id, bool requeue, int64_t *ret_n,
                                 struct error *err) MUST_USE;
enum status store_trial_list(struct store *store, int64_t study_id, struct trial **ret_trials, size_t *ret_n,
                             struct error *err) MUST_USE;
enum status store_trial_find(struct store *store, int64_t study_id, int64_t number, struct trial *ret_trial,
                             struct error *err) MUST_USE;
void trial_list_free(struct trial *trials, size_t n);

/* Learning curve of one metric, by env_steps. */
struct curve_point {
    int64_t env_steps;
    double wall_s, value;
};
enum status store_curve(struct store *store, int64_t trial_id, const char *name, struct curve_point **ret_points,
                        size_t *ret_n, struct error *err) MUST_USE;
enum status store_checkpoint_path(struct store *store, int64_t trial_id, char **ret_path,
                                  struct error *err) MUST_USE; /* NULL: none */

/* -- counts for ls -- */
struct study_counts {
    int64_t n[TRIAL_STATES];
    double best_score; /* by the study's direction; NaN */
    double cost_s; /* sum over finished trials */
};
enum status store_study_counts(struct store *store, const struct study *study, struct study_counts *ret_counts,
                               struct error *err) MUST_USE;

/* PRAGMA integrity_check and foreign_key_check. */
enum status store_check(struct store *store, struct error *err) MUST_USE;

#endif
