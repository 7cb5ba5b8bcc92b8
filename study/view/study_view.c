/* study_view.c - a study as loaded from the store: trials, their points, history as the model sees it, front.
 * Invariants: (1) x, gp and on_front have one row a trial, in order of number; (2) scores in gp are higher-is-better;
 * (3) a point never moves, so that others may hold on to it: points lie in blocks of POINTS_BLOCK. */
#include "study/view/study_view.h"

#include "base/text/duration.h"
#include "study/program/program_settings.h"
#include "study/view/promise.h"
#include "study/setup/setup.h"

#define COST_MIN 1e-6 /* a run too short for the clock */
#define POINTS_BLOCK 64

double study_trial_cost(enum search_cost kind, const struct trial *trial)
{
    if (kind == SEARCH_COST_STEPS)
        return trial->env_steps > 0 || trial->state >= TRIAL_DONE ? (double)trial->env_steps : NAN;
    return kind == SEARCH_COST_DEVICE || kind == SEARCH_COST_OWN ? trial->device_s : trial->cost_s;
}

bool study_cost_is_time(enum search_cost kind)
{
    return kind == SEARCH_COST_WALL || kind == SEARCH_COST_DEVICE;
}

const char *study_cost_unit(enum search_cost kind)
{
    return kind == SEARCH_COST_STEPS ? "steps" : kind == SEARCH_COST_OWN ? "own" : "s";
}

double study_view_trial_cost(const struct study_view *view, const struct trial *trial)
{
    return study_trial_cost(view->search.cost, trial);
}

double study_view_score(const struct study_view *view, double gp_score)
{
    return view->study.maximize ? gp_score : -gp_score;
}

double study_view_run_score(const struct study_view *view, size_t i)
{
    return study_view_score(view, view->gp[i].score);
}

const char *study_direction(const struct study *study)
{
    return study->maximize ? "maximize" : "minimize";
}

bool study_better(const struct study *study, double a, double b)
{
    return isnan(b) ? !isnan(a) : study->maximize ? a > b : a < b;
}

bool trial_is_confirming(const struct trial *trial)
{
    return trial->origin != NULL && strcmp(trial->origin, CONFIRM_ORIGIN) == 0;
}

/* Is its origin this word and the number of a trial? */
static bool origin_names(const struct trial *trial, const char *word, int64_t *ret_number)
{
    size_t n = strlen(word);

    return trial->origin != NULL && strncmp(trial->origin, word, n) == 0 && trial->origin[n] == ' ' &&
           num_parse_i64(trial->origin + n + 1, ret_number);
}

bool trial_extends(const struct trial *trial, int64_t *ret_number)
{
    return origin_names(trial, EXTENDS_ORIGIN, ret_number);
}

bool trial_is_branch(const struct trial *trial, int64_t *ret_number)
{
    int64_t number;

    return origin_names(trial, TRIAL_BRANCH, ret_number != NULL ? ret_number : &number);
}

bool trial_is_seed(const struct trial *trial)
{
    return trial->origin != NULL && strcmp(trial->origin, SEED_ORIGIN) == 0;
}

bool trial_is_further(const struct trial *trial)
{
    return trial_is_seed(trial) || trial_is_branch(trial, NULL) ||
           (trial->origin != NULL && strcmp(trial->origin, ENV_ORIGIN) == 0);
}

const char *study_view_env(const struct study_view *view, size_t i)
{
    return view->search.envs.n > 0 ? view->search.envs.names[view->env[i]] : NULL;
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
    char number[NUM_TEXT_MAX];

    if (study_cost_is_time(kind) && isfinite(cost))
        return format_seconds(cost, buf);
    if (kind == SEARCH_COST_OWN && isfinite(cost))
        snprintf(buf, 32, "%.24s", num_format_short(cost, number));
    else if (cost > 0)
        snprintf(buf, 32, "%.24s steps", num_format_short(cost, number));
    else
        strcpy(buf, "-");
    return buf;
}

