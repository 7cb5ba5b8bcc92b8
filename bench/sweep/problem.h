/* problem.h - problems of which the truth is known, for `trawl-bench sweep`.
 * The rule that makes the numbers worth something: a method sees struct gp_history, which holds what problem_draw gave,
 * and nothing else. problem_truth is called by the measures alone, after the study. */
#pragma once

#include "base/text/json.h"
#include "base/rng.h"
#include "gp/gp.h"

#define PROBLEM_NAME_MAX 64

struct outcome {
    bool failed; /* score is then NaN; the cost was spent all the same */
    double score, cost;
    double limited; /* of a problem with a limit: what it bounds */
};

struct problem {
    char name[PROBLEM_NAME_MAX];
    struct space space;
    const struct problem_ops *ops;
    bool has_bounds; /* of a score, known to the methods */
    double score_min, score_max;
    bool has_limit; /* known to the methods; only what keeps it in truth counts */
    struct gp_limit limit;
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
};

/* One name and its family; the list ends with a NULL name. */
struct problem_entry {
    const char *name, *about;
    const struct problem_ops *ops;
};
extern const struct problem_entry problem_entries[];
extern const struct problem_ops problem_analytic_ops, problem_lcbench_ops, problem_table_ops;

static inline bool problem_is_kept(const struct problem *problem, const struct outcome *outcome)
{
    return !problem->has_limit || (outcome->limited >= problem->limit.min && outcome->limited <= problem->limit.max);
}
/* data_dir may be NULL. */
enum status problem_open(struct problem *problem, const char *name, const char *data_dir, struct error *err) MUST_USE;
void problem_close(struct problem *problem); /* a zeroed one is fine */
/* Path of the first dirs[i]/file that is there. */
enum status problem_find(const char *file, const char *const *dirs, size_t n_dirs, char *ret_path, size_t max,
                         struct error *err) MUST_USE;
double problem_normal(struct rng *rng);
