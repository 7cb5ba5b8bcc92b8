/* workers.c - the event loop's part that concerns workers: their life from the start to the reaper, and their messages.
 * Invariants: (1) a message about another trial or attempt than the slot's is dropped; (2) what a worker sent before it
 * died is taken before its trials end; (3) the trials of a dead worker are ended before it is started again. */
#include "sweep/supervise/workers.h"

#include "sweep/launch/devices.h"
#include "sweep/launch/proto.h"
#include "sweep/supervise/supervise.h"

#include <sys/resource.h>

#define OTHER_FDS 256 /* the store, its socket, connections, trackers */
#define SILENCE_S 30
#define DYING_TICK_MS 5 /* until the next look at a worker that ends */
#define STOOD_STILL_S 5 /* between two rounds: the program or the machine was stopped */

static void init_worker(struct worker *w, const struct device_spec *spec, size_t *index)
{
    w->spec = *spec;
    w->log_fd = -1;
    w->talks_at = w->logs_at = SIZE_MAX;
    for (int lane = 0; lane < spec->lanes; lane++) {
        w->slots[lane].worker = w;
        w->slots[lane].lane = lane;
        w->slots[lane].index = (*index)++;
        if (spec->lanes > 1)
            snprintf(w->slots[lane].name, sizeof w->slots[lane].name, "%s/%d", spec->label, lane);
        else
            snprintf(w->slots[lane].name, sizeof w->slots[lane].name, "%s", spec->label);
    }
}

static struct remote_host *host_of(struct workers *ws, const char *name)
{
    for (size_t i = 0; i < ws->n_hosts; i++)
        if (strcmp(ws->hosts[i].name, name) == 0)
            return &ws->hosts[i];
    snprintf(ws->hosts[ws->n_hosts].name, sizeof ws->hosts[ws->n_hosts].name, "%s", name);
    return &ws->hosts[ws->n_hosts++];
}

/* A socket and a log for each worker; often 1024 is the limit that a process begins with, and not the one that it may
 * have. */
static enum status allow_descriptors(size_t n_workers, struct error *err)
{
    rlim_t need = 2 * n_workers + OTHER_FDS;
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= need)
        return ST_OK;
    if (limit.rlim_max < need)
        return FAIL(err, ST_LIMIT,
                    "%zu workers need %llu open files, and %llu are allowed; raise `ulimit -Hn`, or use fewer workers",
                    n_workers, (unsigned long long)need, (unsigned long long)limit.rlim_max);
    limit.rlim_cur = need;
    return setrlimit(RLIMIT_NOFILE, &limit) == 0
               ? ST_OK
               : FAIL(err, ST_LIMIT, "cannot allow %llu open files: %s", (unsigned long long)need, strerror(errno));
}

enum status workers_create(struct workers *ws, const struct devices *devices, struct error *err)
{
    size_t index = 0;

    *ws = (struct workers){.silence_timeout_s = SILENCE_S, .now_s = clock_mono_s(), .lane = -1};
    TRY(allow_descriptors(devices->n, err));
    ws->v = mem_array(devices->n, sizeof *ws->v);
    ws->n = devices->n;
    ws->hosts = mem_array(devices->n, sizeof *ws->hosts);
    memory_groups_open(&ws->groups, NULL);
    for (size_t i = 0; i < ws->n; i++) {
        init_worker(&ws->v[i], &devices->v[i], &index);
        ws->v[i].groups = &ws->groups;
        if (devices->v[i].place != PLACE_HERE)
            ws->v[i].remote = host_of(ws, devices->v[i].host);
    }
    return ST_OK;
}

void workers_destroy(struct workers *ws)
{
    workers_stop(ws->v, ws->n);
    memory_groups_close(&ws->groups);
    cJSON_Delete(ws->message);
    mem_free(ws->v);
    mem_free(ws->hosts);
}

void workers_start(struct workers *ws, int64_t n_slots)
{
    for (size_t i = 0; i < ws->n && n_slots > 0; i++) {
        struct worker *w = &ws->v[i];
        struct error why = {0};
        if (!supervise_may_start(ws, w))
            continue;
        supervise_started(w);
        if (worker_spawn(w, &why) != ST_OK)
            supervise_death(ws, w, why.text);
        else
            n_slots -= w->spec.lanes;
    }
}

