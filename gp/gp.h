/* gp.h - pure numbers of the sweep (public face of gp/): search space, designs, Gaussian processes, Pareto fronts,
 * acquisition, and suggest: (space, history, settings, seed) -> a proposal. No clock, no files, no threads; same inputs
 * give the same bytes. f64 on the CPU over GSL and OpenBLAS. */
#pragma once

#include "base/base.h"

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
    bool is_ordered; /* categorical: neighbours are alike, as the numbers 0 .. n_choices - 1 would be */
    double step; /* LINEAR: values are min, min + step, ... up to max; 0: any */
    bool has_init;
    double init; /* user's default for the first trial, natural units */
    /* Of effect only while another parameter has certain values. Elsewhere it has one value, its start value or the
     * middle of its range, so that no two points differ by what has no effect. */
    bool is_conditional;
    size_t parent; /* which parameter; it may itself be conditional */
    uint64_t parent_choices; /* categorical parent: bit k stands for its choice k */
    double parent_min, parent_max; /* any other parent: inclusive, natural units; INFINITY is fine */
};

struct space {
    size_t dim;
    struct space_param params[SPACE_MAX_DIM];
};

/* Checks min < max, log needs min > 0, logit needs 0 < min and max < 1, pow2 bounds hold a power of two, parents exist
 * and depend on no child of theirs; message names key, value found and what to do. */
enum status space_check(const struct space *space, struct error *err) MUST_USE;
/* Has parameter i an effect at x? */
bool space_is_active(const struct space *space, size_t i, const double *x);
void space_to_unit(const struct space *space, const double *x, double *ret_u);
/* Snaps to integers, powers of two and choices, and inactive parameters to their one value: the returned value is one
 * that a trial can have. */
void space_from_unit(const struct space *space, const double *u, double *ret_x);
/* How far b lies from a on the scale of one parameter that is not categorical; 1 is the whole range, and outside
 * counts. */
double space_unit_distance(const struct space_param *param, double a, double b);
/* Number of distinct points, or INFINITY. */
double space_size(const struct space *space);

/* ---- history ---- */

enum gp_trial_state {
    GP_TRIAL_DONE,
    GP_TRIAL_FAILED,
    GP_TRIAL_PENDING,
    GP_TRIAL_STOPPED,
    GP_TRIAL_DROPPED, /* by a person, or told by another row: it teaches nothing, but its point counts as tried */
    GP_TRIAL_INFEASIBLE /* finished, but an outcome breaks its limit: it teaches, and is never on a front nor advice */
};

#define GP_MAX_LIMITS 8
/* What an outcome of a trial may be, both ends included; -INFINITY, INFINITY: no end. */
struct gp_limit {
    double min, max;
};

struct gp_trial {
    const double *x; /* (dim) natural units, borrowed */
    enum gp_trial_state state;
    double score; /* higher is better (the caller turns minimise round); finite when DONE, INFEASIBLE or STOPPED */
    double cost; /* > 0 when DONE, INFEASIBLE or STOPPED */
    double score_se; /* standard error of the score as a measure of its own policy; 0 or NaN: unknown */
    double third; /* of a history with has_third: lower is better, finite when DONE or INFEASIBLE */
    bool is_branch; /* a part of another trial's run: no point of the design */
    bool is_start; /* of another game's front, chosen to be good: it sets no reference */
    double outcomes[GP_MAX_LIMITS]; /* (history.n_limits) what the limits bound; NaN: unknown */
};

struct gp_history {
    size_t n;
    const struct gp_trial *trials; /* in order of trial number */
    size_t n_other;
    /* Runs of other studies, in this space's values: only DONE ones teach, at half weight, and those outside the space
     * not at all; never on a front, never "tried". */
    const struct gp_trial *other;
    /* The other study is of another game: its scores and costs are in another unit, so its runs teach nothing. While
     * own runs rank points as it does, three of its front take places of the design. */
    bool other_game;
    bool has_third; /* a third objective beside cost and score */
    size_t n_limits; /* at most GP_MAX_LIMITS */
    const struct gp_limit *limits; /* (n_limits) borrowed */
    bool has_score_bounds; /* a score lies between these, whatever the config (perf: 0 and 1; minimised: negated) */
    double score_min, score_max;
};

