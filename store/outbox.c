/* outbox.c - rows that wait for the trackers.
 *
 * A row is written in one transaction with the event that it reports. It is removed by the commit that moves the last
 * tracker's position past it (tracker.c). Rows about the study itself have trial_id 0. */
#include "store/store_priv.h"

static enum status insert(struct store *store, int64_t study_id, int64_t trial_id, const char *json, struct error *err)
{
    static const char what[] = "recording a row for the trackers";
    int64_t now_ms = clock_utc_ms(), id = 0;

    TRY(store_sql_i64(store, SQL_OUTBOX_INSERT,
                      VALUES(val_i64(study_id), val_i64(trial_id), val_text(json), val_i64(now_ms)), what, &id, err));
    return store_sql_queue(store, SQL_OUTBOX_SEAL,
                           VALUES(val_i64(id), val_i64(store_outbox_sum(id, study_id, trial_id, now_ms, json))), what,
                           err);
}

enum status store_outbox_insert(struct store *store, int64_t study_id, int64_t trial_id, const char *json,
                                struct error *err)
{
    MEM_LOCAL char *clean =
        store->pg != NULL ? pg_clean(json) : NULL; /* the checksum is that of the text as it is stored */

    return insert(store, study_id, trial_id, clean != NULL ? clean : json, err);
}

enum status store_outbox_add(struct store *store, int64_t study_id, int64_t trial_id, const char *json,
                             struct error *err)
{
    static const char what[] = "recording a row for the trackers";

    TRY(store_begin(store, what, err));
    return store_end(store, store_outbox_insert(store, study_id, trial_id, json, err), what, err);
}

void outbox_list_free(struct outbox_list *list)
{
    if (list == NULL)
        return;
    for (size_t i = 0; i < list->n; i++)
        mem_free(list->rows[i].payload);
    mem_free(list->rows);
    *list = (struct outbox_list){0};
}

static enum status check_row(struct store *store, struct db_stmt *stmt, int64_t study_id, int64_t trial_id,
                             const struct outbox_row *row, struct error *err)
{
    char what[96];

    if (db_type(stmt, 3) == DB_NULL || /* of an older version */
        db_i64(stmt, 3) == store_outbox_sum(row->id, study_id, trial_id, row->created_ms, row->payload))
        return ST_OK;
    snprintf(what, sizeof what, "row %lld of the trackers' outbox", (long long)row->id);
    return store_damaged(store, what, err);
}

enum status store_outbox_read(struct store *store, int64_t study_id, int64_t trial_id, int64_t after_id, int64_t to_id,
                              size_t rows_max, size_t bytes_max, struct outbox_list *ret_list, struct error *err)
{
    size_t cap = 0;
    enum status rc = ST_OK;
    struct db_stmt *stmt;

    *ret_list = (struct outbox_list){0};
    TRY(store_sql(
        store, SQL_OUTBOX_READ,
        VALUES(val_i64(study_id), val_i64(trial_id), val_i64(after_id), val_i64(to_id), val_i64((int64_t)rows_max)),
        &stmt, err));
    while (store_sql_next(store, stmt, "reading the outbox", &rc, err)) {
        size_t size = db_bytes(stmt, 2);
        if (ret_list->n > 0 && ret_list->bytes + size > bytes_max) {
            db_reset(stmt);
            break;
        }
        MEM_ROOM(ret_list->rows, ret_list->n, cap);
        struct outbox_row *row = &ret_list->rows[ret_list->n++];
        *row =
            (struct outbox_row){.id = db_i64(stmt, 0), .created_ms = db_i64(stmt, 1), .payload = db_copy_text(stmt, 2)};
        ret_list->bytes += size;
        rc = check_row(store, stmt, study_id, trial_id, row, err);
    }
    if (rc != ST_OK)
        outbox_list_free(ret_list);
    return rc;
}

enum status store_outbox_runs(struct store *store, int64_t study_id, int64_t after_id, struct outbox_run **ret_runs,
                              size_t *ret_n, int64_t *ret_last_id, struct error *err)
{
    size_t cap = 0;
    enum status rc = ST_OK;
    struct db_stmt *stmt;

    *ret_runs = NULL;
    *ret_n = 0;
    *ret_last_id = after_id;
    TRY(store_sql(store, SQL_OUTBOX_RUNS, VALUES(val_i64(study_id), val_i64(after_id)), &stmt, err));
    while (store_sql_next(store, stmt, "reading the outbox", &rc, err)) {
        MEM_ROOM(*ret_runs, *ret_n, cap);
        struct outbox_run *run = &(*ret_runs)[(*ret_n)++];
        *run = (struct outbox_run){.trial_id = db_i64(stmt, 0),
                                   .number = db_i64(stmt, 1),
                                   .first_id = db_i64(stmt, 2),
                                   .last_id = db_i64(stmt, 3)};
        if (run->last_id > *ret_last_id)
            *ret_last_id = run->last_id;
    }
    if (rc != ST_OK) {
        mem_free(*ret_runs);
        *ret_runs = NULL;
        *ret_n = 0;
    }
    return rc;
}

enum status store_outbox_count(struct store *store, int64_t study_id, const char *tracker, int64_t *ret_n,
                               struct error *err)
{
    static const char what[] = "counting the outbox";

    return tracker != NULL ? store_sql_i64(store, SQL_OUTBOX_COUNT_OF, VALUES(val_i64(study_id), val_text(tracker)),
                                           what, ret_n, err)
                           : store_sql_i64(store, SQL_OUTBOX_COUNT, VALUES(val_i64(study_id)), what, ret_n, err);
}
