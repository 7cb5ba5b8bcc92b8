/* start_parts.c - see start_parts.h. Invariant: the parts are in the order of time, without gaps. */
#include "sweep/worker/start_parts.h"

#include "base/text/duration.h"
#include "base/os/machine.h"
#include "sweep/worker/session.h"

#define PRINTED_FROM_S 1e-3
#define LINE_COLUMNS 80

static void add(struct start_parts *parts, const char *name, double s)
{
    if (parts->n < START_PARTS_MAX)
        parts->rows[parts->n++] = (struct kern_part){name, s};
}

void start_parts_begin(struct start_parts *parts)
{
    *parts = (struct start_parts){.from_s = clock_mono_s()};
    add(parts, "process", machine_process_age_s());
}

void start_parts_end(struct start_parts *parts, const char *name)
{
    double now_s = clock_mono_s();

    add(parts, name, now_s - parts->from_s);
    parts->from_s = now_s;
}

void start_parts_session(struct start_parts *parts, const struct session *session)
{
    const struct kern *kern = session->kern;
    double now_s = clock_mono_s(), opened_s = 0.0;

    for (size_t i = 0; i < kern->n_parts; i++) {
        add(parts, kern->parts[i].name, kern->parts[i].s);
        opened_s += kern->parts[i].s;
    }
    add(parts, "trainer", now_s - parts->from_s - opened_s);
    parts->from_s = now_s;
}

double start_parts_sum_s(const struct start_parts *parts)
{
    double sum_s = 0.0;

    for (size_t i = 0; i < parts->n; i++)
        sum_s += parts->rows[i].s;
    return sum_s;
}

cJSON *start_parts_json(const struct start_parts *parts)
{
    cJSON *json = cJSON_CreateObject();
    char key[40];

    for (size_t i = 0; i < parts->n; i++) {
        snprintf(key, sizeof key, "%s_s", parts->rows[i].name);
        json_add_f64(json, key, parts->rows[i].s);
    }
    return json;
}

void start_parts_print(const struct start_parts *parts, FILE *file)
{
    char text[32], part[80];
    int column = fprintf(file, "started in %s", format_seconds(start_parts_sum_s(parts), text));
    const char *mark = ":";

    for (size_t i = 0; i < parts->n; i++) {
        if (parts->rows[i].s < PRINTED_FROM_S)
            continue;
        int length = snprintf(part, sizeof part, "%s %s", parts->rows[i].name, format_seconds(parts->rows[i].s, text));
        bool fits = column + length + 3 <= LINE_COLUMNS; /* the mark and the space before it, the mark after it */

        fprintf(file, "%s%s%s", mark, fits ? " " : "\n  ", part);
        column = (fits ? column : 0) + 2 + length;
        mark = ",";
    }
    fputc('\n', file);
}
