/* served_study.c - one study as last read from the store, and how it is brought up to date.
 *
 * Invariants: (1) trials[i] has number i; (2) a final trial is read once, for it never changes: an update reads the new
 * ones and those that were not final; (3) changed[i] is the version in which anything that /trials shows of trial i
 * changed last, on_front too. */
#include "web/serve/served_study.h"

#include "base/json.h"
#include "base/mem.h"
#include "base/status.h"
#include "base/strbuf.h"
#include "gp/gp.h"
#include "store/store.h"
#include "study/promise.h"
#include "study/study_view.h"
#include "web/serve/json_text.h"
#include "web/serve/models.h"
#include "web/serve/serve.h"
#include "web/serve/serve_priv.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

void view_free(struct view *v)
{
    if (v == NULL)
        return;
    trial_list_free(v->trials, v->n);
    study_free(&v->study);
    cJSON_Delete(v->space);
    gp_insight_free(&v->advice);
    mem_free(v->rows);
    mem_free(v->on_front);
    mem_free(v->changed);
    mem_free(v->live);
    mem_free(v->x);
    mem_free(v);
}

static bool grow_array(void *array, size_t n, size_t cap, size_t size)
{
    void **at = array;
    void *grown = mem_grow(*at, n, cap, size);

    if (grown != NULL)
        *at = grown;
    return grown != NULL;
}

static enum status grow(struct view *v, size_t n, struct error *err)
{
    size_t cap = n > 2 * v->cap ? n : 2 * v->cap;

    if (n <= v->cap)
        return ST_OK;
    if (!grow_array(&v->trials, v->n, cap, sizeof *v->trials) || !grow_array(&v->rows, v->n, cap, sizeof *v->rows) ||
        !grow_array(&v->on_front, v->n, cap, sizeof *v->on_front) ||
        !grow_array(&v->changed, v->n, cap, sizeof *v->changed) || !grow_array(&v->live, v->n, cap, sizeof *v->live) ||
        !grow_array(&v->x, v->n * v->dim, cap * v->dim, sizeof *v->x))
        return FAIL(err, ST_NOMEM, "out of memory for a study of %zu trials", n);
    v->cap = cap;
    return ST_OK;
}

/* The index of a categorical value; NaN when it is none of the choices. */
static double choice_index(const cJSON *param, const cJSON *value)
{
    const cJSON *choices = cJSON_GetObjectItemCaseSensitive(param, "choices"), *choice;
    int i = 0;

    if (cJSON_IsBool(value) && choices == NULL)
        return cJSON_IsTrue(value) ? 1.0 : 0.0;
    cJSON_ArrayForEach(choice, choices)
    {
        if (cJSON_IsString(choice) && cJSON_IsString(value) && strcmp(choice->valuestring, value->valuestring) == 0)
            return i;
        i++;
    }
    return (double)NAN;
}

static void read_point(struct view *v, size_t i)
{
    const char *text = v->trials[i].params;
    cJSON *json = NULL;

    if (text != NULL && json_parse(text, strlen(text), &json, NULL) != ST_OK)
        json = NULL; /* shown without parameters; `trawl show` says what is wrong */
    for (size_t k = 0; k < v->dim; k++) {
        const cJSON *value = json != NULL ? cJSON_GetObjectItemCaseSensitive(json, v->keys[k]) : NULL;
        double number = NAN;
        if (value != NULL && !cJSON_IsNumber(value) && !json_get_f64(json, v->keys[k], &number))
            number = choice_index(v->params[k], value);
        else if (cJSON_IsNumber(value))
            number = value->valuedouble;
        v->x[i * v->dim + k] = number;
    }
    cJSON_Delete(json);
}

void view_put_param(const struct view *v, size_t i, size_t k, struct strbuf *out)
{
    double x = v->x[i * v->dim + k];
    const cJSON *choices = cJSON_GetObjectItemCaseSensitive(v->params[k], "choices");
    const cJSON *choice = choices != NULL && x >= 0 ? cJSON_GetArrayItem(choices, (int)x) : NULL;

    if (cJSON_IsString(choice))
        put_str(out, choice->valuestring);
    else
        put_f64(out, choices != NULL ? (double)NAN : x);
}

