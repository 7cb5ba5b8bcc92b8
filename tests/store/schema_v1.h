/* schema_v1.h - the tables as version 1 of the store had them; with the pragmas they make a file of the first
 * release. */
#pragma once

static const char schema_v1[] =
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

    /* What trackers still have to be told, oldest first; AUTOINCREMENT: an id is never used twice. */
    "CREATE TABLE outbox ("
    "  id INTEGER PRIMARY KEY AUTOINCREMENT,"
    "  trial_id INTEGER NOT NULL REFERENCES trial (id) ON DELETE CASCADE,"
    "  payload TEXT NOT NULL CHECK (json_valid(payload)),"
    "  created_ms INTEGER NOT NULL"
    ") STRICT;"
    "CREATE INDEX outbox_by_trial ON outbox (trial_id);";

static const char schema_v1_pragmas[] = "PRAGMA application_id = 0x54524157; PRAGMA user_version = 1;";
