/* node_slots.c - a trial on its way between a slot's thread, which has the store, and a lane of a worker.
 * Invariant: a trial that was given to a slot ends with one result, whatever its worker does. */
#include "sweep/agent/node_slots.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/status.h"
#include "sweep/launch/proto.h"
#include "sweep/launch/worker_process.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define STOP_PATIENCE_S 20
#define GAPS 10 /* times the longest time that a trial has taken for an iteration: slow is not hung */

/* With the lock: the slot's thread continues. */
static void hand_result(struct agent_job *job, cJSON *message, const char *state)
{
    cJSON *result = cJSON_CreateObject();

    json_add_str(result, "lease", agent_job_token(job));
    if (state != NULL)
        json_add_str(result, "state", state);
    json_add(result, "message", message);
    agent_job_end(job, result);
}

/* With the lock. */
static void begin(struct node_slot *slot, double now_s)
{
    struct agent_job *job = &slot->job;
    const cJSON *run = cJSON_GetObjectItemCaseSensitive(job->answer, "run");
    struct error gone = {0};
    enum status rc;

    if (job->stop || slot->worker->state != WORKER_READY || slot->worker->leaving) {
        hand_result(job, NULL, "queued");
        return;
    }
    slot->given_s = slot->progress_s = now_s;
    slot->asked_s = slot->gap_s = slot->hang_s = 0;
    slot->env_steps = slot->iterations = 0;
    cJSON_Delete(slot->branches);
    slot->branches = NULL;
    slot->trial_id = agent_job_number(job, "id");
    slot->attempt = agent_job_number(job, "attempt");
    (void)json_get_f64(job->answer, "hang_s", &slot->hang_s);
    job->state = JOB_RUNS;
    log_info("%s: trial %lld of %s starts", slot->named.client, (long long)agent_job_number(job, "trial"),
             json_get_str(job->answer, "study"));
    rc = proto_send(&slot->worker->proto, cJSON_Duplicate(run, true), &gone);
    if (rc == ST_LIMIT)
        hand_result(job, NULL, "lost");
    else if (rc != ST_OK)
        worker_unreachable(slot->worker, rc, gone.text);
}

/* With the lock. */
static void pass_stop(struct node_slot *slot, double now_s)
{
    cJSON *json = proto_message("stop");
    struct error gone = {0};
    enum status rc;

    slot->asked_s = now_s;
    json_add_i64(json, "trial", slot->trial_id);
    json_add_i64(json, "attempt", slot->attempt);
    json_add_bool(json, "checkpoint", slot->job.stop_why[0] == '\0');
    rc = proto_send(&slot->worker->proto, json, &gone);
    if (rc != ST_OK)
        worker_unreachable(slot->worker, rc, gone.text);
}

void node_slot_step(struct node_slot *slot, double now_s)
{
    struct agent_job *job = &slot->job;

    pthread_mutex_lock(&job->lock);
    if (job->state == JOB_GIVEN)
        begin(slot, now_s);
    if (job->state == JOB_RUNS && job->stop && slot->asked_s == 0 && slot->worker->state == WORKER_READY)
        pass_stop(slot, now_s);
    pthread_mutex_unlock(&job->lock);
}

static enum job_state state_of(struct node_slot *slot)
{
    pthread_mutex_lock(&slot->job.lock);
    enum job_state state = slot->job.state;
    pthread_mutex_unlock(&slot->job.lock);
    return state;
}

bool node_slot_runs(struct node_slot *slot)
{
    return state_of(slot) == JOB_RUNS;
}

bool node_slot_waits(struct node_slot *slot)
{
    return state_of(slot) == JOB_ASKS;
}

void node_slot_hold(struct node_slot *slot, bool held, const cJSON *device)
{
    struct agent_job *job = &slot->job;

    pthread_mutex_lock(&job->lock);
    job->held = held;
    if (device != NULL) {
        cJSON_Delete(job->device);
        job->device = cJSON_Duplicate(device, true);
    }
    pthread_cond_broadcast(&job->changed);
    pthread_mutex_unlock(&job->lock);
}

void node_slot_alive(struct node_slot *slot, int64_t env_steps, int64_t iterations, bool waits, double now_s)
{
    if (env_steps > slot->env_steps || iterations > slot->iterations || waits) {
        if (slot->env_steps > 0 || slot->iterations > 0)
            slot->gap_s = fmax(slot->gap_s, now_s - slot->progress_s);
        slot->env_steps = env_steps > slot->env_steps ? env_steps : slot->env_steps;
        slot->iterations = iterations > slot->iterations ? iterations : slot->iterations;
        slot->progress_s = now_s;
    }
}

