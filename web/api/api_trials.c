/* api_trials.c - lists over the trials of a study: /trials, /hypervolume, /timeline. Written straight into the answer:
 * a study may have tens of thousands. */
#include "gp/gp.h"
#include "study/findings/believed.h"
#include "study/view/promise.h"
#include "web/text/put.h"
#include "web/text/trial_field.h"
#include "web/serve/routes.h"
#include "web/serve/serve_priv.h"
#include "web/serve/data/page_study.h"

#define LIMIT_MAX 20000
#define POINTS_MAX 2000

/* -- columns: what the store keeps, what is made of it, the parameters -- */

/* Of one column: a text (NULL: none) or a number (NaN: none). */
struct value {
    bool is_text;
    const char *text;
    double number;
    char own[300]; /* of a text that is made here */
};

/* What is believed of trial i; NaN where nothing is. */
static double expected_number(const struct page_study *p, size_t i, int column)
{
    struct promise promise;

    study_view_promise(&p->view, i, &promise);
    return column == MADE_N_SEEDS       ? (double)promise.n_seeds
           : !promise.is_known          ? (double)NAN
           : column == MADE_EXPECTED    ? promise.score
           : column == MADE_EXPECTED_LO ? promise.lo
                                        : promise.hi;
}

static void made_value(const struct page_study *p, size_t i, int column, struct value *ret)
{
    const struct trial *t = &p->view.trials[i];
    const struct last_report *live = t->state == TRIAL_RUNNING ? &p->live[i] : NULL;

    switch (column) {
    case MADE_STATE:
        *ret = (struct value){.is_text = true, .text = trial_state_name(t->state)};
        break;
    case MADE_ENV:
        *ret = (struct value){.is_text = true, .text = study_view_env(&p->view, i)};
        break;
    case MADE_INFEASIBLE: /* the limit that it breaks, in words */
        ret->is_text = true;
        study_view_explain_limit(&p->view, i, ret->own, sizeof ret->own);
        ret->text = ret->own[0] != '\0' ? ret->own : NULL;
        break;
    case MADE_COST:
        ret->number = study_view_trial_cost(&p->view, t);
        break;
    case MADE_ON_FRONT:
        ret->number = p->view.on_front[i];
        break;
    case MADE_LIVE_SCORE:
        ret->number = live != NULL ? live->score : (double)NAN;
        break;
    case MADE_LIVE_S:
        ret->number = live != NULL ? live->wall_s : (double)NAN;
        break;
    case MADE_OBJECTIVE:
        ret->number = study_view_third(&p->view, i);
        break;
    default:
        ret->number = expected_number(p, i, column);
    }
}

static bool is_named(int column, const char *name)
{
    return column < TRIAL_FIELDS && strcmp(trial_fields[column].name, name) == 0;
}

/* Column COLUMNS + k: parameter k. */
static void column_value(const struct page_study *p, size_t i, int column, struct value *ret)
{
    const struct trial *t = &p->view.trials[i];

    ret->is_text = column < TRIAL_FIELDS && trial_fields[column].kind == FIELD_TEXT;
    if (column >= COLUMNS)
        ret->number = p->view.x[i][column - COLUMNS];
    else if (column >= TRIAL_FIELDS)
        made_value(p, i, column, ret);
    else if (is_named(column, "program") && t->program == NULL)
        ret->text = p->view.study.program;
    else if (ret->is_text)
        ret->text = trial_field_text(&trial_fields[column], t);
    else if (is_named(column, "env_steps") && t->state == TRIAL_RUNNING)
        ret->number = (double)p->live[i].env_steps;
    else
        ret->number = trial_field_number(&trial_fields[column], t);
}

void api_put_column(const struct page_study *p, size_t i, int column, struct strbuf *out)
{
    struct value value;

    if (column >= COLUMNS) {
        page_study_put_param(p, i, (size_t)(column - COLUMNS), out);
        return;
    }
    if (is_named(column, "seed")) { /* all of its digits */
        put_trial_field(out, &trial_fields[column], &p->view.trials[i]);
        return;
    }
    column_value(p, i, column, &value);
    if (column == MADE_ON_FRONT)
        put_json(out, "%i", value.number != 0);
    else if (value.is_text)
        put_str(out, value.text);
    else
        put_f64(out, value.number);
}

int api_n_columns(void)
{
    return COLUMNS;
}

const char *api_column_name(const struct page_study *p, int column)
{
    return column < TRIAL_FIELDS ? trial_fields[column].name
           : column < COLUMNS    ? page_made_names[column - TRIAL_FIELDS]
                                 : page_param_name(&p->view.search, (size_t)(column - COLUMNS));
}

