/* worker_process.c - starts, stops and buries the worker process of a controller.
 * Invariants: (1) a worker is the same binary, exec'd, with the socket as its fd 3 and nothing else of ours;
 * (2) it is reaped exactly once. */
#include "sweep/control.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/mem.h"

#define HELLO_TIMEOUT_S 60
#define STOP_TIMEOUT_S 5

extern char **environ;

static enum status spawn(struct worker *worker, int child_fd, struct error *err)
{
    char *argv[] = {"trawl", "worker", NULL};
    posix_spawn_file_actions_t actions;
    int rc = fault_hit(FAULT_FORK) ? EAGAIN : posix_spawn_file_actions_init(&actions);

    if (rc == 0) {
        posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
        posix_spawn_file_actions_adddup2(&actions, 2, 1); /* stdout is for data, and a worker has none */
        posix_spawn_file_actions_adddup2(&actions, child_fd, 3);
        rc = posix_spawn(&worker->pid, "/proc/self/exe", &actions, NULL, argv, environ);
        posix_spawn_file_actions_destroy(&actions);
    }
    if (rc != 0) {
        worker->pid = 0;
        return FAIL(err, ST_IO, "cannot start a worker process: %s", strerror(rc));
    }
    return ST_OK;
}

static enum status wait_hello(struct worker *worker, struct error *err)
{
    double deadline = clock_mono_s() + HELLO_TIMEOUT_S;
    cJSON *message = NULL;
    const char *type, *device, *reason;
    int64_t version = 0;
    char how[256];

    while (message == NULL && clock_mono_s() < deadline && !signals_stop()) {
        TRY(proto_receive(&worker->proto, 200, &message, err));
        if (message == NULL && worker->proto.closed) {
            worker_reap(worker, how, sizeof how);
            return FAIL(err, ST_DEVICE, "the worker process ended before it was ready: %s", how);
        }
    }
    if (message == NULL)
        return signals_stop() ? FAIL(err, ST_INTERRUPTED, "interrupted")
                              : FAIL(err, ST_DEVICE, "the worker process said nothing for %d s", HELLO_TIMEOUT_S);
    type = json_get_str(message, "type");
    device = json_get_str(message, "device");
    reason = json_get_str(message, "reason");
    if (reason != NULL) {
        (void)FAIL(err, ST_DEVICE, "the worker cannot open its device: %s", reason);
        cJSON_Delete(message);
        return ST_DEVICE;
    }
    if (type == NULL || strcmp(type, "hello") != 0 || !json_get_i64(message, "version", &version) ||
        version != PROTO_VERSION) {
        cJSON_Delete(message);
        return FAIL(
            err, ST_VERSION,
            "the worker process speaks version %lld of the messages, this one %d; was the program replaced meanwhile?",
            (long long)version, PROTO_VERSION);
    }
    snprintf(worker->device, sizeof worker->device, "%s", device != NULL ? device : "cpu");
    cJSON_Delete(message);
    return ST_OK;
}

enum status worker_start(struct worker *worker, const char *config_text, struct error *err)
{
    cJSON *message;
    int fds[2];
    enum status rc;

    memset(worker, 0, sizeof *worker);
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0)
        return FAIL(err, ST_IO, "cannot make a socket pair for the worker: %s", strerror(errno));
    rc = proto_create(&worker->proto, fds[0], err);
    if (rc != ST_OK)
        close(fds[0]);
    if (rc == ST_OK)
        rc = spawn(worker, fds[1], err);
    close(fds[1]);
    if (rc == ST_OK) {
        message = proto_message("open");
        if (message != NULL && !json_add_str(message, "config", config_text)) {
            cJSON_Delete(message);
            message = NULL;
        }
        rc = proto_send(&worker->proto, message, err);
    }
    if (rc == ST_OK)
        rc = wait_hello(worker, err);
    if (rc != ST_OK)
        worker_stop(worker);
    return rc;
}

void worker_reap(struct worker *worker, char *ret_how, size_t size)
{
    int state = 0;
    double deadline = clock_mono_s() + STOP_TIMEOUT_S;
    pid_t got = 0;

    snprintf(ret_how, size, "it is gone");
    if (worker->pid > 0) {
        while ((got = waitpid(worker->pid, &state, WNOHANG)) == 0 && clock_mono_s() < deadline)
            usleep(5000);
        if (got == 0) { /* it has closed its socket and does not end */
            kill(worker->pid, SIGKILL);
            got = waitpid(worker->pid, &state, 0);
        }
        if (got == worker->pid && WIFSIGNALED(state))
            snprintf(ret_how, size, "killed by signal %d (%s)", WTERMSIG(state), strsignal(WTERMSIG(state)));
        else if (got == worker->pid)
            snprintf(ret_how, size, "ended with exit code %d", WEXITSTATUS(state));
    }
    worker->pid = 0;
    proto_destroy(&worker->proto);
}

void worker_stop(struct worker *worker)
{
    char how[256];
    struct error ignored = {0};

    if (worker->proto.buf != NULL && worker->pid > 0 && !worker->proto.closed)
        if (proto_send(&worker->proto, proto_message("exit"), &ignored) != ST_OK)
            worker->proto.closed = true;
    proto_destroy(&worker->proto); /* the end of the socket says it too */
    if (worker->pid > 0)
        worker_reap(worker, how, sizeof how);
}
