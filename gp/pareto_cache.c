/* pareto_cache.c - what `pareto` keeps between proposals to be quick. A cache may be thrown away at any moment without
 * changing a proposal: everything in it is a function of the seed, or of trials that it compares before it answers.
 *
 * Hyper-parameters are fitted to the first m ended trials, by number, where m is one of 1, 2, 3 ... 8, 10, 12, 15 ...
 * (each a quarter more than the one before). From REFIT_EARLY on, where a fit takes longer than a proposal, they are
 * put to use REFIT_LAG trials later: the proposals between do the fit, a piece each, and trials that ran beside the
 * m-th have mostly ended by then. So a suggester made again, after a kill and a resume, does those two fits at once and
 * continues as the old one would have. When a trial among the first m ends later still, they are fitted again. */
#include "gp/pareto_priv.h"

#include "base/mem.h"

#include <limits.h>
#include <math.h>
#include <string.h>

#define REFIT_GROWTH 4 /* fitted again when the ended trials have grown by one part in this many */
#define REFIT_EARLY 64 /* trials below which a fit is put to use at once ... */
#define REFIT_LAG 16 /* ... and else so many later: two fits of two models have 16 pieces, and fits are as far apart */

/* A fit, whole or in its making. */
struct fit {
    double *key; /* the trials that it is of, owned; NULL: none */
    size_t key_size_bytes;
    struct pareto_fit fit;
};

struct pareto_cache {
    double *spread; /* (PARETO_N_SOBOL, dim); NULL: not made yet */
    struct pareto_search *search; /* work memory, the models' square arrays above all; NULL: not made yet */
    struct fit now[2], next[2]; /* of either kind of models (1: smooth), the one in use, and the one after it */
};

struct pareto_cache *pareto_cache_create(void)
{
    return mem_alloc(sizeof(struct pareto_cache));
}

void pareto_cache_destroy(struct pareto_cache *cache)
{
    if (!cache)
        return;
    if (cache->search)
        pareto_search_free(cache->search);
    mem_free(cache->search);
    mem_free(cache->spread);
    for (int kind = 0; kind < 2; kind++) {
        mem_free(cache->now[kind].key);
        mem_free(cache->next[kind].key);
    }
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
        design_init(&design, dim, rng_split(root, UINT64_MAX - 1));
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

/* The m whose fit is in use, and into ret_next the m that will be next if its trials have ended, else 0. */
static size_t refit_count(size_t n_ended, size_t *ret_next)
{
    size_t m = 0, next = 1;
    while (next + (next < REFIT_EARLY ? 0 : REFIT_LAG) <= n_ended) {
        m = next;
        next = m + (m < REFIT_GROWTH ? 1 : m / REFIT_GROWTH);
    }
    *ret_next = next <= n_ended ? next : 0;
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

/* The first m ended trials, and their numbers for comparison (m + other, dim + 3). */
struct first_trials {
    struct gp_history history;
    struct gp_trial *trials; /* owned */
    double *key; /* owned */
    size_t key_size_bytes;
};

static void first_trials_free(struct first_trials *f)
{
    mem_free(f->trials);
    mem_free(f->key);
}

static enum status first_trials_init(struct first_trials *f, size_t dim, const struct gp_history *history, size_t m,
                                     struct error *err)
{
    size_t width = dim + 3, rows = m + history->n_other, n = 0;
    f->trials = mem_array(m + 1, sizeof *f->trials);
    f->key = mem_array2(rows + 1, width, sizeof *f->key);
    f->key_size_bytes = rows * width * sizeof *f->key;
    f->history = *history;
    f->history.n = m;
    f->history.trials = f->trials;
    if (!f->trials || !f->key) {
        first_trials_free(f);
        return FAIL(err, ST_NOMEM, "no memory for %zu trials", rows);
    }
    for (size_t i = 0; i < history->n && n < m; i++)
        if (ended(&history->trials[i])) {
            write_key(&history->trials[i], dim, f->key + n * width);
            f->trials[n++] = history->trials[i];
        }
    for (size_t i = 0; i < history->n_other; i++)
        write_key(&history->other[i], dim, f->key + (m + i) * width);
    return ST_OK;
}

static bool fit_is_of(const struct fit *fit, const struct first_trials *first)
{
    return fit->key && fit->key_size_bytes == first->key_size_bytes &&
           memcmp(fit->key, first->key, first->key_size_bytes) == 0;
}

/* So many pieces more of the fit to these trials, from the beginning when it is of others. */
static enum status fit_advance(struct fit *fit, bool smooth, struct pareto_search *work, const struct space *space,
                               struct first_trials *first, int n_pieces, struct error *err)
{
    if (!fit_is_of(fit, first)) {
        mem_free(fit->key);
        *fit = (struct fit){.key = first->key, .key_size_bytes = first->key_size_bytes, .fit.hyper.smooth = smooth};
        first->key = NULL;
    }
    if (fit->fit.done)
        return ST_OK;
    enum status rc = pareto_fit_more(work, space, &first->history, n_pieces, &fit->fit, err);
    pareto_search_clear(work);
    return rc;
}

/* A piece of the fits that will be in use next. */
static enum status prepare(struct pareto_cache *cache, struct pareto_search *work, const struct space *space,
                           const struct gp_history *history, size_t m, struct error *err)
{
    struct first_trials first;
    TRY(first_trials_init(&first, space->dim, history, m, err));
    int kind = fit_is_of(&cache->next[0], &first) && cache->next[0].fit.done;
    int n_pieces = cache->next[kind].fit.hyper.has_ok ? 2 : 1; /* a model of failures makes three of two */
    enum status rc = fit_advance(&cache->next[kind], kind, work, space, &first, n_pieces, err);
    first_trials_free(&first);
    if (rc != ST_NUMERIC) /* that matters when it is in use */
        return rc;
    error_clear(err);
    return ST_OK;
}

enum status pareto_cache_hyper(struct pareto_cache *cache, struct pareto_search *work, const struct space *space,
                               const struct gp_history *history, bool smooth, struct pareto_hyper *ret_hyper,
                               struct error *err)
{
    struct fit *now = &cache->now[smooth], *coming = &cache->next[smooth];
    size_t n_ended = 0, next;
    for (size_t i = 0; i < history->n; i++)
        n_ended += ended(&history->trials[i]);
    size_t m = refit_count(n_ended, &next);
    struct first_trials first, all;
    TRY(first_trials_init(&first, space->dim, history, m, err));
    if (!fit_is_of(now, &first) && fit_is_of(coming, &first)) {
        mem_free(now->key);
        *now = *coming;
        *coming = (struct fit){0};
    }
    enum status rc = fit_advance(now, smooth, work, space, &first, INT_MAX, err);
    first_trials_free(&first);
    *ret_hyper = now->fit.hyper;
    if (rc == ST_NUMERIC) { /* those trials have no model, perhaps all of them have */
        struct fit fit = {0};
        error_clear(err);
        TRY(first_trials_init(&all, space->dim, history, n_ended, err));
        rc = fit_advance(&fit, smooth, work, space, &all, INT_MAX, err);
        *ret_hyper = fit.fit.hyper;
        first_trials_free(&all);
        mem_free(fit.key);
        return rc;
    }
    return rc == ST_OK && next > 0 ? prepare(cache, work, space, history, next, err) : rc;
}
