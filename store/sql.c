/* sql.c - the statements of the store and the way to run them.
 *
 * Invariants: (1) a statement is reset before the function that stepped it returns: an open read transaction would keep
 * the WAL from being checkpointed; (2) every SQLite failure becomes a status here and nowhere else. */
#include "store/store_priv.h"

#define STUDY_COLUMNS                                                                                                  \
    "id, name, config, space, method, metric, direction, seed, trials_max, budget_s, program, created_ms, state, "     \
    "end_rule, end_text, priority, wall_max_s, device_max_s, target_score, gain_min, wall_used_s, lost_s, note, "      \
    "tags, trashed_ms"
#define MARK_COLUMNS                                                                                                   \
    ", (SELECT dropped FROM mark WHERE mark.id = trial.id), (SELECT note FROM mark WHERE mark.id = trial.id), "        \
    "(SELECT tags FROM mark WHERE mark.id = trial.id)"
#define PREDICTED_COLUMNS ", predicted_score, predicted_score_sd, predicted_log_cost, predicted_log_cost_sd"
#define TRIAL_COLUMNS                                                                                                  \
    "id, study_id, number, state, params, config, origin, seed, attempt, device, score, perf, cost_s, device_s, "      \
    "env_steps, reason, created_ms, started_ms, finished_ms, slot, cost_method, log_tail, deaths, propose_s, "         \
    "score_se, eval_episodes, eval_s, start_s, program, kernels, losses, eval_unfinished" MARK_COLUMNS                 \
    ", outcomes, seen" PREDICTED_COLUMNS
/* Without config, log_tail and seen, the largest columns. */
#define TRIAL_COLUMNS_LIGHT                                                                                            \
    "id, study_id, number, state, params, NULL, origin, seed, attempt, device, score, perf, cost_s, device_s, "        \
    "env_steps, reason, created_ms, started_ms, finished_ms, slot, cost_method, NULL, deaths, propose_s, "             \
    "score_se, eval_episodes, eval_s, start_s, program, kernels, losses, eval_unfinished" MARK_COLUMNS                 \
    ", outcomes, NULL" PREDICTED_COLUMNS

