/* lane_pool.c - shared by the threads of a worker: the socket, the lanes, the heartbeat.
 * Invariants: (1) a lane that is taken has a message or a trial, one that is not has neither; (2) once the device is
 * lost or the controller is gone no lane gets another message; (3) no two locks are held at once. */
#include "sweep/worker/lane_pool.h"

#include "base/os/machine.h"
#include "base/os/pool.h"
#include "study/setup/setup.h"
#include "sweep/worker/lane.h"
#include "sweep/worker/lane_messages.h"

#include <signal.h>

#define BEAT_S 1

void lane_pool_create(struct lane_pool *pool, int in_fd, int out_fd)
{
    pthread_mutex_init(&pool->send_lock, NULL);
    pthread_mutex_init(&pool->lock, NULL);
    clock_cond_init(&pool->changed);
    gate_create(&pool->gate);
    pool->pace = train_pace_create();
    proto_create(&pool->proto, in_fd, out_fd);
}

enum status lane_pool_read_config(const struct lane_pool *pool, const cJSON *message, struct setup **ret_setup,
                                  struct error *err)
{
    const char *text = json_get_str(message, "config");

    if (text == NULL)
        return FAIL(err, ST_CORRUPT, "the controller's message holds no config");
    TRY(setup_from_text(ret_setup, "trial's config", text, err));
    if (pool->device >= 0)
        (*ret_setup)->train.device = pool->device;
    return ST_OK;
}

/* ---- trials ---- */

bool lane_pool_give(struct lane_pool *pool, cJSON *message)
{
    struct lane *lane = NULL;

    int64_t trial = json_i64_or(message, "trial", -1);
    int64_t attempt = json_i64_or(message, "attempt", 0);
    pthread_mutex_lock(&pool->lock);
    for (size_t i = 0; lane == NULL && i < pool->n_lanes && !pool->exit && !atomic_load(&pool->lost); i++)
        if (!pool->lanes[i].taken)
            lane = &pool->lanes[i];
    if (lane != NULL) {
        lane->taken = true;
        lane->next = message;
        atomic_store(&lane->stop, false);
        atomic_store(&lane->checkpoint, false);
        atomic_store(&lane->env_steps, 0);
        atomic_store(&lane->iterations, 0);
        atomic_store(&lane->attempt, attempt);
        atomic_store(&lane->id, trial);
        pthread_cond_broadcast(&pool->changed);
    }
    pthread_mutex_unlock(&pool->lock);
    return lane != NULL;
}

void lane_pool_take_chunk(struct lane_pool *pool, cJSON *message)
{
    int64_t trial = json_i64_or(message, "trial", -1);
    int64_t attempt = json_i64_or(message, "attempt", -1);
    pthread_mutex_lock(&pool->lock);
    for (size_t i = 0; i < pool->n_lanes; i++) {
        struct lane *lane = &pool->lanes[i];
        if (atomic_load(&lane->id) != trial || atomic_load(&lane->attempt) != attempt || lane->chunk != NULL)
            continue;
        lane->chunk = message;
        message = NULL;
        pthread_cond_broadcast(&pool->changed);
        break;
    }
    pthread_mutex_unlock(&pool->lock);
    cJSON_Delete(message);
}

void lane_pool_stop(struct lane_pool *pool, int64_t trial, bool checkpoint)
{
    pthread_mutex_lock(&pool->lock);
    for (size_t i = 0; i < pool->n_lanes; i++) {
        struct lane *lane = &pool->lanes[i];
        if (trial >= 0 && atomic_load(&lane->id) != trial)
            continue;
        if (checkpoint)
            atomic_store(&lane->checkpoint, true);
        atomic_store(&lane->stop, true);
    }
    pthread_cond_broadcast(&pool->changed); /* one may wait for memory */
    pthread_mutex_unlock(&pool->lock);
}

void lane_pool_declare_lost(struct lane_pool *pool)
{
    int n_taken = 0;

    pthread_mutex_lock(&pool->lock);
    for (size_t i = 0; i < pool->n_lanes; i++)
        n_taken += pool->lanes[i].taken;
    if (n_taken > 1)
        atomic_store(&pool->silent, true);
    atomic_store(&pool->lost, true);
    pthread_mutex_unlock(&pool->lock);
    lane_pool_stop(pool, -1, false);
}

bool lane_pool_is_idle(struct lane_pool *pool)
{
    bool idle = true;

    pthread_mutex_lock(&pool->lock);
    for (size_t i = 0; i < pool->n_lanes; i++)
        idle = idle && !pool->lanes[i].taken;
    pthread_mutex_unlock(&pool->lock);
    return idle;
}

/* ---- lanes ---- */

static int start_thread(pthread_t *thread, void *(*fn)(void *), void *arg, const char *name)
{
    sigset_t old;

    pool_block_signals(&old);
    int rc = pthread_create(thread, NULL, fn, arg);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (rc == 0)
        (void)pthread_setname_np(*thread, name);
    return rc;
}

