/* reports.c - metric messages, parsed, that wait for their transaction.
 * Invariant: nothing waits when the scheduler handles anything but the messages of a round, so a kill loses only what
 * that round has read, and what was read while the disk was full: none of it has been reported. */
#include "sweep/controller/trial/reports.h"

bool report_parse(const cJSON *message, int64_t trial_id, double cost_factor, struct metric_report *ret)
{
    const cJSON *values = json_get(message, "values"), *item;
    struct metric_point *points;
    int64_t env_steps;
    size_t n = 0, names = 0;
    double wall_s, value;

    if (!json_get_i64(message, "env_steps", &env_steps) || !json_get_f64(message, "wall_s", &wall_s))
        return false;
    cJSON_ArrayForEach(item, values)
    {
        bool is_number = item->string != NULL && json_get_f64(values, item->string, &value);
        n += is_number;
        names += is_number ? strlen(item->string) + 1 : 0;
    }
    if (n == 0)
        return false;
    points = mem_alloc(n * sizeof *points + names); /* one block: the points, then their names */
    char *at = (char *)(points + n);
    *ret = (struct metric_report){.trial_id = trial_id, .points = points, .n = n};
    cJSON_ArrayForEach(item, values)
    {
        if (item->string == NULL || !json_get_f64(values, item->string, &value))
            continue;
        *points++ =
            (struct metric_point){.env_steps = env_steps, .wall_s = wall_s * cost_factor, .name = at, .value = value};
        at = stpcpy(at, item->string) + 1;
    }
    return true;
}

static void report_free(const struct metric_report *report)
{
    mem_free((void *)report->points);
    mem_free((void *)report->outbox_json);
}

enum status reports_flush(struct reports *r, struct error *err)
{
    enum status rc = ST_OK;

    if (r->n > 0)
        STORE_INSIST(rc, r->store, err, store_reports_add(r->store, r->v, r->n, err));
    for (size_t i = 0; i < r->n; i++)
        report_free(&r->v[i]);
    r->n = 0;
    return rc;
}

enum status reports_add(struct reports *r, struct store *store, const struct metric_report *report, struct error *err)
{
    enum status rc = ST_OK;

    if (r->n == REPORTS_MAX || (r->n > 0 && r->store != store))
        rc = reports_flush(r, err);
    if (rc != ST_OK) {
        report_free(report);
        return rc;
    }
    r->store = store;
    r->v[r->n++] = *report;
    return ST_OK;
}
