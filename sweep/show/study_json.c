/* study_json.c - a study as a report has it, and as one JSON object with the models' conclusions. */
#include "sweep/show/study_json.h"

#include "base/json.h"
#include "study/insight_text.h"
#include "study/study_view.h"
#include "study/timeline.h"
#include "sweep/cli.h"
#include "web/report/report.h"
#include "web/report/study_report.h"

enum status study_view_print_json(struct study_view *view, const char *path, struct error *err)
{
    struct report report;
    cJSON *json = NULL, *insight = NULL, *timeline = NULL;

    TRY(study_view_advise(view, err));
    study_view_report(view, path, &report);
    TRY(report_to_json(&report, &json, err));
    enum status rc = insight_to_json(view, &insight, err);
    if (rc == ST_OK && !json_add(json, "insight", insight))
        rc = FAIL(err, ST_NOMEM, "out of memory for the insight into a study");
    if (rc == ST_OK)
        rc = timeline_to_json(view, &timeline, err);
    if (rc == ST_OK && !json_add(json, "timeline", timeline))
        rc = FAIL(err, ST_NOMEM, "out of memory for the timeline of a study");
    if (rc != ST_OK) {
        cJSON_Delete(json);
        return rc;
    }
    return cli_print_json(json, err);
}
