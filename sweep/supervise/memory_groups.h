/* memory_groups.h - a cgroup for each worker, where the controller's own group holds nothing else. A plain value of the
 * scheduler; what fails costs the limit, never the worker. */
#pragma once

#include "base/base.h"

#include <sys/types.h>

struct memory_groups {
    char root[512]; /* the group that is divided */
    bool on;
    char why_not[128];
};
/* Could the group be divided? Changes nothing. root: another group than ours, for tests; NULL: ours. */
bool memory_groups_look(struct memory_groups *groups, const char *root);
void memory_groups_open(struct memory_groups *groups, const char *root); /* sets on, or why_not */
void memory_groups_close(struct memory_groups *groups); /* leaves the group as it was */
/* Limits a worker that has just been started. False: it is not limited by a group. */
bool memory_groups_add(const struct memory_groups *groups, const char *label, pid_t pid, int64_t bytes);
bool memory_groups_remove(const struct memory_groups *groups,
                          const char *label); /* true: the kernel ended it for memory */