/* Runs of one point (equal x) under several seeds are trials of their own here. */

/* Is each of these outcomes known and within its limit? */
bool gp_is_feasible(const struct gp_history *history, const double *outcomes);

/* ---- front and hypervolume, on (cost, score) or (cost, score, third); cost and third lower, score higher is better.
 * Only DONE trials count ---- */

/* How well costs and the third objective are known: standard deviations, (n) each of the history; NULL: exact. Scores
 * are compared as they are: a margin for their doubt left points out that were better (bench/notes/controller.md). */
struct pareto_noise {
    const double *log_cost_sd, *third_sd;
    const size_t *n_seeds; /* support of a trial: ties keep the best supported; NULL: all the same */
};

/* on_front (n): true for trials that no other covers (DONE only). With noise NULL: that no other dominates, of equals
 * the first, O(n log n), with a third objective O(n front). Else a member covers a when it scores no less and costs no
 * more (and its third is no higher), within the standard deviation of the difference. Of two that cover each other one
 * stays: that of most seeds, then the cheaper. */
void pareto_front(const struct gp_history *history, const struct pareto_noise *noise, bool *ret_on_front);
/* The same for single runs, where on_front is that of all trials but i, which is new: what none of these covers. */
void pareto_front_add(const struct gp_history *history, size_t i, bool *on_front);
/* The members of the front of single runs, in cost and score alone, by falling cost and so by falling score: ret_order
 * has room for history->n. Returns how many. */
size_t pareto_front_order(const struct gp_history *history, size_t *ret_order);
/* Area between front and reference in (log cost, score), or volume in (log cost, score, third); points outside count
 * nothing. */
struct pareto_ref {
    double cost, score, third; /* the worst corner: highest cost, lowest score, highest third */
};
#define PARETO_REF_TRIALS 10
/* Reference of a study: the worst objectives of its first PARETO_REF_TRIALS finished trials, infeasible ones among
 * them, and a tenth of their range more. It moves until there are that many trials, and with it the hypervolume. */
void pareto_reference(const struct gp_history *history, struct pareto_ref *ret_ref);
/* 0 when no trial lies inside. */
double pareto_hypervolume(const struct gp_history *history, const struct pareto_ref *ref);
/* ret_volumes[k]: that of the first counts[k] trials; counts rise. As pareto_hypervolume for each, at the cost of one
 * pass. */
void pareto_hypervolume_curve(const struct gp_history *history, const struct pareto_ref *ref, const size_t *counts,
                              size_t n_counts, double *ret_volumes);
#define PARETO_BEND_MIN 0.1 /* of a knee: distance above the line in normalised units, along the score */
/* The front's knee: farthest above the line between its ends in normalised (log cost, score), by more than
 * PARETO_BEND_MIN; n when the front has none. Of raw scores, and of cost and score alone: for advice take gp_pick. */
size_t pareto_knee(const struct gp_history *history);

/* ---- suggest ---- */

enum suggest_method { SUGGEST_PARETO, SUGGEST_RANDOM, SUGGEST_SOBOL };
const char *suggest_method_names(void); /* "pareto|random|sobol", for option tables */

struct suggest_settings {
    enum suggest_method method;
    uint64_t seed;
    size_t n_init; /* design points before the models are asked; 0: min(dim + 5, 10) */
    double max_cost; /* propose no point that is predicted to cost more, unless all do; 0: no cap */
    /* Can a trial have this point (dim natural values, snapped)? A pure function, asked some tens of times for a
     * proposal, in the thread that proposes; NULL: always. What is not allowed is never proposed. */
    bool (*allowed)(void *ctx, const double *x);
    void *allowed_ctx; /* borrowed */
};

#define SUGGEST_START_ORIGIN "from" /* of a point of another game's front */

