/* controller.c - decides which trial runs next and records what came of it.
 * Invariants: (1) a trial's row exists, then is running, before the worker hears of it; (2) a finished row never changes;
 * (3) limits are totals of the study, counted from the store; (4) whatever a worker does costs its trial, not the sweep. */
#include "sweep/control.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/rng.h"

#define MAX_WORKER_DEATHS 5 /* in a row: the cause is not the trial */
#define STOP_PATIENCE_S 20 /* how long a worker may take to obey */
#define MAX_POINTS 64
#define TICK_MS 200

/* What became of the trial in flight. */
struct outcome {
    struct trial_result result;
    char reason[ERROR_TEXT_MAX];
    bool requeue; /* stopped by the user: it runs again on resume */
    bool died;
    bool early; /* told to stop because it is of no use; reason says why */
    bool lost; /* the worker cannot use its device any more and ends */
    double start_s; /* when training began; before that, when the trial was handed over */
};

static int64_t trial_seed(int64_t study_seed, int64_t number)
{
    return (int64_t)(rng_split(rng_seed((uint64_t)study_seed), (uint64_t)number).key & 0x7fffffff);
}

/* The whole config of a new trial at x. */
static enum status trial_config(struct controller *c, const double *x, int64_t seed, char **ret_text, struct error *err)
{
    const struct search *search = &c->view->search;
    struct setup_override overrides[SPACE_MAX_DIM + 1];
    struct setup *setup = NULL;
    size_t n = 0;

    for (; n < search->space.dim; n++) {
        overrides[n].key = search->space.params[n].key;
        search_value_text(search, n, x[n], overrides[n].value, sizeof overrides[n].value);
    }
    overrides[n].key = "train.seed";
    snprintf(overrides[n].value, sizeof overrides[n].value, "%lld", (long long)seed);
    TRY(setup_derive(c->setup, overrides, n + 1, "proposal", &setup, err));
    enum status rc = setup_to_ini(setup, ret_text, err);
    setup_destroy(setup);
    return rc;
}

static enum status propose(struct controller *c, size_t *ret_i, bool *ret_used_up, struct error *err)
{
    struct suggestion s;
    struct trial trial = {.study_id = c->view->study.id,
                          .number = (int64_t)c->view->n,
                          .score = NAN,
                          .perf = NAN,
                          .cost_s = NAN,
                          .device_s = NAN};
    struct error none = {0};
    enum status rc = suggester_next(c->suggester, &c->view->history, trial.number, &s, &none);

    *ret_used_up = rc == ST_LIMIT;
    if (*ret_used_up)
        return ST_OK;
    if (rc != ST_OK)
        return FAIL(err, rc, "%s", none.text);
    trial.seed = trial_seed(c->view->study.seed, trial.number);
    rc = search_params_json(&c->view->search, s.x, &trial.params, err);
    if (rc == ST_OK)
        rc = trial_config(c, s.x, trial.seed, &trial.config, err);
    if (rc == ST_OK && (trial.origin = mem_strdup(s.origin)) == NULL)
        rc = FAIL(err, ST_NOMEM, "out of memory for a trial");
    if (rc == ST_OK)
        rc = store_trial_create(c->store, &trial, err);
    if (rc == ST_OK)
        rc = study_view_append(c->view, &trial, s.x, err);
    trial_free(&trial);
    *ret_i = c->view->n - 1;
    return rc;
}

/* A queued trial of an earlier session first, else a new one, unless the space is used up. */
static enum status next_trial(struct controller *c, size_t *ret_i, bool *ret_used_up, struct error *err)
{
    *ret_used_up = false;
    for (size_t i = 0; i < c->view->n; i++)
        if (c->view->trials[i].state == TRIAL_QUEUED) {
            *ret_i = i;
            return ST_OK;
        }
    return propose(c, ret_i, ret_used_up, err);
}

static bool limit_reached(const struct controller *c)
{
    bool queued = study_view_count(c->view, TRIAL_QUEUED) > 0;

    if (c->limits.budget_s > 0 && study_view_cost(c->view) >= c->limits.budget_s)
        return true;
    return !queued && c->limits.trials > 0 && (int64_t)c->view->n >= c->limits.trials;
}

