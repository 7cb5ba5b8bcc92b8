/* store_priv.h - shared by the files of store/: the connection, its cached statements, SQLite's failures as statuses.
 *
 * Small helpers bind and read values: NULL text and NaN (kept as NULL) mean the same everywhere. */
#pragma once

#include "store/store.h"

#include <sys/types.h>

#include "store/db.h"

#define STORE_APP_ID 0x54524157 /* "TRAW" in PRAGMA application_id: marks a store among SQLite files */
#define STORE_BUSY_MS 10000
#define STORE_LOG_MAX_BYTES 1048576 /* the log is cut to this size when it starts again from its beginning */

/* One cached statement per connection for each; texts in sql.c. */
enum store_sql {
    SQL_BEGIN,
    SQL_BEGIN_READ,
    SQL_COMMIT,
    SQL_STUDY_INSERT,
    SQL_STUDY_FIND,
    SQL_STUDY_LIST,
    SQL_STUDY_TRASH_LIST,
    SQL_STUDY_NAMES,
    SQL_STUDY_NAME,
    SQL_STUDY_LIMITS,
    SQL_STUDY_STATE,
    SQL_STUDY_SPACE,
    SQL_STUDY_PRIORITY,
    SQL_STUDY_RENAME,
    SQL_STUDY_REMARK,
    SQL_STUDY_DELETE,
    SQL_STUDY_WALL,
    SQL_STUDY_ROW,
    SQL_STUDY_LOCK,
    SQL_STUDY_SEAL,
    SQL_TRIAL_INSERT,
    SQL_TRIAL_START,
    SQL_TRIAL_FINISH,
    SQL_TRIAL_CONFIG,
    SQL_TRIAL_REQUEUE_ONE,
    SQL_TRIAL_ROW,
    SQL_TRIAL_SEAL,
    SQL_TRIAL_IN_STATE,
    SQL_TRIAL_LOSE,
    SQL_TRIAL_LIST,
    SQL_TRIAL_LIST_FROM,
    SQL_TRIAL_FIND,
    SQL_TRIAL_BY_ID,
    SQL_TRIAL_STATE,
    SQL_MARK_ROW,
    SQL_MARK_SEAL,
    SQL_MARK_SET,
    SQL_MARK_LIST,
    SQL_LEASE_INSERT,
    SQL_LEASE_ROW,
    SQL_LEASE_SEAL,
    SQL_LEASE_BY_TOKEN,
    SQL_LEASE_OPEN,
    SQL_LEASE_OF_TRIAL,
    SQL_LEASE_EXTEND,
    SQL_LEASE_FINISH,
    SQL_LEASE_LATE,
    SQL_LEASE_BRANCHES,
    SQL_LEASE_END,
    SQL_LEASE_EXPIRED,
    SQL_LEASE_KEEP,
    SQL_LEASE_CONFIG,
    SQL_LEASE_STOP,
    SQL_LEASE_STOP_TEXT,
    SQL_LEASE_SILENT,
    SQL_LEASE_EXPIRE,
    SQL_NOW,
    SQL_NODE_SET,
    SQL_NODE_LIST,
    SQL_NODE_TRIALS,
    SQL_NODE_DELETE,
    SQL_NODE_TRIM,
    SQL_TRIAL_QUEUED,
    SQL_TRIAL_HEADS,
    SQL_METRIC_NAME_INSERT,
    SQL_METRIC_NAME_FIND,
    SQL_METRIC_INSERT,
    SQL_METRIC_DELETE,
    SQL_METRIC_ALL,
    SQL_METRIC_COPY,
    SQL_METRIC_AT,
    SQL_SUMS_FIND,
    SQL_SUMS_SET,
    SQL_SUMS_DELETE,
    SQL_METRIC_CURVE,
    SQL_METRIC_LAST,
    SQL_METRIC_NAMES,
    SQL_DATA_VERSION,
    SQL_CHECKPOINT_INSERT,
    SQL_CHECKPOINT_FIND,
    SQL_CHECKPOINT_DELETE,
    SQL_OUTBOX_INSERT,
    SQL_OUTBOX_SEAL,
    SQL_OUTBOX_READ,
    SQL_OUTBOX_RUNS,
    SQL_OUTBOX_COUNT,
    SQL_OUTBOX_COUNT_OF,
    SQL_OUTBOX_TRIM,
    SQL_OUTBOX_TRIM_ALL,
    SQL_TRACKER_FIND,
    SQL_TRACKER_LIST,
    SQL_TRACKER_INSERT,
    SQL_TRACKER_DELETE,
    SQL_POSITION_FIND,
    SQL_POSITION_SET,
    SQL_COUNT
};

