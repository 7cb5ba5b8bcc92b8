/* worker_limits.c - limits that a worker sets itself before it opens its device: cores, memory, and being the first
 * process that the kernel ends when the machine runs out of memory. */
#include "sweep/worker/worker_limits.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/resource.h>

#define OOM_SCORE_ADJ "500" /* of -1000 .. 1000: a worker goes before its controller and before other programs */

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SHADOWED 1 /* a sanitizer's shadow counts as data: no limit would leave anything */
#else
#define SHADOWED 0
#endif

static bool cores_parse(const char *text, cpu_set_t *ret_set)
{
    char *end;

    CPU_ZERO(ret_set);
    while (*text != '\0') {
        long from = strtol(text, &end, 10), to = from;
        if (end == text)
            return false;
        if (*end == '-') {
            text = end + 1;
            to = strtol(text, &end, 10);
            if (end == text)
                return false;
        }
        if (from < 0 || to < from || to >= CPU_SETSIZE || (*end != ',' && *end != '\0'))
            return false;
        for (long i = from; i <= to; i++)
            CPU_SET((size_t)i, ret_set);
        text = *end == ',' ? end + 1 : end;
    }
    return CPU_COUNT(ret_set) > 0;
}

static void hold_cores(const char *text)
{
    cpu_set_t set;

    if (!cores_parse(text, &set))
        log_warn("'%s' is not a set of cores, all are used, continuing", text);
    else if (sched_setaffinity(0, sizeof set, &set) != 0)
        log_warn("cannot keep to the cores %s (%s), continuing", text, strerror(errno));
}

/* Part i of n of the cores that we may use; with fewer cores than parts each part is one core, by turns. */
static void hold_share(int i, int n)
{
    size_t n_cores, at = 0, from, to;
    cpu_set_t set, part;

    if (sched_getaffinity(0, sizeof set, &set) != 0 || i < 0 || n < 1 || i >= n)
        return;
    n_cores = (size_t)CPU_COUNT(&set);
    from = n_cores < (size_t)n ? (size_t)i % n_cores : (size_t)i * n_cores / (size_t)n;
    to = n_cores < (size_t)n ? from + 1 : ((size_t)i + 1) * n_cores / (size_t)n;
    CPU_ZERO(&part);
    for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &set)) {
            if (at >= from && at < to)
                CPU_SET(cpu, &part);
            at++;
        }
    if (sched_setaffinity(0, sizeof part, &part) != 0)
        log_warn("cannot keep to part %d of %d of the cores (%s), continuing", i + 1, n, strerror(errno));
}

static void amount_text(double bytes, char *buf, size_t size)
{
    if (bytes < 1e6)
        snprintf(buf, size, "%.0f byte%s", bytes, bytes == 1 ? "" : "s");
    else
        snprintf(buf, size, "%.4g MB", bytes / 1e6);
}

bool worker_limits_explain(int64_t memory_bytes, char *buf, size_t size)
{
    unsigned long long pages[6] = {0}; /* of /proc/self/statm: all, resident, shared, text, 0, data */
    double page = (double)sysconf(_SC_PAGESIZE), space_left = INFINITY, data_left = INFINITY;
    FILE *file = fopen("/proc/self/statm", "re");
    struct rlimit space;
    char amount[32];

    if (file != NULL && fscanf(file, "%llu %llu %llu %llu %llu %llu", &pages[0], &pages[1], &pages[2], &pages[3],
                               &pages[4], &pages[5]) != 6)
        pages[0] = pages[5] = 0;
    if (file != NULL)
        fclose(file);
    if (getrlimit(RLIMIT_AS, &space) == 0 && space.rlim_cur != RLIM_INFINITY)
        space_left = (double)space.rlim_cur - page * (double)pages[0];
    if (memory_bytes > 0)
        data_left = (double)memory_bytes - page * (double)pages[5];
    if (space_left < data_left) {
        amount_text((double)space.rlim_cur, amount, sizeof amount);
        snprintf(buf, size, "the limit of address space (ulimit -v) is %s for each process; raise it", amount);
    } else if (memory_bytes > 0) {
        amount_text((double)memory_bytes, amount, sizeof amount);
        snprintf(buf, size,
                 "sweep.worker_memory leaves it %s; raise it, or, if it is auto, lower sweep.runs_per_device", amount);
    }
    return memory_bytes > 0 || isfinite(space_left);
}

void worker_limits_apply(const cJSON *open_message)
{
    const cJSON *share = json_get(open_message, "share");
    const char *cores = json_get_str(open_message, "cores");
    int64_t bytes = 0;
    int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

    if (fd >= 0) {
        if (write(fd, OOM_SCORE_ADJ, strlen(OOM_SCORE_ADJ)) < 0)
            log_debug("oom_score_adj: %s", strerror(errno));
        close(fd);
    }
    if (cores != NULL)
        hold_cores(cores);
    if (cJSON_GetArraySize(share) == 2)
        hold_share(cJSON_GetArrayItem(share, 0)->valueint, cJSON_GetArrayItem(share, 1)->valueint);
    if (json_get_i64(open_message, "memory_bytes", &bytes) && bytes > 0 && !SHADOWED) {
        struct rlimit limit = {.rlim_cur = (rlim_t)bytes, .rlim_max = (rlim_t)bytes};
        if (setrlimit(RLIMIT_DATA, &limit) != 0) /* heap and private mappings: what is really taken */
            log_warn("cannot limit the memory to %lld bytes (%s), continuing", (long long)bytes, strerror(errno));
    }
}
