/* cmd_daemon.c - `trawl daemon`: one scheduler for all studies of a store, until a signal.
 * Invariants: (1) the store is the state: whatever was running when a daemon ended, in any way, the next one continues;
 * (2) a study that fails is recorded and removed, and the daemon continues; (3) in the background nothing is opened
 * before the fork, and the caller learns whether the daemon started; (4) only the holder of the store writes the log: a
 * second daemon would write into the file of the first. */
#include "study/setup/setup.h"
#include "study/version.h"

#include "sweep/cmd/commands.h"
#include "sweep/control/socket/control_server.h"
#include "sweep/control/controller_socket.h"
#include "sweep/launch/devices.h"
#include "sweep/launch/remote_devices.h"
#include "sweep/launch/slurm_nodes.h"
#include "sweep/controller/sched_study.h"
#include "sweep/log_file.h"
#include "sweep/signals.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

#define SESSION_TRIES 50 /* to take the database's lock again after a lost connection */
#define SESSION_US 100000

struct daemon_cmd {
    const char *store_path, *devices, *log_path;
    int64_t runs_per_device, log_mb, log_keep;
    bool detach;
    struct setup *setup; /* for its [sweep] settings */
    struct store *store;
    struct scheduler *sched;
    struct controller_socket socket;
    struct log_file *log;
    char *default_log; /* STORE.log, owned */
    int ready_fd; /* to the caller that waits; -1: none */
};

/* ---- what is logged of studies and trials ---- */

static void on_trial_end(void *ctx, const struct sched_study *ss, const struct trial *t)
{
    const struct study *s = &ss->view.study;
    char cost[32];

    (void)ctx;
    if (t->state == TRIAL_DONE)
        log_info("%s: trial %lld done, %s %.6g, cost %s", s->name, (long long)t->number, s->metric, t->score,
                 study_view_cost_text(&ss->view, study_view_trial_cost(&ss->view, t), cost));
    else if (t->state == TRIAL_QUEUED)
        log_info("%s: trial %lld is queued again", s->name, (long long)t->number);
    else
        log_info("%s: trial %lld %s: %s", s->name, (long long)t->number, trial_state_name(t->state),
                 t->reason != NULL ? t->reason : "");
}

static void on_study_end(void *ctx, struct sched_study *ss)
{
    struct daemon_cmd *d = ctx;

    if (ss->err.status != ST_OK)
        log_warn("%s %s: %s", ss->view.study.name, ss->end.rule != NULL ? "has ended" : "is paused", ss->err.text);
    else if (ss->end.rule != NULL)
        log_info("%s has ended (%s): %s", ss->view.study.name, ss->end.rule, ss->end.text);
    scheduler_remove(d->sched, ss);
    sched_study_destroy(ss);
}

/* ---- life ---- */

/* Studies that ran when the last daemon ended; paused ones wait for `trawl continue`. */
static enum status take_studies(struct daemon_cmd *d, struct error *err)
{
    size_t n;

    TRY(controller_socket_take_studies(&d->socket, &n, err));
    if (n > 0)
        log_info("%zu stud%s%s", n, n == 1 ? "y continues" : "ies continue",
                 d->socket.waiting ? ", others wait their turn" : "");
    return ST_OK;
}

static void on_tick(void *ctx)
{
    struct daemon_cmd *d = ctx;

    controller_socket_take_turns(&d->socket);
}

static void notify_caller(struct daemon_cmd *d, const struct error *err)
{
    if (d->ready_fd < 0)
        return;
    if (err != NULL && write(d->ready_fd, err->text, strlen(err->text)) < 0)
        log_debug("the caller is gone");
    close(d->ready_fd);
    d->ready_fd = -1;
}

/* Where another controller has a store in PostgreSQL, this one stands by. */
static enum status open_store(struct daemon_cmd *d, struct error *err)
{
    struct error why = {0};
    enum status rc = store_open_writer(&d->store, d->store_path, &why);

