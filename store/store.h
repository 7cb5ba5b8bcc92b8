/* store.h - studies, trials, learning curves, checkpoints and the tracker outbox in one SQLite file, or in a database
 * of PostgreSQL (public face of store/).
 *
 * A `path` is a file's or an address, postgresql://...: there the writer holds an advisory lock instead of PATH.lock,
 * and second connections write side by side with it. What is said of files holds for files.
 *
 * Invariants: (1) one writing process, the one that holds PATH.lock (an flock, which ends with the process); readers
 * open read-only and never block it; (2) a trial row exists before its worker starts and a finished row never changes;
 * (3) a trial's result, its last metrics and its outbox rows are one transaction; (4) a new study, a user's change to
 * it and a trial's result are on the disk when the call returns; smaller events (a trial's start, its curve) reach the
 * disk with the next of these or a little later, in order: a power cut may lose the last of them and nothing else;
 * (5) WAL, foreign keys on, schema version in user_version, migrations numbered, a newer file is refused with
 * ST_VERSION. Times are UTC milliseconds, durations seconds. A struct owns the strings returned in it (…_free). */
#pragma once

#include "base/base.h"
#include "base/text/json.h"

struct store; /* a connection; used by one thread at a time */

enum trial_state { TRIAL_QUEUED, TRIAL_RUNNING, TRIAL_DONE, TRIAL_STOPPED, TRIAL_FAILED, TRIAL_LOST, TRIAL_STATES };
const char *trial_state_name(enum trial_state state); /* "queued", ...: the words in the table and in --json */

/* -- open -- */
int64_t store_schema_version(void); /* that this program writes */
/* Creates the file when missing; takes the writer's lock (ST_BUSY names the holder's pid); migrates. In PostgreSQL the
 * lock is that of the one daemon, which serves whatever study no other controller has. */
enum status store_open_writer(struct store **ret_store, const char *path, struct error *err) MUST_USE;
/* The same for the controller of single studies, which in PostgreSQL shares the store with others: it holds the lock of
 * each study that it changes (store_study_hold). */
enum status store_open_controller(struct store **ret_store, const char *path, struct error *err) MUST_USE;
/* ST_IO if missing, ST_NOTFOUND if nothing was ever written to it. Sees what was committed when each call began. */
enum status store_open_reader(struct store **ret_store, const char *path, struct error *err) MUST_USE;
/* The same; blind: damaged tables are not a failure. */
enum status store_open_blind(struct store **ret_store, const char *path, bool blind, struct error *err) MUST_USE;
void store_close(struct store *store); /* NULL is fine */
static inline void store_close_at(struct store **store) /* for AT_END */
{
    store_close(*store);
}
const char *store_path(const struct store *store);
/* Does a process hold the writer's lock of the store at path, or, in PostgreSQL, that of the study of this name (NULL:
 * none)? *ret_pid: its pid on this machine; 0: unknown. */
bool store_is_held(const char *path, const char *study, int64_t *ret_pid);
bool store_has_writer(struct store *store); /* has an open store a controller, of whatever studies? */

/* -- controllers of single studies (postgres/holder.c); a file has one controller, to which these do nothing -- */
/* Takes the lock of the study of this name, if there is one, for as long as the connection of this writer lives, also
 * when it is made again. ST_BUSY names its holder. Held already: fine. *ret_id: for store_study_let_go; 0: nothing. */
enum status store_study_hold(struct store *store, const char *name, int64_t *ret_id, struct error *err) MUST_USE;
void store_study_let_go(struct store *store, int64_t held_id);
bool store_study_is_others(struct store *store, const char *name); /* another controller has it */
struct held_study {
    int64_t id;
    char name[128];
};
/* The studies whose lock a controller holds; or (not held) those that are to run and have none. Of a file: none.
 * mem_free. */
enum status store_studies_held(struct store *store, bool held, struct held_study **ret_studies, size_t *ret_n,
                               struct error *err) MUST_USE;

/* -- stores in PostgreSQL (address.c) -- */
bool store_is_address(const char *path); /* "postgresql://..." or "postgres://..." */
/* Is there something at the path that could be a store? Of an address only opening it shows that: true. */
bool store_may_exist(const char *path);
/* ST_USAGE: an address that cannot be, has a password, or that this build does not know. Files are fine. */
enum status store_address_check(const char *path, struct error *err) MUST_USE;
/* Where what lies beside a store is named from (BASE.checkpoints, BASE.runs, BASE.sock): the file's real path; of an
 * address, a name in ~/.local/share/trawl/ (XDG_DATA_HOME), whose folder is made. buf: (PATH_MAX); returns it, or path
 * itself where that cannot be followed. */
