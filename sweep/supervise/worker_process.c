/* worker_process.c - starts, stops and reaps worker processes, and keeps the end of their logs.
 * Invariants: (1) a process is reaped exactly once; (2) no call waits, but workers_stop for a while. */
#include "sweep/supervise/worker_process.h"

#include "envs/plugin/crash.h"
#include "envs/plugin/library.h"
#include "sweep/launch/device_class.h"
#include "sweep/launch/greeting.h"
#include "sweep/launch/launch_start.h"
#include "sweep/program/guard.h"
#include "sweep/supervise/memory_groups.h"
#include "sweep/term.h"

#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define STOP_TIMEOUT_S                                                                                                 \
    3 /* how long a worker may take to end; with SAVE_PATIENCE_S (slot.c) less than a batch system's notice */
#define SAVE_TIMEOUT_S 6 /* the same with trials in flight, which save first */
#define SEND_PATIENCE_MS 2000 /* how long one may take no messages; its socket holds those of many trials */
#define DYING_PATIENCE_S 1 /* how long one that has closed its socket may take to end by itself */
#define COMMAND_PATIENCE_S 10 /* the same for a command that connects to one elsewhere */
#define LOG_READ_MAX 65536 /* bytes of log in one round, so that one chatterer does not keep the others waiting */

static cJSON *open_message(const struct worker *w, const char *config_text)
{
    cJSON *json = proto_message("open");

    json_add_str(json, "config", config_text);
    json_add_str(json, "device", w->spec.name);
    json_add_i64(json, "lanes", w->spec.lanes);
    if (w->spec.n_shares > 0) {
        const int share[] = {w->spec.share, w->spec.n_shares};
        json_add(json, "share", cJSON_CreateIntArray(share, 2));
    }
    if (w->spec.cores[0] != '\0')
        json_add_str(json, "cores", w->spec.cores);
    if (w->spec.hosts > 0)
        json_add_i64(json, "hosts", w->spec.hosts);
    if (w->spec.listen[0] != '\0')
        json_add_str(json, "listen", w->spec.listen);
    if (w->spec.memory_bytes > 0)
        json_add_i64(json, "memory_bytes", w->spec.memory_bytes);
    return json;
}

static void close_log(struct worker *w)
{
    if (w->log_fd >= 0)
        close(w->log_fd);
    w->log_fd = -1;
}

/* To our stderr. */
static void show_line(void *ctx, const char *line, bool left_out)
{
    const struct worker *w = ctx;
    char named[GAME_LOG_BYTES + 256];

    if (w->spec.place == PLACE_HERE)
        snprintf(named, sizeof named, "%s", line);
    else
        snprintf(named, sizeof named, "%s%s%s%s: %s", w->spec.label, w->host[0] != '\0' ? " (" : "", w->host,
                 w->host[0] != '\0' ? ")" : "", line);
    if (left_out)
        log_debug("%s", named);
    else
        term_print(named);
}

enum status worker_spawn(struct worker *w, struct error *err)
{
    char variable[GUARD_MARK_MAX];

    w->log = (struct game_log){.who = w->spec.label, .show = show_line, .ctx = w};
    w->garbled = w->lost = w->killed = w->outside = w->greeted = w->leaving = w->released = false;
    w->why[0] = w->host[0] = '\0';
    w->culprit = NULL;
    w->memory_bytes = w->device_memory_bytes = 0;
    w->started_s = w->heard_s = w->busy_s = clock_mono_s();
    w->mark = guard_mark();
    TRY(launch_start(&w->spec, guard_mark_variable(w->mark, variable), &w->pid, &w->proto, &w->log_fd, err));
    w->proto.send_ms = SEND_PATIENCE_MS;
    w->state = WORKER_STARTING;
    if (w->groups != NULL && w->spec.place == PLACE_HERE)
        (void)memory_groups_add(w->groups, w->spec.label, w->pid, w->spec.group_bytes);
    return ST_OK;
}

enum status worker_take_greeting(struct worker *w, const cJSON *message, struct error *err)
{
    struct greeting greeting;

    TRY(greeting_read(message, &greeting, err));
    snprintf(w->host, sizeof w->host, "%s", greeting.host);
    w->greeted = w->log.counts = true;
    w->started_s = clock_mono_s(); /* from now on it opens its device */
    return ST_OK;
}

