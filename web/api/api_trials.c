/* api_trials.c - lists over the trials of a study: /trials, /hypervolume, /timeline. Written straight into the answer:
 * a study may have tens of thousands. */
#include "base/mem.h"
#include "base/status.h"
#include "base/text/strbuf.h"
#include "gp/gp.h"
#include "store/store.h"
#include "study/findings/believed.h"
#include "study/view/promise.h"
#include "web/serve/answer_cache.h"
#include "web/serve/data/json_text.h"
#include "web/serve/request.h"
#include "web/serve/routes.h"
#include "web/serve/serve_priv.h"
#include "web/serve/data/page_study.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LIMIT_MAX 20000
#define POINTS_MAX 2000

/* -- columns -- */

enum column {
    COL_NUMBER,
    COL_STATE,
    COL_SCORE,
    COL_PERF,
    COL_COST,
    COL_COST_S,
    COL_DEVICE_S,
    COL_ENV_STEPS,
    COL_ON_FRONT,
    COL_ORIGIN,
    COL_SEED,
    COL_ATTEMPT,
    COL_DEVICE,
    COL_SLOT,
    COL_COST_METHOD,
    COL_REASON,
    COL_CREATED,
    COL_STARTED,
    COL_FINISHED,
    COL_LIVE_SCORE,
    COL_LIVE_S,
    COL_SCORE_SE,
    COL_EVAL_EPISODES,
    COL_EVAL_UNFINISHED,
    COL_EVAL_S,
    COL_START_S,
    COL_PROGRAM,
    COL_VECTOR_UNITS,
    COL_DROPPED,
    COL_NOTE,
    COL_TAGS,
    COL_EXPECTED,
    COL_EXPECTED_LO,
    COL_EXPECTED_HI,
    COL_N_SEEDS,
    COL_ENV,
    COL_OBJECTIVE,
    COL_INFEASIBLE,
    COLUMNS
};
static const char *const column_names[COLUMNS] = {
    "number",      "state",      "score",       "perf",         "cost",          "cost_s",
    "device_s",    "env_steps",  "on_front",    "origin",       "seed",          "attempt",
    "device",      "slot",       "cost_method", "reason",       "created_ms",    "started_ms",
    "finished_ms", "live_score", "live_s",      "score_se",     "eval_episodes", "eval_unfinished",
    "eval_s",      "start_s",    "program",     "vector_units", "dropped",       "note",
    "tags",        "expected",   "expected_lo", "expected_hi",  "n_seeds",       "env",
    "objective",   "infeasible"};

static bool is_text(int column)
{
    return column == COL_STATE || column == COL_ORIGIN || column == COL_DEVICE || column == COL_SLOT ||
           column == COL_COST_METHOD || column == COL_REASON || column == COL_PROGRAM || column == COL_VECTOR_UNITS ||
           column == COL_DROPPED || column == COL_NOTE || column == COL_TAGS || column == COL_ENV ||
           column == COL_INFEASIBLE;
}

static const char *column_text(const struct page_study *p, size_t i, int column)
{
    const struct trial *t = &p->view.trials[i];

    switch (column) {
    case COL_STATE:
        return trial_state_name(t->state);
    case COL_ORIGIN:
        return t->origin;
    case COL_DEVICE:
        return t->device;
    case COL_SLOT:
        return t->slot;
    case COL_COST_METHOD:
        return t->cost_method;
    case COL_PROGRAM:
        return t->program != NULL ? t->program : p->view.study.program;
    case COL_VECTOR_UNITS:
        return t->kernels;
    case COL_DROPPED:
        return t->dropped;
    case COL_NOTE:
        return t->note;
    case COL_TAGS:
        return t->tags;
    case COL_ENV:
        return study_view_env(&p->view, i);
    default:
        return t->reason;
    }
}

static double time_value(int64_t ms)
{
    return ms > 0 ? (double)ms : (double)NAN;
}

/* What is believed of trial i, NaN where nothing is. */
static double column_expected(const struct page_study *p, size_t i, int column)
{
    struct promise promise;

    study_view_promise(&p->view, i, &promise);
    return column == COL_N_SEEDS       ? (double)promise.n_seeds
           : !promise.is_known         ? (double)NAN
           : column == COL_EXPECTED    ? promise.score
           : column == COL_EXPECTED_LO ? promise.lo
                                       : promise.hi;
}

