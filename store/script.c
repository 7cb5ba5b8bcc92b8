/* script.c - an SQLite file of another program's form, made of a text in SQL. */
#include "store/store_priv.h"

#include "base/file.h"

#include <unistd.h>

enum status store_write_script(const char *path, const char *sql, struct error *err)
{
    sqlite3 *db = NULL;
    enum status rc = ST_OK;

    if (file_exists(path))
        return FAIL(err, ST_EXISTS, "%s is there already; name a new file, or remove it", path);
    if (sqlite3_open(path, &db) != SQLITE_OK || sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK)
        rc = FAIL(err, ST_IO, "%s cannot be written: %s", path, sqlite3_errmsg(db));
    sqlite3_close(db);
    if (rc != ST_OK)
        (void)unlink(path);
    return rc;
}
