/* sched_study.c - a study while it is served: its proposals, its queue, its failures.
 * Invariants: (1) a proposal becomes a queued row of the store before it can run; (2) trials are handed out in order of
 * number; (3) up to SUGGEST_FEW trials at a time, whether to propose ahead depends on the store's contents alone, so
 * that a resumed study proposes as it would have done. */
#include "sweep/controller/sched_study.h"

#include "base/rng.h"
#include "study/space/branches.h"
#include "study/findings/next_trials.h"
#include "study/setup/limits.h"
#include "study/setup/setup.h"
#include "study/space/trial_check.h"
#include "study/view/warm_start.h"
#include "sweep/controller/trial/checkpoints.h"
#include "sweep/launch/device_class.h"
#include "sweep/launch/devices.h"
#include "sweep/controller/trial/flight.h"
#include "sweep/controller/device_fits.h"
#include "sweep/controller/trial/run_message.h"
#include "sweep/controller/trial/track_rows.h"
#include "sweep/proposals/confirm.h"
#include "sweep/proposals/propose.h"
#include "sweep/proposals/proposer.h"

#define MEAN_TRIALS 20 /* of the last, over which times are averaged */
/* Of a trial's time, that a device may wait for its proposal before proposals are made ahead, without what the trials
 * in flight will show. Beside other trials in flight one more that is unknown costs little. */
#define AHEAD_SHARE 0.015
#define AHEAD_SHARE_BESIDE 0.004
#define AHEAD_OF_MANY 0.25 /* of the trials in flight, at most: with as many ahead as in flight studies were worse */
#define SLOW_KEPT 0.98 /* share of the slowest batch's time that each later one keeps: one in twenty takes long */

enum status sched_study_open(struct sched_study **ret_run, struct store *store, const char *name, struct error *err)
{
    struct sched_study *ss = mem_alloc(sizeof *ss);

    ss->store = store;
    enum status rc = store_study_hold(store, name, &ss->held_id, err);
    THEN(rc, study_view_load(store, name, &ss->view, err));
    THEN(rc, study_view_setup(&ss->view, &ss->setup, err));
    THEN(rc, search_bind(&ss->view.search, ss->setup, err));
    THEN(rc, warm_start_load(store, ss->setup, &ss->view, err));
    if (rc != ST_OK) {
        sched_study_destroy(ss);
        return rc;
    }
    *ret_run = ss;
    return ST_OK;
}

void sched_study_destroy(struct sched_study *ss)
{
    if (ss == NULL)
        return;
    track_rows_close(ss->track, &ss->view, ss->end.text, LAST_UPLOADS_S);
    proposer_destroy(ss->proposer); /* before the points that it reads and what it asks */
    trial_check_destroy(ss->check);
    gain_watch_free(&ss->gain);
    leases_free(&ss->leases);
    evidence_free(&ss->evidence);
    store_study_let_go(ss->store, ss->held_id);
    study_view_free(&ss->view);
    mem_free(ss);
}

/* Trials that an earlier program left running are queued again, but for those that clients outside have. */
static enum status recover(struct sched_study *ss, struct error *err)
{
    struct study_view *v = &ss->view;
    enum status rc;

    STORE_INSIST(rc, ss->store, err, store_trials_recover(ss->store, v->study.id, true, &ss->n_recovered, err));
    TRY(rc);
    TRY(leases_begin(ss, err));
    ss->n_queued = 0;
    for (size_t i = 0; i < v->n; i++) {
        if (v->trials[i].state == TRIAL_RUNNING && leases_of_trial(ss, v->trials[i].number) == NULL)
            v->trials[i].state = TRIAL_QUEUED; /* pending as before: nothing to update */
        ss->n_queued += v->trials[i].state == TRIAL_QUEUED;
    }
    if (ss->n_recovered > 0)
        log_info("%lld trial(s) were cut off and run again", (long long)ss->n_recovered);
    return ST_OK;
}

/* Which measures of cost a program's trials have, also those of earlier controllers. */
static void note_cost_method(struct sched_study *ss, const struct trial *t)
{
    if (t->state != TRIAL_DONE || t->cost_method == NULL || ss->view.search.cost != SEARCH_COST_WALL ||
        !setup_is_program(ss->setup))
        return;
    ss->has_reported_cost |= strncmp(t->cost_method, "reported", 8) == 0;
    ss->has_wall_cost |= strncmp(t->cost_method, "wall", 4) == 0;
}