/* A resumed study that has nothing left to do. */
static void tell_limit(const struct controller *c)
{
    char spent[32], budget[32];

    if (c->limits.budget_s > 0 && study_view_cost(c->view) >= c->limits.budget_s)
        log_info("the study's budget is spent, %s of %s; a larger --budget goes on",
                 format_seconds(study_view_cost(c->view), spent), format_seconds(c->limits.budget_s, budget));
    else
        log_info("the study has its %lld trials; a larger --trials goes on", (long long)c->limits.trials);
}

static enum status hand_over(struct controller *c, size_t i, struct error *err)
{
    struct trial *t = &c->view->trials[i];
    cJSON *message;
    bool ok;

    TRY(store_trial_start(c->store, t->id, c->worker.device, NULL, err));
    t->state = TRIAL_RUNNING;
    t->attempt++;
    message = proto_message("run");
    ok = message != NULL && json_add_i64(message, "trial", t->number) && json_add_i64(message, "attempt", t->attempt) &&
         json_add_str(message, "config", t->config);
    if (!ok) {
        cJSON_Delete(message);
        return FAIL(err, ST_NOMEM, "out of memory for a message");
    }
    struct error gone = {0};
    if (proto_send(&c->worker.proto, message, &gone) == ST_NOMEM) /* a closed socket shows in the wait below */
        return FAIL(err, ST_NOMEM, "%s", gone.text);
    return ST_OK;
}

static enum status store_metrics(struct controller *c, size_t i, const cJSON *message, struct outcome *o,
                                 struct error *err)
{
    const struct trial *t = &c->view->trials[i];
    struct metric_point points[MAX_POINTS];
    const cJSON *values = cJSON_GetObjectItemCaseSensitive(message, "values"), *item;
    int64_t env_steps = 0;
    double wall_s = 0, score = NAN;
    size_t n = 0;

    if (!json_get_i64(message, "env_steps", &env_steps) || !json_get_f64(message, "wall_s", &wall_s))
        return FAIL(err, ST_CORRUPT, "the worker's report has no steps or time");
    cJSON_ArrayForEach(item, values)
    {
        double value;
        if (n == MAX_POINTS || !json_get_f64(values, item->string, &value))
            continue;
        points[n++] =
            (struct metric_point){.env_steps = env_steps, .wall_s = wall_s, .name = item->string, .value = value};
        if (strcmp(item->string, c->view->study.metric) == 0)
            c->progress->score = score = value;
    }
    c->progress->env_steps = env_steps;
    TRY(store_metrics_add(c->store, t->id, points, n, NULL, err));
    if (!o->early)
        o->early = early_stop_judge(&c->early, c->view, i, c->setup, env_steps, score, clock_mono_s() - o->start_s,
                                    o->reason, sizeof o->reason);
    return ST_OK;
}

static void read_result(struct controller *c, const cJSON *message, struct outcome *o)
{
    const cJSON *final = cJSON_GetObjectItemCaseSensitive(message, "final");
    const char *state = json_get_str(message, "state"), *reason = json_get_str(message, "reason");
    struct trial_result *r = &o->result;
    double episodes = 0;

    r->score = r->perf = r->cost_s = r->device_s = NAN;
    (void)json_get_f64(message, "perf", &r->perf);
    (void)json_get_f64(message, "cost_s", &r->cost_s);
    (void)json_get_f64(message, "device_s", &r->device_s);
    (void)json_get_i64(message, "env_steps", &r->env_steps);
    (void)json_get_f64(message, "episodes", &episodes);
    o->lost = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(message, "lost"));
    if (final != NULL)
        (void)json_get_f64(final, c->view->study.metric, &r->score);
    if (state != NULL && strcmp(state, "stopped") == 0) {
        r->state = TRIAL_STOPPED;
    } else if (state == NULL || strcmp(state, "done") != 0) {
        r->state = TRIAL_FAILED;
        snprintf(o->reason, sizeof o->reason, "%s", reason != NULL ? reason : "the worker gave no reason");
    } else if (!isfinite(r->cost_s)) {
        r->state = TRIAL_FAILED;
        snprintf(o->reason, sizeof o->reason, "the worker gave no cost");
    } else if (!isfinite(r->score)) {
        r->state = TRIAL_FAILED;
        if (episodes < 1)
            snprintf(o->reason, sizeof o->reason,
                     "no episode ended within %lld steps, so there is no %s; raise train.total_timesteps",
                     (long long)r->env_steps, c->view->study.metric);
        else
            snprintf(o->reason, sizeof o->reason, "%s is %g at the end of the run", c->view->study.metric, r->score);
    } else {
        r->state = TRIAL_DONE;
    }
    r->reason = o->reason[0] != '\0' ? o->reason : NULL;
}

