/* rerun_train.c - trains the config of a stored trial again.
 * Invariants: (1) the store is only read here; (2) a rerun ends at the env steps that the stored trial came to. */
#include "sweep/rerun/rerun_train.h"

#include "base/text/json.h"
#include "base/rng.h"
#include "study/view/checkpoint_label.h"
#include "study/setup/setup.h"
#include "sweep/program/once.h"
#include "sweep/program/trial_folders.h"
#include "sweep/program/trial_program.h"
#include "sweep/signals.h"
#include "sweep/worker/evaluate.h"

/* A trial that was stopped on its way is repeated up to there. */
static bool should_stop(void *ctx)
{
    struct rerun *r = ctx;
    struct train_metrics now;

    if (signals_stop())
        return true;
    if (r->trial.state != TRIAL_STOPPED || r->trial.env_steps <= 0)
        return false;
    trainer_get_metrics(r->session.trainer, &now);
    return now.env_steps >= r->trial.env_steps;
}

/* Are the weights those of the stored checkpoint? Loads it over the trainer's, so this comes last. */
static enum status compare_params(struct rerun *r, struct error *err)
{
    size_t n = trainer_n_params(r->session.trainer);
    MEM_LOCAL float *theirs = mem_array(n, sizeof *theirs), *ours = mem_array(n, sizeof *ours);
    struct error why = {0};
    enum status rc = trainer_get_params(r->session.trainer, ours, err);

    if (rc == ST_OK && trainer_load(r->session.trainer, r->checkpoint, &why) != ST_OK)
        log_warn("the weights cannot be compared: %s", why.text);
    else if (rc == ST_OK && (rc = trainer_get_params(r->session.trainer, theirs, err)) == ST_OK)
        r->params_equal = memcmp(ours, theirs, n * sizeof *ours) == 0;
    return rc;
}

static enum status save(struct rerun *r, const struct setup *setup, struct error *err)
{
    char maker[CHECKPOINT_LABEL_MAX];
    MEM_LOCAL char *label = NULL, *text = NULL;
    enum status rc = setup_to_ini(setup, &text, err);

    checkpoint_maker(kern_device_name(r->session.kern), NULL, maker, sizeof maker);
    THEN(rc, checkpoint_label(NULL, maker, text, &label, err));
    THEN(rc, trainer_save(r->session.trainer, r->output, label, err));
    return rc;
}

/* As the stored trial was: one that was stopped has the end of its training for a score. */
static bool is_evaluated(const struct rerun *r)
{
    return r->trial.state != TRIAL_STOPPED;
}

static enum status evaluate_policy(struct rerun *r, const struct setup *setup, struct eval_result *ret_eval,
                                   struct error *err)
{
    struct eval_settings settings;

    eval_settings_of(&setup->train, &settings);
    return evaluate(r->session.trainer, &settings, r->quiet, ret_eval, err);
}

/* What limits and the third objective of the study need, as a trial of a sweep has it. What is missing is named where
 * the run is added. Takes given. */
static enum status settle_outcomes(const struct rerun *r, cJSON *given, double cost_s, struct rerun_result *again,
                                   struct error *err)
{
    const struct trial_result result = {
        .score = again->score, .perf = again->perf, .cost_s = cost_s, .env_steps = again->env_steps};
    struct outcomes_settled settled;
    enum status rc = outcomes_settle(&r->outcomes, NULL, r->study.metric, 0, given, &result, &settled, err);

    again->outcomes = settled.values;
    cJSON_Delete(given);
    return rc;
}

static cJSON *trained_values(const struct train_result *result, const struct eval_result *eval)
{
    cJSON *values = cJSON_CreateObject();
    double none;

    for (size_t i = 0; i < train_metrics_count(result->window.env); i++) {
        const char *name = train_metrics_name(result->window.env, i);
        json_add_f64(values, name, train_outcome(result, eval, name, &none));
    }
    return values;
}

static cJSON *reported_values(const struct metric_line *line)
{
    cJSON *values = cJSON_CreateObject();

    for (size_t i = 0; i < line->n; i++)
        json_add_f64(values, line->metrics[i].name, line->metrics[i].value);
    return values;
}

static void fill_result(const struct rerun *r, int64_t seed, const struct train_result *result,
                        const struct eval_result *eval, struct rerun_result *ret)
{
    double none;

    *ret = (struct rerun_result){.seed = seed,
                                 .env_steps = result->env_steps,
                                 .perf = train_outcome(result, eval, "perf", &none),
                                 .cost_s = result->cost_s,
                                 .eval_episodes = eval->episodes};
    ret->score = train_outcome(result, eval, r->study.metric, &ret->score_se);
    snprintf(ret->device, sizeof ret->device, "%s", kern_device_name(r->session.kern));
    snprintf(ret->vector_units, sizeof ret->vector_units, "%s", kern_vector_units(r->session.kern));
}