    if (rc != ST_BUSY || !store_is_address(d->store_path))
        return rc == ST_OK ? ST_OK : error_set(err, rc, "%s", why.text);
    log_info("standing by: %.*s", (int)strcspn(why.text, ";"), why.text); /* without what to do */
    notify_caller(d, NULL);
    while (rc == ST_BUSY) { /* another that waits too may be faster */
        TRY(store_stand_by(d->store_path, NULL, signals_stop, err));
        error_clear(&why);
        rc = store_open_writer(&d->store, d->store_path, &why);
    }
    if (rc != ST_OK)
        return error_set(err, rc, "%s", why.text);
    log_info("%s: its controller has ended; this one continues its studies", d->store_path);
    return ST_OK;
}

static enum status open_store_and_log(struct daemon_cmd *d, struct error *err)
{
    TRY(open_store(d, err));
    if (d->log_path != NULL) /* which may have become a store just now */
        TRY(check_output(d->log_path, OUTPUT_OTHER, NULL, 0, err));
    return d->log_path != NULL ? log_file_open(&d->log, d->log_path, d->log_mb << 20, d->log_keep, err) : ST_OK;
}

/* A scheduler and a socket for the open store. */
static enum status begin(struct daemon_cmd *d, const struct devices *devices, struct error *err)
{
    const struct sweep_settings *set = &d->setup->sweep;

    TRY(scheduler_create(&d->sched, devices, err));
    TRY(slurm_nodes_create(&d->sched->launcher, set, store_path(d->store), "", err));
    d->sched->stay = true;
    d->sched->store = d->store;
    d->sched->hang_timeout_s = set->hang_timeout_s;
    d->sched->listener = (struct sched_listener){
        .ctx = d, .on_trial_end = on_trial_end, .on_study_end = on_study_end, .on_tick = on_tick};
    controller_socket_open(&d->socket, d->store, d->sched, true);
    if (d->socket.server == NULL)
        return FAIL(err, ST_IO, "%s: the daemon has no socket, so it would take no commands", d->store_path);
    return ST_OK;
}

static void end(struct daemon_cmd *d)
{
    controller_socket_close(&d->socket);
    if (d->sched != NULL) {
        size_t n = d->sched->n_studies;
        struct sched_study *runs[SCHED_MAX_STUDIES];
        memcpy(runs, d->sched->studies, sizeof runs);
        scheduler_destroy(d->sched);
        for (size_t i = 0; i < n; i++)
            sched_study_destroy(runs[i]);
    }
    d->sched = NULL;
    d->socket = (struct controller_socket){0};
    store_close(d->store);
    d->store = NULL;
}

static enum status run(struct daemon_cmd *d, struct error *err)
{
    TRY(take_studies(d, err)); /* may wait for space on the disk, which the caller need not */
    return scheduler_run(d->sched, err);
}

/* While the connection to the database was lost, another controller took one of its studies: all begins again without
 * that one, from the checkpoints of the others' trials. False: another daemon has the store. */
static bool begin_without_lost(struct daemon_cmd *d, const struct devices *devices, const struct error *lost)
{
    struct error why = {0};
    enum status rc = ST_BUSY;

    for (int i = 0; rc == ST_BUSY && i < SESSION_TRIES && !signals_stop(); i++) { /* until the server missed us */
        error_clear(&why);
        rc = store_open_writer(&d->store, d->store_path, &why);
        if (rc == ST_BUSY)
            usleep(SESSION_US);
    }
    if (rc != ST_OK)
        return false;
    log_warn("%s; that study is left to it, and the daemon continues with the others", lost->text);
    rc = begin(d, devices, &why);
    if (rc == ST_OK)
        return true;
    log_error("%s", why.text);
    end(d);
    return false;
}

static enum status serve(struct daemon_cmd *d, struct error *err)
{
    const struct sweep_settings *set = &d->setup->sweep;
    MEM_LOCAL struct devices *devices = mem_alloc(sizeof *devices);

