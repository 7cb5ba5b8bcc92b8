/* node.c - the main thread of `trawl node`: its workers and what they report. It never waits for the store.
 *
 * A round: start workers that may start, give lanes the trials that their threads got, wait for a worker, take in what
 * came, look after silence and hangs.
 * Invariant: a slot asks for a trial only while its worker has its device open. */
#include "sweep/agent/node.h"

#include "base/os/clock.h"
#include "base/text/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/status.h"
#include "store/store.h"
#include "sweep/agent/agent_job.h"
#include "sweep/agent/agent_settings.h"
#include "sweep/agent/node_beat.h"
#include "sweep/agent/node_slots.h"
#include "sweep/controller/devices/devices.h"
#include "sweep/controller/devices/health.h"
#include "sweep/launch/proto.h"
#include "sweep/launch/worker_process.h"
#include "sweep/signals.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define ROUND_MS 25
#define SILENCE_S 30 /* of a worker, which sends a sign of life each second */
#define HELLO_S 60

struct node_run {
    const struct node_settings *set;
    struct agent_settings agent; /* for the slots' threads */
    struct worker *workers; /* (n_workers) */
    struct node_slot *slots; /* (n_slots) */
    size_t n_workers, n_slots;
    char *config; /* what workers open their devices for; owned */
    struct pollfd *fds; /* (2 n_workers) */
    struct http_cancel cancel;
    struct node_beat *beat;
    struct node_slot *culprit; /* whose worker is killed for it; NULL: none */
    double now_s, busy_s; /* when a slot had a trial last */
    bool quitting;
    struct error err;
};

static struct node_slot *slots_of(struct node_run *r, const struct worker *w)
{
    struct node_slot *slot = r->slots;

    while (slot->worker != w)
        slot++;
    return slot; /* its lanes follow each other */
}

/* ---- workers ---- */

static void died(struct node_run *r, struct worker *w, const char *how)
{
    struct node_slot *slots = slots_of(r, w);
    int n = 0;

    for (int lane = 0; lane < w->spec.lanes; lane++) {
        node_slot_hold(&slots[lane], true, NULL);
        n += node_slot_runs(&slots[lane]);
    }
    for (int lane = 0; lane < w->spec.lanes; lane++) {
        enum node_guilt guilt = n == 1 || r->culprit == &slots[lane] ? NODE_GUILTY : NODE_LOST;
        if (w->leaving || w->lost)
            guilt = NODE_INNOCENT;
        else if (w->outside)
            guilt = NODE_LOST;
        node_slot_died(&slots[lane], guilt, how, r->now_s);
    }
    r->culprit = NULL;
    if (r->quitting || w->released)
        return;
    snprintf(w->last_death, sizeof w->last_death, "%s", how);
    if (w->refused)
        (void)FAIL(&r->err, ST_DEVICE, "%s", how);
    switch (health_death(&w->health, w->started_s,
                         w->outside && !w->killed ? HEALTH_OUTSIDE
                         : !w->was_ready          ? HEALTH_HOPELESS
                                                  : HEALTH_CRASH,
                         r->now_s)) {
    case HEALTH_QUARANTINED:
        log_warn(
            "%s: its worker died again and again, the last time: %s; it is left alone for some minutes, continuing",
            w->spec.label, how);
        break;
    case HEALTH_RETRY:
        log_warn("%s: the worker ended (%s), another one starts", w->spec.label, how);
        break;
    case HEALTH_SAME:
        break;
    }
}

static void start_workers(struct node_run *r)
{
    for (size_t i = 0; i < r->n_workers && !r->quitting; i++) {
        struct worker *w = &r->workers[i];
        struct error why = {0};
        if (w->state != WORKER_DOWN || !health_may_start(&w->health, r->now_s))
            continue;
        w->health.quarantined = false;
        if (worker_spawn(w, &why) != ST_OK)
            died(r, w, why.text);
    }
}

