/* sleeping_worker.c - a worker on stdin and stdout that trains nothing: a trial takes SECONDS times something between a
 * half and one and a half (or 1 -+ SPREAD / 2), and reports on the way as a real one does; as many trials at a time as the
 * controller gives it lanes. For many workers, or many lanes, beside one controller.
 * usage: sleeping_worker SECONDS [SPREAD] */
#include "base/text/json.h"
#include "study/setup/sweep_settings.h"
#include "sweep/launch/device_spec.h"
#include "sweep/launch/greeting.h"
#include "sweep/launch/proto.h"

#include <signal.h>

#define LOOK_MS 200
#define WAITING_MAX (4 * SWEEP_LANES_MAX)
#define POINTS 24 /* of a learning curve, as a real run has them */

struct sleep {
    double begun_s, done_s; /* begun_s 0: no trial */
    int64_t trial, attempt, n_points;
};

struct sleeper {
    struct proto proto;
    double mean_s, spread, beat_s;
    int64_t n_lanes;
    struct sleep lanes[SWEEP_LANES_MAX];
    pthread_mutex_t lock; /* guards waiting, n_waiting */
    pthread_cond_t came;
    cJSON *waiting[WAITING_MAX]; /* read and not looked at */
    size_t n_waiting;
};

#define EACH_LANE(w, l) for (struct sleep *l = (w)->lanes; l < (w)->lanes + (w)->n_lanes; l++)

static void send_message(struct sleeper *w, cJSON *message)
{
    struct error err = {0};

    if (proto_send(&w->proto, message, &err) != ST_OK)
        _exit(EXIT_SUCCESS);
}

static cJSON *about(const struct sleep *l, const char *type)
{
    cJSON *json = proto_message(type);

    json_add_i64(json, "trial", l->trial);
    json_add_i64(json, "attempt", l->attempt);
    return json;
}

static int64_t steps_at(const struct sleep *l, double now_s)
{
    return (int64_t)(1e4 * (now_s - l->begun_s));
}

static void on_open(struct sleeper *w, const cJSON *message)
{
    cJSON *json = proto_message("hello");

    (void)json_get_i64(message, "lanes", &w->n_lanes);
    if (w->n_lanes > SWEEP_LANES_MAX)
        w->n_lanes = SWEEP_LANES_MAX;
    json_add_i64(json, "lanes", w->n_lanes);
    json_add_str(json, "device", "a bed");
    json_add_str(json, "kind", "cuda");
    send_message(w, json);
}

static void on_run(struct sleeper *w, const cJSON *message)
{
    struct sleep *l = w->lanes;

    while (l < w->lanes + w->n_lanes - 1 && l->begun_s > 0)
        l++;
    *l = (struct sleep){.begun_s = clock_mono_s()};
    (void)json_get_i64(message, "trial", &l->trial);
    (void)json_get_i64(message, "attempt", &l->attempt);
    l->done_s = l->begun_s + w->mean_s * (1 + w->spread * ((double)(l->trial * 2654435761u % 1000) / 1000.0 - 0.5));
    send_message(w, about(l, "training"));
}

static void send_point(struct sleeper *w, struct sleep *l, double now_s)
{
    static const char *const names[] = {"perf",         "train/score",     "loss/policy",         "loss/value",
                                        "loss/entropy", "train/kl",        "train/clip_fraction", "train/ep_length",
                                        "steps_per_s",  "profile/rollout", "profile/update",      "train/lr"};
    cJSON *json = about(l, "metrics"), *values = cJSON_CreateObject();

    for (size_t i = 0; i < COUNT(names); i++)
        json_add_f64(values, names[i], sin((double)(l->trial + (int64_t)i)) * (double)l->n_points);
    json_add_i64(json, "env_steps", steps_at(l, now_s));
    json_add_f64(json, "wall_s", now_s - l->begun_s);
    json_add(json, "values", values);
    send_message(w, json);
    l->n_points++;
}

static void send_result(struct sleeper *w, struct sleep *l, const char *state, double now_s)
{
    cJSON *json = about(l, "result");

    json_add_str(json, "state", state);
    json_add_f64(json, "score", 0.5 + 0.4 * sin((double)l->trial * 1.618));
    json_add_f64(json, "perf", 0.5);
    json_add_f64(json, "cost_s", now_s - l->begun_s);
    json_add_f64(json, "device_s", now_s - l->begun_s);
    json_add_i64(json, "env_steps", steps_at(l, now_s));
    json_add_str(json, "cost_method", "wall");
    json_add_str(json, "program", "sleeping_worker");
    json_add_str(json, "device", "a bed");
    json_add_bool(json, "lost", false);
    l->begun_s = 0;
    send_message(w, json);
}