/* Column COLUMNS + k: parameter k. */
static double column_number(const struct page_study *p, size_t i, int column)
{
    const struct trial *t = &p->view.trials[i];
    bool live = t->state == TRIAL_RUNNING;

    switch (column) {
    case COL_NUMBER:
        return (double)t->number;
    case COL_SCORE:
        return t->score;
    case COL_PERF:
        return t->perf;
    case COL_COST:
        return study_view_trial_cost(&p->view, &p->view.trials[i]);
    case COL_COST_S:
        return t->cost_s;
    case COL_DEVICE_S:
        return t->device_s;
    case COL_ENV_STEPS:
        return (double)(live ? p->live[i].env_steps : t->env_steps);
    case COL_ON_FRONT:
        return p->view.on_front[i];
    case COL_SEED:
        return (double)t->seed;
    case COL_ATTEMPT:
        return (double)t->attempt;
    case COL_CREATED:
        return time_value(t->created_ms);
    case COL_STARTED:
        return time_value(t->started_ms);
    case COL_FINISHED:
        return time_value(t->finished_ms);
    case COL_LIVE_SCORE:
        return live ? p->live[i].score : (double)NAN;
    case COL_SCORE_SE:
        return t->score_se;
    case COL_EVAL_EPISODES:
        return (double)t->eval_episodes;
    case COL_EVAL_UNFINISHED:
        return (double)t->eval_unfinished;
    case COL_EVAL_S:
        return t->eval_s;
    case COL_START_S:
        return t->start_s;
    case COL_EXPECTED:
    case COL_EXPECTED_LO:
    case COL_EXPECTED_HI:
    case COL_N_SEEDS:
        return column_expected(p, i, column);
    case COL_OBJECTIVE:
        return study_view_third(&p->view, i);
    case COL_LIVE_S:
        return live ? p->live[i].wall_s : (double)NAN;
    default:
        return p->view.x[i][column - COLUMNS];
    }
}

/* Which limit it breaks, in words; null: it breaks none, or has not ended. */
static void put_infeasible(const struct study_view *v, size_t i, struct strbuf *out)
{
    char text[300];

    study_view_explain_limit(v, i, text, sizeof text);
    put_str(out, text[0] != '\0' ? text : NULL);
}

void api_put_column(const struct page_study *p, size_t i, int column, struct strbuf *out)
{
    if (column >= COLUMNS)
        page_study_put_param(p, i, (size_t)(column - COLUMNS), out);
    else if (column == COL_INFEASIBLE)
        put_infeasible(&p->view, i, out);
    else if (is_text(column))
        put_str(out, column_text(p, i, column));
    else if (column == COL_ON_FRONT)
        strbuf_add(out, p->view.on_front[i] ? "true" : "false");
    else if (column == COL_SEED)
        put_i64(out, p->view.trials[i].seed);
    else
        put_f64(out, column_number(p, i, column));
}

int api_n_columns(void)
{
    return COLUMNS;
}

const char *api_column_name(const struct page_study *p, int column)
{
    return column < COLUMNS ? column_names[column] : p->view.search.space.params[column - COLUMNS].key;
}

static int column_find(const struct page_study *p, const char *name, size_t n)
{
    for (int i = 0; i < COLUMNS + (int)p->view.search.space.dim; i++) {
        const char *own = api_column_name(p, i);
        if (strlen(own) == n && strncmp(own, name, n) == 0)
            return i;
    }
    return -1;
}

/* -- /trials -- */

struct listing {
    const struct page_study *p;
    int64_t offset, limit, since;
    int columns[COLUMNS + SPACE_MAX_DIM];
    size_t n_columns;
    int sort;
    bool descending, front_only, states[TRIAL_STATES];
    size_t *rows; /* (n) owned */
    size_t n;
};

