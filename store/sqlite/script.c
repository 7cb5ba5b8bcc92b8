/* script.c - SQLite files in another program's form: made of a text in SQL, and read by queries. */
#include "store/store_priv.h"

#include "base/os/file.h"
#include "base/text/json.h"

/* An SQLite code: SQLITE_OK when all statements are carried out. */
static int run_script(sqlite3 *db, const char *sql, const double *numbers, size_t n)
{
    size_t used = 0;
    int rc = SQLITE_OK;

    while (rc == SQLITE_OK && *sql != '\0') {
        sqlite3_stmt *stmt = NULL;
        rc = sqlite3_prepare_v2(db, sql, -1, &stmt, &sql);
        for (int i = 1; rc == SQLITE_OK && i <= sqlite3_bind_parameter_count(stmt); i++)
            rc = used < n ? sqlite3_bind_double(stmt, i, numbers[used++]) : SQLITE_RANGE;
        if (rc == SQLITE_OK)
            (void)sqlite3_step(stmt); /* its code comes from sqlite3_finalize */
        int ended = sqlite3_finalize(stmt);
        rc = rc == SQLITE_OK ? ended : rc;
    }
    return rc;
}

enum status store_write_script(const char *path, const char *sql, const double *numbers, size_t n, struct error *err)
{
    sqlite3 *db = NULL;
    enum status rc = ST_OK;

    if (file_exists(path))
        return FAIL(err, ST_EXISTS, "%s already exists; name a new file, or remove it", path);
    if (sqlite3_open(path, &db) != SQLITE_OK || run_script(db, sql, numbers, n) != SQLITE_OK)
        rc = FAIL(err, ST_IO, "%s cannot be written: %s", path, sqlite3_errmsg(db));
    sqlite3_close(db);
    if (rc != ST_OK)
        (void)unlink(path);
    return rc;
}

static cJSON *row_json(sqlite3_stmt *stmt)
{
    cJSON *row = cJSON_CreateObject();

    for (int i = 0; i < sqlite3_column_count(stmt); i++) {
        const char *name = sqlite3_column_name(stmt, i);
        switch (sqlite3_column_type(stmt, i)) {
        case SQLITE_INTEGER:
            json_add_i64(row, name, sqlite3_column_int64(stmt, i));
            break;
        case SQLITE_FLOAT:
            json_add_f64(row, name, sqlite3_column_double(stmt, i));
            break;
        case SQLITE_NULL:
            cJSON_AddNullToObject(row, name);
            break;
        default:
            json_add_str(row, name, (const char *)sqlite3_column_text(stmt, i));
        }
    }
    return row;
}

enum status store_read_rows(const char *path, const char *sql, int64_t id, cJSON **ret_rows, struct error *err)
{
    cJSON *rows = cJSON_CreateArray();
    sqlite3_stmt *stmt = NULL;
    sqlite3 *db = NULL;
    enum status rc = ST_OK;
    int step = SQLITE_DONE;

    if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL) != SQLITE_OK)
        rc = FAIL(err, ST_IO, "%s cannot be opened: %s", path, sqlite3_errmsg(db));
    else if (sqlite3_prepare_v2(db, sql, -1, &stmt, NULL) != SQLITE_OK)
        rc = FAIL(err, ST_CORRUPT, "%s cannot be read: %s", path, sqlite3_errmsg(db));
    if (rc == ST_OK && sqlite3_bind_parameter_count(stmt) > 0)
        sqlite3_bind_int64(stmt, 1, id);
    while (rc == ST_OK && (step = sqlite3_step(stmt)) == SQLITE_ROW)
        cJSON_AddItemToArray(rows, row_json(stmt));
    if (rc == ST_OK && step != SQLITE_DONE)
        rc = FAIL(err, ST_IO, "%s cannot be read: %s", path, sqlite3_errmsg(db));
    sqlite3_finalize(stmt);
    sqlite3_close(db);
    if (rc != ST_OK)
        cJSON_Delete(rows);
    else
        *ret_rows = rows;
    return rc;
}
