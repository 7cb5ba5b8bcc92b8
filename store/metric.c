/* metric.c - learning curves and checkpoints by reference.
 *
 * Points of a trial are written between store_metric_open and store_metric_close, which read and write the checksums of
 * its curves (checksum.c). A curve's point is keyed by (trial, metric, env_steps); names are kept once. NaN is kept as
 * NULL and read back as NaN. */
#include "store/store_priv.h"

#include "base/os/clock.h"
#include "base/mem.h"

#include <stdio.h>
#include <string.h>

void store_names_clear(struct store *store)
{
    for (size_t i = 0; i < store->n_names; i++)
        mem_free(store->names[i].name);
    mem_free(store->names);
    store->names = NULL;
    store->n_names = store->cap_names = store->next_name = 0;
}

/* Reports hold the same names in the same order: the search starts after the last name found. */
static bool find_name(struct store *store, const char *name, int64_t *ret_id)
{
    for (size_t k = 0; k < store->n_names; k++) {
        size_t i = (store->next_name + k) % store->n_names;
        if (strcmp(store->names[i].name, name) != 0)
            continue;
        store->next_name = i + 1;
        *ret_id = store->names[i].id;
        return true;
    }
    return false;
}

/* The id of a metric's name, which is added when new. */
static enum status name_id(struct store *store, const char *name, int64_t *ret_id, struct error *err)
{
    int step;
    struct db_stmt *stmt;

    if (find_name(store, name, ret_id))
        return ST_OK;
    TRY(store_sql(store, SQL_METRIC_NAME_FIND, &stmt, err));
    db_bind_text(stmt, 1, name);
    TRY(store_sql_step(store, stmt, &step, "reading a metric's name", err));
    *ret_id = db_i64(stmt, 0);
    db_reset(stmt);
    if (step != DB_ROW) {
        TRY(store_sql(store, SQL_METRIC_NAME_INSERT, &stmt, err));
        db_bind_text(stmt, 1, name);
        TRY(store_sql_insert(store, stmt, "adding a metric's name", ret_id, err));
    }
    MEM_ROOM(store->names, store->n_names, store->cap_names);
    store->names[store->n_names++] = (struct store_name){.name = mem_strdup(name), .id = *ret_id};
    return ST_OK;
}

enum status store_metric_open(struct store *store, int64_t trial_id, struct error *err)
{
    bool there;

    TRY(store_sums_read(store, trial_id, &store->sums, &there, err));
    return there ? ST_OK
                 : store_sums_scan(store, trial_id, &store->sums, err); /* written by an older version, or new */
}

enum status store_metric_close(struct store *store, int64_t trial_id, struct error *err)
{
    return store->sums.n > 0 ? store_sums_write(store, trial_id, &store->sums, err) : ST_OK;
}

/* Removes a point that will be replaced from the sum of its curve. */
static enum status forget_point(struct store *store, int64_t trial_id, struct curve_sum *sum, int64_t env_steps,
                                struct error *err)
{
    int step;
    struct db_stmt *stmt;

    TRY(store_sql(store, SQL_METRIC_AT, &stmt, err));
    db_bind_i64(stmt, 1, trial_id);
    db_bind_i64(stmt, 2, sum->name_id);
    db_bind_i64(stmt, 3, env_steps);
    TRY(store_sql_step(store, stmt, &step, "recording metrics", err));
    if (step == DB_ROW) {
        sum->n--;
        sum->sum -= store_point_sum(env_steps, db_f64_or_nan(stmt, 0), db_f64_or_nan(stmt, 1));
    }
    db_reset(stmt);
    return ST_OK;
}

enum status store_metric_insert(struct store *store, int64_t trial_id, const struct metric_point *points, size_t n,
                                struct error *err)
{
    for (size_t i = 0; i < n; i++) {
        const struct metric_point *p = &points[i];
        struct curve_sum *sum;
        int64_t id;
        TRY(name_id(store, p->name, &id, err));
        sum = store_sums_get(&store->sums, id);
        if (p->env_steps <= sum->last_steps)
            TRY(forget_point(store, trial_id, sum, p->env_steps, err));
        struct db_stmt *stmt;
        TRY(store_sql(store, SQL_METRIC_INSERT, &stmt, err));
        db_bind_i64(stmt, 1, trial_id);
        db_bind_i64(stmt, 2, id);
        db_bind_i64(stmt, 3, p->env_steps);
        db_bind_f64(stmt, 4, p->wall_s);
        db_bind_f64(stmt, 5, p->value);
        TRY(store_sql_queue(store, stmt, "recording metrics", err));
        store_sum_add(sum, p->env_steps, store_point_sum(p->env_steps, p->wall_s, p->value));
    }
    return ST_OK;
}

