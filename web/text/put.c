/* put.c - values as JSON and markup have them, and formats that hold them. */
#include "web/text/put.h"

#include "base/text/human.h"

#include <stdarg.h>

/* -- JSON -- */

static void put_char(struct strbuf *out, unsigned char c)
{
    static const char hex[] = "0123456789abcdef";
    char escape[] = {'\\', 'u', '0', '0', hex[c >> 4], hex[c & 15], '\0'};

    strbuf_add(out, c == '"' ? "\\\"" : c == '\\' ? "\\\\" : c == '\n' ? "\\n" : c == '\t' ? "\\t" : escape);
}

void put_str(struct strbuf *out, const char *text)
{
    size_t n, len;

    if (text == NULL) {
        strbuf_add(out, "null");
        return;
    }
    strbuf_add_n(out, "\"", 1);
    n = strlen(text);
    for (size_t i = 0; i < n; i += len) {
        unsigned char c = (unsigned char)text[i];
        len = utf8_length(text + i, n - i);
        if (len == 0) {
            strbuf_add(out, "\xef\xbf\xbd");
            len = 1;
        } else if (c < 0x20 || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' || c == 0x7f) {
            put_char(out, c); /* '<' too: harmless even where a page is foolish with it */
        } else {
            strbuf_add_n(out, text + i, len);
        }
    }
    strbuf_add_n(out, "\"", 1);
}

void put_f64(struct strbuf *out, double value)
{
    char buf[NUM_TEXT_MAX];

    if (isnan(value))
        strbuf_add(out, "null");
    else if (isinf(value))
        strbuf_add(out, value > 0 ? "\"inf\"" : "\"-inf\"");
    else if (value == rint(value) && fabs(value) < 1e15)
        strbuf_addf(out, "%lld", (long long)value);
    else
        strbuf_add(out, num_format_f64(value, buf));
}

static void put_i64(struct strbuf *out, int64_t value)
{
    bool exact = value <= (1ll << 53) && value >= -(1ll << 53);

    strbuf_addf(out, exact ? "%lld" : "\"%lld\"", (long long)value);
}

void put_json_text(struct strbuf *out, const char *text)
{
    for (const char *at = text; *at != '\0';) {
        size_t n = strcspn(at, "<>&");
        strbuf_add_n(out, at, n);
        at += n;
        if (*at != '\0')
            put_char(out, (unsigned char)*at++);
    }
}

/* -- markup -- */

/* Bytes of the character at text, or 0 when it is not UTF-8 or none that XML allows (control characters, U+FFFE,
 * U+FFFF). */
static size_t xml_length(const char *text)
{
    size_t n = utf8_length(text, strnlen(text, 4));

    if (n == 1)
        return ((unsigned char)text[0] >= 0x20 && text[0] != 0x7f) || text[0] == '\t' || text[0] == '\n' ? 1 : 0;
    return n == 3 && (memcmp(text, "\xef\xbf\xbe", 3) == 0 || memcmp(text, "\xef\xbf\xbf", 3) == 0) ? 0 : n;
}

static void put_escaped(struct strbuf *out, const char *text)
{
    const char *at = text != NULL ? text : "";

    while (*at != '\0') {
        size_t n = xml_length(at);
        const char *entity = *at == '&'    ? "&amp;"
                             : *at == '<'  ? "&lt;"
                             : *at == '>'  ? "&gt;"
                             : *at == '"'  ? "&quot;"
                             : *at == '\'' ? "&#39;"
                                           : NULL;
        if (entity != NULL)
            strbuf_add(out, entity);
        else if (n == 0)
            strbuf_add(out, "\xef\xbf\xbd"); /* the replacement character */
        else
            strbuf_add_n(out, at, n);
        at += n > 0 ? n : 1;
    }
}

static void put_place(struct strbuf *out, double value)
{
    char buf[HUMAN_TEXT_MAX];
    size_t n = strlen(text_fixed(value, 1, buf));

    if (n > 2 && strcmp(buf + n - 2, ".0") == 0)
        buf[n - 2] = '\0';
    strbuf_add(out, buf);
}