size_t workers_poll(struct workers *ws, struct pollfd *fds, size_t n, int *timeout_ms)
{
    for (size_t i = 0; i < ws->n; i++) {
        struct worker *w = &ws->v[i];
        w->talks_at = w->logs_at = SIZE_MAX;
        if (w->state == WORKER_STARTING || w->state == WORKER_READY) {
            w->talks_at = n;
            fds[n++] = (struct pollfd){.fd = w->proto.in_fd, .events = POLLIN};
        }
        if (w->log_fd >= 0) {
            w->logs_at = n;
            fds[n++] = (struct pollfd){.fd = w->log_fd, .events = POLLIN};
        }
        if (w->state == WORKER_DYING && *timeout_ms > DYING_TICK_MS)
            *timeout_ms = DYING_TICK_MS;
    }
    return n;
}

double workers_begin(struct workers *ws, const struct pollfd *fds, double now_s)
{
    double gap_s = now_s - ws->now_s;

    ws->now_s = now_s;
    if (ws->lane < 0) /* else the owner has left the last round in the middle */
        ws->at = 0;
    if (gap_s > STOOD_STILL_S)
        supervise_slept(ws, gap_s);
    for (size_t i = 0; i < ws->n; i++) {
        struct worker *w = &ws->v[i];
        if (w->logs_at != SIZE_MAX && fds[w->logs_at].revents != 0)
            worker_read_log(w);
        w->ends = w->state == WORKER_DYING;
        w->talks = !w->garbled && (w->ends || (w->talks_at != SIZE_MAX && fds[w->talks_at].revents != 0));
    }
    return gap_s > STOOD_STILL_S ? gap_s : 0;
}

static struct slot *slot_of(struct worker *w, const cJSON *message)
{
    int64_t trial = -1, attempt = -1;

    if (!json_get_i64(message, "trial", &trial) || !json_get_i64(message, "attempt", &attempt))
        return NULL;
    for (int lane = 0; lane < w->spec.lanes; lane++) {
        struct slot *slot = &w->slots[lane];
        if (slot->runs && slot->trial_id == trial && slot->attempt == attempt)
            return slot;
    }
    return NULL;
}

static void on_greeting(struct workers *ws, struct worker *w, const cJSON *message)
{
    struct error why = {0};

    if (worker_take_greeting(w, message, &why) != ST_OK) {
        w->refused = true;
        worker_kill(w, NULL, why.text);
    } else if (ws->config != NULL) {
        w->config_of = ws->config_of;
        worker_open(w, ws->config);
    } else { /* a daemon whose last study was removed meanwhile */
        w->leaving = w->released = true;
        worker_kill(w, NULL, "no study is left");
    }
}

static bool on_hello(struct workers *ws, struct worker *w, struct workers_event *e)
{
    struct error why = {0};
    enum status rc = worker_take_hello(w, e->message, &why);

    if (rc == ST_VERSION && w->greeted && w->config_of != 0) { /* of one study: the device may open for others */
        w->leaving = w->released = true;
        worker_kill(w, NULL, why.text);
        e->type = WORKERS_OTHER_GAME;
        e->how = w->why;
        return true;
    }
    if (rc != ST_OK) {
        w->refused = true;
        worker_kill(w, NULL, why.text);
        return false;
    }
    e->type = WORKERS_READY;
    for (int lane = 0; lane < w->spec.lanes; lane++)
        if (w->slots[lane].since_s == 0)
            w->slots[lane].since_s = ws->now_s;
    event_ring_add(&ws->events, "%s is ready: %s", w->spec.label, w->device);
    return true;
}

static void on_alive(const struct workers *ws, struct worker *w, const cJSON *message)
{
    const cJSON *lane;

    (void)json_get_i64(message, "memory_bytes", &w->memory_bytes);
    (void)json_get_i64(message, "device_memory_bytes", &w->device_memory_bytes);
    cJSON_ArrayForEach(lane, json_get(message, "lanes"))
    {
        struct slot *slot = slot_of(w, lane);
        if (slot != NULL)
            slot_take_alive(slot, lane, ws->now_s);
    }
}

