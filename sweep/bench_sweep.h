/* bench_sweep.h - what the files behind `trawl bench sweep|evaluate|front` share: problems of which the truth is known,
 * studies played on them in virtual time, and the measures of a study.
 * The rule that makes the numbers worth something: a method sees struct gp_history, which holds what problem_draw gave,
 * and nothing else. problem_truth is called by the measures alone, after the study. */
#ifndef SWEEP_BENCH_SWEEP_H
#define SWEEP_BENCH_SWEEP_H

#include "base/rng.h"
#include "sweep/sweep.h"

#define PROBLEM_NAME_MAX 64
#define PROBLEM_MAX_CURVE 16

/* ---- problems ---- */

struct outcome {
    bool failed; /* score is then NaN; the cost was spent all the same */
    double score, cost;
};

struct problem {
    char name[PROBLEM_NAME_MAX];
    struct space space;
    const struct problem_ops *ops;
    void *data; /* owned; what ops->open made */
};

struct problem_ops {
    /* Fills problem->space and ->data for a name of this family. ST_NOTFOUND: its data are not in any of dirs. */
    enum status (*open)(struct problem *problem, const char *const *dirs, size_t n_dirs, struct error *err);
    void (*close)(struct problem *problem); /* NULL: nothing to free */
    /* Mean score (of the trials that do not fail) and mean cost of n points, x (n, dim). Never fails. */
    void (*truth)(const struct problem *problem, size_t n, const double *x, struct outcome *ret);
    /* One trial with its noise. */
    void (*draw)(const struct problem *problem, const double *x, struct rng *rng, struct outcome *ret);
    /* Scores on the way of the trial that draw gives from the same rng; at most PROBLEM_MAX_CURVE. NULL: none known. */
    size_t (*course)(const struct problem *problem, const double *x, struct rng rng, struct gp_curve_point *ret);
};

/* One name and its family; the list ends with a NULL name. */
struct problem_entry {
    const char *name, *about;
    const struct problem_ops *ops;
};
extern const struct problem_entry problem_entries[];
extern const struct problem_ops problem_analytic_ops, problem_lcbench_ops, problem_table_ops;

/* data_dir may be NULL. */
enum status problem_open(struct problem *problem, const char *name, const char *data_dir, struct error *err) MUST_USE;
void problem_close(struct problem *problem); /* a zeroed one is fine */
/* Path of the first dirs[i]/file that is there. */
enum status problem_find(const char *file, const char *const *dirs, size_t n_dirs, char *ret_path, size_t max,
                         struct error *err) MUST_USE;
double rng_normal(struct rng *rng);

/* ---- bench_sweep_forest.c: weights over the rows of a table, from trees of random cuts ---- */

struct forest;
/* u (n, dim) unit coordinates, y (n, n_out) what the cuts separate. Deterministic. */
enum status forest_create(struct forest **ret_forest, size_t n, size_t dim, const float *u, size_t n_out,
                          const float *y, size_t n_trees, size_t min_leaf, struct error *err) MUST_USE;
void forest_destroy(struct forest *forest);
/* ret_w (n), sum 1: the mean over the trees of being in the same leaf as u. */
void forest_weights(const struct forest *forest, const double *u, double *ret_w);

/* ---- bench_sweep_front.c: what is known of a problem from a dense search ---- */

struct known {
    double ref_cost, ref_score; /* 90 % quantile of cost and median score of random designs */
    double best_score; /* highest true score found */
    double hypervolume; /* of the best known front, in (ln cost, score) from the reference */
};

/* Area between the n points' front and the reference in (ln cost, score). Sorts by cost; both arrays may be reordered
 * together. */
double known_hypervolume(struct outcome *points, size_t n, const struct known *known);
enum status known_load(struct known *ret_known, const char *path, const char *problem, struct error *err) MUST_USE;
/* Dense search of n_points random and as many improved points; JSON entry for the file. NULL when out of memory. */
cJSON *known_search(const struct problem *problem, size_t n_points);

/* ---- bench_sweep_study.c ---- */

struct play_trial {
    double *x; /* (dim) */
    struct outcome seen, truth; /* truth is filled by play_measure */
    double start, event; /* virtual time: of its next report, or its end */
    bool stopped; /* early, by what its reports said */
    size_t n_course, at; /* reports, those given */
    struct gp_curve_point course[PROBLEM_MAX_CURVE + 1]; /* with the end, when it finished */
};

struct play {
    const struct problem *problem;
    const char *method;
    uint64_t seed;
    size_t n_started, n_done, max_trials, parallel;
    bool early_stop;
    struct play_trial *trials; /* by number */
    size_t *order; /* (n_done) numbers in the order of finishing */
    double *x; /* memory of all x */
    double *latency_s; /* (n_started) time of each proposal */
    size_t n_latency;
    struct gp_curve *curves; /* (n_curves) of finished trials, with early_stop */
    size_t n_curves;
};

enum status play_init(struct play *study, const struct problem *problem, const char *method, uint64_t seed,
                      size_t max_trials, size_t parallel, bool early_stop, struct error *err) MUST_USE;
void play_free(struct play *study);
/* Starts one trial at x: draws its outcome from the stream (seed, number). */
void play_start(struct play *study, const double *x, double now);
/* Plays the whole study with a method of gp/. */
enum status play_run(struct play *study, enum suggest_method method, struct error *err) MUST_USE;
/* The measures as one JSON object; NULL when out of memory. */
cJSON *play_measure(struct play *study, const struct known *known);

/* ---- commands ---- */

enum status bench_sweep(int argc, char **argv, struct error *err) MUST_USE;
enum status bench_evaluate(int argc, char **argv, struct error *err) MUST_USE;
enum status bench_front(int argc, char **argv, struct error *err) MUST_USE;

#endif