/* The heartbeat first, which reads the lanes. */
static void lane_pool_close_lanes(struct lane_pool *pool)
{
    pthread_mutex_lock(&pool->lock);
    pool->exit = true;
    pthread_cond_broadcast(&pool->changed);
    pthread_mutex_unlock(&pool->lock);
    if (pool->beats)
        pthread_join(pool->heartbeat, NULL);
    pool->beats = false;
    for (size_t i = 0; i < pool->n_lanes; i++) {
        pthread_join(pool->lanes[i].thread, NULL);
        cJSON_Delete(pool->lanes[i].next);
        cJSON_Delete(pool->lanes[i].chunk);
    }
    pool->n_lanes = 0;
}

/* The threads that each lane may use, when the config leaves it to us. */
static int64_t threads_of_lane(const struct setup *setup, size_t n_lanes)
{
    int64_t share = (int64_t)(machine_cores() / n_lanes);

    if (setup->train.threads != 0 || n_lanes == 1)
        return setup->train.threads;
    return share > 1 ? share : 1;
}

enum status lane_pool_open(struct lane_pool *pool, struct setup *setup, size_t n, struct error *err)
{
    enum status rc = ST_OK;
    size_t n_started = 0;
    int code = 0;

    pool->setup = setup;
    setup->train.threads = threads_of_lane(setup, n);
    pool->n_lanes = n; /* before a lane looks; those not started yet are no more than "opening" */
    for (; code == 0 && n_started < n; n_started += code == 0) {
        struct lane *lane = &pool->lanes[n_started];
        char name[16];
        lane->pool = pool;
        lane->session.ordinal = pool->ordinal;
        lane->session.n_gpus = pool->n_gpus;
        atomic_store(&lane->id, -1);
        snprintf(name, sizeof name, "trawl-lane%zu", n_started % 1000);
        code = start_thread(&lane->thread, lane_main, lane, name);
    }
    pthread_mutex_lock(&pool->lock);
    pool->n_lanes = n_started;
    for (size_t i = 0; i < n_started; i++)
        while (pool->lanes[i].state == LANE_OPENING)
            pthread_cond_wait(&pool->changed, &pool->lock);
    pthread_mutex_unlock(&pool->lock);
    if (code != 0)
        rc = FAIL(err, ST_NOMEM, "cannot start lane %zu of %zu: %s; use fewer runs_per_device", n_started + 1, n,
                  strerror(code));
    for (size_t i = 0; rc == ST_OK && i < n_started; i++)
        if (pool->lanes[i].opened != ST_OK)
            rc = FAIL(err, pool->lanes[i].opened, "%s", pool->lanes[i].opened_err.text);
    if (rc != ST_OK)
        lane_pool_close_lanes(pool);
    return rc;
}

void lane_pool_destroy(struct lane_pool *pool)
{
    lane_pool_close_lanes(pool);
    train_hosts_close(pool->hosts);
    setup_destroy(pool->setup);
    proto_destroy(&pool->proto);
    gate_destroy(&pool->gate);
    train_pace_destroy(pool->pace);
    pthread_cond_destroy(&pool->changed);
    pthread_mutex_destroy(&pool->lock);
    pthread_mutex_destroy(&pool->send_lock);
}

/* ---- the heartbeat ---- */

static cJSON *lane_json(const struct lane *lane)
{
    cJSON *json = cJSON_CreateObject();

    json_add_i64(json, "trial", atomic_load(&lane->id));
    json_add_i64(json, "attempt", atomic_load(&lane->attempt));
    json_add_i64(json, "env_steps", atomic_load(&lane->env_steps));
    json_add_i64(json, "iterations", atomic_load(&lane->iterations));
    json_add_bool(json, "waits", atomic_load(&lane->waits));
    return json;
}

static cJSON *alive_json(struct lane_pool *pool)
{
    cJSON *json = proto_message("alive"), *lanes = cJSON_AddArrayToObject(json, "lanes");

    for (size_t i = 0; i < pool->n_lanes; i++)
        if (atomic_load(&pool->lanes[i].id) >= 0)
            cJSON_AddItemToArray(lanes, lane_json(&pool->lanes[i]));
    json_add_i64(json, "memory_bytes", (int64_t)machine_resident_bytes());
    json_add_i64(json, "device_memory_bytes", (int64_t)atomic_load(&pool->device_bytes));
    return json;
}

/* A thread of its own, which asks nothing of the device: a device that hangs does not keep it. */
static void *heartbeat_main(void *arg)
{
    struct lane_pool *pool = arg;
    struct timespec next;

    clock_gettime(CLOCK_MONOTONIC, &next);
    for (;;) {
        int rc = 0;
        bool exit;

        lane_pool_send(pool, alive_json(pool)); /* at once: from now on silence means something */
        next.tv_sec += BEAT_S;
        pthread_mutex_lock(&pool->lock);
        while (!pool->exit && rc != ETIMEDOUT)
            rc = pthread_cond_timedwait(&pool->changed, &pool->lock, &next);
        exit = pool->exit;
        pthread_mutex_unlock(&pool->lock);
        if (exit || atomic_load(&pool->gone))
            return NULL;
    }
}

enum status lane_pool_start_heartbeat(struct lane_pool *pool, struct error *err)
{
    int rc = start_thread(&pool->heartbeat, heartbeat_main, pool, "trawl-alive");

    if (rc != 0)
        return FAIL(err, ST_NOMEM, "cannot start the worker's heartbeat: %s", strerror(rc));
    pool->beats = true;
    return ST_OK;
}