static const char *const store_sql_text[SQL_COUNT] = {
    [SQL_BEGIN] = "BEGIN IMMEDIATE",
    [SQL_BEGIN_READ] = "BEGIN",
    [SQL_COMMIT] = "COMMIT",

    [SQL_STUDY_INSERT] =
        "INSERT INTO study (name, config, space, method, metric, direction, seed, program, created_ms, priority, "
        "trials_max, budget_s, wall_max_s, device_max_s, target_score, gain_min) "
        "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16) RETURNING id",
    /* TABLE.* at the end: the columns that the checksum covers. */
    [SQL_STUDY_FIND] = "SELECT " STUDY_COLUMNS ", study.* FROM study WHERE name = ?1",
    [SQL_STUDY_LIST] = "SELECT " STUDY_COLUMNS ", study.* FROM study WHERE trashed_ms IS NULL ORDER BY id",
    [SQL_STUDY_TRASH_LIST] =
        "SELECT " STUDY_COLUMNS ", study.* FROM study WHERE trashed_ms IS NOT NULL ORDER BY trashed_ms, id",
    [SQL_STUDY_ROW] = "SELECT * FROM study WHERE id = ?1",
    [SQL_STUDY_LOCK] = "SELECT id FROM study WHERE id = ?1",
    [SQL_STUDY_SEAL] = "UPDATE study SET checksum = ?2 WHERE id = ?1",
    [SQL_STUDY_NAME] = "SELECT name FROM study WHERE id = ?1",
    [SQL_STUDY_NAMES] = "SELECT name FROM study WHERE trashed_ms IS NULL ORDER BY id DESC LIMIT 1000",
    [SQL_STUDY_LIMITS] = "UPDATE study SET trials_max = ?2, budget_s = ?3, wall_max_s = ?4, device_max_s = ?5, "
                         "target_score = ?6, gain_min = ?7 WHERE id = ?1",
    [SQL_STUDY_STATE] = "UPDATE study SET state = ?2, end_rule = ?3, end_text = ?4 WHERE id = ?1",
    [SQL_STUDY_SPACE] = "UPDATE study SET space = ?2 WHERE id = ?1",
    [SQL_STUDY_PRIORITY] = "UPDATE study SET priority = ?2 WHERE id = ?1",
    [SQL_STUDY_RENAME] = "UPDATE study SET name = ?2, trashed_ms = ?3 WHERE id = ?1",
    [SQL_STUDY_REMARK] = "UPDATE study SET note = ?2, tags = ?3 WHERE id = ?1",
    [SQL_STUDY_DELETE] = "DELETE FROM study WHERE id = ?1",
    [SQL_STUDY_WALL] = "UPDATE study SET wall_used_s = wall_used_s + ?2, lost_s = ?3 WHERE id = ?1",

    [SQL_TRIAL_INSERT] = "INSERT INTO trial (study_id, number, state, params, config, origin, seed, attempt, "
                         "created_ms, propose_s, seen" PREDICTED_COLUMNS ") "
                         "VALUES (?1, (SELECT coalesce(max(number), -1) + 1 FROM trial WHERE study_id = ?1), 'queued', "
                         "?2, ?3, ?4, ?5, 0, ?6, ?7, ?8, ?9, ?10, ?11, ?12) RETURNING id, number",
    [SQL_TRIAL_START] = "UPDATE trial SET state = 'running', attempt = attempt + 1, device = ?2, started_ms = ?3, "
                        "finished_ms = NULL, reason = NULL, score = NULL, perf = NULL, cost_s = NULL, device_s = NULL, "
                        "env_steps = 0, slot = ?4, cost_method = NULL, log_tail = NULL, "
                        "score_se = NULL, eval_episodes = 0, eval_unfinished = 0, eval_s = NULL, start_s = NULL, "
                        "program = NULL, kernels = NULL, outcomes = NULL, checksum = NULL "
                        "WHERE id = ?1 AND state IN ('queued', 'lost')",
    [SQL_TRIAL_FINISH] =
        "UPDATE trial SET state = ?2, score = ?3, perf = ?4, cost_s = ?5, device_s = ?6, env_steps = ?7, "
        "reason = ?8, finished_ms = ?9, cost_method = ?10, log_tail = ?11, score_se = ?12, "
        "eval_episodes = ?13, eval_s = ?14, start_s = ?15, program = ?16, kernels = ?17, "
        "eval_unfinished = ?18, device = coalesce(?19, device), outcomes = ?20, checksum = NULL "
        "WHERE id = ?1 AND state IN ('queued', 'running')",
    [SQL_TRIAL_CONFIG] = "UPDATE trial SET config = ?2, checksum = NULL WHERE id = ?1 AND state IN ('queued', 'lost')",
    [SQL_LEASE_CONFIG] = "UPDATE trial SET config = ?2, checksum = NULL WHERE id = ?1 AND EXISTS "
                         "(SELECT 1 FROM lease WHERE id = ?3 AND trial_id = ?1 AND state = 'open')",
    [SQL_TRIAL_REQUEUE_ONE] =
        "UPDATE trial SET state = 'queued', device = NULL, started_ms = NULL, slot = NULL, "
        "deaths = deaths + CASE WHEN ?2 = 1 THEN 1 ELSE 0 END, "
        "losses = losses + CASE WHEN ?2 = 2 THEN 1 ELSE 0 END, checksum = NULL WHERE id = ?1 AND state = 'running'",
    [SQL_TRIAL_LOSE] = "UPDATE trial SET state = 'lost', finished_ms = ?2, reason = ?3, checksum = NULL "
                       "WHERE id = ?1 AND state = 'running'",
    [SQL_TRIAL_ROW] = "SELECT * FROM trial WHERE id = ?1",
    [SQL_TRIAL_SEAL] = "UPDATE trial SET checksum = ?2 WHERE id = ?1",
    /* That no client has a lease of. */
    [SQL_TRIAL_IN_STATE] = "SELECT id FROM trial WHERE study_id = ?1 AND state = ?2 AND NOT EXISTS "
                           "(SELECT 1 FROM lease WHERE trial_id = trial.id AND state = 'open') ORDER BY id",
    [SQL_TRIAL_LIST] = "SELECT " TRIAL_COLUMNS ", trial.* FROM trial WHERE study_id = ?1 ORDER BY number",
    [SQL_TRIAL_LIST_FROM] =
        "SELECT " TRIAL_COLUMNS_LIGHT ", trial.* FROM trial WHERE study_id = ?1 AND number >= ?2 ORDER BY number",
    [SQL_TRIAL_FIND] = "SELECT " TRIAL_COLUMNS ", trial.* FROM trial WHERE study_id = ?1 AND number = ?2",
    [SQL_TRIAL_BY_ID] = "SELECT " TRIAL_COLUMNS ", trial.* FROM trial WHERE id = ?1",

    [SQL_TRIAL_STATE] = "SELECT study_id, number, state = 'running', state FROM trial WHERE id = ?1",

    [SQL_MARK_ROW] = "SELECT * FROM mark WHERE id = ?1",
    [SQL_MARK_SEAL] = "UPDATE mark SET checksum = ?2 WHERE id = ?1",
    [SQL_MARK_SET] =
        "INSERT INTO mark (id, dropped, note, tags) VALUES (?1, ?2, ?3, ?4) ON CONFLICT (id) DO UPDATE SET "
        "dropped = excluded.dropped, note = excluded.note, tags = excluded.tags",
    [SQL_MARK_LIST] = "SELECT trial.number, mark.* FROM mark JOIN trial ON trial.id = mark.id WHERE study_id = ?1 "
                      "ORDER BY trial.number",

    [SQL_LEASE_INSERT] =
        "INSERT INTO lease (trial_id, attempt, client, token, state, given_ms, until_ms, ended_ms, "
        "result) SELECT id, attempt + CASE WHEN ?4 = 'open' THEN 1 ELSE 0 END, ?2, ?3, ?4, CAST(?5 AS INTEGER), "
        "CAST(?6 AS INTEGER), CAST(?7 AS INTEGER), ?8 FROM trial "
        "WHERE id = ?1 AND (?4 <> 'open' OR state = 'queued') RETURNING id, attempt",
    [SQL_LEASE_ROW] = "SELECT * FROM lease WHERE id = ?1",
    [SQL_LEASE_SEAL] = "UPDATE lease SET checksum = ?2 WHERE id = ?1",
    [SQL_LEASE_BY_TOKEN] = "SELECT t.study_id, t.number, lease.* FROM lease JOIN trial AS t ON t.id = trial_id "
                           "WHERE token = ?1",
    [SQL_LEASE_OPEN] = "SELECT t.study_id, t.number, lease.* FROM lease JOIN trial AS t ON t.id = trial_id "
                       "WHERE t.study_id = ?1 AND lease.state = 'open' ORDER BY t.number",
    [SQL_LEASE_OF_TRIAL] = "SELECT t.study_id, t.number, lease.* FROM lease JOIN trial AS t ON t.id = trial_id "
                           "WHERE trial_id = ?1 ORDER BY lease.id",
    [SQL_LEASE_EXTEND] = "UPDATE lease SET until_ms = ?2, seq = CASE WHEN seq < ?3 THEN ?3 ELSE seq END "
                         "WHERE id = ?1 AND state = 'open'",
    [SQL_LEASE_FINISH] =
        "UPDATE lease SET state = 'reported', result = ?2, ended_ms = ?3 WHERE id = ?1 AND state = 'open'",
    [SQL_LEASE_LATE] =
        "UPDATE lease SET result = ?2 WHERE id = ?1 AND state IN ('expired', 'returned') AND result IS NULL",
    [SQL_LEASE_BRANCHES] = "UPDATE lease SET branches = ?2 WHERE id = ?1 AND result IS NULL",
    [SQL_LEASE_END] = "UPDATE lease SET state = ?2, ended_ms = ?3 WHERE id = ?1 AND state = 'open'",
    [SQL_LEASE_EXPIRED] = "SELECT count(*) FROM lease WHERE trial_id = ?1 AND state = 'expired'",

    [SQL_LEASE_KEEP] = "UPDATE lease SET until_ms = ?2 WHERE id = ?1 AND state = 'open'",
    [SQL_LEASE_STOP] = "UPDATE lease SET stop = ?2 WHERE id = ?1 AND state = 'open'",
    [SQL_LEASE_STOP_TEXT] = "SELECT stop FROM lease WHERE id = ?1",
    [SQL_LEASE_SILENT] =
        "SELECT id FROM lease WHERE state = 'open' AND token LIKE 'node-%' AND until_ms < ?1 ORDER BY id",
    [SQL_LEASE_EXPIRE] =
        "UPDATE lease SET state = 'expired', ended_ms = ?2 WHERE id = ?1 AND state = 'open' AND until_ms < ?2",
    [SQL_NOW] = "SELECT CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)",
    [SQL_NODE_SET] =
        "INSERT INTO node (name, host, device, job, slots, started_ms, beat_ms, meets) VALUES "
        "(?1, ?2, ?3, ?4, ?5, ?6, ?6, ?7) ON CONFLICT (name) DO UPDATE SET host = excluded.host, "
        "device = excluded.device, job = excluded.job, slots = excluded.slots, beat_ms = excluded.beat_ms, "
        "meets = excluded.meets RETURNING started_ms",
    [SQL_NODE_LIST] =
        "SELECT name, host, device, job, slots, started_ms, beat_ms, meets FROM node WHERE beat_ms >= ?1 ORDER BY name",
    [SQL_NODE_TRIALS] =
        "SELECT lease.client, sum(CASE lease.state WHEN 'open' THEN 1 ELSE 0 END), "
        "sum(CASE lease.state WHEN 'reported' THEN 1 ELSE 0 END) FROM lease JOIN trial ON trial.id = lease.trial_id "
        "WHERE trial.study_id = ?1 AND lease.token LIKE '" NODE_TOKEN "%' GROUP BY lease.client",
    [SQL_NODE_DELETE] = "DELETE FROM node WHERE name = ?1",
    [SQL_NODE_TRIM] = "DELETE FROM node WHERE beat_ms < ?1",
    [SQL_TRIAL_QUEUED] = "SELECT id, number FROM trial WHERE study_id = ?1 AND state = 'queued' ORDER BY "
                         "CASE WHEN origin = 'enqueued' THEN 0 ELSE 1 END, number LIMIT 1 /* FOR UPDATE SKIP LOCKED */",
    [SQL_TRIAL_HEADS] =
        "SELECT number, attempt, state FROM trial WHERE study_id = ?1 AND state IN ('queued', 'running') "
        "ORDER BY number",

    [SQL_METRIC_NAME_INSERT] =
        "INSERT INTO metric_name (name) VALUES (?1) ON CONFLICT (name) DO UPDATE SET name = excluded.name RETURNING id",
    [SQL_METRIC_NAME_FIND] = "SELECT id FROM metric_name WHERE name = ?1",
    [SQL_METRIC_INSERT] =
        "INSERT INTO metric (trial_id, name_id, env_steps, wall_s, value) VALUES (?1, ?2, ?3, ?4, ?5) "
        "ON CONFLICT (trial_id, name_id, env_steps) DO UPDATE SET wall_s = excluded.wall_s, value = excluded.value",
    [SQL_METRIC_DELETE] = "DELETE FROM metric WHERE trial_id = ?1",
    [SQL_METRIC_ALL] = "SELECT name_id, env_steps, wall_s, value FROM metric WHERE trial_id = ?1",
    [SQL_METRIC_COPY] = "INSERT INTO metric (trial_id, name_id, env_steps, wall_s, value) SELECT CAST(?2 AS INTEGER), "
                        "name_id, env_steps, wall_s, value FROM metric WHERE trial_id = ?1 AND env_steps <= ?3",
    [SQL_METRIC_AT] = "SELECT wall_s, value FROM metric WHERE trial_id = ?1 AND name_id = ?2 AND env_steps = ?3",
    [SQL_SUMS_FIND] = "SELECT sums FROM curve_sum WHERE trial_id = ?1",
    [SQL_SUMS_SET] =
        "INSERT INTO curve_sum (trial_id, sums) VALUES (?1, ?2) ON CONFLICT (trial_id) DO UPDATE SET sums = "
        "excluded.sums",
    [SQL_SUMS_DELETE] = "DELETE FROM curve_sum WHERE trial_id = ?1",
    [SQL_METRIC_LAST] = "SELECT env_steps, wall_s, value FROM metric WHERE trial_id = ?1 "
                        "AND name_id = (SELECT id FROM metric_name WHERE name = ?2) ORDER BY env_steps DESC LIMIT 1",
    [SQL_METRIC_NAMES] = "SELECT name FROM metric_name WHERE EXISTS "
                         "(SELECT 1 FROM metric WHERE trial_id = ?1 AND name_id = metric_name.id) ORDER BY name",
    [SQL_DATA_VERSION] = "PRAGMA data_version",
    [SQL_METRIC_CURVE] = "SELECT env_steps, wall_s, value FROM metric WHERE trial_id = ?1 "
                         "AND name_id = (SELECT id FROM metric_name WHERE name = ?2) ORDER BY env_steps",

    [SQL_CHECKPOINT_INSERT] = "INSERT INTO checkpoint (trial_id, env_steps, path, created_ms) VALUES (?1, ?2, ?3, ?4)",
    [SQL_CHECKPOINT_FIND] = "SELECT path FROM checkpoint WHERE trial_id = ?1 ORDER BY id DESC LIMIT 1",
    [SQL_CHECKPOINT_DELETE] = "DELETE FROM checkpoint WHERE trial_id = ?1",

    [SQL_OUTBOX_INSERT] =
        "INSERT INTO outbox (study_id, trial_id, payload, created_ms) VALUES (?1, ?2, ?3, ?4) RETURNING id",
    [SQL_OUTBOX_SEAL] = "UPDATE outbox SET checksum = ?2 WHERE id = ?1",
    [SQL_OUTBOX_READ] =
        "SELECT id, created_ms, payload, checksum FROM outbox WHERE study_id = ?1 AND trial_id = ?2 AND id > ?3 "
        "AND id <= ?4 ORDER BY id LIMIT ?5",
    /* "+": by the newest ids, not through all rows of the study. */
    [SQL_OUTBOX_RUNS] = "SELECT o.trial_id, coalesce(t.number, -1), min(o.id), max(o.id) FROM outbox AS o "
                        "LEFT JOIN trial AS t ON t.id = o.trial_id WHERE +o.study_id = ?1 AND o.id > ?2 "
                        "GROUP BY o.trial_id, t.number ORDER BY min(o.id)",
    [SQL_OUTBOX_COUNT] = "SELECT count(*) FROM outbox WHERE study_id = ?1",
    [SQL_OUTBOX_COUNT_OF] =
        "SELECT count(*) FROM outbox AS o LEFT JOIN tracker_run AS r "
        "ON r.trial_id = o.trial_id AND r.tracker_id = (SELECT id FROM tracker WHERE study_id = ?1 AND name = ?2) "
        "WHERE o.study_id = ?1 AND o.id > coalesce(r.acked_id, 0)",
    /* Removes rows that every tracker of the study has acknowledged; a tracker without a position in the run keeps
     * all. */
    [SQL_OUTBOX_TRIM] = "DELETE FROM outbox WHERE study_id = ?1 AND trial_id = ?2 AND id <= "
                        "(SELECT min(coalesce(r.acked_id, 0)) FROM tracker AS t LEFT JOIN tracker_run AS r "
                        "ON r.tracker_id = t.id AND r.trial_id = ?2 WHERE t.study_id = ?1)",
    [SQL_OUTBOX_TRIM_ALL] = "DELETE FROM outbox WHERE study_id = ?1 AND id <= coalesce((SELECT "
                            "min(coalesce(r.acked_id, 0)) FROM tracker AS t "
                            "LEFT JOIN tracker_run AS r ON r.tracker_id = t.id AND r.trial_id = outbox.trial_id WHERE "
                            "t.study_id = ?1), id)",

    [SQL_TRACKER_FIND] = "SELECT id, key FROM tracker WHERE study_id = ?1 AND name = ?2",
    [SQL_TRACKER_LIST] = "SELECT name, key FROM tracker WHERE study_id = ?1 ORDER BY id",
    [SQL_TRACKER_INSERT] = "INSERT INTO tracker (study_id, name, key) VALUES (?1, ?2, ?3)",
    [SQL_TRACKER_DELETE] = "DELETE FROM tracker WHERE study_id = ?1 AND name = ?2",
    [SQL_POSITION_FIND] = "SELECT r.acked_id, r.claimed_id, r.thin_ms, r.last_step, r.sent_rows, r.ended, r.state, "
                          "r.refused FROM tracker AS t JOIN tracker_run AS r ON r.tracker_id = t.id "
                          "WHERE t.study_id = ?1 AND t.name = ?2 AND r.trial_id = ?3",
    [SQL_POSITION_SET] =
        "INSERT INTO tracker_run (tracker_id, trial_id, acked_id, claimed_id, thin_ms, last_step, "
        "sent_rows, ended, state, refused) SELECT id, "
        "CAST(?3 AS INTEGER), CAST(?4 AS INTEGER), CAST(?5 AS INTEGER), CAST(?6 AS INTEGER), CAST(?7 AS INTEGER), "
        "CAST(?8 AS INTEGER), CAST(?9 AS INTEGER), ?10, ?11 FROM tracker "
        "WHERE study_id = ?1 AND name = ?2 ON CONFLICT (tracker_id, trial_id) DO UPDATE SET "
        "acked_id = excluded.acked_id, claimed_id = excluded.claimed_id, thin_ms = excluded.thin_ms, last_step = "
        "excluded.last_step, sent_rows = excluded.sent_rows, "
        "ended = excluded.ended, state = excluded.state, refused = excluded.refused",
};

