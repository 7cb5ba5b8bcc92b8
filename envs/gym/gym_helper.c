/* gym_helper.c - starts helper processes, waits for their answers, and makes messages of how they end.
 * Invariants: (1) a helper gets descriptors 3 (socket), 4 (shared memory), 5 (texts), 6 and 7 (eventfd, which wake it
 * and us) and no other of ours but stderr; (2) it is in a process group of its own, so that Ctrl-C in the terminal is
 * ours alone; (3) it is reaped once. */
#include "envs/gym/gym_helper.h"
#include "base/base.h"

#include "base/os/environment.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define FD_ABOVE 10 /* descriptors of ours are above those that the helper gets */
#define TEXT_BYTES 8192
#define TRACEBACK_LINES 7 /* the last ones; of a crash or a hang the first ones */
#define DYING_S 2.0
#define WAIT_S 0.01 /* between two looks at the words */
#define MISSES_MAX 8 /* it waits without sleep every 256th time at least */
#define START_S 120.0 /* until it works on its first instance: Python imports what it needs */

/* ---- start ---- */

int gym_fd_above(int fd)
{
    int moved = fd >= 0 ? fcntl(fd, F_DUPFD_CLOEXEC, FD_ABOVE) : -1;

    if (fd >= 0)
        close(fd);
    return moved;
}

static int spawn_attributes(posix_spawnattr_t *attr)
{
    sigset_t blocked;
    int rc = posix_spawnattr_init(attr);

    sigemptyset(&blocked); /* until bridge.py has handlers for them */
    sigaddset(&blocked, SIGINT), sigaddset(&blocked, SIGTERM), sigaddset(&blocked, SIGHUP);
    sigaddset(&blocked, SIGUSR1), sigaddset(&blocked, SIGUSR2);
    if (rc == 0)
        rc = posix_spawnattr_setflags(attr, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
    if (rc == 0)
        rc = posix_spawnattr_setsigmask(attr, &blocked);
    return rc;
}

static int spawn(struct gym_helper *helper, const char *python, const char *task, int theirs_fd, int memory_fd)
{
    char *argv[] = {(char *)python, "-c", (char *)gym_bridge, (char *)task, NULL}, **env = environment_public(NULL);
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attr;
    int rc = posix_spawn_file_actions_init(&actions);

    if (rc == 0 && (rc = spawn_attributes(&attr)) == 0) {
        posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
        posix_spawn_file_actions_adddup2(&actions, 2, 1);
        posix_spawn_file_actions_adddup2(&actions, theirs_fd, 3);
        posix_spawn_file_actions_adddup2(&actions, memory_fd >= 0 ? memory_fd : helper->text_fd, 4);
        posix_spawn_file_actions_adddup2(&actions, helper->text_fd, 5);
        posix_spawn_file_actions_adddup2(&actions, helper->wakes_it, 6);
        posix_spawn_file_actions_adddup2(&actions, helper->wakes_us, 7);
        posix_spawn_file_actions_addclosefrom_np(&actions, 8);
        rc = posix_spawnp(&helper->pid, python, &actions, &attr, argv, env);
        posix_spawnattr_destroy(&attr);
        posix_spawn_file_actions_destroy(&actions);
    }
    mem_free(env);
    helper->pid = rc == 0 ? helper->pid : 0;
    return rc;
}

enum status gym_helper_start(struct gym_helper *helper, const char *python, const char *task, int memory_fd,
                             struct error *err)
{
    struct stat info;
    int fds[2] = {-1, -1}, rc;

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0)
        return FAIL(err, ST_IO, "no socket for a Python process: %s", strerror(errno));
    helper->socket_fd = gym_fd_above(fds[0]);
    fds[1] = gym_fd_above(fds[1]);
    helper->text_fd = gym_fd_above(memfd_create("trawl-gym-text", MFD_CLOEXEC));
    helper->wakes_it = gym_fd_above(eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE));
    helper->wakes_us = gym_fd_above(eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE));
    if (helper->socket_fd < 0 || fds[1] < 0 || helper->text_fd < 0 || helper->wakes_it < 0 || helper->wakes_us < 0)
        rc = errno;
    else
        rc = spawn(helper, python, task, fds[1], memory_fd);
    if (fds[1] >= 0)
        close(fds[1]);
    if (rc != 0)
        return FAIL(err, ST_CONFIG,
                    "the Python '%s' cannot be started: %s; env.python names one that has gymnasium, like "
                    "%s/bin/python",
                    python, strerror(rc), stat(python, &info) == 0 && S_ISDIR(info.st_mode) ? python : "venv");
    return ST_OK;
}

/* ---- how it ended ---- */

void gym_helper_text(const struct gym_helper *helper, char *buf, size_t size)
{
    ssize_t got = pread(helper->text_fd, buf, size - 1, 0);

    buf[got > 0 ? got : 0] = '\0';
}

/* Lines of a text as one line: the first ones of a stack that begins with the innermost call, the last of another;
 * without those that are of bridge.py and of Python's own import. */