static void beat(struct sleeper *w, double now_s)
{
    cJSON *json = proto_message("alive"), *lanes = cJSON_AddArrayToObject(json, "lanes");

    EACH_LANE(w, l)
    {
        if (l->begun_s <= 0)
            continue;
        cJSON *lane = about(l, "lane");
        json_add_i64(lane, "env_steps", steps_at(l, now_s));
        json_add_i64(lane, "iterations", steps_at(l, now_s) / 100);
        cJSON_AddItemToArray(lanes, lane);
    }
    json_add_i64(json, "memory_bytes", 1 << 28);
    json_add_i64(json, "device_memory_bytes", 0);
    send_message(w, json);
    w->beat_s = now_s;
}

/* When the lane has its next report to send. */
static double next_s(const struct sleep *l)
{
    return l->begun_s + (l->done_s - l->begun_s) / (POINTS + 1) * (double)(l->n_points + 1);
}

static void look_after(struct sleeper *w, struct sleep *l, double now_s)
{
    if (l->begun_s > 0 && now_s >= l->done_s)
        send_result(w, l, "done", now_s);
    else if (l->begun_s > 0 && now_s > next_s(l))
        send_point(w, l, now_s);
}

static void stop(struct sleeper *w, const cJSON *message, double now_s)
{
    int64_t trial = json_i64_or(message, "trial", -1);
    EACH_LANE(w, l)
    if (l->begun_s > 0 && l->trial == trial)
        send_result(w, l, "stopped", now_s);
}

/* A thread of its own, as in a real worker: what the controller sends is read while it takes no reports. */
static void *read_main(void *arg)
{
    struct sleeper *w = arg;
    struct error err = {0};

    for (;;) {
        cJSON *message = NULL;
        if (proto_receive(&w->proto, -1, &message, &err) != ST_OK || w->proto.closed)
            _exit(EXIT_SUCCESS);
        pthread_mutex_lock(&w->lock);
        if (message != NULL && w->n_waiting < WAITING_MAX)
            w->waiting[w->n_waiting++] = message;
        pthread_cond_signal(&w->came);
        pthread_mutex_unlock(&w->lock);
    }
}

/* NULL: none came until then. */
static cJSON *next_message(struct sleeper *w, double until_s)
{
    const struct timespec until = {(time_t)until_s, (long)(1e9 * fmod(until_s, 1))};
    cJSON *message = NULL;

    pthread_mutex_lock(&w->lock);
    if (w->n_waiting == 0)
        pthread_cond_timedwait(&w->came, &w->lock, &until);
    if (w->n_waiting > 0) {
        message = w->waiting[0];
        memmove(w->waiting, w->waiting + 1, --w->n_waiting * sizeof w->waiting[0]);
    }
    pthread_mutex_unlock(&w->lock);
    return message;
}

static void round_of(struct sleeper *w)
{
    double until_s = clock_mono_s() + LOOK_MS / 1000.0;

    EACH_LANE(w, l)
    until_s = l->begun_s > 0 ? fmin(until_s, next_s(l)) : until_s;
    JSON_LOCAL cJSON *message = next_message(w, until_s);
    const char *type = message != NULL ? json_get_str(message, "type") : "";
    const double now_s = clock_mono_s();
    if (strcmp(type, "open") == 0)
        on_open(w, message);
    else if (strcmp(type, "run") == 0)
        on_run(w, message);
    else if (strcmp(type, "stop") == 0)
        stop(w, message, now_s);
    else if (strcmp(type, "exit") == 0)
        _exit(EXIT_SUCCESS);
    if (now_s - w->beat_s >= 1)
        beat(w, now_s);
    EACH_LANE(w, l)
    look_after(w, l, now_s);
}

int main(int argc, char **argv)
{
    struct sleeper *w = mem_alloc(sizeof *w);
    pthread_t reader;

    signal(SIGPIPE, SIG_IGN);
    signal(SIGINT, SIG_IGN);
    w->mean_s = argc > 1 ? atof(argv[1]) : 10;
    w->spread = argc > 2 ? atof(argv[2]) : 1;
    w->n_lanes = 1;
    proto_create(&w->proto, dup(STDIN_FILENO), dup(STDOUT_FILENO));
    send_message(w, greeting_make(false));
    pthread_mutex_init(&w->lock, NULL);
    clock_cond_init(&w->came);
    if (pthread_create(&reader, NULL, read_main, w) != 0)
        return EXIT_FAILURE;
    for (;;)
        round_of(w);
}
