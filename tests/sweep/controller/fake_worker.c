/* fake_worker.c - a worker that trains nothing and goes wrong as its device's name says. */
#include "fake_worker.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include "base/text/json.h"
#include "study/setup/sweep_settings.h"
#include "sweep/launch/device_spec.h"
#include "sweep/launch/greeting.h"
#include "sweep/launch/proto.h"

#define TRIAL_S 0.02
#define BEAT_S 0.02

struct job {
    bool on, hangs;
    int64_t trial, attempt, number, iterations;
    double done_s;
};

struct fake {
    struct proto proto;
    char kind[24]; /* without its "@N" */
    int64_t at; /* the N; -1: none */
    struct job jobs[SWEEP_LANES_MAX];
    int64_t lanes;
    double beat_s;
};

static void say(struct fake *w, cJSON *message)
{
    struct error err = {0};

    if (proto_send(&w->proto, message, &err) != ST_OK)
        _exit(0);
}

static cJSON *about(const char *type, const struct job *job)
{
    cJSON *json = proto_message(type);

    json_add_i64(json, "trial", job->trial);
    json_add_i64(json, "attempt", job->attempt);
    return json;
}

static void finish(struct fake *w, struct job *job, const char *state, bool lost)
{
    cJSON *json = about("result", job);
    double cost_s = strcmp(w->kind, "expensive") == 0 ? 1e3 : strcmp(w->kind, "cheap") == 0 ? 1e-6 : TRIAL_S;

    json_add_f64(json, "score", 1.0 / (1.0 + (double)job->number));
    json_add_str(json, "state", state);
    json_add_f64(json, "perf", 0.5);
    json_add_f64(json, "cost_s", cost_s);
    json_add_f64(json, "device_s", cost_s);
    json_add_i64(json, "env_steps", 100);
    json_add_i64(json, "eval_episodes", 3);
    json_add_f64(json, "score_se", 0.125);
    json_add_f64(json, "eval_s", 0.25);
    json_add_f64(json, "start_s", 0.5);
    json_add_str(json, "program", "a toy");
    json_add_str(json, "cost_method", "calibrated");
    json_add_str(json, "reason", strcmp(state, "failed") == 0 ? "illegal access" : NULL);
    json_add_bool(json, "lost", lost);
    say(w, json);
    job->on = false;
}

static void on_open(struct fake *w, const cJSON *message)
{
    cJSON *hello = proto_message("hello");
    const char *name = json_get_str(message, "device"), *at = strchr(name, '@');

    snprintf(w->kind, sizeof w->kind, "%.*s", (int)(at != NULL ? at - name : (long)strlen(name)), name);
    w->at = at != NULL ? strtoll(at + 1, NULL, 10) : -1;
    if (strcmp(w->kind, "quit") == 0)
        _exit(3);
    int64_t lanes = json_i64_or(message, "lanes", 0);
    w->lanes = lanes;
    json_add_i64(hello, "lanes", lanes);
    json_add_str(hello, "device", name);
    if (strcmp(w->kind, "gpu") == 0)
        json_add_str(hello, "kind", "cuda");
    if (strcmp(w->kind, "refuse") == 0)
        json_add_str(hello, "reason", "it is made of wood");
    say(w, hello);
}

static void on_run(struct fake *w, const cJSON *message)
{
    struct job *job = w->jobs;

    while (job->on)
        job++;
    *job = (struct job){.on = true, .done_s = clock_mono_s() + (strcmp(w->kind, "long") == 0 ? 1e6 : TRIAL_S)};
    (void)json_get_i64(message, "trial", &job->trial);
    (void)json_get_i64(message, "attempt", &job->attempt);
    (void)json_get_i64(message, "number", &job->number);
    say(w, about("training", job));
    /* Beside others: those are still there when it comes, however slowly it is proposed. */
    if (w->lanes > 1 && strcmp(w->kind, "crash") == 0 && job->number < w->at && job->attempt == 1)
        job->done_s += 1e6;
    if (job->number != w->at)
        return;
    if (strcmp(w->kind, "crash") == 0) {
        fprintf(stderr, "last words of trial %lld\n", (long long)job->number);
        abort();
    } else if (strcmp(w->kind, "killed") == 0) {
        raise(SIGKILL); /* as the kernel does when the machine runs out of memory */
    } else if (strcmp(w->kind, "mute") == 0 && job->attempt == 1) {
        for (;;)
            pause();
    } else if (strcmp(w->kind, "lost") == 0) {
        finish(w, job, "failed", true);
        _exit(1);
    } else if (strcmp(w->kind, "garbage") == 0) {
        if (write(3, "{\"type\": nonsense}\n", 19) < 0)
            _exit(1);
    }
    job->hangs = strcmp(w->kind, "hang") == 0;
    if (job->hangs || strcmp(w->kind, "stubborn") == 0)
        job->done_s = 1e30;
}

static void on_stop(struct fake *w, const cJSON *message)
{
    int64_t trial = json_i64_or(message, "trial", -1);
    for (struct job *job = w->jobs; job < w->jobs + SWEEP_LANES_MAX; job++)
        if (job->on && job->trial == trial && job->done_s < 1e30)
            finish(w, job, "stopped", false);
}

static void beat(struct fake *w)
{
    cJSON *alive = proto_message("alive"), *lanes = cJSON_CreateArray();

    for (struct job *job = w->jobs; job < w->jobs + SWEEP_LANES_MAX; job++) {
        if (!job->on)
            continue;
        cJSON *lane = about("lane", job);
        job->iterations += !job->hangs;
        json_add_i64(lane, "env_steps", 10 * job->iterations);
        json_add_i64(lane, "iterations", job->iterations);
        cJSON_AddItemToArray(lanes, lane);
    }
    json_add(alive, "lanes", lanes);
    json_add_i64(alive, "memory_bytes", 1 << 20);
    say(w, alive);
}

static void round_of(struct fake *w)
{
    struct error err = {0};
    JSON_LOCAL cJSON *message = NULL;

    if (proto_receive(&w->proto, 5, &message, &err) != ST_OK || w->proto.closed)
        _exit(0);
    const char *type = message != NULL ? json_get_str(message, "type") : "";
    if (strcmp(type, "open") == 0)
        on_open(w, message);
    else if (strcmp(type, "run") == 0)
        on_run(w, message);
    else if (strcmp(type, "stop") == 0)
        on_stop(w, message);
    else if (strcmp(type, "exit") == 0)
        _exit(0);
    double now_s = clock_mono_s();
    for (struct job *job = w->jobs; job < w->jobs + SWEEP_LANES_MAX; job++)
        if (job->on && now_s >= job->done_s)
            finish(w, job, "done", false);
    if (now_s - w->beat_s >= BEAT_S && w->kind[0] != '\0') {
        w->beat_s = now_s;
        beat(w);
    }
}

int fake_worker_main(void)
{
    static struct fake w;
    struct rlimit none = {0, 0};

    setrlimit(RLIMIT_CORE, &none);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    signal(SIGPIPE, SIG_IGN); /* as in the program */
    proto_create(&w.proto, 3, 3);
    say(&w, greeting_make(false));
    for (;;)
        round_of(&w);
}