static enum status read_fields(struct listing *l, const char *fields, struct error *err)
{
    if (fields == NULL) {
        for (int i = 0; i < COLUMNS; i++)
            l->columns[l->n_columns++] = i;
        return ST_OK;
    }
    for (const char *at = fields; *at != '\0';) {
        size_t n = strcspn(at, ",");
        int column = column_find(l->p, at, n);
        size_t more = n == 6 && strncmp(at, "params", 6) == 0 ? l->p->view.search.space.dim : 1;
        if (l->n_columns + more > sizeof l->columns / sizeof l->columns[0])
            return FAIL(err, ST_USAGE, "fields names a column several times");
        if (more != 1 || (n == 6 && strncmp(at, "params", 6) == 0))
            for (size_t k = 0; k < l->p->view.search.space.dim; k++)
                l->columns[l->n_columns++] = COLUMNS + (int)k;
        else if (column >= 0)
            l->columns[l->n_columns++] = column;
        else
            return FAIL(err, ST_USAGE, "fields: no column '%.*s'; without fields all but the parameters are given",
                        (int)(n < 60 ? n : 60), at);
        at += n + (at[n] == ',');
    }
    return l->n_columns > 0 ? ST_OK : FAIL(err, ST_USAGE, "fields is empty; name a column");
}

static enum status read_states(struct listing *l, const char *text, struct error *err)
{
    for (int i = 0; i < TRIAL_STATES; i++)
        l->states[i] = text == NULL || list_has(text, trial_state_name((enum trial_state)i));
    for (const char *at = text; at != NULL && *at != '\0';) {
        size_t n = strcspn(at, ",");
        bool known = false;
        for (int i = 0; i < TRIAL_STATES; i++) {
            const char *name = trial_state_name((enum trial_state)i);
            known = known || (strlen(name) == n && strncmp(name, at, n) == 0);
        }
        if (!known)
            return FAIL(err, ST_USAGE,
                        "state: '%.*s' is none; queued, running, done, stopped, failed and lost are known",
                        (int)(n < 40 ? n : 40), at);
        at += n + (at[n] == ',');
    }
    return ST_OK;
}

static enum status read_listing(struct listing *l, const struct target *t, struct error *err)
{
    const char *sort = target_query(t, "sort"), *order = target_query(t, "order");

    l->limit = 100;
    TRY(target_i64(t, "offset", 0, INT32_MAX, &l->offset, err));
    TRY(target_i64(t, "limit", 1, LIMIT_MAX, &l->limit, err));
    TRY(target_i64(t, "since", 0, INT64_MAX, &l->since, err));
    TRY(target_bool(t, "front", &l->front_only, err));
    TRY(read_states(l, target_query(t, "state"), err));
    TRY(read_fields(l, target_query(t, "fields"), err));
    l->sort = sort != NULL ? column_find(l->p, sort, strlen(sort)) : COL_NUMBER;
    if (l->sort < 0)
        return FAIL(err, ST_USAGE, "sort: no column '%.60s'; /studies/NAME/trials shows them", sort);
    if (order != NULL && strcmp(order, "asc") != 0 && strcmp(order, "desc") != 0)
        return FAIL(err, ST_USAGE, "order is '%.20s'; give asc or desc", order);
    l->descending = order != NULL && strcmp(order, "desc") == 0;
    return ST_OK;
}

static int compare_rows(const void *pa, const void *pb, void *ctx)
{
    const struct listing *l = ctx;
    size_t a = *(const size_t *)pa, b = *(const size_t *)pb;
    int by;

    if (is_text(l->sort)) {
        const char *ta = column_text(l->p, a, l->sort), *tb = column_text(l->p, b, l->sort);
        if (ta == NULL || tb == NULL)
            by = (ta == NULL) != (tb == NULL) ? (ta == NULL ? 1 : -1) : 0;
        else
            by = l->descending ? strcmp(tb, ta) : strcmp(ta, tb);
    } else {
        double xa = column_number(l->p, a, l->sort), xb = column_number(l->p, b, l->sort);
        if (isnan(xa) || isnan(xb))
            by = (isnan(xa) != 0) - (isnan(xb) != 0);
        else
            by = l->descending ? (xb > xa) - (xb < xa) : (xa > xb) - (xa < xb);
    }
    return by != 0 ? by : (a > b) - (a < b);
}

