/* pg_stmt.c - prepared statements of PostgreSQL, with the behaviour of SQLite's.
 *
 * Values go as text, whose types the server finds by their place; rows come in binary form, all with the first step, so
 * that every number keeps its bits. */
#include "store/postgres/pg_priv.h"
#include "store/store_priv.h"

#include <endian.h>

#define VALUES_MAX 64
#define QUEUE_MAX 200 /* results that the server may hold back: far less than the buffers of a socket */

/* Types of columns, by their numbers in pg_type, which are part of PostgreSQL's protocol. */
enum { OID_BOOL = 16, OID_BYTEA = 17, OID_INT8 = 20, OID_INT4 = 23, OID_FLOAT8 = 701 };

struct pg_stmt {
    char *sql; /* PostgreSQL's */
    char name[16];
    unsigned generation; /* of the connection that knows the name; 0: none */
    int n_values;
    char *values[VALUES_MAX]; /* owned; NULL: NULL */
    int sizes[VALUES_MAX], formats[VALUES_MAX]; /* formats 1: a blob, in binary form */
    PGresult *rows; /* NULL: not run since the last reset */
    int at;
    int64_t n_changes;
};

void pg_prepare(struct store *store, const char *sql, struct pg_stmt **ret_stmt)
{
    struct pg_stmt *stmt = mem_alloc(sizeof *stmt);

    stmt->sql = pg_translate(sql);
    snprintf(stmt->name, sizeof stmt->name, "s%u", ++store->pg->n_prepared);
    for (const char *at = strchr(stmt->sql, '$'); at != NULL; at = strchr(at + 1, '$')) {
        int n = atoi(at + 1);
        if (n > stmt->n_values && n <= VALUES_MAX)
            stmt->n_values = n;
    }
    *ret_stmt = stmt;
}

void pg_reset(struct pg_stmt *stmt)
{
    pq.clear(stmt->rows);
    stmt->rows = NULL;
}

void pg_clear(struct pg_stmt *stmt)
{
    pg_reset(stmt);
    for (int i = 0; i < stmt->n_values; i++) {
        mem_free(stmt->values[i]);
        stmt->values[i] = NULL;
    }
}

void pg_finalize(struct pg_stmt *stmt)
{
    if (stmt == NULL)
        return;
    pg_clear(stmt);
    mem_free(stmt->sql);
    mem_free(stmt);
}

void pg_bind(struct pg_stmt *stmt, int at, struct db_value value)
{
    char text[NUM_TEXT_MAX];

    if (at < 1 || at > stmt->n_values)
        return;
    char **to = &stmt->values[at - 1];
    mem_free(*to);
    *to = NULL;
    stmt->formats[at - 1] = value.type == DB_BLOB;
    stmt->sizes[at - 1] = (int)value.n;
    switch (value.type) {
    case DB_I64:
        snprintf(text, sizeof text, "%lld", (long long)value.i64);
        *to = mem_strdup(text);
        break;
    case DB_F64:
        if (!isnan(value.f64))
            *to = mem_strdup(isinf(value.f64) ? value.f64 > 0 ? "Infinity" : "-Infinity"
                                              : num_format_f64(value.f64, text));
        break;
    case DB_TEXT:
        *to = pg_clean(value.bytes);
        if (*to == NULL)
            *to = mem_strdup(value.bytes);
        break;
    case DB_BLOB:
        *to = mem_alloc(value.n + 1);
        memcpy(*to, value.bytes, value.n);
        break;
    case DB_NULL:
        break;
    }
}

/* ---- running ---- */

enum status pg_drain(struct store *store, const char *what, struct error *err)
{
    struct pg *pg = store->pg;
    enum status rc = ST_OK;
    bool synced = false;

    if (pg->n_queued == 0)
        return ST_OK;
    pg->n_queued = 0;
    if (pq.pipelineSync(pg->conn) != 1)
        return pg_fail(store, NULL, what, err);
    while (!synced) {
        PGresult *res = pq.getResult(pg->conn);
        ExecStatusType got = pq.resultStatus(res);
        if (res == NULL && pq.status(pg->conn) == CONNECTION_OK)
            continue; /* between two statements */
        synced = got == PGRES_PIPELINE_SYNC || pq.status(pg->conn) != CONNECTION_OK;
        if (rc == ST_OK && got != PGRES_COMMAND_OK && got != PGRES_TUPLES_OK && got != PGRES_PIPELINE_SYNC)
            rc = pg_fail(store, res, what, err);
        pq.clear(res);
    }
    if (pq.status(pg->conn) == CONNECTION_OK && pq.exitPipelineMode(pg->conn) != 1 && rc == ST_OK)
        rc = pg_fail(store, NULL, what, err);
    return rc;
}

/* Makes the statement known to the present connection. */
static enum status prepare_now(struct store *store, struct pg_stmt *stmt, const char *what, struct error *err)
{
    struct pg *pg = store->pg;

