/* insight_text.h - what the models conclude about a study, as text and JSON. Computes the advice of a view where it
 * lacks it; one thread for each view. */
#pragma once

#include "base/base.h"
#include "base/text/json.h"

struct gp_importance;
struct study_view;

/* Recommended trial, importance of the parameters, bounds at which the front lies and that could be wider, with the
 * command that widens them; to stdout. */
enum status insight_print(struct study_view *view, const char *store_path, struct error *err) MUST_USE;
/* {"recommended", "score_noise_sd", "params": [...], "front": [...]} or {"note"}; the caller deletes it. */
enum status insight_to_json(struct study_view *view, cJSON **ret_json, struct error *err) MUST_USE;
cJSON *importance_json(const struct gp_importance *importance); /* {"effect", "effect_sd", "sensitivity"} */
