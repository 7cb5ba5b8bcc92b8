/* machine.c - cores, memory and the processor's name, from Linux. */
#include "base/os/machine.h"

#include <sched.h>

#define CGROUP_ROOT "/sys/fs/cgroup"
#define GROUP_MAX 1024

void machine_group(char *buf, size_t size)
{
    char line[GROUP_MAX];
    FILE *file = fopen("/proc/self/cgroup", "re");

    snprintf(buf, size, "%s", CGROUP_ROOT);
    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        if (strncmp(line, "0::/", 4) == 0)
            snprintf(buf, size, "%s%.*s", CGROUP_ROOT, (int)strcspn(line + 3, "\n"), line + 3);
    if (file != NULL)
        fclose(file);
}

/* The first line of a file in a group's folder; false: no such file. */
static bool read_line(const char *group, const char *name, char *buf, size_t size)
{
    char path[GROUP_MAX + 32];

    snprintf(path, sizeof path, "%s/%s", group, name);
    FILE *file = fopen(path, "re");
    bool ok = file != NULL && fgets(buf, (int)size, file) != NULL;
    if (file != NULL)
        fclose(file);
    return ok;
}

void machine_quota_read(const char *root, const char *group, struct machine_quota *ret_quota)
{
    char at[GROUP_MAX], line[128];
    unsigned long long time_us, period_us, bytes;

    *ret_quota = (struct machine_quota){0};
    snprintf(at, sizeof at, "%s", group);
    for (;;) {
        if (read_line(at, "cpu.max", line, sizeof line) && sscanf(line, "%llu %llu", &time_us, &period_us) == 2 &&
            period_us > 0) { /* "max 100000": no limit */
            double cores = (double)time_us / (double)period_us;
            if (ret_quota->cores == 0 || cores < ret_quota->cores)
                ret_quota->cores = cores;
        }
        if (read_line(at, "memory.max", line, sizeof line) && sscanf(line, "%llu", &bytes) == 1 &&
            (ret_quota->memory_bytes == 0 || bytes < ret_quota->memory_bytes))
            ret_quota->memory_bytes = (size_t)bytes;
        char *slash = strrchr(at, '/');
        if (strlen(at) <= strlen(root) || slash == NULL)
            return;
        *slash = '\0';
    }
}

static struct machine_quota own_quota(void)
{
    char group[GROUP_MAX];
    struct machine_quota quota;

    machine_group(group, sizeof group);
    machine_quota_read(CGROUP_ROOT, group, &quota);
    return quota;
}

size_t machine_cores(void)
{
    double quota = own_quota().cores;
    size_t cores = 0;
    cpu_set_t set;

    if (sched_getaffinity(0, sizeof set, &set) == 0)
        cores = (size_t)CPU_COUNT(&set);
    if (cores == 0) { /* more cores than a cpu_set_t holds */
        long online = sysconf(_SC_NPROCESSORS_ONLN);
        cores = online > 0 ? (size_t)online : 1;
    }
    /* A thread beyond the quota would make the others wait for the rest of a period. */
    if (quota > 0 && quota < (double)cores)
        cores = quota >= 1 ? (size_t)quota : 1;
    return cores;
}

size_t machine_memory_bytes(void)
{
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    size_t bytes = pages > 0 && page > 0 ? (size_t)pages * (size_t)page : 0, limit = own_quota().memory_bytes;

    return limit > 0 && (bytes == 0 || limit < bytes) ? limit : bytes;
}

double machine_process_age_s(void)
{
    FILE *file = fopen("/proc/self/stat", "r");
    char line[1024] = "";
    unsigned long long started = 0; /* in ticks since boot: the 20th number after the name, which may hold anything */

    if (file == NULL)
        return 0.0;
    if (fgets(line, sizeof line, file) == NULL)
        line[0] = '\0';
    fclose(file);
    const char *at = strrchr(line, ')');
    if (at == NULL ||
        sscanf(at + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu", &started) !=
            1)
        return 0.0;
    double age_s = clock_boot_s() - (double)started / (double)sysconf(_SC_CLK_TCK);
    return age_s > 0.0 ? age_s : 0.0;
}

size_t machine_resident_bytes(void)
{
    FILE *file = fopen("/proc/self/statm", "r");
    long all = 0, resident = 0;

    if (file == NULL)
        return 0;
    if (fscanf(file, "%ld %ld", &all, &resident) != 2 || resident < 0)
        resident = 0;
    fclose(file);
    return (size_t)resident * (size_t)sysconf(_SC_PAGESIZE);
}

void machine_cpu_name(char *ret_name, size_t size)
{
    FILE *f = fopen("/proc/cpuinfo", "r");
    char line[512];

    snprintf(ret_name, size, "unknown processor");
    if (f == NULL)
        return;
    while (fgets(line, sizeof line, f) != NULL) {
        char *colon = strchr(line, ':');
        if (colon == NULL || strncmp(line, "model name", 10) != 0)
            continue;
        line[strcspn(line, "\n")] = '\0';
        snprintf(ret_name, size, "%s", colon + 1 + strspn(colon + 1, " \t"));
        break;
    }
    fclose(f);
}
