/* api_trial.c - one trial: /trials/N with its config, /curves, /log. */
#include "base/text/json.h"
#include "study/view/export.h"
#include "web/api/trial_config.h"
#include "web/text/put.h"
#include "web/serve/routes.h"
#include "web/serve/serve_priv.h"
#include "web/serve/data/page_study.h"

#include <sys/stat.h>

#define CURVES_MAX 32
#define CURVE_POINTS_MAX 10000

/* The trial as /trials shows it, as one object. */
static void put_columns(const struct page_study *p, size_t i, struct strbuf *out)
{
    for (int k = 0; k < api_n_columns(); k++) {
        put_json(out, k > 0 ? ",%s:" : "{%s:", api_column_name(p, k));
        api_put_column(p, i, k, out);
    }
    strbuf_add(out, "},\"params\":");
    page_study_put_params(p, i, out);
}

/* Head of the answer out of what was read last; study and id for what has to be read now. */
static enum status put_known(struct serve *s, const struct request *r, int64_t against, int64_t *ret_study_id,
                             int64_t *ret_id, char **ret_metric, struct strbuf *out, struct error *err)
{
    struct page_study *p = serve_lock_study(s, r->study, err);
    enum status rc = ST_OK;

    if (p == NULL)
        return err->status;
    if (r->trial >= (int64_t)p->view.n || against >= (int64_t)p->view.n) {
        int64_t asked = r->trial >= (int64_t)p->view.n ? r->trial : against;
        rc = FAIL(err, ST_NOTFOUND, "%s has no trial %lld; it has %zu, numbered from 0", p->view.study.name,
                  (long long)asked, p->view.n);
    } else {
        *ret_study_id = p->view.study.id;
        *ret_id = p->view.trials[r->trial].id;
        if (ret_metric != NULL)
            *ret_metric = mem_strdup(p->view.study.metric);
        if (out != NULL) {
            struct promise promise;
            study_view_promise(&p->view, (size_t)r->trial, &promise);
            put_json(out, "{'study':%s,'version':%lld,'trial':", p->view.study.name, (long long)p->version);
            put_columns(p, (size_t)r->trial, out);
            strbuf_add(out, ",\"belief\":{");
            put_promise(out, &promise);
            strbuf_add(out, "}");
        }
    }
    serve_unlock(s);
    return rc;
}

/* -- /trials/N -- */

void api_put_train_command(struct strbuf *out, struct strbuf *line)
{
    while (line != NULL && line->len > 0 && line->text[line->len - 1] == '\n')
        line->text[--line->len] = '\0';
    put_json(out, ",'train_command':%s", line != NULL ? line->text : NULL);
}

void api_put_export_command(const struct serve *s, const char *study, const char *rule, struct strbuf *out)
{
    char store[PATH_MAX];
    STRBUF(line, SERVE_BODY_BYTES);

    strbuf_add(&line, "trawl export ");
    strbuf_add_shell(&line, study);
    strbuf_add(&line, " --store ");
    strbuf_add_shell(&line, serve_store_path(s, store));
    strbuf_add(&line, " --pick ");
    strbuf_add_shell(&line, rule);
    put_json(out, ",'export_command':%s}\n", line.text);
}

static void put_train_command(const struct study *study, const struct trial *trial, struct strbuf *out)
{
    const struct export_reason none = {.rule = "trial"}; /* not part of a command line */
    AT_END(strbuf_free) struct strbuf line = {0};

    strbuf_init(&line, SERVE_BODY_BYTES);
    bool ok = export_build(study, trial, &none, EXPORT_ARGS, &line, NULL) == ST_OK;
    api_put_train_command(out, ok ? &line : NULL);
}

static enum status put_config(const struct request *r, struct store *store, int64_t study_id, int64_t against,
                              struct strbuf *out, struct error *err)
{
    AT_END(study_free) struct study study = {0};
    AT_END(trial_free) struct trial other = {0}, trial = {0};
    JSON_LOCAL cJSON *rows = NULL;