struct store_name {
    char *name;
    int64_t id;
};

/* The identity of a file that the connection has open; ino 0: not seen yet. */
struct store_mark {
    dev_t dev;
    ino_t ino;
};

/* The checksum of one learning curve: checksum.c. */
struct curve_sum {
    int64_t name_id, n; /* points */
    uint64_t sum; /* of their CRC-32s */
    int64_t last_steps; /* env_steps of the last point */
    uint32_t last_crc;
};
struct store_sums {
    struct curve_sum *v; /* (n) the curves of one trial */
    size_t n, cap, next; /* next: after the entry that was found last */
};

struct store {
    sqlite3 *db; /* NULL: the store is in PostgreSQL */
    struct pg *pg; /* NULL: the store is a file of SQLite */
    char *path; /* as given, for messages */
    char *file; /* without symbolic links, for SQLite */
    char *lock_path; /* the file's */
    int lock_fd; /* writer only, else -1; holds the flock */
    int guard_fd; /* writer only, else -1; a socket whose name no second writer can bind (lock.c) */
    bool writer;
    bool second; /* a writer without the lock of the whole store */
    bool controls; /* it holds locks of studies, or may */
    bool blind; /* opened to list damage: opening checks nothing */
    bool taken; /* another process has the store: no more writes */
    bool folds; /* the one connection that folds the log back (checkpoints) */
    struct timespec written; /* time of the file's last change by this process: only folding changes it */
    off_t size; /* the file's size then */
    bool touched; /* another process has changed the file; nothing is folded until the file was checked */
    bool overwritten; /* the path names another store now */
    struct store_mark marks[3]; /* the file, its log and the log's shared memory; a reader's: store_reader_check */
    bool immutable; /* reader of a file that no process may write */
    bool full; /* the last failure was a full disk */
    bool away; /* the last failure was the database's: it does not answer, or broke the transaction off */
    bool given_up; /* the owner no longer waits for the database */
    store_wait_fn *wait; /* NULL: a full disk is a failure at once */
    void *wait_ctx;
    bool waited; /* the owner has waited, and the write is tried again */
    store_locked_fn *locked; /* NULL: a call waits STORE_BUSY_MS for a lock */
    void *locked_ctx;
    double locked_s; /* when the present wait for a lock began, by the monotonic clock */
    double looked_s; /* the opening, or the last look at silent nodes (clock_boot_s); 0: a trial was claimed since */
    double spared_s; /* until then none of them loses its trial */
    double sparing_s; /* of looks since one that spared none: the gaps between them, STOOD_STILL_S of each at most */
    bool synced; /* the open transaction's commit waits for the disk */
    struct db_stmt stmts[SQL_COUNT]; /* prepared at first use */
    struct store_name *names; /* (n_names) metrics' names, as the table has them; emptied by a rollback */
    struct store_sums sums; /* checksums of the trial that is being written or checked */
    size_t n_names, cap_names, next_name; /* next_name: after the name that was found last */
};

/* -- sql.c -- */
/* The failure rc of doing `what` ("adding a trial") as a status with path, cause and what to do. */
enum status store_sql_fail(struct store *store, int rc, const char *what, struct error *err);
/* The statement with its values, before its first step; borrowed. */
enum status store_sql(struct store *store, enum store_sql id, struct db_values values, struct db_stmt **ret_stmt,
                      struct error *err) MUST_USE;
