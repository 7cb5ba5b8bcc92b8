/* lane.c - a thread of the worker that trains trials, one after another, on a device that it may share with others.
 * Invariants: (1) every "run" is answered by exactly one "result", unless the process ends for several of them; (2) the
 * reader sees the lane as idle before the result is sent, so the controller may hand it the next trial at once; (3) a
 * trainer is created and destroyed, and iterates, inside the gate, so that a lane that is alone is alone; (4) with one
 * lane there is no gate and the cost is the time that passed. */
#include "sweep/worker/lane.h"

#include "base/os/file.h"
#include "base/text/json.h"
#include "study/view/checkpoint_label.h"
#include "study/setup/setup.h"
#include "sweep/worker/gate.h"
#include "sweep/worker/lane_files.h"
#include "sweep/worker/lane_messages.h"
#include "sweep/worker/lane_program.h"
#include "sweep/worker/lane_pool.h"
#include "sweep/worker/session.h"
#include "sweep/worker/worker_limits.h"

/* ---- checkpoints ---- */

static enum status lane_write(struct lane *lane, struct error *err)
{
    const struct lane_trial *t = &lane->trial;
    MEM_LOCAL char *text = NULL;

    TRY(file_make_folder_of(t->checkpoint_path, 0777, err)); /* studies share it: each that ends removes it if empty */
    TRY(checkpoint_label(t->owner, t->maker, t->config, &text, err));
    return trainer_save(lane->session.trainer, t->checkpoint_path, text, err);
}

static void lane_save(struct lane *lane)
{
    struct lane_trial *t = &lane->trial;
    int64_t env_steps, iterations;
    struct error why = {0};

    t->saved_s = clock_mono_s();
    if (lane_write(lane, &why) != ST_OK) {
        log_warn("%s; the last checkpoint is kept, continuing", why.text);
        return;
    }
    if (lane->pool->remote && lane_files_send(lane, &why) != ST_OK) {
        log_warn("%s; the controller keeps the last checkpoint, continuing", why.text);
        return;
    }
    t->saved = true;
    t->saved_s = clock_mono_s();
    trainer_get_progress(lane->session.trainer, &env_steps, &iterations);
    cJSON *json = lane_message(lane, "checkpoint");
    json_add_str(json, "path", t->checkpoint_path);
    json_add_i64(json, "env_steps", env_steps);
    lane_pool_send(lane->pool, json);
}

/* Its own checkpoint, not another trial's of the same shape. */
static enum status lane_load(struct lane *lane, struct error *err)
{
    struct lane_trial *t = &lane->trial;
    char owner[CHECKPOINT_LABEL_MAX], before[CHECKPOINT_LABEL_MAX];

    if (lane->pool->remote)
        TRY(lane_files_fetch(lane, err));
    TRY(checkpoint_read_label(t->resume_from, owner, before, sizeof owner, err));
    if (t->owner != NULL && strcmp(owner, t->owner) != 0)
        return FAIL(err, ST_CONFIG, "%s: is the checkpoint of %s and not of %s", t->resume_from,
                    owner[0] != '\0' ? owner : "an unnamed owner", t->owner);
    TRY(trainer_load(lane->session.trainer, t->resume_from, err));
    checkpoint_maker(kern_device_name(lane->session.kern), before, t->maker, sizeof t->maker);
    if (before[0] != '\0' && strcmp(t->maker, before) != 0)
        log_warn("resumed by another build or device than before (%s): the result is not that of one of them",
                 t->maker);
    return ST_OK;
}

/* A trial whose checkpoint cannot be used starts from zero: it costs time, not the trial. The controller then clears
 * its curve. */
static enum status lane_resume(struct lane *lane, const struct setup *setup, struct error *err)
{
    struct error why = {0};

