/* sleeping_worker.c - a worker on stdin and stdout that trains nothing: a trial takes SECONDS times something between a
 * half and one and a half, and says on the way what a real one says. For many of them beside one controller.
 * usage: sleeping_worker SECONDS */
#include "base/os/clock.h"
#include "base/text/json.h"
#include "base/mem.h"
#include "base/status.h"
#include "sweep/launch/greeting.h"
#include "sweep/launch/proto.h"

#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LOOK_MS 200
#define POINTS 24 /* of a learning curve, as a real run has them */

struct sleeper {
    struct proto proto;
    double mean_s, beat_s, begun_s, done_s; /* begun_s 0: no trial */
    int64_t trial, attempt, n_points;
};

static void send_message(struct sleeper *w, cJSON *message)
{
    struct error err = {0};

    if (proto_send(&w->proto, message, &err) != ST_OK)
        _exit(EXIT_SUCCESS);
}

static cJSON *about(const struct sleeper *w, const char *type)
{
    cJSON *json = proto_message(type);

    json_add_i64(json, "trial", w->trial);
    json_add_i64(json, "attempt", w->attempt);
    return json;
}

static int64_t steps_at(const struct sleeper *w, double now_s)
{
    return (int64_t)(1e4 * (now_s - w->begun_s));
}

static void on_open(struct sleeper *w)
{
    cJSON *json = proto_message("hello");

    json_add_i64(json, "lanes", 1);
    json_add_str(json, "device", "a bed");
    send_message(w, json);
}

static void on_run(struct sleeper *w, const cJSON *message)
{
    (void)json_get_i64(message, "trial", &w->trial);
    (void)json_get_i64(message, "attempt", &w->attempt);
    w->begun_s = clock_mono_s();
    w->n_points = 0;
    w->done_s = w->begun_s + w->mean_s * (0.5 + (double)(w->trial * 2654435761u % 1000) / 1000.0);
    send_message(w, about(w, "training"));
}

static void send_point(struct sleeper *w, double now_s)
{
    static const char *const names[] = {"perf",         "train/score",     "loss/policy",         "loss/value",
                                        "loss/entropy", "train/kl",        "train/clip_fraction", "train/ep_length",
                                        "steps_per_s",  "profile/rollout", "profile/update",      "train/lr"};
    cJSON *json = about(w, "metrics"), *values = cJSON_CreateObject();

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        json_add_f64(values, names[i], sin((double)(w->trial + (int64_t)i)) * (double)w->n_points);
    json_add_i64(json, "env_steps", steps_at(w, now_s));
    json_add_f64(json, "wall_s", now_s - w->begun_s);
    json_add(json, "values", values);
    send_message(w, json);
    w->n_points++;
}

static void send_result(struct sleeper *w, const char *state, double now_s)
{
    cJSON *json = about(w, "result");

    json_add_str(json, "state", state);
    json_add_f64(json, "score", 0.5 + 0.4 * sin((double)w->trial * 1.618));
    json_add_f64(json, "perf", 0.5);
    json_add_f64(json, "cost_s", now_s - w->begun_s);
    json_add_f64(json, "device_s", now_s - w->begun_s);
    json_add_i64(json, "env_steps", steps_at(w, now_s));
    json_add_str(json, "cost_method", "wall");
    json_add_str(json, "program", "sleeping_worker");
    json_add_str(json, "device", "a bed");
    json_add_bool(json, "lost", false);
    w->begun_s = 0;
    send_message(w, json);
}

static void beat(struct sleeper *w, double now_s)
{
    cJSON *json = proto_message("alive"), *lanes = cJSON_AddArrayToObject(json, "lanes");

    if (w->begun_s > 0) {
        cJSON *lane = about(w, "lane");
        json_add_i64(lane, "env_steps", steps_at(w, now_s));
        json_add_i64(lane, "iterations", steps_at(w, now_s) / 100);
        cJSON_AddItemToArray(lanes, lane);
    }
    json_add_i64(json, "memory_bytes", 1 << 28);
    json_add_i64(json, "device_memory_bytes", 0);
    send_message(w, json);
    w->beat_s = now_s;
}

static void round_of(struct sleeper *w)
{
    struct error err = {0};
    cJSON *message = NULL;

    if (proto_receive(&w->proto, LOOK_MS, &message, &err) != ST_OK || w->proto.closed)
        _exit(EXIT_SUCCESS);
    const char *type = message != NULL ? json_get_str(message, "type") : "";
    double now_s = clock_mono_s();
    if (strcmp(type, "open") == 0)
        on_open(w);
    else if (strcmp(type, "run") == 0)
        on_run(w, message);
    else if (strcmp(type, "stop") == 0 && w->begun_s > 0)
        send_result(w, "stopped", now_s);
    else if (strcmp(type, "exit") == 0)
        _exit(EXIT_SUCCESS);
    cJSON_Delete(message);
    if (now_s - w->beat_s >= 1)
        beat(w, now_s);
    if (w->begun_s > 0 && now_s > w->begun_s + (w->done_s - w->begun_s) * (double)(w->n_points + 1) / (POINTS + 1))
        send_point(w, now_s);
    if (w->begun_s > 0 && now_s >= w->done_s)
        send_result(w, "done", now_s);
}

int main(int argc, char **argv)
{
    struct sleeper *w = mem_alloc(sizeof *w);

    signal(SIGPIPE, SIG_IGN);
    signal(SIGINT, SIG_IGN);
    w->mean_s = argc > 1 ? atof(argv[1]) : 10;
    proto_create(&w->proto, dup(STDIN_FILENO), dup(STDOUT_FILENO));
    send_message(w, greeting_make(false));
    for (;;)
        round_of(w);
}
