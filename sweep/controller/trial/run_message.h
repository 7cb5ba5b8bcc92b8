/* run_message.h - a trial as its worker gets it, and its result as the worker sends it: for whoever has the worker, a
 * controller or a node. Plain functions. */
#pragma once

#include "base/text/json.h"
#include "store/store.h"
#include "study/view/checkpoint_label.h"

struct study_view;

/* The device that a worker has opened, as its hello states it. */
struct run_device {
    const char *kind, *vector_units; /* kind "": a program's device, of which nothing is known */
    int64_t threads; /* of each lane */
};

/* view: of the trial's study, with its setup; its trials are not used. checkpoint: of the trial's file; resume: it is
 * there, and the trial continues from it. */
cJSON *run_message(const struct study_view *view, const struct trial *trial, const char *store_path,
                   const char *checkpoint, bool resume);
/* What the config leaves to the machine becomes part of it before the trial starts from its beginning, so that the
 * trial is the same one wherever it continues, is run again or is exported. device NULL: a client's, which is unknown:
 * the config gets the study's own train.device and train.vector_units. *ret_text (mem_free) NULL: there is
 * nothing to change. */
enum status run_config_settle(const struct study_view *view, const struct trial *trial, const struct run_device *device,
                              char **ret_text, struct error *err) MUST_USE;

struct run_result {
    struct trial_result result; /* its texts are those below */
    char *outcomes; /* owned; NULL: the study needs none */
    char reason[ERROR_TEXT_MAX], cost_method[40];
    char log_tail[4097]; /* of a program that failed: its last lines */
    char program[CHECKPOINT_LABEL_MAX], vector_units[64], device[256];
};
/* Of a `result` message; metric: the study's; cost_factor: by what a second on its device counts. */
void run_result_read(struct run_result *ret, const cJSON *message, const char *metric, double cost_factor);
/* What the limits and the third objective of its study need, without which it has failed. trial_id: as in
 * outcomes_settle. */
enum status run_result_settle(struct run_result *run, const struct study_view *view, struct store *store,
                              int64_t trial_id, const cJSON *message, struct error *err) MUST_USE;
/* Ready for the store: the result's texts are set, those that are empty as NULL. */
const struct trial_result *run_result_texts(struct run_result *run);
