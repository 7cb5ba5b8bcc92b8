/* devices.c - which workers a sweep has: `[sweep] devices` and runs_per_device as a list of devices, lanes and cores.
 * Invariants: (1) a GPU is one worker with a lane for each run; a CPU is a worker of one lane for each run, so that
 * runs do not share a process; (2) cores of CPU workers are disjoint as long as there are enough of them, and they are
 * where cost is time. */
#include "sweep/launch/devices.h"

#include "base/config/opt.h"
#include "base/os/machine.h"
#include "study/view/study_view.h"
#include "study/setup/setup.h"
#include "sweep/launch/device_class.h"
#include "sweep/launch/remote_devices.h"

#include <sched.h>

#define CORES_MAX 1024
#define MEMORY_MAX 1e18 /* bytes, far from the end of int64_t */
#define MEMORY_SHARE 0.9 /* of the machine's memory, that all workers together may take */

/* Have both the same GPU of this machine or of one that ssh reaches? */
static bool share_gpu(const struct device_spec *a, const struct device_spec *b)
{
    int from_a, n_a, from_b, n_b;

    return a->place == b->place && (a->place == PLACE_HERE || a->place == PLACE_SSH) && strcmp(a->host, b->host) == 0 &&
           device_gpus(a->name, &from_a, &n_a) && device_gpus(b->name, &from_b, &n_b) && from_a < from_b + n_b &&
           from_b < from_a + n_a;
}

enum status devices_add(struct devices *d, const struct device_spec *spec, struct error *err)
{
    for (size_t i = 0; i < d->n; i++) {
        if (strcmp(d->v[i].label, spec->label) == 0)
            return FAIL(err, ST_CONFIG, "sweep.devices names %s twice; runs_per_device puts several runs on one device",
                        spec->label);
        if (share_gpu(&d->v[i], spec))
            return FAIL(err, ST_CONFIG, "sweep.devices names a GPU twice, in %s and in %s; each is one worker's",
                        d->v[i].label, spec->label);
    }
    if (d->n == WORKERS_MAX)
        return FAIL(err, ST_CONFIG, "sweep.devices and runs_per_device ask for more than %d workers", WORKERS_MAX);
    d->v[d->n++] = *spec;
    return ST_OK;
}

static enum status add(struct devices *d, const char *name, const char *label, int lanes, struct error *err)
{
    struct device_spec spec = {.lanes = lanes};

    snprintf(spec.name, sizeof spec.name, "%s", name);
    snprintf(spec.label, sizeof spec.label, "%s", label);
    return devices_add(d, &spec, err);
}

static enum status add_cpu(struct devices *d, int64_t runs, struct error *err)
{
    char label[32];

    if (runs == 1)
        return add(d, "cpu", "cpu", 1, err);
    for (int64_t i = 0; i < runs; i++) {
        snprintf(label, sizeof label, "cpu/%lld", (long long)i);
        TRY(add(d, "cpu", label, 1, err));
    }
    return ST_OK;
}

static enum status add_gpus(struct devices *d, int n, int64_t runs, struct error *err)
{
    char name[24];

    for (int i = 0; i < n; i++) {
        snprintf(name, sizeof name, "cuda:%d", i);
        TRY(add(d, name, name, (int)runs, err));
    }
    return ST_OK;
}

