/* propose.c - what the next trial of a study is: a new point, or a config again under a fresh seed. */
#include "sweep/proposals/propose.h"

#include "base/status.h"
#include "gp/gp.h"
#include "study/study_view.h"

#include <stdio.h>
#include <string.h>

/* The config to run again under a fresh seed; history->n: none. stuck: no new point is left. */
static size_t choose_again(const struct space *space, const struct gp_history *history, const struct confirm_plan *plan,
                           bool stuck, struct gp_insight *advice, const char **ret_origin)
{
    struct gp_history own = *history;
    size_t i = own.n;

    own.n_other = 0; /* advice is of this study's runs alone, as every reader gives it */
    if (advice->n == 0)
        gp_beliefs_init(advice, space, &own);
    *ret_origin = SEED_ORIGIN;
    if (plan->seeds > 1)
        i = gp_seed_next(space, advice, &own, plan->seeds);
    if (i < own.n)
        return i;
    *ret_origin = CONFIRM_ORIGIN;
    if (plan->target == TARGET_CONFIRM)
        i = gp_confirm_next(advice, &own, GP_CONFIRM_BEST);
    if (i < own.n || (plan->turn < CONFIRM_FIRST && !stuck))
        return i;
    i = gp_confirm_next(advice, &own,
                        plan->turn == CONFIRM_LAST  ? GP_CONFIRM_LAST
                        : plan->turn == CONFIRM_END ? GP_CONFIRM_END
                                                    : GP_CONFIRM_DOUBTFUL);
    return i < own.n && own.trials[i].cost <= plan->cost_left ? i : own.n;
}

enum status propose(struct suggester *suggester, const struct space *space, const struct gp_history *history,
                    int64_t number, const struct confirm_plan *plan, struct proposal *ret, struct error *err)
{
    struct suggestion *s = &ret->suggestion;
    const char *origin = NULL;
    size_t i = history->n;

    if (plan->seeds > 1 || plan->turn >= CONFIRM_FIRST || plan->target != TARGET_FAR)
        i = choose_again(space, history, plan, false, &ret->advice, &origin);
    if (i == history->n) {
        struct error why = {0};
        enum status rc = suggester_next(suggester, history, number, s, &why);
        if (rc == ST_OK && strcmp(s->origin, "default") == 0) /* the suggester's start, which is not the config */
            snprintf(s->origin, sizeof s->origin, "start");
        if (rc == ST_LIMIT && plan->turn != CONFIRM_NO)
            i = choose_again(space, history, plan, true, &ret->advice, &origin);
        if (i == history->n)
            return rc == ST_OK ? ST_OK : FAIL(err, rc, "%s", why.text);
    }
    *s = (struct suggestion){0};
    snprintf(s->origin, sizeof s->origin, "%s", origin);
    memcpy(s->x, history->trials[i].x, space->dim * sizeof *s->x);
    return ST_OK;
}
