/* known.h - what is known of a problem from a dense search. */
#pragma once

#include "bench/sweep/problem.h"

struct known {
    double ref_cost, ref_score; /* 90 % quantile of cost and median score of random designs */
    double best_score; /* highest true score found */
    double hypervolume; /* of the best known front, in (ln cost, score) from the reference */
};

/* Area between the n points' front and the reference in (ln cost, score). Sorts by cost; both arrays may be reordered
 * together. */
double known_hypervolume(struct outcome *points, size_t n, const struct known *known);
enum status known_load(struct known *ret_known, const char *path, const char *problem, struct error *err) MUST_USE;
/* Dense search of n_points random and as many improved points; JSON entry for the file. */
cJSON *known_search(const struct problem *problem, size_t n_points);
