/* run_message.c - a trial as a worker gets it, and its result as the worker sends it. */
#include "sweep/controller/trial/run_message.h"

#include "study/space/branches.h"
#include "study/setup/outcomes.h"
#include "study/setup/setup.h"
#include "study/view/study_view.h"
#include "sweep/launch/proto.h"
#include "sweep/program/trial_folders.h"

#include <sys/stat.h>

/* Where the run is evaluated on its way; the shortest run of the space is the first. */
static void add_branches(const struct study_view *v, const struct trial *t, cJSON *json)
{
    size_t k = search_find(&v->search, BRANCHES_STEPS_KEY), n;
    int64_t steps[SWEEP_BRANCHES_MAX];
    AT_END(setup_destroy_at) struct setup *setup = NULL;

    if (v->setup->sweep.branches == 0 || k == v->search.space.dim || trial_setup(t, &setup, NULL) != ST_OK)
        return; /* the worker will report what is wrong with the config */
    n = branches_of_run(&setup->train, v->search.space.params[k].min, (size_t)v->setup->sweep.branches, steps);
    cJSON *array = n > 0 ? cJSON_AddArrayToObject(json, "branches") : NULL;
    for (size_t i = 0; i < n; i++)
        cJSON_AddItemToArray(array, cJSON_CreateNumber((double)steps[i]));
}

cJSON *run_message(const struct study_view *v, const struct trial *t, const char *store_path, const char *checkpoint,
                   bool resume)
{
    const struct sweep_settings *s = &v->setup->sweep;
    cJSON *json = proto_message("run");
    char dir[PATH_MAX], owner[CHECKPOINT_LABEL_MAX];

    trial_folder_path(store_path, v->study.name, t->number, dir);
    checkpoint_owner(&v->study, t, owner, sizeof owner);
    json_add_i64(json, "trial", t->id);
    json_add_i64(json, "attempt", t->attempt);
    json_add_i64(json, "number", t->number);
    json_add_str(json, "study", v->study.name);
    json_add_str(json, "config", t->config);
    json_add_str(json, "metric", v->study.metric);
    json_add_str(json, "owner", owner);
    json_add_str(json, "checkpoint_path", checkpoint);
    json_add_f64(json, "checkpoint_every_s", s->checkpoint_interval_s);
    json_add_str(json, "dir", dir);
    json_add_bool(json, "needs_step", v->search.cost == SEARCH_COST_STEPS);
    json_add_bool(json, "own_cost", v->search.cost == SEARCH_COST_OWN);
    json_add_bool(json, "checkpoint_end", s->keep != SWEEP_KEEP_NONE);
    if (resume) {
        struct stat info = {0};
        json_add_str(json, "resume_from", checkpoint);
        if (stat(checkpoint, &info) == 0)
            json_add_i64(json, "resume_bytes", info.st_size);
    }
    add_branches(v, t, json);
    return json;
}

enum status run_config_settle(const struct study_view *v, const struct trial *t, const struct run_device *d,
                              char **ret_text, struct error *err)
{
    struct setup_override overrides[3] = {
        {.key = "train.device"}, {.key = "train.vector_units"}, {.key = "train.threads"}};
    struct setup *setup = NULL, *settled = NULL;
    bool cpu = d != NULL && strcmp(d->kind, "cpu") == 0;
    struct error wrong = {0};

    *ret_text = NULL;
    if (setup_is_program(v->setup) || (d != NULL && d->kind[0] == '\0'))
        return ST_OK;
    enum status rc = trial_setup(t, &setup, &wrong);
    if (rc != ST_OK) /* the worker will report what is wrong with the config */
        return rc == ST_CONFIG || rc == ST_VERSION ? ST_OK : FAIL(err, rc, "%s", wrong.text);
    for (size_t i = 0; i < 2 && d == NULL; i++)
        snprintf(overrides[i].value, sizeof overrides[i].value, "%s", config_peek(v->setup->config, overrides[i].key));
    if (d != NULL) {
        snprintf(overrides[0].value, sizeof overrides[0].value, "%s", d->kind);
        snprintf(overrides[1].value, sizeof overrides[1].value, "%s", d->vector_units);
        snprintf(overrides[2].value, sizeof overrides[2].value, "%lld",
                 (long long)(setup->train.threads == 0 ? d->threads : setup->train.threads));
    }
    rc = setup_derive(setup, overrides,
                      d == NULL ? 2
                      : cpu     ? 3
                                : 1,
                      d != NULL ? "the worker" : "the study", &settled, err);
    THEN(rc, setup_to_ini(settled, ret_text, err));
    setup_destroy(settled);
    setup_destroy(setup);
    if (rc == ST_OK && strcmp(*ret_text, t->config) == 0) {
        mem_free(*ret_text);
        *ret_text = NULL;
    }
    return rc;
}

