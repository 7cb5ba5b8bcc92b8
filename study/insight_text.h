/* insight_text.h - what the models conclude about a study, as text and JSON. Reads a view; one thread for each view. */
#ifndef STUDY_INSIGHT_TEXT_H
#define STUDY_INSIGHT_TEXT_H

#include <stdbool.h>

#include "base/json.h"
#include "base/status.h"
#include "store/store.h"

struct gp_insight;
struct opt_def;
struct space_param;
struct study_view;

/* gp_insight_init, with edges that can be followed: each suggested bound is allowed by its option, and trials can run
 * at it; without such a bound there is no edge. The caller: gp_insight_free. */
enum status insight_init(struct gp_insight *ret_insight, const struct study_view *view, struct error *err) MUST_USE;
/* Rounds x, a bound beyond the parameter's on this side (-1, 1), to one that the option allows: whole, a power of two
 * or above 0. False: there is no wider one. */
bool insight_bound(const struct space_param *param, const struct opt_def *opt, int side, double *x);
/* Recommended trial, importance of the parameters, bounds at which the front lies and that could be wider, with the
 * command that widens them; to stdout. */
enum status insight_print(const struct study_view *view, const char *store_path, struct error *err) MUST_USE;
/* {"recommended", "score_noise_sd", "params": [...], "front": [...]} or {"note"}; the caller deletes it. */
enum status insight_to_json(const struct study_view *view, cJSON **ret_json, struct error *err) MUST_USE;

#endif
