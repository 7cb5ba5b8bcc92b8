/* study_report.h - makes a struct report out of a study view.
 * The report borrows from the view, which has to outlive it; nothing can fail. */
#ifndef WEB_REPORT_STUDY_REPORT_H
#define WEB_REPORT_STUDY_REPORT_H

struct report;
struct study_view;

/* The view as web/ wants it, borrowed from it; path: the store's. */
void study_view_report(const struct study_view *view, const char *path, struct report *ret_report);

#endif
