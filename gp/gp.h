/* gp.h - pure numbers of the sweep (public face of gp/): search space, designs, Gaussian processes, Pareto fronts,
 * acquisition, and suggest: (space, history, settings, seed) -> a proposal. No clock, no files, no threads; same inputs
 * give the same bytes. f64 on the CPU over GSL and OpenBLAS. */
#ifndef GP_GP_H
#define GP_GP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

/* ---- space: a point is dim natural values (categorical: index of the choice); the model sees [0, 1]^dim ---- */

#define SPACE_MAX_DIM 64
#define SPACE_KEY_MAX 96

enum space_scale { SPACE_LINEAR, SPACE_LOG, SPACE_LOGIT, SPACE_POW2, SPACE_CATEGORICAL };

struct space_param {
    char key[SPACE_KEY_MAX]; /* "train.learning_rate" */
    enum space_scale scale;
    bool is_int; /* values are whole (on LINEAR or LOG); POW2 values are always powers of two */
    double min, max; /* natural units, inclusive; categorical: 0 .. n_choices - 1 */
    size_t n_choices; /* categorical only */
    bool has_init;
    double init; /* user's default for the first trial, natural units */
};

struct space {
    size_t dim;
    struct space_param params[SPACE_MAX_DIM];
};

/* Checks min < max, log needs min > 0, logit needs 0 < min and max < 1, pow2 bounds hold a power of two; message names
 * key, value found and what to do. */
enum status space_check(const struct space *space, struct error *err) MUST_USE;
void space_to_unit(const struct space *space, const double *x, double *ret_u);
/* Snaps to integers, powers of two and choices: the returned value is one that a trial can have. */
void space_from_unit(const struct space *space, const double *u, double *ret_x);
/* How far b lies from a on the scale of one parameter that is not categorical; 1 is the whole range, and outside counts. */
double space_unit_distance(const struct space_param *param, double a, double b);
/* Number of distinct points, or INFINITY. */
double space_size(const struct space *space);

/* ---- history ---- */

enum gp_trial_state { GP_TRIAL_DONE, GP_TRIAL_FAILED, GP_TRIAL_PENDING, GP_TRIAL_STOPPED };

struct gp_trial {
    const double *x; /* (dim) natural units, borrowed */
    enum gp_trial_state state;
    double score; /* higher is better (the caller turns minimise round); finite when DONE or STOPPED */
    double cost; /* > 0 when DONE or STOPPED */
};

struct gp_history {
    size_t n;
    const struct gp_trial *trials; /* in order of trial number */
    size_t n_other;
    const struct gp_trial
        *other; /* runs of other studies, in this space's values: only DONE ones teach, at half weight,
                                     and those outside the space not at all; never on a front, never "tried" */
};

/* ---- front and hypervolume, on (cost, score); cost lower and score higher is better ---- */

/* on_front (n): true for trials that no other dominates (DONE only; of equals the first). O(n log n). */
enum status pareto_front(const struct gp_history *history, bool *ret_on_front, struct error *err) MUST_USE;
/* Area between front and reference in (log cost, score); points outside count nothing. */
struct pareto_ref {
    double cost, score; /* the worst corner: highest cost, lowest score */
};
#define PARETO_REF_TRIALS 10
/* Reference of a study: the worst cost and score of its first PARETO_REF_TRIALS finished trials and a tenth of their range
 * more. It moves until there are so many, and with it the hypervolume. */
void pareto_reference(const struct gp_history *history, struct pareto_ref *ret_ref);
/* 0 when no trial lies inside; NaN when out of memory. */
double pareto_hypervolume(const struct gp_history *history, const struct pareto_ref *ref);
/* ret_volumes[k]: that of the first counts[k] trials; counts rise. As pareto_hypervolume for each, at the cost of one pass. */
enum status pareto_hypervolume_curve(const struct gp_history *history, const struct pareto_ref *ref,
                                     const size_t *counts, size_t n_counts, double *ret_volumes,
                                     struct error *err) MUST_USE;
/* Index of the front's knee: farthest from the line between its ends in normalised (log cost, score); n if no front. */
size_t pareto_knee(const struct gp_history *history);

/* ---- suggest ---- */

enum suggest_method { SUGGEST_PARETO, SUGGEST_RANDOM, SUGGEST_SOBOL, SUGGEST_PROTEIN, SUGGEST_CARBS };
const char *suggest_method_names(void); /* "pareto|random|sobol|protein|carbs", for option tables */

struct suggest_settings {
    enum suggest_method method;
    uint64_t seed;
    size_t n_init; /* design points before the model speaks; 0: min(2 dim, 10) */
    double max_cost; /* propose nothing predicted dearer, unless all is; 0: no cap */
};

