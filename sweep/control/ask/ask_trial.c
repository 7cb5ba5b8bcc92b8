/* ask_trial.c - what a client gets to train a trial, and how its result is read. */
#include "sweep/control/ask/ask_trial.h"

#include "study/program/program_command.h"
#include "study/setup/setup.h"
#include "sweep/controller/sched_study.h"

#define VALUE_MAX 256

static void put_argument(cJSON *argv, const char *name, const char *value)
{
    char text[CONFIG_KEY_MAX + 2];

    snprintf(text, sizeof text, "--%s", name);
    cJSON_AddItemToArray(argv, cJSON_CreateString(text));
    cJSON_AddItemToArray(argv, cJSON_CreateString(value));
}

/* What {argv} of a command stands for: all parameters of a program that have a value, in the spelling of their
 * sections. */
static void put_program_argv(const struct setup *setup, cJSON *argv)
{
    for (size_t i = 0; i < setup->params.table.n_defs; i++) {
        const struct opt_def *def = &setup->params.table.defs[i];
        const char *value = program_param_text(setup->config, def);
        if (value != NULL && value[0] != '\0')
            put_argument(argv, def->written != NULL ? def->written : def->key, value);
    }
}

static void put_params(const struct sched_study *ss, size_t i, const struct setup *setup, cJSON *out)
{
    const struct search *search = &ss->view.search;
    cJSON *params = cJSON_AddObjectToObject(out, "params"), *argv = cJSON_AddArrayToObject(out, "argv");
    char text[VALUE_MAX];

    for (size_t k = 0; k < search->space.dim; k++) {
        const struct space_param *p = &search->space.params[k];
        const char *name = search_param_name(p->key);
        double x = ss->view.x[i][k];
        if (!space_is_active(&search->space, k, ss->view.x[i]))
            continue; /* it has no effect beside the others */
        search_value_text(search, k, x, text, sizeof text);
        if (p->scale == SPACE_CATEGORICAL)
            config_add_json_text(params, name, text);
        else
            json_add_f64(params, name, x);
        if (!setup_is_program(setup))
            put_argument(argv, name, text);
    }
    if (setup_is_program(setup))
        put_program_argv(setup, argv);
}

enum status ask_trial_put(const struct sched_study *ss, const struct held *held, bool again, cJSON *out,
                          struct error *err)
{
    const struct trial *t = &ss->view.trials[held->i];
    AT_END(setup_destroy_at) struct setup *setup = NULL;
    const char *needed[OUTCOMES_MAX];
    cJSON *lease;

    TRY(trial_setup(t, &setup, err));
    json_add_str(out, "state", "running");
    json_add_i64(out, "trial", t->number);
    json_add_bool(out, "again", again);
    json_add_i64(out, "attempt", held->lease.attempt);
    json_add_i64(out, "seed", t->seed);
    if (study_view_env(&ss->view, held->i) != NULL)
        json_add_str(out, "env", study_view_env(&ss->view, held->i));
    put_params(ss, held->i, setup, out);
    json_add(out, "config", setup_to_json(setup));
    json_add_str(out, "ini", t->config);
    json_add_str(out, "metric", ss->view.study.metric);
    json_add_str(out, "goal", ss->view.study.maximize ? "maximize" : "minimize");
    size_t n_needed = outcomes_needed(&ss->view.search.outcomes, needed);
    json_add(out, "needs", cJSON_CreateStringArray(needed, (int)n_needed));
    json_add_str(out, "cost_unit", study_cost_unit(ss->view.search.cost));
    lease = cJSON_AddObjectToObject(out, "lease");
    json_add_str(lease, "token", held->lease.token);
    json_add_f64(lease, "seconds", ss->setup->sweep.lease_s);
    return ST_OK;
}

static enum status read_state(const cJSON *body, const char *verb, enum trial_state *ret_state, struct error *err)
{
    static const enum trial_state states[] = {TRIAL_DONE, TRIAL_FAILED, TRIAL_STOPPED};
    const char *word = json_get_str(body, "state");

    *ret_state = TRIAL_DONE;
    for (size_t i = 0; word != NULL && i < COUNT(states); i++)
        if (strcmp(word, trial_state_name(states[i])) == 0) {
            *ret_state = states[i];
            return ST_OK;
        }
    return word == NULL
               ? ST_OK
               : FAIL(err, ST_USAGE, "%s: the state is '%.40s'; done, failed and stopped are allowed", verb, word);
}

enum status ask_result_read(const cJSON *body, const char *verb, enum search_cost kind, double elapsed_s,
                            struct trial_result *ret, struct error *err)
{
    struct trial_result r = {.score = NAN, .perf = NAN, .cost_s = NAN, .device_s = NAN, .score_se = NAN, .eval_s = NAN};
    const char *reason = json_get_str(body, "reason");

    TRY(read_state(body, verb, &r.state, err));
    (void)json_get_f64(body, "score", &r.score);
    double cost = json_f64_or(body, "cost", NAN);
    (void)json_get_i64(body, "step", &r.env_steps);
    (void)json_get_f64(body, "score_se", &r.score_se);
    (void)json_get_i64(body, "eval_episodes", &r.eval_episodes);
    if (r.state == TRIAL_DONE && !isfinite(r.score))
        return FAIL(err, ST_USAGE, "%s: a trial that is done needs its score; report \"failed\" if it has none", verb);
    if (r.state == TRIAL_DONE && fabs(r.score) > STUDY_SCORE_MAX)
        return FAIL(err, ST_USAGE, "%s: the score is %g; up to %g can be searched by, report \"failed\"", verb, r.score,
                    STUDY_SCORE_MAX);
    if (cost < 0)
        return FAIL(err, ST_USAGE, "%s: the cost is %g; it cannot be below 0", verb, cost);
    if (isnan(cost) && (isnan(elapsed_s) || kind == SEARCH_COST_OWN) && r.state == TRIAL_DONE)
        return FAIL(err, ST_USAGE, "%s: a trial that is done needs its cost", verb);
    if (kind == SEARCH_COST_STEPS) {
        if (isfinite(cost) && cost < 9e15)
            r.env_steps = (int64_t)cost;
        else if (r.env_steps == 0 && r.state == TRIAL_DONE)
            return FAIL(err, ST_USAGE, "%s: the study counts steps as cost (sweep.cost); give step or cost", verb);
        r.cost_s = isnan(elapsed_s) ? 0 : elapsed_s;
    } else if (kind == SEARCH_COST_OWN) {
        r.device_s = cost;
        r.cost_s = isnan(elapsed_s) ? 0 : elapsed_s;
    } else {
        r.cost_s = isfinite(cost) ? cost : elapsed_s;
    }
    if (kind == SEARCH_COST_DEVICE)
        r.device_s = r.cost_s;
    r.cost_method = isfinite(cost) ? "client" : "lease";
    r.log_tail = json_get_str(body, "log");
    r.reason = r.state == TRIAL_DONE ? NULL : reason != NULL ? reason : "its client gave no reason";
    *ret = r;
    return ST_OK;
}