void worker_open(struct worker *w, const char *config_text)
{
    worker_send(w, open_message(w, config_text));
}

enum status worker_take_hello(struct worker *w, const cJSON *message, struct error *err)
{
    const char *device = json_get_str(message, "device"), *reason = json_get_str(message, "reason");
    const char *kind = json_get_str(message, "kind"), *units = json_get_str(message, "vector_units");

    if (reason != NULL && cJSON_IsTrue(json_get(message, "other_game")))
        return FAIL(err, ST_VERSION, "%s", reason);
    if (reason != NULL)
        return FAIL(err, ST_DEVICE, "the worker cannot open its device: %s", reason);
    if (!w->greeted)
        return FAIL(err, ST_VERSION, "the worker opened its device without a greeting; it is of another version");
    snprintf(w->device, sizeof w->device, "%s", device != NULL ? device : w->spec.name);
    snprintf(w->kind, sizeof w->kind, "%s", kind != NULL ? kind : "");
    snprintf(w->vector_units, sizeof w->vector_units, "%s", units != NULL ? units : "");
    if (w->kind[0] != '\0')
        device_class_of(w->device, w->device_class);
    const char *meets = json_get_str(message, "meets");
    snprintf(w->meets, sizeof w->meets, "%s", meets != NULL ? meets : "");
    w->threads = 0;
    (void)json_get_i64(message, "threads", &w->threads);
    w->state = WORKER_READY;
    w->was_ready = true;
    return ST_OK;
}

void worker_kill(struct worker *w, struct slot *culprit, const char *why)
{
    if (w->pid <= 0)
        return;
    if (w->state != WORKER_DYING) {
        snprintf(w->why, sizeof w->why, "%.*s", (int)sizeof w->why - 1, why);
        w->culprit = culprit;
        w->dying_s = clock_mono_s();
    }
    w->killed = true;
    launch_kill(&w->spec, w->pid, false);
    w->state = WORKER_DYING;
}

void worker_closed(struct worker *w)
{
    if (w->state == WORKER_DYING)
        return;
    w->state = WORKER_DYING;
    w->dying_s = clock_mono_s();
}

enum status worker_try_send(struct worker *w, cJSON *message, struct error *err)
{
    struct error gone = {0};
    enum status rc = proto_send(&w->proto, message, &gone);

    if (rc == ST_LIMIT)
        return FAIL(err, rc, "%s", gone.text);
    if (rc == ST_BUSY) { /* it takes nothing */
        w->outside = true;
        worker_kill(w, NULL, gone.text);
    } else if (rc != ST_OK) { /* it has closed its socket; its exit status gives the reason */
        worker_closed(w);
    }
    return ST_OK;
}

void worker_send(struct worker *w, cJSON *message)
{
    struct error why = {0};

    if (worker_try_send(w, message, &why) != ST_OK)
        worker_kill(w, NULL, why.text);
}

static char *last_line(char *text)
{
    char *end = strrchr(text, '\n');

    return end != NULL ? end + 1 : text;
}

/* A program that aborts says why before it: an assertion that failed, damaged memory, a C++ exception that nothing
 * caught (from "terminate called" on). */
static void explain_signal(const struct worker *w, int number, char *ret_how, size_t size)
{
    static const char uncaught[] = "terminate called ";
    char tail[GAME_LOG_BYTES + 1], *said = NULL;

    if (worker_log_tail(w, tail) == NULL)
        tail[0] = '\0';
    said = strstr(last_line(tail), CRASH_LINE); /* which game it was, and where; the line may begin with the game's */
    if (said != NULL) {
        snprintf(ret_how, size, "%s", said);
        return;
    }
    if (number == SIGABRT && tail[0] != '\0') {
        said = last_line(tail);
        for (char *at = tail; (at = strstr(at, uncaught)) != NULL; at++)
            if (at == tail || at[-1] == '\n') {
                said = at; /* the first: other threads that throw say less */
                break;
            }
        for (char *c = said; *c != '\0'; c++)
            *c = *c == '\n' ? ';' : *c;
    }
    if (said == NULL || strncmp(said, "trawl: ", 7) == 0)
        snprintf(ret_how, size, "killed by signal %d (%s)", number, strsignal(number));
    else
        snprintf(ret_how, size, "killed by signal %d (%s); its log ends: %.300s", number, strsignal(number), said);
}

