/* report.c - writes a report in any of its formats. */
#include "web/report/report.h"

#include "study/view/study_insight.h"
#include "study/view/study_view.h"
#include "web/report/report_priv.h"

#define PNG_SCALE 2.0

static enum status write_pdf(struct strbuf *out, const struct report *report, struct error *err)
{
    struct strbuf *pages;
    size_t n;
    enum status rc = report_write_pages(report, &pages, &n, err);

    THEN(rc, render_pdf(out, pages, n, PAGE_WIDTH, PAGE_HEIGHT, report->view->study.name, err));
    for (size_t i = 0; i < n; i++)
        strbuf_free(&pages[i]);
    mem_free(pages);
    return rc;
}

static enum status write_png(struct strbuf *out, const struct report *report, struct error *err)
{
    STRBUF(svg, 256u << 20);

    draw_front(&svg, report, FRONT_FLAT);
    TRY(strbuf_status(&svg, "the chart of the front", err));
    return render_png(out, &svg, 960.0, 540.0, PNG_SCALE, err); /* the size of FRONT_FLAT */
}

static enum status write_charts(const struct study_view *view, const char *store_path, enum report_format format,
                                struct strbuf *out, struct error *err)
{
    struct report report;
    enum status rc = report_init(&report, view, store_path, err);

    TRY(rc);
    if (format == REPORT_SVG)
        draw_front(out, &report, FRONT_ALONE);
    else if (format == REPORT_PDF)
        rc = write_pdf(out, &report, err);
    else if (format == REPORT_PNG)
        rc = write_png(out, &report, err);
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
