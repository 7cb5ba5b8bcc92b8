/* calibration.h - did fresh seeds, and the trials that were proposed, do what was predicted? Every run of a config that
 * had a result before is compared with what the models, of the trials that had ended until then, expected of one fresh
 * run. Owns its rows; any thread, but it fits models: seconds for a study of hundreds of trials. */
#pragma once

#include "base/base.h"

struct study_view;

struct calibration_row {
    size_t trial; /* the fresh run */
    size_t n_seeds; /* runs that its config had had */
    double predicted, lo, hi; /* 95 % interval of one run, inside what a score can be; the study's direction */
    double score; /* it had */
};
struct calibration {
    struct calibration_row *rows; /* (n) by number, owned */
    size_t n, n_inside;
    size_t n_left_out; /* earlier fresh runs, whose models were not computed again */
};
#define CALIBRATION_MODELS 40 /* at most: the last ones */
void calibration_make(const struct study_view *view, struct calibration *ret_calibration);
void calibration_free(struct calibration *calibration);

/* What the models expected of the trials that they proposed, against what these gave. The predictions are stored with
 * the trials: no model is fitted. The interval of one run is as wide as the proposals that had ended by then say
 * (gp_miss_95): the models alone are too sure where they propose. */
struct foresight {
    size_t n; /* finished trials with a prediction */
    size_t n_score, n_cost; /* of them in the 95 % interval of one run */
    double score_z,
        cost_z; /* mean of (result - expected) / sd: below 0, a score is worse than expected and a cost lower */
    double score_width, cost_width; /* mean of the interval's width over that of the models alone */
};
void foresight_make(const struct study_view *view, struct foresight *ret_foresight);
#define FORESIGHT_TEXT_MAX 384
/* "of 40 proposals, the score of 36 and the cost of 38 lay in ..."; empty without predictions. Returns buf. */
const char *foresight_text(const struct foresight *foresight, char buf[FORESIGHT_TEXT_MAX]);