/* A finished trial with all that counts of it. */
static enum gp_trial_state judge_done(const struct outcomes *outcomes, const struct gp_trial *row)
{
    if (outcomes->third[0] != '\0' && !isfinite(row->third))
        return GP_TRIAL_FAILED;
    return outcomes_are_kept(outcomes, row) ? GP_TRIAL_DONE : GP_TRIAL_INFEASIBLE;
}

void study_judge(const struct study *study, const struct search *search, const struct trial *t,
                 struct gp_trial *ret_row)
{
    double cost = study_trial_cost(search->cost, t);
    bool usable = fabs(t->score) <= STUDY_SCORE_MAX && isfinite(cost) && cost >= 0; /* NaN is not */

    ret_row->score = usable ? (study->maximize ? t->score : -t->score) : NAN;
    ret_row->score_se = t->score_se;
    ret_row->cost = usable ? fmax(cost, COST_MIN) : NAN; /* its logarithm is needed */
    outcomes_judge(&search->outcomes, t->outcomes, ret_row);
    if (t->dropped != NULL) {
        ret_row->state = GP_TRIAL_DROPPED;
        return;
    }
    switch (t->state) {
    case TRIAL_DONE:
        ret_row->state = usable ? judge_done(&search->outcomes, ret_row) : GP_TRIAL_FAILED;
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

/* Sets the bounds of this study's scores. */
static void score_bounds(const struct study *study, struct gp_history *history)
{
    if (study->space != NULL && strstr(study->space, "\"key\":\"" PROGRAM_SECTION ".") != NULL)
        return; /* a program's metric, whatever its name */
    for (size_t i = 0; i < train_n_metric_defs; i++) /* the table of metrics marks those that are shares */
        if (study->metric != NULL && strcmp(study->metric, train_metric_defs[i].name) == 0)
            history->has_score_bounds = strcmp(train_metric_defs[i].unit, "0..1") == 0;
    history->score_min = study->maximize ? 0 : -1;
    history->score_max = study->maximize ? 1 : 0;
}

static void fill_row(struct study_view *view, size_t i)
{
    study_judge(&view->study, &view->search, &view->trials[i], &view->gp[i]);
    view->gp[i].x = view->x[i];
    view->gp[i].is_branch = trial_is_branch(&view->trials[i], NULL);
    view->gp[i].is_start = view->trials[i].origin != NULL && strcmp(view->trials[i].origin, SUGGEST_START_ORIGIN) == 0;
}

static void judge_front(struct study_view *view)
{
    for (size_t i = 0; i < view->n; i++) {
        bool has_belief = study_view_belief(view, i) != NULL;
        view->on_front[i] =
            has_belief ? gp_is_shown_on_front(&view->advice, i) : view->advice.beliefs == NULL && view->front_run[i];
        if (view->gp[i].state != GP_TRIAL_DONE)
            view->on_front[i] = false; /* dropped or over a limit: also while the advice is older */
    }
}

bool study_view_breaks_limit(const struct study_view *view, size_t i)
{
    const struct gp_belief *belief = study_view_belief(view, i);

    return view->gp[i].state == GP_TRIAL_INFEASIBLE ||
           (view->gp[i].state == GP_TRIAL_DONE && belief != NULL && belief->breaks_limit);
}

void study_view_explain_limit(const struct study_view *view, size_t i, char *buf, size_t size)
{
    buf[0] = '\0';
    if (view->gp[i].state == GP_TRIAL_INFEASIBLE)
        outcomes_explain(&view->search.outcomes, &view->gp[i], buf, size);
    else if (study_view_breaks_limit(view, i))
        snprintf(buf, size, "the mean of this config's runs breaks a limit");
}

bool study_view_has_third(const struct study_view *view)
{
    return view->search.outcomes.third[0] != '\0';
}

double study_view_third(const struct study_view *view, size_t i)
{
    enum gp_trial_state state = view->gp[i].state;

    if (!study_view_has_third(view) || (state != GP_TRIAL_DONE && state != GP_TRIAL_INFEASIBLE))
        return NAN;
    return outcomes_third(&view->search.outcomes, view->gp[i].third);
}

double study_view_expected_third(const struct study_view *view, size_t i)
{
    const struct gp_belief *belief = study_view_belief(view, i);

    return study_view_has_third(view) && belief != NULL ? outcomes_third(&view->search.outcomes, belief->third)
                                                        : study_view_third(view, i);
}

size_t study_view_count_infeasible(const struct study_view *view)
{
    size_t n = 0;

    for (size_t i = 0; i < view->n; i++)
        n += study_view_breaks_limit(view, i);
    return n;
}

void study_view_judge(struct study_view *view)
{
    for (size_t i = 0; i < view->n; i++)
        fill_row(view, i);
    view->advice_stale = true;
    study_view_refresh(view);
}

static void refresh_history(struct study_view *view)
{
    view->history.n = view->n;
    view->history.trials = view->gp;
    view->history.has_third = view->search.outcomes.third[0] != '\0';
    view->history.n_limits = view->search.outcomes.n_limits;
    view->history.limits = view->search.outcomes.bounds;
}

void study_view_refresh(struct study_view *view)
{
    refresh_history(view);
    view->missing.of = view->n;
    if (view->search.envs.n > 0) {
        for (size_t i = 0; i < view->n; i++)
            fill_row(view, i);
        rounds_judge(view->gp, view->env, view->n, view->search.envs.n, view->search.space.dim, &view->missing);
    }
    pareto_front(&view->history, NULL, view->front_run);
    judge_front(view);
    pareto_reference(&view->history, &view->ref);
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
    view->has_insight = false;
    judge_front(view);
}

enum status study_view_check_points(const struct study_view *view, struct error *err)
{
    for (size_t i = 0; i < view->n; i++)
        for (size_t k = 0; k < view->search.space.dim; k++)
            if (!isfinite(view->x[i][k]))
                return FAIL(err, ST_CORRUPT, "trial %zu of %s has no usable parameters", i, view->study.name);
    return ST_OK;
}

enum status study_view_compute_advice(const struct study_view *view, struct gp_insight *ret, struct error *err)
{
    struct gp_history history = view->history;

    TRY(study_view_check_points(view, err));
    history.n_other = 0; /* not every reader has them, and all must conclude the same */
    gp_beliefs_init(ret, &view->search.space, &history);
    return ST_OK;
}

enum status study_view_advise(struct study_view *view, struct error *err)
{
    struct gp_insight advice = {0};

    if (view->n == 0 || (view->advice.n == view->n && !view->advice_stale))
        return ST_OK;
    TRY(study_view_compute_advice(view, &advice, err));
    study_view_take_advice(view, &advice);
    view->advice_stale = false;
    return ST_OK;
}

bool study_view_same_point(const struct study_view *view, size_t a, size_t b)
{
    return memcmp(view->x[a], view->x[b], view->search.space.dim * sizeof **view->x) == 0;
}

/* Makes the place of the point of trial i; those before it have theirs. */
static void add_point(struct study_view *view, size_t i)
{
    size_t dim = view->search.space.dim;

    view->x[i] = i % POINTS_BLOCK == 0 ? mem_array2(POINTS_BLOCK, dim, sizeof **view->x) : view->x[i - 1] + dim;
}

void study_view_reserve(struct study_view *view, size_t n)
{
    if (n <= view->cap)
        return;
    view->trials = mem_grow(view->trials, view->n, n, sizeof *view->trials);
    view->x = mem_grow(view->x, view->n, n, sizeof *view->x);
    view->gp = mem_grow(view->gp, view->n, n, sizeof *view->gp);
    view->on_front = mem_grow(view->on_front, view->n, n, sizeof *view->on_front);
    view->env = mem_grow(view->env, view->n, n, sizeof *view->env);
    view->front_run = mem_grow(view->front_run, view->n, n, sizeof *view->front_run);
    view->cap = n;
    view->history.trials = view->gp;
}

static void reserve_one(struct study_view *view)
{
    if (view->n == view->cap)
        study_view_reserve(view, view->cap < 32 ? 64 : 2 * view->cap);
}

enum status study_view_put(struct study_view *view, size_t i, struct trial *trial, struct error *err)
{
    enum status rc = ST_OK;

    if (i == view->n) {
        reserve_one(view);
        add_point(view, i);
        rc = search_point(&view->search, trial->params, view->x[i], err);
        view->env[i] = search_env(&view->search, trial->params);
        view->on_front[i] = view->front_run[i] = false;
        view->n_branches += trial_is_branch(trial, NULL);
        view->n++;
    } else {
        trial_free(&view->trials[i]); /* the same trial: its point stays */
    }
    view->trials[i] = *trial;
    memset(trial, 0, sizeof *trial);
    view->advice_stale = true;
    fill_row(view, i);
    return rc;
}

static enum status load_trials(struct store *store, struct study_view *view, struct error *err)
{
    struct trial *trials = NULL;
    size_t n = 0;

    TRY(store_trial_list(store, view->study.id, &trials, &n, err));
    study_view_reserve(view, n);
    enum status rc = ST_OK;
    for (size_t i = 0; rc == ST_OK && i < n; i++)
        rc = study_view_put(view, i, &trials[i], err);
    trial_list_free(trials, n);
    TRY(rc);
    view->advice_stale = false;
    study_view_refresh(view);
    return ST_OK;
}

enum status study_view_begin(struct study *study, const char *store_path, struct study_view *ret, struct error *err)
{
    char absolute[PATH_MAX];

    memset(ret, 0, sizeof *ret);
    ret->study = *study;
    memset(study, 0, sizeof *study);
    ret->store_path = mem_strdup(realpath(store_path, absolute) != NULL ? absolute : store_path);
    score_bounds(&ret->study, &ret->history);
    return search_from_json(ret->study.space, &ret->search, err);
}

enum status study_view_load(struct store *store, const char *name, struct study_view *ret_view, struct error *err)
{
    struct study study;

    memset(ret_view, 0, sizeof *ret_view);
    TRY(store_study_find(store, name, &study, err));
    enum status rc = study_view_begin(&study, store_path(store), ret_view, err);
    THEN(rc, load_trials(store, ret_view, err));
    if (rc != ST_OK)
        study_view_free(ret_view);
    return rc;
}

enum status study_view_open(const char *path, const char *name, struct study_view *ret_view, struct error *err)
{
    AT_END(store_close_at) struct store *store = NULL;

    memset(ret_view, 0, sizeof *ret_view);
    TRY(store_open_reader(&store, path, err));
    return study_view_load(store, name, ret_view, err);
}

enum status study_view_setup(struct study_view *view, struct setup **ret_setup, struct error *err)
{
    char origin[160];

    snprintf(origin, sizeof origin, "study %.120s", view->study.name);
    if (view->setup == NULL)
        TRY(setup_from_text(&view->setup, origin, view->study.config, err));
    *ret_setup = view->setup;
    return ST_OK;
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
    mem_free(view->env);
    gp_insight_free(&view->advice);
    mem_free(view->other);
    mem_free(view->other_x);
    mem_free(view->store_path);
    setup_destroy(view->setup);
    search_free(&view->search);
    study_free(&view->study);
    memset(view, 0, sizeof *view);
}

void study_view_append(struct study_view *view, struct trial *trial, const double *x)
{
    reserve_one(view);
    add_point(view, view->n);
    view->on_front[view->n] = view->front_run[view->n] = false;
    view->gp[view->n].state = GP_TRIAL_PENDING;
    memcpy(view->x[view->n], x, view->search.space.dim * sizeof *x);
    view->env[view->n] = search_env(&view->search, trial->params);
    view->trials[view->n] = *trial;
    view->n_branches += trial_is_branch(trial, NULL);
    memset(trial, 0, sizeof *trial);
    view->n++;
    study_view_update(view, view->n - 1);
}

/* A trial that has just finished joins the front of the others: to find it again among ten thousand takes 100 times as
 * long. */
void study_view_update(struct study_view *view, size_t i)
{
    bool was_done = view->gp[i].state == GP_TRIAL_DONE;

    fill_row(view, i);
    view->advice_stale = true;
    if (was_done || view->search.envs.n > 0) {
        study_view_refresh(view);
        return;
    }
    refresh_history(view);
    view->missing.of = view->n;
    if (view->gp[i].state != GP_TRIAL_DONE)
        return;
    pareto_front_add(&view->history, i, view->front_run);
    judge_front(view);
    pareto_reference(&view->history, &view->ref);
}

enum status study_view_find(const struct study_view *view, int64_t number, size_t *ret_i, struct error *err)
{
    if (number < 0 || (uint64_t)number >= view->n)
        return FAIL(err, ST_NOTFOUND, "the study %s has no trial %lld, its trials are 0 to %zu", view->study.name,
                    (long long)number, view->n > 0 ? view->n - 1 : 0);
    *ret_i = (size_t)number;
    return ST_OK;
}

size_t study_view_best_run(const struct study_view *view)
{
    size_t best = view->n;

    for (size_t i = 0; i < view->n; i++) {
        const struct gp_trial *t = &view->gp[i], *b = &view->gp[best < view->n ? best : i];
        if (t->state == GP_TRIAL_DONE && !study_view_breaks_limit(view, i) &&
            (best == view->n || t->score > b->score || (t->score == b->score && t->cost < b->cost)))
            best = i;
    }
    return best;
}

size_t study_view_pick(const struct study_view *view, enum gp_rule rule)
{
    struct gp_insight none = {.n = view->n, .recommended = view->n, .note = "no advice yet"};
    const struct gp_insight *advice = &view->advice;
    struct gp_history history = view->history;

    if (advice->n == 0)
        advice = &none;
    history.n = advice->n; /* in a sweep that runs, advice is of the trials of a moment ago */
    size_t i = gp_pick(advice, &history, rule, 0).i;
    return i < history.n ? i : view->n;
}

void study_view_promise_of_runs(const struct study_view *view, size_t i, struct promise *ret)
{
    double sum = 0;
    size_t n = 0;

    promise_make(NULL, &view->gp[i], &view->trials[i], view->study.maximize, ret);
    for (size_t k = 0; k < view->n; k++)
        if (view->gp[k].state == GP_TRIAL_DONE && study_view_same_point(view, k, i)) {
            sum += study_view_score(view, view->gp[k].score);
            n++;
        }
    ret->n_seeds = n;
    ret->mean = n > 0 ? sum / (double)n : ret->mean;
}

void study_view_promise(const struct study_view *view, size_t i, struct promise *ret)
{
    const struct gp_belief *belief = study_view_belief(view, i);

    if (belief == NULL)
        study_view_promise_of_runs(view, i, ret);
    else
        promise_make(belief, &view->gp[i], &view->trials[i], view->study.maximize, ret);
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
        if (isfinite(view->trials[i].cost_s) && !view->gp[i].is_branch) /* whose run pays */
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

size_t study_view_runs(const struct study_view *view, size_t i)
{
    size_t n = 0;

    for (size_t k = 0; k < view->n; k++)
        n += view->gp[k].state != GP_TRIAL_PENDING && view->gp[k].state != GP_TRIAL_DROPPED &&
             study_view_same_point(view, k, i);
    return n;
}
