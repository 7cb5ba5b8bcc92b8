/* report.h - writes a report of a study: HTML, PDF, PNG, SVG, CSV or JSON (public face of web/report/).
 * The caller builds struct report and keeps its arrays; a call reads them, writes into `out`, and keeps nothing. Any
 * thread. */
#ifndef WEB_REPORT_REPORT_H
#define WEB_REPORT_REPORT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/json.h"
#include "base/status.h"
#include "gp/gp.h"
#include "store/store.h"
#include "study/promise.h"

struct strbuf;

enum report_format { REPORT_HTML, REPORT_SVG, REPORT_CSV, REPORT_JSON, REPORT_PDF, REPORT_PNG };

/* What a report is made from; built by the caller, borrowed. history[i] and on_front[i] belong to trials[i]. */
struct report {
    const struct study *study;
    const struct trial *trials;
    size_t n_trials;
    const struct gp_history *history;
    const bool *on_front;
    struct pareto_ref ref;
    const struct space *space;
    const char *program; /* "trawl 0.1.0 (abc1234)" */
    const char *store_path; /* for the commands that the page suggests; NULL: left out */
    const struct gp_insight *insight; /* intervals and importance, of the same trials; NULL: left out */
    enum search_cost cost; /* what history, front and reference count */
};

/* HTML is one self-contained file: inline SVG and CSS, no script, opens from disk, prints, light and dark. PDF is A4
 * pages, PNG the chart of the front; both need librsvg in the build (ST_USAGE without it). */
bool report_can_render(void); /* PDF and PNG */
enum status report_write(const struct report *report, enum report_format format, struct strbuf *out,
                         struct error *err) MUST_USE;

/* {"study": {...}, "trials": [...]}: REPORT_JSON and `trawl show --json`. Unknown numbers (NaN) and times that have not
 * come are null, infinities the strings of base/json.h. The caller deletes it (cJSON_Delete). */
enum status report_to_json(const struct report *report, cJSON **ret_json, struct error *err) MUST_USE;

#endif
