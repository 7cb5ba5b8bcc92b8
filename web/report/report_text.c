/* report_text.c - costs, keys and commands for people; nothing here asks the locale. */
#include "web/report/report_priv.h"

#include "base/text/duration.h"
#include "study/view/study_view.h"

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