    TRY(store_study_find(store, r->study, &study, err));
    TRY(store_trial_find(store, study_id, r->trial, &trial, err));
    if (against >= 0)
        TRY(store_trial_find(store, study_id, against, &other, err));
    TRY(trial_config_rows(&trial, against >= 0 ? &other : NULL, &rows, err));
    MEM_LOCAL char *text = json_print(rows, false);
    strbuf_add(out, ",\"config\":");
    put_json_text(out, text);
    put_json(out, ",'against':%g", against >= 0 ? (double)against : (double)NAN);
    put_train_command(&study, &trial, out);
    return ST_OK;
}

static enum status put_names(struct store *store, int64_t id, struct strbuf *out, struct error *err)
{
    char **names = NULL;
    size_t n = 0;

    TRY(store_metric_names(store, id, &names, &n, err));
    strbuf_add(out, "[");
    for (size_t i = 0; i < n; i++)
        put_json(out, i > 0 ? ",%s" : "%s", names[i]);
    strbuf_add(out, "]");
    store_names_free(names, n);
    return ST_OK;
}

static enum status put_checkpoint(struct store *store, int64_t id, struct strbuf *out, struct error *err)
{
    MEM_LOCAL char *path = NULL;
    struct stat st;

    TRY(store_checkpoint_path(store, id, &path, err));
    bool exists = path != NULL && stat(path, &st) == 0 && S_ISREG(st.st_mode);
    if (path == NULL)
        strbuf_add(out, ",\"checkpoint\":null");
    else
        put_json(out, ",'checkpoint':{'path':%s,'exists':%i,'bytes':%g}", path, exists,
                 exists ? (double)st.st_size : (double)NAN);
    put_json(
        out, ",'can_play':%i,'play_note':%s", exists,
        exists ? NULL
        : path == NULL
            ? "this trial left no checkpoint; sweep with --sweep.keep front (or all) to keep them (branches have none)"
            : "the checkpoint's file no longer exists");
    return ST_OK;
}

enum status api_trial(struct serve *s, const struct request *r, struct strbuf *out, struct error *err)
{
    int64_t against = -1, study_id = 0, id = 0;
    AT_END(serve_reader_give) struct reader reader = {0};
    char rule[48];

    TRY(target_i64(&r->target, "against", 0, INT32_MAX, &against, err));
    TRY(put_known(s, r, against, &study_id, &id, NULL, out, err));
    TRY(serve_reader_take(s, &reader, err));
    TRY(put_config(r, reader.store, study_id, against, out, err));
    strbuf_add(out, ",\"metrics\":");
    TRY(put_names(reader.store, id, out, err));
    TRY(put_checkpoint(reader.store, id, out, err));
    snprintf(rule, sizeof rule, "trial=%lld", (long long)r->trial);
    api_put_export_command(s, r->study, rule, out);
    return ST_OK;
}

/* -- /curves -- */

struct thin { /* one stretch of a curve */
    double env_steps, wall_s, value, n_value;
};

static void put_axis(struct strbuf *out, const struct thin *points, size_t n, int axis)
{
    static const char *const names[] = {"env_steps", "wall_s", "value"};

    put_json(out, axis > 0 ? ",%s:[" : "%s:[", names[axis]);
    for (size_t i = 0; i < n; i++)
        put_json(out, i > 0 ? ",%g" : "%g",
                 axis == 0   ? points[i].env_steps
                 : axis == 1 ? points[i].wall_s
                             : points[i].value);
    strbuf_add(out, "]");
}

/* Mean value over each stretch, at the stretch's last step; the very last point is kept as it is. */
static size_t thin_out(const struct curve_point *all, size_t n, size_t max, struct thin *ret)
{
    size_t k = n < max ? n : max;

    for (size_t i = 0; i < k; i++) {
        size_t from = i * n / k, to = (i + 1) * n / k;
        struct thin t = {(double)all[to - 1].env_steps, all[to - 1].wall_s, 0, 0};
        for (size_t j = i + 1 == k ? to - 1 : from; j < to; j++)
            if (!isnan(all[j].value)) {
                t.value += all[j].value;
                t.n_value += 1;
            }
        t.value = t.n_value > 0 ? t.value / t.n_value : (double)NAN;
        ret[i] = t;
    }
    return k;
}

