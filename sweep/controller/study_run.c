/* study_run.c - a study while it is served: its proposals, its queue, its failures.
 * Invariants: (1) a proposal becomes a queued row of the store before it can run; (2) trials are handed out in order of
 * number; (3) whether to propose ahead depends on the store's contents alone, so that a resumed study proposes as it
 * would have done. */
#include "sweep/controller/study_run.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/rng.h"
#include "base/status.h"
#include "gp/gp.h"
#include "store/store.h"
#include "study/limits.h"
#include "study/search.h"
#include "study/setup.h"
#include "study/study_view.h"
#include "study/trial_check.h"
#include "study/warm_start.h"
#include "sweep/controller/checkpoints.h"
#include "sweep/controller/confirm.h"
#include "sweep/controller/early_stop.h"
#include "sweep/controller/flight.h"
#include "sweep/controller/gain.h"
#include "sweep/controller/stop_rules.h"
#include "sweep/controller/proposer.h"
#include "sweep/controller/scheduler.h"
#include "sweep/controller/track_rows.h"
#include "sweep/launch/worker_process.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define ROOM_MAX 20000 /* trials, to begin with */
#define MEAN_TRIALS 20 /* of the last, over which times are averaged */
/* Of a trial's time, that a device may wait for its proposal before proposals are made ahead, without what the trials
 * in flight will show. Beside other trials in flight one more that is unknown costs little. */
#define AHEAD_SHARE 0.015
#define AHEAD_SHARE_BESIDE 0.004

/* The config of a stored study, finished. */
static enum status load_setup(const struct study *study, struct setup **ret_setup, struct error *err)
{
    char name[160];

    snprintf(name, sizeof name, "study %.120s", study->name);
    return setup_from_text(ret_setup, name, study->config, err);
}

enum status study_run_open(struct study_run **ret_run, struct store *store, const char *name, struct error *err)
{
    struct study_run *run = mem_alloc(sizeof *run);
    enum status rc;

    if (run == NULL)
        return FAIL(err, ST_NOMEM, "out of memory for a study");
    run->store = store;
    rc = study_view_load(store, name, &run->view, err);
    if (rc == ST_OK)
        rc = load_setup(&run->view.study, &run->setup, err);
    if (rc == ST_OK)
        rc = search_bind(&run->view.search, run->setup, err);
    if (rc == ST_OK)
        rc = warm_start_load(store, run->setup, &run->view, err);
    if (rc != ST_OK) {
        study_run_destroy(run);
        return rc;
    }
    *ret_run = run;
    return ST_OK;
}

void study_run_destroy(struct study_run *run)
{
    if (run == NULL)
        return;
    track_rows_close(run->track, &run->view, run->end.text, LAST_UPLOADS_S);
    proposer_destroy(run->proposer); /* before the points that it reads and what it asks */
    trial_check_destroy(run->check);
    early_stop_free(&run->early);
    gain_watch_free(&run->gain);
    study_view_free(&run->view);
    setup_destroy(run->setup);
    mem_free(run);
}

/* Trials that an earlier program left running are queued again. */
static enum status recover(struct study_run *run, struct error *err)
{
    struct study_view *v = &run->view;
    enum status rc;

    STORE_INSIST(rc, run->store, err, store_trials_recover(run->store, v->study.id, true, &run->n_recovered, err));
    TRY(rc);
    run->n_queued = 0;
    for (size_t i = 0; i < v->n; i++) {
        if (v->trials[i].state == TRIAL_RUNNING)
            v->trials[i].state = TRIAL_QUEUED; /* pending as before: nothing to update */
        run->n_queued += v->trials[i].state == TRIAL_QUEUED;
    }
    if (run->n_recovered > 0)
        log_info("%lld trial(s) were cut off and run again", (long long)run->n_recovered);
    return ST_OK;
}

/* Of ten thousand trials the configs alone are 15 MB. The reasons of failures are printed at the end of a sweep. */
void study_run_forget(struct study_run *run, size_t i)
{
    struct trial *t = &run->view.trials[i];
    char **texts[] = {&t->params,   &t->config,  &t->device,  &t->slot,  &t->cost_method,
                      &t->log_tail, &t->program, &t->kernels, &t->reason};
    size_t n = sizeof texts / sizeof texts[0];

    if (t->state != TRIAL_DONE && t->state != TRIAL_STOPPED && t->state != TRIAL_FAILED)
        return;
    for (size_t k = 0; k < (t->state == TRIAL_FAILED ? n - 1 : n); k++) {
        mem_free(*texts[k]);
        *texts[k] = NULL;
    }
}

