/* study_report.c - a study view as a report takes it. */
#include "web/report/study_report.h"

#include "study/study_view.h"
#include "study/version.h"
#include "web/report/report.h"

/* Advice of the first trials only, as a running sweep has it, is left out: a report has a belief for every trial. */
void study_view_report(const struct study_view *view, const char *path, struct report *ret_report)
{
    *ret_report = (struct report){.study = &view->study,
                                  .trials = view->trials,
                                  .n_trials = view->n,
                                  .history = &view->history,
                                  .on_front = view->on_front,
                                  .insight = view->advice.n == view->n && view->n > 0 ? &view->advice : NULL,
                                  .ref = view->ref,
                                  .space = &view->search.space,
                                  .program = program_text,
                                  .store_path = path,
                                  .cost = view->search.cost};
}