static enum status read_space(struct view *v, struct error *err)
{
    const char *text = v->study.space != NULL ? v->study.space : "{}";
    const cJSON *params, *param;

    TRY(json_parse(text, strlen(text), &v->space, err));
    params = cJSON_GetObjectItemCaseSensitive(v->space, "params");
    cJSON_ArrayForEach(param, params)
    {
        const char *key = json_get_str(param, "key");
        if (key == NULL || v->dim == SPACE_MAX_DIM)
            continue;
        v->params[v->dim] = param;
        v->keys[v->dim] = key;
        v->dim++;
    }
    return ST_OK;
}

static bool is_final(enum trial_state state)
{
    return state == TRIAL_DONE || state == TRIAL_STOPPED || state == TRIAL_FAILED;
}

double view_cost(const struct view *v, size_t i)
{
    const struct trial *t = &v->trials[i];

    if (v->cost == SEARCH_COST_STEPS)
        return t->state >= TRIAL_DONE ? (double)t->env_steps : (double)NAN;
    return isfinite(v->rows[i].cost) ? v->rows[i].cost : study_trial_cost(v->cost, t);
}

double view_score(const struct view *v, double row_score)
{
    return v->study.maximize ? row_score : -row_score;
}

struct gp_history view_history(const struct view *v)
{
    return (struct gp_history){.n = v->advice.n, .trials = v->rows};
}

void view_promise(const struct view *v, size_t i, struct promise *ret)
{
    promise_make(v->advice.beliefs != NULL && i < v->advice.n ? &v->advice.beliefs[i] : NULL, &v->rows[i],
                 &v->trials[i], v->study.maximize, ret);
}

void put_promise(struct strbuf *out, const struct promise *p)
{
    const struct {
        const char *key;
        double value;
    } rows[] = {{"score_mean", p->is_known ? p->score : (double)NAN},
                {"score_lo", p->lo},
                {"score_hi", p->hi},
                {"seeds_mean", p->mean},
                {"cost_mean", p->is_known ? p->cost : (double)NAN},
                {"cost_lo", p->cost_lo},
                {"cost_hi", p->cost_hi},
                {"score_noise_sd", p->noise_sd},
                {"start_s", p->start_s}};

    put_key(out, "n_seeds");
    put_i64(out, (int64_t)p->n_seeds);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        put_key(out, rows[i].key);
        put_f64(out, rows[i].value);
    }
}

const char *view_advice_state(const struct view *v)
{
    return model_state_name(v->advice.beliefs == NULL  ? MODEL_NONE
                            : v->advised != v->settled ? MODEL_STALE
                                                       : MODEL_READY);
}

static size_t pick_of(const struct view *v, enum gp_rule rule)
{
    struct gp_history history = view_history(v);
    struct gp_picked picked;

    if (history.n == 0 || gp_pick(&v->advice, &history, rule, 0, &picked, NULL) != ST_OK || picked.i >= history.n)
        return v->n;
    return picked.i;
}

/* The front and the picks, after rows or advice changed. */
static enum status judge_front(struct view *v, int64_t version, struct error *err)
{
    struct gp_history history = {.n = v->n, .trials = v->rows};
    bool *runs = mem_array(v->n, sizeof *runs);

    if (runs == NULL)
        return FAIL(err, ST_NOMEM, "out of memory for a study of %zu trials", v->n);
    enum status rc = pareto_front(&history, NULL, runs, err);
    v->n_front = 0;
    for (size_t i = 0; i < v->n && rc == ST_OK; i++) {
        bool on = v->advice.beliefs == NULL ? runs[i] : i < v->advice.n && gp_is_shown_on_front(&v->advice, i);
        if (on != v->on_front[i])
            v->changed[i] = version;
        v->on_front[i] = on;
        v->n_front += on;
    }
    mem_free(runs);
    v->best = pick_of(v, GP_BEST);
    v->knee = pick_of(v, GP_KNEE);
    return rc;
}

bool view_wants_advice(const struct view *v, double now_s)
{
    return v->advised != v->settled && now_s >= v->advice_rest_s;
}

enum status view_advise(const struct view *v, const struct serve *s, struct gp_insight *ret, struct error *err)
{
    const struct gp_history history = {.n = v->n, .trials = v->rows};

