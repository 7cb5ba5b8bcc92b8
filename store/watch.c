/* watch.c - cheap questions of a reader that stays open while a sweep runs: did anything change, how far is a trial. */
#include "store/store_priv.h"

#include "base/mem.h"

enum status store_data_version(struct store *store, int64_t *ret_version, struct error *err)
{
    int step;
    sqlite3_stmt *stmt;

    TRY(store_sql(store, SQL_DATA_VERSION, &stmt, err));
    TRY(store_sql_step(store, stmt, &step, "looking for changes", err));
    *ret_version = sqlite3_column_int64(stmt, 0);
    sqlite3_reset(stmt);
    return ST_OK;
}

enum status store_metric_last(struct store *store, int64_t trial_id, const char *name, struct curve_point *ret_point,
                              bool *ret_found, struct error *err)
{
    int step;
    sqlite3_stmt *stmt;

    *ret_found = false;
    TRY(store_sql(store, SQL_METRIC_LAST, &stmt, err));
    sqlite3_bind_int64(stmt, 1, trial_id);
    store_bind_text(stmt, 2, name);
    TRY(store_sql_step(store, stmt, &step, "reading a learning curve", err));
    if (step == SQLITE_ROW) {
        *ret_found = true;
        ret_point->env_steps = sqlite3_column_int64(stmt, 0);
        ret_point->wall_s = store_column_f64(stmt, 1);
        ret_point->value = store_column_f64(stmt, 2);
    }
    sqlite3_reset(stmt);
    return ST_OK;
}

void store_metric_names_free(char **names, size_t n)
{
    for (size_t i = 0; i < n; i++)
        mem_free(names[i]);
    mem_free(names);
}

enum status store_metric_names(struct store *store, int64_t trial_id, char ***ret_names, size_t *ret_n,
                               struct error *err)
{
    char **names = NULL;
    size_t n = 0, cap = 0;
    enum status rc = ST_OK;
    int step;
    sqlite3_stmt *stmt;

    *ret_names = NULL;
    *ret_n = 0;
    TRY(store_sql(store, SQL_METRIC_NAMES, &stmt, err));
    sqlite3_bind_int64(stmt, 1, trial_id);
    while ((rc = store_sql_step(store, stmt, &step, "listing the metrics", err)) == ST_OK && step == SQLITE_ROW) {
        char **grown = n < cap ? names : mem_grow(names, cap, cap + 32, sizeof *names);
        if (grown == NULL || store_column_text(stmt, 0, &grown[n]) != ST_OK) {
            names = grown != NULL ? grown : names;
            rc = FAIL(err, ST_NOMEM, "%s: out of memory while listing the metrics", store->path);
            break;
        }
        cap = n < cap ? cap : cap + 32;
        names = grown;
        n++;
    }
    sqlite3_reset(stmt);
    if (rc != ST_OK) {
        store_metric_names_free(names, n);
        return rc;
    }
    *ret_names = names;
    *ret_n = n;
    return ST_OK;
}