/* Stored the moment it is known, so that a kill loses nothing that was finished. */
static enum status on_message(struct controller *c, size_t i, const cJSON *message, bool *ret_ended, struct outcome *o,
                              struct error *err)
{
    const struct trial *t = &c->view->trials[i];
    const char *type = json_get_str(message, "type");
    int64_t number = -1, attempt = -1;

    if (type == NULL || !json_get_i64(message, "trial", &number) || !json_get_i64(message, "attempt", &attempt) ||
        number != t->number || attempt != t->attempt) {
        log_warn("a message of the worker is about trial %lld, attempt %lld, which is not running; dropped, continuing",
                 (long long)number, (long long)attempt);
        return ST_OK;
    }
    if (strcmp(type, "metrics") == 0)
        return store_metrics(c, i, message, o, err);
    if (strcmp(type, "training") == 0)
        o->start_s = clock_mono_s(); /* only training counts as cost, so a budget is cut by its clock */
    if (strcmp(type, "result") == 0) {
        read_result(c, message, o);
        *ret_ended = true;
    }
    return ST_OK;
}

static void on_death(struct controller *c, struct outcome *o)
{
    char how[200];

    worker_reap(&c->worker, how, sizeof how);
    snprintf(o->reason, sizeof o->reason, "the worker process died: %s", how);
    o->died = true;
    o->result = (struct trial_result){.state = TRIAL_FAILED,
                                      .score = NAN,
                                      .perf = NAN,
                                      .device_s = NAN,
                                      .cost_s = clock_mono_s() - o->start_s,
                                      .env_steps = c->progress->env_steps,
                                      .reason = o->reason};
}

/* Waits for the end of the trial in flight, whatever that is. */
static enum status wait_trial(struct controller *c, size_t i, struct outcome *o, struct error *err)
{
    double before_s = study_view_cost(c->view), asked_s = 0;
    bool ended = false;

    o->start_s = clock_mono_s();
    while (!ended && !o->died) {
        cJSON *message = NULL;
        double now_s;
        struct error wrong = {0};
        enum status rc = proto_receive(&c->worker.proto, TICK_MS, &message, &wrong);
        if (rc == ST_OK && message != NULL)
            rc = on_message(c, i, message, &ended, o, &wrong);
        cJSON_Delete(message);
        if (rc == ST_CORRUPT || rc == ST_LIMIT) { /* what it says makes no sense: a new worker, the sweep goes on */
            log_warn("%s; the worker is replaced, continuing", wrong.text);
            kill(c->worker.pid, SIGKILL);
            c->worker.proto.closed = true;
        } else if (rc != ST_OK) {
            return FAIL(err, rc, "%s", wrong.text);
        }
        now_s = clock_mono_s();
        if (!ended && c->worker.proto.closed)
            on_death(c, o);
        else if (asked_s == 0 && (signals_stop() || o->early ||
                                  (c->limits.budget_s > 0 && before_s + now_s - o->start_s >= c->limits.budget_s))) {
            struct error gone = {0};
            asked_s = now_s;
            if (proto_send(&c->worker.proto, proto_message("stop"), &gone) != ST_OK)
                log_debug("%s", gone.text);
        } else if (asked_s > 0 && now_s - asked_s > STOP_PATIENCE_S && c->worker.pid > 0) {
            kill(c->worker.pid, SIGKILL); /* ours; seen as a death in the next round */
        }
        progress_tick(c->progress, c);
    }
    o->requeue = signals_stop() && (o->died || o->result.state == TRIAL_STOPPED);
    if (o->result.state == TRIAL_STOPPED && !o->requeue) {
        if (!o->early)
            snprintf(o->reason, sizeof o->reason, "the study's budget of %g s is spent", c->limits.budget_s);
        o->result.reason = o->reason;
    } else if (o->result.state == TRIAL_DONE) {
        o->result.reason = NULL; /* it was faster than the word to stop */
    }
    return ST_OK;
}