enum status store_sql_fail(struct store *store, int rc, const char *what, struct error *err)
{
    int primary = rc & 0xff;
    int os = primary == SQLITE_IOERR ? errno : 0; /* SQLite keeps it for a statement, but not for a COMMIT */
    const char *text = store->db != NULL ? sqlite3_errmsg(store->db) : sqlite3_errstr(rc);

    if (os == 0 && store->db != NULL)
        os = sqlite3_system_errno(store->db);
    if (primary == SQLITE_FULL ||
        ((primary == SQLITE_IOERR || primary == SQLITE_CANTOPEN) && (os == ENOSPC || os == EDQUOT))) {
        store->full = true;
        return FAIL(err, ST_IO, "%s: %s: the disk is full, nothing was half-written; free some space and try again",
                    store->path, what);
    }
    if (primary == SQLITE_IOERR && os == EFBIG)
        return FAIL(err, ST_IO,
                    "%s: %s: a file of the store may not grow beyond this process's limit, nothing was half-written; "
                    "raise the limit (ulimit -f) and try again",
                    store->path, what);
    switch (primary) {
    case SQLITE_CONSTRAINT:
        if (rc == SQLITE_CONSTRAINT_UNIQUE)
            return FAIL(err, ST_EXISTS, "%s: %s: it already exists (%s)", store->path, what, text);
        return FAIL(err, ST_INTERNAL, "%s: %s: %s (SQLite %d)", store->path, what, text, rc);
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return FAIL(err, ST_BUSY,
                    "%s: %s: another program kept the file locked for %.0f s (%s); close it and try again", store->path,
                    what, store->locked != NULL ? clock_mono_s() - store->locked_s : STORE_BUSY_MS / 1000.0, text);
    case SQLITE_CORRUPT:
        return FAIL(err, ST_CORRUPT,
                    "%s: %s: the store is damaged (%s); restore a copy, or save what is readable with "
                    "'sqlite3 %s .recover | sqlite3 saved.db'",
                    store->path, what, text, store->path);
    case SQLITE_NOTADB:
        return FAIL(err, ST_CORRUPT,
                    "%s is not a Trawl store (it does not start like an SQLite file); it was left as it is, give "
                    "another path to --store or restore a copy",
                    store->path);
    case SQLITE_NOMEM:
        mem_refused(0);
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_CANTOPEN:
    case SQLITE_IOERR:
        return FAIL(
            err, ST_IO,
            "%s: %s: %s%s%s; check that the file and its directory exist, may be written and are on a local disk",
            store->path, what, text, os != 0 ? ": " : "", os != 0 ? strerror(os) : "");
    case SQLITE_TOOBIG:
        return FAIL(err, ST_LIMIT, "%s: %s: a text is too long for the store (%s)", store->path, what, text);
    default:
        return FAIL(err, ST_INTERNAL, "%s: %s: %s (SQLite %d)", store->path, what, text, rc);
    }
}