    signal(SIGHUP, SIG_IGN); /* it has no terminal to lose */
    signals_catch();
    enum status rc = devices_parse(set, d->setup->train.device, devices, err);
    if (rc == ST_OK)
        rc = remote_devices_expand(devices, set, err); /* before it stands by: hosts take their time */
    THEN(rc, open_store_and_log(d, err));
    THEN(rc, begin(d, devices, err));
    notify_caller(d, rc != ST_OK ? err : NULL);
    if (rc == ST_OK) {
        const struct memory_groups *groups = &d->sched->workers.groups;
        log_info("the memory of workers is limited by %s%s",
                 groups->on ? "cgroups in " : "RLIMIT_DATA: ", groups->on ? groups->root : groups->why_not);
        log_info("serving %s, commands at %s", d->store_path, control_server_address(d->socket.server));
        rc = run(d, err);
    }
    end(d);
    while (rc == ST_BUSY && store_is_address(d->store_path) && begin_without_lost(d, devices, err)) {
        error_clear(err);
        rc = run(d, err);
        end(d);
    }
    if (rc == ST_INTERRUPTED) { /* how a daemon ends */
        log_info("asked to stop; running studies continue when a daemon starts again");
        rc = ST_OK;
    } else if (rc != ST_OK && d->log != NULL) { /* else main prints it */
        log_error("%s", err->text);
    }
    return rc;
}

/* In the background: a process without terminal, whose first words come back through a pipe. */
static enum status detach(struct daemon_cmd *d, bool *ret_is_child, struct error *err)
{
    char text[ERROR_TEXT_MAX];
    size_t n = 0;
    ssize_t got;
    int fds[2], state = 0;

    *ret_is_child = false;
    if (pipe2(fds, O_CLOEXEC) != 0)
        return FAIL(err, ST_IO, "cannot make a pipe: %s", strerror(errno));
    fflush(NULL);
    pid_t pid = fork();
    if (pid < 0) {
        close(fds[0]);
        close(fds[1]);
        return FAIL(err, ST_IO, "cannot start a process: %s", strerror(errno));
    }
    if (pid == 0) {
        int null = open("/dev/null", O_RDWR | O_CLOEXEC);
        setsid();
        for (int fd = 0; null >= 0 && fd <= STDERR_FILENO; fd++)
            dup2(null, fd);
        close(fds[0]);
        d->ready_fd = fds[1];
        *ret_is_child = true;
        return ST_OK;
    }
    close(fds[1]);
    while ((got = read(fds[0], text + n, sizeof text - 1 - n)) > 0 || (got < 0 && errno == EINTR))
        n += got > 0 ? (size_t)got : 0;
    close(fds[0]);
    text[n] = '\0';
    if (n > 0 || waitpid(pid, &state, WNOHANG) == pid)
        return FAIL(err, ST_IO, "%s", n > 0 ? text : "the daemon ended before it could begin");
    STRBUF(store, OUTPUT_MAX_BYTES);
    strbuf_add_shell(&store, d->store_path);
    printf("daemon %ld serves %s\n"
           "  log     %s\n"
           "  look    trawl ls --store %s\n"
           "  end it  kill %ld     # running trials are kept and continue with the next daemon\n",
           (long)pid, d->store_path, d->log_path, store.text, (long)pid);
    return ST_OK;
}

static enum status start(struct daemon_cmd *d, struct error *err)
{
    bool is_child = false;

    if (d->detach && d->log_path == NULL) {
        char beside[PATH_MAX];
        const char *base = store_is_address(d->store_path) ? store_beside(d->store_path, beside) : d->store_path;
        size_t size = strlen(base) + sizeof ".log";
        d->default_log = mem_alloc(size);
        snprintf(d->default_log, size, "%s.log", base);
        d->log_path = d->default_log;
    }
    if (d->log_path != NULL)
        TRY(check_output(d->log_path, OUTPUT_OTHER, NULL, 0, err));
    if (d->detach) {
        TRY(detach(d, &is_child, err));
        if (!is_child)
            return ST_OK;
    }
    enum status rc = serve(d, err);
    log_file_close(d->log);
    d->log = NULL;
    return rc;
}

