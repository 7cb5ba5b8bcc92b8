/* study_view.h - a study in memory, as controller, terminal, export, report and pages read it: its trials, the points
 * of its space, scores and costs as models and front take them, the front, the belief in each trial.
 * A view owns all it holds; one thread writes it. Of a trial, `score` is in the study's direction and `cost` in the
 * study's unit; gp_trial.score and gp_belief.score are higher-is-better, and study_view_score turns them back. */
#pragma once

#include "store/store.h"
#include "study/games/rounds.h"
#include "study/space/search.h"

struct promise;
struct setup;
struct store;
struct strbuf;

/* Beyond this, either way, squares of scores overflow: no model and no hypervolume. Such a run has diverged. */
#define STUDY_SCORE_MAX 1e150
#define TRAIN_TRACK_METHOD "train" /* method of a study's row that holds a training's outbox */

#define EXTENDS_ORIGIN "extends" /* and a number: of a trial that begins at the checkpoint of that one */
#define CONFIRM_ORIGIN "confirm" /* of a trial that runs a config again under a fresh seed */
#define SEED_ORIGIN "seed" /* the same, where every config has several seeds (sweep.seeds) */
bool trial_is_confirming(const struct trial *trial);
/* Did its training begin at another trial's checkpoint (`trawl extend`)? *ret_number: of that one. */
bool trial_extends(const struct trial *trial, int64_t *ret_number);
/* Is it a part of the run of that trial (branches.h)? ret_number may be NULL. */
bool trial_is_branch(const struct trial *trial, int64_t *ret_number);
bool trial_is_seed(const struct trial *trial); /* a further one of its config */
#define ENV_ORIGIN "env" /* of a trial that runs another one's config on the next game (sweep.envs) */
bool trial_is_further(const struct trial *trial); /* of one of these three: its values were not proposed for it */

struct study_view {
    struct study study;
    struct search search;
    char *store_path; /* absolute, for commands that are shown; NULL: unknown */
    struct setup *setup; /* of the study's config; NULL until study_view_setup */
    struct trial *trials; /* (n) number i at index i */
    size_t n, cap; /* trials loaded; capacity of the arrays */
    size_t n_branches; /* of the trials: parts of other trials' runs */
    double **x; /* (n) points of dim natural values, owned; a point never moves */
    struct gp_trial *gp; /* (n) as the model sees them: score negated when minimised */
    struct gp_history history;
    bool *on_front; /* (n) by the models' beliefs where advice has them; else by single runs */
    bool *front_run; /* (n) by single runs alone */
    struct gp_insight advice; /* beliefs of the first advice.n trials; n 0: none yet */
    bool has_insight; /* the advice has edges and importance (study_insight.h) */
    bool advice_stale; /* trials have changed since */
    struct pareto_ref ref;
    size_t *env; /* (n) the game of each trial, an index of search.envs; 0 where there is one */
    struct missing_run missing; /* of a configuration that has not been trained on every game */
    struct gp_trial *other; /* rows of history.other, and their points; owned (warm_start_load) */
    double *other_x;
};

/* Trials that sweep.trials counts: all but branches, whose runs count. */
static inline size_t study_view_n_runs(const struct study_view *view)
{
    return view->n - view->n_branches;
}
/* The trial as front and models see it: higher scores are better; x is not set. */
void study_judge(const struct study *study, const struct search *search, const struct trial *trial,
                 struct gp_trial *ret_row);
const char *study_direction(const struct study *study); /* "maximize" or "minimize" */
bool study_better(const struct study *study, double a, double b); /* is score a better than b? NaN is the worst */
enum status study_view_load(struct store *store, const char *name, struct study_view *ret_view,
                            struct error *err) MUST_USE;
/* Opens the store, loads the study, closes the store. */
enum status study_view_open(const char *store_path, const char *name, struct study_view *ret_view,
                            struct error *err) MUST_USE;
/* A view without trials. Takes study. */
enum status study_view_begin(struct study *study, const char *store_path, struct study_view *ret_view,
                             struct error *err) MUST_USE;
void study_view_free(struct study_view *view);
/* STUDY_VIEW(view): a pointer to a view, which is large; it is freed when its block ends, however it is left. */
#define STUDY_VIEW(view) AT_END(study_view_free_at) struct study_view *view = mem_alloc(sizeof *view)
static inline void study_view_free_at(struct study_view **view)
{
    study_view_free(*view);
    mem_free(*view);
}
/* The setup of the study's config, parsed once; the view's. */
enum status study_view_setup(struct study_view *view, struct setup **ret_setup, struct error *err) MUST_USE;
void study_view_reserve(struct study_view *view, size_t n); /* capacity for n trials */
/* Row i becomes this trial, as the store has it (its strings are taken); i == n adds a row. Several may follow each
 * other before study_view_refresh. ST_CORRUPT: the row is there, with NaN for what its params do not hold. */