static void select_rows(struct listing *l)
{
    const struct page_study *p = l->p;

    l->rows = mem_array(p->view.n, sizeof *l->rows);
    for (size_t i = 0; i < p->view.n; i++)
        if (l->states[p->view.trials[i].state] && (!l->front_only || p->view.on_front[i]) && p->changed[i] > l->since)
            l->rows[l->n++] = i;
    if (l->sort != COL_NUMBER || l->descending)
        qsort_r(l->rows, l->n, sizeof *l->rows, compare_rows, l);
}

static void put_head(const struct page_study *p, struct strbuf *out)
{
    strbuf_add(out, "{\"study\":");
    put_str(out, p->view.study.name);
    strbuf_addf(out, ",\"version\":%lld", (long long)p->version);
}

static void put_listing(const struct listing *l, struct strbuf *out)
{
    int64_t end = l->offset + l->limit < (int64_t)l->n ? l->offset + l->limit : (int64_t)l->n;

    put_head(l->p, out);
    strbuf_addf(out, ",\"total\":%zu,\"offset\":%lld,\"limit\":%lld,\"next_offset\":", l->n, (long long)l->offset,
                (long long)l->limit);
    if (end < (int64_t)l->n)
        put_i64(out, end);
    else
        strbuf_add(out, "null");
    strbuf_add(out, ",\"columns\":[");
    for (size_t k = 0; k < l->n_columns; k++) {
        strbuf_add(out, k > 0 ? "," : "");
        put_str(out, api_column_name(l->p, l->columns[k]));
    }
    strbuf_add(out, "],\"rows\":[");
    for (int64_t i = l->offset; i < end; i++) {
        strbuf_add(out, i > l->offset ? ",\n[" : "\n[");
        for (size_t k = 0; k < l->n_columns; k++) {
            strbuf_add(out, k > 0 ? "," : "");
            api_put_column(l->p, l->rows[i], l->columns[k], out);
        }
        strbuf_add(out, "]");
    }
    strbuf_add(out, "]}\n");
}

enum status api_trials(struct serve *s, const struct request *r, struct answer *answer, struct strbuf *out,
                       struct error *err)
{
    struct listing l = {.p = serve_lock_study(s, r->study, err)};
    enum status rc;

    (void)answer;
    if (l.p == NULL)
        return err->status;
    rc = read_listing(&l, &r->target, err);
    if (rc == ST_OK) {
        select_rows(&l);
        put_listing(&l, out);
    }
    serve_unlock(s);
    mem_free(l.rows);
    return rc;
}

/* -- /hypervolume -- */

static void put_hypervolume(const struct page_study *p, int64_t points, struct strbuf *out)
{
    size_t n = p->view.n < (size_t)points ? p->view.n : (size_t)points, at = 0, counts[POINTS_MAX] = {0};
    double cost_s = 0, best = NAN, expected_best = NAN, volumes[POINTS_MAX], expected[POINTS_MAX];
    struct gp_trial *rows = mem_array(p->view.n, sizeof *rows);
    int64_t last_ms = 0;
    struct gp_history believed = p->view.history;

    for (size_t k = 0; k < n; k++)
        counts[k] = (k + 1) * p->view.n / n;
    pareto_hypervolume_curve(&p->view.history, &p->view.ref, counts, n, volumes);
    believed_rows(&p->view, BELIEVED_NOW, rows);
    believed.trials = rows;
    pareto_hypervolume_curve(&believed, &p->view.ref, counts, n, expected);
    put_head(p, out);
    strbuf_add(out, ",\"columns\":[\"trials\",\"finished_ms\",\"elapsed_s\",\"cost_total_s\",\"hypervolume\","
                    "\"best_score\",\"expected_hypervolume\",\"expected_best\"],\"rows\":[");
    for (size_t k = 0; k < n; k++) {
        for (; at < counts[k]; at++) {
            const struct trial *t = &p->view.trials[at];
            if (isfinite(t->cost_s))
                cost_s += t->cost_s;
            if (t->finished_ms > last_ms)
                last_ms = t->finished_ms;
            if (p->view.gp[at].state == GP_TRIAL_DONE && !(p->view.gp[at].score <= best))
                best = p->view.gp[at].score;
            if (rows[at].state == GP_TRIAL_DONE && !(rows[at].score <= expected_best))
                expected_best = rows[at].score;
        }
        strbuf_addf(out, "%s[%zu,", k > 0 ? "," : "", counts[k]);
        put_time(out, last_ms);
        strbuf_add(out, ",");
        put_f64(out, last_ms > 0 && p->started_ms > 0 ? (double)(last_ms - p->started_ms) / 1e3 : (double)NAN);
        strbuf_add(out, ",");
        put_f64(out, cost_s);
        strbuf_add(out, ",");
        put_f64(out, volumes[k]);
        strbuf_add(out, ",");
        put_f64(out, study_view_score(&p->view, best));
        strbuf_add(out, ",");
        put_f64(out, expected[k]);
        strbuf_add(out, ",");
        put_f64(out, study_view_score(&p->view, expected_best));
        strbuf_add(out, "]");
    }
    strbuf_add(out, "],\"reference\":{\"cost\":");
    put_f64(out, p->view.ref.cost);
    strbuf_add(out, ",\"score\":");
    put_f64(out, study_view_score(&p->view, p->view.ref.score));
    strbuf_add(out, "}}\n");
    mem_free(rows);
}

