/* trial.c - trials and their states.
 *
 *   queued -> running -> done | stopped | failed      final, never changed again
 *      |         |-----> lost ------> running         (started again)
 *      |         '-----> queued                       (recovery at start-up, a stop, a worker that died or was killed)
 *      '---------------> done | stopped | failed | lost
 *
 * Invariants: (1) a change of state is one UPDATE whose WHERE names the states it may come from; (2) result, last
 * points, checkpoint and outbox row of a finish are in one transaction; (3) number counts 0, 1, 2, ... in its study. */
#include "store/store_priv.h"

static const char *const state_names[TRIAL_STATES] = {"queued", "running", "done", "stopped", "failed", "lost"};

const char *trial_state_name(enum trial_state state)
{
    return (unsigned)state < TRIAL_STATES ? state_names[state] : "unknown";
}

void trial_free(struct trial *trial)
{
    if (trial == NULL)
        return;
    mem_free(trial->params);
    mem_free(trial->config);
    mem_free(trial->origin);
    mem_free(trial->device);
    mem_free(trial->reason);
    mem_free(trial->slot);
    mem_free(trial->cost_method);
    mem_free(trial->log_tail);
    mem_free(trial->program);
    mem_free(trial->kernels);
    mem_free(trial->outcomes);
    mem_free(trial->dropped);
    mem_free(trial->note);
    mem_free(trial->tags);
    mem_free(trial->seen);
    *trial = (struct trial){0};
}

void trial_list_free(struct trial *trials, size_t n)
{
    for (size_t i = 0; i < n; i++)
        trial_free(&trials[i]);
    mem_free(trials);
}

/* "trial 3 of study 'a'", for messages. */
static void name_trial(struct store *store, int64_t study_id, int64_t number, char *ret_name, size_t size)
{
    struct db_stmt *stmt;
    const char *name = NULL;
    bool there;

    if (store_sql_row(store, SQL_STUDY_NAME, VALUES(val_i64(study_id)), "reading a study's name", &stmt, &there,
                      NULL) == ST_OK &&
        there)
        name = db_text(stmt, 0);
    snprintf(ret_name, size, "trial %lld of study '%.100s'", (long long)number, name != NULL ? name : "(unknown)");
    if (there)
        db_reset(stmt);
}

enum status store_trial_row_check(struct store *store, struct db_stmt *stmt, int64_t study_id, int64_t number,
                                  enum trial_state *ret_state, struct error *err)
{
    int64_t is_number = db_i64(stmt, 2), is_study = db_i64(stmt, 1);
    const char *word = db_text(stmt, 3);
    char what[160], there[160];
    size_t state = word_index(state_names, TRIAL_STATES, word);

    if (store_row_sound(stmt) == STORE_DAMAGED) {
        name_trial(store, is_study, is_number, what, sizeof what);
        return store_damaged(store, what, err);
    }
    if (state == TRIAL_STATES)
        return FAIL(err, ST_CORRUPT, "%s: trial %lld has the unknown state '%s'; restore a copy", store->path,
                    (long long)is_number, word != NULL ? word : "");
    *ret_state = (enum trial_state)state;
    if ((number < 0 || is_number == number) && (study_id < 0 || is_study == study_id))
        return ST_OK;
    name_trial(store, study_id, number, what, sizeof what); /* a wrong entry of the index, or a lost row */
    name_trial(store, is_study, is_number, there, sizeof there);
    return FAIL(err, ST_CORRUPT,
                "%s: %s cannot be found, in its place is %s; restore a backup ('trawl check %s' lists what is damaged)",
                store->path, what, there, store->path);
}

/* trial is overwritten; whole or empty afterwards. Columns: TRIAL_COLUMNS of sql.c and trial.*. study_id, number: the
 * expected ones; -1: any. */
static enum status read_trial(struct store *store, struct db_stmt *stmt, int64_t study_id, int64_t number,
                              struct trial *trial, struct error *err)
{
    const struct {
        int column;
        char **text;
    } texts[] = {{4, &trial->params},   {5, &trial->config},    {6, &trial->origin},       {9, &trial->device},
                 {15, &trial->reason},  {19, &trial->slot},     {20, &trial->cost_method}, {21, &trial->log_tail},
                 {28, &trial->program}, {29, &trial->kernels},  {32, &trial->dropped},     {33, &trial->note},
                 {34, &trial->tags},    {35, &trial->outcomes}, {36, &trial->seen}};
    enum trial_state state;