    *ret = (struct gp_insight){.n = v->n, .recommended = v->n, .note = "this server has no models"};
    if (s->set.hooks.advise == NULL)
        return ST_OK;
    return s->set.hooks.advise(s->set.hooks.ctx, &v->study, v->x, v->dim, &history, ret, err);
}

enum status view_take_advice(struct view *v, struct gp_insight *advice, int64_t version, struct error *err)
{
    gp_insight_free(&v->advice);
    v->advice = *advice;
    *advice = (struct gp_insight){0};
    v->advised = v->settled;
    v->version = version;
    return judge_front(v, version, err);
}

/* Front, reference, counts: after rows changed. */
static enum status judge_all(struct view *v, int64_t version, struct error *err)
{
    struct gp_history history = {.n = v->n, .trials = v->rows};

    for (size_t i = 0; i < v->n; i++)
        v->rows[i].x = v->x + i * v->dim; /* which may have moved */
    TRY(judge_front(v, version, err));
    pareto_reference(&history, &v->ref);
    v->hypervolume = pareto_hypervolume(&history, &v->ref);
    v->best_run = best_run(&history);
    v->cost_s = 0;
    v->n_confirming = 0;
    v->started_ms = v->finished_ms = 0;
    memset(v->count, 0, sizeof v->count);
    for (size_t i = 0; i < v->n; i++) {
        const struct trial *t = &v->trials[i];
        v->count[t->state]++;
        v->n_confirming += t->state == TRIAL_RUNNING && trial_is_confirming(t);
        if (isfinite(t->cost_s))
            v->cost_s += t->cost_s;
        if (t->started_ms > 0 && (v->started_ms == 0 || t->started_ms < v->started_ms))
            v->started_ms = t->started_ms;
        if (t->finished_ms > v->finished_ms)
            v->finished_ms = t->finished_ms;
    }
    return ST_OK;
}

/* Trials from number v->n on. */
static enum status read_new(struct view *v, struct store *store, int64_t version, bool *ret_changed, struct error *err)
{
    struct trial *trials = NULL;
    size_t n = 0, used = 0;

    TRY(store_trial_list_from(store, v->study.id, (int64_t)v->n, &trials, &n, err));
    enum status rc = grow(v, v->n + n, err);
    for (; used < n && rc == ST_OK; used++) {
        size_t i = v->n;
        if (trials[used].number != (int64_t)i) {
            rc = FAIL(err, ST_CORRUPT, "the store has no trial %zu of %s, but one numbered %lld", i, v->study.name,
                      (long long)trials[used].number);
            break;
        }
        v->trials[i] = trials[used];
        memset(&trials[used], 0, sizeof trials[used]);
        v->n++;
        v->changed[i] = version;
        if (v->trials[i].state >= TRIAL_DONE)
            v->settled = version;
        v->on_front[i] = false;
        v->live[i] = (struct last_report){0, NAN, NAN};
        read_point(v, i);
        study_judge(&v->study, v->cost, &v->trials[i], &v->rows[i]);
        *ret_changed = true;
    }
    trial_list_free(trials, n);
    return rc;
}

/* A trial that was not final. */
static enum status read_again(struct view *v, struct store *store, size_t i, int64_t version, bool *ret_changed,
                              struct error *err)
{
    struct trial *old = &v->trials[i], now;

    TRY(store_trial_find(store, v->study.id, (int64_t)i, &now, err));
    mem_free(now.config);
    mem_free(now.log_tail);
    now.config = now.log_tail = NULL;
    if (now.state != old->state && now.state >= TRIAL_DONE)
        v->settled = version;
    if (now.state != old->state || now.attempt != old->attempt || now.started_ms != old->started_ms) {
        v->changed[i] = version;
        *ret_changed = true;
    }
    trial_free(old);
    *old = now;
    study_judge(&v->study, v->cost, &v->trials[i], &v->rows[i]);
    return ST_OK;
}

static enum status read_live(struct view *v, struct store *store, size_t i, int64_t version, bool *ret_changed,
                             struct error *err)
{
    struct curve_point point;
    bool found = false;