const char *store_beside(const char *path, char *buf);
#define STORE_FREE_S 2.0 /* a lock that was free for this long is not taken again by its last holder */
/* Waits while another controller has the lock of a store in PostgreSQL, or of the study of this name (NULL: of the
 * store), until the lock has been free for STORE_FREE_S or cancel returns true (ST_INTERRUPTED). */
enum status store_stand_by(const char *path, const char *study, bool (*cancel)(void), struct error *err) MUST_USE;
/* The holder of the lock of a store in PostgreSQL or of a study of it: "process 12 on HOST"; "nobody". */
void store_holder(const char *path, const char *study, char *buf, size_t size);
enum status store_postgres_open(struct error *err) MUST_USE; /* libpq, which stores in PostgreSQL open too */
/* Requests to the controller of a study (NULL: to the daemon), from any machine (mail.c). *ret_reached: there is one;
 * ST_NOTFOUND: there is none. answer: mem_free. cancel: the wait ends early (ST_INTERRUPTED). */
enum status store_mail_call(const char *path, const char *study, const char *request, double patience_s,
                            bool (*cancel)(void), char **ret_answer, bool *ret_reached, struct error *err) MUST_USE;
/* For the controller: the oldest request to it, NULL: there is none (a file never has one); and what it answers. */
enum status store_mail_take(struct store *store, int64_t *ret_id, char **ret_request, struct error *err) MUST_USE;
enum status store_mail_answer(struct store *store, int64_t id, const char *answer, struct error *err) MUST_USE;
/* Was the last failure that the database does not answer, rather than a full disk? For store_wait_fn. */
bool store_is_away(const struct store *store);

/* -- the place of a store that is open (place.c) -- */
/* For the writer: do its paths still name its open files? ST_IO: one was removed, moved or replaced (the message names
 * it). ST_BUSY: the lock file was removed and another process has the lock now. *ret_lock_again: the lock file was
 * removed and is made and locked again. */
enum status store_place_check(struct store *store, bool *ret_lock_again, struct error *err) MUST_USE;
/* "NFS", where the file is on a network file system, whose locks and shared memory work on one machine only; else
 * NULL. */
const char *store_network_fs(const char *path);
/* Writes SQLite's own log to the debug log; call it before any store is opened. */
void store_sqlite_log(void);
bool store_sqlite_warned(void); /* has SQLite warned since the last call? "file renamed while open" */
/* After ST_BUSY: every later write fails, since the store belongs to another process. */
void store_let_go(struct store *store);
/* Folds a log that has grown long back into the file, as far as readers allow: second connections write and never
 * fold. The writer calls it at times; after a failure the next call tries again. */
void store_fold(struct store *store);
/* Copies one state of the store into a new file (ST_EXISTS); works while others write, and after the store lost its
 * name. */
enum status store_copy(struct store *store, const char *path, struct error *err) MUST_USE;
/* Copies a store that lost its name, to its old folder, else to a folder with space. *ret_path: mem_free. */
enum status store_rescue(struct store *store, char **ret_path, struct error *err) MUST_USE;

/* -- a full disk -- */
/* Called before a write that met a full disk is tried again; false: the write fails. Called once more, with has_space,
 * when the write has succeeded or has failed for another reason. */
typedef bool store_wait_fn(void *ctx, const char *store_path, bool has_space);
void store_on_full(struct store *store, store_wait_fn *wait, void *ctx); /* wait NULL, the default: no write waits */
/* After a write that ended with rc: shall it be tried again? Only when the disk was full and the owner has waited; err
 * is then empty. */
bool store_wait_for_space(struct store *store, enum status rc, struct error *err) MUST_USE;
/* For a write that must not be lost: rc = write, repeated while the disk is full. */
#define STORE_INSIST(rc, store, err, write)                                                                            \
    do                                                                                                                 \
        (rc) = (write);                                                                                                \
    while (store_wait_for_space(store, rc, err))

/* -- another program's lock -- */
/* Called repeatedly while another program or thread keeps the store locked. Waits shortly each time and must not use
 * the connection, which is in the middle of a call. waited_s: the wait so far. False: the waiting call fails
 * (ST_BUSY). */
typedef bool store_locked_fn(void *ctx, const char *store_path, double waited_s);
void store_on_locked(struct store *store, store_locked_fn *locked,
                     void *ctx); /* locked NULL, the default: a call fails after ten seconds */

/* -- studies -- */
enum study_state {
    STUDY_RUNNING, /* its trials run whenever a controller has the store */
    STUDY_PAUSED, /* by people or an interrupt; continues on a command */
    STUDY_ENDED, /* a stop rule has fired */
    STUDY_STATES
};
const char *study_state_name(enum study_state state); /* "running", "paused", "ended" */

#define STUDY_PRIORITY_MAX 100

