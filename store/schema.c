/* schema.c - the tables, as numbered migrations.
 *
 * Invariants: (1) PRAGMA user_version is the number of migrations applied; a migration and its number are one
 * transaction; (2) a released migration never changes, a later change is a new one at the end of the list;
 * (3) application_id is Trawl's from the first migration on; a file with another one is never changed.
 *
 * A new column is NULL in existing rows, or its migration sets their checksum to NULL (checksum.c).
 *
 * Values: NaN is NULL (SQLite has no NaN), +-Inf is a REAL; times are UTC milliseconds, NULL until they happen.
 * A finished trial is final: besides the checks of trial.c a trigger refuses any change of such a row. */
#include "store/store_priv.h"

#include <stdio.h>

/* 1: everything of the first release. */
static const char migration_1[] =
    "CREATE TABLE study ("
    "  id INTEGER PRIMARY KEY,"
    "  name TEXT NOT NULL UNIQUE,"
    "  method TEXT NOT NULL,"
    "  metric TEXT NOT NULL,"
    "  direction TEXT NOT NULL CHECK (direction IN ('maximize', 'minimize')),"
    "  seed INTEGER NOT NULL,"
    "  trials_max INTEGER NOT NULL," /* 0: no limit */
    "  budget_s REAL NOT NULL," /* 0: no limit */
    "  space TEXT NOT NULL,"
    "  config TEXT NOT NULL,"
    "  program TEXT NOT NULL,"
    "  created_ms INTEGER NOT NULL"
    ") STRICT;"

    "CREATE TABLE trial ("
    "  id INTEGER PRIMARY KEY,"
    "  study_id INTEGER NOT NULL REFERENCES study (id) ON DELETE CASCADE,"
    "  number INTEGER NOT NULL,"
    "  state TEXT NOT NULL CHECK (state IN ('queued', 'running', 'done', 'stopped', 'failed', 'lost')),"
    "  params TEXT NOT NULL CHECK (json_valid(params)),"
    "  score REAL,"
    "  perf REAL,"
    "  cost_s REAL,"
    "  device_s REAL,"
    "  env_steps INTEGER NOT NULL DEFAULT 0,"
    "  seed INTEGER NOT NULL,"
    "  attempt INTEGER NOT NULL DEFAULT 0,"
    "  origin TEXT NOT NULL,"
    "  device TEXT,"
    "  reason TEXT,"
    "  created_ms INTEGER NOT NULL,"
    "  started_ms INTEGER,"
    "  finished_ms INTEGER,"
    "  config TEXT NOT NULL,"
    "  UNIQUE (study_id, number),"
    "  CHECK (state <> 'done' OR score IS NOT NULL)"
    ") STRICT;"
    /* Counts, best score and total cost of a study come from this index alone. */
    "CREATE INDEX trial_by_state ON trial (study_id, state, score, cost_s);"
    "CREATE TRIGGER trial_finished_is_final BEFORE UPDATE ON trial"
    "  WHEN old.state IN ('done', 'stopped', 'failed')"
    "  BEGIN SELECT raise(ABORT, 'a finished trial never changes'); END;"

    "CREATE TABLE metric_name ("
    "  id INTEGER PRIMARY KEY,"
    "  name TEXT NOT NULL UNIQUE"
    ") STRICT;"

    /* One point of a learning curve is about 25 bytes; value NULL is NaN. */
    "CREATE TABLE metric ("
    "  trial_id INTEGER NOT NULL REFERENCES trial (id) ON DELETE CASCADE,"
    "  name_id INTEGER NOT NULL REFERENCES metric_name (id),"
    "  env_steps INTEGER NOT NULL,"
    "  wall_s REAL,"
    "  value REAL,"
    "  PRIMARY KEY (trial_id, name_id, env_steps)"
    ") STRICT, WITHOUT ROWID;"

    "CREATE TABLE checkpoint ("
    "  id INTEGER PRIMARY KEY,"
    "  trial_id INTEGER NOT NULL REFERENCES trial (id) ON DELETE CASCADE,"
    "  env_steps INTEGER NOT NULL,"
    "  path TEXT NOT NULL,"
    "  created_ms INTEGER NOT NULL"
    ") STRICT;"
    "CREATE INDEX checkpoint_by_trial ON checkpoint (trial_id);"

    /* Rows that trackers have yet to get, oldest first; AUTOINCREMENT: an id is never used twice. */
    "CREATE TABLE outbox ("
    "  id INTEGER PRIMARY KEY AUTOINCREMENT,"
    "  trial_id INTEGER NOT NULL REFERENCES trial (id) ON DELETE CASCADE,"
    "  payload TEXT NOT NULL CHECK (json_valid(payload)),"
    "  created_ms INTEGER NOT NULL"
    ") STRICT;"
    "CREATE INDEX outbox_by_trial ON outbox (trial_id);";

