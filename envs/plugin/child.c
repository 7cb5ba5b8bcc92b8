/* child.c - this program as a child. Invariant: it is reaped exactly once, by wait_for. */
#include "envs/plugin/child.h"
#include "base/base.h"

#include "base/os/environment.h"
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

#define ANSWER_MAX (4u << 20)
#define LOG_BYTES 600

static int spawn(pid_t *ret_pid, char *const argv[], const int theirs[3])
{
    MEM_LOCAL char **env = environment_public(NULL); /* as workers have it */
    posix_spawn_file_actions_t actions;
    int rc = posix_spawn_file_actions_init(&actions);

    if (rc == 0) {
        for (int i = 0; i < 3; i++)
            posix_spawn_file_actions_adddup2(&actions, theirs[i], i);
        posix_spawn_file_actions_addclosefrom_np(&actions, 3);
        rc = posix_spawn(ret_pid, "/proc/self/exe", &actions, NULL, argv, env);
        posix_spawn_file_actions_destroy(&actions);
    }
    return rc;
}

enum status child_start(struct child *child, char *const argv[], struct error *err)
{
    int pipes[3][2] = {{-1, -1}, {-1, -1}, {-1, -1}}, rc = 0;

    *child = (struct child){.in = -1, .out = -1, .log = -1, .stop = -1};
    for (int i = 0; rc == 0 && i < 3; i++)
        rc = pipe2(pipes[i], O_CLOEXEC) != 0 ? errno : 0;
    if (rc == 0)
        rc = spawn(&child->pid, argv, (int[3]){pipes[0][0], pipes[1][1], pipes[2][1]});
    for (int i = 0; i < 3; i++) {
        int theirs = pipes[i][i == 0 ? 0 : 1], ours = pipes[i][i == 0 ? 1 : 0];
        if (theirs >= 0)
            close(theirs);
        if (rc != 0 && ours >= 0)
            close(ours);
    }
    if (rc != 0)
        return FAIL(err, ST_IO, "cannot start a process for a game: %s", strerror(rc));
    child->in = pipes[0][1];
    child->out = pipes[1][0];
    child->log = pipes[2][0];
    strbuf_init(&child->answer, ANSWER_MAX);
    strbuf_init(&child->said, 1u << 16);
    return ST_OK;
}

bool child_send(struct child *child, const char *line)
{
    size_t n = strlen(line);

    return child->in >= 0 && write(child->in, line, n) == (ssize_t)n;
}

/* Appends what there is to read; closes at the end of the pipe. Of a log the end is kept. */
static void take(int *fd, struct strbuf *sb, bool is_log)
{
    char buf[4096];
    ssize_t got = read(*fd, buf, sizeof buf);

    if (got < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    if (got <= 0) {
        close(*fd);
        *fd = -1;
        return;
    }
    if (is_log && sb->len + (size_t)got >= sb->max)
        strbuf_clear(sb);
    strbuf_add_n(sb, buf, (size_t)got);
}

/* Reads until there is a line (or, whole: until both pipes are closed). */
static bool listen_to(struct child *child, bool whole, double timeout_s)
{
    double end_s = clock_mono_s() + timeout_s;

    while (whole ? child->out >= 0 || child->log >= 0 : child->out >= 0 && strchr(child->answer.text, '\n') == NULL) {
        struct pollfd polls[3] = {{.fd = child->out, .events = POLLIN},
                                  {.fd = child->log, .events = POLLIN},
                                  {.fd = child->stop, .events = POLLIN}};
        double left_s = end_s - clock_mono_s();
        if (left_s <= 0)
            return false;
        (void)poll(polls, 3, (int)(left_s * 1000) + 1);
        if (polls[2].revents != 0)
            return false;
        if (polls[0].revents != 0)
            take(&child->out, &child->answer, false);
        if (polls[1].revents != 0)
            take(&child->log, &child->said, true);
    }
    return whole || strchr(child->answer.text, '\n') != NULL;
}

const char *child_line(struct child *child, double timeout_s)
{
    char *end = strchr(child->answer.text, '\0');

    if (child->answer.len > (size_t)(end - child->answer.text)) { /* the line of the last call goes */
        size_t n = (size_t)(end - child->answer.text) + 1;
        memmove(child->answer.text, child->answer.text + n, child->answer.len - n + 1);
        child->answer.len -= n;
    }
    if (!listen_to(child, false, timeout_s))
        return NULL;
    *strchr(child->answer.text, '\n') = '\0';
    return child->answer.text;
}

/* Reaps it; one that does not end by itself is killed after a second. */
static void wait_for(struct child *child)
{
    double end_s = clock_mono_s() + 1.0;

    while (child->pid > 0) {
        pid_t got = waitpid(child->pid, &child->state, WNOHANG);
        if (got == child->pid || (got < 0 && errno != EINTR))
            child->pid = 0;
        else if (clock_mono_s() > end_s)
            kill(child->pid, SIGKILL);
        if (child->pid > 0)
            usleep(500);
    }
}

const char *child_text(struct child *child, double timeout_s)
{
    if (!listen_to(child, true, timeout_s))
        return NULL;
    wait_for(child);
    return WIFEXITED(child->state) && WEXITSTATUS(child->state) == 0 ? child->answer.text : NULL;
}

/* The last lines of its log, as one. */
static const char *log_end(struct child *child, char buf[LOG_BYTES])
{
    const struct strbuf *log = &child->said;
    const char *from = log->len > LOG_BYTES - 1 ? log->text + log->len - (LOG_BYTES - 1) : log->text;

    for (const char *at = from; (at = strstr(at, "\ntrawl: ")) != NULL;)
        from = ++at; /* the program's own error line, after what the game has printed */
    snprintf(buf, LOG_BYTES, "%s", from);
    for (size_t n = strlen(buf); n > 0 && buf[n - 1] == '\n'; n--)
        buf[n - 1] = '\0';
    for (char *c = buf; *c != '\0'; c++)
        *c = *c == '\n' ? ' ' : *c;
    return buf;
}

enum status child_fail(struct child *child, const char *path, const char *what, double timeout_s, struct error *err)
{
    char end[LOG_BYTES];
    bool hangs = child->out >= 0 && child->pid > 0;

    if (hangs)
        kill(child->pid, SIGKILL);
    (void)listen_to(child, true, 1.0); /* what is left of its log */
    wait_for(child);
    const char *said = log_end(child, end);
    if (hangs)
        return FAIL(err, ST_LIMIT, "%s: it did not %s within %.0f s and was killed; its log %s%s", path, what,
                    timeout_s, said[0] != '\0' ? "ends: " : "is empty", said);
    if (WIFSIGNALED(child->state))
        return FAIL(err, ST_CONFIG, "%s: it was to %s, and was killed by signal %d (%s); its log %s%s", path, what,
                    WTERMSIG(child->state), strsignal(WTERMSIG(child->state)), said[0] != '\0' ? "ends: " : "is empty",
                    said);
    return FAIL(err, ST_CONFIG, "%s", strncmp(said, "trawl: ", 7) == 0 ? said + 7 : said); /* names the path */
}

void child_end(struct child *child)
{
    if (child->answer.text == NULL)
        return;
    if (child->pid > 0)
        kill(child->pid, SIGKILL);
    wait_for(child);
    for (int i = 0; i < 3; i++) {
        int fd = (const int[]){child->in, child->out, child->log}[i];
        if (fd >= 0)
            close(fd);
    }
    strbuf_free(&child->answer);
    strbuf_free(&child->said);
    *child = (struct child){.in = -1, .out = -1, .log = -1};
}