static int column_find(const struct page_study *p, const char *name, size_t n)
{
    for (int i = 0; i < COLUMNS + (int)p->view.search.space.dim; i++) {
        const char *own = api_column_name(p, i),
                   *key = i < COLUMNS ? own : p->view.search.space.params[i - COLUMNS].key;
        if (words_same_name(own, name, n) || words_same_name(key, name, n))
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
        if (l->n_columns + more > COUNT(l->columns))
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
    l->sort = sort != NULL ? column_find(l->p, sort, strlen(sort)) : 0; /* the number */
    if (l->sort < 0)
        return FAIL(err, ST_USAGE, "sort: no column '%.60s'; /studies/NAME/trials shows them", sort);
    if (order != NULL && strcmp(order, "asc") != 0 && strcmp(order, "desc") != 0)
        return FAIL(err, ST_USAGE, "order is '%.20s'; give asc or desc", order);
    l->descending = order != NULL && strcmp(order, "desc") == 0;
    return ST_OK;
}

/* Rows without a value come last in both orders. */
static int compare_rows(const void *pa, const void *pb, void *ctx)
{
    const struct listing *l = ctx;
    size_t a = *(const size_t *)pa, b = *(const size_t *)pb;
    struct value va, vb;
    int by;

    column_value(l->p, a, l->sort, &va);
    column_value(l->p, b, l->sort, &vb);
    bool no_a = va.is_text ? va.text == NULL : isnan(va.number), no_b = vb.is_text ? vb.text == NULL : isnan(vb.number);
    if (no_a || no_b)
        by = no_a - no_b;
    else
        by = (l->descending ? -1 : 1) *
             (va.is_text ? strcmp(va.text, vb.text) : (va.number > vb.number) - (va.number < vb.number));
    return by != 0 ? by : (a > b) - (a < b);
}

static void select_rows(struct listing *l)
{
    const struct page_study *p = l->p;

    l->rows = mem_array(p->view.n, sizeof *l->rows);
    for (size_t i = 0; i < p->view.n; i++)
        if (l->states[p->view.trials[i].state] && (!l->front_only || p->view.on_front[i]) && p->changed[i] > l->since)
            l->rows[l->n++] = i;
    if (l->sort != 0 || l->descending)
        qsort_r(l->rows, l->n, sizeof *l->rows, compare_rows, l);
}

static void put_head(const struct page_study *p, struct strbuf *out)
{
    put_json(out, "{'study':%s,'version':%lld", p->view.study.name, (long long)p->version);
}

static void put_listing(const struct listing *l, struct strbuf *out)
{
    int64_t end = l->offset + l->limit < (int64_t)l->n ? l->offset + l->limit : (int64_t)l->n;

    put_head(l->p, out);
    put_json(out, ",'total':%zu,'offset':%lld,'limit':%lld,'next_offset':%g,'columns':[", l->n, (long long)l->offset,
             (long long)l->limit, end < (int64_t)l->n ? (double)end : (double)NAN);
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

enum status api_trials(struct serve *s, const struct request *r, struct strbuf *out, struct error *err)
{
    struct listing l = {.p = serve_lock_study(s, r->study, err)};

    if (l.p == NULL)
        return err->status;
    enum status rc = read_listing(&l, &r->target, err);
    if (rc == ST_OK) {
        select_rows(&l);
        put_listing(&l, out);
    }
    serve_unlock(s);
    mem_free(l.rows);
    return rc;
}

/* -- /hypervolume -- */

static double time_value(int64_t ms)
{
    return ms > 0 ? (double)ms : (double)NAN;
}

static void put_hypervolume(const struct page_study *p, int64_t points, struct strbuf *out)
{
    size_t n = p->view.n < (size_t)points ? p->view.n : (size_t)points, at = 0, counts[POINTS_MAX] = {0};
    double cost_s = 0, best = NAN, expected_best = NAN, volumes[POINTS_MAX], expected[POINTS_MAX];
    MEM_LOCAL struct gp_trial *rows = mem_array(p->view.n, sizeof *rows);
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
        put_json(out, k > 0 ? ",[%zu,%g,%g,%g,%g,%g,%g,%g]" : "[%zu,%g,%g,%g,%g,%g,%g,%g]", counts[k],
                 time_value(last_ms),
                 last_ms > 0 && p->started_ms > 0 ? (double)(last_ms - p->started_ms) / 1e3 : (double)NAN, cost_s,
                 volumes[k], study_view_score(&p->view, best), expected[k], study_view_score(&p->view, expected_best));
    }
    put_json(out, "],'reference':{'cost':%g,'score':%g}}\n", p->view.ref.cost,
             study_view_score(&p->view, p->view.ref.score));
}

enum status api_hypervolume(struct serve *s, const struct request *r, struct strbuf *out, struct error *err)
{
    int64_t points = 240;

    TRY(target_i64(&r->target, "points", 2, POINTS_MAX, &points, err));
    const struct page_study *p = serve_lock_study(s, r->study, err);
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

    put_json(out, "{'device':%s,'columns':['trial','state','started_ms','finished_ms'],'rows':[", place);
    for (size_t i = 0; i < p->view.n; i++) {
        const struct trial *t = &p->view.trials[i];
        if (t->started_ms == 0 || place_of(t) == NULL || strcmp(place_of(t), place) != 0)
            continue;
        put_json(out, first ? "[%zu,%s,%lld,%g]" : ",[%zu,%s,%lld,%g]", i, trial_state_name(t->state),
                 (long long)t->started_ms, time_value(t->finished_ms));
        first = false;
    }
    strbuf_add(out, "]}");
}

#define PLACES_MAX 256

enum status api_timeline(struct serve *s, const struct request *r, struct strbuf *out, struct error *err)
{
    const struct page_study *p = serve_lock_study(s, r->study, err);
    const char *places[PLACES_MAX];
    size_t n = 0;

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
    put_json(out, ",'from_ms':%g,'to_ms':%g,'devices':[", time_value(p->started_ms), time_value(p->finished_ms));
    for (size_t k = 0; k < n; k++) {
        strbuf_add(out, k > 0 ? ",\n" : "\n");
        put_place(p, places[k], out);
    }
    strbuf_add(out, "]}\n");
    serve_unlock(s);
    return ST_OK;
}
