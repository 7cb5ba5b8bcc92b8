/* db.h - one prepared statement of a store, in SQLite or in PostgreSQL: its values, its rows.
 *
 * The one seam between the store's files and the database: they bind, step and read through these calls and sql.c's.
 * Parameters count from 1, columns from 0, as SQLite has it. A bound text or blob is borrowed until the statement's
 * next reset; a column's until the next step or reset. */
#pragma once

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

/* Values for a statement's parameters ?1, ?2, ...: VALUES(val_i64(study_id), val_text(name)). */
struct db_values {
    size_t n;
    const struct db_value *v; /* (n) */
};
#define VALUES(...)                                                                                                    \
    ((struct db_values){sizeof(struct db_value[]){__VA_ARGS__} / sizeof(struct db_value),                              \
                        (const struct db_value[]){__VA_ARGS__}})
#define NO_VALUES ((struct db_values){0})

static inline struct db_value val_i64(int64_t value)
{
    return (struct db_value){.type = DB_I64, .i64 = value};
}

static inline struct db_value val_f64(double value) /* NaN: NULL */
{
    return (struct db_value){.type = DB_F64, .f64 = value};
}

static inline struct db_value val_text(const char *text) /* NULL: NULL */
{
    return (struct db_value){.type = text != NULL ? DB_TEXT : DB_NULL, .bytes = text};
}

static inline struct db_value val_blob(const void *bytes, size_t n)
{
    return (struct db_value){.type = DB_BLOB, .bytes = bytes, .n = n};
}

static inline void db_bind(struct db_stmt *stmt, int at, struct db_value value)
{
    if (stmt->pg != NULL)
        pg_bind(stmt->pg, at, value);
    else if (value.type == DB_I64)
        sqlite3_bind_int64(stmt->lite, at, value.i64);
    else if (value.type == DB_F64)
        sqlite3_bind_double(stmt->lite, at, value.f64);
    else if (value.type == DB_TEXT)
        sqlite3_bind_text(stmt->lite, at, value.bytes, -1, SQLITE_STATIC);
    else if (value.type == DB_BLOB)
        sqlite3_bind_blob(stmt->lite, at, value.bytes, (int)value.n, SQLITE_STATIC);
    else
        sqlite3_bind_null(stmt->lite, at);
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