/* The same at its first row, if there is one; the caller resets it. */
enum status store_sql_row(struct store *store, enum store_sql id, struct db_values values, const char *what,
                          struct db_stmt **ret_stmt, bool *ret_there, struct error *err) MUST_USE;
/* The first column of the first row; 0: there is none. ST_EXISTS of an INSERT ... RETURNING id: a row of that name,
 * number or token is there. */
enum status store_sql_i64(struct store *store, enum store_sql id, struct db_values values, const char *what,
                          int64_t *ret_value, struct error *err) MUST_USE;
/* Runs a statement that gives no row; *ret_n: the number of rows that it has changed. */
enum status store_sql_change(struct store *store, enum store_sql id, struct db_values values, const char *what,
                             int64_t *ret_n, struct error *err) MUST_USE;
enum status store_sql_run(struct store *store, enum store_sql id, struct db_values values, const char *what,
                          struct error *err) MUST_USE;
/* Runs a statement of the open transaction whose result does not matter: PostgreSQL need not have done it when this
 * returns, and may report its failure from a later call of the transaction. */
enum status store_sql_queue(struct store *store, enum store_sql id, struct db_values values, const char *what,
                            struct error *err) MUST_USE;
enum status store_sql_queue_stmt(struct store *store, struct db_stmt *stmt, const char *what,
                                 struct error *err) MUST_USE;
/* The same for a text of the caller's, who finalizes it, also after a failure. */
enum status store_sql_prepare(struct store *store, const char *sql, struct db_stmt *ret_stmt,
                              struct error *err) MUST_USE;
void store_sql_finalize(struct db_stmt *stmt);
/* DB_ROW or DB_DONE in *ret_step; after a failure the statement is reset. */
enum status store_sql_step(struct store *store, struct db_stmt *stmt, int *ret_step, const char *what,
                           struct error *err) MUST_USE;
/* The next row of a statement: while (store_sql_next(...)) rc = <read the row>. rc: ST_OK before the first one; another
 * status ends the rows. The statement is reset when it returns false. */
bool store_sql_next(struct store *store, struct db_stmt *stmt, const char *what, enum status *rc, struct error *err);
enum status store_exec(struct store *store, const char *sql, const char *what, struct error *err) MUST_USE;
enum status store_begin(struct store *store, const char *what, struct error *err) MUST_USE; /* readers: ST_INTERNAL */
/* The same for what may be lost without harm, like points of a curve: where the server is killed, the last of these
 * commits are. The controller lives on, so that other commits of PostgreSQL wait for the disk. */
enum status store_begin_late(struct store *store, const char *what, struct error *err) MUST_USE;
/* The same; its commit waits for the disk once, and that and all earlier commits outlive a power cut. */
enum status store_begin_synced(struct store *store, const char *what, struct error *err) MUST_USE;
/* Commits when rc is ST_OK, rolls back when not or when the commit fails; returns the first failure. */
enum status store_end(struct store *store, enum status rc, const char *what, struct error *err) MUST_USE;

/* One state of the store for several statements; *ret_begun: no transaction was open already. */
enum status store_read_begin(struct store *store, bool *ret_begun, struct error *err) MUST_USE;
enum status store_read_end(struct store *store, bool begun, enum status rc) MUST_USE; /* rc, whatever it is */

char *db_copy_text(struct db_stmt *stmt, int at) MUST_USE; /* owned copy; NULL: NULL */

/* -- watch.c -- */
void store_hint(struct store *store, enum store_hint hint); /* goes out with the commit of the open transaction */

