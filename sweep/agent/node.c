/* node.c - the main thread of `trawl node`: gives its workers the trials that the slots' threads got, and takes what
 * they report. Supervision is that of a controller's workers (sweep/supervise/workers.h). It waits for the store only
 * while it knows no study to begin with.
 *
 * A round: start workers that may start, give lanes the trials that their threads got, wait for a worker, take in what
 * came, look after silence and hangs. */
#include "sweep/agent/node.h"

#include "base/text/json.h"
#include "store/store.h"
#include "sweep/agent/agent_job.h"
#include "sweep/agent/agent_settings.h"
#include "sweep/agent/node_beat.h"
#include "sweep/agent/node_slots.h"
#include "sweep/launch/devices.h"
#include "sweep/supervise/supervise.h"
#include "sweep/supervise/workers.h"
#include "sweep/long_wait.h"
#include "sweep/signals.h"

#include <poll.h>

#define ROUND_MS 25
#define LOOK_S 0.5 /* for a study that runs */

struct node_run {
    const struct node_settings *set;
    struct agent_settings agent; /* for the slots' threads */
    struct workers workers;
    struct node_slot *slots; /* (n_slots) by the index of the worker's slot, like jobs */
    struct agent_job *jobs;
    size_t n_slots;
    char *config; /* of a study that runs: what workers open their devices for; owned, NULL: none is known */
    int64_t *refused; /* (n_refused) studies whose game is not here, or another build of it */
    size_t n_refused, cap_refused;
    double looked_s; /* for a config */
    bool announced; /* that it waits for one */
    struct pollfd *fds; /* two for each worker */
    struct http_cancel cancel;
    struct node_beat *beat;
    double now_s;
    struct long_wait idle; /* since a slot had a trial last */
    struct error err;
};

/* "AMD EPYC, NVIDIA H200": each kind once. */
static void report_devices(struct node_run *r)
{
    const struct worker *v = r->workers.v;
    char text[256] = "";
    size_t n = 0;

    for (size_t i = 0; i < r->workers.n; i++)
        if (v[i].device[0] != '\0' && strstr(text, v[i].device) == NULL && n < sizeof text)
            n += (size_t)snprintf(text + n, sizeof text - n, "%s%s", n > 0 ? ", " : "", v[i].device);
    node_beat_device(r->beat, text, v[0].meets);
}

/* Workers open their devices for another study. */
static void refuse(struct node_run *r, int64_t study_id, const char *why)
{
    if (study_id != r->workers.config_of || r->config == NULL)
        return;
    log_warn("%s; the node begins with another study", why);
    MEM_ROOM(r->refused, r->n_refused, r->cap_refused);
    r->refused[r->n_refused++] = study_id;
    mem_free(r->config);
    r->workers.config = r->config = NULL;
}

static void take_event(struct node_run *r, const struct workers_event *e)
{
    switch (e->type) {
    case WORKERS_READY:
        log_info("%s is ready: %s", e->worker->spec.label, e->worker->device);
        report_devices(r);
        break;
    case WORKERS_ALIVE:
        break;
    case WORKERS_OTHER_GAME:
        refuse(r, e->worker->config_of, e->how);
        break;
    case WORKERS_MESSAGE:
        node_slot_message(&r->slots[e->slot->index], e->message, r->now_s);
        break;
    case WORKERS_TRIAL_DIED:
        node_slot_died(&r->slots[e->slot->index], e->guilt, e->how, r->now_s);
        break;
    }
}

/* No device opens: the first one's reason is the node's. */
static void check_devices(struct node_run *r)
{
    const struct worker *w = r->workers.v;

    if (w->refused && supervise_all_quarantined(&r->workers))
        (void)FAIL(&r->err, ST_DEVICE, "%s", w->last_death);
}

static void look_after_workers(struct node_run *r)
{
    struct workers_event e;
    int timeout_ms = ROUND_MS;
    size_t n = workers_poll(&r->workers, r->fds, 0, &timeout_ms);

    (void)poll(r->fds, (nfds_t)n, timeout_ms);
    r->now_s = clock_mono_s();
    (void)workers_begin(&r->workers, r->fds, r->now_s);
    while (workers_next(&r->workers, &e))
        take_event(r, &e);
    supervise_round(&r->workers);
    check_devices(r);
}

/* ---- life ---- */

static void quit(struct node_run *r)
{
    r->workers.stopping = true;
    agent_jobs_quit(r->jobs, r->n_slots, &r->cancel);
}

static bool is_refused(const struct node_run *r, int64_t study_id)
{
    for (size_t i = 0; i < r->n_refused; i++)
        if (r->refused[i] == study_id)
            return true;
    return false;
}

/* The config of a study that runs, if there is one. */
static enum status find_config(struct node_run *r, struct error *err)
{
    AT_END(store_close_at) struct store *store = NULL;
    struct study *list = NULL;
    size_t n = 0;

