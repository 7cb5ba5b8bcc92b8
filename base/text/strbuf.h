/* strbuf.h - a text that grows up to a limit stated at the start; always NUL-terminated.
 * After a failed append the buffer is "broken": later appends do nothing and strbuf_status reports it, so a writer
 * checks once at its end. */
#pragma once

#include <stddef.h>

#include "base/mem.h"
#include "base/status.h"

struct strbuf {
    char *text; /* owned; "" before the first append */
    size_t len, cap, max;
    enum status status; /* ST_OK or ST_LIMIT */
};

void strbuf_init(struct strbuf *sb, size_t max_bytes);
void strbuf_free(struct strbuf *sb);
/* A local one, freed when its block ends. */
#define STRBUF(name, max_bytes) AT_END(strbuf_free) struct strbuf name = strbuf_of(max_bytes)
struct strbuf strbuf_of(size_t max_bytes);
void strbuf_clear(struct strbuf *sb); /* keeps the memory */
void strbuf_add(struct strbuf *sb, const char *text);
void strbuf_add_n(struct strbuf *sb, const char *bytes, size_t n);
void strbuf_addf(struct strbuf *sb, const char *fmt, ...) PRINTF_LIKE(2, 3);
void strbuf_add_shell(struct strbuf *sb, const char *word); /* as one word of sh, in single quotes where needed */
/* The same for a message: a word as a shell needs it, cut to fit. The text lives as long as the block it is used in. */
#define SHELL_WORD_MAX 1024
#define SHELL_WORD(word) shell_word((word), (char[SHELL_WORD_MAX]){0})
const char *shell_word(const char *word, char buf[SHELL_WORD_MAX]);
enum status strbuf_status(const struct strbuf *sb, const char *what, struct error *err) MUST_USE;
char *strbuf_take(struct strbuf *sb); /* the text, now the caller's (mem_free); NULL if broken */