static void on_result(struct worker *w, const cJSON *message)
{
    const char *reason = json_get_str(message, "reason");

    w->lost = w->lost || cJSON_IsTrue(json_get(message, "lost"));
    if (w->lost)
        snprintf(w->why, sizeof w->why, "it lost its device (%.400s)", reason != NULL ? reason : "no reason");
    else
        supervise_success(w);
}

/* True: it is an event. */
static bool take_message(struct workers *ws, struct worker *w, struct workers_event *e)
{
    const char *type = json_get_str(e->message, "type");

    w->heard_s = ws->now_s;
    if (type == NULL) {
        return false;
    } else if (strcmp(type, "greeting") == 0 && w->state == WORKER_STARTING) {
        on_greeting(ws, w, e->message);
        return false;
    } else if (strcmp(type, "hello") == 0 && w->state == WORKER_STARTING) {
        return on_hello(ws, w, e);
    } else if (strcmp(type, "leaving") == 0) {
        w->leaving = true;
        return false;
    } else if (strcmp(type, "alive") == 0) {
        on_alive(ws, w, e->message);
        e->type = WORKERS_ALIVE;
        return true;
    }
    e->type = WORKERS_MESSAGE;
    e->slot = slot_of(w, e->message);
    if (e->slot == NULL) {
        log_debug("a message of %s is about a trial that it does not run; dropped", w->spec.label);
        return false;
    }
    slot_take_message(e->slot, e->message, ws->now_s);
    if (strcmp(type, "result") == 0)
        on_result(w, e->message);
    return true;
}

/* The next message of the worker that is an event; false: none is left. Also what lies in the buffer, which poll does
 * not see. */
static bool read_worker(struct workers *ws, struct worker *w, struct workers_event *e)
{
    while (w->talks) {
        struct error wrong = {0};
        if (proto_receive(&w->proto, 0, &ws->message, &wrong) != ST_OK) { /* a broken worker costs its trials */
            worker_kill(w, NULL, wrong.text);
            w->garbled = true;
            w->talks = false;
        } else if (ws->message == NULL) {
            w->talks = false;
            if (w->proto.closed)
                worker_closed(w);
        } else {
            e->message = ws->message;
            if (take_message(ws, w, e))
                return true;
            cJSON_Delete(ws->message);
            e->message = ws->message = NULL;
        }
    }
    return false;
}

/* The next trial of a dead worker. One that is known to be guilty, or was alone, pays for it. */
static bool next_victim(struct workers *ws, struct worker *w, struct workers_event *e)
{
    while (ws->lane < w->spec.lanes) {
        struct slot *slot = &w->slots[ws->lane++];
        if (!slot->runs)
            continue;
        e->type = WORKERS_TRIAL_DIED;
        e->slot = slot;
        e->how = ws->how;
        e->guilt = ws->n_ran == 1 ? SLOT_GUILTY : SLOT_SUSPECT;
        if (ws->culprit != NULL)
            e->guilt = slot == ws->culprit ? SLOT_GUILTY : SLOT_INNOCENT;
        else if (w->lost || w->leaving || w->cut)
            e->guilt = SLOT_INNOCENT;
        else if (w->outside)
            e->guilt = SLOT_OUTSIDE;
        return true;
    }
    return false;
}

bool workers_next(struct workers *ws, struct workers_event *e)
{
    cJSON_Delete(ws->message);
    ws->message = NULL;
    for (; ws->at < ws->n; ws->at++) {
        struct worker *w = &ws->v[ws->at];
        *e = (struct workers_event){.worker = w};
        if (ws->lane < 0 && read_worker(ws, w, e))
            return true;
        if (ws->lane < 0 && w->ends && worker_try_reap(w, ws->how, sizeof ws->how)) {
            ws->lane = 0;
            ws->n_ran = worker_n_runs(w);
            ws->culprit = w->culprit;
        }
        if (ws->lane < 0)
            continue;
        if (next_victim(ws, w, e))
            return true;
        ws->lane = -1;
        if (!ws->stopping)
            supervise_death(ws, w, ws->how);
    }
    return false;
}
