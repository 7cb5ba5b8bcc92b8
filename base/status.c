/* status.c - error texts: bounded, first failure wins. */
#include "base/status.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static bool is_inside_character(const char *at) /* of UTF-8 */
{
    return ((unsigned char)*at & 0xc0) == 0x80;
}

/* A text that is too long loses its middle, since its end is what to do. */
static void PRINTF_LIKE(2, 0) cut_middle(char *ret_text, const char *fmt, va_list args)
{
    static const char mark[] = " [...] ";
    char whole[16 * ERROR_TEXT_MAX];
    size_t head = ERROR_TEXT_MAX / 2, tail = ERROR_TEXT_MAX - 1 - head - (sizeof mark - 1);

    vsnprintf(whole, sizeof whole, fmt, args);
    const char *end = whole + strlen(whole) - tail;
    while (head > 0 && is_inside_character(whole + head))
        head--;
    while (is_inside_character(end))
        end++;
    snprintf(ret_text, ERROR_TEXT_MAX, "%.*s%s%s", (int)head, whole, mark, end);
}

static void PRINTF_LIKE(2, 0) write_text(char *ret_text, const char *fmt, va_list args)
{
    va_list again;

    va_copy(again, args);
    if (vsnprintf(ret_text, ERROR_TEXT_MAX, fmt, args) >= ERROR_TEXT_MAX)
        cut_middle(ret_text, fmt, again);
    va_end(again);
    for (char *at = ret_text; *at != '\0'; at++) /* a name may hold what a terminal obeys */
        if ((unsigned char)*at < ' ' && *at != '\n' && *at != '\t')
            *at = '?';
}

static void PRINTF_LIKE(2, 3) set_text(char *ret_text, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    write_text(ret_text, fmt, args);
    va_end(args);
}

enum status error_set(struct error *err, enum status status, const char *fmt, ...)
{
    if (err != NULL && err->status == ST_OK) {
        va_list args;
        err->status = status;
        va_start(args, fmt);
        write_text(err->text, fmt, args);
        va_end(args);
    }
    return status;
}

enum status error_prefix(struct error *err, const char *fmt, ...)
{
    char old[ERROR_TEXT_MAX], prefix[ERROR_TEXT_MAX];
    va_list args;

    if (err == NULL)
        return ST_INTERNAL;
    memcpy(old, err->text, sizeof old);
    va_start(args, fmt);
    write_text(prefix, fmt, args);
    va_end(args);
    set_text(err->text, "%s: %s", prefix, old);
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
