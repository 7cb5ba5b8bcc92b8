/* trackio_rows.c - rows of the outbox as texts for Trackio.
 *
 * Invariant: a row's log id is made of the run's key and its number in the outbox: the row has the same id at every
 * send. */
#include "web/text/put.h"
#include "web/track/trackio.h"

#define FRONT_ROWS_MAX 200
#define TIME_TEXT_MAX 40

static bool time_text(const struct track_row *row, char ret_text[TIME_TEXT_MAX])
{
    time_t at = (time_t)(row->ms / 1000);
    struct tm utc;

    return gmtime_r(&at, &utc) != NULL && strftime(ret_text, TIME_TEXT_MAX, "%Y-%m-%dT%H:%M:%S+00:00", &utc) > 0;
}

static const char *run_name(const struct trackio *t, const struct track_run *run)
{
    const char *name = json_get_str(run->state, "name");
    return name != NULL ? name : run->trial_id == 0 ? t->c.study : run->key;
}

/* {"project": ..., "metrics": { */
static void begin_row(struct trackio *t, const struct track_run *run, const struct track_row *row, int64_t step)
{
    struct strbuf *sb = &t->c.body;

    put_json(sb, sb->text[sb->len - 1] == '[' ? "{'project':%s,'run':%s," : ",{'project':%s,'run':%s,",
             t->settings.project, run_name(t, run));
    strbuf_addf(sb, "\"run_id\":\"%s\",\"log_id\":\"%s:%lld\",\"step\":%lld,\"metrics\":{", run->key, run->key,
                (long long)row->id, (long long)step);
}

static void add_name(struct strbuf *sb, const char *name)
{
    if (sb->len > 0 && sb->text[sb->len - 1] != '{')
        strbuf_add(sb, ",");
    json_write_str(sb, name);
    strbuf_add(sb, ":");
}

static void add_number(struct strbuf *sb, const char *name, double value)
{
    add_name(sb, name);
    track_json_number(sb, value);
}

static void add_text(struct strbuf *sb, const char *name, const char *text)
{
    add_name(sb, name);
    json_write_str(sb, text);
}

static void add_flat(void *ctx, const char *key, const char *value)
{
    struct strbuf *sb = ctx;
    double number;

    add_name(sb, key);
    if (num_parse_f64(value, &number))
        track_json_number(sb, number);
    else
        json_write_str(sb, value);
}

/* Keys that begin with an underscore are Trackio's own. */
static void add_config(struct trackio *t, const struct track_row *row)
{
    static const char *const facts[] = {"attempt", "number", "origin", "seed", "device", "metric", "goal", "method"};
    struct strbuf *sb = &t->c.body;
    char created[TIME_TEXT_MAX], key[64];

    strbuf_add(sb, "},\"config\":{");
    track_flatten(json_get(row->json, "config"), add_flat, sb);
    for (size_t i = 0; i < COUNT(facts); i++) {
        const cJSON *item = json_get(row->json, facts[i]);
        if (item == NULL)
            continue;
        snprintf(key, sizeof key, "trawl.%s", facts[i]);
        add_name(sb, key);
        track_json_value(sb, item);
    }
    add_text(sb, "trawl.program", t->c.program);
    if (!t->c.single) {
        add_text(sb, "trawl.study", t->c.study);
    }
    if (cJSON_GetArraySize(json_get(row->json, "tags")) > 0) {
        add_name(sb, "tags");
        track_json_value(sb, json_get(row->json, "tags"));
    }
    if (!t->c.single) {
        add_text(sb, "_Group", t->c.study);
    }
    add_text(sb, "_Username", track_env("USER") != NULL ? track_env("USER") : "");
    add_text(sb, "_Created", time_text(row, created) ? created : "");
}

static void add_markdown_cell(struct strbuf *sb, const cJSON *cell)
{
    char text[NUM_TEXT_MAX];
    double value;
    bool is_number = track_json_is_number(cell, &value);
    if (is_number)
        snprintf(text, sizeof text, "%.6g", value);
    strbuf_add(sb, " ");
    for (const char *c = is_number ? text : cJSON_IsString(cell) ? cell->valuestring : ""; *c != '\0'; c++)
        strbuf_add_n(sb, *c == '|' || *c == '\n' ? " " : c, 1);
    strbuf_add(sb, " |");
}

/* The front's table as a text that Trackio shows. */
static void add_front(struct strbuf *sb, const cJSON *front)
{
    const cJSON *row, *cell;
    int n = 0;
    STRBUF(table, 1u << 20);

    strbuf_add(&table, "|");
    cJSON_ArrayForEach(cell, json_get(front, "columns")) add_markdown_cell(&table, cell);
    strbuf_add(&table, "\n|");
    cJSON_ArrayForEach(cell, json_get(front, "columns")) strbuf_add(&table, "---|");
    cJSON_ArrayForEach(row, json_get(front, "rows"))
    {
        if (n++ == FRONT_ROWS_MAX)
            break;
        strbuf_add(&table, "\n|");
        cJSON_ArrayForEach(cell, row) add_markdown_cell(&table, cell);
    }
    if (table.status == ST_OK) {
        add_name(sb, "study/front");
        strbuf_add(sb, "{\"_type\":\"trackio.markdown\",\"_value\":");
        json_write_str(sb, table.text);
        strbuf_add(sb, "}");
    }
}

