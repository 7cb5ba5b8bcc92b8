/* device_fits.c - which devices a study's trials run on.
 * Invariant: between two trials of a controller's time a study's kind does not change, so that all its costs of that
 * time compare. */
#include "sweep/controller/device_fits.h"

#include "study/setup/setup.h"
#include "sweep/controller/sched_study.h"
#include "sweep/launch/device_class.h"
#include "sweep/supervise/supervise.h"

/* Can a device of the kind still come instead of this one? */
static bool may_come(const struct scheduler *s, const char *wanted)
{
    for (size_t i = 0; i < s->workers.n; i++) {
        const struct worker *w = &s->workers.v[i];
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
    if (device_costs_is_list(costs))
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
        log_warn("%s: " DEVICE_UNLIKE "; it gets none of them, continuing", s->studies[i]->view.study.name,
                 w->spec.label, w->device_class,
                 s->studies[i]->device_class[0] != '\0' ? s->studies[i]->device_class : DEVICE_COSTS_NAMED);
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