/* When a study ends, and its share of the devices. */
struct limits {
    int64_t trials_max; /* 0: no limit */
    double budget_s; /* training seconds over all trials; 0: no limit */
    double wall_max_s; /* time with a controller at work; 0: no limit */
    double device_max_s; /* device seconds over all trials; 0: no limit */
    bool has_target; /* ends when the best config is expected to reach target_score or better */
    double target_score;
    double gain_min; /* ends when the hypervolume grows by less in an hour; 0: off */
    int64_t priority; /* 1 to STUDY_PRIORITY_MAX: its share of the devices against others'; 0 on creating: 1 */
};

struct study {
    int64_t id;
    char *name;
    char *config; /* ini text of the whole resolved config */
    char *space; /* JSON of the search space (study/space/search_json.c) */
    char *method, *metric;
    bool maximize;
    int64_t seed;
    struct limits limits;
    double wall_used_s; /* of limits.wall_max_s, over all controllers */
    double lost_s; /* of limits.budget_s and device_max_s: training that was lost with its worker or controller */
    enum study_state state;
    char *end_rule, *end_text; /* "trials", "target", "user", ...: why paused or ended, and in words; NULL */
    char *program; /* "trawl 0.1.0 (abc1234)" */
    int64_t created_ms;
    char *note, *tags; /* what people wrote: a text, and words as "a,b"; NULL */
    int64_t trashed_ms; /* when it went to the trash; 0: it is not there */
};
void study_free(struct study *study); /* its strings; NULL-safe */
/* study->id and created_ms are filled in. ST_EXISTS when the name is taken. */
enum status store_study_create(struct store *store, struct study *study, struct error *err) MUST_USE;
enum status store_study_find(struct store *store, const char *name, struct study *ret_study,
                             struct error *err) MUST_USE; /* ST_NOTFOUND names the near ones */
/* Writes study->limits except the priority. */
enum status store_study_set_limits(struct store *store, const struct study *study, struct error *err) MUST_USE;
/* rule and text are the reason of a pause or an end (an end needs a rule); a running study has none. */
enum status store_study_set_state(struct store *store, int64_t study_id, enum study_state state, const char *rule,
                                  const char *text, struct error *err) MUST_USE;
/* Another search space, which must contain all trials as the old one does. */
enum status store_study_set_space(struct store *store, int64_t study_id, const char *space, struct error *err) MUST_USE;
enum status store_study_set_priority(struct store *store, int64_t study_id, int64_t priority,
                                     struct error *err) MUST_USE;
/* Adds to wall_used_s and sets lost_s, the training that is lost if the controller ends now. The controller calls it
 * every few seconds: a crash loses seconds of the account. */
enum status store_study_add_wall(struct store *store, int64_t study_id, double seconds, double lost_s,
                                 struct error *err) MUST_USE;
enum status store_study_list(struct store *store, struct study **ret_studies, size_t *ret_n,
                             struct error *err) MUST_USE;
void study_list_free(struct study *studies, size_t n);
/* Out of the trash, if it is there. ST_EXISTS when the name is taken. */
enum status store_study_rename(struct store *store, int64_t study_id, const char *name, struct error *err) MUST_USE;
enum status store_study_remark(struct store *store, int64_t study_id, const char *note, const char *tags,
                               struct error *err) MUST_USE; /* NULL: none */
/* To the trash, under the name "NAME~ID", which gives the name free: store_study_list has it no more. */
enum status store_study_trash(struct store *store, const struct study *study, struct error *err) MUST_USE;
enum status store_trash_list(struct store *store, struct study **ret_studies, size_t *ret_n,
                             struct error *err) MUST_USE; /* the oldest first */
/* Removes a study in the trash (ST_EXISTS: it is not there) with all that is of it. */
enum status store_study_delete(struct store *store, const struct study *study, struct error *err) MUST_USE;

/* -- trials -- */
#define TRIAL_BRANCH "branch" /* origin, with a number: a part of that trial's run, which pays for it */
/* What the models expected of a trial that they proposed, with the standard deviations of one run. */
struct prediction {
    bool known;
    double score, score_sd, log_cost,
        log_cost_sd; /* score in the metric's own direction, cost in the unit of sweep.cost */
};

