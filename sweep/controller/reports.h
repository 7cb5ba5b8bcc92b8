/* reports.h - reports of trials that came at once, on their way into the store: one transaction for all that one look
 * at a worker brings, so that a controller that is late catches up. Reports are copied; the scheduler's thread. */
#ifndef SWEEP_CONTROLLER_REPORTS_H
#define SWEEP_CONTROLLER_REPORTS_H

#include "store/store.h"

#define REPORTS_MAX 64 /* reports in one transaction, for which other workers wait */

struct reports {
    struct store *store; /* of the waiting reports; borrowed */
    struct metric_report v[REPORTS_MAX]; /* (n) the data of each lies in a block of its own */
    void *blocks[REPORTS_MAX];
    size_t n;
};

/* Copies the report. Anything else about its trial is recorded after reports_flush. */
enum status reports_add(struct reports *reports, struct store *store, const struct metric_report *report,
                        struct error *err) MUST_USE;
/* Stores all waiting reports, or none and returns the failure; none wait afterwards. */
enum status reports_flush(struct reports *reports, struct error *err) MUST_USE;

#endif