enum status store_sql_prepare(struct store *store, const char *sql, struct db_stmt *ret_stmt, struct error *err)
{
    if (store->pg != NULL) {
        pg_prepare(store, sql, &ret_stmt->pg);
        return ST_OK;
    }
    int rc = sqlite3_prepare_v3(store->db, sql, -1, SQLITE_PREPARE_PERSISTENT, &ret_stmt->lite, NULL);

    /* The texts are right for the schema: when a table or column is missing, the file is wrong. */
    if ((rc & 0xff) == SQLITE_ERROR)
        return FAIL(err, ST_CORRUPT, "%s: the tables are not those of a Trawl store (%s); restore a copy", store->path,
                    sqlite3_errmsg(store->db));
    return rc == SQLITE_OK ? ST_OK : store_sql_fail(store, rc, "reading the tables", err);
}

void store_sql_finalize(struct db_stmt *stmt)
{
    sqlite3_finalize(stmt->lite);
    if (stmt->pg != NULL)
        pg_finalize(stmt->pg);
    *stmt = (struct db_stmt){0};
}

/* Within a transaction of PostgreSQL's a row is locked by the statement that reads it before it is changed: no other
 * connection changes it between its check and its seal. SQLite has one writer at a time. */
static bool locks_row(enum store_sql id)
{
    return id == SQL_STUDY_ROW || id == SQL_STUDY_LOCK || id == SQL_TRIAL_ROW || id == SQL_TRIAL_STATE ||
           id == SQL_MARK_ROW || id == SQL_LEASE_ROW;
}

