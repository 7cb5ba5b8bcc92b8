/* cmd_worker.c - `trawl worker` (hidden): trains trials for a controller, in-process, on one device, several at a time
 * if asked. This is the main thread: it opens the device, reads the controller's messages, and passes them on
 * (lane_pool.h). The controller is at the other end of fd 3, or, with --stdio, of stdin and stdout: then ssh, srun or
 * any other command is between them, and a signal means that this machine is wanted for something else.
 * Invariants: (1) the worker ends when the controller's end closes or the controller dies; (2) the device
 * stays open between trials, and what a trial left on it (memory, recorded operations) waits for the next of the same
 * shape; (3) a device that this process has lost ends it: a trial that was alone on it reports that first; with several
 * trials the guilty one is unknown, and the process ends without results. The controller then starts another. */
#include "base/text/json.h"
#include "base/os/machine.h"
#include "study/setup/setup.h"
#include "study/version.h"
#include "sweep/cmd/commands.h"
#include "sweep/launch/device_spec.h"
#include "sweep/launch/greeting.h"
#include "sweep/launch/proto.h"
#include "sweep/program/guard.h"
#include "sweep/worker/lane_messages.h"
#include "sweep/worker/lane_pool.h"
#include "sweep/worker/worker_limits.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#define WORKER_FD 3
#define LEAST_BYTES (32u << 20) /* that a worker needs for a config and its lanes, whatever it trains */
#define LOOK_MS 200 /* at whether the device is lost */
#define LOST_PATIENCE_S 3.0 /* for the other lanes' results */
#define CONTROLLER_PATIENCE_S                                                                                          \
    300 /* how long a controller elsewhere, which sends a ping every few seconds, may be silent */
#define END_PATIENCE_S 60 /* of a remote worker, which no controller can kill: what hangs then */

static volatile sig_atomic_t sent_away; /* the signal; 0: none */
static pid_t controller; /* of a worker on its machine; 0: it is elsewhere */
static void (*count_stop)(int); /* the handler of SIGCONT that was there before */

/* "auto", "cpu", "cuda:1", "cuda:0-3"; what trials ask for does not matter then. */
static enum status choose_device(struct lane_pool *pool, const char *name, struct error *err)
{
    pool->device = -1;
    if (name == NULL || strcmp(name, "auto") == 0)
        return ST_OK;
    if (strcmp(name, "cpu") == 0) {
        pool->device = KERN_CPU;
        return ST_OK;
    }
    if (device_gpus(name, &pool->ordinal, &pool->n_gpus)) {
        pool->device = KERN_CUDA;
        return ST_OK;
    }
    return FAIL(err, ST_CONFIG, "no device is called \"%s\"; auto, cpu, cuda:NUMBER or cuda:FIRST-LAST are", name);
}

static enum status open_lanes(struct lane_pool *pool, const cJSON *message, int64_t *ret_lanes, struct error *err)
{
    struct setup *setup = NULL;

    *ret_lanes = 1;
    (void)json_get_i64(message, "lanes", ret_lanes);
    if (*ret_lanes < 1 || *ret_lanes > SWEEP_LANES_MAX)
        return FAIL(err, ST_CONFIG, "%lld runs on one device at a time; 1 to %d are allowed", (long long)*ret_lanes,
                    SWEEP_LANES_MAX);
    worker_limits_apply(message);
    (void)json_get_i64(message, "memory_bytes", &pool->memory_bytes);
    void *probe = mem_try_alloc(LEAST_BYTES); /* later the process would just end, which names no limit */
    if (probe == NULL)
        return FAIL(err, ST_NOMEM, "%u MB for a worker do not fit", LEAST_BYTES >> 20);
    mem_free(probe);
    TRY(choose_device(pool, json_get_str(message, "device"), err));
    TRY(lane_pool_read_config(pool, message, &setup, err));
    if (*ret_lanes == 1 && !setup_is_program(setup))
        session_expect_one(setup);
    int64_t hosts = json_i64_or(message, "hosts", 0);
    if (hosts > 0 &&
        train_hosts_listen(&pool->hosts, (size_t)hosts, json_get_str(message, "listen"), program_text, err) != ST_OK) {
        setup_destroy(setup);
        return err->status;
    }
    return lane_pool_open(pool, setup, (size_t)*ret_lanes, err);
}

/* Out of memory in a worker whose memory is limited: the limit is what there is to change. */
static void explain_memory(int64_t bytes, struct error *why)
{
    const struct error found = *why;
    char limit[200];

    if (!worker_limits_explain(bytes, limit, sizeof limit))
        return;
    error_clear(why);
    (void)FAIL(why, found.status, "too little memory to begin with: %s (%.600s)", limit, found.text);
}

/* Opens the device and sends `hello`. */
static enum status open_device(struct lane_pool *pool, const cJSON *message, struct error *err)
{
    cJSON *hello = proto_message("hello");
    struct error why = {0};
    int64_t n_lanes = 1;
    enum status opened = pool->n_lanes > 0 ? FAIL(&why, ST_USAGE, "the worker has opened its device before")
                                           : open_lanes(pool, message, &n_lanes, &why);
    if (opened == ST_NOMEM)
        explain_memory(pool->memory_bytes, &why);
    const struct kern *kern = opened == ST_OK ? pool->lanes[0].session.kern : NULL;

