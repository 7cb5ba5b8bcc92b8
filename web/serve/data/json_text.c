/* json_text.c - JSON written straight into a text: lists of 10,000 trials need no tree of a million nodes. */
#include "web/serve/data/json_text.h"

#include "base/text/json.h"
#include "base/text/num.h"
#include "base/text/strbuf.h"
#include "base/text/words.h"

#include <math.h>
#include <string.h>

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

void put_i64(struct strbuf *out, int64_t value)
{
    bool exact = value <= (1ll << 53) && value >= -(1ll << 53);

    strbuf_addf(out, exact ? "%lld" : "\"%lld\"", (long long)value);
}

void put_time(struct strbuf *out, int64_t ms)
{
    if (ms == 0)
        strbuf_add(out, "null");
    else
        put_i64(out, ms);
}

void put_key(struct strbuf *out, const char *key)
{
    char last = out->len > 0 ? out->text[out->len - 1] : '\0';

    if (last != '{' && last != '[' && last != '\0')
        strbuf_add_n(out, ",", 1);
    put_str(out, key);
    strbuf_add_n(out, ":", 1);
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

void add_number(cJSON *object, const char *key, double value)
{
    if (isnan(value))
        json_add_str(object, key, NULL);
    else
        json_add_f64(object, key, value);
}