enum status store_sql(struct store *store, enum store_sql id, struct db_values values, struct db_stmt **ret_stmt,
                      struct error *err)
{
    struct db_stmt *stmt = &store->stmts[id];
    char text[256];

    *ret_stmt = NULL;
    if (stmt->lite == NULL && stmt->pg == NULL) {
        bool locks = store->pg != NULL && locks_row(id);
        if (locks)
            snprintf(text, sizeof text, "%s FOR NO KEY UPDATE", store_sql_text[id]);
        TRY(store_sql_prepare(store, locks ? text : store_sql_text[id], stmt, err));
    }
    if (stmt->pg != NULL) {
        pg_clear(stmt->pg);
    } else {
        sqlite3_reset(stmt->lite);
        sqlite3_clear_bindings(stmt->lite);
    }
    for (size_t i = 0; i < values.n; i++)
        db_bind(stmt, (int)i + 1, values.v[i]);
    *ret_stmt = stmt;
    return ST_OK;
}

enum status store_sql_step(struct store *store, struct db_stmt *stmt, int *ret_step, const char *what,
                           struct error *err)
{
    if (stmt->pg != NULL) {
        bool row = false;
        enum status status = pg_step(store, stmt->pg, &row, what, err);
        *ret_step = row ? DB_ROW : DB_DONE;
        return status;
    }
    errno = 0;
    int rc = sqlite3_step(stmt->lite);