/* "AMD EPYC, NVIDIA H200": each kind once. */
static void report_devices(struct node_run *r)
{
    char text[256] = "";
    size_t n = 0;

    for (size_t i = 0; i < r->n_workers; i++)
        if (r->workers[i].device[0] != '\0' && strstr(text, r->workers[i].device) == NULL && n < sizeof text)
            n += (size_t)snprintf(text + n, sizeof text - n, "%s%s", n > 0 ? ", " : "", r->workers[i].device);
    node_beat_device(r->beat, text);
}

static void on_hello(struct node_run *r, struct worker *w, const cJSON *message)
{
    struct node_slot *slots = slots_of(r, w);
    struct error why = {0};
    cJSON *device;

    if (worker_take_hello(w, message, &why) != ST_OK) {
        w->refused = !w->was_ready;
        worker_kill(w, NULL, why.text);
        return;
    }
    device = cJSON_CreateObject();
    json_add_str(device, "name", w->device);
    json_add_str(device, "class", w->device_class);
    json_add_str(device, "kind", w->kind);
    json_add_i64(device, "threads", w->threads);
    json_add_str(device, "vector_units", w->vector_units);
    for (int lane = 0; lane < w->spec.lanes; lane++)
        node_slot_hold(&slots[lane], false, device);
    report_devices(r);
    cJSON_Delete(device);
    log_info("%s is ready: %s", w->spec.label, w->device);
}

/* The slot that runs what the message is about; NULL: none. */
static struct node_slot *slot_of(struct node_run *r, const struct worker *w, const cJSON *message)
{
    struct node_slot *slots = slots_of(r, w);
    int64_t trial = -1, attempt = -1;

    if (!json_get_i64(message, "trial", &trial) || !json_get_i64(message, "attempt", &attempt))
        return NULL;
    for (int lane = 0; lane < w->spec.lanes; lane++)
        if (slots[lane].trial_id == trial && slots[lane].attempt == attempt && node_slot_runs(&slots[lane]))
            return &slots[lane];
    return NULL;
}

static void on_alive(struct node_run *r, struct worker *w, const cJSON *message)
{
    const cJSON *lane;

    cJSON_ArrayForEach(lane, cJSON_GetObjectItemCaseSensitive(message, "lanes"))
    {
        struct node_slot *slot = slot_of(r, w, lane);
        int64_t env_steps = 0, iterations = 0;
        (void)json_get_i64(lane, "env_steps", &env_steps);
        (void)json_get_i64(lane, "iterations", &iterations);
        if (slot != NULL)
            node_slot_alive(slot, env_steps, iterations, cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(lane, "waits")),
                            r->now_s);
    }
}

static void on_message(struct node_run *r, struct worker *w, const cJSON *message)
{
    const char *type = json_get_str(message, "type");
    struct error why = {0};

    w->heard_s = r->now_s;
    if (type == NULL)
        return;
    if (strcmp(type, "greeting") == 0 && w->state == WORKER_STARTING) {
        if (worker_take_greeting(w, message, &why) == ST_OK)
            worker_open(w, r->config);
        else
            worker_kill(w, NULL, why.text);
    } else if (strcmp(type, "hello") == 0 && w->state == WORKER_STARTING) {
        on_hello(r, w, message);
    } else if (strcmp(type, "alive") == 0) {
        on_alive(r, w, message);
    } else if (strcmp(type, "leaving") == 0) {
        w->leaving = true;
        for (int lane = 0; lane < w->spec.lanes; lane++)
            node_slot_hold(&slots_of(r, w)[lane], true, NULL);
    } else {
        struct node_slot *slot = slot_of(r, w, message);
        if (slot != NULL)
            node_slot_message(slot, message, r->now_s);
        if (slot != NULL && strcmp(type, "result") == 0 && !w->lost)
            health_success(&w->health);
    }
}

static void read_worker(struct node_run *r, struct worker *w)
{
    cJSON *message = NULL;
    struct error wrong = {0};

    do {
        if (proto_receive(&w->proto, 0, &message, &wrong) != ST_OK) {
            worker_kill(w, NULL, wrong.text);
            return;
        }
        if (message == NULL)
            break;
        on_message(r, w, message);
        cJSON_Delete(message);
    } while (w->state != WORKER_DOWN);
    if (w->proto.closed)
        worker_closed(w);
}