    checkpoint_maker(kern_device_name(lane->session.kern), NULL, lane->trial.maker, sizeof lane->trial.maker);
    if (lane->trial.resume_from == NULL)
        return session_begin(&lane->session, setup, err);
    if (lane_load(lane, &why) == ST_OK)
        return ST_OK;
    if (kern_is_lost(lane->session.kern))
        return FAIL(err, ST_DEVICE, "%s", why.text);
    cJSON *json = lane_message(lane, "again");
    json_add_str(json, "reason", why.text);
    lane_pool_send(lane->pool, json);
    return session_begin(&lane->session, setup, err);
}

/* ---- callbacks of a run ---- */

static bool on_metrics(void *ctx, const struct train_metrics *m)
{
    struct lane *lane = ctx;

    lane->trial.last_steps = m->env_steps;
    lane_send_metrics(lane, m);
    return !atomic_load(&lane->stop);
}

static bool should_stop(void *ctx)
{
    struct lane *lane = ctx;
    struct lane_trial *t = &lane->trial;
    bool leaves = train_hosts_leaving(lane->session.hosts) != NULL;
    int64_t env_steps, iterations;

    trainer_get_progress(lane->session.trainer, &env_steps, &iterations);
    atomic_store(&lane->env_steps, env_steps);
    atomic_store(&lane->iterations, iterations);
    if (leaves) /* stopped by nobody else: the trial is queued again */
        atomic_store(&lane->checkpoint, true);
    if (leaves || atomic_load(&lane->stop))
        return true;
    if (t->checkpoint_path != NULL && t->checkpoint_every_s > 0.0 &&
        clock_mono_s() - t->saved_s >= t->checkpoint_every_s) {
        lane_save(lane);
        t->saved = false; /* an iteration follows */
    }
    return false;
}

static void enter_gate(void *ctx, bool alone)
{
    gate_enter(ctx, alone);
}

static void leave_gate(void *ctx)
{
    gate_leave(ctx);
}

static bool gate_is_wanted(void *ctx)
{
    return gate_wanted(ctx);
}

/* ---- memory ---- */

/* Can another lane give memory back? With the lock held. */
static bool others_hold(const struct lane *lane)
{
    const struct lane_pool *pool = lane->pool;

    for (size_t i = 0; i < pool->n_lanes; i++) {
        const struct lane *other = &pool->lanes[i];
        if (other != lane && (other->state == LANE_BUSY || (other->state == LANE_IDLE && other->keeps)))
            return true;
    }
    return false;
}

/* For trainer_cache_share, within gate_enter_open: waits until another lane has given memory back since the last
 * time. */
static bool wait_for_memory(void *ctx)
{
    struct lane *lane = ctx;
    struct lane_pool *pool = lane->pool;

    gate_leave_open(&pool->gate);
    pthread_mutex_lock(&pool->lock);
    lane->state = LANE_WAITING;
    atomic_store(&lane->waits, true);
    for (size_t i = 0; i < pool->n_lanes; i++)
        pool->lanes[i].drop = pool->lanes[i].state == LANE_IDLE;
    pthread_cond_broadcast(&pool->changed);
    while (pool->n_freed == lane->seen_freed && others_hold(lane) && !atomic_load(&lane->stop))
        pthread_cond_wait(&pool->changed, &pool->lock);
    bool freed = pool->n_freed != lane->seen_freed && !atomic_load(&lane->stop);
    lane->seen_freed = pool->n_freed;
    atomic_store(&lane->waits, false);
    lane->state = LANE_BUSY;
    pthread_cond_broadcast(&pool->changed);
    pthread_mutex_unlock(&pool->lock);
    gate_enter_open(&pool->gate);
    return freed;
}

static void note_memory(struct lane *lane)
{
    atomic_store(&lane->pool->device_bytes, kern_memory_held_bytes(lane->session.kern));
}

/* ---- a trial ---- */

static bool stop_waiting(void *ctx)
{
    const struct lane *lane = ctx;

    return atomic_load(&lane->stop);
}

/* A trial of more devices than are here is trained with the other hosts of the pool: waits until all are there. */
static enum status lane_gather(struct lane *lane, const struct setup *setup, struct error *err)
{
    struct train_hosts *hosts = lane->pool->hosts;

