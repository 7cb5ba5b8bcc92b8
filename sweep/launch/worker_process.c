/* worker_process.c - starts, stops and reaps the worker processes of a controller, and keeps the end of their logs.
 * Invariants: (1) a worker is the same binary, exec'd, with the socket as its fd 3, a pipe of ours as its stderr and
 * nothing else of ours; (2) it is reaped exactly once; (3) no call waits, but workers_stop for a while. */
#include "sweep/launch/worker_process.h"

#include "base/clock.h"
#include "base/environment.h"
#include "base/fault.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/status.h"
#include "sweep/controller/flight.h"
#include "sweep/launch/memory_groups.h"
#include "sweep/launch/proto.h"
#include "sweep/term.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define STOP_TIMEOUT_S                                                                                                 \
    3 /* how long a worker may take to end; with REQUEUE_PATIENCE_S less than a batch system's notice */
#define SAVE_TIMEOUT_S 6 /* the same with trials in flight, which save first */
#define SEND_PATIENCE_MS 2000 /* how long one may take no messages; its socket holds those of many trials */
#define DYING_PATIENCE_S 1 /* how long one that has closed its socket may take to end by itself */
#define LOG_READ_MAX 65536 /* bytes of log in one round, so that one chatterer does not keep the others waiting */

static enum status spawn(struct worker *w, int socket_fd, int log_fd, struct error *err)
{
    char *argv[] = {"trawl", "worker", NULL}, **env = environment_public();
    posix_spawn_file_actions_t actions;
    int rc = fault_hit(FAULT_FORK) ? EAGAIN : posix_spawn_file_actions_init(&actions);

    if (rc == 0) {
        posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
        posix_spawn_file_actions_adddup2(&actions, log_fd, 1); /* stdout is for data, and a worker has none */
        posix_spawn_file_actions_adddup2(&actions, log_fd, 2);
        posix_spawn_file_actions_adddup2(&actions, socket_fd, 3);
        posix_spawn_file_actions_addclosefrom_np(&actions,
                                                 4); /* libraries have descriptors that are not close-on-exec */
        rc = posix_spawn(&w->pid, "/proc/self/exe", &actions, NULL, argv, env);
        posix_spawn_file_actions_destroy(&actions);
    }
    mem_free(env);
    if (rc != 0) {
        w->pid = 0;
        return FAIL(err, ST_IO, "cannot start a worker process: %s", strerror(rc));
    }
    return ST_OK;
}

