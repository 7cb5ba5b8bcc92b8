/* surrogate.c - the models of `pareto`, kept to be asked anywhere in the space: slices along a parameter, the front
 * that is expected. Invariant: same inputs, same bytes; asking changes nothing. */
#include "base/base.h"
#include "gp/pareto_priv.h"

#include <cblas.h>

struct gp_surrogate {
    struct space space;
    struct pareto_search search; /* borrows space */
    struct gp_history bounds; /* of the history, what a score can be, and no trials */
    double *cross; /* (BELIEFS_BATCH, ld) work */
    double *u; /* (BELIEFS_BATCH, dim) work */
};

enum status gp_surrogate_create(struct gp_surrogate **ret_surrogate, const struct space *space,
                                const struct gp_history *history, struct error *err)
{
    struct gp_surrogate *s = mem_alloc(sizeof *s);
    enum status rc;

    *ret_surrogate = NULL;
    s->space = *space;
    s->bounds = (struct gp_history){.has_score_bounds = history->has_score_bounds,
                                    .score_min = history->score_min,
                                    .score_max = history->score_max};
    openblas_set_num_threads(1);
    const struct gp_history trusted = trust_history(space, history);
    rc = pareto_models_init(&s->search, &s->space, &trusted, 0, false, NULL, err);
    THEN(rc, beliefs_learn(&s->search, &trusted, err));
    if (rc == ST_OK) {
        s->cross = mem_array2(BELIEFS_BATCH, pareto_search_ld(&s->search), sizeof *s->cross);
        s->u = mem_array2(BELIEFS_BATCH, space->dim, sizeof *s->u);
    } else {
        gp_surrogate_destroy(s);
        return rc;
    }
    *ret_surrogate = s;
    return ST_OK;
}

void gp_surrogate_destroy(struct gp_surrogate *s)
{
    if (s == NULL)
        return;
    pareto_search_free(&s->search);
    mem_free(s->cross);
    mem_free(s->u);
    mem_free(s);
}

void gp_surrogate_predict(struct gp_surrogate *s, const double *x, size_t n, struct gp_belief *ret_beliefs)
{
    size_t dim = s->space.dim;

    for (size_t at = 0; at < n; at += BELIEFS_BATCH) {
        size_t m = n - at < BELIEFS_BATCH ? n - at : BELIEFS_BATCH;
        for (size_t p = 0; p < m; p++)
            space_to_unit(&s->space, x + (at + p) * dim, s->u + p * dim);
        beliefs_predict(&s->search, &s->bounds, s->u, NULL, m, s->cross, ret_beliefs + at);
    }
}
