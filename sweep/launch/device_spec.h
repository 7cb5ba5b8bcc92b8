/* device_spec.h - where one worker runs, and what it opens there. A plain value. */
#pragma once

#include "base/base.h"

enum device_place { PLACE_HERE, PLACE_SSH, PLACE_SLURM, PLACE_COMMAND };

#define DEVICE_COMMAND_MAX 2048

struct device_spec { /* of one worker */
    char name[24]; /* "auto", "cpu", "cuda:1", "cuda:0-3": what the worker opens */
    char label[112]; /* "cpu/2", "ssh:gpu2/cuda:1": names it for people */
    int lanes;
    enum device_place place;
    char host[80]; /* of a remote worker: its failures to start count for all workers of the host */
    char command[DEVICE_COMMAND_MAX]; /* for a shell: becomes a worker on its stdin and stdout; "": a child of ours */
    bool expand; /* stands for all devices of its host (remote_devices_expand) */
    int share, n_shares; /* which of how many parts of its host's cores; n_shares 0: all */
    char cores[96]; /* "0-3,8": the cores it may use; "": all of ours */
    int64_t memory_bytes; /* of the host that the worker may take, by its own limit; 0: none */
    int64_t group_bytes; /* the same by a cgroup, where there is one; 0: none */
    int hosts; /* that train its trials together, with it; 0: it alone */
    char listen[80]; /* this host's address for the others; "": its name */
};

#define DEVICE_GPUS_MAX 1024

/* The GPUs of "cuda:1", or of "cuda:0-3", which a worker has together for trials of several (train.devices). False: the
 * name means none. */
static inline bool device_gpus(const char *name, int *ret_first, int *ret_n)
{
    char *end;
    long first, last;

    if (strncmp(name, "cuda:", 5) != 0 || strspn(name + 5, "0123456789") == 0)
        return false;
    first = last = strtol(name + 5, &end, 10);
    if (*end == '-' && strspn(end + 1, "0123456789") > 0)
        last = strtol(end + 1, &end, 10);
    if (*end != '\0' || last < first || last >= DEVICE_GPUS_MAX)
        return false;
    *ret_first = (int)first;
    *ret_n = (int)(last - first) + 1;
    return true;
}
