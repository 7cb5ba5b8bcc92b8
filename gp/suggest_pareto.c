/* suggest_pareto.c - the model-based method; this first part is its design phase only. */
#include <string.h>

#include "gp/gp_priv.h"

static enum status pareto_next(struct suggester *s, const struct gp_history *history, const struct seen *seen,
                               int64_t number, struct suggestion *ret, struct error *err)
{
    (void)history, (void)err;
    strcpy(ret->origin, "sobol");
    suggest_design_sobol(s, seen, number, ret->x);
    return ST_OK;
}

const struct suggest_method_ops suggest_pareto_ops = {"pareto", pareto_next};
