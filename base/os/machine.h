/* machine.h - cores, memory and processor of this machine, as the operating system reports them. */
#pragma once

#include "base/base.h"

/* The limits of a control group (cgroup v2: a container, a systemd unit, a batch job). */
struct machine_quota {
    double cores; /* CPU seconds a second; 0: no limit */
    size_t memory_bytes; /* 0: no limit */
};
/* "/sys/fs/cgroup/user.slice/...", the folder of this process' control group; "/sys/fs/cgroup" without one. */
void machine_group(char *buf, size_t size);
/* The smallest limits among the group in folder `group` and its parents up to the folder `root`. */
void machine_quota_read(const char *root, const char *group, struct machine_quota *ret_quota);

/* Cores that this process may use, by its affinity and its groups' quota (rounded down), at least 1. */
size_t machine_cores(void);
/* Memory of the machine, or the groups' limit where that is less; 0 if unknown. For the message "this does not fit"
 * before an allocation. */
size_t machine_memory_bytes(void);
double machine_process_age_s(void); /* since this process was started, to 10 ms; 0 if unknown */
size_t machine_resident_bytes(void); /* of this process; 0 if unknown */
/* The processor's model name, "unknown processor" when the system does not name it. */
void machine_cpu_name(char *ret_name, size_t size);
