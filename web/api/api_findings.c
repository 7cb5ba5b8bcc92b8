/* api_findings.c - what a study has found (study/findings/): /briefing, /calibration, /trials/N/seeds, /lanes, and
 * /compare of several studies. */
#include "base/text/json.h"
#include "study/findings/briefing.h"
#include "study/findings/calibration.h"
#include "study/findings/comparison.h"
#include "study/findings/seed_stats.h"
#include "study/view/promise.h"
#include "study/findings/node_list.h"
#include "study/findings/timeline.h"
#include "web/text/put.h"
#include "web/serve/models.h"
#include "web/serve/data/page_study.h"
#include "web/serve/routes.h"
#include "web/serve/serve_priv.h"
#include "web/serve/data/study_model.h"

#define CURVE_POINTS 60 /* of a lane's curve */
#define PACE_TRIALS 20 /* the last, by which the end is predicted */

/* ---- /briefing ---- */

/* Best, promise and front are those of every other answer; the bounds to widen are the model's, which may be of fewer
 * trials. */
enum status api_briefing(struct serve *s, const struct request *r, struct strbuf *out, struct error *err)
{
    struct gp_insight *insight = NULL;
    struct model_entry *e;
    struct briefing b;
    int64_t since_ms = 0;

    TRY(target_i64(&r->target, "since_ms", 0, INT64_MAX, &since_ms, err));
    enum model_state state = models_lock(s->models, r->study, r->settled, &e);
    if (state >= MODEL_STALE) {
        insight = mem_alloc(sizeof *insight); /* a copy of the edges; what it points to stays the model's */
        memcpy(insight->edges, study_model_view(e->model)->advice.edges, sizeof insight->edges);
    }
    models_unlock(s->models);
    const struct page_study *p = serve_lock_study(s, r->study, err);
    if (p == NULL) {
        mem_free(insight);
        return err->status;
    }
    briefing_make(&p->view, insight, since_ms, &b);
    cJSON *json = briefing_to_json(&p->view, &b);
    serve_unlock(s);
    briefing_free(&b);
    mem_free(insight);
    r->answer->no_store = state != MODEL_READY;
    json_add_str(json, "study", r->study);
    json_add_str(json, "model", model_state_name(state));
    api_put_json(out, json);
    return ST_OK;
}

/* ---- /calibration: models of earlier times, so it takes long ---- */

static void put_calibration(const struct study_view *v, const struct calibration *c, struct strbuf *out)
{
    const double none = (double)NAN;
    char text[FORESIGHT_TEXT_MAX];
    struct foresight f;

    foresight_make(v, &f);
    put_json(
        out,
        "{'study':%s,'inside':%zu,'left_out':%zu,'columns':['trial','n_seeds','predicted','lo','hi','score'],'rows':[",
        v->study.name, c->n_inside, c->n_left_out);
    for (size_t i = 0; i < c->n; i++) {
        const struct calibration_row *row = &c->rows[i];
        put_json(out, i > 0 ? ",\n[%zu,%zu,%g,%g,%g,%g]" : "\n[%zu,%zu,%g,%g,%g,%g]", row->trial, row->n_seeds,
                 row->predicted, row->lo, row->hi, row->score);
    }
    put_json(
        out,
        "],'proposals':{'trials':%zu,'scores_inside':%zu,'costs_inside':%zu,'score_z':%g,'cost_z':%g,'score_width':%g,"
        "'cost_width':%g,'text':%s}}\n",
        f.n, f.n_score, f.n_cost, f.n > 0 ? f.score_z : none, f.n > 0 ? f.cost_z : none, f.n > 0 ? f.score_width : none,
        f.n > 0 ? f.cost_width : none, foresight_text(&f, text));
}

enum status api_calibration(struct serve *s, const struct request *r, struct strbuf *out, struct error *err)
{
    STUDY_VIEW(v);
    AT_END(calibration_free) struct calibration c = {0};

    TRY(study_view_open(s->set.store_path, r->study, v, err));
    calibration_make(v, &c);
    put_calibration(v, &c, out);
    return ST_OK;
}

/* ---- /trials/N/seeds ---- */

/* Inside what a score can be. */
static void keep_within(const struct study_view *v, struct seed_stats *q)
{
    double a = study_view_score(v, v->history.score_min), b = study_view_score(v, v->history.score_max);

    if (!v->history.has_score_bounds || q->n < 2)
        return;
    q->mean_lo = fmax(q->mean_lo, fmin(a, b));
    q->mean_hi = fmin(q->mean_hi, fmax(a, b));
}

static void put_stats(const struct seed_stats *q, struct strbuf *out)
{
    put_json(out, "{'n':%zu,'mean':%g,'sd':%g,'mean_lo':%g,'mean_hi':%g,'iqm':%g,'iqm_lo':%g,'iqm_hi':%g,", q->n,
             q->mean, q->sd, q->mean_lo, q->mean_hi, q->iqm, q->iqm_lo, q->iqm_hi);
    put_json(out, "'low':%g,'middle':%g,'high':%g,'min':%g,'max':%g}", q->low, q->middle, q->high, q->min, q->max);
}

