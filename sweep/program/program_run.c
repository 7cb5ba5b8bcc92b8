/* program_run.c - runs a program under a guard and listens to it.
 * Invariants: (1) its output is read as fast as it comes, so it never waits for us; (2) however much it writes, memory
 * and the log are bounded; (3) a report is passed on at once or with the next one, and the last one always. */
#include "sweep/program/program_run.h"

#include "study/view/study_view.h"
#include "sweep/program/guard.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define READ_BYTES 65536
#define READS_MAX 64 /* in one round, so that one chatterer does not keep a stop waiting */
#define LOOK_MS 100 /* at the file of metrics, and at the clock */
#define BURST 500.0 /* reports that may come at once */
#define RATE_S 20.0 /* and each second from then on */
#define QUEUE_MAX 512
#define CAUSE_MAX 400 /* bytes of the line of its output that a reason names */

extern char **environ;

struct program_run {
    struct guard guard;
    struct output_log log;
    struct program_job job; /* its texts are not ours but metric */
    char *metric, *name; /* name: of the program */
    char unread[160]; /* its last line that looks like a report and has no score; "": none */
    char *metrics_path; /* NULL: none */
    int metrics_fd; /* -1: none */
    struct output_log metrics; /* cuts its lines; no file */
    double start_s, stop_s; /* stop_s: since when it is asked to stop; 0: it is not */
    bool killed, timed_out, ended;
    struct guard_end guard_end;
    double end_s;
    /* reports */
    struct program_report *queue; /* (QUEUE_MAX) a ring */
    size_t first, n;
    struct program_report last;
    bool has_last, last_waits; /* it is not in the queue yet */
    double allowance, allowance_at_s;
    uint64_t n_reports;
    bool has_steps, has_score; /* one was reported */
    double score, cost;
    double cost_given; /* the last one, also where it cannot be a cost; has_cost */
    bool has_cost;
};

/* ---- start ---- */

static bool is_replaced(const struct program_job *job, const char *entry)
{
    size_t n = strcspn(entry, "=") + 1;

    for (size_t i = 0; i < job->n_env; i++)
        if (strncmp(job->env[i], entry, n) == 0)
            return true;
    return false;
}

/* Ours with those of the job; the texts are borrowed. */
static char **environment(const struct program_job *job)
{
    size_t n = 0, kept = 0;
    char **env;

    while (environ[n] != NULL)
        n++;
    env = mem_array(n + job->n_env + 1, sizeof *env);
    for (size_t i = 0; i < n; i++)
        if (!is_replaced(job, environ[i]))
            env[kept++] = environ[i];
    for (size_t i = 0; i < job->n_env; i++)
        env[kept++] = (char *)job->env[i];
    return env;
}

static enum status open_metrics(struct program_run *run, const char *path, struct error *err)
{
    run->metrics_fd = -1;
    if (path == NULL)
        return ST_OK;
    run->metrics_fd = open(path, O_RDONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (run->metrics_fd < 0)
        return FAIL(err, ST_IO, "%s: cannot be written: %s", path, strerror(errno));
    return output_log_open(&run->metrics, NULL, err);
}

enum status program_run_start(struct program_run **ret_run, const struct program_job *job, struct error *err)
{
    struct program_run *run = mem_alloc(sizeof *run);

