/* metric.c - learning curves and checkpoints by reference.
 *
 * A curve's point is keyed by (trial, metric, env_steps); names are kept once. NaN values are kept as NULL and come
 * back as NaN. */
#include "store/store_priv.h"

#include "base/clock.h"
#include "base/mem.h"

#include <string.h>

/* The id of a metric's name, which is added when new. */
static enum status name_id(struct store *store, const char *name, int64_t *ret_id, struct error *err)
{
    int step;
    sqlite3_stmt *stmt;

    TRY(store_sql(store, SQL_METRIC_NAME_FIND, &stmt, err));
    store_bind_text(stmt, 1, name);
    TRY(store_sql_step(store, stmt, &step, "reading a metric's name", err));
    *ret_id = sqlite3_column_int64(stmt, 0);
    sqlite3_reset(stmt);
    if (step == SQLITE_ROW)
        return ST_OK;
    TRY(store_sql(store, SQL_METRIC_NAME_INSERT, &stmt, err));
    store_bind_text(stmt, 1, name);
    TRY(store_sql_run(store, stmt, "adding a metric's name", err));
    *ret_id = sqlite3_last_insert_rowid(store->db);
    return ST_OK;
}

enum status store_metric_insert(struct store *store, int64_t trial_id, const struct metric_point *points, size_t n,
                                struct error *err)
{
    for (size_t i = 0; i < n; i++) {
        int64_t id;
        TRY(name_id(store, points[i].name, &id, err));
        sqlite3_stmt *stmt;
        TRY(store_sql(store, SQL_METRIC_INSERT, &stmt, err));
        sqlite3_bind_int64(stmt, 1, trial_id);
        sqlite3_bind_int64(stmt, 2, id);
        sqlite3_bind_int64(stmt, 3, points[i].env_steps);
        sqlite3_bind_double(stmt, 4, points[i].wall_s);
        sqlite3_bind_double(stmt, 5, points[i].value);
        TRY(store_sql_run(store, stmt, "recording metrics", err));
    }
    return ST_OK;
}

enum status store_checkpoint_insert(struct store *store, int64_t trial_id, int64_t env_steps, const char *path,
                                    struct error *err)
{
    sqlite3_stmt *stmt;

    TRY(store_sql(store, SQL_CHECKPOINT_INSERT, &stmt, err));
    sqlite3_bind_int64(stmt, 1, trial_id);
    sqlite3_bind_int64(stmt, 2, env_steps);
    store_bind_text(stmt, 3, path);
    sqlite3_bind_int64(stmt, 4, clock_utc_ms());
    return store_sql_run(store, stmt, "recording a checkpoint", err);
}

enum status store_attempt_clear(struct store *store, int64_t trial_id, struct error *err)
{
    static const enum store_sql ids[] = {SQL_METRIC_DELETE, SQL_CHECKPOINT_DELETE};

    for (size_t i = 0; i < sizeof ids / sizeof ids[0]; i++) {
        sqlite3_stmt *stmt;
        TRY(store_sql(store, ids[i], &stmt, err));
        sqlite3_bind_int64(stmt, 1, trial_id);
        TRY(store_sql_run(store, stmt, "starting a trial", err));
    }
    return ST_OK;
}

enum status store_metrics_add(struct store *store, int64_t trial_id, const struct metric_point *points, size_t n,
                              const char *outbox_json, struct error *err)
{
    static const char what[] = "recording metrics";
    struct trial trial;
    enum status rc;

    TRY(store_begin(store, what, err));
    rc = store_trial_by_id(store, trial_id, &trial, err);
    if (rc == ST_OK && trial.state != TRIAL_RUNNING)
        rc = FAIL(err, ST_EXISTS, "%s: trial %lld is %s, late metrics were dropped", store->path,
                  (long long)trial.number, trial_state_name(trial.state));
    int64_t study_id = trial.study_id;
    trial_free(&trial);
    if (rc == ST_OK)
        rc = store_metric_insert(store, trial_id, points, n, err);
    if (rc == ST_OK && outbox_json != NULL)
        rc = store_outbox_insert(store, study_id, trial_id, outbox_json, err);
    return store_end(store, rc, what, err);
}

enum status store_curve(struct store *store, int64_t trial_id, const char *name, struct curve_point **ret_points,
                        size_t *ret_n, struct error *err)
{
    struct curve_point *points = NULL;
    size_t n = 0, cap = 0;
    enum status rc = ST_OK;
    int step;
    sqlite3_stmt *stmt;

    *ret_points = NULL;
    *ret_n = 0;
    TRY(store_sql(store, SQL_METRIC_CURVE, &stmt, err));
    sqlite3_bind_int64(stmt, 1, trial_id);
    store_bind_text(stmt, 2, name);
    while ((rc = store_sql_step(store, stmt, &step, "reading a learning curve", err)) == ST_OK && step == SQLITE_ROW) {
        if (n == cap) {
            struct curve_point *grown = mem_grow(points, cap, cap > 0 ? cap * 2 : 64, sizeof *points);
            if (grown == NULL) {
                rc = FAIL(err, ST_NOMEM, "%s: out of memory while reading a learning curve", store->path);
                break;
            }
            points = grown;
            cap = cap > 0 ? cap * 2 : 64;
        }
        points[n].env_steps = sqlite3_column_int64(stmt, 0);
        points[n].wall_s = store_column_f64(stmt, 1);
        points[n].value = store_column_f64(stmt, 2);
        n++;
    }
    sqlite3_reset(stmt);
    if (rc != ST_OK) {
        mem_free(points);
        return rc;
    }
    *ret_points = points;
    *ret_n = n;
    return ST_OK;
}

static enum status delete_checkpoints(struct store *store, int64_t trial_id, const char *what, struct error *err)
{
    sqlite3_stmt *stmt;

    TRY(store_sql(store, SQL_CHECKPOINT_DELETE, &stmt, err));
    sqlite3_bind_int64(stmt, 1, trial_id);
    return store_sql_run(store, stmt, what, err);
}

enum status store_checkpoint_add(struct store *store, int64_t trial_id, int64_t env_steps, const char *path,
                                 struct error *err)
{
    static const char what[] = "recording a checkpoint";

    TRY(store_begin(store, what, err));
    enum status rc = delete_checkpoints(store, trial_id, what, err);
    if (rc == ST_OK)
        rc = store_checkpoint_insert(store, trial_id, env_steps, path, err);
    return store_end(store, rc, what, err);
}

enum status store_checkpoint_forget(struct store *store, int64_t trial_id, struct error *err)
{
    static const char what[] = "forgetting a checkpoint";

    TRY(store_begin(store, what, err));
    return store_end(store, delete_checkpoints(store, trial_id, what, err), what, err);
}

enum status store_checkpoint_path(struct store *store, int64_t trial_id, char **ret_path, struct error *err)
{
    enum status rc = ST_OK;
    int step;
    sqlite3_stmt *stmt;

    *ret_path = NULL;
    TRY(store_sql(store, SQL_CHECKPOINT_FIND, &stmt, err));
    sqlite3_bind_int64(stmt, 1, trial_id);
    TRY(store_sql_step(store, stmt, &step, "reading a checkpoint's path", err));
    if (step == SQLITE_ROW && store_column_text(stmt, 0, ret_path) != ST_OK)
        rc = FAIL(err, ST_NOMEM, "%s: out of memory while reading a checkpoint's path", store->path);
    sqlite3_reset(stmt);
    return rc;
}
