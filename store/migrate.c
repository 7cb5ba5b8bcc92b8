/* migrate.c - a whole store into an empty one, from SQLite to PostgreSQL, back, or between two of a kind.
 *
 * Invariants: (1) the source is read in one state and never changed; (2) the target gets all rows in one transaction,
 * in which they are read again and compared; (3) ids stay, and no id of the outbox is ever used twice: trackers'
 * positions count in them. */
#include "store/store_priv.h"

#include <sys/stat.h>

#define ROWS_AT_A_TIME 500 /* PostgreSQL sends all rows of a statement at once */
#define SQL_BYTES 8192

/* In an order in which each row's owner comes before it. */
static const struct table {
    const char *name;
    const char *key; /* rows are read in its order, some at a time; "": all at once; NULL: one trial's at a time */
    bool counts_up; /* the key is made by the database */
} tables[STORE_TABLES] = {
    {"study", "id", true},
    {"metric_name", "id", true},
    {"trial", "id", true},
    {"mark", "id", false},
    {"lease", "id", true},
    {"metric", NULL, false},
    {"curve_sum", "trial_id", false},
    {"checkpoint", "id", true},
    {"tracker", "id", true},
    {"tracker_run", "", false},
    {"outbox", "id", true},
};

static const char what[] = "migrating the store";

/* One value of a query that has a row. */
static enum status one_i64(struct store *store, const char *sql, int64_t *ret, struct error *err)
{
    struct db_stmt stmt = {0};
    int step = DB_DONE;
    enum status rc = store_sql_prepare(store, sql, &stmt, err);

    THEN(rc, store_sql_step(store, &stmt, &step, what, err));
    *ret = rc == ST_OK && step == DB_ROW ? db_i64(&stmt, 0) : 0;
    store_sql_finalize(&stmt);
    return rc;
}

/* ---- rows ---- */

/* A statement that inserts rows of the columns that the source's statement has. */
static enum status prepare_insert(struct store *to, const struct table *t, struct db_stmt *row, struct db_stmt *ret,
                                  struct error *err)
{
    int n = db_n_columns(row);
    STRBUF(sql, SQL_BYTES);

    strbuf_addf(&sql, "INSERT INTO %s (", t->name);
    for (int i = 0; i < n; i++)
        strbuf_addf(&sql, "%s%s", i > 0 ? ", " : "", db_column_name(row, i));
    strbuf_add(&sql, ") VALUES (");
    for (int i = 0; i < n; i++)
        strbuf_addf(&sql, "%s?%d", i > 0 ? ", " : "", i + 1);
    strbuf_add(&sql, ")");
    TRY(strbuf_status(&sql, what, err));
    return store_sql_prepare(to, sql.text, ret, err);
}

static struct db_value column(struct db_stmt *row, int i)
{
    switch (db_type(row, i)) {
    case DB_I64:
        return val_i64(db_i64(row, i));
    case DB_F64:
        return val_f64(db_f64(row, i));
    case DB_BLOB:
        return val_blob(db_blob(row, i), db_bytes(row, i));
    default: /* text, NULL */
        return val_text(db_text(row, i));
    }
}

/* Texts that PostgreSQL would not take as they are: the row's checksum fits no more, so that it gets none. */
static bool has_foreign_bytes(struct db_stmt *row)
{
    for (int i = 0; i < db_n_columns(row); i++) {
        char *clean = db_type(row, i) == DB_TEXT ? pg_clean(db_text(row, i)) : NULL;
        mem_free(clean);
        if (clean != NULL)
            return true;
    }
    return false;
}

static enum status write_row(struct store *to, struct db_stmt *insert, struct db_stmt *row, struct store_tally *tally,
                             struct error *err)
{
    bool foreign = to->pg != NULL && has_foreign_bytes(row);

    for (int i = 0; i < db_n_columns(row); i++)
        db_bind(insert, i + 1,
                foreign && strcmp(db_column_name(row, i), "checksum") == 0 ? val_text(NULL) : column(row, i));
    tally->n_unchecked += foreign;
    return store_sql_queue_stmt(to, insert, what, err);
}

/* ---- tables ---- */

struct copy {
    struct store *from, *to; /* to NULL: rows are only counted and summed */
    const struct table *table;
    struct db_stmt insert;
    struct store_tally *tally; /* n: rows; n_unchecked: rows whose texts were changed */
    uint64_t sum; /* of the rows' CRCs: their order does not matter */
};

