/* metric_lines.c - a program's reports, as lines of its output or of a JSON file. */
#include "sweep/program/metric_lines.h"

#include "base/text/json.h"

#include <ctype.h>

#define MARK "TRAWL"

static bool is_name(const char *name)
{
    size_t n = strlen(name);

    return n > 0 && n < METRIC_NAME_BYTES && !isdigit((unsigned char)name[0]) &&
           strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./-") == n;
}

/* Of two with one name the later one counts. score: takes the last place where none is left. */
static void add(struct metric_line *line, const char *name, double value, const char *score)
{
    size_t i = 0;

    if (strcmp(name, "step") == 0) {
        line->step = value;
        return;
    }
    if (strcmp(name, "cost") == 0) {
        line->cost = value;
        line->has_cost = true;
        return;
    }
    while (i < line->n && strcmp(line->metrics[i].name, name) != 0)
        i++;
    if (i == METRICS_MAX && strcmp(name, score) != 0)
        return;
    if (i == line->n) {
        i = i < METRICS_MAX ? i : METRICS_MAX - 1;
        line->n = i + 1;
        snprintf(line->metrics[i].name, METRIC_NAME_BYTES, "%s", name);
    }
    line->metrics[i].value = value;
}

void metric_line_take(struct metric_line *into, const struct metric_line *line, const char *score)
{
    for (size_t i = 0; i < line->n; i++)
        if (!isnan(line->metrics[i].value))
            add(into, line->metrics[i].name, line->metrics[i].value, score);
}

static bool has_content(const struct metric_line *line)
{
    return line->n > 0 || !isnan(line->step) || line->has_cost;
}

static void begin(struct metric_line *ret)
{
    ret->n = 0;
    ret->step = ret->cost = NAN;
    ret->has_cost = false;
}

/* What follows the last TRAWL of a line (n bytes); NULL: none. In quotes it is a text about reports, no report. */
static const char *find_mark(const char *line, size_t n)
{
    for (const char *at = line + n; at-- > line;) {
        size_t left = (size_t)(line + n - at);
        char before = at > line ? at[-1] : ' ';
        if (left > strlen(MARK) && strncmp(at, MARK, strlen(MARK)) == 0 && isblank((unsigned char)at[strlen(MARK)]) &&
            !isalnum((unsigned char)before) && strchr("_'\"`", before) == NULL)
            return at + strlen(MARK);
    }
    return NULL;
}

/* The line without colours and with an end, owned; what follows its mark in *ret_at. NULL: there is no mark. */
static char *take_marked(const char *line, size_t n, const char **ret_at, const char **ret_end)
{
    if (memmem(line, n, MARK, strlen(MARK)) == NULL)
        return NULL;
    char *text = memcpy(mem_alloc(n + 1), line, n);
    n = words_drop_escapes(text, n);
    *ret_end = text + n;
    *ret_at = find_mark(text, n);
    if (*ret_at != NULL)
        return text;
    mem_free(text);
    return NULL;
}

bool metric_line_is_marked(const char *line, size_t n)
{
    const char *at, *end;
    MEM_LOCAL char *text = take_marked(line, n, &at, &end);

    return text != NULL;
}

/* "score=0.5", or "score=0.5," as it stands in an enumeration. */
static void take_word(struct metric_line *line, const char *from, size_t n, const char *score)
{
    char word[METRIC_NAME_BYTES + NUM_TEXT_MAX], *equals;
    double value;

    if (n > 0 && (from[n - 1] == ',' || from[n - 1] == ';'))
        n--;
    snprintf(word, sizeof word, "%.*s", (int)n, from);
    equals = strchr(word, '=');
    if (equals == NULL || n >= sizeof word)
        return;
    *equals = '\0';
    if (is_name(word) && num_parse_f64_any(equals + 1, &value))
        add(line, word, value, score);
}

bool metric_line_read(const char *line, size_t n, const char *score, struct metric_line *ret)
{
    const char *at, *end, *from;
    MEM_LOCAL char *text = take_marked(line, n, &at, &end);

    begin(ret);
    if (text == NULL)
        return false;
    while (at < end) {
        while (at < end && isspace((unsigned char)*at))
            at++;
        for (from = at; at < end && !isspace((unsigned char)*at);)
            at++;
        take_word(ret, from, (size_t)(at - from), score);
    }
    return has_content(ret);
}

/* Python writes NaN, Infinity and -Infinity, which are not JSON: in quotes, as our numbers are. */
static char *quote_words(const char *line, size_t n)
{
    static const char *const words[] = {"-Infinity", "Infinity", "NaN"};
    static const char *const ours[] = {"\"-inf\"", "\"inf\"", "\"nan\""};
    char *text = mem_alloc(2 * n + 1);
    bool quoted = false;
    size_t to = 0;

    for (size_t i = 0; i < n;) {
        size_t k = 0;
        if (line[i] == '"' && (i == 0 || line[i - 1] != '\\'))
            quoted = !quoted;
        while (!quoted && k < 3 && (strlen(words[k]) > n - i || strncmp(line + i, words[k], strlen(words[k])) != 0))
            k++;
        if (quoted || k == 3) {
            text[to++] = line[i++];
            continue;
        }
        memcpy(text + to, ours[k], strlen(ours[k]));
        to += strlen(ours[k]);
        i += strlen(words[k]);
    }
    text[to] = '\0';
    return text;
}

bool metric_json_read(const char *line, size_t n, const char *score, struct metric_line *ret)
{
    MEM_LOCAL char *text = quote_words(line, n);
    JSON_LOCAL cJSON *json = NULL;
    const cJSON *item;

    begin(ret);
    if (json_parse(text, strlen(text), &json, NULL) == ST_OK && cJSON_IsObject(json)) {
        cJSON_ArrayForEach(item, json)
        {
            double value;
            if (is_name(item->string) && json_get_f64(json, item->string, &value))
                add(ret, item->string, value, score);
        }
    }
    return has_content(ret);
}