/* -- LaTeX -- */

static void put_tex_text(struct strbuf *out, const char *text)
{
    for (const char *at = text != NULL ? text : ""; *at != '\0'; at++) {
        const char *name = *at == '\\'   ? "\\textbackslash{}"
                           : *at == '~'  ? "\\textasciitilde{}"
                           : *at == '^'  ? "\\textasciicircum{}"
                           : *at == '\n' ? " "
                                         : NULL;
        if (name != NULL) {
            strbuf_add(out, name);
            continue;
        }
        if (strchr("#$%&_{}", *at) != NULL)
            strbuf_add(out, "\\");
        strbuf_add_n(out, at, 1);
    }
}

static void put_tex_number(struct strbuf *out, double value)
{
    char buf[HUMAN_TEXT_MAX];
    size_t n = strspn(text_number(value, buf), "-0123456789.");

    if (!isfinite(value))
        strbuf_add(out, "--");
    else if (buf[n] != 'e')
        strbuf_addf(out, "$%.*s$%s", (int)n, buf, buf + n); /* "4.1M": the suffix is not a variable */
    else if (strncmp(buf, "1e", 2) == 0)
        strbuf_addf(out, "$10^{%d}$", atoi(buf + n + 1));
    else
        strbuf_addf(out, "$%.*s \\times 10^{%d}$", (int)n, buf, atoi(buf + n + 1));
}

/* -- formats -- */

enum language { JSON, XML, TEX };

/* Writes the value of the conversion after '%', and returns what follows it. */
static const char *put_value(struct strbuf *out, const char *at, enum language language, va_list *args)
{
    char buf[HUMAN_TEXT_MAX];

    if (strncmp(at, "lld", 3) == 0 || strncmp(at, "zu", 2) == 0) {
        int64_t value = *at == 'l' ? va_arg(*args, long long) : (int64_t)va_arg(*args, size_t);
        if (language == JSON)
            put_i64(out, value);
        else
            strbuf_addf(out, "%lld", (long long)value);
        return at + (*at == 'l' ? 3 : 2);
    }
    switch (*at) {
    case 's':
        (language == JSON ? put_str : language == XML ? put_escaped : put_tex_text)(out, va_arg(*args, const char *));
        break;
    case 'g':
        (language == JSON ? put_f64 : put_place)(out, va_arg(*args, double));
        break;
    case 'e':
        if (language == TEX)
            put_tex_number(out, va_arg(*args, double));
        else
            strbuf_add(out, text_number(va_arg(*args, double), buf));
        break;
    case 'd':
        strbuf_addf(out, "%d", va_arg(*args, int));
        break;
    case 'i':
        strbuf_add(out, va_arg(*args, int) ? "true" : "false");
        break;
    default: /* "%%" */
        strbuf_add(out, "%");
    }
    return at + 1;
}

static void put_format(struct strbuf *out, const char *fmt, enum language language, va_list *args)
{
    for (const char *at = fmt; *at != '\0';) {
        size_t n = strcspn(at, language == JSON ? "%'" : "%");
        strbuf_add_n(out, at, n);
        at += n;
        if (*at == '\'') {
            strbuf_add(out, "\"");
            at++;
        } else if (*at == '%') {
            at = put_value(out, at + 1, language, args);
        }
    }
}

#define PUT(language)                                                                                                  \
    va_list args;                                                                                                      \
    va_start(args, fmt);                                                                                               \
    put_format(out, fmt, language, &args);                                                                             \
    va_end(args)

void put_json(struct strbuf *out, const char *fmt, ...)
{
    PUT(JSON);
}

void put_xml(struct strbuf *out, const char *fmt, ...)
{
    PUT(XML);
}

void put_tex(struct strbuf *out, const char *fmt, ...)
{
    PUT(TEX);
}
