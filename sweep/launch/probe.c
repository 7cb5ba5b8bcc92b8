/* probe.c - starts a worker to test whether one can run there.
 * Invariant: what probe_host started is gone when it returns. */
#include "sweep/launch/probe.h"

#include "base/text/json.h"
#include "sweep/launch/device_spec.h"
#include "sweep/launch/greeting.h"
#include "sweep/launch/launch_start.h"
#include "sweep/launch/proto.h"
#include <sys/wait.h>

#define LOOK_MS 100
#define WORDS_MAX 1024

/* What opens a device and costs nothing. */
static const char tiny_config[] = "[env]\nname = squared\nn = 1\n[policy]\ncore = none\nhidden_size = 8\n"
                                  "[train]\ntotal_agents = 16\nhorizon = 16\nminibatch_size = 256\n";

struct attempt {
    const struct device_spec *spec;
    bool open_device;
    double begun_s, patience_s;
    struct probe *probe;
    struct proto proto;
    pid_t pid;
    int log_fd;
    char words[WORDS_MAX]; /* the end of its stderr */
};

static void read_words(struct attempt *a)
{
    char buf[512];
    ssize_t got;

    while ((got = read(a->log_fd, buf, sizeof buf - 1)) > 0) {
        size_t n = strlen(a->words), keep = sizeof a->words - sizeof buf;
        buf[got] = '\0';
        if (n > keep) {
            memmove(a->words, a->words + n - keep, keep + 1);
            n = keep;
        }
        snprintf(a->words + n, sizeof a->words - n, "%s", buf);
    }
}

/* The last line of its stderr. */
static const char *last_words(struct attempt *a)
{
    read_words(a);
    for (size_t n = strlen(a->words); n > 0 && (a->words[n - 1] == '\n' || a->words[n - 1] == '\r'); n--)
        a->words[n - 1] = '\0';
    char *line = strrchr(a->words, '\n');
    line = line != NULL ? line + 1 : a->words;
    return *line != '\0' ? line : "no output";
}

/* It has closed its end: why? */
static enum status explain(struct attempt *a, struct error *err)
{
    const struct device_spec *spec = a->spec;
    int state = 0, code;

    for (int i = 0; waitpid(a->pid, &state, WNOHANG) == 0 && i < 20; i++) {
        usleep(50000);
        if (i == 19)
            return FAIL(err, ST_IO, "it closed its output and did not end (%s)", last_words(a));
    }
    a->pid = 0;
    code = WIFEXITED(state) ? WEXITSTATUS(state) : -1;
    if (spec->place == PLACE_SSH && code == 255)
        return FAIL(err, ST_IO,
                    "ssh cannot log in: %s; make `ssh -o BatchMode=yes %s true` work first: a key without a "
                    "passphrase or in an agent, and the host in known_hosts",
                    last_words(a), spec->host);
    if (code == 127 || code == 126)
        return FAIL(err, ST_IO,
                    "there is no such program there (%s); install this build on it, or name its place in "
                    "sweep.remote_program",
                    last_words(a));
    if (spec->place == PLACE_SLURM)
        return FAIL(err, ST_IO, "srun ended with exit code %d: %s; see `sinfo` and `squeue`", code, last_words(a));
    return FAIL(err, ST_IO, "it ended with exit code %d before it was a worker: %s", code, last_words(a));
}

/* The next message of this type. */
static enum status await(struct attempt *a, const char *type, cJSON **ret_message, struct error *err)
{
    for (;;) {
        TRY(proto_receive(&a->proto, LOOK_MS, ret_message, err));
        read_words(a);
        const char *got = *ret_message != NULL ? json_get_str(*ret_message, "type") : NULL;
        if (got != NULL && strcmp(got, type) == 0)
            return ST_OK;
        cJSON_Delete(*ret_message);
        *ret_message = NULL;
        if (a->proto.closed)
            return explain(a, err);
        if (clock_mono_s() - a->begun_s > a->patience_s)
            return FAIL(err, ST_IO, "no %s within %.0f s (%s)%s", type, a->patience_s, last_words(a),
                        a->spec->place == PLACE_SLURM ? "; the job may wait for its turn: see `squeue`" : "");
    }
}

