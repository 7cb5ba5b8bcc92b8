/* game_output.c - see game_output.h. The reader is a process and no thread, since the last words of a game that crashes
 * count most. Invariants: (1) it ends with us, whoever still holds the pipe; (2) it holds our stderr, and not our stdout,
 * whose own reader may wait for its end. */
#include "sweep/game_output.h"

#include "envs/env.h"
#include "envs/gym/gym.h"
#include "envs/plugin/library.h"
#include "sweep/game_log.h"
#include "sweep/term.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>

#define FD_ABOVE 10 /* ours are above those that Python processes get (envs/gym/gym_helper.c) */
#define LOOK_MS 100 /* between two looks at whether we live */
#define READS_MAX 32 /* at a time: twice what a pipe holds */

static struct {
    FILE *out, *err; /* stdout and stderr as they were; NULL: nothing was begun */
    int pipe, talk; /* to the reader; talk: 'b', 'e' or 'f' to it, its answer when all is shown */
} output = {.pipe = -1, .talk = -1};

/* ---- the reader ---- */

static void show(void *ctx, const char *line, bool left_out)
{
    (void)ctx;
    if (!left_out)
        term_print(line);
}

/* What was there when it was called, and no more: a process of the game may print without a pause. false: nobody can
 * write any more. */
static bool take(int from, struct game_log *log)
{
    char buf[4096];

    for (int i = 0; i < READS_MAX; i++) {
        ssize_t got = read(from, buf, sizeof buf);
        if (got > 0)
            game_log_add(log, buf, (size_t)got);
        else if (got == 0 || errno != EINTR)
            return got < 0;
    }
    return true;
}

static void read_on(int from, int talk, pid_t parent, const char *who)
{
    struct game_log log = {.counts = true, .who = who, .show = show};
    struct pollfd fds[] = {{.fd = from, .events = POLLIN}, {.fd = talk, .events = POLLIN}};
    bool ended = false, lives;
    char word;

    do {
        lives = getppid() == parent;
        (void)poll(fds, 2, lives ? LOOK_MS : 0);
        bool asked = fds[1].revents != 0 && recv(talk, &word, 1, MSG_DONTWAIT) == 1;
        if (fds[0].fd >= 0 && !take(from, &log))
            fds[0].fd = -1;
        if (!lives || asked)
            game_log_end(&log);
        if (asked ? word == 'f' : !lives && !ended)
            game_log_show_last(&log);
        ended = asked ? word != 'b' : ended;
        if (asked)
            (void)send(talk, &word, 1, MSG_NOSIGNAL);
        else if (fds[1].revents != 0)
            fds[1].fd = -1; /* closed: it dies */
    } while (lives);
    _exit(0);
}

static void become_reader(int from, int talk, pid_t parent, const char *who)
{
    static const int ignored[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGQUIT, SIGPIPE};
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);

    for (size_t i = 0; i < COUNT(ignored); i++)
        (void)signal(ignored[i], SIG_IGN);
    (void)dup2(null, STDIN_FILENO);
    (void)dup2(null, STDOUT_FILENO);
    (void)dup2(from, 3); /* both are above */
    (void)dup2(talk, 4);
    closefrom(5);
    read_on(3, 4, parent, who);
}

/* ---- the command ---- */

static int above(int fd)
{
    int moved = fd >= 0 ? fcntl(fd, F_DUPFD_CLOEXEC, FD_ABOVE) : -1;

    if (fd >= 0)
        close(fd);
    return moved;
}

static FILE *kept(int fd)
{
    int own = fcntl(fd, F_DUPFD_CLOEXEC, FD_ABOVE);
    FILE *file = own >= 0 ? fdopen(own, "w") : NULL;

    if (file == NULL && own >= 0)
        close(own);
    return file;
}

static bool start_reader(const char *who)
{
    int ends[2] = {-1, -1}, pair[2] = {-1, -1};
    pid_t parent = getpid(), pid = -1;
    bool ok = pipe2(ends, O_CLOEXEC) == 0 && socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0;

    for (int i = 0; i < 2; i++)
        ends[i] = above(ends[i]), pair[i] = above(pair[i]);
    ok = ok && ends[0] >= 0 && ends[1] >= 0 && pair[0] >= 0 && pair[1] >= 0 && fcntl(ends[0], F_SETFL, O_NONBLOCK) == 0;
    pid = ok ? _Fork() : -1; /* no library's handlers: OpenBLAS's takes a lock */
    if (pid == 0)
        become_reader(ends[0], pair[1], parent, who);
    output.pipe = ends[1], output.talk = pair[0];
    if (ends[0] >= 0)
        close(ends[0]);
    if (pair[1] >= 0)
        close(pair[1]);
    if (pid < 0) {
        if (output.pipe >= 0)
            close(output.pipe);
        if (output.talk >= 0)
            close(output.talk);
        output.pipe = output.talk = -1;
    }
    return pid > 0;
}

/* Answered once all that was printed has been shown. */
static void ask(char word)
{
    if (send(output.talk, &word, 1, MSG_NOSIGNAL) == 1)
        while (recv(output.talk, &word, 1, 0) < 0 && errno == EINTR)
            ;
}

void game_output_begin(const char *who, const struct env_def *env)
{
    bool built_in = env != NULL && env_library_hash(env)[0] == '\0' && !env_is_gym(env->name);

    if (built_in || getenv("TRAWL_DEBUG") != NULL)
        return;
    fflush(stdout);
    if (output.out == NULL) {
        if (!start_reader(who))
            return;
        output.out = kept(STDOUT_FILENO);
        output.err = kept(STDERR_FILENO);
    }
    if (output.out == NULL || output.err == NULL)
        return;
    setvbuf(output.out, NULL, _IOLBF, 0);
    setvbuf(output.err, NULL, _IONBF, 0);
    setvbuf(stdout, NULL, _IOLBF, 0); /* the last lines of a game that crashes are shown */
    term_set_err(output.err);
    ask('b');
    (void)dup2(output.pipe, STDOUT_FILENO);
    (void)dup2(output.pipe, STDERR_FILENO);
}

void game_output_end(bool failed)
{
    if (output.out == NULL || output.err == NULL)
        return;
    fflush(stdout);
    fflush(output.out);
    (void)dup2(fileno(output.out), STDOUT_FILENO);
    (void)dup2(fileno(output.err), STDERR_FILENO);
    term_set_err(NULL);
    ask(failed ? 'f' : 'e');
}

FILE *game_output_result(void)
{
    return output.out != NULL ? output.out : stdout;
}