/* Frees the texts of trial i, if it has ended: the store has them. Of ten thousand trials the configs alone are 15 MB.
 * The reasons of failures are printed at the end of a sweep. */
static void forget_texts(struct sched_study *ss, size_t i)
{
    struct trial *t = &ss->view.trials[i];
    char **texts[] = {&t->params,   &t->config,  &t->device,  &t->slot, &t->cost_method,
                      &t->log_tail, &t->program, &t->kernels, &t->seen, &t->reason};
    size_t n = COUNT(texts);

    if (t->state != TRIAL_DONE && t->state != TRIAL_STOPPED && t->state != TRIAL_FAILED)
        return;
    for (size_t k = 0; k < (t->state == TRIAL_FAILED ? n - 1 : n); k++) {
        mem_free(*texts[k]);
        *texts[k] = NULL;
    }
}

static enum status open_proposer(struct sched_study *ss, const struct space *space, struct proposer **ret_proposer,
                                 struct error *err)
{
    struct suggest_settings settings = next_settings(ss->setup, ss->check);

    return proposer_create(ret_proposer, space, &settings, ss->wake_fd, err);
}

enum status sched_study_take_space(struct sched_study *ss, struct search *wider, struct error *err)
{
    struct proposer *proposer = NULL;
    char *text = search_to_json(wider);
    enum status rc = ST_OK;

    if (ss->proposer != NULL)
        rc = open_proposer(ss, &wider->space, &proposer, err);
    if (rc == ST_OK)
        STORE_INSIST(rc, ss->store, err, store_study_set_space(ss->store, ss->view.study.id, text, err));
    if (rc != ST_OK) {
        proposer_destroy(proposer);
        mem_free(text);
        return rc;
    }
    proposer_destroy(ss->proposer); /* with a proposal for the old space, if it has one */
    ss->proposer = proposer;
    mem_free(ss->view.study.space);
    ss->view.study.space = text;
    search_free(&ss->view.search);
    ss->view.search = *wider;
    memset(wider, 0, sizeof *wider);
    study_view_judge(&ss->view);
    ss->used_up = false;
    ss->stuck_at = SIZE_MAX;
    ss->evidence.new_space = true;
    return ST_OK;
}

enum status sched_study_begin(struct sched_study *ss, int wake_fd, struct error *err)
{
    ss->wake_fd = wake_fd;
    TRY(recover(ss, err));
    checkpoints_begin(ss);
    TRY(checkpoints_prune(ss, err));
    TRY(track_rows_open(&ss->track, ss->store, &ss->view.study, ss->setup, err));
    ss->check = trial_check_create(ss->setup, &ss->view.search);
    TRY(trial_check_require(ss->check, ss->setup, err));
    TRY(open_proposer(ss, &ss->view.search.space, &ss->proposer, err));
    TRY(evidence_load(&ss->evidence, &ss->view, err));
    ss->stuck_at = SIZE_MAX;
    gain_watch_begin(&ss->gain, &ss->view, clock_mono_s());
    for (size_t i = 0; i < ss->view.n; i++) {
        const struct trial *t = &ss->view.trials[i];
        if (t->state == TRIAL_DONE && t->device != NULL && t->slot != NULL && !setup_is_program(ss->setup))
            device_class_of(t->device, ss->device_class); /* the last one's */
        note_cost_method(ss, t);
        forget_texts(ss, i);
    }
    ss->no_workers = strcmp(ss->setup->sweep.devices, DEVICES_NONE) == 0 ||
                     (setup_is_program(ss->setup) && program_is_outside(ss->setup->config));
    ss->state = SCHED_STUDY_ACTIVE;
    return ST_OK;
}

enum status sched_study_set_state(struct sched_study *ss, enum study_state state, const char *rule, const char *text,
                                  struct error *err)
{
    struct study *study = &ss->view.study;
    enum status rc;

    mem_free(study->end_rule);
    mem_free(study->end_text);
    study->end_rule = rule != NULL ? mem_strdup(rule) : NULL;
    study->end_text = text != NULL ? mem_strdup(text) : NULL;
    study->state = state;
    STORE_INSIST(rc, ss->store, err, store_study_set_state(ss->store, study->id, state, rule, text, err));
    return rc;
}

