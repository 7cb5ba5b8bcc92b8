/* track.h - experiment trackers: the rows that are sent, the threads that send them, and the counts (public face).
 *
 * The way of a number: the controller commits outbox rows in one transaction with the events that they report; an
 * uploader has one thread for each tracker, with its own store connection and HTTP handle. The thread claims a range of
 * a run's rows, sends it, and commits the position that the tracker acknowledged together with the removal of rows that
 * every tracker has.
 *
 * Invariants: (1) rows of a run are sent in their order, one request in flight for each run and tracker; (2) claimed
 * rows are sent again unchanged after a crash or a lost reply: with the tracker's own idempotency (line offsets, fixed
 * timestamps, log ids) at-least-once becomes exactly-once; (3) metrics rows of a run that reach a tracker have rising
 * env_steps: steps that a later attempt of a trial reports again are left out; (4) no secret is in an outbox row, a
 * position or a message; (5) nothing here makes training wait.
 *
 * Payload of an outbox row: a JSON object with "type" and, by type:
 *   about a trial (trial_id is its row in the store)
 *   "start"    {attempt, number, name, group (not for a single training), config: {section: {key: value}},
 *              params: {"train.gamma": 0.99}, origin, seed, device, env, metric, tags: [text], anew: true where the
 *              attempt begins from zero}   first row of an attempt
 *   "metrics"  {env_steps, wall_s, values: {name: number}}    names: docs/metrics.md; non-finite: base/text/json.h
 *   "system"   {env_steps, values: {"system/memory_bytes": number}}
 *   "pause"    {env_steps}                                    stopped with the program, continues with --resume
 *   "result"   {state: done|stopped|failed|lost, score, perf, cost_s, device_s, env_steps, reason}   last row
 *   about the study (trial_id 0)
 *   "study"    {name, method, metric, goal, seed, space, config, program}   each time a controller starts
 *   "front"    {trials, hypervolume, cost_s, best_score, columns: [text], rows: [[number or text]]}   after finished
 *              trials
 *   "file"     {name, mime, text}                  a small file: front.svg, report.html; the newest of a name counts
 *   "study_end" {reason, trials}                   the controller ended
 * Unknown types are skipped by trackers. */
#pragma once

#include <stdatomic.h>

#include "base/text/json.h"
#include "base/config/opt.h"
#include "store/store.h"
#include "study/setup/track_settings.h"

/* ---- [track]: study/setup/track_settings.h ---- */

/* Checks names, URLs (no credentials in them) and that files exist; "neptune" is refused: the service has closed. No
 * network. */
enum status track_settings_check(const struct track_settings *settings, struct error *err) MUST_USE;

/* The next word of "a, b": for lists in settings and variables; false after the last. */
bool track_next_word(const char **at, char *ret_word, size_t size);

/* ---- the interface that a tracker implements ---- */

enum track_row_type {
    TRACK_ROW_UNKNOWN,
    TRACK_ROW_START,
    TRACK_ROW_METRICS,
    TRACK_ROW_SYSTEM,
    TRACK_ROW_PAUSE,
    TRACK_ROW_RESULT,
    TRACK_ROW_STUDY,
    TRACK_ROW_FRONT,
    TRACK_ROW_FILE,
    TRACK_ROW_STUDY_END,
};

struct track_row {
    int64_t id; /* in the outbox: unique in the store, rising */
    int64_t ms; /* time of writing: the fixed timestamp of everything that is sent from it */
    enum track_row_type type;
    int64_t env_steps; /* for metrics and system; else 0 */
    const cJSON *json; /* the whole payload */
};

/* One run as one tracker knows it: a trial, or the study itself. */
struct track_run {
    int64_t trial_id; /* 0: the study */
    int64_t number; /* of the trial; -1: the study */
    char key[64]; /* "k3j9x0ab-7", "k3j9x0ab-study": unique, the same after a resume and in every tracker */
    cJSON *state; /* object of the tracker (ids from the server, line counts), kept in the store with the position */
};

enum track_verdict {
    TRACK_DONE, /* all rows are acknowledged */
    TRACK_RETRY, /* try again later: server busy, no network; rows up to n_done are acknowledged */
    TRACK_RUN_REFUSED, /* this run will never be accepted: it gets no more rows, others continue */
    TRACK_REFUSED, /* nothing will be accepted until a person acts (bad key): rows are kept for `trawl sync` */
};

struct track_reply {
    enum track_verdict verdict;
    size_t n_done; /* rows acknowledged from the front; TRACK_DONE: ignored */
    double retry_after_s; /* the server's Retry-After; 0: none */
    double pause_s; /* after success: wait as the server's rate headers ask; 0: no */
    int64_t n_requests; /* requests made for this reply; 0 counts as 1 */
    bool run_gone; /* TRACK_RUN_REFUSED whatever is sent: no part of the rows would be accepted */
    bool stop; /* a person pressed Stop on the web page */
    int64_t n_skipped; /* rows or values that the tracker cannot hold, left out (logged once by the uploader) */
    char text[ERROR_TEXT_MAX]; /* not TRACK_DONE: where, what, what to do; never a secret */
};

