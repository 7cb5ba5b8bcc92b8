/* report_text.c - numbers, times and foreign text for people; nothing here asks the locale. */
#include "web/report/report_priv.h"

#include "base/text/duration.h"
#include "base/text/words.h"
#include "study/view/study_view.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* Bytes of the character at text, or 0 when it is no UTF-8 or none that XML allows (control characters, U+FFFE,
 * U+FFFF). */
static size_t xml_length(const char *text)
{
    size_t n = utf8_length(text, strnlen(text, 4));

    if (n == 1)
        return ((unsigned char)text[0] >= 0x20 && text[0] != 0x7f) || text[0] == '\t' || text[0] == '\n' ? 1 : 0;
    return n == 3 && (memcmp(text, "\xef\xbf\xbe", 3) == 0 || memcmp(text, "\xef\xbf\xbf", 3) == 0) ? 0 : n;
}

void text_escape(struct strbuf *out, const char *text)
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

const char *text_cost(const struct study_view *v, double cost, char buf[HUMAN_TEXT_MAX])
{
    char number[HUMAN_TEXT_MAX];

    if (study_cost_is_time(v->search.cost) && !isnan(cost))
        return format_seconds(cost, buf);
    snprintf(buf, HUMAN_TEXT_MAX, isnan(cost) || v->search.cost == SEARCH_COST_OWN ? "%.40s" : "%.40s steps",
             text_number(cost, number));
    return buf;
}

const char *text_key(const char *key, size_t letters, char buf[HUMAN_TEXT_MAX])
{
    const char *dot = strrchr(key, '.');

    if (strlen(key) > letters && dot != NULL)
        key = dot + 1;
    if (strlen(key) > letters)
        snprintf(buf, HUMAN_TEXT_MAX, "%.*s\xe2\x80\xa6", (int)letters - 1, key);
    else
        snprintf(buf, HUMAN_TEXT_MAX, "%s", key);
    return buf;
}

void report_command(struct strbuf *out, const struct report *report, const char *before, const char *after)
{
    strbuf_add(out, before);
    strbuf_add_shell(out, report->view->study.name);
    if (report->store_path != NULL) {
        strbuf_add(out, " --store ");
        strbuf_add_shell(out, report->store_path);
    }
    strbuf_add(out, after);
}
