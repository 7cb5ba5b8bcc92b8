/* models.h - the Gaussian process models of the studies, computed by one thread of their own.
 * Entries belong to struct models and are read between models_lock and models_unlock; a model is destroyed when a newer
 * one of its study replaces it. A study whose model failed has the reason in `note`. */
#pragma once

#include "base/base.h"

struct models;
struct serve;
struct study_model;

enum model_state { MODEL_NONE, MODEL_COMPUTING, MODEL_STALE, MODEL_READY };
const char *model_state_name(enum model_state state);

struct model_entry {
    char *study; /* owned; NULL: free */
    int64_t version; /* of the study that it was made from (view.settled); 0: none yet */
    int64_t wanted, used;
    bool computing;
    double rest_until_s;
    struct study_model *model; /* the last that could be made; NULL: none */
    char note[ERROR_TEXT_MAX];
};
enum status models_create(struct models **ret_models, struct serve *s, struct error *err) MUST_USE;
void models_destroy(struct models *models);
/* Locks the models, asks for a new one when that of `version` is not there yet; *ret_entry may be NULL. Always followed
 * by models_unlock; never with `data` locked. */
enum model_state models_lock(struct models *models, const char *study, int64_t version, struct model_entry **ret_entry);
void models_unlock(struct models *models);
/* State and version of a study's model; asks for a newer one when it is due. */
enum model_state models_peek(struct models *models, const char *study, int64_t version, int64_t *ret_model_version);
