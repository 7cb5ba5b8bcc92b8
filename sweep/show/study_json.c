/* study_json.c - a study as a report has it, and as one JSON object with the models' conclusions. */
#include "sweep/show/study_json.h"

#include "base/text/json.h"
#include "study/findings/briefing.h"
#include "study/findings/calibration.h"
#include "study/findings/node_list.h"
#include "study/view/insight_text.h"
#include "study/view/study_insight.h"
#include "study/view/study_view.h"
#include "study/findings/timeline.h"
#include "sweep/cli.h"
#include "web/report/report.h"

static cJSON *foresight_to_json(const struct study_view *view)
{
    cJSON *json = cJSON_CreateObject();
    struct foresight f;

    foresight_make(view, &f);
    json_add_i64(json, "trials", (int64_t)f.n);
    json_add_i64(json, "scores_inside", (int64_t)f.n_score);
    json_add_i64(json, "costs_inside", (int64_t)f.n_cost);
    json_add_f64(json, "score_z", f.n > 0 ? f.score_z : (double)NAN);
    json_add_f64(json, "cost_z", f.n > 0 ? f.cost_z : (double)NAN);
    json_add_f64(json, "score_width", f.n > 0 ? f.score_width : (double)NAN);
    json_add_f64(json, "cost_width", f.n > 0 ? f.cost_width : (double)NAN);
    return json;
}

enum status study_view_print_json(struct study_view *view, const char *store_path, struct error *err)
{
    cJSON *json = NULL, *insight = NULL, *nodes = NULL;
    struct store *store = NULL;
    struct briefing briefing;

    TRY(study_view_insight(view, err));
    TRY(report_to_json(view, &json, err));
    enum status rc = insight_to_json(view, &insight, err);
    if (rc != ST_OK) {
        cJSON_Delete(json);
        return rc;
    }
    /* A controller whose store was taken away reports what it has in memory: the nodes are unknown then. */
    if (store_open_reader(&store, store_path, NULL) != ST_OK ||
        node_list_to_json(store, view->study.id, &nodes) != ST_OK)
        nodes = cJSON_CreateNull();
    store_close(store);
    json_add(json, "insight", insight);
    briefing_make(view, &view->advice, 0, &briefing);
    json_add(json, "briefing", briefing_to_json(view, &briefing));
    briefing_free(&briefing);
    json_add(json, "predictions", foresight_to_json(view));
    json_add(json, "timeline", timeline_to_json(view));
    json_add(json, "nodes", nodes);
    cli_print_json(json);
    return ST_OK;
}