/* Has a configuration not been trained on every game? */
static bool has_missing(const struct sched_study *ss)
{
    return ss->view.missing.of < ss->view.n;
}

int64_t sched_study_wants(const struct sched_study *ss)
{
    if (ss->state != SCHED_STUDY_ACTIVE)
        return 0;
    int64_t left = ss->used_up && !has_missing(ss) ? 0 : stop_rules_trials_left(&ss->view);
    return left > INT64_MAX - (int64_t)ss->n_queued ? INT64_MAX : left + (int64_t)ss->n_queued;
}

int64_t sched_study_wants_slots(const struct sched_study *ss)
{
    return ss->no_workers ? 0 : sched_study_wants(ss);
}

static bool is_suspect(const struct trial *trial)
{
    return trial->deaths > 0 || trial->losses > 0;
}

/* A trial whose worker died is suspected; two of them never share a worker, so that the guilty one is found. */
static bool suits(const struct trial *trial, const struct worker *worker)
{
    if (worker == NULL || !is_suspect(trial))
        return true;
    for (int lane = 0; lane < worker->spec.lanes; lane++) {
        const struct flight *f = worker->slots[lane].flight;
        if (f != NULL && is_suspect(&f->ss->view.trials[f->i]))
            return false;
    }
    return true;
}

bool sched_study_take(struct sched_study *ss, const struct worker *worker, size_t *ret_i)
{
    bool found = false;

    if (ss->state != SCHED_STUDY_ACTIVE || ss->n_queued == 0 || (worker != NULL && ss->no_workers))
        return false;
    for (size_t i = 0; i < ss->view.n; i++) {
        const struct trial *t = &ss->view.trials[i];
        bool enqueued = t->state == TRIAL_QUEUED && strcmp(t->origin, ENQUEUED_ORIGIN) == 0;
        if (t->state != TRIAL_QUEUED || (found && !enqueued) || !suits(t, worker))
            continue;
        *ret_i = i;
        found = true;
        if (enqueued)
            break;
    }
    return found;
}

enum status sched_study_settle(struct sched_study *ss, struct trial *t, const struct run_device *device,
                               struct error *err)
{
    MEM_LOCAL char *text = NULL;
    enum status rc = run_config_settle(&ss->view, t, device, &text, err);

    if (rc != ST_OK || text == NULL)
        return rc;
    STORE_INSIST(rc, ss->store, err, store_trial_set_config(ss->store, t->id, text, err));
    if (rc == ST_OK)
        mem_set_text(&t->config, text);
    return rc;
}

static int64_t trial_seed(int64_t study_seed, int64_t number)
{
    return (int64_t)(rng_split(rng_seed((uint64_t)study_seed), (uint64_t)number).key & 0x7fffffff);
}

/* The whole config of a new trial at x. */
static enum status trial_config(const struct sched_study *ss, const double *x, size_t env, int64_t seed,
                                char **ret_text, struct error *err)
{
    const struct search *search = &ss->view.search;
    struct setup_override overrides[SPACE_MAX_DIM + 3];
    AT_END(setup_destroy_at) struct setup *setup = NULL;
    size_t n = 0;

    for (; n < search->space.dim; n++) {
        overrides[n].key = search->space.params[n].key;
        if (setup_is_program(ss->setup) && !space_is_active(&search->space, n, x))
            overrides[n].value[0] = '\0'; /* the program does not get what has no effect */
        else
            search_value_text(search, n, x[n], overrides[n].value, sizeof overrides[n].value);
    }
    overrides[n].key = setup_is_program(ss->setup) ? "sweep.trial_seed" : "train.seed";
    snprintf(overrides[n++].value, sizeof overrides->value, "%lld", (long long)seed);
    if (ss->kind[0] != '\0') {
        overrides[n].key = "train.device";
        snprintf(overrides[n++].value, sizeof overrides->value, "%s", ss->kind);
    }
    if (setup_is_program(ss->setup) && search->envs.n > 0) {
        overrides[n].key = "sweep.trial_env";
        snprintf(overrides[n++].value, sizeof overrides->value, "%s", search->envs.names[env]);
    }
    TRY(setup_derive(setup_of_env(ss->setup, env), overrides, n, "proposal", &setup, err));
    return setup_to_ini(setup, ret_text, err);
}