    json_add_i64(hello, "pid", getpid());
    if (opened == ST_OK) {
        json_add_i64(hello, "lanes", n_lanes);
        json_add_str(hello, "device", kern != NULL ? kern_device_name(kern) : json_get_str(message, "device"));
    }
    if (kern != NULL) { /* a program that trains opens its device itself */
        json_add_str(hello, "kind", kern_kind(kern) == KERN_CPU ? "cpu" : "cuda");
        json_add_i64(hello, "threads", (int64_t)session_threads(&pool->lanes[0].session));
        json_add_str(hello, "vector_units", kern_vector_units(kern));
    }
    if (opened == ST_OK && pool->hosts != NULL)
        json_add_str(hello, "meets", train_hosts_where(pool->hosts));
    if (opened != ST_OK) {
        json_add_str(hello, "reason", why.text);
        json_add_bool(hello, "other_game", opened == ST_VERSION);
    }
    lane_pool_send(pool, hello);
    if (opened == ST_OK && json_get(message, "lanes") != NULL)
        return lane_pool_start_heartbeat(pool, err);
    return ST_OK;
}

/* ---- messages of the controller ---- */

/* A trial that no lane can take is answered like one that failed. */
static void refuse(struct lane_pool *pool, const cJSON *message)
{
    cJSON *json = proto_message("result");

    int64_t trial = json_i64_or(message, "trial", -1);
    int64_t attempt = json_i64_or(message, "attempt", -1);
    json_add_i64(json, "trial", trial);
    json_add_i64(json, "attempt", attempt);
    json_add_str(json, "state", "failed");
    json_add_f64(json, "cost_s", 0.0);
    json_add_str(json, "reason", "the worker has no lane free for it");
    json_add_bool(json, "lost", atomic_load(&pool->lost));
    lane_pool_send(pool, json);
}

/* Takes message; *ret_exit: it was the last. */
static enum status on_message(struct lane_pool *pool, cJSON *message, bool *ret_exit, struct error *err)
{
    const char *type = json_get_str(message, "type");
    enum status rc = ST_OK;
    int64_t trial = -1;

    if (type != NULL && strcmp(type, "chunk") == 0) {
        lane_pool_take_chunk(pool, message);
        return ST_OK;
    }
    if (type != NULL && strcmp(type, "run") == 0) {
        if (sent_away != 0) { /* it crossed our "leaving"; the controller queues the trial again */
            cJSON_Delete(message);
            return ST_OK;
        }
        if (lane_pool_give(pool, message))
            return ST_OK;
        refuse(pool, message);
    } else if (type != NULL && strcmp(type, "open") == 0) {
        rc = open_device(pool, message, err);
    } else if (type != NULL && strcmp(type, "stop") == 0) {
        (void)json_get_i64(message, "trial", &trial); /* without: all */
        lane_pool_stop(pool, trial, cJSON_IsTrue(json_get(message, "checkpoint")));
    } else if (type != NULL && strcmp(type, "exit") == 0) {
        *ret_exit = true;
    }
    cJSON_Delete(message);
    return rc;
}

/* A signal has come: the trials are saved and stopped, their checkpoints travel to the controller. */
static void leave(struct lane_pool *pool)
{
    cJSON *json = proto_message("leaving");
    char reason[80];

    snprintf(reason, sizeof reason, "it got signal %d (%s)", (int)sent_away, strsignal(sent_away));
    json_add_str(json, "reason", reason);
    log_info("%s: its trials are saved, then it ends", reason);
    lane_pool_send(pool, json);
    lane_pool_stop(pool, -1, true);
}

static enum status serve(struct lane_pool *pool, struct error *err)
{
    double heard_s = clock_mono_s();
    bool exit = false, leaves = false;

    while (!exit && !atomic_load(&pool->lost) && !atomic_load(&pool->gone) && !pool->proto.closed) {
        cJSON *message = NULL;
        TRY(proto_receive(&pool->proto, LOOK_MS, &message, err));
        if (message != NULL) {
            heard_s = clock_mono_s();
            TRY(on_message(pool, message, &exit, err));
        }
        if (sent_away != 0 && !leaves)
            leave(pool);
        leaves = leaves || sent_away != 0;
        if (leaves && lane_pool_is_idle(pool))
            break;
        if (pool->remote && clock_mono_s() - heard_s > CONTROLLER_PATIENCE_S)
            return FAIL(err, ST_IO, "no word from the controller for %d s; the worker ends", CONTROLLER_PATIENCE_S);
    }
    return ST_OK;
}

/* To give back what a hung device holds could take for ever: the process just ends. */
static void leave_lost(struct lane_pool *pool)
{
    double deadline = clock_mono_s() + LOST_PATIENCE_S;

    while (!atomic_load(&pool->silent) && !lane_pool_is_idle(pool) && clock_mono_s() < deadline)
        usleep(5000);
    pthread_mutex_lock(&pool->send_lock); /* no thread is in the middle of a message */
    _exit(EXIT_FAILURE);
}

