/* wandb_lines.c - the texts inside W&B's file stream: lines of the history, summary, config.
 *
 * These texts are strings of the outer JSON. NaN, Infinity and -Infinity have no quotes in them, and a double keeps all
 * its digits. */
#include "web/track/wandb.h"

static void remember(cJSON *summary, const char *key, const cJSON *value)
{
    cJSON_DeleteItemFromObjectCaseSensitive(summary, key);
    cJSON_AddItemToObject(summary, key, cJSON_Duplicate(value, true));
}

static void remember_number(cJSON *summary, const char *key, double value)
{
    cJSON_DeleteItemFromObjectCaseSensitive(summary, key);
    json_add_f64_any(summary, key, value);
}

void wandb_history_line(struct strbuf *sb, const struct track_row *row, const cJSON *values, int64_t step,
                        int64_t started_ms, cJSON *summary)
{
    double runtime_s = (double)(row->ms - started_ms) / 1e3;
    const cJSON *item;

    strbuf_addf(sb, "{\"_step\":%lld,\"_runtime\":", (long long)step);
    track_json_bare_number(sb, runtime_s);
    strbuf_add(sb, ",\"_timestamp\":");
    track_json_bare_number(sb, (double)row->ms / 1e3);
    cJSON_ArrayForEach(item, values)
    {
        strbuf_add(sb, ",");
        json_write_str(sb, item->string);
        strbuf_add(sb, ":");
        track_json_bare_value(sb, item);
        remember(summary, item->string, item);
    }
    strbuf_add(sb, "}");
    remember_number(summary, "_step", (double)step);
    remember_number(summary, "_runtime", runtime_s);
    remember_number(summary, "_timestamp", (double)row->ms / 1e3);
}

void wandb_event_line(struct strbuf *sb, const struct track_row *row, int64_t started_ms)
{
    const cJSON *item;

    strbuf_add(sb, "{\"_wandb\":true,\"_timestamp\":");
    track_json_bare_number(sb, (double)row->ms / 1e3);
    strbuf_add(sb, ",\"_runtime\":");
    track_json_bare_number(sb, (double)(row->ms - started_ms) / 1e3);
    cJSON_ArrayForEach(item, json_get(row->json, "values"))
    {
        char key[128];
        snprintf(key, sizeof key, "%s", item->string);
        for (char *c = key; *c != '\0'; c++)
            *c = *c == '/' ? '.' : *c;
        strbuf_add(sb, ",");
        json_write_str(sb, key);
        strbuf_add(sb, ":");
        track_json_bare_value(sb, item);
    }
    strbuf_add(sb, "}");
}

static void add_entry(struct strbuf *sb, const char *key, const cJSON *value)
{
    if (value == NULL)
        return;
    json_write_str(sb, key);
    strbuf_add(sb, ":{\"value\":");
    track_json_bare_value(sb, value);
    strbuf_add(sb, "},");
}

void wandb_config_text(struct strbuf *sb, const struct wandb *w, const struct track_row *row)
{
    static const char *const sent[] = {"number", "attempt", "origin", "seed", "device", "env",
                                       "params", "method",  "metric", "goal", "space",  "program"};
    const cJSON *config = json_get(row->json, "config"), *section;

    strbuf_add(sb, "{");
    cJSON_ArrayForEach(section, config) add_entry(sb, section->string, section);
    strbuf_add(sb, "\"trawl\":{\"value\":{\"study\":");
    json_write_str(sb, w->c.study);
    for (size_t i = 0; i < COUNT(sent); i++) {
        const cJSON *item = json_get(row->json, sent[i]);
        if (item == NULL)
            continue;
        strbuf_addf(sb, ",\"%s\":", sent[i]);
        track_json_bare_value(sb, item);
    }
    /* Without "t", W&B's own client treats the run as one that never started. */
    strbuf_add(sb, "}},\"_wandb\":{\"value\":{\"cli_version\":");
    json_write_str(sb, w->c.program);
    strbuf_add(sb, ",\"t\":{\"1\":[],\"13\":\"linux\"}}}}");
}
