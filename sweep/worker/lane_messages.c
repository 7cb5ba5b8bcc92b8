/* lane_messages.c - a lane's messages to the controller about its trial (protocol in sweep/launch/proto.h).
 * Invariant: a message is whole or NULL (out of memory), which lane_pool_send counts as a failure to send. */
#include "sweep/worker/lane_messages.h"

#include "base/clock.h"
#include "base/json.h"
#include "base/status.h"
#include "study/checkpoint_label.h"
#include "study/version.h"
#include "sweep/launch/proto.h"
#include "sweep/worker/lane_pool.h"
#include "trainer/trainer.h"

#include <math.h>
#include <string.h>

cJSON *lane_message(const struct lane *lane, const char *type)
{
    cJSON *json = proto_message(type);

    if (json != NULL &&
        !(json_add_i64(json, "trial", lane->trial.id) && json_add_i64(json, "attempt", lane->trial.attempt))) {
        cJSON_Delete(json);
        return NULL;
    }
    return json;
}

/* Every metric by its name; NaN means "unknown" and is left out. */
cJSON *lane_metrics_json(const struct train_metrics *m)
{
    cJSON *json = cJSON_CreateObject();
    bool ok = json != NULL;

    for (size_t i = 0; ok && i < train_n_metric_defs; i++) {
        double value = train_metric_value(m, i);
        if (!isnan(value))
            ok = json_add_f64(json, train_metric_defs[i].name, value);
    }
    if (!ok) {
        cJSON_Delete(json);
        return NULL;
    }
    return json;
}

/* A done trial by its evaluation, a stopped one by the end of its training. */
static bool fill_scores(cJSON *json, const struct lane_trial *t, const struct train_result *r,
                        const struct eval_result *eval)
{
    double se = NAN, none, score = t->metric != NULL ? train_outcome(r, eval, t->metric, &se) : NAN;

    return json_add_f64(json, "perf", train_outcome(r, eval, "perf", &none)) &&
           (t->metric == NULL || json_add_f64(json, "score", score)) &&
           (eval->stopped || (json_add_i64(json, "eval_episodes", eval->episodes) &&
                              json_add_i64(json, "eval_unfinished", eval->unfinished) &&
                              json_add_f64(json, "eval_s", eval->eval_s) && json_add_f64(json, "score_se", se)));
}

/* How its bytes came about, and what a process of its own would need before its first iteration. */
static bool fill_origin(cJSON *json, const struct lane *lane)
{
    const struct lane_pool *pool = lane->pool;
    const struct kern *kern = lane->session.kern;
    const char *maker = lane->trial.maker;
    double start_s = pool->process_s + 1e-6 * (double)atomic_load(&pool->open_us) + lane->trial.create_s;

    return json_add_f64(json, "start_s", start_s) &&
           json_add_str(json, "program", strstr(maker, CHECKPOINT_THEN) != NULL ? maker : program_text) &&
           json_add_str(json, "vector_units", kern != NULL ? kern_vector_units(kern) : "") &&
           json_add_str(json, "device", kern != NULL ? kern_device_name(kern) : "");
}

/* state, cost and what else the store keeps. */
static bool result_fill(cJSON *json, struct lane *lane, enum status trained, const struct train_result *r,
                        const struct eval_result *eval, const char *why)
{
    struct lane_trial *t = &lane->trial;
    const char *state = trained != ST_OK ? "failed" : r->stopped ? "stopped" : "done";
    double wall_s = t->start_s > 0.0 ? clock_mono_s() - t->start_s : 0.0;
    double cost_s = trained == ST_OK || r->cost_calibrated ? r->cost_s : wall_s;
    bool lost = atomic_load(&lane->pool->lost);
    bool ok = json_add_str(json, "state", state) && json_add_f64(json, "cost_s", cost_s) &&
              json_add_f64(json, "device_s", cost_s) && json_add_f64(json, "wall_s", wall_s) &&
              json_add_str(json, "cost_method", r->cost_calibrated ? "calibrated" : "wall") &&
              json_add_i64(json, "env_steps", trained == ST_OK ? r->env_steps : t->last.env_steps) &&
              json_add_bool(json, "lost", lost) && fill_origin(json, lane);

    if (ok && trained != ST_OK)
        ok = json_add_str(json, "reason", why);
    if (ok && t->saved)
        ok = json_add_str(json, "checkpoint", t->checkpoint_path);
    if (ok && trained == ST_OK)
        ok = fill_scores(json, t, r, eval);
    return ok;
}

cJSON *lane_result_json(struct lane *lane, enum status trained, const struct train_result *r,
                        const struct eval_result *eval, const char *why)
{
    cJSON *json = lane_message(lane, "result");

    if (json != NULL && !result_fill(json, lane, trained, r, eval, why)) {
        cJSON_Delete(json);
        return NULL;
    }
    return json;
}
