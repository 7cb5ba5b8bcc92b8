/* status.c - error texts: bounded, first failure wins. */
#include "base/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum status error_set(struct error *err, enum status status, const char *fmt, ...)
{
    if (err != NULL && err->status == ST_OK) {
        va_list args;
        err->status = status;
        va_start(args, fmt);
        vsnprintf(err->text, sizeof err->text, fmt, args);
        va_end(args);
    }
    return status;
}

enum status error_prefix(struct error *err, const char *fmt, ...)
{
    char old[ERROR_TEXT_MAX];
    va_list args;
    int n;

    if (err == NULL)
        return ST_INTERNAL;
    memcpy(old, err->text, sizeof old);
    va_start(args, fmt);
    n = vsnprintf(err->text, sizeof err->text, fmt, args);
    va_end(args);
    if (n >= 0 && (size_t)n < sizeof err->text)
        snprintf(err->text + n, sizeof err->text - (size_t)n, ": %.*s", (int)(sizeof err->text - (size_t)n), old);
    return err->status;
}

void error_clear(struct error *err)
{
    if (err != NULL) {
        err->status = ST_OK;
        err->text[0] = '\0';
    }
}

const char *status_name(enum status status)
{
    static const char *const names[] = {
        [ST_OK] = "ok",
        [ST_NOMEM] = "nomem",
        [ST_USAGE] = "usage",
        [ST_CONFIG] = "config",
        [ST_IO] = "io",
        [ST_CORRUPT] = "corrupt",
        [ST_VERSION] = "version",
        [ST_BUSY] = "busy",
        [ST_NOTFOUND] = "notfound",
        [ST_EXISTS] = "exists",
        [ST_LIMIT] = "limit",
        [ST_NUMERIC] = "numeric",
        [ST_DEVICE] = "device",
        [ST_INTERRUPTED] = "interrupted",
        [ST_INTERNAL] = "internal",
    };
    return (size_t)status < sizeof names / sizeof names[0] ? names[status] : "unknown";
}

int status_exit_code(enum status status)
{
    switch (status) {
    case ST_OK:
        return 0;
    case ST_USAGE:
    case ST_CONFIG:
        return 2;
    case ST_INTERRUPTED:
        return 130;
    default:
        return 1;
    }
}
