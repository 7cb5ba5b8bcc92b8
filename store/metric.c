/* metric.c - learning curves and checkpoints by reference.
 *
 * Points of a trial are written between store_metric_open and store_metric_close, which read and write the checksums of
 * its curves (checksum.c). A curve's point is keyed by (trial, metric, env_steps); names are kept once. NaN is kept as
 * NULL and read back as NaN. */
#include "store/store_priv.h"

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
    struct db_stmt *stmt;
    bool there;

    if (find_name(store, name, ret_id))
        return ST_OK;
    TRY(store_sql_row(store, SQL_METRIC_NAME_FIND, VALUES(val_text(name)), "reading a metric's name", &stmt, &there,
                      err));
    *ret_id = db_i64(stmt, 0);
    db_reset(stmt);
    if (!there)
        TRY(store_sql_i64(store, SQL_METRIC_NAME_INSERT, VALUES(val_text(name)), "adding a metric's name", ret_id,
                          err));
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
    struct db_stmt *stmt;
    bool there;

    TRY(store_sql_row(store, SQL_METRIC_AT, VALUES(val_i64(trial_id), val_i64(sum->name_id), val_i64(env_steps)),
                      "recording metrics", &stmt, &there, err));
    if (there) {
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
        int64_t id;
        TRY(name_id(store, p->name, &id, err));
        struct curve_sum *sum = store_sums_get(&store->sums, id);
        if (p->env_steps <= sum->last_steps)
            TRY(forget_point(store, trial_id, sum, p->env_steps, err));
        TRY(store_sql_queue(
            store, SQL_METRIC_INSERT,
            VALUES(val_i64(trial_id), val_i64(id), val_i64(p->env_steps), val_f64(p->wall_s), val_f64(p->value)),
            "recording metrics", err));
        store_sum_add(sum, p->env_steps, store_point_sum(p->env_steps, p->wall_s, p->value));
    }
    return ST_OK;
}

enum status store_metric_copy(struct store *store, int64_t from_id, int64_t to_id, int64_t env_steps, struct error *err)
{
    TRY(store_sql_run(store, SQL_METRIC_COPY, VALUES(val_i64(from_id), val_i64(to_id), val_i64(env_steps)),
                      "copying a learning curve", err));
    TRY(store_sums_scan(store, to_id, &store->sums, err));
    return store_metric_close(store, to_id, err);
}

enum status store_checkpoint_insert(struct store *store, int64_t trial_id, int64_t env_steps, const char *path,
                                    struct error *err)
{
    return store_sql_run(store, SQL_CHECKPOINT_INSERT,
                         VALUES(val_i64(trial_id), val_i64(env_steps), val_text(path), val_i64(clock_utc_ms())),
                         "recording a checkpoint", err);
}

enum status store_attempt_clear(struct store *store, int64_t trial_id, struct error *err)
{
    static const enum store_sql ids[] = {SQL_METRIC_DELETE, SQL_SUMS_DELETE, SQL_CHECKPOINT_DELETE};

    for (size_t i = 0; i < COUNT(ids); i++)
        TRY(store_sql_queue(store, ids[i], VALUES(val_i64(trial_id)), "starting a trial", err));
    return ST_OK;
}

/* The study of a trial that runs; ST_EXISTS when it does not. */
static enum status running_study(struct store *store, int64_t trial_id, int64_t *ret_study_id, struct error *err)
{
    enum status rc = ST_OK;
    struct db_stmt *stmt;
    bool there;

    TRY(store_sql_row(store, SQL_TRIAL_STATE, VALUES(val_i64(trial_id)), "reading a trial", &stmt, &there, err));
    *ret_study_id = db_i64(stmt, 0);
    if (!there)
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
            THEN(rc, store_metric_open(store, r->trial_id, err));
        }
        THEN(rc, store_metric_insert(store, r->trial_id, r->points, r->n, err));
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
    enum status rc = ST_OK;
    struct db_stmt *stmt;

    TRY(store_sql(store, SQL_METRIC_CURVE, VALUES(val_i64(trial_id), val_text(name)), &stmt, err));
    while (store_sql_next(store, stmt, "reading a learning curve", &rc, err)) {
        MEM_ROOM(*points, *n, cap);
        struct curve_point *p = &(*points)[(*n)++];
        *p = (struct curve_point){
            .env_steps = db_i64(stmt, 0), .wall_s = db_f64_or_nan(stmt, 1), .value = db_f64_or_nan(stmt, 2)};
        store_sum_add(sum, p->env_steps, store_point_sum(p->env_steps, p->wall_s, p->value));
    }
    return rc;
}

enum status store_curve_expected(struct store *store, int64_t trial_id, const char *name, bool *ret_known,
                                 struct curve_sum *ret_sum, struct error *err)
{
    struct curve_sum *found = NULL;
    struct db_stmt *stmt;
    bool there;

    *ret_sum = (struct curve_sum){.last_steps = INT64_MIN};
    TRY(store_sums_read(store, trial_id, &store->sums, ret_known, err));
    TRY(store_sql_row(store, SQL_METRIC_NAME_FIND, VALUES(val_text(name)), "reading a metric's name", &stmt, &there,
                      err));
    if (there)
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
    struct curve_sum sum = {.last_steps = INT64_MIN}, expected;
    bool begun, known = false;

    *ret_points = NULL;
    *ret_n = 0;
    TRY(store_read_begin(store, &begun, err)); /* points and their sum from one state of the store */
    enum status rc = read_curve(store, trial_id, name, ret_points, ret_n, &sum, err);
    THEN(rc, store_curve_expected(store, trial_id, name, &known, &expected, err));
    if (rc == ST_OK && known && (sum.n != expected.n || sum.sum != expected.sum))
        rc = store_curve_damaged(store, trial_id, name, err);
    rc = store_read_end(store, begun, rc);
    if (rc != ST_OK) {
        mem_free(*ret_points);
        *ret_points = NULL;
        *ret_n = 0;
    }
    return rc;
}

enum status store_checkpoint_add(struct store *store, int64_t trial_id, int64_t env_steps, const char *path,
                                 struct error *err)
{
    static const char what[] = "recording a checkpoint";

    TRY(store_begin(store, what, err));
    enum status rc = store_sql_run(store, SQL_CHECKPOINT_DELETE, VALUES(val_i64(trial_id)), what, err);
    THEN(rc, store_checkpoint_insert(store, trial_id, env_steps, path, err));
    return store_end(store, rc, what, err);
}

enum status store_checkpoint_forget(struct store *store, int64_t trial_id, struct error *err)
{
    static const char what[] = "forgetting a checkpoint";

    TRY(store_begin(store, what, err));
    return store_end(store, store_sql_run(store, SQL_CHECKPOINT_DELETE, VALUES(val_i64(trial_id)), what, err), what,
                     err);
}

enum status store_checkpoint_path(struct store *store, int64_t trial_id, char **ret_path, struct error *err)
{
    struct db_stmt *stmt;
    bool there;

    *ret_path = NULL;
    TRY(store_sql_row(store, SQL_CHECKPOINT_FIND, VALUES(val_i64(trial_id)), "reading a checkpoint's path", &stmt,
                      &there, err));
    if (there)
        *ret_path = db_copy_text(stmt, 0);
    db_reset(stmt);
    return ST_OK;
}
