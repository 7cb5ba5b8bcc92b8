/* greeting.h - a worker's first message, by which both sides learn whether they understand each other. Pure. */
#pragma once

#include "base/base.h"
#include "base/text/json.h"

struct greeting {
    char host[80], program[128];
    int64_t gpus, cores; /* -1: not given */
};
cJSON *greeting_make(bool remote); /* of this process; remote: also counts its GPUs, which starts their driver */
/* ST_VERSION with both versions when it is of another build, version of the messages or schema of the store. */
enum status greeting_read(const cJSON *message, struct greeting *ret_greeting, struct error *err) MUST_USE;
