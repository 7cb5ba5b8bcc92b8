/* cmd_worker.c - `trawl worker` (hidden): trains trials for a controller, in-process, one after another.
 * Invariants: (1) it ends when the controller's end of the socket closes or the controller dies; (2) it answers every
 * "run" with exactly one "result"; (3) the device stays open between trials, and what a trial left on it (memory, recorded
 * operations) waits for the next of the same shape; (4) a device that is lost to this process ends it, after the result
 * has said so: the controller then starts another. */
#include "sweep/control.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "kernels/kernels.h"

#define WORKER_FD 3

struct worker_main {
    struct proto proto;
    struct run run;
    char device[24]; /* "auto", "cpu", "cuda:1": what the controller gave us, whatever a config says */
    int64_t trial, attempt;
    bool stop, exit; /* asked for by the controller */
    bool lost; /* the device can no longer be used by this process */
    struct error err; /* of the socket: no controller to tell it to */
    struct train_metrics last;
    bool has_last;
};

/* What the controller may say while a trial runs. */
static void listen_to_controller(struct worker_main *w, int timeout_ms)
{
    cJSON *message = NULL;
    const char *type;
    int64_t trial = -1;

    if (proto_receive(&w->proto, timeout_ms, &message, &w->err) != ST_OK || w->proto.closed)
        w->stop = w->exit = true;
    if (message == NULL)
        return;
    type = json_get_str(message, "type");
    if (type != NULL && strcmp(type, "stop") == 0)
        w->stop = w->stop || !json_get_i64(message, "trial", &trial) || trial == w->trial;
    else if (type != NULL && strcmp(type, "exit") == 0)
        w->stop = w->exit = true;
    cJSON_Delete(message);
}

static bool should_stop(void *ctx)
{
    struct worker_main *w = ctx;

    if (!w->stop)
        listen_to_controller(w, 0);
    return w->stop;
}

static cJSON *answer(const struct worker_main *w, const char *type)
{
    cJSON *json = proto_message(type);

    if (json != NULL && !(json_add_i64(json, "trial", w->trial) && json_add_i64(json, "attempt", w->attempt))) {
        cJSON_Delete(json);
        return NULL;
    }
    return json;
}

/* Every metric by its name; NaN means "unknown" and is left out. */
static cJSON *metrics_json(const struct train_metrics *m)
{
    cJSON *json = cJSON_CreateObject();
    bool ok = json != NULL;

    for (size_t i = 0; ok && i < train_n_metric_defs; i++) {
        double value = train_metric_value(m, i);
        if (!isnan(value))
            ok = json_add_f64(json, train_metric_defs[i].name, value);
    }
    if (!ok) {
        cJSON_Delete(json);
        return NULL;
    }
    return json;
}

static bool on_metrics(void *ctx, const struct train_metrics *m)
{
    struct worker_main *w = ctx;
    cJSON *json = answer(w, "metrics");

    w->last = *m;
    w->has_last = true;
    if (json != NULL && !(json_add_i64(json, "env_steps", m->env_steps) && json_add_f64(json, "wall_s", m->wall_s) &&
                          json_add(json, "values", metrics_json(m)))) {
        cJSON_Delete(json);
        json = NULL;
    }
    if (proto_send(&w->proto, json, &w->err) != ST_OK)
        w->stop = w->exit = true;
    return !w->stop;
}

/* The metrics of the last report, with the result's means in place of that report's. */
static cJSON *final_json(struct worker_main *w, const struct train_result *r)
{
    w->last.score = r->score;
    w->last.perf = r->perf;
    w->last.ep_return = r->ep_return;
    w->last.ep_length = r->ep_length;
    w->last.steps_per_s = r->steps_per_s;
    return metrics_json(&w->last);
}

static enum status send_result(struct worker_main *w, enum status trained, const struct train_result *r, double wall_s,
                               const struct error *why, struct error *err)
{
    cJSON *json = answer(w, "result");
    const char *state = trained != ST_OK ? "failed" : r->stopped ? "stopped" : "done";
    bool ok = json != NULL && json_add_str(json, "state", state) && json_add_f64(json, "perf", r->perf) &&
              json_add_f64(json, "cost_s", trained == ST_OK ? r->cost_s : wall_s) &&
              json_add_f64(json, "device_s", trained == ST_OK ? r->cost_s : wall_s) &&
              json_add_i64(json, "env_steps", trained == ST_OK ? r->env_steps : w->last.env_steps) &&
              json_add_f64(json, "episodes", r->episodes) &&
              json_add_str(json, "reason", trained != ST_OK ? why->text : NULL) && json_add_bool(json, "lost", w->lost);

    if (ok && trained == ST_OK)
        ok = json_add(json, "final", final_json(w, r));
    if (!ok) {
        cJSON_Delete(json);
        return FAIL(err, ST_NOMEM, "out of memory for a result");
    }
    return proto_send(&w->proto, json, err);
}

/* A finished setup of the config in a message. */
static enum status read_config(const struct worker_main *w, const cJSON *message, struct setup **ret_setup,
                               struct error *err)
{
    const char *text = json_get_str(message, "config");
    enum status rc;

