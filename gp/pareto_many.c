/* pareto_many.c - several proposals of one set of models: the candidate of the largest expected hypervolume
 * improvement, then the next as if it had ended as expected, and so on. A candidate that is chosen narrows what the
 * models know nearby and takes its place on the front, so that the improvement of every other can only fall: one whose
 * old value is below another's up-to-date one need not be looked at (Minoux, "Accelerated greedy algorithms for
 * maximizing submodular set functions", 1978). Nothing is polished: where so much is unknown, spread counts for more
 * than the last digits of a point.
 * Invariant: the first k of n choices are those of k, where both are beyond SUGGEST_FEW or neither. */
#include "base/base.h"
#include "gp/pareto_pool.h"

#define LIKELY 0.5 /* chance to keep all limits from which on a point that is chosen counts on the front */

/* Work of one call. */
struct choice {
    struct search_state *h;
    struct field field[EHVI_MAX]; /* ln cost, score, third objective */
    size_t n_objectives, n_chosen;
    double *value; /* (n_pool) acquisition, by what was chosen when it was worked out */
    double *other; /* (n_pool) its terms that do not change */
    double *log_feasible; /* (n_pool) */
    size_t *by; /* (n_pool) number of choices that value knows */
    bool *closed; /* (n_pool) chosen, or no point that a trial can have */
};

/* ln EHVI of candidate c, by all that was chosen so far; its expectations and their spread, all minimised. */
static double improvement(struct choice *k, size_t c, double *ret_mean, double *ret_sd)
{
    for (size_t i = 0; i < k->n_objectives; i++) {
        ret_mean[i] = i == 1 ? -k->field[i].mean[c] : k->field[i].mean[c];
        ret_sd[i] = field_sd(&k->field[i], c);
    }
    return pareto_gains_count(k->h->s) ? ehvi_log(&k->h->s->ehvi, ret_mean, ret_sd, NULL) : 0.0;
}

/* The chance to work and to keep limits and cap, of all candidates; one that is too expensive has none. */
static void rate_others(struct choice *k)
{
    struct search_state *h = k->h;
    const struct pareto_search *s = h->s;
    double mean[BLOCK], sd[BLOCK];
    for (size_t at = 0; at < h->n_pool; at += BLOCK) {
        size_t n = h->n_pool - at < BLOCK ? h->n_pool - at : BLOCK;
        const double *u = h->pool_u + at * s->space->dim;
        pareto_log_feasible(s, u, n, h->cross, k->log_feasible + at);
        if (s->has_ok)
            model_predict(&s->ok, u, n, h->cross, mean, sd);
        for (size_t p = 0; p < n; p++) {
            size_t c = at + p;
            k->other[c] = k->log_feasible[c] + (s->has_ok ? pool_ok_log(h, mean[p], sd[p], NULL, NULL) : 0.0);
            k->other[c] += k->field[0].mean[c] > s->cap
                               ? -INFINITY
                               : pool_cap_log(h, k->field[0].mean[c], field_sd(&k->field[0], c), NULL);
        }
    }
}

static void choice_init(struct choice *k, struct search_state *h, size_t n)
{
    struct pareto_search *s = h->s;
    const struct model *models[EHVI_MAX] = {&s->cost, &s->score, &s->third};
    double mean[EHVI_MAX], sd[EHVI_MAX];
    *k = (struct choice){.h = h, .n_objectives = s->has_third ? 3 : 2};
    k->value = mem_array2(h->n_pool, 3, sizeof *k->value);
    k->other = k->value + h->n_pool;
    k->log_feasible = k->other + h->n_pool;
    k->by = mem_array(h->n_pool, sizeof *k->by);
    k->closed = mem_array(h->n_pool, sizeof *k->closed);
    for (size_t i = 0; i < k->n_objectives; i++)
        field_init(&k->field[i], models[i], h->pool_u, h->n_pool, n);
    rate_others(k);
    for (size_t c = 0; c < h->n_pool; c++)
        k->value[c] = improvement(k, c, mean, sd) + k->other[c];
}

static void choice_free(struct choice *k)
{
    for (size_t i = 0; i < k->n_objectives; i++)
        field_free(&k->field[i]);
    mem_free(k->value);
    mem_free(k->by);
    mem_free(k->closed);
}

/* The open candidate of the highest value; among those too expensive, the cheapest. n_pool: none is left. */
static size_t highest(const struct choice *k)
{
    const double *cost = k->field[0].mean;
    size_t n = k->h->n_pool, top = n;
    for (size_t c = 0; c < n; c++)
        if (!k->closed[c] && (top == n || k->value[c] > k->value[top] ||
                              (k->value[c] == k->value[top] && isinf(k->value[c]) && cost[c] < cost[top])))
            top = c;
    return top;
}

/* The next choice; false: no candidate is left. */
static bool choose(struct choice *k, struct candidate *ret)
{
    struct search_state *h = k->h;
    double mean[EHVI_MAX], sd[EHVI_MAX];
    for (size_t c; (c = highest(k)) < h->n_pool;) {
        double value = improvement(k, c, mean, sd) + k->other[c];
        if (k->by[c] < k->n_chosen && value < k->value[c]) {
            k->value[c] = value;
            k->by[c] = k->n_chosen;
            continue;
        }
        k->closed[c] = true;
        if (!pool_take(h, c, ret))
            continue;
        ret->value = value;
        ret->log_feasible = k->log_feasible[c];
        ret->f1_mean = mean[0];
        ret->f1_sd = sd[0];
        ret->f2_mean = -mean[1];
        ret->f2_sd = sd[1];
        k->n_chosen++;
        for (size_t i = 0; i < k->n_objectives; i++)
            field_join(&k->field[i], c);
        if (h->s->n_limits == 0 || k->log_feasible[c] > log(LIKELY))
            ehvi_add(&h->s->ehvi, mean);
        return true;
    }
    return false;
}

size_t pareto_many(struct pareto_search *s, const struct suggester *suggester, const struct seen *seen, struct rng rng,
                   size_t n, struct candidate *ret)
{
    struct search_state *h = search_state_create(s, suggester, seen, n);
    struct choice k;
    size_t found = 0;
    pool_fill(h, rng);
    choice_init(&k, h, n);
    while (found < n && choose(&k, &ret[found]))
        found++;
    choice_free(&k);
    search_state_free(h);
    return found;
}
