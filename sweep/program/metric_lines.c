/* metric_lines.c - a program's reports, as lines of its output or of a JSON file. */
#include "sweep/program/metric_lines.h"

#include "base/json.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/status.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define MARK "TRAWL"

static bool is_name(const char *name)
{
    size_t n = strlen(name);

    return n > 0 && n < METRIC_NAME_BYTES && !isdigit((unsigned char)name[0]) &&
           strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./-") == n;
}

/* Of two with one name the later one counts. */
static void add(struct metric_line *line, const char *name, double value)
{
    size_t i = 0;

    if (strcmp(name, "step") == 0) {
        line->step = value;
        return;
    }
    if (strcmp(name, "cost") == 0) {
        line->cost = value;
        return;
    }
    while (i < line->n && strcmp(line->metrics[i].name, name) != 0)
        i++;
    if (i == METRICS_MAX)
        return;
    if (i == line->n)
        snprintf(line->metrics[line->n++].name, METRIC_NAME_BYTES, "%s", name);
    line->metrics[i].value = value;
}

static bool has_content(const struct metric_line *line)
{
    return line->n > 0 || !isnan(line->step) || !isnan(line->cost);
}

static void begin(struct metric_line *ret)
{
    ret->n = 0;
    ret->step = ret->cost = NAN;
}

bool metric_line_read(const char *line, size_t n, struct metric_line *ret)
{
    const char *end = line + n;

    begin(ret);
    while (line < end && isblank((unsigned char)*line))
        line++;
    if ((size_t)(end - line) <= strlen(MARK) || strncmp(line, MARK, strlen(MARK)) != 0 ||
        !isblank((unsigned char)line[strlen(MARK)]))
        return false;
    for (line += strlen(MARK); line < end;) {
        char word[METRIC_NAME_BYTES + NUM_TEXT_MAX], *equals;
        const char *from = line;
        double value;
        while (line < end && !isspace((unsigned char)*line))
            line++;
        snprintf(word, sizeof word, "%.*s", (int)(line - from), from);
        equals = strchr(word, '=');
        if (equals != NULL && (size_t)(line - from) < sizeof word) {
            *equals = '\0';
            if (is_name(word) && num_parse_f64_any(equals + 1, &value))
                add(ret, word, value);
        }
        while (line < end && isspace((unsigned char)*line))
            line++;
    }
    return has_content(ret);
}

/* Python writes NaN, Infinity and -Infinity, which are no JSON: in quotes, as our numbers are. */
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

bool metric_json_read(const char *line, size_t n, struct metric_line *ret)
{
    char *text = quote_words(line, n);
    cJSON *json = NULL;
    const cJSON *item;

    begin(ret);
    if (json_parse(text, strlen(text), &json, NULL) == ST_OK && cJSON_IsObject(json)) {
        cJSON_ArrayForEach(item, json)
        {
            double value;
            if (is_name(item->string) && json_get_f64(json, item->string, &value))
                add(ret, item->string, value);
        }
    }
    cJSON_Delete(json);
    mem_free(text);
    return has_content(ret);
}
