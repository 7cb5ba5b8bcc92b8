/* guard.c - the process between us and a program that we run: it starts the program, passes signals on, reports the
 * end.
 *
 * A program may start others, put them into groups of their own, or go away from its parent. The guard is the reaper of
 * all of them (PR_SET_CHILD_SUBREAPER), so it can kill each; and it watches a pipe that closes when we end, even by
 * SIGKILL. If the guard itself is killed, the kernel kills the program (PR_SET_PDEATHSIG), and we kill what is left of
 * the guard's session.
 * Invariants: (1) between fork and exec only system calls are made: we have other threads, whose locks may be held for
 * ever in the guard (so it forks by _Fork, which runs no library's handlers: OpenBLAS's takes a lock); (2) a guard
 * holds no descriptor of ours but its own, so that no other guard's pipe stays open; (3) nothing that the program
 * started is alive when its end is reported. */
#include "sweep/program/guard.h"

#include "base/os/file.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>

#define HIGH_FD 64 /* out of the way of those that are put into place */
#define SWEEPS_MAX 400 /* looks for what is left of a program, 5 ms apart */
#define LOOKS 10 /* through all processes, for what was left to init, which may be slow to reap it */
#define CHILDREN_BYTES 4096
#define ENVIRONMENT_MAX (8u << 20)

/* Descriptors of a guard; of its own making from here on. */
enum { FD_CONTROL = 3, FD_REPORT, FD_OUTPUT, FD_CHILD, FD_FIRST_FREE };

/* ---- between fork and exec ---- */

static void report(const struct guard_end *end)
{
    ssize_t n;

    do
        n = write(FD_REPORT, end, sizeof *end);
    while (n < 0 && errno == EINTR);
}

static void start_program(char *const *argv, char *const *env, const char *directory, pid_t guard)
{
    struct guard_end end = {0};
    sigset_t none;

    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != guard)
        _exit(127);
    for (int i = 1; i < NSIG; i++)
        (void)signal(i, SIG_DFL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    end.in_directory = chdir(directory) != 0;
    if (!end.in_directory) {
        dup2(FD_OUTPUT, 1);
        dup2(FD_OUTPUT, 2);
        fcntl(FD_REPORT, F_SETFD, FD_CLOEXEC);
        close(FD_CONTROL);
        close(FD_OUTPUT);
        close(FD_CHILD);
        execvpe(argv[0], argv, env);
    }
    end.start_errno = errno;
    end.is_there = !end.in_directory && access(argv[0], F_OK) == 0;
    report(&end);
    _exit(127);
}

/* Kills the children that a thread of this process started; those whose parent has gone are the first thread's. */
static void kill_children_of(int tasks, const char *thread)
{
    char text[CHILDREN_BYTES], path[64] = "";
    ssize_t n = -1;
    pid_t pid = 0;

    if (strlen(thread) < sizeof path - sizeof "/children")
        strcat(strcpy(path, thread), "/children");
    int fd = openat(tasks, path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        n = read(fd, text, sizeof text - 1);
        close(fd);
    }
    for (ssize_t i = 0; i < n; i++) {
        if (text[i] >= '0' && text[i] <= '9') {
            pid = pid * 10 + (text[i] - '0');
        } else if (pid > 0) {
            kill(pid, SIGKILL);
            pid = 0;
        }
    }
}

