/* output_log.h - the output of a program: kept in a file of bounded size, cut into lines, its end remembered. Any bytes
 * and any amount are fine. One thread; output_log_close frees all. */
#pragma once

#include "base/base.h"

#define OUTPUT_HEAD_BYTES (4u << 20) /* the file holds so much of the beginning */
#define OUTPUT_TAIL_BYTES (256u << 10) /* and of the end */
#define OUTPUT_LINE_BYTES 65536 /* lines of this length and longer are not reports */
#define OUTPUT_LAST_BYTES 4096 /* for a message */

struct output_log {
    int fd; /* -1: no file */
    uint64_t n; /* bytes so far */
    char *tail; /* (OUTPUT_TAIL_BYTES) a ring: byte k of the output lies at k % OUTPUT_TAIL_BYTES */
    char *line; /* (OUTPUT_LINE_BYTES) the line that is not whole yet */
    size_t n_line; /* OUTPUT_LINE_BYTES: too long */
    bool too_long; /* a line was too long */
};

/* path NULL: no file; one that is there is replaced. */
enum status output_log_open(struct output_log *log, const char *path, struct error *err) MUST_USE;
void output_log_add(struct output_log *log, const char *bytes, size_t n);
/* Takes the next whole line out of bytes (n), from *at on; \n and \r end one. False: none is whole. The line is
 * borrowed until the next call. */
bool output_log_line(struct output_log *log, const char *bytes, size_t n, size_t *at, const char **ret_line,
                     size_t *ret_n);
/* The line that has no end; n 0: none. */
const char *output_log_rest(const struct output_log *log, size_t *ret_n);
/* The last whole lines, as printable text; "" when there is none. */
void output_log_last(const struct output_log *log, char ret_text[OUTPUT_LAST_BYTES + 1]);
/* text (n bytes, with room for one more) as lines of UTF-8 that end with \n: without colours, '?' for what is
 * neither. */
void output_log_printable(char *text, size_t n);
void output_log_close(struct output_log *log); /* a zeroed one is fine */
