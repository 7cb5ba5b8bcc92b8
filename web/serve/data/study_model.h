/* study_model.h - what the models conclude about a study, for the pages. A model owns its copy of the study; one thread
 * at a time. JSON that is returned is the caller's. */
#pragma once

#include "base/base.h"
#include "base/text/json.h"

struct study_model;
/* Reads the study from the store and fits its models. */
enum status study_model_create(struct study_model **ret_model, const char *store_path, const char *study,
                               struct error *err) MUST_USE;
void study_model_destroy(struct study_model *model); /* NULL is fine */
const struct study_view *study_model_view(const struct study_model *model); /* with insight; the model's */
const char *study_model_note(const struct study_model *model); /* why nothing is concluded; NULL: the rest is there */
cJSON *study_model_insight(const struct study_model *model); /* body of /insight without study and version */
cJSON *study_model_front(const struct study_model *model); /* body of /model/front */
cJSON *study_model_next(const struct study_model *model); /* body of /model/next */
/* Score and cost along one parameter through a trial. */
enum status study_model_slice(struct study_model *model, const char *key, int64_t trial, cJSON **ret_json,
                              struct error *err) MUST_USE;
/* Score and cost over two parameters through a trial: a row of numbers for each value of y. */
enum status study_model_contour(struct study_model *model, const char *x, const char *y, int64_t trial,
                                cJSON **ret_json, struct error *err) MUST_USE;