    lane->session.hosts = NULL;
    lane->session.ranks_here = 0;
    if (hosts == NULL || !train_hosts_wanted(hosts, (size_t)setup->train.devices, lane->session.kern))
        return ST_OK;
    atomic_store(&lane->waits, true); /* until it has opened: session_open may wait for another one */
    if (train_hosts_missing(hosts) > 0)
        log_info("waiting for other hosts (missing: %zu)", train_hosts_missing(hosts));
    return session_gather(&lane->session, hosts, setup->train.devices, stop_waiting, lane, err);
}

static enum status lane_open_trial(struct lane *lane, const struct setup *setup, struct error *err)
{
    struct lane_pool *pool = lane->pool;

    pthread_mutex_lock(&pool->lock);
    lane->seen_freed = pool->n_freed;
    pthread_mutex_unlock(&pool->lock);
    enum status rc = lane_gather(lane, setup, err);
    gate_enter_open(&pool->gate);
    double begun_s = clock_mono_s();
    THEN(rc, session_open(&lane->session, setup, err));
    atomic_store(&lane->waits, false);
    lane->trial.create_s = clock_mono_s() - begun_s;
    THEN(rc, lane_resume(lane, setup, err));
    if (rc == ST_OK)
        note_memory(lane);
    if (rc == ST_OK) /* nothing of it is on the device when it leaves */
        rc = kern_sync(lane->session.kern, err);
    gate_leave_open(&pool->gate);
    return rc;
}

static struct train_gate lane_gate(struct lane *lane)
{
    return (struct train_gate){.ctx = &lane->pool->gate,
                               .enter = enter_gate,
                               .leave = leave_gate,
                               .wanted = gate_is_wanted,
                               .pace = lane->pool->pace,
                               .n_runs = lane->pool->n_lanes};
}

/* Each look is progress to the supervisor, like an iteration. */
static bool on_evaluation(void *ctx, const struct eval_progress *progress)
{
    struct lane *lane = ctx;

    (void)progress;
    atomic_fetch_add(&lane->iterations, 1);
    return !atomic_load(&lane->stop);
}

/* What the policy is worth as it is. */
static enum status lane_play(struct lane *lane, const struct setup *setup, struct eval_result *ret_eval,
                             struct error *err)
{
    const struct train_gate gate = lane_gate(lane);
    struct eval_settings settings;

    eval_settings_of(&setup->train, &settings);
    settings.gate = lane->pool->n_lanes > 1 ? &gate : NULL;
    settings.ctx = lane;
    settings.on_progress = on_evaluation;
    return trainer_eval(lane->session.trainer, &settings, ret_eval, err);
}

/* What the training has cost is known; what follows is not part of it. */
static void lane_send_evaluating(struct lane *lane, double cost_s, bool branch)
{
    cJSON *json = lane_message(lane, "evaluating");

    json_add_f64(json, "cost_s", cost_s);
    json_add_bool(json, "branch", branch);
    lane_pool_send(lane->pool, json);
}

/* Trains to each of the trial's branches that is still to come, and reports what the run is worth there. Stopped in an
 * evaluation: the run is, at that point of its training, and what continues it begins with that evaluation. */
static enum status lane_branches(struct lane *lane, const struct setup *setup, struct train_callbacks *callbacks,
                                 struct train_result *ret_result, struct error *err)
{
    struct eval_result eval;
    int64_t env_steps, iterations;
    const cJSON *branch;