static enum status put_curve(struct store *store, int64_t id, const char *name, size_t max, struct strbuf *out,
                             struct error *err)
{
    MEM_LOCAL struct curve_point *all = NULL;
    size_t n = 0;

    TRY(store_curve(store, id, name, &all, &n, err));
    MEM_LOCAL struct thin *points = mem_array(n < max ? n : max, sizeof *points);
    n = thin_out(all, n, max, points);
    put_json(out, "%s:{", name);
    for (int axis = 0; axis < 3; axis++)
        put_axis(out, points, n, axis);
    strbuf_add(out, "}");
    return ST_OK;
}

static enum status put_curves(struct store *store, int64_t id, const char *names, size_t max, struct strbuf *out,
                              struct error *err)
{
    int n_curves = 0;

    for (const char *at = names; *at != '\0'; n_curves++) {
        char name[128];
        size_t n = strcspn(at, ",");
        if (n == 0 || n >= sizeof name || n_curves == CURVES_MAX)
            return FAIL(err, ST_USAGE, "metrics: give at most %d names with commas between", CURVES_MAX);
        memcpy(name, at, n);
        name[n] = '\0';
        strbuf_add(out, n_curves > 0 ? "," : "");
        TRY(put_curve(store, id, name, max, out, err));
        at += n + (at[n] == ',');
    }
    return ST_OK;
}

enum status api_curves(struct serve *s, const struct request *r, struct strbuf *out, struct error *err)
{
    const char *names = target_query(&r->target, "metrics");
    int64_t points = 500, study_id = 0, id = 0;
    AT_END(serve_reader_give) struct reader reader = {0};
    MEM_LOCAL char *metric = NULL;

    TRY(target_i64(&r->target, "points", 2, CURVE_POINTS_MAX, &points, err));
    TRY(put_known(s, r, -1, &study_id, &id, &metric, NULL, err));
    TRY(serve_reader_take(s, &reader, err));
    put_json(out, "{'study':%s,'trial':%lld,'names':", r->study, (long long)r->trial);
    TRY(put_names(reader.store, id, out, err));
    strbuf_add(out, ",\"curves\":{");
    if (names == NULL)
        names = metric != NULL ? metric : "score";
    TRY(put_curves(reader.store, id, names, (size_t)points, out, err));
    strbuf_add(out, "}}\n");
    return ST_OK;
}

/* -- /log -- */

enum status api_log(struct serve *s, const struct request *r, struct strbuf *out, struct error *err)
{
    int64_t bytes = 65536, study_id = 0, id = 0;
    AT_END(trial_free) struct trial trial = {0};
    AT_END(serve_reader_give) struct reader reader = {0};

    TRY(target_i64(&r->target, "bytes", 1, 1 << 20, &bytes, err));
    TRY(put_known(s, r, -1, &study_id, &id, NULL, NULL, err));
    TRY(serve_reader_take(s, &reader, err));
    TRY(store_trial_find(reader.store, study_id, r->trial, &trial, err));
    const char *text = trial.log_tail != NULL ? trial.log_tail : "";
    size_t n = strlen(text), skip = n > (size_t)bytes ? n - (size_t)bytes : 0;
    while (skip > 0 && skip < n && ((unsigned char)text[skip] & 0xc0) == 0x80)
        skip++; /* not in the middle of a character */
    put_json(out, "{'trial':%lld,'available':%i,'bytes':%zu,'truncated':%i,'note':%s,'text':%s}\n", (long long)r->trial,
             trial.log_tail != NULL, n, skip > 0,
             trial.log_tail != NULL ? NULL
                                    : "only trials whose program failed or whose worker died keep their last lines",
             text + skip);
    return ST_OK;
}