/* 2: trackers. The outbox also holds rows about the study itself (trial_id 0, hence no foreign key: a trigger deletes a
 * trial's rows with it). Each tracker's position in each run is kept in the same file: both change in one transaction,
 * and a copy of the store has both. */
static const char migration_2[] = "DROP TABLE outbox;" /* nothing was ever written to it */
                                  "CREATE TABLE outbox ("
                                  "  id INTEGER PRIMARY KEY AUTOINCREMENT," /* an id is never used twice */
                                  "  study_id INTEGER NOT NULL REFERENCES study (id) ON DELETE CASCADE,"
                                  "  trial_id INTEGER NOT NULL," /* 0: the study */
                                  "  payload TEXT NOT NULL CHECK (json_valid(payload)),"
                                  "  created_ms INTEGER NOT NULL"
                                  ") STRICT;"
                                  "CREATE INDEX outbox_by_run ON outbox (study_id, trial_id, id);"
                                  "CREATE TRIGGER outbox_goes_with_trial AFTER DELETE ON trial"
                                  "  BEGIN DELETE FROM outbox WHERE study_id = old.study_id AND trial_id = old.id; END;"

                                  "CREATE TABLE tracker ("
                                  "  id INTEGER PRIMARY KEY,"
                                  "  study_id INTEGER NOT NULL REFERENCES study (id) ON DELETE CASCADE,"
                                  "  name TEXT NOT NULL,"
                                  "  key TEXT NOT NULL,"
                                  "  UNIQUE (study_id, name)"
                                  ") STRICT;"

                                  "CREATE TABLE tracker_run ("
                                  "  tracker_id INTEGER NOT NULL REFERENCES tracker (id) ON DELETE CASCADE,"
                                  "  trial_id INTEGER NOT NULL," /* 0: the study */
                                  "  acked_id INTEGER NOT NULL,"
                                  "  claimed_id INTEGER NOT NULL,"
                                  "  thin_ms INTEGER NOT NULL,"
                                  "  last_step INTEGER NOT NULL,"
                                  "  sent_rows INTEGER NOT NULL,"
                                  "  ended INTEGER NOT NULL,"
                                  "  state TEXT NOT NULL CHECK (json_valid(state)),"
                                  "  refused TEXT,"
                                  "  PRIMARY KEY (tracker_id, trial_id)"
                                  ") STRICT, WITHOUT ROWID;";

/* 3: studies that are paused, ended by a rule, or share devices by priority. Whether an older study was to continue is
 * unknown: it becomes paused, or ended where it has reached its limit. */
static const char migration_3[] =
    "ALTER TABLE study ADD COLUMN state TEXT NOT NULL DEFAULT 'running'"
    "  CHECK (state IN ('running', 'paused', 'ended'));"
    "ALTER TABLE study ADD COLUMN end_rule TEXT;"
    "ALTER TABLE study ADD COLUMN end_text TEXT;"
    "ALTER TABLE study ADD COLUMN priority INTEGER NOT NULL DEFAULT 1 CHECK (priority BETWEEN 1 AND 100);"
    "ALTER TABLE study ADD COLUMN wall_max_s REAL NOT NULL DEFAULT 0;" /* 0: no limit */
    "ALTER TABLE study ADD COLUMN device_max_s REAL NOT NULL DEFAULT 0;" /* 0: no limit */
    "ALTER TABLE study ADD COLUMN target_score REAL;" /* NULL: none */
    "ALTER TABLE study ADD COLUMN gain_min REAL NOT NULL DEFAULT 0;" /* 0: off */
    "ALTER TABLE study ADD COLUMN wall_used_s REAL NOT NULL DEFAULT 0;"
    "UPDATE study SET state = 'paused', end_text = 'written by an older Trawl';"
    "UPDATE study SET state = 'ended', end_rule = 'trials', end_text = 'it has its trials' WHERE trials_max > 0 AND"
    "  (SELECT count(*) FROM trial WHERE study_id = study.id AND trial.state IN ('done', 'stopped', 'failed'))"
    "  >= trials_max;"
    "UPDATE study SET state = 'ended', end_rule = 'budget', end_text = 'its budget is spent' WHERE budget_s > 0 AND"
    "  (SELECT total(cost_s) FROM trial WHERE study_id = study.id) >= budget_s;";

