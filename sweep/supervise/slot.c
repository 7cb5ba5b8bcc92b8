/* slot.c - progress, hangs and stops of the trial in a slot. */
#include "sweep/supervise/slot.h"

#include "base/text/duration.h"
#include "sweep/launch/proto.h"
#include "sweep/supervise/worker_process.h"

#define GAPS 10 /* times the longest time that a trial has taken for an iteration: slow is not hung */
#define STOP_PATIENCE_S 20 /* how long a worker may take to obey */
#define SAVE_PATIENCE_S 6 /* and when all are to end: nothing is lost, the trial runs again */
#define REMOTE_PATIENCE_S 60 /* the same for a remote one, whose checkpoints travel */

enum status slot_run(struct slot *slot, int64_t trial_id, int64_t attempt, double hang_s, cJSON *message, double now_s,
                     struct error *err)
{
    slot->runs = true;
    slot->trial_id = trial_id;
    slot->attempt = attempt;
    slot->hang_s = hang_s;
    slot->given_s = slot->progress_s = now_s;
    slot->gap_s = slot->asked_s = 0;
    slot->env_steps = slot->iterations = 0;
    slot->trains = slot->saves = slot->slept = false;
    return worker_try_send(slot->worker, message, err) == ST_OK
               ? ST_OK
               : error_prefix(err, "it could not be handed to a worker");
}

void slot_ask_stop(struct slot *slot, bool save, double now_s)
{
    cJSON *json = proto_message("stop");

    slot->asked_s = now_s;
    slot->saves = save;
    json_add_i64(json, "trial", slot->trial_id);
    json_add_i64(json, "attempt", slot->attempt);
    json_add_bool(json, "checkpoint", save);
    worker_send(slot->worker, json);
}

static void move(struct slot *slot, int64_t env_steps, int64_t iterations, double now_s)
{
    if (env_steps <= slot->env_steps && iterations <= slot->iterations)
        return;
    if (slot->env_steps > 0 || slot->iterations > 0)
        slot->gap_s = fmax(slot->gap_s, now_s - slot->progress_s);
    slot->env_steps = env_steps > slot->env_steps ? env_steps : slot->env_steps;
    slot->iterations = iterations > slot->iterations ? iterations : slot->iterations;
    slot->progress_s = now_s;
}

void slot_take_message(struct slot *slot, const cJSON *message, double now_s)
{
    const char *type = json_get_str(message, "type");
    int64_t env_steps = 0;

    if (type == NULL)
        return;
    if (strcmp(type, "metrics") == 0) {
        (void)json_get_i64(message, "env_steps", &env_steps);
        move(slot, env_steps, slot->iterations, now_s);
        return;
    }
    slot->trains = slot->trains || strcmp(type, "training") == 0;
    if (strcmp(type, "checkpoint") != 0) /* training, evaluating, a branch, a part of a file */
        slot->progress_s = now_s;
}

void slot_take_alive(struct slot *slot, const cJSON *lane, double now_s)
{
    int64_t env_steps = json_i64_or(lane, "env_steps", 0);
    int64_t iterations = json_i64_or(lane, "iterations", 0);
    move(slot, env_steps, iterations, now_s);
    if (cJSON_IsTrue(json_get(lane, "waits")))
        slot->progress_s = now_s;
}

/* One that does not train yet may wait until another trial of its worker gives memory back. */
static bool may_wait(const struct slot *slot)
{
    const struct worker *w = slot->worker;
    bool others = false;

    for (int lane = 0; lane < w->spec.lanes; lane++)
        others = others || (w->slots[lane].runs && &w->slots[lane] != slot);
    return others && !slot->trains;
}

bool slot_hangs(const struct slot *slot, double now_s, char *ret_why, size_t size)
{
    double patience_s = slot->worker->spec.place != PLACE_HERE ? REMOTE_PATIENCE_S
                        : slot->saves                          ? SAVE_PATIENCE_S
                                                               : STOP_PATIENCE_S;
    double quiet_s = now_s - slot->progress_s;
    char time[32];

    if (slot->asked_s > 0 && now_s - slot->asked_s > patience_s)
        snprintf(ret_why, size, "killed, it did not stop within %s", format_seconds(patience_s, time));
    else if (slot->hang_s > 0 && !may_wait(slot) && quiet_s > fmax(slot->hang_s, GAPS * slot->gap_s))
        snprintf(ret_why, size, "killed, it made no progress for %s (sweep.hang_timeout_s)",
                 format_seconds(quiet_s, time));
    else
        return false;
    return true;
}

void slot_slept(struct slot *slot, double gap_s)
{
    slot->slept = true;
    slot->progress_s += gap_s;
    if (slot->asked_s > 0)
        slot->asked_s += gap_s;
}

void slot_free(struct slot *slot, double now_s)
{
    slot->busy_s += now_s - slot->given_s;
    slot->runs = false;
    if (slot->worker->culprit == slot)
        slot->worker->culprit = NULL;
}