enum status api_hypervolume(struct serve *s, const struct request *r, struct answer *answer, struct strbuf *out,
                            struct error *err)
{
    int64_t points = 240;
    const struct page_study *p;

    (void)answer;
    TRY(target_i64(&r->target, "points", 2, POINTS_MAX, &points, err));
    p = serve_lock_study(s, r->study, err);
    if (p == NULL)
        return err->status;
    put_hypervolume(p, points, out);
    serve_unlock(s);
    return ST_OK;
}

/* -- /timeline -- */

/* Where a trial ran: its slot when it has one ("cuda:0/3"), else its device. */
static const char *place_of(const struct trial *t)
{
    return t->slot != NULL ? t->slot : t->device;
}

static void put_place(const struct page_study *p, const char *place, struct strbuf *out)
{
    bool first = true;

    put_str(out, place);
    strbuf_add(out, ",\"columns\":[\"trial\",\"state\",\"started_ms\",\"finished_ms\"],\"rows\":[");
    for (size_t i = 0; i < p->view.n; i++) {
        const struct trial *t = &p->view.trials[i];
        if (t->started_ms == 0 || place_of(t) == NULL || strcmp(place_of(t), place) != 0)
            continue;
        strbuf_addf(out, "%s[%zu,", first ? "" : ",", i);
        put_str(out, trial_state_name(t->state));
        strbuf_addf(out, ",%lld,", (long long)t->started_ms);
        put_time(out, t->finished_ms);
        strbuf_add(out, "]");
        first = false;
    }
    strbuf_add(out, "]}");
}

#define PLACES_MAX 256

enum status api_timeline(struct serve *s, const struct request *r, struct answer *answer, struct strbuf *out,
                         struct error *err)
{
    const struct page_study *p = serve_lock_study(s, r->study, err);
    const char *places[PLACES_MAX];
    size_t n = 0;

    (void)answer;
    if (p == NULL)
        return err->status;
    for (size_t i = 0; i < p->view.n; i++) {
        const char *place = place_of(&p->view.trials[i]);
        bool known = place == NULL || p->view.trials[i].started_ms == 0;
        for (size_t k = 0; k < n && !known; k++)
            known = strcmp(places[k], place) == 0;
        if (!known && n < PLACES_MAX)
            places[n++] = place;
    }
    put_head(p, out);
    strbuf_add(out, ",\"from_ms\":");
    put_time(out, p->started_ms);
    strbuf_add(out, ",\"to_ms\":");
    put_time(out, p->finished_ms);
    strbuf_add(out, ",\"devices\":[");
    for (size_t k = 0; k < n; k++) {
        strbuf_add(out, k > 0 ? ",\n{\"device\":" : "\n{\"device\":");
        put_place(p, places[k], out);
    }
    strbuf_add(out, "]}\n");
    serve_unlock(s);
    return ST_OK;
}