    *ret_step = rc;
    if (rc == DB_ROW || rc == DB_DONE)
        return ST_OK;
    enum status status = store_sql_fail(store, rc, what, err);
    db_reset(stmt);
    return status;
}

enum status store_sql_row(struct store *store, enum store_sql id, struct db_values values, const char *what,
                          struct db_stmt **ret_stmt, bool *ret_there, struct error *err)
{
    int step;

    *ret_there = false;
    TRY(store_sql(store, id, values, ret_stmt, err));
    TRY(store_sql_step(store, *ret_stmt, &step, what, err));
    *ret_there = step == DB_ROW;
    return ST_OK;
}

bool store_sql_next(struct store *store, struct db_stmt *stmt, const char *what, enum status *rc, struct error *err)
{
    int step = DB_DONE;

    if (*rc == ST_OK)
        *rc = store_sql_step(store, stmt, &step, what, err);
    if (*rc == ST_OK && step == DB_ROW)
        return true;
    db_reset(stmt);
    return false;
}

enum status store_sql_change(struct store *store, enum store_sql id, struct db_values values, const char *what,
                             int64_t *ret_n, struct error *err)
{
    struct db_stmt *stmt;
    bool there;

    *ret_n = 0;
    TRY(store_sql_row(store, id, values, what, &stmt, &there, err));
    db_reset(stmt);
    *ret_n = db_changes(stmt);
    return ST_OK;
}