static void on_signal(int number)
{
    sent_away = number;
}

/* The descriptors of the controller. Of stdio: nothing that a library prints gets between the messages, and the files
 * of trials are in a folder of ours. */
static enum status take_stdio(struct lane_pool *pool, int *ret_in, int *ret_out, struct error *err)
{
    const char *tmp = getenv("TMPDIR");
    struct sigaction action = {.sa_handler = on_signal};
    int null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

    *ret_in = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, WORKER_FD);
    *ret_out = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, WORKER_FD);
    if (null_fd < 0 || *ret_in < 0 || *ret_out < 0 || dup2(null_fd, STDIN_FILENO) < 0 ||
        dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
        return FAIL(err, ST_IO, "worker: no descriptors for --stdio: %s", strerror(errno));
    close(null_fd);
    snprintf(pool->dir, sizeof pool->dir, "%.200s/trawl-worker-XXXXXX", tmp != NULL && tmp[0] == '/' ? tmp : "/tmp");
    if (mkdtemp(pool->dir) == NULL)
        return FAIL(err, ST_IO, "worker: no folder %s for checkpoints: %s; set TMPDIR", pool->dir, strerror(errno));
    pool->remote = true;
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGUSR1, &action, NULL);
    return ST_OK;
}

/* Of a controller that has died: trials and devices may hang, and what games have forked is still ours to find. */
static void end_with_controller(void)
{
    if (controller == 0 || getppid() == controller)
        return;
    guard_sweep_up();
    (void)kill(getpid(), SIGKILL);
}

static void on_continue(int number)
{
    count_stop(number);
    end_with_controller();
}

/* SIGCONT is the one signal that a stopped process hears and can still answer. */
static void watch_controller(void)
{
    struct sigaction action;
    sigset_t heard;

    controller = getppid();
    sigaction(SIGCONT, NULL, &action);
    count_stop = action.sa_handler;
    action.sa_handler = on_continue;
    sigaction(SIGCONT, &action, NULL);
    sigemptyset(&heard);
    sigaddset(&heard, SIGCONT);
    pthread_sigmask(SIG_UNBLOCK, &heard, NULL); /* a thread of the controller may have blocked it */
    prctl(PR_SET_PDEATHSIG, SIGCONT);
}

static enum status take_socket(int *ret_in, int *ret_out, struct error *err)
{
    int type = 0;
    socklen_t size = sizeof type;

    if (getsockopt(WORKER_FD, SOL_SOCKET, SO_TYPE, &type, &size) != 0 || type != SOCK_STREAM)
        return FAIL(err, ST_USAGE,
                    "worker: this command is started by `trawl sweep` and not by hand; a command for another machine "
                    "is `trawl worker --stdio`, see docs/many-machines.md");
    *ret_in = *ret_out = WORKER_FD;
    /* A game that starts programs, or becomes one, does not hold it open. */
    (void)fcntl(WORKER_FD, F_SETFD, FD_CLOEXEC);
    watch_controller();
    return ST_OK;
}

static void remove_folder(const struct lane_pool *pool)
{
    char command[PATH_MAX + 16];

    if (rmdir(pool->dir) == 0 || errno != ENOTEMPTY)
        return;
    snprintf(command, sizeof command, "rm -rf '%s'", pool->dir); /* what programs have left there */
    if (strchr(pool->dir, '\'') == NULL && system(command) != 0)
        log_debug("%s is left", pool->dir);
}

enum status cmd_worker(int argc, char **argv, struct error *err)
{
    struct lane_pool *pool = mem_alloc(sizeof *pool);
    int in_fd = -1, out_fd = -1;

    signal(SIGINT, SIG_IGN); /* these reach the whole group or job; the controller decides what becomes of the trials */
    signal(SIGHUP, SIG_IGN);
    signal(SIGTERM, SIG_IGN);
    signal(SIGUSR1, SIG_IGN);
    signal(SIGUSR2, SIG_IGN);
    setvbuf(stdout, NULL, _IOLBF, 0); /* the last lines of a game that crashes are in the log */
    enum status rc = argc == 2 && strcmp(argv[1], "--stdio") == 0 ? take_stdio(pool, &in_fd, &out_fd, err)
                                                                  : take_socket(&in_fd, &out_fd, err);
    if (rc != ST_OK) {
        mem_free(pool);
        return rc;
    }
    pool->process_s = machine_process_age_s();
    lane_pool_create(pool, in_fd, out_fd);
    lane_pool_send(pool, greeting_make(pool->remote));
    rc = serve(pool, err);
    end_with_controller();
    if (pool->remote)
        (void)alarm(END_PATIENCE_S);
    if (atomic_load(&pool->lost))
        leave_lost(pool);
    lane_pool_stop(pool, -1, false);
    lane_pool_destroy(pool);
    if (pool->remote)
        remove_folder(pool);
    mem_free(pool);
    return rc;
}