    *trial = (struct trial){0};
    TRY(store_trial_row_check(store, stmt, study_id, number, &state, err));
    for (size_t i = 0; i < COUNT(texts); i++)
        *texts[i].text = db_copy_text(stmt, texts[i].column);
    trial->id = db_i64(stmt, 0);
    trial->study_id = db_i64(stmt, 1);
    trial->number = db_i64(stmt, 2);
    trial->state = state;
    trial->seed = db_i64(stmt, 7);
    trial->attempt = db_i64(stmt, 8);
    trial->score = db_f64_or_nan(stmt, 10);
    trial->perf = db_f64_or_nan(stmt, 11);
    trial->cost_s = db_f64_or_nan(stmt, 12);
    trial->device_s = db_f64_or_nan(stmt, 13);
    trial->env_steps = db_i64(stmt, 14);
    trial->created_ms = db_i64(stmt, 16);
    trial->started_ms = db_i64(stmt, 17); /* NULL reads as 0 */
    trial->finished_ms = db_i64(stmt, 18);
    trial->deaths = db_i64(stmt, 22);
    trial->propose_s = db_f64_or_nan(stmt, 23);
    trial->score_se = db_f64_or_nan(stmt, 24);
    trial->eval_episodes = db_i64(stmt, 25);
    trial->eval_s = db_f64_or_nan(stmt, 26);
    trial->start_s = db_f64_or_nan(stmt, 27);
    trial->losses = db_i64(stmt, 30);
    trial->eval_unfinished = db_i64(stmt, 31);
    trial->predicted = (struct prediction){.score = db_f64_or_nan(stmt, 37),
                                           .score_sd = db_f64_or_nan(stmt, 38),
                                           .log_cost = db_f64_or_nan(stmt, 39),
                                           .log_cost_sd = db_f64_or_nan(stmt, 40)};
    trial->predicted.known = isfinite(trial->predicted.score) && isfinite(trial->predicted.log_cost);
    return ST_OK;
}

static const char create_what[] = "adding a trial";

enum status store_trial_create_part(struct store *store, struct trial *trial, struct error *err)
{
    int64_t now_ms = clock_utc_ms(), id = 0, number = 0;
    struct prediction expected = trial->predicted;
    struct db_stmt *stmt;
    bool there;

    if (!expected.known)
        expected = (struct prediction){.score = NAN, .score_sd = NAN, .log_cost = NAN, .log_cost_sd = NAN};
    if (store->pg != NULL) /* no other connection takes the same number */
        TRY(store_sql_run(store, SQL_STUDY_LOCK, VALUES(val_i64(trial->study_id)), create_what, err));
    TRY(store_sql_row(store, SQL_TRIAL_INSERT,
                      VALUES(val_i64(trial->study_id), val_text(trial->params), val_text(trial->config),
                             val_text(trial->origin), val_i64(trial->seed), val_i64(now_ms), val_f64(trial->propose_s),
                             val_text(trial->seen), val_f64(expected.score), val_f64(expected.score_sd),
                             val_f64(expected.log_cost), val_f64(expected.log_cost_sd)),
                      create_what, &stmt, &there, err));
    id = db_i64(stmt, 0);
    number = db_i64(stmt, 1);
    db_reset(stmt);
    TRY(store_row_seal(store, SQL_TRIAL_ROW, id, err));
    trial->id = id;
    trial->number = number;
    trial->state = TRIAL_QUEUED;
    trial->attempt = 0;
    trial->created_ms = now_ms;
    store_hint(store, STORE_HINT_TRIALS);
    return ST_OK;
}

enum status store_trials_create(struct store *store, struct trial *trials, size_t n, struct error *err)
{
    MEM_LOCAL struct trial *made = mem_array(n, sizeof *made); /* nothing is filled in when the commit fails */
    enum status rc = ST_OK;

    memcpy(made, trials, n * sizeof *made);
    TRY(store_begin(store, create_what, err));
    for (size_t i = 0; rc == ST_OK && i < n; i++)
        rc = store_trial_create_part(store, &made[i], err);
    TRY(store_end(store, rc, create_what, err));
    memcpy(trials, made, n * sizeof *made);
    return ST_OK;
}

enum status store_trial_create(struct store *store, struct trial *trial, struct error *err)
{
    return store_trials_create(store, trial, 1, err);
}

static enum status extend_part(struct store *store, struct trial *trial, int64_t from_id, int64_t env_steps,
                               const char *path, struct error *err)
{
    TRY(store_trial_create_part(store, trial, err));
    TRY(store_metric_copy(store, from_id, trial->id, env_steps, err));
    if (trial->dropped != NULL)
        TRY(store_mark_part(store, trial->id, trial->dropped, NULL, NULL, err));
    return store_checkpoint_insert(store, trial->id, env_steps, path, err);
}