enum status api_seeds(struct serve *s, const struct request *r, struct strbuf *out, struct error *err)
{
    const struct page_study *p = serve_lock_study(s, r->study, err);
    struct seed_stats stats, fresh;
    size_t n = 0;

    if (p == NULL)
        return err->status;
    const struct study_view *v = &p->view;
    if (r->trial >= (int64_t)v->n) {
        enum status rc = FAIL(err, ST_NOTFOUND, "%s has no trial %lld", v->study.name, (long long)r->trial);
        serve_unlock(s);
        return rc;
    }
    MEM_LOCAL double *scores = mem_array(v->n, sizeof *scores);
    put_json(out, "{'study':%s,'trial':%lld,'columns':['trial','state','seed','score','cost'],'rows':[", v->study.name,
             (long long)r->trial);
    for (size_t i = 0, rows = 0; i < v->n; i++) {
        if (!study_view_same_point(v, i, (size_t)r->trial) || v->env[i] != v->env[r->trial]) /* of one game */
            continue;
        put_json(out, rows++ > 0 ? ",[%zu,%s,%lld,%g,%g]" : "[%zu,%s,%lld,%g,%g]", i,
                 trial_state_name(v->trials[i].state), (long long)v->trials[i].seed, v->trials[i].score,
                 study_view_trial_cost(v, &v->trials[i]));
        if (v->gp[i].state == GP_TRIAL_DONE)
            scores[n++] = v->trials[i].score;
    }
    seed_stats(scores, n, &stats);
    seed_stats(scores + (n > 0), n > 0 ? n - 1 : 0, &fresh); /* the first was chosen for its score */
    keep_within(v, &stats);
    keep_within(v, &fresh);
    serve_unlock(s);
    strbuf_add(out, "],\"all\":");
    put_stats(&stats, out);
    strbuf_add(out, ",\"fresh\":");
    put_stats(&fresh, out);
    strbuf_add(out, "}\n");
    return ST_OK;
}

/* ---- /lanes: what runs now, and when it ends ---- */

/* Seconds that trial i is expected to train from now on; NaN: unknown. */
static double seconds_left(const struct page_study *p, size_t i, const struct promise *promise)
{
    const struct last_report *live = &p->live[i];

    if (!promise->is_known)
        return NAN;
    if (p->view.search.cost == SEARCH_COST_OWN)
        return NAN;
    if (p->view.search.cost != SEARCH_COST_STEPS)
        return fmax(promise->cost - (isfinite(live->wall_s) ? live->wall_s : 0), 0);
    return live->env_steps > 0 && live->wall_s > 0 ? fmax(promise->cost / (double)live->env_steps - 1, 0) * live->wall_s
                                                   : (double)NAN;
}

static cJSON *running_json(const struct page_study *p, size_t i)
{
    const struct trial *t = &p->view.trials[i];
    const struct last_report *live = &p->live[i];
    struct promise promise;
    cJSON *json = cJSON_CreateObject();

    study_view_promise(&p->view, i, &promise);
    json_add_i64(json, "trial", (int64_t)i);
    json_add_i64(json, "id", t->id);
    json_add_str(json, "slot", t->slot);
    json_add_str(json, "device", t->device);
    json_add_str(json, "origin", t->origin);
    json_add_i64(json, "started_ms", t->started_ms);
    json_add_i64(json, "attempt", t->attempt);
    json_add_i64(json, "env_steps", live->env_steps);
    json_add_f64(json, "wall_s", live->wall_s);
    json_add_f64(json, "score", live->score);
    json_add_f64(json, "expected", promise.is_known ? promise.score : (double)NAN);
    json_add_f64(json, "expected_lo", promise.lo);
    json_add_f64(json, "expected_hi", promise.hi);
    json_add_i64(json, "n_seeds", (int64_t)promise.n_seeds);
    json_add_f64(json, "left_s", seconds_left(p, i, &promise));
    return json;
}

/* Seconds until the study's limit of trials or of training, at the pace of its last trials; NaN: unknown. */
static double study_left_s(const struct page_study *p)
{
    const struct study_view *v = &p->view;
    const struct limits *l = &v->study.limits;
    int64_t last_ms = 0, first_ms = INT64_MAX;
    double cost_s = 0, left = NAN;
    size_t n = 0;

    for (size_t i = v->n; i-- > 0 && n < PACE_TRIALS;) {
        const struct trial *t = &v->trials[i];
        if (t->state < TRIAL_DONE || t->finished_ms == 0 || v->gp[i].is_branch)
            continue;
        last_ms = t->finished_ms > last_ms ? t->finished_ms : last_ms;
        first_ms = t->finished_ms < first_ms ? t->finished_ms : first_ms;
        cost_s += isfinite(t->cost_s) ? t->cost_s : 0;
        n++;
    }
    double pace_s = n > 1 ? (double)(last_ms - first_ms) / 1e3 / (double)(n - 1) : (double)NAN;
    double ended = (double)study_view_n_runs(v) - (double)p->count[TRIAL_QUEUED] - (double)p->count[TRIAL_RUNNING];
    if (l->trials_max > 0)
        left = fmax((double)l->trials_max - ended, 0) * pace_s;
    if (l->budget_s > 0 && cost_s > 0)
        left = fmin(isnan(left) ? INFINITY : left, fmax(l->budget_s - p->cost_s, 0) * pace_s * (double)n / cost_s);
    if (l->wall_max_s > 0)
        left = fmin(isnan(left) ? INFINITY : left, fmax(l->wall_max_s - v->study.wall_used_s, 0));
    return left;
}