struct suggestion {
    double x[SPACE_MAX_DIM];
    char origin
        [32]; /* "default", "sobol", "random", "ehvi", "repeat" (of a point of the front): stored with the trial */
    bool has_prediction;
    double score_mean, score_sd, log_cost_mean, log_cost_sd;
};

/* The design points that a setting of n_init means in so many dimensions. */
size_t suggester_n_init(size_t dim, size_t n_init);

/* Holds work memory between calls; results never depend on earlier calls. One thread at a time. */
struct suggester;
enum status suggester_create(struct suggester **ret_suggester, const struct space *space,
                             const struct suggest_settings *settings, struct error *err) MUST_USE;
void suggester_destroy(struct suggester *suggester);
/* Proposal for trial number `number` (0-based; with the seed it names the random stream). ST_LIMIT when a finite space
 * is exhausted. */
enum status suggester_next(struct suggester *suggester, const struct gp_history *history, int64_t number,
                           struct suggestion *ret_suggestion, struct error *err) MUST_USE;

/* ---- what a study has taught: read off the models of `pareto` ---- */

/* A trial's point as the models see it: an interval and not one lucky run. Without the noise of seeds. */
struct gp_belief {
    double score, score_sd;
    double log_cost, log_cost_sd;
    bool on_front; /* not dominated by the belief of another finished trial */
};

/* First-order effect: share of the variance over the whole space that the parameter explains by itself, 0 .. 1, with the
 * standard deviation over draws from the posterior; and its share in the model's distances (1 / length^2, sums to 1). */
struct gp_importance {
    double effect, effect_sd, sensitivity;
};

/* Half of the front or more lies on this bound: the best values may lie outside. */
struct gp_edge {
    int side; /* -1: lower bound, 1: upper, 0: the front does not lean */
    size_t n_on, n_front;
    double suggested; /* bound to try instead, natural units */
};

struct gp_insight {
    size_t n;
    struct gp_belief *beliefs; /* (n) of each trial's point, owned; NULL: see note */
    size_t recommended; /* finished trial of the highest score - score_sd; n: none */
    double score_noise_sd; /* of one run, between seeds */
    struct gp_importance score[SPACE_MAX_DIM], cost[SPACE_MAX_DIM];
    struct gp_edge edges[SPACE_MAX_DIM];
    const char *note, *score_note, *cost_note; /* why there is nothing, or why it is 0; NULL: no reason needed */
};

/* Seeded draws: same inputs, same bytes. Few or odd data are a note and no error. */
enum status gp_insight_init(struct gp_insight *ret_insight, const struct space *space, const struct gp_history *history,
                            uint64_t seed, struct error *err) MUST_USE;
void gp_insight_free(struct gp_insight *insight); /* a zeroed one is fine */
/* insight.recommended alone, much faster; history->n: none. */
enum status gp_recommend(const struct space *space, const struct gp_history *history, size_t *ret_i,
                         struct error *err) MUST_USE;

/* The models alone, kept to be asked anywhere in the space. One thread at a time; space and history are copied.
 * ST_NUMERIC: these data have no model. At least 4 finished trials are wanted, as for an insight. */
struct gp_surrogate;
enum status gp_surrogate_create(struct gp_surrogate **ret_surrogate, const struct space *space,
                                const struct gp_history *history, struct error *err) MUST_USE;
void gp_surrogate_destroy(struct gp_surrogate *surrogate); /* NULL is fine */
/* x: (n, dim) natural values. on_front is left false. */
void gp_surrogate_predict(struct gp_surrogate *surrogate, const double *x, size_t n, struct gp_belief *ret_beliefs);

/* ---- early stopping, from the curves of finished runs ---- */

#define STOP_PROGRESS_MIN 0.2 /* share of its steps that every run may take */
#define STOP_PROGRESS_MAX 0.9 /* share after which there is little left to save */
#define STOP_CURVES_MIN 10 /* finished runs with a curve, below which none is stopped */
#define STOP_CHANCE 0.02 /* of improving the front, below which a run is stopped */

struct gp_curve_point {
    double progress; /* share of the run's steps, rising */
    double score; /* higher is better */
};

/* A finished run: its curve and how it ended. */
struct gp_curve {
    size_t n;
    const struct gp_curve_point *points;
    double score, cost;
};

struct gp_stop_now { /* of the run that may be stopped */
    double progress, score, cost; /* so far */
};

struct gp_verdict {
    bool stop;
    double chance; /* that it ends above level; 1 when nothing is known */
    double final_mean, final_sd, final_cost; /* where it is expected to end */
    double level; /* best score that a finished run has for no more than final_cost; -INFINITY: none */
    size_t n_known; /* finished runs it was judged by */
};

/* Free of scale and shift of the scores; O(n) in the runs. */
void gp_stop_judge(const struct gp_curve *finished, size_t n, const struct gp_stop_now *now,
                   struct gp_verdict *ret_verdict);

#endif