    cJSON_ArrayForEach(branch, lane->trial.branches)
    {
        trainer_get_progress(lane->session.trainer, &env_steps, &iterations);
        if (!cJSON_IsNumber(branch) || branch->valuedouble < (double)env_steps)
            continue;
        callbacks->until = (int64_t)branch->valuedouble;
        TRY(trainer_run(lane->session.trainer, callbacks, ret_result, err));
        if (ret_result->stopped)
            return ST_OK;
        lane_send_evaluating(lane, ret_result->cost_s, true);
        TRY(lane_play(lane, setup, &eval, err));
        ret_result->stopped = eval.stopped;
        if (eval.stopped)
            return ST_OK;
        lane_pool_send(lane->pool, lane_result_json(lane, "branch", ST_OK, ret_result, &eval, ""));
    }
    callbacks->until = 0;
    return trainer_run(lane->session.trainer, callbacks, ret_result, err);
}

static enum status lane_train(struct lane *lane, const struct setup *setup, struct train_result *ret_result,
                              struct error *err)
{
    const struct train_gate gate = lane_gate(lane);
    struct train_callbacks callbacks = {.ctx = lane,
                                        .gate = lane->pool->n_lanes > 1 ? &gate : NULL,
                                        .on_metrics = on_metrics,
                                        .should_stop = should_stop};
    struct lane_trial *t = &lane->trial;
    int64_t env_steps, iterations;
    cJSON *json = lane_message(lane, "training");

    trainer_get_progress(lane->session.trainer, &env_steps, &iterations);
    json_add_i64(json, "env_steps", env_steps);
    lane_pool_send(lane->pool, json);
    t->start_s = t->saved_s = clock_mono_s();
    TRY(lane_branches(lane, setup, &callbacks, ret_result, err));
    if (t->checkpoint_path != NULL && (ret_result->stopped ? atomic_load(&lane->checkpoint) : t->checkpoint_end))
        lane_save(lane);
    return ST_OK;
}

/* What it is worth at the end. Stopped: the trial is, with its training as it was, and saved if that was asked for. */
static enum status lane_evaluate(struct lane *lane, const struct setup *setup, struct train_result *result,
                                 struct eval_result *ret_eval, struct error *err)
{
    struct lane_trial *t = &lane->trial;

    lane_send_evaluating(lane, result->cost_s, false);
    TRY(lane_play(lane, setup, ret_eval, err));
    result->stopped = ret_eval->stopped;
    if (ret_eval->stopped && t->checkpoint_path != NULL && !t->saved && atomic_load(&lane->checkpoint))
        lane_save(lane);
    return ST_OK;
}

static void lane_read_message(struct lane *lane, const cJSON *message)
{
    struct lane_trial *t = &lane->trial;

    *t = (struct lane_trial){.config = json_get_str(message, "config"),
                             .metric = json_get_str(message, "metric"),
                             .owner = json_get_str(message, "owner"),
                             .checkpoint_path = json_get_str(message, "checkpoint_path"),
                             .resume_from = json_get_str(message, "resume_from")};
    (void)json_get_i64(message, "trial", &t->id);
    (void)json_get_i64(message, "attempt", &t->attempt);
    (void)json_get_f64(message, "checkpoint_every_s", &t->checkpoint_every_s);
    (void)json_get_i64(message, "resume_bytes", &t->resume_bytes);
    t->branches = json_get(message, "branches");
    t->checkpoint_end = cJSON_IsTrue(json_get(message, "checkpoint_end"));
    if (lane->pool->remote)
        lane_files_begin(lane);
}

static void lane_free_trial(struct lane *lane)
{
    struct lane_pool *pool = lane->pool;

    if (lane->session.trainer == NULL)
        return;
    gate_enter_open(&pool->gate); /* what it frees is work on the device */
    trainer_destroy(
        lane->session.trainer); /* on a CPU its memory is not needed while waiting; a GPU's goes to the cache */
    lane->session.trainer = NULL;
    if (!kern_is_lost(lane->session.kern) && kern_sync(lane->session.kern, NULL) == ST_OK)
        note_memory(lane);
    gate_leave_open(&pool->gate);
}

