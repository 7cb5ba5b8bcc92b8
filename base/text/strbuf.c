/* strbuf.c - growing text with a limit.
 * Invariants: text[len] is NUL; cap == 0 means that text is the shared empty string, which is never written to. */
#include "base/text/strbuf.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define STRBUF_FIRST 256

static char empty[1];

struct strbuf strbuf_of(size_t max_bytes)
{
    return (struct strbuf){.text = empty, .max = max_bytes, .status = ST_OK};
}

void strbuf_init(struct strbuf *sb, size_t max_bytes)
{
    *sb = strbuf_of(max_bytes);
}

void strbuf_free(struct strbuf *sb)
{
    if (sb->cap != 0)
        mem_free(sb->text);
    strbuf_init(sb, sb->max);
}

void strbuf_clear(struct strbuf *sb)
{
    sb->len = 0;
    if (sb->cap != 0)
        sb->text[0] = '\0';
    sb->status = ST_OK;
}

/* Makes space for n more bytes and the NUL; false breaks the buffer and leaves its text. */
static bool reserve(struct strbuf *sb, size_t n)
{
    size_t need, cap;

    if (sb->status != ST_OK)
        return false;
    if (n > sb->max - sb->len) {
        sb->status = ST_LIMIT;
        return false;
    }
    need = sb->len + n + 1;
    if (need <= sb->cap)
        return true;
    cap = sb->cap == 0 ? STRBUF_FIRST : sb->cap * 2;
    if (cap < need)
        cap = need;
    sb->text = mem_grow(sb->cap == 0 ? NULL : sb->text, sb->len + 1, cap, 1);
    sb->cap = cap;
    return true;
}

void strbuf_add_n(struct strbuf *sb, const char *bytes, size_t n)
{
    if (!reserve(sb, n) || n == 0)
        return;
    memcpy(sb->text + sb->len, bytes, n);
    sb->len += n;
    sb->text[sb->len] = '\0';
}

void strbuf_add(struct strbuf *sb, const char *text)
{
    strbuf_add_n(sb, text, strlen(text));
}

void strbuf_addf(struct strbuf *sb, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    int n = vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    if (n < 0) {
        if (sb->status == ST_OK)
            sb->status = ST_LIMIT;
        return;
    }
    if (!reserve(sb, (size_t)n))
        return;
    va_start(args, fmt);
    vsnprintf(sb->text + sb->len, (size_t)n + 1, fmt, args);
    va_end(args);
    sb->len += (size_t)n;
}

void strbuf_add_shell(struct strbuf *sb, const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+.,:/@%=";

    if (word[0] != '\0' && word[strspn(word, plain)] == '\0') {
        strbuf_add(sb, word);
        return;
    }
    strbuf_add(sb, "'");
    for (; *word != '\0'; word++)
        strbuf_add(sb, *word == '\'' ? "'\\''" : (char[2]){*word, '\0'});
    strbuf_add(sb, "'");
}

const char *shell_word(const char *word, char buf[SHELL_WORD_MAX])
{
    AT_END(strbuf_free) struct strbuf sb = {0};

    strbuf_init(&sb, 8 * SHELL_WORD_MAX);
    strbuf_add_shell(&sb, word);
    snprintf(buf, SHELL_WORD_MAX, "%s", sb.status == ST_OK ? sb.text : word);
    return buf;
}

enum status strbuf_status(const struct strbuf *sb, const char *what, struct error *err)
{
    return sb->status == ST_OK ? ST_OK : FAIL(err, ST_LIMIT, "%s is longer than its limit of %zu bytes", what, sb->max);
}

char *strbuf_take(struct strbuf *sb)
{
    char *text;

    if (sb->status != ST_OK)
        return NULL;
    text = sb->cap != 0 ? sb->text : mem_strdup("");
    strbuf_init(sb, sb->max);
    return text;
}
