/* schema.c - the tables, as numbered migrations, of SQLite and of PostgreSQL.
 *
 * Invariants: (1) PRAGMA user_version, in PostgreSQL the table `store`, is the number of migrations applied; a
 * migration and its number are one transaction; (2) a released migration never changes, a later change is a new one at
 * the end of the list;
 * (3) application_id is Trawl's from the first migration on; a file with another one is never changed; (4) the columns
 * of a table are the same, in the same order, in both databases: the checksum of a row is that of the same row in the
 * other.
 *
 * A new column is NULL in existing rows, or its migration sets their checksum to NULL (checksum.c).
 *
 * Values: NaN is NULL (SQLite has no NaN), +-Inf is a REAL; times are UTC milliseconds, NULL until they happen.
 * A finished trial is final: besides the checks of trial.c a trigger refuses any change of such a row. */
#include "store/store_priv.h"

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

static const char migration_1_lite[] = "CREATE TRIGGER trial_finished_is_final BEFORE UPDATE ON trial"
                                       "  WHEN old.state IN ('done', 'stopped', 'failed')"
                                       "  BEGIN SELECT raise(ABORT, 'a finished trial never changes'); END;";

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

static const char migration_2_lite[] =
    "CREATE TRIGGER outbox_goes_with_trial AFTER DELETE ON trial"
    "  BEGIN DELETE FROM outbox WHERE study_id = old.study_id AND trial_id = old.id; END;";
static const char migration_2_pg[] =
    "CREATE FUNCTION outbox_goes_with_trial() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
    "  DELETE FROM trawl.outbox WHERE study_id = old.study_id AND trial_id = old.id; RETURN NULL; END $$;"
    "CREATE TRIGGER outbox_goes_with_trial AFTER DELETE ON trial"
    "  FOR EACH ROW EXECUTE FUNCTION outbox_goes_with_trial();";

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
    "ALTER TABLE study ADD COLUMN wall_used_s REAL NOT NULL DEFAULT 0;";
static const char migration_3_lite[] = /* an older Trawl had no stores in PostgreSQL */
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
    ") STRICT;";
/* A finished row may only get its checksum, once. */
static const char migration_5_lite[] =
    "DROP TRIGGER trial_finished_is_final;"
    "CREATE TRIGGER trial_finished_is_final BEFORE UPDATE ON trial"
    "  WHEN old.state IN ('done', 'stopped', 'failed') AND (old.checksum IS NOT NULL OR new.checksum IS NULL)"
    "  BEGIN SELECT raise(ABORT, 'a finished trial never changes'); END;";
static const char migration_5_pg[] =
    "CREATE FUNCTION trial_finished_is_final() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
    "  RAISE EXCEPTION 'a finished trial never changes'; END $$;"
    "CREATE TRIGGER trial_finished_is_final BEFORE UPDATE ON trial FOR EACH ROW"
    "  WHEN (old.state IN ('done', 'stopped', 'failed') AND (old.checksum IS NOT NULL OR new.checksum IS NULL))"
    "  EXECUTE FUNCTION trial_finished_is_final();";

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

/* 10: what the models expected of a trial when they proposed it. */
static const char migration_10[] = "ALTER TABLE trial ADD COLUMN predicted_score REAL;"
                                   "ALTER TABLE trial ADD COLUMN predicted_score_sd REAL;"
                                   "ALTER TABLE trial ADD COLUMN predicted_log_cost REAL;"
                                   "ALTER TABLE trial ADD COLUMN predicted_log_cost_sd REAL;";

/* 11: nodes, which take trials by themselves (claim.c). */
static const char migration_11[] =
    "CREATE TABLE node ("
    "  name TEXT PRIMARY KEY,"
    "  host TEXT NOT NULL,"
    "  device TEXT NOT NULL,"
    "  job TEXT NOT NULL," /* of the batch system that started it; '': none */
    "  slots INTEGER NOT NULL,"
    "  started_ms INTEGER NOT NULL,"
    "  beat_ms INTEGER NOT NULL"
    ") STRICT, WITHOUT ROWID;"
    "ALTER TABLE lease ADD COLUMN stop TEXT;"; /* why the study asks its client, a node, to end the trial, or NULL */

/* 12: a lease's state and columns get the names that reports have, and the branches of a node's attempt, which stood in
 * the result's column until there was one, a column of their own. */
static const char migration_12[] =
    "ALTER TABLE lease ADD COLUMN branches TEXT CHECK (branches IS NULL OR json_valid(branches));";