    r->looked_s = r->now_s;
    TRY(store_open_second(&store, r->set->store, err));
    TRY(store_study_list(store, &list, &n, err));
    for (size_t i = 0; i < n && r->config == NULL; i++) {
        if (list[i].state != STUDY_RUNNING || is_refused(r, list[i].id))
            continue;
        r->config = mem_strdup(list[i].config);
        r->workers.config_of = list[i].id;
    }
    study_list_free(list, n);
    r->workers.config = r->config;
    if (r->config != NULL)
        log_info("waiting for trials of %s", r->set->store);
    else if (!r->announced)
        log_info("waiting for a study of %s that runs; `trawl sweep` and `trawl daemon` run them", r->set->store);
    r->announced = true;
    return ST_OK;
}

/* Those that may start, once there is a study to open their devices for. Only this look waits for the store. */
static void start_workers(struct node_run *r)
{
    struct error why = {0};

    if (r->config == NULL && r->now_s - r->looked_s > LOOK_S && find_config(r, &why) != ST_OK)
        log_debug("%s; trying again", why.text);
    if (r->config != NULL)
        workers_start(&r->workers, INT64_MAX);
}

static enum status make_slots(struct node_run *r, struct error *err)
{
    TRY(workers_create(&r->workers, r->set->devices, err));
    r->workers.stays = true;
    r->fds = mem_array(2 * r->workers.n, sizeof *r->fds);
    EACH_SLOT (&r->workers, slot)
        r->n_slots++;
    r->slots = mem_array(r->n_slots, sizeof *r->slots);
    r->jobs = mem_array(r->n_slots, sizeof *r->jobs);
    EACH_SLOT (&r->workers, slot) {
        struct node_slot *of = &r->slots[slot->index];
        of->lane = slot;
        of->job = &r->jobs[slot->index];
        of->named.gpu = -1;
        snprintf(of->named.client, sizeof of->named.client, "%.60s/%.50s", r->set->name, slot->name);
    }
    r->agent = (struct agent_settings){
        .place.direct = true,
        .study = "",
        .spool = r->set->spool,
        .slots = &r->slots[0].named, /* the first one also reports what an earlier node left */
    };
    snprintf(r->agent.place.store, sizeof r->agent.place.store, "%s", r->set->store);
    return ST_OK;
}

/* Slots that train or could begin to. */
static int64_t n_ready(const struct node_run *r)
{
    int64_t n = 0;

    for (size_t i = 0; i < r->workers.n && !r->workers.stopping; i++)
        n += worker_takes_trials(&r->workers.v[i]) ? r->workers.v[i].spec.lanes : 0;
    return n;
}

static void run_rounds(struct node_run *r, bool *ret_interrupted)
{
    r->now_s = r->workers.now_s = clock_mono_s();
    long_wait_begin(&r->idle);
    while (!agent_jobs_are_over(r->jobs, r->n_slots, &r->err)) {
        bool idle = true;
        *ret_interrupted = *ret_interrupted || signals_stop();
        for (size_t i = 0; i < r->n_slots; i++)
            idle = idle && node_slot_waits(&r->slots[i]);
        if (!idle)
            long_wait_begin(&r->idle);
        if (!r->workers.stopping)
            long_wait_report(&r->idle, "no trial has waited");
        bool enough = r->set->idle_s > 0 && r->now_s - r->idle.since_s > r->set->idle_s;
        if (!r->workers.stopping && (*ret_interrupted || enough || r->err.status != ST_OK))
            quit(r);
        if (!r->workers.stopping)
            start_workers(r);
        node_beat_ready(r->beat, n_ready(r));
        for (size_t i = 0; i < r->n_slots; i++)
            node_slot_step(&r->slots[i], r->now_s);
        look_after_workers(r);
    }
}

enum status node_run(const struct node_settings *set, struct error *err)
{
    MEM_LOCAL struct node_run *r = mem_alloc(sizeof *r);
    bool interrupted = false;
    size_t n = 0;

    r->set = set;
    enum status rc = make_slots(r, err);
    THEN(rc, find_config(r, err));
    THEN(rc, node_beat_start(&r->beat, set->store, set->name, set->job, err));
    for (; rc == ST_OK && n < r->n_slots; n++)
        rc =
            agent_job_start(&r->jobs[n], &r->agent, &r->slots[n].named, (uint64_t)getpid() * 4096 + n, &r->cancel, err);
    if (rc == ST_OK)
        run_rounds(r, &interrupted);
    else
        quit(r);
    agent_jobs_free(r->jobs, n);
    workers_destroy(&r->workers);
    node_beat_stop(r->beat);
    if (rc == ST_OK && r->err.status != ST_OK)
        rc = FAIL(err, r->err.status, "node: %s", r->err.text);
    for (size_t i = 0; i < r->n_slots; i++)
        cJSON_Delete(r->slots[i].branches);
    mem_free(r->slots);
    mem_free(r->fds);
    mem_free(r->config);
    mem_free(r->refused);
    return rc == ST_OK && interrupted ? FAIL(err, ST_INTERRUPTED, "stopped; its trials are saved and given back") : rc;
}