static void read_text(const cJSON *message, const char *key, const char *absent, char *buf, size_t size)
{
    const char *text = json_get_str(message, key);

    snprintf(buf, size, "%s", text != NULL ? text : absent);
}

void run_result_read(struct run_result *run, const cJSON *message, const char *metric, double cost_factor)
{
    const char *state = json_get_str(message, "state"), *reason = json_get_str(message, "reason");
    struct trial_result *r = &run->result;
    char why[sizeof run->reason] = "";

    r->score = r->perf = r->cost_s = r->device_s = r->score_se = r->eval_s = NAN;
    (void)json_get_f64(message, "score", &r->score);
    (void)json_get_f64(message, "score_se", &r->score_se);
    bool is_evaluated = json_get_i64(message, "eval_episodes", &r->eval_episodes);
    (void)json_get_i64(message, "eval_unfinished", &r->eval_unfinished);
    (void)json_get_f64(message, "eval_s", &r->eval_s);
    (void)json_get_f64(message, "start_s", &r->start_s);
    (void)json_get_f64(message, "perf", &r->perf);
    (void)json_get_f64(message, "cost_s", &r->cost_s);
    (void)json_get_f64(message, "device_s", &r->device_s);
    (void)json_get_i64(message, "env_steps", &r->env_steps);
    read_text(message, "program", "", run->program, sizeof run->program);
    read_text(message, "vector_units", "", run->vector_units, sizeof run->vector_units);
    read_text(message, "device", "", run->device, sizeof run->device);
    read_text(message, "log_tail", "", run->log_tail, sizeof run->log_tail);
    read_text(message, "cost_method", "wall", run->cost_method, sizeof run->cost_method);
    if (cost_factor != 1) {
        size_t n = strlen(run->cost_method);
        r->cost_s *= cost_factor;
        snprintf(run->cost_method + n, sizeof run->cost_method - n, " x %.4g", cost_factor);
    }
    r->state = TRIAL_FAILED;
    if (state != NULL && strcmp(state, "stopped") == 0)
        r->state = TRIAL_STOPPED;
    else if (state == NULL || strcmp(state, "done") != 0)
        snprintf(why, sizeof why, "%s", reason != NULL ? reason : "the worker gave no reason");
    else if (!isfinite(r->cost_s))
        snprintf(why, sizeof why, "the worker gave no cost");
    else if (isnan(r->score) && strncmp(metric, "train/", 6) == 0)
        snprintf(why, sizeof why,
                 "%s is unknown: no episode ended in the training; give each agent more steps (higher "
                 "train.total_timesteps, lower train.total_agents)",
                 metric);
    else if (!isfinite(r->score) && is_evaluated && r->eval_episodes == 0)
        snprintf(why, sizeof why, "%s is unknown: " EVAL_NO_EPISODE, metric);
    else if (!isfinite(r->score))
        snprintf(why, sizeof why, "%s is %g at the end of the run", metric, r->score);
    else if (fabs(r->score) > STUDY_SCORE_MAX)
        snprintf(why, sizeof why, "%s is %g at the end of the run; up to %g can be searched by", metric, r->score,
                 STUDY_SCORE_MAX);
    else
        r->state = TRIAL_DONE;
    if (r->state != TRIAL_STOPPED) /* when done it was faster than the word to stop */
        memcpy(run->reason, why, sizeof why);
}

enum status run_result_settle(struct run_result *run, const struct study_view *v, struct store *store, int64_t trial_id,
                              const cJSON *message, struct error *err)
{
    struct outcomes_settled settled;

    TRY(outcomes_settle(&v->search.outcomes, store, v->study.metric, trial_id, json_get(message, "outcomes"),
                        &run->result, &settled, err));
    mem_free(run->outcomes);
    run->result.outcomes = run->outcomes = settled.values;
    if (run->result.state == TRIAL_DONE && settled.lacks[0] != '\0') {
        run->result.state = TRIAL_FAILED;
        run->result.lacks_outcome = true;
        snprintf(run->reason, sizeof run->reason, "%s", settled.lacks);
    }
    return ST_OK;
}

static const char *or_null(const char *text)
{
    return text[0] != '\0' ? text : NULL;
}

const struct trial_result *run_result_texts(struct run_result *run)
{
    struct trial_result *r = &run->result;

    r->reason = or_null(run->reason);
    r->cost_method = or_null(run->cost_method);
    r->log_tail = or_null(run->log_tail);
    r->program = or_null(run->program);
    r->device = or_null(run->device);
    r->kernels = or_null(run->vector_units);
    r->outcomes = run->outcomes;
    return r;
}