enum status store_sql_run(struct store *store, enum store_sql id, struct db_values values, const char *what,
                          struct error *err)
{
    int64_t n;

    return store_sql_change(store, id, values, what, &n, err);
}

enum status store_sql_queue_stmt(struct store *store, struct db_stmt *stmt, const char *what, struct error *err)
{
    int step;

    if (stmt->pg != NULL)
        return pg_queue(store, stmt->pg, what, err);
    TRY(store_sql_step(store, stmt, &step, what, err));
    db_reset(stmt);
    return ST_OK;
}

enum status store_sql_queue(struct store *store, enum store_sql id, struct db_values values, const char *what,
                            struct error *err)
{
    struct db_stmt *stmt;

    TRY(store_sql(store, id, values, &stmt, err));
    return store_sql_queue_stmt(store, stmt, what, err);
}

enum status store_sql_i64(struct store *store, enum store_sql id, struct db_values values, const char *what,
                          int64_t *ret_value, struct error *err)
{
    struct db_stmt *stmt;
    bool there;

    *ret_value = 0;
    TRY(store_sql_row(store, id, values, what, &stmt, &there, err));
    *ret_value = there ? db_i64(stmt, 0) : 0;
    db_reset(stmt);
    return ST_OK;
}

enum status store_exec(struct store *store, const char *sql, const char *what, struct error *err)
{
    if (store->pg != NULL)
        return pg_exec(store, sql, what, err);
    errno = 0;
    int rc = sqlite3_exec(store->db, sql, NULL, NULL, NULL);

    return rc == SQLITE_OK ? ST_OK : store_sql_fail(store, rc, what, err);
}

static enum status may_write(struct store *store, const char *what, struct error *err)
{
    if (store->taken)
        return FAIL(err, ST_BUSY, "%s: %s: another controller has the store now", store->path, what);
    if (!store->writer)
        return FAIL(err, ST_INTERNAL, "%s: %s: the store is open for reading only", store->path, what);
    store->full = false;
    return ST_OK;
}