struct suggestion {
    double x[SPACE_MAX_DIM];
    char origin[32]; /* "default", "sobol", "random", "ehvi", SUGGEST_START_ORIGIN: stored with the trial */
    bool has_prediction;
    double score_mean, score_sd, log_cost_mean, log_cost_sd; /* sd: of one run, the noise between runs included */
    double feasible; /* the predicted chance that the point keeps all limits; 1 without limits */
};

/* The design points that a setting of n_init means in dim dimensions. */
size_t suggester_n_init(size_t dim, size_t n_init);

/* Results never depend on earlier calls. One thread at a time. */
struct suggester;
enum status suggester_create(struct suggester **ret_suggester, const struct space *space,
                             const struct suggest_settings *settings, struct error *err) MUST_USE;
void suggester_destroy(struct suggester *suggester);
/* Proposal for trial number `number` (0-based; with the seed it names the random stream). ST_LIMIT when a finite space
 * is exhausted, or when nothing that is allowed was found. */
enum status suggester_next(struct suggester *suggester, const struct gp_history *history, int64_t number,
                           struct suggestion *ret_suggestion, struct error *err) MUST_USE;
/* n proposals at once, for the trial numbers from `number` on, each knowing those before it as pending. Where more than
 * SUGGEST_FEW are pending or asked for, one set of models makes them all. ret_suggestions (n); ret_n < n: the space is
 * used up then; ST_LIMIT: already for the first. */
enum status suggester_batch(struct suggester *suggester, const struct gp_history *history, int64_t number, size_t n,
                            struct suggestion *ret_suggestions, size_t *ret_n, struct error *err) MUST_USE;
#define SUGGEST_FEW 16
#define SUGGEST_BATCH_MAX 64
/* How many to ask for at a time where n_parallel trials are under way, or could be, and n_wanted are waited for: 1 up to
 * SUGGEST_FEW, then one for each SUGGEST_FEW of them, so that each knows nearly all that one by itself would; more where
 * more are waited for, since none of these would know more if it came later. */
size_t suggester_batch_size(size_t n_parallel, size_t n_wanted);

/* ---- what a study has taught: read off the models of `pareto` ---- */

#define GP_SD_95 1.959963984540054 /* standard deviations of a normal distribution: 95 % within, 97.5 % below */
#define GP_PROMISE_SEEDS 5 /* an interval is that of the mean of this many fresh runs */

/* A trial's point as the models see it: an interval and not one lucky run. */
struct gp_belief {
    double score, score_sd; /* expected score, and how well that is known */
    double log_cost, log_cost_sd;
    double third, third_sd; /* of a history with has_third */
    double feasible; /* the chance that the point keeps all limits; 1 without limits */
    double noise_sd; /* of one run at this point, between seeds */
    size_t n_seeds; /* finished runs of this very point */
    double mean; /* of their scores; NaN: none */
    double lo, hi; /* 95 % interval of the mean of GP_PROMISE_SEEDS fresh runs, inside what a score can be */
    bool breaks_limit; /* the mean outcomes of the point's runs do: never on a front nor advice */
    bool on_front; /* of finished trials: not covered by the belief of another, see pareto_front */
};

/* First-order effect: share of the variance over the whole space that the parameter explains by itself, 0 .. 1, with
 * the standard deviation over draws from the posterior; and its share in the model's distances (1 / length^2, sums to
 * 1). */
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
    size_t *point; /* (n) first trial of the same point: runs of one point share its belief; owned; NULL: see note */
    size_t recommended; /* what gp_pick gives for GP_BEST; n: none */
    double score_noise_sd; /* of one run, between seeds: the middle one of the finished trials */
    struct gp_importance score[SPACE_MAX_DIM], cost[SPACE_MAX_DIM];
    struct gp_edge edges[SPACE_MAX_DIM];
    const char *note, *score_note, *cost_note; /* why there is nothing, or why it is 0; NULL: no reason needed */
};