/* The rows of a bound statement. *ret_last: the first column of the last one; *ret_n: their number. */
static enum status copy_rows(struct copy *c, struct db_stmt *row, int64_t *ret_last, size_t *ret_n, struct error *err)
{
    enum status rc = ST_OK;

    *ret_n = 0;
    while (store_sql_next(c->from, row, what, &rc, err)) {
        if (c->to != NULL && c->insert.lite == NULL && c->insert.pg == NULL)
            rc = prepare_insert(c->to, c->table, row, &c->insert, err);
        if (rc == ST_OK && c->to != NULL)
            rc = write_row(c->to, &c->insert, row, c->tally, err);
        if (rc != ST_OK)
            continue;
        *ret_last = db_i64(row, 0);
        c->tally->n++;
        c->sum += store_row_crc(row);
        ++*ret_n;
    }
    return rc;
}

static enum status copy_by_key(struct copy *c, struct error *err)
{
    char sql[200];
    struct db_stmt row = {0};
    int64_t last = INT64_MIN;
    size_t n = ROWS_AT_A_TIME;
    bool whole = c->table->key[0] == '\0';

    if (whole)
        snprintf(sql, sizeof sql, "SELECT * FROM %s", c->table->name);
    else
        snprintf(sql, sizeof sql, "SELECT * FROM %s WHERE %s > ?1 ORDER BY %s LIMIT %d", c->table->name, c->table->key,
                 c->table->key, ROWS_AT_A_TIME);
    enum status rc = store_sql_prepare(c->from, sql, &row, err);
    while (rc == ST_OK && n == ROWS_AT_A_TIME) {
        if (!whole)
            db_bind(&row, 1, val_i64(last));
        rc = copy_rows(c, &row, &last, &n, err);
        n = whole ? 0 : n;
    }
    store_sql_finalize(&row);
    return rc;
}

static enum status copy_by_trial(struct copy *c, struct error *err)
{
    char sql[120];
    struct db_stmt row = {0}, next = {0};
    int64_t id = 0, last;
    size_t n;
    int step = DB_ROW;

    snprintf(sql, sizeof sql, "SELECT * FROM %s WHERE trial_id = ?1", c->table->name);
    enum status rc = store_sql_prepare(c->from, sql, &row, err);
    THEN(rc, store_sql_prepare(c->from, "SELECT min(id) FROM trial WHERE id > ?1", &next, err));
    while (rc == ST_OK && step == DB_ROW) {
        db_bind(&row, 1, val_i64(id));
        rc = copy_rows(c, &row, &last, &n, err);
        db_bind(&next, 1, val_i64(id));
        THEN(rc, store_sql_step(c->from, &next, &step, what, err));
        if (rc == ST_OK && db_type(&next, 0) == DB_NULL)
            step = DB_DONE;
        id = rc == ST_OK ? db_i64(&next, 0) : 0;
        db_reset(&next);
    }
    store_sql_finalize(&next);
    store_sql_finalize(&row);
    return rc;
}

static enum status copy_table(struct copy *c, struct error *err)
{
    enum status rc = c->table->key != NULL ? copy_by_key(c, err) : copy_by_trial(c, err);

    store_sql_finalize(&c->insert);
    return rc;
}

/* ---- numbers that the databases count by themselves ---- */

/* The last id that the outbox ever had, also when it is empty. */
static enum status last_outbox_id(struct store *store, int64_t *ret, struct error *err)
{
    return one_i64(store,
                   store->pg != NULL
                       ? "SELECT CASE WHEN is_called THEN last_value ELSE last_value - 1 END FROM outbox_id_seq"
                       : "SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'outbox'",
                   ret, err);
}

static enum status set_counters(struct store *to, int64_t outbox_id, struct error *err)
{
    char sql[320];
    int64_t set;