    if (text == NULL)
        return FAIL(err, ST_CORRUPT, "the controller's message holds no config");
    TRY(setup_create(ret_setup, err));
    rc = config_load_text((*ret_setup)->config, "trial's config", text, err);
    if (rc == ST_OK)
        rc = setup_finish(*ret_setup, err);
    if (rc != ST_OK) {
        setup_destroy(*ret_setup);
        *ret_setup = NULL;
        return rc;
    }
    if (strcmp(w->device, "cpu") == 0)
        (*ret_setup)->train.device = KERN_CPU;
    else if (strncmp(w->device, "cuda:", 5) == 0)
        (*ret_setup)->train.device = KERN_CUDA;
    return ST_OK;
}

static enum status train(struct worker_main *w, const cJSON *message, struct train_result *ret_result,
                         struct error *err)
{
    struct train_callbacks callbacks = {.ctx = w, .on_metrics = on_metrics, .should_stop = should_stop};
    struct setup *setup = NULL;
    enum status rc = read_config(w, message, &setup, err);

    if (rc == ST_OK)
        rc = run_open(&w->run, setup, err);
    if (rc == ST_OK)
        rc = proto_send(&w->proto, answer(w, "training"), err);
    if (rc == ST_OK)
        rc = trainer_run(w->run.trainer, &callbacks, ret_result, err);
    trainer_destroy(w->run.trainer); /* on a CPU its memory is not needed while waiting; a GPU's goes to the cache */
    w->run.trainer = NULL;
    setup_destroy(setup);
    return rc;
}

static enum status run_trial(struct worker_main *w, const cJSON *message, struct error *err)
{
    struct train_result result = {.score = NAN, .perf = NAN, .ep_return = NAN, .ep_length = NAN};
    struct error why = {0};
    double start_s = clock_mono_s();
    int64_t number;
    enum status trained;

    if (!json_get_i64(message, "trial", &w->trial) || !json_get_i64(message, "attempt", &w->attempt))
        return FAIL(err, ST_CORRUPT, "the controller's message names no trial");
    w->stop = w->has_last = false;
    memset(&w->last, 0, sizeof w->last);
    log_set_trial(json_get_i64(message, "number", &number) ? number : w->trial);
    trained = train(w, message, &result, &why);
    log_set_trial(-1);
    w->lost = w->run.kern != NULL && kern_is_lost(w->run.kern);
    return send_result(w, trained, &result, clock_mono_s() - start_s, &why, err);
}

/* Opens the device that the study's config asks for, and greets. */
static enum status open_device(struct worker_main *w, const cJSON *message, struct error *err)
{
    cJSON *hello = proto_message("hello");
    struct setup *setup = NULL;
    struct error why = {0};
    const char *device = json_get_str(message, "device");
    enum status opened;
    bool ok;

    snprintf(w->device, sizeof w->device, "%s", device != NULL ? device : "auto");
    worker_limits_apply(message);
    if (strncmp(w->device, "cuda:", 5) == 0)
        w->run.ordinal = (int)strtol(w->device + 5, NULL, 10);
    opened = read_config(w, message, &setup, &why);
    if (opened == ST_OK)
        opened = run_open_device(&w->run, setup, &why);
    ok = hello != NULL && json_add_i64(hello, "version", PROTO_VERSION) && json_add_i64(hello, "pid", getpid());
    if (ok && opened == ST_OK)
        ok = json_add_i64(hello, "lanes", 1) && json_add_str(hello, "device", kern_device_name(w->run.kern));
    else if (ok)
        ok = json_add_str(hello, "reason", why.text);
    if (!ok) {
        cJSON_Delete(hello);
        setup_destroy(setup);
        return FAIL(err, ST_NOMEM, "out of memory for a greeting");
    }
    opened = proto_send(&w->proto, hello, err);
    if (opened == ST_OK && setup != NULL)
        run_warm_up(&w->run, setup);
    w->lost = w->run.kern != NULL && kern_is_lost(w->run.kern);
    setup_destroy(setup);
    return opened;
}

static enum status serve(struct worker_main *w, struct error *err)
{
    while (!w->exit && !w->lost) {
        cJSON *message = NULL;
        enum status rc = proto_receive(&w->proto, -1, &message, err);
        const char *type = message != NULL ? json_get_str(message, "type") : NULL;
        if (rc == ST_OK && type != NULL && strcmp(type, "open") == 0)
            rc = open_device(w, message, err);
        else if (rc == ST_OK && type != NULL && strcmp(type, "run") == 0)
            rc = run_trial(w, message, err);
        else if ((type != NULL && strcmp(type, "exit") == 0) || w->proto.closed)
            w->exit = true;
        cJSON_Delete(message);
        if (rc != ST_OK)
            return w->proto.closed ? ST_OK : rc; /* no controller is left to tell */
    }
    return ST_OK;
}

enum status cmd_worker(int argc, char **argv, struct error *err)
{
    struct worker_main w = {0};
    int type = 0;
    socklen_t size = sizeof type;
    enum status rc;

    (void)argc;
    (void)argv;
    if (getsockopt(WORKER_FD, SOL_SOCKET, SO_TYPE, &type, &size) != 0 || type != SOCK_STREAM)
        return FAIL(err, ST_USAGE, "worker: this command is started by `trawl sweep` and not by hand");
    signal(SIGINT, SIG_IGN); /* Ctrl-C reaches the whole group; the controller decides what becomes of the trial */
    signal(SIGHUP, SIG_IGN);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    rc = proto_create(&w.proto, WORKER_FD, err);
    if (rc == ST_OK)
        rc = serve(&w, err);
    if (w.lost)
        _exit(EXIT_FAILURE); /* to give back what a hung device holds could take for ever */
    run_close(&w.run);
    proto_destroy(&w.proto);
    return rc;
}