struct trial {
    int64_t id, study_id, number; /* number: 0-based in its study */
    enum trial_state state;
    char *params; /* JSON object: natural values of the searched parameters */
    char *config; /* ini text of the whole resolved config */
    char *origin; /* "default", "sobol", "ehvi", ..., TRIAL_BRANCH " 12" */
    int64_t seed, attempt;
    char *device; /* NULL until started */
    double score, perf, cost_s, device_s; /* NaN when unknown */
    int64_t env_steps; /* 0 until finished */
    char *reason; /* why failed, stopped, lost; NULL */
    char *slot; /* the sweep's slot that ran it: "cpu/1", "cuda:0/3"; NULL until started */
    char *cost_method; /* method of its cost: "wall", "calibrated"; NULL when unknown */
    char *log_tail; /* last lines of a worker that the trial killed; NULL */
    int64_t deaths; /* workers that died while they ran it */
    int64_t losses; /* workers that were killed or frozen from outside while they ran it */
    double propose_s; /* seconds that finding its values took; NaN when unknown */
    double score_se; /* standard error of score over eval_episodes; NaN: score is not from an evaluation */
    int64_t eval_episodes; /* score and perf are means over these episodes; 0: over the end of training */
    int64_t eval_unfinished; /* evaluation episodes at the step limit, counted with their score so far */
    double eval_s; /* seconds of the evaluation, not part of cost_s; NaN when unknown */
    double start_s; /* seconds before a fresh process' first iteration, not part of cost_s; NaN when unknown */
    char *program; /* the build that ran it; NULL: the study's */
    char *kernels; /* vector units and threads: with config and seed, they determine its bytes; NULL when unknown */
    int64_t created_ms, started_ms, finished_ms; /* 0: not yet */
    char *outcomes; /* JSON object: the metrics at its end that limits and third objective need; NULL: none */
    char *dropped; /* why models and front ignore it; NULL: they do not */
    char *note, *tags; /* what people wrote: a text, and words as "a,b"; NULL */
    struct prediction predicted;
    char *seen; /* JSON: which results its proposal had seen; NULL: it was not proposed */
};
void trial_free(struct trial *trial);

/* Inserts a queued trial; number is the study's next one; fills id, number, created_ms. */
enum status store_trial_create(struct store *store, struct trial *trial, struct error *err) MUST_USE;
/* n of a study in one transaction; n > 0. */
enum status store_trials_create(struct store *store, struct trial *trials, size_t n, struct error *err) MUST_USE;
/* The same as store_trial_create for a trial that continues where another one was after env_steps: with a copy of its
 * curve, the checkpoint at path, and trial->dropped. */
enum status store_trial_extend(struct store *store, struct trial *trial, int64_t from_id, int64_t env_steps,
                               const char *path, struct error *err) MUST_USE;
/* queued or lost -> running, attempt + 1; curve and checkpoints of an earlier attempt are deleted. ST_EXISTS from
 * any other state. slot: NULL is fine. */
enum status store_trial_start(struct store *store, int64_t trial_id, const char *device, const char *slot,
                              struct error *err) MUST_USE;
/* Like store_trial_start, but curve and checkpoint are kept: the trial continues where they end. */
enum status store_trial_resume(struct store *store, int64_t trial_id, const char *device, const char *slot,
                               struct error *err) MUST_USE;
/* Deletes curve and checkpoints of a running trial, which starts again from its beginning. */
enum status store_trial_clear(struct store *store, int64_t trial_id, struct error *err) MUST_USE;
/* The config of a queued trial, completed before its start by values that depend on the device. */
enum status store_trial_set_config(struct store *store, int64_t trial_id, const char *config,
                                   struct error *err) MUST_USE;
/* The reason why a trial goes back into the queue: it was stopped, its worker died (deaths), or its worker was killed
 * or frozen from outside (losses). */
enum trial_requeue { REQUEUE_STOPPED, REQUEUE_DIED, REQUEUE_LOST };
/* running -> queued again. ST_EXISTS from any other state. */
enum status store_trial_requeue(struct store *store, int64_t trial_id, enum trial_requeue why,
                                struct error *err) MUST_USE;

struct metric_point {
    int64_t env_steps;
    double wall_s;
    const char *name;
    double value; /* NaN and Inf are kept */
};
/* The points of a report, and their outbox row. The same name and env_steps again replaces the point. */
struct metric_report {
    int64_t trial_id;
    const struct metric_point *points; /* (n) */
    size_t n;
    const char *outbox_json; /* NULL: none */
};
/* Several reports in one transaction: all or none. ST_EXISTS when a trial is not running (a stale report). */
enum status store_reports_add(struct store *store, const struct metric_report *reports, size_t n,
                              struct error *err) MUST_USE;