static void check_worker(struct node_run *r, struct worker *w)
{
    struct node_slot *slots = slots_of(r, w);
    char why[200];

    if (w->state == WORKER_STARTING && r->now_s - w->started_s > HELLO_S)
        worker_kill(w, NULL, "killed, it did not open its device within a minute");
    if (w->state == WORKER_READY && r->now_s - w->heard_s > SILENCE_S) {
        w->outside = true;
        worker_kill(w, NULL, "killed, it gave no sign of life for 30 s");
    }
    for (int lane = 0; lane < w->spec.lanes && w->state == WORKER_READY; lane++)
        if (node_slot_hangs(&slots[lane], r->now_s, why, sizeof why)) {
            r->culprit = &slots[lane];
            worker_kill(w, NULL, why);
        }
}

static void wait_workers(struct node_run *r)
{
    size_t n = 0;

    for (size_t i = 0; i < r->n_workers; i++) {
        struct worker *w = &r->workers[i];
        if (w->state == WORKER_STARTING || w->state == WORKER_READY)
            r->fds[n++] = (struct pollfd){.fd = w->proto.in_fd, .events = POLLIN};
        if (w->log_fd >= 0)
            r->fds[n++] = (struct pollfd){.fd = w->log_fd, .events = POLLIN};
    }
    (void)poll(r->fds, (nfds_t)n, ROUND_MS);
}

static void look_after_workers(struct node_run *r)
{
    double before_s = r->now_s;
    char how[SCHED_WHY_MAX];

    r->now_s = clock_mono_s();
    for (size_t i = 0; i < r->n_workers; i++) {
        struct worker *w = &r->workers[i];
        if (r->now_s - before_s > 5) /* the program was stopped: no worker is to blame */
            w->heard_s = w->started_s = r->now_s;
        if (w->state == WORKER_DOWN)
            continue;
        worker_read_log(w);
        read_worker(r, w);
        if (w->state == WORKER_DYING && worker_try_reap(w, how, sizeof how))
            died(r, w, how);
        else
            check_worker(r, w);
    }
}

/* ---- life ---- */

static void quit(struct node_run *r)
{
    r->quitting = true;
    atomic_store(&r->cancel.deadline_ms, (int64_t)(1000 * (clock_mono_s() + AGENT_LAST_CALLS_S)));
    for (size_t i = 0; i < r->n_slots; i++)
        agent_job_quit(&r->slots[i].job);
}

/* Have all slots come to their end? The first failure ends the others too. */
static bool all_over(struct node_run *r)
{
    size_t n_over = 0;

    for (size_t i = 0; i < r->n_slots; i++)
        n_over += agent_job_is_over(&r->slots[i].job, &r->err);
    return n_over == r->n_slots;
}

/* The config of a study that runs, once there is one. */
static enum status find_config(struct node_run *r, struct error *err)
{
    double begun_s = clock_mono_s();

    while (r->config == NULL && !signals_stop()) {
        struct store *store = NULL;
        struct study *list = NULL;
        size_t n = 0;
        TRY(store_open_second(&store, r->set->store, err));
        enum status rc = store_study_list(store, &list, &n, err);
        for (size_t i = 0; i < n && r->config == NULL; i++)
            if (list[i].state == STUDY_RUNNING)
                r->config = mem_strdup(list[i].config);
        study_list_free(list, n);
        store_close(store);
        TRY(rc);
        if (r->set->idle_s > 0 && clock_mono_s() - begun_s > r->set->idle_s)
            break;
        if (r->config == NULL)
            usleep(500000);
    }
    return ST_OK;
}