/* How a worker ended by itself; a game's own last line explains more than an exit code. */
static void explain_exit(const struct worker *w, int code, char *ret_how, size_t size)
{
    char tail[GAME_LOG_BYTES + 1];
    const char *last = worker_log_tail(w, tail) != NULL ? last_line(tail) : tail;

    if (strncmp(last, "trawl: ", 7) == 0 && word_ends_in(last, ENV_LIBRARY_EXITED))
        snprintf(ret_how, size, "%s", last + 7);
    else
        snprintf(ret_how, size, "ended with exit code %d%s", code,
                 w->greeted || w->spec.place == PLACE_HERE ? "" : " before its greeting");
}

/* The end of a remote worker, by the exit status of the command that it ran under. ssh ends with 255 when the network
 * or the login failed, and like srun with the worker's own code otherwise; 128 + N: signal N killed the worker. */
static void explain_remote_end(struct worker *w, int state, char *ret_how, size_t size)
{
    int code = WIFEXITED(state) ? WEXITSTATUS(state) : -1;
    const char *host = w->spec.host;

    w->cut = w->killed ? w->outside /* it was silent: more likely a network than a process that is stopped */
                       : code < 0 || (code == 255 && w->spec.place == PLACE_SSH);
    w->outside = w->outside || (!w->killed && code == 128 + SIGKILL);
    if (w->why[0] != '\0')
        snprintf(ret_how, size, "%s", w->why);
    else if (code < 0)
        snprintf(ret_how, size, "the command that connects to it was killed by signal %d (%s)", WTERMSIG(state),
                 strsignal(WTERMSIG(state)));
    else if (w->cut)
        snprintf(ret_how, size,
                 w->greeted ? "the connection to %s broke"
                            : "ssh cannot connect to %s; `trawl launch check %s` explains it",
                 host, host);
    else if (!w->greeted && code == 127)
        snprintf(ret_how, size, "no program there to start; `trawl launch check` explains it (sweep.remote_program)");
    else if (code > 128 && code <= 128 + 64)
        explain_signal(w, code - 128, ret_how, size);
    else
        explain_exit(w, code, ret_how, size);
}

static void explain_end(struct worker *w, bool reaped, int state, char *ret_how, size_t size)
{
    bool by_kernel = w->groups != NULL && memory_groups_remove(w->groups, w->spec.label);

    if (reaped && WIFSIGNALED(state) && WTERMSIG(state) == SIGKILL && !w->killed && !by_kernel)
        w->outside = true; /* no program kills itself this way */
    if (w->why[0] != '\0')
        snprintf(ret_how, size, "%s", w->why);
    else if (by_kernel)
        snprintf(ret_how, size,
                 "it took more than its %.1f GB of memory and the kernel killed it (signal 9); raise "
                 "sweep.worker_memory, or lower train.total_agents, train.horizon or policy.hidden_size",
                 (double)w->spec.group_bytes / 1e9);
    else if (reaped && WIFSIGNALED(state))
        explain_signal(w, WTERMSIG(state), ret_how, size);
    else if (reaped)
        explain_exit(w, WEXITSTATUS(state), ret_how, size);
    else
        snprintf(ret_how, size, "it is gone");
}

/* Of one here that has closed its socket and does not end: is it still our program? */
static void explain_life(struct worker *w)
{
    char path[64], program[256];
    struct stat ours, its;

    snprintf(path, sizeof path, "/proc/%d/exe", (int)w->pid);
    ssize_t n = readlink(path, program, sizeof program);
    if (n > 0 && stat(path, &its) == 0 && stat("/proc/self/exe", &ours) == 0 &&
        (its.st_dev != ours.st_dev || its.st_ino != ours.st_ino))
        snprintf(w->why, sizeof w->why, "its game became another program by exec: %.*s", (int)n, program);
}