enum status store_trial_extend(struct store *store, struct trial *trial, int64_t from_id, int64_t env_steps,
                               const char *path, struct error *err)
{
    struct trial made = *trial;

    TRY(store_begin_synced(store, create_what, err));
    TRY(store_end(store, extend_part(store, &made, from_id, env_steps, path, err), create_what, err));
    *trial = made;
    return ST_OK;
}

/* ST_NOTFOUND: no such trial. The caller frees it. */
static enum status trial_by_id(struct store *store, int64_t trial_id, struct trial *ret_trial, struct error *err)
{
    struct db_stmt *stmt;
    bool there;

    *ret_trial = (struct trial){0};
    TRY(store_sql_row(store, SQL_TRIAL_BY_ID, VALUES(val_i64(trial_id)), "reading a trial", &stmt, &there, err));
    enum status rc = there ? read_trial(store, stmt, -1, -1, ret_trial, err)
                           : FAIL(err, ST_NOTFOUND, "%s has no trial with id %lld", store->path, (long long)trial_id);
    db_reset(stmt);
    return rc;
}

/* The failure of an UPDATE of a trial's state that changed no row: no such trial, or its state forbids it. */
static enum status not_allowed(struct store *store, int64_t trial_id, const char *verb, struct error *err)
{
    AT_END(trial_free) struct trial trial = {0};

    TRY(trial_by_id(store, trial_id, &trial, err));
    return FAIL(err, ST_EXISTS, "%s: trial %lld is %s already and cannot be %s", store->path, (long long)trial.number,
                trial_state_name(trial.state), verb);
}

enum status store_trial_change(struct store *store, enum store_sql id, struct db_values values, const char *verb,
                               const char *what, struct error *err)
{
    int64_t trial_id = values.v[0].i64, n = 0;

    TRY(store_row_check(store, SQL_TRIAL_ROW, trial_id, err));
    TRY(store_sql_change(store, id, values, what, &n, err));
    if (n == 0)
        return not_allowed(store, trial_id, verb, err);
    return store_row_seal(store, SQL_TRIAL_ROW, trial_id, err);
}

enum status store_trial_start_part(struct store *store, int64_t trial_id, const char *device, const char *slot,
                                   bool fresh, struct error *err)
{
    TRY(store_trial_change(store, SQL_TRIAL_START,
                           VALUES(val_i64(trial_id), val_text(device), val_i64(clock_utc_ms()), val_text(slot)),
                           "started", "starting a trial", err));
    return fresh ? store_attempt_clear(store, trial_id, err) : ST_OK;
}

static enum status start(struct store *store, int64_t trial_id, const char *device, const char *slot, bool fresh,
                         struct error *err)
{
    static const char what[] = "starting a trial";

    TRY(store_begin(store, what, err));
    return store_end(store, store_trial_start_part(store, trial_id, device, slot, fresh, err), what, err);
}

enum status store_trial_start(struct store *store, int64_t trial_id, const char *device, const char *slot,
                              struct error *err)
{
    return start(store, trial_id, device, slot, true, err);
}

enum status store_trial_resume(struct store *store, int64_t trial_id, const char *device, const char *slot,
                               struct error *err)
{
    return start(store, trial_id, device, slot, false, err);
}

enum status store_trial_clear(struct store *store, int64_t trial_id, struct error *err)
{
    static const char what[] = "clearing a trial";

    TRY(store_begin(store, what, err));
    return store_end(store, store_attempt_clear(store, trial_id, err), what, err);
}

enum status store_trial_set_config(struct store *store, int64_t trial_id, const char *config, struct error *err)
{
    static const char what[] = "completing a trial's config";

    TRY(store_begin(store, what, err));
    enum status rc = store_trial_change(store, SQL_TRIAL_CONFIG, VALUES(val_i64(trial_id), val_text(config)),
                                        "given another config", what, err);
    return store_end(store, rc, what, err);
}

static const char requeue_what[] = "putting a trial back into the queue";

enum status store_trial_requeue_part(struct store *store, int64_t trial_id, enum trial_requeue why, struct error *err)
{
    store_hint(store, STORE_HINT_TRIALS);
    return store_trial_change(store, SQL_TRIAL_REQUEUE_ONE, VALUES(val_i64(trial_id), val_i64(why)),
                              "put back into the queue", requeue_what, err);
}

