/* upload_batch.c - outbox rows as a tracker gets them.
 *
 * Invariant: which rows of a claimed range are kept depends on the rows, the thinning and the last step before them
 * only, and the rows after an acknowledged part are kept as before: buckets of time are absolute and looked at from
 * their end. */
#include "web/track/upload_priv.h"

#include "base/mem.h"

#include <string.h>

#define NAMES_MAX 128

static enum track_row_type type_of(const cJSON *json)
{
    static const char *const names[] = {"",       "start", "metrics", "system", "pause",
                                        "result", "study", "front",   "file",   "study_end"};
    const char *type = json_get_str(json, "type");

    for (size_t i = 1; type != NULL && i < sizeof names / sizeof names[0]; i++)
        if (strcmp(type, names[i]) == 0)
            return (enum track_row_type)i;
    return TRACK_ROW_UNKNOWN;
}

/* Names that later rows of the same bucket of time have. */
struct names {
    const char *v[NAMES_MAX];
    size_t n;
};

static bool has_name(const struct names *names, const char *name)
{
    for (size_t i = 0; i < names->n; i++)
        if (strcmp(names->v[i], name) == 0)
            return true;
    return false;
}

/* Adds the row's names; true when one of them is new. */
static bool add_names(struct names *names, const struct track_row *row)
{
    const cJSON *item;
    bool is_new = false;

    cJSON_ArrayForEach(item, cJSON_GetObjectItemCaseSensitive(row->json, "values"))
    {
        if (has_name(names, item->string))
            continue;
        is_new = true;
        if (names->n < NAMES_MAX)
            names->v[names->n++] = item->string;
    }
    return is_new;
}

/* keep[i]: row i is the last of its bucket that carries some of its numbers. */
static void thin(const struct track_row *rows, size_t n, int64_t thin_ms, bool *keep)
{
    struct names names = {.n = 0};
    int64_t bucket = -1;

    for (size_t i = n; i-- > 0 && thin_ms > 0;) {
        if (!keep[i] || rows[i].type != TRACK_ROW_METRICS)
            continue;
        if (rows[i].ms / thin_ms != bucket)
            names.n = 0;
        bucket = rows[i].ms / thin_ms;
        keep[i] = add_names(&names, &rows[i]);
    }
}

/* Of files and fronts only the newest of a range is of use. */
static void only_newest(const struct track_row *rows, size_t n, bool *keep)
{
    struct names names = {.n = 0};

    for (size_t i = n; i-- > 0;) {
        const char *name = rows[i].type == TRACK_ROW_FILE ? json_get_str(rows[i].json, "name") : NULL;
        if (name == NULL)
            continue;
        if (has_name(&names, name))
            keep[i] = false;
        else if (names.n < NAMES_MAX)
            names.v[names.n++] = name;
    }
}

static enum status parse_rows(struct batch *b, bool *keep, struct error *err)
{
    for (size_t i = 0; i < b->list.n; i++) {
        const struct outbox_row *from = &b->list.rows[i];
        struct track_row *row = &b->rows[i];
        struct error bad = {0};
        if (json_parse(from->payload, strlen(from->payload), &b->json[i], &bad) == ST_NOMEM)
            return FAIL(err, ST_NOMEM, "out of memory for rows of the outbox");
        *row = (struct track_row){.id = from->id, .ms = from->created_ms, .json = b->json[i]};
        if (b->json[i] != NULL) {
            row->type = type_of(row->json);
            (void)json_get_i64(row->json, "env_steps", &row->env_steps);
        }
        keep[i] = row->type != TRACK_ROW_UNKNOWN;
    }
    return ST_OK;
}

enum status batch_make(struct batch *b, struct outbox_list *list, int64_t last_step, int64_t thin_ms, struct error *err)
{
    bool *keep = mem_array(list->n, sizeof *keep);
    size_t n_all = list->n;
    enum status rc;

    *b = (struct batch){.list = *list};
    *list = (struct outbox_list){0};
    b->rows = mem_array(n_all, sizeof *b->rows);
    b->json = mem_array(n_all, sizeof *b->json);
    b->steps_after = mem_array(n_all, sizeof *b->steps_after);
    rc = keep == NULL || b->rows == NULL || b->json == NULL || b->steps_after == NULL
             ? FAIL(err, ST_NOMEM, "out of memory for rows of the outbox")
             : parse_rows(b, keep, err);
    for (size_t i = 0; rc == ST_OK && i < n_all; i++) {
        if (keep[i] && b->rows[i].type == TRACK_ROW_METRICS) {
            keep[i] = b->rows[i].env_steps > last_step;
            if (keep[i])
                last_step = b->rows[i].env_steps;
        }
        b->steps_after[i] = last_step;
    }
    if (rc == ST_OK) {
        thin(b->rows, n_all, thin_ms, keep);
        only_newest(b->rows, n_all, keep);
        for (size_t i = 0; i < n_all; i++) {
            if (!keep[i])
                continue;
            b->rows[b->n] = b->rows[i];
            b->steps_after[b->n++] = b->steps_after[i];
        }
        b->n_left_out = (int64_t)(n_all - b->n);
        b->last_step = last_step;
    }
    mem_free(keep);
    if (rc != ST_OK)
        batch_free(b);
    return rc;
}

void batch_free(struct batch *b)
{
    for (size_t i = 0; b->json != NULL && i < b->list.n; i++)
        cJSON_Delete(b->json[i]);
    mem_free(b->json);
    mem_free(b->rows);
    mem_free(b->steps_after);
    outbox_list_free(&b->list);
    *b = (struct batch){0};
}