    run->job = *job;
    run->metric = mem_strdup(job->metric);
    run->name = mem_strdup(job->argv[0]);
    run->metrics_path = job->metrics_path != NULL ? mem_strdup(job->metrics_path) : NULL;
    run->queue = mem_array(QUEUE_MAX, sizeof *run->queue);
    run->score = run->cost = NAN;
    run->allowance = BURST;
    run->metrics_fd = -1;
    enum status rc = output_log_open(&run->log, job->log_path, err);
    THEN(rc, open_metrics(run, job->metrics_path, err));
    if (rc == ST_OK) {
        char **env = environment(job);
        run->start_s = run->allowance_at_s = clock_mono_s();
        rc = guard_start(&run->guard, job->argv, env, job->directory, err);
        mem_free(env);
    }
    if (rc != ST_OK) {
        program_run_destroy(run);
        return rc;
    }
    *ret_run = run;
    return ST_OK;
}

void program_run_destroy(struct program_run *run)
{
    if (run == NULL)
        return;
    guard_close(&run->guard);
    output_log_close(&run->log);
    output_log_close(&run->metrics);
    if (run->metrics_fd >= 0)
        close(run->metrics_fd);
    mem_free(run->metric);
    mem_free(run->name);
    mem_free(run->metrics_path);
    mem_free(run->queue);
    mem_free(run);
}

/* ---- reports ---- */

static void enqueue(struct program_run *run)
{
    run->last_waits = false;
    if (run->n == QUEUE_MAX) { /* nobody asks: the oldest goes */
        run->first = (run->first + 1) % QUEUE_MAX;
        run->n--;
    }
    run->queue[(run->first + run->n++) % QUEUE_MAX] = run->last;
    run->allowance -= 1.0;
}

static void refill(struct program_run *run)
{
    double now_s = clock_mono_s();

    run->allowance = fmin(BURST, run->allowance + RATE_S * (now_s - run->allowance_at_s));
    run->allowance_at_s = now_s;
    if (run->last_waits && run->allowance >= 1.0)
        enqueue(run);
}

static void take_report(struct program_run *run, const struct metric_line *line)
{
    struct program_report *r = &run->last;
    double cost = line->cost;

    run->n_reports++;
    if (line->has_cost) {
        run->cost_given = cost;
        run->has_cost = true;
    }
    r->line = *line;
    if (cost >= 0.0 && isfinite(cost))
        run->cost = cost;
    r->wall_s = clock_mono_s() - run->start_s;
    r->cost = isfinite(run->cost) ? run->cost : r->wall_s;
    if (!run->job.own_cost)
        r->wall_s = r->cost;
    if (line->step >= 0.0 && line->step < 0x1p62) {
        r->step = floor(line->step);
        run->has_steps = true;
    } else if (!run->has_steps) {
        r->step = (double)run->n_reports;
    }
    for (size_t i = 0; i < line->n; i++)
        if (strcmp(line->metrics[i].name, run->metric) == 0) {
            run->score = line->metrics[i].value;
            run->has_score = true;
        }
    run->has_last = run->last_waits = true;
    refill(run);
}

bool program_run_report(struct program_run *run, struct program_report *ret)
{
    if (run->n == 0)
        return false;
    *ret = run->queue[run->first];
    run->first = (run->first + 1) % QUEUE_MAX;
    run->n--;
    return true;
}

/* ---- its output ---- */

static bool has_score(const struct program_run *run, const struct metric_line *line)
{
    size_t i = 0;

    while (i < line->n && strcmp(line->metrics[i].name, run->metric) != 0)
        i++;
    return i < line->n;
}

static void take_line(struct program_run *run, const char *text, size_t n)
{
    struct metric_line line;

    if (metric_line_read(text, n, run->metric, &line))
        take_report(run, &line);
    if (!run->has_score && metric_line_is_marked(text, n) && !has_score(run, &line)) {
        n = n < sizeof run->unread ? n : sizeof run->unread - 1;
        memcpy(run->unread, text, n);
        output_log_printable(run->unread, n);
    }
}

static void take_output(struct program_run *run, const char *bytes, size_t n)
{
    const char *text;
    size_t at = 0, n_text;

    output_log_add(&run->log, bytes, n);
    if (run->job.echo && fwrite(bytes, 1, n, stderr) != n)
        run->job.echo = false;
    while (output_log_line(&run->log, bytes, n, &at, &text, &n_text))
        take_line(run, text, n_text);
}

/* False: nothing more will come. */
static void read_output(struct program_run *run, int rounds)
{
    char bytes[READ_BYTES];

    for (int i = 0; i < rounds && run->guard.output_fd >= 0; i++) {
        ssize_t n = read(run->guard.output_fd, bytes, sizeof bytes);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return;
        if (n <= 0) {
            close(run->guard.output_fd);
            run->guard.output_fd = -1;
            return;
        }
        take_output(run, bytes, (size_t)n);
    }
}

/* At the end of the file. A program that opens it for each line may empty it each time, or put another in its place
 * (but no device, which may have no end). */
static bool begins_again(struct program_run *run)
{
    struct stat ours, there;
    int fd;

    if (fstat(run->metrics_fd, &ours) != 0)
        return false;
    if (ours.st_size < lseek(run->metrics_fd, 0, SEEK_CUR)) {
        run->metrics.n_line = 0;
        return lseek(run->metrics_fd, 0, SEEK_SET) == 0;
    }
    if (stat(run->metrics_path, &there) != 0 || !S_ISREG(there.st_mode) ||
        (there.st_ino == ours.st_ino && there.st_dev == ours.st_dev) ||
        (fd = open(run->metrics_path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)) < 0)
        return false;
    close(run->metrics_fd);
    run->metrics_fd = fd;
    run->metrics.n_line = 0;
    return true;
}

static void read_metrics(struct program_run *run, int rounds)
{
    char bytes[READ_BYTES];

    for (int i = 0; i < rounds && run->metrics_fd >= 0; i++) {
        ssize_t n = read(run->metrics_fd, bytes, sizeof bytes);
        struct metric_line line;
        const char *text;
        size_t at = 0, n_text;
        if ((n < 0 && errno == EINTR) || (n == 0 && begins_again(run)))
            continue;
        if (n <= 0)
            return;
        while (output_log_line(&run->metrics, bytes, (size_t)n, &at, &text, &n_text))
            if (metric_json_read(text, n_text, run->metric, &line))
                take_report(run, &line);
    }
}

/* ---- waiting ---- */

/* Lines without an end are whole now. */
static void finish(struct program_run *run)
{
    struct metric_line line;
    size_t n;

    run->ended = true;
    run->end_s = clock_mono_s();
    read_output(run, 1 << 20);
    read_metrics(run, 1 << 20);
    const char *text = output_log_rest(&run->log, &n);
    if (n > 0)
        take_line(run, text, n);
    if (run->metrics_fd >= 0) {
        text = output_log_rest(&run->metrics, &n);
        if (n > 0 && metric_json_read(text, n, run->metric, &line))
            take_report(run, &line);
    }
    if (run->last_waits)
        enqueue(run);
}

static void look_at_clock(struct program_run *run)
{
    double now_s = clock_mono_s();

    if (run->job.limit_s > 0.0 && run->stop_s <= 0.0 && now_s - run->start_s > run->job.limit_s) {
        run->timed_out = true;
        program_run_stop(run);
    }
    if (run->stop_s > 0.0 && !run->killed && now_s - run->stop_s >= run->job.grace_s) {
        run->killed = true;
        guard_send(&run->guard, GUARD_KILL);
    }
}

bool program_run_wait(struct program_run *run, int timeout_ms)
{
    struct pollfd fds[] = {{.fd = run->guard.report_fd, .events = POLLIN},
                           {.fd = run->guard.output_fd, .events = POLLIN}};

    if (run->ended)
        return true;
    (void)poll(fds, 2, timeout_ms < LOOK_MS ? timeout_ms : LOOK_MS);
    read_output(run, READS_MAX);
    read_metrics(run, READS_MAX);
    refill(run);
    look_at_clock(run);
    if (guard_ended(&run->guard, &run->guard_end))
        finish(run);
    return run->ended;
}

void program_run_stop(struct program_run *run)
{
    if (run->ended || run->stop_s > 0.0)
        return;
    run->stop_s = clock_mono_s();
    guard_send(&run->guard, GUARD_TERM);
}

/* ---- the end ---- */

/* What most often is the matter with a program that cannot be started. */
static const char *start_hint(const struct program_run *run)
{
    bool is_path = strchr(run->name, '/') != NULL;

    if (run->guard_end.in_directory || !run->guard_end.is_there)
        return "";
    if (run->guard_end.start_errno == ENOENT)
        return is_path ? "; the file is there, but the interpreter that its first line names is not"
                       : "; a file of that name is in its folder: write ./ before it";
    return run->guard_end.start_errno == EACCES
               ? "; chmod +x makes a file executable, or write its interpreter before it: python FILE"
               : "";
}

static void explain_no_score(const struct program_run *run, char *buf, size_t size)
{
    if (run->unread[0] != '\0')
        snprintf(buf, size, "no score: its line \"%s\" has no word like %s=0.5, with nothing but a number after the =",
                 run->unread, run->metric);
    else
        snprintf(buf, size,
                 "no score: it printed no line like `TRAWL %s=0.5` and wrote none to the file named by TRAWL_METRICS%s",
                 run->metric,
                 run->log.too_long || run->metrics.too_long ? ", or its line has 64 kB or more and is not read" : "");
}

static void explain_no_cost(const struct program_run *run, char *buf, size_t size)
{
    char given[64] = "none";

    if (run->has_cost)
        snprintf(given, sizeof given, "cost=%g, which is not a finite number above 0", run->cost_given);
    snprintf(
        buf, size,
        "no cost: sweep.cost = own takes what the program reports, and it reported %s; print `TRAWL %s=0.5 cost=12.5`",
        given, run->metric);
}

/* The exception of the last Python traceback, else the last line that is not a report; NULL: none. A program that reports
 * after a traceback had handled it. The lines of a traceback may have a prefix each ("[rank0]: ", "    | "). */
static const char *find_cause(const char *lines)
{
    static const char traceback[] = "Traceback (most recent call last):";
    const char *exception = NULL, *last = NULL, *prefix = NULL, *at;
    size_t n, n_prefix = 0;

    for (const char *line = lines; *line != '\0'; line += n + (line[n] == '\n')) {
        n = strcspn(line, "\n");
        at = memmem(line, n, traceback, sizeof traceback - 1);
        if (at != NULL) {
            prefix = line; /* of the frames that follow */
            n_prefix = (size_t)(at - line);
        } else if (prefix != NULL && n > n_prefix && memcmp(line, prefix, n_prefix) == 0 && line[n_prefix] != ' ') {
            exception = line + n_prefix;
            prefix = NULL;
        }
        if (metric_line_is_marked(line, n))
            exception = prefix = NULL;
        else if (strspn(line, " \t") < n)
            last = line;
    }
    return exception != NULL ? exception : last;
}

static void explain_exit(const char *lines, int code, char *buf, size_t size)
{
    const char *cause = find_cause(lines);
    size_t n = 0, length;

    while (cause != NULL && cause[n] != '\0' && cause[n] != '\n' && n < CAUSE_MAX &&
           (length = utf8_length(cause + n, strlen(cause + n))) > 0)
        n += length;
    snprintf(buf, size, "ended with exit code %d%s%.*s", code, n > 0 ? ": " : "", (int)n, cause != NULL ? cause : "");
}

static void explain_end(const struct program_run *run, struct program_end *end)
{
    int status = run->guard_end.wait_status;

    if (run->guard_end.start_errno != 0)
        snprintf(end->reason, sizeof end->reason, "%s: %.300s: %s%s",
                 run->guard_end.in_directory ? "the folder of the program cannot be entered"
                                             : "the program cannot be started",
                 run->guard_end.in_directory ? "sweep.directory" : run->name, strerror(run->guard_end.start_errno),
                 start_hint(run));
    else if (run->timed_out)
        snprintf(end->reason, sizeof end->reason, "it ran longer than %g s (sweep.trial_time) and was %s",
                 run->job.limit_s, run->killed ? "killed" : "ended");
    else if (WIFSIGNALED(status))
        snprintf(end->reason, sizeof end->reason, "killed by signal %d (%s)", WTERMSIG(status),
                 strsignal(WTERMSIG(status)));
    else if (WEXITSTATUS(status) != 0)
        explain_exit(end->last_lines, WEXITSTATUS(status), end->reason, sizeof end->reason);
    else if (!run->has_score)
        explain_no_score(run, end->reason, sizeof end->reason);
    else if (run->job.needs_step && !run->has_steps)
        snprintf(end->reason, sizeof end->reason,
                 "no steps: sweep.cost = env_steps counts them, and it reported none; print `TRAWL %s=0.5 step=1000`",
                 run->metric);
    else if (run->job.own_cost && !(run->cost > 0.0))
        explain_no_cost(run, end->reason, sizeof end->reason);
    else if (!isfinite(run->score))
        snprintf(end->reason, sizeof end->reason, "%s is %g at the end of the run", run->metric, run->score);
    else if (fabs(run->score) > STUDY_SCORE_MAX)
        snprintf(end->reason, sizeof end->reason, "%s is %g at the end of the run; up to %g can be searched by",
                 run->metric, run->score, STUDY_SCORE_MAX);
}

const char *program_outcome_name(enum program_outcome outcome)
{
    static const char *const names[] = {
        [PROGRAM_DONE] = "done", [PROGRAM_STOPPED] = "stopped", [PROGRAM_FAILED] = "failed"};

    return names[outcome];
}

void program_run_end(const struct program_run *run, struct program_end *ret)
{
    *ret = (struct program_end){.score = run->score,
                                .wall_s = run->end_s - run->start_s,
                                .cost_reported = isfinite(run->cost),
                                .not_started = run->guard_end.start_errno != 0,
                                .step = run->has_last ? (int64_t)run->last.step : 0};
    ret->cost = ret->cost_reported ? run->cost : ret->wall_s;
    output_log_last(&run->log, ret->last_lines);
    explain_end(run, ret);
    ret->outcome = run->stop_s > 0.0 && !run->timed_out ? PROGRAM_STOPPED
                   : ret->reason[0] != '\0'             ? PROGRAM_FAILED
                                                        : PROGRAM_DONE;
    if (ret->outcome == PROGRAM_STOPPED)
        ret->reason[0] = '\0';
}
