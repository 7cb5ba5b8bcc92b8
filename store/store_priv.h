/* store_priv.h - what the files of store/ share: the connection, its cached statements, SQLite's failures as statuses.
 *
 * Binding and reading go through small helpers so that NULL text and NaN (kept as NULL) mean the same everywhere. */
#ifndef STORE_PRIV_H
#define STORE_PRIV_H

#include "store/store.h"

#include <sys/types.h>
#include <time.h>

#include <sqlite3.h>

#define STORE_APP_ID 0x54524157 /* "TRAW" in PRAGMA application_id: marks a store among SQLite files */
#define STORE_BUSY_MS 10000
#define STORE_LOG_MAX_BYTES 1048576 /* it is cut to this whenever it is begun again */

/* One cached statement per connection for each; texts in sql.c. */
enum store_sql {
    SQL_BEGIN,
    SQL_BEGIN_READ,
    SQL_COMMIT,
    SQL_STUDY_INSERT,
    SQL_STUDY_FIND,
    SQL_STUDY_LIST,
    SQL_STUDY_NAMES,
    SQL_STUDY_LIMITS,
    SQL_STUDY_STATE,
    SQL_STUDY_SPACE,
    SQL_STUDY_PRIORITY,
    SQL_STUDY_WALL,
    SQL_STUDY_ROW,
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
    SQL_METRIC_NAME_INSERT,
    SQL_METRIC_NAME_FIND,
    SQL_METRIC_INSERT,
    SQL_METRIC_DELETE,
    SQL_METRIC_ALL,
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

/* A file that the connection has open, as its path named it; ino 0: not seen yet. */
struct store_mark {
    dev_t dev;
    ino_t ino;
};

/* What a learning curve of a trial is to hold: checksum.c. */
struct curve_sum {
    int64_t name_id, n; /* points */
    uint64_t sum; /* of their CRC-32s */
    int64_t last_steps; /* env_steps of the last point */
    uint32_t last_crc;
};
struct store_sums {
    struct curve_sum *v; /* (n) of one trial */
    size_t n, cap, next; /* next: after the one that was asked for last */
};

struct store {
    sqlite3 *db;
    char *path; /* as given, for messages */
    char *file; /* without symbolic links, for SQLite */
    char *lock_path;
    int lock_fd; /* writer only, else -1; holds the flock */
    int guard_fd; /* writer only, else -1; a socket whose name no second writer can have (lock.c) */
    bool writer;
    bool blind; /* it is read to find out what is damaged: opening does not look */
    bool taken; /* by somebody else: it may not be written */
    bool folds; /* the one connection that folds the log back (checkpoints) */
    struct timespec written; /* when the file was changed last, by us: only folding changes it */
    off_t size; /* and how long it was then */
    bool touched; /* somebody else has changed it; nothing is folded until that was looked into */
    bool overwritten; /* it is another store now */
    struct store_mark marks[3]; /* writer only: of the file, its log and the log's shared memory */
    bool full; /* the last failure: no room on the disk */
    store_wait_fn *wait; /* NULL: nobody waits for room */
    void *wait_ctx;
    bool waited; /* for a write that is to be tried again */
    store_locked_fn *locked; /* NULL: STORE_BUSY_MS is waited for a lock */
    void *locked_ctx;
    double locked_s; /* when the lock was met that is waited for, by the monotonic clock */
    bool synced; /* the open transaction is on the disk when it has been committed */
    sqlite3_stmt *stmts[SQL_COUNT]; /* prepared at first use */
    struct store_name *names; /* (n_names) of metrics, as the table has them; emptied by a rollback */
    struct store_sums sums; /* room for one trial's, while it is written or checked */
    size_t n_names, cap_names, next_name; /* next_name: after the last that was asked for */
};

/* -- sql.c -- */
/* The failure rc of doing `what` ("adding a trial") as a status with path, cause and what to do. */
enum status store_sql_fail(struct store *store, int rc, const char *what, struct error *err);
/* The statement, reset and with no values bound; borrowed. */
enum status store_sql(struct store *store, enum store_sql id, sqlite3_stmt **ret_stmt, struct error *err) MUST_USE;
/* Runs a statement that gives no row. */
enum status store_sql_run(struct store *store, sqlite3_stmt *stmt, const char *what, struct error *err) MUST_USE;
/* SQLITE_ROW or SQLITE_DONE in *ret_step; after a failure the statement is reset. */
enum status store_sql_step(struct store *store, sqlite3_stmt *stmt, int *ret_step, const char *what,
                           struct error *err) MUST_USE;
enum status store_exec(struct store *store, const char *sql, const char *what, struct error *err) MUST_USE;
enum status store_begin(struct store *store, const char *what, struct error *err) MUST_USE; /* refuses on a reader */
/* The same, and what it commits, with all before it, outlives a power cut: one wait for the disk. */
enum status store_begin_synced(struct store *store, const char *what, struct error *err) MUST_USE;
/* Commits when rc is ST_OK, rolls back when not or when the commit fails; returns the first failure. */
enum status store_end(struct store *store, enum status rc, const char *what, struct error *err) MUST_USE;

/* One state of the store for several statements; *ret_begun: no transaction was open already. */
enum status store_read_begin(struct store *store, bool *ret_begun, struct error *err) MUST_USE;
enum status store_read_end(struct store *store, bool begun, enum status rc) MUST_USE; /* rc, whatever it is */

void store_bind_text(sqlite3_stmt *stmt, int at,
                     const char *text); /* borrowed until the statement's reset; NULL: NULL */
enum status store_column_text(sqlite3_stmt *stmt, int at, char **ret_text); /* owned copy; NULL: NULL */
double store_column_f64(sqlite3_stmt *stmt, int at); /* NULL: NaN */

/* -- checksum.c -- */
enum store_soundness { STORE_SOUND, STORE_UNCHECKED, STORE_DAMAGED };
/* Of a row that ends with all columns of its table ("TABLE.*"). */
enum store_soundness store_row_sound(sqlite3_stmt *stmt);
/* ST_CORRUPT that names what ("trial 7 of study 'a'"). */
/* ST_NOMEM, "PATH: out of memory while WHAT". */
enum status store_nomem(const struct store *store, const char *what, struct error *err) MUST_USE;
enum status store_damaged(struct store *store, const char *what, struct error *err);
/* row: SQL_STUDY_ROW or SQL_TRIAL_ROW. Before a row is changed, and after it, in one transaction. */
enum status store_row_check(struct store *store, enum store_sql row, int64_t id, struct error *err) MUST_USE;
enum status store_row_seal(struct store *store, enum store_sql row, int64_t id, struct error *err) MUST_USE;
int64_t store_outbox_sum(int64_t id, int64_t study_id, int64_t trial_id, int64_t created_ms, const char *payload);
uint32_t store_point_sum(int64_t env_steps, double wall_s, double value);
struct curve_sum *store_sums_find(struct store_sums *sums, int64_t name_id); /* NULL: there is none */
enum status store_sums_get(struct store *store, struct store_sums *sums, int64_t name_id, struct curve_sum **ret_sum,
                           struct error *err) MUST_USE; /* added when new */
void store_sum_add(struct curve_sum *sum, int64_t env_steps, uint32_t crc);
/* Of the points that there are. */
enum status store_sums_scan(struct store *store, int64_t trial_id, struct store_sums *sums, struct error *err) MUST_USE;
/* As they were written; *ret_there: false, the trial is of a version without them. */
enum status store_sums_read(struct store *store, int64_t trial_id, struct store_sums *sums, bool *ret_there,
                            struct error *err) MUST_USE;
enum status store_sums_write(struct store *store, int64_t trial_id, const struct store_sums *sums,
                             struct error *err) MUST_USE;

/* -- schema.c -- */
/* New file: all migrations. Older: the missing ones. Newer: ST_VERSION. Not ours: ST_CORRUPT. Readers only check. */
enum status store_schema_open(struct store *store, struct error *err) MUST_USE;

/* -- open.c -- */
/* store_open_reader; blind: also where the tables are damaged. */
enum status store_open_blind(struct store **ret_store, const char *path, bool blind, struct error *err) MUST_USE;

/* -- lock.c -- */
/* Without symbolic links, so that every name of a store has the same lock, also before it is made; path itself where it
 * cannot be followed. buf: (PATH_MAX). */
const char *store_real_path(const char *path, char *buf);
enum status store_lock_take(struct store *store, struct error *err) MUST_USE;
/* Is the lock file still the one at its path? One that was removed is taken again (*ret_again); ST_BUSY: somebody else
 * was quicker. */
enum status store_lock_keep(struct store *store, bool *ret_again, struct error *err) MUST_USE;
void store_lock_drop(struct store *store); /* also of a store that has none */

/* -- place.c -- */
enum status store_place_mark(struct store *store, struct error *err) MUST_USE; /* what is open now */
void store_place_close(struct store *store); /* of the connection; a file that is not ours any more stays as it is */
/* Folds the log back, unless somebody else has changed the file; no failure, the next commit tries again. */
void store_fold_now(struct store *store);

/* -- metric.c: parts of a transaction that the caller opened -- */
/* store->sums, for store_metric_insert, and back. */
enum status store_metric_open(struct store *store, int64_t trial_id, struct error *err) MUST_USE;
enum status store_metric_close(struct store *store, int64_t trial_id, struct error *err) MUST_USE;
enum status store_metric_insert(struct store *store, int64_t trial_id, const struct metric_point *points, size_t n,
                                struct error *err) MUST_USE;
enum status store_outbox_insert(struct store *store, int64_t study_id, int64_t trial_id, const char *json,
                                struct error *err) MUST_USE;
enum status store_checkpoint_insert(struct store *store, int64_t trial_id, int64_t env_steps, const char *path,
                                    struct error *err) MUST_USE;
void store_names_clear(struct store *store);
/* What a curve is to hold, zeros when it is to be empty; *ret_known: false, the trial has no checksums. */
enum status store_curve_expected(struct store *store, int64_t trial_id, const char *name, bool *ret_known,
                                 struct curve_sum *ret_sum, struct error *err) MUST_USE;
enum status store_curve_damaged(struct store *store, int64_t trial_id, const char *name,
                                struct error *err); /* ST_CORRUPT */
/* Forgets curve and checkpoints of an earlier attempt. */
enum status store_attempt_clear(struct store *store, int64_t trial_id, struct error *err) MUST_USE;

/* -- trial.c -- */
/* A row of TRIAL_COLUMNS (light or not) and "trial.*": is it sound, and the one that was asked for? ST_CORRUPT names
 * it. */
enum status store_trial_row_check(struct store *store, sqlite3_stmt *stmt, int64_t study_id, int64_t number,
                                  enum trial_state *ret_state, struct error *err) MUST_USE;

/* -- study_state.c -- */
enum study_state study_state_parse(const char *word); /* STUDY_STATES when there is no such word */
void store_bind_limits(sqlite3_stmt *stmt, int at, const struct study *study); /* six values from `at` on */

#endif