/* Trials to reserve memory for at the start, so that a study of known size does not run out of it in the night. */
static size_t room_for(const struct study *study)
{
    return study->limits.trials_max < ROOM_MAX ? (size_t)study->limits.trials_max : ROOM_MAX;
}

static enum status open_proposer(struct study_run *run, const struct space *space, struct proposer **ret_proposer,
                                 struct error *err)
{
    const struct sweep_settings *s = &run->setup->sweep;
    struct suggest_settings settings = {.method = (enum suggest_method)s->method,
                                        .seed = (uint64_t)s->seed,
                                        .n_init = (size_t)s->n_init,
                                        .max_cost = s->max_cost,
                                        .allowed = trial_check_allows,
                                        .allowed_ctx = run->check};

    return proposer_create(ret_proposer, space, &settings, room_for(&run->view.study), run->wake_fd, err);
}

enum status study_run_take_space(struct study_run *run, struct search *wider, struct error *err)
{
    struct proposer *proposer = NULL;
    char *text = NULL;
    enum status rc = search_to_json(wider, &text, err);

    if (rc == ST_OK && run->proposer != NULL)
        rc = open_proposer(run, &wider->space, &proposer, err);
    if (rc == ST_OK)
        STORE_INSIST(rc, run->store, err, store_study_set_space(run->store, run->view.study.id, text, err));
    if (rc != ST_OK) {
        proposer_destroy(proposer);
        mem_free(text);
        return rc;
    }
    proposer_destroy(run->proposer); /* with a proposal for the old space, if it has one */
    run->proposer = proposer;
    mem_free(run->view.study.space);
    run->view.study.space = text;
    search_free(&run->view.search);
    run->view.search = *wider;
    memset(wider, 0, sizeof *wider);
    run->used_up = false;
    run->stuck_at = SIZE_MAX;
    return ST_OK;
}

enum status study_run_begin(struct study_run *run, int wake_fd, struct error *err)
{
    run->wake_fd = wake_fd;
    TRY(recover(run, err));
    checkpoints_begin(run);
    TRY(checkpoints_prune(run, err));
    TRY(track_rows_open(&run->track, run->store, &run->view.study, run->setup, err));
    TRY(study_view_reserve(&run->view, room_for(&run->view.study), err));
    TRY(trial_check_create(&run->check, run->setup, &run->view.search, err));
    TRY(open_proposer(run, &run->view.search.space, &run->proposer, err));
    run->early.on = run->setup->sweep.early_stop;
    run->stuck_at = SIZE_MAX;
    TRY(gain_watch_begin(&run->gain, &run->view, clock_mono_s(), err));
    for (size_t i = 0; i < run->view.n; i++) {
        TRY(early_stop_learn(&run->early, run->store, &run->view, i, err));
        study_run_forget(run, i);
    }
    run->state = STUDY_RUN_ACTIVE;
    return ST_OK;
}

enum status study_run_set_state(struct study_run *run, enum study_state state, const char *rule, const char *text,
                                struct error *err)
{
    struct study *study = &run->view.study;
    char *rule_copy = rule != NULL ? mem_strdup(rule) : NULL, *text_copy = text != NULL ? mem_strdup(text) : NULL;

    if ((rule != NULL && rule_copy == NULL) || (text != NULL && text_copy == NULL)) {
        mem_free(rule_copy);
        mem_free(text_copy);
        return FAIL(err, ST_NOMEM, "out of memory for a study's state");
    }
    mem_free(study->end_rule);
    mem_free(study->end_text);
    study->end_rule = rule_copy;
    study->end_text = text_copy;
    study->state = state;
    enum status rc;
    STORE_INSIST(rc, run->store, err, store_study_set_state(run->store, study->id, state, rule, text, err));
    return rc;
}

int64_t study_run_wants(const struct study_run *run)
{
    int64_t left;

    if (run->state != STUDY_RUN_ACTIVE)
        return 0;
    left = run->used_up ? 0 : stop_rules_trials_left(&run->view);
    return left > INT64_MAX - (int64_t)run->n_queued ? INT64_MAX : left + (int64_t)run->n_queued;
}

static bool is_suspect(const struct trial *trial)
{
    return trial->deaths > 0 || trial->losses > 0;
}