static enum status check_usage(const struct daemon_cmd *d, struct error *err)
{
    if (d->log_mb < 1 || d->log_mb > 100000)
        return FAIL(err, ST_USAGE, "daemon: --log-mb is %lld, 1 to 100000 are allowed", (long long)d->log_mb);
    if (d->log_keep > 1000)
        return FAIL(err, ST_USAGE, "daemon: --log-keep is %lld, 0 to 1000 are allowed", (long long)d->log_keep);
    return check_writable(d->store_path, err);
}

/* Its [sweep] options; the game only makes the config whole. */
static enum status load_settings(struct daemon_cmd *d, struct error *err)
{
    char text[32];

    TRY(setup_load(d->setup, "cartpole", err));
    if (d->devices != NULL)
        TRY(config_set(d->setup->config, CONFIG_COMMAND, "sweep.devices", d->devices, "--devices", err));
    if (d->runs_per_device > 0) {
        snprintf(text, sizeof text, "%lld", (long long)d->runs_per_device);
        TRY(config_set(d->setup->config, CONFIG_COMMAND, "sweep.runs_per_device", text, "--runs-per-device", err));
    }
    TRY(setup_finish(d->setup, err));
    return devices_check(&d->setup->sweep, d->setup->train.device, err); /* before anything starts */
}

enum status cmd_daemon(int argc, char **argv, struct error *err)
{
    struct daemon_cmd d = {.store_path = "trawl.db", .log_mb = 10, .log_keep = 5, .ready_fd = -1};
    struct cli_words words;
    const struct cli_opt opts[] = {
        {"store", 0, CLI_STORE, &d.store_path, "FILE",
         "the store, created if missing: a file, or postgresql://HOST/DATABASE (trawl.db)"},
        {"devices", 0, CLI_TEXT, &d.devices, "LIST",
         "auto, cpu, cuda:0,cuda:1, ssh:HOST, slurm:gpu=1*N, cmd:COMMAND (auto)"},
        {"runs-per-device", 0, CLI_INT, &d.runs_per_device, "N", "trials at a time on each device (1)"},
        {"detach", 0, CLI_FLAG, &d.detach, NULL, "run in the background; the log is then STORE.log"},
        {"log", 0, CLI_TEXT, &d.log_path, "FILE", "log into a file that rotates (stderr)"},
        {"log-mb", 0, CLI_INT, &d.log_mb, "N", "begin a new log file at N MB (10)"},
        {"log-keep", 0, CLI_INT, &d.log_keep, "N", "keep N old log files (5)"},
    };
    const struct cli cli = {
        .name = "daemon",
        .synopsis = "trawl daemon [--store FILE] [--devices LIST] [--runs-per-device N] [--detach] [--log FILE]",
        .about = "Runs all studies of a store, side by side on the same devices, until it is stopped (Ctrl-C,\n"
                 "SIGTERM). `trawl sweep CONFIG --name NAME --store FILE` hands it a study and watches; leaving "
                 "does\nnot stop the study. `trawl pause`, `continue`, `stop`, `add` and `priority` control it, "
                 "`trawl ls` and\n`show` show it. Studies that were running when the daemon ended, for whatever "
                 "reason, continue when\nit starts again. On a store in PostgreSQL a second daemon, also on another "
                 "machine, stands by and takes over\n"
                 "within 10 s when the first ends; studies that a `trawl sweep` runs are left to it while it lives. "
                 "[sweep] options that concern the machine (hang_timeout_s, worker_memory) can be given as\n"
                 "--sweep.KEY.",
        .examples = "  trawl daemon --store runs.db\n"
                    "  trawl daemon --store runs.db --devices cuda:all --detach\n"
                    "  trawl sweep night.ini --store runs.db --name night --wall-time 8h\n"
                    "  systemctl --user start trawl@runs     (examples/trawl@.service)",
        CLI_OPTS(opts),
    };
    enum status rc = setup_create(&d.setup, err);

    THEN(rc, config_take_args(d.setup->config, &argc, argv, err));
    THEN(rc, cli_parse(&cli, argc, argv, &words, err));
    if (rc == ST_OK && !words.help) {
        rc = check_usage(&d, err);
        THEN(rc, load_settings(&d, err));
        THEN(rc, start(&d, err));
    }
    setup_destroy(d.setup);
    mem_free(d.default_log);
    return rc;
}
