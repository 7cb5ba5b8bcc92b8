/* report.h - writes a report of a study: HTML, PDF, PNG, SVG, CSV or JSON (public face of web/report/).
 * A call reads the view, writes into `out`, and keeps nothing. Any thread. */
#pragma once

#include "base/base.h"
#include "base/text/json.h"

struct strbuf;
struct study_view;

enum status report_render_open(struct error *err) MUST_USE; /* librsvg, which PDF and PNG open too */

/* REPORT_TEX is of report_write_figure alone. */
enum report_format { REPORT_HTML, REPORT_SVG, REPORT_CSV, REPORT_JSON, REPORT_PDF, REPORT_PNG, REPORT_TEX };

/* HTML is one self-contained file: inline SVG and CSS, no script, opens from disk, prints, light and dark. PDF is A4
 * pages, PNG the chart of the front; both need librsvg in the build (ST_USAGE without it).
 * Computes the advice that the format shows, unless the view has it. */
enum status report_write_whole(struct study_view *view, enum report_format format, struct strbuf *out,
                               struct error *err) MUST_USE;
/* The same from what the view knows, without computing advice. store_path: for the commands that the page suggests;
 * NULL: left out. */
enum status report_write(const struct study_view *view, const char *store_path, enum report_format format,
                         struct strbuf *out, struct error *err) MUST_USE;

/* -- figures for papers: one column or page wide, in print's colours on no ground, letters of 7 pt and more -- */
enum report_figure { FIGURE_FRONT, FIGURE_CURVES, FIGURE_IMPORTANCE, FIGURE_ATTAINMENT, FIGURE_PARALLEL };
#define FIGURE_MIN_PT 144.0 /* of a width, in points of 1/72 in */
#define FIGURE_MAX_PT 1440.0
struct figure {
    enum report_figure kind;
    enum report_format
        format; /* REPORT_SVG, REPORT_PDF, REPORT_PNG (300 dots an inch); of FIGURE_FRONT also REPORT_TEX */
    double width_pt;
    bool over_seconds; /* FIGURE_CURVES: not over env steps */
};
/* views: (n) one; of FIGURE_ATTAINMENT two or more of one search under several seeds. Computes their advice. Curves are
 * read from the store. ST_NOTFOUND: the study does not have what the figure shows. */
enum status report_write_figure(struct study_view *const *views, size_t n, const struct figure *figure,
                                struct strbuf *out, struct error *err) MUST_USE;

/* {"study": {...}, "trials": [...]}: REPORT_JSON and `trawl show --json`. Unknown numbers (NaN) and times that have not
 * come are null, infinities the strings of base/text/json.h. The caller deletes it (cJSON_Delete). */
enum status report_to_json(const struct study_view *view, cJSON **ret_json, struct error *err) MUST_USE;

struct comparison;
struct report_row { /* of a table with a column for each study; texts are borrowed, NULL: unknown */
    const char *what;
    const char *const *texts;
};
/* One self-contained page of several studies: their fronts in one chart, rows (n), and the differences of their
 * configs. */
enum status report_write_comparison(struct strbuf *out, const struct comparison *comparison,
                                    const struct report_row *rows, size_t n, struct error *err) MUST_USE;