struct trial_result {
    enum trial_state state; /* done, stopped, failed or lost */
    double score, perf, cost_s, device_s;
    int64_t env_steps;
    const char *reason; /* NULL when done */
    const char *checkpoint_path; /* NULL: none */
    const char *cost_method, *log_tail; /* NULL: none */
    int64_t eval_episodes; /* 0: score is from the end of training, and score_se and eval_s are unknown */
    int64_t eval_unfinished;
    double score_se, eval_s;
    double start_s; /* 0: unknown */
    const char *program, *kernels; /* NULL: unknown */
    const char *outcomes; /* JSON object; NULL: none */
    bool lacks_outcome; /* not stored: it failed for want of one that its study needs */
    const char *device; /* NULL: the device of its start */
    const struct metric_point *points; /* last points of the learning curve, in the same transaction; may be NULL */
    size_t n_points;
};
struct trial_end {
    int64_t trial_id;
    const struct trial_result *result;
    const char *outbox_json; /* NULL: no row for the trackers */
};
/* Ends running (or queued) trials, all or none: the disk is waited for once. A second finish of the same trial is
 * accepted (and writes nothing) when equal and ST_EXISTS otherwise. A done trial needs a finite score: ST_NUMERIC if not
 * (record it as failed, with a reason). */
enum status store_trials_finish(struct store *store, const struct trial_end *ends, size_t n,
                                struct error *err) MUST_USE;
/* Start-up recovery by the writer: running -> queued again (requeue) or lost, except for trials that a client has
 * leased. *ret_n: number of such trials. */
enum status store_trials_recover(struct store *store, int64_t study_id, bool requeue, int64_t *ret_n,
                                 struct error *err) MUST_USE;
enum status store_trial_list(struct store *store, int64_t study_id, struct trial **ret_trials, size_t *ret_n,
                             struct error *err) MUST_USE;
enum status store_trial_find(struct store *store, int64_t study_id, int64_t number, struct trial *ret_trial,
                             struct error *err) MUST_USE;
void trial_list_free(struct trial *trials, size_t n);

/* What people wrote of a trial (mark.c), which may be final. */
struct trial_mark {
    int64_t number;
    char *dropped, *note, *tags; /* as in struct trial; owned */
};
/* Sets all three. */
enum status store_trial_mark(struct store *store, int64_t trial_id, const char *dropped, const char *note,
                             const char *tags, struct error *err) MUST_USE;
/* Of all trials that ever had one, by number. */
enum status store_mark_list(struct store *store, int64_t study_id, struct trial_mark **ret_marks, size_t *ret_n,
                            struct error *err) MUST_USE;
void mark_list_free(struct trial_mark *marks, size_t n);

/* -- leases (lease.c): a client's right to one attempt of a trial, which it trains elsewhere -- */
enum lease_state {
    LEASE_OPEN, /* its trial is running */
    LEASE_REPORTED, /* what its client reported is the trial's result */
    LEASE_EXPIRED, /* its client was silent for too long */
    LEASE_RETURNED, /* its trial went back into the queue: given back by its client, or recalled by people */
    LEASE_STATES
};
const char *lease_state_name(enum lease_state state); /* "open", ... */

#define LEASE_TOKEN_MAX 160
#define LEASE_CLIENT_MAX 128
#define LEASES_OF_TRIAL 2 /* that may expire, after which the trial is lost */
#define LEASE_LOST_REASON "two clients had it, one after the other, and fell silent"
struct lease {
    int64_t id, trial_id, attempt;
    int64_t study_id, number; /* of its trial */
    enum lease_state state;
    char client[LEASE_CLIENT_MAX], token[LEASE_TOKEN_MAX];
    int64_t given_ms, until_ms, ended_ms; /* ended_ms 0: open */
    int64_t seq; /* of its client's last report; -1: none */
    /* JSON, owned; NULL: none. What its client reported, too late unless the state is LEASE_REPORTED; and the branches
     * that a node's attempt has had so far. */
    char *result, *branches;
};
void lease_free(struct lease *lease); /* what it owns; NULL-safe */
void lease_list_free(struct lease *leases, size_t n);
/* queued -> running, and a lease of trial_id for client under token until until_ms; the rest is filled in. ST_EXISTS
 * when the trial is not queued. On the disk when it returns: a result must find its lease. */
enum status store_lease_give(struct store *store, struct lease *lease, struct error *err) MUST_USE;
enum status store_lease_find(struct store *store, const char *token, struct lease *ret_lease,
                             struct error *err) MUST_USE; /* ST_NOTFOUND */
/* The open ones of a study by trial number, or all of one trial, the oldest first. */
enum status store_lease_list_open(struct store *store, int64_t study_id, struct lease **ret_leases, size_t *ret_n,
                                  struct error *err) MUST_USE;
enum status store_lease_list(struct store *store, int64_t trial_id, struct lease **ret_leases, size_t *ret_n,
                             struct error *err) MUST_USE;
/* Of an open lease (ST_EXISTS): its end, the number of the report (the larger one stays), and the report itself (NULL:
 * none). */
enum status store_lease_extend(struct store *store, int64_t lease_id, int64_t until_ms, int64_t seq,
                               const struct metric_report *report, struct error *err) MUST_USE;