/* A trial at x that is not in the store yet, after `made` others. seed -1: of its number. */
static enum status make_trial(struct sched_study *ss, size_t made, const double *x, size_t env, const char *origin,
                              int64_t seed, double propose_s, struct trial *ret, struct error *err)
{
    *ret = (struct trial){.study_id = ss->view.study.id,
                          .number = (int64_t)(ss->view.n + made),
                          .score = NAN,
                          .perf = NAN,
                          .cost_s = NAN,
                          .device_s = NAN,
                          .propose_s = propose_s};
    ret->seed = seed >= 0 ? seed : trial_seed(ss->view.study.seed, ret->number);
    ret->origin = mem_strdup(origin);
    ret->params = search_run_json(&ss->view.search, x, env);
    return trial_config(ss, x, env, ret->seed, &ret->config, err);
}

/* Stores them in one transaction and queues them; x: their points. */
static enum status queue_trials(struct sched_study *ss, struct trial *trials, const double *const *x, size_t n,
                                struct error *err)
{
    enum status rc;

    STORE_INSIST(rc, ss->store, err, store_trials_create(ss->store, trials, n, err));
    for (size_t k = 0; rc == ST_OK && k < n; k++) {
        study_view_append(&ss->view, &trials[k], x[k]);
        ss->n_queued++;
    }
    return rc;
}

static enum status queue_on(struct sched_study *ss, const double *x, size_t env, const char *origin, double propose_s,
                            struct error *err)
{
    AT_END(trial_free) struct trial trial = {0};

    TRY(make_trial(ss, 0, x, env, origin, -1, propose_s, &trial, err));
    return queue_trials(ss, &trial, &x, 1, err);
}

enum status sched_study_queue(struct sched_study *ss, const double *x, const char *origin, double propose_s,
                              struct error *err)
{
    return queue_on(ss, x, 0, origin, propose_s, err);
}

enum status sched_study_add(struct sched_study *ss, const double *x, size_t env, const char *origin, int64_t seed,
                            const struct trial_result *result, const char *client, const char *key,
                            const char *result_json, struct error *err)
{
    AT_END(trial_free) struct trial trial = {0};
    MEM_LOCAL char *settled = NULL; /* not for a device of this controller, which proposals may name */
    enum status rc = make_trial(ss, 0, x, env, origin, seed, NAN, &trial, err);
    const char *row = track_rows_result(ss->track, result);

    THEN(rc, run_config_settle(&ss->view, &trial, NULL, &settled, err));
    if (settled != NULL)
        mem_set_text(&trial.config, settled);
    if (rc == ST_OK)
        STORE_INSIST(rc, ss->store, err,
                     store_trial_add(ss->store, &trial, result, client, key, result_json, row, err));
    if (rc == ST_OK) {
        study_view_append(&ss->view, &trial, x);
        rc = sched_study_take_result(ss, ss->view.n - 1, result, err);
    }
    return rc;
}

/* Of new trials: without the file of its game no config can be made, which concerns this study alone. */
static enum status own_failure(struct sched_study *ss, enum status rc, struct error *err)
{
    if (rc != ST_CONFIG && rc != ST_VERSION)
        return rc;
    if (ss->err.status == ST_OK)
        (void)FAIL(&ss->err, ST_VERSION, "%s", err->text);
    error_clear(err);
    return ST_OK;
}

enum status sched_study_add_branch(struct sched_study *ss, size_t i, const struct trial_result *result,
                                   struct error *err)
{
    const struct trial *of = &ss->view.trials[i];
    size_t k = branches_length(ss->setup, &ss->view.search);
    const char *length = ss->view.search.space.params[k].key;
    AT_END(trial_free)
    struct trial trial = {.study_id = ss->view.study.id,
                          .number = (int64_t)ss->view.n,
                          .score = NAN,
                          .perf = NAN,
                          .cost_s = NAN,
                          .device_s = NAN,
                          .propose_s = NAN,
                          .seed = of->seed};
    const char *row = track_rows_result(ss->track, result);
    struct setup *setup = NULL;
    char key[100], origin[40];
    double x[SPACE_MAX_DIM];

