/* mark.c - marks of a trial: why it is dropped, a note, tags. A finished trial never changes, so these have a table of
 * their own; a trial without a row in it has none. */
#include "store/store_priv.h"

static const char mark_what[] = "writing a remark";

enum status store_mark_part(struct store *store, int64_t trial_id, const char *dropped, const char *note,
                            const char *tags, struct error *err)
{
    TRY(store_row_check(store, SQL_MARK_ROW, trial_id, err));
    TRY(store_sql_run(store, SQL_MARK_SET, VALUES(val_i64(trial_id), val_text(dropped), val_text(note), val_text(tags)),
                      mark_what, err));
    return store_row_seal(store, SQL_MARK_ROW, trial_id, err);
}

enum status store_trial_mark(struct store *store, int64_t trial_id, const char *dropped, const char *note,
                             const char *tags, struct error *err)
{
    TRY(store_begin_synced(store, mark_what, err));
    return store_end(store, store_mark_part(store, trial_id, dropped, note, tags, err), mark_what, err);
}

void mark_list_free(struct trial_mark *marks, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        mem_free(marks[i].dropped);
        mem_free(marks[i].note);
        mem_free(marks[i].tags);
    }
    mem_free(marks);
}

/* Columns: the trial's number, then mark.*. mark is overwritten; whole or empty afterwards. */
static enum status read_mark(struct store *store, struct db_stmt *stmt, struct trial_mark *mark, struct error *err)
{
    int64_t number = db_i64(stmt, 0);
    char what[64];

    *mark = (struct trial_mark){.number = number};
    if (store_row_sound(stmt) == STORE_DAMAGED) {
        snprintf(what, sizeof what, "the remark on trial %lld", (long long)number);
        return store_damaged(store, what, err);
    }
    mark->dropped = db_copy_text(stmt, 2);
    mark->note = db_copy_text(stmt, 3);
    mark->tags = db_copy_text(stmt, 4);
    return ST_OK;
}

enum status store_mark_list(struct store *store, int64_t study_id, struct trial_mark **ret_marks, size_t *ret_n,
                            struct error *err)
{
    size_t cap = 0;
    enum status rc = ST_OK;
    struct db_stmt *stmt;

    *ret_marks = NULL;
    *ret_n = 0;
    TRY(store_sql(store, SQL_MARK_LIST, VALUES(val_i64(study_id)), &stmt, err));
    while (store_sql_next(store, stmt, "listing the remarks", &rc, err)) {
        MEM_ROOM(*ret_marks, *ret_n, cap);
        rc = read_mark(store, stmt, &(*ret_marks)[*ret_n], err);
        *ret_n += rc == ST_OK;
    }
    if (rc != ST_OK) {
        mark_list_free(*ret_marks, *ret_n);
        *ret_marks = NULL;
        *ret_n = 0;
    }
    return rc;
}
