/* comparison.h - several studies of one metric side by side: their fronts as believed, hypervolumes to one reference,
 * what part of the studies of one search under several seeds attains, and what their configs differ in. A comparison
 * borrows its views, which need advice, and owns the rest; any thread. */
#pragma once

#include "base/text/json.h"
#include "gp/gp.h"

struct study_view;

#define COMPARISON_MAX 16 /* studies */

struct compared_point { /* of a front, by rising cost; scores in the studies' direction */
    size_t trial;
    double cost, score, lo, hi; /* lo, hi: NaN without a belief */
    size_t n_seeds;
};
struct compared {
    struct study_view *view; /* borrowed */
    size_t group; /* studies of one search under several seeds are one group: the first of them has its number */
    double volume; /* of the believed front, to the common reference */
    size_t best; /* view->n: none */
    struct compared_point *front; /* (n_front) owned */
    size_t n_front;
};
/* The score that a quarter, half and three quarters of a group's studies attain at a cost; NaN: fewer attain any. */
struct attained {
    size_t group;
    double cost, best, middle, worst; /* by a quarter, half, three quarters of the studies */
};
struct comparison {
    struct compared studies[COMPARISON_MAX]; /* (n) */
    size_t n;
    struct pareto_ref ref; /* the worst of the studies', higher score is better */
    struct attained *attained; /* (n_attained) of groups of two studies or more, by group and cost; owned */
    size_t n_attained;
    cJSON *differences; /* [{"key", "values": [text or null for each study]}], owned */
};
/* views: (n) 2 or more. ST_USAGE: their metrics, directions or kinds of cost differ, or one has no finished trial. */
enum status comparison_make(struct study_view *const *views, size_t n, struct comparison *ret_comparison,
                            struct error *err) MUST_USE;
/* May this option differ between studies of one search under several seeds? Those of their seeds, devices and ends. */
bool comparison_may_differ(const char *key);
void comparison_free(struct comparison *comparison);
/* COMPARISON(c): a pointer to one, which is large; it is freed when its block ends, however it is left. */
#define COMPARISON(c) AT_END(comparison_free_at) struct comparison *c = mem_alloc(sizeof *c)
static inline void comparison_free_at(struct comparison **comparison)
{
    comparison_free(*comparison);
    mem_free(*comparison);
}
cJSON *comparison_to_json(const struct comparison *comparison);