/* A trial whose worker died is suspected; two of them never share a worker, so that the guilty one is found. */
static bool suits(const struct trial *trial, const struct worker *worker)
{
    if (!is_suspect(trial))
        return true;
    for (int lane = 0; lane < worker->spec.lanes; lane++) {
        const struct flight *f = worker->slots[lane].flight;
        if (f != NULL && is_suspect(&f->run->view.trials[f->i]))
            return false;
    }
    return true;
}

bool study_run_take(struct study_run *run, const struct worker *worker, size_t *ret_i)
{
    if (run->state != STUDY_RUN_ACTIVE || run->n_queued == 0)
        return false;
    for (size_t i = 0; i < run->view.n; i++)
        if (run->view.trials[i].state == TRIAL_QUEUED && suits(&run->view.trials[i], worker)) {
            *ret_i = i;
            return true;
        }
    return false;
}

static int64_t trial_seed(int64_t study_seed, int64_t number)
{
    return (int64_t)(rng_split(rng_seed((uint64_t)study_seed), (uint64_t)number).key & 0x7fffffff);
}

/* The whole config of a new trial at x. */
static enum status trial_config(const struct study_run *run, const double *x, int64_t seed, char **ret_text,
                                struct error *err)
{
    const struct search *search = &run->view.search;
    struct setup_override overrides[SPACE_MAX_DIM + 1];
    struct setup *setup = NULL;
    size_t n = 0;

    for (; n < search->space.dim; n++) {
        overrides[n].key = search->space.params[n].key;
        search_value_text(search, n, x[n], overrides[n].value, sizeof overrides[n].value);
    }
    overrides[n].key = "train.seed";
    snprintf(overrides[n].value, sizeof overrides[n].value, "%lld", (long long)seed);
    TRY(setup_derive(run->setup, overrides, n + 1, "proposal", &setup, err));
    enum status rc = setup_to_ini(setup, ret_text, err);
    setup_destroy(setup);
    return rc;
}

static enum status queue_trial(struct study_run *run, const struct suggestion *s, double propose_s, struct error *err)
{
    struct trial trial = {.study_id = run->view.study.id,
                          .number = (int64_t)run->view.n,
                          .score = NAN,
                          .perf = NAN,
                          .cost_s = NAN,
                          .device_s = NAN,
                          .propose_s = propose_s};
    enum status rc;

    trial.seed = trial_seed(run->view.study.seed, trial.number);
    rc = search_params_json(&run->view.search, s->x, &trial.params, err);
    if (rc == ST_OK)
        rc = trial_config(run, s->x, trial.seed, &trial.config, err);
    if (rc == ST_OK && (trial.origin = mem_strdup(s->origin)) == NULL)
        rc = FAIL(err, ST_NOMEM, "out of memory for a trial");
    if (rc == ST_OK)
        STORE_INSIST(rc, run->store, err, store_trial_create(run->store, &trial, err));
    if (rc == ST_OK)
        rc = study_view_append(&run->view, &trial, s->x, err);
    if (rc == ST_OK)
        run->n_queued++;
    trial_free(&trial);
    return rc;
}

/* The first trial is the config as it stands, where its values lie in the space: the model's snapping to powers of two
 * and the like is not for it. */
static bool config_trial(struct study_run *run, struct suggestion *ret)
{
    *ret = (struct suggestion){.origin = "default"};
    return run->view.n == 0 && search_config_point(&run->view.search, run->setup, ret->x) &&
           trial_check_allows(run->check, ret->x);
}

static size_t n_ended(const struct study_run *run)
{
    return run->view.n - run->n_queued - run->n_flights;
}

enum status study_run_ask(struct study_run *run, const struct scheduler *s, struct error *err)
{
    struct suggestion first;
    struct confirm_plan plan;

    if (run->state != STUDY_RUN_ACTIVE || run->used_up || stop_rules_trials_left(&run->view) == 0 ||
        proposer_is_busy(run->proposer) || run->stuck_at == n_ended(run))
        return ST_OK;
    if (config_trial(run, &first))
        return queue_trial(run, &first, 0, err);
    confirm_plan_make(&run->view, &run->setup->sweep, study_run_running_s(run, s), stop_rules_wall_s(run, s->now_s),
                      &plan);
    run->asked_at = n_ended(run);
    return proposer_ask(run->proposer, &run->view.history, (int64_t)run->view.n, &plan, err);
}

enum status study_run_collect(struct study_run *run, struct error *err)
{
    struct proposal proposal;
    struct error none = {0};
    enum status rc;