static const char *in_one_line(char *text, char ret_line[TEXT_BYTES])
{
    bool ours = false, innermost_first = strncmp(text, "Fatal Python error", 18) == 0;
    char *lines[TEXT_BYTES / 2], *rest = text;
    size_t n = 0, used = 0, first, end;

    for (char *line; (line = strsep(&rest, "\n")) != NULL && n < TEXT_BYTES / 2;) {
        size_t blanks = strspn(line, " ");
        line += blanks;
        if (strncmp(line, "File \"", 6) == 0)
            ours = strncmp(line, "File \"<string>\"", 15) == 0 || strncmp(line, "File \"<frozen", 13) == 0;
        if ((ours && blanks > 0) || strncmp(line, "Traceback (most", 15) == 0)
            continue;
        if (line[0] != '\0' && strspn(line, "^~ ") != strlen(line) && strncmp(line, "Extension modules", 17) != 0)
            lines[n++] = line;
    }
    first = innermost_first || n < TRACEBACK_LINES ? 0 : n - TRACEBACK_LINES;
    end = first + TRACEBACK_LINES < n ? first + TRACEBACK_LINES : n;
    ret_line[0] = '\0';
    for (size_t i = first; i < end && used < TEXT_BYTES; i++)
        used += (size_t)snprintf(ret_line + used, TEXT_BYTES - used, "%s%.300s", i > first ? " | " : "", lines[i]);
    return ret_line;
}

/* A whole number of the instance, when it works on one. */
static const char *where(const struct gym_helper *helper, const char *what, char buf[64])
{
    if (helper->line != NULL && helper->line->now >= 0)
        snprintf(buf, 64, "%s instance %lld", what, (long long)helper->line->now);
    else
        snprintf(buf, 64, "%s", helper->line != NULL ? "while it started" : what);
    return buf;
}

/* Its group: a wrapper may have started Python, and an environment other programs. Itself too: an environment may have
 * left the group. */
static void signal_all(pid_t pid, int signal_number)
{
    kill(-pid, signal_number);
    kill(pid, signal_number);
}

/* Waits for its end; false: it has not ended in time. */
static bool reap(struct gym_helper *helper, double patience_s, int *ret_state)
{
    double end_s = clock_mono_s() + patience_s;
    pid_t pid;

    while ((pid = waitpid(helper->pid, ret_state, WNOHANG)) == 0 || (pid < 0 && errno == EINTR)) {
        if (clock_mono_s() > end_s)
            return false;
        usleep(1000);
    }
    kill(-helper->pid, SIGKILL); /* what an environment had started and left */
    helper->pid = 0;
    return true;
}

static void kill_and_reap(struct gym_helper *helper, int signal_number)
{
    int state;

    signal_all(helper->pid, signal_number);
    if (!reap(helper, DYING_S, &state)) {
        signal_all(helper->pid, SIGKILL);
        (void)reap(helper, 1e9, &state);
    }
}

static enum status raised(const struct gym_helper *helper, const char *what, bool refused, struct error *err)
{
    char text[TEXT_BYTES], line[TEXT_BYTES], place[64];
    off_t size = lseek(helper->text_fd, 0, SEEK_END), from = size > TEXT_BYTES - 1 ? size - (TEXT_BYTES - 1) : 0;

    if (refused) {
        gym_helper_text(helper, text, sizeof text);
        return FAIL(err, ST_CONFIG, "%s", text);
    }
    ssize_t got = pread(helper->text_fd, text, TEXT_BYTES - 1, from);
    text[got > 0 ? got : 0] = '\0';
    return FAIL(err, ST_IO, "Python raised an exception %s: %s", where(helper, what, place), in_one_line(text, line));
}

static enum status died(struct gym_helper *helper, const char *what, struct error *err)
{
    char text[TEXT_BYTES], line[TEXT_BYTES], place[64], how[80] = "closed its descriptors";
    int state = 0;

    if (!reap(helper, DYING_S, &state))
        kill_and_reap(helper, SIGKILL);
    else if (WIFSIGNALED(state))
        snprintf(how, sizeof how, "was killed by signal %d (%s)", WTERMSIG(state), strsignal(WTERMSIG(state)));
    else
        snprintf(how, sizeof how, "ended with exit code %d", WEXITSTATUS(state));
    gym_helper_text(helper, text, sizeof text);
    const char *said = in_one_line(text, line);
    return FAIL(err, ST_IO, "its Python process %s %s%s%s", how, where(helper, what, place),
                said[0] != '\0' ? ": " : "; its log has what it printed", said);
}

static enum status hung(struct gym_helper *helper, const char *what, double timeout_s, struct error *err)
{
    char text[TEXT_BYTES], line[TEXT_BYTES], place[64];

    kill_and_reap(helper, SIGABRT); /* faulthandler writes where it was */
    gym_helper_text(helper, text, sizeof text);
    (void)in_one_line(text, line);
    return FAIL(err, ST_LIMIT, "no answer within %g s %s (env.timeout_s), and its Python process was killed%s%s",
                timeout_s, where(helper, what, place), line[0] != '\0' ? "; it was here: " : "", line);
}