/* 4: the trial's slot and the method of its cost, for the timeline; the last output of a worker that died. */
static const char migration_4[] = "ALTER TABLE trial ADD COLUMN slot TEXT;"
                                  "ALTER TABLE trial ADD COLUMN cost_method TEXT;"
                                  "ALTER TABLE trial ADD COLUMN log_tail TEXT;"
                                  "ALTER TABLE trial ADD COLUMN deaths INTEGER NOT NULL DEFAULT 0;"
                                  "ALTER TABLE trial ADD COLUMN propose_s REAL;";

/* 5: a score from an evaluation of the trial's policy; facts that repeating a run to the byte needs; the number of
 * losses from outside. */
static const char migration_5[] =
    "ALTER TABLE trial ADD COLUMN score_se REAL;" /* standard error of score over the evaluated episodes */
    "ALTER TABLE trial ADD COLUMN eval_episodes INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE trial ADD COLUMN eval_unfinished INTEGER NOT NULL DEFAULT 0;" /* of eval_episodes, at the step limit */
    "ALTER TABLE trial ADD COLUMN eval_s REAL;" /* seconds of the evaluation, not part of cost_s */
    /* seconds that a fresh process needs before its first iteration, not in cost_s */
    "ALTER TABLE trial ADD COLUMN start_s REAL;"
    "ALTER TABLE trial ADD COLUMN program TEXT;" /* the build that ran it; NULL: the study's */
    /* "avx512/4 threads": with config and seed, it determines the bytes */
    "ALTER TABLE trial ADD COLUMN kernels TEXT;"
    /* workers that were killed or frozen from outside while they ran it */
    "ALTER TABLE trial ADD COLUMN losses INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE study ADD COLUMN lost_s REAL NOT NULL DEFAULT 0;" /* training that no trial's cost holds */
    /* Checksums: checksum.c. NULL, and no row in curve_sum: written by an older version. */
    "ALTER TABLE study ADD COLUMN checksum INTEGER;"
    "ALTER TABLE trial ADD COLUMN checksum INTEGER;"
    "ALTER TABLE outbox ADD COLUMN checksum INTEGER;"
    "CREATE TABLE curve_sum ("
    "  trial_id INTEGER PRIMARY KEY REFERENCES trial (id) ON DELETE CASCADE,"
    "  sums BLOB NOT NULL"
    ") STRICT;"
    "DROP TRIGGER trial_finished_is_final;" /* a finished row may only get its checksum, once */
    "CREATE TRIGGER trial_finished_is_final BEFORE UPDATE ON trial"
    "  WHEN old.state IN ('done', 'stopped', 'failed') AND (old.checksum IS NOT NULL OR new.checksum IS NULL)"
    "  BEGIN SELECT raise(ABORT, 'a finished trial never changes'); END;";

/* 6: trials that clients train elsewhere (lease.c). Every lease that was ever given stays, so that whatever its client
 * reports late finds it. */
static const char migration_6[] =
    "CREATE TABLE lease ("
    "  id INTEGER PRIMARY KEY,"
    "  trial_id INTEGER NOT NULL REFERENCES trial (id) ON DELETE CASCADE,"
    "  attempt INTEGER NOT NULL," /* of the trial, that it is for */
    "  client TEXT NOT NULL,"
    "  token TEXT NOT NULL UNIQUE,"
    "  state TEXT NOT NULL CHECK (state IN ('open', 'told', 'expired', 'returned')),"
    "  given_ms INTEGER NOT NULL,"
    "  until_ms INTEGER NOT NULL,"
    "  ended_ms INTEGER,"
    "  seq INTEGER NOT NULL DEFAULT -1," /* of the last report */
    "  told TEXT CHECK (told IS NULL OR json_valid(told))," /* the result as it came; late unless state is 'told' */
    "  checksum INTEGER"
    ") STRICT;"
    "CREATE INDEX lease_by_trial ON lease (trial_id);"
    "CREATE UNIQUE INDEX lease_open ON lease (trial_id) WHERE state = 'open';"; /* a trial has one client at a time */

