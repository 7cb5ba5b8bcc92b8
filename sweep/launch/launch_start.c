/* launch_start.c - a worker here is a child of ours; one elsewhere is whatever a command connects to our socket.
 * Invariants: (1) a worker here is the same binary, exec'd, with the socket as its fd 3, a pipe of ours as its stderr
 * and nothing else of ours; (2) a command has the socket as stdin and stdout, the pipe as stderr, and a session of its
 * own, so that Ctrl-C in our terminal does not cut the connection before the trials are saved. */
#include "sweep/launch/launch_start.h"

#include "base/os/environment.h"
#include "base/fault.h"
#include "sweep/launch/device_spec.h"
#include "sweep/launch/proto.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>

#define SOCKET_BYTES (1 << 20) /* asked for, the kernel may give less: short trials send thousands of reports */

static int spawn_here(pid_t *ret_pid, int socket_fd, int log_fd, char **env)
{
    char *argv[] = {"trawl", "worker", NULL};
    posix_spawn_file_actions_t actions;
    int rc = posix_spawn_file_actions_init(&actions);

    if (rc != 0)
        return rc;
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, log_fd, 1); /* stdout is for data, and a worker has none */
    posix_spawn_file_actions_adddup2(&actions, log_fd, 2);
    posix_spawn_file_actions_adddup2(&actions, socket_fd, 3);
    posix_spawn_file_actions_addclosefrom_np(&actions, 4); /* libraries have descriptors that are not close-on-exec */
    rc = posix_spawn(ret_pid, "/proc/self/exe", &actions, NULL, argv, env);
    posix_spawn_file_actions_destroy(&actions);
    return rc;
}

static int spawn_command(const char *command, pid_t *ret_pid, int socket_fd, int log_fd, char **env)
{
    char *argv[] = {"sh", "-c", (char *)command, NULL};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attr;
    sigset_t defaults;
    int rc = posix_spawn_file_actions_init(&actions);

    if (rc != 0)
        return rc;
    posix_spawnattr_init(&attr);
    sigemptyset(&defaults);
    sigaddset(&defaults, SIGPIPE);
    posix_spawnattr_setsigdefault(&attr, &defaults);
    posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGDEF);
    posix_spawn_file_actions_adddup2(&actions, socket_fd, 0);
    posix_spawn_file_actions_adddup2(&actions, socket_fd, 1);
    posix_spawn_file_actions_adddup2(&actions, log_fd, 2);
    posix_spawn_file_actions_addclosefrom_np(&actions, 3);
    rc = posix_spawn(ret_pid, "/bin/sh", &actions, &attr, argv, env);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attr);
    return rc;
}

/* The worker's end of a socket pair and of a pipe for its log, and ours. */
static enum status connect_ends(int ret_socket[2], int ret_log[2], struct error *err)
{
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ret_socket) != 0)
        return FAIL(err, ST_IO, "cannot make a socket pair for the worker: %s", strerror(errno));
    if (pipe2(ret_log, O_CLOEXEC) != 0) {
        int code = errno;
        close(ret_socket[0]);
        close(ret_socket[1]);
        return FAIL(err, ST_IO, "cannot make a pipe for the worker's log: %s", strerror(code));
    }
    for (int i = 0; i < 2; i++)
        (void)setsockopt(ret_socket[i], SOL_SOCKET, SO_SNDBUF, &(int){SOCKET_BYTES}, sizeof(int));
    return ST_OK;
}

enum status launch_start(const struct device_spec *spec, const char *mark, pid_t *ret_pid, struct proto *ret_proto,
                         int *ret_log_fd, struct error *err)
{
    int sockets[2], logs[2], rc = EAGAIN;

    TRY(connect_ends(sockets, logs, err));
    MEM_LOCAL char **env = environment_public(mark);
    if (!fault_hit(FAULT_FORK))
        rc = spec->place == PLACE_HERE ? spawn_here(ret_pid, sockets[1], logs[1], env)
                                       : spawn_command(spec->command, ret_pid, sockets[1], logs[1], env);
    close(sockets[1]);
    close(logs[1]);
    if (rc != 0) {
        *ret_pid = 0;
        close(sockets[0]);
        close(logs[0]);
        return FAIL(err, ST_IO, "cannot start a worker process: %s", strerror(rc));
    }
    proto_create(ret_proto, sockets[0], sockets[0]);
    if (spec->place != PLACE_HERE)
        ret_proto->chatter = spec->label;
    fcntl(logs[0], F_SETFL, O_NONBLOCK);
    *ret_log_fd = logs[0];
    return ST_OK;
}

void launch_kill(const struct device_spec *spec, pid_t pid, bool at_once)
{
    if (spec->place == PLACE_HERE)
        kill(pid, SIGKILL);
    else /* with all that it has started; ssh holds nothing that the end of the connection does not give back */
        kill(-pid, at_once || spec->place == PLACE_SSH ? SIGKILL : SIGTERM);
}
