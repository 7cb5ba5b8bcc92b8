/* reports.h - the workers' metric messages on their way into the store: each is parsed once, and all that a round
 * brings are stored in few transactions, so that a controller that is late catches up. The scheduler's thread. */
#pragma once

#include "base/text/json.h"
#include "store/store.h"

#define REPORTS_MAX 64 /* reports in one transaction, for which the workers wait */

struct reports {
    struct store *store; /* of the waiting reports; borrowed */
    struct metric_report v[REPORTS_MAX]; /* (n) owned, with their points and rows */
    size_t n;
};

/* Parses a metric message about this trial, whose cost counts by this factor; nothing of the report points into the
 * message. False: it is not one of our messages, or holds no number. */
bool report_parse(const cJSON *message, int64_t trial_id, double cost_factor, struct metric_report *ret_report);
/* Takes the report, with its outbox_json (both from mem.h). Anything else about its trial is recorded after
 * reports_flush. */
enum status reports_add(struct reports *reports, struct store *store, const struct metric_report *report,
                        struct error *err) MUST_USE;
/* Stores all waiting reports, or none and returns the failure; none wait afterwards. */
enum status reports_flush(struct reports *reports, struct error *err) MUST_USE;
