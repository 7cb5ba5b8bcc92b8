/* study_view.c - a study as loaded from the store: trials, their points, history as the model sees it, front.
 * Invariants: (1) x, gp and on_front have one row a trial, in order of number; (2) scores in gp are higher-is-better;
 * (3) a point never moves, so that others may hold on to it: points lie in blocks of POINTS_BLOCK. */
#include "study/study_view.h"

#include "base/duration.h"
#include "base/mem.h"
#include "base/num.h"
#include "store/store.h"
#include "study/export.h"
#include "trainer/trainer.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define COST_MIN 1e-6 /* a run too short for the clock */
#define POINTS_BLOCK 64

double study_trial_cost(enum search_cost kind, const struct trial *trial)
{
    if (kind == SEARCH_COST_STEPS)
        return (double)trial->env_steps;
    return kind == SEARCH_COST_DEVICE ? trial->device_s : trial->cost_s;
}

double study_view_trial_cost(const struct study_view *view, const struct trial *trial)
{
    return study_trial_cost(view->search.cost, trial);
}

bool trial_is_confirming(const struct trial *trial)
{
    return trial->origin != NULL && strcmp(trial->origin, CONFIRM_ORIGIN) == 0;
}

void study_view_param_text(const struct study_view *view, size_t i, size_t k, char *buf, size_t size)
{
    const struct trial *t = &view->trials[i];
    bool is_length = strcmp(view->search.space.params[k].key, "train.total_timesteps") == 0;
    bool has_run = t->state == TRIAL_DONE && t->env_steps > 0;

    if (!space_is_active(&view->search.space, k, view->x[i]))
        snprintf(buf, size, "-");
    else
        search_show(&view->search, k, is_length && has_run ? (double)t->env_steps : view->x[i][k], buf, size);
}

const char *study_view_cost_text(const struct study_view *view, double cost, char *buf)
{
    return study_cost_text(view->search.cost, cost, buf);
}

const char *study_cost_text(enum search_cost kind, double cost, char *buf)
{
    char steps[NUM_TEXT_MAX];

    if (kind != SEARCH_COST_STEPS && isfinite(cost))
        return format_seconds(cost, buf);
    if (cost > 0)
        snprintf(buf, 32, "%.24s steps", num_format_short(cost, steps));
    else
        strcpy(buf, "-");
    return buf;
}

void study_judge(const struct study *study, enum search_cost cost_kind, const struct trial *t, struct gp_trial *ret_row)
{
    double cost = study_trial_cost(cost_kind, t);
    bool usable = isfinite(t->score) && isfinite(cost) && cost >= 0;

    ret_row->score = usable ? (study->maximize ? t->score : -t->score) : NAN;
    ret_row->score_se = t->score_se;
    ret_row->cost = usable ? fmax(cost, COST_MIN) : NAN; /* its logarithm is needed */
    switch (t->state) {
    case TRIAL_DONE:
        ret_row->state = usable ? GP_TRIAL_DONE : GP_TRIAL_FAILED;
        break;
    case TRIAL_STOPPED:
        ret_row->state = usable ? GP_TRIAL_STOPPED : GP_TRIAL_FAILED;
        break;
    case TRIAL_QUEUED:
    case TRIAL_RUNNING:
        ret_row->state = GP_TRIAL_PENDING;
        break;
    default:
        ret_row->state = GP_TRIAL_FAILED;
    }
}

void study_score_bounds(const struct study *study, struct gp_history *history)
{
    for (size_t i = 0; i < train_n_metric_defs; i++) /* the table of metrics marks those that are shares */
        if (study->metric != NULL && strcmp(study->metric, train_metric_defs[i].name) == 0)
            history->has_score_bounds = strcmp(train_metric_defs[i].unit, "0..1") == 0;
    history->score_min = study->maximize ? 0 : -1;
    history->score_max = study->maximize ? 1 : 0;
}

static void fill_row(struct study_view *view, size_t i)
{
    study_judge(&view->study, view->search.cost, &view->trials[i], &view->gp[i]);
    view->gp[i].x = view->x[i];
}

