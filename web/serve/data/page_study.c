/* page_study.c - one study as last read from the store, and how it is brought up to date.
 *
 * Invariants: (1) a final trial is read once, for it never changes: an update reads the new ones, those that were not
 * final, and those that people wrote something of; (2) nothing is read from the store under the server's lock; (3)
 * changed[i] is the version in which anything that
 * /trials shows of trial i changed last, on_front too. */
#include "web/serve/data/page_study.h"
#include "envs/envs.h"
#include "gp/gp.h"
#include "study/findings/believed.h"
#include "study/program/program_settings.h"
#include "study/view/promise.h"
#include "study/view/resume_command.h"
#include "web/text/put.h"

static const struct last_report no_report = {0, NAN, NAN};

void page_study_free(struct page_study *p)
{
    if (p == NULL)
        return;
    study_view_free(&p->view);
    mem_free(p->changed);
    mem_free(p->live);
    mem_free(p->shown_front);
    mem_free(p);
}

static void reserve(struct page_study *p, size_t n)
{
    size_t cap = n > 2 * p->cap ? n : 2 * p->cap;

    if (n <= p->cap)
        return;
    study_view_reserve(&p->view, cap);
    p->changed = mem_grow(p->changed, p->view.n, cap, sizeof *p->changed);
    p->live = mem_grow(p->live, p->view.n, cap, sizeof *p->live);
    p->shown_front = mem_grow(p->shown_front, p->view.n, cap, sizeof *p->shown_front);
    p->cap = cap;
}

const char *const page_made_names[COLUMNS - TRIAL_FIELDS] = {"state",   "cost",     "on_front",    "live_score",
                                                             "live_s",  "expected", "expected_lo", "expected_hi",
                                                             "n_seeds", "env",      "objective",   "infeasible"};

const char *page_param_name(const struct search *search, size_t k)
{
    const char *key = search->space.params[k].key, *name = search_param_name(key);

    for (int i = 0; i < COLUMNS; i++)
        if (strcmp(i < TRIAL_FIELDS ? trial_fields[i].name : page_made_names[i - TRIAL_FIELDS], name) == 0)
            return key;
    return name;
}

void page_study_put_param(const struct page_study *p, size_t i, size_t k, struct strbuf *out)
{
    const struct search *search = &p->view.search;
    double x = p->view.x[i][k];

    if (search->space.params[k].scale == SPACE_CATEGORICAL && isfinite(x))
        put_str(out, search->choices[k][(size_t)x]);
    else
        put_f64(out, x);
}

void page_study_put_params(const struct page_study *p, size_t i, struct strbuf *out)
{
    for (size_t k = 0; k < p->view.search.space.dim; k++) {
        put_json(out, k > 0 ? ",%s:" : "{%s:", page_param_name(&p->view.search, k));
        page_study_put_param(p, i, k, out);
    }
    strbuf_add(out, p->view.search.space.dim > 0 ? "}" : "{}");
}