/* open -> reported, and the trial's result (store_trials_finish), in one transaction. ST_EXISTS when it is not open. */
enum status store_lease_finish(struct store *store, int64_t lease_id, const struct trial_result *result,
                               const char *result_json, const char *outbox_json, struct error *err) MUST_USE;
/* What came of an expired or returned lease: kept, and not the trial's result. ST_EXISTS: there is one already. */
enum status store_lease_finish_late(struct store *store, int64_t lease_id, const char *result_json,
                                    struct error *err) MUST_USE;
/* The branches that a node's attempt has had so far, [{...}, ...]; they stay if it ends without a result. ST_EXISTS: it
 * has its result. */
enum status store_lease_put_branches(struct store *store, int64_t lease_id, const char *branches_json,
                                     struct error *err) MUST_USE;
/* open -> expired or returned; its trial is queued again, or lost when LEASES_OF_TRIAL of its leases have expired. */
enum status store_lease_end(struct store *store, int64_t lease_id, enum lease_state state,
                            enum trial_state *ret_trial_state, struct error *err) MUST_USE;
/* A trial that was trained elsewhere: inserted (as store_trial_create does) with its result and a lease in the state
 * reported, whose token is key, in one transaction. ST_EXISTS when there is a lease of that token. */
enum status store_trial_add(struct store *store, struct trial *trial, const struct trial_result *result,
                            const char *client, const char *key, const char *result_json, const char *outbox_json,
                            struct error *err) MUST_USE;

/* -- nodes (claim.c): programs that take trials of the store by themselves, and report into it -- */
/* The token of a node's lease begins so. Such a lease ends by the database's clock, whoever looks, and not by its
 * controller's. */
#define NODE_TOKEN "node-"
#define NODE_SILENT_S 20 /* a node that has not reported for this long is taken for gone */
bool lease_is_of_node(const struct lease *lease);
#define NODE_MEETS_MAX 320
struct node {
    char name[LEASE_CLIENT_MAX], host[80], device[256];
    char job[64]; /* of the batch system that started it; "": none */
    char meets[NODE_MEETS_MAX]; /* HOST:PORT/SECRET: where other hosts join its trainings; "": nowhere */
    int64_t slots; /* trials that it can train at a time */
    int64_t started_ms, beat_ms; /* by the database's clock; beat_ms: its last sign of life */
    double silent_s; /* since then */
    int64_t n_running, n_done; /* trials of one study that it has, and whose result it reported */
};
/* A sign of life of the node of this name; times are filled in. */
enum status store_node_beat(struct store *store, struct node *node, struct error *err) MUST_USE;
enum status store_node_forget(struct store *store, const char *name, struct error *err) MUST_USE;
/* Those that are not silent, by name; mem_free. With a study (0: none): all that reported within a day, and what they
 * did for it. */
enum status store_node_list(struct store *store, int64_t study_id, struct node **ret_nodes, size_t *ret_n,
                            struct error *err) MUST_USE;
/* The first queued trial of the study, enqueued ones first, for lease->client under lease->token, which must begin with
 * NODE_TOKEN: as store_lease_give, until lease_ms from now; curve and checkpoints of an earlier attempt stay. No other
 * claim gets the same one, none waits for another. ST_NOTFOUND: no trial is queued. */
enum status store_lease_claim(struct store *store, int64_t study_id, int64_t lease_ms, struct lease *lease,
                              struct error *err) MUST_USE;
/* As store_lease_extend, until lease_ms from now. stop: (ERROR_TEXT_MAX) why the study asks to end the trial; "". */
enum status store_lease_keep(struct store *store, int64_t lease_id, int64_t lease_ms,
                             const struct metric_report *report, char *stop, struct error *err) MUST_USE;
/* As store_trial_set_config, by the node that has the trial. */
enum status store_lease_set_config(struct store *store, const struct lease *lease, const char *config,
                                   struct error *err) MUST_USE;
enum status store_lease_ask_stop(struct store *store, int64_t lease_id, const char *why, struct error *err) MUST_USE;
/* Ends the leases of nodes that have not been kept; *ret_n: how many. None for NODE_SILENT_S after the database, the
 * machine or this program stood still between two calls: nodes that are alive could not report, and do so first. */
enum status store_leases_expire(struct store *store, int64_t *ret_n, struct error *err) MUST_USE;
void store_leases_spare(struct store *store); /* the same, for a connection that replaces a lost one */
/* The trials of a study that have not ended, by number (mem_free). */
struct trial_head {
    int64_t number, attempt;
    bool running;
};
enum status store_trial_heads(struct store *store, int64_t study_id, struct trial_head **ret_heads, size_t *ret_n,
                              struct error *err) MUST_USE;