static void judge_front(struct study_view *view)
{
    for (size_t i = 0; i < view->n; i++) {
        bool has_belief = study_view_belief(view, i) != NULL;
        view->on_front[i] =
            has_belief ? gp_is_shown_on_front(&view->advice, i) : view->advice.beliefs == NULL && view->front_run[i];
    }
}

static enum status update_front(struct study_view *view, struct error *err)
{
    view->history.n = view->n;
    view->history.trials = view->gp;
    TRY(pareto_front(&view->history, NULL, view->front_run, err));
    judge_front(view);
    pareto_reference(&view->history, &view->ref);
    return ST_OK;
}

const struct gp_belief *study_view_belief(const struct study_view *view, size_t i)
{
    return view->advice.beliefs != NULL && i < view->advice.n ? &view->advice.beliefs[i] : NULL;
}

void study_view_take_advice(struct study_view *view, struct gp_insight *advice)
{
    gp_insight_free(&view->advice);
    view->advice = *advice;
    *advice = (struct gp_insight){0};
    judge_front(view);
}

enum status study_view_advise(struct study_view *view, struct error *err)
{
    struct gp_insight advice = {0};
    struct gp_history history = view->history;

    if (view->n == 0 || (view->advice.n == view->n && !view->advice_stale))
        return ST_OK;
    history.n_other = 0; /* not every reader has them, and all must conclude the same */
    TRY(gp_beliefs_init(&advice, &view->search.space, &history, err));
    study_view_take_advice(view, &advice);
    view->advice_stale = false;
    return ST_OK;
}

bool study_view_same_point(const struct study_view *view, size_t a, size_t b)
{
    return memcmp(view->x[a], view->x[b], view->search.space.dim * sizeof **view->x) == 0;
}

/* Room for the point of trial i; those before it have theirs. */
static enum status add_point(struct study_view *view, size_t i, struct error *err)
{
    size_t dim = view->search.space.dim;

    view->x[i] = i % POINTS_BLOCK == 0 ? mem_array2(POINTS_BLOCK, dim, sizeof **view->x) : view->x[i - 1] + dim;
    return view->x[i] != NULL ? ST_OK : FAIL(err, ST_NOMEM, "out of memory for a study of %zu trials", i + 1);
}

/* Room for n rows beside the trials; what is there is kept. */
static enum status grow(struct study_view *view, size_t n, struct error *err)
{
    double **x = mem_grow(view->x, view->n, n, sizeof *x);
    struct gp_trial *gp;
    bool *front, *run;

    if (x == NULL)
        goto fail;
    view->x = x;
    gp = mem_grow(view->gp, view->n, n, sizeof *gp);
    if (gp == NULL)
        goto fail;
    view->gp = gp;
    front = mem_grow(view->on_front, view->n, n, sizeof *front);
    if (front == NULL)
        goto fail;
    view->on_front = front;
    run = mem_grow(view->front_run, view->n, n, sizeof *run);
    if (run == NULL)
        goto fail;
    view->front_run = run;
    return ST_OK;
fail:
    return FAIL(err, ST_NOMEM, "out of memory for a study of %zu trials", n);
}

static enum status load_trials(struct store *store, struct study_view *view, struct error *err)
{
    struct trial *trials = NULL;
    size_t n = 0;
    enum status rc = store_trial_list(store, view->study.id, &trials, &n, err);

    if (rc == ST_OK)
        rc = grow(view, n > 0 ? n : 1, err);
    if (rc != ST_OK) {
        trial_list_free(trials, n);
        return rc;
    }
    view->trials = trials;
    view->n = n;
    view->cap = n;
    for (size_t i = 0; i < n; i++) {
        TRY(add_point(view, i, err));
        TRY(search_point(&view->search, trials[i].params, view->x[i], err));
        fill_row(view, i);
    }
    return update_front(view, err);
}

enum status study_view_load(struct store *store, const char *name, struct study_view *ret_view, struct error *err)
{
    enum status rc;

