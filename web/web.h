/* web.h - everything that shows a study to people and speaks HTTP (public face of web/). Now: the static report. */
#ifndef WEB_WEB_H
#define WEB_WEB_H

#include <stddef.h>

#include "base/json.h"
#include "base/status.h"
#include "base/strbuf.h"
#include "gp/gp.h"
#include "store/store.h"

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
};

/* HTML is one self-contained file: inline SVG and CSS, no script, opens from disk, prints, light and dark. PDF is A4 pages,
 * PNG the chart of the front; both need librsvg in the build (ST_USAGE without it). */
bool report_can_render(void); /* PDF and PNG */
enum status report_write(const struct report *report, enum report_format format, struct strbuf *out,
                         struct error *err) MUST_USE;

/* {"study": {...}, "trials": [...]}: REPORT_JSON and `trawl show --json`. Unknown numbers (NaN) and times that have not
 * come are null, infinities the strings of base/json.h. The caller deletes it (cJSON_Delete). */
enum status report_to_json(const struct report *report, cJSON **ret_json, struct error *err) MUST_USE;

#endif