/* Learning curve of one metric, by env_steps. */
struct curve_point {
    int64_t env_steps;
    double wall_s, value;
};
enum status store_curve(struct store *store, int64_t trial_id, const char *name, struct curve_point **ret_points,
                        size_t *ret_n, struct error *err) MUST_USE;
/* Replaces earlier checkpoints of the trial. */
enum status store_checkpoint_add(struct store *store, int64_t trial_id, int64_t env_steps, const char *path,
                                 struct error *err) MUST_USE;
enum status store_checkpoint_forget(struct store *store, int64_t trial_id, struct error *err) MUST_USE;
enum status store_checkpoint_path(struct store *store, int64_t trial_id, char **ret_path,
                                  struct error *err) MUST_USE; /* NULL: none */

/* -- counts for ls -- */
struct study_counts {
    int64_t n[TRIAL_STATES];
    double best_score; /* by the study's direction; NaN */
    int64_t branches; /* of all of them: parts of other trials' runs (study/space/branches.h) */
    double cost_s; /* sum over finished trials that are not branches */
};
enum status store_study_counts(struct store *store, const struct study *study, struct study_counts *ret_counts,
                               struct error *err) MUST_USE;

/* -- trackers: the outbox and each tracker's position in it; payloads: web/track/track.h -- */

/* A second writing connection of the process that holds the writer's lock, for another thread; its transactions are
 * small, since the first connection waits for them. */
enum status store_open_second(struct store **ret_store, const char *path, struct error *err) MUST_USE;

/* Adds a row, in its own transaction; trial_id 0: a row about the study. */
enum status store_outbox_add(struct store *store, int64_t study_id, int64_t trial_id, const char *json,
                             struct error *err) MUST_USE;
struct outbox_row {
    int64_t id, created_ms;
    char *payload; /* owned by the list */
};
struct outbox_list {
    struct outbox_row *rows; /* (n) */
    size_t n;
    size_t bytes; /* sum of the payloads */
};
void outbox_list_free(struct outbox_list *list); /* NULL-safe, zeroed after */
/* Rows of one run with after_id < id <= to_id, oldest first, at most rows_max and (after the first row) bytes_max. */
enum status store_outbox_read(struct store *store, int64_t study_id, int64_t trial_id, int64_t after_id, int64_t to_id,
                              size_t rows_max, size_t bytes_max, struct outbox_list *ret_list,
                              struct error *err) MUST_USE;
/* Runs that have rows with id > after_id, by their first such row; ret_last_id: the newest of all (after_id if
 * none). */
struct outbox_run {
    int64_t trial_id, number; /* 0 and -1: the study */
    int64_t first_id, last_id;
};
enum status store_outbox_runs(struct store *store, int64_t study_id, int64_t after_id, struct outbox_run **ret_runs,
                              size_t *ret_n, int64_t *ret_last_id, struct error *err) MUST_USE; /* mem_free */

/* The study's trackers; key: names its runs in all trackers, made once at random ("k3j9x0ab"). */
#define TRACKER_KEY_MAX 16
enum status store_tracker_register(struct store *store, int64_t study_id, const char *tracker,
                                   char ret_key[TRACKER_KEY_MAX], struct error *err) MUST_USE;
/* Removes a tracker of the study with its positions: rows no longer wait for it. ST_NOTFOUND. */
enum status store_tracker_forget(struct store *store, int64_t study_id, const char *tracker,
                                 struct error *err) MUST_USE;
/* Names in order of registration; the caller frees them with store_names_free. */
enum status store_tracker_names(struct store *store, int64_t study_id, char ***ret_names, size_t *ret_n,
                                struct error *err) MUST_USE;
void store_names_free(char **names, size_t n); /* the list and its texts */

/* The position of one tracker in one run. */
struct tracker_position {
    int64_t acked_id; /* rows up to here are acknowledged */
    int64_t claimed_id; /* rows up to here were sent at least once: a resend ends there too; >= acked_id */
    int64_t thin_ms; /* thinning of the claimed rows */
    int64_t last_step; /* env_steps of the last metrics row sent; -1: none */
    int64_t sent_rows; /* rows sent so far, without thinned ones */
    bool ended; /* the result was sent */
    char *state; /* JSON object of the tracker; owned; never NULL after store_tracker_position */
    char *refused; /* reason why this run gets no more rows; NULL: it gets them; owned */
};
void tracker_position_free(struct tracker_position *position);
/* Zeros, "{}" and last_step -1 when the run has no position yet. */
enum status store_tracker_position(struct store *store, int64_t study_id, const char *tracker, int64_t trial_id,
                                   struct tracker_position *ret_position, struct error *err) MUST_USE;
/* In one transaction: sets the position, and removes the run's rows that all trackers of the study have. */
enum status store_tracker_commit(struct store *store, int64_t study_id, const char *tracker, int64_t trial_id,
                                 const struct tracker_position *position, struct error *err) MUST_USE;