    memset(ret_view, 0, sizeof *ret_view);
    rc = store_study_find(store, name, &ret_view->study, err);
    if (rc == ST_OK)
        rc = search_from_json(ret_view->study.space, &ret_view->search, err);
    study_score_bounds(&ret_view->study, &ret_view->history);
    if (rc == ST_OK)
        rc = load_trials(store, ret_view, err);
    if (rc != ST_OK)
        study_view_free(ret_view);
    return rc;
}

void study_view_free(struct study_view *view)
{
    for (size_t i = 0; view->x != NULL && i < view->n; i += POINTS_BLOCK)
        mem_free(view->x[i]);
    trial_list_free(view->trials, view->n);
    mem_free(view->x);
    mem_free(view->gp);
    mem_free(view->on_front);
    mem_free(view->front_run);
    gp_insight_free(&view->advice);
    mem_free(view->other);
    mem_free(view->other_x);
    search_free(&view->search);
    study_free(&view->study);
    memset(view, 0, sizeof *view);
}

enum status study_view_reserve(struct study_view *view, size_t n, struct error *err)
{
    struct trial *trials;

    if (n <= view->cap)
        return ST_OK;
    trials = mem_grow(view->trials, view->n, n, sizeof *trials);
    if (trials == NULL)
        return FAIL(err, ST_NOMEM, "out of memory for a study of %zu trials", n);
    view->trials = trials;
    TRY(grow(view, n, err));
    view->cap = n;
    view->history.trials = view->gp;
    return ST_OK;
}

enum status study_view_append(struct study_view *view, struct trial *trial, const double *x, struct error *err)
{
    if (view->n == view->cap)
        TRY(study_view_reserve(view, view->cap < 32 ? 64 : 2 * view->cap, err));
    TRY(add_point(view, view->n, err));
    memcpy(view->x[view->n], x, view->search.space.dim * sizeof *x);
    view->trials[view->n] = *trial;
    memset(trial, 0, sizeof *trial);
    view->n++;
    return study_view_update(view, view->n - 1, err);
}

enum status study_view_update(struct study_view *view, size_t i, struct error *err)
{
    fill_row(view, i);
    view->advice_stale = true;
    return update_front(view, err);
}

size_t study_view_best_run(const struct study_view *view)
{
    return best_run(&view->history);
}

size_t study_view_pick(const struct study_view *view, enum gp_rule rule)
{
    struct gp_picked picked;
    struct gp_insight none = {.n = view->n, .recommended = view->n, .note = "no advice yet"};
    const struct gp_insight *advice = &view->advice;
    struct gp_history history = view->history;

    if (advice->n == 0)
        advice = &none;
    history.n = advice->n; /* in a sweep that runs, advice is of the trials of a moment ago */
    if (gp_pick(advice, &history, rule, 0, &picked, NULL) != ST_OK || picked.i >= history.n)
        return view->n;
    return picked.i;
}

void study_view_promise(const struct study_view *view, size_t i, struct promise *ret_promise)
{
    export_promise(&view->study, &view->advice, &view->history, &view->trials[i], i, ret_promise);
}

int64_t study_view_count(const struct study_view *view, enum trial_state state)
{
    int64_t n = 0;

    for (size_t i = 0; i < view->n; i++)
        n += view->trials[i].state == state;
    return n;
}

size_t study_view_front_size(const struct study_view *view)
{
    size_t n = 0;

    for (size_t i = 0; i < view->n; i++)
        n += view->on_front[i];
    return n;
}

double study_view_cost(const struct study_view *view)
{
    double sum = 0;

    for (size_t i = 0; i < view->n; i++)
        if (isfinite(view->trials[i].cost_s))
            sum += view->trials[i].cost_s;
    return sum;
}

size_t study_view_first_run(const struct study_view *view, int64_t number)
{
    size_t i = (size_t)number, k = 0;

    while (k < i && i < view->n && !study_view_same_point(view, k, i))
        k++;
    return k;
}