    snprintf(key, sizeof key, TRIAL_BRANCH " %lld %lld %lld", (long long)ss->view.study.id, (long long)of->number,
             (long long)result->env_steps);
    snprintf(origin, sizeof origin, TRIAL_BRANCH " %lld", (long long)of->number);
    memcpy(x, ss->view.x[i], ss->view.search.space.dim * sizeof *x);
    x[k] = (double)result->env_steps;
    trial.origin = mem_strdup(origin);
    enum status rc = branches_params(of->params, length, result->env_steps, &trial.params, err);
    THEN(rc, trial_setup(of, &setup, err));
    THEN(rc, branches_config(setup, length, result->env_steps, "branch", &trial.config, err));
    setup_destroy(setup);
    if (rc != ST_OK)
        return own_failure(ss, rc, err);
    STORE_INSIST(rc, ss->store, err, store_trial_add(ss->store, &trial, result, TRIAL_BRANCH, key, "{}", row, err));
    if (rc == ST_OK) {
        study_view_append(&ss->view, &trial, x);
        rc = sched_study_take_result(ss, ss->view.n - 1, result, err);
        forget_texts(ss, ss->view.n - 1);
    } else if (rc == ST_EXISTS) { /* an earlier attempt came by */
        error_clear(err);
        rc = ST_OK;
    }
    return rc;
}

/* A configuration's run on one more game: of the origin of the run that began it, where that is a run again. */
static enum status queue_missing(struct sched_study *ss, struct error *err)
{
    const struct missing_run m = ss->view.missing;
    const struct trial *first = &ss->view.trials[m.of];
    const char *origin = trial_is_seed(first) ? SEED_ORIGIN : trial_is_confirming(first) ? CONFIRM_ORIGIN : ENV_ORIGIN;

    return queue_on(ss, ss->view.x[m.of], m.env, origin, NAN, err);
}

/* The first trial is the config as it stands, where its values lie in the space: the model's snapping to powers of two
 * and the like is not for it. */
static bool config_trial(struct sched_study *ss, struct suggestion *ret)
{
    *ret = (struct suggestion){.origin = "default"};
    return ss->view.n == 0 && search_config_point(&ss->view.search, ss->setup, ret->x) &&
           trial_check_allows(ss->check, ret->x);
}

static size_t n_ended(const struct sched_study *ss)
{
    return ss->view.n - ss->n_queued - ss->n_flights - ss->leases.n;
}

/* Slots and nodes that wait for a trial and will get one of this study, by its part of all. */
static size_t n_waiting(const struct sched_study *ss, const struct scheduler *s)
{
    size_t n = (size_t)s->nodes.waiting, n_all = n + ss->leases.n;

    EACH_SLOT (&s->workers, slot) {
        if (!device_class_fits(s, ss, slot->worker))
            continue;
        bool waits = slot->flight == NULL && slot->worker->state == WORKER_READY;
        n += waits;
        n_all += waits || slot->flight != NULL;
    }
    return sched_study_lacks(ss, s, n_all, n);
}

size_t sched_study_lacks(const struct sched_study *ss, const struct scheduler *s, size_t n_all, size_t n_free)
{
    size_t part = scheduler_part(s, ss, n_all), n_busy = ss->n_flights + ss->leases.n,
           lacks = part > n_busy ? part - n_busy : 0;

    return lacks < n_free ? lacks : n_free;
}

/* As many proposals together as those under way make useful, and as wait for one or soon will; a configuration for
 * several games is begun alone. */
static size_t batch_size(const struct sched_study *ss, size_t n_free, size_t ahead, size_t at_once)
{
    size_t n_busy = ss->n_flights + ss->leases.n, wanted = n_free + ahead, n;
    int64_t left = stop_rules_trials_left(&ss->view);

    n = suggester_batch_size(n_busy + n_free, wanted > ss->n_queued ? wanted - ss->n_queued : 0);
    n = n < at_once ? n : at_once;
    n = left < (int64_t)n ? (size_t)left : n;
    return ss->view.search.envs.n > 1 ? 1 : n;
}

/* Finding what to run again takes longer than proposing new points. Where trials are short, it is done while the queue
 * is well filled, if that is soon. */
static void plan_again(struct sched_study *ss, struct confirm_plan *plan, size_t n, size_t n_free, size_t ahead)
{
    size_t n_slots = n_free + ss->n_flights + ss->leases.n, n_since = n_ended(ss) - ss->confirmed_at;
    bool queue_is_low = ahead > 0 && n_free + ahead / 2 > ss->n_queued;

    if (confirm_plan_spread(plan, n, n_since, queue_is_low ? 2 * n_slots : n_slots))
        ss->confirmed_at = n_ended(ss);
}