    if (to->pg == NULL) {
        snprintf(sql, sizeof sql,
                 "DELETE FROM sqlite_sequence WHERE name = 'outbox';"
                 "INSERT INTO sqlite_sequence (name, seq) VALUES ('outbox', %lld)",
                 (long long)outbox_id);
        return store_exec(to, sql, what, err);
    }
    for (size_t i = 0; i < STORE_TABLES; i++) {
        bool is_outbox = strcmp(tables[i].name, "outbox") == 0;
        if (!tables[i].counts_up)
            continue;
        snprintf(
            sql, sizeof sql,
            "SELECT setval(pg_get_serial_sequence('trawl.%s', 'id'), greatest(coalesce(max(id), 0), %lld) + 1, false) "
            "FROM %s",
            tables[i].name, is_outbox ? (long long)outbox_id : 0, tables[i].name);
        TRY(one_i64(to, sql, &set, err));
    }
    return ST_OK;
}

/* ---- all of it ---- */

static enum status check_empty(struct store *to, struct error *err)
{
    int64_t n = 0, n_names = 0;

    TRY(one_i64(to, "SELECT count(*) FROM study", &n, err));
    TRY(one_i64(to, "SELECT count(*) FROM metric_name", &n_names, err));
    return n + n_names == 0 ? ST_OK
                            : FAIL(err, ST_EXISTS,
                                   "%s is not empty (studies: %lld), and a store is only moved into an empty one; name "
                                   "another database, or a file that does not exist",
                                   to->path, (long long)n);
}

static enum status copy_tables(struct store *from, struct store *to, struct store_copied *ret, struct error *err)
{
    int64_t outbox_id;

    for (size_t i = 0; i < STORE_TABLES; i++) {
        struct copy c = {.from = from, .to = to, .table = &tables[i], .tally = &ret->tables[i].rows};
        ret->tables[i].name = tables[i].name;
        TRY(copy_table(&c, err));
        struct store_tally again = {0};
        struct copy check = {.from = to, .table = &tables[i], .tally = &again};
        TRY(copy_table(&check, err));
        ret->tables[i].sum = c.sum;
        if (again.n != c.tally->n || (check.sum != c.sum && c.tally->n_unchecked == 0))
            return FAIL(err, ST_CORRUPT,
                        "%s: the table %s has %lld rows with the sum %llx, and %s %lld with %llx: nothing was migrated",
                        to->path, tables[i].name, (long long)again.n, (unsigned long long)check.sum, from->path,
                        (long long)c.tally->n, (unsigned long long)c.sum);
    }
    TRY(last_outbox_id(from, &outbox_id, err));
    return set_counters(to, outbox_id, err);
}

enum status store_copy_rows(struct store *from, struct store *to, struct store_copied *ret, struct error *err)
{
    bool begun = false;

    *ret = (struct store_copied){0};
    TRY(check_empty(to, err));
    TRY(store_read_begin(from, &begun, err));
    enum status rc = store_begin_synced(to, what, err);
    THEN(rc, store_end(to, copy_tables(from, to, ret, err), what, err));
    return store_read_end(from, begun, rc);
}

static bool same_store(const char *a, const char *b)
{
    struct stat at_a, at_b;

    if (store_is_address(a) || store_is_address(b))
        return strcmp(a, b) == 0;
    return stat(a, &at_a) == 0 && stat(b, &at_b) == 0 && at_a.st_dev == at_b.st_dev && at_a.st_ino == at_b.st_ino;
}

enum status store_migrate(const char *from_path, const char *to_path, struct store_copied *ret, struct error *err)
{
    AT_END(store_close_at) struct store *from = NULL, *to = NULL;
    bool is_new = !store_is_address(to_path) && access(to_path, F_OK) != 0;

    *ret = (struct store_copied){0};
    if (!store_may_exist(from_path))
        return FAIL(err, ST_NOTFOUND, "%s: no such store; name a file, or postgresql://HOST/DATABASE", from_path);
    if (same_store(from_path, to_path))
        return FAIL(err, ST_USAGE, "migrate: %s and %s are one store; a copy needs another place", from_path, to_path);
    enum status rc =
        store_open_writer(&from, from_path, err); /* its controller has to end: what it wrote later would be missing */
    THEN(rc, store_open_writer(&to, to_path, err));
    if (rc == ST_OK && ((from->pg != NULL && pg_has_holder(from)) || (to->pg != NULL && pg_has_holder(to))))
        rc = FAIL(err, ST_BUSY, "migrate: a sweep runs on %s or %s; wait for it, or stop it", from_path, to_path);
    THEN(rc, store_copy_rows(from, to, ret, err));
    if (rc != ST_OK && is_new && to != NULL)
        (void)unlink(to_path);
    return rc;
}