static enum status open_device(struct attempt *a, struct error *err)
{
    cJSON *open = proto_message("open"), *hello = NULL;
    enum status rc = ST_OK;

    json_add_str(open, "config", tiny_config);
    json_add_str(open, "device", a->spec->name);
    TRY(proto_send(&a->proto, open, err));
    TRY(await(a, "hello", &hello, err));
    const char *reason = json_get_str(hello, "reason");
    const char *device = json_get_str(hello, "device");
    if (reason != NULL)
        rc = FAIL(err, ST_DEVICE, "it does not open %s: %s", a->spec->name, reason);
    else
        snprintf(a->probe->device, sizeof a->probe->device, "%s", device != NULL ? device : "");
    cJSON_Delete(hello);
    return rc;
}

static enum status try_host(struct attempt *a, struct error *err)
{
    struct greeting greeting;
    cJSON *message = NULL;

    TRY(await(a, "greeting", &message, err));
    a->probe->greeting_s = clock_mono_s() - a->begun_s;
    enum status rc = greeting_read(message, &greeting, err);
    cJSON_Delete(message);
    snprintf(a->probe->host, sizeof a->probe->host, "%s", greeting.host);
    a->probe->gpus = greeting.gpus;
    a->probe->cores = greeting.cores;
    TRY(rc);
    return a->open_device ? open_device(a, err) : ST_OK;
}

/* Closing the socket ends a worker by itself; a command that stays is killed. */
static void end(struct attempt *a)
{
    proto_destroy(&a->proto);
    if (a->pid > 0 && a->probe->why.status != ST_OK)
        launch_kill(a->spec, a->pid, false);
    for (int i = 0; a->pid > 0 && i < 100; i++) {
        if (waitpid(a->pid, NULL, WNOHANG) != 0)
            a->pid = 0;
        else
            usleep(20000);
    }
    if (a->pid > 0) {
        launch_kill(a->spec, a->pid, true);
        (void)waitpid(a->pid, NULL, 0);
    }
    close(a->log_fd);
}

static void *attempt_main(void *arg)
{
    struct attempt *a = arg;

    a->begun_s = clock_mono_s();
    if (launch_start(a->spec, NULL, &a->pid, &a->proto, &a->log_fd, &a->probe->why) != ST_OK)
        return NULL;
    (void)!try_host(a, &a->probe->why);
    end(a);
    return NULL;
}

void probe_host(const struct device_spec *spec, bool open, double patience_s, struct probe *ret_probe)
{
    MEM_LOCAL struct attempt *a = mem_alloc(sizeof *a);

    *ret_probe = (struct probe){.gpus = -1, .cores = -1};
    *a = (struct attempt){.spec = spec, .open_device = open, .patience_s = patience_s, .probe = ret_probe};
    (void)attempt_main(a);
}

void probe_hosts(const struct device_spec *specs, size_t n, struct probe *ret_probes, double patience_s)
{
    MEM_LOCAL struct attempt *attempts = mem_array(n, sizeof *attempts);
    MEM_LOCAL pthread_t *threads = mem_array(n, sizeof *threads);
    MEM_LOCAL bool *runs = mem_array(n, sizeof *runs);

    for (size_t i = 0; i < n; i++) {
        if (!specs[i].expand)
            continue;
        attempts[i] = (struct attempt){.spec = &specs[i], .patience_s = patience_s, .probe = &ret_probes[i]};
        runs[i] = pthread_create(&threads[i], NULL, attempt_main, &attempts[i]) == 0;
        if (!runs[i])
            (void)attempt_main(&attempts[i]);
    }
    for (size_t i = 0; i < n; i++)
        if (runs[i])
            pthread_join(threads[i], NULL);
}
