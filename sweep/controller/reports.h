/* reports.h - reports of trials that came at once, on their way into the store: one transaction for all that a look at a worker
 * brings, so that a controller that is behind catches up. Used by the scheduler's thread. */
#ifndef SWEEP_CONTROLLER_REPORTS_H
#define SWEEP_CONTROLLER_REPORTS_H

#include "store/store.h"

#define REPORTS_MAX 64 /* of one transaction, for which others wait */

struct reports {
    struct store *store; /* of what waits; borrowed */
    struct metric_report v[REPORTS_MAX]; /* (n) each in a block of its own, which points names */
    void *blocks[REPORTS_MAX];
    size_t n;
};

/* Copies the report. Whatever else is recorded of its trial comes after reports_flush. */
enum status reports_add(struct reports *reports, struct store *store, const struct metric_report *report,
                        struct error *err) MUST_USE;
/* After this all of them are stored, or none and it says why; none wait. */
enum status reports_flush(struct reports *reports, struct error *err) MUST_USE;

#endif