/* 7: what people add: remarks on a trial, which is final itself (mark.c), and on a study; studies in the trash. */
static const char migration_7[] = "CREATE TABLE mark ("
                                  "  id INTEGER PRIMARY KEY REFERENCES trial (id) ON DELETE CASCADE,"
                                  "  dropped TEXT," /* why models and front ignore the trial; NULL: they do not */
                                  "  note TEXT,"
                                  "  tags TEXT," /* "a,b" */
                                  "  checksum INTEGER"
                                  ") STRICT;"
                                  "ALTER TABLE study ADD COLUMN note TEXT;"
                                  "ALTER TABLE study ADD COLUMN tags TEXT;"
                                  "ALTER TABLE study ADD COLUMN trashed_ms INTEGER;"; /* NULL: it is not in the trash */

/* 8: metrics of a trial at its end, as the study's limits and third objective need them. */
static const char migration_8[] =
    "ALTER TABLE trial ADD COLUMN outcomes TEXT CHECK (outcomes IS NULL OR json_valid(outcomes));";

/* 9: what each proposal had seen, so that it can be made again (sweep/proposals/evidence.h). */
static const char migration_9[] = "ALTER TABLE trial ADD COLUMN seen TEXT CHECK (seen IS NULL OR json_valid(seen));";

static const char *const migrations[] = {migration_1, migration_2, migration_3, migration_4, migration_5,
                                         migration_6, migration_7, migration_8, migration_9};
#define SCHEMA_VERSION ((int64_t)(sizeof migrations / sizeof migrations[0]))

int64_t store_schema_version(void)
{
    return SCHEMA_VERSION;
}

static enum status query_i64(struct store *store, const char *sql, int64_t *ret_value, struct error *err)
{
    sqlite3_stmt *stmt = NULL;
    int rc = sqlite3_prepare_v2(store->db, sql, -1, &stmt, NULL);

    if (rc == SQLITE_OK)
        rc = sqlite3_step(stmt);
    if (rc == SQLITE_ROW)
        *ret_value = sqlite3_column_int64(stmt, 0);
    enum status status = rc == SQLITE_ROW ? ST_OK : store_sql_fail(store, rc, "opening the store", err);
    sqlite3_finalize(stmt);
    return status;
}

static enum status migrate(struct store *store, int64_t version, struct error *err)
{
    char pragma[96];
    enum status rc;

    TRY(store_begin(store, "preparing the tables", err));
    rc = ST_OK;
    for (int64_t i = version; i < SCHEMA_VERSION && rc == ST_OK; i++)
        rc = store_exec(store, migrations[i], "preparing the tables", err);
    if (rc == ST_OK) {
        snprintf(pragma, sizeof pragma, "PRAGMA application_id = %d; PRAGMA user_version = %d;", STORE_APP_ID,
                 (int)SCHEMA_VERSION);
        rc = store_exec(store, pragma, "preparing the tables", err);
    }
    return store_end(store, rc, "preparing the tables", err);
}

enum status store_schema_open(struct store *store, struct error *err)
{
    int64_t app_id = 0, version = 0, n_objects = 0;

    TRY(query_i64(store, "SELECT count(*) FROM sqlite_master", &n_objects, err));
    TRY(query_i64(store, "PRAGMA application_id", &app_id, err));
    TRY(query_i64(store, "PRAGMA user_version", &version, err));
    bool is_new = n_objects == 0 && app_id == 0 && version == 0;
    if (!is_new && app_id != STORE_APP_ID)
        return FAIL(
            err, ST_CORRUPT,
            "%s is an SQLite file of another program (application id %lld), not a Trawl store; it was left as it "
            "is, give another path to --store",
            store->path, (long long)app_id);
    if (version > SCHEMA_VERSION)
        return FAIL(
            err, ST_VERSION,
            "%s was written by a newer Trawl (store version %lld, this program knows up to %lld); update Trawl or "
            "give another path to --store",
            store->path, (long long)version, (long long)SCHEMA_VERSION);
    if (!is_new && (version < 1 || n_objects == 0))
        return FAIL(err, ST_CORRUPT,
                    "%s has store version %lld and %lld tables, which no Trawl ever wrote; restore a copy", store->path,
                    (long long)version, (long long)n_objects);
    if (version == SCHEMA_VERSION)
        return ST_OK;
    if (store->writer)
        return migrate(store, version, err);
    if (is_new)
        return FAIL(err, ST_NOTFOUND,
                    "%s is empty, no study was ever written to it; check --store or start with 'trawl sweep'",
                    store->path);
    return FAIL(err, ST_VERSION,
                "%s was written by an older Trawl (store version %lld, now %lld) and is open for reading only; "
                "'trawl sweep --resume' on it brings it up to date",
                store->path, (long long)version, (long long)SCHEMA_VERSION);
}
