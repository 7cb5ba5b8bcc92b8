/* reports.c - reports that wait for their transaction.
 * Invariant: nothing waits when the scheduler handles anything but the messages of one worker, so a kill loses only
 * what lay in the socket, and what was read from it while the disk was full. */
#include "sweep/controller/reports.h"

#include "base/mem.h"

#include <string.h>

static void drop(struct reports *r)
{
    for (size_t i = 0; i < r->n; i++)
        mem_free(r->blocks[i]);
    r->n = 0;
}

enum status reports_flush(struct reports *r, struct error *err)
{
    enum status rc = ST_OK;

    if (r->n > 0)
        STORE_INSIST(rc, r->store, err, store_reports_add(r->store, r->v, r->n, err));
    drop(r);
    return rc;
}

/* Points, then the texts that they and the report name. */
static void *copy(const struct metric_report *from, struct metric_report *ret)
{
    size_t size = from->n * sizeof *from->points,
           n_json = from->outbox_json != NULL ? strlen(from->outbox_json) + 1 : 0;
    struct metric_point *points;
    char *at;

    for (size_t i = 0; i < from->n; i++)
        size += strlen(from->points[i].name) + 1;
    points = mem_alloc(size + n_json + 1);
    if (points == NULL)
        return NULL;
    at = (char *)(points + from->n);
    for (size_t i = 0; i < from->n; i++) {
        size_t n = strlen(from->points[i].name) + 1;
        points[i] = from->points[i];
        points[i].name = memcpy(at, from->points[i].name, n);
        at += n;
    }
    *ret = *from;
    ret->points = points;
    if (n_json > 0)
        ret->outbox_json = memcpy(at, from->outbox_json, n_json);
    return points;
}

enum status reports_add(struct reports *r, struct store *store, const struct metric_report *report, struct error *err)
{
    if (r->n == REPORTS_MAX || (r->n > 0 && r->store != store))
        TRY(reports_flush(r, err));
    r->blocks[r->n] = copy(report, &r->v[r->n]);
    if (r->blocks[r->n] == NULL)
        return FAIL(err, ST_NOMEM, "out of memory for a report");
    r->store = store;
    r->n++;
    return ST_OK;
}