static enum status record(struct controller *c, size_t i, const struct outcome *o, struct error *err)
{
    struct trial *t = &c->view->trials[i];
    const struct trial_result *r = &o->result;
    int64_t n;

    if (o->requeue) {
        TRY(store_trials_recover(c->store, c->view->study.id, true, &n, err));
        t->state = TRIAL_QUEUED;
        return study_view_update(c->view, i, err);
    }
    TRY(store_trial_finish(c->store, t->id, r, NULL, err));
    t->state = r->state;
    t->score = r->score;
    t->perf = r->perf;
    t->cost_s = r->cost_s;
    t->device_s = r->device_s;
    t->env_steps = r->env_steps;
    mem_free(t->reason); /* of an earlier attempt */
    t->reason = NULL;
    if (r->reason != NULL && (t->reason = mem_strdup(r->reason)) == NULL)
        return FAIL(err, ST_NOMEM, "out of memory for a trial's reason");
    TRY(study_view_update(c->view, i, err));
    return early_stop_learn(&c->early, c->store, c->view, i, err);
}

/* *ret_used_up: every point of a finite space has been tried. */
static enum status run_one(struct controller *c, bool *ret_used_up, struct error *err)
{
    struct outcome o = {0};
    size_t i;

    TRY(next_trial(c, &i, ret_used_up, err));
    if (*ret_used_up)
        return ST_OK;
    if (c->worker.pid == 0)
        TRY(worker_start(&c->worker, c->view->trials[i].config, err));
    c->current = (int64_t)i;
    progress_trial_start(c->progress, c);
    TRY(hand_over(c, i, err));
    TRY(wait_trial(c, i, &o, err));
    TRY(record(c, i, &o, err));
    if (o.lost) {
        log_warn("the worker has lost its device and is replaced, continuing");
        worker_stop(&c->worker);
    }
    c->current = -1;
    progress_trial_end(c->progress, c, &c->view->trials[i]);
    if (o.requeue)
        return ST_OK;
    c->worker_deaths = o.died || o.lost ? c->worker_deaths + 1 : 0;
    c->failures = o.result.state == TRIAL_FAILED ? c->failures + 1 : 0;
    if (c->worker_deaths >= MAX_WORKER_DEATHS)
        return FAIL(
            err, ST_DEVICE,
            "%d worker processes died in a row, the last was %s; see `trawl doctor`, then go on with --resume %s",
            MAX_WORKER_DEATHS, o.died ? o.reason + strlen("the worker process died: ") : o.reason, c->view->study.name);
    if (c->setup->sweep.max_failures > 0 && c->failures >= c->setup->sweep.max_failures)
        return FAIL(
            err, ST_LIMIT,
            "%lld trials failed in a row, the last because: %s; mend the config's ranges and start a new study, or "
            "go on with --resume %s",
            (long long)c->failures, o.reason, c->view->study.name);
    return ST_OK;
}

enum status controller_run(struct controller *c, struct error *err)
{
    const struct sweep_settings *s = &c->setup->sweep;
    struct suggest_settings settings = {.method = (enum suggest_method)s->method,
                                        .seed = (uint64_t)s->seed,
                                        .n_init = (size_t)s->n_init,
                                        .max_cost = s->max_cost};
    bool used_up = false;
    enum status rc = suggester_create(&c->suggester, &c->view->search.space, &settings, err);

    c->early.on = s->early_stop;
    for (size_t i = 0; rc == ST_OK && i < c->view->n; i++)
        rc = early_stop_learn(&c->early, c->store, c->view, i, err);
    if (rc == ST_OK && limit_reached(c))
        tell_limit(c);
    while (rc == ST_OK && !used_up && !signals_stop() && !limit_reached(c))
        rc = run_one(c, &used_up, err);
    if (used_up)
        log_info("every point of the search space has been tried, the study ends");
    worker_stop(&c->worker);
    suggester_destroy(c->suggester);
    c->suggester = NULL;
    early_stop_free(&c->early);
    if (rc == ST_OK && signals_stop())
        rc = ST_INTERRUPTED;
    return rc;
}