bool worker_try_reap(struct worker *w, char *ret_how, size_t size)
{
    int state = 0;
    pid_t got = waitpid(w->pid, &state, WNOHANG);

    if (got == 0) {
        double patience_s = w->spec.place == PLACE_HERE ? DYING_PATIENCE_S : COMMAND_PATIENCE_S;
        if (clock_mono_s() - w->dying_s > patience_s) { /* it has closed its socket and does not end */
            if (w->spec.place == PLACE_HERE && !w->killed)
                explain_life(w);
            w->killed = true;
            launch_kill(&w->spec, w->pid, true);
        }
        return false;
    }
    bool ended_well = got == w->pid && WIFEXITED(state) && WEXITSTATUS(state) == 0;
    if (w->spec.place == PLACE_HERE) /* a game may have ended it, with 0 too; and prctl may be forbidden here */
        guard_sweep_marked(w->mark);
    worker_read_log(w);
    if (!ended_well)
        game_log_show_last(&w->log);
    w->cut = false;
    if (w->spec.place != PLACE_HERE && got == w->pid)
        explain_remote_end(w, state, ret_how, size);
    else
        explain_end(w, got == w->pid, state, ret_how, size);
    w->pid = 0;
    w->state = WORKER_DOWN;
    proto_destroy(&w->proto);
    close_log(w);
    return true;
}

void worker_read_log(struct worker *w)
{
    char buf[1024];
    size_t taken = 0;

    while (w->log_fd >= 0 && taken < LOG_READ_MAX) {
        ssize_t got = read(w->log_fd, buf, sizeof buf);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0 && errno == EAGAIN)
            break;
        if (got <= 0) {
            close_log(w);
            break;
        }
        game_log_add(&w->log, buf, (size_t)got);
        taken += (size_t)got;
    }
    if (w->log_fd < 0)
        game_log_end(&w->log);
}

const char *worker_log_tail(const struct worker *w, char buf[GAME_LOG_BYTES + 1])
{
    size_t n = w->log.n;

    memcpy(buf, w->log.text, n);
    while (n > 0 && buf[n - 1] == '\n')
        n--;
    buf[n] = '\0';
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)buf[i] >= 0x80 || ((unsigned char)buf[i] < ' ' && buf[i] != '\n'))
            buf[i] = '?';
    return n > 0 ? buf : NULL;
}

int worker_n_runs(const struct worker *w)
{
    int n = 0;

    for (int lane = 0; lane < w->spec.lanes; lane++)
        n += w->slots[lane].runs;
    return n;
}

bool worker_takes_trials(const struct worker *w)
{
    return w->state == WORKER_READY && !w->lost && !w->leaving;
}

/* Trials in flight are asked to write a checkpoint first: they resume from there, whatever ended the controller. */
static bool ask_to_end(struct worker *w)
{
    struct error ignored = {0};
    bool flies = worker_n_runs(w) > 0;

    if (w->state == WORKER_DYING)
        return false;
    if (flies) {
        cJSON *stop = proto_message("stop"); /* without a trial: all */
        json_add_bool(stop, "checkpoint", true);
        if (proto_send(&w->proto, stop, &ignored) != ST_OK)
            worker_closed(w);
    }
    if (w->state != WORKER_DYING && proto_send(&w->proto, proto_message("exit"), &ignored) != ST_OK)
        worker_closed(w);
    return flies;
}

void workers_stop(struct worker *workers, size_t n)
{
    double deadline = clock_mono_s() + STOP_TIMEOUT_S;
    char how[256];
    size_t left = 0;

    for (size_t i = 0; i < n; i++) {
        if (workers[i].pid <= 0)
            continue;
        left++;
        if (ask_to_end(&workers[i]))
            deadline = clock_mono_s() + SAVE_TIMEOUT_S;
        shutdown(workers[i].proto.out_fd, SHUT_WR); /* the end of the socket asks it too */
        if (workers[i].spec.place != PLACE_HERE && !workers[i].greeted) /* a job that waits reads nothing */
            launch_kill(&workers[i].spec, workers[i].pid, false);
        workers[i].state = WORKER_DYING;
    }
    for (size_t i = 0; i < n; i++)
        workers[i].dying_s = deadline; /* its patience begins there */
    while (left > 0) {
        for (size_t i = 0; i < n; i++)
            if (workers[i].pid > 0) {
                worker_read_log(&workers[i]);
                proto_take_in(&workers[i].proto); /* so that no worker waits for its messages to be read */
                if (clock_mono_s() > deadline)
                    launch_kill(&workers[i].spec, workers[i].pid, true);
                left -= worker_try_reap(&workers[i], how, sizeof how);
            }
        if (left > 0)
            usleep(2000);
    }
}
