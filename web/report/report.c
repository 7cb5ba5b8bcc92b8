/* report.c - writes a report in any of its formats. */
#include "web/report/report.h"

#include "base/text/strbuf.h"
#include "study/view/study_insight.h"
#include "study/view/study_view.h"
#include "web/report/report_priv.h"

static enum status write_charts(const struct study_view *view, const char *store_path, enum report_format format,
                                struct strbuf *out, struct error *err)
{
    struct report report;
    enum status rc = report_init(&report, view, store_path, err);

    TRY(rc);
    if (format == REPORT_SVG)
        draw_front(out, &report, FRONT_ALONE);
    else if (format == REPORT_PDF)
        rc = report_write_pdf(out, &report, err);
    else if (format == REPORT_PNG)
        rc = report_write_png(out, &report, err);
    else
        report_write_html(out, &report);
    report_free(&report);
    return rc;
}

enum status report_write(const struct study_view *view, const char *store_path, enum report_format format,
                         struct strbuf *out, struct error *err)
{
    if (format == REPORT_CSV)
        TRY(report_write_csv(out, view, err));
    else if (format == REPORT_JSON)
        TRY(report_write_json(out, view, err));
    else
        TRY(write_charts(view, store_path, format, out, err));
    return strbuf_status(out, "the report", err);
}

enum status report_write_whole(struct study_view *view, enum report_format format, struct strbuf *out,
                               struct error *err)
{
    bool is_data = format == REPORT_CSV || format == REPORT_JSON; /* without importance and edges */

    TRY(is_data ? study_view_advise(view, err) : study_view_insight(view, err));
    return report_write(view, view->store_path, format, out, err);
}
