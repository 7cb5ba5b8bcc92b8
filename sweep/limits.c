/* limits.c - when a study has had enough. Limits are totals of the study, counted from the store's rows: a resumed study
 * goes on counting where it was. */
#include "sweep/scheduler.h"

#include <stdio.h>

void study_limits_check(const struct study_view *view, double running_s, struct study_end *ret_end)
{
    const struct study *study = &view->study;
    double spent_s = study_view_cost(view) + running_s;
    char spent[32], budget[32];

    ret_end->rule = NULL;
    ret_end->text[0] = '\0';
    if (study->budget_s > 0 && spent_s >= study->budget_s) {
        ret_end->rule = "budget";
        snprintf(ret_end->text, sizeof ret_end->text, "the study's budget is spent, %s of %s",
                 format_seconds(spent_s, spent), format_seconds(study->budget_s, budget));
    }
}

int64_t study_limits_room(const struct study_view *view)
{
    int64_t max = view->study.trials_max;

    if (max == 0)
        return INT64_MAX;
    return max > (int64_t)view->n ? max - (int64_t)view->n : 0;
}
