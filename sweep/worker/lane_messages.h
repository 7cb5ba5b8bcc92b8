/* lane_messages.h - what a worker sends to its controller. Messages about a trial are built by its lane's thread. */
#pragma once

#include "base/base.h"
#include "base/text/json.h"

struct eval_result;
struct lane;
struct lane_pool;
struct train_metrics;
struct train_result;

/* Takes message; any thread. A controller that takes no messages sets pool->gone, and all lanes stop. */
void lane_pool_send(struct lane_pool *pool, cJSON *message);
cJSON *lane_message(const struct lane *lane, const char *type); /* with trial and attempt; the caller's */
void lane_send_metrics(struct lane *lane, const struct train_metrics *metrics); /* those that are known */
/* type: "result" or "branch". result and eval are read when trained is ST_OK, why when it is not; eval->stopped: before
 * or in its evaluation. The caller's. */
cJSON *lane_result_json(struct lane *lane, const char *type, enum status trained, const struct train_result *result,
                        const struct eval_result *eval, const char *why);