/* The metric's curve of a running trial, thinned; empty where the store cannot be read now. */
static void add_curve(cJSON *row, struct store *store, const char *metric)
{
    MEM_LOCAL struct curve_point *points = NULL;
    size_t n = 0;
    cJSON *curve = cJSON_AddArrayToObject(row, "curve");

    int64_t id = json_i64_or(row, "id", 0);
    cJSON_DeleteItemFromObjectCaseSensitive(row, "id"); /* it is not for clients */
    if (store == NULL || store_curve(store, id, metric, &points, &n, NULL) != ST_OK)
        n = 0;
    for (size_t k = 0; k < CURVE_POINTS && k < n; k++) {
        size_t i = n <= CURVE_POINTS ? k : k * (n - 1) / (CURVE_POINTS - 1);
        const double point[] = {(double)points[i].env_steps, points[i].value};
        if (isfinite(points[i].value))
            cJSON_AddItemToArray(curve, cJSON_CreateDoubleArray(point, 2));
    }
}

enum status api_lanes(struct serve *s, const struct request *r, struct strbuf *out, struct error *err)
{
    const struct page_study *p = serve_lock_study(s, r->study, err);
    cJSON *json, *running, *row, *nodes = NULL;
    AT_END(serve_reader_give) struct reader reader = {0};

    if (p == NULL)
        return err->status;
    r->answer->no_store = true;
    json = cJSON_CreateObject();
    bool is_alive = strcmp(page_study_state(p, s->has_writer), "interrupted") != 0;
    MEM_LOCAL char *metric = mem_strdup(p->view.study.metric);
    int64_t study_id = p->view.study.id;
    json_add_str(json, "study", p->view.study.name);
    json_add_str(json, "state", page_study_state(p, s->has_writer));
    json_add_i64(json, "now_ms", clock_utc_ms());
    json_add_f64(json, "left_s", p->count[TRIAL_RUNNING] > 0 && is_alive ? study_left_s(p) : (double)NAN);
    running = cJSON_AddArrayToObject(json, "running");
    for (size_t i = 0; i < p->view.n; i++)
        if (p->view.trials[i].state == TRIAL_RUNNING)
            cJSON_AddItemToArray(running, running_json(p, i));
    JSON_LOCAL cJSON *timeline = timeline_to_json(&p->view);
    serve_unlock(s);
    cJSON_AddItemToObject(json, "slots", cJSON_DetachItemFromObjectCaseSensitive(timeline, "slots"));
    (void)!serve_reader_take(s, &reader, NULL);
    cJSON_ArrayForEach(row, running) add_curve(row, reader.store, metric);
    if (reader.store == NULL || node_list_to_json(reader.store, study_id, &nodes) != ST_OK)
        nodes = cJSON_CreateArray();
    json_add(json, "nodes", nodes);
    api_put_json(out, json);
    return ST_OK;
}

/* ---- /compare ---- */

static enum status read_names(const struct request *r, cJSON **ret_names, struct error *err)
{
    const char *text = target_query(&r->target, "studies");
    const cJSON *name;

    if (text == NULL || json_parse(text, strlen(text), ret_names, NULL) != ST_OK || !cJSON_IsArray(*ret_names))
        return FAIL(err, ST_USAGE, "studies: a JSON array of names is needed, [\"first\",\"second\"]");
    cJSON_ArrayForEach(name, *ret_names) if (!cJSON_IsString(name)) return FAIL(
        err, ST_USAGE, "studies: an element of the array is not a name");
    if (cJSON_GetArraySize(*ret_names) < 2 || cJSON_GetArraySize(*ret_names) > COMPARISON_MAX)
        return FAIL(err, ST_USAGE, "studies: 2 to %d names are needed", COMPARISON_MAX);
    return ST_OK;
}

enum status api_compare(struct serve *s, const struct request *r, struct strbuf *out, struct error *err)
{
    struct study_view *views[COMPARISON_MAX] = {NULL};
    COMPARISON(c);
    JSON_LOCAL cJSON *names = NULL;
    size_t n = 0;
    enum status rc = read_names(r, &names, err);

    for (const cJSON *name = rc == ST_OK ? names->child : NULL; name != NULL && rc == ST_OK; name = name->next) {
        views[n] = mem_alloc(sizeof **views);
        rc = study_view_open(s->set.store_path, name->valuestring, views[n++], err);
        THEN(rc, study_view_advise(views[n - 1], err));
    }
    THEN(rc, comparison_make(views, n, c, err));
    if (rc == ST_OK)
        api_put_json(out, comparison_to_json(c));
    for (size_t i = 0; i < n; i++) {
        study_view_free(views[i]);
        mem_free(views[i]);
    }
    return rc;
}