enum status store_metric_copy(struct store *store, int64_t from_id, int64_t to_id, int64_t env_steps, struct error *err)
{
    struct db_stmt *stmt;

    TRY(store_sql(store, SQL_METRIC_COPY, &stmt, err));
    db_bind_i64(stmt, 1, from_id);
    db_bind_i64(stmt, 2, to_id);
    db_bind_i64(stmt, 3, env_steps);
    TRY(store_sql_run(store, stmt, "copying a learning curve", err));
    TRY(store_sums_scan(store, to_id, &store->sums, err));
    return store_metric_close(store, to_id, err);
}

enum status store_checkpoint_insert(struct store *store, int64_t trial_id, int64_t env_steps, const char *path,
                                    struct error *err)
{
    struct db_stmt *stmt;

    TRY(store_sql(store, SQL_CHECKPOINT_INSERT, &stmt, err));
    db_bind_i64(stmt, 1, trial_id);
    db_bind_i64(stmt, 2, env_steps);
    db_bind_text(stmt, 3, path);
    db_bind_i64(stmt, 4, clock_utc_ms());
    return store_sql_run(store, stmt, "recording a checkpoint", err);
}

enum status store_attempt_clear(struct store *store, int64_t trial_id, struct error *err)
{
    static const enum store_sql ids[] = {SQL_METRIC_DELETE, SQL_SUMS_DELETE, SQL_CHECKPOINT_DELETE};

    for (size_t i = 0; i < sizeof ids / sizeof ids[0]; i++) {
        struct db_stmt *stmt;
        TRY(store_sql(store, ids[i], &stmt, err));
        db_bind_i64(stmt, 1, trial_id);
        TRY(store_sql_queue(store, stmt, "starting a trial", err));
    }
    return ST_OK;
}

/* The study of a trial that runs; ST_EXISTS when it does not. */
static enum status running_study(struct store *store, int64_t trial_id, int64_t *ret_study_id, struct error *err)
{
    enum status rc = ST_OK;
    int step;
    struct db_stmt *stmt;

    TRY(store_sql(store, SQL_TRIAL_STATE, &stmt, err));
    db_bind_i64(stmt, 1, trial_id);
    TRY(store_sql_step(store, stmt, &step, "reading a trial", err));
    *ret_study_id = db_i64(stmt, 0);
    if (step != DB_ROW)
        rc = FAIL(err, ST_NOTFOUND, "%s: no trial has the id %lld", store->path, (long long)trial_id);
    else if (db_i64(stmt, 2) == 0)
        rc = FAIL(err, ST_EXISTS, "%s: trial %lld is %s, late metrics were dropped", store->path,
                  (long long)db_i64(stmt, 1), db_text(stmt, 3));
    db_reset(stmt);
    return rc;
}

enum status store_report_part(struct store *store, const struct metric_report *r, struct error *err)
{
    int64_t study_id = 0;

    TRY(running_study(store, r->trial_id, &study_id, err));
    TRY(store_metric_open(store, r->trial_id, err));
    TRY(store_metric_insert(store, r->trial_id, r->points, r->n, err));
    TRY(store_metric_close(store, r->trial_id, err));
    return r->outbox_json != NULL ? store_outbox_insert(store, study_id, r->trial_id, r->outbox_json, err) : ST_OK;
}

enum status store_reports_add(struct store *store, const struct metric_report *reports, size_t n, struct error *err)
{
    static const char what[] = "recording metrics";
    int64_t study_id = 0;
    enum status rc = ST_OK;