/* ---- talking ---- */

/* Words in memory are enough where a processor makes stores seen in their order, since Python has no fences. */
int64_t gym_helper_spin_ns(void)
{
#ifdef __x86_64__
    return 50 * 1000;
#else
    return 0;
#endif
}

/* Children that an environment has forked may keep its socket open. */
static bool has_died(const struct gym_helper *helper)
{
    siginfo_t info = {0};

    return waitid(P_PID, (id_t)helper->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == helper->pid;
}

enum status gym_helper_send(struct gym_helper *helper, struct gym_command command, struct error *err)
{
    volatile struct gym_line *line = helper->line;
    int64_t asked = line->asked;

    if (line->asleep != 0 && helper->n_received > asked && has_died(helper))
        return died(helper, "between two steps; last it was", err);
    line->commands[asked % 2] = command;
    __atomic_store_n(&line->asked, asked + 1, __ATOMIC_SEQ_CST);
    helper->woken = __atomic_load_n(&line->asleep, __ATOMIC_SEQ_CST) != 0;
    if (helper->woken)
        (void)eventfd_write(helper->wakes_it, 1);
    return ST_OK;
}

/* Its start is answer 0, that of command i answer i + 1. */
static bool has_answered(const struct gym_helper *helper)
{
    return gym_helper_spin_ns() > 0 && helper->n_received > 0 &&
           __atomic_load_n(&helper->line->answered, __ATOMIC_ACQUIRE) >= helper->n_received;
}

static void rest(void) /* a moment, for the other thread of a core */
{
#ifdef __x86_64__
    __builtin_ia32_pause();
#endif
}

static bool answers_soon(struct gym_helper *helper)
{
    int64_t to_wake_ns = helper->woken ? gym_helper_spin_ns() : 0;
    uint64_t end_ns = clock_mono_ns() + (uint64_t)(helper->spin_ns + to_wake_ns);
    bool hit;

    if (helper->n_received == 0 || ++helper->skipped < 1 << helper->misses)
        return has_answered(helper);
    helper->skipped = 0;
    while (!(hit = has_answered(helper)) && clock_mono_ns() < end_ns)
        rest();
    helper->misses += hit ? -(helper->misses > 0) : helper->misses < MISSES_MAX;
    return hit;
}

enum status gym_helper_wait(struct gym_helper *helper, const char *what, double timeout_s, struct error *err)
{
    int64_t seen = helper->line != NULL ? helper->line->now : -1;
    double since_s = clock_mono_s();
    struct pollfd polled[] = {{.fd = helper->socket_fd, .events = POLLIN}, {.fd = helper->wakes_us, .events = POLLIN}};
    eventfd_t times;
    char mark = 0;
    bool dead = false;

    if (answers_soon(helper))
        goto received;
    if (helper->line != NULL)
        __atomic_store_n(&helper->line->awaited, 1, __ATOMIC_SEQ_CST);
    while (!has_answered(helper)) {
        double allowed_s = seen >= 0 || timeout_s > START_S ? timeout_s : START_S;
        double left_s = since_s + allowed_s - clock_mono_s();
        /* An answer that crossed our word awaited wakes nobody. */
        int n = poll(polled, 2, left_s > WAIT_S ? (int)(WAIT_S * 1e3) : left_s > 0 ? (int)(left_s * 1e3) + 1 : 0);
        if (n > 0 && polled[1].revents != 0) {
            (void)eventfd_read(helper->wakes_us, &times);
            if (helper->n_received == 0 || gym_helper_spin_ns() == 0)
                break;
            continue;
        }
        if (n > 0) {
            ssize_t got = recv(helper->socket_fd, &mark, 1, 0);
            if (got < 0 && errno == EINTR)
                continue;
            return got == 1 ? raised(helper, what, mark == '?', err) : died(helper, what, err);
        }
        if (helper->line != NULL && helper->line->now != seen) {
            seen = helper->line->now;
            since_s = clock_mono_s();
        } else if (left_s <= 0) {
            return hung(helper, what, allowed_s, err);
        }
        if (dead) /* and everything has been read that it had written */
            return died(helper, what, err);
        dead = has_died(helper);
    }
    if (helper->line != NULL)
        helper->line->awaited = gym_helper_spin_ns() == 0;
received:
    helper->n_received++;
    return ST_OK;
}

void gym_helper_stop(struct gym_helper *helper, double patience_s)
{
    int state;

    if (helper->socket_fd >= 0)
        close(helper->socket_fd);
    if (helper->pid != 0 && !reap(helper, patience_s, &state)) {
        signal_all(helper->pid, SIGKILL);
        (void)reap(helper, 1e9, &state);
    }
    if (helper->text_fd >= 0)
        close(helper->text_fd);
    if (helper->wakes_it >= 0)
        close(helper->wakes_it);
    if (helper->wakes_us >= 0)
        close(helper->wakes_us);
    *helper = GYM_HELPER_NONE;
}