/* The number of rows that the tracker has not acknowledged (NULL: of all rows in the outbox). */
enum status store_outbox_count(struct store *store, int64_t study_id, const char *tracker, int64_t *ret_n,
                               struct error *err) MUST_USE;

/* -- watching: for readers that stay open while a sweep runs (watch.c) -- */

/* Is the file of this reader still the one at its path, and an SQLite file? ST_IO: it, its log or the log's shared
 * memory was removed or replaced, or a store that was opened as it stood is written now; ST_CORRUPT: it begins like no
 * SQLite file. The first call notes the files. */
enum status store_reader_check(struct store *store, struct error *err) MUST_USE;
/* Rises whenever another connection has committed since this one looked. */
enum status store_data_version(struct store *store, int64_t *ret_version, struct error *err) MUST_USE;
/* Hints that another connection has written something, so that a reader need not ask often. They may be lost, and a
 * file has none: whoever waits for one also looks at times without it. */
enum store_hint {
    STORE_HINT_TRIALS, /* a trial was queued */
    STORE_HINT_RESULTS, /* a lease was given or has ended */
    STORE_HINT_MAIL, /* a request to the controller */
    STORE_HINT_ANSWERS, /* the controller has answered one */
    STORE_HINTS
};
/* From now on, until store_unlisten, also on connections that are made again. */
enum status store_listen(struct store *store, enum store_hint hint, struct error *err) MUST_USE;
void store_unlisten(struct store *store); /* to any of them: each NOTIFY wakes every connection that listens */
int store_hint_fd(const struct store *store); /* to poll for reading; -1: there is none now */
bool store_hint_take(struct store *store, enum store_hint hint); /* did it come since the last call? */
/* Waits for it; false: the time is over, or a signal came. A file has none: it waits for the time. */
bool store_hint_wait(struct store *store, enum store_hint hint, double seconds);
/* Trials from number `from` on, without config and log_tail (NULL). */
enum status store_trial_list_from(struct store *store, int64_t study_id, int64_t from, struct trial **ret_trials,
                                  size_t *ret_n, struct error *err) MUST_USE;
/* The last point of a metric's curve; *ret_found is false for an empty curve. */
enum status store_metric_last(struct store *store, int64_t trial_id, const char *name, struct curve_point *ret_point,
                              bool *ret_found, struct error *err) MUST_USE;
/* Names of all curves of a trial, sorted; the caller frees them with store_names_free. */
enum status store_metric_names(struct store *store, int64_t trial_id, char ***ret_names, size_t *ret_n,
                               struct error *err) MUST_USE;

/* -- SQLite files of other programs (script.c) -- */
/* Writes a new one by a text in SQL, with n numbers as the values of its n parameters '?', in their order; ST_EXISTS
 * when there is a file. */
enum status store_write_script(const char *path, const char *sql, const double *numbers, size_t n,
                               struct error *err) MUST_USE;
/* The rows that one query finds, as an array of objects by column (numbers, texts, null); the file is not changed. The
 * caller deletes it. id: the value of ?1, where the query has one. ST_CORRUPT: no such table or column. */
enum status store_read_rows(const char *path, const char *sql, int64_t id, cJSON **ret_rows,
                            struct error *err) MUST_USE;

/* -- checking (verify.c): a whole store against SQLite's own checks and the checksums of rows and curves -- */
struct store_tally {
    int64_t n, n_unchecked; /* n_unchecked: without a checksum, from an older version */
};
struct store_verdict {
    struct store_tally studies, trials, curves, leases, outbox;
    int64_t points;
    int64_t n_damaged; /* faults reported */
};
typedef void store_report_fn(void *ctx, const char *text); /* one finding of damage; text is borrowed */
/* ST_OK also when the store is damaged; another status: it could not be checked. */
enum status store_verify(const char *path, struct store_verdict *ret_verdict, store_report_fn *report, void *ctx,
                         struct error *err) MUST_USE;
/* -- migrate.c -- */
#define STORE_TABLES 11
struct store_copied {
    struct {
        const char *name; /* a literal */
        struct store_tally rows; /* n_unchecked: those whose texts had bytes that are not UTF-8, which became "?" */
        uint64_t sum; /* of the rows' CRC-32s */
    } tables[STORE_TABLES];
};
/* All of a store into an empty one (ST_EXISTS), between files and PostgreSQL in any direction; rows are read again and
 * compared before anything is committed. ST_BUSY: one of them has a controller. */
enum status store_migrate(const char *from_path, const char *to_path, struct store_copied *ret,
                          struct error *err) MUST_USE;

/* PRAGMA integrity_check and foreign_key_check. */
enum status store_check(struct store *store, struct error *err) MUST_USE;
