/* machine.c - cores, memory and the processor's name, from Linux. */
#include "base/machine.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

size_t machine_cores(void)
{
    cpu_set_t set;
    long online;

    if (sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 0)
        return (size_t)CPU_COUNT(&set);
    online = sysconf(_SC_NPROCESSORS_ONLN); /* more cores than a cpu_set_t holds */
    return online > 0 ? (size_t)online : 1;
}

size_t machine_memory_bytes(void)
{
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);

    return pages > 0 && page > 0 ? (size_t)pages * (size_t)page : 0;
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