/* On a CPU what did not fit is a limit of this process, where there is one. */
static void lane_explain_memory(const struct lane *lane, struct error *why)
{
    size_t n = strlen(why->text);
    char limit[200];

    if (lane->session.kern != NULL && kern_kind(lane->session.kern) == KERN_CPU &&
        worker_limits_explain(lane->pool->memory_bytes, limit, sizeof limit))
        snprintf(why->text + n, sizeof why->text - n, "; %s", limit);
}

/* The device stays open as it is, whatever the config calls it; but a trial has its own number of threads. */
static void keep_device(const struct lane *lane, struct setup *setup)
{
    if (lane->session.kern == NULL) /* a study of a program opened none */
        return;
    setup->train.device = lane->session.device;
    if (setup->train.threads == 0 ||
        (lane->pool->hosts == NULL && setup->train.threads == (int64_t)session_threads(&lane->session)))
        setup->train.threads = lane->session.threads; /* its share of the cores, as it was opened */
}

static cJSON *lane_trial_run(struct lane *lane, const cJSON *message)
{
    struct train_result result = {0}; /* read when the training has ended */
    struct eval_result eval = {.stopped = true};
    struct error why = {0};
    struct setup *setup = NULL;
    int64_t number = lane->trial.id;
    cJSON *json;

    (void)json_get_i64(message, "number", &number);
    log_set_trial(number);
    enum status rc = atomic_load(&lane->pool->lost)
                         ? FAIL(&why, ST_DEVICE, "%s", "the device had been lost before it began")
                         : lane_pool_read_config(lane->pool, message, &setup, &why);
    const bool other_game = rc == ST_VERSION;
    if (rc == ST_OK && setup_is_program(setup)) {
        json = lane_program(lane, setup, message);
        setup_destroy(setup);
        log_set_trial(-1);
        return json;
    }
    if (rc == ST_OK && setup->train.devices > 1 && lane->pool->n_lanes > 1)
        rc = FAIL(&why, ST_CONFIG,
                  "train.devices is %lld, and sweep.runs_per_device puts %zu trials on a device at a time; set one of "
                  "them to 1",
                  (long long)setup->train.devices, lane->pool->n_lanes);
    if (rc == ST_OK)
        keep_device(lane, setup);
    THEN(rc, lane_open_trial(lane, setup, &why));
    THEN(rc, lane_train(lane, setup, &result, &why));
    if (rc == ST_OK && !result.stopped)
        rc = lane_evaluate(lane, setup, &result, &eval, &why);
    if (rc == ST_NOMEM)
        lane_explain_memory(lane, &why);
    if (lane->session.kern != NULL && (kern_is_lost(lane->session.kern) || train_hosts_broken(lane->pool->hosts)))
        lane_pool_declare_lost(lane->pool);
    if (atomic_load(&lane->pool->lost) && rc != ST_OK)
        log_error("%s", why.text); /* the last lines of a worker that ends go to the controller */
    json = lane_result_json(lane, "result", rc, &result, &eval, why.text);
    json_add_bool(json, "apart", rc != ST_OK && train_hosts_lost(lane->pool->hosts));
    json_add_bool(json, "other_game", other_game);
    if (!atomic_load(&lane->pool->lost))
        lane_free_trial(lane);
    setup_destroy(setup);
    log_set_trial(-1);
    return json;
}

/* ---- the thread ---- */

static void lane_drop_cache(struct lane *lane)
{
    gate_enter_open(&lane->pool->gate);
    trainer_cache_clear(lane->session.cache);
    (void)!kern_sync(lane->session.kern, NULL); /* a failure shows in its next trial */
    gate_leave_open(&lane->pool->gate);
}

/* Waits for a message, and drops what is kept meanwhile when others need the memory. NULL: the end. */
static cJSON *lane_wait(struct lane *lane)
{
    struct lane_pool *pool = lane->pool;

    pthread_mutex_lock(&pool->lock);
    while (lane->next == NULL && !pool->exit) {
        if (lane->drop && lane->keeps) {
            lane->keeps = false;
            lane->state = LANE_BUSY; /* for the others: memory is to come */
            pthread_mutex_unlock(&pool->lock);
            lane_drop_cache(lane);
            pthread_mutex_lock(&pool->lock);
            lane->state = LANE_IDLE;
            pool->n_freed++;
            pthread_cond_broadcast(&pool->changed);
            continue;
        }
        pthread_cond_wait(&pool->changed, &pool->lock);
    }
    cJSON *message = lane->next;
    lane->next = NULL;
    if (message != NULL)
        lane->state = LANE_BUSY;
    pthread_mutex_unlock(&pool->lock);
    return message;
}