enum status store_trial_requeue(struct store *store, int64_t trial_id, enum trial_requeue why, struct error *err)
{
    TRY(store_begin(store, requeue_what, err));
    return store_end(store, store_trial_requeue_part(store, trial_id, why, err), requeue_what, err);
}

enum status store_trial_lose_part(struct store *store, int64_t trial_id, const char *reason, struct error *err)
{
    return store_trial_change(store, SQL_TRIAL_LOSE,
                              VALUES(val_i64(trial_id), val_i64(clock_utc_ms()), val_text(reason)), "given up",
                              "giving a trial up", err);
}

static bool same_f64(double a, double b)
{
    return a == b || (isnan(a) && isnan(b));
}

static bool same_text(const char *a, const char *b)
{
    return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

/* The trial has ended already: fine when it holds the same result. */
static enum status finish_again(struct store *store, int64_t trial_id, const struct trial_result *result,
                                struct error *err)
{
    AT_END(trial_free) struct trial trial = {0};
    MEM_LOCAL char *checkpoint = NULL;

    TRY(trial_by_id(store, trial_id, &trial, err));
    enum status rc = store_checkpoint_path(store, trial_id, &checkpoint, err);
    if (rc == ST_OK &&
        !(trial.state == result->state && same_f64(trial.score, result->score) && same_f64(trial.perf, result->perf) &&
          same_f64(trial.cost_s, result->cost_s) && same_f64(trial.device_s, result->device_s) &&
          trial.env_steps == result->env_steps && same_text(trial.reason, result->reason) &&
          same_text(trial.outcomes, result->outcomes) && same_text(checkpoint, result->checkpoint_path)))
        rc = FAIL(err, ST_EXISTS, "%s: trial %lld is %s already, a second and different result (%s) was dropped",
                  store->path, (long long)trial.number, trial_state_name(trial.state), trial_state_name(result->state));
    return rc;
}

static enum status check_result(const struct store *store, const struct trial_result *result, struct error *err)
{
    if (result->state == TRIAL_QUEUED || result->state == TRIAL_RUNNING || (unsigned)result->state >= TRIAL_STATES)
        return FAIL(err, ST_INTERNAL, "%s: a trial cannot end as %s", store->path, trial_state_name(result->state));
    if (result->state == TRIAL_DONE && !(isfinite(result->score) && isfinite(result->cost_s)))
        return FAIL(err, ST_NUMERIC,
                    "%s: a done trial needs a finite score and cost, not %g and %g; record it as failed", store->path,
                    result->score, result->cost_s);
    return ST_OK;
}

static enum status add_outbox_row(struct store *store, int64_t trial_id, const char *json, struct error *err)
{
    AT_END(trial_free) struct trial trial = {0};

    TRY(trial_by_id(store, trial_id, &trial, err));
    return store_outbox_insert(store, trial.study_id, trial_id, json, err);
}

static const char finish_what[] = "recording a result";

enum status store_trial_finish_part(struct store *store, int64_t trial_id, const struct trial_result *result,
                                    const char *outbox_json, struct error *err)
{
    bool evaluated = result->eval_episodes > 0;
    int64_t n = 0;

    TRY(check_result(store, result, err));
    TRY(store_row_check(store, SQL_TRIAL_ROW, trial_id, err));
    TRY(store_sql_change(
        store, SQL_TRIAL_FINISH,
        VALUES(val_i64(trial_id), val_text(trial_state_name(result->state)), val_f64(result->score),
               val_f64(result->perf), val_f64(result->cost_s), val_f64(result->device_s), val_i64(result->env_steps),
               val_text(result->reason), val_i64(clock_utc_ms()), val_text(result->cost_method),
               val_text(result->log_tail), val_f64(evaluated ? result->score_se : NAN), val_i64(result->eval_episodes),
               val_f64(evaluated ? result->eval_s : NAN), val_f64(result->start_s > 0.0 ? result->start_s : NAN),
               val_text(result->program), val_text(result->kernels), val_i64(result->eval_unfinished),
               val_text(result->device), val_text(result->outcomes)),
        finish_what, &n, err));
    if (n == 0)
        return finish_again(store, trial_id, result, err);
    TRY(store_row_seal(store, SQL_TRIAL_ROW, trial_id, err));
    TRY(store_metric_open(store, trial_id, err));
    TRY(store_metric_insert(store, trial_id, result->points, result->n_points, err));
    TRY(store_metric_close(store, trial_id, err));
    if (result->checkpoint_path != NULL)
        TRY(store_checkpoint_insert(store, trial_id, result->env_steps, result->checkpoint_path, err));
    return outbox_json != NULL ? add_outbox_row(store, trial_id, outbox_json, err) : ST_OK;
}

enum status store_trials_finish(struct store *store, const struct trial_end *ends, size_t n, struct error *err)
{
    enum status rc = ST_OK;

    TRY(store_begin_synced(store, finish_what, err));
    for (size_t i = 0; rc == ST_OK && i < n; i++)
        rc = store_trial_finish_part(store, ends[i].trial_id, ends[i].result, ends[i].outbox_json, err);
    return store_end(store, rc, finish_what, err);
}

/* The ids of a study's trials that were running; *ret_ids: mem_free. */
static enum status running_ids(struct store *store, int64_t study_id, int64_t **ret_ids, size_t *ret_n,
                               struct error *err)
{
    size_t cap = 0;
    enum status rc = ST_OK;
    struct db_stmt *stmt;

    *ret_ids = NULL;
    *ret_n = 0;
    TRY(store_sql(store, SQL_TRIAL_IN_STATE, VALUES(val_i64(study_id), val_text(trial_state_name(TRIAL_RUNNING))),
                  &stmt, err));
    while (store_sql_next(store, stmt, "listing the trials", &rc, err)) {
        MEM_ROOM(*ret_ids, *ret_n, cap);
        (*ret_ids)[(*ret_n)++] = db_i64(stmt, 0);
    }
    return rc;
}

enum status store_trials_recover(struct store *store, int64_t study_id, bool requeue, int64_t *ret_n, struct error *err)
{
    static const char what[] = "recovering interrupted trials";
    MEM_LOCAL int64_t *ids = NULL;
    size_t n = 0;

    *ret_n = 0;
    TRY(store_begin(store, what, err));
    enum status rc = running_ids(store, study_id, &ids, &n, err);
    for (size_t i = 0; rc == ST_OK && i < n; i++)
        rc = requeue ? store_trial_requeue_part(store, ids[i], REQUEUE_STOPPED, err)
                     : store_trial_lose_part(store, ids[i], "the program ended while the trial ran", err);
    TRY(store_end(store, rc, what, err));
    *ret_n = (int64_t)n;
    return ST_OK;
}

/* The trials from a number on, as a statement of these values lists them. */
static enum status list(struct store *store, enum store_sql sql, struct db_values values, int64_t study_id,
                        int64_t from, struct trial **ret_trials, size_t *ret_n, struct error *err)
{
    size_t cap = 0;
    enum status rc = ST_OK;
    struct db_stmt *stmt;

    *ret_trials = NULL;
    *ret_n = 0;
    TRY(store_sql(store, sql, values, &stmt, err));
    while (store_sql_next(store, stmt, "listing the trials", &rc, err)) {
        MEM_ROOM(*ret_trials, *ret_n, cap);
        rc = read_trial(store, stmt, study_id, from + (int64_t)*ret_n, &(*ret_trials)[*ret_n], err);
        *ret_n += rc == ST_OK;
    }
    if (rc != ST_OK) {
        trial_list_free(*ret_trials, *ret_n);
        *ret_trials = NULL;
        *ret_n = 0;
    }
    return rc;
}

enum status store_trial_list(struct store *store, int64_t study_id, struct trial **ret_trials, size_t *ret_n,
                             struct error *err)
{
    return list(store, SQL_TRIAL_LIST, VALUES(val_i64(study_id)), study_id, 0, ret_trials, ret_n, err);
}

enum status store_trial_list_from(struct store *store, int64_t study_id, int64_t from, struct trial **ret_trials,
                                  size_t *ret_n, struct error *err)
{
    return list(store, SQL_TRIAL_LIST_FROM, VALUES(val_i64(study_id), val_i64(from)), study_id, from, ret_trials, ret_n,
                err);
}

enum status store_trial_find(struct store *store, int64_t study_id, int64_t number, struct trial *ret_trial,
                             struct error *err)
{
    struct db_stmt *stmt;
    bool there;

    *ret_trial = (struct trial){0};
    TRY(store_sql_row(store, SQL_TRIAL_FIND, VALUES(val_i64(study_id), val_i64(number)), "reading a trial", &stmt,
                      &there, err));
    enum status rc = there ? read_trial(store, stmt, study_id, number, ret_trial, err)
                           : FAIL(err, ST_NOTFOUND, "%s: the study has no trial %lld; 'trawl show' lists them",
                                  store->path, (long long)number);
    db_reset(stmt);
    return rc;
}