struct http_reply;
/* The usual meaning of an HTTP reply: 401, 403 and "elsewhere" are TRACK_REFUSED, other refusals TRACK_RUN_REFUSED. */
void track_reply_http(struct track_reply *reply, const struct http_reply *http);

/* The mode from a tracker's own variable (WANDB_MODE). */
enum track_mode { TRACK_ONLINE, TRACK_OFFLINE /* rows wait for `trawl sync` */, TRACK_DISABLED };

/* Arguments of open; everything is borrowed and outlives the tracker. */
struct track_open {
    const struct track_settings *settings;
    const char *study; /* its name */
    const char *key; /* of the study: "k3j9x0ab"; filled in after open */
    const char *program; /* "trawl 0.1.0 (abc1234)" */
    bool single; /* a single training: no run of the study, no group */
    struct http_cancel *cancel; /* for http_create */
    enum track_mode *ret_mode; /* TRACK_ONLINE before the call */
};

struct tracker_ops {
    const char *name; /* "wandb" */
    int64_t requests_per_minute; /* default budget over all runs */
    size_t rows_max, bytes_max; /* limits of one send: rows, sum of payloads */

    /* Settings from [track], environment, netrc and config files. No network. ST_CONFIG names the source of a bad
     * value, never a key. Called by the main thread; all else by the tracker's own thread. */
    enum status (*open)(void **ret_self, const struct track_open *open, struct error *err);
    void (*close)(void *self); /* NULL is fine */
    /* Is the login good? Called once, before the first send; NULL: no login. */
    void (*login)(void *self, struct track_reply *ret_reply);
    /* Sends rows of one run in order; the run's first row is "start" (or "study"). run->state may change also when the
     * verdict is not TRACK_DONE: it is kept with the n_done rows. The same rows come again when the outcome of a send
     * is unknown. */
    void (*send)(void *self, struct track_run *run, const struct track_row *rows, size_t n,
                 struct track_reply *ret_reply);
    /* "Still running"; NULL: the tracker has no such thing. */
    void (*beat)(void *self, struct track_run *run, struct track_reply *ret_reply);
    /* The page of the study for people, "" if unknown; borrowed. */
    const char *(*page)(void *self);
};

extern const struct tracker_ops track_wandb_ops, track_mlflow_ops, track_trackio_ops, track_webhook_ops;
const struct tracker_ops *track_find(const char *name); /* NULL: no such tracker */

/* ---- uploader ---- */

struct uploader; /* threads of one study in this process */

struct upload_counts {
    int64_t waiting; /* rows that some tracker has not acknowledged; set by uploader_close only */
    int64_t sent, skipped; /* rows since the uploader was created, over all trackers */
    int64_t answers; /* successful requests: rises while anything is sent */
    int64_t refused_runs;
    bool down; /* some tracker cannot be reached now */
    bool asking; /* some tracker has not answered its request yet */
    bool refused; /* some tracker accepts nothing until a person acts */
    bool idle; /* no row is left that could be sent now */
    char text[ERROR_TEXT_MAX]; /* down or refused: the reason */
};

struct uploader_options {
    const char *store_path;
    int64_t study_id;
    const char *study; /* its name */
    const struct track_settings *settings;
    const char *program;
    /* Called by a tracker's thread when a run is stopped on the tracker's page; may be NULL. */
    void (*on_stop)(void *ctx, int64_t trial_id, const char *tracker);
    void *ctx;
    bool drain; /* for `trawl sync`: ends when all rows are sent, without intervals */
    bool single; /* the study is a single training (`trawl train`): see struct track_open */
};

/* Before a study is created: would uploader_create accept these settings? Opens every tracker and closes it again,
 * without network unless track.strict asks for a good login. */
enum status uploader_check(const struct track_settings *settings, const char *study, bool single, const char *program,
                           struct error *err) MUST_USE;
/* Opens every tracker (their settings are checked here) and starts the threads; the writer of the store is this
 * process. Offline: registers the study's trackers, starts nothing. */
enum status uploader_create(struct uploader **ret_uploader, const struct uploader_options *options,
                            struct error *err) MUST_USE;
/* False: rows are not needed (no trackers, or all are disabled by their own variables). */
bool uploader_wants_rows(const struct uploader *uploader);
/* No more rows will come: sends the rest without waiting for intervals; afterwards the counts are `idle`. */
void uploader_hurry(struct uploader *uploader);
/* Rows were added: reads the outbox soon. Cheap, never waits. NULL is fine. */
void uploader_wake(struct uploader *uploader);
void uploader_counts(struct uploader *uploader, struct upload_counts *ret_counts);
/* Sends rows for at most `seconds`, then ends the threads. *ret_counts: the final counts. NULL is fine. */
void uploader_close(struct uploader *uploader, double seconds, struct upload_counts *ret_counts);
