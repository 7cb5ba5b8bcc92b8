/* upload_batch.c - outbox rows as a tracker gets them.
 *
 * Invariant: the choice among the rows of a claimed range depends only on the rows, the thinning and the last step
 * before them, and it stays the same for the rows after an acknowledged part: buckets of time are absolute and are read
 * from their end. */
#include "web/track/upload_priv.h"

#define NAMES_MAX 128

static enum track_row_type type_of(const cJSON *json)
{
    static const char *const names[] = {"",       "start", "metrics", "system", "pause",
                                        "result", "study", "front",   "file",   "study_end"};
    const char *type = json_get_str(json, "type");

    for (size_t i = 1; type != NULL && i < COUNT(names); i++)
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

    cJSON_ArrayForEach(item, json_get(row->json, "values"))
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

/* Among the files of one name, only the newest of a range is kept. */
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

void batch_read(struct batch *b, struct outbox_list *list)
{
    *b = (struct batch){.list = *list, .n = list->n};
    *list = (struct outbox_list){0};
    b->rows = mem_array(b->n, sizeof *b->rows);
    b->json = mem_array(b->n, sizeof *b->json);
    b->steps_after = mem_array(b->n, sizeof *b->steps_after);
    for (size_t i = 0; i < b->n; i++) {
        const struct outbox_row *from = &b->list.rows[i];
        struct track_row *row = &b->rows[i];
        bool parsed = json_parse(from->payload, strlen(from->payload), &b->json[i], NULL) == ST_OK;
        *row = (struct track_row){.id = from->id, .ms = from->created_ms, .json = b->json[i]};
        if (parsed) {
            row->type = type_of(row->json);
            (void)json_get_i64(row->json, "env_steps", &row->env_steps);
        }
    }
}

bool batch_starts_over(const struct track_row *row)
{
    return row->type == TRACK_ROW_START && cJSON_IsTrue(json_get(row->json, "anew"));
}

int64_t batch_cut_at_attempt(struct batch *b)
{
    size_t n = 1;

    while (n < b->n && !batch_starts_over(&b->rows[0]) && !batch_starts_over(&b->rows[n]))
        n++;
    b->n = n;
    return b->rows[n - 1].id;
}

void batch_choose(struct batch *b, int64_t last_step, int64_t thin_ms)
{
    size_t n_all = b->n;
    MEM_LOCAL bool *keep = mem_array(n_all, sizeof *keep);

    b->n = 0;
    for (size_t i = 0; i < n_all; i++) {
        keep[i] = b->rows[i].type != TRACK_ROW_UNKNOWN;
        if (keep[i] && b->rows[i].type == TRACK_ROW_METRICS) {
            keep[i] = b->rows[i].env_steps > last_step;
            if (keep[i])
                last_step = b->rows[i].env_steps;
        }
        b->steps_after[i] = last_step;
    }
    thin(b->rows, n_all, thin_ms, keep);
    only_newest(b->rows, n_all, keep);
    for (size_t i = 0; i < n_all; i++) {
        if (!keep[i])
            continue;
        b->rows[b->n] = b->rows[i];
        b->steps_after[b->n++] = b->steps_after[i];
    }
    b->last_step = last_step;
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
