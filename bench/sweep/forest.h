/* forest.h - weights over the rows of a table, from trees of random cuts. */
#pragma once

#include "base/base.h"

struct forest;
/* u (n, dim) unit coordinates, y (n, n_out) what the cuts separate. Deterministic. */
struct forest *forest_create(size_t n, size_t dim, const float *u, size_t n_out, const float *y, size_t n_trees,
                             size_t min_leaf) MUST_USE;
void forest_destroy(struct forest *forest);
/* ret_w (n), sum 1: the mean over the trees of being in the same leaf as u. */
void forest_weights(const struct forest *forest, const double *u, double *ret_w);
