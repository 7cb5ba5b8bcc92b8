/* db.h - one prepared statement of a store, in SQLite or in PostgreSQL: its values, its rows.
 *
 * The one seam between the store's files and the database: they bind, step and read through these calls and sql.c's.
 * Parameters count from 1, columns from 0, as SQLite has it. A bound text or blob is borrowed until the statement's
 * next reset; a column's until the next step or reset. */
#pragma once

#include <math.h>
#include <stddef.h>
#include <stdint.h>

#include "store/postgres/pg.h"

#include <sqlite3.h>

struct db_stmt {
    sqlite3_stmt *lite; /* of SQLite, or */
    struct pg_stmt *pg; /* of PostgreSQL; both NULL: not prepared */
};

/* What a step came to: *ret_step of store_sql_step. */
enum db_step { DB_ROW = SQLITE_ROW, DB_DONE = SQLITE_DONE };

_Static_assert(DB_I64 == SQLITE_INTEGER && DB_F64 == SQLITE_FLOAT && DB_TEXT == SQLITE_TEXT && DB_BLOB == SQLITE_BLOB &&
                   DB_NULL == SQLITE_NULL,
               "the checksums of rows hold SQLite's numbers");

static inline void db_bind_i64(struct db_stmt *stmt, int at, int64_t value)
{
    if (stmt->pg == NULL)
        sqlite3_bind_int64(stmt->lite, at, value);
    else
        pg_bind(stmt->pg, at, (struct db_value){.type = DB_I64, .i64 = value});
}

static inline void db_bind_f64(struct db_stmt *stmt, int at, double value) /* NaN: NULL */
{
    if (stmt->pg == NULL)
        sqlite3_bind_double(stmt->lite, at, value);
    else
        pg_bind(stmt->pg, at, (struct db_value){.type = DB_F64, .f64 = value});
}

static inline void db_bind_text(struct db_stmt *stmt, int at, const char *text) /* NULL: NULL */
{
    if (stmt->pg != NULL)
        pg_bind(stmt->pg, at, (struct db_value){.type = text != NULL ? DB_TEXT : DB_NULL, .bytes = text});
    else if (text != NULL)
        sqlite3_bind_text(stmt->lite, at, text, -1, SQLITE_STATIC);
    else
        sqlite3_bind_null(stmt->lite, at);
}

static inline void db_bind_blob(struct db_stmt *stmt, int at, const void *bytes, size_t n)
{
    if (stmt->pg == NULL)
        sqlite3_bind_blob(stmt->lite, at, bytes, (int)n, SQLITE_STATIC);
    else
        pg_bind(stmt->pg, at, (struct db_value){.type = DB_BLOB, .bytes = bytes, .n = n});
}

static inline enum db_type db_type(struct db_stmt *stmt, int at)
{
    return stmt->pg == NULL ? (enum db_type)sqlite3_column_type(stmt->lite, at) : pg_value(stmt->pg, at).type;
}

static inline int64_t db_i64(struct db_stmt *stmt, int at) /* NULL: 0 */
{
    return stmt->pg == NULL ? sqlite3_column_int64(stmt->lite, at) : pg_value(stmt->pg, at).i64;
}

static inline double db_f64(struct db_stmt *stmt, int at) /* NULL: 0 */
{
    return stmt->pg == NULL ? sqlite3_column_double(stmt->lite, at) : pg_value(stmt->pg, at).f64;
}

static inline double db_f64_or_nan(struct db_stmt *stmt, int at) /* NULL: NaN */
{
    return db_type(stmt, at) == DB_NULL ? (double)NAN : db_f64(stmt, at);
}

static inline const char *db_text(struct db_stmt *stmt, int at) /* NULL: NULL */
{
    return stmt->pg == NULL ? (const char *)sqlite3_column_text(stmt->lite, at) : pg_value(stmt->pg, at).bytes;
}

static inline const void *db_blob(struct db_stmt *stmt, int at) /* also of a text */
{
    return stmt->pg == NULL ? sqlite3_column_blob(stmt->lite, at) : pg_value(stmt->pg, at).bytes;
}

static inline size_t db_bytes(struct db_stmt *stmt, int at)
{
    return stmt->pg == NULL ? (size_t)sqlite3_column_bytes(stmt->lite, at) : pg_value(stmt->pg, at).n;
}

static inline int db_n_columns(struct db_stmt *stmt)
{
    return stmt->pg == NULL ? sqlite3_column_count(stmt->lite) : pg_n_columns(stmt->pg);
}

static inline const char *db_column_name(struct db_stmt *stmt, int at)
{
    return stmt->pg == NULL ? sqlite3_column_name(stmt->lite, at) : pg_column_name(stmt->pg, at);
}

static inline int64_t db_changes(struct db_stmt *stmt) /* rows that the statement, which just ran, has changed */
{
    return stmt->pg == NULL ? sqlite3_changes(sqlite3_db_handle(stmt->lite)) : pg_changes(stmt->pg);
}

static inline void db_reset(struct db_stmt *stmt)
{
    if (stmt->pg == NULL)
        sqlite3_reset(stmt->lite);
    else
        pg_reset(stmt->pg);
}