    if (!proposer_take(run->proposer, &proposal, &none))
        return ST_OK;
    rc = proposal.status;
    if (proposal.advice.n > 0)
        study_view_take_advice(&run->view, &proposal.advice);
    run->stuck_at = SIZE_MAX;
    if (rc == ST_LIMIT) { /* what has run since, or still runs, may leave a doubt worth a run */
        run->stuck_at = run->asked_at;
        run->used_up = run->stuck_at == run->view.n;
        return ST_OK;
    }
    if (rc != ST_OK)
        return FAIL(err, rc, "%s", none.text);
    if (strcmp(proposal.suggestion.origin, "default") ==
        0) /* the suggester's start, which is not the config (config_trial) */
        strcpy(proposal.suggestion.origin, "start");
    return queue_trial(run, &proposal.suggestion, proposal.seconds, err);
}

enum status study_run_adopt(struct study_run *run, struct error *err)
{
    struct study_view *v = &run->view;
    int64_t n;

    TRY(limits_count_trials(run->store, &v->study, &n, err));
    while ((int64_t)v->n < n) {
        struct trial trial = {0};
        double x[SPACE_MAX_DIM];
        enum status rc;
        TRY(store_trial_find(run->store, v->study.id, (int64_t)v->n, &trial, err));
        rc = search_point(&v->search, trial.params, x, err);
        if (rc == ST_OK)
            rc = study_view_append(v, &trial, x, err);
        if (rc == ST_OK)
            run->n_queued++;
        trial_free(&trial);
        TRY(rc);
    }
    return ST_OK;
}

size_t study_run_ahead(const struct study_run *run, size_t n_slots)
{
    const struct study_view *v = &run->view;
    double propose_s = 0, trial_s = 0, need;
    int n_propose = 0, n_trial = 0;

    for (size_t i = v->n; i-- > 0 && (n_propose < MEAN_TRIALS || n_trial < MEAN_TRIALS);) {
        const struct trial *t = &v->trials[i];
        if (n_propose < MEAN_TRIALS && isfinite(t->propose_s)) {
            propose_s += t->propose_s;
            n_propose++;
        }
        if (n_trial < MEAN_TRIALS && t->state == TRIAL_DONE && isfinite(t->cost_s)) {
            trial_s += t->cost_s;
            n_trial++;
        }
    }
    if (n_propose == 0 || n_trial == 0 || !(trial_s > 0))
        return 0;
    need = (propose_s / n_propose) / (trial_s / n_trial);
    if (need <= (n_slots > 1 ? AHEAD_SHARE_BESIDE : AHEAD_SHARE))
        return 0;
    return (size_t)fmin(fmax(ceil(2 * need * (double)n_slots), 1), (double)n_slots); /* slots come free in bursts */
}

static double sum_flights(const struct study_run *run, const struct scheduler *s,
                          double (*cost_s)(const struct flight *, double))
{
    double sum = 0;

    for (size_t w = 0; w < s->n_workers; w++)
        for (int lane = 0; lane < s->workers[w].spec.lanes; lane++) {
            const struct flight *f = s->workers[w].slots[lane].flight;
            if (f != NULL && f->run == run)
                sum += cost_s(f, s->now_s);
        }
    return sum;
}

double study_run_running_s(const struct study_run *run, const struct scheduler *s)
{
    return sum_flights(run, s, flight_cost_s);
}

double study_run_at_risk_s(const struct study_run *run, const struct scheduler *s)
{
    return sum_flights(run, s, flight_at_risk_s);
}

enum status study_run_recorded(struct study_run *run, size_t i, struct error *err)
{
    struct trial *t = &run->view.trials[i];

    TRY(study_view_update(&run->view, i, err));
    TRY(checkpoints_prune(run, err));
    TRY(track_rows_front(run->track, &run->view, err));
    TRY(early_stop_learn(&run->early, run->store, &run->view, i, err));
    TRY(gain_watch_note(&run->gain, i, clock_mono_s(), err));
    run->failures = t->state == TRIAL_FAILED ? run->failures + 1 : 0;
    if (run->setup->sweep.max_failures > 0 && run->failures >= run->setup->sweep.max_failures &&
        run->err.status == ST_OK)
        (void)FAIL(
            &run->err, ST_LIMIT,
            "%lld trials failed in a row, the last because: %s; fix the config's ranges and start a new study, or "
            "continue with --resume %s",
            (long long)run->failures, t->reason != NULL ? t->reason : "it gave no reason", run->view.study.name);
    return ST_OK;
}