static const char migration_12_lite[] = /* SQLite changes no CHECK: the table is made again */
    "ALTER TABLE lease RENAME TO lease_11;"
    "CREATE TABLE lease ("
    "  id INTEGER PRIMARY KEY,"
    "  trial_id INTEGER NOT NULL REFERENCES trial (id) ON DELETE CASCADE,"
    "  attempt INTEGER NOT NULL," /* of the trial, that it is for */
    "  client TEXT NOT NULL,"
    "  token TEXT NOT NULL UNIQUE,"
    "  state TEXT NOT NULL CHECK (state IN ('open', 'reported', 'expired', 'returned')),"
    "  given_ms INTEGER NOT NULL,"
    "  until_ms INTEGER NOT NULL,"
    "  ended_ms INTEGER,"
    "  seq INTEGER NOT NULL DEFAULT -1," /* of the last report */
    "  result TEXT CHECK (result IS NULL OR json_valid(result))," /* as it came; late unless state is 'reported' */
    "  checksum INTEGER,"
    "  stop TEXT,"
    "  branches TEXT CHECK (branches IS NULL OR json_valid(branches))"
    ") STRICT;"
    "INSERT INTO lease SELECT id, trial_id, attempt, client, token,"
    "  CASE state WHEN 'told' THEN 'reported' ELSE state END,"
    "  given_ms, until_ms, ended_ms, seq, CASE WHEN told LIKE '{\"branches\":%' THEN NULL ELSE told END,"
    "  CASE WHEN told IS NULL AND state <> 'told' THEN checksum END, stop, json_extract(told, '$.branches')"
    "  FROM lease_11;"
    "DROP TABLE lease_11;"
    "CREATE INDEX lease_by_trial ON lease (trial_id);"
    "CREATE UNIQUE INDEX lease_open ON lease (trial_id) WHERE state = 'open';";
static const char migration_12_pg[] =
    "ALTER TABLE lease RENAME COLUMN told TO result;"
    "ALTER TABLE lease DROP CONSTRAINT lease_state_check;"
    "UPDATE lease SET branches = (result::json -> 'branches')::text, checksum = NULL,"
    "  result = CASE WHEN result LIKE '{\"branches\":%' THEN NULL ELSE result END WHERE result IS NOT NULL;"
    "UPDATE lease SET state = 'reported', checksum = NULL WHERE state = 'told';"
    "ALTER TABLE lease ADD CONSTRAINT lease_state_check CHECK (state IN ('open', 'reported', 'expired', 'returned'));";

/* 13: nodes that train with other hosts. */
static const char migration_13[] = "ALTER TABLE node ADD COLUMN meets TEXT;"; /* where they join; NULL: nowhere */

/* both: as SQLite has it, for PostgreSQL translated by pg_translate; lite, pg: after it, for one of them; NULL:
 * nothing. */
static const struct {
    const char *both, *lite, *pg;
} migrations[] = {{migration_1, migration_1_lite, NULL},
                  {migration_2, migration_2_lite, migration_2_pg},
                  {migration_3, migration_3_lite, NULL},
                  {migration_4, NULL, NULL},
                  {migration_5, migration_5_lite, migration_5_pg},
                  {migration_6, NULL, NULL},
                  {migration_7, NULL, NULL},
                  {migration_8, NULL, NULL},
                  {migration_9, NULL, NULL},
                  {migration_10, NULL, NULL},
                  {migration_11, NULL, NULL},
                  {migration_12, migration_12_lite, migration_12_pg},
                  {migration_13, NULL, NULL}};
#define SCHEMA_VERSION ((int64_t)COUNT(migrations))

/* What each transaction needs (pg_begin), before the first one, and requests to the controller (mail.c): no part of a
 * study, so that they do not move with a store. */
static const char pg_before[] = "CREATE SCHEMA IF NOT EXISTS trawl;"
                                "CREATE TABLE IF NOT EXISTS trawl.session ("
                                "  who text PRIMARY KEY,"
                                "  token bigint NOT NULL,"
                                "  at timestamptz NOT NULL DEFAULT now()"
                                ");"
                                "CREATE TABLE IF NOT EXISTS trawl.mail ("
                                "  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,"
                                "  request text NOT NULL,"
                                "  taken boolean NOT NULL DEFAULT false,"
                                "  answer text,"
                                "  at timestamptz NOT NULL DEFAULT now()"
                                ")";

/* What SQLite keeps in the head of its file, and a function that it has. */
static const char pg_head[] = "CREATE TABLE store (version bigint NOT NULL);"
                              "INSERT INTO store VALUES (0);"
                              "CREATE FUNCTION json_valid(t text) RETURNS boolean LANGUAGE sql IMMUTABLE AS"
                              "  'SELECT t::json IS NOT NULL';";

int64_t store_schema_version(void)
{
    return SCHEMA_VERSION;
}

