/* address.c - stores that are not files: the address of a database, and where the files beside such a store lie. */
#include "store/store_priv.h"

#include "base/os/file.h"

#include <ctype.h>

bool store_is_address(const char *path)
{
    return strncmp(path, "postgresql://", 13) == 0 || strncmp(path, "postgres://", 11) == 0;
}

bool store_may_exist(const char *path)
{
    return store_is_address(path) || access(path, F_OK) == 0;
}

/* Bytes of the scheme in SCHEME:...; 0: there is none. */
static size_t scheme_length(const char *path)
{
    size_t n = strspn(path, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+.-");

    return isalpha((unsigned char)path[0]) && path[n] == ':' ? n : 0;
}

enum status store_address_check(const char *path, struct error *err)
{
    size_t n = scheme_length(path);

    if (store_is_address(path))
        return pg_address_check(path, err);
    if (strncmp(path, "postgresql:", 11) == 0 || strncmp(path, "postgres:", 9) == 0)
        return FAIL(err, ST_USAGE, "%s: the address of a database has two slashes: postgresql://HOST/DATABASE", path);
    if (n > 0)
        return FAIL(err, ST_USAGE,
                    "%s: no kind of store is called '%.*s'; give a file's path (./%s is a file of this name), or "
                    "postgresql://HOST/DATABASE",
                    path, (int)n, path, path);
    return ST_OK;
}

const char *store_beside(const char *path, char *buf)
{
    const char *data = getenv("XDG_DATA_HOME"), *home = getenv("HOME");
    char name[128];
    struct error why = {0};

    if (!store_is_address(path))
        return realpath(path, buf) != NULL ? buf : path;
    pg_address_name(path, name, sizeof name);
    if (data != NULL && data[0] == '/')
        snprintf(buf, PATH_MAX, "%.3000s/trawl", data);
    else
        snprintf(buf, PATH_MAX, "%.3000s/.local/share/trawl", home != NULL && home[0] == '/' ? home : "/tmp");
    if (file_make_folders(buf, 0777, &why) != ST_OK)
        log_debug("%s", why.text); /* whatever fails is reported where a file is made there */
    size_t n = strlen(buf);
    snprintf(buf + n, PATH_MAX - n, "/%s", name);
    return buf;
}

enum status store_stand_by(const char *path, const char *study, bool (*cancel)(void), struct error *err)
{
    TRY(store_address_check(path, err));
    return pg_stand_by(path, study, cancel, err);
}

void store_holder(const char *path, const char *study, char *buf, size_t size)
{
    int64_t pid;

    if (!pg_is_held(path, PG_HELD_STORE | PG_HELD_STUDY, study, buf, size, &pid))
        snprintf(buf, size, "nobody");
}

enum status store_postgres_open(struct error *err)
{
    return pg_library_open(err);
}

bool store_is_away(const struct store *store)
{
    return store->away;
}
