/* launch_start.h - starts the process that is a worker, or the command that becomes one elsewhere. Plain functions. */
#pragma once

#include "base/base.h"

#include <sys/types.h>

struct device_spec;
struct proto;

/* mark: "NAME=VALUE" in the environment of the process, or NULL. *ret_proto speaks with the worker, *ret_log_fd (which
 * does not block) reads its stderr; both are the caller's, like the process, which is to be reaped. */
enum status launch_start(const struct device_spec *spec, const char *mark, pid_t *ret_pid, struct proto *ret_proto,
                         int *ret_log_fd, struct error *err) MUST_USE;
/* Ends it at once; or, not at_once, asks a command first to give back what it holds, as srun does with its job. */
void launch_kill(const struct device_spec *spec, pid_t pid, bool at_once);
