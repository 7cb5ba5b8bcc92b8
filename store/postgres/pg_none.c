/* pg_none.c - replaces store/postgres/ in a build without libpq: addresses are refused. Functions that need a connection
 * are never called, and are left out (PG_ONLY). */
#include "store/postgres/pg.h"

enum status pg_address_check(const char *address, struct error *err)
{
    (void)address;
    return FAIL(err, ST_USAGE,
                "this trawl was built without PostgreSQL: install libpq-dev and build it again with "
                "-Dpostgres=enabled, or give --store a file");
}

enum status pg_library_open(struct error *err)
{
    return pg_address_check("", err);
}

enum status pg_open(struct store *store, enum pg_role role, struct error *err)
{
    (void)store, (void)role;
    return pg_address_check("", err);
}

bool pg_is_held(const char *address, unsigned locks, const char *study, char *ret_who, size_t size, int64_t *ret_pid)
{
    (void)address, (void)locks, (void)study;
    if (size > 0)
        ret_who[0] = '\0';
    *ret_pid = 0;
    return false;
}

enum status pg_stand_by(const char *address, const char *study, bool (*cancel)(void), struct error *err)
{
    (void)cancel, (void)study;
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