static bool same_text(const char *a, const char *b)
{
    return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

static bool is_final(enum trial_state state)
{
    return state == TRIAL_DONE || state == TRIAL_STOPPED || state == TRIAL_FAILED;
}

void put_promise(struct strbuf *out, const struct promise *p)
{
    put_json(out,
             "'n_seeds':%zu,'score_mean':%g,'score_lo':%g,'score_hi':%g,'seeds_mean':%g,'cost_mean':%g,'cost_lo':%g,",
             p->n_seeds, p->is_known ? p->score : (double)NAN, p->lo, p->hi, p->mean,
             p->is_known ? p->cost : (double)NAN, p->cost_lo);
    put_json(out, "'cost_hi':%g,'score_noise_sd':%g,'start_s':%g", p->cost_hi, p->noise_sd, p->start_s);
}

const char *page_study_advice_state(const struct page_study *p)
{
    return p->view.advice.beliefs == NULL ? "none" : p->advised != p->settled ? "stale" : "ready";
}

static size_t pick_of(const struct page_study *p, enum gp_rule rule)
{
    return p->view.advice.n > 0 ? study_view_pick(&p->view, rule) : p->view.n;
}

/* Picks, and trials that have come onto the front or left it. */
static void note_front(struct page_study *p, int64_t version)
{
    const struct study_view *v = &p->view;

    p->n_front = study_view_front_size(v);
    for (size_t i = 0; i < v->n; i++) {
        if (v->on_front[i] != p->shown_front[i])
            p->changed[i] = version;
        p->shown_front[i] = v->on_front[i];
    }
    p->best = pick_of(p, GP_BEST);
    p->knee = pick_of(p, GP_KNEE);
}

bool page_study_wants_advice(const struct page_study *p, double now_s)
{
    return p->advised != p->settled && now_s >= p->advice_rest_s;
}

void page_study_take_advice(struct page_study *p, struct gp_insight *advice, int64_t version)
{
    study_view_take_advice(&p->view, advice);
    p->advised = p->settled;
    p->version = version;
    note_front(p, version);
    p->hypervolume = believed_volume(&p->view, &p->view.ref, BELIEVED_NOW);
}

/* Front, reference, counts: after trials changed. */
static void judge_all(struct page_study *p, int64_t version)
{
    const struct study_view *v = &p->view;

    study_view_refresh(&p->view);
    note_front(p, version);
    p->hypervolume = believed_volume(v, &v->ref, BELIEVED_NOW);
    p->best_run = study_view_best_run(v);
    p->cost_s = study_view_cost(v);
    p->n_confirming = 0;
    p->started_ms = p->finished_ms = 0;
    memset(p->count, 0, sizeof p->count);
    for (size_t i = 0; i < v->n; i++) {
        const struct trial *t = &v->trials[i];
        p->count[t->state]++;
        p->n_confirming += t->state == TRIAL_RUNNING && trial_is_confirming(t);
        if (t->started_ms > 0 && (p->started_ms == 0 || t->started_ms < p->started_ms))
            p->started_ms = t->started_ms;
        if (t->finished_ms > p->finished_ms)
            p->finished_ms = t->finished_ms;
    }
}

/* -- reading -- */

static void free_news(struct page_news *news)
{
    study_free(&news->study);
    for (size_t i = 0; i < news->n; i++)
        trial_free(&news->trials[i].trial);
    mem_free(news->trials);
    *news = (struct page_news){0};
}

/* Takes trial. */
static enum status add_news(struct page_news *news, struct store *store, struct trial *trial, struct error *err)
{
    struct curve_point point;
    bool found = false;

    MEM_ROOM(news->trials, news->n, news->cap);
    struct page_trial *t = &news->trials[news->n++];
    *t = (struct page_trial){*trial, no_report};
    memset(trial, 0, sizeof *trial);
    if (t->trial.state == TRIAL_RUNNING)
        TRY(store_metric_last(store, t->trial.id, news->study.metric, &point, &found, err));
    if (found)
        t->live = (struct last_report){point.env_steps, point.wall_s, point.value};
    return ST_OK;
}

/* A trial that was not final. */
static enum status read_again(struct page_news *news, struct store *store, size_t i, struct error *err)
{
    struct trial trial;

    TRY(store_trial_find(store, news->study.id, (int64_t)i, &trial, err));
    mem_free(trial.config);
    mem_free(trial.log_tail);
    trial.config = trial.log_tail = NULL;
    return add_news(news, store, &trial, err);
}

/* Final trials, where what people wrote of them is not what the view has. */
static enum status read_marked(struct page_news *news, const struct page_study *p, struct store *store,
                               struct error *err)
{
    struct trial_mark *marks = NULL;
    size_t n = 0;
    enum status rc = store_mark_list(store, news->study.id, &marks, &n, err);

    for (size_t k = 0; rc == ST_OK && k < n && marks[k].number < (int64_t)p->view.n; k++) {
        const struct trial *t = &p->view.trials[marks[k].number];
        bool same = same_text(marks[k].dropped, t->dropped) && same_text(marks[k].note, t->note) &&
                    same_text(marks[k].tags, t->tags);
        if (is_final(t->state) && !same)
            rc = read_again(news, store, (size_t)t->number, err);
    }
    mark_list_free(marks, n);
    return rc;
}

/* Trials from number `from` on. */
static enum status read_new(struct page_news *news, struct store *store, size_t from, struct error *err)
{
    struct trial *trials = NULL;
    size_t n = 0;
    enum status rc = store_trial_list_from(store, news->study.id, (int64_t)from, &trials, &n, err);

    for (size_t i = 0; rc == ST_OK && i < n; i++)
        if (trials[i].number != (int64_t)(from + i))
            rc = FAIL(err, ST_CORRUPT, "the store has no trial %zu of %s, but one numbered %lld", from + i,
                      news->study.name, (long long)trials[i].number);
        else
            rc = add_news(news, store, &trials[i], err);
    trial_list_free(trials, n);
    return rc;
}

enum status page_study_read(const struct page_study *p, struct store *store, struct study *study, struct page_news *ret,
                            struct error *err)
{
    enum status rc = ST_OK;

    *ret = (struct page_news){.study = *study};
    memset(study, 0, sizeof *study);
    for (size_t i = 0; rc == ST_OK && i < p->view.n; i++)
        if (!is_final(p->view.trials[i].state))
            rc = read_again(ret, store, i, err);
    THEN(rc, read_marked(ret, p, store, err));
    THEN(rc, read_new(ret, store, p->view.n, err));
    if (rc != ST_OK)
        free_news(ret);
    return rc;
}

/* -- applying -- */

/* What of a study itself may change: its limits, its state, what people write. */
static bool study_differs(const struct study *a, const struct study *b)
{
    return a->limits.trials_max != b->limits.trials_max || a->limits.budget_s != b->limits.budget_s ||
           a->state != b->state || a->limits.priority != b->limits.priority || a->wall_used_s != b->wall_used_s ||
           a->limits.wall_max_s != b->limits.wall_max_s || a->limits.device_max_s != b->limits.device_max_s ||
           a->limits.has_target != b->limits.has_target || a->limits.target_score != b->limits.target_score ||
           a->limits.gain_min != b->limits.gain_min || !same_text(a->end_rule, b->end_rule) ||
           !same_text(a->end_text, b->end_text) || !same_text(a->note, b->note) || !same_text(a->tags, b->tags);
}

static bool same_number(double a, double b)
{
    return a == b || (isnan(a) && isnan(b));
}

static bool trial_is_same(const struct trial *a, const struct trial *b)
{
    return a->id == b->id && a->state == b->state && a->attempt == b->attempt && a->seed == b->seed &&
           a->started_ms == b->started_ms && a->finished_ms == b->finished_ms && same_number(a->score, b->score) &&
           same_number(a->cost_s, b->cost_s) && same_text(a->params, b->params) && same_text(a->reason, b->reason) &&
           same_text(a->dropped, b->dropped) && same_text(a->note, b->note) && same_text(a->tags, b->tags);
}

bool page_study_is_same(const struct page_study *a, const struct page_study *b)
{
    bool same = a->view.n == b->view.n && same_text(a->view.study.config, b->view.study.config) &&
                !study_differs(&a->view.study, &b->view.study);

    for (size_t i = 0; same && i < a->view.n; i++)
        same = trial_is_same(&a->view.trials[i], &b->view.trials[i]);
    return same;
}

/* Takes the trial; true: more than its last report has changed. */
static bool apply_trial(struct page_study *p, struct page_trial *news, int64_t version, bool *ret_changed)
{
    struct trial *now = &news->trial;
    size_t i = (size_t)now->number;
    const struct trial *old = i < p->view.n ? &p->view.trials[i] : NULL;
    bool is_judged_new = old == NULL || now->state != old->state || !same_text(now->dropped, old->dropped);
    bool differs = is_judged_new || now->attempt != old->attempt || now->started_ms != old->started_ms ||
                   !same_text(now->note, old->note) || !same_text(now->tags, old->tags);

    if (now->state >= TRIAL_DONE && is_judged_new)
        p->settled = version;
    if (old == NULL) {
        reserve(p, i + 1);
        p->live[i] = no_report;
        p->shown_front[i] = false;
    }
    if (differs || (news->live.env_steps > 0 && news->live.env_steps != p->live[i].env_steps)) {
        p->changed[i] = version;
        *ret_changed = true;
    }
    if (now->state == TRIAL_RUNNING)
        p->live[i] = news->live;
    (void)!study_view_put(&p->view, i, now, NULL); /* one without usable parameters is shown all the same */
    return differs;
}

void page_study_apply(struct page_study *p, struct page_news *news, int64_t version, bool *ret_changed)
{
    bool trials_changed = false;

    *ret_changed = study_differs(&p->view.study, &news->study);
    study_free(&p->view.study);
    p->view.study = news->study;
    news->study = (struct study){0};
    for (size_t k = 0; k < news->n; k++)
        trials_changed |= apply_trial(p, &news->trials[k], version, ret_changed);
    free_news(news);
    if (trials_changed)
        judge_all(p, version);
    if (*ret_changed)
        p->version = version;
}

/* The game's name stands in the study's config; only that line is looked for, so that an odd config cannot hide a
 * study. */
static void find_env_name(const char *config, char *buf, size_t size)
{
    bool in_env = false;

    buf[0] = '\0';
    for (const char *line = config; line != NULL && *line != '\0';) {
        size_t n = strcspn(line, "\n");
        if (line[0] == '[')
            in_env = strncmp(line, "[env]", 5) == 0;
        else if (strncmp(line, "command = ", 10) == 0 && n > 10 && !(n == 12 && line[10] == '"'))
            snprintf(buf, size, "%s", program_env.name); /* of [sweep]: another program trains */
        else if (in_env && strncmp(line, "name = ", 7) == 0) {
            size_t at = 7, end = n;
            if (line[at] == '"' && end > at + 1) /* has a ; or # */
                at++, end--;
            if (end > at + 3 && strncmp(line + end - 3, ".so", 3) == 0) { /* a library: dir/my_game.so is my_game */
                end -= 3;
                for (size_t i = at; i < end; i++)
                    at = line[i] == '/' ? i + 1 : at;
            }
            snprintf(buf, size, "%.*s", (int)(end - at), line + at);
        }
        line += n + (line[n] == '\n');
    }
}

static enum status read_first(struct page_study *p, struct store *store, int64_t version, struct error *err)
{
    struct page_news news;
    bool changed;

    find_env_name(p->view.study.config, p->env, sizeof p->env);
    TRY(page_study_read(p, store, &p->view.study, &news, err)); /* which comes back with the news */
    page_study_apply(p, &news, version, &changed);
    judge_all(p, version);
    return ST_OK;
}

enum status page_study_create(struct page_study **ret_study, struct store *store, struct study *study, int64_t version,
                              struct error *err)
{
    struct page_study *p = mem_alloc(sizeof *p);
    char name[128];

    *ret_study = NULL;
    p->hypervolume = NAN;
    p->settled = p->version = version;
    snprintf(name, sizeof name, "%s", study->name);
    enum status rc = study_view_begin(study, store_path(store), &p->view, err);
    THEN(rc, read_first(p, store, version, err));
    if (rc != ST_OK) {
        error_prefix(err, "study %s", name);
        page_study_free(p);
        return rc;
    }
    *ret_study = p;
    return ST_OK;
}

const char *page_study_state(const struct page_study *p, bool has_writer)
{
    const struct study *study = &p->view.study;

    if (study->state == STUDY_ENDED)
        return "ended";
    if (study->state == STUDY_PAUSED)
        return "paused";
    if (study->limits.trials_max > 0 && p->count[TRIAL_RUNNING] + p->count[TRIAL_QUEUED] == 0 &&
        (int64_t)study_view_n_runs(&p->view) >= study->limits.trials_max)
        return "ended";
    if (p->count[TRIAL_RUNNING] > 0)
        return p->has_controller ? "running" : "interrupted";
    return has_writer ? "waiting" : "idle";
}

static void add_devices(cJSON *json, const struct study_view *v)
{
    cJSON *list = cJSON_AddArrayToObject(json, "devices"), *item;

    for (size_t i = v->n; i-- > 0;) {
        const char *device = v->trials[i].device;
        bool known = device == NULL || cJSON_GetArraySize(list) >= 16;
        cJSON_ArrayForEach(item, list) known = known || strcmp(item->valuestring, device) == 0;
        if (!known)
            cJSON_AddItemToArray(list, cJSON_CreateString(device));
    }
}

static void add_trial(cJSON *json, const char *key, const struct page_study *p, size_t i)
{
    if (i < p->view.n)
        json_add_i64(json, key, (int64_t)i);
    else
        json_add_str(json, key, NULL);
}

/* The best, and what is expected of it. */
static void add_best(cJSON *json, const struct page_study *p)
{
    const struct study_view *v = &p->view;
    struct promise promise = {.score = NAN, .lo = NAN, .hi = NAN};
    size_t run = p->best_run;

    if (p->best < v->n)
        study_view_promise(v, p->best, &promise);
    add_trial(json, "best_trial", p, p->best);
    json_add_f64(json, "best_score", promise.score);
    json_add_f64(json, "best_lo", promise.lo);
    json_add_f64(json, "best_hi", promise.hi);
    json_add_i64(json, "best_seeds", (int64_t)promise.n_seeds);
    add_trial(json, "best_run_trial", p, run);
    json_add_f64(json, "best_run_score", run < v->n ? study_view_run_score(v, run) : (double)NAN);
}

/* A limit, or a time, that is null when it is 0. */
static void add_limit(cJSON *json, const char *key, double limit)
{
    json_add_f64(json, key, limit > 0 ? limit : (double)NAN);
}

cJSON *page_study_counts(const struct page_study *p)
{
    cJSON *counts = cJSON_CreateObject();

    for (int i = 0; i < TRIAL_STATES; i++)
        json_add_i64(counts, trial_state_name((enum trial_state)i), p->count[i]);
    return counts;
}

/* From any directory. */
static void add_resume_command(cJSON *json, const struct study_view *v)
{
    STRBUF(command, JSON_MAX_BYTES);

    study_resume_command(v, v->store_path, &command);
    json_add_str(json, "resume_command", command.text);
}

cJSON *page_study_summary(const struct page_study *p, bool has_writer)
{
    const struct study_view *v = &p->view;
    const struct study *st = &v->study;
    cJSON *json = cJSON_CreateObject();

    json_add_str(json, "name", st->name);
    json_add_str(json, "state", page_study_state(p, has_writer));
    json_add_str(json, "end_rule", st->end_rule);
    json_add_str(json, "end_text", st->end_text);
    json_add_str(json, "method", st->method);
    json_add_str(json, "metric", st->metric);
    json_add_str(json, "direction", study_direction(st));
    json_add_str(json, "env", p->env);
    json_add_str(json, "cost_unit", study_cost_unit(v->search.cost));
    json_add(json, "counts", page_study_counts(p));
    json_add_i64(json, "trials", (int64_t)v->n);
    json_add_i64(json, "branches", (int64_t)v->n_branches);
    add_limit(json, "trials_max", (double)st->limits.trials_max);
    add_limit(json, "budget_s", st->limits.budget_s);
    add_limit(json, "wall_max_s", st->limits.wall_max_s);
    json_add_f64(json, "wall_used_s", st->wall_used_s);
    add_limit(json, "device_max_s", st->limits.device_max_s);
    json_add_f64(json, "target_score", st->limits.has_target ? st->limits.target_score : (double)NAN);
    json_add_i64(json, "priority", st->limits.priority);
    json_add_f64(json, "cost_s", p->cost_s);
    add_best(json, p);
    add_trial(json, "knee_trial", p, p->knee);
    json_add_i64(json, "confirming", (int64_t)p->n_confirming);
    json_add_i64(json, "n_front", (int64_t)p->n_front);
    json_add_f64(json, "hypervolume", p->hypervolume);
    add_devices(json, v);
    json_add_i64(json, "seed", st->seed);
    json_add_str(json, "program", st->program);
    json_add_str(json, "note", st->note);
    json_add_str(json, "tags", st->tags);
    add_limit(json, "created_ms", (double)st->created_ms);
    add_limit(json, "started_ms", (double)p->started_ms);
    add_limit(json, "finished_ms", (double)p->finished_ms);
    json_add_i64(json, "promise_seeds", GP_PROMISE_SEEDS);
    add_resume_command(json, v);
    json_add_i64(json, "version", p->version);
    return json;
}
