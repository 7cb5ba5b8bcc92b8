/* pareto_cache.c - what `pareto` keeps between proposals to be quick. A cache may be thrown away at any moment without
 * changing a proposal: everything in it is a function of the seed, or of trials that it compares before it answers.
 *
 * Hyper-parameters are fitted to the first m ended trials, by number, where m is the last of 1, 2, 3 ... 8, 10, 12, 15 ...
 * (each a quarter more than the one before) that is not above the number of ended ones; until the next m they stay. So a
 * suggester made anew, after a kill and a resume, does that one fit again and goes on as the old one would have.
 * When a trial among the first m ends late (others ran beside it), they are fitted again. */
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "gp/pareto_priv.h"

#define REFIT_GROWTH 4 /* fitted again when the ended trials are more by one in so many */

struct pareto_cache {
    double *spread; /* (PARETO_N_SOBOL, dim); NULL: not made yet */
    struct pareto_search *search; /* work memory, the models' square arrays above all; NULL: not made yet */
    bool has_hyper;
    struct pareto_hyper hyper;
    double *key; /* the trials that hyper was fitted to */
    size_t key_size_bytes;
};

enum status pareto_cache_create(struct pareto_cache **ret_cache, struct error *err)
{
    *ret_cache = mem_alloc(sizeof **ret_cache);
    return *ret_cache ? ST_OK : FAIL(err, ST_NOMEM, "no memory for the state of a suggester");
}

void pareto_cache_destroy(struct pareto_cache *cache)
{
    if (!cache)
        return;
    if (cache->search)
        pareto_search_free(cache->search);
    mem_free(cache->search);
    mem_free(cache->spread);
    mem_free(cache->key);
    mem_free(cache);
}

enum status pareto_cache_search(struct pareto_cache *cache, struct pareto_search **ret_search, struct error *err)
{
    if (!cache->search)
        cache->search = mem_alloc(sizeof *cache->search);
    if (!cache->search)
        return FAIL(err, ST_NOMEM, "no memory for a search");
    pareto_search_clear(cache->search);
    *ret_search = cache->search;
    return ST_OK;
}

enum status pareto_cache_spread(struct pareto_cache *cache, size_t dim, struct rng root, const double **ret_spread,
                                struct error *err)
{
    if (!cache->spread) {
        struct design design;
        double *spread = mem_array2(PARETO_N_SOBOL, dim, sizeof *spread);
        if (!spread)
            return FAIL(err, ST_NOMEM, "no memory for %d candidates", PARETO_N_SOBOL);
        enum status rc = design_init(&design, dim, rng_split(root, UINT64_MAX - 1), err);
        if (rc != ST_OK) {
            mem_free(spread);
            return rc;
        }
        for (size_t k = 0; k < PARETO_N_SOBOL; k++)
            design_sobol(&design, k, spread + k * dim);
        design_free(&design);
        cache->spread = spread;
    }
    *ret_spread = cache->spread;
    return ST_OK;
}

static bool ended(const struct gp_trial *t)
{
    return t->state != GP_TRIAL_PENDING;
}

static size_t refit_count(size_t n_ended)
{
    size_t m = 0;
    for (size_t next = 1; next <= n_ended; next = m + (m < REFIT_GROWTH ? 1 : m / REFIT_GROWTH))
        m = next;
    return m;
}

/* trials[i] as numbers, (dim + 3). */
static void write_key(const struct gp_trial *t, size_t dim, double *key)
{
    bool known = t->state == GP_TRIAL_DONE || t->state == GP_TRIAL_STOPPED; /* else score and cost may be NaN */
    key[0] = (double)t->state;
    key[1] = known ? t->score : 0.0;
    key[2] = known ? t->cost : 0.0;
    memcpy(key + 3, t->x, dim * sizeof *key);
}

static enum status fit(const struct space *space, const struct gp_history *history, struct pareto_hyper *ret,
                       struct error *err)
{
    struct pareto_search *s = mem_alloc(sizeof *s);
    if (!s)
        return FAIL(err, ST_NOMEM, "no memory for a fit over %zu parameters", space->dim);
    *ret = (struct pareto_hyper){0};
    enum status rc = pareto_models_init(s, space, history, 0, NULL, err);
    if (rc == ST_OK)
        rc = pareto_ok_init(s, NULL, err);
    if (rc == ST_OK) {
        memcpy(ret->score, s->score.theta, sizeof ret->score);
        memcpy(ret->cost, s->cost.theta, sizeof ret->cost);
        memcpy(ret->ok, s->ok.theta, sizeof ret->ok);
        ret->has_ok = s->has_ok;
    }
    pareto_search_free(s);
    mem_free(s);
    return rc;
}

enum status pareto_cache_hyper(struct pareto_cache *cache, const struct space *space, const struct gp_history *history,
                               struct pareto_hyper *ret_hyper, struct error *err)
{
    size_t n_ended = 0, dim = space->dim, width = dim + 3, n = 0;
    for (size_t i = 0; i < history->n; i++)
        n_ended += ended(&history->trials[i]);
    size_t m = refit_count(n_ended), rows = m + history->n_other, size_bytes = rows * width * sizeof(double);
    struct gp_trial *trials = mem_array(m + 1, sizeof *trials);
    double *key = mem_array2(rows + 1, width, sizeof *key);
    enum status rc = ST_OK;
    if (!trials || !key) {
        rc = FAIL(err, ST_NOMEM, "no memory for %zu trials", rows);
        goto done;
    }
    for (size_t i = 0; i < history->n && n < m; i++)
        if (ended(&history->trials[i])) {
            write_key(&history->trials[i], dim, key + n * width);
            trials[n++] = history->trials[i];
        }
    for (size_t i = 0; i < history->n_other; i++)
        write_key(&history->other[i], dim, key + (m + i) * width);
    if (!cache->has_hyper || cache->key_size_bytes != size_bytes || memcmp(cache->key, key, size_bytes) != 0) {
        struct gp_history first = {.n = m, .trials = trials, .n_other = history->n_other, .other = history->other};
        cache->has_hyper = false;
        rc = fit(space, &first, &cache->hyper, err);
        if (rc == ST_NUMERIC) { /* those trials have no model, perhaps all of them have */
            error_clear(err);
            rc = fit(space, history, ret_hyper, err);
            goto done;
        }
        if (rc != ST_OK)
            goto done;
        mem_free(cache->key);
        cache->key = key;
        cache->key_size_bytes = size_bytes;
        cache->has_hyper = true;
        key = NULL;
    }
    *ret_hyper = cache->hyper;
done:
    mem_free(trials);
    mem_free(key);
    return rc;
}