/* Is trial i a member of the front that is shown? What is advised is one, also where a cheaper one is as good within
 * noise. insight has beliefs, and i is below its n. */
static inline bool gp_is_shown_on_front(const struct gp_insight *insight, size_t i)
{
    return insight->beliefs[i].on_front || i == insight->recommended;
}

/* Seeded draws: same inputs, same bytes. Few or odd data are a note and no error. */
void gp_insight_init(struct gp_insight *ret_insight, const struct space *space, const struct gp_history *history,
                     uint64_t seed);
void gp_insight_free(struct gp_insight *insight); /* a zeroed one is fine */
/* The same without edges and importance, which take most of the time. */
void gp_beliefs_init(struct gp_insight *ret_insight, const struct space *space, const struct gp_history *history);

/* Which trial to take. The one place where this is decided, for every reader. */
enum gp_rule {
    GP_BEST, /* the highest score - score_sd, own runs counting more than in the score: advice.c */
    GP_KNEE, /* of the front of beliefs, see pareto_knee; bent by more than what the score is known to */
    GP_COST_MAX, /* GP_BEST of those that cost no more, expected and seen */
    GP_SCORE_MIN /* the cheapest whose interval lies at or above the score */
};
struct gp_picked {
    size_t i; /* the point's first finished trial; history->n: none */
    bool
        /* false: only raw scores were there to go by, or (GP_SCORE_MIN) no interval lies above; the nearest is given */
        supported;
    const char *note; /* why there is none, or why it is not supported; NULL: no reason needed */
};
/* insight of this history, with or without a note. value: of GP_COST_MAX and GP_SCORE_MIN (higher is better). */
struct gp_picked gp_pick(const struct gp_insight *insight, const struct gp_history *history, enum gp_rule rule,
                         double value);

/* Where every config is to be run under several seeds: the first finished trial whose config has had fewer runs, those
 * under way and those that failed included, and is not beaten: no config that costs no more, with no higher third, is
 * expected to score higher. Without beliefs none is beaten. n: none. Pure. */
size_t gp_seed_next(const struct space *space, const struct gp_insight *insight, const struct gp_history *history,
                    size_t seeds);

/* What is shown as advice should have been run under several seeds: best and knee under 5, the front's other members
 * under 3, and all of them under 2 where the interval is narrow. */
enum gp_confirm_turn {
    GP_CONFIRM_BEST, /* the best, until it has two seeds; nothing else */
    GP_CONFIRM_DOUBTFUL, /* the advice that can be most wrong, for what a run lessens it */
    GP_CONFIRM_END, /* before that best and knee, until each has two seeds */
    /* for the last runs of a study: after best and knee the config seen once that would be the best if the best fell,
     * so that the last scores can hardly make an unconfirmed config the best; when nothing is doubtful, the best
     * again */
    GP_CONFIRM_LAST
};
/* The trial whose config to run again under a fresh seed; n: none. Runs under way count as made. Pure. */
size_t gp_confirm_next(const struct gp_insight *insight, const struct gp_history *history, enum gp_confirm_turn turn);

/* The models alone, kept to be asked anywhere in the space. One thread at a time; space and history are copied.
 * ST_NUMERIC: these data have no model. At least 4 finished trials are wanted, as for an insight. */
struct gp_surrogate;
enum status gp_surrogate_create(struct gp_surrogate **ret_surrogate, const struct space *space,
                                const struct gp_history *history, struct error *err) MUST_USE;
void gp_surrogate_destroy(struct gp_surrogate *surrogate); /* NULL is fine */
/* x: (n, dim) natural values. n_seeds is left 0, mean NaN, on_front false. */
void gp_surrogate_predict(struct gp_surrogate *surrogate, const double *x, size_t n, struct gp_belief *ret_beliefs);
/* Half of the 95 % interval of one run's result, in the standard deviations that a proposal predicts of it: Student's t,
 * whose scale is learned from how far the n earlier results of the study were off, in theirs (sum_sq: of the squares). */
double gp_miss_95(double sum_sq, size_t n);
