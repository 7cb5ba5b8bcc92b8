/* outcomes.h - what counts besides a trial's score and cost: limits that outcomes must keep
 * ([sweep.limit.NAME]) and a third objective (sweep.objective). An outcome is a metric of a trial at its end; the
 * trial's row in the store has those that its study needs. Plain values; any thread. */
#pragma once

#include "base/text/json.h"
#include "gp/gp.h"

#define OUTCOME_METRIC_MAX 96
#define OUTCOME_NAME_MAX 48

struct config;
struct store;
struct strbuf;
struct trial_result;

struct outcomes {
    size_t n_limits;
    struct gp_limit bounds[GP_MAX_LIMITS];
    char names[GP_MAX_LIMITS][OUTCOME_NAME_MAX]; /* NAME of [sweep.limit.NAME] */
    char metrics[GP_MAX_LIMITS][OUTCOME_METRIC_MAX]; /* that it bounds */
    char origins[GP_MAX_LIMITS][80]; /* "my.ini:12" of those that a config has, for messages */
    char third[OUTCOME_METRIC_MAX]; /* the metric of the third objective; "": there is none */
    bool third_max; /* higher is better */
    bool third_log; /* volumes and models take its logarithm */
};

#define OUTCOME_COLUMN "outcome." /* before the metric's name, in tables of trials */
#define OUTCOMES_MAX (GP_MAX_LIMITS + 1)
/* The metrics that a study needs, each once; borrowed. Returns their number. */
size_t outcomes_needed(const struct outcomes *outcomes, const char *ret_metrics[OUTCOMES_MAX]);

/* Takes the limits out of config: they are neither options nor ranges. ST_CONFIG with file and
 * line. The third objective is left to the caller. */
enum status outcomes_take(struct outcomes *ret_outcomes, struct config *config, struct error *err) MUST_USE;
void outcomes_write(const struct outcomes *outcomes, struct strbuf *out); /* the limits as ini sections */
/* In a study's space: "limits" and "objective"; nothing where there are none. */
void outcomes_add_json(const struct outcomes *outcomes, cJSON *space);
enum status outcomes_read_json(const cJSON *space, struct outcomes *ret_outcomes, struct error *err) MUST_USE;

/* Row's third and outcomes of a trial's values (JSON, NULL: none), NaN where unknown. */
void outcomes_judge(const struct outcomes *outcomes, const char *values, struct gp_trial *row);
bool outcomes_same_third(const struct outcomes *a, const struct outcomes *b);
bool outcomes_are_kept(const struct outcomes *outcomes, const struct gp_trial *row);
double outcomes_third(const struct outcomes *outcomes, double gp_third); /* in the metric's own unit */
/* "memory is 5.2M, above the 4M of [sweep.limit.mem]"; "" when all limits are kept. */
void outcomes_explain(const struct outcomes *outcomes, const struct gp_trial *row, char *buf, size_t size);

/* "minimize memory; memory <= 4G, loss >= 0.1": third objective and limits for people; "": there are none. */
void outcomes_text(const struct outcomes *outcomes, char *buf, size_t size);

/* The outcomes of a result before it is recorded: as given with it (metrics by name; NULL: none), else the result's own
 * numbers (metric: the study's), else the last points of the trial's curves (trial_id 0: it has none). */
struct outcomes_settled {
    char *values; /* owned JSON; NULL: none are needed */
    char lacks[400]; /* why a result that is done counts as failed; "": it does not */
};
enum status outcomes_settle(const struct outcomes *outcomes, struct store *store, const char *metric, int64_t trial_id,
                            const cJSON *given, const struct trial_result *result, struct outcomes_settled *ret_settled,
                            struct error *err) MUST_USE;
