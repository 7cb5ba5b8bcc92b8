/* pg_none.c - in the place of store/postgres/ where Trawl is built without libpq: addresses are refused, and nothing else
 * is ever called. */
#include "store/postgres/pg.h"

#include <stdio.h>
#include <stdlib.h>

enum status pg_address_check(const char *address, struct error *err)
{
    (void)address;
    return FAIL(err, ST_USAGE,
                "this trawl was built without PostgreSQL: install libpq-dev and build it again with "
                "-Dpostgres=enabled, or give --store a file");
}

int pg_library_version(void)
{
    return 0;
}

enum status pg_open(struct store *store, enum pg_role role, struct error *err)
{
    (void)store, (void)role;
    return pg_address_check("", err);
}

bool pg_is_held(const char *address, char *ret_who, size_t size, int64_t *ret_pid)
{
    (void)address;
    if (size > 0)
        ret_who[0] = '\0';
    *ret_pid = 0;
    return false;
}

bool pg_has_holder(struct store *store)
{
    (void)store;
    return false;
}

enum status pg_stand_by(const char *address, bool (*cancel)(void), struct error *err)
{
    (void)cancel;
    return pg_address_check(address, err);
}

void pg_address_name(const char *address, char *buf, size_t size)
{
    (void)address;
    snprintf(buf, size, "none");
}

void pg_close(struct pg *pg)
{
    (void)pg;
}

/* No store has a connection, so that these are never called. */
enum status pg_exec(struct store *store, const char *sql, const char *what, struct error *err)
{
    (void)store, (void)sql, (void)what, (void)err;
    abort();
}

enum status pg_begin(struct store *store, bool writes, bool synced, const char *what, struct error *err)
{
    (void)store, (void)writes, (void)synced, (void)what, (void)err;
    abort();
}

enum status pg_commit(struct store *store, const char *what, struct error *err)
{
    (void)store, (void)what, (void)err;
    abort();
}

void pg_rollback(struct store *store)
{
    (void)store;
    abort();
}

bool pg_in_transaction(const struct pg *pg)
{
    (void)pg;
    abort();
}

enum status pg_data_version(struct store *store, int64_t *ret_version, struct error *err)
{
    (void)store, (void)ret_version, (void)err;
    abort();
}

void pg_prepare(struct store *store, const char *sql, struct pg_stmt **ret_stmt)
{
    (void)store, (void)sql, (void)ret_stmt;
    abort();
}

void pg_finalize(struct pg_stmt *stmt)
{
    (void)stmt;
}

void pg_reset(struct pg_stmt *stmt)
{
    (void)stmt;
    abort();
}

void pg_clear(struct pg_stmt *stmt)
{
    (void)stmt;
    abort();
}

void pg_bind(struct pg_stmt *stmt, int at, struct db_value value)
{
    (void)stmt, (void)at, (void)value;
    abort();
}

enum status pg_step(struct store *store, struct pg_stmt *stmt, bool *ret_row, const char *what, struct error *err)
{
    (void)store, (void)stmt, (void)ret_row, (void)what, (void)err;
    abort();
}

enum status pg_queue(struct store *store, struct pg_stmt *stmt, const char *what, struct error *err)
{
    (void)store, (void)stmt, (void)what, (void)err;
    abort();
}

struct db_value pg_value(const struct pg_stmt *stmt, int at)
{
    (void)stmt, (void)at;
    abort();
}

int pg_n_columns(const struct pg_stmt *stmt)
{
    (void)stmt;
    abort();
}

const char *pg_column_name(const struct pg_stmt *stmt, int at)
{
    (void)stmt, (void)at;
    abort();
}

int64_t pg_changes(const struct pg_stmt *stmt)
{
    (void)stmt;
    abort();
}