/* With the lock. */
static void take_result(struct node_slot *slot, const cJSON *message)
{
    struct agent_job *job = &slot->job;
    const char *state = json_get_str(message, "state"), *reason = json_get_str(message, "reason");
    bool stopped = state != NULL && strcmp(state, "stopped") == 0;
    cJSON *kept = cJSON_Duplicate(message, true);
    double score = NAN, cost_s = NAN;

    (void)json_get_f64(message, "score", &score);
    (void)json_get_f64(message, "cost_s", &cost_s);
    log_info("%s: trial %lld of %s %s%s%.300s, score %.6g, cost %.4g s", slot->named.client,
             (long long)agent_job_number(job, "trial"), json_get_str(job->answer, "study"),
             state != NULL ? state : "failed", reason != NULL ? ": " : "", reason != NULL ? reason : "", score, cost_s);
    if (stopped) {
        cJSON_DeleteItemFromObjectCaseSensitive(kept, "reason");
        json_add_str(kept, "reason", job->stop_why);
    }
    if (slot->branches != NULL)
        json_add(kept, "branches", slot->branches);
    slot->branches = NULL;
    if (cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(message, "lost"))) {
        slot->worker->lost = true;
        snprintf(slot->worker->why, sizeof slot->worker->why, "it lost its device (%.400s)",
                 reason != NULL ? reason : "");
    }
    hand_result(job, kept, stopped && job->stop_why[0] == '\0' ? "queued" : NULL);
}

void node_slot_message(struct node_slot *slot, const cJSON *message, double now_s)
{
    const char *type = json_get_str(message, "type");
    struct agent_job *job = &slot->job;
    int64_t env_steps = 0;

    pthread_mutex_lock(&job->lock);
    if (job->state != JOB_RUNS || type == NULL) {
        pthread_mutex_unlock(&job->lock);
        return;
    }
    if (strcmp(type, "result") == 0) {
        take_result(slot, message);
    } else if (strcmp(type, "metrics") == 0 || strcmp(type, "checkpoint") == 0 || strcmp(type, "anew") == 0) {
        (void)json_get_i64(message, "env_steps", &env_steps);
        node_slot_alive(slot, env_steps, slot->iterations, false, now_s);
        cJSON *body = cJSON_CreateObject();
        json_add(body, "message", cJSON_Duplicate(message, true));
        agent_job_report(job, body);
    } else if (strcmp(type, "branch") == 0) {
        slot->branches = slot->branches != NULL ? slot->branches : cJSON_CreateArray();
        cJSON_AddItemToArray(slot->branches, cJSON_Duplicate(message, true));
        slot->progress_s = now_s;
    } else if (strcmp(type, "training") == 0 || strcmp(type, "evaluating") == 0) {
        slot->progress_s = now_s;
    }
    pthread_mutex_unlock(&job->lock);
}

bool node_slot_hangs(struct node_slot *slot, double now_s, char *ret_why, size_t size)
{
    double quiet_s = now_s - slot->progress_s;

    if (!node_slot_runs(slot))
        return false;
    if (slot->asked_s > 0 && now_s - slot->asked_s > STOP_PATIENCE_S)
        snprintf(ret_why, size, "killed, it did not stop within %d s", STOP_PATIENCE_S);
    else if (slot->hang_s > 0 && quiet_s > fmax(slot->hang_s, GAPS * slot->gap_s))
        snprintf(ret_why, size, "killed, it made no progress for %.0f s (sweep.hang_timeout_s)", quiet_s);
    else
        return false;
    return true;
}

void node_slot_died(struct node_slot *slot, enum node_guilt guilt, const char *how, double now_s)
{
    struct agent_job *job = &slot->job;
    char tail[WORKER_LOG_BYTES + 1], reason[ERROR_TEXT_MAX];
    cJSON *message;

    pthread_mutex_lock(&job->lock);
    if (job->state == JOB_RUNS) {
        if (guilt == NODE_GUILTY && !job->quit) {
            message = proto_message("result");
            snprintf(reason, sizeof reason, "the worker process died: %.900s", how);
            json_add_str(message, "state", "failed");
            json_add_str(message, "reason", reason);
            json_add_f64(message, "cost_s", now_s - slot->given_s);
            json_add_i64(message, "env_steps", slot->env_steps);
            json_add_str(message, "device", slot->worker->device);
            if (worker_log_tail(slot->worker, tail) != NULL)
                json_add_str(message, "log_tail", tail);
            hand_result(job, message, NULL);
        } else {
            hand_result(job, NULL, guilt == NODE_LOST && !job->quit ? "lost" : "queued");
        }
    }
    pthread_mutex_unlock(&job->lock);
}