static cJSON *open_message(const struct worker *w, const char *config_text)
{
    cJSON *json = proto_message("open");

    json_add_str(json, "config", config_text);
    json_add_str(json, "device", w->spec.name);
    json_add_i64(json, "lanes", w->spec.lanes);
    if (w->spec.cores[0] != '\0')
        json_add_str(json, "cores", w->spec.cores);
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

/* The worker's end of a socket pair and of a pipe for its log; ours are in w. */
static enum status connect_ends(struct worker *w, int *ret_socket_fd, int *ret_log_fd, struct error *err)
{
    int fds[2], log_fds[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0)
        return FAIL(err, ST_IO, "cannot make a socket pair for the worker: %s", strerror(errno));
    if (pipe2(log_fds, O_CLOEXEC) != 0) {
        int code = errno;
        close(fds[0]);
        close(fds[1]);
        return FAIL(err, ST_IO, "cannot make a pipe for the worker's log: %s", strerror(code));
    }
    proto_create(&w->proto, fds[0]);
    w->proto.send_ms = SEND_PATIENCE_MS;
    fcntl(log_fds[0], F_SETFL, O_NONBLOCK);
    w->log_fd = log_fds[0];
    *ret_socket_fd = fds[1];
    *ret_log_fd = log_fds[1];
    return ST_OK;
}

enum status worker_spawn(struct worker *w, const char *config_text, struct error *err)
{
    int socket_fd = -1, log_fd = -1;
    struct error gone = {0};
    enum status rc;

    TRY(connect_ends(w, &socket_fd, &log_fd, err));
    w->log_n = w->log_shown = 0;
    w->lost = w->killed = w->outside = false;
    w->why[0] = '\0';
    w->culprit = NULL;
    w->memory_bytes = w->device_memory_bytes = 0;
    w->started_s = w->heard_s = clock_mono_s();
    rc = spawn(w, socket_fd, log_fd, err);
    close(socket_fd);
    close(log_fd);
    if (rc != ST_OK) {
        proto_destroy(&w->proto);
        close_log(w);
        return rc;
    }
    w->state = WORKER_STARTING;
    if (w->groups != NULL)
        (void)memory_groups_add(w->groups, w->spec.label, w->pid, w->spec.group_bytes);
    if (proto_send(&w->proto, open_message(w, config_text), &gone) != ST_OK)
        worker_kill(w, NULL, gone.text);
    return ST_OK;
}

enum status worker_take_hello(struct worker *w, const cJSON *message, struct error *err)
{
    const char *device = json_get_str(message, "device"), *reason = json_get_str(message, "reason");
    const char *kind = json_get_str(message, "kind"), *units = json_get_str(message, "vector_units");
    int64_t version = 0;

    if (reason != NULL)
        return FAIL(err, ST_DEVICE, "the worker cannot open its device: %s", reason);
    if (!json_get_i64(message, "version", &version) || version != PROTO_VERSION)
        return FAIL(
            err, ST_VERSION,
            "the worker process speaks version %lld of the messages, this one %d; was the program replaced meanwhile?",
            (long long)version, PROTO_VERSION);
    snprintf(w->device, sizeof w->device, "%s", device != NULL ? device : w->spec.name);
    snprintf(w->kind, sizeof w->kind, "%s", kind != NULL ? kind : "");
    snprintf(w->vector_units, sizeof w->vector_units, "%s", units != NULL ? units : "");
    w->threads = 0;
    (void)json_get_i64(message, "threads", &w->threads);
    w->state = WORKER_READY;
    w->was_ready = true;
    return ST_OK;
}

void worker_kill(struct worker *w, struct flight *culprit, const char *why)
{
    if (w->pid <= 0)
        return;
    if (w->state != WORKER_DYING) {
        snprintf(w->why, sizeof w->why, "%.*s", (int)sizeof w->why - 1, why);
        w->culprit = culprit;
        w->dying_s = clock_mono_s();
    }
    w->killed = true;
    kill(w->pid, SIGKILL);
    w->state = WORKER_DYING;
}

void worker_closed(struct worker *w)
{
    if (w->state == WORKER_DYING)
        return;
    w->state = WORKER_DYING;
    w->dying_s = clock_mono_s();
}

void worker_unreachable(struct worker *w, enum status rc, const char *why)
{
    if (rc != ST_BUSY) { /* it has closed its socket; its exit status gives the reason */
        worker_closed(w);
        return;
    }
    w->outside = true;
    worker_kill(w, NULL, why);
}

bool worker_try_reap(struct worker *w, char *ret_how, size_t size)
{
    int state = 0;
    pid_t got = waitpid(w->pid, &state, WNOHANG);

    if (got == 0) {
        if (clock_mono_s() - w->dying_s > DYING_PATIENCE_S) { /* it has closed its socket and does not end */
            w->killed = true;
            kill(w->pid, SIGKILL);
        }
        return false;
    }
    worker_read_log(w);
    bool by_kernel = w->groups != NULL && memory_groups_remove(w->groups, w->spec.label);
    if (got == w->pid && WIFSIGNALED(state) && WTERMSIG(state) == SIGKILL && !w->killed && !by_kernel)
        w->outside = true; /* no program kills itself this way */
    if (w->why[0] != '\0')
        snprintf(ret_how, size, "%s", w->why);
    else if (by_kernel)
        snprintf(ret_how, size,
                 "it took more than its %.1f GB of memory and the kernel killed it (signal 9); raise "
                 "sweep.worker_memory, or lower train.total_agents, train.horizon or policy.hidden_size",
                 (double)w->spec.group_bytes / 1e9);
    else if (got == w->pid && WIFSIGNALED(state))
        snprintf(ret_how, size, "killed by signal %d (%s)", WTERMSIG(state), strsignal(WTERMSIG(state)));
    else if (got == w->pid)
        snprintf(ret_how, size, "ended with exit code %d", WEXITSTATUS(state));
    else
        snprintf(ret_how, size, "it is gone");
    w->pid = 0;
    w->state = WORKER_DOWN;
    proto_destroy(&w->proto);
    close_log(w);
    return true;
}

/* Passes whole lines on to our stderr. */
static void show_log(struct worker *w, bool all)
{
    for (;;) {
        char line[WORKER_LOG_BYTES + 1];
        const char *from = w->log + w->log_shown, *end = memchr(from, '\n', w->log_n - w->log_shown);
        size_t n = end != NULL ? (size_t)(end - from) : w->log_n - w->log_shown;
        if (end == NULL && (!all || n == 0))
            return;
        memcpy(line, from, n);
        line[n] = '\0';
        term_print(line);
        w->log_shown += n + (end != NULL);
    }
}

/* Frees n bytes of the log by dropping the oldest lines. */
static void make_room(struct worker *w, size_t n)
{
    size_t drop;
    const char *end;

    if (w->log_n + n <= sizeof w->log)
        return;
    show_log(w, true);
    drop = w->log_n + n - sizeof w->log;
    end = memchr(w->log + drop, '\n', w->log_n - drop);
    if (end != NULL)
        drop = (size_t)(end - w->log) + 1;
    memmove(w->log, w->log + drop, w->log_n - drop);
    w->log_n -= drop;
    w->log_shown = w->log_n;
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
        make_room(w, (size_t)got);
        memcpy(w->log + w->log_n, buf, (size_t)got);
        w->log_n += (size_t)got;
        taken += (size_t)got;
        show_log(w, false);
    }
    if (w->log_fd < 0)
        show_log(w, true);
}

/* Trials in flight are asked to write a checkpoint first: they resume from there, whatever ended the controller. */
static bool ask_to_end(struct worker *w)
{
    struct error ignored = {0};
    bool flies = false;

    for (int lane = 0; lane < w->spec.lanes; lane++)
        flies = flies || w->slots[lane].flight != NULL;
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
        shutdown(workers[i].proto.fd, SHUT_WR); /* the end of the socket asks it too */
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
                    kill(workers[i].pid, SIGKILL);
                left -= worker_try_reap(&workers[i], how, sizeof how);
            }
        if (left > 0)
            usleep(2000);
    }
}
