/* status.h - the result of every fallible call and the object that carries its message.
 * Rules: a function that can fail returns enum status and takes struct error *err last (NULL is fine);
 * the first failure wins; the text says where, what was found and what to do. */
#pragma once

#include <stddef.h>

#define MUST_USE __attribute__((warn_unused_result))
#define PRINTF_LIKE(fmt_at, args_at) __attribute__((format(printf, fmt_at, args_at)))

enum status {
    ST_OK = 0,
    ST_NOMEM, /* a buffer or a number of threads that the config sets does not fit */
    ST_USAGE, /* wrong command line */
    ST_CONFIG, /* wrong config: unknown key, value out of range, ... */
    ST_IO, /* the operating system refused: missing file, full disk, ... */
    ST_CORRUPT, /* a file or message has bytes that do not belong there */
    ST_VERSION, /* a file, store or peer is of another version */
    ST_BUSY, /* another process holds it */
    ST_NOTFOUND, /* no such study, trial, env, key */
    ST_EXISTS, /* the name is taken */
    ST_LIMIT, /* a stated limit was passed */
    ST_NUMERIC, /* NaN, Inf or a matrix that does not factor */
    ST_DEVICE, /* the accelerator or its driver failed */
    ST_INTERRUPTED, /* the user or a signal asked to stop */
    ST_INTERNAL, /* a broken invariant: a bug in Trawl */
};

#define ERROR_TEXT_MAX 2048

struct error {
    enum status status;
    char text[ERROR_TEXT_MAX];
};

/* Records status and text in err unless err already holds a failure, and returns status.
 * Long text loses its middle, so that its end, the advice, stays. err may be NULL. */
enum status error_set(struct error *err, enum status status, const char *fmt, ...) PRINTF_LIKE(3, 4);

/* Puts "prefix: " in front of the text that err holds ("breakout.ini:12: ..."); returns err's status. */
enum status error_prefix(struct error *err, const char *fmt, ...) PRINTF_LIKE(2, 3);

void error_clear(struct error *err);

const char *status_name(enum status status); /* "config", "io", ... */

/* Exit code of the program for a status: 0 ok, 2 usage and config, 130 interrupted, 1 the rest. */
int status_exit_code(enum status status);

#define FAIL(err, status, ...) error_set((err), (status), __VA_ARGS__)

/* Runs a call that returns enum status and leaves the enclosing function with its failure.
 * Only where there is nothing to unwind. */
#define TRY(call)                                                                                                      \
    do {                                                                                                               \
        enum status try_ = (call);                                                                                     \
        if (try_ != ST_OK)                                                                                             \
            return try_;                                                                                               \
    } while (0)

/* The next call of a chain: runs only while no earlier one has failed. For what has to be unwound at the end. */
#define THEN(rc, call)                                                                                                 \
    do {                                                                                                               \
        if ((rc) == ST_OK)                                                                                             \
            (rc) = (call);                                                                                             \
    } while (0)