static enum status query_i64(struct store *store, const char *sql, int64_t *ret_value, struct error *err)
{
    static const char what[] = "opening the store";
    struct db_stmt stmt = {0};
    int step = DB_DONE;
    enum status rc = store_sql_prepare(store, sql, &stmt, err);

    THEN(rc, store_sql_step(store, &stmt, &step, what, err));
    if (rc == ST_OK)
        *ret_value = db_i64(&stmt, 0);
    store_sql_finalize(&stmt);
    return rc;
}

static enum status apply(struct store *store, int64_t i, struct error *err)
{
    static const char what[] = "preparing the tables";
    MEM_LOCAL char *text = store->pg != NULL ? pg_translate(migrations[i].both) : NULL;
    const char *own = store->pg != NULL ? migrations[i].pg : migrations[i].lite;
    enum status rc = store_exec(store, text != NULL ? text : migrations[i].both, what, err);

    return rc == ST_OK && own != NULL ? store_exec(store, own, what, err) : rc;
}

static enum status migrate(struct store *store, int64_t version, struct error *err)
{
    char text[96];
    enum status rc = ST_OK;

    TRY(store_begin(store, "preparing the tables", err));
    if (store->pg != NULL && version == 0)
        rc = store_exec(store, pg_head, "preparing the tables", err);
    for (int64_t i = version; i < SCHEMA_VERSION && rc == ST_OK; i++)
        rc = apply(store, i, err);
    if (rc == ST_OK) {
        if (store->pg != NULL)
            snprintf(text, sizeof text, "UPDATE store SET version = %d", (int)SCHEMA_VERSION);
        else
            snprintf(text, sizeof text, "PRAGMA application_id = %d; PRAGMA user_version = %d;", STORE_APP_ID,
                     (int)SCHEMA_VERSION);
        rc = store_exec(store, text, "preparing the tables", err);
    }
    return store_end(store, rc, "preparing the tables", err);
}

/* What is there: version 0 and no tables for a store that is new. */
static enum status look(struct store *store, int64_t *ret_version, int64_t *ret_tables, struct error *err)
{
    int64_t app_id = 0;

    if (store->pg != NULL) {
        TRY(query_i64(store, "SELECT to_regclass('trawl.store') IS NOT NULL", ret_tables, err));
        return *ret_tables > 0 ? query_i64(store, "SELECT version FROM trawl.store", ret_version, err) : ST_OK;
    }
    TRY(query_i64(store, "SELECT count(*) FROM sqlite_master", ret_tables, err));
    TRY(query_i64(store, "PRAGMA application_id", &app_id, err));
    TRY(query_i64(store, "PRAGMA user_version", ret_version, err));
    if ((*ret_tables != 0 || *ret_version != 0 || app_id != 0) && app_id != STORE_APP_ID)
        return FAIL(
            err, ST_CORRUPT,
            "%s is an SQLite file of another program (application id %lld), not a Trawl store; it was left as it "
            "is, give another path to --store",
            store->path, (long long)app_id);
    return ST_OK;
}

enum status store_schema_open(struct store *store, struct error *err)
{
    int64_t version = 0, n_tables = 0;

    TRY(look(store, &version, &n_tables, err));
    bool is_new = n_tables == 0 && version == 0;
    if (version > SCHEMA_VERSION)
        return FAIL(
            err, ST_VERSION,
            "%s was written by a newer Trawl (store version %lld, this program knows up to %lld); update Trawl or "
            "give another path to --store",
            store->path, (long long)version, (long long)SCHEMA_VERSION);
    if (!is_new && (version < 1 || n_tables == 0))
        return FAIL(err, ST_CORRUPT,
                    "%s has store version %lld and %lld tables, which no Trawl ever wrote; restore a copy", store->path,
                    (long long)version, (long long)n_tables);
    if (version == SCHEMA_VERSION)
        return store->pg != NULL && store->writer && !store->second
                   ? store_exec(store, "DELETE FROM session WHERE at < now() - interval '1 day'", "opening the store",
                                err)
                   : ST_OK;
    if (store->writer && !store->second) {
        if (store->pg != NULL)
            TRY(store_exec(store, pg_before, "preparing the tables", err));
        return migrate(store, version, err);
    }
    if (is_new)
        return FAIL(err, ST_NOTFOUND,
                    "%s is empty, no study was ever written to it; check --store or start with 'trawl sweep'",
                    store->path);
    return FAIL(err, ST_VERSION,
                "%s was written by an older Trawl (store version %lld, now %lld) and is open for reading only; "
                "'trawl sweep --resume' on it brings it up to date",
                store->path, (long long)version, (long long)SCHEMA_VERSION);
}