    TRY(store_metric_last(store, v->trials[i].id, v->study.metric, &point, &found, err));
    if (found && point.env_steps != v->live[i].env_steps) {
        v->live[i] = (struct last_report){point.env_steps, point.wall_s, point.value};
        v->changed[i] = version;
        *ret_changed = true;
    } else if (!found) {
        v->live[i] = (struct last_report){0, NAN, NAN};
    }
    return ST_OK;
}

static bool same_text(const char *a, const char *b)
{
    return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

/* What of a study itself may change: its limits, its state. */
static bool study_differs(const struct study *a, const struct study *b)
{
    return a->limits.trials_max != b->limits.trials_max || a->limits.budget_s != b->limits.budget_s ||
           a->state != b->state || a->limits.priority != b->limits.priority || a->wall_used_s != b->wall_used_s ||
           a->limits.wall_max_s != b->limits.wall_max_s || a->limits.device_max_s != b->limits.device_max_s ||
           a->limits.has_target != b->limits.has_target || a->limits.target_score != b->limits.target_score ||
           a->limits.gain_min != b->limits.gain_min || !same_text(a->end_rule, b->end_rule) ||
           !same_text(a->end_text, b->end_text);
}

enum status view_update(struct view *v, struct store *store, struct study *study, int64_t version, bool *ret_changed,
                        struct error *err)
{
    bool changed = study_differs(&v->study, study), trials_changed = false;
    size_t n_before = v->n;

    *ret_changed = false;
    study_free(&v->study);
    v->study = *study;
    memset(study, 0, sizeof *study);
    for (size_t i = 0; i < n_before; i++)
        if (!is_final(v->trials[i].state))
            TRY(read_again(v, store, i, version, &trials_changed, err));
    TRY(read_new(v, store, version, &trials_changed, err));
    if (trials_changed)
        TRY(judge_all(v, version, err));
    for (size_t i = 0; i < v->n; i++)
        if (v->trials[i].state == TRIAL_RUNNING)
            TRY(read_live(v, store, i, version, &changed, err));
    *ret_changed = changed || trials_changed;
    if (*ret_changed)
        v->version = version;
    return ST_OK;
}

enum status view_create(struct view **ret_view, struct serve *s, struct store *store, struct study *study,
                        int64_t version, struct error *err)
{
    struct view *v = mem_alloc(sizeof *v);
    struct serve_study info = {0};
    bool changed;
    enum status rc = ST_OK;

    *ret_view = NULL;
    if (v == NULL)
        return FAIL(err, ST_NOMEM, "out of memory for a study");
    v->study = *study;
    memset(study, 0, sizeof *study);
    v->hypervolume = NAN;
    v->settled = version;
    rc = read_space(v, err);
    if (rc == ST_OK && s->set.hooks.study != NULL)
        rc = s->set.hooks.study(s->set.hooks.ctx, &v->study, &info, err);
    memcpy(v->env, info.env, sizeof v->env);
    v->cost = info.cost;
    if (rc == ST_OK)
        rc = read_new(v, store, version, &changed, err);
    if (rc == ST_OK)
        rc = judge_all(v, version, err);
    for (size_t i = 0; i < v->n && rc == ST_OK; i++)
        if (v->trials[i].state == TRIAL_RUNNING)
            rc = read_live(v, store, i, version, &changed, err);
    v->version = version;
    if (rc != ST_OK) {
        error_prefix(err, "study %s", v->study.name);
        view_free(v);
        return rc;
    }
    *ret_view = v;
    return ST_OK;
}

const char *view_state(const struct view *v, bool has_writer)
{
    if (v->study.state == STUDY_ENDED)
        return "finished";
    if (v->study.state == STUDY_PAUSED)
        return "paused";
    if (v->study.limits.trials_max > 0 && v->count[TRIAL_RUNNING] + v->count[TRIAL_QUEUED] == 0 &&
        (int64_t)v->n >= v->study.limits.trials_max)
        return "finished";
    if (v->count[TRIAL_RUNNING] > 0)
        return has_writer ? "running" : "interrupted";
    return has_writer ? "waiting" : "idle";
}

static bool add_devices(cJSON *json, const struct view *v)
{
    cJSON *list = cJSON_CreateArray(), *item;
    bool ok = json_add(json, "devices", list);

    for (size_t i = v->n; ok && i-- > 0;) {
        const char *device = v->trials[i].device;
        bool known = device == NULL || cJSON_GetArraySize(list) >= 16;
        cJSON_ArrayForEach(item, list) known = known || strcmp(item->valuestring, device) == 0;
        if (!known) {
            cJSON *text = cJSON_CreateString(device);
            ok = text != NULL && cJSON_AddItemToArray(list, text);
        }
    }
    return ok;
}

static bool add_trial(cJSON *json, const char *key, const struct view *v, size_t i)
{
    return i < v->n ? json_add_i64(json, key, (int64_t)i) : json_add_str(json, key, NULL);
}

/* The best and what may be said of it. */
static bool add_best(cJSON *json, const struct view *v)
{
    struct promise p = {.score = NAN, .lo = NAN, .hi = NAN};
    size_t run = v->best_run;

    if (v->best < v->n)
        view_promise(v, v->best, &p);
    return add_trial(json, "best_trial", v, v->best) && add_number(json, "best_score", p.score) &&
           add_number(json, "best_lo", p.lo) && add_number(json, "best_hi", p.hi) &&
           json_add_i64(json, "best_seeds", (int64_t)p.n_seeds) && add_trial(json, "best_run_trial", v, run) &&
           add_number(json, "best_run_score", run < v->n ? v->trials[run].score : (double)NAN);
}

static bool add_limit(cJSON *json, const char *key, double limit)
{
    return limit > 0 ? json_add_f64(json, key, limit) : json_add_str(json, key, NULL);
}

cJSON *view_counts(const struct view *v)
{
    cJSON *counts = cJSON_CreateObject();
    bool ok = counts != NULL;

    for (int i = 0; ok && i < TRIAL_STATES; i++)
        ok = json_add_i64(counts, trial_state_name((enum trial_state)i), v->count[i]);
    if (!ok) {
        cJSON_Delete(counts);
        return NULL;
    }
    return counts;
}

static bool add_time(cJSON *json, const char *key, int64_t ms)
{
    return ms > 0 ? json_add_i64(json, key, ms) : json_add_str(json, key, NULL);
}

cJSON *view_summary(const struct view *v, bool has_writer)
{
    const struct study *st = &v->study;
    cJSON *json = cJSON_CreateObject();
    bool ok =
        json != NULL && json_add_str(json, "name", st->name) &&
        json_add_str(json, "state", view_state(v, has_writer)) && json_add_str(json, "end_rule", st->end_rule) &&
        json_add_str(json, "end_text", st->end_text) && json_add_str(json, "method", st->method) &&
        json_add_str(json, "metric", st->metric) &&
        json_add_str(json, "direction", st->maximize ? "maximize" : "minimize") && json_add_str(json, "env", v->env) &&
        json_add_str(json, "cost_unit", v->cost == SEARCH_COST_STEPS ? "steps" : "s") &&
        json_add(json, "counts", view_counts(v)) && json_add_i64(json, "trials", (int64_t)v->n) &&
        (st->limits.trials_max > 0 ? json_add_i64(json, "trials_max", st->limits.trials_max)
                                   : json_add_str(json, "trials_max", NULL)) &&
        add_limit(json, "budget_s", st->limits.budget_s) && add_limit(json, "wall_max_s", st->limits.wall_max_s) &&
        json_add_f64(json, "wall_used_s", st->wall_used_s) &&
        add_limit(json, "device_max_s", st->limits.device_max_s) &&
        add_number(json, "target_score", st->limits.has_target ? st->limits.target_score : (double)NAN) &&
        json_add_i64(json, "priority", st->limits.priority) && json_add_f64(json, "cost_s", v->cost_s) &&
        add_best(json, v) && add_trial(json, "knee_trial", v, v->knee) &&
        json_add_i64(json, "confirming", (int64_t)v->n_confirming) &&
        json_add_i64(json, "n_front", (int64_t)v->n_front) && add_number(json, "hypervolume", v->hypervolume) &&
        add_devices(json, v) && json_add_i64(json, "seed", st->seed) && json_add_str(json, "program", st->program) &&
        add_time(json, "created_ms", st->created_ms) && add_time(json, "started_ms", v->started_ms) &&
        add_time(json, "finished_ms", v->finished_ms) && json_add_i64(json, "version", v->version);

    if (!ok) {
        cJSON_Delete(json);
        return NULL;
    }
    return json;
}
