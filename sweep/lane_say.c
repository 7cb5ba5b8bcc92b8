/* lane_say.c - what a lane tells the controller about its trial: protocol 2 of sweep/control.h.
 * Invariant: a message is whole or NULL (out of memory), which workshop_send counts as a failure to send. */
#include <math.h>

#include "base/clock.h"
#include "sweep/lane.h"

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

/* The metrics of the last report, with the result's means in place of that report's. */
static cJSON *final_json(struct lane_trial *t, const struct train_result *r)
{
    t->last.score = r->score;
    t->last.perf = r->perf;
    t->last.ep_return = r->ep_return;
    t->last.ep_length = r->ep_length;
    t->last.steps_per_s = r->steps_per_s;
    return lane_metrics_json(&t->last);
}

/* state, cost and what else the store keeps. */
static bool result_fill(cJSON *json, struct lane *lane, enum status trained, const struct train_result *r,
                        const char *why)
{
    struct lane_trial *t = &lane->trial;
    const char *state = trained != ST_OK ? "failed" : r->stopped ? "stopped" : "done";
    double wall_s = t->start_s > 0.0 ? clock_mono_s() - t->start_s : 0.0;
    double cost_s = trained == ST_OK || r->cost_calibrated ? r->cost_s : wall_s;
    bool lost = atomic_load(&lane->shop->lost);
    bool ok = json_add_str(json, "state", state) && json_add_f64(json, "perf", r->perf) &&
              json_add_f64(json, "cost_s", cost_s) && json_add_f64(json, "device_s", cost_s) &&
              json_add_f64(json, "wall_s", wall_s) &&
              json_add_str(json, "cost_method", r->cost_calibrated ? "calibrated" : "wall") &&
              json_add_i64(json, "env_steps", trained == ST_OK ? r->env_steps : t->last.env_steps) &&
              json_add_f64(json, "episodes", r->episodes) && json_add_bool(json, "lost", lost);

    if (ok && trained != ST_OK)
        ok = json_add_str(json, "reason", why);
    if (ok && t->saved)
        ok = json_add_str(json, "checkpoint", t->checkpoint_path);
    if (ok && trained == ST_OK)
        ok = json_add(json, "final", final_json(t, r));
    return ok;
}

cJSON *lane_result_json(struct lane *lane, enum status trained, const struct train_result *r, const char *why)
{
    cJSON *json = lane_message(lane, "result");

    if (json != NULL && !result_fill(json, lane, trained, r, why)) {
        cJSON_Delete(json);
        return NULL;
    }
    return json;
}