enum status sched_study_ask(struct sched_study *ss, const struct scheduler *s, struct error *err)
{
    struct suggestion first;
    struct confirm_plan plan;
    size_t n;

    if (ss->state != SCHED_STUDY_ACTIVE || stop_rules_trials_left(&ss->view) == 0)
        return ST_OK;
    if (has_missing(ss)) /* what was begun is completed first */
        return own_failure(ss, queue_missing(ss, err), err);
    if (ss->used_up || proposer_is_busy(ss->proposer) || ss->stuck_at == n_ended(ss))
        return ST_OK;
    if (config_trial(ss, &first))
        return own_failure(ss, sched_study_queue(ss, first.x, first.origin, 0, err), err);
    confirm_plan_make(&ss->view, &ss->setup->sweep, sched_study_running_s(ss, s), stop_rules_wall_s(ss, s->now_s),
                      &plan);
    const size_t n_free = n_waiting(ss, s), ahead = sched_study_ahead(ss, n_free + ss->n_flights + ss->leases.n);
    n = batch_size(ss, n_free, ahead, plan.at_once);
    plan_again(ss, &plan, n, n_free, ahead);
    ss->asked_at = n_ended(ss);
    ss->slept = false;
    evidence_ask(&ss->evidence, &ss->view, &plan, n);
    proposer_ask(ss->proposer, &ss->view.history, next_number(&ss->view), &plan, n);
    return ST_OK;
}

static enum status make_proposed(struct sched_study *ss, const struct proposal *proposal, size_t k, struct trial *ret,
                                 struct error *err)
{
    const struct suggestion *s = &proposal->suggestions[k];

    TRY(make_trial(ss, k, s->x, 0, s->origin, -1, proposal->seconds / (double)proposal->n, ret, err));
    ret->seen = evidence_text(&ss->evidence, k);
    ret->predicted = (struct prediction){.known = s->has_prediction,
                                         .score = study_view_score(&ss->view, s->score_mean),
                                         .score_sd = s->score_sd,
                                         .log_cost = s->log_cost_mean,
                                         .log_cost_sd = s->log_cost_sd};
    return ST_OK;
}

static enum status queue_proposal(struct sched_study *ss, const struct proposal *proposal, struct error *err)
{
    struct trial trials[SUGGEST_BATCH_MAX] = {0};
    const double *x[SUGGEST_BATCH_MAX];
    enum status rc = ST_OK;

    for (size_t k = 0; rc == ST_OK && k < proposal->n; k++) {
        x[k] = proposal->suggestions[k].x;
        rc = make_proposed(ss, proposal, k, &trials[k], err);
    }
    THEN(rc, queue_trials(ss, trials, x, proposal->n, err));
    for (size_t k = 0; k < proposal->n; k++)
        trial_free(&trials[k]);
    if (rc == ST_OK)
        evidence_stored(&ss->evidence);
    return rc;
}

void sched_study_slept(struct sched_study *ss, double gap_s)
{
    ss->slept = true;
    leases_slept(ss, gap_s);
}

enum status sched_study_collect(struct sched_study *ss, struct error *err)
{
    struct proposal proposal;
    struct error none = {0};

    if (!proposer_take(ss->proposer, &proposal, &none))
        return ST_OK;
    enum status rc = proposal.status;
    if (proposal.advice.n > 0)
        study_view_take_advice(&ss->view, &proposal.advice);
    ss->stuck_at = SIZE_MAX;
    if (rc == ST_LIMIT) { /* what has run since, or still runs, may leave a doubt worth a run */
        ss->stuck_at = ss->asked_at;
        ss->used_up = ss->stuck_at == ss->view.n;
        return ST_OK;
    }
    if (rc != ST_OK)
        return FAIL(err, rc, "%s", none.text);
    if (ss->slept)
        proposal.seconds = NAN;
    ss->slow_s = fmax(proposal.seconds, SLOW_KEPT * ss->slow_s);
    return own_failure(ss, queue_proposal(ss, &proposal, err), err);
}

enum status sched_study_adopt(struct sched_study *ss, struct error *err)
{
    struct study_view *v = &ss->view;
    int64_t n;

