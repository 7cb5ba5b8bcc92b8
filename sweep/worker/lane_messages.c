/* lane_messages.c - what the threads of a worker send to the controller (protocol in sweep/launch/proto.h). */
#include "sweep/worker/lane_messages.h"

#include "study/view/checkpoint_label.h"
#include "study/version.h"
#include "sweep/launch/proto.h"
#include "sweep/worker/lane_pool.h"
#include "trainer/trainer.h"

void lane_pool_send(struct lane_pool *pool, cJSON *message)
{
    struct error why = {0};

    pthread_mutex_lock(&pool->send_lock);
    enum status rc = proto_send(&pool->proto, message, &why);
    pthread_mutex_unlock(&pool->send_lock);
    if (rc == ST_OK || atomic_exchange(&pool->gone, true))
        return;
    log_debug("%s; the worker ends", why.text);
    lane_pool_stop(pool, -1, false);
}

cJSON *lane_message(const struct lane *lane, const char *type)
{
    cJSON *json = proto_message(type);

    json_add_i64(json, "trial", lane->trial.id);
    json_add_i64(json, "attempt", lane->trial.attempt);
    return json;
}

void lane_send_metrics(struct lane *lane, const struct train_metrics *m)
{
    cJSON *json = lane_message(lane, "metrics"), *values = cJSON_CreateObject();

    for (size_t i = 0; i < train_metrics_count(m->env); i++) {
        double value = train_metrics_value(m, i);
        if (!isnan(value)) /* unknown */
            json_add_f64(values, train_metrics_name(m->env, i), value);
    }
    json_add_i64(json, "env_steps", m->env_steps);
    json_add_f64(json, "wall_s", m->wall_s);
    json_add(json, "values", values);
    lane_pool_send(lane->pool, json);
}

/* A done trial by its evaluation, a stopped one by the end of its training. */
static void add_scores(cJSON *json, const struct lane_trial *t, const struct train_result *r,
                       const struct eval_result *eval)
{
    double se = NAN, none;
    cJSON *outcomes = cJSON_CreateObject();

    for (size_t i = 0; i < train_metrics_count(r->window.env); i++) {
        const char *name = train_metrics_name(r->window.env, i);
        json_add_f64(outcomes, name, train_outcome(r, eval, name, &none));
    }
    json_add(json, "outcomes", outcomes);
    json_add_f64(json, "perf", train_outcome(r, eval, "perf", &none));
    if (t->metric != NULL)
        json_add_f64(json, "score", train_outcome(r, eval, t->metric, &se));
    if (eval->stopped)
        return;
    json_add_i64(json, "eval_episodes", eval->episodes);
    json_add_i64(json, "eval_unfinished", eval->unfinished);
    json_add_f64(json, "eval_s", eval->eval_s);
    json_add_f64(json, "score_se", se);
}

/* How its bytes came about, and the time that a process of its own would need before its first iteration. */
static void add_origin(cJSON *json, const struct lane *lane)
{
    const struct lane_pool *pool = lane->pool;
    const struct kern *kern = lane->session.kern;
    const char *maker = lane->trial.maker;
    double start_s = pool->process_s + 1e-6 * (double)atomic_load(&pool->open_us) + lane->trial.create_s;

    json_add_f64(json, "start_s", start_s);
    json_add_str(json, "program", strstr(maker, CHECKPOINT_THEN) != NULL ? maker : program_text);
    json_add_str(json, "vector_units", kern != NULL ? kern_vector_units(kern) : "");
    json_add_str(json, "device", kern != NULL ? kern_device_name(kern) : "");
}

cJSON *lane_result_json(struct lane *lane, const char *type, enum status trained, const struct train_result *r,
                        const struct eval_result *eval, const char *why)
{
    const struct lane_trial *t = &lane->trial;
    const char *state = trained != ST_OK ? "failed" : r->stopped ? "stopped" : "done";
    double wall_s = t->start_s > 0.0 ? clock_mono_s() - t->start_s : 0.0;
    double cost_s = trained == ST_OK || r->cost_calibrated ? r->cost_s : wall_s;
    cJSON *json = lane_message(lane, type);

    json_add_str(json, "state", state);
    json_add_f64(json, "cost_s", cost_s);
    json_add_f64(json, "device_s", cost_s);
    json_add_f64(json, "wall_s", wall_s);
    json_add_str(json, "cost_method", r->cost_calibrated ? "calibrated" : "wall");
    json_add_i64(json, "env_steps", trained == ST_OK ? r->env_steps : t->last_steps);
    json_add_bool(json, "lost", atomic_load(&lane->pool->lost));
    add_origin(json, lane);
    if (t->saved)
        json_add_str(json, "checkpoint", t->checkpoint_path);
    if (trained == ST_OK)
        add_scores(json, t, r, eval);
    else
        json_add_str(json, "reason", why);
    return json;
}
