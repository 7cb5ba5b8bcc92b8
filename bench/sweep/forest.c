/* forest.c - extremely randomised trees (Geurts et al. 2006) as a smoother: what is predicted at a point is a
 * weighted mean of the rows of a table, each tree giving equal weight to the rows in the point's leaf. At every node
 * one cut is drawn in each parameter, and the one that leaves the least variance of the outputs is kept. No model class
 * that a method of sweeps uses is favoured by it: the surface is made of steps, many and small.
 * Invariant: built from the table and fixed streams alone; read-only afterwards. */
#include "bench/sweep/forest.h"

#include "base/rng.h"

struct node {
    uint32_t feature; /* LEAF: rows[first, first + n) of the tree's order */
    float cut; /* u < cut goes to child, else to child + 1 */
    uint32_t child, n;
};
#define LEAF UINT32_MAX

struct forest {
    size_t n, dim, n_trees, max_nodes;
    struct node *nodes; /* (n_trees, max_nodes), root first */
    uint32_t *rows; /* (n_trees, n) permutations of the rows */
};

struct growth { /* of one tree */
    const float *u, *y;
    size_t dim, n_out, min_leaf, n_nodes;
    struct node *nodes;
    uint32_t *rows;
    double *sum; /* (n_out) work */
    struct rng rng;
};

/* Negative variance left by the cut, but for a constant: sum over sides and outputs of (sum y)^2 / n. -1: not
 * allowed. */
static double cut_gain(struct growth *g, const uint32_t *rows, size_t n, size_t feature, float cut)
{
    double gain = 0.0;

    for (int side = 0; side < 2; side++) {
        size_t count = 0;
        memset(g->sum, 0, g->n_out * sizeof *g->sum);
        for (size_t i = 0; i < n; i++) {
            if ((g->u[rows[i] * g->dim + feature] < cut) != (side == 0))
                continue;
            count++;
            for (size_t o = 0; o < g->n_out; o++)
                g->sum[o] += (double)g->y[rows[i] * g->n_out + o];
        }
        if (count < g->min_leaf)
            return -1.0;
        for (size_t o = 0; o < g->n_out; o++)
            gain += g->sum[o] * g->sum[o] / (double)count;
    }
    return gain;
}

static bool find_cut(struct growth *g, const uint32_t *rows, size_t n, uint32_t *ret_feature, float *ret_cut)
{
    double best = -1.0;

    for (size_t j = 0; j < g->dim; j++) {
        float lo = INFINITY, hi = -INFINITY;
        for (size_t i = 0; i < n; i++) {
            lo = fminf(lo, g->u[rows[i] * g->dim + j]);
            hi = fmaxf(hi, g->u[rows[i] * g->dim + j]);
        }
        if (!(lo < hi))
            continue;
        float cut = lo + (hi - lo) * (float)(1.0 - rng_f64(&g->rng)); /* in (lo, hi] */
        double gain = cut_gain(g, rows, n, j, cut);
        if (gain > best) {
            best = gain;
            *ret_feature = (uint32_t)j;
            *ret_cut = cut;
        }
    }
    return best >= 0.0;
}

/* Rows below the cut first; returns how many. */
static size_t partition(const struct growth *g, uint32_t *rows, size_t n, uint32_t feature, float cut)
{
    size_t k = 0;

    for (size_t i = 0; i < n; i++)
        if (g->u[rows[i] * g->dim + feature] < cut) {
            uint32_t row = rows[i];
            rows[i] = rows[k];
            rows[k++] = row;
        }
    return k;
}

static void grow(struct growth *g, size_t at, size_t first, size_t n)
{
    struct node *node = &g->nodes[at];
    uint32_t feature = 0;
    float cut = 0.0f;

    if (n < 2 * g->min_leaf || !find_cut(g, g->rows + first, n, &feature, &cut)) {
        *node = (struct node){.feature = LEAF, .child = (uint32_t)first, .n = (uint32_t)n};
        return;
    }
    size_t left = partition(g, g->rows + first, n, feature, cut), child = g->n_nodes;
    *node = (struct node){.feature = feature, .cut = cut, .child = (uint32_t)child};
    g->n_nodes += 2;
    grow(g, child, first, left);
    grow(g, child + 1, first + left, n - left);
}

struct forest *forest_create(size_t n, size_t dim, const float *u, size_t n_out, const float *y, size_t n_trees,
                             size_t min_leaf)
{
    struct forest *f = mem_alloc(sizeof *f);
    MEM_LOCAL double *sum = mem_array(n_out, sizeof *sum);

    *f = (struct forest){.n = n, .dim = dim, .n_trees = n_trees, .max_nodes = 2 * n};
    f->nodes = mem_array2(n_trees, f->max_nodes, sizeof *f->nodes);
    f->rows = mem_array2(n_trees, n, sizeof *f->rows);
    for (size_t t = 0; t < n_trees; t++) {
        struct growth g = {.u = u,
                           .y = y,
                           .dim = dim,
                           .n_out = n_out,
                           .min_leaf = min_leaf,
                           .n_nodes = 1,
                           .nodes = f->nodes + t * f->max_nodes,
                           .rows = f->rows + t * n,
                           .sum = sum,
                           .rng = rng_split(rng_seed(7), t)};
        for (size_t i = 0; i < n; i++)
            g.rows[i] = (uint32_t)i;
        grow(&g, 0, 0, n);
    }
    return f;
}

void forest_destroy(struct forest *forest)
{
    if (forest == NULL)
        return;
    mem_free(forest->nodes);
    mem_free(forest->rows);
    mem_free(forest);
}

void forest_weights(const struct forest *f, const double *u, double *ret_w)
{
    memset(ret_w, 0, f->n * sizeof *ret_w);
    for (size_t t = 0; t < f->n_trees; t++) {
        const struct node *nodes = f->nodes + t * f->max_nodes, *at = nodes;
        const uint32_t *rows = f->rows + t * f->n;
        while (at->feature != LEAF)
            at = &nodes[at->child + ((float)u[at->feature] < at->cut ? 0 : 1)];
        for (size_t i = 0; i < at->n; i++)
            ret_w[rows[at->child + i]] += 1.0 / ((double)at->n * (double)f->n_trees);
    }
}