    TRY(limits_count_trials(ss->store, &v->study, true, &n, err));
    while ((int64_t)v->n < n) {
        struct trial trial = {0};
        double x[SPACE_MAX_DIM];
        TRY(store_trial_find(ss->store, v->study.id, (int64_t)v->n, &trial, err));
        enum status rc = search_point(&v->search, trial.params, x, err);
        if (rc == ST_OK) {
            study_view_append(v, &trial, x);
            ss->n_queued++;
            ss->kind_from = v->n;
        }
        trial_free(&trial);
        TRY(rc);
    }
    return ST_OK;
}

bool sched_study_means(const struct sched_study *ss, bool by_clock, double *ret_propose_s, double *ret_trial_s)
{
    const struct study_view *v = &ss->view;
    double propose_s = 0, trial_s = 0;
    int n_propose = 0, n_trial = 0;

    for (size_t i = v->n; i-- > 0 && (n_propose < MEAN_TRIALS || n_trial < MEAN_TRIALS);) {
        const struct trial *t = &v->trials[i];
        if (n_propose < MEAN_TRIALS && isfinite(t->propose_s)) {
            propose_s += t->propose_s;
            n_propose++;
        }
        if (n_trial < MEAN_TRIALS && (by_clock ? t->started_ms > 0 && t->finished_ms > t->started_ms
                                               : t->state == TRIAL_DONE && isfinite(t->cost_s))) {
            trial_s += by_clock ? (double)(t->finished_ms - t->started_ms) / 1000.0 : t->cost_s;
            n_trial++;
        }
    }
    *ret_propose_s = propose_s / n_propose;
    *ret_trial_s = trial_s / n_trial;
    return n_propose > 0 && trial_s > 0;
}

size_t sched_study_ahead(const struct sched_study *ss, size_t n_slots)
{
    double propose_s, trial_s, need;

    bool many = n_slots > SUGGEST_FEW; /* whose cost may be a share of the time that they take */

    if (!sched_study_means(ss, many, &propose_s, &trial_s))
        return 0;
    need = (many ? ss->slow_s : propose_s) / trial_s;
    if (need <= (n_slots > 1 ? AHEAD_SHARE_BESIDE : AHEAD_SHARE))
        return 0;
    return (size_t)fmin(fmax(ceil(2 * need * (double)n_slots), 1), /* slots come free in bursts */
                        (double)n_slots * (many ? AHEAD_OF_MANY : 1));
}

static double sum_flights(const struct sched_study *ss, const struct scheduler *s,
                          double (*cost_s)(const struct flight *, double))
{
    double sum = 0;

    EACH_SLOT (&s->workers, slot)
        if (slot->flight != NULL && slot->flight->ss == ss)
            sum += cost_s(slot->flight, s->now_s);
    return sum;
}

double sched_study_running_s(const struct sched_study *ss, const struct scheduler *s)
{
    return sum_flights(ss, s, flight_cost_s) + leases_running_s(ss);
}

double sched_study_at_risk_s(const struct sched_study *ss, const struct scheduler *s)
{
    return sum_flights(ss, s, flight_at_risk_s);
}

/* Has any trial ended with all that its study needs? */
static bool has_any_outcome(const struct study_view *v)
{
    bool any = false;

    for (size_t i = 0; i < v->n && !any; i++)
        any = v->gp[i].state == GP_TRIAL_DONE || v->gp[i].state == GP_TRIAL_INFEASIBLE;
    return any;
}

enum status sched_study_take_result(struct sched_study *ss, size_t i, const struct trial_result *r, struct error *err)
{
    struct trial *t = &ss->view.trials[i];

    t->state = r->state;
    t->finished_ms = clock_utc_ms();
    t->score = r->score;
    t->perf = r->perf;
    t->cost_s = r->cost_s;
    t->device_s = r->device_s;
    t->env_steps = r->env_steps;
    t->score_se = r->eval_episodes > 0 ? r->score_se : NAN;
    t->eval_episodes = r->eval_episodes;
    t->eval_unfinished = r->eval_unfinished;
    t->eval_s = r->eval_episodes > 0 ? r->eval_s : NAN;
    t->start_s = r->start_s > 0.0 ? r->start_s : NAN;
    mem_set_text(&t->program, r->program);
    if (r->device != NULL)
        mem_set_text(&t->device, r->device);
    mem_set_text(&t->kernels, r->kernels);
    mem_set_text(&t->reason, r->reason); /* instead of an earlier attempt's */
    mem_set_text(&t->cost_method, r->cost_method);
    mem_set_text(&t->log_tail, r->log_tail);
    mem_set_text(&t->outcomes, r->outcomes);
    TRY(sched_study_recorded(ss, i, err));
    if (r->lacks_outcome && !has_any_outcome(&ss->view) && ss->err.status == ST_OK)
        (void)FAIL(
            &ss->err, ST_CONFIG,
            "trial %lld: %s; no trial of the study can count without it: correct the name in a new study, or let "
            "the program report it and continue with --resume %s",
            (long long)t->number, r->reason, ss->view.study.name);
    return ST_OK;
}

