/* lane_program.c - a trial whose trainer is another program: the same messages to the controller as of one that this
 * process trains.
 * Invariant: when the result is made nothing of the program is alive. */
#include "sweep/worker/lane_program.h"
#include "study/setup/setup.h"
#include "study/version.h"
#include "sweep/program/program_run.h"
#include "sweep/program/trial_program.h"
#include "sweep/worker/lane_messages.h"
#include "sweep/worker/lane_pool.h"

#define LOOK_MS 50 /* at whether it is to stop */

static void send_report(struct lane *lane, const struct program_report *r)
{
    cJSON *json = lane_message(lane, "metrics"), *values = cJSON_CreateObject();

    if (!isnan(r->line.cost))
        json_add_f64(values, "cost", r->line.cost);
    for (size_t i = 0; i < r->line.n; i++)
        if (!isnan(r->line.metrics[i].value))
            json_add_f64_any(values, r->line.metrics[i].name, r->line.metrics[i].value);
    json_add_i64(json, "env_steps", (int64_t)r->step);
    json_add_f64(json, "wall_s", r->wall_s);
    json_add(json, "values", values);
    atomic_store(&lane->env_steps, (long long)r->step);
    lane_pool_send(lane->pool, json);
}

static void watch(struct lane *lane, struct program_run *run)
{
    MEM_LOCAL struct program_report *report = mem_alloc(sizeof *report);
    bool ended = false;

    while (!ended) {
        ended = program_run_wait(run, LOOK_MS);
        while (program_run_report(run, report))
            send_report(lane, report);
        if (atomic_load(&lane->stop))
            program_run_stop(run);
    }
}

/* own_cost: the cost has the place of the device's seconds. */
static cJSON *result_json(const struct lane *lane, const struct program_end *end, bool own_cost)
{
    const struct lane_pool *pool = lane->pool;
    cJSON *json = lane_message(lane, "result");
    char device[24];

    snprintf(device, sizeof device, pool->device == KERN_CUDA ? "cuda:%d" : "cpu", pool->ordinal);
    json_add_str(json, "state", program_outcome_name(end->outcome));
    json_add_f64(json, "score", end->score);
    json_add_f64(json, "cost_s", own_cost ? end->wall_s : end->cost);
    json_add_f64(json, "device_s", !own_cost ? end->wall_s : end->cost_reported ? end->cost : (double)NAN);
    json_add_f64(json, "wall_s", end->wall_s);
    json_add_i64(json, "env_steps", end->step);
    json_add_str(json, "cost_method", end->cost_reported ? "reported" : "wall");
    json_add_bool(json, "lost", false);
    json_add_str(json, "program", program_text);
    json_add_str(json, "device", device);
    json_add_str(json, "vector_units", "");
    if (end->outcome == PROGRAM_FAILED) {
        json_add_str(json, "reason", end->reason);
        json_add_str(json, "log_tail", end->last_lines);
    }
    return json;
}

cJSON *lane_program(struct lane *lane, const struct setup *setup, const cJSON *message)
{
    struct trial_program trial = {.setup = setup,
                                  .config = lane->trial.config,
                                  .metric = lane->trial.metric,
                                  .study = json_get_str(message, "study"),
                                  .attempt = lane->trial.attempt,
                                  .dir = json_get_str(message, "dir"),
                                  .gpu = lane->pool->device == KERN_CUDA ? lane->pool->ordinal : -1,
                                  .n_gpus = lane->pool->n_gpus};
    MEM_LOCAL struct program_end *end = mem_alloc(sizeof *end);
    struct program_run *run = NULL;
    struct error why = {0};
    char own_dir[PATH_MAX];

    (void)json_get_i64(message, "number", &trial.number);
    (void)json_get_bool(message, "needs_step", &trial.needs_step);
    (void)json_get_bool(message, "own_cost", &trial.own_cost);
    if (lane->pool->remote && trial.dir != NULL) {
        snprintf(own_dir, sizeof own_dir, "%.*s/trial-%lld", PATH_MAX - 40, lane->pool->dir, (long long)trial.number);
        trial.dir = own_dir;
    }
    atomic_store(&lane->waits, true); /* how long it may be silent is its own affair: sweep.trial_time limits it */
    cJSON *json = lane_message(lane, "training");
    json_add_i64(json, "env_steps", 0);
    lane_pool_send(lane->pool, json);
    if (trial.dir == NULL || trial.metric == NULL)
        (void)FAIL(&why, ST_CORRUPT, "the controller's message names no folder or no metric for the program");
    if (why.status == ST_OK && trial_program_start(&trial, &run, &why) == ST_OK) {
        watch(lane, run);
        program_run_end(run, end);
    } else {
        *end = (struct program_end){.outcome = PROGRAM_FAILED, .score = NAN};
        snprintf(end->reason, sizeof end->reason, "%.500s", why.text);
    }
    program_run_destroy(run);
    atomic_store(&lane->waits, false);
    json = result_json(lane, end, trial.own_cost);
    return json;
}
