/* lane_messages.h - messages about a lane's trial, built by the lane's thread. The caller deletes them; NULL: out of
 * memory. */
#ifndef SWEEP_WORKER_LANE_MESSAGES_H
#define SWEEP_WORKER_LANE_MESSAGES_H

#include "base/json.h"
#include "base/status.h"

struct eval_result;
struct lane;
struct train_metrics;
struct train_result;

cJSON *lane_message(const struct lane *lane, const char *type); /* with trial and attempt */
cJSON *lane_metrics_json(const struct train_metrics *metrics);
/* eval NULL: the run was stopped before its evaluation. why: the reason of a failure. */
cJSON *lane_result_json(struct lane *lane, enum status trained, const struct train_result *result,
                        const struct eval_result *eval, const char *why);

#endif
