/* watch.c - cheap queries of a reader that stays open while a sweep runs: did anything change, how far is a trial? */
#include "store/store_priv.h"

enum status store_data_version(struct store *store, int64_t *ret_version, struct error *err)
{
    return store->pg != NULL
               ? pg_data_version(store, ret_version, err)
               : store_sql_i64(store, SQL_DATA_VERSION, NO_VALUES, "looking for changes", ret_version, err);
}

void store_hint(struct store *store, enum store_hint hint)
{
    if (store->pg != NULL)
        pg_send_hint(store->pg, 1u << hint);
}

enum status store_listen(struct store *store, enum store_hint hint, struct error *err)
{
    return store->pg != NULL ? pg_listen(store, 1u << hint, err) : ST_OK;
}

void store_unlisten(struct store *store)
{
    if (store->pg != NULL)
        pg_unlisten(store->pg);
}

int store_hint_fd(const struct store *store)
{
    return store->pg != NULL ? pg_hint_fd(store->pg) : -1;
}

bool store_hint_take(struct store *store, enum store_hint hint)
{
    return store->pg != NULL && pg_hints_take(store->pg, 1u << hint) != 0;
}

bool store_hint_wait(struct store *store, enum store_hint hint, double seconds)
{
    if (store->pg != NULL)
        return pg_hint_wait(store->pg, 1u << hint, seconds) != 0;
    usleep((useconds_t)(1e6 * seconds));
    return false;
}

static enum status read_last(struct store *store, int64_t trial_id, const char *name, struct curve_point *point,
                             bool *ret_found, struct error *err)
{
    struct db_stmt *stmt;

    TRY(store_sql_row(store, SQL_METRIC_LAST, VALUES(val_i64(trial_id), val_text(name)), "reading a learning curve",
                      &stmt, ret_found, err));
    if (*ret_found)
        *point = (struct curve_point){
            .env_steps = db_i64(stmt, 0), .wall_s = db_f64_or_nan(stmt, 1), .value = db_f64_or_nan(stmt, 2)};
    db_reset(stmt);
    return ST_OK;
}

enum status store_metric_last(struct store *store, int64_t trial_id, const char *name, struct curve_point *ret_point,
                              bool *ret_found, struct error *err)
{
    struct curve_sum expected;
    bool begun, known = false;

    *ret_found = false;
    TRY(store_read_begin(store, &begun, err));
    enum status rc = read_last(store, trial_id, name, ret_point, ret_found, err);
    THEN(rc, store_curve_expected(store, trial_id, name, &known, &expected, err));
    if (rc == ST_OK && known &&
        (*ret_found != (expected.n > 0) ||
         (*ret_found &&
          expected.last_crc != store_point_sum(ret_point->env_steps, ret_point->wall_s, ret_point->value))))
        rc = store_curve_damaged(store, trial_id, name, err);
    return store_read_end(store, begun, rc);
}

/* Does the store have all curves that were written? */
static enum status check_names(struct store *store, int64_t trial_id, size_t n, struct error *err)
{
    bool known;
    size_t n_written = 0;

    TRY(store_sums_read(store, trial_id, &store->sums, &known, err));
    for (size_t i = 0; i < store->sums.n; i++)
        n_written += store->sums.v[i].n > 0;
    return known && n_written != n ? store_curve_damaged(store, trial_id, "(one of them is missing)", err) : ST_OK;
}

static enum status read_names(struct store *store, int64_t trial_id, char ***ret_names, size_t *ret_n,
                              struct error *err)
{
    size_t cap = 0;
    enum status rc = ST_OK;
    struct db_stmt *stmt;

    TRY(store_sql(store, SQL_METRIC_NAMES, VALUES(val_i64(trial_id)), &stmt, err));
    while (store_sql_next(store, stmt, "listing the metrics", &rc, err)) {
        MEM_ROOM(*ret_names, *ret_n, cap);
        (*ret_names)[(*ret_n)++] = db_copy_text(stmt, 0);
    }
    return rc;
}

enum status store_metric_names(struct store *store, int64_t trial_id, char ***ret_names, size_t *ret_n,
                               struct error *err)
{
    bool begun;

    *ret_names = NULL;
    *ret_n = 0;
    TRY(store_read_begin(store, &begun, err));
    enum status rc = read_names(store, trial_id, ret_names, ret_n, err);
    THEN(rc, check_names(store, trial_id, *ret_n, err));
    rc = store_read_end(store, begun, rc);
    if (rc != ST_OK) {
        store_names_free(*ret_names, *ret_n);
        *ret_names = NULL;
        *ret_n = 0;
    }
    return rc;
}
