/* rerun_store.c - runs under fresh seeds as trials of the study, added as `trawl import` adds results.
 * Invariant: a seed of a config is there once: each run has a key of study, trial and seed. */
#include "sweep/rerun/rerun_store.h"

#include "base/text/json.h"
#include "sweep/control/ask/ask_forward.h"
#include "sweep/control/ask/ask_points.h"
#include "sweep/controller/sched_study.h"
#include "sweep/rerun/rerun_train.h"

#define CLIENT "trawl rerun"

/* The run as a request of `add`. */
static cJSON *run_body(const struct rerun *r, const struct rerun_result *run)
{
    cJSON *body = cJSON_CreateObject(), *params = NULL, *metrics = NULL;
    char key[96];

    (void)!json_parse(r->trial.params, strlen(r->trial.params), &params, NULL);
    cJSON *env = cJSON_DetachItemFromObjectCaseSensitive(params, SEARCH_ENV_KEY);
    json_add(body, "params", params);
    if (env != NULL) /* of a study of several games */
        json_add(body, "env", env);
    json_add_str(body, "state", "done");
    json_add_f64(body, "score", run->score);
    json_add_f64(body, "cost", rerun_cost(r, run));
    json_add_i64(body, "step", run->env_steps);
    json_add_i64(body, "seed", run->seed);
    if (isfinite(run->score_se) && run->eval_episodes > 0) {
        json_add_f64(body, "score_se", run->score_se);
        json_add_i64(body, "eval_episodes", run->eval_episodes);
    }
    if (run->outcomes != NULL && json_parse(run->outcomes, strlen(run->outcomes), &metrics, NULL) == ST_OK)
        json_add(body, "metrics", metrics);
    json_add_str(body, "client", CLIENT);
    snprintf(key, sizeof key, "rerun-%lld-%lld", (long long)r->trial.number, (long long)run->seed);
    json_add_str(body, "key", key);
    return body;
}

/* Run i is to be stored and is not yet. */
static bool is_left(const struct rerun *r, size_t i)
{
    return isfinite(r->runs[i].score) && r->stored[i] < 0;
}

enum status rerun_store(struct rerun *r, struct error *err)
{
    AT_END(store_close_at) struct store *store = NULL;
    struct sched_study *ss = NULL;
    enum status rc = ST_OK;
    size_t i = 0;
    int64_t pid;

    while (i < r->n && !is_left(r, i))
        i++;
    if (i == r->n)
        return ST_OK;
    if (!store_is_held(r->store_path, r->study.name, &pid)) {
        rc = store_open_controller(&store, r->store_path, err);
        THEN(rc, sched_study_open(&ss, store, r->study.name, err));
    }
    for (; rc == ST_OK && i < r->n; i++) {
        cJSON *body, *answer = NULL;
        if (!is_left(r, i))
            continue;
        body = run_body(r, &r->runs[i]);
        if (ss != NULL)
            rc = ask_add(ss, body, answer = cJSON_CreateObject(), err);
        else
            rc = ask_forward(r->store_path, "add", r->study.name, -1, body, &answer, err);
        if (rc == ST_OK && json_get_i64(answer, "trial", &r->stored[i]))
            r->n_stored++;
        cJSON_Delete(body);
        cJSON_Delete(answer);
    }
    sched_study_destroy(ss);
    return rc;
}