/* In a folder of its own beside the trial's. */
static enum status run_program(const struct rerun *r, const struct setup *setup, int64_t seed,
                               struct rerun_result *ret_again, struct error *err)
{
    char dir[TRIAL_FOLDER_MAX];
    MEM_LOCAL char *text = NULL;
    struct trial_program trial = {.setup = setup,
                                  .own_cost = r->cost_kind == SEARCH_COST_OWN,
                                  .metric = r->study.metric,
                                  .study = r->study.name,
                                  .number = r->number,
                                  .attempt = 1,
                                  .dir = dir,
                                  .gpu = -1};
    MEM_LOCAL struct program_end *end = mem_alloc(sizeof *end);
    MEM_LOCAL struct metric_line *last = mem_alloc(sizeof *last);

    trial_folder_path(r->store_path, r->study.name, r->number, dir);
    snprintf(dir + strlen(dir), sizeof dir - strlen(dir), "-rerun-%lld", (long long)seed);
    TRY(setup_to_ini(setup, &text, err));
    trial.config = text;
    TRY(program_once(&trial, end, last, err));
    if (end->outcome == PROGRAM_STOPPED)
        return ST_INTERRUPTED;
    if (end->outcome == PROGRAM_FAILED)
        return FAIL(err, ST_LIMIT, "rerun: with seed %lld the program failed: %s; its output is in %s/output.log",
                    (long long)seed, end->reason, dir);
    *ret_again = (struct rerun_result){.seed = seed,
                                       .env_steps = end->step,
                                       .score = end->score,
                                       .score_se = NAN,
                                       .perf = NAN,
                                       .cost_s = end->cost,
                                       .device = "cpu"};
    return settle_outcomes(r, reported_values(last), trial.own_cost ? end->wall_s : end->cost, ret_again, err);
}

static enum status train_once(struct rerun *r, int64_t seed, struct rerun_result *ret_again, struct error *err)
{
    struct train_callbacks callbacks = {.ctx = r, .should_stop = should_stop};
    struct setup_override override = {.key = setup_is_program(r->setup) ? "sweep.trial_seed" : "train.seed"};
    struct train_result result;
    struct eval_result eval = {.stopped = true};
    AT_END(setup_destroy_at) struct setup *setup = NULL;

    snprintf(override.value, sizeof override.value, "%lld", (long long)seed);
    TRY(setup_derive(r->setup, &override, 1, "rerun", &setup, err));
    if (setup_is_program(setup))
        return run_program(r, setup, seed, ret_again, err);
    TRY(session_open(&r->session, setup, err));
    TRY(session_begin(&r->session, setup, err));
    TRY(trainer_run(r->session.trainer, &callbacks, &result, err));
    if (is_evaluated(r))
        TRY(evaluate_policy(r, setup, &eval, err));
    if (signals_stop())
        return ST_INTERRUPTED;
    fill_result(r, seed, &result, &eval, ret_again);
    TRY(settle_outcomes(r, trained_values(&result, &eval), result.cost_s, ret_again, err));
    if (r->output != NULL)
        TRY(save(r, setup, err));
    return r->n_seeds == 0 && r->checkpoint != NULL ? compare_params(r, err) : ST_OK;
}

/* Number *at of a row of seeds, or the next that the study has not run. Never the stored one: that run was picked for
 * its score, and would make the mean look better than it is. */
static int64_t fresh_seed(const struct rerun *r, uint64_t *at)
{
    for (;;) {
        int64_t seed = (int64_t)(rng_split(rng_seed((uint64_t)r->trial.seed), (*at)++).key & 0x7fffffff);
        size_t k = 0;
        while (k < r->n_had && r->had_seeds[k] != seed)
            k++;
        if (k == r->n_had)
            return seed;
    }
}

double rerun_cost(const struct rerun *r, const struct rerun_result *again)
{
    return r->cost_kind == SEARCH_COST_STEPS ? (double)again->env_steps : again->cost_s;
}

size_t rerun_n_wanted(const struct rerun *r)
{
    return r->n_seeds > 0 ? (size_t)r->n_seeds : 1;
}

void rerun_begin(struct rerun *r)
{
    size_t want = rerun_n_wanted(r);

    r->runs = mem_array(want, sizeof *r->runs);
    r->stored = mem_array(want, sizeof *r->stored);
    for (size_t i = 0; i < want; i++)
        r->stored[i] = -1;
    signals_bound(NULL, NULL);
}

enum status rerun_train(struct rerun *r, struct error *err)
{
    TRY(train_once(r, r->n_seeds > 0 ? fresh_seed(r, &r->seed_at) : r->trial.seed, &r->runs[r->n], err));
    r->n++;
    return ST_OK;
}