static void make_slots(struct node_run *r)
{
    const struct devices *d = r->set->devices;

    r->workers = mem_array(d->n, sizeof *r->workers);
    r->fds = mem_array(2 * d->n, sizeof *r->fds);
    r->n_workers = d->n;
    for (size_t i = 0; i < d->n; i++)
        r->n_slots += (size_t)d->v[i].lanes;
    r->slots = mem_array(r->n_slots, sizeof *r->slots);
    struct node_slot *slot = r->slots;
    for (size_t i = 0; i < d->n; i++) {
        struct worker *w = &r->workers[i];
        w->spec = d->v[i];
        w->log_fd = -1;
        for (int lane = 0; lane < w->spec.lanes; lane++, slot++) {
            slot->worker = w;
            slot->named.gpu = -1;
            char part[16] = "";
            if (w->spec.lanes > 1)
                snprintf(part, sizeof part, "/%d", lane);
            snprintf(slot->named.client, sizeof slot->named.client, "%.60s/%.40s%s", r->set->name, w->spec.label, part);
        }
    }
    r->agent = (struct agent_settings){
        .place.direct = true,
        .study = "",
        .spool = r->set->spool,
        .slots = &r->slots[0].named, /* the first one also reports what an earlier node left */
    };
    snprintf(r->agent.place.store, sizeof r->agent.place.store, "%s", r->set->store);
}

/* Slots that train or could begin to. */
static int64_t n_ready(const struct node_run *r)
{
    int64_t n = 0;

    for (size_t i = 0; i < r->n_workers && !r->quitting; i++)
        n += r->workers[i].state == WORKER_READY && !r->workers[i].leaving ? r->workers[i].spec.lanes : 0;
    return n;
}

static void run_rounds(struct node_run *r, bool *ret_interrupted)
{
    r->now_s = r->busy_s = clock_mono_s();
    while (!all_over(r)) {
        bool idle = true;
        *ret_interrupted = *ret_interrupted || signals_stop();
        for (size_t i = 0; i < r->n_slots; i++)
            idle = idle && node_slot_waits(&r->slots[i]);
        r->busy_s = idle ? r->busy_s : r->now_s;
        bool enough = r->set->idle_s > 0 && r->now_s - r->busy_s > r->set->idle_s;
        if (!r->quitting && (*ret_interrupted || enough || r->err.status != ST_OK))
            quit(r);
        start_workers(r);
        node_beat_ready(r->beat, n_ready(r));
        for (size_t i = 0; i < r->n_slots; i++)
            node_slot_step(&r->slots[i], r->now_s);
        wait_workers(r);
        look_after_workers(r);
    }
}

enum status node_run(const struct node_settings *set, struct error *err)
{
    struct node_run *r = mem_alloc(sizeof *r);
    bool interrupted = false;
    enum status rc;
    size_t n = 0;

    r->set = set;
    make_slots(r);
    rc = find_config(r, err);
    bool begins = rc == ST_OK && r->config != NULL;
    if (begins)
        rc = node_beat_start(&r->beat, set->store, set->name, set->job, err);
    for (; begins && rc == ST_OK && n < r->n_slots; n++)
        rc = agent_job_start(&r->slots[n].job, &r->agent, &r->slots[n].named, (uint64_t)getpid() * 4096 + n, &r->cancel,
                             err);
    if (begins && rc == ST_OK)
        run_rounds(r, &interrupted);
    else
        interrupted = signals_stop();
    if (rc != ST_OK)
        quit(r);
    for (size_t i = 0; i < n; i++)
        agent_job_join(&r->slots[i].job);
    workers_stop(r->workers, r->n_workers);
    node_beat_stop(r->beat);
    if (rc == ST_OK && r->err.status != ST_OK)
        rc = FAIL(err, r->err.status, "node: %s", r->err.text);
    mem_free(r->workers);
    for (size_t i = 0; i < r->n_slots; i++)
        cJSON_Delete(r->slots[i].branches);
    mem_free(r->slots);
    mem_free(r->fds);
    mem_free(r->config);
    mem_free(r);
    return rc == ST_OK && interrupted ? FAIL(err, ST_INTERRUPTED, "stopped; its trials are saved and given back") : rc;
}
