/* status_json.c - a scheduler's slots and last events as plain data, and as JSON for watchers in another process. */
#include "sweep/control/status_json.h"
#include "sweep/controller/trial/flight.h"
#include "study/findings/gain.h"
#include "sweep/controller/sched_study.h"
#include "sweep/supervise/supervise.h"

static const char *slot_state(const struct slot *slot)
{
    const struct worker *w = slot->worker;

    if (slot->flight != NULL)
        return slot->asked_s > 0 ? "stopping" : "training";
    if (supervise_is_quarantined(w) && w->state == WORKER_DOWN)
        return "quarantined";
    if (w->state == WORKER_READY)
        return "idle";
    return w->state == WORKER_STARTING ? "starting" : "down";
}

static void take_slot(const struct scheduler *s, const struct slot *slot, struct status_slot *ret)
{
    const struct flight *f = slot->flight;

    *ret = (struct status_slot){.utilisation = slot_utilisation(s, slot),
                                .memory_bytes = slot->worker->memory_bytes,
                                .device_memory_bytes = slot->worker->device_memory_bytes,
                                .trial = -1,
                                .elapsed_s = NAN,
                                .score = NAN};
    snprintf(ret->name, sizeof ret->name, "%s", slot->name);
    snprintf(ret->state, sizeof ret->state, "%s", slot_state(slot));
    if (f == NULL)
        return;
    snprintf(ret->study, sizeof ret->study, "%s", f->ss->view.study.name);
    ret->trial = f->ss->view.trials[f->i].number;
    ret->env_steps = slot->env_steps;
    ret->elapsed_s = s->now_s - f->start_s;
    ret->score = f->score;
}

void sweep_status_take(const struct scheduler *s, struct sched_study *ss, struct sweep_status *ret_status)
{
    struct sweep_status *st = ret_status;
    size_t n_events = s->workers.events.n < STATUS_EVENTS ? s->workers.events.n : STATUS_EVENTS;

    *st = (struct sweep_status){.pid = getpid(), .fraction = NAN, .wall_s = NAN, .gain = NAN};
    EACH_SLOT (&s->workers, slot) {
        if (st->n_slots < STATUS_SLOTS)
            take_slot(s, slot, &st->slots[st->n_slots++]);
        else
            st->n_more++;
    }
    for (size_t k = s->workers.events.n - n_events; k < s->workers.events.n; k++)
        st->events[st->n_events++] = s->workers.events.v[k % EVENT_RING_SIZE];
    if (ss != NULL) {
        st->fraction = stop_rules_fraction(ss, sched_study_running_s(ss, s), s->now_s);
        st->wall_s = stop_rules_wall_s(ss, s->now_s);
        st->gain = gain_watch_recent(&ss->gain, &ss->view, s->now_s);
    }
}

static cJSON *slot_json(const struct status_slot *slot)
{
    cJSON *json = cJSON_CreateObject();

    json_add_str(json, "name", slot->name);
    json_add_str(json, "state", slot->state);
    json_add_f64(json, "utilisation", slot->utilisation);
    json_add_i64(json, "memory_bytes", slot->memory_bytes);
    json_add_i64(json, "device_memory_bytes", slot->device_memory_bytes);
    json_add_str(json, "study", slot->study);
    json_add_i64(json, "trial", slot->trial);
    json_add_i64(json, "env_steps", slot->env_steps);
    json_add_f64(json, "elapsed_s", slot->elapsed_s);
    json_add_f64(json, "score", slot->score);

    return json;
}

cJSON *sweep_status_to_json(const struct sweep_status *st)
{
    cJSON *json = cJSON_CreateObject(), *slots = cJSON_CreateArray(), *events = cJSON_CreateArray();

    for (size_t i = 0; i < st->n_slots; i++)
        cJSON_AddItemToArray(slots, slot_json(&st->slots[i]));
    for (size_t i = 0; i < st->n_events; i++) {
        cJSON *event = cJSON_CreateObject();
        cJSON_AddItemToArray(events, event);
        json_add_i64(event, "at_ms", st->events[i].at_ms);
        json_add_str(event, "text", st->events[i].text);
    }
    json_add_bool(json, "daemon", st->daemon);
    json_add_i64(json, "pid", st->pid);
    json_add_i64(json, "more_slots", (int64_t)st->n_more);
    json_add_f64(json, "fraction", st->fraction);
    json_add_f64(json, "wall_s", st->wall_s);
    json_add_f64(json, "gain", st->gain);
    json_add(json, "slots", slots);
    json_add(json, "events", events);
    return json;
}

static void copy_str(const cJSON *json, const char *key, char *buf, size_t size)
{
    const char *text = json_get_str(json, key);

    snprintf(buf, size, "%s", text != NULL ? text : "");
}

void sweep_status_from_json(const cJSON *json, struct sweep_status *ret_status)
{
    struct sweep_status *st = ret_status;
    const cJSON *item;

    *st = (struct sweep_status){.fraction = NAN, .wall_s = NAN, .gain = NAN};
    (void)json_get_bool(json, "daemon", &st->daemon);
    (void)json_get_i64(json, "pid", &st->pid);
    (void)json_get_f64(json, "fraction", &st->fraction);
    (void)json_get_f64(json, "wall_s", &st->wall_s);
    (void)json_get_f64(json, "gain", &st->gain);
    int64_t more = json_i64_or(json, "more_slots", 0);
    st->n_more = more > 0 ? (size_t)more : 0;
    cJSON_ArrayForEach(item, json_get(json, "slots"))
    {
        struct status_slot *slot = &st->slots[st->n_slots];
        if (st->n_slots == STATUS_SLOTS)
            break;
        *slot = (struct status_slot){.utilisation = NAN, .trial = -1, .elapsed_s = NAN, .score = NAN};
        copy_str(item, "name", slot->name, sizeof slot->name);
        copy_str(item, "state", slot->state, sizeof slot->state);
        copy_str(item, "study", slot->study, sizeof slot->study);
        (void)json_get_f64(item, "utilisation", &slot->utilisation);
        (void)json_get_i64(item, "memory_bytes", &slot->memory_bytes);
        (void)json_get_i64(item, "device_memory_bytes", &slot->device_memory_bytes);
        (void)json_get_i64(item, "trial", &slot->trial);
        (void)json_get_i64(item, "env_steps", &slot->env_steps);
        (void)json_get_f64(item, "elapsed_s", &slot->elapsed_s);
        (void)json_get_f64(item, "score", &slot->score);
        st->n_slots++;
    }
    cJSON_ArrayForEach(item, json_get(json, "events"))
    {
        if (st->n_events == STATUS_EVENTS)
            break;
        (void)json_get_i64(item, "at_ms", &st->events[st->n_events].at_ms);
        copy_str(item, "text", st->events[st->n_events].text, sizeof st->events[0].text);
        st->n_events++;
    }
}
