/* node_slots.c - a trial on its way between a slot's thread, which has the store, and a lane of a worker.
 * Invariant: a trial that was given to a slot ends with one result, whatever its worker does. */
#include "sweep/agent/node_slots.h"

#include "sweep/launch/proto.h"
#include "sweep/supervise/slot.h"
#include "sweep/supervise/worker_process.h"

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

/* With the lock: the same where the lane has the trial. */
static void end(struct node_slot *slot, cJSON *message, const char *state, double now_s)
{
    slot_free(slot->lane, now_s);
    hand_result(slot->job, message, state);
}

static cJSON *failure(const char *reason, double cost_s)
{
    cJSON *message = proto_message("result");

    json_add_str(message, "state", "failed");
    json_add_str(message, "reason", reason);
    json_add_f64(message, "cost_s", cost_s);
    return message;
}

/* With the lock. */
static void begin(struct node_slot *slot, double now_s)
{
    struct agent_job *job = slot->job;
    const cJSON *run = json_get(job->answer, "run");
    struct error refused = {0};

    if (job->stop || !worker_takes_trials(slot->lane->worker)) {
        hand_result(job, NULL, "queued");
        return;
    }
    cJSON_Delete(slot->branches);
    slot->branches = NULL;
    double hang_s = json_f64_or(job->answer, "hang_s", 0);
    job->state = JOB_RUNS;
    log_info("%s: trial %lld of %s starts", slot->named.client, (long long)agent_job_number(job, "trial"),
             json_get_str(job->answer, "study"));
    if (slot_run(slot->lane, agent_job_number(job, "id"), agent_job_number(job, "attempt"), hang_s,
                 cJSON_Duplicate(run, true), now_s, &refused) != ST_OK)
        end(slot, failure(refused.text, 0), NULL, now_s);
}

/* With the lock. */
static cJSON *device_of(const struct worker *w)
{
    cJSON *device = cJSON_CreateObject();

    json_add_str(device, "name", w->device);
    json_add_str(device, "class", w->device_class);
    json_add_str(device, "spec", w->spec.name);
    json_add_i64(device, "hosts", w->spec.hosts);
    json_add_str(device, "kind", w->kind);
    json_add_i64(device, "threads", w->threads);
    json_add_str(device, "vector_units", w->vector_units);
    return device;
}

/* With the lock. */
static void hold(struct node_slot *slot)
{
    bool held = !worker_takes_trials(slot->lane->worker);
    struct agent_job *job = slot->job;

    if (held == job->held)
        return;
    job->held = held;
    if (!held) {
        cJSON_Delete(job->device);
        job->device = device_of(slot->lane->worker);
    }
    pthread_cond_broadcast(&job->changed);
}

void node_slot_step(struct node_slot *slot, double now_s)
{
    struct agent_job *job = slot->job;

    pthread_mutex_lock(&job->lock);
    hold(slot);
    if (job->state == JOB_GIVEN)
        begin(slot, now_s);
    if (job->state == JOB_RUNS && job->stop && slot->lane->asked_s == 0 && slot->lane->worker->state == WORKER_READY)
        slot_ask_stop(slot->lane, job->stop_why[0] == '\0', now_s);
    pthread_mutex_unlock(&job->lock);
}

bool node_slot_waits(struct node_slot *slot)
{
    pthread_mutex_lock(&slot->job->lock);
    bool waits = slot->job->state == JOB_ASKS;
    pthread_mutex_unlock(&slot->job->lock);
    return waits;
}

/* With the lock. */
static void take_result(struct node_slot *slot, const cJSON *message, double now_s)
{
    struct agent_job *job = slot->job;
    const char *state = json_get_str(message, "state"), *reason = json_get_str(message, "reason");
    bool stopped = state != NULL && strcmp(state, "stopped") == 0;

    double score = json_f64_or(message, "score", NAN);
    double cost_s = json_f64_or(message, "cost_s", NAN);
    log_info("%s: trial %lld of %s %s%s%.300s, score %.6g, cost %.4g s", slot->named.client,
             (long long)agent_job_number(job, "trial"), json_get_str(job->answer, "study"),
             state != NULL ? state : "failed", reason != NULL ? ": " : "", reason != NULL ? reason : "", score, cost_s);
    if (cJSON_IsTrue(json_get(message, "apart"))) { /* another host: the trial is as it was */
        end(slot, NULL, "lost", now_s);
        return;
    }
    cJSON *kept = cJSON_Duplicate(message, true);
    if (cJSON_IsTrue(json_get(message, "other_game"))) { /* here; another node may have it */
        end(slot, kept, "queued", now_s);
        return;
    }
    if (stopped) {
        cJSON_DeleteItemFromObjectCaseSensitive(kept, "reason");
        json_add_str(kept, "reason", job->stop_why);
    }
    if (slot->branches != NULL)
        json_add(kept, "branches", slot->branches);
    slot->branches = NULL;
    end(slot, kept, stopped && job->stop_why[0] == '\0' ? "queued" : NULL, now_s);
}

/* With the lock. */
static void report(struct node_slot *slot, cJSON *message)
{
    cJSON *body = cJSON_CreateObject();

    json_add(body, "message", message);
    agent_job_report(slot->job, body);
}

void node_slot_message(struct node_slot *slot, const cJSON *message, double now_s)
{
    const char *type = json_get_str(message, "type");

    pthread_mutex_lock(&slot->job->lock);
    if (strcmp(type, "result") == 0) {
        take_result(slot, message, now_s);
    } else if (strcmp(type, "metrics") == 0 || strcmp(type, "checkpoint") == 0 || strcmp(type, "again") == 0) {
        report(slot, cJSON_Duplicate(message, true));
    } else if (strcmp(type, "branch") == 0) { /* with all before it: a report may be dropped */
        slot->branches = slot->branches != NULL ? slot->branches : cJSON_CreateArray();
        cJSON_AddItemToArray(slot->branches, cJSON_Duplicate(message, true));
        cJSON *all = proto_message("branches");
        json_add(all, "branches", cJSON_Duplicate(slot->branches, true));
        report(slot, all);
    }
    pthread_mutex_unlock(&slot->job->lock);
}

void node_slot_died(struct node_slot *slot, enum slot_guilt guilt, const char *how, double now_s)
{
    char tail[GAME_LOG_BYTES + 1], reason[ERROR_TEXT_MAX];
    const struct slot *lane = slot->lane;

    pthread_mutex_lock(&slot->job->lock);
    if (guilt == SLOT_GUILTY && !slot->job->quit) {
        snprintf(reason, sizeof reason, "the worker process died: %.900s", how);
        cJSON *message = failure(reason, now_s - lane->given_s);
        json_add_i64(message, "env_steps", lane->env_steps);
        json_add_str(message, "device", lane->worker->device);
        if (worker_log_tail(lane->worker, tail) != NULL)
            json_add_str(message, "log_tail", tail);
        end(slot, message, NULL, now_s);
    } else {
        end(slot, NULL, guilt == SLOT_INNOCENT || slot->job->quit ? "queued" : "lost", now_s);
    }
    pthread_mutex_unlock(&slot->job->lock);
}
