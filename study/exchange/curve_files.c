/* curve_files.c - writes all curves of a study's trials.
 * Invariant: the tables and the event file of a trial hold the same points, but for NaN, which none of them has. */
#include "study/exchange/curve_files.h"

#include "base/os/file.h"
#include "base/text/json.h"
#include "study/exchange/event_file.h"
#include "study/view/study_view.h"

#include <sys/stat.h>

#define TABLE_MAX_BYTES (1u << 30)

struct curve {
    struct curve_point *points; /* (n) by step, owned */
    size_t n, at; /* at: the first that is not in the table yet */
};
struct curves { /* of a trial */
    char **names; /* (n) sorted, owned */
    struct curve *curves; /* (n) owned */
    size_t n;
};

static void free_curves(struct curves *c)
{
    for (size_t i = 0; c->curves != NULL && i < c->n; i++)
        mem_free(c->curves[i].points);
    mem_free(c->curves);
    store_names_free(c->names, c->n);
}

static enum status read_curves(struct store *store, int64_t trial_id, struct curves *ret, struct error *err)
{
    *ret = (struct curves){0};
    TRY(store_metric_names(store, trial_id, &ret->names, &ret->n, err));
    ret->curves = mem_array(ret->n + 1, sizeof *ret->curves);
    for (size_t i = 0; i < ret->n; i++)
        TRY(store_curve(store, trial_id, ret->names[i], &ret->curves[i].points, &ret->curves[i].n, err));
    return ST_OK;
}

static enum status write_events(const struct trial *trial, const struct curves *c, const char *folder,
                                struct error *err)
{
    double began_s = (double)(trial->started_ms > 0 ? trial->started_ms : trial->created_ms) / 1000;
    struct event_file *f = NULL;

    TRY(event_file_open(&f, folder, err));
    for (size_t i = 0; i < c->n; i++)
        for (size_t k = 0; k < c->curves[i].n; k++) {
            const struct curve_point *p = &c->curves[i].points[k];
            event_file_add(f, began_s + p->wall_s, p->env_steps,
                           &(struct event_value){.tag = c->names[i], .value = p->value}, 1);
        }
    enum status rc = event_file_flush(f, err);
    event_file_close(f);
    return rc;
}

/* ---- tables ---- */

/* The next step at which any curve has a point; NULL: there is none. */
static const struct curve_point *next_step(const struct curves *c)
{
    const struct curve_point *first = NULL;

    for (size_t i = 0; i < c->n; i++) {
        const struct curve *curve = &c->curves[i];
        if (curve->at < curve->n && (first == NULL || curve->points[curve->at].env_steps < first->env_steps))
            first = &curve->points[curve->at];
    }
    return first;
}

/* Are they columns already? */
static bool is_place(const char *name)
{
    return strcmp(name, "env_steps") == 0 || strcmp(name, "wall_s") == 0;
}

static void add_row(struct curves *c, const struct curve_point *place, struct strbuf *csv, struct strbuf *jsonl)
{
    char number[NUM_TEXT_MAX];
    int64_t step = place->env_steps;
    JSON_LOCAL cJSON *json = cJSON_CreateObject();

    json_add_i64(json, "env_steps", step);
    json_add_f64(json, "wall_s", place->wall_s);
    strbuf_addf(csv, "%lld,%s", (long long)step, num_format_f64(place->wall_s, number));
    for (size_t i = 0; i < c->n; i++) {
        struct curve *curve = &c->curves[i];
        bool is_there = curve->at < curve->n && curve->points[curve->at].env_steps == step;
        double value = is_there ? curve->points[curve->at++].value : (double)NAN;
        if (is_place(c->names[i]))
            continue;
        strbuf_addf(csv, ",%s", isnan(value) ? "" : num_format_f64(value, number));
        if (!isnan(value))
            json_add_f64(json, c->names[i], value);
    }
    MEM_LOCAL char *text = json_print(json, false);
    strbuf_add(csv, "\n");
    strbuf_addf(jsonl, "%s\n", text);
}

/* A name of a program's own may hold what separates columns. */
static void add_name(struct strbuf *csv, const char *name)
{
    strbuf_add(csv, ",\"");
    for (const char *at = name; *at != '\0'; at++)
        strbuf_addf(csv, *at == '"' ? "\"%c" : "%c", *at);
    strbuf_add(csv, "\"");
}

static enum status write_one(const char *folder, const char *name, const struct strbuf *text, struct error *err)
{
    char path[PATH_MAX];

    TRY(strbuf_status(text, name, err));
    if (snprintf(path, sizeof path, "%s/%s", folder, name) >= (int)sizeof path)
        return FAIL(err, ST_IO, "%s: the path is too long", folder);
    return file_write_all(path, text->text, text->len, err);
}

static enum status write_tables(struct curves *c, const char *folder, struct error *err)
{
    const struct curve_point *place;
    STRBUF(csv, TABLE_MAX_BYTES);
    STRBUF(jsonl, TABLE_MAX_BYTES);

    strbuf_add(&csv, "env_steps,wall_s");
    for (size_t i = 0; i < c->n; i++)
        if (!is_place(c->names[i]))
            add_name(&csv, c->names[i]);
    strbuf_add(&csv, "\n");
    while ((place = next_step(c)) != NULL)
        add_row(c, place, &csv, &jsonl);
    TRY(write_one(folder, "metrics.csv", &csv, err));
    return write_one(folder, "metrics.jsonl", &jsonl, err);
}

/* ---- a study ---- */

static enum status write_trial(const struct trial *trial, struct curves *c, const char *dir, struct error *err)
{
    char folder[PATH_MAX];

    if (snprintf(folder, sizeof folder, "%s/trial-%lld", dir, (long long)trial->number) >= (int)sizeof folder)
        return FAIL(err, ST_IO, "%s: the path is too long", dir);
    if (mkdir(folder, 0777) != 0)
        return FAIL(err, ST_IO, "the folder %s cannot be created: %s", folder, strerror(errno));
    TRY(write_events(trial, c, folder, err));
    return write_tables(c, folder, err);
}

enum status curve_files_write(const struct study_view *v, const char *dir, size_t *ret_n, struct error *err)
{
    AT_END(store_close_at) struct store *store = NULL;
    enum status rc = ST_OK;

    *ret_n = 0;
    if (mkdir(dir, 0777) != 0)
        return errno == EEXIST ? FAIL(err, ST_EXISTS, "%s already exists; name a new folder with -o", dir)
                               : FAIL(err, ST_IO, "the folder %s cannot be created: %s", dir, strerror(errno));
    TRY(store_open_reader(&store, v->store_path, err));
    for (size_t i = 0; i < v->n && rc == ST_OK; i++) {
        struct curves curves;
        rc = read_curves(store, v->trials[i].id, &curves, err);
        if (rc == ST_OK && curves.n > 0)
            rc = write_trial(&v->trials[i], &curves, dir, err);
        *ret_n += rc == ST_OK && curves.n > 0;
        free_curves(&curves);
    }
    return rc;
}