enum status sched_study_recorded(struct sched_study *ss, size_t i, struct error *err)
{
    struct trial *t = &ss->view.trials[i];

    study_view_update(&ss->view, i);
    TRY(checkpoints_prune(ss, err));
    TRY(track_rows_front(ss->track, &ss->view, err));
    gain_watch_note(&ss->gain, i, clock_mono_s());
    ss->failures = t->state == TRIAL_FAILED ? ss->failures + 1 : 0;
    if (ss->setup->sweep.max_failures > 0 && ss->failures >= ss->setup->sweep.max_failures && ss->err.status == ST_OK)
        (void)FAIL(
            &ss->err, ST_LIMIT,
            "%lld trial%s failed in a row, the last because: %s; fix the config's ranges and start a new study, or "
            "continue with --resume %s",
            (long long)ss->failures, PLURAL(ss->failures), t->reason != NULL ? t->reason : "it gave no reason",
            ss->view.study.name);
    return ST_OK;
}

/* The first trial that costs more than the cap; not of the design, which knows no costs. */
static void warn_of_cap(struct scheduler *s, struct sched_study *ss, const struct trial *t)
{
    const struct study_view *v = &ss->view;
    const struct sweep_settings *set = &ss->setup->sweep;
    double cost = study_view_trial_cost(v, t);
    char cost_text[32], cap[32];
    bool looks = set->method != SUGGEST_RANDOM && set->method != SUGGEST_SOBOL;

    if (ss->cap_reported || !(set->max_cost > 0) || !(cost > set->max_cost) ||
        (t->state != TRIAL_DONE && t->state != TRIAL_STOPPED) ||
        t->number < set->seeds * (int64_t)suggester_n_init(v->search.space.dim, (size_t)set->n_init))
        return;
    ss->cap_reported = true;
    study_view_cost_text(v, cost, cost_text);
    study_view_cost_text(v, set->max_cost, cap);
    log_warn("%s: trial %lld cost %s, more than sweep.max_cost (%s): %s; if more do, start a study with narrower "
             "ranges of the parameters that cost time, or with a larger cap",
             v->study.name, (long long)t->number, cost_text, cap,
             looks ? "the cap is kept by prediction" : "this method knows no costs (pareto does)");
    event_ring_add(&s->workers.events, "%s: trial %lld cost %s, more than max_cost (%s)", v->study.name,
                   (long long)t->number, cost_text, cap);
}

/* A program that reports its cost in some trials and not in others puts two measures on one axis; logged once. */
static void warn_of_mixed_costs(struct sched_study *ss, const struct trial *t)
{
    const struct study_view *v = &ss->view;

    if (ss->has_reported_cost && ss->has_wall_cost)
        return;
    note_cost_method(ss, t);
    if (ss->has_reported_cost && ss->has_wall_cost)
        log_warn("%s: of the trials up to %lld some reported their cost, and the wall time of others counts, so costs "
                 "cannot be compared; let the program report it as a finite number each time, or never",
                 v->study.name, (long long)t->number);
}

void sched_study_report_end(struct sched_study *ss, struct scheduler *s, size_t i)
{
    const struct trial *t = &ss->view.trials[i];

    if (t->state == TRIAL_QUEUED)
        event_ring_add(&s->workers.events, "%s: trial %lld is queued again", ss->view.study.name, (long long)t->number);
    else if (t->state != TRIAL_DONE)
        event_ring_add(&s->workers.events, "%s: trial %lld %s: %s", ss->view.study.name, (long long)t->number,
                       trial_state_name(t->state), t->reason != NULL ? t->reason : "");
    if (s->listener.on_trial_end != NULL)
        s->listener.on_trial_end(s->listener.ctx, ss, t);
    warn_of_cap(s, ss, t);
    warn_of_mixed_costs(ss, t);
    forget_texts(ss, i);
}