    if (stmt->generation == pg->generation)
        return ST_OK;
    PGresult *res = pq.prepare(pg->conn, stmt->name, stmt->sql, 0, NULL);
    enum status rc = pq.resultStatus(res) == PGRES_COMMAND_OK ? ST_OK : pg_fail(store, res, what, err);
    pq.clear(res);
    if (rc == ST_OK)
        stmt->generation = pg->generation;
    return rc;
}

static enum status run_once(struct store *store, struct pg_stmt *stmt, const char *what, struct error *err)
{
    struct pg *pg = store->pg;

    TRY(pg_drain(store, what, err));
    TRY(prepare_now(store, stmt, what, err));
    stmt->rows = pq.execPrepared(pg->conn, stmt->name, stmt->n_values, (const char *const *)stmt->values, stmt->sizes,
                                 stmt->formats, 1);
    stmt->at = -1;
    stmt->n_changes = strtoll(pq.cmdTuples(stmt->rows), NULL, 10);
    ExecStatusType got = pq.resultStatus(stmt->rows);
    if (got == PGRES_COMMAND_OK || got == PGRES_TUPLES_OK)
        return ST_OK;
    enum status rc = pg_fail(store, stmt->rows, what, err);
    pg_reset(stmt);
    return rc;
}

static enum status run(struct store *store, struct pg_stmt *stmt, const char *what, struct error *err)
{
    struct error why = {0};

    for (;;) {
        TRY(pg_ready(store, what, err));
        enum status rc = run_once(store, stmt, what, &why);
        if (rc == ST_OK || store->pg->in_transaction || pq.status(store->pg->conn) == CONNECTION_OK)
            return rc == ST_OK ? ST_OK : error_set(err, rc, "%s", why.text);
        error_clear(&why); /* outside of a transaction nothing is lost with the connection */
    }
}

enum status pg_step(struct store *store, struct pg_stmt *stmt, bool *ret_row, const char *what, struct error *err)
{
    *ret_row = false;
    if (stmt->rows == NULL)
        TRY(run(store, stmt, what, err));
    *ret_row = ++stmt->at < pq.ntuples(stmt->rows);
    return ST_OK;
}

enum status pg_queue(struct store *store, struct pg_stmt *stmt, const char *what, struct error *err)
{
    struct pg *pg = store->pg;

    TRY(pg_ready(store, what, err));
    if (stmt->generation != pg->generation || pg->n_queued >= QUEUE_MAX)
        TRY(pg_drain(store, what, err));
    TRY(prepare_now(store, stmt, what, err));
    if (pg->n_queued == 0 && pq.enterPipelineMode(pg->conn) != 1)
        return pg_fail(store, NULL, what, err);
    pg->n_queued++;
    return pq.sendQueryPrepared(pg->conn, stmt->name, stmt->n_values, (const char *const *)stmt->values, stmt->sizes,
                                stmt->formats, 1) == 1
               ? ST_OK
               : pg_fail(store, NULL, what, err);
}

/* ---- rows ---- */

static struct db_value number(const char *bytes, Oid type)
{
    struct db_value v = {.type = type == OID_FLOAT8 ? DB_F64 : DB_I64};
    uint64_t bits;
    uint32_t word;

    if (type == OID_BOOL) {
        v.i64 = bytes[0] != 0;
    } else if (type == OID_INT4) {
        memcpy(&word, bytes, sizeof word);
        v.i64 = (int32_t)be32toh(word);
    } else {
        memcpy(&bits, bytes, sizeof bits);
        bits = be64toh(bits);
        memcpy(type == OID_FLOAT8 ? (void *)&v.f64 : (void *)&v.i64, &bits, sizeof bits);
    }
    if (type == OID_FLOAT8)
        v.i64 = v.f64 >= -9.2e18 && v.f64 <= 9.2e18 ? (int64_t)v.f64 : 0;
    else
        v.f64 = (double)v.i64;
    return v;
}

struct db_value pg_value(const struct pg_stmt *stmt, int at)
{
    Oid type;

    if (stmt->rows == NULL || stmt->at < 0 || stmt->at >= pq.ntuples(stmt->rows) ||
        pq.getisnull(stmt->rows, stmt->at, at))
        return (struct db_value){.type = DB_NULL};
    type = pq.ftype(stmt->rows, at);
    if (type == OID_BOOL || type == OID_INT4 || type == OID_INT8 || type == OID_FLOAT8)
        return number(pq.getvalue(stmt->rows, stmt->at, at), type);
    return (struct db_value){.type = type == OID_BYTEA ? DB_BLOB : DB_TEXT,
                             .bytes = pq.getvalue(stmt->rows, stmt->at, at),
                             .n = (size_t)pq.getlength(stmt->rows, stmt->at, at)};
}

int pg_n_columns(const struct pg_stmt *stmt)
{
    return pq.nfields(stmt->rows);
}

const char *pg_column_name(const struct pg_stmt *stmt, int at)
{
    return pq.fname(stmt->rows, at);
}

int64_t pg_changes(const struct pg_stmt *stmt)
{
    return stmt->n_changes;
}
