/* greeting.c - a worker's first message: its protocol, build, host, cores and GPUs.
 * Invariant: a worker of another build is refused: a trial's bytes are those of one build. */
#include "sweep/launch/greeting.h"
#include "base/os/machine.h"
#include "kernels/kernels.h"
#include "store/store.h"
#include "study/version.h"
#include "sweep/launch/proto.h"

cJSON *greeting_make(bool remote)
{
    cJSON *json = proto_message("greeting");
    char host[80] = "";

    (void)gethostname(host, sizeof host - 1);
    json_add_i64(json, "version", PROTO_VERSION);
    json_add_str(json, "program", program_text);
    json_add_i64(json, "schema", store_schema_version());
    json_add_str(json, "host", host);
    json_add_i64(json, "cores", (int64_t)machine_cores());
    if (remote)
        json_add_i64(json, "gpus", kern_cuda_count());
    return json;
}

enum status greeting_read(const cJSON *message, struct greeting *ret_greeting, struct error *err)
{
    const char *program = json_get_str(message, "program"), *host = json_get_str(message, "host");

    *ret_greeting = (struct greeting){.gpus = -1, .cores = -1};
    int64_t version = json_i64_or(message, "version", 0);
    int64_t schema = json_i64_or(message, "schema", 0);
    (void)json_get_i64(message, "gpus", &ret_greeting->gpus);
    (void)json_get_i64(message, "cores", &ret_greeting->cores);
    snprintf(ret_greeting->program, sizeof ret_greeting->program, "%s", program != NULL ? program : "unknown");
    snprintf(ret_greeting->host, sizeof ret_greeting->host, "%s", host != NULL ? host : "");
    if (version != PROTO_VERSION || schema != store_schema_version() ||
        strcmp(ret_greeting->program, program_text) != 0)
        return FAIL(err, ST_VERSION,
                    "the worker%s%s is %s (messages %lld, store %lld), this controller %s (messages %d, store %lld); "
                    "use the same build on both",
                    ret_greeting->host[0] != '\0' ? " on " : "", ret_greeting->host, ret_greeting->program,
                    (long long)version, (long long)schema, program_text, PROTO_VERSION,
                    (long long)store_schema_version());
    return ST_OK;
}