/* -- checksum.c -- */
enum store_soundness { STORE_SOUND, STORE_UNCHECKED, STORE_DAMAGED };
/* Checks the statement's row, which ends with all columns of its table ("TABLE.*"). */
enum store_soundness store_row_sound(struct db_stmt *stmt);
uint32_t store_row_crc(struct db_stmt *stmt); /* of all columns of a row */
/* ST_CORRUPT with a message that names `what` ("trial 7 of study 'a'"). */
enum status store_damaged(struct store *store, const char *what, struct error *err);
/* row: SQL_STUDY_ROW, SQL_TRIAL_ROW, SQL_MARK_ROW or SQL_LEASE_ROW. Check before a change of the row and seal after it,
 * in one transaction. */
enum status store_row_check(struct store *store, enum store_sql row, int64_t id, struct error *err) MUST_USE;
enum status store_row_seal(struct store *store, enum store_sql row, int64_t id, struct error *err) MUST_USE;
int64_t store_outbox_sum(int64_t id, int64_t study_id, int64_t trial_id, int64_t created_ms, const char *payload);
uint32_t store_point_sum(int64_t env_steps, double wall_s, double value);
struct curve_sum *store_sums_find(struct store_sums *sums, int64_t name_id); /* NULL: no entry */
struct curve_sum *store_sums_get(struct store_sums *sums, int64_t name_id); /* adds an entry when there is none */
void store_sum_add(struct curve_sum *sum, int64_t env_steps, uint32_t crc);
/* Sums of the points in the table. */
enum status store_sums_scan(struct store *store, int64_t trial_id, struct store_sums *sums, struct error *err) MUST_USE;
/* Sums as they were written; *ret_there: false, the trial was written by a version without them. */
enum status store_sums_read(struct store *store, int64_t trial_id, struct store_sums *sums, bool *ret_there,
                            struct error *err) MUST_USE;
enum status store_sums_write(struct store *store, int64_t trial_id, const struct store_sums *sums,
                             struct error *err) MUST_USE;

/* -- schema.c -- */
/* New file: all migrations. Older: the missing ones. Newer: ST_VERSION. Not ours: ST_CORRUPT. Readers only check. */
enum status store_schema_open(struct store *store, struct error *err) MUST_USE;

/* -- migrate.c -- */
/* Both are open; to for writing. */
enum status store_copy_rows(struct store *from, struct store *to, struct store_copied *ret, struct error *err) MUST_USE;

/* -- open.c -- */

/* -- lock.c -- */
/* The path without symbolic links, also of a file that does not exist yet: every name of a store has the same lock.
 * Returns path itself where it cannot be followed. buf: (PATH_MAX). */
const char *store_real_path(const char *path, char *buf);
enum status store_lock_take(struct store *store, struct error *err) MUST_USE;
bool store_file_is_held(const char *path, int64_t *ret_pid); /* store_is_held, of a file */
/* Is the lock file still the one at its path? A removed lock file is made and locked again (*ret_again); ST_BUSY:
 * another process was faster. */
enum status store_lock_keep(struct store *store, bool *ret_again, struct error *err) MUST_USE;
void store_lock_drop(struct store *store); /* no lock is fine */

/* -- place.c -- */
enum status store_place_mark(struct store *store, struct error *err) MUST_USE; /* notes the files that are open now */
void store_place_close(struct store *store); /* closes the connection; an overwritten file stays as it is */
/* Folds the log back, unless another process has changed the file. Never fails: the next commit tries again. */
void store_fold_now(struct store *store);

/* -- metric.c: parts of a transaction that the caller opened -- */
/* Of one running trial (ST_EXISTS), with its outbox row. */
enum status store_report_part(struct store *store, const struct metric_report *report, struct error *err) MUST_USE;
/* Reads store->sums for store_metric_insert, and writes them. */
enum status store_metric_open(struct store *store, int64_t trial_id, struct error *err) MUST_USE;
enum status store_metric_close(struct store *store, int64_t trial_id, struct error *err) MUST_USE;
enum status store_metric_insert(struct store *store, int64_t trial_id, const struct metric_point *points, size_t n,
                                struct error *err) MUST_USE;
enum status store_outbox_insert(struct store *store, int64_t study_id, int64_t trial_id, const char *json,
                                struct error *err) MUST_USE;