    TRY(store_begin_late(store, what, err));
    for (size_t i = 0; rc == ST_OK && i < n; i++) {
        const struct metric_report *r = &reports[i];
        if (i == 0 || r->trial_id != reports[i - 1].trial_id) {
            rc = running_study(store, r->trial_id, &study_id, err);
            if (rc == ST_OK)
                rc = store_metric_open(store, r->trial_id, err);
        }
        if (rc == ST_OK)
            rc = store_metric_insert(store, r->trial_id, r->points, r->n, err);
        if (rc == ST_OK && (i + 1 == n || reports[i + 1].trial_id != r->trial_id))
            rc = store_metric_close(store, r->trial_id, err);
        if (rc == ST_OK && r->outbox_json != NULL)
            rc = store_outbox_insert(store, study_id, r->trial_id, r->outbox_json, err);
    }
    return store_end(store, rc, what, err);
}

/* The points of a metric's curve, each added to *sum. */
static enum status read_curve(struct store *store, int64_t trial_id, const char *name, struct curve_point **points,
                              size_t *n, struct curve_sum *sum, struct error *err)
{
    size_t cap = 0;
    enum status rc;
    int step;
    struct db_stmt *stmt;

    TRY(store_sql(store, SQL_METRIC_CURVE, &stmt, err));
    db_bind_i64(stmt, 1, trial_id);
    db_bind_text(stmt, 2, name);
    while ((rc = store_sql_step(store, stmt, &step, "reading a learning curve", err)) == ST_OK && step == DB_ROW) {
        MEM_ROOM(*points, *n, cap);
        struct curve_point *p = &(*points)[(*n)++];
        *p = (struct curve_point){
            .env_steps = db_i64(stmt, 0), .wall_s = db_f64_or_nan(stmt, 1), .value = db_f64_or_nan(stmt, 2)};
        store_sum_add(sum, p->env_steps, store_point_sum(p->env_steps, p->wall_s, p->value));
    }
    db_reset(stmt);
    return rc;
}

enum status store_curve_expected(struct store *store, int64_t trial_id, const char *name, bool *ret_known,
                                 struct curve_sum *ret_sum, struct error *err)
{
    struct curve_sum *found = NULL;
    int step;
    struct db_stmt *stmt;

    *ret_sum = (struct curve_sum){.last_steps = INT64_MIN};
    TRY(store_sums_read(store, trial_id, &store->sums, ret_known, err));
    TRY(store_sql(store, SQL_METRIC_NAME_FIND, &stmt, err));
    db_bind_text(stmt, 1, name);
    TRY(store_sql_step(store, stmt, &step, "reading a metric's name", err));
    if (step == DB_ROW)
        found = store_sums_find(&store->sums, db_i64(stmt, 0));
    db_reset(stmt);
    if (found != NULL)
        *ret_sum = *found;
    return ST_OK;
}

enum status store_curve_damaged(struct store *store, int64_t trial_id, const char *name, struct error *err)
{
    char what[200];

    snprintf(what, sizeof what, "the learning curve %.100s of the trial with id %lld", name, (long long)trial_id);
    return store_damaged(store, what, err);
}

enum status store_curve(struct store *store, int64_t trial_id, const char *name, struct curve_point **ret_points,
                        size_t *ret_n, struct error *err)
{
    struct curve_point *points = NULL;
    struct curve_sum sum = {.last_steps = INT64_MIN}, expected;
    size_t n = 0;
    bool begun, known = false;
    enum status rc;

    *ret_points = NULL;
    *ret_n = 0;
    TRY(store_read_begin(store, &begun, err)); /* points and their sum from one state of the store */
    rc = read_curve(store, trial_id, name, &points, &n, &sum, err);
    if (rc == ST_OK)
        rc = store_curve_expected(store, trial_id, name, &known, &expected, err);
    if (rc == ST_OK && known && (sum.n != expected.n || sum.sum != expected.sum))
        rc = store_curve_damaged(store, trial_id, name, err);
    rc = store_read_end(store, begun, rc);
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
    struct db_stmt *stmt;

    TRY(store_sql(store, SQL_CHECKPOINT_DELETE, &stmt, err));
    db_bind_i64(stmt, 1, trial_id);
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
    int step;
    struct db_stmt *stmt;

    *ret_path = NULL;
    TRY(store_sql(store, SQL_CHECKPOINT_FIND, &stmt, err));
    db_bind_i64(stmt, 1, trial_id);
    TRY(store_sql_step(store, stmt, &step, "reading a checkpoint's path", err));
    if (step == DB_ROW)
        *ret_path = db_copy_text(stmt, 0);
    db_reset(stmt);
    return ST_OK;
}
