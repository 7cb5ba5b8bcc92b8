/* device_class.c - kinds of devices.
 * Invariant: between two trials of a controller's time a study's kind does not change, so that all its costs of that
 * time compare. */
#include "sweep/controller/devices/device_class.h"

#include "base/config/opt.h"
#include "base/log.h"
#include "base/text/num.h"
#include "base/status.h"
#include "study/space/search.h"
#include "study/setup/setup.h"
#include "sweep/controller/sched_study.h"
#include "sweep/controller/scheduler.h"
#include "sweep/controller/devices/supervise.h"
#include "sweep/launch/worker_process.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

void device_class_of(const char *device, char buf[DEVICE_CLASS_MAX])
{
    const char *open = NULL, *rest;

    for (const char *at = strstr(device, " ("); at != NULL; at = strstr(at + 1, " ("))
        open = at;
    snprintf(buf, DEVICE_CLASS_MAX, "%s", device);
    if (open == NULL || strspn(open + 2, "0123456789") == 0 || strstr(open, " thread") == NULL)
        return;
    rest = strstr(open, ", "); /* after the number of threads, which a trial's config has */
    if (rest != NULL)
        snprintf(buf, DEVICE_CLASS_MAX, "%.*s (%s", (int)(open - device), device, rest + 2);
    else
        snprintf(buf, DEVICE_CLASS_MAX, "%.*s", (int)(open - device), device);
}

/* The next "NAME=FACTOR" of a list; false: none. */
static bool next_cost(const char **at, char name[OPT_STR_MAX], double *ret_factor)
{
    char *equals;
    size_t n;

    *at += strspn(*at, ", ");
    n = strcspn(*at, ",");
    if (n == 0)
        return false;
    snprintf(name, OPT_STR_MAX, "%.*s", (int)n, *at);
    *at += n;
    equals = strrchr(name, '=');
    *ret_factor = NAN;
    if (equals == NULL || equals == name || !num_parse_f64(equals + 1, ret_factor))
        return true;
    *equals = '\0';
    return true;
}

static bool is_list(const char *text)
{
    return strcmp(text, DEVICE_COSTS_ALIKE) != 0 && strcmp(text, DEVICE_COSTS_ANY) != 0;
}

enum status device_costs_check(const char *text, struct error *err)
{
    char name[OPT_STR_MAX];
    const char *at = text;
    double factor;
    int n = 0;

    for (; is_list(text) && next_cost(&at, name, &factor); n++)
        if (!(factor > 0 && factor <= 1e6))
            return FAIL(
                err, ST_CONFIG,
                "sweep.device_costs: '%.60s' is no NAME=FACTOR with a factor above 0; use alike, any, or a list like "
                "NVIDIA H200=1, NVIDIA A100=0.55",
                name);
    if (is_list(text) && n == 0)
        return FAIL(err, ST_CONFIG,
                    "sweep.device_costs is empty; use alike, any, or a list like NVIDIA H200=1, "
                    "NVIDIA A100=0.55");
    return ST_OK;
}

double device_costs_factor(const char *text, const char *device_class)
{
    char name[OPT_STR_MAX];
    const char *at = text;
    double factor;

    if (!is_list(text))
        return 1;
    while (next_cost(&at, name, &factor))
        if (strncmp(device_class, name, strlen(name)) == 0)
            return factor;
    return NAN;
}

/* Can a device of the kind still come in place of this one? */
static bool may_come(const struct scheduler *s, const char *wanted)
{
    for (size_t i = 0; i < s->n_workers; i++) {
        const struct worker *w = &s->workers[i];
        if (supervise_is_quarantined(w) ? false : w->device_class[0] == '\0' || strcmp(w->device_class, wanted) == 0)
            return true;
    }
    return false;
}

bool device_class_fits(const struct scheduler *s, const struct sched_study *ss, const struct worker *w)
{
    const char *costs = ss->setup->sweep.device_costs;

    if (w->device_class[0] == '\0' || strcmp(costs, DEVICE_COSTS_ANY) == 0) /* a program's device is not known */
        return true;
    if (ss->view.search.cost == SEARCH_COST_STEPS) /* a step is a step everywhere */
        return true;
    if (is_list(costs))
        return !isnan(device_costs_factor(costs, w->device_class));
    if (ss->device_class[0] == '\0' || strcmp(ss->device_class, w->device_class) == 0)
        return true;
    return !ss->class_settled && !may_come(s, ss->device_class);
}

void device_class_report(const struct scheduler *s, struct worker *w)
{
    for (size_t i = 0; i < s->n_studies && !w->unlike_reported; i++) {
        if (device_class_fits(s, s->studies[i], w))
            continue;
        w->unlike_reported = true;
        log_warn("%s: %s is %s, and its trials run on %s: it gets none of them, since their times would not compare "
                 "(sweep.device_costs), continuing",
                 s->studies[i]->view.study.name, w->spec.label, w->device_class,
                 s->studies[i]->device_class[0] != '\0' ? s->studies[i]->device_class
                                                        : "what sweep.device_costs names");
    }
}

void device_class_settle(struct sched_study *ss, const struct worker *w)
{
    bool alike = strcmp(ss->setup->sweep.device_costs, DEVICE_COSTS_ALIKE) == 0;

    if (!alike || w->device_class[0] == '\0')
        return;
    if (ss->device_class[0] != '\0' && strcmp(ss->device_class, w->device_class) != 0)
        log_warn("%s: its trials so far ran on %s, from now on they run on %s: their times do not compare, continuing",
                 ss->view.study.name, ss->device_class, w->device_class);
    snprintf(ss->device_class, sizeof ss->device_class, "%s", w->device_class);
    ss->class_settled = true;
}