static void kill_children(void)
{
    _Alignas(struct dirent64) char entries[CHILDREN_BYTES];
    int tasks = open("/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ssize_t n;

    while (tasks >= 0 && (n = getdents64(tasks, entries, sizeof entries)) > 0)
        for (ssize_t at = 0; at < n;) {
            const struct dirent64 *entry = (const void *)(entries + at);
            if (entry->d_name[0] != '.')
                kill_children_of(tasks, entry->d_name);
            at += entry->d_reclen;
        }
    if (tasks >= 0)
        close(tasks);
}

bool guard_has_children(void)
{
    return waitid(P_ALL, 0, &(siginfo_t){0}, WEXITED | WNOHANG | WNOWAIT) == 0;
}

void guard_sweep_up(void)
{
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    for (int i = 0; i < SWEEPS_MAX; i++) {
        pid_t got;
        kill_children();
        while ((got = waitpid(-1, NULL, WNOHANG)) > 0) {
        }
        if (got < 0 && errno == ECHILD)
            return;
        usleep(5000);
    }
}

/* Kills the processes that `is` says are of `of`, wherever they have gone. False: there is nobody. */
static bool kill_all(bool (*is)(pid_t pid, const void *of), const void *of)
{
    struct dirent *entry;
    DIR *d = opendir("/proc");
    bool any = false;

    while (d != NULL && (entry = readdir(d)) != NULL) {
        pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);
        if (pid > 0 && pid != getpid() && is(pid, of))
            any = kill(pid, SIGKILL) == 0 || any;
    }
    if (d != NULL)
        closedir(d);
    return any;
}

static bool is_marked(pid_t pid, const void *variable)
{
    char path[64], *environment = NULL;
    struct error ignored = {0};
    size_t n = 0;

    snprintf(path, sizeof path, "/proc/%d/environ", (int)pid);
    bool marked = file_read_all(path, ENVIRONMENT_MAX, &environment, &n, &ignored) == ST_OK &&
                  memmem(environment, n, variable, strlen(variable) + 1) != NULL;
    mem_free(environment);
    return marked;
}

/* Of a guard that was killed: the rest of its session. */
static bool is_in_session(pid_t pid, const void *guard)
{
    pid_t leader = *(const pid_t *)guard;

    return pid != leader && getsid(pid) == leader;
}

uint64_t guard_mark(void)
{
    return (uint64_t)getpid() << 42 ^ clock_mono_ns();
}

const char *guard_mark_variable(uint64_t mark, char buf[GUARD_MARK_MAX])
{
    snprintf(buf, GUARD_MARK_MAX, "TRAWL_WORKER=%016llx", (unsigned long long)mark);
    return buf;
}

void guard_sweep_marked(uint64_t mark)
{
    char variable[GUARD_MARK_MAX];
    bool any = mark != 0;

    guard_mark_variable(mark, variable);
    for (int i = 0; any && i < LOOKS; i++)
        any = kill_all(is_marked, variable); /* again, for what one of them has just forked */
}

static void take_control(pid_t program, bool *ret_gone)
{
    char order = 0;
    ssize_t n = read(FD_CONTROL, &order, 1);

    *ret_gone = n == 0;
    if (n <= 0 && !*ret_gone)
        return;
    if (!*ret_gone && order == GUARD_TERM)
        kill(-program, SIGTERM);
    else
        kill(-program, SIGKILL);
    if (*ret_gone || order == GUARD_KILL)
        kill_children();
}

/* Until the program has ended. */
static void watch(pid_t program)
{
    struct guard_end end = {0};
    bool gone = false;

    for (;;) {
        struct pollfd fds[] = {{.fd = FD_CHILD, .events = POLLIN}, {.fd = gone ? -1 : FD_CONTROL, .events = POLLIN}};
        struct signalfd_siginfo info;
        pid_t got;
        if (poll(fds, 2, -1) < 0 && errno != EINTR)
            break;
        if (fds[1].revents != 0)
            take_control(program, &gone);
        if (fds[0].revents != 0 && read(FD_CHILD, &info, sizeof info) < 0 && errno != EINTR && errno != EAGAIN)
            break;
        while ((got = waitpid(-1, &end.wait_status, WNOHANG)) > 0 && got != program) {
        }
        if (got == program)
            break;
    }
    kill(-program, SIGKILL);
    guard_sweep_up();
    report(&end);
}

/* Takes the four descriptors to their places, and closes everything else. */
static void place_descriptors(int control, int report_to, int output)
{
    sigset_t child;
    int null = open("/dev/null", O_RDWR);
    int high[] = {fcntl(control, F_DUPFD, HIGH_FD), fcntl(report_to, F_DUPFD, HIGH_FD), fcntl(output, F_DUPFD, HIGH_FD),
                  fcntl(null, F_DUPFD, HIGH_FD)};

    for (int fd = 0; fd < 3; fd++)
        dup2(high[3], fd);
    dup2(high[0], FD_CONTROL);
    dup2(high[1], FD_REPORT);
    dup2(high[2], FD_OUTPUT);
    close_range(FD_CHILD, ~0u, 0);
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    sigprocmask(SIG_BLOCK, &child, NULL);
    (void)signal(SIGCHLD, SIG_DFL);
    (void)!signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK); /* the lowest free one: FD_CHILD */
}