enum status store_begin(struct store *store, const char *what, struct error *err)
{
    TRY(may_write(store, what, err));
    return store->pg != NULL ? pg_begin(store, true, true, what, err)
                             : store_sql_run(store, SQL_BEGIN, NO_VALUES, what, err);
}

enum status store_begin_late(struct store *store, const char *what, struct error *err)
{
    if (store->pg == NULL)
        return store_begin(store, what, err);
    TRY(may_write(store, what, err));
    return pg_begin(store, true, false, what, err);
}

enum status store_begin_synced(struct store *store, const char *what, struct error *err)
{
    if (store->pg == NULL) { /* each commit of PostgreSQL waits for the disk */
        TRY(store_exec(store, "PRAGMA synchronous = FULL", what, err)); /* no prepared statement can do this */
        store->synced = true;
    }
    return store_begin(store, what, err);
}

enum status store_end(struct store *store, enum status rc, const char *what, struct error *err)
{
    if (store->pg != NULL) {
        THEN(rc, pg_commit(store, what, err));
        if (rc != ST_OK) {
            pg_rollback(store);
            store_names_clear(store);
        }
        return rc;
    }
    THEN(rc, store_sql_run(store, SQL_COMMIT, NO_VALUES, what, err));
    /* SQLite itself rolls back after some failures (a full disk): only an open transaction needs it. */
    if (rc != ST_OK && !sqlite3_get_autocommit(store->db))
        sqlite3_exec(store->db, "ROLLBACK", NULL, NULL, NULL);
    if (rc != ST_OK)
        store_names_clear(store);
    if (store->synced && sqlite3_exec(store->db, "PRAGMA synchronous = NORMAL", NULL, NULL, NULL) == SQLITE_OK)
        store->synced = false; /* else the next transactions wait for the disk too, which only takes time */
    return rc;
}

static bool in_transaction(const struct store *store)
{
    return store->pg != NULL ? pg_in_transaction(store->pg) : !sqlite3_get_autocommit(store->db);
}

enum status store_read_begin(struct store *store, bool *ret_begun, struct error *err)
{
    *ret_begun = false;
    if (in_transaction(store))
        return ST_OK;
    TRY(store->pg != NULL ? pg_begin(store, false, false, "reading", err)
                          : store_sql_run(store, SQL_BEGIN_READ, NO_VALUES, "reading", err));
    *ret_begun = true;
    return ST_OK;
}

enum status store_read_end(struct store *store, bool begun, enum status rc)
{
    if (begun && store->pg != NULL) /* nothing was written: nothing is lost */
        pg_rollback(store);
    else if (begun)
        sqlite3_exec(store->db, "ROLLBACK", NULL, NULL, NULL);
    return rc;
}

void store_on_full(struct store *store, store_wait_fn *wait, void *ctx)
{
    store->wait = wait;
    store->wait_ctx = ctx;
}

static int on_busy(void *ctx, int n_before)
{
    struct store *store = ctx;
    double now_s = clock_mono_s();

    if (n_before == 0)
        store->locked_s = now_s;
    return store->locked(store->locked_ctx, store->path, now_s - store->locked_s);
}

void store_on_locked(struct store *store, store_locked_fn *locked, void *ctx)
{
    store->locked = locked;
    store->locked_ctx = ctx;
    if (store->pg != NULL)
        return; /* waits by itself */
    if (locked != NULL)
        sqlite3_busy_handler(store->db, on_busy, store);
    else
        sqlite3_busy_timeout(store->db, STORE_BUSY_MS);
}

bool store_wait_for_space(struct store *store, enum status rc, struct error *err)
{
    bool full = rc != ST_OK && store->full;

    if (rc != ST_OK && store->away && store->wait != NULL && !store->given_up) {
        store->away = false; /* its begin waits for the database */
        error_clear(err);
        return true;
    }
    store->full = false;
    if (store->waited && !full)
        (void)store->wait(store->wait_ctx, store->path, true);
    store->waited = false;
    if (!full || store->wait == NULL)
        return false;
    store_fold_now(store); /* the space of a folded log is used again */
    store->waited = store->wait(store->wait_ctx, store->path, false);
    if (store->waited)
        error_clear(err);
    return store->waited;
}

char *db_copy_text(struct db_stmt *stmt, int at)
{
    const char *text = db_text(stmt, at);

    if (text == NULL && db_type(stmt, at) != DB_NULL)
        mem_refused(0);
    return text != NULL ? mem_strdup(text) : NULL;
}
