/* report.c - writes a report in any of its formats. */
#include "web/report/report.h"

#include "web/report/report_priv.h"

static enum status write_charts(const struct report *report, enum report_format format, struct strbuf *out,
                                struct error *err)
{
    struct report_view view;

    enum status rc = report_view_create(&view, report, err);

    if (rc != ST_OK)
        return rc;
    if (format == REPORT_SVG)
        draw_front(out, &view, FRONT_ALONE);
    else if (format == REPORT_PDF)
        rc = report_write_pdf(out, &view, err);
    else if (format == REPORT_PNG)
        rc = report_write_png(out, &view, err);
    else
        report_write_html(out, &view);
    report_view_free(&view);
    return rc;
}

bool report_has_insight(const struct report *report)
{
    return report->insight != NULL && report->insight->note == NULL && report->insight->n == report->n_trials;
}

enum status report_write(const struct report *report, enum report_format format, struct strbuf *out, struct error *err)
{
    switch (format) {
    case REPORT_HTML:
    case REPORT_SVG:
    case REPORT_PDF:
    case REPORT_PNG:
        TRY(write_charts(report, format, out, err));
        break;
    case REPORT_CSV:
        TRY(report_write_csv(out, report, err));
        break;
    case REPORT_JSON:
        TRY(report_write_json(out, report, err));
        break;
    default:
        return FAIL(err, ST_INTERNAL, "unknown report format %d", (int)format);
    }
    return strbuf_status(out, "the report", err);
}