/* done: it is free for the next trial. */
static void lane_set_state(struct lane *lane, enum lane_state state, bool done)
{
    struct lane_pool *pool = lane->pool;

    pthread_mutex_lock(&pool->lock);
    lane->state = state;
    lane->drop = false;
    lane->taken = lane->taken && !done;
    lane->keeps = lane->session.cache != NULL;
    pool->n_freed++;
    pthread_cond_broadcast(&pool->changed);
    pthread_mutex_unlock(&pool->lock);
}

/* What a process alone would need as well; the other lanes find some of it done. */
static void note_start(const struct lane *lane, double begun_s)
{
    if (lane == &lane->pool->lanes[0])
        atomic_fetch_add(&lane->pool->open_us, (unsigned long long)(1e6 * (clock_mono_s() - begun_s)));
}

/* The device, and two iterations of the study's own config, so that no trial has in its cost what is loaded once. */
static void lane_open(struct lane *lane)
{
    struct lane_pool *pool = lane->pool;
    enum status rc = ST_OK;

    gate_enter_open(&pool->gate);
    double begun_s = clock_mono_s();
    if (!setup_is_program(pool->setup)) /* which uses the device itself */
        rc = session_open_device(&lane->session, pool->setup, &lane->opened_err);
    if (rc == ST_OK && lane->session.cache != NULL && pool->n_lanes > 1) /* half of the device for what may come */
        trainer_cache_share(lane->session.cache, kern_memory_total_bytes(lane->session.kern) / (2 * pool->n_lanes),
                            wait_for_memory, lane);
    note_start(lane, begun_s);
    gate_leave_open(&pool->gate);
    pthread_mutex_lock(&pool->lock);
    lane->opened = rc;
    lane->state = rc == ST_OK ? LANE_BUSY : LANE_ENDED;
    pthread_cond_broadcast(&pool->changed);
    pthread_mutex_unlock(&pool->lock);
}

static void lane_warm_up(struct lane *lane)
{
    struct lane_pool *pool = lane->pool;

    if (lane->session.cache != NULL) {
        gate_enter_open(&pool->gate);
        double begun_s = clock_mono_s();
        session_warm_up(&lane->session, pool->setup);
        note_memory(lane);
        note_start(lane, begun_s);
        gate_leave_open(&pool->gate);
    }
    if (lane->session.kern != NULL && kern_is_lost(lane->session.kern))
        lane_pool_declare_lost(lane->pool);
}

void *lane_main(void *arg)
{
    struct lane *lane = arg;
    cJSON *message, *result;

    lane_open(lane);
    if (lane->opened != ST_OK)
        return NULL;
    lane_warm_up(lane);
    lane_set_state(lane, LANE_IDLE, false);
    while ((message = lane_wait(lane)) != NULL) {
        lane_read_message(lane, message);
        result = lane_trial_run(lane, message);
        if (lane->pool->remote)
            lane_files_end(lane);
        cJSON_Delete(message);
        atomic_store(&lane->id, -1);
        lane_set_state(lane, LANE_IDLE, true);
        if (atomic_load(&lane->pool->silent))
            cJSON_Delete(result);
        else
            lane_pool_send(lane->pool, result);
    }
    if (!atomic_load(&lane->pool->lost)) {
        gate_enter_open(&lane->pool->gate);
        session_close(&lane->session);
        gate_leave_open(&lane->pool->gate);
    }
    lane_set_state(lane, LANE_ENDED, false);
    return NULL;
}