enum status study_view_put(struct study_view *view, size_t i, struct trial *trial, struct error *err) MUST_USE;
void study_view_refresh(struct study_view *view); /* front and reference */
void study_view_judge(struct study_view *view); /* all rows again, after the search's limits have changed */
/* Does finished trial i break a limit, by its own outcomes or by the mean of its config's runs? */
bool study_view_breaks_limit(const struct study_view *view, size_t i);
/* Which limit it breaks and by what; "": none. */
void study_view_explain_limit(const struct study_view *view, size_t i, char *buf, size_t size);
bool study_view_has_third(const struct study_view *view);
double study_view_third(const struct study_view *view, size_t i); /* of trial i, in its metric's unit; NaN: unknown */
double study_view_expected_third(const struct study_view *view, size_t i); /* as it is believed, where it is */
size_t study_view_count_infeasible(const struct study_view *view);
/* Takes trial (its strings) and its point x (dim) as the last row. */
void study_view_append(struct study_view *view, struct trial *trial, const double *x);
/* ST_CORRUPT: a trial without a value of a parameter. */
enum status study_view_check_points(const struct study_view *view, struct error *err) MUST_USE;
/* Computes the advice from all trials, unless it is there; readers show nothing else as advice. */
enum status study_view_advise(struct study_view *view, struct error *err) MUST_USE;
/* The advice alone, without a change of the view. */
enum status study_view_compute_advice(const struct study_view *view, struct gp_insight *ret_advice,
                                      struct error *err) MUST_USE;
/* Takes advice that was computed elsewhere from this study's first trials; without edges and importance. */
void study_view_take_advice(struct study_view *view, struct gp_insight *advice);
bool study_view_same_point(const struct study_view *view, size_t a,
                           size_t b); /* runs of one config, but for the seed? */
size_t study_view_runs(const struct study_view *view, size_t i); /* of trial i's config, that have ended and count */
size_t study_view_first_run(const struct study_view *view, int64_t number); /* the first trial of this one's config */
/* The belief in trial i; NULL: none. */
const struct gp_belief *study_view_belief(const struct study_view *view, size_t i);
/* Called after trials[i] changed: updates its row of the history, the front and the reference. */
void study_view_update(struct study_view *view, size_t i);
size_t study_view_pick(const struct study_view *view,
                       enum gp_rule rule); /* GP_BEST or GP_KNEE by its advice; n: none */
void study_view_promise(const struct study_view *view, size_t i, struct promise *ret_promise); /* of trial i's config */
/* Without beliefs: of its finished runs alone. */
void study_view_promise_of_runs(const struct study_view *view, size_t i, struct promise *ret_promise);
/* The best single run by the study's direction, of equals the cheapest; n if none. It may be luck: advice is
 * study_view_pick. */
size_t study_view_best_run(const struct study_view *view);
/* The row of a trial by its number. ST_NOTFOUND names the numbers that there are. */
enum status study_view_find(const struct study_view *view, int64_t number, size_t *ret_i, struct error *err) MUST_USE;
int64_t study_view_count(const struct study_view *view, enum trial_state state);
size_t study_view_front_size(const struct study_view *view);
double study_view_run_score(const struct study_view *view, size_t i); /* the same of row i, which was judged */
const char *study_view_env(const struct study_view *view, size_t i); /* the game of trial i; NULL: there is one */
double study_view_score(const struct study_view *view, double gp_score); /* in the study's direction */
/* The trial's cost in the unit of this kind: seconds, env steps or the program's own; NaN when unknown. */
double study_trial_cost(enum search_cost kind, const struct trial *trial);
const char *study_cost_text(enum search_cost kind, double cost, char *buf); /* as study_view_cost_text */
double study_view_trial_cost(const struct study_view *view, const struct trial *trial);
/* Parameter k of trial i as tables show it: "-" where it has no effect, and of train.total_timesteps the steps that
 * were run. */
void study_view_param_text(const struct study_view *view, size_t i, size_t k, char *buf, size_t size);
/* A cost as people read it, "12.3 s" or "4.1k steps", "-" when unknown. buf: 32. */
const char *study_view_cost_text(const struct study_view *view, double cost, char *buf);
double study_view_cost(const struct study_view *view); /* seconds, over all trials */
const char *study_cost_unit(enum search_cost kind); /* "s", "steps" or "own" */
bool study_cost_is_time(enum search_cost kind);
