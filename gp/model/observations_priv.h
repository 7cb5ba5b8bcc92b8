/* observations_priv.h - a history grouped by distinct point, for the models. Private to gp/. */
#pragma once

#include "gp/gp_priv.h"

/* Between scores and what models learn of them: warp.c. */
struct warp {
    double middle, spread;
    double last; /* distance of the farthest score on the side of the tail, as models see it */
    double tail; /* the side that is compressed: -1 low scores, 1 high ones; 0: none, scores are learned as they are */
};
double warp_to(const struct warp *warp, double score);
double warp_from(const struct warp *warp, double value);
/* A standard deviation about a score, and about a value. */
double warp_sd_to(const struct warp *warp, double score, double sd);
double warp_sd_from(const struct warp *warp, double value, double sd);
struct warp warp_of(double *scores, size_t n); /* sorts */
void warp_reaches(struct warp *warp, double score); /* there is also this score */

struct mean_ss {
    double n, mean, ss; /* count, mean, sum of squared deviations */
};

#define OTHER_WEIGHT 0.5 /* of a run of another study: twice the noise */
#define OBSERVATIONS_FAILED_MIN 3 /* failed runs from which on the chance of failing is modelled */

struct observations {
    size_t n, dim; /* groups */
    double *u; /* (n, dim) unit coordinates */
    double *x; /* (n, dim) natural values, snapped */
    struct warp warp; /* of scores, but for done_score */
    struct mean_ss *score; /* (n) what the score model learns; n == 0: nothing known */
    /* (n) scores at which runs were stopped: the final one would have been as high or higher */
    struct mean_ss *stopped;
    struct mean_ss *stopped_cost; /* (n) ln of what these had cost: the whole run would have cost as much or more */
    struct mean_ss *ok; /* (n) 1: a run that worked, -1: one that failed */
    size_t n_failed; /* runs */
    struct mean_ss *cost; /* (n) ln cost of finished runs */
    struct mean_ss *score_var; /* (n) squared standard errors of finished runs' own scores, where they are known */
    struct mean_ss *done_score; /* (n) raw scores of finished runs, for the front */
    struct mean_ss *third; /* (n) of own finished runs, where there is a third objective; else NULL */
    /* (n) each: what limit k bounds, of own finished runs; NULL: no such limit */
    struct mean_ss *outcome[GP_MAX_LIMITS];
    bool *feasible; /* (n) the mean outcomes keep all limits: it may be on the front */
    bool *clipped; /* (n) an own score counts as a higher one */
    bool *pending; /* (n) */
    bool *start; /* (n) see struct gp_trial */
    size_t *group; /* (trials, then those of other studies) each one's group */
};

void observations_init(struct observations *obs, const struct space *space, const struct gp_history *history);
/* Snapping would move a point from outside to a bound, where its outputs are wrong. */
bool observations_inside(const struct space *space, const double *x);
void observations_free(struct observations *obs);