/* One word of the list. */
static enum status add_word(struct devices *d, const char *word, int train_device,
                            const struct sweep_settings *settings, struct error *err)
{
    const int64_t runs = settings->runs_per_device;
    char name[24];
    int n = 0, first;

    if (strcmp(word, "all") == 0)
        word = "auto";
    if (remote_devices_is_word(word))
        return remote_devices_add(d, word, settings, err);
    if (strcmp(word, "cpu") == 0 || (strcmp(word, "auto") == 0 && train_device == KERN_CPU))
        return add_cpu(d, runs, err);
    if (strcmp(word, "auto") == 0 || strcmp(word, "cuda:all") == 0) {
        n = kern_cuda_count();
        if (n == 0 && strcmp(word, "auto") == 0 && train_device == KERN_AUTO)
            return add_cpu(d, runs, err);
        return add_gpus(d, n > 0 ? n : 1, runs, err); /* without a GPU the worker reports why */
    }
    if (strcmp(word, "cuda") == 0)
        word = "cuda:0";
    if (strlen(word) < sizeof name && device_gpus(word, &first, &n)) {
        if (n > 1 && runs > 1)
            return FAIL(err, ST_CONFIG,
                        "sweep.devices: %s gives a trial several GPUs, and sweep.runs_per_device %lld puts several "
                        "trials on one; set runs_per_device to 1, or name single GPUs",
                        word, (long long)runs);
        snprintf(name, sizeof name, "%.23s", word);
        return add(d, name, name, (int)runs, err);
    }
    return FAIL(err, ST_CONFIG,
                "sweep.devices: '%.40s' is not a device; use auto, cpu, cuda:all, a list like cuda:0,cuda:1 or "
                "cuda:0-3,cuda:4-7, ssh:HOST, "
                "slurm:gpu=1*N, cmd:COMMAND, or none alone",
                word);
}

/* "0-3,8" of cores[from .. to). */
static void cores_text(const int *cores, size_t from, size_t to, char *buf, size_t size)
{
    size_t used = 0;

    buf[0] = '\0';
    for (size_t i = from; i < to && used < size;) {
        size_t k = i;
        while (k + 1 < to && cores[k + 1] == cores[k] + 1)
            k++;
        used += (size_t)snprintf(buf + used, size - used, i == k ? "%s%d" : "%s%d-%d", i > from ? "," : "", cores[i],
                                 cores[k]);
        i = k + 1;
    }
    if (used >= size)
        buf[0] = '\0'; /* too ragged a set to be written: all cores for all */
}

static bool is_cpu_here(const struct device_spec *spec)
{
    return spec->place == PLACE_HERE && strcmp(spec->name, "cpu") == 0;
}

static size_t count_cpu(const struct devices *d)
{
    size_t n = 0;

    for (size_t i = 0; i < d->n; i++)
        n += is_cpu_here(&d->v[i]);
    return n;
}

/* Trials that share a core hold each other up, by turns: the same trial costs 4 to 25 times as much, and another time
 * not. */
static enum status check_crowd(struct devices *d, bool cost_is_time, bool is_program, struct error *err)
{
    size_t n_cpu = count_cpu(d), n_cores = machine_cores();

    d->crowded = n_cpu > n_cores;
    if (!d->crowded || !cost_is_time || is_program) /* a program may wait more than it computes, or report a cost */
        return ST_OK;
    return FAIL(
        err, ST_CONFIG,
        "sweep.runs_per_device: %zu trials at a time on the CPU, which has %zu core%s for them: trials that "
        "share a core hold each other up, and their time is not a cost to compare; use at most %zu, or sweep.cost "
        "= env_steps, which counts steps",
        n_cpu, n_cores, n_cores == 1 ? "" : "s", n_cores);
}

/* Disjoint core sets for n CPU workers; with fewer cores than workers each gets one, by turns. */
static void share_cores(struct devices *d)
{
    int cores[CORES_MAX];
    size_t n_cores = 0, n_cpu = count_cpu(d), at = 0, most = machine_cores();
    cpu_set_t set;

    if (sched_getaffinity(0, sizeof set, &set) != 0)
        return;
    for (int i = 0; i < CPU_SETSIZE && n_cores < CORES_MAX && n_cores < most; i++) /* no more than a quota allows */
        if (CPU_ISSET(i, &set))
            cores[n_cores++] = i;
    if (n_cpu < 2 || n_cores == 0)
        return;
    for (size_t i = 0; i < d->n; i++) {
        size_t from = at * n_cores / n_cpu, to = (at + 1) * n_cores / n_cpu;
        if (!is_cpu_here(&d->v[i]))
            continue;
        if (n_cores < n_cpu) {
            from = at % n_cores;
            to = from + 1;
        }
        cores_text(cores, from, to, d->v[i].cores, sizeof d->v[i].cores);
        at++;
    }
}