static void guard_main(char *const *argv, char *const *env, const char *directory, int control, int report_to,
                       int output)
{
    struct guard_end end = {0};
    pid_t self, program;

    setsid(); /* no signal of a terminal ends it before the program */
    prctl(PR_SET_NAME, "trawl-guard");
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    prctl(PR_SET_PDEATHSIG, 0);
    place_descriptors(control, report_to, output);
    self = getpid();
    program = _Fork();
    if (program == 0)
        start_program(argv, env, directory, self);
    close(FD_OUTPUT);
    if (program < 0) {
        end.start_errno = errno;
        report(&end);
    } else {
        setpgid(program, program); /* whoever comes first */
        watch(program);
    }
    _exit(0);
}

/* ---- our side ---- */

static void close_pair(int fds[2])
{
    for (int i = 0; i < 2; i++)
        if (fds[i] >= 0)
            close(fds[i]);
}

enum status guard_start(struct guard *ret, char *const *argv, char *const *env, const char *directory,
                        struct error *err)
{
    int control[2] = {-1, -1}, report_fds[2] = {-1, -1}, output[2] = {-1, -1};
    pid_t pid = -1;

    *ret = (struct guard){.control_fd = -1, .report_fd = -1, .output_fd = -1};
    if (pipe2(control, O_CLOEXEC) == 0 && pipe2(report_fds, O_CLOEXEC) == 0 && pipe2(output, O_CLOEXEC) == 0)
        pid = fork();
    if (pid == 0)
        guard_main(argv, env, directory, control[0], report_fds[1], output[1]);
    if (pid < 0) {
        enum status rc = FAIL(err, ST_IO, "cannot start a process for %.200s: %s", argv[0], strerror(errno));
        close_pair(control);
        close_pair(report_fds);
        close_pair(output);
        return rc;
    }
    close(control[0]);
    close(report_fds[1]);
    close(output[1]);
    fcntl(report_fds[0], F_SETFL, O_NONBLOCK);
    fcntl(output[0], F_SETFL, O_NONBLOCK);
    *ret = (struct guard){.pid = pid, .control_fd = control[1], .report_fd = report_fds[0], .output_fd = output[0]};
    return ST_OK;
}

void guard_send(struct guard *guard, enum guard_signal signal)
{
    char order = (char)signal;
    ssize_t n;

    do
        n = write(guard->control_fd, &order, 1); /* a guard that is gone: EPIPE, and SIGPIPE is ignored everywhere */
    while (n < 0 && errno == EINTR);
}

bool guard_ended(struct guard *guard, struct guard_end *ret_end)
{
    struct guard_end end;

    ssize_t n = read(guard->report_fd, &end, sizeof end);
    if (n == (ssize_t)sizeof end) { /* the first report counts: of a program that did not start, that one */
        *ret_end = end;
        return true;
    }
    if (n < 0) /* EAGAIN: not yet */
        return false;
    *ret_end = (struct guard_end){.wait_status = SIGKILL}; /* the guard was killed, and the program with it */
    return true;
}

void guard_close(struct guard *guard)
{
    siginfo_t end = {0};

    if (guard->pid <= 0)
        return;
    close(guard->control_fd);
    while (waitid(P_PID, (id_t)guard->pid, &end, WEXITED | WNOWAIT) < 0 && errno == EINTR) {
    }
    for (int i = 0; end.si_code == CLD_KILLED && i < LOOKS && kill_all(is_in_session, &guard->pid); i++)
        usleep(5000); /* its number is not given away before it is reaped */
    (void)waitpid(guard->pid, NULL, 0);
    close(guard->report_fd);
    if (guard->output_fd >= 0)
        close(guard->output_fd);
    *guard = (struct guard){0};
}
