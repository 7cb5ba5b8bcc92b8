/* gp_priv.h - what the files of gp/ share: snapping, designs, the set of points already tried, and the suggester.
 * Not for other folders. */
#pragma once

#include <gsl/gsl_qrng.h>

#include "base/rng.h"
#include "gp/gp.h"

/* ---- space.c ---- */

/* Categorical, and no choice is nearer to one than to another. */
bool space_param_is_unordered(const struct space_param *param);
/* Number of values that one parameter can take; INFINITY when continuous. */
double space_param_size(const struct space_param *param);
double space_param_to_unit(const struct space_param *param, double x);
double space_param_from_unit(const struct space_param *param, double u);
/* The nearest point that a trial can have: inside the bounds, whole, a power of two, idle where inactive. In place. */
void space_snap(const struct space *space, double *x);
bool space_is_conditional(const struct space *space); /* is any of its parameters? */
/* Inactive coordinates to where their one value lies; the others stay as they are, to the bit. In place. */
void space_idle_unit(const struct space *space, double *u);
/* The parameter that is the length of a run, by its name; dim: none. */
size_t space_steps_param(const struct space *space);
/* k-th value (0-based, rising) of a parameter with finitely many. */
double space_param_value(const struct space_param *param, double k);

/* ---- design.c: scrambled Sobol and seeded random points in [0, 1)^dim ---- */

#define DESIGN_SOBOL_BITS 30
#define DESIGN_SOBOL_MAX_DIM 40 /* GSL's table; above it design_sobol gives random points */

struct design {
    size_t dim;
    struct rng rng; /* parent of the random points */
    gsl_qrng qrng; /* its state is ours (mem_free); unused when dim > DESIGN_SOBOL_MAX_DIM */
    uint64_t position; /* points that qrng has given; point 0 is the origin and not one of them */
    double raw[SPACE_MAX_DIM];
    uint32_t rows[DESIGN_SOBOL_MAX_DIM][DESIGN_SOBOL_BITS]; /* lower triangular bit matrices, one row an output bit */
    uint32_t shift[DESIGN_SOBOL_MAX_DIM];
};

void design_init(struct design *design, size_t dim, struct rng rng);
void design_free(struct design *design); /* a zeroed one is fine */
/* Point `index` of the sequence, whatever was asked before; cheap when index rises. */
void design_sobol(struct design *design, uint64_t index, double *ret_u);
/* Uniform points by stream and attempt. */
void design_random(const struct design *design, uint64_t index, uint64_t attempt, double *ret_u);

/* ---- seen.c: the distinct points of a history, for refusing exact repeats ---- */

struct seen {
    size_t dim, n;
    double *x; /* (n, dim) snapped natural values, sorted, distinct, owned */
};

void seen_create(struct seen *ret_seen, const struct space *space, const struct gp_history *history);
void seen_free(struct seen *seen);
bool seen_has(const struct seen *seen, const double *x); /* x snapped */

/* ---- suggest.c ---- */

struct suggester {
    struct space space;
    struct space model_space; /* as the models of `pareto` see it: the length of a run on its logarithm */
    struct suggest_settings settings;
    struct rng root; /* of the seed */
    struct design design; /* the study's sequence */
};

/* suggest_pareto.c. history is checked, seen holds its points (pending and failed ones too), the space is not exhausted
 * and number 0 with init values has been dealt with. */
enum status suggest_pareto(struct suggester *suggester, const struct gp_history *history, const struct seen *seen,
                           int64_t number, struct suggestion *ret_suggestion, struct error *err) MUST_USE;
/* Up to n proposals by one set of models; ret_n 0: the design's turn, or no model of these data, or no candidate is
 * new. */
enum status suggest_pareto_many(struct suggester *suggester, const struct gp_history *history, const struct seen *seen,
                                int64_t number, size_t n, struct suggestion *ret_suggestions, size_t *ret_n,
                                struct error *err) MUST_USE;

/* Streams below rng_split(root, number); each label is used once. */
enum suggest_stream {
    SUGGEST_STREAM_DESIGN = 1,
    SUGGEST_STREAM_CANDIDATES = 3,
    SUGGEST_STREAM_LOCAL,
    SUGGEST_STREAM_NEAR,
    SUGGEST_STREAM_LOT
};

/* The design's point for this trial number, or the next free one that is allowed; never a seen point.
 * ST_LIMIT: none was found. */
enum status suggest_design_sobol(struct suggester *suggester, const struct seen *seen, int64_t number, double *ret_x,
                                 struct error *err) MUST_USE;
/* Can a trial have this point? */
bool suggest_is_allowed(const struct suggester *suggester, const double *x);