/* "0", "4G", "auto": an even share of the machine. GPU drivers map more than they use: only a stated limit is for
 * them. */
static enum status share_memory(struct devices *d, const char *text, bool is_program, struct error *err)
{
    double bytes = 0;
    bool automatic = strcmp(text, "auto") == 0;
    size_t n_here = 0;

    for (size_t i = 0; i < d->n; i++)
        n_here += d->v[i].place == PLACE_HERE;
    if (automatic)
        bytes = MEMORY_SHARE * (double)machine_memory_bytes() / (double)(n_here > 0 ? n_here : 1);
    else if (!num_parse_f64(text, &bytes) || !(bytes >= 0 && bytes <= MEMORY_MAX))
        return FAIL(err, ST_CONFIG, "sweep.worker_memory is '%.60s'; use auto, 0 for no limit, or bytes like 4G", text);
    for (size_t i = 0; i < d->n; i++) {
        if (automatic && d->v[i].place != PLACE_HERE) /* its host's own limits hold there, or those of its job */
            continue;
        if (d->v[i].place == PLACE_HERE)
            d->v[i].group_bytes = (int64_t)bytes; /* counts what is used, whatever a driver maps */
        if (!automatic || (strcmp(d->v[i].name, "cpu") == 0 && !is_program)) /* programs map more than they use */
            d->v[i].memory_bytes = (int64_t)bytes;
    }
    return ST_OK;
}

enum status devices_parse(const struct sweep_settings *settings, int train_device, struct devices *ret_devices,
                          struct error *err)
{
    const char *at = settings->devices;

    ret_devices->n = 0;
    ret_devices->crowded = false;
    if (strcmp(at, DEVICES_NONE) == 0)
        return ST_OK;
    while (*(at += strspn(at, ", ")) != '\0') {
        char word[OPT_STR_MAX];
        size_t n = remote_devices_is_command(at) ? strlen(at) : strcspn(at, ", ");
        snprintf(word, sizeof word, "%.*s", (int)n, at);
        TRY(add_word(ret_devices, word, train_device, settings, err));
        at += n;
    }
    if (ret_devices->n == 0)
        return FAIL(err, ST_CONFIG, "sweep.devices is empty; use auto, cpu, cuda:all or a list like cuda:0,cuda:1");
    TRY(check_crowd(ret_devices, study_cost_is_time((enum search_cost)settings->cost), settings->is_program, err));
    share_cores(ret_devices);
    return share_memory(ret_devices, settings->worker_memory, settings->is_program, err);
}

enum status devices_check(const struct sweep_settings *settings, int train_device, struct error *err)
{
    MEM_LOCAL struct devices *devices = mem_alloc(sizeof *devices);

    TRY(device_costs_check(settings->device_costs, err));
    return devices_parse(settings, train_device, devices, err);
}

/* The most that the search has of a parameter of whole numbers; otherwise: it is not searched. */
static int64_t searched_most(const struct search *search, const char *key, int64_t otherwise)
{
    size_t i = search_find(search, key);
    int64_t most = 0, value;

    if (i == search->space.dim)
        return otherwise;
    const struct space_param *p = &search->space.params[i];
    if (p->scale != SPACE_CATEGORICAL)
        return (int64_t)(p->scale == SPACE_POW2 ? exp2(floor(log2(p->max))) : p->max);
    for (size_t k = 0; k < p->n_choices; k++)
        if (num_parse_i64(search->choices[i][k], &value) && value > most)
            most = value;
    return most;
}

enum status devices_check_width(const struct device_spec *spec, const struct search *search, int64_t wanted,
                                struct error *err)
{
    int first, n;

    wanted = searched_most(search, "train.devices", wanted);
    if (!device_gpus(spec->name, &first, &n) || n * (spec->hosts > 1 ? spec->hosts : 1) >= wanted)
        return ST_OK;
    return FAIL(
        err, ST_CONFIG,
        "train.devices is up to %lld, and %s of sweep.devices has %d GPU%s; give each trial a group of that many, "
        "like cuda:0-%lld",
        (long long)wanted, spec->label, n, n == 1 ? "" : "s", (long long)wanted - 1);
}