static void add_values(struct strbuf *sb, const struct track_row *row)
{
    const cJSON *values = json_get(row->json, "values"), *item;
    double value;

    cJSON_ArrayForEach(item, values)
    {
        if (track_json_is_number(item, &value))
            add_number(sb, item->string, value);
    }
    if (row->type == TRACK_ROW_METRICS && json_get(values, "wall_s") == NULL &&
        json_get_f64(row->json, "wall_s", &value))
        add_number(sb, "wall_s", value);
}

static void add_named(struct strbuf *sb, const struct track_front_name *names, const cJSON *json)
{
    double value;

    for (size_t i = 0; names[i].sent != NULL; i++)
        if (json_get_f64(json, names[i].key, &value))
            add_number(sb, names[i].sent, value);
}

int64_t trackio_last_step(const struct track_run *run)
{
    int64_t step = json_i64_or(run->state, "step", 0);
    return step;
}

static void note_start(struct track_run *run, const struct track_row *row)
{
    const char *name = json_get_str(row->json, "name");

    if (name == NULL)
        return;
    cJSON_DeleteItemFromObjectCaseSensitive(run->state, "name");
    json_add_str(run->state, "name", name);
}

bool trackio_add_row(struct trackio *t, struct track_run *run, const struct track_row *row, int64_t *step)
{
    struct strbuf *sb = &t->c.body;
    int64_t attempt = 1, trials = 0;
    const char *state = json_get_str(row->json, "state");

    switch (row->type) {
    case TRACK_ROW_START:
    case TRACK_ROW_STUDY:
        note_start(run, row);
        (void)json_get_i64(row->json, "attempt", &attempt);
        begin_row(t, run, row, *step);
        if (row->type == TRACK_ROW_START)
            add_number(sb, "attempt", (double)attempt);
        add_config(t, row);
        break;
    case TRACK_ROW_METRICS:
    case TRACK_ROW_SYSTEM:
        *step = row->env_steps > *step ? row->env_steps : *step;
        begin_row(t, run, row, row->env_steps);
        add_values(sb, row);
        break;
    case TRACK_ROW_RESULT:
        (void)json_get_i64(row->json, "env_steps", step);
        begin_row(t, run, row, *step);
        add_named(sb, track_result_names, row->json);
        add_text(sb, "result/state", state != NULL ? state : "failed");
        if (json_get_str(row->json, "reason") != NULL) {
            add_text(sb, "result/reason", json_get_str(row->json, "reason"));
        }
        break;
    case TRACK_ROW_FRONT:
        (void)json_get_i64(row->json, "trials", &trials);
        *step = trials;
        begin_row(t, run, row, trials);
        add_named(sb, track_front_names, row->json);
        add_front(sb, row->json);
        break;
    case TRACK_ROW_STUDY_END:
    case TRACK_ROW_PAUSE:
        begin_row(t, run, row, *step);
        add_text(sb, row->type == TRACK_ROW_PAUSE ? "result/state" : "study/state",
                 row->type == TRACK_ROW_PAUSE ? "paused" : "ended");
        break;
    case TRACK_ROW_FILE:
    case TRACK_ROW_UNKNOWN:
        return false;
    }
    strbuf_add(sb, "}}");
    return true;
}

bool trackio_make_alert(struct trackio *t, const struct track_run *run, const struct track_row *row)
{
    const char *state = json_get_str(row->json, "state"), *reason = json_get_str(row->json, "reason");
    char at_text[TIME_TEXT_MAX], title[200];
    struct strbuf *sb = &t->c.body;

    if (row->type != TRACK_ROW_RESULT || state == NULL || (strcmp(state, "failed") != 0 && strcmp(state, "lost") != 0))
        return false;
    int64_t env_steps = json_i64_or(row->json, "env_steps", 0);
    if (!time_text(row, at_text))
        return false;
    snprintf(title, sizeof title, "%.120s: %s", run_name(t, run), state);
    strbuf_clear(sb);
    put_json(sb, "{'args':[],'kwargs':{'hf_token':null,'alerts':[{'project':%s,'run':%s,", t->settings.project,
             run_name(t, run));
    strbuf_addf(sb, "\"run_id\":\"%s\",\"alert_id\":\"%s:%lld\",", run->key, run->key, (long long)row->id);
    put_json(sb, "'level':'error','step':%lld,'timestamp':%s,'title':%s,'text':%s}]}}", (long long)env_steps, at_text,
             title, reason != NULL ? reason : "");
    return true;
}