enum status store_checkpoint_insert(struct store *store, int64_t trial_id, int64_t env_steps, const char *path,
                                    struct error *err) MUST_USE;
void store_names_clear(struct store *store);
/* The checksum that a curve must have, zeros for an empty one; *ret_known: false, the trial has no checksums. */
enum status store_curve_expected(struct store *store, int64_t trial_id, const char *name, bool *ret_known,
                                 struct curve_sum *ret_sum, struct error *err) MUST_USE;
enum status store_curve_damaged(struct store *store, int64_t trial_id, const char *name,
                                struct error *err); /* ST_CORRUPT */
/* Deletes curves and checkpoints of an earlier attempt. */
enum status store_attempt_clear(struct store *store, int64_t trial_id, struct error *err) MUST_USE;

/* -- trial.c -- */
/* Is a row of TRIAL_COLUMNS (light or not) and "trial.*" sound, and the requested one? ST_CORRUPT names it. */
enum status store_trial_row_check(struct store *store, struct db_stmt *stmt, int64_t study_id, int64_t number,
                                  enum trial_state *ret_state, struct error *err) MUST_USE;

/* Parts of a transaction that the caller opened. */
/* Within a transaction: a new trial gets the curve of another one up to env_steps; what people wrote of a trial. */
enum status store_metric_copy(struct store *store, int64_t from_id, int64_t to_id, int64_t env_steps,
                              struct error *err) MUST_USE;
enum status store_mark_part(struct store *store, int64_t trial_id, const char *dropped, const char *note,
                            const char *tags, struct error *err) MUST_USE;
enum status store_trial_create_part(struct store *store, struct trial *trial, struct error *err) MUST_USE;
/* fresh: curve and checkpoints of an earlier attempt are forgotten. */
enum status store_trial_start_part(struct store *store, int64_t trial_id, const char *device, const char *slot,
                                   bool fresh, struct error *err) MUST_USE;
/* Runs an UPDATE of the trial ?1, which was sound, and seals it; verb: "started", for ST_EXISTS. */
enum status store_trial_change(struct store *store, enum store_sql id, struct db_values values, const char *verb,
                               const char *what, struct error *err) MUST_USE;
enum status store_trial_requeue_part(struct store *store, int64_t trial_id, enum trial_requeue why,
                                     struct error *err) MUST_USE;
enum status store_trial_lose_part(struct store *store, int64_t trial_id, const char *reason,
                                  struct error *err) MUST_USE;
enum status store_trial_finish_part(struct store *store, int64_t trial_id, const struct trial_result *result,
                                    const char *outbox_json, struct error *err) MUST_USE;

/* -- lease.c: parts of a transaction -- */
/* lease->trial_id is queued: it starts, and the lease is open from given_ms on. fresh: as store_trial_start_part has
 * it. */
enum status store_lease_give_part(struct store *store, struct lease *lease, bool fresh, struct error *err) MUST_USE;
/* Runs an UPDATE of the lease ?1, which was sound, and seals it; ST_EXISTS when its state forbids it. */
enum status store_lease_change(struct store *store, enum store_sql id, struct db_values values, const char *what,
                               struct error *err) MUST_USE;
/* Puts the trial of a lease that has just ended back, or gives it up. */
enum status store_lease_release(struct store *store, int64_t lease_id, enum lease_state state,
                                enum trial_state *ret_trial_state, struct error *err) MUST_USE;

/* -- study_state.c -- */
enum study_state study_state_parse(const char *word); /* STUDY_STATES for an unknown word */
/* The values of a study's limits, without its priority, in a list of VALUES. */
#define LIMIT_VALUES(l)                                                                                                \
    val_i64((l)->trials_max), val_f64((l)->budget_s), val_f64((l)->wall_max_s), val_f64((l)->device_max_s),            \
        val_f64((l)->has_target ? (l)->target_score : (double)NAN), val_f64((l)->gain_min)
