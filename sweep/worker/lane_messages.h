/* lane_messages.h - messages about a lane's trial. */
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
/* eval: stopped, there is none. why: of a failure. */
cJSON *lane_result_json(struct lane *lane, enum status trained, const struct train_result *result,
                        const struct eval_result *eval, const char *why);

#endif
