/* machine.h - what the operating system says of this machine. */
#ifndef BASE_MACHINE_H
#define BASE_MACHINE_H

#include <stddef.h>

/* What the kernel's groups of processes (cgroup v2: a container, a systemd unit, a batch job) allow. */
struct machine_quota {
    double cores; /* of time; 0: no limit */
    size_t memory_bytes; /* 0: no limit */
};
/* "/sys/fs/cgroup/user.slice/..." of this process, the folder of all groups where there is none. */
void machine_group(char *buf, size_t size);
/* Of the group in folder `group` and those that it is in, up to the folder `root`: the smallest. */
void machine_quota_read(const char *root, const char *group, struct machine_quota *ret_quota);

/* That this process may use, by its affinity and by its groups' quota (whole cores of it), at least 1. */
size_t machine_cores(void);
/* Of the machine, or of the groups' limit where that is less; 0 if unknown. For "this does not fit" before
 * allocating. */
size_t machine_memory_bytes(void);
double machine_process_age_s(void); /* since this process was started, to 10 ms; 0 if unknown */
size_t machine_resident_bytes(void); /* of this process; 0 if unknown */
/* The processor's model name, "unknown processor" when the system does not name it. */
void machine_cpu_name(char *ret_name, size_t size);

#endif
